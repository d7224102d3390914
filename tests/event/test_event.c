/* test_event.c - the libevent front: its calls, what their callbacks may do, the ends of clients and handles, fork.
 */
#include "event.h"

#include <unistd.h>

/* ---- Making and ending clients ----------------------------------------------------------------------------------------------- */

static void bad_arguments_of_new(void **state)
{
    (void)state;
    const char *url = ts_server_url(P1);
    rl_options options = options_with(0, 300);
    rl_async *async = NULL;
    struct loop loop;
    size_t at = 0;
    base_start(&loop);
    ts_equal(rl_async_new(NULL, -1, url, NULL, &async, &at), RL_E_INVALID);
    ts_equal(at == SIZE_MAX, 1);
    ts_equal(rl_async_new(loop.base, -1, NULL, NULL, &async, NULL), RL_E_INVALID);
    ts_equal(rl_async_new(loop.base, -1, url, NULL, NULL, NULL), RL_E_INVALID);
    ts_equal(rl_async_new(loop.base, -2, url, NULL, &async, NULL), RL_E_INVALID);
    ts_equal(rl_async_new(loop.base, 1, url, NULL, &async, NULL), RL_E_INVALID); /* it has one priority: 0 */
    ts_equal(rl_async_new(loop.base, -1, "redis://a,redis://b:x", NULL, &async, &at), RL_E_INVALID);
    ts_between(at, 10, 20);
    ts_equal(rl_async_new(loop.base, -1, "redis://a,redis://a", NULL, &async, &at), RL_E_INVALID);
    ts_equal(rl_async_new(loop.base, -1, "rediss://a", NULL, &async, &at), RL_E_UNSUPPORTED);
    at = 0;
    ts_equal(rl_async_new(loop.base, -1, url, &options, &async, &at), RL_E_INVALID);
    ts_equal(at == SIZE_MAX, 1);
    assert_null(async);
    rl_async_free(NULL);
    rl_op_cancel(NULL);
    loop_end(&loop);
}

static int try_request(rl_async *async, const rl_request *request)
{
    static struct call never;
    int rc = rl_async_acquire(async, request, on_acquired, &never, NULL);
    ts_equal(never.times, 0);
    return rc;
}

/* A11 */
static void bad_arguments_start_nothing(void **state)
{
    (void)state;
    struct call call = {0};
    struct loop loop;
    rl_request request;
    loop_start(&loop, ts_server_url(P1), SOON);
    int64_t connections = ts_info_int(P1, "total_connections_received");
    rl_request_init(&request);
    ts_equal(try_request(loop.async, &request), RL_E_INVALID); /* no name */
    ts_equal(try_request(loop.async, NULL), RL_E_INVALID);
    ts_equal(try_request(NULL, &request), RL_E_INVALID);
    ts_equal(try_acquire(loop.async, "", LONG, 0, &call), RL_E_INVALID);
    ts_equal(try_acquire(loop.async, "x", 0, 0, &call), RL_E_INVALID);
    ts_equal(try_acquire(loop.async, "x", -1, 0, &call), RL_E_INVALID);
    ts_equal(try_acquire(loop.async, "x", INT64_MAX, 0, &call), RL_E_INVALID);
    ts_equal(try_acquire(loop.async, "x", LONG, -2, &call), RL_E_INVALID);
    request.name = "x";
    request.name_len = 1;
    request.ttl_ms = LONG;
    ts_equal(rl_async_acquire(loop.async, &request, NULL, NULL, NULL), RL_E_INVALID); /* no callback */
    request.label = "not\nprintable";
    ts_equal(try_request(loop.async, &request), RL_E_INVALID);
    request.label = NULL;
    request.fence = RL_FENCE_NODE + 1;
    ts_check(try_request(loop.async, &request) < 0, "an unknown fence");
    ts_equal(rl_async_extend(NULL, LONG, on_done, &call, NULL), RL_E_INVALID);
    ts_equal(rl_async_release(NULL, on_done, &call), RL_E_INVALID);
    run_for(&loop, 20);
    ts_equal(call.times, 0);
    ts_equal(ts_info_int(P1, "total_connections_received"), connections);
    loop_end(&loop);
}

