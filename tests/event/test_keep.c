/* test_keep.c - locks held for longer than one lease on a libevent loop: renewed through faults, lost in time; what is told of it.
 */
#include "keep_event.h"

#include <unistd.h>

static const char key[] = "rl:job";

static void check_quiet(const struct held *held)
{
    ts_check(held->events == 0, "event %d, reason %d", held->told[0].kind, held->told[0].reason);
    ts_check(rl_lock_remaining_ms(held->lock) > 0, "nothing remains");
}

static void warm_start(struct loop *loop, const char *urls, int64_t node_timeout_ms)
{
    rl_client *client = patient(urls); /* the servers know the scripts */
    warm_up(client);
    rl_client_free(client);
    loop_start(loop, urls, node_timeout_ms);
    ts_equal(release(loop, hold_lock(loop, "warm-up", LONG)), RL_OK);
    run_for(loop, 20);
}

/* ---- Held ------------------------------------------------------------------------------------------------------------------------ */

static void held_for_many_leases(void **state)
{
    (void)state;
    struct loop one, three;
    struct held a = {0}, b = {0};
    warm_start(&one, ts_server_url(P1), SOON);
    warm_start(&three, p.urls, SOON);
    keep(&one, &a, "a", lease());
    keep(&three, &b, "b", lease());
    for (int64_t end = ts_mono_ms() + 4 * lease(); ts_mono_ms() < end; check_quiet(&a), check_quiet(&b)) {
        turn(&one);
        turn(&three);
    }
    ts_check(key_is(P1, a.lock) && key_is(P1, b.lock), "not on P1");
    ts_equal(give_back(&one, &a), RL_OK);
    ts_equal(give_back(&three, &b), RL_OK);
    await_empty(&three);
    loop_end(&one);
    loop_end(&three);
}

/* E10 */
static void foreign_at_first(void **state)
{
    (void)state;
    struct loop loop;
    struct held held = {0};
    rl_request request = listening(&held, "job", lease());
    warm_start(&loop, p.urls, SOON);
    request.wait_ms = request.max_hold_ms = LONG;
    ts_set_px(P1, key, foreign, 100);
    ts_set_px(P2, key, foreign, 100);
    keep_it(&loop, &held, &request);
    run_for(&loop, 3 * lease());
    check_quiet(&held);
    ts_equal(give_back(&loop, &held), RL_OK);
    loop_end(&loop);
}

/* E7 */
static void restarted_without_data(void **state)
{
    (void)state;
    struct loop loop;
    struct held held = {0};
    warm_start(&loop, p.urls, SOON);
    keep(&loop, &held, "job", 3 * lease() + slack());
    AWAIT(&loop, ts_servers_holding(&p, key) == 3);
    for (int i = 0; i < 2; i++) {
        ts_server_kill(p.at[i]);
        ts_server_restart(p.at[i]);
        AWAIT(&loop, key_is(p.at[i], held.lock));
        check_quiet(&held);
    }
    for (int i = 0; i < 2; i++)
        ts_command(p.at[i], "FLUSHALL");
    AWAIT(&loop, held.events);
    check_told(&held, 0, RL_EVENT_LOST, RL_LOST_QUORUM_GONE);
    run_for(&loop, lease());
    ts_check(!ts_exists(P1, key) && !ts_exists(P2, key), "a lost lock was restored");
    ts_equal(release(&loop, held.lock), RL_LOST);
    loop_end(&loop);
}

static void taken_over(void **state)
{
    (void)state;
    struct loop loop;
    struct held held = {0};
    struct call call = {0};
    warm_start(&loop, p.urls, SOON);
    keep(&loop, &held, "job", 2 * lease());
    AWAIT(&loop, ts_servers_holding(&p, key) == 3);
    ts_set_px(P1, key, foreign, 0);
    run_for(&loop, 2 * lease());
    check_quiet(&held);
    ts_set_px(P2, key, foreign, 0);
    AWAIT(&loop, held.events);
    check_told(&held, 0, RL_EVENT_LOST, RL_LOST_TAKEN_OVER);
    ts_equal(try_extend(held.lock, LONG, &call), RL_LOST);
    ts_equal(release(&loop, held.lock), RL_LOST);
    ts_check(ts_holds(P1, key, foreign) && ts_holds(P2, key, foreign), "another's key was touched");
    loop_end(&loop);
}

/* ---- Jeopardy ---------------------------------------------------------------------------------------------------------------------- */

/* What stands still for less than the lease: told of twice. */
static void stopped_for_less_than_the_lease(void **state)
{
    (void)state;
    struct loop loop;
    struct held held = {0};
    warm_start(&loop, ts_server_url(P1), SOON);
    keep(&loop, &held, "job", 3 * lease());
    for (int i = 0; i < 2; i++) {
        ts_server_pause(P1);
        AWAIT(&loop, held.events == 2 * i + 1);
        ts_server_resume(P1);
        check_told(&held, 2 * i, RL_EVENT_JEOPARDY, RL_LOST_EXPIRED);
        ts_between(held.told[2 * i].remaining_ms, 1, 2 * lease());
        AWAIT(&loop, held.events == 2 * i + 2);
        check_told(&held, 2 * i + 1, RL_EVENT_RECOVERED, RL_LOST_NOT);
        ts_between(held.told[2 * i + 1].remaining_ms, 1, 3 * lease());
    }
    run_for(&loop, lease());
    ts_equal(held.events, 4);
    ts_equal(give_back(&loop, &held), RL_OK);
    await_empty(&loop);
    loop_end(&loop);
}

