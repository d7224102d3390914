/* test_cases.c - the cases of the field that have to do with nodes and leases, on the libevent front.
 */
#include "event.h"

#include "../real/resolver.h"

static const char key[] = "rl:job";

static int64_t brief(void)
{
    return 200 * (int64_t)ts_slowness();
}

/* ---- Acquire ----------------------------------------------------------------------------------------------------------------- */

/* A3, R3 */
static void with_a_stopped_node(bool warm)
{
    struct loop loop;
    loop_start(&loop, p.urls, SOON);
    if (warm)
        warm_async(&loop);
    ts_server_pause(P3);
    int64_t start = ts_mono_ms();
    rl_lock *lock = hold_lock(&loop, "job", LONG);
    ts_equal(extend(&loop, lock, LONG), RL_OK); /* E3 */
    ts_check(ts_holds(P1, key, rl_lock_token(lock)) && ts_holds(P2, key, rl_lock_token(lock)), "the others lost it");
    ts_equal(release(&loop, lock), RL_OK);
    ts_between(ts_mono_ms() - start, 0, SOON - 1);
    ts_server_resume(P3);
    if (warm)
        AWAIT(&loop, ts_calls(P3, "set") == 1 && ts_calls(P3, "evalsha") >= 2);
    run_for(&loop, 50);
    await_empty(&loop);
    loop_end(&loop);
    check_empty();
}

static void a_stopped_node_is_not_waited_for(void **state)
{
    (void)state;
    with_a_stopped_node(true);
    with_a_stopped_node(false);
}

/* A5, S3.3: the SET arrives long after the library gave it up, the release behind it. */
static void a_delayed_set_leaves_no_ghost(void **state)
{
    (void)state;
    for (int free_first = 0; free_first < 2; free_first++) {
        struct loop loop;
        ts_proxy *proxy = ts_proxy_to(P2);
        loop_start(&loop, ts_proxy_url(proxy), brief());
        ts_equal(release(&loop, hold_lock(&loop, "warm-up", LONG)), RL_OK);
        ts_command(P2, "CONFIG RESETSTAT");
        ts_proxy_delay(proxy, TS_UP, 3 * brief());
        ts_equal(acquire(&loop, "job", LONG, 0).status, RL_E_NO_QUORUM);
        ts_equal(ts_calls(P2, "set"), 0);
        if (free_first) {
            rl_async_free(loop.async);
            loop.async = NULL;
        }
        AWAIT(&loop, ts_calls(P2, "set") == 1 && ts_calls(P2, "evalsha") == 1);
        ts_check(!ts_exists(P2, key), "a ghost");
        loop_end(&loop);
        ts_proxy_stop(proxy);
    }
}

/* A5: here the connection itself is delayed. */
static void a_delayed_connection_leaves_no_ghost(void **state)
{
    (void)state;
    struct net net;
    struct loop loop;
    net_start(&net);
    ts_proxy_delay_next(net.at[1], TS_UP, 600);
    loop_start(&loop, net.urls, SOON);
    ts_equal(release(&loop, hold_lock(&loop, "job", LONG)), RL_OK);
    AWAIT(&loop, ts_calls(P2, "script|load") > 0);
    await_empty(&loop);
    loop_end(&loop);
    net_stop(&net);
    check_empty();
}

/* A6, S3.5: the late OK is not taken for an answer to what was asked next. */
static void a_late_reply_is_nobody_elses(void **state)
{
    (void)state;
    struct loop loop;
    struct call call = {0};
    ts_proxy *proxy = ts_proxy_to(P1);
    loop_start(&loop, ts_proxy_url(proxy), brief());
    ts_equal(release(&loop, hold_lock(&loop, "warm-up", LONG)), RL_OK);
    hold(P1, "rl:held", 0);
    ts_proxy_fault(proxy, "SET", 0, TS_DELAY_REPLY, 3 * brief());
    ts_equal(acquire(&loop, "job", LONG, 0).status, RL_E_NO_QUORUM);
    struct call late = acquire(&loop, "held", LONG, 0);
    ts_equal(late.status, RL_E_NO_QUORUM);
    ts_equal(late.outcomes[0], RL_NODE_LATE);
    start_acquire(loop.async, "held", LONG, 10 * brief(), &call);
    AWAIT(&loop, call.times);
    ts_equal(call.status, RL_BUSY);
    ts_check(ts_holds(P1, "rl:held", foreign), "the other's key was touched");
    AWAIT(&loop, !ts_exists(P1, key));
    loop_end(&loop);
    ts_proxy_stop(proxy);
}

