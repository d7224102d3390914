/* test_keep.c - locks held for longer than one lease by the blocking front: renewed through faults, lost in time, released in the middle.
 */
#include "keep.h"

#include <poll.h>
#include <unistd.h>

static const char key[] = "rl:job";

/* Connected to all nodes already. */
static rl_client *warm(const char *urls)
{
    rl_client *client = patient(urls);
    warm_up(client);
    return client;
}

static rl_lock *keep_it(rl_client *client, const rl_request *request)
{
    rl_lock *lock = NULL;
    int rc = rl_acquire_with(client, request, NULL, &lock);
    ts_check(rc == RL_OK, "not acquired: %s", rl_strstatus(rc));
    return lock;
}

static rl_lock *kept(rl_client *client, const char *name, int64_t ttl_ms)
{
    rl_request request = keeping(name, ttl_ms);
    return keep_it(client, &request);
}

static void check_lost(rl_lock *lock, int reason)
{
    ts_equal(rl_lock_wait_lost(lock, 2 * SOON * ts_slowness()), RL_LOST);
    ts_equal(rl_lock_lost_reason(lock), reason);
    ts_check(rl_lock_remaining_ms(lock) <= 0, "%lld ms remain", (long long)rl_lock_remaining_ms(lock));
    ts_equal(rl_extend(lock, LONG, NULL), RL_LOST);
    ts_equal(rl_lock_wait_lost(lock, RL_FOREVER), RL_LOST);
}

/* It is held throughout that time. */
static void check_held(rl_lock *lock, int64_t ms)
{
    int rc = rl_lock_wait_lost(lock, ms);
    ts_check(rc == RL_OK, "%s, reason %d", rl_strstatus(rc), rl_lock_lost_reason(lock));
    ts_check(rl_lock_remaining_ms(lock) > 0, "nothing remains");
    ts_equal(rl_lock_lost_reason(lock), RL_LOST_NOT);
}

/* A thread in rl_lock_wait_lost. */
struct waiter {
    rl_lock *lock;
    int64_t timeout_ms, told_ns;
    int rc, reason;
    pthread_t thread;
    atomic_int state; /* 1 = about to wait, 2 = told */
};

static void *wait_for_loss(void *arg)
{
    struct waiter *w = arg;
    atomic_store(&w->state, 1);
    w->rc = rl_lock_wait_lost(w->lock, w->timeout_ms);
    w->told_ns = now_ns();
    atomic_store(&w->state, 2);
    return NULL;
}

static void waiter_start(struct waiter *w, rl_lock *lock, int64_t timeout_ms)
{
    *w = (struct waiter){.lock = lock, .timeout_ms = timeout_ms};
    ts_equal(pthread_create(&w->thread, NULL, wait_for_loss, w), 0);
    UNTIL(atomic_load(&w->state) > 0);
}

static int waiter_end(struct waiter *w)
{
    ts_equal(pthread_join(w->thread, NULL), 0);
    return w->rc;
}

/* ---- Held ------------------------------------------------------------------------------------------------------------------------ */

/* On one node and on three, for several leases; then nothing is left. */
static void held_for_many_leases(void **state)
{
    (void)state;
    rl_client *one = patient(ts_server_url(P1)), *three = warm(p.urls);
    rl_lock *a = kept(one, "a", lease()), *b = kept(three, "b", lease());
    for (int i = 0; i < 8; i++)
        check_held(i % 2 ? a : b, lease() / 2);
    ts_check(key_is(P1, a) && key_is(P1, b), "not on P1");
    ts_check(releases(P1) >= 2 * 9 && releases(P1) <= 2 * 20, "%d renewals", (int)releases(P1));
    ts_equal(rl_release(a), RL_OK);
    ts_equal(rl_release(b), RL_OK);
    check_gone("rl:a");
    check_gone("rl:b");
    rl_client_free(one);
    rl_client_free(three);
}

/* E10: an attempt that failed leaves the request as it was. */
static void foreign_at_first(void **state)
{
    (void)state;
    rl_client *client = warm(p.urls);
    rl_request request = keeping("job", lease());
    request.wait_ms = LONG;
    request.max_hold_ms = LONG;
    ts_set_px(P1, key, foreign, 150);
    ts_set_px(P2, key, foreign, 150);
    rl_lock *lock = keep_it(client, &request);
    check_held(lock, 3 * lease());
    ts_check(key_is(P1, lock) && key_is(P2, lock), "another's");
    ts_equal(rl_release(lock), RL_OK);
    rl_client_free(client);
    check_gone(key);
}

/* E7: nodes that were restarted without their data, one after the other, get it back; two at once are too many. */
static void restarted_without_data(void **state)
{
    (void)state;
    rl_client *client = warm(p.urls);
    rl_lock *lock = kept(client, "job", 3 * lease() + slack());
    UNTIL(ts_servers_holding(&p, key) == 3);
    for (int i = 0; i < 2; i++) {
        ts_server_kill(p.at[i]);
        ts_server_restart(p.at[i]);
        UNTIL(key_is(p.at[i], lock));
        check_held(lock, 0);
    }
    for (int i = 0; i < 2; i++)
        ts_command(p.at[i], "FLUSHALL");
    check_lost(lock, RL_LOST_QUORUM_GONE);
    ts_check(!ts_exists(P1, key) && !ts_exists(P2, key), "a lost lock was restored");
    ts_equal(rl_release(lock), RL_LOST);
    rl_client_free(client);
}

/* E7 with the processes gone. */
static void two_restarted_at_once(void **state)
{
    (void)state;
    rl_client *client = hasty(p.urls, lease());
    rl_lock *lock = kept(client, "job", 3 * lease() + slack());
    ts_server_kill(P1);
    ts_server_kill(P2);
    ts_server_launch(P1);
    ts_server_launch(P2);
    ts_server_await(P1);
    ts_server_await(P2);
    ts_equal(rl_lock_wait_lost(lock, 2 * SOON), RL_LOST);
    /* So slow a restart that the lease ran out before anybody knew is no fault. */
    int reason = rl_lock_lost_reason(lock);
    ts_check(reason == RL_LOST_QUORUM_GONE || reason == RL_LOST_EXPIRED, "reason %d", reason);
    ts_check(!ts_exists(P1, key) && !ts_exists(P2, key), "a lost lock was restored");
    rl_lock_free(lock);
    rl_client_free(client);
}