static const char *const errors[] = {
    "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.\r\n",
    "-LOADING Redis is loading the dataset in memory\r\n",
    "-READONLY You can't write against a read only replica.\r\n",
    "-OOM command not allowed when used memory > 'maxmemory'.\r\n",
    "*1\r\n:-1\r\n", /* as the script says of a key that it cannot extend */
};

static void errors_that_pass(void **state)
{
    (void)state;
    enum { ERRORS = sizeof errors / sizeof errors[0] };
    ts_proxy *proxy = ts_proxy_to(P1);
    struct loop loop;
    struct held held = {0};
    int64_t most_ms = 0;
    warm_start(&loop, ts_proxy_url(proxy), SOON);
    keep(&loop, &held, "job", lease() * 3 / 2);
    for (int i = 0; i < ERRORS; i++) {
        ts_proxy_answer(proxy, "EVALSHA", 2, errors[i]);
        AWAIT(&loop, held.events == 2 * i + 2);
        check_told(&held, 2 * i, RL_EVENT_JEOPARDY, RL_LOST_EXPIRED);
        check_told(&held, 2 * i + 1, RL_EVENT_RECOVERED, RL_LOST_NOT);
        most_ms = held.told[2 * i].remaining_ms > most_ms ? held.told[2 * i].remaining_ms : most_ms;
    }
    ts_between(most_ms, lease() * 9 / 10, lease() * 3 / 2); /* told as soon as the answer was there */
    for (int i = 0; i < 3; i++) { /* an idle connection that breaks, and scripts that are forgotten, are not even told */
        if (i % 2)
            ts_proxy_reset(proxy);
        else
            ts_command(P1, "SCRIPT FLUSH");
        int64_t calls = ts_proxy_requests(proxy, "EVALSHA");
        AWAIT(&loop, ts_proxy_requests(proxy, "EVALSHA") >= calls + 2);
    }
    ts_equal(held.events, 2 * ERRORS);
    ts_equal(give_back(&loop, &held), RL_OK);
    loop_end(&loop);
    ts_proxy_stop(proxy);
}

/* A request that is lost with its connection. */
static void lost_connections(void **state)
{
    (void)state;
    static const ts_fault faults[] = {TS_RESET_BEFORE, TS_RESET_UNANSWERED, TS_RESET_ANSWERED, TS_HOLD_AND_CUT};
    ts_proxy *proxy = ts_proxy_to(P1);
    struct loop loop;
    struct held held = {0};
    warm_start(&loop, ts_proxy_url(proxy), SOON);
    keep(&loop, &held, "job", 2 * lease());
    for (int i = 0; i < 4; i++) {
        ts_proxy_fault(proxy, "EVALSHA", 0, faults[i], 0);
        AWAIT(&loop, ts_proxy_seen(proxy).pending_faults == 0);
        int64_t calls = ts_proxy_requests(proxy, "EVALSHA");
        AWAIT(&loop, ts_proxy_requests(proxy, "EVALSHA") >= calls + 2);
        ts_check(!held.over && rl_lock_remaining_ms(held.lock) > 0, "lost");
    }
    ts_equal(held.events % 2, 0); /* each jeopardy is over */
    ts_equal(give_back(&loop, &held), RL_OK);
    loop_end(&loop);
    ts_proxy_stop(proxy);
}

/* A renewal that is confirmed is none that failed, though it gains nothing: the holder has asked for less since. */
static void asked_for_less(void **state)
{
    (void)state;
    struct loop loop;
    struct held held = {0};
    warm_start(&loop, p.urls, SOON);
    keep(&loop, &held, "job", 5 * lease());
    ts_equal(extend(&loop, held.lock, lease()), RL_OK);
    run_for(&loop, 3 * lease() + lease() / 3); /* a try was due and has ended by now */
    check_quiet(&held);
    ts_equal(give_back(&loop, &held), RL_OK);
    loop_end(&loop);
}

/* ---- Ends --------------------------------------------------------------------------------------------------------------------------- */

/* S5.6: told once, and of no trouble before. */
static void hold_cap_with(int64_t ttl_ms, int64_t max_hold_ms, uint32_t drift_ppm)
{
    struct loop loop;
    struct held held = {0};
    rl_request request = listening(&held, "job", ttl_ms);
    rl_options options = options_with(SOON, 300);
    options.drift_ppm = drift_ppm;
    request.max_hold_ms = max_hold_ms;
    base_start(&loop);
    loop.async = async_with(&loop, p.urls, &options);
    ts_equal(release(&loop, hold_lock(&loop, "warm-up", LONG)), RL_OK);
    int64_t before = now_ns();
    keep_it(&loop, &held, &request);
    int64_t after = now_ns();
    AWAIT(&loop, held.events);
    check_told(&held, 0, RL_EVENT_LOST, RL_LOST_HOLD_CAP);
    int64_t drift = ttl_ms * drift_ppm / 1000000 + 2;
    ts_between((held.told[0].at_ns - before) / MS, max_hold_ms - drift - 2, LONG);
    ts_between((held.told[0].at_ns - after) / MS, 0, max_hold_ms + slack());
    rl_lock_free(held.lock);
    await_empty(&loop);
    loop_end(&loop);
}

