/* test_extend.c - extension, its loss, top-up, and handles that travel between processes, against real servers.
 */
#include "real.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- Helpers ------------------------------------------------------------------------------------------------------------------ */

static const char key[] = "rl:job";

/* Long enough for a node that means to answer, short enough to wait for one that does not. */
static int64_t brief(void)
{
    return 250 * (int64_t)ts_slowness();
}

/* Clients whose connections stand: every node gets every request at once. (A child has no servers: p.count is 0 there.) */
static rl_client *warm(const char *urls)
{
    rl_client *client = patient(urls);
    warm_up(client);
    return client;
}

static rl_client *warm_hasty(const char *urls)
{
    rl_client *client = hasty(urls, brief());
    warm_up(client);
    return client;
}

/* On how many of the three the lease is a long one. */
static int long_leases(void)
{
    int count = 0;
    for (int i = 0; i < 3; i++)
        count += ts_pttl(p.at[i], key) > LONG / 2;
    return count;
}

/* When the lease ends by the holder's clock: what now and the remaining time say, read close together. */
static int64_t end_of(const rl_lock *lock)
{
    int64_t end, began;
    do {
        began = ts_now_ms();
        end = began + rl_lock_remaining_ms(lock);
    } while (ts_now_ms() > began + 1);
    return end;
}

#define check_end(lock, end) ts_between(end_of(lock), (end)-2, (end) + 2)

/* What the handle claims is covered by at least a quorum of these servers (S1.3). */
static void check_claim(const rl_lock *lock, ts_server *const *servers, int count)
{
    int64_t least[3] = {INT64_MAX, INT64_MAX, INT64_MAX};
    int covering = 0;
    for (int i = 0; i < count; i++)
        least[i] = ts_holds(servers[i], key, rl_lock_token(lock)) ? ts_pttl(servers[i], key) : -1;
    int64_t claimed = rl_lock_remaining_ms(lock); /* later than the PTTLs, so it must be less */
    for (int i = 0; i < count; i++)
        covering += least[i] >= claimed;
    ts_check(covering > count / 2, "claims %lld ms; the servers say %lld, %lld, %lld", (long long)claimed, (long long)least[0],
             (long long)least[1], (long long)least[2]);
}

/* Lost for good: no time is left, and to find that out again costs no question to a server. */
static void check_lost(rl_lock *lock)
{
    ts_check(rl_lock_remaining_ms(lock) <= 0, "%lld ms remain", (long long)rl_lock_remaining_ms(lock));
    int64_t before = ts_server_pid(P1) ? releases(P1) : 0;
    ts_equal(rl_extend(lock, LONG, NULL), RL_LOST);
    ts_equal(ts_server_pid(P1) ? releases(P1) : 0, before);
    ts_equal(rl_lock_remaining_ms(lock), 0);
}

/* The token as it stands on the server, in a buffer of the caller's. */
static void check_token(ts_server *server, const char *token)
{
    ts_check(ts_holds(server, key, token), "%s holds another token than %s", ts_server_url(server), token);
}

static bool is_over(void *lock)
{
    return rl_lock_remaining_ms(lock) < 0; /* 0 may be a part of a millisecond */
}

static bool holds_token(void *arg)
{
    const rl_lock *lock = arg;
    return ts_holds(P1, key, rl_lock_token(lock));
}

/* Lets the client read what its connections have for it, as any call of another lock does. */
static void stir(rl_client *client)
{
    rl_lock *other = NULL;
    if (rl_acquire(client, "other", LONG, 0, &other) == RL_OK)
        rl_release(other);
}

/* ---- What extend promises ------------------------------------------------------------------------------------------------------ */

/* E5, S5.1: at least ttl_ms from the call, in milliseconds, on every node. */
static void lasts_ttl_from_now(void **state)
{
    (void)state;
    rl_client *client = warm(p.urls);
    rl_lock *lock = taken(client, "job", 700);
    ts_sleep_ms(150);
    for (int i = 0; i < 3; i++)
        ts_check(ts_pttl(p.at[i], key) <= 550, "not yet extended");
    int64_t began = ts_now_ms();
    ts_equal(rl_extend(lock, 700, NULL), RL_OK);
    for (int i = 0; i < 3; i++) {
        await_calls(p.at[i], "evalsha", 1);
        int64_t pttl = ts_pttl(p.at[i], key);
        ts_between(pttl, 700 - (ts_now_ms() - began) - 1, 700);
    }
    ts_between(end_of(lock), began + 700 - 7 - 2 - 2, ts_now_ms() + 700);
    check_claim(lock, p.at, 3);
    ts_equal(rl_release(lock), RL_OK);
    rl_client_free(client);
}

/* S5.1: a shorter extension is one of a lease that is long enough already. */
static void never_shortens(void **state)
{
    (void)state;
    rl_client *client = warm(p.urls);
    rl_lock *lock = taken(client, "job", LONG);
    int64_t end = end_of(lock);
    ts_equal(rl_extend(lock, 1000, NULL), RL_OK);
    check_end(lock, end);
    for (int i = 0; i < 3; i++) {
        await_calls(p.at[i], "evalsha", 1);
        ts_check(ts_pttl(p.at[i], key) > LONG / 2, "shortened to %lld", (long long)ts_pttl(p.at[i], key));
    }
    check_claim(lock, p.at, 3);
    /* Somebody made it everlasting; our token is in it, so it is ours, and it gets an end again. */
    ts_command(P1, "PERSIST %s", key);
    ts_equal(rl_extend(lock, LONG, NULL), RL_OK);
    await_calls(P1, "evalsha", 2);
    ts_between(ts_pttl(P1, key), 1, LONG);
    ts_equal(rl_release(lock), RL_OK);
    rl_client_free(client);
}

/* E11: the extension is shorter than the lease, and its answer is lost. */
static void lost_answer_of_shorter_extension(void **state)
{
    (void)state;
    ts_proxy *proxy = ts_proxy_to(P1);
    rl_client *client = warm_hasty(ts_proxy_url(proxy));
    rl_lock *lock = taken(client, "job", LONG);
    int64_t end = end_of(lock);
    ts_proxy_fault(proxy, "EVALSHA", 0, TS_SWALLOW_REPLY, 0);
    ts_equal(rl_extend(lock, 1000, NULL), RL_E_NO_QUORUM);
    await_calls(P1, "evalsha", 1);
    check_end(lock, end);
    check_claim(lock, &P1, 1);
    ts_check(ts_pttl(P1, key) > LONG / 2, "shortened to %lld", (long long)ts_pttl(P1, key));
    rl_lock_free(lock);
    rl_client_free(client);

    /* The connection breaks instead: the request is sent again on a new one. */
    client = warm(ts_proxy_url(proxy));
    ts_command(P1, "FLUSHALL");
    lock = taken(client, "job", LONG);
    end = end_of(lock);
    ts_proxy_fault(proxy, "EVALSHA", 0, TS_RESET_UNANSWERED, 0);
    ts_equal(rl_extend(lock, 1000, NULL), RL_OK);
    check_end(lock, end);
    check_claim(lock, &P1, 1);
    ts_equal(rl_release(lock), RL_OK);
    rl_client_free(client);
    ts_proxy_stop(proxy);
}