/* A10 */
static void lose_a_reply(ts_fault fault, int64_t wait_ms)
{
    struct loop loop;
    ts_proxy *proxy = ts_proxy_to(P1);
    loop_start(&loop, ts_proxy_url(proxy), brief());
    ts_equal(release(&loop, hold_lock(&loop, "warm-up", LONG)), RL_OK);
    ts_proxy_fault(proxy, "SET", 0, fault, 0);
    int64_t start = ts_mono_ms();
    struct call call = acquire(&loop, "job", LONG, wait_ms);
    ts_check(call.status == RL_OK, "%s", rl_strstatus(call.status));
    ts_between(ts_mono_ms() - start, 0, LONG / 2);
    ts_check(ts_holds(P1, key, rl_lock_token(call.lock)), "another token");
    ts_equal(release(&loop, call.lock), RL_OK);
    ts_equal(ts_dbsize(P1), 0);
    loop_end(&loop);
    ts_proxy_stop(proxy);
}

static void a_lost_reply_blocks_nobody(void **state)
{
    (void)state;
    lose_a_reply(TS_RESET_UNANSWERED, RL_FOREVER);
    lose_a_reply(TS_RESET_UNANSWERED, 0);
    lose_a_reply(TS_RESET_BEFORE, RL_FOREVER);
    lose_a_reply(TS_RESET_BEFORE, 0);
    lose_a_reply(TS_HOLD_AND_CUT, RL_FOREVER);
}

/* A12, S2.4 */
static void errors_are_votes_against(void **state)
{
    (void)state;
    static const char *const words[] = {
        "READONLY You can't write against a read only replica.",
        "OOM command not allowed when used memory > 'maxmemory'.",
        "MISCONF Redis is configured to save RDB snapshots",
        "LOADING Redis is loading the dataset in memory",
        "BUSY Redis is busy running a script.",
        "NOAUTH Authentication required.",
        "ERR max number of clients reached",
    };
    struct net net;
    struct loop loop;
    net_start(&net);
    loop_start(&loop, net.urls, SOON);
    warm_async(&loop);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        char reply[128];
        snprintf(reply, sizeof reply, "-%s\r\n", words[i]);
        hold(P1, key, 0); /* so that P2's answer decides */
        ts_proxy_answer(net.at[1], "SET", 1, reply);
        struct call call = acquire(&loop, "job", LONG, 0);
        ts_check(call.status == RL_BUSY, "%s: %s", words[i], rl_strstatus(call.status)); /* one failed, one is held */
        ts_del(P1, key);
        ts_proxy_answer(net.at[1], "SET", 1, reply);
        call = acquire(&loop, "job", LONG, 0);
        ts_check(call.status == RL_OK, "%s: %s", words[i], rl_strstatus(call.status));
        if (call.outcomes[1] != RL_NODE_PENDING)
            ts_check(strncmp(call.text, words[i], 20) == 0, "%s became %s", words[i], call.text);
        ts_equal(release(&loop, call.lock), RL_OK);
        await_empty(&loop);
    }
    loop_end(&loop);
    net_stop(&net);
}

/* A14, S2.5 */
static void scripts_are_flushed_between_calls(void **state)
{
    (void)state;
    struct loop loop;
    loop_start(&loop, ts_server_url(P1), SOON);
    rl_lock *lock = hold_lock(&loop, "job", LONG);
    ts_command(P1, "SCRIPT FLUSH");
    ts_equal(extend(&loop, lock, LONG), RL_OK);
    ts_command(P1, "SCRIPT FLUSH");
    ts_equal(release(&loop, lock), RL_OK);
    ts_equal(ts_calls(P1, "eval"), 2);
    ts_equal(ts_calls(P1, "evalsha"), 2);
    ts_equal(ts_dbsize(P1), 0);
    loop_end(&loop);
}

