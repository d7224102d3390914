/* test_release.c - giving a lock back on real servers: what the verdict says, and that nothing of ours stays anywhere.
 */
#include "real.h"

#include <unistd.h>

/* The bound that rl_report_free_in_ms may not exceed: the lease on the slowest allowed clock. */
static int64_t longest(int64_t ttl_ms)
{
    return ttl_ms + ttl_ms / 100 + 3;
}

static bool is_over(void *lock)
{
    return rl_lock_remaining_ms(lock) < 0; /* 0 may be a part of a millisecond */
}

static void await_end(rl_lock *lock)
{
    ts_check(ts_eventually(SOON, is_over, lock), "the lease does not end");
}

/* ---- R1, R2: the lease is over ----------------------------------------------------------------------------------------------- */

/* R1, S6.3 */
static void released_too_late(void **state)
{
    (void)state;
    rl_client *client = patient(p.urls);
    rl_report *report = new_report();
    warm_up(client);
    rl_lock *lock = taken(client, "r1", 100);
    await_end(lock);
    check_gone("rl:r1");
    ts_equal(rl_release_with(lock, 0, report), RL_LOST);
    ts_equal(rl_report_free_in_ms(report), 0);
    rl_client_free(client);
    for (int i = 0; i < 3; i++) { /* one round trip, no retries */
        ts_equal(releases(p.at[i]), 1);
        ts_equal(ts_calls(p.at[i], "set"), 1);
    }
    rl_report_free(report);
}

/* S6.2: it is over by the local clock alone; a quorum proves that it was ours all the same. */
static void released_before_the_servers_end_it(void **state)
{
    (void)state;
    rl_client *client = patient(p.urls);
    for (int own = 3; own >= 1; own--) {
        warm_up(client);
        rl_lock *lock = taken(client, "r1", 300);
        for (int i = 0; i < own; i++) {
            ts_check(ts_wait_present(p.at[i], "rl:r1", SOON), "not there");
            ts_command(p.at[i], "PEXPIRE rl:r1 %d", LONG);
        }
        await_end(lock);
        for (int i = own; i < 3; i++)
            ts_check(ts_wait_absent(p.at[i], "rl:r1", SOON), "it does not end");
        ts_equal(rl_release(lock), own >= 2 ? RL_OK : RL_LOST);
        check_gone("rl:r1");
    }
    rl_client_free(client);
}

/* R2 */
static void released_after_another_took_over(void **state)
{
    (void)state;
    rl_client *a = patient(p.urls), *b = patient(p.urls);
    rl_report *report = new_report();
    rl_lock *lock_a = taken(a, "r2", 100), *lock_b = NULL;
    ts_equal(rl_acquire(b, "r2", LONG, LONG, &lock_b), RL_OK);
    await_end(lock_a);
    ts_equal(rl_release_with(lock_a, 0, report), RL_LOST);
    int other = 0;
    for (size_t i = 0; i < 3; i++)
        other += said(report, i).outcome == RL_NODE_HELD_BY_OTHER;
    ts_check(other >= 1, "no node says that another holds it");
    rl_client_free(a);
    int held = 0;
    for (int i = 0; i < 3; i++)
        held += ts_holds(p.at[i], "rl:r2", rl_lock_token(lock_b));
    ts_check(held >= 2, "the other's key was touched");
    ts_equal(rl_release(lock_b), RL_OK);
    rl_client_free(b);
    rl_report_free(report);
}

/* A server that was restarted without its data has forgotten the lock, and gives it to another: the holder is told, although its
 * release goes out on a connection that is dead. */