/* E3: one node stands still. */
static void one_node_stopped(void **state)
{
    (void)state;
    rl_client *client = warm(p.urls);
    rl_report *report = new_report();
    rl_lock *lock = taken(client, "job", 2000);
    ts_server_pause(P3);
    int64_t began = ts_now_ms();
    ts_equal(rl_extend(lock, LONG, report), RL_OK);
    ts_between(ts_now_ms() - began, 0, slack());
    check_said(report, 0, RL_NODE_YES, NULL);
    check_said(report, 1, RL_NODE_YES, NULL);
    check_said(report, 2, RL_NODE_PENDING, NULL);
    check_claim(lock, p.at, 2);
    check_token(P1, rl_lock_token(lock));
    check_token(P2, rl_lock_token(lock));
    ts_check(rl_lock_remaining_ms(lock) > LONG / 2, "not extended");
    ts_server_resume(P3);
    await_calls(P3, "evalsha", 1);
    ts_check(ts_pttl(P3, key) > LONG / 2, "the late node was not extended");
    ts_equal(rl_release(lock), RL_OK);
    check_gone(key);
    rl_report_free(report);
    rl_client_free(client);
}

/* S2.5: the servers forget their scripts between any two calls. */
static void scripts_flushed(void **state)
{
    (void)state;
    rl_client *client = warm(p.urls);
    rl_report *report = new_report();
    rl_lock *lock = taken(client, "job", LONG);
    for (int round = 1; round <= 3; round++) {
        int votes = 0;
        for (int i = 0; i < 3; i++)
            ts_command(p.at[i], "SCRIPT FLUSH");
        ts_equal(rl_extend(lock, LONG + 1000 * round, report), RL_OK);
        for (size_t i = 0; i < 3; i++)
            votes += said(report, i).outcome == RL_NODE_YES;
        ts_between(votes, 2, 3);
        check_claim(lock, p.at, 3);
    }
    for (int i = 0; i < 3; i++)
        ts_command(p.at[i], "SCRIPT FLUSH");
    ts_equal(rl_release_with(lock, 0, report), RL_OK);
    rl_client_free(client);
    check_gone(key);
    rl_report_free(report);
}

/* S2.5: one EVAL, and it leaves the script behind. */
static void one_eval_after_a_flush(void **state)
{
    (void)state;
    rl_client *client = warm(ts_server_url(P1));
    rl_lock *lock = taken(client, "job", LONG);
    ts_command(P1, "SCRIPT FLUSH");
    for (int i = 1; i <= 2; i++) {
        ts_equal(rl_extend(lock, LONG, NULL), RL_OK);
        ts_equal(ts_calls(P1, "evalsha"), i);
        ts_equal(ts_calls(P1, "eval"), 1);
    }
    ts_command(P1, "SCRIPT FLUSH");
    ts_equal(rl_release(lock), RL_OK);
    ts_equal(ts_calls(P1, "evalsha"), 3);
    ts_equal(ts_calls(P1, "eval"), 2);
    rl_client_free(client);
}

/* E6: memory is full and nothing is evicted. */
static void memory_is_full(void **state)
{
    (void)state;
    static const char *const args[] = {"--maxmemory-policy", "noeviction", NULL};
    ts_server *server = ts_server_start(args);
    rl_client *client = warm(ts_server_url(server));
    rl_report *report = new_report();
    rl_lock *lock = taken(client, "job", 2000);
    ts_command(server, "CONFIG SET maxmemory 1");
    ts_equal(refused(client, "more", 2000, 0, report), RL_E_NO_QUORUM);
    check_said(report, 0, RL_NODE_ERROR, "OOM");
    ts_equal(rl_extend(lock, LONG, report), RL_OK);
    check_said(report, 0, RL_NODE_YES, NULL);
    ts_check(ts_pttl(server, key) > LONG / 2, "not extended");
    check_claim(lock, &server, 1);
    /* also where the script has to be brought along, on a new connection */
    ts_command(server, "SCRIPT FLUSH");
    ts_command(server, "CLIENT KILL TYPE normal SKIPME yes");
    ts_equal(rl_extend(lock, LONG, report), RL_OK);
    ts_equal(rl_release(lock), RL_OK);
    assert_false(ts_exists(server, key));
    rl_report_free(report);
    rl_client_free(client);
}

/* A11 for extend: what is refused is refused before a byte is sent. */
static void refused_arguments(void **state)
{
    (void)state;
    static const int64_t bad[] = {0, -1, 1, RL_MIN_TTL_MS - 1, RL_MAX_TTL_MS + 1, INT64_MAX, INT64_MIN};
    rl_client *client = warm(ts_server_url(P1));
    rl_lock *lock = taken(client, "job", LONG);
    int64_t end = end_of(lock), calls = ts_info_int(P1, "total_commands_processed");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ts_equal(rl_extend(lock, bad[i], NULL), RL_E_INVALID);
    ts_equal(rl_extend(NULL, LONG, NULL), RL_E_INVALID);
    ts_equal(ts_info_int(P1, "total_commands_processed"), calls + 1); /* the question itself */
    check_end(lock, end);
    ts_equal(rl_extend(lock, RL_MAX_TTL_MS, NULL), RL_OK);
    check_claim(lock, &P1, 1);
    rl_client_free(client);
    ts_equal(rl_extend(lock, LONG, NULL), RL_E_CLOSED);
    ts_check(rl_lock_remaining_ms(lock) > LONG, "the deadline does not stand");
    ts_equal(rl_release(lock), RL_E_CLOSED);
}

/* ---- Lost ------------------------------------------------------------------------------------------------------------------------ */

/* E1: the key is gone; it is not made again. */
static void deleted_by_hand(void **state)
{
    (void)state;
    const char *urls[] = {ts_server_url(P1), p.urls};
    for (int n = 0; n < 2; n++) {
        rl_client *client = warm(urls[n]);
        rl_lock *lock = taken(client, "job", LONG);
        for (int i = 0; i < (n ? 3 : 1); i++) {
            await_calls(p.at[i], "set", 1);
            ts_command(p.at[i], "DEL %s", key);
        }
        ts_equal(rl_extend(lock, LONG, NULL), RL_LOST);
        check_lost(lock);
        ts_equal(ts_servers_holding(&p, key), 0);
        ts_equal(rl_release(lock), RL_LOST);
        rl_client_free(client);
        ts_equal(ts_servers_holding(&p, key), 0);
    }
}

