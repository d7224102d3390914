/* event.h - what the tests of the libevent front share: a loop with a client on it, and calls that keep count of their callbacks.
 * Servers, proxies and questions about keys are those of the blocking front's tests. */
#ifndef RLT_EVENT_H
#define RLT_EVENT_H

#include "../real/real.h"

#include "redlatch_event.h"

#include <event2/event.h>

/* ---- A loop ------------------------------------------------------------------------------------------------------------------ */

struct loop {
    struct event_base *base;
    struct event *tick; /* so that the loop returns to the test now and then */
    rl_async *async;
};

static bool inside; /* a call of the library: no callback may come meanwhile */

static inline void on_tick(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what, (void)arg;
}

static inline void base_start(struct loop *loop)
{
    const struct timeval often = {0, 2000};
    *loop = (struct loop){.base = event_base_new()};
    assert_non_null(loop->base);
    loop->tick = event_new(loop->base, -1, EV_PERSIST, on_tick, NULL);
    event_add(loop->tick, &often);
}

static inline rl_async *async_with(struct loop *loop, const char *urls, const rl_options *options)
{
    rl_async *async = NULL;
    size_t at = 0;
    inside = true;
    int rc = rl_async_new(loop->base, -1, urls, options, &async, &at);
    inside = false;
    ts_check(rc == RL_OK, "rl_async_new(%s): %s at %zu", urls, rl_strstatus(rc), at);
    return async;
}

static inline void loop_start(struct loop *loop, const char *urls, int64_t node_timeout_ms)
{
    rl_options options = options_with(node_timeout_ms, 300);
    base_start(loop);
    loop->async = async_with(loop, urls, &options);
}

static inline void loop_end(struct loop *loop)
{
    rl_async_free(loop->async);
    event_free(loop->tick);
    event_base_free(loop->base);
    *loop = (struct loop){0};
}

/* One turn, waiting for something to happen (the tick, if nothing else). */
static inline void turn(struct loop *loop)
{
    ts_check(event_base_loop(loop->base, EVLOOP_ONCE) == 0, "the loop has ended");
}

static inline void run_for(struct loop *loop, int64_t ms)
{
    for (int64_t end = ts_mono_ms() + ms; ts_mono_ms() < end;)
        turn(loop);
}

