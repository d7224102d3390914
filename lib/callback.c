/* callback.c - see callback.h.
 *
 * Nothing happens inside a call of the user's but the start of a machine: sending and callbacks are left to the next turn, which the
 * loop is asked for once. All on the base's thread, so the client's mutex is not needed. */
#include "callback.h"

#include "client.h"
#include "port.h"
#include "pump.h"

#include <errno.h>
#include <string.h>

struct rl_async {
    struct rli_client base; /* first: a lock knows its client by this */
    struct rli_pump pump;
    const struct rli_loop *vtable;
    void *loop;
    struct {
        int fd;
        bool write;
    } watched[RL_MAX_NODES];
    bool deferred;
    bool in_callback;
    bool freeing;                     /* rl_async_free was called from a callback */
    struct rli_op *done, **last_done; /* finished, not yet told */
    rl_lock *parted, **last_parted;   /* released without memory for an operation */
    rl_report *report;                /* of the callback that runs */
};

static rl_async *async_of(const struct rli_client *client)
{
    return (rl_async *)(uintptr_t)client;
}

/* ---- Between loop and engine ---------------------------------------------------------------------------------------------------------- */

static void closing(struct rli_pump *pump, uint32_t node)
{
    rl_async *async = async_of(pump->engine->client);

    if (async->watched[node].fd >= 0)
        async->vtable->watch(async->loop, node, -1, false);
    async->watched[node].fd = -1;
}

static void watch(rl_async *async, uint32_t node, rli_instant now)
{
    int fd = async->pump.links[node].fd;
    bool write = rli_pump_wants_write(&async->pump, node);

    if (fd == async->watched[node].fd && (fd < 0 || write == async->watched[node].write))
        return;
    if (async->vtable->watch(async->loop, node, fd, write)) {
        async->watched[node].fd = fd;
        async->watched[node].write = write;
    } else {
        rli_node_ended(&async->base.engine.nodes[node], ENOMEM, now);
    }
}

/* Leaves what there is to do to the next turn, and sees to it that there will be one in time. */
static void settle(rl_async *async)
{
    if (!async->deferred && (async->base.engine.dirty || async->done || async->parted || async->base.engine.keep.events)) {
        async->deferred = true;
        async->vtable->defer(async->loop);
    }
    rli_waker_set(async->base.waker, rli_engine_deadline(&async->base.engine));
}

static void flush(rl_async *async)
{
    rli_instant now;

    if (!async->base.engine.dirty)
        return;
    now = rli_now();
    do {
        rli_pump_flush(&async->pump, now);
        for (uint32_t i = 0; i < async->base.terms.nodes; i++)
            watch(async, i, now);
    } while (async->base.engine.dirty);
}

void rli_async_ready(rl_async *async, uint32_t node, bool readable, bool writable)
{
    rli_instant now;

    if (rli_guard_forked(async->base.guard))
        return;
    now = rli_now();
    if (async->pump.links[node].connecting ? readable || writable : writable)
        rli_pump_writable(&async->pump, node, now);
    if (readable)
        rli_pump_readable(&async->pump, node, now);
    settle(async);
}

/* Deals with what is due. An answer that has come already counts before any deadline. */
static void catch_up(rl_async *async)
{
    if (rli_engine_deadline(&async->base.engine) > rli_now())
        return;
    rli_pump_look(&async->pump, true, rli_now());
    rli_engine_tick(&async->base.engine, rli_now());
}

void rli_async_woken(rl_async *async)
{
    if (rli_guard_forked(async->base.guard))
        return;
    rli_waker_clear(async->base.waker);
    rli_pump_lookups(&async->pump, rli_now());
    catch_up(async);
    settle(async);
}

int rli_async_waker_fd(const rl_async *async)
{
    return rli_waker_fd(async->base.waker);
}

/* ---- Callbacks ------------------------------------------------------------------------------------------------------------------------- */

static void op_done(struct rli_op *op)
{
    rl_async *async = op->owner;

    if (op->type == RLI_OP_EXTEND && op->async.canceled)
        op->lock->async.extending = NULL;
    op->async.next_done = NULL;
    *async->last_done = op;
    async->last_done = &op->async.next_done;
}

static void tell(rl_async *async, struct rli_op *op)
{
    rli_instant now = rli_now();
    int status = rli_op_hand_over(op, op->async.canceled, now);
    void *user_data = op->async.user_data;

    rli_report_fill(async->report, async->base.urls, op->results, async->base.terms.nodes);
    rli_report_set_free_in(async->report, rli_op_free_in(op, now));
    if (op->lock->async.extending == op)
        op->lock->async.extending = NULL;
    if (op->type == RLI_OP_ACQUIRE) {
        rl_lock *lock = status == RL_OK ? rli_client_give_handle(&async->base, op->lock) : NULL;
        if (lock)
            rli_keep_start(lock, now);
        ((rl_acquire_cb *)op->async.callback)(status, lock, async->report, user_data);
    } else if (op->async.callback) {
        ((rl_done_cb *)op->async.callback)(status, async->report, user_data);
    }
    rli_op_free(op);
}

