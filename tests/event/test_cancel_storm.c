/* test_cancel_storm.c - calls start and are cancelled at random, many at a time. Each has one callback, cancelled ones say so, nothing
 * is left on the servers, and memory does not grow.
 *
 * usage: test_cancel_storm [CANCELS]   (10000)
 */
#include "event.h"
#include "memory.h"

enum { SLOTS = 200, NAMES = 120 };

struct slot {
    struct storm *storm;
    bool running, canceled, acquiring;
    rl_op *op; /* of what can be cancelled */
    rl_lock *lock;
};

struct storm {
    struct loop loop;
    struct slot slots[SLOTS];
    uint64_t random;
    int64_t started, ended, cancels, granted;
    int nodes;
    bool last; /* nothing new is to be acquired */
};

static uint32_t draw(struct storm *storm, uint32_t below)
{
    storm->random = storm->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(storm->random >> 33) % below;
}

static void cancel_one(struct storm *storm, struct slot *slot)
{
    if (!slot->op)
        return;
    storm->cancels += !slot->canceled;
    slot->canceled = true;
    cancel(slot->op);
}

/* Now and then a callback cancels others. */
static void ended(struct slot *slot, int status)
{
    struct storm *storm = slot->storm;
    ts_check(!inside && slot->running, "a callback too many, or from inside a call");
    ts_check(!slot->canceled || status == RL_CANCELED, "cancelled: %s", rl_strstatus(status));
    ts_check(slot->canceled || status == RL_OK || (slot->acquiring && status == RL_BUSY), "%s", rl_strstatus(status));
    storm->ended++;
    slot->running = slot->canceled = false;
    slot->op = NULL;
    for (int i = draw(storm, 16) ? 0 : 2; i > 0; i--)
        cancel_one(storm, &storm->slots[draw(storm, SLOTS)]);
}

static void on_slot_acquired(int status, rl_lock *lock, const rl_report *report, void *user_data)
{
    struct slot *slot = user_data;
    (void)report;
    ts_check((lock != NULL) == (status == RL_OK), "a handle with %s", rl_strstatus(status));
    slot->lock = lock;
    slot->storm->granted += lock != NULL;
    ended(slot, status);
}

static void on_slot_done(int status, const rl_report *report, void *user_data)
{
    (void)report;
    ended(user_data, status);
}

static int start_one(struct storm *storm, struct slot *slot)
{
    char name[16];
    rl_request request;
    slot->acquiring = !slot->lock;
    if (slot->lock && !storm->last && draw(storm, 2))
        return rl_async_extend(slot->lock, LONG, on_slot_done, slot, &slot->op);
    if (slot->lock) {
        rl_lock *lock = slot->lock;
        slot->lock = NULL;
        return rl_async_release(lock, on_slot_done, slot);
    }
    snprintf(name, sizeof name, "storm-%d", (int)draw(storm, NAMES));
    rl_request_init(&request);
    request.name = name;
    request.name_len = strlen(name);
    request.ttl_ms = LONG;
    request.wait_ms = draw(storm, 2) ? 0 : draw(storm, 100);
    return rl_async_acquire(storm->loop.async, &request, on_slot_acquired, slot, &slot->op);
}

static void start(struct storm *storm, struct slot *slot)
{
    if (storm->last && !slot->lock)
        return;
    slot->running = true;
    storm->started++;
    inside = true;
    int rc = start_one(storm, slot);
    inside = false;
    ts_check(rc == RL_OK, "%s", rl_strstatus(rc));
    if (!storm->last && draw(storm, 8) == 0)
        cancel_one(storm, slot);
}

static void start_what_is_idle(struct storm *storm)
{
    for (int i = 0; i < SLOTS; i++)
        if (!storm->slots[i].running)
            start(storm, &storm->slots[i]);
}

static bool all_at_rest(struct storm *storm)
{
    start_what_is_idle(storm); /* the last locks are released */
    for (int i = 0; i < SLOTS; i++)
        if (storm->slots[i].running || storm->slots[i].lock)
            return false;
    return true;
}

/* Cancelling is quicker than any server: waits until the nodes have answered what was sent so far. */
static void keep_pace(struct storm *storm)
{
    rl_lock *lock = hold_lock(&storm->loop, "pace", LONG);
    AWAIT(&storm->loop, ts_servers_holding(&p, "rl:pace") == storm->nodes);
    ts_equal(release(&storm->loop, lock), RL_OK);
}

static void blow(struct storm *storm, int64_t cancels)
{
    int64_t paced = storm->cancels;
    while (storm->cancels < cancels) {
        start_what_is_idle(storm);
        turn(&storm->loop);
        cancel_one(storm, &storm->slots[draw(storm, SLOTS)]);
        if (storm->cancels - paced < SLOTS)
            continue;
        keep_pace(storm);
        paced = storm->cancels;
    }
}

static int64_t wanted = 10000;

static void storm_on(const char *urls, int nodes)
{
    static struct storm storm;
    ts_time_limit(30 + (int)(wanted / 500));
    storm = (struct storm){.random = (uint64_t)ts_now_ms(), .nodes = nodes};
    printf("seed %llu\n", (unsigned long long)storm.random);
    loop_start(&storm.loop, urls, 4 * SOON);
    for (int i = 0; i < SLOTS; i++)
        storm.slots[i].storm = &storm;
    blow(&storm, wanted / 6);
    int64_t before = rss_kb();
    blow(&storm, wanted / 2);
    storm.last = true;
    AWAIT(&storm.loop, all_at_rest(&storm));
    int64_t after = rss_kb();
    await_empty(&storm.loop);
    ts_equal(storm.ended, storm.started);
    run_for(&storm.loop, 20);
    ts_equal(storm.ended, storm.started);
    loop_end(&storm.loop);
    check_empty();
    printf("N = %d: %lld calls, %lld cancelled, %lld granted; RSS %lld KB after a third, %lld KB at the end\n", nodes,
           (long long)storm.started, (long long)storm.cancels, (long long)storm.granted, (long long)before, (long long)after);
    ts_check(!rss_counts() || after - before < 1024, "memory grew from %lld to %lld KB", (long long)before, (long long)after);
}

static void on_one_node(void **state)
{
    (void)state;
    storm_on(ts_server_url(P1), 1);
}

static void on_three_nodes(void **state)
{
    (void)state;
    storm_on(p.urls, 3);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        REAL_TEST(on_one_node),
        REAL_TEST(on_three_nodes),
    };
    if (argc > 1)
        wanted = strtoll(argv[1], NULL, 10);
    return REAL_RUN("event-cancel-storm", tests);
}