static void a_restarted_server_has_forgotten_it(void **state)
{
    (void)state;
    for (int taken_again = 0; taken_again < 2; taken_again++) {
        rl_client *a = patient(ts_server_url(P1)), *b = patient(ts_server_url(P1));
        rl_lock *lock = taken(a, "forgotten", LONG), *other = NULL;
        ts_server_kill(P1);
        ts_server_restart(P1);
        if (taken_again)
            ts_equal(rl_acquire(b, "forgotten", LONG, 0, &other), RL_OK);
        ts_sleep_ms(20); /* no server is restarted sooner */
        ts_equal(rl_release(lock), RL_LOST);
        if (other) {
            ts_check(ts_holds(P1, "rl:forgotten", rl_lock_token(other)), "the other's key was touched");
            ts_equal(rl_release(other), RL_OK);
        }
        rl_client_free(a);
        rl_client_free(b);
    }
}

/* S6.2: in time, with the key gone from one node, or another's there, it was protected to its end; with two it was not. */
static void some_nodes_have_lost_it(void **state)
{
    (void)state;
    rl_client *client = patient(p.urls);
    static const int lost[] = {1, 2, 1, 2};
    for (int round = 0; round < 4; round++) {
        warm_up(client);
        rl_lock *lock = taken(client, "some", LONG);
        for (int i = 0; i < 3; i++)
            ts_check(ts_wait_present(p.at[i], "rl:some", SOON), "not on all");
        ts_equal(rl_client_check(client, NULL), RL_OK); /* all grants are in */
        for (int i = 0; i < lost[round]; i++)
            round < 2 ? (void)ts_del(p.at[i], "rl:some") : hold(p.at[i], "rl:some", 0);
        ts_equal(rl_release(lock), lost[round] == 1 ? RL_OK : RL_LOST);
        for (int i = lost[round]; i < 3; i++)
            ts_check(ts_wait_absent(p.at[i], "rl:some", SOON), "it is still there");
        for (int i = 0; i < 3; i++)
            ts_command(p.at[i], "FLUSHALL");
    }
    rl_client_free(client);
}

/* S6.2: when two have lost it, the third need not be waited for. */
static void lost_whatever_the_third_says(void **state)
{
    (void)state;
    rl_client *client = patient(p.urls);
    warm_up(client);
    rl_lock *lock = taken(client, "some", LONG);
    for (int i = 0; i < 3; i++)
        ts_check(ts_wait_present(p.at[i], "rl:some", SOON), "not on all");
    ts_del(P1, "rl:some");
    ts_del(P2, "rl:some");
    ts_server_pause(P3);
    int64_t start = ts_mono_ms();
    ts_equal(rl_release(lock), RL_LOST);
    ts_check(ts_mono_ms() - start < SOON, "P3 was waited for");
    ts_server_resume(P3);
    check_gone("rl:some");
    rl_client_free(client);
}

/* S2.4 */
static void a_hash_took_its_place(void **state)
{
    (void)state;
    rl_client *client = patient(ts_server_url(P1));
    rl_report *report = new_report();
    rl_lock *lock = taken(client, "hash", LONG);
    ts_del(P1, "rl:hash");
    ts_command(P1, "HSET rl:hash field value");
    ts_equal(rl_release_with(lock, 0, report), RL_LOST);
    check_said(report, 0, RL_NODE_HELD_BY_OTHER, "WRONGTYPE");
    ts_check(ts_exists(P1, "rl:hash"), "the hash was touched");
    rl_client_free(client);
    rl_report_free(report);
}

/* ---- R3, R5: nodes that do not answer ---------------------------------------------------------------------------------------- */

/* R3 */
static void a_stopped_node_is_not_waited_for(void **state)
{
    (void)state;
    rl_client *client = patient(p.urls);
    rl_report *report = new_report();
    warm_up(client);
    rl_lock *lock = taken(client, "r3", LONG);
    ts_server_pause(P2);
    int64_t start = ts_mono_ms();
    ts_equal(rl_release_with(lock, 0, report), RL_OK);
    ts_check(ts_mono_ms() - start < SOON, "P2 was waited for");
    check_said(report, 1, RL_NODE_PENDING, NULL);
    ts_equal(rl_report_free_in_ms(report), 0);
    ts_server_resume(P2);
    ts_check(ts_wait_absent(P2, "rl:r3", SOON), "P2 was not cleaned");
    rl_client_free(client);
    rl_report_free(report);
}

