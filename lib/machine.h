/* machine.h - what goes into and comes out of the machines (acquire.h, extend.h, release.h, check.h).
 *
 * A machine is one operation as a pure function: step(machine, now, input) -> actions. It owns no socket, clock, memory or thread;
 * whoever runs it (engine.h) carries out the actions in the order of their fields, and steps it again when a vote comes in or its
 * wake-up instant is reached. After `finished` it is never stepped again. */
#ifndef RLI_MACHINE_H
#define RLI_MACHINE_H

#include "ballot.h"

enum rli_kind {             /* what is asked of a node */
                RLI_SET,    /* take: SET NX PX */
                RLI_TOP_UP, /* set a lock already held on a node that lost it */
                RLI_EXTEND,
                RLI_RELEASE,
                RLI_INFO,    /* who are you: for rl_client_check */
                RLI_GRANT,   /* take, and raise the node's fence counter, which is the answer */
                RLI_CONFIRM, /* raise the fence counter to the token, if the lock is still ours there */
                RLI_MINT,    /* a token from the designated node */
                RLI_STORE,   /* write what a fencing token guards */
                RLI_RENEW    /* extend each lock of a batch */
};

/* May the request leave a key of ours behind? */
static inline bool rli_creates(enum rli_kind kind)
{
    return kind == RLI_SET || kind == RLI_GRANT || kind == RLI_TOP_UP;
}

enum rli_fence { RLI_FENCE_NONE, RLI_FENCE_QUORUM, RLI_FENCE_NODE };

enum rli_event {
    RLI_START,
    RLI_VOTE,     /* `node` answered the request, or its request was lost */
    RLI_CLEANED,  /* acquire: `node` answered the clean-up of this attempt, or it was lost */
    RLI_FENCED,   /* acquire: `node` answered the confirmation or the mint, or it was lost */
    RLI_DEADLINE, /* the wake-up instant has come */
    RLI_CANCEL
};

struct rli_input {
    enum rli_event event;
    uint32_t node;
    const struct rli_answer *answer;
    uint32_t unsent; /* nodes whose request of the current ballot still waits for a connection: nothing was sent */
    uint32_t resent; /* nodes whose request is being sent a second time, after their connection broke */
};

struct rli_actions {
    uint32_t clean;     /* release the current attempt's token on these nodes */
    bool fresh_token;   /* what follows gets a new token */
    uint32_t send;      /* put `kind` to these nodes */
    enum rli_kind kind; /* */
    uint32_t fence;     /* put `fence_kind` to these nodes */
    enum rli_kind fence_kind;
    int64_t token;   /* the fencing token, once it is known */
    uint32_t top_up; /* restore the lock on these nodes */
    bool finished;   /* with `status`; else step again at `wake` */
    int status;
    rli_instant wake;
};

#endif