static void bad_arguments_about_a_lock(void **state)
{
    (void)state;
    struct call call = {0};
    struct loop loop;
    loop_start(&loop, ts_server_url(P1), SOON);
    rl_lock *lock = hold_lock(&loop, "job", LONG);
    ts_equal(try_extend(lock, 0, &call), RL_E_INVALID);
    ts_equal(try_extend(lock, -1, &call), RL_E_INVALID);
    ts_equal(try_extend(lock, INT64_MAX, &call), RL_E_INVALID);
    ts_equal(rl_async_extend(lock, LONG, NULL, NULL, NULL), RL_E_INVALID);
    /* The blocking calls refuse it, and consume nothing. */
    ts_equal(rl_extend(lock, LONG, NULL), RL_E_INVALID);
    ts_equal(rl_release(lock), RL_E_INVALID);
    ts_equal(rl_release_with(lock, RL_NO_WAIT, NULL), RL_E_INVALID);
    ts_between(rl_lock_remaining_ms(lock), 1, LONG);
    ts_equal(release(&loop, lock), RL_OK);
    ts_equal(call.times, 0);
    check_empty();
    loop_end(&loop);
}

static void handles_of_blocking_clients_are_refused(void **state)
{
    (void)state;
    struct call call = {0};
    rl_client *client = patient(ts_server_url(P1));
    rl_lock *lock = taken(client, "job", LONG);
    ts_equal(try_extend(lock, LONG, &call), RL_E_INVALID);
    ts_equal(try_release(lock, &call), RL_E_INVALID);
    ts_equal(rl_release(lock), RL_OK);
    ts_equal(call.times, 0);
    rl_client_free(client);
}

static void nothing_is_done_before_the_first_operation(void **state)
{
    (void)state;
    struct loop loop;
    int64_t connections = ts_info_int(P1, "total_connections_received");
    loop_start(&loop, ts_server_url(P1), SOON);
    run_for(&loop, 20);
    ts_equal(ts_info_int(P1, "total_connections_received"), connections);
    loop_end(&loop);
    for (int i = 0; i < 100; i++) {
        loop_start(&loop, p.urls, SOON);
        loop_end(&loop);
    }
}

/* ---- A lock's life ----------------------------------------------------------------------------------------------------------- */

static void a_life(struct loop *loop)
{
    size_t len;
    struct call got = acquire(loop, "job", LONG, 0);
    ts_equal(got.status, RL_OK);
    ts_equal(got.nodes, 3);
    ts_between(got.remaining_ms, LONG - LONG / 100 - 2 - slack(), LONG - LONG / 100 - 2);
    assert_string_equal(rl_lock_name(got.lock, &len), "job");
    ts_equal(len, 3);
    ts_check(ts_servers_holding(&p, "rl:job") >= 2, "no quorum holds it");
    ts_check(ts_holds(P1, "rl:job", rl_lock_token(got.lock)) || ts_holds(P2, "rl:job", rl_lock_token(got.lock)), "another token");
    struct call other = acquire(loop, "job", LONG, 30);
    ts_equal(other.status, RL_BUSY);
    ts_equal(extend(loop, got.lock, 2 * LONG), RL_OK);
    ts_check(rl_lock_remaining_ms(got.lock) > LONG, "%lld ms remain", (long long)rl_lock_remaining_ms(got.lock));
    ts_equal(release(loop, got.lock), RL_OK);
    await_empty(loop);
}

static void taken_extended_and_released(void **state)
{
    (void)state;
    struct loop loop;
    loop_start(&loop, p.urls, SOON);
    a_life(&loop);
    a_life(&loop);
    loop_end(&loop);
}