static void hold_cap(void **state)
{
    (void)state;
    int64_t ttl = lease();
    hold_cap_with(ttl, 2 * ttl + ttl / 2, 10000);
    hold_cap_with(ttl, ttl, 10000);
    hold_cap_with(ttl, ttl + ttl / 2, 0);
}

static void touch(void **state)
{
    (void)state;
    struct loop loop;
    struct held held = {0};
    rl_request request = listening(&held, "job", 3 * lease());
    request.touch_within_ms = lease() / 2;
    warm_start(&loop, p.urls, SOON);
    keep_it(&loop, &held, &request);
    for (int64_t end = ts_mono_ms() + 5 * lease() / 2; ts_mono_ms() < end; turn(&loop))
        ts_equal(rl_lock_touch(held.lock), RL_OK);
    check_quiet(&held);
    AWAIT(&loop, held.events == 1);
    check_told(&held, 0, RL_EVENT_JEOPARDY, RL_LOST_NOT_TOUCHED);
    ts_between(held.told[0].remaining_ms, 1, 3 * lease());
    while (held.events < 2) { /* late, but not too late */
        ts_equal(rl_lock_touch(held.lock), RL_OK);
        turn(&loop);
    }
    check_told(&held, 1, RL_EVENT_RECOVERED, RL_LOST_NOT);
    int64_t start = ts_mono_ms();
    AWAIT(&loop, held.events == 4);
    check_told(&held, 2, RL_EVENT_JEOPARDY, RL_LOST_NOT_TOUCHED);
    check_told(&held, 3, RL_EVENT_LOST, RL_LOST_NOT_TOUCHED);
    ts_between(ts_mono_ms() - start, 0, request.touch_within_ms + request.ttl_ms + slack());
    ts_equal(rl_lock_touch(held.lock), RL_LOST);
    rl_lock_free(held.lock);
    loop_end(&loop);
}

/* Renewed no longer, and never renewed: the end of the lease is told, and nothing before. */
static void not_renewed(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct loop loop;
        struct held held = {0};
        rl_request request = listening(&held, "job", lease());
        request.renew = i;
        warm_start(&loop, p.urls, SOON);
        keep_it(&loop, &held, &request);
        run_for(&loop, i ? lease() : 0);
        ts_equal(rl_lock_stop_renewing(held.lock), RL_OK);
        ts_equal(extend(&loop, held.lock, 2 * lease()), RL_OK);
        struct ending ending = {0};
        struct delays delays = {0};
        while (!held.events) {
            look(&ending, held.lock);
            turn(&loop);
        }
        check_told(&held, 0, RL_EVENT_LOST, RL_LOST_EXPIRED);
        note_delay(&delays, &ending, held.told[0].at_ns);
        run_for(&loop, 20);
        ts_equal(held.events, 1);
        ts_equal(release(&loop, held.lock), RL_LOST);
        await_empty(&loop);
        loop_end(&loop);
    }
}

/* ---- Minorities and majorities --------------------------------------------------------------------------------------------------- */

struct patience {
    ts_servers servers;
    struct trouble trouble;
    struct loop loop;
    struct held held;
    int64_t least_ms;
};

static void minority_start(struct patience *h, int nodes)
{
    ts_servers_start(&h->servers, nodes, NULL);
    h->trouble = (struct trouble){.servers = &h->servers, .seed = 70 + (unsigned)nodes};
    warm_start(&h->loop, h->servers.urls, 250);
    h->least_ms = INT64_MAX;
}

static void minority_step(struct patience *h)
{
    int64_t left = rl_lock_remaining_ms(h->held.lock);
    h->least_ms = left < h->least_ms ? left : h->least_ms;
    make_trouble(&h->trouble);
    turn(&h->loop);
    ts_check(!h->held.over, "lost, reason %d", rl_lock_lost_reason(h->held.lock));
    h->held.events = 0; /* one that is late may be told of as jeopardy on a busy machine */
}

static void minority_end(struct patience *h)
{
    all_go_on(&h->trouble);
    printf("event, N = %d: held for %d leases of %lld ms, %d stops; at least %lld ms remained\n", h->servers.count, leases,
           (long long)lease(), h->trouble.stops, (long long)h->least_ms);
    ts_equal(give_back(&h->loop, &h->held), RL_OK);
    for (int i = 0; i < h->servers.count; i++)
        AWAIT(&h->loop, !ts_exists(h->servers.at[i], key));
    loop_end(&h->loop);
    ts_servers_stop(&h->servers);
}

