/* fuzz_node.c - a client with its callbacks, whose servers say and do what the input says, in virtual time.
 *
 * The input is a program of one-byte instructions: calls of the user, events of the loop, and bytes, replies, ends and stalls of the
 * connections. It may not crash, read what it should not, or leak; every callback comes once; every socket is closed; no lease is
 * longer than what was asked for, or than its cap; a loss is told once, and nothing of a lock that was given up. (What servers that lie do to locks is no matter here: tests/sim.) */
#include "fuzz.h"

#include "callback.h"
#include "client.h"
#include "lock.h"
#include "port.h"
#include "script.h"
#include "sock.h"

#include <errno.h>

enum { NODES = 3, SLOTS = 4, MOST_FDS = 512, FIRST_FD = 100, MOST_STEPS = 4000 };

static struct {
    rli_instant now, alarm;
    uint64_t random;
    int64_t blocks; /* not freed */
    const uint8_t *input;
    size_t left;
    uint32_t nodes;
} world;

static struct { /* one connection */
    bool open, connecting, ended;
    int node;
    const uint8_t *bytes; /* to be read by the client */
    size_t size;
} links[MOST_FDS];
static int link_count, open_count;
static bool blocked[NODES], refuses[NODES];

static struct slot {
    rl_lock *lock;
    rl_op *op;
    bool busy;
    int64_t longest;
    bool lost;       /* was told so */
    rli_instant cap; /* RLI_NEVER = none */
} slots[SLOTS];

static rl_async *async;
static bool deferred, dying;
static struct {
    int fd;
    bool write;
} watched[NODES];

static uint8_t byte(void)
{
    if (!world.left)
        return 0;
    world.left--;
    return *world.input++;
}

/* ---- The port ------------------------------------------------------------------------------------------------------------------------- */

void *rli_calloc(size_t size)
{
    world.blocks++;
    return calloc(1, size);
}

void *rli_realloc(void *memory, size_t size)
{
    world.blocks += !memory;
    return realloc(memory, size);
}

void rli_free(void *memory)
{
    world.blocks -= memory != NULL;
    free(memory);
}

rli_instant rli_now(void)
{
    return world.now;
}

struct rli_guard {
    char nothing;
};

struct rli_guard *rli_guard_new(void)
{
    return rli_calloc(sizeof(struct rli_guard));
}

void rli_guard_free(struct rli_guard *guard)
{
    rli_free(guard);
}

bool rli_guard_forked(const struct rli_guard *guard)
{
    (void)guard;
    return false;
}

void rli_guard_random(struct rli_guard *guard, void *bytes, size_t size)
{
    (void)guard;
    for (size_t i = 0; i < size; i++) {
        world.random = world.random * UINT64_C(6364136223846793005) + 1;
        ((unsigned char *)bytes)[i] = (unsigned char)(world.random >> 56);
    }
}

bool rli_address_numeric(const char *host, uint16_t port, struct rli_address *ret)
{
    (void)port;
    memset(ret, 0, sizeof *ret);
    ret->size = 1;
    ret->bytes[0] = (unsigned char)(host[strlen(host) - 1] - '1');
    return true;
}

bool rli_address_unix(const char *path, struct rli_address *ret)
{
    return rli_address_numeric(path, 0, ret);
}

/* Of the blocking front. */
int rli_alarm_new(void)
{
    return -1;
}

void rli_alarm_set(int alarm, rli_instant at)
{
    (void)alarm, (void)at;
}

void rli_alarm_wait(int alarm, rli_instant until)
{
    (void)alarm, (void)until;
}

void rli_alarm_free(int alarm)
{
    (void)alarm;
}

struct rli_waker {
    char nothing;
};

struct rli_waker *rli_waker_new(void)
{
    return rli_calloc(sizeof(struct rli_waker));
}

void rli_waker_set(struct rli_waker *waker, rli_instant at)
{
    (void)waker;
    world.alarm = rli_min(world.alarm, at);
}

int rli_waker_fd(const struct rli_waker *waker)
{
    (void)waker;
    return -1;
}

void rli_waker_wake(struct rli_waker *waker)
{
    (void)waker;
}

