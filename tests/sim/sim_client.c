/* sim_client.c - clients in a simulated world: the callback front on a loop of virtual time, and what users do with it.
 *
 * Each client is a process with a clock of its own that can be stopped at any instruction that matters (client_stumble, called from
 * the port and the sockets). Its users take, extend, release and forget locks, cancel, and free the client, at random. What they
 * hold is checked against each other and against the servers whenever something is granted. */
#include "world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "callback.h"
#include "lock.h"

enum { SLOTS = 3, NAMES = 2, WATCHED = MAX_SERVERS };

struct slot { /* one thing a user does */
    int client;
    rl_lock *lock;
    rl_op *op; /* running; NULL for a release */
    bool busy; /* a callback will come */
    bool lapsed;
    int name;
    true_time started;
};

struct client {
    rl_async *async;
    int64_t offset, rate_ppm; /* of its clock */
    true_time present;        /* while its code runs; before that, until when it was busy */
    true_time paused_until;
    bool scheduled;
    true_time wakes_at;
    struct {
        int fd;
        bool write;
    } watched[WATCHED];
    int64_t alarm; /* by its clock; RLI_NEVER = none */
    bool deferred;
    uint64_t life; /* grows when the client is freed: late callbacks would show */
    struct slot slots[SLOTS];
};

static struct client clients[MAX_CLIENTS];
static int current = -1;
static bool quiet;
static int64_t started, told; /* operations and their callbacks */

static void wake(void *arg);

int client_current(void)
{
    return current;
}

true_time client_present(void)
{
    return current >= 0 ? clients[current].present : world_now;
}

int64_t client_clock(int client, true_time when)
{
    if (client < 0)
        return when;
    return clients[client].offset + when + when / 1000000 * clients[client].rate_ppm;
}

void client_stumble(int64_t length)
{
    if (current < 0 || world_now >= nature.chaos_ends)
        return;
    note("is held up for %lld ms", (long long)(length / MS));
    clients[current].present += length;
}

/* ---- The loop ----------------------------------------------------------------------------------------------------------------------- */

static void wake_at(struct client *client, true_time when)
{
    if (when < client->present)
        when = client->present;
    if (when < client->paused_until)
        when = client->paused_until;
    if (client->scheduled && client->wakes_at <= when)
        return;
    client->scheduled = true;
    client->wakes_at = when;
    world_at(when, wake, client);
}

void client_poke(int client)
{
    wake_at(&clients[client], world_now + between(1000, MS / 10));
}

/* The true time at which its clock shows `at`. */
static true_time when_clock_shows(const struct client *client, int64_t at)
{
    double shown = (double)(at - client->offset);
    return (true_time)(shown / (1.0 + (double)client->rate_ppm / 1e6)) + MS / 100;
}

static bool loop_watch(void *loop, uint32_t node, int fd, bool write)
{
    struct client *client = loop;

    client->watched[node].fd = fd;
    client->watched[node].write = write;
    if (fd >= 0)
        wake_at(client, client->present);
    return true;
}

void client_alarm(int64_t at)
{
    struct client *client = &clients[current];

    if (at >= client->alarm)
        return;
    client->alarm = at;
    wake_at(client, when_clock_shows(client, at));
}

static void loop_defer(void *loop)
{
    struct client *client = loop;

    client->deferred = true;
    wake_at(client, client->present);
}

static void loop_free(void *loop)
{
    struct client *client = loop;

    client->alarm = RLI_NEVER;
    client->deferred = false;
    for (int i = 0; i < WATCHED; i++)
        if (client->watched[i].fd >= 0)
            violated("an event outlives the client");
}

static const struct rli_loop loop = {loop_watch, loop_defer, loop_free};

static void poll_node(struct client *client, uint32_t node)
{
    int fd = client->watched[node].fd;
    bool readable, writable;

    if (fd < 0)
        return;
    readable = net_readable(fd);
    writable = client->watched[node].write && net_connect_ended(fd);
    if (readable || writable)
        rli_async_ready(client->async, node, readable, writable);
}