/* R3, S6.2: the third grant had not been read when the release was called; what it deletes was ours. */
static void a_late_grant_counts_at_release(void **state)
{
    (void)state;
    rl_client *client = patient(p.urls);
    warm_up(client);
    ts_server_pause(P3);
    rl_lock *lock = taken(client, "r3", LONG);
    ts_server_pause(P2);
    ts_server_resume(P3);
    int64_t start = ts_mono_ms();
    ts_equal(rl_release(lock), RL_OK);
    ts_check(ts_mono_ms() - start < SOON, "P2 was waited for");

    ts_server_resume(P2);
    ts_server_pause(P3);
    lock = taken(client, "r3", LONG);
    ts_del(P1, "rl:r3");
    ts_server_resume(P3);
    ts_check(ts_wait_present(P3, "rl:r3", SOON), "not on P3");
    ts_equal(rl_release(lock), RL_OK);
    rl_client_free(client);
    check_gone("rl:r3");
}

/* R3: P2 was stopped for so long that the library no longer asks it anything but this. */
static void a_late_node_is_sent_its_release(void **state)
{
    (void)state;
    rl_client *client = hasty(p.urls, 100);
    rl_report *report = new_report();
    rl_lock *lock = NULL, *other = NULL;
    warm_up(client);
    ts_equal(rl_acquire(client, "r3", LONG, LONG, &lock), RL_OK);
    ts_check(ts_wait_present(P2, "rl:r3", SOON), "not on P2");
    ts_server_pause(P2);
    for (int64_t end = ts_mono_ms() + SOON; ts_mono_ms() < end;) { /* until P2 is late */
        ts_equal(take(client, "other", LONG, LONG, report, &other), RL_OK);
        int outcome = said(report, 1).outcome;
        rl_release(other);
        if (outcome == RL_NODE_LATE)
            break;
    }
    check_said(report, 1, RL_NODE_LATE, NULL);
    rl_release(lock);
    ts_server_resume(P2);
    ts_check(ts_wait_absent(P2, "rl:r3", SOON), "P2 was not cleaned");
    rl_client_free(client);
    ts_equal(ts_dbsize(P2), 0);
    rl_report_free(report);
}

static void release_with_all_down(void (*put_down)(ts_server *), int64_t least_ms)
{
    rl_client *client = hasty(p.urls, 200);
    rl_report *report = new_report();
    rl_lock *lock = NULL;
    ts_equal(rl_acquire(client, "r5", LONG, LONG, &lock), RL_OK);
    for (int i = 0; i < 3; i++)
        put_down(p.at[i]);
    int64_t start = ts_mono_ms(), left = rl_lock_remaining_ms(lock);
    ts_equal(rl_release_with(lock, 0, report), RL_E_NO_QUORUM);
    ts_between(ts_mono_ms() - start, least_ms, 200 + slack());
    ts_between(rl_report_free_in_ms(report), left - 200 - slack(), longest(LONG));
    rl_client_free(client);
    rl_report_free(report);
}

/* R5 */
static void all_nodes_are_down(void **state)
{
    (void)state;
    release_with_all_down(ts_server_kill, 0);
}

/* R5 */
static void all_nodes_are_stopped(void **state)
{
    (void)state;
    release_with_all_down(ts_server_pause, 195);
    for (int i = 0; i < 3; i++)
        ts_server_resume(p.at[i]);
    check_gone("rl:r5"); /* S6.1: it reached them all the same */
}

/* ---- R4: not allowed to ------------------------------------------------------------------------------------------------------ */

