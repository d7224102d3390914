/* unit.h - what the unit tests share: the terms of a client, answers of nodes, a seeded source of numbers. */
#ifndef RLT_UNIT_H
#define RLT_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "machine.h"
#include "redlatch.h"

#include <stdlib.h>

#define MS RLI_MS
#define T0 (INT64_C(86400000) * MS) /* when every test begins: far from 0 */

static inline struct rli_terms terms_of(uint32_t nodes)
{
    return (struct rli_terms){.nodes = nodes,
                              .quorum = nodes / 2 + 1,
                              .drift_ppm = 10000,
                              .node_timeout = 250 * MS,
                              .cleanup_timeout = 100 * MS,
                              .retry_min = 5 * MS,
                              .retry_max = 200 * MS,
                              .min_validity = 1 * MS};
}

/* What a node may do with a request. */
enum said { OPEN, YES, OTHER, ABSENT, ERROR, DENIED, UNKNOWN, UNSENT, DIED, SAID_COUNT };

/* That as an answer, to a request sent at `sent`, given at `at`. */
static inline struct rli_answer answer_of(enum said said, rli_instant sent, rli_instant at)
{
    static const int outcomes[] = {RL_NODE_PENDING, RL_NODE_YES,       RL_NODE_HELD_BY_OTHER, RL_NODE_ABSENT,   RL_NODE_ERROR,
                                   RL_NODE_ERROR,   RL_NODE_NO_ANSWER, RL_NODE_UNREACHABLE,   RL_NODE_NO_ANSWER};
    struct rli_answer answer = {.outcome = outcomes[said], .sent = sent, .at = at, .holder_left = RLI_NEVER};

    answer.denied = said == DENIED;
    answer.unknown = said == UNKNOWN || said == DIED;
    answer.died = said == DIED;
    if (said >= UNKNOWN)
        answer.at = RLI_GONE;
    if (said == UNSENT)
        answer.sent = RLI_GONE;
    return answer;
}

/* splitmix64 */
static inline uint64_t random_of(uint64_t *seed)
{
    uint64_t z = (*seed += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static inline int falling(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

/* The k-th largest, by sorting. */
static inline int64_t kth_by_sort(const int64_t *values, uint32_t n, uint32_t k)
{
    int64_t sorted[RL_MAX_NODES];
    for (uint32_t i = 0; i < n; i++)
        sorted[i] = values[i];
    qsort(sorted, n, sizeof *sorted, falling);
    return sorted[k - 1];
}

#endif
