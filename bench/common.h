/* common.h - what every part of the bench needs: clocks, samples with percentiles, cores, calls of the library that may not fail,
 * a fatal error. */
#ifndef BENCH_COMMON_H
#define BENCH_COMMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <redlatch.h>

/* Where a server listens: `path` of a unix socket, or NULL: then host and port. */
struct address {
    const char *path, *host;
    int port;
};

/* Nanoseconds of CLOCK_MONOTONIC, and of CPU that this process has used with all its threads. */
int64_t now_ns(void);
int64_t cpu_ns(void);
void sleep_ns(int64_t ns);

/* Prints the message to stderr and exits with 1. A bench has nothing to go on with after a fault. */
_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));
void *zalloc(size_t size); /* never NULL */
double heap_bytes(void);   /* in use, the allocator's own overhead included */

/* Puts this process, and all that it starts from now on, on one core; -1 means the last one it may use. Returns the core. A PING
 * costs several times as much across cores as on one, and a run falls into one or the other by luck: unpinned figures are
 * worthless as a gate. */
int pin_to_core(int core);
void unpin(void); /* on all cores that it could use before the first pin_to_core */

/* Calls that die of every result but RL_OK. options: NULL for the defaults; ttl is 10 s. */
rl_client *client_or_die(const char *urls, const rl_options *options);
rl_lock *acquire_or_die(rl_client *client, const char *name, int64_t wait_ms);
void release_or_die(rl_lock *lock, uint32_t flags);

/* A cycle of ours, as a step of a comparison: takes and releases the lock. */
struct our_cycle {
    rl_client *client;
    const char *name;
    uint32_t release_flags;
};
long our_cycle(void *arg);

/* A growing list of durations. All zeros is an empty one. */
struct samples {
    int64_t *ns;
    size_t count, capacity;
    bool sorted;
};
void samples_add(struct samples *samples, int64_t ns);
void samples_append(struct samples *samples, const struct samples *more);
void samples_clear(struct samples *samples);
void samples_free(struct samples *samples);
/* The value at `permille` (500 = median, 1000 = maximum); sorts the list. Dies if the list is empty. */
int64_t samples_at(struct samples *samples, int permille);

/* What repetitions gave: at most MAX_REPETITIONS values. */
enum { MAX_REPETITIONS = 99 };
struct spread {
    double min, median, max;
};
struct spread spread_of(const double *values, long count);

#endif
