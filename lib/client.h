/* client.h - what every front's client has: the nodes and options, the engine, and the fork guard. */
#ifndef RLI_CLIENT_H
#define RLI_CLIENT_H

#include "engine.h"
#include "options.h"

#include <pthread.h>

struct rli_client {
    struct rli_terms terms;
    struct rli_url urls[RL_MAX_NODES];
    char *prefix;
    size_t prefix_len;
    char *client_name;
    enum rli_fence fence; /* where a request says nothing else */
    uint32_t fence_node;
    uint32_t renew_batch;
    struct rli_guard *guard;
    struct rli_waker *waker;
    struct rli_engine engine;
    pthread_mutex_t mutex;
    uint32_t handles; /* that keep the memory */
    bool closed;      /* freed by its owner: handles answer RL_E_CLOSED */
    bool stopped;
    bool async;    /* of the callback front: the blocking calls refuse its handles */
    uint64_t seed; /* of pauses and back-off; nothing secret */
};

/* Fills *client, which is zeroed. Returns as rl_client_new; nothing to free unless RL_OK. */
int rli_client_init(struct rli_client *client, const char *urls, const rl_options *options, size_t *ret_error_at);

/* A lock to be taken, and kept, as the request says; NULL if out of memory. */
rl_lock *rli_client_lock(struct rli_client *client, const rl_request *request);

/* A handle is given out, or given up (and the lock's reference with it). */
rl_lock *rli_client_give_handle(struct rli_client *client, rl_lock *lock);
void rli_client_take_handle(struct rli_client *client, rl_lock *lock);

/* Is it closed, and nobody left who could use its memory? Then rli_client_free frees it: outside the mutex, which goes with it. */
bool rli_client_unused(const struct rli_client *client);
void rli_client_free(struct rli_client *client); /* the block that begins with it, too */

#endif
