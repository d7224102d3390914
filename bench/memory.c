/* memory.c - heap of a held lock on the libevent front, renewal armed: what 10,000 of them add, the allocator's own overhead included. */
#include "bench.h"

#include <redlatch_event.h>

#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

enum { LOCKS = 10000, BATCH = 100 };

struct holder {
    struct event_base *base;
    rl_async *async;
    rl_lock *locks[LOCKS];
    int pending;
};
struct waiting {
    struct holder *holder;
    rl_lock **to;
};

static void one_done(struct holder *holder, int status)
{
    if (status)
        die("memory: %s", rl_strstatus(status));
    if (--holder->pending == 0)
        event_base_loopbreak(holder->base);
}

static void on_acquired(int status, rl_lock *lock, const rl_report *report, void *user_data)
{
    struct waiting *waiting = user_data;
    (void)report;
    *waiting->to = lock;
    one_done(waiting->holder, status);
}

static void on_released(int status, const rl_report *report, void *user_data)
{
    (void)report;
    one_done(user_data, status);
}

static void on_event(rl_lock *lock, const rl_event *event, void *event_data)
{
    (void)lock;
    (void)event_data;
    die("memory: event %d of a lock", event->kind);
}

/* Takes a batch of locks, from the one of this number on, whose names have that many bytes. */
static void take_batch(struct holder *holder, int first, size_t name_length)
{
    char name[64];
    struct waiting waiting[BATCH];
    rl_request request;
    rl_request_init(&request);
    request.name = name;
    request.name_len = name_length;
    request.ttl_ms = 3600000;
    request.renew = 1; /* due after a quarter of an hour */
    request.on_event = on_event;
    holder->pending = BATCH;
    for (int i = 0; i < BATCH; i++) {
        snprintf(name, sizeof name, "%0*d", (int)name_length, first + i);
        waiting[i] = (struct waiting){holder, &holder->locks[first + i]};
        if (rl_async_acquire(holder->async, &request, on_acquired, &waiting[i], NULL))
            die("rl_async_acquire");
    }
    event_base_dispatch(holder->base);
}

static void release_batch(struct holder *holder, int first)
{
    holder->pending = BATCH;
    for (int i = 0; i < BATCH; i++) {
        if (rl_async_release(holder->locks[first + i], on_released, holder))
            die("rl_async_release");
    }
    event_base_dispatch(holder->base);
}

/* Until stragglers have answered, and what their answers were kept for is gone. */
static void settle(struct holder *holder)
{
    event_base_loopexit(holder->base, &(struct timeval){.tv_usec = 50000});
    event_base_dispatch(holder->base);
}

static void memory_case(struct bench *bench, int count, size_t name_length, double goal)
{
    struct nodes nodes;
    char label[64];
    if (!bench_open(bench, "memory", &nodes, count, OVER_TCP))
        return;
    struct holder *holder = zalloc(sizeof *holder);
    holder->base = event_base_new();
    if (!holder->base || rl_async_new(holder->base, -1, nodes.urls, NULL, &holder->async, NULL))
        die("rl_async_new");
    /* What a batch needs besides its locks is there before the first look. */
    take_batch(holder, 0, name_length);
    release_batch(holder, 0);
    settle(holder);
    double before = heap_bytes();
    for (int i = 0; i < LOCKS; i += BATCH)
        take_batch(holder, i, name_length);
    settle(holder);
    double bytes = (heap_bytes() - before) / LOCKS;
    snprintf(label, sizeof label, "N=%d, %zu-byte names", count, name_length);
    report_figure(&bench->report, "memory", label, "heap of a held lock", bytes, "bytes");
    report_figure(&bench->report, "memory", label, "raw: its key and value alone", 3 + (double)name_length + 32, "bytes");
    report_goal(&bench->report, "P10", AT_MOST, goal, NO_GATE, bytes, "held and renewed lock, %s: bytes of heap", label);
    for (int i = 0; i < LOCKS; i += BATCH)
        release_batch(holder, i);
    rl_async_free(holder->async);
    event_base_free(holder->base);
    free(holder);
    nodes_close(&nodes);
}

void scenario_memory(struct bench *bench)
{
    if (wanted(bench, 1))
        memory_case(bench, 1, 24, 200);
    if (wanted(bench, 3))
        memory_case(bench, 3, 32, 400);
}
