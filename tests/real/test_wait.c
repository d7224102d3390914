/* test_wait.c - waiting for a lock that another holds, or for servers that are away; and being told to stop.
 */
#include "real.h"

#include <signal.h>
#include <unistd.h>

/* ---- A call on a thread of its own ------------------------------------------------------------------------------------------- */

struct waiter {
    pthread_t thread;
    rl_client *client;
    rl_request request;
    rl_lock *lock;
    int rc;
    int64_t ended_ms; /* ts_mono_ms */
};

static void *wait_in_thread(void *arg)
{
    struct waiter *w = arg;
    w->rc = rl_acquire_with(w->client, &w->request, NULL, &w->lock);
    w->ended_ms = ts_mono_ms();
    return NULL;
}

static void waiter_start(struct waiter *w, rl_client *client, const char *name, int64_t ttl_ms, int64_t wait_ms)
{
    *w = (struct waiter){.client = client};
    rl_request_init(&w->request);
    w->request.name = name;
    w->request.name_len = strlen(name);
    w->request.ttl_ms = ttl_ms;
    w->request.wait_ms = wait_ms;
    ts_check(pthread_create(&w->thread, NULL, wait_in_thread, w) == 0, "no thread");
}

static int waiter_join(struct waiter *w)
{
    pthread_join(w->thread, NULL);
    ts_check((w->lock != NULL) == (w->rc == RL_OK), "a handle with %s", rl_strstatus(w->rc));
    return w->rc;
}

/* ---- For how long ------------------------------------------------------------------------------------------------------------ */

/* S4.1 */
static void without_waiting_there_is_one_attempt(void **state)
{
    (void)state;
    rl_client *client = patient(ts_server_url(P1));
    hold(P1, "rl:wait", 0);
    ts_equal(refused(client, "wait", LONG, 0, NULL), RL_BUSY);
    ts_equal(ts_calls(P1, "set"), 1);
    ts_equal(releases(P1), 0);
    rl_client_free(client);
}

/* S4.1 */
static void a_short_wait_is_kept(void **state)
{
    (void)state;
    rl_client *client = patient(p.urls);
    for (int i = 0; i < 3; i++)
        hold(p.at[i], "rl:wait", 0);
    int64_t start = ts_mono_ms();
    ts_equal(refused(client, "wait", LONG, 100, NULL), RL_BUSY);
    ts_between(ts_mono_ms() - start, 90, 100 + slack());
    ts_check(ts_calls(P1, "set") >= 2, "%d attempts", (int)ts_calls(P1, "set"));
    rl_client_free(client);
}

/* S4.1: the wait is as independent of the lease as of the node timeout. */
static void a_wait_outlasts_lease_and_node_timeout(void **state)
{
    (void)state;
    rl_client *client = hasty(ts_server_url(P1), 100);
    hold(P1, "rl:wait", 0);
    int64_t start = ts_mono_ms();
    ts_equal(refused(client, "wait", 50, 400, NULL), RL_BUSY);
    ts_between(ts_mono_ms() - start, 390, 400 + slack());
    rl_client_free(client);
}

/* S4.3: pauses are between retry_min and retry_max. */
static void pauses_are_as_long_as_asked_for(void **state)
{
    (void)state;
    rl_options options = options_with(SOON, 300);
    options.retry_min_ms = options.retry_max_ms = 50;
    rl_client *client = client_with(ts_server_url(P1), &options);
    hold(P1, "rl:wait", 0);
    ts_equal(refused(client, "wait", LONG, 520, NULL), RL_BUSY);
    ts_between(ts_calls(P1, "set"), 2, 12);
    ts_equal(releases(P1), ts_calls(P1, "set")); /* each asked for the holder's remaining time */
    rl_client_free(client);
}

/* S4.4: a pause ends when the holder's lease does, however long it would have been. */
static void a_pause_ends_with_the_holders_lease(void **state)
{
    (void)state;
    rl_options options = options_with(SOON, 300);
    options.retry_min_ms = options.retry_max_ms = LONG;
    rl_client *client = client_with(ts_server_url(P1), &options);
    rl_lock *lock = NULL;
    hold(P1, "rl:wait", 200);
    int64_t start = ts_mono_ms();
    ts_equal(rl_acquire(client, "wait", LONG, LONG, &lock), RL_OK);
    ts_between(ts_mono_ms() - start, 0, LONG / 2);
    ts_between(ts_calls(P1, "set"), 1, 8);
    ts_between(rl_lock_remaining_ms(lock), LONG - LONG / 100 - 2 - slack(), LONG); /* S1.5: waiting did not eat into it */
    ts_equal(rl_release(lock), RL_OK);
    rl_client_free(client);
}

