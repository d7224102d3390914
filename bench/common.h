/* common.h - what the bench programs share: a clock, samples with percentiles, one core for client and servers, calls of the
 * library that may not fail, a fatal error. */
#ifndef BENCH_COMMON_H
#define BENCH_COMMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <redlatch.h>

/* Nanoseconds of CLOCK_MONOTONIC. */
int64_t now_ns(void);
void sleep_ns(int64_t ns);

/* Prints the message to stderr and exits with 1. A bench has nothing to go on with after a fault. */
_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Puts this process, and all that it starts from now on, on one core; -1 means the last one it may use. Returns the core. A PING
 * costs several times as much across cores as on one, and a run falls into one or the other by luck: unpinned figures are
 * worthless as a gate. */
int pin_to_core(int core);

/* Calls that die of every result but RL_OK. The client has the default options; ttl is 10 s. */
rl_client *client_or_die(const char *urls);
rl_lock *acquire_or_die(rl_client *client, const char *name, int64_t wait_ms);
void release_or_die(rl_lock *lock, uint32_t flags);

/* A growing list of durations. All zeros is an empty one. */
struct samples {
    int64_t *ns;
    size_t count, capacity;
};
void samples_add(struct samples *samples, int64_t ns);
void samples_clear(struct samples *samples);
void samples_free(struct samples *samples);
/* The value at `permille` (500 = median, 1000 = maximum); sorts the list. Dies if the list is empty. */
int64_t samples_at(struct samples *samples, int permille);
/* One line: label, count, median, p99 and maximum in microseconds. */
void samples_print(const char *label, struct samples *samples);

/* The value of "--name=number" in an argument, or false if the argument is another one. Dies if it is no number. */
bool option_number(const char *argument, const char *name, long *ret_value);

#endif
