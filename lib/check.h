/* check.h - the machine of rl_client_check: every command that locks need, tried on a probe key, one after the other on all nodes. */
#ifndef RLI_CHECK_H
#define RLI_CHECK_H

#include "machine.h"

struct rli_check {
    const struct rli_terms *terms; /* set before RLI_START */

    /* The machine's own. */
    uint32_t step;
    uint32_t fine; /* nodes that passed every step so far */
    uint32_t denied;
    rli_instant wake;
    struct rli_ballot ballot; /* of the current step */
};

void rli_check_step(struct rli_check *machine, rli_instant now, const struct rli_input *in, struct rli_actions *out);

#endif