/* S9.1 */
static void reports_tell_of_every_node(void **state)
{
    (void)state;
    struct loop loop;
    loop_start(&loop, p.urls, SOON);
    warm_async(&loop);
    hold(P1, "rl:job", 0);
    struct call got = acquire(&loop, "job", LONG, 0);
    ts_equal(got.status, RL_OK);
    ts_check(got.outcomes[0] == RL_NODE_HELD_BY_OTHER || got.outcomes[0] == RL_NODE_PENDING, "P1: %d", got.outcomes[0]);
    ts_equal(got.outcomes[1], RL_NODE_YES);
    ts_equal(got.outcomes[2], RL_NODE_YES);
    ts_server_kill(P3);
    hold(P2, "rl:other", 0);
    hold(P1, "rl:other", 0);
    struct call busy = acquire(&loop, "other", LONG, 0);
    ts_equal(busy.status, RL_BUSY);
    ts_equal(release(&loop, got.lock), RL_OK); /* two no longer hold it */
    loop_end(&loop);
}

static void on_unix_sockets(void **state)
{
    (void)state;
    ts_server *servers[3];
    char urls[512] = "";
    struct loop loop;
    for (int i = 0; i < 3; i++) {
        servers[i] = ts_server_start_with(&(ts_server_options){.unix_socket = true});
        size_t used = strlen(urls);
        snprintf(urls + used, sizeof urls - used, "%s%s", i ? "," : "", ts_server_url(servers[i]));
    }
    loop_start(&loop, urls, SOON);
    rl_lock *lock = hold_lock(&loop, "job", LONG);
    ts_equal(extend(&loop, lock, LONG), RL_OK);
    ts_equal(release(&loop, lock), RL_OK);
    for (int i = 0; i < 3; i++)
        AWAIT(&loop, ts_dbsize(servers[i]) == 0);
    loop_end(&loop);
}

static void with_priority(int priority)
{
    rl_options options = options_with(SOON, 300);
    struct loop loop;
    base_start(&loop);
    event_base_priority_init(loop.base, 3); /* no event is active yet */
    inside = true;
    ts_equal(rl_async_new(loop.base, priority, p.urls, &options, &loop.async, NULL), RL_OK);
    inside = false;
    a_life(&loop);
    loop_end(&loop);
}

static void every_priority(void **state)
{
    (void)state;
    rl_async *async;
    struct loop loop;
    for (int priority = -1; priority < 3; priority++)
        with_priority(priority);
    base_start(&loop);
    event_base_priority_init(loop.base, 3);
    ts_equal(rl_async_new(loop.base, 3, p.urls, NULL, &async, NULL), RL_E_INVALID);
    loop_end(&loop);
}

static void break_loop(evutil_socket_t fd, short what, void *base)
{
    (void)fd, (void)what;
    event_base_loopbreak(base);
}

/* Lets the loop run for a while, or until the callback has come; to wait for a loop that has nothing active would be in vain. */
static void run_busy(struct event_base *base, struct call *call, int64_t ms)
{
    const struct timeval often = {0, 2000};
    struct event *tick = event_new(base, -1, EV_PERSIST, break_loop, base);
    event_priority_set(tick, 0);
    event_add(tick, &often);
    for (int64_t end = ts_mono_ms() + ms; !call->times && ts_mono_ms() < end;)
        event_base_loop(base, 0);
    event_free(tick);
}

/* An event that is always active at 1: nothing at 2 has a turn, what is at 0 or 1 has. */
static bool progresses(int priority)
{
    struct event_base *base = event_base_new();
    struct call call = {0};
    rl_async *async;
    int always[2];
    ts_check(pipe(always) == 0 && write(always[1], "", 1) == 1, "no pipe");
    event_base_priority_init(base, 3);
    ts_equal(rl_async_new(base, priority, ts_server_url(P1), NULL, &async, NULL), RL_OK);
    struct event *busy = event_new(base, always[0], EV_READ | EV_PERSIST, on_tick, NULL);
    event_priority_set(busy, 1);
    event_add(busy, NULL);
    start_acquire(async, "job", LONG, 0, &call);
    run_busy(base, &call, priority == 2 ? 100 : SOON);
    bool got = call.times > 0;
    rl_lock_free(call.lock);
    call.lock = NULL;
    rl_async_free(async);
    event_free(busy);
    event_base_free(base);
    close(always[0]);
    close(always[1]);
    ts_command(P1, "FLUSHALL");
    return got;
}

