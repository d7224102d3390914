/* quorum.c - see quorum.h. */
#include "quorum.h"

#include "redlatch.h"

#include <assert.h>

rli_span rli_drift(const struct rli_terms *terms, rli_span ttl)
{
    /* (ttl in ms) * ppm is the drift in nanoseconds; rounded up to the next whole millisecond of ttl. */
    return rli_to_ms_ceil(ttl) * (int64_t)terms->drift_ppm + 2 * RLI_MS;
}

rli_instant rli_confirmed(const struct rli_terms *terms, rli_instant sent, rli_span ttl)
{
    return rli_add(sent, ttl - rli_drift(terms, ttl));
}

int64_t rli_kth_largest(const int64_t *values, uint32_t n, uint32_t k)
{
    int64_t largest[RL_MAX_NODES]; /* the largest so far, in falling order */
    uint32_t kept = 0;

    assert(k >= 1 && k <= n && n <= RL_MAX_NODES);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = kept < k ? kept++ : k;
        for (; at > 0 && largest[at - 1] < values[i]; at--)
            if (at < k)
                largest[at] = largest[at - 1];
        if (at < k)
            largest[at] = values[i];
    }
    return largest[k - 1];
}

rli_instant rli_valid_until(const struct rli_terms *terms, const rli_instant *e)
{
    return rli_kth_largest(e, terms->nodes, terms->quorum);
}

uint32_t rli_holding(const struct rli_terms *terms, const rli_instant *e, rli_instant now)
{
    uint32_t mask = 0;
    for (uint32_t i = 0; i < terms->nodes; i++)
        if (e[i] > now)
            mask |= rli_bit(i);
    return mask;
}
