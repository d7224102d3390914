/* test_acquire.c - taking a lock on real servers: what stands in its way, and that nothing stays behind when it fails.
 */
#include "real.h"
#include "resolver.h"

#include "hostile.h"

/* ---- A1, A2: nodes that cannot be reached ------------------------------------------------------------------------------------ */

/* A1 */
static void two_nodes_refuse(void **state)
{
    (void)state;
    rl_client *client = patient(p.urls);
    rl_report *report = new_report();
    warm_up(client); /* so that P1 is asked before the others turn out to be gone */
    ts_server_kill(P2);
    ts_server_kill(P3);

    int64_t start = ts_mono_ms();
    ts_equal(refused(client, "a1", LONG, 0, report), RL_E_NO_QUORUM);
    ts_check(ts_mono_ms() - start < SOON, "refused connections were waited for");
    for (size_t i = 1; i < 3; i++) {
        check_said(report, i, RL_NODE_UNREACHABLE, NULL);
        ts_equal(said(report, i).sys_errno, ECONNREFUSED);
        ts_equal(said(report, i).rtt_us, -1);
    }
    await_calls(P1, "set", 1);
    await_calls(P1, "evalsha", ts_calls(P1, "set"));
    ts_check(!ts_exists(P1, "rl:a1"), "P1 still holds the key");
    rl_client_free(client);
    rl_report_free(report);
}

/* A1, S4.1: with nodes that do not even refuse, the node timeout ends it. */
static void two_nodes_are_silent(void **state)
{
    (void)state;
    ts_void *hole2 = ts_void_start(), *hole3 = ts_void_start();
    char urls[256];
    snprintf(urls, sizeof urls, "%s,%s,%s", ts_server_url(P1), ts_void_url(hole2), ts_void_url(hole3));
    rl_client *client = hasty(urls, 250);
    rl_report *report = new_report();

    int64_t start = ts_mono_ms();
    ts_equal(refused(client, "a1", LONG, 0, report), RL_E_NO_QUORUM);
    ts_between(ts_mono_ms() - start, 245, 250 + slack());
    check_said(report, 0, RL_NODE_YES, NULL);
    for (size_t i = 1; i < 3; i++) {
        check_said(report, i, RL_NODE_UNREACHABLE, NULL);
        ts_equal(said(report, i).sys_errno, ETIMEDOUT);
    }
    await_calls(P1, "evalsha", 1);
    ts_check(!ts_exists(P1, "rl:a1"), "P1 still holds the key");

    start = ts_mono_ms();
    ts_equal(refused(client, "a1", LONG, 400, report), RL_E_NO_QUORUM);
    ts_between(ts_mono_ms() - start, 390, 400 + 250 + slack());
    check_gone("rl:a1");
    rl_client_free(client);
    rl_report_free(report);
    ts_void_stop(hole2);
    ts_void_stop(hole3);
}

/* A2 */
static void a_host_does_not_resolve(void **state)
{
    (void)state;
    char urls[256];
    snprintf(urls, sizeof urls, "%s,%s,redis://p3.none.test:1", ts_server_url(P1), ts_server_url(P2));
    rl_client *client = patient(urls);
    rl_report *report = new_report();
    rl_lock *lock = NULL;

    for (int64_t end = ts_mono_ms() + SOON;;) { /* until the resolver is faster than the servers */
        ts_equal(take(client, "a2", LONG, 0, report, &lock), RL_OK);
        ts_equal(rl_release(lock), RL_OK);
        if (said(report, 2).outcome != RL_NODE_PENDING || ts_mono_ms() > end)
            break;
    }
    check_said(report, 2, RL_NODE_UNREACHABLE, gai_strerror(EAI_NONAME));
    ts_check(strcmp(said(report, 2).node, "redis://p3.none.test:1") == 0, "node is %s", said(report, 2).node);
    check_gone("rl:a2");
    rl_client_free(client);
    rl_report_free(report);
}

static bool threads_are(void *count)
{
    return ts_thread_count() <= *(int *)count;
}

/* A2: nor does freeing the client wait for the resolver. */
static void a_slow_resolver_stalls_nobody(void **state)
{
    (void)state;
    char urls[256];
    snprintf(urls, sizeof urls, "%s,%s,redis://p3.stall.test:%d", ts_server_url(P1), ts_server_url(P2), ts_server_port(P3));
    int threads = ts_thread_count();
    stall_begin();
    rl_client *client = hasty(urls, 1000);
    rl_report *report = new_report();
    rl_lock *lock = NULL;

    int64_t start = ts_mono_ms();
    ts_equal(take(client, "a2", LONG, 0, report, &lock), RL_OK);
    check_said(report, 2, RL_NODE_PENDING, NULL);
    ts_equal(rl_release_with(lock, 0, report), RL_OK);
    ts_check(ts_mono_ms() - start < 1000, "the resolver was waited for");
    ts_equal(rl_client_check(client, report), RL_OK); /* this one asks all */
    check_said(report, 2, RL_NODE_UNREACHABLE, NULL);
    ts_equal(said(report, 2).sys_errno, ETIMEDOUT);
    for (int i = 0; i < 3; i++) {
        lock = taken(client, "a2", LONG);
        ts_equal(rl_release(lock), RL_OK);
    }
    ts_equal(atomic_load(&stall.asked), 1); /* one look-up in flight */

    rl_client_free(client);
    ts_check(ts_mono_ms() - start < 4500, "the resolver was waited for");
    ts_equal(atomic_load(&stall.answered), 0);
    stall_end();
    ts_check(ts_eventually(SOON, threads_are, &threads), "the look-up's thread does not end");
    rl_report_free(report);
}