static void priorities_are_kept(void **state)
{
    (void)state;
    ts_check(progresses(0), "starved at 0");
    ts_check(!progresses(2), "not starved at 2");
}

/* ---- When callbacks come ----------------------------------------------------------------------------------------------------- */

/* Whatever the result, once; and not before the loop runs, however soon the result is known. */
static void once_and_never_from_inside_a_call(void **state)
{
    (void)state;
    struct call calls[4] = {{0}};
    struct loop loop;
    int guard, closed = ts_port_reserve(&guard);
    char url[64];
    snprintf(url, sizeof url, "redis://127.0.0.1:%d", closed);
    loop_start(&loop, url, SOON);
    for (int i = 0; i < 4; i++) /* the first is refused at once; the others find the node backing off */
        start_acquire(loop.async, "job", LONG, 0, &calls[i]);
    for (int i = 0; i < 4; i++)
        ts_equal(calls[i].times, 0);
    for (int i = 0; i < 4; i++)
        AWAIT(&loop, calls[i].times);
    run_for(&loop, 50);
    for (int i = 0; i < 4; i++) {
        ts_equal(calls[i].times, 1);
        ts_equal(calls[i].status, RL_E_NO_QUORUM);
    }
    loop_end(&loop);
    ts_port_release(guard);
}

static void take_next(struct call *call)
{
    struct call *next = call + 1;
    if (call->lock) {
        inside = true;
        ts_equal(rl_async_release(call->lock, NULL, NULL), RL_OK);
        inside = false;
    }
    if (call->arg)
        start_acquire(call->arg, "job", LONG, 0, next);
}

/* Starting the next one in the callback of the last; releasing without a callback. */
static void chains_of_operations(void **state)
{
    (void)state;
    enum { COUNT = 500 };
    static struct call calls[COUNT];
    struct loop loop;
    memset(calls, 0, sizeof calls);
    loop_start(&loop, p.urls, SOON);
    for (int i = 0; i < COUNT; i++) {
        calls[i].then = take_next;
        calls[i].arg = i + 1 < COUNT ? loop.async : NULL;
    }
    start_acquire(loop.async, "job", LONG, 0, &calls[0]);
    AWAIT(&loop, calls[COUNT - 1].times);
    await_empty(&loop);
    for (int i = 0; i < COUNT; i++) {
        ts_equal(calls[i].times, 1);
        ts_equal(calls[i].status, RL_OK); /* a release never lets the next SET overtake it */
    }
    loop_end(&loop);
}

static void extend_again(struct call *call)
{
    start_extend(call->arg, 2 * LONG, call + 1);
}

/* In the callback of one extension the next may be started, not before. */
static void one_extension_at_a_time(void **state)
{
    (void)state;
    struct call calls[2] = {{.then = extend_again}}, second = {0};
    struct loop loop;
    loop_start(&loop, p.urls, SOON);
    rl_lock *lock = calls[0].arg = hold_lock(&loop, "job", LONG);
    start_extend(lock, LONG, &calls[0]);
    ts_equal(try_extend(lock, LONG, &second), RL_E_INVALID);
    AWAIT(&loop, calls[1].times);
    ts_equal(calls[0].status, RL_OK);
    ts_equal(calls[1].status, RL_OK);
    ts_equal(second.times, 0);
    ts_check(rl_lock_remaining_ms(lock) > LONG, "not extended");
    ts_equal(release(&loop, lock), RL_OK);
    await_empty(&loop);
    loop_end(&loop);
}

/* Nor does an extension that was cancelled stand in the way of the next. */
static void an_extension_after_a_cancelled_one(void **state)
{
    (void)state;
    struct call calls[3] = {{0}};
    struct loop loop;
    loop_start(&loop, p.urls, SOON);
    rl_lock *lock = hold_lock(&loop, "job", LONG);
    start_extend(lock, LONG, &calls[0]);
    cancel(calls[0].op);
    AWAIT(&loop, calls[0].times);
    start_extend(lock, LONG, &calls[1]);
    AWAIT(&loop, calls[1].times);
    ts_equal(calls[0].status, RL_CANCELED);
    ts_equal(calls[1].status, RL_OK);
    ts_between(rl_lock_remaining_ms(lock), 1, LONG);
    ts_equal(release(&loop, lock), RL_OK);
    await_empty(&loop);
    loop_end(&loop);
}

