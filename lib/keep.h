/* keep.h - holding a lock for longer than one lease: renewal, and what the holder is told of it (semantics S5.2 - S5.6).
 *
 * Each lock that is kept has one timer, in a heap of the engine's. When it comes, the lock is lost (its validity is over), or its try
 * of renewal has failed (it was undecided for too long), or the next try is due. Locks that are due together are renewed by one script
 * call per node, a batch. The votes count for each lock by itself. Renewal never releases. */
#ifndef RLI_KEEP_H
#define RLI_KEEP_H

#include "round.h"

enum { RLI_MAX_BATCH = RLI_MAX_KEYS };

struct rli_batch {
    struct rli_batch *next_free;
    uint32_t count;
    struct rli_slot {
        rl_lock *lock;
        rli_span ttl;
        uint32_t yes;    /* nodes that confirmed this renewal */
        uint32_t absent; /* nodes to be topped up once a quorum has confirmed */
        uint8_t tries;   /* of the lock when this one began */
    } slots[RLI_MAX_BATCH];
};

struct rli_keep { /* of an engine */
    struct rli_heap timers;
    size_t count;                 /* locks that are, or are to be, kept */
    rl_lock *events, *last_event; /* locks that have something to tell */
    uint32_t most;                /* locks in a batch */
    struct rli_batch *free_batches;
    uint32_t free_batch_count;
    uint32_t open;            /* rounds about locks that are kept that wait for an answer ... */
    rli_instant attend_until; /* ... which it is worth waiting for until then */
};

/* The lock is to be kept as the request says once it is held; false: out of memory. */
bool rli_keep_ask(rl_lock *lock, const rl_request *request);

/* Another attempt at the same lock. */
void rli_keep_take_over(rl_lock *again, rl_lock *lock);

/* From now on it is held by its handle. */
void rli_keep_start(rl_lock *lock, rli_instant now);

void rli_keep_stop(rl_lock *lock, rli_instant now); /* no more renewals */
void rli_keep_end(rl_lock *lock);                   /* it is over */
void rli_keep_forget(rl_lock *lock);                /* ... and its memory is given up */

/* Its validity has changed; or a quorum has extended it. */
void rli_keep_changed(rl_lock *lock, rli_instant now);
void rli_keep_renewed(rl_lock *lock, rli_instant now);

/* Deals with the locks whose time has come; there may be more than one turn should do, then the next is due at once. */
void rli_keep_tick(struct rli_engine *engine, rli_instant now);

/* A node has answered a batch; values: what it said of each lock, or NULL: the answer goes for all. */
void rli_keep_vote(struct rli_round *round, uint32_t node, const struct rli_answer *answer, const int64_t *values, rli_instant now);

/* Is an answer about a renewal worth waiting for? For a driver that has nothing else to do. */
bool rli_keep_attends(const struct rli_engine *engine, rli_instant now);

/* Has the lock something to tell? Then it is put into the list. */
void rli_keep_tell(rl_lock *lock);

/* The next event, for the lock's callback: the lock, with a reference that becomes the caller's, or NULL. */
rl_lock *rli_keep_next_event(struct rli_engine *engine, rl_event *ret, rli_instant now);

void rli_batch_free(struct rli_engine *engine, struct rli_batch *batch);
void rli_keep_free(struct rli_engine *engine);

#endif
