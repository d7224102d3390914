/* bench.h - what main hands to the scenarios. */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include "measure.h"
#include "nodes.h"
#include "report.h"

enum { MAX_COUNTS = 16 };

struct bench {
    struct effort effort;
    bool quick; /* the cases and times that are enough to find a fault */
    int tries;
    int core;               /* for gated figures: -1 = the last one */
    const char *urls;       /* NULL: own servers */
    int counts[MAX_COUNTS]; /* of servers: what --nodes says, 0 at the end; none = all */
    long locks, seconds;    /* of the scenario renew */
    struct report report;
};

/* Whether a case with so many servers is wanted. */
bool wanted(const struct bench *bench, int count);

/* nodes_open with what the bench was given; on false the skip is reported. */
bool bench_open(struct bench *bench, const char *scenario, struct nodes *nodes, int count, enum transport transport);

/* The scenarios, each in the file of its name. */
void scenario_cycle(struct bench *bench);
void scenario_threads(struct bench *bench);
void scenario_loop(struct bench *bench);
void scenario_stopped(struct bench *bench);
void scenario_contention(struct bench *bench);
void scenario_fence(struct bench *bench);
void scenario_memory(struct bench *bench);
void scenario_renew(struct bench *bench);

#endif