/* Releases that had no memory for an operation; what they owe is sent by and by. */
static void tell_parted(rl_async *async, int status)
{
    rl_lock *lock = async->parted;
    rl_done_cb *callback = (rl_done_cb *)lock->front.tell.callback;

    async->parted = lock->async.parted;
    if (!async->parted)
        async->last_parted = &async->parted;
    rli_report_reset(async->report);
    if (callback)
        callback(status, async->report, lock->front.tell.user_data);
    rli_lock_unref(lock);
}

/* What becomes of locks comes before what became of calls: whoever is told of anything has been told of a loss. */
static void run_events(rl_async *async)
{
    rl_event event;

    for (rl_lock *lock; !async->freeing && (lock = rli_keep_next_event(&async->base.engine, &event, rli_now()));) {
        ((rl_event_cb *)lock->front.tell.callback)(lock, &event, lock->front.tell.user_data);
        rli_lock_unref(lock);
    }
}

static void end(rl_async *async);

/* Tells what had been done when it was called; what the callbacks themselves bring about is for the next turn. */
static void run_callbacks(rl_async *async)
{
    struct rli_op *done = async->done, *op;

    async->done = NULL;
    async->last_done = &async->done;
    async->in_callback = true;
    run_events(async);
    while ((op = done) && !async->freeing) {
        done = op->async.next_done;
        tell(async, op);
    }
    while (async->parted && !async->freeing)
        tell_parted(async, RL_E_NO_QUORUM);
    async->in_callback = false;
    if (!async->freeing)
        return;
    if (done) { /* in front of what came later */
        struct rli_op *last = done;
        while (last->async.next_done)
            last = last->async.next_done;
        last->async.next_done = async->done;
        if (!async->done)
            async->last_done = &last->async.next_done;
        async->done = done;
    }
}

void rli_async_turn(rl_async *async)
{
    if (rli_guard_forked(async->base.guard))
        return;
    async->deferred = false;
    catch_up(async);
    flush(async);
    run_callbacks(async);
    if (async->freeing) {
        end(async);
        return;
    }
    flush(async);
    settle(async);
}

/* ---- Client ---------------------------------------------------------------------------------------------------------------------------- */

int rli_async_new(const char *version, const struct rli_loop *vtable, void *loop, const char *urls, const rl_options *options,
                  rl_async **ret_async, size_t *ret_error_at)
{
    size_t ignored, *error_at = ret_error_at ? ret_error_at : &ignored;
    rl_async *async;
    int rc;

    *error_at = SIZE_MAX;
    if (!urls || !ret_async)
        return RL_E_INVALID;
    if (strcmp(version, rl_version()) != 0)
        return RL_E_UNSUPPORTED;
    async = rli_calloc(sizeof *async);
    if (!async)
        return RL_E_NO_MEMORY;
    rc = rli_client_init(&async->base, urls, options, error_at);
    if (rc) {
        rli_free(async);
        return rc;
    }
    async->base.async = true;
    async->base.handles = 1; /* its own, until it has ended: a callback may free all the others */
    async->vtable = vtable;
    async->loop = loop;
    async->last_done = &async->done;
    async->last_parted = &async->parted;
    rli_pump_init(&async->pump, &async->base.engine);
    async->pump.closing = closing;
    for (uint32_t i = 0; i < RL_MAX_NODES; i++)
        async->watched[i].fd = -1;
    if (rl_report_new(&async->report) != RL_OK) {
        rli_client_free(&async->base);
        return RL_E_NO_MEMORY;
    }
    *ret_async = async;
    return RL_OK;
}

static void cancel(struct rli_op *op)
{
    op->async.canceled = true;
    if (op->finished)
        return;
    if (op->type == RLI_OP_RELEASE)
        rli_op_abort(op, rli_now());
    else
        rli_op_cancel(op, rli_now());
}

static void end(rl_async *async)
{
    struct rli_op *op;

    async->freeing = async->base.closed = async->in_callback = true;
    async->deferred = true; /* no more turns */
    for (op = async->done; op; op = op->async.next_done)
        op->async.canceled |= op->type == RLI_OP_ACQUIRE;
    while (async->base.engine.running)
        cancel(async->base.engine.running);
    while ((op = async->done)) {
        async->done = op->async.next_done;
        if (!async->done)
            async->last_done = &async->done;
        tell(async, op);
    }
    while (async->parted)
        tell_parted(async, RL_CANCELED);
    for (uint32_t i = 0; i < async->base.terms.nodes; i++)
        rli_node_settle_up(&async->base.engine.nodes[i], rli_now());
    rli_pump_flush(&async->pump, rli_now()); /* one write per node */
    rli_pump_close(&async->pump);
    async->vtable->free(async->loop);
    rli_engine_free(&async->base.engine);
    rl_report_free(async->report);
    async->base.handles--;
    if (rli_client_unused(&async->base))
        rli_client_free(&async->base);
}

