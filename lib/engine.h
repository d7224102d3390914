/* engine.h - nodes, running operations and their deadlines, without a loop of its own.
 *
 * A driver (poll_driver.h) starts operations, hands over what happens to the nodes, and calls rli_engine_tick when the
 * deadline has come. Under the client's mutex throughout.
 *
 * An operation runs one machine. What it asks of the nodes is a round: one request to each, alive until each has its answer or is
 * lost, which may be long after the operation ended. Late answers of a round whose operation has moved on count for the lock, if it is
 * held, and for nothing else. */
#ifndef RLI_ENGINE_H
#define RLI_ENGINE_H

#include "acquire.h"
#include "check.h"
#include "extend.h"
#include "keep.h"
#include "release.h"
#include "report.h"
#include "store.h"

struct rli_client;

enum rli_op_type { RLI_OP_ACQUIRE, RLI_OP_EXTEND, RLI_OP_RELEASE, RLI_OP_CHECK, RLI_OP_STORE };

struct rli_op {
    struct rli_timer timer;      /* first: the heap knows only it */
    struct rli_op *next, **link; /* in the list of running operations, or of free ones */
    enum rli_op_type type;
    rl_lock *lock;
    struct rli_round *round;    /* the current one */
    struct rli_round *cleaning; /* acquire: the clean-up of the attempt that failed last */
    struct rli_round *fencing;  /* acquire: confirmations, or the mint, of the current attempt */
    bool with_text;             /* keep the servers' words: there is a report to fill */
    bool finished;
    int status;
    void (*done)(struct rli_op *op); /* called once, at the end; may not free it */
    void *owner;
    struct { /* the callback front's */
        struct rli_op *next_done;
        void (*callback)(void);
        void *user_data;
        bool canceled;
    } async;
    union {
        struct rli_acquire acquire;
        struct rli_extend extend;
        struct rli_release release;
        struct rli_check check;
        struct rli_store store;
    } machine;
    struct rli_result results[]; /* of the last request to each node */
};

struct rli_engine {
    struct rli_client *client;
    struct rli_node *nodes;
    uint32_t dirty;         /* nodes that want something of the driver, or have bytes to send */
    struct rli_heap timers; /* of operations */
    struct rli_keep keep;
    size_t op_count; /* allocated */
    struct rli_op *running;
    struct rli_op *free_ops;
    struct rli_round *free_rounds;
    size_t free_op_count, free_round_count;
};

bool rli_engine_init(struct rli_engine *engine, struct rli_client *client);
void rli_engine_free(struct rli_engine *engine);

/* When rli_engine_tick is due. */
rli_instant rli_engine_deadline(const struct rli_engine *engine);
void rli_engine_tick(struct rli_engine *engine, rli_instant now);

/* An operation on the lock, of which it takes a reference; NULL if out of memory. Set with_text, done and owner; then start it.
 * A release ends the lock, with or without memory for the operation. */
struct rli_op *rli_op_new_acquire(struct rli_engine *engine, rl_lock *lock, const rl_request *request);
struct rli_op *rli_op_new_extend(struct rli_engine *engine, rl_lock *lock, rli_span ttl);
struct rli_op *rli_op_new_release(struct rli_engine *engine, rl_lock *lock, bool no_wait);
struct rli_op *rli_op_new_check(struct rli_engine *engine, rl_lock *probe);
struct rli_op *rli_op_new_store(struct rli_engine *engine, rl_lock *subject);
void rli_op_start(struct rli_op *op, rli_instant now);
void rli_op_cancel(struct rli_op *op, rli_instant now);
void rli_op_expire(struct rli_op *op, rli_instant now); /* as if its deadline had come */
void rli_op_abort(struct rli_op *op, rli_instant now);  /* RL_CANCELED, whatever it is about */
void rli_op_free(struct rli_op *op);                    /* after it has finished */

/* The result at the moment it is handed over: a success is one only if enough of the lease is still left (S1.4). If `unwanted`, it is
 * RL_CANCELED whatever had been decided. An acquired lock that is not handed over is taken back. */
int rli_op_hand_over(struct rli_op *op, bool unwanted, rli_instant now);

/* After a release: how long until the lock is free for certain; RLI_NEVER = not known. */
rli_span rli_op_free_in(const struct rli_op *op, rli_instant now);

/* The lock is to be released on every node that may keep it, by and by: for when memory is short, or nobody waits. What still waits
 * to be sent about it is taken back. */
void rli_engine_owe_release(struct rli_engine *engine, rl_lock *lock, rli_instant now);

#endif
