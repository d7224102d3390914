/* renewal.h - when to renew a lease, and how long to try (semantics S5.4). Pure. */
#ifndef RLI_RENEWAL_H
#define RLI_RENEWAL_H

#include "quorum.h"

/* The next renewal is due at now + r * (valid_until - now) / 3, r uniform in [0.8, 0.9]. The instant is drawn from a grid that is fine
 * against that range, so that of many locks some are due together. Never after valid_until. */
rli_instant rli_renewal_due(rli_instant now, rli_instant valid_until, uint64_t random);

/* Until when a try that begins now may go on: min(node timeout, a third of what remains). */
rli_instant rli_renewal_deadline(const struct rli_terms *terms, rli_instant now, rli_instant valid_until);

/* Do three tries fit into a lease of that length? */
bool rli_renewal_fits(const struct rli_terms *terms, rli_span ttl);

#endif
