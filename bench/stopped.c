/* stopped.c - what a lock costs while one of the servers stands still, or is late, against all of them healthy.
 *
 * Stopped is SIGSTOP: the server keeps its connections and accepts new ones, but never answers, which is the hardest way to be away.
 * An acquire is to return with the quorum's last grant, whether its node timeout for the silent server is still running ("just
 * stopped") or has made it late. In a repetition healthy servers and a stopped one take turns. Late is a network 4 ms long.
 */
#include "bench.h"
#include "raw.h"
#include "relay.h"

#include <string.h>
#include <unistd.h>

enum { NODE_TIMEOUT_MS = 250 /* the default of the option */, HEALTHY_MS = 150, LATE_MS = 150, SETTLING_CYCLES = 50 };
#define MS INT64_C(1000000)

/* A cycle that may fail, as a step. */
struct attempts {
    rl_client *client;
    const char *name;
    long failed;
};

static long attempt(void *arg)
{
    struct attempts *attempts = arg;
    rl_lock *lock;
    if (rl_acquire(attempts->client, attempts->name, 10000, 0, &lock) || rl_release(lock))
        attempts->failed++;
    return 1;
}

static void run_until(struct attempts *attempts, int64_t end, struct samples *samples)
{
    for (int64_t start = now_ns(), now; start < end; start = now) {
        attempt(attempts);
        now = now_ns();
        samples_add(samples, now - start);
    }
}

/* After SIGCONT: until the server has worked off what was queued, and votes again. */
static void settle(struct attempts *attempts, ts_server *server)
{
    ts_command(server, "PING");
    for (int i = 0; i < SETTLING_CYCLES; i++)
        attempt(attempts);
}

/* Kilobytes that are resident. */
static double resident_kb(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%*d %ld", &pages) != 1)
        die("cannot read /proc/self/statm");
    fclose(file);
    return (double)pages * (double)sysconf(_SC_PAGESIZE) / 1024;
}

/* How much the process grows over seconds of a server that does not answer; nothing else is kept meanwhile. */
static double growth_kb(struct attempts *attempts, ts_server *server, int seconds)
{
    ts_server_pause(server);
    for (int64_t end = now_ns() + 2 * NODE_TIMEOUT_MS * MS; now_ns() < end;)
        attempt(attempts);
    double before = resident_kb();
    for (int64_t end = now_ns() + seconds * 1000 * MS; now_ns() < end;)
        attempt(attempts);
    double after = resident_kb();
    ts_server_resume(server);
    settle(attempts, server);
    return after - before;
}

/* ---- Stopped ----------------------------------------------------------------------------------------------------------------- */

enum { HEALTHY, JUST_STOPPED, KNOWN_LATE, STATES };

/* One repetition: adds to the samples, and returns the medians of this repetition. */
static void stop_once(struct attempts *attempts, ts_server *victim, struct samples all[STATES], double ret_medians[STATES])
{
    struct samples now[STATES] = {{0}};
    run_until(attempts, now_ns() + HEALTHY_MS * MS, &now[HEALTHY]);
    ts_server_pause(victim);
    int64_t start = now_ns();
    run_until(attempts, start + NODE_TIMEOUT_MS * MS, &now[JUST_STOPPED]);
    run_until(attempts, start + (NODE_TIMEOUT_MS + LATE_MS) * MS, &now[KNOWN_LATE]);
    ts_server_resume(victim);
    settle(attempts, victim);
    for (int i = 0; i < STATES; i++) {
        ret_medians[i] = (double)samples_at(&now[i], 500);
        samples_append(&all[i], &now[i]);
        samples_free(&now[i]);
    }
}

static void judge_stopped(struct bench *bench, int count, const char *label, struct samples all[STATES],
                          double ratios[STATES][MAX_REPETITIONS])
{
    static const char *const names[STATES] = {"healthy", "just stopped", "stopped, known late"};
    struct report *report = &bench->report;
    struct comparison lines = {.scenario = "stopped"};
    double worst = 0, tail = 0;
    snprintf(lines.label, sizeof lines.label, "%s", label);
    for (int i = 0; i < STATES; i++)
        report_latencies(report, "stopped", label, names[i], &all[i]);
    for (int i = JUST_STOPPED; i < STATES; i++) {
        struct spread ratio = spread_of(ratios[i], bench->effort.repetitions);
        double p999 = (double)samples_at(&all[i], 999) / 1e6;
        report_ratio(report, &lines, i == KNOWN_LATE ? "stopped, known late / healthy" : "just stopped / healthy", ratio);
        worst = ratio.median > worst ? ratio.median : worst;
        tail = p999 > tail ? p999 : tail;
    }
    report_goal(report, "P5", AT_MOST, 1.05, 1.5, worst, "one of %d stopped: p50, by healthy", count);
    /* The gate: nobody waits for the silent server. */
    report_goal(report, "P5", AT_MOST, 5, NODE_TIMEOUT_MS - 1, tail, "one of %d stopped: p99.9 in ms", count);
}