static void ring(struct client *client)
{
    if (client->alarm == RLI_NEVER || client->alarm > client_clock(current, client->present))
        return;
    client->alarm = RLI_NEVER;
    rli_async_woken(client->async);
}

static bool has_more(const struct client *client)
{
    for (int i = 0; i < WATCHED; i++) {
        int fd = client->watched[i].fd;
        if (fd >= 0 && (net_readable(fd) || (client->watched[i].write && net_connect_ended(fd))))
            return true;
    }
    return client->deferred;
}

static void enter(struct client *client)
{
    current = (int)(client - clients);
    if (client->present < world_now)
        client->present = world_now;
}

static void leave(void)
{
    current = -1;
}

/* One turn of the loop: what is ready and what is due, in any order, then what was deferred. */
static void wake(void *arg)
{
    struct client *client = arg;
    uint32_t first = (uint32_t)between(0, nature.servers - 1);
    bool timers_first = one_in(2);

    if (!client->scheduled || client->wakes_at != world_now)
        return; /* it was woken earlier */
    client->scheduled = false;
    if (client->paused_until > world_now || client->present > world_now) {
        wake_at(client, client->present);
        return;
    }
    if (!client->async)
        return;
    enter(client);
    if (timers_first)
        ring(client);
    for (uint32_t i = 0; i < (uint32_t)nature.servers; i++)
        poll_node(client, (first + i) % (uint32_t)nature.servers);
    if (!timers_first)
        ring(client);
    if (client->deferred) {
        client->deferred = false;
        rli_async_turn(client->async);
    }
    leave();
    if (client->async && has_more(client))
        wake_at(client, client->present + between(1000, 50000));
    if (client->async && client->alarm != RLI_NEVER)
        wake_at(client, when_clock_shows(client, client->alarm));
}

void client_pause(int client, int64_t length)
{
    note("client %d stands still for %lld ms", client, (long long)(length / MS));
    clients[client].paused_until = world_now + length;
}

/* ---- What must hold ------------------------------------------------------------------------------------------------------------------- */

static bool claims(struct slot *slot, true_time when)
{
    rli_instant valid_until;

    if (!slot->lock)
        return false;
    valid_until = atomic_load(&slot->lock->valid_until);
    if (valid_until <= client_clock(slot->client, when)) {
        slot->lapsed = true;
        return false;
    }
    if (slot->lapsed)
        violated("client %d: a lock that was lost is held again", slot->client);
    return true;
}

/* A lock is claimed: does a quorum of servers keep it, and does nobody else claim it? */
static void check_claim(struct slot *slot)
{
    true_time when = client_present();
    int keep = 0;

    if (nature.forgetful || !claims(slot, when))
        return;
    for (int s = 1; s <= nature.servers; s++) {
        const char *value = server_value(s, slot->lock->subject.key, when);
        keep += value && strcmp(value, slot->lock->subject.token) == 0;
    }
    if (keep <= nature.servers / 2)
        violated("client %d claims %s, but only %d servers keep it", slot->client, slot->lock->subject.key, keep);
    for (int c = 0; c < nature.clients; c++)
        for (int i = 0; i < SLOTS; i++) {
            struct slot *other = &clients[c].slots[i];
            if (other != slot && other->name == slot->name && claims(other, when))
                violated("clients %d and %d both claim %s", slot->client, c, slot->lock->subject.key);
        }
}

/* ---- What users do ---------------------------------------------------------------------------------------------------------------------- */

static void act(void *arg);

static void act_later(struct slot *slot, int64_t most)
{
    world_at(client_present() + between(0, most), act, slot);
}

static int64_t lease(void)
{
    return nature.long_leases ? 600000 : between(20, 400);
}

