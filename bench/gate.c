/* gate.c - how much a redlatch cycle (acquire + release, uncontended) costs against the same commands sent by hand.
 *
 * Method: one process and its servers on one core; the two variants alternate in slices of 20 ms; a repetition gives the ratio of
 * the two medians, and the verdict is the median of the repetitions. Separate runs of identical loops differ by far more than what
 * is to be seen here; this repeats to about a per cent.
 *
 * On one server ours waits for the release's answer, as raw hiredis does. On several both send the release and go on (RL_NO_WAIT).
 */
#include "common.h"
#include "raw.h"

#include <stdio.h>
#include <string.h>

#include "../tests/support/server.h"

enum { SLICE_MS = 20, MAX_REPETITIONS = 100, WARM_UP_CYCLES = 200 };
static const double gate_limit = 1.10;

struct settings {
    long repetitions;
    long slices;
    long core;
    bool gate;
};

/* One of the two things compared: cycle(arg) is done over and over. */
struct variant {
    void (*cycle)(void *arg);
    void *arg;
    struct samples samples;
};

struct ours {
    rl_client *client;
    uint32_t release_flags;
};

static void our_cycle(void *arg)
{
    struct ours *ours = arg;
    release_or_die(acquire_or_die(ours->client, "bench-ours", 0), ours->release_flags);
}

static void raw_blocking_step(void *arg)
{
    raw_blocking_cycle(arg);
}

static void raw_majority_step(void *arg)
{
    raw_majority_cycle(arg);
}

static void run_slice(struct variant *variant)
{
    int64_t start = now_ns(), end = start + SLICE_MS * INT64_C(1000000);
    while (start < end) {
        variant->cycle(variant->arg);
        int64_t now = now_ns();
        samples_add(&variant->samples, now - start);
        start = now;
    }
}

/* One repetition: the ratio ours / raw of the medians. Which of the two comes first changes with every pair of slices. */
static double measure(struct variant *raw, struct variant *ours, long slices)
{
    samples_clear(&raw->samples);
    samples_clear(&ours->samples);
    for (long i = 0; i < slices; i++) {
        run_slice(i % 2 ? ours : raw);
        run_slice(i % 2 ? raw : ours);
    }
    return (double)samples_at(&ours->samples, 500) / (double)samples_at(&raw->samples, 500);
}

static void insert_sorted(double *values, long count, double value)
{
    long i = count;
    for (; i > 0 && values[i - 1] > value; i--)
        values[i] = values[i - 1];
    values[i] = value;
}

/* All repetitions of a pair, and its line of the table. Returns the median ratio. */
static double compare(const char *label, struct variant *raw, struct variant *ours, const struct settings *settings)
{
    double ratios[MAX_REPETITIONS];
    for (int i = 0; i < WARM_UP_CYCLES; i++) {
        raw->cycle(raw->arg);
        ours->cycle(ours->arg);
    }
    for (long i = 0; i < settings->repetitions; i++)
        insert_sorted(ratios, i, measure(raw, ours, settings->slices));
    double median = ratios[settings->repetitions / 2];
    printf("%-34s %8.2f %8.2f   %.3f  %.3f  %.3f\n", label, (double)samples_at(&raw->samples, 500) / 1000,
           (double)samples_at(&ours->samples, 500) / 1000, ratios[0], median, ratios[settings->repetitions - 1]);
    fflush(stdout);
    samples_free(&raw->samples);
    samples_free(&ours->samples);
    return median;
}

/* Both keys have the same length: "rl:" is the library's default prefix. */
static const char raw_key[] = "rl:bench-them";

static double bench_one(const char *label, bool unix_socket, const struct settings *settings)
{
    ts_server *server = ts_server_start_with(&(ts_server_options){.unix_socket = unix_socket});
    struct ours ours = {client_or_die(ts_server_url(server)), 0};
    raw_blocking *raw = raw_blocking_new(ts_server_path(server), ts_server_port(server), raw_key);
    struct variant raw_variant = {.cycle = raw_blocking_step, .arg = raw}, our_variant = {.cycle = our_cycle, .arg = &ours};
    double ratio = compare(label, &raw_variant, &our_variant, settings);
    raw_blocking_free(raw);
    rl_client_free(ours.client);
    ts_server_stop(server);
    return ratio;
}

static void bench_majority(const char *label, int count, const struct settings *settings)
{
    ts_server *servers[RAW_MAX_NODES];
    const char *paths[RAW_MAX_NODES];
    char urls[RAW_MAX_NODES * 128] = "";
    for (int i = 0; i < count; i++) {
        servers[i] = ts_server_start_with(&(ts_server_options){.unix_socket = true});
        paths[i] = ts_server_path(servers[i]);
        size_t used = strlen(urls);
        snprintf(urls + used, sizeof urls - used, "%s%s", used ? "," : "", ts_server_url(servers[i]));
    }
    struct ours ours = {client_or_die(urls), RL_NO_WAIT};
    raw_majority *raw = raw_majority_new(paths, count, raw_key);
    struct variant raw_variant = {.cycle = raw_majority_step, .arg = raw}, our_variant = {.cycle = our_cycle, .arg = &ours};
    compare(label, &raw_variant, &our_variant, settings);
    raw_majority_free(raw);
    rl_client_free(ours.client);
    for (int i = 0; i < count; i++)
        ts_server_stop(servers[i]);
}

static void usage(const char *program)
{
    printf("usage: %s [--gate] [--repetitions=5] [--slices=25] [--core=N]\n"
           "  Prints the medians of a cycle in microseconds, raw and ours, and minimum, median and maximum of their ratio.\n"
           "  --gate          exit with 1 if the median ratio for one server over TCP is above %.2f; measure nothing else\n"
           "  --repetitions   how often each ratio is taken (1 .. %d)\n"
           "  --slices        pairs of %d ms slices in a repetition\n"
           "  --core          where to run; default: the last allowed core\n",
           program, gate_limit, MAX_REPETITIONS, SLICE_MS);
}

static bool read_settings(int argc, char **argv, struct settings *settings)
{
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--gate"))
            settings->gate = true;
        else if (!option_number(argv[i], "--repetitions", &settings->repetitions) &&
                 !option_number(argv[i], "--slices", &settings->slices) && !option_number(argv[i], "--core", &settings->core))
            return false;
    }
    return settings->repetitions >= 1 && settings->repetitions <= MAX_REPETITIONS && settings->slices >= 1;
}

int main(int argc, char **argv)
{
    struct settings settings = {.repetitions = 5, .slices = 25, .core = -1};
    if (!read_settings(argc, argv, &settings)) {
        usage(argv[0]);
        return 2;
    }
    int core = pin_to_core((int)settings.core);
    printf("core %d; medians in us; ratio ours / raw over %ld repetitions\n", core, settings.repetitions);
    printf("%-34s %8s %8s   %-5s  %-5s  %-5s\n", "", "raw", "ours", "min", "med", "max");
    double ratio = bench_one("N=1, TCP, release answered", false, &settings);
    if (settings.gate) {
        printf("gate: %.3f %s %.2f\n", ratio, ratio > gate_limit ? "is above" : "is within", gate_limit);
        return ratio > gate_limit;
    }
    bench_one("N=1, unix, release answered", true, &settings);
    bench_majority("N=3, unix, release not waited for", 3, &settings);
    bench_majority("N=5, unix, release not waited for", 5, &settings);
    return 0;
}