/* R4 */
static void a_user_who_may_only_set(void **state)
{
    (void)state;
    char url[128];
    snprintf(url, sizeof url, "redis://weak:pw@127.0.0.1:%d", ts_server_port(P1));
    ts_command(P1, "ACL SETUSER weak on >pw ~* +set +get +del +pttl +pexpire +info +client");
    rl_client *client = patient(url);
    rl_report *report = new_report();
    ts_equal(rl_client_check(client, report), RL_E_AUTH);
    check_said(report, 0, RL_NODE_ERROR, "NOPERM");

    rl_lock *lock = taken(client, "r4", 300);
    ts_equal(rl_release_with(lock, 0, report), RL_E_AUTH);
    check_said(report, 0, RL_NODE_ERROR, "NOPERM");
    ts_between(rl_report_free_in_ms(report), 1, longest(300));
    ts_command(P1, "ACL DELUSER weak");
    rl_client_free(client);
    rl_report_free(report);
}

/* R4, S2.8: the denial comes from inside the script. */
static void a_user_whose_scripts_may_not_delete(void **state)
{
    (void)state;
    char url[128];
    snprintf(url, sizeof url, "redis://weak:pw@127.0.0.1:%d", ts_server_port(P1));
    /* "can't run this command", or since 7.2 "has no permissions to run the 'del' command" */
    static const char words[] = " run th";
    ts_command(P1, "ACL SETUSER weak on >pw ~* +@all -del");
    rl_client *client = patient(url);
    rl_report *report = new_report();
    ts_equal(rl_client_check(client, report), RL_E_AUTH);
    check_said(report, 0, RL_NODE_ERROR, words);

    rl_lock *lock = taken(client, "r4", 300);
    ts_equal(rl_release_with(lock, 0, report), RL_E_AUTH);
    check_said(report, 0, RL_NODE_ERROR, words);
    ts_command(P1, "ACL DELUSER weak");
    rl_client_free(client);
    rl_report_free(report);
}

/* ---- R6: no ghosts ----------------------------------------------------------------------------------------------------------- */

/* R6, S3.3: SET and release lie before a stopped server when the client ends its connection. */
static void a_stopped_node_whose_client_is_gone(void **state)
{
    (void)state;
    rl_client *client = hasty(ts_server_url(P1), 100);
    warm_up(client);
    ts_server_pause(P1);
    ts_equal(refused(client, "r6", LONG, 0, NULL), RL_E_NO_QUORUM);
    int64_t start = ts_mono_ms();
    rl_client_free(client);
    ts_between(ts_mono_ms() - start, 0, 100 + slack());
    ts_server_resume(P1);
    await_calls(P1, "evalsha", 1);
    ts_equal(ts_calls(P1, "set"), 1);
    ts_equal(ts_dbsize(P1), 0);
}

/* R6, S3.4: the SET is held by something on the way when the connection breaks; the connection is killed, so it never arrives. */
static void a_held_set_of_a_broken_connection(void **state)
{
    (void)state;
    ts_proxy *proxy = ts_proxy_to(P1);
    rl_client *client = patient(ts_proxy_url(proxy));
    warm_up(client);
    ts_proxy_fault(proxy, "SET", 0, TS_HOLD_AND_CUT, 0);
    rl_lock *lock = taken(client, "r6", LONG); /* the repeated attempt */
    ts_equal(ts_proxy_requests(proxy, "CLIENT KILL"), 1);
    ts_proxy_unhold(proxy);
    ts_check(ts_holds(P1, "rl:r6", rl_lock_token(lock)), "another token");
    ts_equal(rl_release(lock), RL_OK);
    rl_client_free(client);
    ts_proxy_stop(proxy);
    ts_equal(ts_calls(P1, "set"), 1);
    ts_equal(ts_dbsize(P1), 0);
}