/* A2: once it has been looked up, the node takes part. */
static void a_slow_resolver_answers_at_last(void **state)
{
    (void)state;
    char url[64];
    snprintf(url, sizeof url, "redis://p3.stall.test:%d", ts_server_port(P3));
    int threads = ts_thread_count();
    stall_begin();
    rl_client *client = hasty(url, 100);
    rl_report *report = new_report();
    rl_lock *lock = NULL;

    ts_equal(refused(client, "a2", LONG, 0, report), RL_E_NO_QUORUM);
    check_said(report, 0, RL_NODE_UNREACHABLE, NULL);
    stall_end();
    ts_equal(take(client, "a2", LONG, SOON, report, &lock), RL_OK);
    check_said(report, 0, RL_NODE_YES, NULL);
    ts_equal(rl_release(lock), RL_OK);
    rl_client_free(client);
    rl_report_free(report);
    ts_check(ts_eventually(SOON, threads_are, &threads), "the look-up's thread does not end");
}

/* A2: a name has several addresses, and the first of them refuses. */
static void the_second_address_is_tried_at_once(void **state)
{
    (void)state;
    ts_proxy *proxy = ts_proxy_to(P1); /* it listens on 127.0.0.1 only */
    char url[64];
    snprintf(url, sizeof url, "redis://p1.two.test:%d", ts_proxy_port(proxy));
    rl_client *client = patient(url);

    rl_lock *lock = taken(client, "a2", LONG);
    ts_equal(rl_release(lock), RL_OK);
    rl_client_free(client);
}

/* ---- A3: a node that is stopped ---------------------------------------------------------------------------------------------- */

static void take_and_release_with_p3_stopped(bool warm)
{
    rl_client *client = patient(p.urls);
    rl_report *report = new_report();
    rl_lock *lock = NULL;
    if (warm)
        warm_up(client);
    ts_server_pause(P3);

    int64_t start = ts_mono_ms();
    ts_equal(take(client, "a3", LONG, 0, report, &lock), RL_OK);
    check_said(report, 2, RL_NODE_PENDING, NULL);
    ts_equal(said(report, 2).rtt_us, -1);
    ts_equal(rl_release(lock), RL_OK);
    ts_check(ts_mono_ms() - start < SOON, "P3 was waited for");

    ts_server_resume(P3);
    if (warm) { /* both were written, in order */
        await_calls(P3, "evalsha", 1);
        ts_equal(ts_calls(P3, "set"), 1);
    } else { /* neither was, for want of a connection, and the SET never will be */
        while (said(report, 2).outcome != RL_NODE_YES)
            ts_equal(rl_client_check(client, report), RL_OK);
        ts_equal(ts_calls(P3, "set"), 1); /* the check's */
    }
    ts_equal(ts_dbsize(P3), 0);
    rl_client_free(client);
    rl_report_free(report);
}

/* A3 */
static void a_stopped_node_is_not_waited_for(void **state)
{
    (void)state;
    take_and_release_with_p3_stopped(true);
}

/* A3: its connect still succeeds. */
static void a_stopped_node_without_a_connection(void **state)
{
    (void)state;
    take_and_release_with_p3_stopped(false);
}

/* S2.2: a late grant counts, and is deleted by the release like the others. */
static void a_late_grant_is_kept(void **state)
{
    (void)state;
    rl_client *client = patient(p.urls);
    warm_up(client);
    ts_server_pause(P3);
    rl_lock *lock = taken(client, "late", LONG);
    ts_server_resume(P3);
    ts_check(ts_wait_present(P3, "rl:late", SOON), "the late SET did not come");
    ts_check(ts_holds(P3, "rl:late", rl_lock_token(lock)), "P3 holds another token");
    ts_equal(rl_release(lock), RL_OK);
    check_gone("rl:late");
    rl_client_free(client);
}

/* ---- A4 to A7: failed attempts leave nothing --------------------------------------------------------------------------------- */

/* A4 */
static void held_by_another(void **state)
{
    (void)state;
    rl_client *client = patient(p.urls);
    rl_report *report = new_report();
    static const int64_t waits[] = {0, 100};
    warm_up(client);
    hold(P1, "rl:a4", 0);
    hold(P2, "rl:a4", 0);

    for (int i = 0; i < 2; i++) {
        ts_equal(refused(client, "a4", LONG, waits[i], report), RL_BUSY);
        check_said(report, 0, RL_NODE_HELD_BY_OTHER, NULL);
        check_said(report, 1, RL_NODE_HELD_BY_OTHER, NULL);
        await_calls(P3, "set", i + 1);
        await_calls(P3, "evalsha", ts_calls(P3, "set")); /* S3.1: one for every grant */
        ts_equal(ts_dbsize(P3), 0);
    }
    ts_check(ts_holds(P1, "rl:a4", foreign) && ts_holds(P2, "rl:a4", foreign), "the other's key was touched");
    rl_client_free(client);
    rl_report_free(report);
}