static void a_release_ends_the_extension(void **state)
{
    (void)state;
    struct loop loop;
    loop_start(&loop, p.urls, SOON);
    for (int turns = 0; turns < 6; turns++) {
        struct call extension = {0}, end = {0};
        rl_lock *lock = hold_lock(&loop, "job", LONG);
        start_extend(lock, LONG, &extension);
        for (int i = 0; i < turns && !extension.times; i++)
            turn(&loop);
        bool ran = !extension.times;
        start_release(lock, &end);
        AWAIT(&loop, end.times && extension.times);
        ts_equal(extension.times, 1);
        ts_equal(end.times, 1);
        ts_equal(end.status, RL_OK);
        ts_equal(extension.status, ran ? RL_CANCELED : RL_OK);
        ts_check(extension.order < end.order, "the release ended first");
        await_empty(&loop);
    }
    loop_end(&loop);
}

static void cancel_is_final(void **state)
{
    (void)state;
    struct call call = {0};
    struct loop loop;
    loop_start(&loop, p.urls, SOON);
    hold(P1, "rl:job", 0);
    hold(P2, "rl:job", 0);
    start_acquire(loop.async, "job", LONG, RL_FOREVER, &call);
    run_for(&loop, 50);
    cancel(call.op);
    cancel(call.op); /* it lives until its callback returns */
    ts_equal(call.times, 0);
    event_base_loop(loop.base, EVLOOP_ONCE | EVLOOP_NONBLOCK); /* the next turn */
    ts_equal(call.times, 1);
    ts_equal(call.status, RL_CANCELED);
    run_for(&loop, 50);
    ts_equal(call.times, 1);
    ts_equal(ts_dbsize(P3), 0);
    loop_end(&loop);
}

/* ---- What callbacks may do --------------------------------------------------------------------------------------------------- */

struct crowd {
    struct loop *loop;
    struct call *calls;
    int count;
    rl_lock *held;
};

static void cancel_the_others(struct call *call)
{
    struct crowd *crowd = call->arg;
    for (int i = 0; i < crowd->count; i++)
        cancel(crowd->calls[i].op); /* NULL where the callback has come */
    cancel(call->op);
}

static void callbacks_cancel_others(void **state)
{
    (void)state;
    enum { COUNT = 50 };
    struct call calls[COUNT] = {{0}};
    struct loop loop;
    struct crowd crowd = {&loop, calls, COUNT, NULL};
    int won = 0;
    loop_start(&loop, p.urls, SOON);
    for (int i = 0; i < COUNT; i++) {
        char name[16];
        calls[i].then = cancel_the_others;
        calls[i].arg = &crowd;
        snprintf(name, sizeof name, "job-%d", i);
        start_acquire(loop.async, name, LONG, 0, &calls[i]);
    }
    for (int i = 0; i < COUNT; i++)
        AWAIT(&loop, calls[i].times);
    for (int i = 0; i < COUNT; i++) {
        ts_equal(calls[i].times, 1);
        ts_check(calls[i].status == RL_CANCELED || calls[i].status == RL_OK, "%s", rl_strstatus(calls[i].status));
        won += calls[i].status == RL_OK;
        if (calls[i].lock)
            start_release(calls[i].lock, NULL);
    }
    ts_equal(won, 1); /* that of the first callback: the others were told of after it */
    await_empty(&loop);
    loop_end(&loop);
}

static void free_everything(struct call *call)
{
    struct crowd *crowd = call->arg;
    rl_lock_free(crowd->held);
    rl_lock_free(call->lock);
    crowd->held = call->lock = NULL;
    rl_async_free(crowd->loop->async);
    for (int i = 0; i < crowd->count; i++)
        if (!crowd->calls[i].times)
            ts_equal(try_acquire(crowd->loop->async, "job", LONG, 0, &crowd->calls[i]), RL_E_CLOSED);
    rl_async_free(crowd->loop->async); /* once is enough */
    crowd->loop->async = NULL;
}

