/* store.h - the machine of a write that is checked against its fencing token (rl_fenced_begin, rl_fenced_set): one question to one
 * server. Asking twice does no harm: the same holder may show the same token again. */
#ifndef RLI_STORE_H
#define RLI_STORE_H

#include "machine.h"

struct rli_store {
    const struct rli_terms *terms; /* set before RLI_START; of a single node */

    /* The machine's own. */
    rli_instant wake;
    struct rli_ballot ballot;
};

void rli_store_step(struct rli_store *machine, rli_instant now, const struct rli_input *in, struct rli_actions *out);

#endif
