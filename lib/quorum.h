/* quorum.h - the arithmetic of a quorum: what each node's confirmation is worth, and until when a lease holds.
 *
 * e_i is the instant until which node i is certain to keep our key, by our clock: the latest over its confirmed requests of
 * (an instant no later than the sending of the request's first byte) + ttl - drift. A lease is valid until the q-th largest
 * e_i: until then at least q nodes keep it, and no other client can win q. Pure. */
#ifndef RLI_QUORUM_H
#define RLI_QUORUM_H

#include "instant.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What all operations of a client agree on. */
struct rli_terms {
    uint32_t nodes;
    uint32_t quorum;
    uint32_t drift_ppm;
    rli_span node_timeout;
    rli_span cleanup_timeout;
    rli_span retry_min;
    rli_span retry_max;
    rli_span min_validity;
};

/* How much shorter than ttl a lease is taken to be: ttl * drift + 2 ms (semantics S1.2). */
rli_span rli_drift(const struct rli_terms *terms, rli_span ttl);

/* e_i of a request of ttl sent at `sent` and confirmed. */
rli_instant rli_confirmed(const struct rli_terms *terms, rli_instant sent, rli_span ttl);

/* The k-th largest of n, 1 <= k <= n <= RL_MAX_NODES. */
int64_t rli_kth_largest(const int64_t *values, uint32_t n, uint32_t k);

/* Until when a lease with these e_i holds. */
rli_instant rli_valid_until(const struct rli_terms *terms, const rli_instant *e);

/* The set of nodes as a mask: bit i is node i. */
static inline uint32_t rli_all(const struct rli_terms *terms)
{
    return UINT32_MAX >> (32 - terms->nodes);
}

static inline uint32_t rli_bit(uint32_t node)
{
    return UINT32_C(1) << node;
}

static inline uint32_t rli_count(uint32_t mask)
{
    return (uint32_t)__builtin_popcount(mask);
}

/* The nodes with e_i > now. */
uint32_t rli_holding(const struct rli_terms *terms, const rli_instant *e, rli_instant now);

#endif