/* S2.8: a tie of four nodes settles at once, though one more has not answered; and a split vote is BUSY. */
static void a_split_vote_is_busy(void **state)
{
    (void)state;
    ts_server *p4 = ts_server_start(NULL);
    char urls[sizeof p.urls + 64];
    snprintf(urls, sizeof urls, "%s,%s", p.urls, ts_server_url(p4));
    rl_client *client = patient(urls);
    warm_up(client);
    hold(P1, "rl:split", 0);
    hold(P2, "rl:split", 0);
    ts_server_pause(p4);

    int64_t start = ts_mono_ms();
    ts_equal(refused(client, "split", LONG, 0, NULL), RL_BUSY);
    ts_check(ts_mono_ms() - start < SOON, "the stopped node was waited for");
    ts_server_resume(p4);
    ts_check(ts_wait_absent(P3, "rl:split", SOON), "P3 still holds the key");
    ts_check(ts_wait_absent(p4, "rl:split", SOON), "P4 still holds the key");
    rl_client_free(client);
}

/* S2.8: one node is down, one held by another: a vote is lost to a holder, so it is BUSY; with two down it is not. */
static void failures_and_holders_are_told_apart(void **state)
{
    (void)state;
    struct net net;
    net_start(&net);
    rl_client *client = patient(net.urls);
    hold(P1, "rl:mixed", 0);
    ts_proxy_delay(net.at[0], TS_DOWN, 30); /* the holder's node is heard last */
    ts_proxy_refuse(net.at[2], true);
    ts_equal(refused(client, "mixed", LONG, 0, NULL), RL_BUSY);
    ts_proxy_refuse(net.at[1], true);
    ts_proxy_reset(net.at[1]);
    int rc = RL_BUSY;
    for (int64_t end = ts_mono_ms() + SOON; rc == RL_BUSY && ts_mono_ms() < end;)
        rc = refused(client, "mixed", LONG, 0, NULL);
    ts_equal(rc, RL_E_NO_QUORUM);
    rl_client_free(client);
    net_stop(&net);
}

/* S2.1: the quorum is of all nodes, those that are down too, and an option may raise it. */
static void a_raised_quorum(void **state)
{
    (void)state;
    rl_options options = options_with(SOON, 300);
    options.quorum = 3;
    rl_client *client = client_with(p.urls, &options);
    rl_lock *lock = taken(client, "quorum", LONG);
    ts_equal(ts_servers_holding(&p, "rl:quorum"), 3);
    ts_equal(rl_release(lock), RL_OK);
    ts_server_kill(P3);
    ts_equal(refused(client, "quorum", LONG, 0, NULL), RL_E_NO_QUORUM);
    check_gone("rl:quorum");
    rl_client_free(client);
}

static void give_up_on_a_delayed_set(bool free_the_client)
{
    ts_proxy *proxy = ts_proxy_to(P2);
    rl_client *client = hasty(ts_proxy_url(proxy), 100);
    warm_up(client);
    ts_proxy_delay(proxy, TS_UP, 600);

    ts_equal(refused(client, "a5", LONG, 0, NULL), RL_E_NO_QUORUM);
    if (free_the_client)
        rl_client_free(client);
    await_calls(P2, "set", 1);
    await_calls(P2, "evalsha", 1);
    ts_check(!ts_exists(P2, "rl:a5"), "a ghost on P2");
    if (!free_the_client)
        rl_client_free(client);
    ts_proxy_stop(proxy);
}

/* A5 */
static void a_delayed_set_leaves_no_ghost(void **state)
{
    (void)state;
    give_up_on_a_delayed_set(false);
}

/* A5, S3.3 */
static void a_delayed_set_of_a_client_that_is_gone(void **state)
{
    (void)state;
    give_up_on_a_delayed_set(true);
}

/* A5: here it is the connection itself that is delayed. */
static void a_delayed_connection_leaves_no_ghost(void **state)
{
    (void)state;
    struct net net;
    net_start(&net);
    ts_proxy_delay_next(net.at[1], TS_UP, 600);
    rl_client *client = patient(net.urls);
    rl_lock *lock = taken(client, "a5", LONG);
    ts_equal(rl_release(lock), RL_OK);
    await_calls(P2, "client|setname", 1); /* the connection has come through */
    rl_client_free(client);
    net_stop(&net); /* delivers what it still has */
    ts_equal(ts_dbsize(P2), 0);
}