void rli_waker_clear(struct rli_waker *waker)
{
    (void)waker;
}

void rli_waker_drop(struct rli_waker *waker)
{
    rli_free(waker);
}

struct rli_lookup *rli_lookup_start(struct rli_waker *waker, const char *host, uint16_t port)
{
    (void)waker, (void)host, (void)port;
    return NULL;
}

bool rli_lookup_done(struct rli_lookup *lookup, struct rli_address *ret, uint32_t *ret_count, const char **ret_error)
{
    (void)lookup, (void)ret, (void)ret_count, (void)ret_error;
    return false;
}

void rli_lookup_drop(struct rli_lookup *lookup)
{
    (void)lookup;
}

/* ---- Sockets -------------------------------------------------------------------------------------------------------------------------- */

int rli_sock_open(const struct rli_address *address, bool *ret_connecting)
{
    int node = address->bytes[0];

    if (link_count == MOST_FDS || refuses[node])
        return -ECONNREFUSED;
    memset(&links[link_count], 0, sizeof links[0]);
    links[link_count].open = links[link_count].connecting = true;
    links[link_count].node = node;
    *ret_connecting = true;
    open_count++;
    return FIRST_FD + link_count++;
}

int rli_sock_connected(int fd)
{
    return links[fd - FIRST_FD].connecting ? 1 : links[fd - FIRST_FD].ended ? -ECONNRESET : 0;
}

ssize_t rli_sock_send(int fd, const void *bytes, size_t size)
{
    (void)bytes;
    if (links[fd - FIRST_FD].ended)
        return -EPIPE;
    return blocked[links[fd - FIRST_FD].node] ? 0 : (ssize_t)size;
}

ssize_t rli_sock_receive(int fd, void *bytes, size_t size)
{
    size_t have = links[fd - FIRST_FD].size;

    if (!have)
        return links[fd - FIRST_FD].ended ? -ECONNRESET : 0;
    size = size < have ? size : have;
    memcpy(bytes, links[fd - FIRST_FD].bytes, size);
    links[fd - FIRST_FD].bytes += size;
    links[fd - FIRST_FD].size -= size;
    return (ssize_t)size;
}

void rli_sock_shut(int fd)
{
    MUST(links[fd - FIRST_FD].open);
}

void rli_sock_close(int fd)
{
    MUST(links[fd - FIRST_FD].open);
    links[fd - FIRST_FD].open = false;
    open_count--;
}

/* ---- The loop ------------------------------------------------------------------------------------------------------------------------- */

static bool loop_watch(void *loop, uint32_t node, int fd, bool write)
{
    (void)loop;
    MUST(node < world.nodes && (fd < 0 || links[fd - FIRST_FD].open));
    watched[node].fd = fd;
    watched[node].write = write;
    return true;
}

static void loop_defer(void *loop)
{
    (void)loop;
    deferred = true;
}

static void loop_free(void *loop)
{
    (void)loop;
    deferred = false;
    for (uint32_t i = 0; i < world.nodes; i++)
        MUST(watched[i].fd < 0);
}

static const struct rli_loop loop = {loop_watch, loop_defer, loop_free};

static void turn(void)
{
    if (!deferred || !async)
        return;
    deferred = false;
    rli_async_turn(async);
    if (dying)
        async = NULL;
}

/* What has come for a node is read; or it can be written to, or the connect has an outcome. */
static void poll_node(uint32_t node)
{
    int fd = watched[node].fd;

    if (!async || fd < 0)
        return;
    bool connecting = links[fd - FIRST_FD].connecting;
    bool readable = !connecting && (links[fd - FIRST_FD].size || links[fd - FIRST_FD].ended);
    bool writable = !connecting && watched[node].write && !blocked[node];
    if (readable || writable)
        rli_async_ready(async, node, readable, writable);
}

static void ring(void)
{
    if (!async || world.alarm > world.now)
        return;
    world.alarm = RLI_NEVER;
    rli_async_woken(async);
}