/* E12: too few keep it as soon as one of two has forgotten. */
static void held_on_two_one_forgets(void **state)
{
    (void)state;
    hold(P3, key, 0);
    rl_client *client = warm(p.urls);
    rl_lock *lock = kept(client, "job", 5 * lease());
    int64_t start = ts_mono_ms();
    ts_del(P1, key);
    ts_equal(rl_lock_wait_lost(lock, LONG), RL_LOST);
    ts_between(ts_mono_ms() - start, 0, 5 * lease() / 2 + slack());
    int reason = rl_lock_lost_reason(lock); /* if P3 was the first to answer, it has named another holder */
    ts_check(reason == RL_LOST_QUORUM_GONE || reason == RL_LOST_TAKEN_OVER, "reason %d", reason);
    ts_equal(rl_release(lock), RL_LOST);
    rl_client_free(client);
}

static void taken_over(void **state)
{
    (void)state;
    rl_client *client = warm(p.urls);
    rl_lock *lock = kept(client, "job", 2 * lease());
    UNTIL(ts_servers_holding(&p, key) == 3);
    ts_set_px(P1, key, foreign, 0); /* one alone may be */
    check_held(lock, 3 * lease());
    ts_check(ts_holds(P1, key, foreign), "another's key was touched");
    ts_set_px(P2, key, foreign, 0);
    check_lost(lock, RL_LOST_TAKEN_OVER);
    ts_equal(rl_release(lock), RL_LOST);
    ts_check(ts_holds(P1, key, foreign) && ts_holds(P2, key, foreign), "another's key was touched");
    rl_client_free(client);
}

/* ---- Faults that pass -------------------------------------------------------------------------------------------------------------- */

static const char *const errors[] = {
    "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.\r\n",
    "-LOADING Redis is loading the dataset in memory\r\n",
    "-READONLY You can't write against a read only replica.\r\n",
    "-OOM command not allowed when used memory > 'maxmemory'.\r\n",
    "*1\r\n:-1\r\n",      /* as the script says of a key that it cannot extend */
    "*2\r\n:1\r\n:1\r\n", /* no answer to this batch */
};

/* Two tries in a row fail, the third one is renewed. */
static void errors_that_pass(void **state)
{
    (void)state;
    ts_proxy *proxy = ts_proxy_to(P1);
    rl_client *client = patient(ts_proxy_url(proxy));
    rl_lock *lock = kept(client, "job", lease() * 3 / 2);
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        int64_t calls = ts_proxy_requests(proxy, "EVALSHA"), served = ts_calls(P1, "evalsha");
        ts_proxy_answer(proxy, "EVALSHA", 2, errors[i]);
        UNTIL(ts_proxy_requests(proxy, "EVALSHA") >= calls + 3);
        UNTIL(ts_calls(P1, "evalsha") > served);
        check_held(lock, 0);
    }
    ts_equal(rl_release(lock), RL_OK);
    rl_client_free(client);
    ts_proxy_stop(proxy);
}

/* The same from a server that means it: full, a replica, paused, busy with a script. N = 1, each for less than the lease. */
static void a_server_in_trouble(void **state)
{
    (void)state;
    static const char *const trouble[] = {"CONFIG SET maxmemory 1", "REPLICAOF 127.0.0.1 1", "CLIENT PAUSE 60000 WRITE"};
    static const char *const end[] = {"CONFIG SET maxmemory 0", "REPLICAOF NO ONE", "CLIENT UNPAUSE"};
    ts_server *server = ts_server_start(NULL);
    rl_client *client = patient(ts_server_url(server));
    rl_lock *lock = kept(client, "job", 2 * lease()), *none = NULL;
    ts_conn *conn = ts_conn_tcp(ts_server_port(server));
    for (int i = 0; i < 3; i++) {
        ts_command(server, trouble[i]);
        if (i == 0) /* E6: PEXPIRE needs no memory */
            check_held(lock, 2 * lease());
        ts_equal(i ? RL_E_NO_QUORUM : rl_acquire(client, "other", LONG, 0, &none), RL_E_NO_QUORUM);
        check_held(lock, lease());
        ts_command(server, end[i]);
        UNTIL(rl_lock_remaining_ms(lock) > 2 * lease() * 3 / 4);
    }
    ts_command(server, "CONFIG SET lua-time-limit 5");
    ts_check(conn && ts_conn_command(conn, "EVAL %s 0", "while true do end"), "not connected");
    check_held(lock, lease());
    ts_check(strcmp(ts_command(server, "SCRIPT KILL"), "OK") == 0, "the server was not busy");
    UNTIL(rl_lock_remaining_ms(lock) > 2 * lease() * 3 / 4);
    ts_equal(rl_release(lock), RL_OK);
    ts_conn_close(conn);
    rl_client_free(client);
    ts_server_stop(server);
}

/* ... and one that does not pass: tried again and again, until the lease has run out. */
static void errors_that_do_not_pass(void **state)
{
    (void)state;
    ts_proxy *proxy = ts_proxy_to(P1);
    rl_client *client = patient(ts_proxy_url(proxy));
    rl_lock *lock = kept(client, "job", lease());
    struct waiter waiter;
    struct ending ending = {0};
    struct delays delays = {0};
    ts_proxy_answer(proxy, "EVALSHA", -1, errors[0]);
    waiter_start(&waiter, lock, RL_FOREVER);
    while (look(&ending, lock) > 0)
        ts_sleep_ms(1);
    ts_equal(waiter_end(&waiter), RL_LOST);
    note_delay(&delays, &ending, waiter.told_ns);
    ts_check(ts_proxy_requests(proxy, "EVALSHA") >= 3, "only %d tries", (int)ts_proxy_requests(proxy, "EVALSHA"));
    check_lost(lock, RL_LOST_EXPIRED);
    rl_lock_free(lock);
    rl_client_free(client);
    ts_proxy_stop(proxy);
}

/* The connection breaks while nothing is under way; with the renewal on it; after the server has done it; with the answer. */
static void lost_connections(void **state)
{
    (void)state;
    static const ts_fault faults[] = {TS_RESET_BEFORE, TS_RESET_UNANSWERED, TS_RESET_ANSWERED, TS_SWALLOW_REPLY};
    ts_proxy *proxy = ts_proxy_to(P1);
    rl_client *client = hasty(ts_proxy_url(proxy), lease() / 4);
    warm_up(client);
    rl_lock *lock = kept(client, "job", 2 * lease());
    for (int i = 0; i < 5; i++) {
        int64_t calls = ts_proxy_requests(proxy, "EVALSHA");
        if (i < 4)
            ts_proxy_fault(proxy, "EVALSHA", 0, faults[i], 0);
        else
            ts_proxy_reset(proxy);
        ts_check(ts_proxy_wait_faults(proxy, SOON), "no renewal");
        if (i == 3) /* this connection is of no use any more, but nobody can know: it is the test that ends it */
            ts_proxy_reset(proxy);
        UNTIL(ts_proxy_requests(proxy, "EVALSHA") >= calls + 3);
        check_held(lock, 0);
    }
    ts_equal(rl_release(lock), RL_OK);
    rl_client_free(client);
    ts_proxy_stop(proxy);
}

