/* contention.c - many threads that want one lock: how often it changes hands, what that costs the server, and how long its holder
 * takes to give it back while the others wait. The raw limit of a hand-off is a published message.
 *
 * All threads of a client share one engine and one connection to each server, and one of the waiting ones drives it: a release has
 * to pass the waiters.
 */
#include "bench.h"
#include "raw.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { MAX_THREADS = 256, HOLD_MS = 5 };
static const char lock_name[] = "bench-crowd";

struct crowd;
struct member {
    struct crowd *crowd;
    pthread_t thread;
    rl_client *client;
    long turns;
};

/* What the threads share. Polite: who has had the lock does not ask again before somebody else has it,
 * so each turn is a hand-off. */
struct crowd {
    int count, clients;
    int64_t hold_ns;
    bool polite;
    struct member members[MAX_THREADS];
    atomic_bool over;
    pthread_mutex_t mutex; /* guards what follows: the lock is a lease, which orders no memory */
    pthread_cond_t taken;
    const struct member *last;
    int64_t released_at;
    long hand_offs;
    struct samples gaps;     /* from the begin of a release to the return of another's acquire */
    struct samples releases; /* how long rl_release took */
};

static void note_taken(struct crowd *crowd, const struct member *member)
{
    int64_t now = now_ns();
    pthread_mutex_lock(&crowd->mutex);
    if (crowd->last && crowd->last != member) {
        crowd->hand_offs++;
        samples_add(&crowd->gaps, now - crowd->released_at);
    }
    crowd->last = member;
    pthread_cond_broadcast(&crowd->taken);
    pthread_mutex_unlock(&crowd->mutex);
}

static void wait_for_another(struct crowd *crowd, const struct member *member)
{
    pthread_mutex_lock(&crowd->mutex);
    while (crowd->last == member && !crowd->over)
        pthread_cond_wait(&crowd->taken, &crowd->mutex);
    pthread_mutex_unlock(&crowd->mutex);
}

static void give_back(struct crowd *crowd, rl_lock *lock)
{
    int64_t start = now_ns();
    pthread_mutex_lock(&crowd->mutex);
    crowd->released_at = start;
    pthread_mutex_unlock(&crowd->mutex);
    release_or_die(lock, 0);
    int64_t taken = now_ns() - start;
    pthread_mutex_lock(&crowd->mutex);
    samples_add(&crowd->releases, taken);
    pthread_mutex_unlock(&crowd->mutex);
}

static void *member_main(void *arg)
{
    struct member *member = arg;
    struct crowd *crowd = member->crowd;
    while (!crowd->over) {
        rl_lock *lock = acquire_or_die(member->client, lock_name, RL_FOREVER);
        note_taken(crowd, member);
        if (crowd->hold_ns)
            sleep_ns(crowd->hold_ns);
        give_back(crowd, lock);
        member->turns++;
        if (crowd->polite)
            wait_for_another(crowd, member);
    }
    return NULL;
}

static struct crowd *crowd_new(struct nodes *nodes, int count, int clients, int hold_ms, bool polite)
{
    struct crowd *crowd = zalloc(sizeof *crowd);
    rl_client *client = NULL;
    crowd->count = count;
    crowd->clients = clients;
    crowd->hold_ns = hold_ms * INT64_C(1000000);
    crowd->polite = polite;
    pthread_mutex_init(&crowd->mutex, NULL);
    pthread_cond_init(&crowd->taken, NULL);
    for (int i = 0; i < count; i++) {
        if (i < clients)
            client = client_or_die(nodes->urls, NULL);
        crowd->members[i] = (struct member){.crowd = crowd, .client = client};
        if (pthread_create(&crowd->members[i].thread, NULL, member_main, &crowd->members[i]))
            die("cannot start a thread");
    }
    return crowd;
}

static void crowd_stop(struct crowd *crowd)
{
    pthread_mutex_lock(&crowd->mutex);
    crowd->over = true;
    pthread_cond_broadcast(&crowd->taken);
    pthread_mutex_unlock(&crowd->mutex);
    for (int i = 0; i < crowd->count; i++)
        pthread_join(crowd->members[i].thread, NULL);
}

static void crowd_free(struct crowd *crowd)
{
    for (int i = 0; i < crowd->clients; i++)
        rl_client_free(crowd->members[i].client);
    samples_free(&crowd->gaps);
    samples_free(&crowd->releases);
    free(crowd);
}

static int64_t commands(struct nodes *nodes)
{
    return nodes_calls(nodes, "set") + nodes_calls(nodes, "evalsha") + nodes_calls(nodes, "publish");
}

struct outcome {
    double taken, hand_offs; /* a second */
    double commands;         /* a hand-off, to all servers together */
    double gap_us;           /* median; 0 if there was no hand-off */
    int connections;
};

static long turns_of(const struct crowd *crowd, long *ret_least)
{
    long sum = 0;
    *ret_least = crowd->members[0].turns;
    for (int i = 0; i < crowd->count; i++) {
        sum += crowd->members[i].turns;
        *ret_least = crowd->members[i].turns < *ret_least ? crowd->members[i].turns : *ret_least;
    }
    return sum;
}