/* E2: the lease ran out, and B has the lock. */
static void expired_and_taken_over(void **state)
{
    (void)state;
    rl_client *a = warm(p.urls), *b = warm(p.urls);
    rl_lock *stale = taken(a, "job", 60), *lock = NULL;
    ts_equal(rl_acquire(b, "job", LONG, SOON, &lock), RL_OK);
    ts_check(rl_lock_remaining_ms(stale) <= 0, "two holders");
    int64_t end = end_of(lock), calls = releases(P1);
    ts_equal(rl_extend(stale, 2 * LONG, NULL), RL_LOST);
    ts_equal(rl_extend(stale, 2 * LONG, NULL), RL_LOST);
    ts_equal(releases(P1), calls); /* no question was asked */
    ts_equal(rl_lock_remaining_ms(stale), 0);
    check_end(lock, end);
    for (int i = 0; i < 3; i++) /* on one, the stale key may have outlasted B's attempt */
        ts_check(ts_pttl(p.at[i], key) <= LONG, "B's lease was extended");
    ts_equal(rl_release(stale), RL_LOST);
    check_claim(lock, p.at, 3);
    ts_equal(rl_release(lock), RL_OK);
    rl_client_free(a);
    rl_client_free(b);
}

/* E2, with the holder's clock still content: the servers know better, and B is not touched. */
static void taken_over_within_the_lease(void **state)
{
    (void)state;
    rl_client *a = warm(p.urls);
    rl_lock *lock = taken(a, "job", LONG);
    for (int i = 0; i < 3; i++) {
        await_calls(p.at[i], "set", 1);
        ts_set_px(p.at[i], key, "another", 5000);
    }
    rl_report *report = new_report();
    ts_equal(rl_extend(lock, LONG, report), RL_LOST);
    check_lost(lock);
    ts_equal(rl_release(lock), RL_LOST);
    rl_client_free(a);
    for (int i = 0; i < 3; i++) {
        check_token(p.at[i], "another");
        ts_between(ts_pttl(p.at[i], key), 1, 5000);
    }
    rl_report_free(report);
}

/* S5.1: refused locally once the lease is over, even if the servers would agree. */
static void over_by_the_local_clock(void **state)
{
    (void)state;
    rl_client *client = warm(p.urls);
    rl_lock *lock = taken(client, "job", 50);
    for (int i = 0; i < 3; i++)
        ts_command(p.at[i], "PEXPIRE %s %d", key, LONG);
    ts_check(ts_eventually(SOON, is_over, lock), "it does not end");
    check_lost(lock);
    check_lost(lock);
    rl_release(lock);
    check_gone(key);
    rl_client_free(client);
}

/* E12: held on two of three, and one of the two forgets: lost at once, not at the old deadline. */
static void held_on_two_one_forgets(void **state)
{
    (void)state;
    enum { DOWN, FOREIGN, FLUSHED, KINDS };
    for (int kind = 0; kind < KINDS; kind++) {
        rl_client *client = warm(p.urls);
        make_fresh(P1);
        if (kind == FOREIGN)
            ts_set_px(P3, key, "another", LONG);
        else
            ts_server_kill(P3);
        rl_lock *lock = taken(client, "job", LONG);
        if (kind == FLUSHED)
            ts_server_restart(P3); /* it is there, and empty */
        ts_command(P2, "DEL %s", key);
        int64_t began = ts_now_ms();
        ts_equal(rl_extend(lock, LONG, NULL), RL_LOST);
        ts_between(ts_now_ms() - began, 0, slack());
        check_lost(lock);
        assert_false(ts_exists(P2, key)); /* no top-up without a quorum */
        check_token(P1, rl_lock_token(lock));
        ts_equal(rl_release(lock), RL_LOST);
        ts_check(ts_wait_absent(P1, key, SOON), "not released");
        rl_client_free(client);
        make_fresh(P3);
    }
}

/* S2.4: a key of another type is proof that it is not ours. */
static void key_of_another_type(void **state)
{
    (void)state;
    for (int wrong = 1; wrong <= 2; wrong++) {
        rl_client *client = warm(p.urls);
        rl_report *report = new_report();
        rl_lock *lock = taken(client, "job", LONG);
        for (int i = 0; i < 3; i++)
            ts_check(ts_wait_present(p.at[i], key, SOON), "not set");
        for (int i = 0; i < wrong; i++) {
            ts_command(p.at[i], "DEL %s", key);
            ts_command(p.at[i], "RPUSH %s a b", key);
        }
        int64_t end = end_of(lock);
        ts_equal(rl_extend(lock, LONG + 1000, report), wrong == 1 ? RL_OK : RL_LOST);
        if (said(report, 0).outcome != RL_NODE_PENDING)
            check_said(report, 0, RL_NODE_HELD_BY_OTHER, "WRONGTYPE");
        if (wrong == 1)
            ts_between(end_of(lock), end + 900, end + 60000);
        else
            check_lost(lock);
        ts_equal(rl_release(lock), wrong == 1 ? RL_OK : RL_LOST);
        rl_client_free(client);
        for (int i = 0; i < wrong; i++)
            assert_string_equal(ts_command(p.at[i], "LRANGE %s 0 -1", key), "a\nb");
        for (int i = 0; i < 3; i++)
            make_fresh(p.at[i]);
        rl_report_free(report);
    }
}

/* S5.1, S5.5: around the very end of a lease, an extension either holds what it says or is lost for good. */
static void at_the_edge_of_the_lease(void **state)
{
    (void)state;
    enum { TTL = 30, ROUNDS = 40 };
    rl_client *client = warm(p.urls);
    for (int i = 0; i < ROUNDS; i++) {
        rl_lock *lock = NULL;
        int rc = rl_acquire(client, "job", TTL, SOON, &lock);
        ts_equal(rc, RL_OK);
        int64_t left = rl_lock_remaining_ms(lock);
        ts_sleep_ms(left - 2 + i % 4);
        rc = rl_extend(lock, LONG, NULL);
        ts_check(rc == RL_OK || rc == RL_LOST, "%s", rl_strstatus(rc));
        if (rc == RL_OK) {
            check_claim(lock, p.at, 3);
            ts_check(rl_lock_remaining_ms(lock) > LONG / 2, "not extended");
            ts_equal(rl_release(lock), RL_OK);
        } else {
            ts_equal(rl_lock_remaining_ms(lock), 0);
            ts_equal(rl_release(lock), RL_LOST); /* S6.3, although the servers may have extended it */
        }
        check_gone(key);
    }
    rl_client_free(client);
}