static void scripts_are_flushed(void **state)
{
    (void)state;
    rl_client *client = warm(p.urls);
    rl_lock *lock = kept(client, "job", lease());
    for (int i = 0; i < 4; i++) {
        int64_t before = ts_calls(P1, "eval") + ts_calls(P2, "eval");
        for (int j = 0; j < 3; j++)
            ts_command(p.at[j], "SCRIPT FLUSH");
        UNTIL(ts_calls(P1, "eval") + ts_calls(P2, "eval") >= before + 2);
        check_held(lock, 0);
    }
    for (int j = 0; j < 3; j++)
        ts_command(p.at[j], "SCRIPT FLUSH");
    ts_equal(rl_release(lock), RL_OK);
    rl_client_free(client);
    check_gone(key);
}

/* One of three is killed, is away for longer than a lease, and comes back without its data: it is topped up. */
static void killed_and_restarted(void **state)
{
    (void)state;
    rl_client *client = hasty(p.urls, lease());
    warm_up(client);
    rl_lock *lock = kept(client, "job", lease());
    ts_server_kill(P2);
    check_held(lock, lease() * 5 / 4);
    ts_server_restart(P2);
    UNTIL(key_is(P2, lock));
    ts_server_pause(P1);
    check_held(lock, lease() * 5 / 4); /* P2 counts again */
    ts_server_resume(P1);
    ts_equal(rl_release(lock), RL_OK);
    check_gone(key);
    rl_client_free(client);
}

/* N = 1: what stands still for less than the lease costs nothing. */
static void stopped_for_less_than_the_lease(void **state)
{
    (void)state;
    rl_client *client = patient(ts_server_url(P1));
    rl_lock *lock = kept(client, "job", 2 * lease());
    for (int i = 0; i < 2; i++) {
        ts_server_pause(P1);
        check_held(lock, lease() + lease() / 5);
        ts_server_resume(P1);
        UNTIL(rl_lock_remaining_ms(lock) > lease() * 3 / 2);
    }
    check_held(lock, lease());
    ts_equal(rl_release(lock), RL_OK);
    check_gone(key);
    rl_client_free(client);
}

/* ---- Minorities and majorities --------------------------------------------------------------------------------------------------- */

struct patience { /* a lock on servers of which a minority stops now and then */
    ts_servers servers;
    struct trouble trouble;
    rl_client *client;
    rl_lock *lock;
    int64_t least_ms;
};

static void minority_start(struct patience *h, int nodes)
{
    ts_servers_start(&h->servers, nodes, NULL);
    h->trouble = (struct trouble){.servers = &h->servers, .seed = 7 + (unsigned)nodes};
    h->client = hasty(h->servers.urls, 250);
    warm_up(h->client);
    h->lock = kept(h->client, "job", lease());
    h->least_ms = INT64_MAX;
}

static void minority_step(struct patience *h)
{
    int64_t left = rl_lock_remaining_ms(h->lock);
    h->least_ms = left < h->least_ms ? left : h->least_ms;
    check_held(h->lock, 3);
    make_trouble(&h->trouble);
}

static void minority_end(struct patience *h)
{
    all_go_on(&h->trouble);
    printf("blocking, N = %d: held for %d leases of %lld ms, %d stops; at least %lld ms remained\n", h->servers.count, leases,
           (long long)lease(), h->trouble.stops, (long long)h->least_ms);
    ts_equal(rl_release(h->lock), RL_OK);
    for (int i = 0; i < h->servers.count; i++)
        ts_check(ts_wait_absent(h->servers.at[i], key, SOON), "left behind");
    rl_client_free(h->client);
    ts_servers_stop(&h->servers);
}

static void a_minority_stops(void **state)
{
    (void)state;
    static struct patience three, five;
    ts_time_limit(60 + leases);
    minority_start(&three, 3);
    minority_start(&five, 5);
    for (int64_t end = ts_mono_ms() + leases * lease(); ts_mono_ms() < end;) {
        minority_step(&three);
        minority_step(&five);
    }
    minority_end(&three);
    minority_end(&five);
}

/* S5.5: lost at the end of the validity, which the handle's own account of what remains has announced. */
static void one_majority_stop(rl_client *client, struct delays *delays)
{
    rl_lock *lock = kept(client, "job", 70 * (int64_t)ts_slowness());
    int fd = rl_lock_lost_fd(lock);
    struct waiter waiter;
    struct ending ending = {0};
    ts_check(fd >= 0, "no descriptor");
    waiter_start(&waiter, lock, RL_FOREVER);
    ts_sleep_ms(rand() % 40);
    ts_server_pause(P1);
    ts_server_pause(P3);
    while (look(&ending, lock) > 0) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        if (poll(&wait, 1, 0) > 0)
            ts_check(now_ns() >= ending.low, "the descriptor is readable %lld us too soon",
                     (long long)(ending.low - now_ns()) / 1000);
        usleep(200);
    }
    ts_equal(waiter_end(&waiter), RL_LOST);
    note_delay(delays, &ending, waiter.told_ns);
    check_lost(lock, RL_LOST_EXPIRED);
    ts_server_resume(P1);
    ts_server_resume(P3);
    rl_lock_free(lock);
    for (int i = 0; i < 3; i++)
        ts_check(ts_wait_absent(p.at[i], key, SOON), "it does not expire");
}

static void a_majority_stops(void **state)
{
    (void)state;
    struct delays delays = {0};
    rl_client *client = hasty(p.urls, 250);
    ts_time_limit(60 + runs);
    warm_up(client);
    for (int i = 0; i < runs; i++)
        one_majority_stop(client, &delays);
    print_delays("blocking", &delays);
    rl_client_free(client);
}

/* ---- E8: releases that race renewals ------------------------------------------------------------------------------------------------ */

enum { RACERS = 16, RACE_TTL = 60 };

struct race {
    rl_client *client;
    ts_server *const *nodes;
    int node_count, round;
    bool over;
    pthread_barrier_t start, end;
    atomic_int lost, failed, late;
};

struct racer {
    struct race *race;
    pthread_t thread;
    char name[32];
    unsigned seed;
};

static int64_t race_ttl(void)
{
    return RACE_TTL * (int64_t)ts_slowness();
}