static void a_minority_stops(void **state)
{
    (void)state;
    static struct patience three, five;
    ts_time_limit(60 + leases);
    minority_start(&three, 3);
    minority_start(&five, 5);
    keep(&three.loop, &three.held, "job", lease());
    keep(&five.loop, &five.held, "job", lease());
    for (int64_t end = ts_mono_ms() + leases * lease(); ts_mono_ms() < end;) {
        minority_step(&three);
        minority_step(&five);
    }
    minority_end(&three);
    minority_end(&five);
}

/* Runs the loop until the lock is lost; returns for how many ms at most it stood still. */
static int64_t run_to_the_end(struct loop *loop, struct held *held, struct ending *ending, int64_t since_ms)
{
    int64_t most = 0;
    while (!held->over) {
        look(ending, held->lock);
        turn(loop);
        int64_t now = ts_mono_ms();
        most = now - since_ms > most ? now - since_ms : most;
        since_ms = now;
    }
    return most;
}

/* S5.5: jeopardy first, then lost at the end of the validity. False: the machine was too busy for the loop to learn of anything. */
static bool one_majority_stop(struct loop *loop, struct delays *delays)
{
    struct held held = {0};
    struct ending ending = {0};
    int64_t ttl = 70 * (int64_t)ts_slowness(), start, still;
    keep(loop, &held, "job", ttl);
    run_for(loop, rand() % 40);
    start = ts_mono_ms();
    ts_server_pause(P1);
    ts_server_pause(P3);
    still = run_to_the_end(loop, &held, &ending, start);
    check_told(&held, held.events - 1, RL_EVENT_LOST, RL_LOST_EXPIRED);
    note_delay(delays, &ending, held.told[held.events - 1].at_ns);
    bool warned = held.events > 1 && held.told[held.events - 2].kind == RL_EVENT_JEOPARDY;
    ts_check(warned || still > ttl / 4, "no jeopardy first; the loop stood still for %lld ms at most", (long long)still);
    if (warned)
        ts_check(held.told[held.events - 2].remaining_ms > 0, "jeopardy too late");
    ts_server_resume(P1);
    ts_server_resume(P3);
    rl_lock_free(held.lock);
    await_empty(loop);
    return warned;
}

static void a_majority_stops(void **state)
{
    (void)state;
    struct loop loop;
    struct delays delays = {0};
    int busy = 0;
    warm_start(&loop, p.urls, 250);
    ts_time_limit(60 + runs);
    for (int i = 0; i < runs; i++)
        busy += !one_majority_stop(&loop, &delays);
    print_delays("event", &delays);
    printf("%d times the loop stood still for too long to warn\n", busy);
    ts_check(busy * 4 < runs, "too busy a machine");
    loop_end(&loop);
}

/* ---- E8: releases that race renewals ------------------------------------------------------------------------------------------------ */

enum { RACERS = 64, RACE_TTL = 60 };

struct racer {
    struct held held;
    struct call released;
    char name[32];
    int64_t release_at_ns, lose_at_ns;
    bool started;
};

static int64_t race_ttl(void)
{
    return RACE_TTL * (int64_t)ts_slowness();
}

/* When they are due, these give the lock back, or a node loses its key. */
static void race_step(struct racer *r, int nodes, int *late)
{
    if (!r->held.times || r->started)
        return;
    if (!r->release_at_ns && r->held.lock) {
        r->lose_at_ns = now_ns() + race_ttl() * (150 + rand() % 100) * 1000;
        r->release_at_ns = now_ns() + race_ttl() * (200 + rand() % 150) * 1000; /* a renewal is due from 0.25 of the ttl to 0.29 */
    }
    if (nodes > 1 && r->lose_at_ns && now_ns() >= r->lose_at_ns) {
        ts_del(p.at[rand() % nodes], key_of(r->name));
        r->lose_at_ns = 0;
    }
    if (r->held.lock && now_ns() < r->release_at_ns)
        return;
    r->started = true;
    if (!r->held.lock || r->held.over)
        ++*late;
    r->held.over = true;
    if (r->held.lock)
        start_release(r->held.lock, &r->released);
    else
        r->released.times = 1;
}

static void race_round(struct loop *loop, int nodes, bool lose, int first, int *late)
{
    static struct racer racers[RACERS];
    int ended = 0;
    memset(racers, 0, sizeof racers);
    for (int i = 0; i < RACERS; i++) {
        struct racer *r = &racers[i];
        snprintf(r->name, sizeof r->name, "%d", first + i);
        rl_request request = listening(&r->held, r->name, race_ttl());
        start_keeping(loop, &r->held, &request);
    }
    for (int64_t end = ts_mono_ms() + SOON * ts_slowness(); ended < RACERS; turn(loop)) {
        ts_check(ts_mono_ms() < end, "%d of %d", ended, RACERS);
        ended = 0;
        for (int i = 0; i < RACERS; i++) {
            race_step(&racers[i], lose ? nodes : 1, late);
            ended += racers[i].released.times;
        }
    }
    for (int i = 0; i < RACERS; i++)
        *late += racers[i].held.lock && racers[i].released.status == RL_LOST;
    for (int64_t end = ts_mono_ms() + race_ttl() / 2; keys_on_servers() > 0; turn(loop))
        ts_check(ts_mono_ms() < end, "%d keys are left: %s", keys_on_servers(), ts_command(P1, "KEYS *"));
}