/* ---- Failed, but not lost ------------------------------------------------------------------------------------------------------- */

/* E4: two nodes are slower than the node timeout, then than the lease. */
static void two_nodes_delayed(void **state)
{
    (void)state;
    struct net net;
    net_start(&net);
    rl_client *client = warm_hasty(net.urls);
    rl_report *report = new_report();
    rl_lock *lock = taken(client, "job", LONG);
    int64_t end = end_of(lock);
    for (int i = 0; i < 3; i++)
        ts_check(ts_wait_present(p.at[i], key, SOON), "not set");
    ts_proxy_delay(net.at[1], TS_DOWN, 5000);
    ts_proxy_delay(net.at[2], TS_UP, 5000);
    int64_t began = ts_now_ms();
    ts_equal(rl_extend(lock, 2 * LONG, report), RL_E_NO_QUORUM);
    ts_between(ts_now_ms() - began, brief() - 1, brief() + slack());
    check_said(report, 0, RL_NODE_YES, NULL);
    check_said(report, 1, RL_NODE_NO_ANSWER, NULL);
    check_said(report, 2, RL_NODE_NO_ANSWER, NULL);
    check_end(lock, end);
    ts_equal(ts_servers_holding(&p, key), 3); /* a failed extension deletes nothing (S5.2) */
    rl_lock_free(lock);
    rl_client_free(client);
    net_stop(&net);

    net_start(&net);
    for (int i = 0; i < 3; i++)
        make_fresh(p.at[i]);
    client = warm(net.urls);
    lock = taken(client, "job", 300);
    end = end_of(lock);
    ts_proxy_delay(net.at[1], TS_DOWN, 5000);
    ts_proxy_delay(net.at[2], TS_UP, 5000);
    ts_equal(rl_extend(lock, 300, report), RL_LOST);
    ts_between(ts_now_ms(), end, end + slack()); /* neither before the old deadline nor at the node timeout */
    ts_equal(rl_lock_remaining_ms(lock), 0);
    rl_lock_free(lock);
    rl_client_free(client);
    rl_report_free(report);
    net_stop(&net);
}

/* S5.2, S5.7: errors are no loss: the old deadline stands, and the next try may succeed. */
static void errors_are_retried(void **state)
{
    (void)state;
    static const struct {
        const char *first, *second;
        int status;
    } cases[] = {
        {"-READONLY You can't write against a read only replica.\r\n", "-LOADING Redis is loading the dataset in memory\r\n",
         RL_E_NO_QUORUM},
        {"-MISCONF Redis is configured to save RDB snapshots\r\n", "-BUSY Redis is busy running a script.\r\n", RL_E_NO_QUORUM},
        {"-NOPERM this user has no permissions\r\n", "-NOAUTH Authentication required.\r\n", RL_E_AUTH},
        {"-NOPERM this user has no permissions\r\n", "-CLUSTERDOWN Hash slot not served\r\n", RL_E_NO_QUORUM},
        {"+OK\r\n", "*2\r\n:1\r\n:1\r\n", RL_E_NO_QUORUM},
    };
    struct net net;
    net_start(&net);
    rl_client *client = warm(net.urls);
    rl_report *report = new_report();
    rl_lock *lock = taken(client, "job", LONG);
    int64_t end = end_of(lock);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ts_proxy_answer(net.at[0], "EVALSHA", 1, cases[i].first);
        ts_proxy_answer(net.at[2], "EVALSHA", 1, cases[i].second);
        ts_proxy_delay(net.at[1], TS_DOWN, 30); /* so that the errors decide */
        ts_equal(rl_extend(lock, LONG, report), cases[i].status);
        ts_proxy_delay(net.at[1], TS_DOWN, 0);
        if (i < 4) {
            check_said(report, 0, RL_NODE_ERROR, "");
            ts_check(strncmp(said(report, 0).text, cases[i].first + 1, 6) == 0, "%s", said(report, 0).text);
        }
        check_end(lock, end);
    }
    ts_equal(rl_extend(lock, LONG, report), RL_OK);
    check_claim(lock, p.at, 3);
    ts_equal(rl_release(lock), RL_OK);
    rl_report_free(report);
    rl_client_free(client);
    net_stop(&net);
}

/* S5.7: confirmed, but with less left than the caller wants; a longer one succeeds. */
static void too_slow(void **state)
{
    (void)state;
    rl_options options = options_with(SOON, SOON);
    options.min_validity_ms = 1000;
    ts_proxy *proxy = ts_proxy_to(P1);
    rl_client *client = client_with(ts_proxy_url(proxy), &options);
    rl_lock *lock = taken(client, "job", 1600);
    ts_sleep_ms(rl_lock_remaining_ms(lock) - 900);
    ts_proxy_fault(proxy, "EVALSHA", 0, TS_DELAY_REPLY, 300);
    ts_equal(rl_extend(lock, 1100, NULL), RL_E_TOO_SLOW);
    check_claim(lock, &P1, 1);
    ts_equal(rl_extend(lock, LONG, NULL), RL_OK);
    ts_check(rl_lock_remaining_ms(lock) > LONG / 2, "not extended");
    check_claim(lock, &P1, 1);
    ts_equal(rl_release(lock), RL_OK);
    rl_client_free(client);
    ts_proxy_stop(proxy);
}

/* ---- Late answers ---------------------------------------------------------------------------------------------------------------- */

struct late {
    ts_proxy *proxy;
    rl_client *client;
    rl_lock *lock;
    int64_t began;
};

/* An extension by LONG whose answer has not come within the node timeout. */
static struct late late_extension(int64_t ttl_ms, int64_t reply_after_ms)
{
    struct late l = {.proxy = ts_proxy_to(P1)};
    l.client = warm_hasty(ts_proxy_url(l.proxy));
    l.lock = taken(l.client, "job", ttl_ms);
    int64_t end = end_of(l.lock);
    ts_proxy_fault(l.proxy, "EVALSHA", 0, TS_DELAY_REPLY, reply_after_ms);
    l.began = ts_now_ms();
    rl_report *report = new_report();
    ts_equal(rl_extend(l.lock, LONG, report), RL_E_NO_QUORUM);
    check_said(report, 0, RL_NODE_NO_ANSWER, NULL);
    check_end(l.lock, end);
    rl_report_free(report);
    return l;
}

static void late_end(struct late *l)
{
    rl_client_free(l->client);
    ts_proxy_stop(l->proxy);
}