/* A14, N = 1 and wait 0 included; the loop may or may not have seen the connection end. */
static void servers_restart_between_calls(void **state)
{
    (void)state;
    struct loop one, three;
    ts_time_limit(60);
    loop_start(&one, ts_server_url(P1), SOON);
    loop_start(&three, p.urls, SOON);
    for (int round = 0; round < 4; round++) {
        ts_equal(release(&one, hold_lock(&one, "one", LONG)), RL_OK);
        ts_equal(release(&three, hold_lock(&three, "three", LONG)), RL_OK);
        for (int i = 0; i < 3; i++)
            ts_server_kill(p.at[i]);
        for (int i = 0; i < 3; i++)
            ts_server_restart(p.at[i]);
        if (round % 2) {
            run_for(&one, 20);
            run_for(&three, 20);
        }
    }
    ts_equal(release(&one, hold_lock(&one, "one", LONG)), RL_OK);
    ts_equal(release(&three, hold_lock(&three, "three", LONG)), RL_OK);
    loop_end(&one);
    loop_end(&three);
}

/* A14: with a server that does not forget, extend and release succeed as well. */
static void a_lasting_server_restarts_between_calls(void **state)
{
    (void)state;
    static const char *const args[] = {"--appendonly", "yes", "--appendfsync", "always", NULL};
    ts_server *server = ts_server_start(args);
    struct loop loop;
    loop_start(&loop, ts_server_url(server), SOON);
    rl_lock *lock = hold_lock(&loop, "job", LONG);
    for (int seen = 0; seen < 2; seen++) {
        ts_server_kill(server);
        ts_server_restart(server);
        run_for(&loop, seen ? 20 : 0);
        ts_equal(extend(&loop, lock, LONG), RL_OK);
    }
    ts_server_kill(server);
    ts_server_restart(server);
    ts_equal(release(&loop, lock), RL_OK);
    ts_equal(ts_dbsize(server), 0);
    loop_end(&loop);
}

static bool look_up_has_ended(void *arg)
{
    (void)arg;
    return stall.answered == 1;
}

/* A2: a name that takes seconds holds up neither the loop nor the other nodes. */
static void a_slow_resolver_stalls_nobody(void **state)
{
    (void)state;
    char urls[256];
    struct loop loop;
    stall_begin();
    snprintf(urls, sizeof urls, "%s,%s,redis://a.stall.test:%d", ts_server_url(P1), ts_server_url(P2), ts_server_port(P3));
    loop_start(&loop, urls, SOON);
    int64_t longest = 0, start = ts_mono_ms();
    struct call call = {0};
    start_acquire(loop.async, "job", LONG, 0, &call);
    for (int64_t last = start; !call.times; last = ts_mono_ms()) {
        turn(&loop);
        longest = longest > ts_mono_ms() - last ? longest : ts_mono_ms() - last;
    }
    ts_equal(call.status, RL_OK);
    ts_between(ts_mono_ms() - start, 0, SOON / 2);
    ts_between(longest, 0, SOON / 4); /* it is answered after 5 s */
    AWAIT(&loop, stall.asked == 1);
    ts_equal(stall.answered, 0);
    ts_equal(release(&loop, call.lock), RL_OK);
    stall_end();
    AWAIT(&loop, stall.answered == 1);
    ts_server_kill(P2); /* now P3 is needed */
    AWAIT(&loop, (call = acquire(&loop, "job", LONG, 0)).status == RL_OK);
    ts_equal(release(&loop, call.lock), RL_OK);
    AWAIT(&loop, keys_on_servers() == 0);
    loop_end(&loop);
    /* A client that ends while a look-up runs does not wait for it. */
    stall_begin();
    loop_start(&loop, urls, SOON);
    start_acquire(loop.async, "job", LONG, 0, &(struct call){0});
    AWAIT(&loop, stall.asked == 1);
    start = ts_mono_ms();
    loop_end(&loop);
    ts_between(ts_mono_ms() - start, 0, SOON / 2);
    stall_end();
    ts_check(ts_eventually(SOON, servers_empty, NULL), "keys are left");
    ts_check(ts_eventually(SOON, look_up_has_ended, NULL), "the look-up did not end"); /* the loop is gone */
}

/* ---- Extend ------------------------------------------------------------------------------------------------------------------ */

/* E1 */
static void a_deleted_key_is_not_made_again(void **state)
{
    (void)state;
    struct loop loop;
    struct call call = {0};
    loop_start(&loop, p.urls, SOON);
    warm_async(&loop);
    rl_lock *lock = hold_lock(&loop, "job", LONG);
    AWAIT(&loop, ts_servers_holding(&p, key) == 3);
    run_for(&loop, 10);
    for (int i = 0; i < 3; i++)
        ts_del(p.at[i], key);
    ts_equal(extend(&loop, lock, LONG), RL_LOST);
    ts_check(rl_lock_remaining_ms(lock) <= 0, "time is left");
    ts_equal(try_extend(lock, LONG, &call), RL_LOST); /* no I/O, no callback */
    ts_equal(release(&loop, lock), RL_LOST);
    ts_equal(call.times, 0);
    run_for(&loop, 20);
    ts_equal(keys_on_servers(), 0);
    loop_end(&loop);
}