static void race_on(const char *urls, int nodes, int rounds, bool lose)
{
    struct loop loop;
    int late = 0, count = 0;
    int64_t expired = 0;
    warm_start(&loop, urls, SOON);
    for (int i = 0; i < 3; i++)
        ts_command(p.at[i], "CONFIG RESETSTAT");
    for (; count < rounds; count += RACERS)
        race_round(&loop, nodes, lose, count, &late);
    run_for(&loop, race_ttl() + 150); /* ghosts would have ended, and been counted */
    for (int i = 0; i < nodes; i++)
        expired += ts_info_int(p.at[i], "expired_keys");
    printf("N = %d%s: %d releases, %lld scripts on P1, %lld top-ups or grants; %d not in time, %lld keys expired\n", nodes,
           lose ? ", keys lost" : "", count, (long long)releases(P1), (long long)ts_calls(P1, "set"), late, (long long)expired);
    /* (A busy machine may keep a server from a round's releases for longer than the lease, now and then.) */
    ts_check(expired <= (late + RACERS * (1 + rounds / 2000)) * nodes, "%lld keys ended by themselves", (long long)expired);
    ts_check(late < count / 2, "only %d of %d races were in time", count - late, count);
    loop_end(&loop);
}

/* E8, S5.3, S6.1 */
static void releases_race_renewals(void **state)
{
    (void)state;
    ts_time_limit(60 + races / 20);
    race_on(ts_server_url(P1), 1, races / 4, false);
    race_on(p.urls, 3, races / 4, false);
    race_on(p.urls, 3, races / 2, true);
}

/* The answers of a renewal come after the release. */
static void released_in_the_middle(void **state)
{
    (void)state;
    struct net net;
    struct loop loop;
    net_start(&net);
    warm_start(&loop, net.urls, SOON);
    for (int i = 0; i < 3; i++) {
        struct held held = {0};
        keep(&loop, &held, "job", 2 * lease());
        AWAIT(&loop, ts_servers_holding(&p, key) == 3);
        int64_t sets = ts_calls(P2, "set");
        if (i == 2)
            ts_del(P2, key); /* a top-up would follow */
        for (int j = 0; j < 3; j++)
            ts_proxy_fault(net.at[j], "EVALSHA", 0, i == 1 ? TS_DELAY_REQUEST : TS_DELAY_REPLY, lease() / 2);
        AWAIT(&loop, ts_proxy_seen(net.at[0]).pending_faults == 0);
        ts_equal(give_back(&loop, &held), RL_OK);
        await_empty(&loop);
        run_for(&loop, lease() / 2);
        check_empty();
        ts_equal(ts_calls(P2, "set"), sets);
    }
    loop_end(&loop);
    net_stop(&net);
}

/* ---- What callbacks may do ------------------------------------------------------------------------------------------------------------ */

static struct call given_back;

static void then_release(struct held *held)
{
    held->over = true;
    ts_equal(try_release(held->lock, &given_back), RL_OK);
}

static void then_forget(struct held *held)
{
    held->over = true;
    rl_lock_free(held->lock);
}

static void then_free_all(struct held *held)
{
    held->over = true;
    rl_lock_free(held->lock);
    rl_async_free(held->async);
}

static void then_free_async(struct held *held)
{
    held->over = true;
    rl_async_free(held->async);
}

static void then_release_and_free(struct held *held)
{
    then_release(held);
    rl_async_free(held->async);
}

/* Brings about the event that is wanted of two locks on one loop; the first one told does it. */
static void do_in_callback(void (*then)(struct held *), int kind)
{
    struct loop loop;
    struct held held = {0}, other = {0};
    bool frees = then == then_free_all || then == then_free_async || then == then_release_and_free;
    warm_start(&loop, ts_server_url(P1), SOON);
    memset(&given_back, 0, sizeof given_back);
    keep(&loop, &held, "job", lease());
    keep(&loop, &other, "other", lease());
    if (kind != RL_EVENT_RECOVERED)
        held.then = then;
    if (kind == RL_EVENT_LOST)
        ts_command(P1, "FLUSHALL");
    else
        ts_server_pause(P1);
    AWAIT(&loop, held.events);
    check_told(&held, 0, kind == RL_EVENT_LOST ? kind : RL_EVENT_JEOPARDY,
               kind == RL_EVENT_LOST ? RL_LOST_QUORUM_GONE : RL_LOST_EXPIRED);
    held.then = then;
    ts_server_resume(P1);
    AWAIT(&loop, held.over);
    if (frees)
        loop.async = NULL, other.over = true;
    run_for(&loop, lease() / 5);
    ts_equal(held.events, kind == RL_EVENT_RECOVERED ? 2 : 1);
    ts_equal(given_back.times, then == then_release || then == then_release_and_free);
    if (then == then_release)
        ts_equal(given_back.status, kind == RL_EVENT_LOST ? RL_LOST : RL_OK);
    rl_lock_free(other.lock);
    if (then == then_free_async)
        rl_lock_free(held.lock);
    loop_end(&loop);
    ts_command(P1, "FLUSHALL");
}

