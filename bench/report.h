/* report.h - what the bench says: tables on stdout as it goes, the goals at the end, and all of it as JSON (see README.md). */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include "common.h"
#include "measure.h"

#include <stdio.h>

enum { MAX_GOALS = 128 };
enum relation { AT_MOST, AT_LEAST };

/* A figure that was promised, or is wanted. Without a gate, missing the goal is told and nothing more. */
enum { NO_GATE = -1 };
struct goal {
    const char *id; /* of the table of goals: "P1" */
    char what[96];
    enum relation relation;
    double goal, gate; /* gate: a looser limit, or NO_GATE */
    double measured;
    int order; /* of its making */
};

struct report {
    FILE *json; /* the results so far, in memory */
    char *json_text;
    size_t json_size;
    bool any;
    struct goal goals[MAX_GOALS];
    int goal_count;
};

void report_begin(struct report *report);
/* Writes the JSON file, if `path` is not NULL, and prints the goals. false: a gate is missed. */
bool report_end(struct report *report, const char *path, const struct effort *effort);

/* A table of variants. The ratio of the variant `of` to `to` follows it by report_ratio. */
void report_comparison(struct report *report, struct comparison *comparison);
void report_ratio(struct report *report, const struct comparison *comparison, const char *name, struct spread spread);
/* A single number, and percentiles of something that is no cycle. */
void report_figure(struct report *report, const char *scenario, const char *label, const char *name, double value,
                   const char *unit);
void report_latencies(struct report *report, const char *scenario, const char *label, const char *name, struct samples *samples);
void report_skip(struct report *report, const char *scenario, const char *reason);

void report_goal(struct report *report, const char *id, enum relation relation, double goal, double gate, double measured,
                 const char *format, ...) __attribute__((format(printf, 7, 8)));

#endif
