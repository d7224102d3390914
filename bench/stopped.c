/* stopped.c - what an acquire costs while one server of three stands still, against all three healthy.
 *
 * One client, one run: slices with all servers healthy alternate with slices in which the third is stopped by SIGSTOP (it keeps
 * its connections and accepts new ones, but never answers: the hardest way for a server to be away). An acquire is to return with
 * the second grant, whether its node timeout for the silent server is still running ("just stopped") or has made it late ("late").
 */
#include "common.h"

#include <stdio.h>
#include <string.h>

#include "../tests/support/server.h"

enum { NODE_TIMEOUT_MS = 250, SETTLING_CYCLES = 50 }; /* the default of the option */
static const double gate_limit = 1.5;
static const char lock_name[] = "bench-stopped";

struct settings {
    long rounds, slice_ms, core;
    bool gate;
};

static void timed_cycle(rl_client *client, struct samples *samples)
{
    int64_t start = now_ns();
    rl_lock *lock = acquire_or_die(client, lock_name, 0);
    samples_add(samples, now_ns() - start);
    release_or_die(lock, 0);
}

static void run_until(rl_client *client, int64_t end, struct samples *samples)
{
    while (now_ns() < end)
        timed_cycle(client, samples);
}

/* After SIGCONT: until the server has worked off what was queued, and votes again. */
static void settle(rl_client *client, ts_server *server)
{
    ts_command(server, "PING");
    for (int i = 0; i < SETTLING_CYCLES; i++)
        release_or_die(acquire_or_die(client, lock_name, 0), 0);
}

static double ratio(struct samples *a, struct samples *b)
{
    return (double)samples_at(a, 500) / (double)samples_at(b, 500);
}

static bool read_settings(int argc, char **argv, struct settings *settings)
{
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--gate"))
            settings->gate = true;
        else if (!option_number(argv[i], "--rounds", &settings->rounds) &&
                 !option_number(argv[i], "--slice-ms", &settings->slice_ms) && !option_number(argv[i], "--core", &settings->core))
            return false;
    }
    return settings->rounds >= 1 && settings->slice_ms > NODE_TIMEOUT_MS;
}

static int usage(const char *program)
{
    printf("usage: %s [--gate] [--rounds=10] [--slice-ms=400] [--core=N]\n"
           "  Prints the acquire latency with three healthy servers, and with one of them stopped.\n"
           "  --gate      exit with 1 if the median with one stopped is above %.1f times the healthy one, or if\n              "
           "acquires waited for the stopped one\n"
           "  --slice-ms  length of a slice, more than the node timeout of %d\n"
           "  --core      where to run; default: the last allowed core\n",
           program, gate_limit, NODE_TIMEOUT_MS);
    return 2;
}

int main(int argc, char **argv)
{
    struct settings settings = {.rounds = 10, .slice_ms = 400, .core = -1};
    if (!read_settings(argc, argv, &settings))
        return usage(argv[0]);
    pin_to_core((int)settings.core);
    ts_servers servers;
    ts_servers_start(&servers, 3, NULL);
    rl_client *client = client_or_die(servers.urls);
    struct samples healthy = {0}, fresh = {0}, late = {0};
    settle(client, servers.at[2]);
    for (long i = 0; i < settings.rounds; i++) {
        run_until(client, now_ns() + settings.slice_ms * 1000000, &healthy);
        ts_server_pause(servers.at[2]);
        int64_t start = now_ns();
        run_until(client, start + NODE_TIMEOUT_MS * INT64_C(1000000), &fresh);
        run_until(client, start + settings.slice_ms * 1000000, &late);
        ts_server_resume(servers.at[2]);
        settle(client, servers.at[2]);
    }
    samples_print("healthy", &healthy);
    samples_print("just stopped", &fresh);
    samples_print("late", &late);
    double fresh_ratio = ratio(&fresh, &healthy), late_ratio = ratio(&late, &healthy);
    bool waited = samples_at(&fresh, 999) >= NODE_TIMEOUT_MS * INT64_C(1000000);
    bool slow = fresh_ratio > gate_limit || late_ratio > gate_limit;
    printf("ratio of the medians: just stopped %.2f, late %.2f (limit %.1f)\n", fresh_ratio, late_ratio, gate_limit);
    samples_free(&healthy);
    samples_free(&fresh);
    samples_free(&late);
    rl_client_free(client);
    ts_servers_stop(&servers);
    return settings.gate && (slow || waited);
}
