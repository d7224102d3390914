/* client.c - what both kinds have in common, and the blocking kind. See client.h. */
#include "client.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void draw_turn(struct log *log, struct turn *turn)
{
    uint64_t r = log_random(log);
    turn->name = (int)(r % STORM_NAMES);
    snprintf(turn->text, sizeof turn->text, "storm-%d", turn->name);
    turn->ttl_ms = 150 + (int64_t)(r >> 8) % 600;
    turn->wait_ms = (r >> 20) % 3 ? (int64_t)(r >> 24) % 400 : 0;
    turn->hold_ms = (r >> 36) % 4 ? (int64_t)(r >> 40) % 8 : (int64_t)(r >> 40) % 60;
    int64_t luck = (int64_t)(r >> 52) % 64;
    turn->plan = luck == 0 ? PLAN_FORGET : luck == 1 ? PLAN_OUTLIVE : luck < 20 ? PLAN_EXTEND : PLAN_RELEASE;
}

rl_options storm_options(void)
{
    rl_options options;
    rl_options_init(&options);
    options.node_timeout_ms = 100;
    options.cleanup_timeout_ms = 50;
    options.retry_max_ms = 40;
    options.fence = RL_FENCE_QUORUM;
    return options;
}

struct worker {
    struct log *log;
    rl_client *client;
};

static void pause_ms(int64_t ms)
{
    struct timespec ts = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&ts, NULL);
}

/* Some extensions, the last of which may come too late. Returns false if the lock was lost. */
static bool prolong(struct worker *worker, const struct turn *turn, struct claim *claim, rl_lock *lock)
{
    for (int i = 0; i < 3; i++) {
        pause_ms(turn->hold_ms);
        int rc = rl_extend(lock, turn->ttl_ms, NULL);
        log_status(worker->log, STORM_BLOCKING, STORM_EXTEND, rc);
        if (rc == RL_OK)
            log_extended(claim, lock);
        else if (rc == RL_LOST)
            log_end(claim);
        if (rc == RL_LOST)
            return false;
    }
    return true;
}

static void hold(struct worker *worker, const struct turn *turn, int64_t begun_ns, rl_lock *lock)
{
    struct claim *claim = log_claim(worker->log, STORM_BLOCKING, turn->name, begun_ns, lock);
    if (!claim)
        abort();
    pause_ms(turn->hold_ms);
    if (turn->plan == PLAN_EXTEND)
        (void)prolong(worker, turn, claim, lock);
    if (turn->plan == PLAN_OUTLIVE)
        pause_ms(turn->ttl_ms);
    if (turn->plan == PLAN_FORGET) {
        rl_lock_free(lock);
        return;
    }
    log_end(claim);
    int rc = rl_release_with(lock, turn->ttl_ms % 4 ? 0 : RL_NO_WAIT, NULL);
    log_status(worker->log, STORM_BLOCKING, STORM_RELEASE, rc);
}

static void *work(void *arg)
{
    struct worker *worker = arg;
    while (!atomic_load(&worker->log->stop)) {
        struct turn turn;
        rl_lock *lock;
        draw_turn(worker->log, &turn);
        int64_t begun_ns = boot_ns();
        int rc = rl_acquire(worker->client, turn.text, turn.ttl_ms, turn.wait_ms, &lock);
        log_status(worker->log, STORM_BLOCKING, STORM_ACQUIRE, rc);
        if (rc == RL_OK)
            hold(worker, &turn, begun_ns, lock);
    }
    return NULL;
}

void run_blocking(struct log *log, const char *urls)
{
    rl_options options = storm_options();
    struct worker worker = {log, NULL};
    pthread_t second;
    if (rl_client_new(urls, &options, &worker.client, NULL) != RL_OK || pthread_create(&second, NULL, work, &worker))
        abort();
    work(&worker);
    pthread_join(second, NULL);
    rl_client_free(worker.client);
}
