/* cycle.c - an uncontended lock, taken and released by one blocking client: on one server against hiredis' blocking calls, on several
 * against a majority-parallel client by hand. Then the same over a network whose round trip takes 1 ms. */
#include "allocations.h"
#include "bench.h"
#include "calls.h"
#include "raw.h"
#include "relay.h"

enum { RAW, OURS, RAW_NO_WAIT, OURS_NO_WAIT };

static void judge_cycle(struct bench *bench, const struct comparison *comparison, int count, enum transport transport)
{
    struct report *report = &bench->report;
    struct spread ratio = time_ratio(comparison, OURS, RAW), no_wait = time_ratio(comparison, OURS_NO_WAIT, RAW);
    report_ratio(report, comparison, "ours / raw", ratio);
    report_ratio(report, comparison, "ours, no wait / raw, no wait", time_ratio(comparison, OURS_NO_WAIT, RAW_NO_WAIT));
    report_ratio(report, comparison, "ours, no wait / raw", no_wait);
    if (count == 1 && transport == OVER_TCP) {
        report_goal(report, "P1", AT_MOST, 1.06, 1.10, ratio.median, "cycle on one server: ratio to raw hiredis");
        report_goal(report, "P2", AT_MOST, 0.78, NO_GATE, no_wait.median,
                    "release not waited for: ratio to raw hiredis that waits");
    } else if (count == 1) {
        report_goal(report, "P2", AT_MOST, 0.95, NO_GATE, ratio.median, "cycle over a unix socket: ratio to raw hiredis there");
    } else if (count == 5 && transport == OVER_TCP) {
        report_goal(report, "P4", AT_MOST, 1.10, 1.15, ratio.median, "cycle on five servers: ratio to majority-parallel by hand");
    }
}

/* Of the waiting cycles; also that all of it goes over one connection to each server. */
static void count_system_calls(struct bench *bench, struct nodes *nodes, struct variant *raw, struct variant *ours)
{
    static const struct {
        int nodes;
        const char *id;
        double limit;
    } limits[] = {{1, "P1", 6}, {3, "P4", 16}, {5, "P4", 26}};
    struct calls calls;
    if (count_calls(nodes, CALLS_RAW CALLS_BLOCKING, &calls))
        raw->calls = calls.calls;
    if (!count_calls(nodes, CALLS_BLOCKING, &calls)) {
        report_skip(&bench->report, "system calls", "strace is not installed or not permitted");
        return;
    }
    ours->calls = calls.calls;
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        if (limits[i].nodes != nodes->count)
            continue;
        /* To one place: random numbers are drawn in blocks, which is a call in a hundred cycles. */
        report_goal(&bench->report, limits[i].id, AT_MOST, limits[i].limit, limits[i].limit,
                    (double)(long)(calls.calls * 10 + 0.5) / 10, "system calls a cycle, %d server%s", nodes->count,
                    nodes->count == 1 ? "" : "s");
        report_goal(&bench->report, limits[i].id, AT_MOST, 1, 1, calls.connections, "connections to a server, of %d", nodes->count);
    }
}

/* Ours are the handle of the lock, and what is not a cycle's alone. */
static void judge_allocations(struct bench *bench, const struct comparison *comparison, int count)
{
    double of[2];
    for (int i = RAW; i <= OURS; i++) {
        const struct variant *variant = &comparison->variants[i];
        of[i] = count_allocations(variant->step, variant->arg, 1000);
        report_figure(&bench->report, "cycle", comparison->label, i == RAW ? "allocations, raw" : "allocations, ours", of[i],
                      "a cycle");
    }
    if (count == 1)
        report_goal(&bench->report, "P1", AT_MOST, 1, 1, of[OURS], "allocations a cycle, 1 server");
}

static void cycle_case(struct bench *bench, int count, enum transport transport)
{
    struct nodes nodes;
    if (!bench_open(bench, "cycle", &nodes, count, transport))
        return;
    struct our_cycle ours = {client_or_die(nodes.urls, NULL), OUR_NAME, 0}, no_wait = {ours.client, "bench-nowt", RL_NO_WAIT};
    raw_blocking *blocking = count == 1 ? raw_blocking_new(nodes.at, RAW_KEY) : NULL;
    raw_majority *majority = count == 1 ? NULL : raw_majority_new(nodes.at, count, RAW_KEY, true);
    raw_majority *unwaited = raw_majority_new(nodes.at, count, "rl:bench-rnwt", false);
    struct variant raw = {.name = "raw", .step = raw_blocking_cycle, .arg = blocking};
    struct comparison comparison = {
        .scenario = "cycle",
        .count = 4,
        .variants = {[RAW] = raw,
                     [OURS] = {.name = "ours", .step = our_cycle, .arg = &ours},
                     [RAW_NO_WAIT] = {.name = "raw, no wait", .step = raw_majority_cycle, .arg = unwaited},
                     [OURS_NO_WAIT] = {.name = "ours, no wait", .step = our_cycle, .arg = &no_wait}},
    };
    if (majority)
        comparison.variants[RAW] = (struct variant){.name = "raw", .step = raw_majority_cycle, .arg = majority};
    snprintf(comparison.label, sizeof comparison.label, "N=%d, %s", count, transport == OVER_TCP ? "TCP" : "unix");
    if (transport == OVER_TCP)
        count_system_calls(bench, &nodes, &comparison.variants[RAW], &comparison.variants[OURS]);
    measure(&comparison, &bench->effort);
    report_comparison(&bench->report, &comparison);
    judge_cycle(bench, &comparison, count, transport);
    if (transport == OVER_TCP)
        judge_allocations(bench, &comparison, count);
    comparison_free(&comparison);
    if (blocking)
        raw_blocking_free(blocking);
    if (majority)
        raw_majority_free(majority);
    raw_majority_free(unwaited);
    rl_client_free(ours.client);
    nodes_close(&nodes);
}