static void race_once(struct racer *r)
{
    rl_request request = keeping(r->name, race_ttl());
    rl_lock *lock = NULL;
    if (rl_acquire_with(r->race->client, &request, NULL, &lock) != RL_OK) {
        atomic_fetch_add(&r->race->failed, 1);
        return;
    }
    usleep((useconds_t)(race_ttl() * (200 + rand_r(&r->seed) % 150))); /* a renewal is due from 0.25 of the ttl to 0.29 */
    int64_t start = ts_mono_ms();
    int rc = rl_release(lock);
    atomic_fetch_add(rc == RL_OK ? &r->race->lost : &r->race->failed, rc == RL_OK ? 0 : 1);
    if (ts_mono_ms() - start > race_ttl() / 3)
        atomic_fetch_add(&r->race->late, 1);
}

static void *racer_run(void *arg)
{
    struct racer *r = arg;
    for (;;) {
        pthread_barrier_wait(&r->race->start);
        if (r->race->over)
            return NULL;
        race_once(r);
        pthread_barrier_wait(&r->race->end);
    }
}

/* The keys vanish from one node, just before they are renewed or released. */
static void lose_keys(struct race *race, struct racer *racers, unsigned *seed)
{
    ts_server *node = race->nodes[rand_r(seed) % race->node_count];
    ts_sleep_ms(race_ttl() * (rand_r(seed) % 10 + 15) / 100);
    for (int i = 0; i < RACERS; i++)
        ts_del(node, key_of(racers[i].name));
}

static int keys_left(struct race *race)
{
    int left = 0;
    for (int i = 0; i < race->node_count; i++)
        left += (int)ts_dbsize(race->nodes[i]);
    return left;
}

/* What was released late may be seen for a moment; a ghost stays for its lease. */
static void check_no_ghost(struct race *race)
{
    for (int64_t end = ts_mono_ms() + race_ttl() / 2; keys_left(race) > 0 && ts_mono_ms() < end;)
        ts_sleep_ms(1);
    for (int i = 0; i < race->node_count; i++)
        ts_check(ts_dbsize(race->nodes[i]) == 0, "P%d keeps %s", i + 1, ts_command(race->nodes[i], "KEYS *"));
}

static int64_t expired_keys(struct race *race)
{
    int64_t expired = 0;
    for (int i = 0; i < race->node_count; i++)
        expired += ts_info_int(race->nodes[i], "expired_keys");
    return expired;
}

static void run_races(struct race *race, struct racer *racers, int rounds, bool lose)
{
    unsigned seed = 5;
    for (race->round = 0; race->round < rounds; race->round += RACERS) {
        for (int i = 0; i < RACERS; i++)
            snprintf(racers[i].name, sizeof racers[i].name, "%d", race->round + i);
        pthread_barrier_wait(&race->start);
        if (lose)
            lose_keys(race, racers, &seed);
        pthread_barrier_wait(&race->end);
        check_no_ghost(race);
    }
}

static void race_on(const char *urls, int nodes, int rounds, bool lose)
{
    struct race race = {.client = patient(urls), .nodes = p.at, .node_count = nodes};
    struct racer racers[RACERS];
    warm_up(race.client);
    pthread_barrier_init(&race.start, NULL, RACERS + 1);
    pthread_barrier_init(&race.end, NULL, RACERS + 1);
    for (int i = 0; i < RACERS; i++) {
        racers[i] = (struct racer){.race = &race, .seed = 100 + (unsigned)i};
        ts_equal(pthread_create(&racers[i].thread, NULL, racer_run, &racers[i]), 0);
    }
    run_races(&race, racers, rounds, lose);
    race.over = true;
    pthread_barrier_wait(&race.start);
    for (int i = 0; i < RACERS; i++)
        ts_equal(pthread_join(racers[i].thread, NULL), 0);
    pthread_barrier_destroy(&race.start);
    pthread_barrier_destroy(&race.end);
    int bad = atomic_load(&race.failed) + atomic_load(&race.late);
    ts_sleep_ms(race_ttl() + 150); /* ghosts would have ended, and been counted */
    printf("N = %d%s: %d releases, %lld scripts on P1, %lld top-ups or grants; %d not in time, %lld keys expired\n", nodes,
           lose ? ", keys lost" : "", race.round, (long long)releases(P1), (long long)ts_calls(P1, "set"), bad,
           (long long)expired_keys(&race));
    /* (A busy machine may keep a server from a round's releases for longer than the lease, now and then.) */
    ts_check(expired_keys(&race) <= (bad + RACERS * (1 + rounds / 500)) * nodes, "%lld keys ended by themselves",
             (long long)expired_keys(&race));
    ts_check(bad < race.round / 2, "only %d of %d races were in time", race.round - bad, race.round);
    rl_client_free(race.client);
}

/* E8, S5.3, S6.1 */
static void releases_race_renewals(void **state)
{
    (void)state;
    ts_time_limit(60 + races / 20);
    race_on(ts_server_url(P1), 1, races / 4, false);
    for (int i = 0; i < 3; i++)
        ts_command(p.at[i], "CONFIG RESETSTAT");
    race_on(p.urls, 3, races / 4, false);
    for (int i = 0; i < 3; i++)
        ts_command(p.at[i], "CONFIG RESETSTAT");
    race_on(p.urls, 3, races / 2, true);
}

/* The renewal has reached the servers and its answers are on their way: the release does not wait for them, nor do they revive it. */
static void released_in_the_middle(void **state)
{
    (void)state;
    struct net net;
    net_start(&net);
    rl_client *client = patient(net.urls);
    warm_up(client);
    for (int i = 0; i < 3; i++) {
        rl_lock *lock = kept(client, "job", 2 * lease());
        UNTIL(ts_servers_holding(&p, key) == 3);
        int64_t calls = releases(P1), sets = ts_calls(P2, "set");
        if (i == 2)
            ts_del(P2, key); /* a top-up would follow */
        for (int j = 0; j < 3; j++)
            ts_proxy_fault(net.at[j], "EVALSHA", 0, i == 1 ? TS_DELAY_REQUEST : TS_DELAY_REPLY, lease() / 2);
        if (i == 1)
            UNTIL(ts_proxy_seen(net.at[0]).pending_faults == 0);
        else
            await_calls(P1, "evalsha", calls + 1);
        ts_equal(rl_release(lock), RL_OK);
        check_gone(key);
        ts_sleep_ms(lease() / 2);
        ts_check(!ts_exists(P1, key) && !ts_exists(P2, key) && !ts_exists(P3, key), "it has come back");
        ts_equal(ts_calls(P2, "set"), sets);
    }
    rl_client_free(client);
    net_stop(&net);
}

/* ---- Ends --------------------------------------------------------------------------------------------------------------------------- */