static struct outcome contention_case(struct bench *bench, struct nodes *nodes, int count, int clients, int hold_ms, bool polite)
{
    struct report *report = &bench->report;
    struct outcome outcome;
    char label[64];
    long least;
    int64_t half = (bench->quick ? 500 : 1500) * INT64_C(1000000), before = commands(nodes), start = now_ns();
    snprintf(label, sizeof label, "W=%d, %d client%s, hold %d ms%s", count, clients, clients == 1 ? "" : "s", hold_ms,
             polite ? ", in turn" : "");
    struct crowd *crowd = crowd_new(nodes, count, clients, hold_ms, polite);
    sleep_ns(half);
    outcome.connections = nodes_connections(nodes);
    if (!outcome.connections)
        die("no connection has the library's name");
    sleep_ns(half);
    crowd_stop(crowd);
    double seconds = (double)(now_ns() - start) / 1e9;
    outcome.taken = (double)turns_of(crowd, &least) / seconds;
    outcome.hand_offs = (double)crowd->hand_offs / seconds;
    outcome.commands = (double)(commands(nodes) - before) / (double)(crowd->hand_offs ? crowd->hand_offs : 1);
    outcome.gap_us = crowd->gaps.count ? (double)samples_at(&crowd->gaps, 500) / 1000 : 0;
    printf("\n");
    report_figure(report, "contention", label, "taken", outcome.taken, "/s");
    report_figure(report, "contention", label, "handed to another thread", outcome.hand_offs, "/s");
    report_figure(report, "contention", label, "commands a hand-off", outcome.commands, "");
    report_figure(report, "contention", label, "turns of the unluckiest", (double)least, "");
    report_latencies(report, "contention", label, "hand-off", &crowd->gaps);
    report_latencies(report, "contention", label, "release", &crowd->releases);
    crowd_free(crowd);
    return outcome;
}

/* Returns the median of a published message in microseconds. */
static double publish_hop(struct bench *bench, struct nodes *nodes)
{
    raw_hop *hop = raw_hop_new(&nodes->at[0]);
    struct comparison comparison = {.scenario = "contention",
                                    .label = "a published message",
                                    .count = 1,
                                    .variants = {{.name = "raw", .step = raw_hop_step, .arg = hop}}};
    measure(&comparison, &bench->effort);
    report_comparison(&bench->report, &comparison);
    double us = (double)samples_at(variant_latencies(&comparison.variants[0]), 500) / 1000;
    comparison_free(&comparison);
    raw_hop_free(hop);
    return us;
}

static void contention_on(struct bench *bench, int nodes_count)
{
    struct nodes nodes;
    struct report *report = &bench->report;
    double two = 0, last = 0;
    int count = 2;
    if (!bench_open(bench, "contention", &nodes, nodes_count, OVER_TCP))
        return;
    double hop = publish_hop(bench, &nodes);
    for (;; count *= bench->quick ? 128 : 4) {
        count = count > MAX_THREADS ? MAX_THREADS : count;
        struct outcome outcome = contention_case(bench, &nodes, count, 1, 0, true);
        two = count == 2 ? outcome.hand_offs : two;
        last = outcome.hand_offs;
        report_goal(report, "P8", AT_MOST, nodes_count == 1 ? 2 : 12, NO_GATE, outcome.commands,
                    "N=%d, %d waiters: commands a hand-off", nodes_count, count);
        report_goal(report, "P8", AT_MOST, 1, 1, (double)outcome.connections / nodes_count,
                    "N=%d, %d waiters: connections to a server", nodes_count, count);
        if (count == MAX_THREADS)
            break;
    }
    report_goal(report, "P8", AT_LEAST, 0.7, NO_GATE, last / two, "N=%d, 256 waiters: hand-offs/s, by those of 2", nodes_count);
    struct outcome together = contention_case(bench, &nodes, 16, 1, HOLD_MS, false),
                   apart = contention_case(bench, &nodes, 16, 16, HOLD_MS, false);
    report_goal(report, "P8", AT_LEAST, 0.9, NO_GATE, together.taken * HOLD_MS / 1000,
                "N=%d, 16 threads, 5 ms hold: share of ideal", nodes_count);
    report_goal(report, "P8", AT_LEAST, 0.9, NO_GATE, apart.taken * HOLD_MS / 1000, "N=%d, 16 clients, 5 ms hold: share of ideal",
                nodes_count);
    report_goal(report, "P8", AT_MOST, 1.3, NO_GATE, apart.gap_us / hop, "N=%d, 16 clients, 5 ms hold: p50 hand-off, by a message",
                nodes_count);
    nodes_close(&nodes);
}

void scenario_contention(struct bench *bench)
{
    for (int count = 1; count <= 5; count += 4) {
        if (wanted(bench, count) && (count == 1 || !bench->quick))
            contention_on(bench, count);
    }
}