/* Runs the loop until the condition holds; fails the test if it does not in time. */
#define AWAIT(loop, condition)                                                                                                     \
    do {                                                                                                                           \
        for (int64_t end_ = ts_mono_ms() + 2 * SOON * ts_slowness(); !(condition); turn(loop))                                     \
            ts_check(ts_mono_ms() < end_, "in vain: %s", #condition);                                                              \
    } while (0)

/* ---- Calls ------------------------------------------------------------------------------------------------------------------- */

/* One call and what became of it; all zeros before. */
struct call {
    void (*then)(struct call *call); /* to be done in the callback */
    void *arg;
    int times;  /* callbacks that came */
    int order;  /* which callback this was */
    int status; /* ... and what it said */
    rl_lock *lock;
    rl_op *op;
    int64_t remaining_ms, at_ms; /* the lock's, in the callback; ts_now_ms just after */
    int nodes, outcomes[RL_MAX_NODES];
    char text[64]; /* of the last node that said something */
};

static int callbacks; /* that came so far */

static inline void note(struct call *call, int status, const rl_report *report)
{
    ts_check(!inside, "a callback from inside a call");
    call->times++;
    call->order = ++callbacks;
    call->status = status;
    call->op = NULL;
    assert_non_null(report);
    call->nodes = (int)rl_report_count(report);
    for (int i = 0; i < call->nodes; i++) {
        rl_node_result result = said(report, (size_t)i);
        call->outcomes[i] = result.outcome;
        if (result.text[0])
            snprintf(call->text, sizeof call->text, "%s", result.text);
    }
    if (call->then)
        call->then(call);
    for (int i = 0; i < call->nodes; i++) /* the report lives until now, whatever has been freed */
        ts_equal(said(report, (size_t)i).outcome, call->outcomes[i]);
}

static inline void on_acquired(int status, rl_lock *lock, const rl_report *report, void *user_data)
{
    struct call *call = user_data;
    ts_check((lock != NULL) == (status == RL_OK), "a handle with %s", rl_strstatus(status));
    call->lock = lock;
    call->remaining_ms = rl_lock_remaining_ms(lock);
    call->at_ms = ts_now_ms();
    note(call, status, report);
}

static inline void on_done(int status, const rl_report *report, void *user_data)
{
    note(user_data, status, report);
}

static inline int try_acquire(rl_async *async, const char *name, int64_t ttl_ms, int64_t wait_ms, struct call *call)
{
    rl_request request;
    bool before = inside;
    rl_request_init(&request);
    request.name = name;
    request.name_len = strlen(name);
    request.ttl_ms = ttl_ms;
    request.wait_ms = wait_ms;
    inside = true;
    int rc = rl_async_acquire(async, &request, on_acquired, call, &call->op);
    inside = before;
    return rc;
}

static inline int try_extend(rl_lock *lock, int64_t ttl_ms, struct call *call)
{
    inside = true;
    int rc = rl_async_extend(lock, ttl_ms, on_done, call, &call->op);
    inside = false;
    return rc;
}

static inline int try_release(rl_lock *lock, struct call *call)
{
    inside = true;
    int rc = rl_async_release(lock, call ? on_done : NULL, call);
    inside = false;
    return rc;
}

static inline void cancel(rl_op *op)
{
    inside = true;
    rl_op_cancel(op);
    inside = false;
}

/* The same for calls that have to start. */
static inline void start_acquire(rl_async *async, const char *name, int64_t ttl_ms, int64_t wait_ms, struct call *call)
{
    int rc = try_acquire(async, name, ttl_ms, wait_ms, call);
    ts_check(rc == RL_OK, "rl_async_acquire(%s): %s", name, rl_strstatus(rc));
}

static inline void start_extend(rl_lock *lock, int64_t ttl_ms, struct call *call)
{
    int rc = try_extend(lock, ttl_ms, call);
    ts_check(rc == RL_OK, "rl_async_extend: %s", rl_strstatus(rc));
}

static inline void start_release(rl_lock *lock, struct call *call)
{
    int rc = try_release(lock, call);
    ts_check(rc == RL_OK, "rl_async_release: %s", rl_strstatus(rc));
}

/* From start to callback. */
static inline struct call acquire(struct loop *loop, const char *name, int64_t ttl_ms, int64_t wait_ms)
{
    struct call call = {0};
    start_acquire(loop->async, name, ttl_ms, wait_ms, &call);
    AWAIT(loop, call.times);
    return call;
}

static inline rl_lock *hold_lock(struct loop *loop, const char *name, int64_t ttl_ms)
{
    struct call call = acquire(loop, name, ttl_ms, 0);
    ts_check(call.status == RL_OK, "%s: %s; outcomes %d %d %d, \"%s\"", name, rl_strstatus(call.status), call.outcomes[0],
             call.outcomes[1], call.outcomes[2], call.text);
    return call.lock;
}

static inline int extend(struct loop *loop, rl_lock *lock, int64_t ttl_ms)
{
    struct call call = {0};
    start_extend(lock, ttl_ms, &call);
    AWAIT(loop, call.times);
    ts_equal(call.times, 1);
    return call.status;
}

static inline int release(struct loop *loop, rl_lock *lock)
{
    struct call call = {0};
    start_release(lock, &call);
    AWAIT(loop, call.times);
    ts_equal(call.times, 1);
    return call.status;
}

/* ---- What is left behind ----------------------------------------------------------------------------------------------------- */

static inline int keys_on_servers(void)
{
    int keys = 0;
    for (int i = 0; i < p.count; i++)
        keys += ts_server_pid(p.at[i]) != 0 ? (int)ts_dbsize(p.at[i]) : 0;
    return keys;
}

static inline bool servers_empty(void *arg)
{
    (void)arg;
    return keys_on_servers() == 0;
}

/* While the loop runs. */
static inline void await_empty(struct loop *loop)
{
    AWAIT(loop, keys_on_servers() == 0);
}

/* Without the loop: nothing is to be done any more. */
static inline void check_empty(void)
{
    ts_check(ts_eventually(SOON, servers_empty, NULL), "%d keys are left", keys_on_servers());
}

/* Opens the client's connections to all three. */
static inline void warm_async(struct loop *loop)
{
    rl_lock *lock = hold_lock(loop, "warm-up", LONG);
    ts_equal(release(loop, lock), RL_OK);
    AWAIT(loop, ts_calls(P1, "script|load") && ts_calls(P2, "script|load") && ts_calls(P3, "script|load"));
    await_empty(loop);
    run_for(loop, 20);
    for (int i = 0; i < 3; i++)
        ts_command(p.at[i], "CONFIG RESETSTAT");
}

#endif
