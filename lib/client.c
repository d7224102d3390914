/* client.c - see client.h. */
#include "client.h"

#include "port.h"

#include <string.h>

static char *copy(const char *text)
{
    size_t size = strlen(text) + 1;
    char *to = rli_calloc(size);
    if (to)
        memcpy(to, text, size);
    return to;
}

static bool same_endpoint(const struct rli_url *a, const struct rli_url *b)
{
    struct rli_address x, y;

    if (a->path || b->path)
        return a->path && b->path && strcmp(a->path, b->path) == 0;
    if (rli_address_numeric(a->host, a->port, &x) && rli_address_numeric(b->host, b->port, &y))
        return x.size == y.size && memcmp(x.bytes, y.bytes, x.size) == 0;
    return a->port == b->port && strcasecmp(a->host, b->host) == 0;
}

/* One server twice would have two votes. */
static int refuse_twins(const struct rli_url *urls, uint32_t count, size_t *ret_error_at)
{
    for (uint32_t i = 1; i < count; i++)
        for (uint32_t j = 0; j < i; j++)
            if (same_endpoint(&urls[i], &urls[j])) {
                *ret_error_at = urls[i].at;
                return RL_E_INVALID;
            }
    return RL_OK;
}

static int configure(struct rli_client *client, const char *list, const rl_options *theirs, size_t *ret_error_at)
{
    uint32_t count = 0;
    rl_options options;
    int rc;

    rl_options_init(&options);
    if (theirs && (rc = rli_options_read(theirs, &options)) != RL_OK)
        return rc;
    rc = rli_urls_parse(list, client->urls, &count, ret_error_at);
    if (rc)
        return rc;
    client->terms.nodes = count; /* from here on destroy() frees the URLs */
    rc = refuse_twins(client->urls, count, ret_error_at);
    if (rc)
        return rc;
    rc = rli_terms_make(&options, count, &client->terms);
    if (rc)
        return rc;
    client->fence = options.fence ? (enum rli_fence)(options.fence - RL_FENCE_NONE) : RLI_FENCE_NONE;
    client->fence_node = options.fence_node;
    client->renew_batch = options.renew_batch ? options.renew_batch : RLI_MAX_BATCH;
    client->prefix = copy(options.prefix);
    client->client_name = copy(options.client_name);
    if (!client->prefix || !client->client_name)
        return RL_E_NO_MEMORY;
    client->prefix_len = strlen(client->prefix);
    return RL_OK;
}

static void destroy(struct rli_client *client)
{
    rli_engine_free(&client->engine);
    rli_urls_free(client->urls, client->terms.nodes);
    rli_waker_drop(client->waker);
    rli_guard_free(client->guard);
    rli_free(client->prefix);
    rli_free(client->client_name);
    pthread_mutex_destroy(&client->mutex);
}

int rli_client_init(struct rli_client *client, const char *urls, const rl_options *options, size_t *ret_error_at)
{
    int rc = configure(client, urls, options, ret_error_at);

    if (pthread_mutex_init(&client->mutex, NULL) != 0)
        rc = rc ? rc : RL_E_NO_MEMORY;
    if (rc == RL_OK) {
        client->guard = rli_guard_new();
        client->waker = rli_waker_new();
        if (client->guard && client->waker && rli_engine_init(&client->engine, client)) {
            rli_guard_random(client->guard, &client->seed, sizeof client->seed);
            return RL_OK;
        }
        rc = RL_E_NO_MEMORY;
    }
    destroy(client);
    return rc;
}

rl_lock *rli_client_lock(struct rli_client *client, const rl_request *request)
{
    rl_lock *lock =
        rli_lock_new(client, request->name, request->name_len, request->label, rli_request_fence(request, client->fence),
                     request->max_hold_ms || request->touch_within_ms ? RLI_ROOM_FOR_LIMITS : 0);

    if (!lock || rli_keep_ask(lock, request))
        return lock;
    rli_lock_unref(lock);
    return NULL;
}

rl_lock *rli_client_give_handle(struct rli_client *client, rl_lock *lock)
{
    client->handles++;
    return rli_lock_ref(lock);
}

void rli_client_take_handle(struct rli_client *client, rl_lock *lock)
{
    client->handles--;
    lock->listening = false;
    rli_lock_unref(lock);
}

bool rli_client_unused(const struct rli_client *client)
{
    return client->closed && client->handles == 0;
}

void rli_client_free(struct rli_client *client)
{
    destroy(client);
    rli_free(client);
}

void rl_lock_free(rl_lock *lock)
{
    struct rli_client *client = lock ? lock->client : NULL;
    int cancel_state;
    bool last;

    if (!lock || rli_guard_forked(client->guard))
        return;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    pthread_mutex_lock(&client->mutex);
    rli_lock_end(lock);
    rli_client_take_handle(client, lock);
    last = rli_client_unused(client);
    pthread_mutex_unlock(&client->mutex);
    if (last)
        rli_client_free(client);
    pthread_setcancelstate(cancel_state, NULL);
}