/* R6, S3.4: the lock is won on the other nodes, so it is the release that meets the lost connection. */
static void a_held_set_on_one_of_three(void **state)
{
    (void)state;
    struct net net;
    net_start(&net);
    rl_client *client = patient(net.urls);
    warm_up(client);
    ts_proxy_fault(net.at[1], "SET", 0, TS_HOLD_AND_CUT, 0);
    rl_lock *lock = taken(client, "r6", LONG);
    ts_check(ts_proxy_wait_faults(net.at[1], SOON), "no SET came to P2");
    ts_equal(rl_release(lock), RL_OK);
    rl_client_free(client); /* whatever is still owed to P2 */
    ts_equal(ts_proxy_requests(net.at[1], "CLIENT KILL"), 1);
    ts_proxy_unhold(net.at[1]);
    net_stop(&net);
    ts_equal(ts_calls(P2, "set"), 0);
    for (int i = 0; i < 3; i++)
        ts_equal(ts_dbsize(p.at[i]), 0);
}

/* S3.4: where KILL is forbidden, the SET in transit may arrive after all. It is then there for at most its lease. */
static void a_held_set_without_the_right_to_kill(void **state)
{
    (void)state;
    char url[128];
    ts_proxy *proxy = ts_proxy_to(P1);
    snprintf(url, sizeof url, "redis://weak:pw@127.0.0.1:%d", ts_proxy_port(proxy));
    ts_command(P1, "ACL SETUSER weak on >pw ~* +@all -client|kill");
    rl_client *client = patient(url);
    warm_up(client);
    ts_proxy_fault(proxy, "SET", 0, TS_HOLD_AND_CUT, 0);
    rl_lock *lock = taken(client, "r6", 300);
    ts_equal(ts_proxy_requests(proxy, "CLIENT KILL"), 1);
    ts_equal(rl_release(lock), RL_OK);
    ts_proxy_unhold(proxy);
    await_calls(P1, "set", 2);
    lock = NULL;
    ts_equal(rl_acquire(client, "r6", 300, LONG, &lock), RL_OK);
    ts_check(ts_holds(P1, "rl:r6", rl_lock_token(lock)), "another token");
    rl_lock_free(lock);
    ts_command(P1, "ACL DELUSER weak");
    rl_client_free(client);
    ts_proxy_stop(proxy);
}

/* S6.2: a release whose reply was lost is sent again, and "absent" is then its own doing. */
static void a_lost_reply_to_a_release(void **state)
{
    (void)state;
    static const ts_fault faults[] = {TS_RESET_UNANSWERED, TS_RESET_BEFORE};
    for (int i = 0; i < 2; i++) {
        ts_proxy *proxy = ts_proxy_to(P1);
        rl_client *client = patient(ts_proxy_url(proxy));
        rl_lock *lock = taken(client, "lost", LONG);
        ts_proxy_fault(proxy, "EVALSHA", 0, faults[i], 0);
        ts_equal(rl_release(lock), RL_OK);
        ts_equal(ts_dbsize(P1), 0);
        rl_client_free(client);
        ts_proxy_stop(proxy);
    }
}

/* S3.1, S3.7: a release that met a node which was down is delivered when it is back. */
static void a_node_that_was_away_is_cleaned_later(void **state)
{
    (void)state;
    static const char *const args[] = {"--appendonly", "yes", "--appendfsync", "always", NULL};
    ts_server *lasting = ts_server_start(args);
    char urls[256];
    snprintf(urls, sizeof urls, "%s,%s,%s", ts_server_url(P1), ts_server_url(P2), ts_server_url(lasting));
    rl_client *client = patient(urls);
    warm_up(client);
    rl_lock *lock = taken(client, "away", LONG);
    ts_check(ts_wait_present(lasting, "rl:away", SOON), "not on P3");
    ts_server_kill(lasting);
    ts_equal(rl_release(lock), RL_OK);
    ts_server_restart(lasting);
    ts_check(ts_exists(lasting, "rl:away"), "P3 forgot");
    for (int64_t end = ts_mono_ms() + SOON; ts_exists(lasting, "rl:away") && ts_mono_ms() < end;)
        ts_equal(rl_client_check(client, NULL), RL_OK); /* any call drives */
    ts_check(!ts_exists(lasting, "rl:away"), "P3 was not cleaned");
    rl_client_free(client);
}