static void callbacks_may_do_anything(void **state)
{
    (void)state;
    static void (*const all[])(struct held *) = {then_release, then_forget, then_free_all, then_free_async, then_release_and_free};
    for (int kind = RL_EVENT_JEOPARDY; kind <= RL_EVENT_LOST; kind++)
        for (int i = 0; i < 5; i++)
            do_in_callback(all[i], kind);
}

/* Given back or freed between the event's cause and its telling. */
static void nothing_after_the_end(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct loop loop;
        struct held held = {0};
        warm_start(&loop, ts_server_url(P1), SOON);
        keep(&loop, &held, "job", lease() / 2);
        ts_server_pause(P1);
        ts_sleep_ms(lease()); /* the loop stands still: over, and not told yet */
        ts_equal(rl_lock_lost_reason(held.lock), RL_LOST_EXPIRED);
        held.over = true;
        if (i == 0)
            start_release(held.lock, NULL);
        else
            rl_lock_free(held.lock);
        if (i == 2) {
            rl_async_free(loop.async);
            loop.async = NULL;
        }
        run_for(&loop, lease() / 4);
        ts_server_resume(P1);
        run_for(&loop, lease() / 4);
        ts_equal(held.events, 0);
        loop_end(&loop);
    }
}

static int told_in_all;

static void then_free_client(struct held *held)
{
    told_in_all++;
    rl_async_free(held->async);
}

/* Several are lost at once; the first one's callback ends the client: that is the last one. */
static void freed_with_more_to_tell(void **state)
{
    (void)state;
    struct loop loop;
    struct held held[3] = {0};
    static const char *const names[] = {"a", "b", "c"};
    warm_start(&loop, ts_server_url(P1), SOON);
    for (int i = 0; i < 3; i++) {
        held[i].then = then_free_client;
        keep(&loop, &held[i], names[i], lease());
    }
    ts_sleep_ms(lease());
    told_in_all = 0;
    AWAIT(&loop, told_in_all > 0);
    loop.async = NULL;
    run_for(&loop, 20);
    ts_equal(told_in_all, 1);
    for (int i = 0; i < 3; i++)
        rl_lock_free(held[i].lock);
    loop_end(&loop);
}

/* The loop is the only one to tell, but not the only one to find out: told all the same, once. */
static void found_out_before_it_was_told(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct loop loop;
        struct held held = {0};
        struct call call = {0};
        warm_start(&loop, ts_server_url(P1), SOON);
        keep(&loop, &held, "job", lease() / 2);
        ts_sleep_ms(lease());
        ts_check(rl_lock_remaining_ms(held.lock) <= 0, "%d ms remain", (int)rl_lock_remaining_ms(held.lock));
        if (i == 1)
            ts_equal(rl_lock_lost_reason(held.lock), RL_LOST_EXPIRED);
        if (i == 2)
            ts_equal(try_extend(held.lock, LONG, &call), RL_LOST);
        int64_t start = ts_mono_ms();
        AWAIT(&loop, held.events);
        ts_between(ts_mono_ms() - start, 0, slack());
        check_told(&held, 0, RL_EVENT_LOST, RL_LOST_EXPIRED);
        run_for(&loop, 20);
        ts_equal(held.events, 1);
        ts_equal(release(&loop, held.lock), RL_LOST);
        loop_end(&loop);
    }
}

/* ---- Several at it --------------------------------------------------------------------------------------------------------------------- */

static void holder_extends(void **state)
{
    (void)state;
    struct loop loop;
    struct held held = {0};
    warm_start(&loop, p.urls, SOON);
    keep(&loop, &held, "job", lease());
    for (int64_t end = ts_mono_ms() + 2 * lease(); ts_mono_ms() < end; turn(&loop))
        ts_equal(extend(&loop, held.lock, lease()), RL_OK);
    ts_equal(extend(&loop, held.lock, 5 * lease()), RL_OK);
    AWAIT(&loop, rl_lock_remaining_ms(held.lock) < 4 * lease());
    AWAIT(&loop, rl_lock_remaining_ms(held.lock) > 4 * lease() + lease() / 2);
    check_quiet(&held);
    struct call call = {0}; /* released while an extension and renewals run */
    start_extend(held.lock, lease(), &call);
    ts_equal(give_back(&loop, &held), RL_OK);
    ts_equal(call.status, RL_CANCELED);
    await_empty(&loop);
    loop_end(&loop);
}