static bool was_extended(void *arg)
{
    struct late *l = arg;
    stir(l->client);
    return rl_lock_remaining_ms(l->lock) > LONG / 2;
}

static bool was_lost(void *arg)
{
    struct late *l = arg;
    stir(l->client);
    return rl_lock_remaining_ms(l->lock) == 0;
}

/* S5.2, S2.2: a late "yes" counts from its sending, when it comes. */
static void late_yes(void **state)
{
    (void)state;
    struct late l = late_extension(10000, 2 * brief());
    rl_report *report = new_report();
    ts_equal(rl_extend(l.lock, LONG, report), RL_E_NO_QUORUM); /* it owes an answer: nothing is asked (A6) */
    check_said(report, 0, RL_NODE_LATE, NULL);
    rl_report_free(report);
    ts_check(ts_eventually(SOON, was_extended, &l), "the late answer was not counted");
    ts_between(end_of(l.lock), l.began + LONG - LONG / 100 - 2 - 2, l.began + 2 * brief() + slack() + LONG);
    check_claim(l.lock, &P1, 1);
    ts_equal(rl_release(l.lock), RL_OK);
    late_end(&l);
}

/* S5.5: a late "no such key" ends the lease before its deadline. */
static void late_no(void **state)
{
    (void)state;
    struct late l = {.proxy = ts_proxy_to(P1)};
    l.client = warm_hasty(ts_proxy_url(l.proxy));
    l.lock = taken(l.client, "job", LONG);
    ts_command(P1, "DEL %s", key);
    ts_proxy_fault(l.proxy, "EVALSHA", 0, TS_DELAY_REPLY, 2 * brief());
    ts_equal(rl_extend(l.lock, LONG, NULL), RL_E_NO_QUORUM);
    ts_check(rl_lock_remaining_ms(l.lock) > LONG / 2, "lost too early");
    ts_check(ts_eventually(SOON, was_lost, &l), "the late answer was not counted");
    check_lost(l.lock);
    ts_equal(rl_release(l.lock), RL_LOST);
    late_end(&l);
}

/* S5.5: terminal. The lease ends before the late "yes" comes: it revives nothing, and what it left on the server is released. */
static void late_yes_to_a_lost_lock(void **state)
{
    (void)state;
    struct late l = late_extension(2 * brief(), 3 * brief());
    ts_check(ts_eventually(SOON, is_over, l.lock), "it does not end");
    assert_true(ts_exists(P1, key)); /* the server was asked in time */
    ts_sleep_ms(l.began + 3 * brief() + 50 - ts_now_ms());
    stir(l.client);
    ts_check(rl_lock_remaining_ms(l.lock) <= 0, "revived");
    ts_equal(rl_extend(l.lock, LONG, NULL), RL_LOST);
    ts_equal(rl_lock_remaining_ms(l.lock), 0);
    rl_release(l.lock);
    ts_check(ts_wait_absent(P1, key, SOON), "not released");
    late_end(&l);
}

/* S5.4: released meanwhile. The extension runs before the release, on the same connection; its answer is for nobody. */
static void late_yes_to_a_released_lock(void **state)
{
    (void)state;
    struct late l = late_extension(LONG, 2 * brief());
    ts_equal(rl_release_with(l.lock, RL_NO_WAIT, NULL), RL_OK);
    ts_check(ts_wait_absent(P1, key, SOON), "not released");
    l.lock = NULL;
    ts_sleep_ms(l.began + 2 * brief() + 50 - ts_now_ms());
    rl_lock *again = NULL;
    ts_equal(rl_acquire(l.client, "job", LONG, SOON, &again), RL_OK);
    check_token(P1, rl_lock_token(again));
    ts_equal(rl_release(again), RL_OK);
    late_end(&l);
}

/* ---- Top-up ------------------------------------------------------------------------------------------------------------------------ */

/* S5.3: a node that forgot gets the key again: same token, the extension's ttl, once. */
static void forgetful_node_is_topped_up(void **state)
{
    (void)state;
    rl_client *client = warm(p.urls);
    rl_lock *lock = taken(client, "job", 3000);
    await_calls(P1, "set", 1);
    ts_command(P1, "DEL %s", key);
    ts_equal(rl_extend(lock, LONG, NULL), RL_OK);
    for (int i = 0; i < 3 && !ts_exists(P1, key); i++)
        ts_equal(rl_extend(lock, LONG, NULL), RL_OK);
    ts_check(ts_eventually(SOON, holds_token, lock), "no top-up");
    ts_between(ts_pttl(P1, key), LONG / 2, LONG);
    ts_equal(ts_calls(P1, "set"), 2);
    ts_equal(rl_extend(lock, LONG, NULL), RL_OK);
    await_calls(P3, "evalsha", 2);
    ts_equal(ts_calls(P1, "set") + ts_calls(P2, "set") + ts_calls(P3, "set"), 4);
    check_claim(lock, p.at, 3);
    ts_equal(rl_release(lock), RL_OK);
    check_gone(key);
    rl_client_free(client);
}

/* S5.3: only to nodes that said "absent": another's key is another's. */
static void no_top_up_over_another(void **state)
{
    (void)state;
    rl_client *client = warm(p.urls);
    rl_lock *lock = taken(client, "job", LONG);
    await_calls(P1, "set", 1);
    ts_command(P1, "SET %s another PX 20000", key);
    ts_equal(rl_extend(lock, LONG, NULL), RL_OK);
    ts_equal(rl_extend(lock, LONG, NULL), RL_OK);
    await_calls(P1, "evalsha", 2);
    ts_equal(ts_calls(P1, "set"), 2); /* ours once, and the one by hand */
    check_token(P1, "another");
    ts_between(ts_pttl(P1, key), 1, 20000);
    ts_equal(rl_release(lock), RL_OK);
    rl_client_free(client);
    check_token(P1, "another");
}

/* S5.3: "absent" and no quorum: no top-up. The node that does not answer keeps its vote of old (S5.2). */
static void no_top_up_without_a_quorum(void **state)
{
    (void)state;
    rl_client *client = warm_hasty(p.urls);
    rl_lock *lock = taken(client, "job", LONG);
    for (int i = 0; i < 3; i++)
        await_calls(p.at[i], "set", 1);
    ts_command(P2, "DEL %s", key);
    stir(client); /* the third grant has been read now */
    ts_server_pause(P3);
    ts_equal(rl_extend(lock, LONG, NULL), RL_E_NO_QUORUM);
    ts_check(rl_lock_remaining_ms(lock) > LONG / 2, "lost, though P1 and P3 may hold it");
    assert_false(ts_exists(P2, key));
    ts_server_resume(P3);
    int rc = RL_E_NO_QUORUM;
    for (int64_t limit = ts_now_ms() + SOON; rc == RL_E_NO_QUORUM && ts_now_ms() < limit;)
        rc = rl_extend(lock, LONG, NULL);
    ts_equal(rc, RL_OK);
    ts_equal(rl_release(lock), RL_OK);
    check_gone(key);
    rl_client_free(client);
}

