/* test_cancel.c - cancelling, and ending the client, after every single event between the start of a call and its callback (A9).
 */
#include "steps.h"

enum { MOST_STEPS = 400 };

/* Under which circumstances. */
struct way {
    int nodes;
    bool warm;       /* connections stand */
    bool contended;  /* another holds the lock on a majority for a while */
    bool end_client; /* rl_async_free in place of rl_op_cancel */
};

static void way_start(const struct way *way, struct loop *loop)
{
    loop_start(loop, way->nodes == 1 ? ts_server_url(P1) : p.urls, SOON);
    if (way->warm && way->nodes == 3)
        warm_async(loop);
    else if (way->warm)
        ts_equal(release(loop, hold_lock(loop, "warm-up", LONG)), RL_OK);
    for (int i = 0; way->contended && i < 2; i++)
        ts_set_px(p.at[i], "rl:job", foreign, LONG);
}

/* Cancels (or frees), unless the call has ended. Returns whether there was something to cancel. */
static bool interrupt(const struct way *way, struct loop *loop, struct call *call, int after)
{
    bool runs = steps(loop, after, call);
    if (runs && way->end_client) {
        rl_async_free(loop->async);
        loop->async = NULL;
        ts_equal(call->times, 1);
    } else if (runs) {
        cancel(call->op);
        ts_equal(call->times, 0);
        AWAIT(loop, call->times);
    }
    if (loop->async) /* a while longer, for callbacks that come twice */
        run_for(loop, 5);
    ts_equal(call->times, 1);
    return runs;
}

static void empty_again(const struct way *way, struct loop *loop)
{
    for (int i = 0; way->contended && i < 2; i++)
        ts_check(ts_holds(p.at[i], "rl:job", foreign) && ts_del(p.at[i], "rl:job"), "the other's key was touched");
    if (loop->async)
        await_empty(loop);
    else
        check_empty();
}

/* What had been decided may be told at the end of the client (except that a lock is not handed out any more). */
static void check_status(const struct way *way, const struct call *call, bool runs, int after)
{
    bool ok = call->status == RL_OK && (!runs || way->end_client);
    ts_check(ok || (runs && call->status == RL_CANCELED), "after %d: %s", after, rl_strstatus(call->status));
}

static bool acquire_interrupted(const struct way *way, int after)
{
    struct loop loop;
    struct call call = {0};
    way_start(way, &loop);
    start_acquire(loop.async, "job", LONG, way->contended ? RL_FOREVER : 0, &call);
    bool runs = interrupt(way, &loop, &call, after);
    ts_check(call.status == (runs ? RL_CANCELED : RL_OK), "after %d: %s", after, rl_strstatus(call.status));
    if (call.lock)
        ts_equal(release(&loop, call.lock), RL_OK);
    empty_again(way, &loop);
    stepped_end(&loop);
    return runs;
}

static bool extend_interrupted(const struct way *way, int after)
{
    struct loop loop;
    struct call call = {0};
    way_start(way, &loop);
    rl_lock *lock = hold_lock(&loop, "job", LONG);
    start_extend(lock, LONG, &call);
    bool runs = interrupt(way, &loop, &call, after);
    check_status(way, &call, runs, after);
    ts_check(rl_lock_remaining_ms(lock) > LONG / 2, "the lock is lost");
    if (loop.async) {
        ts_equal(release(&loop, lock), RL_OK);
        empty_again(way, &loop);
    } else { /* it stays until its lease ends */
        ts_check(ts_servers_holding(&p, "rl:job") > way->nodes / 2, "the lock is gone");
        ts_equal(try_release(lock, NULL), RL_E_CLOSED);
        for (int i = 0; i < 3; i++)
            ts_command(p.at[i], "FLUSHALL");
    }
    stepped_end(&loop);
    return runs;
}

/* Only the end of the client interrupts a release; the key is deleted all the same. */
static bool release_interrupted(const struct way *way, int after)
{
    struct loop loop;
    struct call call = {0};
    way_start(way, &loop);
    rl_lock *lock = hold_lock(&loop, "job", LONG);
    start_release(lock, &call);
    bool runs = interrupt(way, &loop, &call, after);
    check_status(way, &call, runs, after);
    empty_again(way, &loop);
    stepped_end(&loop);
    return runs;
}

typedef bool interrupted_fn(const struct way *way, int after);

static int sweep(interrupted_fn *interrupted, const struct way *way, int most)
{
    int after = 0;
    while (after < most && interrupted(way, after))
        after++;
    return after;
}

static void sweep_all(interrupted_fn *interrupted, bool end_client, const char *label)
{
    ts_time_limit(60);
    for (int nodes = 1; nodes <= 3; nodes += 2) {
        for (int warm = 0; warm < 2; warm++) {
            const struct way way = {nodes, warm, false, end_client};
            int points = sweep(interrupted, &way, MOST_STEPS);
            ts_between(points, 2, MOST_STEPS - 1);
            printf("%s, N = %d, %s: %d points\n", label, nodes, warm ? "warm" : "cold", points);
        }
    }
}

static void cancel_an_acquisition(void **state)
{
    (void)state;
    sweep_all(acquire_interrupted, false, "cancel acquire");
}

static void cancel_an_extension(void **state)
{
    (void)state;
    sweep_all(extend_interrupted, false, "cancel extend");
}

static void free_during_an_acquisition(void **state)
{
    (void)state;
    sweep_all(acquire_interrupted, true, "free in acquire");
}

static void free_during_an_extension(void **state)
{
    (void)state;
    sweep_all(extend_interrupted, true, "free in extend");
}

static void free_during_a_release(void **state)
{
    (void)state;
    sweep_all(release_interrupted, true, "free in release");
}

/* Attempts, clean-ups and pauses take turns: it would never end. */
static void interrupt_a_waiting_acquisition(void **state)
{
    (void)state;
    ts_time_limit(60);
    for (int end_client = 0; end_client < 2; end_client++) {
        const struct way way = {3, true, true, end_client};
        ts_equal(sweep(acquire_interrupted, &way, 40), 40);
    }
}

/* Decided, but its callback has not come yet: what had been won is given back. */
static void cancel_what_is_decided(void **state)
{
    (void)state;
    const struct way way = {1, true, false, false};
    int points = sweep(acquire_interrupted, &way, MOST_STEPS);
    ts_check(points > 0, "no point");
    ts_check(acquire_interrupted(&way, points - 1), "the last point is gone"); /* its answer has been read */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        REAL_TEST(cancel_an_acquisition),    REAL_TEST(cancel_an_extension),   REAL_TEST(free_during_an_acquisition),
        REAL_TEST(free_during_an_extension), REAL_TEST(free_during_a_release), REAL_TEST(interrupt_a_waiting_acquisition),
        REAL_TEST(cancel_what_is_decided),
    };
    return REAL_RUN("event-cancel", tests);
}
