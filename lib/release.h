/* release.h - the machine of a release (semantics S6). */
#ifndef RLI_RELEASE_H
#define RLI_RELEASE_H

#include "machine.h"

struct rli_release {
    /* Set before RLI_START. */
    const struct rli_terms *terms;
    const rli_instant *e; /* of the lock */
    bool unproved;        /* imported and never confirmed: e says nothing */
    bool lost;            /* the holder was told so already */
    bool no_wait;         /* at RLI_DEADLINE, given right after the flush: what was sent to q nodes is done */

    /* The machine's own. */
    bool started;
    bool in_time; /* the call came while the lease was valid */
    rli_instant called;
    rli_instant wake;
    struct rli_ballot ballot;
};

void rli_release_step(struct rli_release *machine, rli_instant now, const struct rli_input *in, struct rli_actions *out);

#endif