static void stopped_case(struct bench *bench, int count)
{
    struct nodes nodes;
    struct samples all[STATES] = {{0}};
    double ratios[STATES][MAX_REPETITIONS], medians[STATES];
    char label[32];
    snprintf(label, sizeof label, "N=%d, TCP, one stopped", count);
    nodes_open(&nodes, count, OVER_TCP, NULL); /* others' servers are not ours to stop */
    ts_server *victim = nodes.own[count - 1];
    struct attempts attempts = {client_or_die(nodes.urls, NULL), OUR_NAME, 0};
    settle(&attempts, victim);
    printf("\n");
    for (long i = 0; i < bench->effort.repetitions; i++) {
        stop_once(&attempts, victim, all, medians);
        for (int j = 0; j < STATES; j++)
            ratios[j][i] = medians[j] / medians[HEALTHY];
    }
    double growth = growth_kb(&attempts, victim, bench->quick ? 1 : 5);
    judge_stopped(bench, count, label, all, ratios);
    report_figure(&bench->report, "stopped", label, "growth while stopped", growth, "kB");
    report_goal(&bench->report, "P5", AT_MOST, 256, 1024, growth, "one of %d stopped: growth of the process in kB", count);
    report_goal(&bench->report, "P5", AT_MOST, 0, 0, (double)attempts.failed, "one of %d stopped: failed cycles", count);
    for (int i = 0; i < STATES; i++)
        samples_free(&all[i]);
    rl_client_free(attempts.client);
    nodes_close(&nodes);
}

/* ---- 4 ms late --------------------------------------------------------------------------------------------------------------- */

enum { RAW_HEALTHY, OURS_HEALTHY, OURS_LATE, RAW_LATE };

/* On one core a late server costs the client wake-ups of its own, and so does it by hand: that is the second ratio. */
static void judge_late(struct bench *bench, struct comparison *comparison, int count, long failed)
{
    struct report *report = &bench->report;
    struct spread ratio = time_ratio(comparison, OURS_LATE, OURS_HEALTHY);
    double tail = (double)samples_at(variant_latencies(&comparison->variants[OURS_LATE]), 999) / 1e6;
    report_ratio(report, comparison, "ours, one late / ours, all healthy", ratio);
    report_ratio(report, comparison, "raw, one late / raw, all healthy", time_ratio(comparison, RAW_LATE, RAW_HEALTHY));
    report_ratio(report, comparison, "ours, one late / raw, one late", time_ratio(comparison, OURS_LATE, RAW_LATE));
    report_goal(report, "P5", AT_MOST, 1.05, NO_GATE, ratio.median, "one of %d 4 ms late: p50, by healthy", count);
    report_goal(report, "P5", AT_MOST, 5, NODE_TIMEOUT_MS - 1, tail, "one of %d 4 ms late: p99.9 in ms", count);
    report_goal(report, "P5", AT_MOST, 0, 0, (double)failed, "one of %d 4 ms late: failed cycles", count);
}

static void late_case(struct bench *bench, int count)
{
    struct nodes nodes;
    struct relay relay;
    if (!bench_open(bench, "stopped", &nodes, count, OVER_TCP))
        return;
    unpin(); /* the network takes no time of the core where the others are */
    relay_start(&relay, &nodes.at[count - 1], 1, 4000);
    pin_to_core(bench->core);
    struct address at[MAX_NODES];
    memcpy(at, nodes.at, sizeof at);
    at[count - 1] = relay.at[0];
    char urls[URLS_ROOM] = "";
    for (int i = 0; i < count; i++)
        urls_add(urls, &at[i]);
    struct attempts healthy = {client_or_die(nodes.urls, NULL), OUR_NAME, 0}, late = {client_or_die(urls, NULL), "bench-late", 0};
    raw_majority *raw = raw_majority_new(nodes.at, count, RAW_KEY, true),
                 *raw_late = raw_majority_new(at, count, "rl:bench-rlat", true);
    struct comparison comparison = {
        .scenario = "stopped",
        .count = 4,
        .variants = {[RAW_HEALTHY] = {.name = "raw, all healthy", .step = raw_majority_cycle, .arg = raw},
                     [OURS_HEALTHY] = {.name = "ours, all healthy", .step = attempt, .arg = &healthy},
                     [OURS_LATE] = {.name = "ours, one 4 ms late", .step = attempt, .arg = &late},
                     [RAW_LATE] = {.name = "raw, one 4 ms late", .step = raw_majority_cycle, .arg = raw_late}},
    };
    snprintf(comparison.label, sizeof comparison.label, "N=%d, TCP, one late", count);
    measure(&comparison, &bench->effort);
    report_comparison(&bench->report, &comparison);
    judge_late(bench, &comparison, count, late.failed);
    comparison_free(&comparison);
    raw_majority_free(raw);
    raw_majority_free(raw_late);
    rl_client_free(healthy.client);
    rl_client_free(late.client);
    relay_stop(&relay);
    nodes_close(&nodes);
}

void scenario_stopped(struct bench *bench)
{
    for (int count = 3; count <= 5; count += 2) {
        if (!wanted(bench, count))
            continue;
        stopped_case(bench, count);
        late_case(bench, count);
    }
}