/* S5.6: not after max_hold_ms, and not much before it either. */
static void hold_cap_with(int64_t ttl_ms, int64_t max_hold_ms, uint32_t drift_ppm)
{
    rl_options options = options_with(SOON, 300);
    options.drift_ppm = drift_ppm;
    rl_client *client = client_with(p.urls, &options);
    rl_request request = keeping("job", ttl_ms);
    struct ending ending = {0};
    request.max_hold_ms = max_hold_ms;
    warm_up(client);
    int64_t before = now_ns();
    rl_lock *lock = keep_it(client, &request);
    int64_t after = now_ns();
    while (look(&ending, lock) > 0)
        usleep(500);
    int64_t drift = ttl_ms * drift_ppm / 1000000 + 2;
    ts_between((ending.low - after) / MS, -1000, max_hold_ms); /* at the latest */
    ts_between((ending.high - before) / MS, max_hold_ms - drift - 2, LONG);
    check_lost(lock, RL_LOST_HOLD_CAP);
    ts_equal(rl_release(lock), RL_LOST);
    rl_client_free(client);
}

static void hold_cap(void **state)
{
    (void)state;
    int64_t ttl = lease();
    hold_cap_with(ttl, 2 * ttl + ttl / 2, 10000);
    hold_cap_with(ttl, ttl + 17, 10000);
    hold_cap_with(ttl, ttl, 10000);
    hold_cap_with(ttl, ttl + ttl / 2, 0);
    hold_cap_with(ttl, ttl + ttl / 3, 500000);
}

static void not_touched(void **state)
{
    (void)state;
    rl_client *client = warm(p.urls);
    rl_request request = keeping("job", 2 * lease());
    request.touch_within_ms = lease();
    rl_lock *lock = keep_it(client, &request);
    int64_t start = ts_mono_ms();
    check_lost(lock, RL_LOST_NOT_TOUCHED);
    ts_between(ts_mono_ms() - start, lease(), request.touch_within_ms + request.ttl_ms + slack());
    ts_equal(rl_lock_touch(lock), RL_LOST);
    ts_equal(rl_release(lock), RL_LOST);
    rl_client_free(client);
}

static void touched(void **state)
{
    (void)state;
    rl_client *client = warm(p.urls);
    rl_request request = keeping("job", 3 * lease());
    request.touch_within_ms = lease() / 2;
    rl_lock *lock = keep_it(client, &request);
    for (int64_t end = ts_mono_ms() + request.ttl_ms + lease() / 2; ts_mono_ms() < end; check_held(lock, lease() / 10))
        ts_equal(rl_lock_touch(lock), RL_OK);
    int64_t calls;
    ts_sleep_ms(3 * lease() / 2); /* a renewal was due meanwhile, and not made */
    ts_equal(rl_lock_touch(lock), RL_OK);
    calls = releases(P1);
    UNTIL(releases(P1) > calls);
    check_held(lock, 0);
    ts_equal(rl_lock_touch(lock), RL_OK);
    ts_equal(rl_release(lock), RL_OK);
    rl_client_free(client);
}

static void renewal_is_stopped(void **state)
{
    (void)state;
    rl_client *client = warm(p.urls);
    rl_lock *lock = kept(client, "job", lease());
    check_held(lock, 2 * lease());
    ts_equal(rl_lock_stop_renewing(lock), RL_OK);
    ts_equal(rl_lock_stop_renewing(lock), RL_OK);
    ts_equal(rl_extend(lock, 2 * lease(), NULL), RL_OK); /* the holder may still */
    int64_t start = ts_mono_ms(), calls = releases(P1);
    check_lost(lock, RL_LOST_EXPIRED);
    ts_between(ts_mono_ms() - start, lease(), 2 * lease() + slack());
    ts_equal(releases(P1), calls);
    ts_equal(rl_lock_stop_renewing(lock), RL_OK);
    ts_equal(rl_release(lock), RL_LOST);
    rl_client_free(client);
}

/* ---- What others see ------------------------------------------------------------------------------------------------------------------ */

static void wait_lost_from_other_threads(void **state)
{
    (void)state;
    enum { WAITERS = 4 };
    struct waiter w[WAITERS];
    rl_client *client = warm(p.urls);
    for (int how = 0; how < 4; how++) {
        rl_lock *lock = kept(client, "job", lease());
        for (int i = 0; i < WAITERS; i++)
            waiter_start(&w[i], lock, i ? RL_FOREVER : how ? 20 : lease() * 3 / 2);
        ts_equal(waiter_end(&w[0]), RL_OK); /* still held, at first after more than a lease */
        for (int i = 1; i < WAITERS; i++)
            ts_equal(atomic_load(&w[i].state), 1);
        if (how == 0)
            ts_equal(rl_release(lock), RL_OK);
        else if (how == 1)
            rl_lock_free(lock);
        else if (how == 2)
            ts_equal(rl_lock_stop_renewing(lock), RL_OK);
        else
            for (int i = 0; i < 3; i++)
                ts_command(p.at[i], "FLUSHALL");
        for (int i = 1; i < WAITERS; i++)
            ts_equal(waiter_end(&w[i]), how < 2 ? RL_CANCELED : RL_LOST);
        check_gone(key);
        if (how < 2)
            continue;
        check_lost(lock, how == 2 ? RL_LOST_EXPIRED : RL_LOST_QUORUM_GONE);
        rl_lock_free(lock);
    }
    rl_client_free(client);
}

/* No call is a cancellation point. */
static void *wait_cancelled(void *arg)
{
    struct waiter *w = arg;
    wait_for_loss(w);
    pthread_testcancel();
    return NULL;
}

static void cancelled_in_wait_lost(void **state)
{
    (void)state;
    struct waiter w = {.timeout_ms = 200};
    void *result = NULL;
    rl_client *client = patient(ts_server_url(P1));
    w.lock = kept(client, "job", LONG);
    ts_equal(pthread_create(&w.thread, NULL, wait_cancelled, &w), 0);
    UNTIL(atomic_load(&w.state) > 0);
    ts_sleep_ms(20);
    ts_equal(pthread_cancel(w.thread), 0);
    ts_equal(pthread_join(w.thread, &result), 0);
    ts_check(result == PTHREAD_CANCELED, "not cancelled");
    ts_equal(atomic_load(&w.state), 2);
    ts_equal(w.rc, RL_OK);
    ts_equal(rl_release(w.lock), RL_OK);
    rl_client_free(client);
}

static bool readable(int fd)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    return poll(&wait, 1, 0) > 0;
}