/* A6 */
static void a_late_reply_is_nobody_elses(void **state)
{
    (void)state;
    ts_proxy *proxy = ts_proxy_to(P1);
    rl_client *client = hasty(ts_proxy_url(proxy), 150);
    rl_report *report = new_report();
    warm_up(client);
    hold(P1, "rl:theirs", 0);
    ts_proxy_fault(proxy, "SET", 0, TS_DELAY_REPLY, 300);

    ts_equal(refused(client, "ours", LONG, 0, report), RL_E_NO_QUORUM);
    check_said(report, 0, RL_NODE_NO_ANSWER, NULL);
    ts_equal(said(report, 0).sys_errno, ETIMEDOUT);
    int rc;
    for (int64_t end = ts_mono_ms() + SOON; (rc = refused(client, "theirs", LONG, 0, report)) != RL_BUSY && ts_mono_ms() < end;) {
        ts_equal(rc, RL_E_NO_QUORUM);
        ts_check(said(report, 0).outcome == RL_NODE_LATE || said(report, 0).outcome == RL_NODE_NO_ANSWER, "outcome is %d",
                 (int)said(report, 0).outcome);
    }
    ts_equal(rc, RL_BUSY);
    ts_check(ts_holds(P1, "rl:theirs", foreign), "the other's key was touched");
    ts_check(!ts_exists(P1, "rl:ours"), "a ghost");
    rl_client_free(client);
    rl_report_free(report);
    ts_proxy_stop(proxy);
}

/* A6, S3.5: replies come about as late as the node timeout, now before and now after it. */
static void replies_are_never_crossed(void **state)
{
    (void)state;
    ts_proxy *proxy = ts_proxy_to(P1);
    rl_client *client = hasty(ts_proxy_url(proxy), 20);
    unsigned seed = 7;
    int got = 0, busy = 0, late = 0;
    hold(P1, "rl:theirs", 0);

    for (int64_t end = ts_mono_ms() + 10 * SOON; (got < 12 || busy < 12 || late < 12) && ts_mono_ms() < end;) {
        rl_lock *lock = NULL;
        bool ours = (seed = seed * 1103515245u + 12345u) >> 31;
        ts_proxy_delay(proxy, TS_DOWN, (seed >> 16) % 30);
        int rc = rl_acquire(client, ours ? "ours" : "theirs", LONG, 0, &lock);
        ts_check(rc != RL_OK || ours, "got what another holds");
        ts_check(rc != RL_BUSY || !ours, "nobody holds it: what was ours before was released on the same connection");
        if (rc == RL_OK) {
            ts_check(ts_holds(P1, "rl:ours", rl_lock_token(lock)), "the key is not ours");
            rl_release_with(lock, RL_NO_WAIT, NULL);
        }
        rc == RL_OK ? got++ : rc == RL_BUSY ? busy++ : late++;
        ts_sleep_ms((seed >> 8) % 20);
    }
    ts_check(got >= 12 && busy >= 12 && late >= 12, "got it %d times, %d times busy, %d times late", got, busy, late);
    ts_check(ts_holds(P1, "rl:theirs", foreign), "the other's key was touched");
    rl_client_free(client);
    ts_proxy_stop(proxy);
}

static void too_slow_for(int64_t ttl_ms, const rl_options *options)
{
    struct net net;
    net_start(&net);
    rl_client *client = client_with(net.urls, options);
    rl_report *report = new_report();
    warm_up(client);
    ts_proxy_delay(net.at[1], TS_DOWN, 60);
    ts_proxy_delay(net.at[2], TS_DOWN, 60);

    int64_t start = ts_mono_ms();
    ts_equal(refused(client, "a7", ttl_ms, 0, report), RL_E_TOO_SLOW);
    ts_check(ts_mono_ms() - start < 60 + slack(), "it was waited for what could not help any more");
    for (int i = 0; i < 3; i++) {
        int outcome = said(report, (size_t)i).outcome; /* answers may have been there when the time was found to be up */
        ts_check(outcome == RL_NODE_YES || outcome == RL_NODE_NO_ANSWER || outcome == RL_NODE_PENDING, "outcome is %d", outcome);
        await_calls(p.at[i], "set", 1);
        await_calls(p.at[i], "evalsha", 1);
        ts_equal(ts_dbsize(p.at[i]), 0);
    }
    ts_proxy_clear(net.at[1]);
    ts_proxy_clear(net.at[2]);
    rl_lock *lock = NULL;
    ts_equal(rl_acquire(client, "a7", LONG, SOON, &lock), RL_OK);
    ts_equal(rl_release(lock), RL_OK);
    rl_client_free(client);
    rl_report_free(report);
    net_stop(&net);
}

/* A7 */
static void votes_come_too_late_for_the_lease(void **state)
{
    (void)state;
    rl_options options = options_with(SOON, 300);
    too_slow_for(50, &options);
}

/* A7, S1.4: the votes come in time for the lease, but leave too little of it. */
static void too_little_of_the_lease_is_left(void **state)
{
    (void)state;
    rl_options options = options_with(SOON, 300);
    options.min_validity_ms = LONG - LONG / 100 - 2 - 40;
    too_slow_for(LONG, &options);
}

/* A7, S4.1: an attempt lasts no longer than its lease could be of use, whatever the node timeout. */
static void an_attempt_ends_before_its_lease(void **state)
{
    (void)state;
    rl_client *client = patient(p.urls);
    warm_up(client);
    ts_server_pause(P2);
    ts_server_pause(P3);
    int64_t start = ts_mono_ms();
    ts_equal(refused(client, "a7", 100, 0, NULL), RL_E_TOO_SLOW);
    ts_between(ts_mono_ms() - start, 90, 100 + slack());
    ts_server_resume(P2);
    ts_server_resume(P3);
    rl_client_free(client);
    for (int i = 0; i < 3; i++) {
        await_calls(p.at[i], "evalsha", 1);
        ts_equal(ts_dbsize(p.at[i]), 0);
    }
}

