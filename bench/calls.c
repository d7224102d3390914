/* calls.c - see calls.h. */
#include "calls.h"

#include "raw.h"

#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SHORT_RUN = 1024, LONG_RUN = 3072 };
extern char **environ;

static bool run(const char *const *argv)
{
    pid_t pid;
    int status;
    posix_spawn_file_actions_t quiet;
    posix_spawn_file_actions_init(&quiet);
    posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", 1 /* O_WRONLY */, 0);
    int failed = posix_spawnp(&pid, argv[0], &quiet, NULL, (char *const *)(uintptr_t)argv, environ);
    posix_spawn_file_actions_destroy(&quiet);
    return !failed && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* The sum of the table that strace -c wrote: "% time, seconds, usecs/call, calls, ..., name". */
static long sum_of(const char *path)
{
    char line[256];
    long sum = 0, calls;
    FILE *file = fopen(path, "r");
    if (!file)
        die("strace wrote nothing");
    while (fgets(line, sizeof line, file)) {
        if (!strstr(line, " total\n") && sscanf(line, "%*f %*f %*d %ld", &calls) == 1)
            sum += calls;
    }
    fclose(file);
    return sum;
}

static long trace(const char *output, const char *self, const char *kind, long cycles, const char *urls)
{
    char traced[64], with_urls[URLS_ROOM + 16];
    snprintf(traced, sizeof traced, "--traced=%s:%ld", kind, cycles);
    snprintf(with_urls, sizeof with_urls, "--urls=%s", urls);
    if (!run((const char *const[]){"strace", "-f", "-c", "-o", output, self, with_urls, traced, NULL}))
        die("the traced cycles did not run");
    return sum_of(output);
}

static double connections(struct nodes *nodes)
{
    double sum = 0;
    for (int i = 0; i < nodes->count; i++)
        sum += (double)nodes_info(nodes, i, "total_connections_received");
    return sum / nodes->count;
}

bool count_calls(struct nodes *nodes, const char *kind, struct calls *ret_calls)
{
    char output[] = "/tmp/redlatch-bench.XXXXXX", self[4096];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    int fd = mkstemp(output);
    if (length < 0 || fd < 0)
        die("no temporary file");
    self[length] = '\0';
    close(fd);
    bool works = run((const char *const[]){"strace", "-f", "-c", "-o", output, "true", NULL});
    if (works) {
        double before = connections(nodes);
        long few = trace(output, self, kind, SHORT_RUN, nodes->urls), many = trace(output, self, kind, LONG_RUN, nodes->urls);
        if (many <= few)
            die("strace counted nothing");
        ret_calls->calls = (double)(many - few) / (LONG_RUN - SHORT_RUN);
        ret_calls->connections = (connections(nodes) - before) / 2;
    }
    unlink(output);
    return works;
}

static void blocking_traced(const char *urls, bool no_wait, bool fence, long cycles)
{
    rl_options options;
    rl_options_init(&options);
    options.fence = fence ? RL_FENCE_QUORUM : RL_FENCE_NONE;
    struct our_cycle ours = {client_or_die(urls, &options), OUR_NAME, no_wait ? RL_NO_WAIT : 0};
    for (long i = 0; i < cycles; i++)
        our_cycle(&ours);
    rl_client_free(ours.client);
}

static void raw_traced(struct nodes *nodes, bool wait, int outstanding, long cycles)
{
    struct samples latencies = {0};
    if (outstanding) {
        raw_loop *loop = raw_loop_new(nodes->at, nodes->count, outstanding, (int)(cycles / outstanding), &latencies);
        raw_loop_step(loop);
        raw_loop_free(loop);
    } else if (nodes->count == 1 && wait) {
        raw_blocking *blocking = raw_blocking_new(nodes->at, RAW_KEY);
        for (long i = 0; i < cycles; i++)
            raw_blocking_cycle(blocking);
        raw_blocking_free(blocking);
    } else {
        raw_majority *majority = raw_majority_new(nodes->at, nodes->count, RAW_KEY, wait);
        for (long i = 0; i < cycles; i++)
            raw_majority_cycle(majority);
        raw_majority_free(majority);
    }
    samples_free(&latencies);
}

static int count_urls(const char *urls)
{
    int count = 1;
    while ((urls = strchr(urls, ',')))
        count++, urls++;
    return count;
}

void calls_traced(const char *kind_and_cycles, const char *urls)
{
    char text[32], *kind = text;
    long cycles;
    int outstanding = 0;
    if (sscanf(kind_and_cycles, "%31[^:]:%ld", text, &cycles) != 2 || !urls)
        die("--traced: KIND:CYCLES, and --urls");
    bool raw = !strncmp(kind, CALLS_RAW, sizeof CALLS_RAW - 1);
    kind += raw ? sizeof CALLS_RAW - 1 : 0;
    bool wait = strcmp(kind, CALLS_NO_WAIT) != 0;
    sscanf(kind, CALLS_LOOP "%d", &outstanding);
    if (raw) {
        struct nodes nodes;
        if (!nodes_open(&nodes, count_urls(urls), strncmp(urls, "unix", 4) ? OVER_TCP : OVER_UNIX, urls))
            die("--urls: over TCP and unix sockets at once");
        raw_traced(&nodes, wait, outstanding, cycles);
        nodes_close(&nodes);
#ifdef BENCH_EVENT
    } else if (outstanding) {
        loop_traced(urls, outstanding, (int)(cycles / outstanding));
#endif
    } else {
        blocking_traced(urls, !wait, !strcmp(kind, CALLS_FENCE), cycles);
    }
}