void rl_async_free(rl_async *async)
{
    if (!async || async->freeing || rli_guard_forked(async->base.guard))
        return;
    if (async->in_callback)
        async->freeing = async->base.closed = true;
    else
        end(async);
}

/* ---- Operations ------------------------------------------------------------------------------------------------------------------------ */

static void start(rl_async *async, struct rli_op *op, void (*callback)(void), void *user_data)
{
    rli_instant now = rli_now();

    op->owner = async;
    op->done = op_done;
    op->with_text = true;
    op->async.callback = callback;
    op->async.user_data = user_data;
    rli_pump_look(&async->pump, false, now);
    rli_op_start(op, now);
    settle(async);
}

int rl_async_acquire(rl_async *async, const rl_request *theirs, rl_acquire_cb *cb, void *user_data, rl_op **ret_op)
{
    rl_request request;
    struct rli_op *op;
    rl_lock *lock;
    int rc;

    if (!async || !theirs || !cb)
        return RL_E_INVALID;
    if (rli_guard_forked(async->base.guard))
        return RL_E_FORKED;
    if (async->base.closed)
        return RL_E_CLOSED;
    if ((rc = rli_request_read(theirs, &request)) || (rc = rli_request_check(&request, &async->base.terms)))
        return rc;
    lock = rli_client_lock(&async->base, &request);
    op = lock ? rli_op_new_acquire(&async->base.engine, lock, &request) : NULL;
    if (lock)
        rli_lock_unref(lock);
    if (!op)
        return RL_E_NO_MEMORY;
    if (ret_op)
        *ret_op = (rl_op *)op;
    start(async, op, (void (*)(void))cb, user_data);
    return RL_OK;
}

int rl_async_extend(rl_lock *lock, int64_t ttl_ms, rl_done_cb *cb, void *user_data, rl_op **ret_op)
{
    struct rli_op *op;

    if (!lock || !cb || !lock->client->async)
        return RL_E_INVALID;
    if (rli_guard_forked(lock->client->guard))
        return RL_E_FORKED;
    if (lock->client->closed)
        return RL_E_CLOSED;
    if (rli_ttl_check(ttl_ms, &lock->client->terms) || lock->async.extending)
        return RL_E_INVALID;
    if (rli_lock_is_over(lock, rli_now()))
        return RL_LOST;
    op = rli_op_new_extend(&lock->client->engine, lock, rli_from_ms(ttl_ms));
    if (!op)
        return RL_E_NO_MEMORY;
    lock->async.extending = op;
    if (ret_op)
        *ret_op = (rl_op *)op;
    start(async_of(lock->client), op, (void (*)(void))cb, user_data);
    return RL_OK;
}

static void part(rl_async *async, rl_lock *lock, rl_done_cb *cb, void *user_data)
{
    rli_lock_end(lock);
    rli_engine_owe_release(&async->base.engine, lock, rli_now());
    lock->listening = false;
    lock->async.parted = NULL;
    lock->front.tell.callback = (void (*)(void))cb;
    lock->front.tell.user_data = user_data;
    *async->last_parted = rli_lock_ref(lock);
    async->last_parted = &lock->async.parted;
    settle(async);
}

int rl_async_release(rl_lock *lock, rl_done_cb *cb, void *user_data)
{
    struct rli_client *client = lock ? lock->client : NULL;
    struct rli_op *op;

    if (!lock || !client->async)
        return RL_E_INVALID;
    if (rli_guard_forked(client->guard))
        return RL_E_FORKED;
    if (client->closed) {
        rl_lock_free(lock);
        return RL_E_CLOSED;
    }
    if (lock->async.extending)
        cancel(lock->async.extending);
    op = rli_op_new_release(&client->engine, lock, false);
    if (op)
        start(async_of(client), op, (void (*)(void))cb, user_data);
    else
        part(async_of(client), lock, cb, user_data);
    rli_client_take_handle(client, lock);
    return RL_OK;
}

void rl_op_cancel(rl_op *theirs)
{
    struct rli_op *op = (struct rli_op *)theirs;
    struct rli_client *client = op ? op->lock->client : NULL;

    if (!op || rli_guard_forked(client->guard) || op->type == RLI_OP_RELEASE)
        return;
    cancel(op);
    if (!client->closed)
        settle(async_of(client));
}