static void called_back(struct slot *slot, const char *what, int status)
{
    note("%s -> %s", what, rl_strstatus(status));
    told++;
    if (!slot->busy)
        violated("client %d: a callback too many (%s)", slot->client, what);
    slot->busy = false;
    slot->op = NULL;
    if (one_in(50)) /* a callback that blocks */
        client_stumble(between(1, 300) * MS);
}

static void on_acquired(int status, rl_lock *lock, const rl_report *report, void *user_data)
{
    struct slot *slot = user_data;

    if ((status == RL_OK) != (lock != NULL) || rl_report_count(report) > (size_t)nature.servers)
        violated("client %d: status and lock disagree", slot->client);
    slot->lapsed = false;
    slot->lock = lock;
    if (lock)
        check_claim(slot);
    called_back(slot, "acquire", status);
    act_later(slot, 200 * MS);
}

static void on_extended(int status, const rl_report *report, void *user_data)
{
    struct slot *slot = user_data;

    (void)report;
    if (slot->lock)
        check_claim(slot);
    called_back(slot, "extend", status);
    if (status == RL_OK && slot->lock && slot->lapsed)
        violated("client %d: a lost lock was extended", slot->client);
    act_later(slot, 200 * MS);
}

static void on_released(int status, const rl_report *report, void *user_data)
{
    struct slot *slot = user_data;

    (void)report;
    called_back(slot, "release", status);
    act_later(slot, 300 * MS);
}

static void acquire(struct slot *slot)
{
    static const char *const names[NAMES] = {"apple", "pear"};
    struct client *client = &clients[slot->client];
    rl_request request;

    rl_request_init(&request);
    slot->name = (int)between(0, NAMES - 1);
    request.name = names[slot->name];
    request.name_len = strlen(names[slot->name]);
    request.ttl_ms = lease();
    request.wait_ms = one_in(3) ? 0 : between(1, 1500);
    request.fail_fast = one_in(4);
    note("acquire %s for %lld ms, wait %lld ms", names[slot->name], (long long)request.ttl_ms, (long long)request.wait_ms);
    slot->busy = true;
    slot->started = client->present;
    if (rl_async_acquire(client->async, &request, on_acquired, slot, &slot->op) != RL_OK)
        violated("an acquisition was refused");
    started++;
    if (one_in(8))
        act_later(slot, 50 * MS); /* to cancel it */
}

static void extend(struct slot *slot)
{
    int64_t ttl = lease();
    int rc;

    note("extend for %lld ms", (long long)ttl);
    slot->busy = true;
    rc = rl_async_extend(slot->lock, ttl, on_extended, slot, &slot->op);
    if (rc == RL_OK) {
        started++;
        return;
    }
    if (rc != RL_LOST || claims(slot, client_present()))
        violated("client %d: extend says %s", slot->client, rl_strstatus(rc));
    slot->busy = false;
    slot->op = NULL;
    act_later(slot, 50 * MS);
}

static void give_up_lock(struct slot *slot)
{
    rl_lock *lock = slot->lock;

    slot->lock = NULL;
    if (!nature.long_leases && one_in(6)) {
        note("forgets its lock");
        rl_lock_free(lock);
        act_later(slot, 100 * MS);
        return;
    }
    note("release");
    slot->busy = true;
    slot->op = NULL;
    if (rl_async_release(lock, on_released, slot) != RL_OK)
        violated("a release was refused");
    started++;
}

/* The next thing a user does, when the user's time has come. */
static void act(void *arg)
{
    struct slot *slot = arg;
    struct client *client = &clients[slot->client];

    if (client->paused_until > world_now || client->present > world_now) {
        world_at(client->paused_until > client->present ? client->paused_until : client->present, act, slot);
        return;
    }
    if (!client->async)
        return;
    enter(client);
    if (slot->busy && slot->op) {
        note("cancel");
        rl_op_cancel(slot->op);
    } else if (slot->busy) {
        ; /* a release takes its time */
    } else if (slot->lock && (quiet ? false : one_in(3))) {
        extend(slot);
    } else if (slot->lock && !quiet) {
        give_up_lock(slot);
    } else if (!quiet) {
        acquire(slot);
    }
    leave();
}