/* A7, S1.2: validity counts from the sending, not from the reply. */
static void validity_counts_from_the_sending(void **state)
{
    (void)state;
    ts_proxy *proxy = ts_proxy_to(P1);
    rl_client *client = patient(ts_proxy_url(proxy));
    ts_equal(rl_client_check(client, NULL), RL_OK);
    ts_proxy_fault(proxy, "SET", 0, TS_DELAY_REPLY, 200);
    rl_lock *lock = taken(client, "sent", LONG);
    int64_t left = rl_lock_remaining_ms(lock), truly = ts_pttl(P1, "rl:sent");
    ts_between(left, 1, LONG - LONG / 100 - 2 - 200);
    ts_check(left <= truly, "%lld ms are claimed, %lld are left", (long long)left, (long long)truly);
    ts_equal(rl_release(lock), RL_OK);
    rl_client_free(client);
    ts_proxy_stop(proxy);
}

/* ---- A8: contenders ---------------------------------------------------------------------------------------------------------- */

enum { CONTENDERS = 5, ROUNDS = 200 };

static struct contest {
    pthread_barrier_t barrier;
    atomic_int inside, done, wrong;
    atomic_bool won, twice;
    int64_t first_win_ms[ROUNDS];
} contest;

static void contend(rl_client *client, int round)
{
    int64_t start = ts_mono_ms();
    bool mine = false;
    while (!mine && !atomic_load(&contest.won) && ts_mono_ms() - start < 1000) {
        rl_lock *lock = NULL;
        int rc = rl_acquire(client, "a8", 1000, 12, &lock);
        mine = rc == RL_OK;
        if (!mine) {
            if (rc != RL_BUSY)
                atomic_store(&contest.wrong, rc);
            continue;
        }
        if (atomic_fetch_add(&contest.inside, 1) != 0)
            atomic_store(&contest.twice, true);
        atomic_store(&contest.won, true);
        contest.first_win_ms[round] = ts_mono_ms() - start;
        while (atomic_load(&contest.done) < CONTENDERS - 1 && rl_lock_remaining_ms(lock) > 0)
            ts_sleep_ms(1);
        atomic_fetch_sub(&contest.inside, 1);
        rc = rl_release(lock);
        if (rc != RL_OK)
            atomic_store(&contest.wrong, rc);
    }
    if (!mine)
        atomic_fetch_add(&contest.done, 1);
}

static void *contender(void *client)
{
    for (int round = 0; round < ROUNDS; round++) {
        pthread_barrier_wait(&contest.barrier);
        contend(client, round);
        pthread_barrier_wait(&contest.barrier);
    }
    return NULL;
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* A8 */
static void contenders_never_hold_it_together(void **state)
{
    (void)state;
    rl_client *clients[CONTENDERS];
    pthread_t threads[CONTENDERS];
    int without = 0;
    contest = (struct contest){0};
    pthread_barrier_init(&contest.barrier, NULL, CONTENDERS + 1);
    for (int i = 0; i < CONTENDERS; i++) {
        clients[i] = patient(p.urls);
        warm_up(clients[i]);
        pthread_create(&threads[i], NULL, contender, clients[i]);
    }
    for (int round = 0; round < ROUNDS; round++) {
        atomic_store(&contest.done, 0);
        atomic_store(&contest.won, false);
        pthread_barrier_wait(&contest.barrier);
        pthread_barrier_wait(&contest.barrier);
        without += !atomic_load(&contest.won);
    }
    for (int i = 0; i < CONTENDERS; i++) {
        pthread_join(threads[i], NULL);
        rl_client_free(clients[i]);
    }
    pthread_barrier_destroy(&contest.barrier);
    ts_check(!atomic_load(&contest.twice), "two held it together");
    ts_check(atomic_load(&contest.wrong) == 0, "a call returned %s", rl_strstatus(atomic_load(&contest.wrong)));
    ts_equal(without, 0);
    qsort(contest.first_win_ms, ROUNDS, sizeof contest.first_win_ms[0], by_value);
    ts_between(contest.first_win_ms[ROUNDS / 2], 0, 50 * ts_slowness());
    check_gone("rl:a8");
}

/* ---- A10: a lost reply ------------------------------------------------------------------------------------------------------- */

static void lose_a_reply(ts_fault fault, int64_t arg, int64_t wait_ms)
{
    ts_proxy *proxy = ts_proxy_to(P1);
    rl_client *client = hasty(ts_proxy_url(proxy), 500);
    rl_lock *lock = NULL;
    ts_equal(rl_client_check(client, NULL), RL_OK);
    ts_command(P1, "CONFIG RESETSTAT");
    ts_proxy_fault(proxy, "SET", 0, fault, arg);

    int64_t start = ts_mono_ms();
    ts_equal(rl_acquire(client, "a10", LONG, wait_ms, &lock), RL_OK);
    ts_check(ts_mono_ms() - start < LONG / 2, "it waited for itself");
    ts_equal(ts_calls(P1, "set"), fault == TS_RESET_BEFORE ? 1 : 2);
    ts_check(ts_holds(P1, "rl:a10", rl_lock_token(lock)), "another token");
    ts_equal(rl_release(lock), RL_OK);
    ts_equal(ts_dbsize(P1), 0);
    rl_client_free(client);
    ts_proxy_stop(proxy);
}

/* A10 */
static void a_lost_reply_blocks_nobody(void **state)
{
    (void)state;
    lose_a_reply(TS_RESET_UNANSWERED, 0, LONG);
    make_fresh(P1);
    lose_a_reply(TS_RESET_BEFORE, 0, LONG);
    make_fresh(P1);
    lose_a_reply(TS_DELAY_REPLY, 800, LONG);
}

/* A10, A14: a connection that broke costs one repeated attempt, for wait 0 too. */
static void a_lost_reply_without_waiting(void **state)
{
    (void)state;
    lose_a_reply(TS_RESET_UNANSWERED, 0, 0);
    make_fresh(P1);
    lose_a_reply(TS_RESET_BEFORE, 0, 0);
}

/* ---- A11: arguments ---------------------------------------------------------------------------------------------------------- */

static rl_request request_for(const void *name, size_t name_len, int64_t ttl_ms, int64_t wait_ms)
{
    rl_request request;
    rl_request_init(&request);
    request.name = name;
    request.name_len = name_len;
    request.ttl_ms = ttl_ms;
    request.wait_ms = wait_ms;
    return request;
}

static void is_invalid(rl_client *client, const rl_request *request)
{
    rl_lock *lock = (rl_lock *)(uintptr_t)1;
    rl_report *report = new_report();
    ts_equal(rl_acquire_with(client, request, report, &lock), RL_E_INVALID);
    ts_check(lock == NULL, "*ret_lock was not set to NULL");
    ts_equal(rl_report_count(report), 0);
    rl_report_free(report);
}

static void invalid_times(rl_client *client)
{
    static const int64_t ttls[] = {0, -1, RL_MIN_TTL_MS - 1, RL_MAX_TTL_MS + 1, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < sizeof ttls / sizeof *ttls; i++) {
        rl_request request = request_for("a11", 3, ttls[i], 0);
        is_invalid(client, &request);
    }
    static const int64_t waits[] = {-2, INT64_MIN};
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
        rl_request request = request_for("a11", 3, LONG, waits[i]);
        is_invalid(client, &request);
    }
}

