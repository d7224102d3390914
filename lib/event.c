/* event.c - the libevent adapter of the callback front (callback.h); a library of its own, so that libredlatch links no libevent.
 *
 * Per connection one persistent read event, and a write event only while bytes remain. Timers are the
 * client's timerfd on CLOCK_BOOTTIME: libevent's own come late by the length of the callbacks before them, and do not count
 * suspended time. One deferred event sends and runs callbacks, once per turn of the loop. */
#include "callback.h"

#include <event2/event.h>
#include <stdlib.h>

struct watched {
    struct adapter *adapter;
    uint32_t node;
    struct event *read, *write;
};

struct adapter {
    rl_async *async;
    struct event_base *base;
    int priority;
    struct event *waker, *turn;
    struct watched nodes[RL_MAX_NODES];
};

/* ---- From libevent to the front ---------------------------------------------------------------------------------------------------------- */

static void on_io(evutil_socket_t fd, short what, void *arg)
{
    const struct watched *watched = arg;

    (void)fd;
    rli_async_ready(watched->adapter->async, watched->node, what & EV_READ, what & EV_WRITE);
}

static void on_woken(evutil_socket_t fd, short what, void *arg)
{
    struct adapter *adapter = arg;

    (void)fd, (void)what;
    rli_async_woken(adapter->async);
}

static void on_turn(evutil_socket_t fd, short what, void *arg)
{
    struct adapter *adapter = arg;

    (void)fd, (void)what;
    rli_async_turn(adapter->async); /* may free the adapter */
}

/* ---- From the front to libevent ----------------------------------------------------------------------------------------------------------- */

static void stop_watching(struct watched *watched)
{
    if (watched->read)
        event_free(watched->read);
    if (watched->write)
        event_free(watched->write);
    watched->read = watched->write = NULL;
}

static struct event *new_event(const struct adapter *adapter, int fd, short what, event_callback_fn callback, void *arg)
{
    struct event *event = event_new(adapter->base, fd, what, callback, arg);

    if (event && adapter->priority >= 0 && event_priority_set(event, adapter->priority) != 0) {
        event_free(event);
        return NULL;
    }
    return event;
}

static bool add_new(const struct adapter *adapter, struct event **event, int fd, short what, event_callback_fn callback, void *arg)
{
    *event = new_event(adapter, fd, what, callback, arg);
    return *event && event_add(*event, NULL) == 0;
}

static bool watch(void *loop, uint32_t node, int fd, bool write)
{
    struct adapter *adapter = loop;
    struct watched *watched = &adapter->nodes[node];
    bool ok = true;

    if (fd < 0) {
        stop_watching(watched);
        return true;
    }
    watched->adapter = adapter;
    watched->node = node;
    if (!watched->read)
        ok = add_new(adapter, &watched->read, fd, EV_READ | EV_PERSIST, on_io, watched);
    if (ok && write && !watched->write)
        ok = add_new(adapter, &watched->write, fd, EV_WRITE | EV_PERSIST, on_io, watched);
    if (!write && watched->write) {
        event_free(watched->write);
        watched->write = NULL;
    }
    if (!ok)
        stop_watching(watched);
    return ok;
}

static void defer(void *loop)
{
    const struct adapter *adapter = loop;
    event_active(adapter->turn, EV_TIMEOUT, 0);
}

static void adapter_free(void *loop)
{
    struct adapter *adapter = loop;

    for (uint32_t i = 0; i < RL_MAX_NODES; i++)
        stop_watching(&adapter->nodes[i]);
    if (adapter->waker)
        event_free(adapter->waker);
    if (adapter->turn)
        event_free(adapter->turn);
    free(adapter);
}

static const struct rli_loop vtable = {.watch = watch, .defer = defer, .free = adapter_free};

static struct adapter *adapter_new(struct event_base *base, int priority)
{
    struct adapter *adapter = calloc(1, sizeof *adapter);

    if (!adapter)
        return NULL;
    adapter->base = base;
    adapter->priority = priority;
    adapter->turn = new_event(adapter, -1, 0, on_turn, adapter);
    if (adapter->turn)
        return adapter;
    adapter_free(adapter);
    return NULL;
}

int rl_async_new(struct event_base *base, int priority, const char *urls, const rl_options *options, rl_async **ret_async,
                 size_t *ret_error_at)
{
    struct adapter *adapter;
    int rc;

    if (ret_error_at)
        *ret_error_at = SIZE_MAX;
    if (!base || !ret_async || priority < -1 || priority >= event_base_get_npriorities(base))
        return RL_E_INVALID;
    adapter = adapter_new(base, priority);
    if (!adapter)
        return RL_E_NO_MEMORY;
    rc = rli_async_new(RL_VERSION_STRING, &vtable, adapter, urls, options, &adapter->async, ret_error_at);
    if (rc) {
        adapter_free(adapter);
        return rc;
    }
    if (!add_new(adapter, &adapter->waker, rli_async_waker_fd(adapter->async), EV_READ | EV_PERSIST, on_woken, adapter)) {
        rl_async_free(adapter->async); /* frees the adapter */
        return RL_E_NO_MEMORY;
    }
    *ret_async = adapter->async;
    return RL_OK;
}
