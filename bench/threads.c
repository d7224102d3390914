/* threads.c - T threads, each with a lock of its own that nobody else wants: all on one client, and so on one connection, against
 * a raw connection and a client for each. */
#include "bench.h"
#include "raw.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { STEP_MS = 50, MAX_THREADS = 64, RAW_EACH = 0, CLIENT_EACH, ONE_CLIENT, WAYS };

struct crew;
struct member {
    struct crew *crew;
    pthread_t thread;
    char name[32]; /* of the key for a raw client, with the prefix; without it for ours */
    raw_blocking *raw;
    struct our_cycle ours;
    struct samples latencies; /* of this step */
};

/* Threads that work for a step at a time. */
struct crew {
    int way, count;
    struct member members[MAX_THREADS];
    rl_client *shared;
    struct samples latencies;
    atomic_bool rest;
    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t turn_changed, all_idle;
    long turn;
    int at_work;
    bool over;
};

static void work(struct member *member)
{
    int64_t start = now_ns();
    while (!atomic_load_explicit(&member->crew->rest, memory_order_relaxed)) {
        if (member->raw)
            raw_blocking_cycle(member->raw);
        else
            our_cycle(&member->ours);
        int64_t now = now_ns();
        samples_add(&member->latencies, now - start);
        start = now;
    }
}

static void *member_main(void *arg)
{
    struct member *member = arg;
    struct crew *crew = member->crew;
    pthread_mutex_lock(&crew->mutex);
    for (long done = 0; !crew->over;) {
        if (crew->turn == done) {
            pthread_cond_wait(&crew->turn_changed, &crew->mutex);
            continue;
        }
        done = crew->turn;
        pthread_mutex_unlock(&crew->mutex);
        work(member);
        pthread_mutex_lock(&crew->mutex);
        if (--crew->at_work == 0)
            pthread_cond_signal(&crew->all_idle);
    }
    pthread_mutex_unlock(&crew->mutex);
    return NULL;
}

static long crew_step(void *arg)
{
    struct crew *crew = arg;
    long cycles = 0;
    pthread_mutex_lock(&crew->mutex);
    crew->rest = false;
    crew->turn++;
    crew->at_work = crew->count;
    pthread_cond_broadcast(&crew->turn_changed);
    pthread_mutex_unlock(&crew->mutex);
    sleep_ns(STEP_MS * INT64_C(1000000));
    crew->rest = true;
    pthread_mutex_lock(&crew->mutex);
    while (crew->at_work)
        pthread_cond_wait(&crew->all_idle, &crew->mutex);
    pthread_mutex_unlock(&crew->mutex);
    for (int i = 0; i < crew->count; i++) {
        struct samples *latencies = &crew->members[i].latencies;
        cycles += (long)latencies->count;
        samples_append(&crew->latencies, latencies);
        samples_clear(latencies);
    }
    return cycles;
}

static struct crew *crew_new(int way, int count, const struct nodes *nodes)
{
    static const char *const names[WAYS] = {"rl:crew-raw", "crew-own", "crew-one"};
    struct crew *crew = zalloc(sizeof *crew);
    crew->way = way;
    crew->count = count;
    pthread_mutex_init(&crew->mutex, NULL);
    pthread_cond_init(&crew->turn_changed, NULL);
    pthread_cond_init(&crew->all_idle, NULL);
    if (way == ONE_CLIENT)
        crew->shared = client_or_die(nodes->urls, NULL);
    for (int i = 0; i < count; i++) {
        struct member *member = &crew->members[i];
        member->crew = crew;
        snprintf(member->name, sizeof member->name, "%s-%02d", names[way], i);
        if (way == RAW_EACH)
            member->raw = raw_blocking_new(&nodes->at[0], member->name);
        else
            member->ours = (struct our_cycle){crew->shared ? crew->shared : client_or_die(nodes->urls, NULL), member->name, 0};
        if (pthread_create(&member->thread, NULL, member_main, member))
            die("cannot start a thread");
    }
    return crew;
}

static void crew_free(struct crew *crew)
{
    pthread_mutex_lock(&crew->mutex);
    crew->over = true;
    pthread_cond_broadcast(&crew->turn_changed);
    pthread_mutex_unlock(&crew->mutex);
    for (int i = 0; i < crew->count; i++) {
        struct member *member = &crew->members[i];
        pthread_join(member->thread, NULL);
        if (member->raw)
            raw_blocking_free(member->raw);
        else if (!crew->shared)
            rl_client_free(member->ours.client);
        samples_free(&member->latencies);
    }
    rl_client_free(crew->shared);
    free(crew);
}

/* Returns the throughput on one client, as a share of that of a raw connection for each thread. */
static double threads_case(struct bench *bench, const struct nodes *nodes, int count)
{
    static const char *const names[WAYS] = {"raw, a connection a thread", "ours, a client a thread", "ours, one client"};
    struct effort effort = {bench->effort.repetitions, (bench->effort.slices + 2) / 3};
    struct crew *crews[WAYS];
    struct comparison comparison = {.scenario = "threads", .count = WAYS};
    snprintf(comparison.label, sizeof comparison.label, "T=%d, N=1, TCP", count);
    for (int way = 0; way < WAYS; way++) {
        crews[way] = crew_new(way, count, nodes);
        comparison.variants[way] =
            (struct variant){.name = names[way], .step = crew_step, .arg = crews[way], .latencies = &crews[way]->latencies};
    }
    measure(&comparison, &effort);
    struct spread share = rate_ratio(&comparison, ONE_CLIENT, RAW_EACH);
    report_comparison(&bench->report, &comparison);
    report_ratio(&bench->report, &comparison, "throughput, one client / raw connections", share);
    report_ratio(&bench->report, &comparison, "throughput, one client / a client each",
                 rate_ratio(&comparison, ONE_CLIENT, CLIENT_EACH));
    comparison_free(&comparison);
    for (int way = 0; way < WAYS; way++)
        crew_free(crews[way]);
    return share.median;
}

/* Neither the threads nor the server are pinned: how they get in each other's way is the question. */
void scenario_threads(struct bench *bench)
{
    struct nodes nodes;
    double least = 1e9;
    unpin();
    if (!wanted(bench, 1) || !bench_open(bench, "threads", &nodes, 1, OVER_TCP))
        return;
    for (int count = 1; count <= MAX_THREADS; count *= bench->quick ? 8 : 2) {
        double share = threads_case(bench, &nodes, count);
        least = count > 1 && share < least ? share : least;
    }
    nodes_close(&nodes);
    report_goal(&bench->report, "P11", AT_LEAST, 0.75, NO_GATE, least,
                "2 to 64 threads on one client: least throughput, by connections each");
}