/* E5, E11 */
static void an_extension_is_in_milliseconds(void **state)
{
    (void)state;
    struct loop loop;
    ts_proxy *proxy = ts_proxy_to(P1);
    loop_start(&loop, ts_proxy_url(proxy), brief());
    rl_lock *lock = hold_lock(&loop, "short", 700 * ts_slowness());
    ts_equal(extend(&loop, lock, 700 * ts_slowness()), RL_OK);
    ts_between(ts_pttl(P1, "rl:short"), 100 * ts_slowness(), 700 * ts_slowness());
    rl_lock_free(lock);
    lock = hold_lock(&loop, "job", LONG);
    int64_t claimed = ts_now_ms() + rl_lock_remaining_ms(lock);
    ts_proxy_fault(proxy, "EVALSHA", 0, TS_SWALLOW_REPLY, 0);
    ts_equal(extend(&loop, lock, 1000), RL_E_NO_QUORUM);
    ts_between(ts_now_ms() + rl_lock_remaining_ms(lock), claimed - 5, claimed + 5);
    ts_check(ts_pttl(P1, key) > LONG / 2, "shortened to %lld", (long long)ts_pttl(P1, key));
    ts_proxy_reset(proxy);
    ts_equal(release(&loop, lock), RL_OK);
    loop_end(&loop);
    ts_proxy_stop(proxy);
}

/* E7 */
static void restarted_one_after_the_other(void **state)
{
    (void)state;
    struct loop loop;
    loop_start(&loop, p.urls, SOON);
    warm_async(&loop);
    rl_lock *lock = hold_lock(&loop, "job", LONG);
    AWAIT(&loop, ts_servers_holding(&p, key) == 3);
    for (int round = 0; round < 6; round++) {
        ts_server_kill(p.at[round % 3]);
        ts_server_restart(p.at[round % 3]);
        /* Where the connection is not there yet, a later extension tops up. */
        AWAIT(&loop, extend(&loop, lock, LONG) == RL_OK && ts_servers_holding(&p, key) == 3);
        run_for(&loop, 5);
    }
    ts_check(ts_holds(P1, key, rl_lock_token(lock)), "another token");
    ts_server_kill(P1);
    ts_server_kill(P2);
    ts_server_restart(P1);
    ts_server_restart(P2);
    int rc = RL_E_NO_QUORUM;
    AWAIT(&loop, (rc = extend(&loop, lock, LONG)) != RL_E_NO_QUORUM);
    ts_equal(rc, RL_LOST);
    ts_equal(release(&loop, lock), RL_LOST);
    await_empty(&loop);
    loop_end(&loop);
}

/* ---- Release ----------------------------------------------------------------------------------------------------------------- */

/* R1, S6.2 */
static void released_too_late(void **state)
{
    (void)state;
    struct loop loop;
    loop_start(&loop, p.urls, SOON);
    warm_async(&loop);
    rl_lock *lock = hold_lock(&loop, "job", 100 * ts_slowness());
    run_for(&loop, 200 * ts_slowness());
    ts_equal(rl_lock_remaining_ms(lock) <= 0, 1);
    ts_equal(try_extend(lock, LONG, &(struct call){0}), RL_LOST);
    for (int i = 0; i < 3; i++)
        ts_command(p.at[i], "CONFIG RESETSTAT");
    ts_equal(release(&loop, lock), RL_LOST);
    run_for(&loop, 20);
    for (int i = 0; i < 3; i++)
        ts_between(releases(p.at[i]), 0, 1);
    loop_end(&loop);
}

