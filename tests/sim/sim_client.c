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

enum { SLOTS = 3, NAMES = 4, WATCHED = MAX_SERVERS, MAX_GRANTS = 1024, MAX_HOLDINGS = 4096 };

struct holding { /* what the user is told of one acquisition's lock */
    struct slot *slot;
    bool lives;   /* the user has the lock, and its client */
    bool hears;   /* ... and wants to know */
    bool lost;    /* was told so */
    bool failing; /* was told of a jeopardy that is not over */
};

struct slot { /* one thing a user does */
    int client;
    rl_lock *lock;
    rl_op *op;   /* running; NULL for a release */
    bool busy;   /* a callback will come */
    bool lapsed; /* its lock was seen to be over */
    true_time lapsed_at;
    bool orphaned; /* its lock has outlived its client */
    int name;
    int64_t ttl;        /* ms, as last asked for */
    int64_t longest;    /* ... and the most that was asked for since it was taken */
    int64_t seen_until; /* valid_until of its lock, as last seen */
    true_time started;
    int64_t called;   /* the same by the client's clock */
    int64_t bound;    /* the callback comes within so long, and the time the process stood still; -1 = none */
    int64_t stood_by; /* client's `stood` at that time */
    int64_t fence;    /* of its lock */
    struct holding *holding;
    bool renewed;              /* its lock is */
    bool extended;             /* the user has done so too */
    bool idle;                 /* the user checks in no more */
    bool safe;                 /* it was granted by a quorum to which nothing happens */
    int64_t max_hold, touch;   /* ms; 0 = none */
    int64_t acquired, touched; /* by the client's clock */
    int64_t stood_seen;        /* client's `stood` when its lock was last seen to be held */
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
    int64_t tick;  /* its loop looks at the time only so often: what is due meanwhile is due together; 0 = at once */
    bool deferred;
    bool dying;    /* rl_async_free was called, from a callback maybe */
    int64_t stood; /* for how long its process has stood still */
    int64_t saw;   /* its clock, as last read by the library */
    bool heard;    /* bytes were read in this turn */
    rl_options options;
    struct slot slots[SLOTS];
};

static struct client clients[MAX_CLIENTS];
static int current = -1;
static bool quiet;
static int64_t started, told; /* operations and their callbacks */
static struct grant {         /* a fencing token that was handed out */
    int name;
    int64_t fence;
    true_time began, when;
    bool held; /* it was still held when the user heard of it */
} grants[MAX_GRANTS];
static int grant_count;
static struct holding holdings[MAX_HOLDINGS];
static int holding_count;

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
    if (current < 0 || nature.safe || world_now >= nature.chaos_ends)
        return;
    note("is held up for %lld ms", (long long)(length / MS));
    clients[current].present += length;
    clients[current].stood += length;
}

void client_saw(int64_t clock)
{
    if (current >= 0)
        clients[current].saw = clock;
}