/* Readable at a loss and at the release, and through all the renewals before never. (A copy of it outlives the handle.) */
static void descriptors_of_locks(void **state)
{
    (void)state;
    enum { LOCKS = 4 };
    rl_client *client = warm(p.urls);
    rl_lock *locks[LOCKS];
    int fds[LOCKS];
    for (int i = 0; i < LOCKS; i++) {
        char name[8];
        snprintf(name, sizeof name, "%d", i);
        locks[i] = kept(client, name, lease());
        fds[i] = rl_lock_lost_fd(locks[i]);
        ts_check(fds[i] >= 0, "no descriptor");
        ts_equal(rl_lock_lost_fd(locks[i]), fds[i]);
        ts_check((fds[i] = dup(fds[i])) >= 0, "no copy");
    }
    for (int64_t end = ts_mono_ms() + 3 * lease(); ts_mono_ms() < end; ts_sleep_ms(1))
        for (int i = 0; i < LOCKS; i++)
            ts_check(!readable(fds[i]), "readable, and %lld ms remain", (long long)rl_lock_remaining_ms(locks[i]));
    ts_equal(rl_release(locks[0]), RL_OK);
    rl_lock_free(locks[1]);
    ts_check(readable(fds[0]) && readable(fds[1]) && !readable(fds[2]) && !readable(fds[3]), "the wrong ones");
    ts_equal(rl_lock_stop_renewing(locks[2]), RL_OK);
    UNTIL(readable(fds[2]));
    ts_check(rl_lock_remaining_ms(locks[2]) <= 0 && !readable(fds[3]), "too soon");
    check_lost(locks[2], RL_LOST_EXPIRED);
    ts_equal(rl_release(locks[3]), RL_OK);
    ts_check(readable(fds[3]), "not at the release");
    rl_lock_free(locks[2]);
    for (int i = 0; i < LOCKS; i++)
        close(fds[i]);
    rl_client_free(client);
}

/* Of a lock that is lost already, of one never renewed, of an imported one. */
static void descriptors_made_late(void **state)
{
    (void)state;
    rl_client *client = warm(p.urls);
    rl_lock *lock = taken(client, "job", lease()), *import = NULL;
    ts_equal(rl_lock_import(client, "job", 3, rl_lock_token(lock), 0, &import), RL_OK);
    int fd = rl_lock_lost_fd(import);
    ts_check(fd >= 0 && !readable(fd), "an import that nobody has extended");
    ts_equal(rl_lock_wait_lost(import, 0), RL_OK);
    ts_equal(rl_lock_wait_lost(lock, RL_FOREVER), RL_LOST);
    ts_check(!readable(fd), "an import that nobody has extended");
    ts_check(readable(rl_lock_lost_fd(lock)), "lost, but not readable");
    check_gone(key);
    ts_equal(rl_extend(import, LONG, NULL), RL_LOST);
    ts_check(readable(fd), "lost, but not readable");
    ts_equal(rl_lock_lost_reason(import), RL_LOST_QUORUM_GONE);
    ts_equal(rl_lock_lost_reason(lock), RL_LOST_EXPIRED);
    rl_lock_free(lock);
    rl_lock_free(import);
    rl_client_free(client);
}

/* ---- Several at it --------------------------------------------------------------------------------------------------------------------- */

/* The holder extends while renewal runs: the ttl last asked for is what later renewals are for. */
static void holder_extends(void **state)
{
    (void)state;
    rl_client *client = warm(p.urls);
    rl_lock *lock = kept(client, "job", lease());
    for (int64_t end = ts_mono_ms() + 2 * lease(); ts_mono_ms() < end; ts_sleep_ms(3)) {
        ts_equal(rl_extend(lock, lease(), NULL), RL_OK);
        check_held(lock, 0);
    }
    ts_equal(rl_extend(lock, 10 * lease(), NULL), RL_OK);
    ts_between(rl_lock_remaining_ms(lock), 9 * lease(), 10 * lease());
    UNTIL(rl_lock_remaining_ms(lock) < 8 * lease());
    UNTIL(rl_lock_remaining_ms(lock) > 9 * lease());
    ts_equal(rl_release(lock), RL_OK);
    check_gone(key);
    rl_client_free(client);
}

static void two_clients(void **state)
{
    (void)state;
    rl_client *a = warm(p.urls), *b = warm(p.urls);
    rl_lock *la = kept(a, "job", lease()), *lb = kept(b, "other", lease()), *none = NULL;
    rl_request request = keeping("job", lease());
    for (int64_t end = ts_mono_ms() + 2 * lease(); ts_mono_ms() < end;) {
        ts_equal(rl_acquire_with(b, &request, NULL, &none), RL_BUSY);
        check_held(la, 10);
        check_held(lb, 10);
    }
    ts_equal(rl_release(la), RL_OK);
    la = keep_it(b, &request);
    rl_client_free(a);
    check_held(la, lease() * 5 / 4);
    ts_equal(rl_release(la), RL_OK);
    ts_equal(rl_release(lb), RL_OK);
    rl_client_free(b);
}

/* Another handle with the same token extends, and in the end releases: the renewed one is lost then. */
static void imported_and_extended(void **state)
{
    (void)state;
    rl_client *client = warm(p.urls), *other = warm(p.urls);
    rl_lock *lock = kept(client, "job", lease()), *import = NULL;
    ts_equal(rl_lock_import(other, "job", 3, rl_lock_token(lock), 0, &import), RL_OK);
    for (int64_t end = ts_mono_ms() + 2 * lease(); ts_mono_ms() < end; check_held(lock, 10))
        ts_equal(rl_extend(import, lease(), NULL), RL_OK);
    ts_equal(rl_lock_stop_renewing(import), RL_OK);
    ts_equal(rl_release(import), RL_OK);
    check_lost(lock, RL_LOST_QUORUM_GONE);
    check_gone(key);
    rl_lock_free(lock);
    rl_client_free(client);
    rl_client_free(other);
}

/* A node lost the lock and its counter: both are restored, and later tokens are higher. */
static void fenced_with(uint32_t fence)
{
    rl_options options = options_with(SOON, 300);
    options.fence = fence;
    rl_client *client = client_with(p.urls, &options);
    int64_t last = 0;
    warm_up(client);
    for (int i = 0; i < 3; i++) {
        rl_lock *lock = kept(client, "job", lease());
        int64_t mine = rl_lock_fence(lock);
        ts_check(mine > last, "%lld after %lld", (long long)mine, (long long)last);
        last = mine;
        UNTIL(ts_servers_holding(&p, key) == 3); /* the last grant may be on its way */
        ts_command(p.at[i], "FLUSHALL");
        UNTIL(key_is(p.at[i], lock));
        if (fence == RL_FENCE_QUORUM)
            ts_check(ts_command_int(p.at[i], "GET {rl:job}:fence") >= last, "the counter of P%d is too low", i + 1);
        check_held(lock, lease() / 3);
        ts_equal(rl_lock_fence(lock), last);
        ts_equal(rl_release(lock), RL_OK);
        check_gone(key);
    }
    rl_client_free(client);
}