/* ---- Life and death --------------------------------------------------------------------------------------------------------------------------- */

static void make_async(struct client *client)
{
    char urls[MAX_SERVERS * 32] = "";
    rl_options options;

    for (int s = 1; s <= nature.servers; s++)
        snprintf(urls + strlen(urls), sizeof urls - strlen(urls), "%sredis://10.0.0.%d", s > 1 ? "," : "", s);
    rl_options_init(&options);
    options.node_timeout_ms = between(20, 250);
    options.cleanup_timeout_ms = between(0, 250);
    if (rli_async_new(rl_version(), &loop, client, urls, &options, &client->async, NULL) != RL_OK)
        violated("no client could be made");
}

static void free_async(struct client *client)
{
    note("frees its client");
    for (int i = 0; i < SLOTS; i++) { /* handles may outlive it, but these do not */
        if (client->slots[i].lock && one_in(2)) {
            rl_lock_free(client->slots[i].lock);
            client->slots[i].lock = NULL;
        }
    }
    rl_async_free(client->async);
    client->async = NULL;
    for (int i = 0; i < SLOTS; i++) {
        if (client->slots[i].busy)
            violated("a callback did not come before the client was freed");
        if (client->slots[i].lock)
            rl_lock_free(client->slots[i].lock);
        client->slots[i].lock = NULL;
    }
    client->life++;
}

/* With short leases only: a freed client's last writes may be lost, and then the lease is all there is. */
static void be_reborn(void *arg)
{
    struct client *client = arg;

    if (quiet || !client->async || client->paused_until > world_now || client->present > world_now)
        return;
    enter(client);
    free_async(client);
    make_async(client);
    for (int i = 0; i < SLOTS; i++)
        act_later(&client->slots[i], 100 * MS);
    leave();
}

void clients_begin(void)
{
    memset(clients, 0, sizeof clients);
    quiet = false;
    started = told = 0;
    for (int c = 0; c < nature.clients; c++) {
        struct client *client = &clients[c];
        client->offset = between(0, 1000000) * MS;
        client->rate_ppm = between(-3000, 3000);
        client->alarm = RLI_NEVER;
        for (int i = 0; i < WATCHED; i++)
            client->watched[i].fd = -1;
        enter(client);
        make_async(client);
        for (int i = 0; i < SLOTS; i++) {
            client->slots[i].client = c;
            act_later(&client->slots[i], 100 * MS);
        }
        leave();
        if (!nature.long_leases && one_in(3))
            world_at(world_now + between(100, 1500) * MS, be_reborn, client);
    }
}

void clients_quiet(void)
{
    quiet = true;
}

static void check_key(int server, const char *key, const char *value)
{
    for (int c = 0; c < nature.clients; c++)
        for (int i = 0; i < SLOTS; i++) {
            const rl_lock *lock = clients[c].slots[i].lock;
            if (lock && strcmp(lock->subject.key, key) == 0 && strcmp(lock->subject.token, value) == 0)
                return;
        }
    violated("server %d keeps %s for nobody (%.8s)", server, key, value);
}

void clients_check(void)
{
    for (int c = 0; c < nature.clients; c++)
        for (int i = 0; i < SLOTS; i++)
            if (clients[c].slots[i].busy)
                violated("client %d: an operation of %lld ms ago has not ended", c,
                         (long long)((world_now - clients[c].slots[i].started) / MS));
    if (told != started)
        violated("%lld operations, %lld callbacks", (long long)started, (long long)told);
    servers_each_key(world_now, check_key);
}

void clients_end(void)
{
    for (int c = 0; c < nature.clients; c++) {
        if (!clients[c].async)
            continue;
        enter(&clients[c]);
        free_async(&clients[c]);
        leave();
    }
}
