/* renewal.c - see renewal.h. */
#include "renewal.h"

static const rli_span least_pause = RLI_MS;

/* The largest power of two of which at least 16 fit into the range. */
static rli_span grid_of(rli_span range)
{
    return INT64_C(1) << (63 - __builtin_clzll((uint64_t)(range / 16 | 1)));
}

rli_instant rli_renewal_due(rli_instant now, rli_instant valid_until, uint64_t random)
{
    rli_span third = rli_until(valid_until, now) / 3, grid, points, due;

    if (third <= least_pause)
        return rli_min(rli_add(now, least_pause), valid_until);
    grid = grid_of(third / 10);
    due = now + third / 5 * 4;
    due += grid - 1 - (due - 1) % grid; /* the first point of the grid in the range */
    points = (now + third / 10 * 9 - due) / grid + 1;
    return due + (rli_span)(random % (uint64_t)points) * grid;
}

rli_instant rli_renewal_deadline(const struct rli_terms *terms, rli_instant now, rli_instant valid_until)
{
    return rli_add(now, rli_min(terms->node_timeout, rli_until(valid_until, now) / 3));
}

bool rli_renewal_fits(const struct rli_terms *terms, rli_span ttl)
{
    rli_span left = ttl - rli_drift(terms, ttl) - terms->min_validity;

    left -= left / 10 * 3;                  /* the first try is due then, and leaves two thirds to the second ... */
    return left / 9 * 4 / 3 >= least_pause; /* ... and the third, which may take a third of the rest */
}