/* S4.4: of three leases the second decides. */
static void a_pause_ends_when_a_quorum_is_free(void **state)
{
    (void)state;
    rl_options options = options_with(SOON, 300);
    options.retry_min_ms = options.retry_max_ms = LONG;
    rl_client *client = client_with(p.urls, &options);
    rl_lock *lock = NULL;
    hold(P1, "rl:wait", LONG);
    hold(P2, "rl:wait", 200);
    hold(P3, "rl:wait", 100);
    int64_t start = ts_mono_ms();
    ts_equal(rl_acquire(client, "wait", LONG, LONG, &lock), RL_OK);
    ts_between(ts_mono_ms() - start, 0, LONG / 2);
    ts_check(ts_holds(P1, "rl:wait", foreign), "the other's key was touched");
    ts_equal(rl_release(lock), RL_OK);
    rl_client_free(client);
}

static int hold_in_child(int out, void *urls)
{
    rl_client *client = patient(urls);
    rl_lock *lock = taken(client, "wait", 300);
    char yes = lock != NULL;
    ssize_t n = write(out, &yes, 1);
    ts_sleep_ms(LONG);
    return n == 1;
}

/* A holder that dies frees the lock when its lease ends. */
static void a_holder_dies(void **state)
{
    (void)state;
    char yes;
    ts_child child = ts_child_start(hold_in_child, p.urls);
    ts_child_read(&child, &yes, 1, SOON);
    kill(child.pid, SIGKILL);
    ts_equal(ts_child_wait(&child, SOON), 128 + SIGKILL);
    rl_client *client = patient(p.urls);
    rl_lock *lock = NULL;
    ts_equal(rl_acquire(client, "wait", LONG, LONG, &lock), RL_OK);
    ts_equal(rl_release(lock), RL_OK);
    rl_client_free(client);
}

/* ---- For ever ---------------------------------------------------------------------------------------------------------------- */

static void a_waiter_gets_it_after_the_release(void **state)
{
    (void)state;
    rl_client *holder = patient(p.urls), *client = patient(p.urls);
    struct waiter waiter;
    rl_lock *lock = taken(holder, "wait", LONG);
    waiter_start(&waiter, client, "wait", LONG, RL_FOREVER);
    await_calls(P1, "set", 3);
    ts_equal(rl_release(lock), RL_OK);
    ts_equal(waiter_join(&waiter), RL_OK);
    ts_equal(rl_release(waiter.lock), RL_OK);
    rl_client_free(client);
    rl_client_free(holder);
}

enum { WAITERS = 6 };

/* S4.1: for ever means until rl_client_stop. What is held can be extended and released after it. */
static void stopping_ends_all_waits(void **state)
{
    (void)state;
    rl_client *client = patient(p.urls);
    struct waiter waiters[WAITERS];
    rl_lock *lock = taken(client, "held", LONG);
    for (int i = 0; i < 3; i++)
        hold(p.at[i], "rl:wait", 0);
    for (int i = 0; i < WAITERS; i++)
        waiter_start(&waiters[i], client, "wait", LONG, RL_FOREVER);
    await_calls(P1, "set", 1 + 2 * WAITERS);
    int64_t stopped = ts_mono_ms();
    rl_client_stop(client);
    rl_client_stop(client);
    for (int i = 0; i < WAITERS; i++) {
        ts_equal(waiter_join(&waiters[i]), RL_CANCELED);
        ts_between(waiters[i].ended_ms - stopped, 0, slack());
    }
    int64_t sets = ts_calls(P1, "set");
    ts_equal(refused(client, "other", LONG, RL_FOREVER, NULL), RL_CANCELED);
    ts_equal(refused(client, "other", LONG, 0, NULL), RL_CANCELED);
    ts_equal(ts_calls(P1, "set"), sets);
    ts_equal(rl_extend(lock, LONG, NULL), RL_OK);
    ts_equal(rl_release(lock), RL_OK);
    check_gone("rl:held");
    rl_client_free(client);
    rl_client_stop(NULL);
}

/* S3.6: what the attempt in progress may have set is taken back. */
static void stopping_an_attempt_leaves_no_key(void **state)
{
    (void)state;
    rl_client *client = patient(ts_server_url(P1));
    struct waiter waiter;
    warm_up(client);
    ts_server_pause(P1);
    waiter_start(&waiter, client, "wait", LONG, RL_FOREVER);
    ts_sleep_ms(50); /* for its SET to be written; it does not matter if it is not */
    int64_t stopped = ts_mono_ms();
    rl_client_stop(client);
    ts_equal(waiter_join(&waiter), RL_CANCELED);
    ts_between(waiter.ended_ms - stopped, 0, slack());
    ts_server_resume(P1);
    rl_client_free(client);
    ts_equal(ts_calls(P1, "evalsha"), ts_calls(P1, "set"));
    ts_equal(ts_dbsize(P1), 0);
}

/* ---- What is waited out, and what is not ------------------------------------------------------------------------------------- */