static void invalid_names(rl_client *client)
{
    char name[RL_MAX_NAME + 2];
    memset(name, 'x', sizeof name);
    name[RL_MAX_NAME + 1] = '\0';
    rl_request null = request_for(NULL, 3, LONG, 0), empty = request_for("", 0, LONG, 0),
               too_long = request_for(name, RL_MAX_NAME + 1, LONG, 0), huge = request_for(name, SIZE_MAX, LONG, 0);
    is_invalid(client, &null);
    is_invalid(client, &empty);
    is_invalid(client, &too_long);
    is_invalid(client, &huge);
    rl_lock *lock = NULL;
    ts_equal(rl_acquire(client, NULL, LONG, 0, &lock), RL_E_INVALID);
    ts_equal(rl_acquire(client, "", LONG, 0, &lock), RL_E_INVALID);
    ts_equal(rl_acquire(client, name, LONG, 0, &lock), RL_E_INVALID);
}

static void invalid_labels_and_flags(rl_client *client)
{
    char label[RL_MAX_LABEL + 2];
    memset(label, 'x', sizeof label);
    label[RL_MAX_LABEL + 1] = '\0';
    const char *labels[] = {"", label, "two\nlines", "\x7f", "h\xc3\xb6r"};
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
        rl_request request = request_for("a11", 3, LONG, 0);
        request.label = labels[i];
        is_invalid(client, &request);
    }
    rl_request flag = request_for("a11", 3, LONG, 0), fence = flag;
    flag.fail_fast = 2;
    fence.fence = RL_FENCE_NODE + 1;
    is_invalid(client, &flag);
    is_invalid(client, &fence);
}

/* A11 */
static void bad_arguments_send_nothing(void **state)
{
    (void)state;
    ts_hostile *server = ts_hostile_start(NULL);
    rl_client *client = patient(ts_hostile_url(server));
    rl_lock *lock = (rl_lock *)(uintptr_t)1;
    invalid_times(client);
    invalid_names(client);
    invalid_labels_and_flags(client);
    rl_request good = request_for("a11", 3, LONG, 0);
    ts_equal(rl_acquire_with(client, &good, NULL, NULL), RL_E_INVALID);
    ts_equal(rl_acquire_with(client, NULL, NULL, &lock), RL_E_INVALID);
    ts_check(lock == NULL, "*ret_lock was not set to NULL");
    ts_equal(rl_acquire_with(NULL, &good, NULL, &lock), RL_E_INVALID);
    rl_client_free(client);
    ts_equal(ts_hostile_connections(server), 0);
}