/* A few turns of a loop that handles all there is. */
static void rest(void)
{
    for (int i = 0; i < 4; i++) {
        turn();
        for (uint32_t node = 0; node < world.nodes; node++)
            poll_node(node);
        ring();
    }
}

/* ---- The user ------------------------------------------------------------------------------------------------------------------------- */

static void end(void)
{
    if (!async || dying)
        return;
    dying = true;
    rl_async_free(async);
}

static void read_report(const rl_report *report, bool must_be_whole)
{
    rl_node_result result = {.size = sizeof result};
    size_t count = rl_report_count(report);

    MUST(count == world.nodes || (count == 0 && !must_be_whole));
    for (size_t i = 0; i < count; i++) {
        MUST(rl_report_node(report, i, &result) == RL_OK);
        MUST(result.outcome >= RL_NODE_NOT_ASKED && result.outcome <= RL_NODE_PENDING && !strstr(result.node, "secret"));
        for (const char *c = result.text; *c; c++)
            MUST(*c >= ' ' && *c <= '~');
    }
}

static void told(struct slot *slot)
{
    MUST(slot->busy);
    slot->busy = false;
    slot->op = NULL;
    if (world.left && byte() == 255)
        end();
}

static void check_lease(const struct slot *slot)
{
    MUST(!slot->lock || rl_lock_remaining_ms(slot->lock) < slot->longest);
    MUST(!slot->lock || atomic_load(&slot->lock->valid_until) <= slot->cap);
}

static void on_acquired(int status, rl_lock *lock, const rl_report *report, void *user_data)
{
    struct slot *slot = user_data;

    MUST((status == RL_OK) == (lock != NULL));
    read_report(report, true);
    slot->lock = lock;
    slot->cap = rli_add(world.now, slot->cap);
    MUST(!lock || rl_lock_remaining_ms(lock) > 0);
    check_lease(slot);
    told(slot);
}

static void on_done(int status, const rl_report *report, void *user_data)
{
    struct slot *slot = user_data;

    MUST(strcmp(rl_strstatus(status), "unknown status") != 0);
    read_report(report, false);
    check_lease(slot);
    told(slot);
}

static void release(struct slot *slot, bool tell);

static void on_event(rl_lock *lock, const rl_event *event, void *user_data)
{
    struct slot *slot = user_data;

    MUST(lock == slot->lock && !slot->lost && event->kind >= RL_EVENT_JEOPARDY && event->kind <= RL_EVENT_LOST);
    slot->lost = event->kind == RL_EVENT_LOST;
    MUST(slot->lost ? rl_lock_remaining_ms(lock) == 0 : event->reason <= RL_LOST_NOT_TOUCHED);
    if (world.left && byte() % 4 == 1)
        release(slot, false);
    else if (world.left && byte() == 255)
        end();
}

static const int64_t lengths[] = {10, 30, 100, 1000, 10000, 600000, RL_MAX_TTL_MS, 20};

static void acquire(struct slot *slot, bool renew)
{
    static const int64_t waits[] = {0, 0, 5, 100, 1000, 60000, RL_FOREVER, INT64_MAX};
    rl_request request;
    uint8_t how = byte();

    if (slot->busy || slot->lock || !async || dying)
        return;
    rl_request_init(&request);
    request.name = "name";
    request.name_len = 4;
    request.ttl_ms = slot->longest = lengths[how & 7];
    request.wait_ms = waits[how >> 3 & 7];
    request.fail_fast = how >> 6 & 1;
    request.label = how >> 7 ? "label" : NULL;
    request.fence = how == 255 ? byte() % 4 : 0;
    request.renew = renew;
    request.max_hold_ms = renew && how & 8 ? 3 * request.ttl_ms : 0;
    request.touch_within_ms = renew && how & 16 ? request.ttl_ms : 0;
    request.on_event = how & 32 ? on_event : NULL;
    request.event_data = slot;
    slot->lost = false;
    slot->cap = request.max_hold_ms ? rli_from_ms(request.max_hold_ms) : RLI_NEVER;
    slot->busy = true;
    int rc = rl_async_acquire(async, &request, on_acquired, slot, &slot->op);
    if (rc) {
        MUST(rc == RL_E_INVALID); /* not longer than drift and min_validity */
        slot->busy = false;
    }
}