/* ---- Without waiting --------------------------------------------------------------------------------------------------------- */

static void released_without_waiting(void **state)
{
    (void)state;
    rl_client *client = patient(p.urls);
    rl_report *report = new_report();
    warm_up(client);
    rl_lock *lock = taken(client, "quick", LONG);
    for (int i = 0; i < 3; i++)
        ts_server_pause(p.at[i]);
    int64_t start = ts_mono_ms();
    ts_equal(rl_release_with(lock, RL_NO_WAIT, report), RL_OK);
    ts_check(ts_mono_ms() - start < SOON, "it waited");
    for (size_t i = 0; i < 3; i++)
        check_said(report, i, RL_NODE_PENDING, NULL);
    ts_between(rl_report_free_in_ms(report), LONG - 2 * SOON, longest(LONG));
    for (int i = 0; i < 3; i++)
        ts_server_resume(p.at[i]);
    check_gone("rl:quick");
    rl_client_free(client);
    rl_report_free(report);
}

/* S6.2, S6.3 */
static void released_too_late_without_waiting(void **state)
{
    (void)state;
    rl_client *client = patient(p.urls);
    rl_lock *lock = taken(client, "quick", 100);
    await_end(lock);
    ts_equal(rl_release_with(lock, RL_NO_WAIT, NULL), RL_LOST);
    rl_client_free(client);
    check_gone("rl:quick");
}

/* Nothing can be written yet: it is not sent, and made up for later. */
static void released_without_waiting_or_connections(void **state)
{
    (void)state;
    rl_client *a = patient(p.urls), *b = patient(p.urls);
    rl_report *report = new_report();
    rl_lock *held = taken(a, "quick", LONG), *imported = NULL;
    ts_equal(rl_lock_import(b, "quick", 5, rl_lock_token(held), 0, &imported), RL_OK);
    rl_lock_free(held);
    ts_equal(rl_release_with(imported, RL_NO_WAIT, report), RL_E_NO_QUORUM);
    ts_equal(rl_report_free_in_ms(report), -1);
    ts_equal(rl_client_check(b, NULL), RL_OK);
    rl_client_free(b);
    rl_client_free(a);
    check_gone("rl:quick");
    rl_report_free(report);
}

/* ---- Handles ----------------------------------------------------------------------------------------------------------------- */

/* S6.3 */
static void invalid_arguments_consume_nothing(void **state)
{
    (void)state;
    rl_client *client = patient(p.urls);
    rl_report *report = new_report();
    rl_lock *lock = taken(client, "invalid", LONG);
    ts_equal(rl_release(NULL), RL_E_INVALID);
    ts_equal(rl_release_with(NULL, RL_NO_WAIT, report), RL_E_INVALID);
    ts_equal(rl_release_with(lock, 2, report), RL_E_INVALID);
    ts_equal(rl_release_with(lock, UINT32_MAX, report), RL_E_INVALID);
    ts_check(rl_lock_remaining_ms(lock) > 0, "the lock is gone");
    ts_equal(rl_release(lock), RL_OK);
    rl_lock_free(NULL);
    rl_client_free(client);
    rl_report_free(report);
}

/* Forgetting says nothing to anybody. */
static void forgotten_locks_stay_until_their_lease_ends(void **state)
{
    (void)state;
    rl_client *client = patient(p.urls);
    rl_lock *lock = taken(client, "forgotten", 300);
    rl_lock_free(lock);
    rl_client_free(client);
    for (int i = 0; i < 3; i++)
        ts_equal(releases(p.at[i]), 0);
    check_gone("rl:forgotten");
}