static int take_fast(rl_client *client, int64_t ttl_ms, rl_lock **ret_lock)
{
    rl_request request;
    rl_request_init(&request);
    request.name = "wait";
    request.name_len = 4;
    request.ttl_ms = ttl_ms;
    request.wait_ms = LONG;
    request.fail_fast = 1;
    return rl_acquire_with(client, &request, NULL, ret_lock);
}

/* S4.2 */
static void failing_fast_waits_for_holders_only(void **state)
{
    (void)state;
    rl_client *client = patient(p.urls);
    rl_lock *lock = NULL;
    for (int i = 0; i < 3; i++)
        hold(p.at[i], "rl:wait", 100);
    ts_equal(take_fast(client, LONG, &lock), RL_OK);
    ts_equal(rl_release(lock), RL_OK);
    ts_server_kill(P2);
    ts_server_kill(P3);
    int64_t start = ts_mono_ms();
    ts_equal(take_fast(client, LONG, &lock), RL_E_NO_QUORUM);
    ts_between(ts_mono_ms() - start, 0, LONG / 2);
    rl_client_free(client);
    check_gone("rl:wait");
}

/* S4.2 */
static void failing_fast_when_too_slow(void **state)
{
    (void)state;
    ts_proxy *proxy = ts_proxy_to(P1);
    rl_client *client = patient(ts_proxy_url(proxy));
    rl_lock *lock = NULL;
    ts_equal(rl_client_check(client, NULL), RL_OK);
    ts_proxy_delay(proxy, TS_DOWN, 80);
    int64_t start = ts_mono_ms();
    ts_equal(take_fast(client, 50, &lock), RL_E_TOO_SLOW);
    ts_between(ts_mono_ms() - start, 0, LONG / 2);
    rl_client_free(client);
    check_gone("rl:wait");
    ts_proxy_stop(proxy);
}

/* S4.2: without it, a wait outlasts servers that are away. */
static void servers_come_back_while_it_waits(void **state)
{
    (void)state;
    rl_client *client = patient(p.urls);
    struct waiter waiter;
    warm_up(client);
    ts_server_kill(P2);
    ts_server_kill(P3);
    waiter_start(&waiter, client, "wait", LONG, LONG);
    await_calls(P1, "set", 3);
    ts_server_restart(P2);
    ts_equal(waiter_join(&waiter), RL_OK);
    ts_check(ts_holds(P2, "rl:wait", rl_lock_token(waiter.lock)), "P2 does not hold it");
    ts_equal(rl_release(waiter.lock), RL_OK);
    rl_client_free(client);
}

/* S4.2: and a network that is too slow. */
static void the_network_becomes_faster_while_it_waits(void **state)
{
    (void)state;
    ts_proxy *proxy = ts_proxy_to(P1);
    rl_client *client = patient(ts_proxy_url(proxy));
    struct waiter waiter;
    ts_equal(rl_client_check(client, NULL), RL_OK);
    ts_command(P1, "CONFIG RESETSTAT");
    ts_proxy_delay(proxy, TS_DOWN, 400);
    waiter_start(&waiter, client, "wait", 300, LONG);
    await_calls(P1, "set", 2); /* so the first one's answer was too late */
    ts_proxy_clear(proxy);
    ts_equal(waiter_join(&waiter), RL_OK);
    ts_check(ts_calls(P1, "set") >= 2, "the first attempt was fast enough");
    rl_lock_free(waiter.lock);
    rl_client_free(client);
    ts_proxy_stop(proxy);
}

/* S4.2: the verdict is that of the last attempt. */
static void the_last_attempt_decides(void **state)
{
    (void)state;
    rl_client *client = patient(ts_server_url(P1));
    struct waiter waiter;
    hold(P1, "rl:wait", 0);
    waiter_start(&waiter, client, "wait", LONG, 1000);
    await_calls(P1, "set", 2);
    ts_server_kill(P1);
    ts_equal(waiter_join(&waiter), RL_E_NO_QUORUM);
    rl_client_free(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        REAL_TEST(without_waiting_there_is_one_attempt),
        REAL_TEST(a_short_wait_is_kept),
        REAL_TEST(a_wait_outlasts_lease_and_node_timeout),
        REAL_TEST(pauses_are_as_long_as_asked_for),
        REAL_TEST(a_pause_ends_with_the_holders_lease),
        REAL_TEST(a_pause_ends_when_a_quorum_is_free),
        REAL_TEST(a_holder_dies),
        REAL_TEST(a_waiter_gets_it_after_the_release),
        REAL_TEST(stopping_ends_all_waits),
        REAL_TEST(stopping_an_attempt_leaves_no_key),
        REAL_TEST(failing_fast_waits_for_holders_only),
        REAL_TEST(failing_fast_when_too_slow),
        REAL_TEST(servers_come_back_while_it_waits),
        REAL_TEST(the_network_becomes_faster_while_it_waits),
        REAL_TEST(the_last_attempt_decides),
    };
    return REAL_RUN("wait", tests);
}
