/* loop.c - many acquire + release cycles outstanding on one libevent loop, against an epoll client written by hand; and one
 * outstanding against the blocking client. */
#include "bench.h"
#include "calls.h"
#include "raw.h"

#include <redlatch_event.h>

#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

struct ours;
struct slot {
    struct ours *ours;
    char name[24];
    int64_t began;
};
struct ours {
    struct event_base *base;
    rl_async *async;
    struct slot *slots;
    int outstanding;
    long started, done, cycles;
    struct samples latencies;
};

static void begin(struct slot *slot);

static void on_released(int status, const rl_report *report, void *user_data)
{
    struct slot *slot = user_data;
    struct ours *ours = slot->ours;
    (void)report;
    if (status)
        die("release: %s", rl_strstatus(status));
    samples_add(&ours->latencies, now_ns() - slot->began);
    if (++ours->done == ours->cycles)
        event_base_loopbreak(ours->base);
    else if (ours->started < ours->cycles)
        begin(slot);
}

static void on_acquired(int status, rl_lock *lock, const rl_report *report, void *user_data)
{
    (void)report;
    if (status)
        die("acquire: %s", rl_strstatus(status));
    if (rl_async_release(lock, on_released, user_data))
        die("rl_async_release");
}

static void begin(struct slot *slot)
{
    rl_request request;
    rl_request_init(&request);
    request.name = slot->name;
    request.name_len = strlen(slot->name);
    request.ttl_ms = 10000;
    slot->ours->started++;
    slot->began = now_ns();
    if (rl_async_acquire(slot->ours->async, &request, on_acquired, slot, NULL))
        die("rl_async_acquire");
}

static long our_step(void *arg)
{
    struct ours *ours = arg;
    ours->started = ours->done = 0;
    for (int i = 0; i < ours->outstanding; i++)
        begin(&ours->slots[i]);
    event_base_dispatch(ours->base);
    return ours->cycles;
}

static void ours_init(struct ours *ours, const char *urls, int outstanding, int rounds)
{
    rl_options options;
    rl_options_init(&options);
    options.node_timeout_ms = 10000; /* with thousands outstanding on a busy machine */
    *ours = (struct ours){.base = event_base_new(), .outstanding = outstanding, .cycles = (long)outstanding * rounds};
    ours->slots = zalloc((size_t)outstanding * sizeof *ours->slots);
    if (!ours->base || rl_async_new(ours->base, -1, urls, &options, &ours->async, NULL))
        die("rl_async_new");
    for (int i = 0; i < outstanding; i++) {
        ours->slots[i].ours = ours;
        snprintf(ours->slots[i].name, sizeof ours->slots[i].name, "loop-o%05d", i);
    }
}

static void ours_free(struct ours *ours)
{
    rl_async_free(ours->async);
    event_base_free(ours->base);
    free(ours->slots);
}

void loop_traced(const char *urls, int outstanding, int rounds)
{
    struct ours ours;
    ours_init(&ours, urls, outstanding, rounds);
    our_step(&ours);
    ours_free(&ours);
    samples_free(&ours.latencies);
}

static void judge(struct bench *bench, const struct comparison *comparison, int count, int outstanding)
{
    struct report *report = &bench->report;
    struct spread rate = rate_ratio(comparison, 1, 0);
    report_ratio(report, comparison, "throughput, ours / raw", rate);
    if (outstanding == 256)
        report_goal(report, "P6", AT_LEAST, 0.90, count == 1 ? 0.85 : NO_GATE, rate.median,
                    "256 outstanding, %d server%s: throughput, by epoll by hand", count, count == 1 ? "" : "s");
    if (outstanding == 1024 && count == 1)
        report_goal(report, "P6", AT_LEAST, 0.90, 0.85, rate.median, "1024 outstanding, 1 server: throughput, by epoll by hand");
    if (outstanding > 1)
        return;
    struct spread blocking = time_ratio(comparison, 1, 2);
    report_ratio(report, comparison, "time, ours / ours, blocking", blocking);
    report_goal(report, "P6", AT_MOST, 1.15, NO_GATE, blocking.median, "1 outstanding, %d server%s: time, by the blocking cycle",
                count, count == 1 ? "" : "s");
}

static void loop_case(struct bench *bench, struct nodes *nodes, int outstanding)
{
    /* Some rounds, so that begin and end of a step do not count; but one outstanding is compared with single cycles. */
    int rounds = outstanding == 1 ? 1 : 4;
    /* A slice is one step at least, and one of thousands on five servers takes half a second. */
    struct effort effort = {bench->effort.repetitions,
                            outstanding * nodes->count > 4096 ? (bench->effort.slices + 4) / 5 : bench->effort.slices};
    char kind[16];
    struct calls calls;
    struct ours ours;
    struct samples raw_latencies = {0};
    struct our_cycle blocking = {client_or_die(nodes->urls, NULL), "loop-block", 0};
    raw_loop *raw = raw_loop_new(nodes->at, nodes->count, outstanding, rounds, &raw_latencies);
    ours_init(&ours, nodes->urls, outstanding, rounds);
    struct comparison comparison = {
        .scenario = "loop",
        .count = outstanding == 1 ? 3 : 2,
        .variants = {{.name = "raw epoll", .step = raw_loop_step, .arg = raw, .latencies = &raw_latencies},
                     {.name = "ours", .step = our_step, .arg = &ours, .latencies = &ours.latencies},
                     {.name = "ours, blocking", .step = our_cycle, .arg = &blocking}},
    };
    snprintf(comparison.label, sizeof comparison.label, "K=%d, N=%d, TCP", outstanding, nodes->count);
    for (int i = 0; i < 2 && outstanding <= 1024; i++) {
        snprintf(kind, sizeof kind, "%s" CALLS_LOOP "%d", i ? "" : CALLS_RAW, outstanding);
        if (count_calls(nodes, kind, &calls))
            comparison.variants[i].calls = calls.calls;
    }
    measure(&comparison, &effort);
    report_comparison(&bench->report, &comparison);
    judge(bench, &comparison, nodes->count, outstanding);
    comparison_free(&comparison);
    raw_loop_free(raw);
    ours_free(&ours);
    rl_client_free(blocking.client);
}

void scenario_loop(struct bench *bench)
{
    static const int outstanding[] = {1, 16, 64, 256, 1024, 4096};
    for (int count = 1; count <= 5; count += 4) {
        struct nodes nodes;
        if (!wanted(bench, count) || !bench_open(bench, "loop", &nodes, count, OVER_TCP))
            continue;
        for (size_t i = 0; i < sizeof outstanding / sizeof outstanding[0]; i++) {
            bool few = outstanding[i] == 1 || outstanding[i] == 256 || (outstanding[i] == 1024 && count == 1);
            if (few || !bench->quick)
                loop_case(bench, &nodes, outstanding[i]);
        }
        nodes_close(&nodes);
    }
}