/* rl_async_free, and the last handle, from within a callback; everything else is outstanding. */
static void callbacks_free_everything(void **state)
{
    (void)state;
    enum { COUNT = 20 };
    struct call calls[COUNT] = {{0}}, releasing = {0}, extending = {0};
    struct loop loop;
    struct crowd crowd = {&loop, calls, COUNT, NULL};
    loop_start(&loop, p.urls, SOON);
    crowd.held = hold_lock(&loop, "held", LONG);
    rl_lock *other = hold_lock(&loop, "other", LONG), *third = hold_lock(&loop, "third", LONG);
    for (int i = 0; i < COUNT; i++) {
        char name[16];
        calls[i].arg = &crowd;
        snprintf(name, sizeof name, "job-%d", i / 2); /* half of them wait */
        calls[i].then = i == 0 ? free_everything : NULL;
        start_acquire(loop.async, name, LONG, i % 2 ? RL_FOREVER : 0, &calls[i]);
    }
    start_release(other, &releasing);
    start_extend(third, LONG, &extending);
    AWAIT(&loop, calls[0].times);
    ts_equal(calls[0].status, RL_OK);
    for (int i = 0; i < COUNT; i++) {
        ts_equal(calls[i].times, 1);
        ts_check(i == 0 || calls[i].status == RL_CANCELED || calls[i].status == RL_BUSY, "%d: %s", i,
                 rl_strstatus(calls[i].status));
    }
    ts_equal(releasing.times, 1);
    ts_equal(extending.times, 1);
    rl_lock_free(third);
    loop_end(&loop);
    for (int i = 1; i < COUNT / 2; i++) {
        char key[32];
        snprintf(key, sizeof key, "rl:job-%d", i);
        check_gone(key);
    }
    check_gone("rl:other");
}

static void free_the_loop_and_all(struct call *call)
{
    struct crowd *crowd = call->arg;
    rl_async_free(crowd->loop->async);
    crowd->loop->async = NULL;
    if (call->lock)
        rl_lock_free(call->lock);
}

/* The end of the client from the callback of each kind of call, a cancelled one and a chain among them. */
static void the_end_in_every_kind_of_callback(void **state)
{
    (void)state;
    for (int kind = 0; kind < 5; kind++) {
        struct call call = {.then = free_the_loop_and_all}, other = {0};
        struct loop loop;
        struct crowd crowd = {&loop, &call, 0, NULL};
        loop_start(&loop, p.urls, SOON);
        rl_lock *lock = kind ? hold_lock(&loop, "job", LONG) : NULL;
        call.arg = &crowd;
        if (kind == 0 || kind == 3)
            start_acquire(loop.async, "new", LONG, RL_FOREVER, &call);
        else if (kind == 1 || kind == 4)
            start_extend(lock, LONG, &call);
        else
            start_release(lock, &call);
        start_acquire(loop.async, "more", LONG, RL_FOREVER, &other);
        if (kind > 2)
            cancel(call.op);
        AWAIT(&loop, call.times);
        ts_equal(call.times, 1);
        ts_equal(call.status, kind > 2 ? RL_CANCELED : RL_OK);
        ts_equal(other.times, 1);
        ts_check(loop.async == NULL, "no end");
        if (kind && kind != 2) {
            ts_equal(try_release(lock, NULL), RL_E_CLOSED);
        }
        loop_end(&loop);
        if (!other.lock)
            check_gone("rl:more");
        for (int i = 0; i < 3; i++)
            ts_command(p.at[i], "FLUSHALL");
    }
}

/* ---- Ends -------------------------------------------------------------------------------------------------------------------- */

