/* lock.h - the handle: a lease on a name, with what each node is known to keep of it. */
#ifndef RLI_LOCK_H
#define RLI_LOCK_H

#include "redlatch.h"

#include "command.h"

#include <stdatomic.h>

struct rli_client;

enum rli_lock_state {
    RLI_LOCK_TAKING,   /* an attempt runs, or failed: belongs to nobody but its requests */
    RLI_LOCK_UNPROVED, /* imported, no extension has confirmed it yet */
    RLI_LOCK_HELD,
    RLI_LOCK_OVER /* lost, released or forgotten: for good */
};

struct rl_lock {
    struct rli_client *client;
    uint32_t refs; /* the handle, the operation, every round and owed release that needs key and token */
    enum rli_lock_state state;
    uint32_t touched;                /* nodes that were sent a creating request */
    uint32_t adrift;                 /* ... and may carry it out at any time: its connection was lost */
    uint32_t owed;                   /* nodes that are owed its release (node.h) */
    bool told_lost;                  /* the holder knows that it is over */
    rli_span ttl;                    /* as last asked for */
    rli_instant free_by;             /* when the last lease sent to anybody is over on the slowest allowed clock */
    _Atomic rli_instant valid_until; /* RLI_GONE unless held; read by any thread */
    struct rli_subject subject;      /* key, token and counter's key, all in the same block, each ended by NUL */
    uint32_t prefix_len;
    struct { /* the callback front's */
        struct rli_op *extending;
        rl_lock *next; /* a release without memory for an operation of its own */
        void (*callback)(void);
        void *user_data;
    } async;
    rli_instant e[];
};

enum { RLI_TOKEN_DIGITS = 32 };

/* A lock to be taken on name: without a token yet, but with room for one with that label (or NULL). refs = 1. NULL if out of
 * memory. It does not keep the client alive: only handles do. With a fence it has a counter's key, in the same hash slot. */
rl_lock *rli_lock_new(struct rli_client *client, const void *name, size_t name_len, const char *label, enum rli_fence mode);

/* Not a lock, but what a checked write is about: the key and value (or NULL) of the data, shown the fencing token of a holder. */
rl_lock *rli_lock_new_store(struct rli_client *client, const void *key, size_t key_len, const void *value, size_t value_len,
                            const rl_lock *holder);

/* The same lock for another attempt. */
rl_lock *rli_lock_again(const rl_lock *lock);

/* A token of the client's random bytes; forgets what was known of the nodes. */
void rli_lock_fresh_token(rl_lock *lock);

/* Publishes what e says now. A lock that has fewer than a quorum of live e_i is over, for good. */
void rli_lock_refresh(rl_lock *lock, rli_instant now);
void rli_lock_end(rl_lock *lock);

/* Is it over at that time? Whoever asks tells the holder so. */
bool rli_lock_is_over(rl_lock *lock, rli_instant now);

rl_lock *rli_lock_ref(rl_lock *lock);
void rli_lock_unref(rl_lock *lock);

#endif
