/* raw.h - what redlatch is measured against: the same commands sent by hand, with nothing of a library around them.
 *
 * A cycle is SET key token NX PX ttl, then compare-and-delete by EVALSHA. The token is a constant, no clock is read for it and
 * nothing is retried, so these are limits and not rivals. What goes wrong ends the program. All strings are borrowed.
 */
#ifndef BENCH_RAW_H
#define BENCH_RAW_H

#include "common.h"

/* The key of the raw clients, and one of ours of the same length: "rl:" is the library's default prefix. */
#define RAW_KEY "rl:bench-them"
#define OUR_NAME "bench-ours"

/* One server, by hiredis' blocking redisCommandArgv: each command waits for its reply. Fenced: the library's own script that takes
 * a lock and mints its fencing token on a single server, instead of SET; and its release script. The key is RAW_KEY. */
typedef struct raw_blocking raw_blocking;
raw_blocking *raw_blocking_new(const struct address *address, const char *key);
raw_blocking *raw_blocking_new_fenced(const struct address *address);
void raw_blocking_free(raw_blocking *raw);
long raw_blocking_cycle(void *raw);
long raw_blocking_ping(void *raw);

/* Several servers, majority-parallel: each command goes to all at once and is over with a majority of good answers; those of
 * stragglers are counted off later. hiredis' formatter and reader on own sockets. With `wait` the release is waited for in
 * the same way, else not at all. */
enum { RAW_MAX_NODES = 9 };
typedef struct raw_majority raw_majority;
raw_majority *raw_majority_new(const struct address *at, int count, const char *key, bool wait);
void raw_majority_free(raw_majority *raw);
long raw_majority_cycle(void *raw);

/* `outstanding` cycles at any time over one connection to each server and epoll, majority-parallel: the requests of a turn are sent at
 * once. The keys are "rl:loop-" and a number of six digits. A step is `rounds` times as many cycles, to the last answer;
 * latencies gets the time of each. */
typedef struct raw_loop raw_loop;
raw_loop *raw_loop_new(const struct address *at, int count, int outstanding, int rounds, struct samples *latencies);
void raw_loop_free(raw_loop *raw);
long raw_loop_step(void *raw);

/* A message from one connection to another: PUBLISH on the one until it has been read on the other. */
typedef struct raw_hop raw_hop;
raw_hop *raw_hop_new(const struct address *address);
void raw_hop_free(raw_hop *raw);
long raw_hop_step(void *raw);

#endif