static void free_with_everything_outstanding(void **state)
{
    (void)state;
    enum { COUNT = 100 };
    for (int turns = 0; turns < 12; turns++) {
        struct call calls[COUNT] = {{0}}, releasing = {0}, extending = {0};
        struct loop loop;
        loop_start(&loop, p.urls, SOON);
        rl_lock *lock = hold_lock(&loop, "a", LONG), *other = hold_lock(&loop, "b", LONG);
        for (int i = 0; i < COUNT; i++)
            start_acquire(loop.async, i % 2 ? "c" : "d", LONG, i % 3 ? RL_FOREVER : 0, &calls[i]);
        start_release(lock, &releasing);
        start_extend(other, LONG, &extending);
        for (int i = 0; i < turns; i++)
            turn(&loop);
        int before = callbacks;
        rl_async_free(loop.async); /* callbacks come from inside of it */
        loop.async = NULL;
        ts_check(callbacks > before, "nothing was outstanding");
        for (int i = 0; i < COUNT; i++) {
            ts_equal(calls[i].times, 1);
            rl_lock_free(calls[i].lock);
        }
        ts_equal(releasing.times, 1);
        ts_equal(extending.times, 1);
        run_for(&loop, 5); /* nobody is left to be called */
        ts_equal(try_release(other, NULL), RL_E_CLOSED);
        loop_end(&loop);
        for (int i = 0; i < 3; i++) {
            ts_check(ts_wait_absent(p.at[i], "rl:a", SOON), "a is still there");
            ts_command(p.at[i], "FLUSHALL");
        }
    }
}

static void handles_outlive_the_client(void **state)
{
    (void)state;
    struct call call = {0};
    struct loop loop;
    rl_lock *locks[4];
    loop_start(&loop, p.urls, SOON);
    for (int i = 0; i < 4; i++) {
        char name[2] = {(char)('a' + i), 0};
        locks[i] = hold_lock(&loop, name, LONG);
    }
    loop_end(&loop);
    ts_check(rl_lock_remaining_ms(locks[0]) > LONG / 2, "the lease is gone");
    assert_string_equal(rl_lock_name(locks[1], NULL), "b");
    ts_equal(strlen(rl_lock_token(locks[1])), 32);
    ts_equal(try_extend(locks[0], LONG, &call), RL_E_CLOSED);
    ts_equal(try_extend(locks[0], LONG, &call), RL_E_CLOSED); /* it consumes nothing */
    rl_lock_free(locks[0]);
    ts_equal(try_release(locks[1], &call), RL_E_CLOSED);
    ts_equal(try_release(locks[2], NULL), RL_E_CLOSED);
    ts_equal(rl_release(locks[3]), RL_E_INVALID); /* still of this front */
    rl_lock_free(locks[3]);
    ts_equal(call.times, 0);
    ts_check(ts_servers_holding(&p, "rl:a") >= 2, "not held until the lease ends");
}

/* Cancelled and told of, then the client ends before the clean-up is answered. */
static void cancel_and_free(void **state)
{
    (void)state;
    for (int turns = 0; turns < 8; turns++) {
        struct call call = {0};
        struct loop loop;
        loop_start(&loop, p.urls, SOON);
        warm_async(&loop);
        start_acquire(loop.async, "job", LONG, 0, &call);
        for (int i = 0; i < turns && !call.times; i++)
            turn(&loop);
        bool ran = !call.times;
        cancel(ran ? call.op : NULL);
        loop_end(&loop);
        ts_equal(call.times, 1);
        if (ran)
            ts_equal(call.status, RL_CANCELED);
        if (ran)
            check_empty();
        rl_lock_free(call.lock);
        for (int i = 0; i < 3; i++)
            ts_command(p.at[i], "FLUSHALL");
    }
}

/* Two clients on one base know nothing of each other. */
static void two_clients_on_one_base(void **state)
{
    (void)state;
    struct loop loop;
    struct call call = {0};
    rl_options options = options_with(SOON, 300);
    loop_start(&loop, p.urls, SOON);
    rl_async *second = async_with(&loop, p.urls, &options);
    rl_lock *lock = hold_lock(&loop, "job", LONG);
    start_acquire(second, "job", LONG, RL_FOREVER, &call);
    run_for(&loop, 20);
    ts_equal(release(&loop, lock), RL_OK);
    AWAIT(&loop, call.times);
    ts_equal(call.status, RL_OK);
    rl_async_free(loop.async);
    loop.async = second;
    ts_equal(release(&loop, call.lock), RL_OK);
    await_empty(&loop);
    loop_end(&loop);
}

