/* test_drops.c - the connection is reset after every n-th reply, on both fronts, with one node and with three.
 */
#include "session.h"

enum { MOST_REPLIES = 200 };

struct drop {
    bool event;
    bool warm; /* the connection has been used before */
    int nodes;
};

static void describe(const struct drop *drop, int after, const char *call, int rc)
{
    ts_check(rc == RL_OK, "%s, N = %d, %s, reset after %d replies: %s: %s", drop->event ? "event" : "blocking", drop->nodes,
             drop->warm ? "warm" : "cold", after, call, rl_strstatus(rc));
}

/* Does the connection end before this is over? With three nodes it is one of them, whose votes are not needed; with one the attempt is
 * repeated, extend and release are sent again. */
static void use(const struct drop *drop, struct session *session, int after)
{
    rl_lock *lock;
    describe(drop, after, "acquire", session_acquire(session, "job", LONG, drop->nodes == 1 && !drop->warm ? SOON : 0, &lock));
    for (int i = 0; i < 2; i++)
        describe(drop, after, "extend", session_extend(session, lock, LONG));
    ts_check(rl_lock_remaining_ms(lock) > LONG / 2, "%lld ms remain", (long long)rl_lock_remaining_ms(lock));
    describe(drop, after, "release", session_release(session, lock));
    describe(drop, after, "the next acquire", session_acquire(session, "next", LONG, 0, &lock));
    describe(drop, after, "the next release", session_release(session, lock));
}

/* Returns whether the connection was reset. */
static bool drop_after(const struct drop *drop, int after)
{
    rl_options options = options_with(SOON, 300);
    struct session session;
    char urls[256];
    rl_lock *lock;
    ts_proxy *proxy = ts_proxy_to(P1);
    snprintf(urls, sizeof urls, "%s,%s,%s", ts_proxy_url(proxy), ts_server_url(P2), ts_server_url(P3));
    session_begin(&session, drop->event);
    ts_equal(session_new(&session, drop->nodes == 1 ? ts_proxy_url(proxy) : urls, &options), RL_OK);
    while (drop->warm && !ts_proxy_wait_requests(proxy, "SET", 2, 1)) { /* until P1 takes part */
        describe(drop, after, "warm-up", session_acquire(&session, "warm-up", LONG, 0, &lock));
        describe(drop, after, "warm-up", session_release(&session, lock));
    }
    ts_proxy_reset_after(proxy, after);
    use(drop, &session, after);
    bool reset = ts_proxy_seen(proxy).pending_faults == 0;
    ts_proxy_clear(proxy);
    if (drop->event)
        run_for(&session.loop, 5);
    session_end(&session);
    ts_proxy_stop(proxy);
    check_empty();
    return reset;
}

static void sweep(bool event, int nodes)
{
    ts_time_limit(100);
    for (int warm = 0; warm < 2; warm++) {
        const struct drop drop = {event, warm, nodes};
        int after = 0;
        /* Of three nodes, this one may not be asked or heard in time for each. */
        while (after < MOST_REPLIES && (drop_after(&drop, after) || (nodes == 3 && after < 15)))
            after++;
        printf("%s, N = %d, %s: %d replies\n", event ? "event" : "blocking", nodes, warm ? "warm" : "cold", after);
        ts_between(after, 6, MOST_REPLIES - 1);
    }
}

static void blocking_one_node(void **state)
{
    (void)state;
    sweep(false, 1);
}

static void blocking_three_nodes(void **state)
{
    (void)state;
    sweep(false, 3);
}

static void event_one_node(void **state)
{
    (void)state;
    sweep(true, 1);
}

static void event_three_nodes(void **state)
{
    (void)state;
    sweep(true, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        REAL_TEST(blocking_one_node),
        REAL_TEST(blocking_three_nodes),
        REAL_TEST(event_one_node),
        REAL_TEST(event_three_nodes),
    };
    return REAL_RUN("sweeps-drops", tests);
}