/* A11, S1.6: a lease that drift and min_validity would use up. */
static void a_lease_too_short_for_the_options(void **state)
{
    (void)state;
    rl_options options = options_with(SOON, 300);
    options.min_validity_ms = 100;
    ts_hostile *server = ts_hostile_start(NULL);
    rl_client *client = client_with(ts_hostile_url(server), &options);
    ts_equal(refused(client, "a11", 103, 0, NULL), RL_E_INVALID); /* 103 - 1.03 - 2 < 100 */
    rl_client_free(client);
    ts_equal(ts_hostile_connections(server), 0);
}

/* A11: the limits themselves are fine. */
static void the_longest_times_are_fine(void **state)
{
    (void)state;
    rl_client *client = patient(p.urls);
    rl_lock *lock = NULL;
    ts_equal(rl_acquire(client, "a11", RL_MAX_TTL_MS, INT64_MAX, &lock), RL_OK);
    ts_between(rl_lock_remaining_ms(lock), RL_MAX_TTL_MS - RL_MAX_TTL_MS / 100 - 60000, RL_MAX_TTL_MS - RL_MAX_TTL_MS / 100 - 2);
    ts_equal(rl_release(lock), RL_OK);
    rl_client_free(client);
}

/* ---- A13: no lock at all ----------------------------------------------------------------------------------------------------- */

/* A13 */
static void a_hash_under_the_name(void **state)
{
    (void)state;
    rl_client *client = patient(p.urls);
    rl_report *report = new_report();
    for (int i = 0; i < 3; i++)
        ts_command(p.at[i], "HSET rl:a13 field value");
    ts_equal(refused(client, "a13", LONG, 0, report), RL_BUSY);

    ts_equal(refused(client, "a13", LONG, 100, report), RL_E_NO_QUORUM);
    int wrong_type = 0;
    for (size_t i = 0; i < 3; i++)
        wrong_type += said(report, i).outcome == RL_NODE_ERROR && strstr(said(report, i).text, "WRONGTYPE") != NULL;
    ts_check(wrong_type >= 2, "%d nodes report WRONGTYPE", wrong_type);
    for (int i = 0; i < 3; i++)
        ts_check(strcmp(ts_command(p.at[i], "HGET rl:a13 field"), "value") == 0, "the hash was touched");
    rl_client_free(client);
    rl_report_free(report);
}

/* A13: with fail_fast it ends the wait. */
static void a_hash_under_the_name_on_one_server(void **state)
{
    (void)state;
    rl_client *client = patient(ts_server_url(P1));
    rl_request request = request_for("a13", 3, LONG, LONG);
    rl_report *report = new_report();
    rl_lock *lock = NULL;
    ts_command(P1, "HSET rl:a13 field value");
    request.fail_fast = 1;
    ts_equal(rl_acquire_with(client, &request, report, &lock), RL_E_NO_QUORUM);
    check_said(report, 0, RL_NODE_ERROR, "WRONGTYPE");
    rl_client_free(client);
    rl_report_free(report);
}

/* ---- A14: servers that forget ------------------------------------------------------------------------------------------------ */

/* A14, S2.5: each call falls back to EVAL once. */
static void scripts_are_flushed_between_calls(void **state)
{
    (void)state;
    rl_client *client = patient(ts_server_url(P1));
    rl_lock *lock = taken(client, "a14", LONG);
    ts_command(P1, "SCRIPT FLUSH");
    ts_equal(rl_extend(lock, LONG, NULL), RL_OK);
    ts_command(P1, "SCRIPT FLUSH");
    ts_equal(rl_release(lock), RL_OK);
    ts_equal(ts_calls(P1, "eval"), 2);
    ts_equal(ts_calls(P1, "evalsha"), 2);
    ts_equal(ts_dbsize(P1), 0);
    rl_client_free(client);
}

/* A14, S2.5 */
static void scripts_are_flushed_on_three_servers(void **state)
{
    (void)state;
    rl_client *client = patient(p.urls);
    warm_up(client);
    rl_lock *lock = taken(client, "a14", LONG);
    for (int i = 0; i < 3; i++)
        ts_command(p.at[i], "SCRIPT FLUSH");
    ts_equal(rl_extend(lock, LONG, NULL), RL_OK);
    for (int i = 0; i < 3; i++)
        ts_command(p.at[i], "SCRIPT FLUSH");
    ts_equal(rl_release(lock), RL_OK);
    rl_client_free(client); /* the slowest server's answer may still have been on its way */
    check_gone("rl:a14");
}

/* A14, S3.1: the clean-up of a failed attempt falls back too. */
static void scripts_are_flushed_before_a_clean_up(void **state)
{
    (void)state;
    rl_client *client = patient(p.urls);
    warm_up(client);
    hold(P1, "rl:a14", 0);
    hold(P2, "rl:a14", 0);
    ts_command(P3, "SCRIPT FLUSH");
    ts_equal(refused(client, "a14", LONG, 50, NULL), RL_BUSY);
    await_calls(P3, "eval", 1);
    ts_equal(ts_dbsize(P3), 0);
    rl_client_free(client);
}