static void fenced(void **state)
{
    (void)state;
    fenced_with(RL_FENCE_QUORUM);
    fenced_with(RL_FENCE_NODE);
}

/* ---- The end of the client -------------------------------------------------------------------------------------------------------------- */

/* With renewed locks still held: they are left as they are, and no thread stays. */
static void freed_with(const char *urls, ts_server *stopped)
{
    enum { LOCKS = 5 };
    int threads = ts_thread_count();
    rl_client *client = hasty(urls, 300);
    rl_lock *locks[LOCKS];
    warm_up(client);
    for (int i = 0; i < LOCKS; i++) {
        char name[8];
        snprintf(name, sizeof name, "%d", i);
        locks[i] = kept(client, name, lease() * 3 / 2);
    }
    ts_sleep_ms(lease() / 2);
    if (stopped) {
        ts_server_pause(stopped);
        ts_sleep_ms(lease() / 4);
    }
    int fd = rl_lock_lost_fd(locks[0]);
    int64_t start = ts_mono_ms();
    rl_client_free(client);
    ts_between(ts_mono_ms() - start, 0, 300 + slack());
    ts_equal(ts_thread_count(), threads);
    ts_check(rl_lock_remaining_ms(locks[0]) > 0 && !readable(fd), "over too soon");
    ts_equal(rl_lock_wait_lost(locks[0], 0), RL_E_CLOSED);
    ts_equal(rl_lock_lost_fd(locks[1]), RL_E_CLOSED);
    ts_equal(rl_lock_stop_renewing(locks[0]), RL_OK);
    UNTIL(rl_lock_remaining_ms(locks[0]) <= 0);
    UNTIL(readable(fd));
    ts_equal(rl_lock_lost_reason(locks[0]), RL_LOST_EXPIRED);
    ts_equal(rl_release(locks[0]), RL_E_CLOSED);
    ts_equal(rl_extend(locks[1], LONG, NULL), RL_E_CLOSED);
    for (int i = 1; i < LOCKS; i++)
        rl_lock_free(locks[i]);
    if (stopped)
        ts_server_resume(stopped);
    for (int i = 0; i < 3; i++)
        ts_command(p.at[i], "FLUSHALL");
}

static void freed_with_locks_held(void **state)
{
    (void)state;
    freed_with(p.urls, NULL);
    freed_with(p.urls, P2);
    freed_with(ts_server_url(P1), P1);
}

/* A client that never had a renewed lock has no thread for it; one with many has one. */
static void one_thread_per_client(void **state)
{
    (void)state;
    int threads = ts_thread_count();
    rl_client *client = patient(ts_server_url(P1));
    rl_lock *plain = taken(client, "plain", LONG);
    ts_equal(ts_thread_count(), threads);
    rl_lock *a = kept(client, "a", LONG), *b = kept(client, "b", LONG);
    ts_equal(ts_thread_count(), threads + 1);
    rl_lock *kept_on = kept(client, "c", lease());
    rl_client_stop(client); /* ends waiting, not holding */
    check_held(kept_on, lease() * 3 / 2);
    ts_equal(rl_release(kept_on), RL_OK);
    ts_equal(rl_release(a), RL_OK);
    ts_equal(rl_release(plain), RL_OK);
    ts_sleep_ms(lease()); /* what the thread was to wake for is over */
    int64_t start = ts_mono_ms();
    rl_client_free(client); /* the next renewal is due in several seconds */
    ts_between(ts_mono_ms() - start, 0, slack());
    ts_equal(ts_thread_count(), threads);
    rl_lock_free(b);
}

/* ---- E9 ----------------------------------------------------------------------------------------------------------------------------------- */

struct after_stop {
    int64_t remaining, remaining_later, took_ms;
    int32_t touch, wait, reason, extend, extend_again, release;
};

static int stops_itself(int out, void *arg)
{
    struct after_stop found = {0};
    (void)arg;
    p.count = 0; /* the fixtures are the parent's */
    rl_client *client = warm(p.urls);
    rl_request request = keeping("job", lease());
    request.touch_within_ms = LONG;
    rl_lock *lock = keep_it(client, &request);
    check_held(lock, 2 * lease());
    kill(getpid(), SIGSTOP);
    found.remaining = rl_lock_remaining_ms(lock);
    found.touch = rl_lock_touch(lock);
    int64_t start = ts_mono_ms();
    found.extend = rl_extend(lock, LONG, NULL);
    found.wait = rl_lock_wait_lost(lock, RL_FOREVER);
    found.took_ms = ts_mono_ms() - start;
    found.reason = rl_lock_lost_reason(lock);
    ts_sleep_ms(lease());
    found.remaining_later = rl_lock_remaining_ms(lock);
    found.extend_again = rl_extend(lock, LONG, NULL);
    found.release = rl_release(lock);
    rl_client_free(client);
    return write(out, &found, sizeof found) == sizeof found ? 0 : 1;
}

/* Stopped for longer than the lease, then continued: the first thing that runs finds the truth (S1.8), and asks nobody. */
static void holder_stopped(void **state)
{
    (void)state;
    struct after_stop found = {0};
    int status = 0;
    ts_child child = ts_child_start(stops_itself, NULL);
    ts_equal(waitpid(child.pid, &status, WUNTRACED), child.pid);
    ts_check(WIFSTOPPED(status), "the child ended instead of stopping");
    check_gone(key);
    rl_client *other = warm(p.urls);
    rl_lock *lock = taken(other, "job", LONG);
    UNTIL(ts_servers_holding(&p, key) == 3);
    int64_t calls = releases(P1);
    kill(child.pid, SIGCONT);
    ts_child_read(&child, &found, sizeof found, SOON);
    ts_equal(ts_child_wait(&child, SOON), 0);
    ts_check(found.remaining <= 0, "%lld ms are said to remain", (long long)found.remaining);
    ts_equal(found.touch, RL_LOST);
    ts_equal(found.extend, RL_LOST);
    ts_equal(found.wait, RL_LOST);
    ts_between(found.took_ms, 0, slack());
    ts_equal(found.reason, RL_LOST_EXPIRED);
    ts_equal(found.extend_again, RL_LOST);
    ts_equal(found.remaining_later, 0);
    ts_equal(found.release, RL_LOST);
    await_calls(P1, "evalsha", calls + 1); /* the release alone was sent */
    ts_equal(releases(P1), calls + 1);
    ts_check(key_is(P1, lock) && key_is(P2, lock) && key_is(P3, lock), "the other's lock was touched");
    ts_equal(rl_release(lock), RL_OK);
    rl_client_free(other);
}