static void extend(struct slot *slot)
{
    int64_t ttl = lengths[byte() & 7];

    if (slot->busy || !slot->lock)
        return;
    slot->busy = true;
    slot->cap = RLI_NEVER;
    if (rl_async_extend(slot->lock, ttl, on_done, slot, &slot->op))
        slot->busy = false;
    slot->longest = ttl > slot->longest ? ttl : slot->longest;
}

static void release(struct slot *slot, bool tell)
{
    rl_lock *lock = slot->lock;
    bool extending = slot->busy;

    if (!lock || (extending && tell))
        return;
    slot->lock = NULL;
    slot->busy |= tell;
    if (rl_async_release(lock, tell ? on_done : NULL, slot) && tell)
        slot->busy = false;
}

static void forget(struct slot *slot)
{
    if (!slot->lock || slot->busy)
        return;
    rl_lock_free(slot->lock);
    slot->lock = NULL;
}

/* ---- The input ------------------------------------------------------------------------------------------------------------------------ */

static void deliver(int fd, const void *bytes, size_t size)
{
    if (fd < 0 || links[fd - FIRST_FD].connecting || links[fd - FIRST_FD].size)
        return;
    links[fd - FIRST_FD].bytes = bytes;
    links[fd - FIRST_FD].size = size;
}

static void well_formed(int fd)
{
    static const char *const replies[] = {
        "+OK\r\n",
        ":1\r\n",
        ":0\r\n",
        "$-1\r\n",
        "*2\r\n:2\r\n:100\r\n",
        "-NOSCRIPT No matching script.\r\n",
        "-ERR something\r\n",
        "-NOPERM no\r\n",
        "-WRONGTYPE x\r\n",
        "$23\r\nid=7 addr=127.0.0.1:123\r\n",
        "-ERR max number of clients reached\r\n",
        "+OK\r\n+OK\r\n$18\r\nid=12 addr=1.1.1.1\r\n$1\r\na\r\n$1\r\na\r\n", /* a handshake's, with password and db */
        "+OK\r\n$18\r\nid=12 addr=1.1.1.1\r\n$1\r\na\r\n$1\r\na\r\n",
        "+OK\r\n+OK\r\n+OK\r\n",
        ":1\r\n:1\r\n:1\r\n",
        "*-1\r\n",
        ":1700000000000000\r\n",
        ":1700000000000001\r\n",
        "*1\r\n:1\r\n",
        "*1\r\n:0\r\n",
        "*2\r\n:1\r\n:2\r\n",
        "*2\r\n:1\r\n:1\r\n",
        "*3\r\n:1\r\n:0\r\n:1\r\n",
        "*4\r\n:1\r\n:-1\r\n:1\r\n:1\r\n",
    };
    const char *reply = replies[byte() % (sizeof replies / sizeof *replies)];

    deliver(fd, reply, strlen(reply));
}

static unsigned scripts_of_handshake(void)
{
    return async ? rli_engine_scripts(&((const struct rli_client *)(const void *)async)->engine)
                 : 0; /* it begins with its client */
}

/* A connect succeeds, and the handshake with it. */
static void greet(uint32_t node)
{
    static char answers[NODES][256];
    static const char names[] = "+OK\r\n$18\r\nid=12 addr=1.1.1.1\r\n", login[] = "+OK\r\n+OK\r\n";
    char *to = answers[node];
    int fd = watched[node].fd;

    if (fd < 0 || !links[fd - FIRST_FD].connecting)
        return;
    links[fd - FIRST_FD].connecting = false;
    poll_node(node);
    turn();
    to += sprintf(to, "%s%s", node ? "" : login, names);
    for (unsigned i = 0, scripts = scripts_of_handshake(); i < scripts; i++)
        to += sprintf(to, "$1\r\na\r\n");
    deliver(watched[node].fd, answers[node], strlen(answers[node]));
    poll_node(node);
    turn();
}