/* A14 */
static void servers_restart_between_calls(void **state)
{
    (void)state;
    rl_client *three = patient(p.urls), *one = patient(ts_server_url(P1));
    warm_up(three);
    warm_up(one);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 3; i++)
            ts_server_kill(p.at[i]);
        for (int i = 0; i < 3; i++)
            ts_server_launch(p.at[i]);
        for (int i = 0; i < 3; i++)
            ts_server_await(p.at[i]);
        rl_lock *lock = taken(one, "one", LONG);
        ts_equal(rl_release(lock), RL_OK);
        lock = taken(three, "three", LONG);
        ts_equal(rl_release(lock), RL_OK);
    }
    rl_client_free(three);
    rl_client_free(one);
}

/* A14: the second connection is found dead only by the repeated attempt. */
static void connections_are_found_dead_one_by_one(void **state)
{
    (void)state;
    struct net net;
    net_start(&net);
    rl_client *client = patient(net.urls);
    warm_up(client);
    ts_proxy_refuse(net.at[2], true);
    ts_proxy_reset(net.at[2]);
    ts_proxy_fault(net.at[0], "SET", 0, TS_RESET_BEFORE, 0);
    ts_proxy_fault(net.at[1], "SET", 1, TS_RESET_BEFORE, 0);
    rl_lock *lock = taken(client, "a14", LONG);
    ts_equal(ts_proxy_seen(net.at[1]).pending_faults, 0);
    ts_equal(rl_release(lock), RL_OK);
    rl_client_free(client);
    net_stop(&net);
    check_gone("rl:a14");
}

/* A14: servers that were away for long are not avoided when they are needed. */
static void servers_that_are_back_are_asked_at_once(void **state)
{
    (void)state;
    rl_client *client = patient(p.urls);
    ts_server_kill(P2);
    ts_server_kill(P3);
    for (int i = 0; i < 7; i++) /* each failure doubles the time for which nobody would try again */
        ts_equal(refused(client, "a14", LONG, 0, NULL), RL_E_NO_QUORUM);
    ts_server_restart(P2);
    rl_lock *lock = taken(client, "a14", LONG);
    ts_equal(rl_release(lock), RL_OK);
    rl_client_free(client);
}

/* A14: with a server that does not forget, extend and release succeed as well. */
static void a_lasting_server_restarts_between_calls(void **state)
{
    (void)state;
    static const char *const args[] = {"--appendonly", "yes", "--appendfsync", "always", NULL};
    ts_server *server = ts_server_start(args);
    rl_client *client = patient(ts_server_url(server));
    rl_lock *lock = taken(client, "a14", LONG);
    ts_server_kill(server);
    ts_server_restart(server);
    ts_equal(rl_extend(lock, LONG, NULL), RL_OK);
    ts_server_kill(server);
    ts_server_restart(server);
    ts_check(ts_holds(server, "rl:a14", rl_lock_token(lock)), "the server forgot");
    ts_equal(rl_release(lock), RL_OK);
    ts_equal(ts_dbsize(server), 0);
    rl_client_free(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        REAL_TEST(two_nodes_refuse),
        REAL_TEST(two_nodes_are_silent),
        REAL_TEST(a_host_does_not_resolve),
        REAL_TEST(a_slow_resolver_stalls_nobody),
        REAL_TEST(a_slow_resolver_answers_at_last),
        REAL_TEST(the_second_address_is_tried_at_once),
        REAL_TEST(a_stopped_node_is_not_waited_for),
        REAL_TEST(a_stopped_node_without_a_connection),
        REAL_TEST(a_late_grant_is_kept),
        REAL_TEST(held_by_another),
        REAL_TEST(a_split_vote_is_busy),
        REAL_TEST(failures_and_holders_are_told_apart),
        REAL_TEST(a_raised_quorum),
        REAL_TEST(a_delayed_set_leaves_no_ghost),
        REAL_TEST(a_delayed_set_of_a_client_that_is_gone),
        REAL_TEST(a_delayed_connection_leaves_no_ghost),
        REAL_TEST(a_late_reply_is_nobody_elses),
        REAL_TEST(replies_are_never_crossed),
        REAL_TEST(votes_come_too_late_for_the_lease),
        REAL_TEST(too_little_of_the_lease_is_left),
        REAL_TEST(an_attempt_ends_before_its_lease),
        REAL_TEST(validity_counts_from_the_sending),
        REAL_TEST(contenders_never_hold_it_together),
        REAL_TEST(a_lost_reply_blocks_nobody),
        REAL_TEST(a_lost_reply_without_waiting),
        REAL_TEST(bad_arguments_send_nothing),
        REAL_TEST(a_lease_too_short_for_the_options),
        REAL_TEST(the_longest_times_are_fine),
        REAL_TEST(a_hash_under_the_name),
        REAL_TEST(a_hash_under_the_name_on_one_server),
        REAL_TEST(scripts_are_flushed_between_calls),
        REAL_TEST(scripts_are_flushed_on_three_servers),
        REAL_TEST(scripts_are_flushed_before_a_clean_up),
        REAL_TEST(servers_restart_between_calls),
        REAL_TEST(connections_are_found_dead_one_by_one),
        REAL_TEST(servers_that_are_back_are_asked_at_once),
        REAL_TEST(a_lasting_server_restarts_between_calls),
    };
    return REAL_RUN("acquire", tests);
}
