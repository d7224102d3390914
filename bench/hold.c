/* hold.c - how long rl_release takes its holder while many threads wait for the lock on the same client.
 *
 * All threads of a client share one engine and one connection to each server, and one of the waiting ones drives it. So a release
 * has to pass the waiters: this shows that it does so at once, and that there is one connection to each server whatever the number
 * of threads. For comparison the same is done first with nobody waiting.
 */
#include "common.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../tests/support/server.h"

static const char lock_name[] = "bench-hold";

struct settings {
    long threads, nodes, seconds, hold_ms;
};

/* What the threads share. */
struct crowd {
    rl_client *client;
    int64_t hold_ns;
    atomic_bool over;
    pthread_mutex_t mutex; /* guards the samples */
    struct samples releases;
};

struct member {
    struct crowd *crowd;
    pthread_t thread;
    long turns;
};

/* Takes the lock, holds it, and notes how long giving it back took. */
static void take_turn(struct crowd *crowd)
{
    rl_lock *lock = acquire_or_die(crowd->client, lock_name, RL_FOREVER);
    sleep_ns(crowd->hold_ns);
    int64_t start = now_ns();
    release_or_die(lock, 0);
    int64_t taken = now_ns() - start;
    pthread_mutex_lock(&crowd->mutex);
    samples_add(&crowd->releases, taken);
    pthread_mutex_unlock(&crowd->mutex);
}

static void *member_main(void *arg)
{
    struct member *member = arg;
    while (!member->crowd->over) {
        take_turn(member->crowd);
        member->turns++;
    }
    return NULL;
}

static long count_connections(ts_servers *servers)
{
    long count = 0;
    for (int i = 0; i < servers->count; i++) {
        for (const char *list = ts_command(servers->at[i], "CLIENT LIST"); (list = strstr(list, " name=redlatch ")); list++)
            count++;
    }
    return count;
}

static void run_alone(struct crowd *crowd, int64_t end)
{
    while (now_ns() < end)
        take_turn(crowd);
    samples_print("nobody waits", &crowd->releases);
    samples_clear(&crowd->releases);
}

/* Runs the crowd; returns the connections seen half-way. */
static long run_crowd(struct crowd *crowd, struct member *members, const struct settings *settings, ts_servers *servers)
{
    for (long i = 0; i < settings->threads; i++) {
        members[i].crowd = crowd;
        if (pthread_create(&members[i].thread, NULL, member_main, &members[i]))
            die("cannot start a thread");
    }
    sleep_ns(settings->seconds * 500000000);
    long connections = count_connections(servers);
    sleep_ns(settings->seconds * 500000000);
    crowd->over = true;
    for (long i = 0; i < settings->threads; i++)
        pthread_join(members[i].thread, NULL);
    return connections;
}

static void print_turns(const struct member *members, long threads)
{
    long least = members[0].turns, most = members[0].turns;
    for (long i = 1; i < threads; i++) {
        least = members[i].turns < least ? members[i].turns : least;
        most = members[i].turns > most ? members[i].turns : most;
    }
    printf("turns a thread: %ld to %ld\n", least, most);
}

static bool read_settings(int argc, char **argv, struct settings *settings)
{
    for (int i = 1; i < argc; i++) {
        if (!option_number(argv[i], "--threads", &settings->threads) && !option_number(argv[i], "--nodes", &settings->nodes) &&
            !option_number(argv[i], "--seconds", &settings->seconds) && !option_number(argv[i], "--hold-ms", &settings->hold_ms))
            return false;
    }
    return settings->threads >= 1 && settings->nodes >= 1 && settings->nodes <= TS_MAX_SERVERS && settings->seconds >= 1 &&
           settings->hold_ms >= 0;
}

int main(int argc, char **argv)
{
    struct settings settings = {.threads = 64, .nodes = 1, .seconds = 3, .hold_ms = 5};
    if (!read_settings(argc, argv, &settings)) {
        printf("usage: %s [--threads=64] [--nodes=1] [--seconds=3] [--hold-ms=5]\n"
               "  Prints how long rl_release took with no waiter and with threads - 1 of them on the same client.\n"
               "  Exit 1 unless the client has exactly one connection to each server.\n",
               argv[0]);
        return 2;
    }
    ts_servers servers;
    ts_servers_start(&servers, (int)settings.nodes, NULL);
    struct crowd crowd = {
        .client = client_or_die(servers.urls), .hold_ns = settings.hold_ms * 1000000, .mutex = PTHREAD_MUTEX_INITIALIZER};
    struct member *members = calloc((size_t)settings.threads, sizeof *members);
    if (!members)
        die("out of memory");
    run_alone(&crowd, now_ns() + 1000000000);
    long connections = run_crowd(&crowd, members, &settings, &servers);
    char label[32];
    snprintf(label, sizeof label, "%ld wait", settings.threads - 1);
    samples_print(label, &crowd.releases);
    print_turns(members, settings.threads);
    printf("connections: %ld to %ld servers\n", connections, settings.nodes);
    free(members);
    samples_free(&crowd.releases);
    rl_client_free(crowd.client);
    ts_servers_stop(&servers);
    return connections != settings.nodes;
}
