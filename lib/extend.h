/* extend.h - the machine of an extension (semantics S5.1 - S5.3, S5.5, S5.7). */
#ifndef RLI_EXTEND_H
#define RLI_EXTEND_H

#include "machine.h"

struct rli_extend {
    /* Set before RLI_START. */
    const struct rli_terms *terms;
    rli_instant *e; /* of the lock; kept up to date by the machine while it runs */
    rli_span ttl;
    bool unproved; /* imported and not yet confirmed: the servers are asked whatever e says, and decide alone */
    bool settle;   /* wait also for nodes that are being asked again after a restart, so that they can be topped up: for a
                      caller whose connections rest between calls */

    /* The machine's own. */
    enum { RLI_EXTEND_NEW, RLI_EXTEND_VOTING, RLI_EXTEND_SETTLING, RLI_EXTEND_DONE } state;
    rli_instant wake;
    struct rli_ballot ballot;
};

void rli_extend_step(struct rli_extend *machine, rli_instant now, const struct rli_input *in, struct rli_actions *out);

/* What an answer to an extend or top-up does to the lock's e_i; also for votes that come after the machine is done. */
void rli_extend_apply(const struct rli_terms *terms, rli_instant *e, uint32_t node, rli_span ttl, const struct rli_answer *answer);

#endif
