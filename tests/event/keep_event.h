/* keep_event.h - locks that are held on a loop, and what they told. */
#ifndef RLT_KEEP_EVENT_H
#define RLT_KEEP_EVENT_H

#include "event.h"

#include "../real/keep.h"

enum { MOST_EVENTS = 16 };

struct held {
    void (*then)(struct held *held); /* to be done in on_event */
    rl_async *async;
    rl_lock *lock;
    rl_op *op;
    bool over; /* released, freed or lost: nothing more may be told */
    int times, status;
    int events;
    struct told {
        int kind, reason;
        int64_t remaining_ms, at_ns;
    } told[MOST_EVENTS];
};

static inline void on_held(int status, rl_lock *lock, const rl_report *report, void *user_data)
{
    struct held *held = user_data;
    (void)report;
    held->times++;
    held->status = status;
    held->lock = lock;
    held->op = NULL;
}

static inline void on_event(rl_lock *lock, const rl_event *event, void *event_data)
{
    struct held *held = event_data;
    struct told told = {event->kind, event->reason, event->remaining_ms, now_ns()};
    ts_check(!inside, "an event from inside a call");
    ts_check(held->lock && lock == held->lock, "an event of a lock that is not held");
    ts_check(!held->over && held->events < MOST_EVENTS, "event %d, reason %d, after the end", event->kind, event->reason);
    ts_equal(event->size, sizeof *event);
    ts_check(event->kind == RL_EVENT_LOST ? rl_lock_remaining_ms(lock) <= 0 && event->remaining_ms == 0 : event->remaining_ms >= 0,
             "event %d with %lld ms", event->kind, (long long)event->remaining_ms);
    ts_equal(rl_lock_lost_reason(lock), event->kind == RL_EVENT_LOST ? event->reason : RL_LOST_NOT);
    held->told[held->events++] = told;
    held->over = event->kind == RL_EVENT_LOST;
    if (held->then)
        held->then(held);
}

static inline rl_request listening(struct held *held, const char *name, int64_t ttl_ms)
{
    rl_request request = keeping(name, ttl_ms);
    request.on_event = on_event;
    request.event_data = held;
    return request;
}

static inline void start_keeping(struct loop *loop, struct held *held, const rl_request *request)
{
    inside = true;
    int rc = rl_async_acquire(loop->async, request, on_held, held, &held->op);
    inside = false;
    ts_check(rc == RL_OK, "rl_async_acquire: %s", rl_strstatus(rc));
    held->async = loop->async;
}

static inline void keep_it(struct loop *loop, struct held *held, const rl_request *request)
{
    start_keeping(loop, held, request);
    AWAIT(loop, held->times);
    ts_check(held->status == RL_OK, "not acquired: %s", rl_strstatus(held->status));
}

static inline void keep(struct loop *loop, struct held *held, const char *name, int64_t ttl_ms)
{
    rl_request request = listening(held, name, ttl_ms);
    keep_it(loop, held, &request);
}

/* The handle is given back: nothing more is told of it. */
static inline int give_back(struct loop *loop, struct held *held)
{
    held->over = true;
    return release(loop, held->lock);
}

#define check_told(held, i, kind, reason) check_told_at(__FILE__, __LINE__, (held), (i), (kind), (reason))
static inline void check_told_at(const char *file, int line, const struct held *held, int i, int kind, int reason)
{
    if (held->events <= i || held->told[i].kind != kind || held->told[i].reason != reason)
        ts_fail_at(file, line, "event %d of %d: kind %d, reason %d; expected %d, %d", i, held->events, held->told[i].kind,
                   held->told[i].reason, kind, reason);
}

#endif
