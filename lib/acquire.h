/* acquire.h - the machine of an acquisition: attempts, their clean-up, and the pauses between them (semantics S1, S2, S3.1, S4), with
 * their fencing tokens (S8; the quorum fence is design 5). */
#ifndef RLI_ACQUIRE_H
#define RLI_ACQUIRE_H

#include "machine.h"
#include "redlatch.h"

struct rli_acquire {
    /* Set before RLI_START. */
    const struct rli_terms *terms;
    rli_instant *e; /* of the current attempt's lease; all RLI_GONE at its start, set by the machine */
    rli_span ttl;
    rli_span wait; /* 0 = once; RLI_NEVER */
    bool fail_fast;
    enum rli_fence fence;
    uint32_t fence_node; /* RLI_FENCE_NODE: the designated one */
    uint64_t seed;       /* of the random pauses */

    /* The machine's own. */
    enum {
        RLI_ACQUIRE_NEW,
        RLI_ACQUIRE_VOTING,
        RLI_ACQUIRE_MINTING,
        RLI_ACQUIRE_CLEANING,
        RLI_ACQUIRE_SLEEPING,
        RLI_ACQUIRE_DONE
    } state;
    enum { RLI_ENDS_BY_NODE, RLI_ENDS_BY_DEADLINE, RLI_ENDS_BY_VALIDITY } ends_by; /* what bounds this attempt */
    rli_instant last_start;                                                        /* no attempt starts later */
    rli_instant deadline;                                                          /* no attempt runs longer */
    rli_instant wake;
    struct rli_ballot ballot;      /* of the current attempt */
    int64_t token;                 /* the fencing token of this attempt; 0 = not known yet */
    uint32_t confirmed;            /* nodes whose counter is known to stand at the token */
    uint32_t confirming;           /* nodes that were asked to raise it */
    int64_t counter[RL_MAX_NODES]; /* the answers to the grants */
    uint32_t to_clean;             /* nodes whose answers to the clean-up are awaited */
    int verdict;                   /* of the last attempt that ran to its end, or RLI_UNDECIDED */
    bool cut_short;                /* the current one did not, so its clean-up says nothing about the verdict */
    uint32_t repeated;             /* nodes for whose dead connection an attempt was repeated already */
    unsigned splits;               /* split votes in a row */
    rli_span bound;                /* of the next pause */
    rli_span holder_left[RL_MAX_NODES];
};

void rli_acquire_step(struct rli_acquire *machine, rli_instant now, const struct rli_input *in, struct rli_actions *out);

#endif