/* R2, E2 */
static void released_after_another_took_over(void **state)
{
    (void)state;
    struct loop loop;
    struct call call = {0};
    loop_start(&loop, p.urls, SOON);
    rl_lock *lock = hold_lock(&loop, "job", LONG), *gone = hold_lock(&loop, "gone", 100 * ts_slowness());
    run_for(&loop, 20);
    for (int i = 0; i < 3; i++)
        ts_set_px(p.at[i], key, foreign, 0);
    ts_equal(release(&loop, lock), RL_LOST);
    run_for(&loop, 200 * ts_slowness());
    for (int i = 0; i < 3; i++)
        ts_set_px(p.at[i], "rl:gone", foreign, 0);
    ts_equal(try_extend(gone, LONG, &call), RL_LOST);
    ts_equal(release(&loop, gone), RL_LOST);
    run_for(&loop, 20);
    ts_equal(call.times, 0);
    for (int i = 0; i < 3; i++)
        ts_check(ts_holds(p.at[i], key, foreign) && ts_holds(p.at[i], "rl:gone", foreign), "the other's key was touched");
    loop_end(&loop);
}

/* R3: with nodes stopped at the release, they are cleaned when they wake. */
static void stopped_at_the_release(void **state)
{
    (void)state;
    struct loop loop;
    loop_start(&loop, p.urls, SOON);
    warm_async(&loop);
    rl_lock *lock = hold_lock(&loop, "job", LONG);
    AWAIT(&loop, ts_servers_holding(&p, key) == 3);
    ts_server_pause(P2);
    int64_t start = ts_mono_ms();
    ts_equal(release(&loop, lock), RL_OK);
    ts_between(ts_mono_ms() - start, 0, SOON - 1);
    ts_server_resume(P2);
    await_empty(&loop);
    loop_end(&loop);
}

/* R6, S3.3: SET and release lie before a stopped server when the client ends. */
static void a_stopped_node_whose_client_is_gone(void **state)
{
    (void)state;
    struct loop loop;
    loop_start(&loop, ts_server_url(P1), brief());
    ts_equal(release(&loop, hold_lock(&loop, "warm-up", LONG)), RL_OK);
    ts_command(P1, "CONFIG RESETSTAT");
    ts_server_pause(P1);
    ts_equal(acquire(&loop, "job", LONG, 0).status, RL_E_NO_QUORUM);
    int64_t start = ts_mono_ms();
    loop_end(&loop);
    ts_between(ts_mono_ms() - start, 0, slack());
    ts_server_resume(P1);
    await_calls(P1, "evalsha", 1);
    ts_equal(ts_calls(P1, "set"), 1);
    ts_equal(ts_dbsize(P1), 0);
}

/* R6, S3.4: something on the way holds the SET when the connection breaks; that connection is killed. */
static void a_held_set_of_a_broken_connection(void **state)
{
    (void)state;
    struct loop loop;
    ts_proxy *proxy = ts_proxy_to(P1);
    loop_start(&loop, ts_proxy_url(proxy), SOON);
    ts_equal(release(&loop, hold_lock(&loop, "warm-up", LONG)), RL_OK);
    ts_command(P1, "CONFIG RESETSTAT");
    ts_proxy_fault(proxy, "SET", 0, TS_HOLD_AND_CUT, 0);
    rl_lock *lock = hold_lock(&loop, "job", LONG); /* the repeated attempt */
    ts_equal(ts_proxy_requests(proxy, "CLIENT KILL"), 1);
    ts_proxy_unhold(proxy);
    ts_check(ts_holds(P1, key, rl_lock_token(lock)), "another token");
    ts_equal(release(&loop, lock), RL_OK);
    loop_end(&loop);
    ts_proxy_stop(proxy);
    ts_equal(ts_calls(P1, "set"), 1);
    ts_equal(ts_dbsize(P1), 0);
}

static void a_held_set_on_one_of_three(void **state)
{
    (void)state;
    struct net net;
    struct loop loop;
    net_start(&net);
    loop_start(&loop, net.urls, SOON);
    warm_async(&loop);
    ts_proxy_fault(net.at[1], "SET", 0, TS_HOLD_AND_CUT, 0);
    ts_equal(release(&loop, hold_lock(&loop, "job", LONG)), RL_OK);
    AWAIT(&loop, ts_proxy_requests(net.at[1], "CLIENT KILL") == 1); /* the loop goes on: no call is needed */
    run_for(&loop, 20);
    loop_end(&loop);
    ts_proxy_unhold(net.at[1]);
    net_stop(&net);
    ts_equal(ts_calls(P2, "set"), 0);
    check_empty();
}

/* ---- A loop that is held up -------------------------------------------------------------------------------------------------- */

static void block(struct call *call)
{
    (void)call;
    ts_sleep_ms(300);
}