/* ---- fork() ------------------------------------------------------------------------------------------------------------------ */

struct inherited {
    struct loop *loop;
    rl_lock *lock;
    rl_op *op;
    const char *url;
    bool goes_on; /* the child uses the base for a client of its own */
};

static int child_calls(int out, void *arg)
{
    (void)out;
    struct inherited *its = arg;
    struct call call = {0};
    ts_equal(try_acquire(its->loop->async, "job", LONG, 0, &call), RL_E_FORKED);
    ts_equal(try_extend(its->lock, LONG, &call), RL_E_FORKED);
    ts_equal(try_release(its->lock, &call), RL_E_FORKED);
    ts_equal(rl_lock_remaining_ms(its->lock), 0);
    cancel(its->op);
    rl_async_free(its->loop->async);
    rl_lock_free(its->lock);
    ts_equal(call.times, 0);
    if (!its->goes_on)
        return 0;
    ts_equal(event_reinit(its->loop->base), 0);
    event_base_free(its->loop->base);
    struct loop own;
    loop_start(&own, its->url, SOON);
    rl_lock *lock = hold_lock(&own, "child", LONG);
    ts_equal(release(&own, lock), RL_OK);
    loop_end(&own);
    return 0;
}

static void fork_a_child(bool goes_on)
{
    struct call waiting = {0};
    struct loop loop;
    loop_start(&loop, ts_server_url(P1), SOON);
    rl_lock *lock = hold_lock(&loop, "held", LONG);
    hold(P1, "rl:wait", 0);
    start_acquire(loop.async, "wait", LONG, RL_FOREVER, &waiting);
    run_for(&loop, 20);
    struct inherited its = {&loop, lock, waiting.op, ts_server_url(P1), goes_on};
    ts_child child = ts_child_start(child_calls, &its);
    ts_equal(ts_child_wait(&child, 2 * SOON), 0);
    ts_equal(waiting.times, 0);
    ts_del(P1, "rl:wait");
    AWAIT(&loop, waiting.times); /* the parent goes on, on the same connection */
    ts_equal(waiting.status, RL_OK);
    ts_equal(extend(&loop, lock, LONG), RL_OK);
    ts_equal(release(&loop, lock), RL_OK);
    ts_equal(release(&loop, waiting.lock), RL_OK);
    ts_equal(ts_dbsize(P1), 0);
    loop_end(&loop);
}

static void a_child_leaves_it_alone(void **state)
{
    (void)state;
    fork_a_child(false);
}

static void a_child_goes_on_with_a_base_of_its_own(void **state)
{
    (void)state;
    fork_a_child(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        REAL_TEST(bad_arguments_of_new),
        REAL_TEST(bad_arguments_start_nothing),
        REAL_TEST(bad_arguments_about_a_lock),
        REAL_TEST(handles_of_blocking_clients_are_refused),
        REAL_TEST(nothing_is_done_before_the_first_operation),
        REAL_TEST(taken_extended_and_released),
        REAL_TEST(reports_tell_of_every_node),
        REAL_TEST(on_unix_sockets),
        REAL_TEST(every_priority),
        REAL_TEST(priorities_are_kept),
        REAL_TEST(once_and_never_from_inside_a_call),
        REAL_TEST(chains_of_operations),
        REAL_TEST(one_extension_at_a_time),
        REAL_TEST(an_extension_after_a_cancelled_one),
        REAL_TEST(a_release_ends_the_extension),
        REAL_TEST(cancel_is_final),
        REAL_TEST(callbacks_cancel_others),
        REAL_TEST(callbacks_free_everything),
        REAL_TEST(the_end_in_every_kind_of_callback),
        REAL_TEST(free_with_everything_outstanding),
        REAL_TEST(handles_outlive_the_client),
        REAL_TEST(cancel_and_free),
        REAL_TEST(two_clients_on_one_base),
        REAL_TEST(a_child_leaves_it_alone),
        REAL_TEST(a_child_goes_on_with_a_base_of_its_own),
    };
    return REAL_RUN("event", tests);
}
