/* lock.h - the handle: a lease on a name, with what each node is known to keep of it.
 *
 * One block: the struct, e_i of each node, the fencing token and the limits of a renewal where there are any, then key, token and
 * counter's key, each ended by NUL. Applications hold locks by the hundred thousand, so it is packed: 200 bytes with its place in the
 * heap of renewals, for one node and a name of 24 bytes. */
#ifndef RLI_LOCK_H
#define RLI_LOCK_H

#include "redlatch.h"

#include "command.h"
#include "heap.h"

#include <stdatomic.h>

struct rli_client;

enum rli_lock_state {
    RLI_LOCK_TAKING,   /* an attempt runs, or failed: belongs to nobody but its requests */
    RLI_LOCK_UNPROVED, /* imported, no extension has confirmed it yet */
    RLI_LOCK_HELD,
    RLI_LOCK_OVER /* lost, released or forgotten: for good */
};

struct rli_limits { /* of a renewal */
    rli_instant hold_until;
    rli_span touch_within;          /* RLI_NEVER = the holder need not check in */
    _Atomic rli_instant touched_at; /* by any thread */
};

struct rl_lock {
    struct rli_client *client;
    _Atomic rli_instant valid_until; /* RLI_GONE unless held; read by any thread */
    rli_instant free_by;             /* when the last lease sent to anybody is over on the slowest allowed clock */
    rli_span ttl;                    /* as last asked for */
    union {
        struct rli_op *extending; /* callback front: the holder's own extension */
        rl_lock *parted;          /* ... or a release without memory for an operation of its own */
    } async;
    rl_lock *next_event; /* of the locks that have something to tell */
    union {
        struct { /* callback front: of events, then of such a release */
            void (*callback)(void);
            void *user_data;
        } tell;
        int alarm;        /* blocking front: 1 + a descriptor that becomes readable at valid_until; 0 = none */
        size_t value_len; /* of a store */
    } front;
    struct rli_timer timer; /* when to look at it again (keep.h) */
    uint32_t refs;          /* the handle, the operation, every round, batch and owed release that needs it */
    uint32_t touched;       /* nodes that were sent a creating request */
    uint32_t adrift;        /* ... and may carry it out at any time: its connection was lost */
    uint32_t owed;          /* nodes that are owed its release (node.h) */
    uint16_t key_len, counter_len;
    uint8_t token_len, prefix_len;
    uint8_t nodes : 6, has_fence : 1, has_limits : 1; /* how it is laid out: never changed, and read without the mutex */
    _Atomic uint8_t watchers; /* threads inside rl_lock_wait_lost: they keep the memory as references do, without the mutex */
    enum rli_lock_state state : 2;
    enum rli_fence mode : 2;
    uint32_t tries : 8;        /* of renewal, counted: a vote of an earlier one fails no later one */
    uint32_t lost : 3;         /* enum rl_lost_reason */
    uint32_t told_lost : 1;    /* the holder knows that it is over */
    uint32_t probe : 1;        /* nobody will ask for its counter again */
    uint32_t has_value : 1;    /* of a store */
    uint32_t taken_over : 1;   /* a node has said that it is another's */
    uint32_t renewing : 1;     /* it is to be renewed */
    uint32_t kept : 1;         /* its end is watched for */
    uint32_t trying : 1;       /* a try of renewal is undecided */
    uint32_t failing : 1;      /* the last one failed */
    uint32_t untouched : 1;    /* ... because the holder did not check in */
    uint32_t capped : 1;       /* no more renewals: it has been held for as long as it may */
    uint32_t alone : 1;        /* to be renewed by a script call of its own */
    uint32_t listening : 1;    /* the holder gave a callback, and still has the handle */
    uint32_t told_failing : 1; /* ... and was told of the jeopardy */
    uint32_t queued : 1;       /* it is in the list of those that have something to tell */
    rli_instant e[];
};

enum { RLI_TOKEN_DIGITS = 32 };

enum rli_room { RLI_ROOM_FOR_FENCE = 1, RLI_ROOM_FOR_LIMITS = 2 };

/* A lock to be taken on name: without a token yet, but with room for one with that label (or NULL), and for what else is wanted (a mask
 * of enum rli_room). refs = 1. NULL if out of memory. It does not keep the client alive: only handles do. With a fence it has room for
 * it and a counter's key, in the same hash slot. */
rl_lock *rli_lock_new(struct rli_client *client, const void *name, size_t name_len, const char *label, enum rli_fence mode,
                      unsigned room);

/* Not a lock, but what a checked write is about: the key and value (or NULL) of the data, shown the fencing token of a holder. */
rl_lock *rli_lock_new_store(struct rli_client *client, const void *key, size_t key_len, const void *value, size_t value_len,
                            const rl_lock *holder);

/* The same lock for another attempt, which takes over what was asked of the first one. */
rl_lock *rli_lock_again(rl_lock *lock);

/* A token of the client's random bytes; forgets what was known of the nodes. */
void rli_lock_fresh_token(rl_lock *lock);

/* What its requests are about. */
struct rli_subject rli_lock_subject(const rl_lock *lock);
char *rli_lock_key(const rl_lock *lock);
char *rli_lock_token(const rl_lock *lock);
struct rli_limits *rli_lock_limits(const rl_lock *lock); /* NULL if it has none */
void rli_lock_set_fence(rl_lock *lock, int64_t fence);   /* nothing if there is no room for one: none was asked for */

/* Publishes what e says now. A lock that has fewer than a quorum of live e_i is lost, for good. */
void rli_lock_refresh(rl_lock *lock, rli_instant now);
void rli_lock_lose(rl_lock *lock);
void rli_lock_end(rl_lock *lock); /* not by loss */

/* Is it over at that time? Whoever asks tells the holder so. */
bool rli_lock_is_over(rl_lock *lock, rli_instant now);

rl_lock *rli_lock_ref(rl_lock *lock);
void rli_lock_unref(rl_lock *lock);

/* A thread begins to watch it, without the mutex; false: too many do. It ends under the mutex, as unref does. */
bool rli_lock_watch(rl_lock *lock);
void rli_lock_unwatch(rl_lock *lock);

#endif