/* ---- Wrong arguments -------------------------------------------------------------------------------------------------------------------- */

static int try_keeping(rl_client *client, const rl_request *request)
{
    rl_lock *lock = (rl_lock *)(uintptr_t)1;
    int rc = rl_acquire_with(client, request, NULL, &lock);
    ts_check((lock == NULL) == (rc != RL_OK), "a handle with %s", rl_strstatus(rc));
    if (lock)
        ts_equal(rl_release(lock), RL_OK);
    return rc;
}

static void no_event(rl_lock *lock, const rl_event *event, void *event_data)
{
    (void)lock, (void)event, (void)event_data;
}

static void wrong_requests(void **state)
{
    (void)state;
    rl_client *client = patient(ts_server_url(P1));
    const rl_request good = keeping("job", LONG);
    rl_request r;
    int threads = ts_thread_count();
#define WRONG(...)                                                                                                                 \
    do {                                                                                                                           \
        r = good;                                                                                                                  \
        __VA_ARGS__;                                                                                                               \
        ts_check(try_keeping(client, &r) == RL_E_INVALID, "accepted: %s", #__VA_ARGS__);                                           \
    } while (0)
    WRONG(r.renew = 2);
    WRONG(r.renew = UINT32_MAX);
    WRONG(r.reserved = 1);
    WRONG(r.max_hold_ms = -1);
    WRONG(r.max_hold_ms = INT64_MIN);
    WRONG(r.max_hold_ms = LONG - 1);
    WRONG(r.touch_within_ms = -1);
    WRONG(r.touch_within_ms = INT64_MIN);
    WRONG(r.renew = 0, r.touch_within_ms = 1);
    WRONG(r.renew = 0, r.max_hold_ms = LONG);
    WRONG(r.on_event = no_event);
    WRONG(r.renew = 0, r.on_event = no_event);
    WRONG(r.ttl_ms = 12); /* three tries do not fit */
    WRONG(r.ttl_ms = RL_MIN_TTL_MS);
    WRONG(r.ttl_ms = RL_MAX_TTL_MS + 1);
#undef WRONG
    ts_equal(ts_dbsize(P1), 0);
    ts_equal(ts_info_int(P1, "total_connections_received"), 0); /* no byte was sent */
    ts_equal(ts_thread_count(), threads);
    r = good;
    r.max_hold_ms = r.touch_within_ms = INT64_MAX;
    ts_equal(try_keeping(client, &r), RL_OK);
    r.ttl_ms = r.max_hold_ms = RL_MAX_TTL_MS;
    ts_equal(try_keeping(client, &r), RL_OK);
    r = good;
    r.size = offsetof(rl_request, renew); /* as a program of an older header has it */
    ts_equal(try_keeping(client, &r), RL_OK);
    rl_client_free(client);
}

static void wrong_calls(void **state)
{
    (void)state;
    rl_client *client = patient(ts_server_url(P1));
    rl_lock *plain = taken(client, "plain", LONG), *lock = kept(client, "job", LONG);
    ts_equal(rl_lock_touch(NULL), RL_E_INVALID);
    ts_equal(rl_lock_touch(plain), RL_E_INVALID);
    ts_equal(rl_lock_touch(lock), RL_E_INVALID); /* touch_within_ms is 0 */
    ts_equal(rl_lock_stop_renewing(NULL), RL_E_INVALID);
    ts_equal(rl_lock_stop_renewing(plain), RL_OK);
    ts_equal(rl_lock_wait_lost(NULL, 0), RL_E_INVALID);
    ts_equal(rl_lock_wait_lost(lock, -2), RL_E_INVALID);
    ts_equal(rl_lock_wait_lost(lock, INT64_MIN), RL_E_INVALID);
    ts_equal(rl_lock_wait_lost(lock, 0), RL_OK);
    ts_equal(rl_lock_wait_lost(plain, 1), RL_OK);
    ts_equal(rl_lock_lost_fd(NULL), RL_E_INVALID);
    ts_equal(rl_lock_lost_reason(NULL), RL_LOST_NOT);
    ts_equal(rl_lock_lost_reason(plain), RL_LOST_NOT);
    ts_equal(rl_release(lock), RL_OK);
    ts_equal(rl_release(plain), RL_OK);
    rl_client_free(client);
}

static void wrong_options(void **state)
{
    (void)state;
    rl_options options;
    rl_client *client = NULL;
    rl_options_init(&options);
    options.renew_batch = 65;
    ts_equal(rl_client_new("redis://127.0.0.1:1", &options, &client, NULL), RL_E_INVALID);
    options.renew_batch = 64;
    options.reserved = 1;
    ts_equal(rl_client_new("redis://127.0.0.1:1", &options, &client, NULL), RL_E_INVALID);
    options.reserved = 0;
    ts_equal(rl_client_new("redis://127.0.0.1:1", &options, &client, NULL), RL_OK);
    rl_client_free(client);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        REAL_TEST(held_for_many_leases),
        REAL_TEST(foreign_at_first),
        REAL_TEST(restarted_without_data),
        REAL_TEST(two_restarted_at_once),
        REAL_TEST(held_on_two_one_forgets),
        REAL_TEST(taken_over),
        REAL_TEST(errors_that_pass),
        REAL_TEST(a_server_in_trouble),
        REAL_TEST(errors_that_do_not_pass),
        REAL_TEST(lost_connections),
        REAL_TEST(scripts_are_flushed),
        REAL_TEST(killed_and_restarted),
        REAL_TEST(stopped_for_less_than_the_lease),
        REAL_TEST(a_minority_stops),
        REAL_TEST(a_majority_stops),
        REAL_TEST(releases_race_renewals),
        REAL_TEST(released_in_the_middle),
        REAL_TEST(hold_cap),
        REAL_TEST(not_touched),
        REAL_TEST(touched),
        REAL_TEST(renewal_is_stopped),
        REAL_TEST(wait_lost_from_other_threads),
        REAL_TEST(cancelled_in_wait_lost),
        REAL_TEST(descriptors_of_locks),
        REAL_TEST(descriptors_made_late),
        REAL_TEST(holder_extends),
        REAL_TEST(two_clients),
        REAL_TEST(imported_and_extended),
        REAL_TEST(fenced),
        REAL_TEST(freed_with_locks_held),
        REAL_TEST(one_thread_per_client),
        REAL_TEST(holder_stopped),
        REAL_TEST(wrong_requests),
        REAL_TEST(wrong_calls),
        REAL_TEST(wrong_options),
    };
    read_arguments(argc, argv);
    return REAL_RUN("keep", tests);
}
