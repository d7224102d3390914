/* round.h - one request to each node about a lock, or about a batch of locks to be renewed together; alive until each node has
 * answered or is lost, which may be long after whoever began it has moved on. */
#ifndef RLI_ROUND_H
#define RLI_ROUND_H

#include "node.h"

struct rli_op;
struct rli_batch;

struct rli_round {
    struct rli_round *next_free;
    struct rli_engine *engine;
    struct rli_op *op;       /* NULL: it has moved on, or there was none */
    rl_lock *lock;           /* NULL: the locks of the batch */
    struct rli_batch *batch; /* RLI_RENEW only */
    enum rli_kind kind;
    rli_span ttl;
    uint32_t open;     /* requests without an answer yet */
    uint32_t yes;      /* extend: nodes that confirmed */
    uint32_t topped;   /* extend: nodes topped up */
    bool whole_script; /* EVAL from the start */
    bool again;        /* a release that a node still owed, for the second time */
    bool keeps;        /* about locks that are kept: worth driving for (keep.h) */
    struct rli_request requests[];
};

/* About the lock, of which it takes a reference; NULL if out of memory. */
struct rli_round *rli_round_new(struct rli_engine *engine, rl_lock *lock, enum rli_kind kind, rli_span ttl);
struct rli_round *rli_round_new_batch(struct rli_engine *engine, struct rli_batch *batch);
void rli_round_free_if_done(struct rli_round *round);
void rli_rounds_free(struct rli_engine *engine); /* those kept for reuse */

/* Its request to a node, not sent yet. */
struct rli_request *rli_round_request(struct rli_round *round, uint32_t node, rli_instant deadline);
void rli_round_build(const struct rli_round *round, bool whole_script, struct rli_command *ret);

/* Puts its request to the nodes in the mask; returns those that it could not be put to. */
uint32_t rli_round_put(struct rli_round *round, uint32_t mask, rli_instant deadline, rli_instant now);

/* Do too many nodes back off to do without them? */
bool rli_back_off_is_over(const struct rli_engine *engine, rli_instant now);
bool rli_round_refuses(const struct rli_round *round, uint32_t node, bool needed, rli_instant now, struct rli_answer *ret);

/* Its requests that wait for a connection are taken back; releases of what may be there become owed. */
void rli_round_withdraw(struct rli_round *round, rli_instant now);

/* Nothing that still waits for a connection may set or extend a lock whose release has begun. */
void rli_withdraw_all_of(struct rli_engine *engine, const rl_lock *lock, rli_instant now);

/* Restores a lock that is held on nodes that answered that it is absent there. */
void rli_top_up(rl_lock *lock, uint32_t mask, rli_span ttl, rli_instant now);

#endif