void client_heard(void)
{
    if (current >= 0)
        clients[current].heard = true;
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

static true_time when_it_rings(const struct client *client)
{
    true_time when = when_clock_shows(client, client->alarm);
    return client->tick ? (when / client->tick + 1) * client->tick : when;
}

void client_alarm(int64_t at)
{
    struct client *client = &clients[current];

    if (at >= client->alarm)
        return;
    client->alarm = at;
    wake_at(client, when_it_rings(client));
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
    if (client->tick && client->present > when_clock_shows(client, client->alarm))
        client->stood += client->present - when_clock_shows(client, client->alarm);
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

static void look_at_locks(struct client *client);
static void check_counted(struct slot *slot);
static void check_claim(struct slot *slot);

static void enter(struct client *client)
{
    current = (int)(client - clients);
    if (client->present < world_now)
        client->present = world_now;
    look_at_locks(client);
    client->heard = false;
}

static void leave(void)
{
    look_at_locks(&clients[current]);
    for (int i = 0; i < SLOTS; i++)
        check_counted(&clients[current].slots[i]);
    current = -1;
}

static void is_dead(struct client *client);

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
    if (client->deferred && !one_in(8)) { /* else other events come first */
        client->deferred = false;
        rli_async_turn(client->async);
        if (client->dying)
            is_dead(client);
    }
    leave();
    if (client->async && has_more(client))
        wake_at(client, client->present + between(1000, 50000));
    if (client->async && client->alarm != RLI_NEVER)
        wake_at(client, when_it_rings(client));
}

void client_pause(int client, int64_t length)
{
    note("client %d stands still for %lld ms", client, (long long)(length / MS));
    if (clients[client].paused_until < world_now + length)
        clients[client].paused_until = world_now + length;
    clients[client].stood += length;
}

/* ---- What must hold ------------------------------------------------------------------------------------------------------------------- */

static bool claims(struct slot *slot, true_time when)
{
    rli_instant valid_until;

    if (!slot->lock)
        return false;
    valid_until = atomic_load(&slot->lock->valid_until);
    if (current >= 0 && current != slot->client) /* its own present may be another */
        return valid_until > client_clock(slot->client, when);
    if (valid_until <= client_clock(slot->client, when)) {
        slot->lapsed_at = slot->lapsed ? slot->lapsed_at : when;
        slot->lapsed = true;
        return false;
    }
    if (slot->lapsed && when >= slot->lapsed_at)
        violated("client %d: a lock that was lost is held again", slot->client);
    return true;
}

/* At the end of a lease that was renewed the servers must keep it still. */
static void audit(void *arg)
{
    check_claim(arg);
}

/* No renewal goes beyond what the request allows. (What waits for a connection is sent later, and then lasts from then on.) */
static void check_limits(const struct slot *slot, int64_t until)
{
    const struct client *client = &clients[slot->client];
    int64_t longest = slot->longest * MS, late = client->options.node_timeout_ms * MS;

    if (slot->extended)
        return;
    if (slot->max_hold && until > slot->acquired + slot->max_hold * MS)
        violated("client %d: its lock is renewed beyond its cap, by %lld us", slot->client,
                 (long long)(until - slot->acquired - slot->max_hold * MS) / 1000);
    if (slot->touch && until > slot->touched + slot->touch * MS + longest + late)
        violated("client %d: its lock is renewed although the user does not check in", slot->client);
}

static void was_renewed(struct slot *slot, int64_t until)
{
    check_limits(slot, until);
    check_claim(slot);
    world_at(when_clock_shows(&clients[slot->client], until) - MS / 20, audit, slot);
}

/* What a user learns by asking: a lease that is over stays so, none is longer than what was asked for, and none grows but by a
 * node's word. */
static void look_at_locks(struct client *client)
{
    for (int i = 0; i < SLOTS; i++) {
        struct slot *slot = &client->slots[i];
        int64_t until;
        if (!slot->lock || !claims(slot, client->present))
            continue;
        until = atomic_load(&slot->lock->valid_until);
        if (until > slot->seen_until && !client->heard && slot->seen_until)
            violated("client %d: a lease grew by itself", slot->client);
        if (until > client_clock(slot->client, client->present) + slot->longest * MS)
            violated("client %d: a lease is longer than what was asked for", slot->client);
        if (until > slot->seen_until && slot->seen_until && slot->renewed)
            was_renewed(slot, until);
        slot->seen_until = until;
        slot->stood_seen = client->stood;
    }
}

/* Nobody counts on a server that said "not yours", once that has been read (S5.2). */
static void check_counted(struct slot *slot)
{
    if ((!nature.forgetful && !nature.renewing) || nature.hostile || !slot->lock || !claims(slot, client_present()))
        return;
    for (int s = 1; s <= nature.servers; s++)
        if (server_has_denied(s, rli_lock_token(slot->lock)) && slot->lock->e[s - 1] > client_clock(slot->client, client_present()))
            violated("client %d counts on server %d, which said no", slot->client, s);
}

/* How many of the first `servers` keep its key? */
static int servers_that_keep(const rl_lock *lock, int servers, true_time when)
{
    int keep = 0;

    for (int s = 1; s <= servers; s++) {
        const char *value = server_value(s, rli_lock_key(lock), when);
        keep += value && strcmp(value, rli_lock_token(lock)) == 0;
    }
    return keep;
}

/* A lock is claimed: does a quorum of servers keep it, and does nobody else claim it? */
static void check_claim(struct slot *slot)
{
    true_time when = client_present();
    int keep;

    if (nature.forgetful || nature.hostile || !claims(slot, when))
        return;
    keep = servers_that_keep(slot->lock, nature.servers, when);
    if (keep < nature.quorum - nature.forgetters)
        violated("client %d claims %s, but only %d servers keep it", slot->client, rli_lock_key(slot->lock), keep);
    for (int c = 0; c < nature.clients; c++)
        for (int i = 0; i < SLOTS; i++) {
            struct slot *other = &clients[c].slots[i];
            if (other != slot && other->name == slot->name && claims(other, when))
                violated("clients %d and %d both claim %s", slot->client, c, rli_lock_key(slot->lock));
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
    if (nature.renewing) /* drift takes half of the long ones: they are renewed early, and ghosts of them last */
        return nature.long_leases ? between(30000, 40000) : between(nature.safe ? 60 : 40, 400);
    return nature.long_leases ? 600000 : between(20, 400);
}

/* How long the user looks at the lock before doing the next thing about it. */
static int64_t patience(const struct slot *slot)
{
    return !slot->lock || !slot->renewed ? 200 * MS : nature.long_leases ? 4000 * MS : 2 * slot->ttl * MS;
}

/* A call has begun whose callback comes within so long. */
static void begins(struct slot *slot, int64_t bound)
{
    const struct client *client = &clients[slot->client];

    slot->busy = true;
    slot->op = NULL;
    slot->started = client->present;
    slot->called = client_clock(slot->client, client->present);
    slot->stood_by = client->stood;
    slot->bound = bound;
    started++;
}

/* It came to nothing. */
static void did_not_begin(struct slot *slot)
{
    slot->busy = false;
    slot->op = NULL;
    started--;
}

static void check_bound(const struct slot *slot, const char *what)
{
    const struct client *client = &clients[slot->client];
    int64_t took = client->present - slot->started, slack = 2 * MS + slot->bound / 200 + client->tick;

    if (slot->bound >= 0 && took > slot->bound + slack + client->stood - slot->stood_by)
        violated("client %d: %s took %lld ms, of which its process stood still for %lld, and may take %lld", slot->client, what,
                 (long long)(took / MS), (long long)((client->stood - slot->stood_by) / MS), (long long)(slot->bound / MS));
}

static void cancel(struct slot *slot)
{
    const struct client *client = &clients[slot->client];

    note("cancel");
    rl_op_cancel(slot->op);
    slot->bound = client->present - slot->started; /* in the next turn */
}

static void free_async(struct client *client);

static void called_back(struct slot *slot, const char *what, int status)
{
    struct client *client = &clients[slot->client];
    int64_t other = between(0, SLOTS - 1);

    note("%s -> %s", what, rl_strstatus(status));
    told++;
    if (!slot->busy)
        violated("client %d: a callback too many (%s)", slot->client, what);
    check_bound(slot, what);
    slot->busy = false;
    slot->op = NULL;
    if (one_in(50)) /* a callback that blocks */
        client_stumble(between(1, 300) * MS);
    if (client->slots[other].op && one_in(10))
        cancel(&client->slots[other]);
    if (!nature.long_leases && !quiet && one_in(300) && !client->dying)
        free_async(client);
}

static uint32_t count_outcomes(const rl_report *report, int outcome)
{
    rl_node_result result = {.size = sizeof result};
    uint32_t count = 0;

    for (size_t i = 0; i < rl_report_count(report); i++)
        count += rl_report_node(report, i, &result) == RL_OK && result.outcome == outcome;
    return count;
}

/* What is handed over as held is so for min_validity at least, and for no longer than the lease. */
static void check_validity(const struct slot *slot, int64_t ttl)
{
    const struct client *client = &clients[slot->client];
    int64_t until = atomic_load(&slot->lock->valid_until), drift = ttl * client->options.drift_ppm + 2 * MS;

    if (until < client->saw + client->options.min_validity_ms * MS)
        violated("client %d: a lock is handed over of which too little is left", slot->client);
    if (slot->longest == ttl && until > client->saw + ttl * MS - drift)
        violated("client %d: a lease is said to be longer than it may be", slot->client);
}

/* Whoever began after another had been told has a higher token; so has whoever holds later, unless servers forget locks (design:
 * what each guarantee needs). */
static bool comes_first(const struct grant *a, const struct grant *b)
{
    return a->when < b->began || (!nature.forgetful && a->held && b->held && a->when < b->when);
}

static void check_fence(struct slot *slot)
{
    struct grant grant = {slot->name, rl_lock_fence(slot->lock), slot->started, client_present(), claims(slot, client_present())};

    slot->fence = grant.fence;
    if ((grant.fence > 0) != (nature.fence != RL_FENCE_NONE))
        violated("client %d: the fencing token is %lld", slot->client, (long long)grant.fence);
    if (!grant.fence || nature.hostile)
        return;
    for (int i = 0; i < grant_count; i++) {
        const struct grant *other = &grants[i];
        if (other->name != grant.name)
            continue;
        if (other->fence == grant.fence)
            violated("client %d: the fencing token %lld was handed out before", slot->client, (long long)grant.fence);
        if (other->fence > grant.fence ? comes_first(other, &grant) : comes_first(&grant, other))
            violated("client %d: the fencing tokens %lld and %lld are in the wrong order", slot->client, (long long)grant.fence,
                     (long long)other->fence);
    }
    if (grant_count < MAX_GRANTS)
        grants[grant_count++] = grant;
}

/* ---- What is told of a lock that is kept -------------------------------------------------------------------------------------------------- */

static void give_up_lock(struct slot *slot);

/* It is over, and why; at its end at the latest, but for the time that the process stood still (S5.5). */
static void check_loss(struct slot *slot, int reason)
{
    const struct client *client = &clients[slot->client];
    int64_t late = client_clock(slot->client, client->present) - slot->seen_until;

    if (claims(slot, client->present) || rl_lock_lost_reason(slot->lock) != reason)
        violated("client %d: a lock is said to be lost (%d), and is not", slot->client, reason);
    if (slot->seen_until && late > 2 * MS + client->stood - slot->stood_seen)
        violated("client %d: a loss is told %lld ms late", slot->client, (long long)(late / MS));
    if (nature.hostile)
        return;
    if ((reason == RL_LOST_HOLD_CAP && !slot->max_hold) || (reason == RL_LOST_NOT_TOUCHED && !slot->touch))
        violated("client %d: a lock is lost for a reason that it cannot have: %d", slot->client, reason);
    if ((reason == RL_LOST_TAKEN_OVER || reason == RL_LOST_QUORUM_GONE) && !nature.forgetful && !nature.forgetters)
        violated("client %d: a lock is lost although no server forgets: %d", slot->client, reason);
    if (slot->safe && slot->renewed && reason != RL_LOST_HOLD_CAP && !(reason == RL_LOST_NOT_TOUCHED && slot->idle))
        violated("client %d: a lock is lost although a quorum answers: %d", slot->client, reason);
}

static void check_jeopardy(const struct slot *slot, const rl_event *event)
{
    if (!slot->renewed || claims((struct slot *)(uintptr_t)slot, client_present()) != (event->remaining_ms > 0))
        return; /* the process stood still since */
    if (slot->safe && event->kind == RL_EVENT_JEOPARDY && !(event->reason == RL_LOST_NOT_TOUCHED && slot->idle))
        violated("client %d: a lock is in jeopardy although a quorum answers", slot->client);
}

static void on_event(rl_lock *lock, const rl_event *event, void *user_data)
{
    struct holding *holding = user_data;
    struct slot *slot = holding->slot;

    note("is told %d (%d), %lld ms left", event->kind, event->reason, (long long)event->remaining_ms);
    if (!holding->lives || !holding->hears || slot->holding != holding || slot->lock != lock) {
        violated("client %d: an event of a lock that the user does not have", slot->client);
        return;
    }
    if (holding->lost || (event->kind != RL_EVENT_LOST && (event->kind == RL_EVENT_JEOPARDY) == holding->failing))
        violated("client %d: an event too many (%d)", slot->client, event->kind);
    holding->failing = event->kind == RL_EVENT_JEOPARDY;
    holding->lost = event->kind == RL_EVENT_LOST;
    if (holding->lost)
        check_loss(slot, event->reason);
    else
        check_jeopardy(slot, event);
    if (one_in(50)) /* a callback that blocks */
        client_stumble(between(1, 300) * MS);
    if (!slot->busy && one_in(holding->lost ? 2 : 8))
        give_up_lock(slot);
    if (!nature.long_leases && !quiet && one_in(300) && !clients[slot->client].dying)
        free_async(&clients[slot->client]);
}

/* The user is not stuck. */
static void check_in(void *arg)
{
    struct slot *slot = arg;
    struct client *client = &clients[slot->client];

    if (!slot->lock || !slot->touch || slot->idle)
        return;
    if (client->paused_until > world_now || client->present > world_now) {
        world_at(client->paused_until > client->present ? client->paused_until : client->present, check_in, slot);
        return;
    }
    enter(client);
    if ((rl_lock_touch(slot->lock) == RL_OK) != (atomic_load(&slot->lock->valid_until) > client->saw))
        violated("client %d: a touch tells something else than the lock", slot->client);
    slot->touched = client_clock(slot->client, client->present);
    slot->idle = one_in(10);
    leave();
    world_at(client->present + between(1, slot->touch * MS / 3), check_in, slot);
}

/* Beside the lease: to be renewed, told of, and so on. */
static void ask_to_keep(struct slot *slot, rl_request *request)
{
    struct holding *holding = &holdings[holding_count++ % MAX_HOLDINGS];

    *holding = (struct holding){.slot = slot, .hears = !one_in(5)};
    slot->holding = holding;
    slot->renewed = nature.renewing && !one_in(4);
    slot->extended = slot->idle = slot->safe = false;
    slot->max_hold = slot->renewed && one_in(4) ? slot->ttl * between(2, 12) / 2 : 0;
    slot->touch = slot->renewed && one_in(4) ? between(slot->ttl / 2, slot->ttl * 2) : 0;
    request->renew = slot->renewed;
    request->max_hold_ms = slot->max_hold;
    request->touch_within_ms = slot->touch;
    if (nature.renewing && holding->hears) {
        request->on_event = on_event;
        request->event_data = holding;
    }
}

static void on_acquired(int status, rl_lock *lock, const rl_report *report, void *user_data)
{
    struct slot *slot = user_data;

    if ((status == RL_OK) != (lock != NULL) || rl_report_count(report) != (size_t)nature.servers)
        violated("client %d: status and lock disagree", slot->client);
    slot->lapsed = slot->orphaned = false;
    slot->seen_until = 0;
    slot->lock = lock;
    slot->holding->lives = lock;
    slot->acquired = slot->touched = client_clock(slot->client, client_present());
    if (lock && slot->touch)
        world_at(client_present() + between(1, slot->touch * MS / 3), check_in, slot);
    if (lock) {
        if (count_outcomes(report, RL_NODE_YES) < (uint32_t)nature.quorum)
            violated("client %d: a lock with too few votes", slot->client);
        check_validity(slot, slot->ttl);
        check_fence(slot);
        check_claim(slot);
        slot->safe = nature.safe && servers_that_keep(slot->lock, nature.safe, client_present()) == nature.safe;
    }
    called_back(slot, "acquire", status);
    act_later(slot, patience(slot));
}

static void on_extended(int status, const rl_report *report, void *user_data)
{
    struct slot *slot = user_data;
    int64_t promised = slot->called + slot->ttl * MS - (slot->ttl * clients[slot->client].options.drift_ppm + 2 * MS);

    if (status == RL_OK && slot->lock) {
        if (slot->lapsed)
            violated("client %d: a lost lock was extended", slot->client);
        if (rl_lock_fence(slot->lock) != slot->fence)
            violated("client %d: the fencing token has changed", slot->client);
        if (count_outcomes(report, RL_NODE_YES) < (uint32_t)nature.quorum)
            violated("client %d: an extension with too few votes", slot->client);
        if (atomic_load(&slot->lock->valid_until) < promised)
            violated("client %d: an extension is shorter than was promised", slot->client);
        check_validity(slot, slot->ttl);
    }
    if (slot->lock)
        check_claim(slot);
    if (status == RL_LOST && slot->lock && rl_lock_remaining_ms(slot->lock) > 0)
        violated("client %d: a lost lock is held", slot->client);
    called_back(slot, "extend", status);
    act_later(slot, patience(slot));
}

static void on_released(int status, const rl_report *report, void *user_data)
{
    struct slot *slot = user_data;
    uint32_t gone = count_outcomes(report, RL_NODE_YES) + count_outcomes(report, RL_NODE_ABSENT) +
                    count_outcomes(report, RL_NODE_HELD_BY_OTHER);

    if (status == RL_OK && gone < (uint32_t)nature.quorum)
        violated("client %d: a release with too few votes", slot->client);
    called_back(slot, "release", status);
    act_later(slot, nature.storm ? 20 * MS : 300 * MS);
}

static int64_t wait_length(void)
{
    if (nature.storm)
        return one_in(8) ? RL_FOREVER : between(500, 5000);
    if (one_in(20))
        return RL_FOREVER;
    return one_in(3) ? 0 : between(1, 1500);
}

static void acquire(struct slot *slot)
{
    static const char *const names[NAMES] = {"apple", "pear", "plum", "quince"};
    struct client *client = &clients[slot->client];
    const rl_options *o = &client->options;
    rl_request request;
    int64_t longest;

    rl_request_init(&request);
    slot->name = nature.storm ? 0 : (int)between(0, nature.names - 1);
    request.name = names[slot->name];
    request.name_len = strlen(names[slot->name]);
    request.ttl_ms = slot->ttl = slot->longest = lease();
    request.wait_ms = wait_length();
    request.fail_fast = one_in(4);
    ask_to_keep(slot, &request);
    note("acquire %s for %lld ms, wait %lld ms", names[slot->name], (long long)request.ttl_ms, (long long)request.wait_ms);
    longest = (request.wait_ms > o->node_timeout_ms ? request.wait_ms : o->node_timeout_ms) + o->cleanup_timeout_ms;
    begins(slot, request.wait_ms == RL_FOREVER ? -1 : longest * MS);
    if (rl_async_acquire(client->async, &request, on_acquired, slot, &slot->op) != RL_OK)
        violated("an acquisition was refused");
    if (request.wait_ms == RL_FOREVER) /* to cancel it */
        act_later(slot, 3000 * MS);
    else if (one_in(8))
        act_later(slot, 50 * MS);
}

static void extend(struct slot *slot)
{
    const struct client *client = &clients[slot->client];
    int64_t ttl = lease(), left, bound = client->options.node_timeout_ms * MS;
    int rc;

    note("extend for %lld ms", (long long)ttl);
    left = atomic_load(&slot->lock->valid_until) - client_clock(slot->client, client->present);
    slot->ttl = ttl;
    slot->longest = ttl > slot->longest ? ttl : slot->longest;
    slot->extended = true;
    begins(slot, claims(slot, client->present) && left < bound ? left : bound);
    rc = rl_async_extend(slot->lock, ttl, on_extended, slot, &slot->op);
    if (rc == RL_OK) {
        if (one_in(10)) /* to cancel it */
            act_later(slot, 20 * MS);
        return;
    }
    if (rc != (slot->orphaned ? RL_E_CLOSED : RL_LOST) || (rc == RL_LOST && claims(slot, client_present())))
        violated("client %d: extend says %s", slot->client, rl_strstatus(rc));
    did_not_begin(slot);
    act_later(slot, 50 * MS);
}

static void release(struct slot *slot, rl_lock *lock)
{
    bool tell = !one_in(5);
    int rc;

    note("release");
    if (tell)
        begins(slot, clients[slot->client].options.node_timeout_ms * MS);
    rc = rl_async_release(lock, tell ? on_released : NULL, slot);
    if (rc != (slot->orphaned ? RL_E_CLOSED : RL_OK))
        violated("client %d: release says %s", slot->client, rl_strstatus(rc));
    if (tell && rc != RL_OK)
        did_not_begin(slot);
    if (!slot->busy)
        act_later(slot, 100 * MS);
}

static void stop_renewing(struct slot *slot)
{
    note("stops its renewal");
    slot->renewed = false;
    if (rl_lock_stop_renewing(slot->lock) != RL_OK)
        violated("client %d: a renewal cannot be stopped", slot->client);
}

static void give_up_lock(struct slot *slot)
{
    rl_lock *lock = slot->lock;

    slot->lock = NULL;
    slot->holding->lives = false;
    if (nature.long_leases || !one_in(6)) {
        release(slot, lock);
        return;
    }
    note("forgets its lock");
    rl_lock_free(lock);
    act_later(slot, 100 * MS);
}

/* Something about a lock that is held. */
static void use_lock(struct slot *slot)
{
    int64_t what = between(0, 11);

    if (!slot->renewed ? what < 4 : what < 2) {
        extend(slot);
    } else if (!slot->renewed || what < 6) {
        give_up_lock(slot);
    } else {
        if (what == 6)
            stop_renewing(slot);
        act_later(slot, patience(slot));
    }
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
    if (!client->async || client->dying)
        return;
    enter(client);
    if (slot->busy && slot->op) {
        cancel(slot);
    } else if (slot->busy) {
        ; /* a release takes its time */
    } else if (slot->lock && quiet) {
        if (slot->renewed && !nature.long_leases) /* or it would go on and on */
            stop_renewing(slot);
    } else if (slot->lock) {
        use_lock(slot);
    } else if (!quiet) {
        acquire(slot);
    }
    leave();
}

/* ---- Life and death --------------------------------------------------------------------------------------------------------------------------- */

static void make_async(struct client *client)
{
    char urls[MAX_SERVERS * 32] = "";
    rl_options *options = &client->options;

    for (int s = 1; s <= nature.servers; s++)
        snprintf(urls + strlen(urls), sizeof urls - strlen(urls), "%sredis://10.0.0.%d", s > 1 ? "," : "", s);
    rl_options_init(options);
    options->node_timeout_ms = between(20, 250);
    options->cleanup_timeout_ms = between(0, 250);
    options->quorum = (uint32_t)nature.quorum;
    options->fence = (uint32_t)nature.fence;
    options->fence_node = (uint32_t)nature.servers / 2;
    options->renew_batch = one_in(4) ? (uint32_t)between(1, 2) : 0;
    if (nature.renewing && nature.long_leases)
        options->drift_ppm = 500000;
    if (one_in(4))
        options->min_validity_ms = between(1, 15);
    if (rli_async_new(rl_version(), &loop, client, urls, options, &client->async, NULL) != RL_OK)
        violated("no client could be made");
}

/* From a callback or not; ends what runs, with its callbacks. */
static void free_async(struct client *client)
{
    note("frees its client");
    client->dying = true;
    for (int i = 0; i < SLOTS; i++) {
        if (client->slots[i].holding)
            client->slots[i].holding->lives = false;
        if (client->slots[i].lock && one_in(3)) {
            rl_lock_free(client->slots[i].lock);
            client->slots[i].lock = NULL;
        }
    }
    rl_async_free(client->async);
}

static void be_born_again(void *arg)
{
    struct client *client = arg;

    if (quiet)
        return;
    if (client->paused_until > world_now || client->present > world_now) {
        world_at(client->paused_until > client->present ? client->paused_until : client->present, be_born_again, client);
        return;
    }
    enter(client);
    make_async(client);
    for (int i = 0; i < SLOTS; i++)
        act_later(&client->slots[i], 100 * MS);
    leave();
}

/* The client is gone, its last callback told; handles may outlive it. */
static void is_dead(struct client *client)
{
    client->async = NULL;
    client->dying = client->deferred = false;
    for (int i = 0; i < SLOTS; i++) {
        struct slot *slot = &client->slots[i];
        if (slot->busy)
            violated("a callback did not come before the client was freed");
        slot->orphaned = true;
        if (slot->lock && !one_in(3)) {
            rl_lock_free(slot->lock);
            slot->lock = NULL;
        }
    }
    world_at(client->present + between(0, 100) * MS, be_born_again, client);
}

/* With short leases only: a freed client's last writes may be lost, and then the lease is all there is. */
static void die(void *arg)
{
    struct client *client = arg;

    if (quiet || !client->async || client->paused_until > world_now || client->present > world_now)
        return;
    enter(client);
    free_async(client);
    is_dead(client);
    leave();
}

void clients_begin(void)
{
    memset(clients, 0, sizeof clients);
    quiet = false;
    started = told = 0;
    grant_count = holding_count = 0;
    for (int c = 0; c < nature.clients; c++) {
        struct client *client = &clients[c];
        client->offset = between(0, 1000000) * MS;
        client->rate_ppm = between(-3000, 3000);
        client->alarm = RLI_NEVER;
        if (nature.renewing && one_in(2))
            client->tick = between(1, nature.safe ? 5 : nature.long_leases ? 400 : 25) * MS;
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
            world_at(world_now + between(100, 1500) * MS, die, client);
    }
}

void clients_quiet(void)
{
    quiet = true;
    for (int c = 0; c < nature.clients; c++)
        for (int i = 0; i < SLOTS; i++) /* whoever waits for ever, or has its lock renewed */
            if (clients[c].slots[i].bound < 0 || (clients[c].slots[i].renewed && clients[c].slots[i].lock))
                world_at(world_now + between(0, 100) * MS, act, &clients[c].slots[i]);
}

static void check_key(int server, const char *key, const char *value)
{
    if (*key == '{') /* a counter stays */
        return;
    for (int c = 0; c < nature.clients; c++)
        for (int i = 0; i < SLOTS; i++) {
            const rl_lock *lock = clients[c].slots[i].lock;
            if (lock && strcmp(rli_lock_key(lock), key) == 0 && strcmp(rli_lock_token(lock), value) == 0)
                return;
        }
    violated("server %d keeps %s for nobody (%.8s)", server, key, value);
}

/* A loss has been told, and once; what was not lost has not been told of. What ends in these very moments is still to be told of. */
static void check_told(struct slot *slot)
{
    const struct client *client = &clients[slot->client];
    const struct holding *holding = slot->holding;
    bool lost;

    if (!nature.renewing || !slot->lock || !holding->lives || !holding->hears || client->deferred)
        return;
    lost = slot->lock->lost != RL_LOST_NOT;
    if (lost != holding->lost)
        violated("client %d: a lock is%s lost, and the user was%s told", slot->client, lost ? "" : " not", lost ? " not" : "");
    if (!lost && atomic_load(&slot->lock->valid_until) < client_clock(slot->client, world_now) - client->tick - 2 * MS)
        violated("client %d: the end of a lock was not noticed", slot->client);
    if (!lost && holding->failing && !nature.hostile && slot->renewed && !slot->touch)
        violated("client %d: all is quiet, and a lock is in jeopardy still", slot->client);
}

void clients_check(void)
{
    for (int c = 0; c < nature.clients; c++)
        for (int i = 0; i < SLOTS; i++) {
            struct slot *slot = &clients[c].slots[i];
            check_told(slot);
            if (slot->busy)
                violated("client %d: an operation of %lld ms ago has not ended", c, (long long)((world_now - slot->started) / MS));
        }
    if (told != started)
        violated("%lld operations, %lld callbacks", (long long)started, (long long)told);
    if (!nature.hostile)
        servers_each_key(world_now, check_key);
}

void clients_end(void)
{
    for (int c = 0; c < nature.clients; c++) {
        enter(&clients[c]);
        if (clients[c].async) {
            free_async(&clients[c]);
            is_dead(&clients[c]);
        }
        for (int i = 0; i < SLOTS; i++)
            rl_lock_free(clients[c].slots[i].lock);
        memset(clients[c].slots, 0, sizeof clients[c].slots);
        leave();
    }
}
