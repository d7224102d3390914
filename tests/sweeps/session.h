/* session.h - one client of either front under one set of calls, for tests that do the same to both. */
#ifndef RLT_SESSION_H
#define RLT_SESSION_H

#include "../event/event.h"

struct session {
    bool event;
    rl_client *client;
    struct loop loop;
};

/* The loop is there before the client, and outlives it. */
static inline void session_begin(struct session *session, bool event)
{
    *session = (struct session){.event = event};
    if (event)
        base_start(&session->loop);
}

static inline int session_new(struct session *session, const char *urls, const rl_options *options)
{
    if (!session->event)
        return rl_client_new(urls, options, &session->client, NULL);
    return rl_async_new(session->loop.base, -1, urls, options, &session->loop.async, NULL);
}

static inline int session_acquire(struct session *session, const char *name, int64_t ttl_ms, int64_t wait_ms, rl_lock **ret_lock)
{
    struct call call = {0};
    *ret_lock = NULL;
    if (!session->event)
        return rl_acquire(session->client, name, ttl_ms, wait_ms, ret_lock);
    int rc = try_acquire(session->loop.async, name, ttl_ms, wait_ms, &call);
    if (rc != RL_OK)
        return rc;
    AWAIT(&session->loop, call.times);
    ts_equal(call.times, 1);
    *ret_lock = call.lock;
    return call.status;
}

static inline int session_extend(struct session *session, rl_lock *lock, int64_t ttl_ms)
{
    struct call call = {0};
    if (!session->event)
        return rl_extend(lock, ttl_ms, NULL);
    int rc = try_extend(lock, ttl_ms, &call);
    if (rc != RL_OK)
        return rc;
    AWAIT(&session->loop, call.times);
    ts_equal(call.times, 1);
    return call.status;
}

static inline int session_release(struct session *session, rl_lock *lock)
{
    if (!session->event)
        return rl_release(lock);
    return release(&session->loop, lock);
}

static inline void session_free(struct session *session)
{
    rl_client_free(session->client);
    rl_async_free(session->loop.async);
    session->client = NULL;
    session->loop.async = NULL;
}

static inline void session_end(struct session *session)
{
    session_free(session);
    if (session->event)
        loop_end(&session->loop);
}

#endif