static void connection(uint8_t what, uint32_t node)
{
    int fd = watched[node].fd;
    size_t size;

    switch (what % 8) {
    case 0:
        greet(node);
        break;
    case 1: /* the connect has an outcome */
        if (fd >= 0 && links[fd - FIRST_FD].connecting) {
            links[fd - FIRST_FD].connecting = false;
            links[fd - FIRST_FD].ended = byte() & 1;
        }
        break;
    case 2: /* any bytes */
        size = byte();
        size = size < world.left ? size : world.left;
        deliver(fd, world.input, size);
        world.input += size;
        world.left -= size;
        break;
    case 3:
    case 4:
        well_formed(fd);
        break;
    case 5:
        if (fd >= 0 && !links[fd - FIRST_FD].connecting)
            links[fd - FIRST_FD].ended = true;
        break;
    case 6:
        blocked[node] = !blocked[node];
        break;
    default:
        refuses[node] = !refuses[node];
        break;
    }
}

static void user(uint8_t what, struct slot *slot)
{
    uint8_t how;

    switch (what % 8) {
    case 0:
        acquire(slot, false);
        break;
    case 1:
        acquire(slot, true);
        break;
    case 2:
        extend(slot);
        break;
    case 3:
        release(slot, true);
        break;
    case 4:
        release(slot, false);
        break;
    case 5:
        if (slot->op)
            rl_op_cancel(slot->op);
        break;
    case 6:
        forget(slot);
        break;
    default:
        how = byte();
        if (how == 0)
            end();
        else if (how % 4 == 1)
            rl_lock_touch(slot->lock);
        else if (how % 4 == 2)
            rl_lock_stop_renewing(slot->lock);
        break;
    }
}

/* 2 bits of what, 3 bits of how, 3 bits of whom. */
static void step(void)
{
    static const int64_t spans[] = {1, 5, 20, 100, 250, 1000, 11000, 0};
    uint8_t what = byte();

    switch (what >> 6) {
    case 0:
        user(what >> 3, &slots[what % SLOTS]);
        break;
    case 1:
        connection(what >> 3, what % world.nodes);
        rest();
        break;
    case 2: /* without a turn of the loop */
        connection(what >> 3, what % world.nodes);
        if (what & 4)
            poll_node(what % world.nodes);
        break;
    default:
        world.now += spans[what & 7] * RLI_MS;
        if (what & 8)
            ring();
        if (what & 16)
            turn();
        if (what & 32)
            rest();
        break;
    }
    if (dying && async && !deferred)
        async = NULL;
    for (int i = 0; i < SLOTS; i++)
        check_lease(&slots[i]);
}

static void begin(const uint8_t *data, size_t size)
{
    static const char *const urls[] = {"redis://user:secret@10.0.0.1/3", "redis://user:secret@10.0.0.1/3,redis://10.0.0.2",
                                       "redis://user:secret@10.0.0.1/3,redis://10.0.0.2,redis://10.0.0.3"};
    rl_options options;

    memset(&world, 0, sizeof world);
    memset(slots, 0, sizeof slots);
    memset(blocked, 0, sizeof blocked);
    memset(refuses, 0, sizeof refuses);
    world.now = 1000000 * RLI_MS;
    world.alarm = RLI_NEVER;
    world.input = data;
    world.left = size;
    link_count = open_count = 0;
    deferred = dying = false;
    for (int i = 0; i < NODES; i++)
        watched[i].fd = -1;
    rl_options_init(&options);
    world.nodes = 1 + byte() % NODES;
    options.fence = byte() % 4;
    options.fence_node = world.nodes - 1;
    options.node_timeout_ms = 1 + byte();
    options.cleanup_timeout_ms = byte();
    MUST(rli_async_new(rl_version(), &loop, NULL, urls[world.nodes - 1], &options, &async, NULL) == RL_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    begin(data, size);
    for (int i = 0; i < MOST_STEPS && world.left; i++)
        step();
    world.left = 0;
    if (!dying)
        end();
    else
        turn();
    for (int i = 0; i < SLOTS; i++) {
        MUST(!slots[i].busy);
        rl_lock_free(slots[i].lock);
    }
    MUST(open_count == 0 && world.blocks == 0);
    return 0;
}