/* E7: the nodes lose their memory one after the other; the lock survives by top-up. */
static void restarted_one_after_the_other(void **state)
{
    (void)state;
    rl_client *client = warm(p.urls);
    rl_lock *lock = taken(client, "job", LONG);
    for (int round = 0; round < 6; round++) {
        ts_server_kill(p.at[round % 3]);
        ts_server_restart(p.at[round % 3]);
        int rc = rl_extend(lock, LONG, NULL);
        ts_check(rc == RL_OK, "after %d restarts: %s", round + 1, rl_strstatus(rc));
        check_claim(lock, p.at, 3);
    }
    ts_equal(rl_extend(lock, LONG, NULL), RL_OK);
    for (int i = 0; i < 3; i++)
        ts_check(ts_wait_present(p.at[i], key, SOON), "no key on P%d", i + 1);
    ts_equal(rl_release(lock), RL_OK);
    check_gone(key);
    rl_client_free(client);
}

/* E7, between renewals that are seconds apart: the dead connection is found before the extension is sent, and the way to the new one
 * is longer than that to the other nodes. */
static void restarted_while_idle(void **state)
{
    (void)state;
    struct net net;
    net_start(&net);
    rl_client *client = warm(net.urls);
    rl_lock *lock = taken(client, "job", LONG);
    check_claim(lock, p.at, 3);
    ts_proxy_delay(net.at[0], TS_DOWN, 10);
    ts_server_kill(P1);
    ts_server_restart(P1);
    ts_sleep_ms(1100);
    ts_equal(rl_extend(lock, LONG, NULL), RL_OK);
    ts_check(ts_eventually(SOON, holds_token, lock), "no top-up");
    ts_sleep_ms(brief()); /* its answer has come, too */
    ts_server_kill(P2);
    ts_server_restart(P2);
    ts_equal(rl_extend(lock, LONG, NULL), RL_OK);
    ts_equal(rl_release(lock), RL_OK);
    check_gone(key);
    rl_client_free(client);
    net_stop(&net);
}

/* E7: two at once are too many. */
static void two_restarted_at_once(void **state)
{
    (void)state;
    rl_client *client = warm(p.urls);
    rl_lock *lock = taken(client, "job", LONG);
    check_claim(lock, p.at, 3);
    ts_server_kill(P1);
    ts_server_kill(P2);
    ts_server_restart(P1);
    ts_server_restart(P2);
    ts_equal(rl_extend(lock, LONG, NULL), RL_LOST);
    check_lost(lock);
    assert_false(ts_exists(P1, key));
    assert_false(ts_exists(P2, key));
    ts_equal(rl_release(lock), RL_LOST);
    check_gone(key);
    rl_client_free(client);
}

/* E8, S5.3: neither an extension nor a top-up comes after the release. */
static void release_right_after(void **state)
{
    (void)state;
    rl_client *client = warm(p.urls);
    for (int i = 0; i < 200; i++) {
        rl_lock *lock = taken(client, "job", LONG);
        if (i % 2)
            ts_command(p.at[i % 3], "DEL %s", key);
        int rc = rl_extend(lock, LONG, NULL);
        ts_check(rc == RL_OK || (i % 2 && rc == RL_LOST), "%s", rl_strstatus(rc));
        if (i % 4 < 2)
            rl_release(lock);
        else
            rl_release_with(lock, RL_NO_WAIT, NULL);
        check_gone(key);
    }
    stir(client);
    ts_equal(ts_servers_holding(&p, key), 0);
    rl_client_free(client);
}

/* ---- A holder that is stopped ----------------------------------------------------------------------------------------------------- */

/* In a child: holds the lock, stops itself, and says what it found when it was continued. */
struct after_stop {
    int64_t remaining, remaining_later;
    int32_t extend, extend_again, release, unused; /* no byte of it unwritten */
};

static int stops_itself(int out, void *arg)
{
    (void)arg;
    struct after_stop found = {0};
    p.count = 0;
    rl_client *client = warm(p.urls);
    rl_lock *lock = taken(client, "job", 300);
    kill(getpid(), SIGSTOP);
    found.remaining = rl_lock_remaining_ms(lock);
    found.extend = rl_extend(lock, LONG, NULL);
    found.remaining_later = rl_lock_remaining_ms(lock);
    found.extend_again = rl_extend(lock, LONG, NULL);
    found.release = rl_release(lock);
    rl_client_free(client);
    return write(out, &found, sizeof found) == sizeof found ? 0 : 1;
}

static void await_stop(const ts_child *child)
{
    int status = 0;
    ts_equal(waitpid(child->pid, &status, WUNTRACED), child->pid);
    ts_check(WIFSTOPPED(status), "the child ended instead of stopping");
}

/* E9: the whole process is stopped for longer than the lease. */
static void holder_stopped_between_calls(void **state)
{
    (void)state;
    struct after_stop found = {0};
    ts_child child = ts_child_start(stops_itself, NULL);
    await_stop(&child);
    check_gone(key);
    rl_client *other = warm(p.urls);
    rl_lock *lock = taken(other, "job", LONG);
    int64_t calls = releases(P1);
    kill(child.pid, SIGCONT);
    ts_child_read(&child, &found, sizeof found, SOON);
    ts_equal(ts_child_wait(&child, SOON), 0);
    ts_check(found.remaining <= 0, "%lld ms are said to remain", (long long)found.remaining);
    ts_equal(found.extend, RL_LOST);
    ts_equal(found.extend_again, RL_LOST);
    ts_equal(found.remaining_later, 0);
    ts_equal(found.release, RL_LOST);
    await_calls(P1, "evalsha", calls + 1); /* the release alone was sent */
    ts_equal(releases(P1), calls + 1);
    check_claim(lock, p.at, 3);
    ts_equal(rl_release(lock), RL_OK);
    rl_client_free(other);
}

static int extends_a_slow_server(int out, void *arg)
{
    const char *url = arg;
    struct after_stop found;
    p.count = 0;
    rl_client *client = warm(url);
    rl_lock *lock = taken(client, "job", 700 + slack());
    kill(getpid(), SIGSTOP); /* when it goes on, the answers are slow */
    found.extend = rl_extend(lock, 300, NULL);
    found.remaining = rl_lock_remaining_ms(lock);
    found.extend_again = rl_extend(lock, LONG, NULL);
    found.remaining_later = rl_lock_remaining_ms(lock);
    found.release = rl_release(lock);
    rl_client_free(client);
    return write(out, &found, sizeof found) == sizeof found ? 0 : 1;
}