/* S1.2, S1.4, S1.8: callbacks that take their time shorten the leases of others; they never make one look longer than it is. */
static void a_callback_that_blocks(void **state)
{
    (void)state;
    enum { COUNT = 20 };
    struct call calls[COUNT] = {{0}};
    struct loop loop;
    int expired = 0;
    loop_start(&loop, p.urls, SOON);
    warm_async(&loop);
    for (int i = 0; i < COUNT; i++) {
        char name[16];
        snprintf(name, sizeof name, "job-%d", i);
        calls[i].then = i % 4 == 0 ? block : NULL;
        start_acquire(loop.async, name, i % 2 ? 500 : 5000, 0, &calls[i]);
    }
    int64_t started = ts_now_ms();
    for (int i = 0; i < COUNT; i++)
        AWAIT(&loop, calls[i].times);
    for (int i = 0; i < COUNT; i++) {
        int64_t ttl = i % 2 ? 500 : 5000, most = started + ttl - ttl / 100 - 2;
        ts_check(calls[i].status == RL_OK || calls[i].status == RL_E_TOO_SLOW, "%s", rl_strstatus(calls[i].status));
        expired += calls[i].status == RL_E_TOO_SLOW;
        if (calls[i].lock) {
            ts_check(calls[i].at_ms - (calls[i].then ? 300 : 0) + calls[i].remaining_ms <= most + 1, "%d overstates by %lld ms", i,
                     (long long)(calls[i].at_ms + calls[i].remaining_ms - most));
            ts_check(calls[i].remaining_ms >= 1, "%d was handed over with %lld ms", i, (long long)calls[i].remaining_ms);
            start_release(calls[i].lock, NULL);
        }
    }
    ts_check(expired > 0, "none was too slow");
    await_empty(&loop);
    loop_end(&loop);
}

/* An answer that has come already counts, although its deadline has passed while the loop was held up, and the timer is heard first. */
static void answers_count_before_deadlines(void **state)
{
    (void)state;
    int64_t unit = 100 * (int64_t)ts_slowness();
    struct call call = {0};
    struct loop loop;
    ts_proxy *proxy = ts_proxy_to(P1);
    loop_start(&loop, ts_proxy_url(proxy), unit);
    AWAIT(&loop, (call = acquire(&loop, "job", LONG, 0)).status == RL_OK); /* connected */
    ts_equal(release(&loop, call.lock), RL_OK);
    ts_proxy_delay(proxy, TS_DOWN, 2 * unit);
    call = (struct call){0};
    start_acquire(loop.async, "job", LONG, 0, &call);
    for (int64_t end = ts_mono_ms() + SOON; ts_calls(P1, "set") < 2 && ts_mono_ms() < end;)
        event_base_loop(loop.base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
    ts_sleep_ms(4 * unit);
    AWAIT(&loop, call.times);
    ts_check(call.status == RL_OK, "%s", rl_strstatus(call.status));
    ts_proxy_clear(proxy);
    start_release(call.lock, NULL);
    AWAIT(&loop, ts_dbsize(P1) == 0);
    loop_end(&loop);
    ts_proxy_stop(proxy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        REAL_TEST(a_stopped_node_is_not_waited_for),
        REAL_TEST(a_delayed_set_leaves_no_ghost),
        REAL_TEST(a_delayed_connection_leaves_no_ghost),
        REAL_TEST(a_late_reply_is_nobody_elses),
        REAL_TEST(a_lost_reply_blocks_nobody),
        REAL_TEST(errors_are_votes_against),
        REAL_TEST(scripts_are_flushed_between_calls),
        REAL_TEST(servers_restart_between_calls),
        REAL_TEST(a_lasting_server_restarts_between_calls),
        REAL_TEST(a_slow_resolver_stalls_nobody),
        REAL_TEST(a_deleted_key_is_not_made_again),
        REAL_TEST(an_extension_is_in_milliseconds),
        REAL_TEST(restarted_one_after_the_other),
        REAL_TEST(released_too_late),
        REAL_TEST(released_after_another_took_over),
        REAL_TEST(stopped_at_the_release),
        REAL_TEST(a_stopped_node_whose_client_is_gone),
        REAL_TEST(a_held_set_of_a_broken_connection),
        REAL_TEST(a_held_set_on_one_of_three),
        REAL_TEST(a_callback_that_blocks),
        REAL_TEST(answers_count_before_deadlines),
    };
    return REAL_RUN("event-cases", tests);
}
