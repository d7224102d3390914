/* oracle.h - the rules of semantics S1.2, S1.3 and S2.8 once more, as plainly as they can be said: over arrays, by counting. */
#ifndef RLT_ORACLE_H
#define RLT_ORACLE_H

#include "unit.h"

static inline bool is_failure(enum said said)
{
    return said == ERROR || said == DENIED || said == UNKNOWN || said == UNSENT || said == DIED;
}

static inline uint32_t how_many(const enum said *said, uint32_t n, enum said which)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++)
        count += said[i] == which;
    return count;
}

/* Which nodes, as a mask. */
static inline uint32_t who(const enum said *said, uint32_t n, enum said which)
{
    uint32_t mask = 0;
    for (uint32_t i = 0; i < n; i++)
        if (said[i] == which)
            mask |= UINT32_C(1) << i;
    return mask;
}

static inline uint32_t how_many_failed(const enum said *said, uint32_t n)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++)
        count += is_failure(said[i]);
    return count;
}

/* S2.8: RL_E_AUTH if all failures are refusals. */
static inline int oracle_failure(const enum said *said, uint32_t n)
{
    uint32_t failed = how_many_failed(said, n);
    return failed > 0 && how_many(said, n, DENIED) == failed ? RL_E_AUTH : RL_E_NO_QUORUM;
}

/* S2.8: OK at q grants; failed as soon as grants + outstanding < q; then NO_QUORUM if more than N - q nodes failed, else BUSY. */
static inline int oracle_verdict(const enum said *said, uint32_t n, uint32_t q)
{
    uint32_t grants = how_many(said, n, YES), outstanding = how_many(said, n, OPEN);
    if (grants >= q)
        return RL_OK;
    if (grants + outstanding >= q)
        return RLI_UNDECIDED;
    return how_many_failed(said, n) > n - q ? oracle_failure(said, n) : RL_BUSY;
}

/* S1.2, for a ttl of whole milliseconds: sent + L - (L * drift + 2 ms). */
static inline rli_instant oracle_e(const struct rli_terms *terms, rli_instant sent, rli_span ttl)
{
    return sent + ttl - ttl / 1000000 * (rli_span)terms->drift_ppm - 2 * MS;
}

/* S5.5: how many nodes have e_i > now. */
static inline uint32_t oracle_holding(const rli_instant *e, uint32_t n, rli_instant now)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++)
        count += e[i] > now;
    return count;
}

#endif
