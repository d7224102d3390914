/* calls.h - system calls of a cycle, counted by strace -c.
 *
 * Two runs of this very program under strace, of different length: connecting, loading and ending cancel out in their difference,
 * and what is left is the steady state, exactly. */
#ifndef BENCH_CALLS_H
#define BENCH_CALLS_H

#include "nodes.h"

/* What a traced run does over and over; with "raw-" before it, what it is compared with (not for the fence): */
#define CALLS_RAW "raw-"
#define CALLS_BLOCKING "blocking" /* acquire and release with its answer */
#define CALLS_NO_WAIT "no-wait"   /* the release's answer is not waited for */
#define CALLS_FENCE "fence"       /* blocking, with RL_FENCE_QUORUM */
#define CALLS_LOOP "loop"         /* "loop256": so many outstanding on a libevent loop; a power of two up to 1,024 */

struct calls {
    double calls;       /* a cycle */
    double connections; /* of a run, to each server */
};

/* false: strace is missing or not permitted. */
bool count_calls(struct nodes *nodes, const char *kind, struct calls *ret_calls);

/* The traced run of a loop, which is in loop.c. */
void loop_traced(const char *urls, int outstanding, int rounds);

/* The traced run itself: what main does on --traced=KIND:CYCLES. */
void calls_traced(const char *kind_and_cycles, const char *urls);

#endif