/* ---- 1 ms away --------------------------------------------------------------------------------------------------------------- */

enum { PING, RAW_5, RAW_9, OURS_1, OURS_5, OURS_9 };

/* The URLs of the first `count` servers behind the relay. */
static rl_client *client_of_first(const struct relay *relay, int count)
{
    char urls[URLS_ROOM] = "";
    for (int i = 0; i < count; i++)
        urls_add(urls, &relay->at[i]);
    return client_or_die(urls, NULL);
}

static void judge_far(struct bench *bench, const struct comparison *comparison)
{
    struct report *report = &bench->report;
    struct spread trips = time_ratio(comparison, OURS_5, PING), nine = time_ratio(comparison, OURS_9, OURS_1);
    report_ratio(report, comparison, "raw, N=5 / round trip", time_ratio(comparison, RAW_5, PING));
    report_ratio(report, comparison, "ours, N=5 / round trip", trips);
    report_ratio(report, comparison, "ours, N=5 / raw, N=5", time_ratio(comparison, OURS_5, RAW_5));
    report_ratio(report, comparison, "ours, N=9 / ours, N=1", nine);
    report_ratio(report, comparison, "ours, N=9 / raw, N=9", time_ratio(comparison, OURS_9, RAW_9));
    report_goal(report, "P4", AT_MOST, 2.15, NO_GATE, trips.median, "1 ms away: round trips a cycle on five servers");
    report_goal(report, "P4", AT_MOST, 1.15, NO_GATE, nine.median, "1 ms away: cycle on nine servers, ratio to one");
}

/* Servers and relay are on any core: they are other machines. The servers are always own ones: few people have nine. */
static void far_case(struct bench *bench)
{
    struct nodes nodes;
    struct relay relay;
    unpin();
    nodes_open(&nodes, 9, OVER_TCP, NULL);
    relay_start(&relay, nodes.at, 9, 1000);
    pin_to_core(bench->core);
    raw_blocking *ping = raw_blocking_new(&relay.at[0], RAW_KEY);
    raw_majority *raw_5 = raw_majority_new(relay.at, 5, RAW_KEY, true),
                 *raw_9 = raw_majority_new(relay.at, 9, "rl:bench-nin9", true);
    struct our_cycle one = {client_of_first(&relay, 1), "bench-one1", 0}, five = {client_of_first(&relay, 5), "bench-five", 0},
                     nine = {client_of_first(&relay, 9), "bench-nine", 0};
    struct comparison comparison = {
        .scenario = "cycle",
        .label = "1 ms away, TCP",
        .count = 6,
        .variants = {[PING] = {.name = "round trip (PING)", .step = raw_blocking_ping, .arg = ping},
                     [RAW_5] = {.name = "raw, N=5", .step = raw_majority_cycle, .arg = raw_5},
                     [RAW_9] = {.name = "raw, N=9", .step = raw_majority_cycle, .arg = raw_9},
                     [OURS_1] = {.name = "ours, N=1", .step = our_cycle, .arg = &one},
                     [OURS_5] = {.name = "ours, N=5", .step = our_cycle, .arg = &five},
                     [OURS_9] = {.name = "ours, N=9", .step = our_cycle, .arg = &nine}},
    };
    measure(&comparison, &bench->effort);
    report_comparison(&bench->report, &comparison);
    judge_far(bench, &comparison);
    comparison_free(&comparison);
    raw_blocking_free(ping);
    raw_majority_free(raw_5);
    raw_majority_free(raw_9);
    rl_client_free(one.client);
    rl_client_free(five.client);
    rl_client_free(nine.client);
    relay_stop(&relay);
    nodes_close(&nodes);
}

void scenario_cycle(struct bench *bench)
{
    for (int count = 1; count <= 7; count += 2) {
        if (!wanted(bench, count) || (bench->quick && count == 7))
            continue;
        cycle_case(bench, count, OVER_TCP);
        if (!bench->quick || count == 1)
            cycle_case(bench, count, OVER_UNIX);
    }
    if (wanted(bench, 9))
        far_case(bench);
}
