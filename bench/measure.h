/* measure.h - the comparison of variants, which every figure that is a ratio comes from.
 *
 * Separate runs of identical loops differ by far more than what is to be seen here. So the variants alternate, in one process, in
 * slices of 20 ms; a repetition gives for each the median time of a cycle; and the verdict is the median of the repetitions'
 * ratios. With client and servers on one core that repeats to about a per cent.
 */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include "common.h"

enum { SLICE_MS = 20, MAX_VARIANTS = 6 };

/* How long to measure. */
struct effort {
    long repetitions;
    long slices; /* of each variant in a repetition */
};

/* One of the things compared. */
struct variant {
    /* set by the scenario */
    const char *name;
    long (*step)(void *arg); /* does some cycles and returns how many */
    void *arg;
    struct samples *latencies; /* of single cycles, where a step has several: the step fills it. NULL: a step is a cycle */
    double calls;              /* system calls a cycle, 0 if they are not counted */

    /* set by measure */
    struct samples own;
    int64_t cycles, wall_ns, cpu_ns; /* totals */
    double medians[MAX_REPETITIONS]; /* nanoseconds a cycle, per repetition */
};

struct comparison {
    const char *scenario;
    char label[64];
    long repetitions;
    int count;
    struct variant variants[MAX_VARIANTS];
};

void measure(struct comparison *comparison, const struct effort *effort);
void comparison_free(struct comparison *comparison);

/* The latencies of single cycles, of all repetitions. */
struct samples *variant_latencies(struct variant *variant);

/* Time of a cycle of variant `of` by that of variant `to`, or the same as throughput: the inverse. */
struct spread time_ratio(const struct comparison *comparison, int of, int to);
struct spread rate_ratio(const struct comparison *comparison, int of, int to);

#endif