/* E9, S1.8: stopped within an extension, which the server grants meanwhile. The answer that lies in the socket is of no use: it is
 * reckoned from the sending. */
static void holder_stopped_within_extend(void **state)
{
    (void)state;
    struct after_stop found;
    ts_proxy *proxy = ts_proxy_to(P1);
    char url[64];
    snprintf(url, sizeof url, "%s", ts_proxy_url(proxy));
    ts_child child = ts_child_start(extends_a_slow_server, url);
    await_stop(&child);
    int64_t calls = ts_calls(P1, "evalsha");
    ts_proxy_fault(proxy, "EVALSHA", 0, TS_DELAY_REPLY, slack());
    kill(child.pid, SIGCONT);
    ts_check(ts_proxy_wait_faults(proxy, SOON), "no extension");
    kill(child.pid, SIGSTOP);
    await_stop(&child);
    await_calls(P1, "evalsha", calls + 1);
    ts_check(ts_wait_absent(P1, key, SOON), "the lease does not end");
    kill(child.pid, SIGCONT);
    ts_child_read(&child, &found, sizeof found, SOON);
    ts_equal(ts_child_wait(&child, SOON), 0);
    ts_check(found.extend != RL_OK, "extended, with %lld ms remaining", (long long)found.remaining);
    ts_check(found.remaining <= 0, "%lld ms are said to remain", (long long)found.remaining);
    ts_equal(found.extend_again, RL_LOST);
    ts_equal(found.remaining_later, 0);
    ts_equal(found.release, RL_LOST);
    ts_proxy_stop(proxy);
}

/* ---- From process to process ------------------------------------------------------------------------------------------------------- */

struct errand { /* what the other process is to do with (name, token) */
    const char *token;
    int64_t ttl_ms; /* extends by that, if not 0 */
    bool release;
};

struct outcome {
    int64_t remaining_before, remaining_after;
    int32_t import, extend, release, unused; /* no byte of it unwritten */
};

static struct outcome run_errand(const struct errand *errand)
{
    struct outcome found = {.extend = 99, .release = 99};
    rl_client *client = warm(p.urls);
    rl_lock *lock = NULL;
    found.import = rl_lock_import(client, "job", 3, errand->token, 0, &lock);
    found.remaining_before = rl_lock_remaining_ms(lock);
    if (errand->ttl_ms)
        found.extend = rl_extend(lock, errand->ttl_ms, NULL);
    found.remaining_after = rl_lock_remaining_ms(lock);
    if (errand->release)
        found.release = rl_release(lock);
    else
        rl_lock_free(lock);
    rl_client_free(client);
    return found;
}

static int errand_child(int out, void *arg)
{
    p.count = 0;
    struct outcome found = run_errand(arg);
    return write(out, &found, sizeof found) == sizeof found ? 0 : 1;
}

static struct outcome in_a_child(const char *token, int64_t ttl_ms, bool release)
{
    struct errand errand = {token, ttl_ms, release};
    struct outcome found;
    ts_equal(ts_fork(errand_child, &errand, &found, sizeof found, NULL), 0);
    ts_equal(found.import, RL_OK);
    ts_equal(found.remaining_before, 0); /* invalid until its own first extend */
    return found;
}

/* S7.3: another process extends, and a third one releases. */
static void handed_to_another_process(void **state)
{
    (void)state;
    rl_client *client = warm(p.urls);
    rl_request request;
    rl_request_init(&request);
    request.name = "job";
    request.name_len = 3;
    request.ttl_ms = 3000;
    request.label = "host 7 (x:y)";
    rl_lock *lock = NULL;
    ts_equal(rl_acquire_with(client, &request, NULL, &lock), RL_OK);
    char token[128];
    snprintf(token, sizeof token, "%s", rl_lock_token(lock));
    ts_check(strlen(token) == 32 + 1 + strlen(request.label) && strcmp(token + 33, request.label) == 0, "%s", token);
    rl_lock_free(lock); /* forgotten here: the other goes on with it */

    struct outcome found = in_a_child(token, LONG, false);
    ts_equal(found.extend, RL_OK);
    ts_between(found.remaining_after, LONG / 2, LONG);
    ts_between(long_leases(), 2, 3);
    for (int i = 0; i < 3; i++)
        check_token(p.at[i], token);
    ts_equal(refused(client, "job", LONG, 0, NULL), RL_BUSY);
    found = in_a_child(token, 0, true); /* a release needs no extend before it */
    ts_equal(found.release, RL_OK);
    check_gone(key);
    found = in_a_child(token, LONG, true);
    ts_equal(found.extend, RL_LOST);
    ts_equal(found.remaining_after, 0);
    ts_equal(found.release, RL_LOST);
    ts_equal(ts_servers_holding(&p, key), 0);
    rl_client_free(client);
}

/* S7.3: two processes with one token are one holder; what the one extended or released, the other finds so. */
static void two_processes_one_holder(void **state)
{
    (void)state;
    rl_client *client = warm(p.urls);
    rl_lock *lock = taken(client, "job", 2000);
    struct outcome found = in_a_child(rl_lock_token(lock), LONG, false);
    ts_equal(found.extend, RL_OK);
    ts_equal(rl_extend(lock, 1000, NULL), RL_OK); /* shortens nothing for the other */
    ts_between(long_leases(), 2, 3);
    found = in_a_child(rl_lock_token(lock), 1000, true);
    ts_equal(found.extend, RL_OK);
    ts_equal(found.release, RL_OK);
    ts_equal(rl_extend(lock, LONG, NULL), RL_LOST);
    check_lost(lock);
    ts_equal(rl_release(lock), RL_LOST);
    rl_client_free(client);
}

