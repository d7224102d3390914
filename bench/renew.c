/* renew.c - many held locks, renewed on one libevent loop: what it costs client and servers, in batches and one by one.
 *
 * The locks are taken, two rounds of renewals are let pass, and then a window is measured. What is told is what a client core and a
 * server core spend on renewing 100,000 locks every 10 s: the processor time per renewal, times 10,000 a second. */
#include "bench.h"

#include <redlatch_event.h>

#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

enum { OUTSTANDING = 64, NAME_LENGTH = 24 };

struct keeper {
    struct event_base *base;
    rl_async *async;
    rl_lock **locks;
    long wanted, started, held, events;
    int64_t ttl_ms;
};

static void on_event(rl_lock *lock, const rl_event *event, void *event_data)
{
    struct keeper *keeper = event_data;
    (void)lock;
    (void)event;
    keeper->events++;
}

static void take_one(struct keeper *keeper);

static void on_acquired(int status, rl_lock *lock, const rl_report *report, void *user_data)
{
    struct keeper *keeper = user_data;
    (void)report;
    if (status)
        die("renew: %s", rl_strstatus(status));
    keeper->locks[keeper->held] = lock;
    if (++keeper->held == keeper->wanted)
        event_base_loopbreak(keeper->base);
    else
        take_one(keeper);
}

static void take_one(struct keeper *keeper)
{
    char name[NAME_LENGTH + 1];
    rl_request request;
    if (keeper->started == keeper->wanted)
        return;
    snprintf(name, sizeof name, "%0*ld", NAME_LENGTH, keeper->started++);
    rl_request_init(&request);
    request.name = name;
    request.name_len = NAME_LENGTH;
    request.ttl_ms = keeper->ttl_ms;
    request.wait_ms = 5000;
    request.renew = 1;
    request.on_event = on_event;
    request.event_data = keeper;
    if (rl_async_acquire(keeper->async, &request, on_acquired, keeper, NULL))
        die("rl_async_acquire");
}

static void run_for(struct keeper *keeper, long ms)
{
    event_base_loopexit(keeper->base, &(struct timeval){.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000});
    event_base_dispatch(keeper->base);
}

/* Seconds of processor time of all servers. */
static double servers_cpu(struct nodes *nodes)
{
    double seconds = 0;
    for (int i = 0; i < nodes->count; i++) {
        redisReply *reply = redisCommand(nodes->control[i], "INFO cpu");
        const char *system = reply ? strstr(reply->str, "used_cpu_sys:") : NULL,
                   *user = reply ? strstr(reply->str, "used_cpu_user:") : NULL;
        if (!system || !user)
            die("INFO cpu");
        seconds += strtod(system + 13, NULL) + strtod(user + 14, NULL);
        freeReplyObject(reply);
    }
    return seconds;
}

struct window {
    double seconds, client, server; /* processor time, of all servers */
    double calls, renewals;         /* of one server: script calls, and locks that they renewed */
    long events;
};

static struct window look(struct keeper *keeper, struct nodes *nodes)
{
    return (struct window){.seconds = (double)now_ns() / 1e9,
                           .client = (double)cpu_ns() / 1e9,
                           .server = servers_cpu(nodes),
                           .calls = (double)nodes_calls(nodes, "evalsha") / nodes->count,
                           .renewals = (double)nodes_calls(nodes, "pexpire") / nodes->count,
                           .events = keeper->events};
}

static struct window measure_window(struct keeper *keeper, struct nodes *nodes, long ms)
{
    struct window before = look(keeper, nodes), after;
    run_for(keeper, ms);
    after = look(keeper, nodes);
    return (struct window){after.seconds - before.seconds, after.client - before.client,     after.server - before.server,
                           after.calls - before.calls,     after.renewals - before.renewals, after.events};
}

static double hold(struct bench *bench, struct nodes *nodes, uint32_t batch, struct window *ret)
{
    struct keeper keeper = {.base = event_base_new(), .wanted = bench->locks, .ttl_ms = bench->quick ? 6000 : 30000};
    rl_options options;
    double before, heap;
    keeper.locks = zalloc((size_t)keeper.wanted * sizeof *keeper.locks);
    before = heap_bytes();
    rl_options_init(&options);
    options.renew_batch = batch;
    options.node_timeout_ms = 2000; /* for the crowd at the start */
    if (!keeper.base || rl_async_new(keeper.base, -1, nodes->urls, &options, &keeper.async, NULL))
        die("rl_async_new");
    for (int i = 0; i < OUTSTANDING; i++)
        take_one(&keeper);
    event_base_dispatch(keeper.base);
    run_for(&keeper, keeper.ttl_ms * 2 / 3); /* two rounds: they come in waves at first */
    heap = (heap_bytes() - before) / (double)keeper.wanted;
    *ret = measure_window(&keeper, nodes, bench->seconds * 1000);
    if (ret->events)
        die("renew: %ld locks in jeopardy or lost", ret->events);
    rl_async_free(keeper.async);
    for (long i = 0; i < keeper.held; i++)
        rl_lock_free(keeper.locks[i]);
    free(keeper.locks);
    event_base_free(keeper.base);
    for (int i = 0; i < nodes->count; i++)
        freeReplyObject(redisCommand(nodes->control[i], "FLUSHALL"));
    return heap;
}

/* Of a core, for 100,000 locks every 10 s. */
static double share(const struct window *window, double cpu)
{
    return window->renewals > 0 ? 100 * cpu / window->renewals * 10000 : 100;
}

static void tell(struct bench *bench, const char *label, const struct window *window, int servers)
{
    struct report *report = &bench->report;
    report_figure(report, "renew", label, "renewals a second", window->renewals / window->seconds, "");
    report_figure(report, "renew", label, "script calls a second and server", window->calls / window->seconds, "");
    report_figure(report, "renew", label, "client, 100,000 locks in 10 s", share(window, window->client), "% of a core");
    report_figure(report, "renew", label, "each server, the same", share(window, window->server / servers), "% of a core");
    report_figure(report, "renew", label, "jeopardies and losses", (double)window->events, "");
}

static void renew_case(struct bench *bench, int count, double goal)
{
    struct nodes nodes;
    struct window batched, single;
    char label[64];
    if (!bench_open(bench, "renew", &nodes, count, OVER_TCP))
        return;
    double heap = hold(bench, &nodes, 0, &batched);
    snprintf(label, sizeof label, "N=%d, %ld locks, batches", count, bench->locks);
    tell(bench, label, &batched, count);
    report_figure(&bench->report, "renew", label, "heap of a lock", heap, "bytes");
    report_goal(&bench->report, "P9", AT_MOST, goal, NO_GATE, share(&batched, batched.client),
                "renewing 100,000 locks in 10 s, N=%d: %% of a client core", count);
    hold(bench, &nodes, 1, &single);
    snprintf(label, sizeof label, "N=%d, %ld locks, one by one", count, bench->locks);
    tell(bench, label, &single, count);
    report_figure(&bench->report, "renew", label, "processor time by that in batches",
                  share(&single, single.client) / share(&batched, batched.client), "");
    nodes_close(&nodes);
}

void scenario_renew(struct bench *bench)
{
    if (wanted(bench, 1))
        renew_case(bench, 1, 1);
    if (wanted(bench, 3))
        renew_case(bench, 3, 2);
    if (wanted(bench, 5) && !bench->quick)
        renew_case(bench, 5, 2);
}
