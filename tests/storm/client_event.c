/* client_event.c - the kind of contender that lives on a loop. See client.h. */
#include "client.h"

#include <redlatch_event.h>

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TASKS = 12 };

struct task { /* one lock at a time, from acquisition to end */
    struct contender *contender;
    struct event *timer; /* the holder's work, a cancel, or a pause between turns */
    struct turn turn;
    struct claim *claim;
    int64_t begun_ns;
    rl_lock *lock;
    rl_op *op; /* an acquisition that is to be cancelled */
    int extensions;
    bool idle;
};

struct contender {
    struct log *log;
    const char *urls;
    struct event_base *base;
    rl_async *async;
    struct event *watch;
    struct task tasks[TASKS];
    int idle;
};

static void begin(struct task *task);

static void after(struct task *task, int64_t ms)
{
    const struct timeval in = {ms / 1000, ms % 1000 * 1000};
    event_add(task->timer, &in);
}

/* Now and then a callback takes far too long: no claim may be the longer for it. */
static void sometimes_block(struct log *log)
{
    const struct timespec long_time = {0, 300 * 1000000};
    if (log_random(log) % 400)
        return;
    atomic_fetch_add(&log->blocked, 1);
    nanosleep(&long_time, NULL);
}

static void on_released(int status, const rl_report *report, void *user_data)
{
    struct task *task = user_data;
    (void)report;
    log_status(task->contender->log, STORM_EVENT, STORM_RELEASE, status);
    sometimes_block(task->contender->log);
    begin(task);
}

static void let_go(struct task *task)
{
    rl_lock *lock = task->lock;
    task->lock = NULL;
    if (task->turn.plan == PLAN_FORGET) {
        rl_lock_free(lock);
        begin(task);
        return;
    }
    log_end(task->claim);
    int rc = rl_async_release(lock, on_released, task);
    if (rc != RL_OK) {
        log_status(task->contender->log, STORM_EVENT, STORM_RELEASE, rc);
        begin(task);
    }
}

static void on_extended(int status, const rl_report *report, void *user_data)
{
    struct task *task = user_data;
    (void)report;
    log_status(task->contender->log, STORM_EVENT, STORM_EXTEND, status);
    if (status == RL_OK)
        log_extended(task->claim, task->lock);
    if (status == RL_LOST)
        log_end(task->claim);
    sometimes_block(task->contender->log);
    after(task, task->turn.hold_ms);
}

static void prolong(struct task *task)
{
    int rc = rl_async_extend(task->lock, task->turn.ttl_ms, on_extended, task, NULL);
    if (rc == RL_OK)
        return;
    log_status(task->contender->log, STORM_EVENT, STORM_EXTEND, rc);
    log_end(task->claim);
    let_go(task);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct task *task = arg;
    (void)fd, (void)what;
    if (task->op)
        rl_op_cancel(task->op);
    else if (!task->lock)
        begin(task);
    else if (task->turn.plan == PLAN_EXTEND && task->extensions++ < 3)
        prolong(task);
    else
        let_go(task);
}

static void on_acquired(int status, rl_lock *lock, const rl_report *report, void *user_data)
{
    struct task *task = user_data;
    struct log *log = task->contender->log;
    (void)report;
    log_status(log, STORM_EVENT, STORM_ACQUIRE, status);
    event_del(task->timer);
    task->op = NULL;
    task->lock = lock;
    if (status != RL_OK) {
        after(task, 1); /* so that a client that ends does not begin anew from its end */
        return;
    }
    task->claim = log_claim(log, STORM_EVENT, task->turn.name, task->begun_ns, lock);
    if (!task->claim)
        abort();
    sometimes_block(log);
    after(task, task->turn.hold_ms + (task->turn.plan == PLAN_OUTLIVE ? task->turn.ttl_ms : 0));
}

static void begin(struct task *task)
{
    struct contender *contender = task->contender;
    rl_request request;
    if (atomic_load(&contender->log->stop)) {
        task->idle = true;
        if (++contender->idle == TASKS)
            event_base_loopbreak(contender->base);
        return;
    }
    task->extensions = 0;
    draw_turn(contender->log, &task->turn);
    rl_request_init(&request);
    request.name = task->turn.text;
    request.name_len = strlen(task->turn.text);
    request.ttl_ms = task->turn.ttl_ms;
    request.wait_ms = task->turn.wait_ms;
    task->begun_ns = boot_ns();
    int rc = rl_async_acquire(contender->async, &request, on_acquired, task, &task->op);
    if (rc != RL_OK) {
        log_status(contender->log, STORM_EVENT, STORM_ACQUIRE, rc);
        task->op = NULL;
        after(task, 1);
    } else if (task->turn.ttl_ms % 10 == 0) {
        after(task, task->turn.hold_ms); /* then it is cancelled, unless it has ended */
    } else {
        task->op = NULL;
    }
}

static void make_client(struct contender *contender)
{
    rl_options options = storm_options();
    if (rl_async_new(contender->base, -1, contender->urls, &options, &contender->async, NULL) != RL_OK)
        abort();
}

/* From time to time the client is replaced, whatever is outstanding. */
static void on_watch(evutil_socket_t fd, short what, void *arg)
{
    struct contender *contender = arg;
    (void)fd, (void)what;
    if (log_random(contender->log) % 20)
        return;
    rl_async *old = contender->async;
    make_client(contender);
    rl_async_free(old);
}

void run_event(struct log *log, const char *urls)
{
    static struct contender contender;
    const struct timeval often = {0, 100 * 1000};
    contender = (struct contender){.log = log, .urls = urls, .base = event_base_new()};
    make_client(&contender);
    contender.watch = event_new(contender.base, -1, EV_PERSIST, on_watch, &contender);
    event_add(contender.watch, &often);
    for (int i = 0; i < TASKS; i++) {
        struct task *task = &contender.tasks[i];
        task->contender = &contender;
        task->timer = event_new(contender.base, -1, 0, on_timer, task);
        begin(task);
    }
    event_base_dispatch(contender.base);
    rl_async_free(contender.async);
    for (int i = 0; i < TASKS; i++)
        event_free(contender.tasks[i].timer);
    event_free(contender.watch);
    event_base_free(contender.base);
}