/* Locks that are due together are one script call; each has its own fate. */
static void batched(void **state)
{
    (void)state;
    enum { LOCKS = 200 };
    static struct held held[LOCKS];
    struct loop loop;
    memset(held, 0, sizeof held);
    warm_start(&loop, p.urls, SOON);
    for (int i = 0; i < LOCKS; i++) {
        char name[16];
        snprintf(name, sizeof name, "%d", i);
        rl_request request = listening(&held[i], name, 4 * lease());
        start_keeping(&loop, &held[i], &request);
    }
    for (int i = 0; i < LOCKS; i++)
        AWAIT(&loop, held[i].times);
    int64_t calls = releases(P1);
    for (int i = 0; i < LOCKS; i += 10)
        for (int j = 0; j < 2; j++)
            ts_del(p.at[j], key_of(rl_lock_name(held[i].lock, NULL)));
    run_for(&loop, 5 * lease());
    printf("%d locks: %lld script calls in %lld ms\n", LOCKS, (long long)(releases(P1) - calls), (long long)(5 * lease()));
    for (int i = 0; i < LOCKS; i++) {
        ts_equal(held[i].events, i % 10 == 0);
        if (held[i].events)
            check_told(&held[i], 0, RL_EVENT_LOST, RL_LOST_QUORUM_GONE);
        held[i].over = true;
        start_release(held[i].lock, NULL);
    }
    await_empty(&loop);
    loop_end(&loop);
}

static void fenced_with(uint32_t fence)
{
    struct loop loop;
    int64_t last = 0;
    warm_start(&loop, p.urls, SOON);
    for (int i = 0; i < 3; i++) {
        struct held held = {0};
        rl_request request = listening(&held, "job", lease());
        request.fence = fence;
        keep_it(&loop, &held, &request);
        ts_check(rl_lock_fence(held.lock) > last, "%lld after %lld", (long long)rl_lock_fence(held.lock), (long long)last);
        last = rl_lock_fence(held.lock);
        AWAIT(&loop, ts_servers_holding(&p, key) == 3);
        run_for(&loop, 5); /* the answers are there too */
        ts_command(p.at[i], "FLUSHALL");
        AWAIT(&loop, key_is(p.at[i], held.lock));
        if (fence == RL_FENCE_QUORUM)
            ts_check(ts_command_int(p.at[i], "GET {rl:job}:fence") >= last, "the counter of P%d is too low", i + 1);
        check_quiet(&held);
        ts_equal(give_back(&loop, &held), RL_OK);
        for (int j = 0; j < 3; j++)
            AWAIT(&loop, !ts_exists(p.at[j], key));
    }
    loop_end(&loop);
}

static void fenced(void **state)
{
    (void)state;
    fenced_with(RL_FENCE_QUORUM);
    fenced_with(RL_FENCE_NODE);
}

/* ---- The end of the client -------------------------------------------------------------------------------------------------------------- */

static void freed_with_locks_held(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct loop loop;
        struct held held[3] = {0};
        static const char *const names[] = {"a", "b", "c"};
        warm_start(&loop, p.urls, 300);
        for (int j = 0; j < 3; j++)
            keep(&loop, &held[j], names[j], lease());
        if (i)
            ts_server_pause(P2);
        run_for(&loop, lease() / 2);
        int64_t start = ts_mono_ms();
        rl_async_free(loop.async);
        ts_between(ts_mono_ms() - start, 0, slack());
        loop.async = NULL;
        for (int j = 0; j < 3; j++)
            held[j].over = true;
        ts_check(rl_lock_remaining_ms(held[0].lock) > 0, "over too soon");
        ts_equal(rl_lock_stop_renewing(held[0].lock), RL_OK);
        run_for(&loop, 3 * lease() / 2);
        ts_check(rl_lock_remaining_ms(held[0].lock) <= 0, "still held");
        ts_equal(rl_lock_lost_reason(held[0].lock), RL_LOST_EXPIRED);
        ts_equal(try_release(held[0].lock, NULL), RL_E_CLOSED);
        rl_lock_free(held[1].lock);
        rl_lock_free(held[2].lock);
        loop_end(&loop);
        ts_server_resume(P2);
    }
}

/* ---- E9 ----------------------------------------------------------------------------------------------------------------------------------- */

struct after_stop {
    int64_t remaining;
    int32_t events_before, events, kind, reason, extend, touch, release, unused;
};

static int stops_itself(int out, void *arg)
{
    struct after_stop found = {0};
    struct loop loop;
    struct held held = {0};
    struct call call = {0};
    rl_request request = listening(&held, "job", lease());
    (void)arg;
    p.count = 0; /* the fixtures are the parent's */
    request.touch_within_ms = LONG;
    warm_start(&loop, p.urls, SOON);
    keep_it(&loop, &held, &request);
    run_for(&loop, 2 * lease());
    found.events_before = held.events;
    kill(getpid(), SIGSTOP);
    found.remaining = rl_lock_remaining_ms(held.lock);
    found.touch = rl_lock_touch(held.lock);
    found.extend = try_extend(held.lock, LONG, &call);
    run_for(&loop, lease());
    found.events = held.events;
    found.kind = held.told[0].kind;
    found.reason = held.told[0].reason;
    found.release = release(&loop, held.lock);
    loop_end(&loop);
    return write(out, &found, sizeof found) == sizeof found ? 0 : 1;
}