/* S7.1: tokens are compared whole. */
static void import_of_what_is_not_ours(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "0123456789abcdef0123456789abcde",
        "0123456789abcdef0123456789abcdef0",
        "0123456789ABCDEF0123456789abcdef",
        "0123456789abcdef0123456789abcdef:",
        "0123456789abcdef0123456789abcdef:a\nb",
        "0123456789abcdef0123456789abcdefx",
    };
    rl_client *client = warm(p.urls);
    rl_lock *lock = taken(client, "job", LONG), *import = NULL;
    char token[128];
    snprintf(token, sizeof token, "%s:label", rl_lock_token(lock));
    int64_t end = end_of(lock);
    struct outcome found = in_a_child(token, 2 * LONG, true);
    ts_equal(found.extend, RL_LOST);
    ts_equal(found.release, RL_LOST);
    found = in_a_child("0123456789abcdef0123456789abcdef", 2 * LONG, true);
    ts_equal(found.extend, RL_LOST);
    ts_equal(found.release, RL_LOST);
    check_end(lock, end);
    for (int i = 0; i < 3; i++) {
        check_token(p.at[i], rl_lock_token(lock));
        ts_between(ts_pttl(p.at[i], key), 1, LONG);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        import = lock;
        ts_equal(rl_lock_import(client, "job", 3, bad[i], 0, &import), RL_E_INVALID);
        assert_null(import);
    }
    ts_equal(rl_lock_import(client, "job", 0, rl_lock_token(lock), 0, &import), RL_E_INVALID);
    ts_equal(rl_lock_import(client, NULL, 3, rl_lock_token(lock), 0, &import), RL_E_INVALID);
    ts_equal(rl_lock_import(NULL, "job", 3, rl_lock_token(lock), 0, &import), RL_E_INVALID);
    ts_equal(rl_lock_import(client, "job", 3, NULL, 0, &import), RL_E_INVALID);
    ts_equal(rl_lock_import(client, "job", 3, rl_lock_token(lock), 0, NULL), RL_E_INVALID);
    ts_equal(rl_release(lock), RL_OK);
    rl_client_free(client);
}

/* S7.3: an import is valid only once a quorum has confirmed; until then it may be tried again. */
static void import_without_a_quorum(void **state)
{
    (void)state;
    rl_client *client = warm(p.urls);
    rl_lock *lock = taken(client, "job", LONG), *import = NULL;
    check_claim(lock, p.at, 3);
    rl_client *other = warm_hasty(p.urls);
    ts_server_pause(P2);
    ts_server_pause(P3);
    ts_equal(rl_lock_import(other, "job", 3, rl_lock_token(lock), 0, &import), RL_OK);
    assert_string_equal(rl_lock_token(import), rl_lock_token(lock));
    ts_equal(rl_extend(import, LONG, NULL), RL_E_NO_QUORUM);
    ts_equal(rl_lock_remaining_ms(import), 0);
    ts_server_resume(P2);
    ts_server_resume(P3);
    int rc = RL_E_NO_QUORUM;
    for (int64_t limit = ts_now_ms() + SOON; rc == RL_E_NO_QUORUM && ts_now_ms() < limit;)
        rc = rl_extend(import, LONG, NULL);
    ts_equal(rc, RL_OK);
    check_claim(import, p.at, 3);
    ts_check(rl_lock_remaining_ms(import) > LONG / 2, "not valid");
    ts_equal(rl_release(import), RL_OK);
    check_gone(key);
    rl_lock_free(lock);
    rl_client_free(other);
    rl_client_free(client);
}

static const char errand_word[] = "--errand";

static int inheritable_descriptors(void)
{
    int count = 0;
    for (int fd = 0; fd < 1024; fd++) {
        int flags = fcntl(fd, F_GETFD);
        count += flags != -1 && !(flags & FD_CLOEXEC);
    }
    return count;
}

/* S7.3, fork and exec: this program again, as another one, while the lock is held and the connections are open; it gets none of
 * them. */
static void handed_to_another_program(void **state)
{
    (void)state;
    int before = inheritable_descriptors();
    rl_client *client = warm(p.urls);
    rl_lock *lock = taken(client, "job", 3000);
    ts_equal(inheritable_descriptors(), before);
    char token[64];
    snprintf(token, sizeof token, "%s", rl_lock_token(lock));
    char name[] = "errand", word[sizeof errand_word];
    memcpy(word, errand_word, sizeof word);
    char *argv[] = {name, word, p.urls, token, NULL};
    extern char **environ;
    pid_t pid = 0;
    int status = 0;
    char self[512] = ""; /* by its name: under valgrind /proc/self/exe is valgrind, but its name is ours */
    ts_check(readlink("/proc/self/exe", self, sizeof self - 1) > 0, "no name of this program");
    ts_equal(posix_spawn(&pid, self, NULL, NULL, argv, environ), 0);
    ts_equal(waitpid(pid, &status, 0), pid);
    ts_check(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the other program: %d", status);
    check_gone(key);
    ts_equal(rl_extend(lock, LONG, NULL), RL_LOST);
    ts_equal(rl_release(lock), RL_LOST);
    rl_client_free(client);
}

/* The other program: it has nothing but the URLs and the token. */
static int errand_main(const char *urls, const char *token)
{
    snprintf(p.urls, sizeof p.urls, "%s", urls);
    struct outcome found = run_errand(&(struct errand){token, LONG, true});
    if (found.import || found.extend || found.release || found.remaining_before || found.remaining_after <= 0) {
        fprintf(stderr, "errand: import %d, extend %d, release %d\n", found.import, found.extend, found.release);
        return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], errand_word) == 0)
        return errand_main(argv[2], argv[3]);
    const struct CMUnitTest tests[] = {
        REAL_TEST(lasts_ttl_from_now),
        REAL_TEST(never_shortens),
        REAL_TEST(lost_answer_of_shorter_extension),
        REAL_TEST(one_node_stopped),
        REAL_TEST(scripts_flushed),
        REAL_TEST(one_eval_after_a_flush),
        REAL_TEST(memory_is_full),
        REAL_TEST(refused_arguments),
        REAL_TEST(deleted_by_hand),
        REAL_TEST(expired_and_taken_over),
        REAL_TEST(taken_over_within_the_lease),
        REAL_TEST(over_by_the_local_clock),
        REAL_TEST(held_on_two_one_forgets),
        REAL_TEST(key_of_another_type),
        REAL_TEST(at_the_edge_of_the_lease),
        REAL_TEST(two_nodes_delayed),
        REAL_TEST(errors_are_retried),
        REAL_TEST(too_slow),
        REAL_TEST(late_yes),
        REAL_TEST(late_no),
        REAL_TEST(late_yes_to_a_lost_lock),
        REAL_TEST(late_yes_to_a_released_lock),
        REAL_TEST(forgetful_node_is_topped_up),
        REAL_TEST(no_top_up_over_another),
        REAL_TEST(no_top_up_without_a_quorum),
        REAL_TEST(restarted_one_after_the_other),
        REAL_TEST(restarted_while_idle),
        REAL_TEST(two_restarted_at_once),
        REAL_TEST(release_right_after),
        REAL_TEST(holder_stopped_between_calls),
        REAL_TEST(holder_stopped_within_extend),
        REAL_TEST(handed_to_another_process),
        REAL_TEST(two_processes_one_holder),
        REAL_TEST(import_of_what_is_not_ours),
        REAL_TEST(import_without_a_quorum),
        REAL_TEST(handed_to_another_program),
    };
    return REAL_RUN("extend", tests);
}
