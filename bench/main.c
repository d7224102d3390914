/* main.c - redlatch-bench: where redlatch stands against the raw limit. See README.md in this directory. */
#include "bench.h"
#include "calls.h"

#include "../tests/support/check.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

struct scenario {
    const char *name;
    void (*run)(struct bench *bench);
    const char *what;
};
static const struct scenario scenarios[] = {
    {"cycle", scenario_cycle, "an uncontended lock, taken and released by a blocking client; also over a network of 1 ms"},
    {"threads", scenario_threads, "1 to 64 threads on one client, against a connection a thread"},
#ifdef BENCH_EVENT
    {"loop", scenario_loop, "1 to 4,096 cycles outstanding on one libevent loop"},
#endif
    {"stopped", scenario_stopped, "one of the servers stopped, or late"},
    {"contention", scenario_contention, "2 to 256 threads that want one lock"},
    {"fence", scenario_fence, "locks with a fencing token"},
#ifdef BENCH_EVENT
    {"memory", scenario_memory, "heap of a held lock"},
    {"renew", scenario_renew, "many held locks that are renewed on one loop, in batches and one by one"},
#endif
};
enum { SCENARIOS = sizeof scenarios / sizeof scenarios[0] };

static _Noreturn void usage(const char *program, int status)
{
    FILE *to = status ? stderr : stdout;
    fprintf(to,
            "usage: %s [OPTION]... [SCENARIO]...\n"
            "  Measures redlatch against the same commands sent by hand, and prints what was wanted and what was reached.\n"
            "  Exit status 1 if a gate is missed.\n\n"
            "  --quick            few cases and short: finds faults, not per cents\n"
            "  --nodes=N,N...     only the cases with so many servers\n"
            "  --urls=URL,URL...  these servers (redis://host:port, unix:///path) instead of own ones\n"
            "  --repetitions=7    how often each ratio is taken (1 .. %d)\n"
            "  --slices=25        of %d ms, of each variant in a repetition\n"
            "  --core=N           where client and servers run for gated figures; default: the last allowed core\n"
            "  --locks=100000     of the scenario renew (--quick: 20,000)\n"
            "  --seconds=10       ... and how long to look at them\n"
            "  --tries=1          all over again where a gate is missed, so often: for busy machines\n"
            "  --json=FILE        writes everything there too\n\n"
            "scenarios (default: all)\n",
            program, MAX_REPETITIONS, SLICE_MS);
    for (int i = 0; i < SCENARIOS; i++)
        fprintf(to, "  %-12s %s\n", scenarios[i].name, scenarios[i].what);
    exit(status);
}

static long number(const char *text, long least, long most)
{
    char *end;
    long value = strtol(text, &end, 10);
    if (end == text || *end || value < least || value > most)
        die("%s: to be a number from %ld to %ld", text, least, most);
    return value;
}

static void read_counts(struct bench *bench, char *text)
{
    int count = 0;
    for (char *one; (one = strsep(&text, ","));) {
        if (count == MAX_COUNTS - 1)
            die("--nodes: too many");
        bench->counts[count++] = (int)number(one, 1, MAX_NODES);
    }
}

static const char *read_options(int argc, char **argv, struct bench *bench, const char **ret_traced)
{
    static const struct option options[] = {{"quick", no_argument, NULL, 'q'},
                                            {"nodes", required_argument, NULL, 'n'},
                                            {"urls", required_argument, NULL, 'u'},
                                            {"repetitions", required_argument, NULL, 'r'},
                                            {"slices", required_argument, NULL, 's'},
                                            {"core", required_argument, NULL, 'c'},
                                            {"json", required_argument, NULL, 'j'},
                                            {"tries", required_argument, NULL, 'T'},
                                            {"locks", required_argument, NULL, 'l'},
                                            {"seconds", required_argument, NULL, 'S'},
                                            {"traced", required_argument, NULL, 't'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    const char *json = NULL;
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (option) {
        case 'q':
            bench->quick = true;
            break;
        case 'n':
            read_counts(bench, optarg);
            break;
        case 'u':
            bench->urls = optarg;
            break;
        case 'r':
            bench->effort.repetitions = number(optarg, 1, MAX_REPETITIONS);
            break;
        case 's':
            bench->effort.slices = number(optarg, 1, 100000);
            break;
        case 'c':
            bench->core = (int)number(optarg, 0, 1023);
            break;
        case 'T':
            bench->tries = (int)number(optarg, 1, 10);
            break;
        case 'j':
            json = optarg;
            break;
        case 't':
            *ret_traced = optarg;
            break;
        case 'l':
            bench->locks = number(optarg, 1, 10000000);
            break;
        case 'S':
            bench->seconds = number(optarg, 1, 86400);
            break;
        default:
            usage(argv[0], option == 'h' ? 0 : 2);
        }
    }
    if (!bench->effort.slices)
        bench->effort.slices = bench->quick ? 5 : 25;
    if (!bench->locks)
        bench->locks = bench->quick ? 20000 : 100000;
    if (!bench->seconds)
        bench->seconds = bench->quick ? 3 : 10;
    return json;
}

bool wanted(const struct bench *bench, int count)
{
    for (int i = 0; bench->counts[i]; i++) {
        if (bench->counts[i] == count)
            return true;
    }
    return !bench->counts[0];
}

bool bench_open(struct bench *bench, const char *scenario, struct nodes *nodes, int count, enum transport transport)
{
    char reason[80];
    if (nodes_open(nodes, count, transport, bench->urls))
        return true;
    snprintf(reason, sizeof reason, "--urls has less than %d servers %s", count,
             transport == OVER_UNIX ? "on unix sockets" : "over TCP");
    report_skip(&bench->report, scenario, reason);
    return false;
}

static const struct scenario *scenario_named(const char *name)
{
    for (int i = 0; i < SCENARIOS; i++) {
        if (!strcmp(scenarios[i].name, name))
            return &scenarios[i];
    }
    die("no scenario is called %s", name);
}

static void run_scenario(struct bench *bench, const struct scenario *scenario)
{
    int core = pin_to_core(bench->core);
    printf("\n==== %s: %s (core %d unless said otherwise)\n", scenario->name, scenario->what, core);
    scenario->run(bench);
    unpin();
}

static void run(struct bench *bench, int count, char **names)
{
    for (int i = 0; i < count; i++)
        run_scenario(bench, scenario_named(names[i]));
    for (int i = 0; i < SCENARIOS && !count; i++)
        run_scenario(bench, &scenarios[i]);
}

int main(int argc, char **argv)
{
    struct bench bench = {.effort = {.repetitions = 7}, .core = -1, .tries = 1};
    const char *traced = NULL, *json = read_options(argc, argv, &bench, &traced);
    if (traced) {
        calls_traced(traced, bench.urls);
        return 0;
    }
    for (int i = optind; i < argc; i++)
        scenario_named(argv[i]);
    ts_need_server(); /* some cases stop their servers, or need many */
    bool kept = false;
    for (int i = 0; i < bench.tries && !kept; i++) {
        puts(i ? "\nA gate was missed: once more." : "");
        report_begin(&bench.report);
        run(&bench, argc - optind, argv + optind);
        kept = report_end(&bench.report, json, &bench.effort);
    }
    return !kept;
}