static void the_client_is_gone(void **state)
{
    (void)state;
    rl_client *client = patient(p.urls);
    rl_report *report = new_report();
    warm_up(client);
    rl_lock *one = taken(client, "one", LONG), *two = taken(client, "two", LONG), *three = taken(client, "three", LONG);
    rl_client_free(client);
    for (int i = 0; i < 3; i++)
        ts_command(p.at[i], "CONFIG RESETSTAT");
    ts_equal(rl_extend(one, LONG, report), RL_E_CLOSED);
    ts_check(rl_lock_remaining_ms(one) > 0, "the old deadline does not stand");
    ts_check(strlen(rl_lock_token(one)) == 32 && strcmp(rl_lock_name(one, NULL), "one") == 0, "the handle is spoilt");
    ts_equal(rl_release_with(one, 0, report), RL_E_CLOSED);
    ts_equal(rl_release_with(two, RL_NO_WAIT, report), RL_E_CLOSED);
    rl_lock_free(three);
    for (int i = 0; i < 3; i++) {
        ts_equal(releases(p.at[i]), 0);
        ts_check(ts_exists(p.at[i], "rl:one"), "something was sent");
    }
    rl_report_free(report);
}

/* ---- Imported handles -------------------------------------------------------------------------------------------------------- */

static rl_lock *imported(rl_client *client, const char *name, const char *token)
{
    rl_lock *lock = NULL;
    ts_equal(rl_lock_import(client, name, strlen(name), token, 0, &lock), RL_OK);
    ts_equal(rl_lock_remaining_ms(lock), 0);
    ts_check(strcmp(rl_lock_token(lock), token) == 0, "token %s", rl_lock_token(lock));
    ts_check(strcmp(rl_lock_name(lock, NULL), name) == 0, "name %s", (const char *)rl_lock_name(lock, NULL));
    return lock;
}

/* S7.3 */
static void an_imported_lock_is_released(void **state)
{
    (void)state;
    rl_client *a = patient(p.urls), *b = patient(p.urls);
    rl_lock *held = taken(a, "import", LONG);
    ts_equal(rl_release(imported(b, "import", rl_lock_token(held))), RL_OK);
    rl_client_free(b);
    check_gone("rl:import");
    ts_equal(rl_release(held), RL_LOST); /* one holder, and it has released */
    rl_client_free(a);
}

static int work_on(int out, void *token)
{
    rl_client *client = patient(p.urls);
    rl_lock *lock = imported(client, "import", token);
    int rc = rl_extend(lock, LONG, NULL);
    int64_t left = rl_lock_remaining_ms(lock);
    ssize_t n = write(out, &left, sizeof left);
    if (rc == RL_OK)
        rc = rl_release(lock);
    rl_client_free(client);
    return n == sizeof left ? rc : 99;
}

/* S7.3: by another process, with a label. */
static void an_imported_lock_is_extended_and_released(void **state)
{
    (void)state;
    rl_client *client = patient(p.urls);
    rl_request request;
    rl_request_init(&request);
    request.name = "import";
    request.name_len = 6;
    request.ttl_ms = LONG / 2;
    request.label = "host 7: worker";
    rl_lock *lock = NULL;
    ts_equal(rl_acquire_with(client, &request, NULL, &lock), RL_OK);
    int64_t left = 0;
    ts_equal(ts_fork(work_on, (void *)(uintptr_t)rl_lock_token(lock), &left, sizeof left, NULL), RL_OK);
    ts_between(left, LONG / 2, LONG);
    check_gone("rl:import");
    rl_lock_free(lock);
    rl_client_free(client);
}

/* S7.3 */
static void an_imported_lock_that_nobody_holds(void **state)
{
    (void)state;
    static const char token[] = "0123456789abcdef0123456789abcdef";
    rl_client *client = patient(p.urls);
    rl_report *report = new_report();
    rl_lock *lock = imported(client, "import", token);
    ts_equal(rl_extend(lock, LONG, NULL), RL_LOST);
    ts_equal(rl_lock_remaining_ms(lock), 0);
    ts_equal(rl_release(lock), RL_LOST);
    ts_equal(rl_release_with(imported(client, "import", token), 0, report), RL_LOST);
    for (int i = 0; i < 3; i++)
        hold(p.at[i], "rl:import", 0);
    ts_equal(rl_release_with(imported(client, "import", token), 0, report), RL_LOST);
    for (int i = 0; i < 3; i++)
        ts_check(ts_holds(p.at[i], "rl:import", foreign), "the other's key was touched");
    rl_client_free(client);
    rl_report_free(report);
}

