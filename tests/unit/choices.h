/* choices.h - runs a test on every course that events can take, or on a random sample of them.
 *
 * A run asks pick(n) wherever several things may happen next. The explorer repeats the run until every answer has been given at
 * every place (depth first), or that many times with random answers. A run does not fail at once: it notes the first rule that was
 * broken, ends, and is repeated with `loud`, so that the course is told and only that one. */
#ifndef RLT_CHOICES_H
#define RLT_CHOICES_H

#include "unit.h"

#include <stdio.h>

enum { MAX_PICKS = 200 };

static const char *const said_names[] = {"open", "yes", "other", "absent", "error", "denied", "unknown", "unsent", "died"};

struct choices {
    bool loud;
    bool random;
    uint64_t seed;
    unsigned used, depth;
    uint32_t picked[MAX_PICKS], of[MAX_PICKS];
    const char *broken; /* the rule that this run has broken, or NULL */
    uint64_t runs;
};

/* A number in [0, n). */
static inline uint32_t pick(struct choices *c, uint32_t n)
{
    if (c->random)
        return (uint32_t)(random_of(&c->seed) % n);
    assert_true(c->used < MAX_PICKS && n > 0);
    if (c->used == c->depth) {
        c->picked[c->depth] = 0;
        c->of[c->depth++] = n;
    }
    return c->picked[c->used++];
}

/* Notes that a rule is broken unless the condition holds. */
static inline void rule(struct choices *c, bool holds, const char *text)
{
    if (!holds && !c->broken)
        c->broken = text;
}

#define tell(c, ...)                                                                                                               \
    do {                                                                                                                           \
        if ((c)->loud)                                                                                                             \
            printf(__VA_ARGS__);                                                                                                   \
    } while (0)

typedef void course(struct choices *c, const void *setup);

static inline void run_once(struct choices *c, course *run, const void *setup)
{
    uint64_t seed = c->seed;
    const char *broken;

    c->used = 0;
    c->runs++;
    run(c, setup);
    if (!c->broken)
        return;
    printf("A course that breaks a rule:\n");
    broken = c->broken;
    c->broken = NULL;
    c->used = 0;
    c->seed = seed;
    c->loud = true;
    run(c, setup);
    fail_msg("%s (course %llu)", broken, (unsigned long long)c->runs);
}

/* All courses; returns how many there are. */
static inline uint64_t explore(course *run, const void *setup)
{
    struct choices c = {0};
    for (;;) {
        run_once(&c, run, setup);
        c.depth = c.used;
        while (c.depth > 0 && c.picked[c.depth - 1] + 1 == c.of[c.depth - 1])
            c.depth--;
        if (c.depth == 0)
            return c.runs;
        c.picked[c.depth - 1]++;
    }
}

/* So many random ones. */
static inline void sample(course *run, const void *setup, uint64_t seed, uint64_t runs)
{
    struct choices c = {.random = true, .seed = seed};
    while (c.runs < runs)
        run_once(&c, run, setup);
}

#endif