static void holder_stopped(void **state)
{
    (void)state;
    struct after_stop found = {0};
    int status = 0;
    ts_child child = ts_child_start(stops_itself, NULL);
    ts_equal(waitpid(child.pid, &status, WUNTRACED), child.pid);
    ts_check(WIFSTOPPED(status), "the child ended instead of stopping");
    check_gone(key);
    rl_client *other = patient(p.urls);
    warm_up(other);
    rl_lock *lock = taken(other, "job", LONG);
    UNTIL(ts_servers_holding(&p, key) == 3);
    int64_t calls = releases(P1);
    kill(child.pid, SIGCONT);
    ts_child_read(&child, &found, sizeof found, SOON);
    ts_equal(ts_child_wait(&child, SOON), 0);
    ts_equal(found.events_before, 0);
    ts_check(found.remaining <= 0, "%lld ms are said to remain", (long long)found.remaining);
    ts_equal(found.touch, RL_LOST);
    ts_equal(found.extend, RL_LOST);
    ts_equal(found.events, 1);
    ts_equal(found.kind, RL_EVENT_LOST);
    ts_equal(found.reason, RL_LOST_EXPIRED);
    ts_equal(found.release, RL_LOST);
    ts_equal(releases(P1), calls + 1); /* the release alone was sent */
    ts_check(key_is(P1, lock) && key_is(P2, lock), "the other's lock was touched");
    ts_equal(rl_release(lock), RL_OK);
    rl_client_free(other);
}

/* ---- Wrong arguments -------------------------------------------------------------------------------------------------------------------- */

static void wrong_requests(void **state)
{
    (void)state;
    struct loop loop;
    struct held held = {0};
    const rl_request good = listening(&held, "job", LONG);
    rl_request r;
    loop_start(&loop, ts_server_url(P1), SOON);
#define WRONG(...)                                                                                                                 \
    do {                                                                                                                           \
        r = good;                                                                                                                  \
        __VA_ARGS__;                                                                                                               \
        ts_check(rl_async_acquire(loop.async, &r, on_held, &held, NULL) == RL_E_INVALID, "accepted: %s", #__VA_ARGS__);            \
    } while (0)
    WRONG(r.renew = 2);
    WRONG(r.reserved = 1);
    WRONG(r.max_hold_ms = -1);
    WRONG(r.max_hold_ms = LONG - 1);
    WRONG(r.touch_within_ms = -1);
    WRONG(r.renew = 0, r.touch_within_ms = 1);
    WRONG(r.renew = 0, r.max_hold_ms = LONG);
    WRONG(r.ttl_ms = 12);
#undef WRONG
    run_for(&loop, 10);
    ts_equal(held.times, 0);
    ts_equal(ts_info_int(P1, "total_connections_received"), 0);
    loop_end(&loop);
}

/* Handles of the other front. */
static void wrong_calls(void **state)
{
    (void)state;
    struct loop loop;
    struct held held = {0};
    struct call call = {0};
    rl_client *client = patient(ts_server_url(P1));
    rl_request request = keeping("other", LONG);
    rl_lock *other = NULL;
    loop_start(&loop, ts_server_url(P1), SOON);
    keep(&loop, &held, "job", LONG);
    ts_equal(rl_acquire_with(client, &request, NULL, &other), RL_OK);
    ts_equal(rl_lock_wait_lost(held.lock, 0), RL_E_INVALID);
    ts_equal(rl_lock_lost_fd(held.lock), RL_E_INVALID);
    ts_equal(rl_lock_touch(held.lock), RL_E_INVALID);
    ts_equal(rl_extend(held.lock, LONG, NULL), RL_E_INVALID);
    ts_equal(rl_release(held.lock), RL_E_INVALID);
    ts_equal(try_extend(other, LONG, &call), RL_E_INVALID);
    ts_equal(try_release(other, &call), RL_E_INVALID);
    ts_equal(rl_lock_lost_reason(held.lock), RL_LOST_NOT);
    ts_equal(rl_lock_stop_renewing(held.lock), RL_OK);
    ts_equal(rl_release(other), RL_OK);
    ts_equal(give_back(&loop, &held), RL_OK);
    loop_end(&loop);
    rl_client_free(client);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        REAL_TEST(held_for_many_leases),
        REAL_TEST(foreign_at_first),
        REAL_TEST(restarted_without_data),
        REAL_TEST(taken_over),
        REAL_TEST(stopped_for_less_than_the_lease),
        REAL_TEST(errors_that_pass),
        REAL_TEST(lost_connections),
        REAL_TEST(asked_for_less),
        REAL_TEST(hold_cap),
        REAL_TEST(touch),
        REAL_TEST(not_renewed),
        REAL_TEST(a_minority_stops),
        REAL_TEST(a_majority_stops),
        REAL_TEST(releases_race_renewals),
        REAL_TEST(released_in_the_middle),
        REAL_TEST(callbacks_may_do_anything),
        REAL_TEST(nothing_after_the_end),
        REAL_TEST(freed_with_more_to_tell),
        REAL_TEST(found_out_before_it_was_told),
        REAL_TEST(holder_extends),
        REAL_TEST(batched),
        REAL_TEST(fenced),
        REAL_TEST(freed_with_locks_held),
        REAL_TEST(holder_stopped),
        REAL_TEST(wrong_requests),
        REAL_TEST(wrong_calls),
    };
    read_arguments(argc, argv);
    return REAL_RUN("event-keep", tests);
}
