/* fence.c - locks that come with a fencing token: on one server against raw hiredis with the same scripts and against locks without;
 * on five by the scripts they run, and at a round trip of 1 ms. */
#include "bench.h"
#include "calls.h"
#include "raw.h"
#include "relay.h"

enum { COUNTED = 500, WARM_UP = 50 };

static rl_client *fenced_client(const char *urls)
{
    rl_options options;
    rl_options_init(&options);
    options.fence = RL_FENCE_QUORUM;
    return client_or_die(urls, &options);
}

static void one_server(struct bench *bench)
{
    struct nodes nodes;
    struct calls calls;
    if (!bench_open(bench, "fence", &nodes, 1, OVER_TCP))
        return;
    raw_blocking *raw = raw_blocking_new_fenced(&nodes.at[0]);
    struct our_cycle fenced = {fenced_client(nodes.urls), OUR_NAME, 0}, plain = {client_or_die(nodes.urls, NULL), "bench-nofe", 0};
    struct comparison comparison = {
        .scenario = "fence",
        .label = "N=1, TCP",
        .count = 3,
        .variants = {{.name = "raw, the same scripts", .step = raw_blocking_cycle, .arg = raw},
                     {.name = "ours, fenced", .step = our_cycle, .arg = &fenced},
                     {.name = "ours, not fenced", .step = our_cycle, .arg = &plain}},
    };
    if (count_calls(&nodes, CALLS_FENCE, &calls))
        comparison.variants[1].calls = calls.calls;
    measure(&comparison, &bench->effort);
    report_comparison(&bench->report, &comparison);
    struct spread ratio = time_ratio(&comparison, 1, 0);
    report_ratio(&bench->report, &comparison, "ours, fenced / raw, the same scripts", ratio);
    report_ratio(&bench->report, &comparison, "ours, fenced / ours, not fenced", time_ratio(&comparison, 1, 2));
    report_goal(&bench->report, "P3", AT_MOST, 1.06, 1.10, ratio.median,
                "fenced cycle on one server: ratio to raw hiredis, same scripts");
    comparison_free(&comparison);
    raw_blocking_free(raw);
    rl_client_free(fenced.client);
    rl_client_free(plain.client);
    nodes_close(&nodes);
}

/* Script calls a cycle and server, less the one that releases. */
static void count_scripts(struct bench *bench, struct nodes *nodes)
{
    struct our_cycle fenced = {fenced_client(nodes->urls), "bench-cnt1", 0};
    for (int i = 0; i < WARM_UP; i++)
        our_cycle(&fenced);
    sleep_ns(50000000); /* stragglers */
    int64_t before = nodes_calls(nodes, "evalsha") + nodes_calls(nodes, "eval");
    for (int i = 0; i < COUNTED; i++)
        our_cycle(&fenced);
    sleep_ns(50000000);
    double calls = (double)(nodes_calls(nodes, "evalsha") + nodes_calls(nodes, "eval") - before) / COUNTED / nodes->count - 1;
    rl_client_free(fenced.client);
    report_figure(&bench->report, "fence", "N=5, the servers agree", "scripts to take a lock, a server", calls, "");
    report_goal(&bench->report, "P3", AT_MOST, 1, 1.01, calls, "quorum fence on five: scripts a server to take a lock");
}

static void five_servers(struct bench *bench)
{
    struct nodes nodes;
    struct relay relay;
    unpin(); /* servers and relay: they are other machines */
    if (!bench_open(bench, "fence", &nodes, 5, OVER_TCP))
        return;
    relay_start(&relay, nodes.at, 5, 1000);
    pin_to_core(bench->core);
    raw_majority *raw = raw_majority_new(relay.at, 5, RAW_KEY, true);
    struct our_cycle fenced = {fenced_client(relay.urls), OUR_NAME, 0}, plain = {client_or_die(relay.urls, NULL), "bench-nofe", 0};
    struct comparison comparison = {
        .scenario = "fence",
        .label = "N=5, 1 ms away, TCP",
        .count = 3,
        .variants = {{.name = "raw, not fenced", .step = raw_majority_cycle, .arg = raw},
                     {.name = "ours, fenced", .step = our_cycle, .arg = &fenced},
                     {.name = "ours, not fenced", .step = our_cycle, .arg = &plain}},
    };
    measure(&comparison, &bench->effort);
    report_comparison(&bench->report, &comparison);
    struct spread ratio = time_ratio(&comparison, 1, 2);
    report_ratio(&bench->report, &comparison, "ours, fenced / ours, not fenced", ratio);
    report_goal(&bench->report, "P3", AT_MOST, 1.08, NO_GATE, ratio.median, "1 ms away: quorum fence on five, ratio to no fence");
    comparison_free(&comparison);
    count_scripts(bench, &nodes);
    raw_majority_free(raw);
    rl_client_free(fenced.client);
    rl_client_free(plain.client);
    relay_stop(&relay);
    nodes_close(&nodes);
}

void scenario_fence(struct bench *bench)
{
    if (wanted(bench, 1))
        one_server(bench);
    if (wanted(bench, 5))
        five_servers(bench);
}