static void tokens_of_another_form(void **state)
{
    (void)state;
    static const char *const tokens[] = {"",
                                         "0123456789abcdef0123456789abcde",
                                         "0123456789abcdef0123456789abcdef0",
                                         "0123456789ABCDEF0123456789abcdef",
                                         "0123456789abcdef0123456789abcdef:",
                                         "0123456789abcdef0123456789abcdef;label",
                                         "0123456789abcdef0123456789abcdef:la\nbel",
                                         ("0123456789abcdef0123456789abcdef:"
                                          "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0")};
    static const char good[] = "0123456789abcdef0123456789abcdef";
    rl_client *client = patient(p.urls);
    rl_lock *lock = (rl_lock *)(uintptr_t)1;
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++) {
        ts_check(rl_lock_import(client, "import", 6, tokens[i], 0, &lock) == RL_E_INVALID, "token \"%s\" was taken", tokens[i]);
        ts_check(lock == NULL, "*ret_lock was not set to NULL");
    }
    ts_equal(rl_lock_import(client, "import", 6, NULL, 0, &lock), RL_E_INVALID);
    ts_equal(rl_lock_import(client, NULL, 6, good, 0, &lock), RL_E_INVALID);
    ts_equal(rl_lock_import(client, "", 0, good, 0, &lock), RL_E_INVALID);
    ts_equal(rl_lock_import(client, "import", RL_MAX_NAME + 1, good, 0, &lock), RL_E_INVALID);
    ts_equal(rl_lock_import(client, "import", 6, good, 0, NULL), RL_E_INVALID);
    ts_equal(rl_lock_import(NULL, "import", 6, good, 0, &lock), RL_E_INVALID);
    rl_client_free(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        REAL_TEST(released_too_late),
        REAL_TEST(released_before_the_servers_end_it),
        REAL_TEST(released_after_another_took_over),
        REAL_TEST(a_restarted_server_has_forgotten_it),
        REAL_TEST(some_nodes_have_lost_it),
        REAL_TEST(lost_whatever_the_third_says),
        REAL_TEST(a_hash_took_its_place),
        REAL_TEST(a_stopped_node_is_not_waited_for),
        REAL_TEST(a_late_grant_counts_at_release),
        REAL_TEST(a_late_node_is_sent_its_release),
        REAL_TEST(all_nodes_are_down),
        REAL_TEST(all_nodes_are_stopped),
        REAL_TEST(a_user_who_may_only_set),
        REAL_TEST(a_user_whose_scripts_may_not_delete),
        REAL_TEST(a_stopped_node_whose_client_is_gone),
        REAL_TEST(a_held_set_of_a_broken_connection),
        REAL_TEST(a_held_set_on_one_of_three),
        REAL_TEST(a_held_set_without_the_right_to_kill),
        REAL_TEST(a_lost_reply_to_a_release),
        REAL_TEST(a_node_that_was_away_is_cleaned_later),
        REAL_TEST(released_without_waiting),
        REAL_TEST(released_too_late_without_waiting),
        REAL_TEST(released_without_waiting_or_connections),
        REAL_TEST(invalid_arguments_consume_nothing),
        REAL_TEST(forgotten_locks_stay_until_their_lease_ends),
        REAL_TEST(the_client_is_gone),
        REAL_TEST(an_imported_lock_is_released),
        REAL_TEST(an_imported_lock_is_extended_and_released),
        REAL_TEST(an_imported_lock_that_nobody_holds),
        REAL_TEST(tokens_of_another_form),
    };
    return REAL_RUN("release", tests);
}
