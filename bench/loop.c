/* loop.c - many acquire + release cycles outstanding on one libevent loop and one server, against a hand-written epoll client that sends
 * the same commands with hiredis' formatter and reader.
 *
 * Method: as in gate.c: one process and its server on one core; the two variants alternate; the verdict is the median of the
 * repetitions' ratios of medians. A slice is a fixed number of cycles, from the first request to the last answer.
 */
#include "common.h"
#include "raw.h"

#include <redlatch_event.h>

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "../tests/support/server.h"

enum { ROUNDS = 4, MAX_REPETITIONS = 100 };
static const double gate_limit = 0.85;

struct settings {
    long repetitions, slices, core;
    bool gate;
};

/* ---- Ours -------------------------------------------------------------------------------------------------------------------- */

struct ours;
struct slot {
    struct ours *ours;
    char name[24];
};
struct ours {
    struct event_base *base;
    rl_async *async;
    struct slot *slots;
    long outstanding, started, done, cycles;
};

static void start(struct slot *slot);

static void on_released(int status, const rl_report *report, void *user_data)
{
    struct slot *slot = user_data;
    struct ours *ours = slot->ours;
    (void)report;
    if (status)
        die("release: %s", rl_strstatus(status));
    if (++ours->done == ours->cycles)
        event_base_loopbreak(ours->base);
    else if (ours->started < ours->cycles)
        start(slot);
}

static void on_acquired(int status, rl_lock *lock, const rl_report *report, void *user_data)
{
    (void)report;
    if (status)
        die("acquire: %s", rl_strstatus(status));
    if (rl_async_release(lock, on_released, user_data))
        die("rl_async_release");
}

static void start(struct slot *slot)
{
    rl_request request;
    rl_request_init(&request);
    request.name = slot->name;
    request.name_len = strlen(slot->name);
    request.ttl_ms = 10000;
    slot->ours->started++;
    if (rl_async_acquire(slot->ours->async, &request, on_acquired, slot, NULL))
        die("rl_async_acquire");
}

static void our_slice(void *arg)
{
    struct ours *ours = arg;
    ours->started = ours->done = 0;
    for (long i = 0; i < ours->outstanding; i++)
        start(&ours->slots[i]);
    event_base_dispatch(ours->base);
}

static void ours_init(struct ours *ours, const char *url, long outstanding)
{
    rl_options options;
    rl_options_init(&options);
    options.node_timeout_ms = 10000;
    *ours = (struct ours){.base = event_base_new(), .outstanding = outstanding, .cycles = outstanding * ROUNDS};
    ours->slots = calloc((size_t)outstanding, sizeof *ours->slots);
    if (!ours->slots || rl_async_new(ours->base, -1, url, &options, &ours->async, NULL))
        die("rl_async_new");
    for (long i = 0; i < outstanding; i++) {
        ours->slots[i].ours = ours;
        snprintf(ours->slots[i].name, sizeof ours->slots[i].name, "loop-%06ld", i);
    }
}

static void ours_free(struct ours *ours)
{
    rl_async_free(ours->async);
    event_base_free(ours->base);
    free(ours->slots);
}

/* ---- Comparing --------------------------------------------------------------------------------------------------------------- */

static void raw_slice(void *raw)
{
    raw_loop_run(raw, ROUNDS);
}

static int64_t cpu_ns(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * INT64_C(1000000000) +
           (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * INT64_C(1000);
}

struct variant {
    void (*slice)(void *arg);
    void *arg;
    struct samples wall, cpu;
};

static void run_slice(struct variant *variant)
{
    int64_t wall = now_ns(), cpu = cpu_ns();
    variant->slice(variant->arg);
    samples_add(&variant->wall, now_ns() - wall);
    samples_add(&variant->cpu, cpu_ns() - cpu);
}

/* One repetition: cycles per second, ours / raw. */
static double measure(struct variant *raw, struct variant *ours, long slices)
{
    samples_clear(&raw->wall);
    samples_clear(&ours->wall);
    for (long i = 0; i < slices; i++) {
        run_slice(i % 2 ? ours : raw);
        run_slice(i % 2 ? raw : ours);
    }
    return (double)samples_at(&raw->wall, 500) / (double)samples_at(&ours->wall, 500);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_pair(long outstanding, struct variant *raw, struct variant *ours, const double *ratios, long count)
{
    double cycles = (double)outstanding * ROUNDS;
    printf("%5ld outstanding  raw %8.0f cycles/s  ours %8.0f  cpu us/cycle %.2f  %.2f   ratio %.3f  %.3f  %.3f\n", outstanding,
           cycles * 1e9 / (double)samples_at(&raw->wall, 500), cycles * 1e9 / (double)samples_at(&ours->wall, 500),
           (double)samples_at(&raw->cpu, 500) / cycles / 1000, (double)samples_at(&ours->cpu, 500) / cycles / 1000, ratios[0],
           ratios[count / 2], ratios[count - 1]);
    fflush(stdout);
}

static double compare(long outstanding, const struct settings *settings)
{
    double ratios[MAX_REPETITIONS];
    ts_server *server = ts_server_start_with(&(ts_server_options){0});
    struct ours ours;
    ours_init(&ours, ts_server_url(server), outstanding);
    raw_loop *raw = raw_loop_new(ts_server_port(server), (int)outstanding);
    struct variant raw_variant = {.slice = raw_slice, .arg = raw}, our_variant = {.slice = our_slice, .arg = &ours};
    for (int i = 0; i < 2; i++) {
        raw_slice(raw);
        our_slice(&ours);
    }
    for (long i = 0; i < settings->repetitions; i++)
        ratios[i] = measure(&raw_variant, &our_variant, settings->slices);
    qsort(ratios, (size_t)settings->repetitions, sizeof ratios[0], by_size);
    print_pair(outstanding, &raw_variant, &our_variant, ratios, settings->repetitions);
    samples_free(&raw_variant.wall);
    samples_free(&raw_variant.cpu);
    samples_free(&our_variant.wall);
    samples_free(&our_variant.cpu);
    raw_loop_free(raw);
    ours_free(&ours);
    ts_server_stop(server);
    return ratios[settings->repetitions / 2];
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
    struct settings settings = {.repetitions = 7, .slices = 30, .core = -1};
    if (!read_settings(argc, argv, &settings)) {
        printf("usage: %s [--gate] [--repetitions=7] [--slices=30] [--core=N]\n"
               "  Cycles per second with 256 and 1,000 outstanding, raw and ours, and minimum, median and maximum of ours / raw.\n"
               "  --gate   exit with 1 if a median ratio is below %.2f\n",
               argv[0], gate_limit);
        return 2;
    }
    printf("core %d; one server; ratio over %ld repetitions\n", pin_to_core((int)settings.core), settings.repetitions);
    double few = compare(256, &settings), many = compare(1000, &settings);
    if (!settings.gate)
        return 0;
    bool ok = few >= gate_limit && many >= gate_limit;
    printf("gate: %.3f and %.3f: %s %.2f\n", few, many, ok ? "both at least" : "not both", gate_limit);
    return !ok;
}
