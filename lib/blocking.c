/* blocking.c - the blocking front: the public calls on a client, on the poll driver. */
#include "redlatch.h"

#include "client.h"
#include "poll_driver.h"
#include "port.h"

#include <string.h>

struct rl_client {
    struct rli_client base; /* first: a lock knows its client by this */
    struct rli_poll poll;
    pthread_t keeper;
};

static rl_client *client_of(const rl_lock *lock)
{
    return (rl_client *)lock->client;
}

/* ---- In and out ---------------------------------------------------------------------------------------------------------------------- */

struct call { /* a public call inside the client */
    rl_client *client;
    int cancel_state;
};

/* A thread cancelled in here would leave nobody to drive: cancellation waits until the call is over. */
static struct call enter(rl_client *client)
{
    struct call call = {.client = client};
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &call.cancel_state);
    pthread_mutex_lock(&client->base.mutex);
    return call;
}

static int leave(const struct call *call, int status)
{
    pthread_mutex_unlock(&call->client->base.mutex);
    pthread_setcancelstate(call->cancel_state, NULL);
    return status;
}

/* The last one out frees a closed client. */
static int leave_for_good(const struct call *call, int status)
{
    struct rli_client *client = &call->client->base;
    bool last = rli_client_unused(client);

    pthread_mutex_unlock(&client->mutex);
    if (last)
        rli_client_free(client);
    pthread_setcancelstate(call->cancel_state, NULL);
    return status;
}

static void op_done(struct rli_op *op)
{
    rli_waiter_done(op->owner);
}

/* Runs an operation to its end and reports; the op is still the caller's to free. */
static int run(rl_client *client, struct rli_op *op, rl_report *report, bool look_at_all)
{
    struct rli_waiter waiter = {0};
    rli_instant now;
    int status;

    op->owner = &waiter;
    op->done = op_done;
    op->with_text = report;
    now = rli_poll_prepare(&client->poll, look_at_all);
    rli_op_start(op, now);
    rli_poll_flush(&client->poll, now);
    if (op->type == RLI_OP_RELEASE && op->machine.release.no_wait && !op->finished)
        rli_op_expire(op, now);
    rli_poll_wait(&client->poll, &waiter);
    rli_report_fill(report, client->base.urls, op->results, client->base.terms.nodes);
    if (op->type != RLI_OP_ACQUIRE && op->type != RLI_OP_EXTEND) /* whose success may have come too late */
        return op->status;
    now = rli_now();
    status = rli_op_hand_over(op, false, now);
    rli_poll_flush(&client->poll, now);
    return status;
}

/* ---- Client --------------------------------------------------------------------------------------------------------------------------- */

int rl_client_new(const char *urls, const rl_options *options, rl_client **ret_client, size_t *ret_error_at)
{
    size_t ignored, *error_at = ret_error_at ? ret_error_at : &ignored;
    rl_client *client;
    int rc, cancel_state;

    *error_at = SIZE_MAX;
    if (!urls || !ret_client)
        return RL_E_INVALID;
    client = rli_calloc(sizeof *client);
    if (!client)
        return RL_E_NO_MEMORY;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    rc = rli_client_init(&client->base, urls, options, error_at);
    pthread_setcancelstate(cancel_state, NULL);
    if (rc) {
        rli_free(client);
        return rc;
    }
    rli_poll_init(&client->poll, &client->base.engine);
    *ret_client = client;
    return RL_OK;
}

/* ---- The keeper of renewed locks ------------------------------------------------------------------------------------------------------ */

static void *keep(void *arg)
{
    rl_client *client = arg;

    pthread_mutex_lock(&client->base.mutex);
    rli_poll_keep(&client->poll);
    pthread_mutex_unlock(&client->base.mutex);
    return NULL;
}

static bool start_keeper(rl_client *client)
{
    struct rli_keeper *keeper = &client->poll.keeper;

    if (keeper->waker)
        return true;
    keeper->waker = rli_waker_new();
    if (keeper->waker && rli_thread_start(keep, client, &client->keeper))
        return true;
    rli_waker_drop(keeper->waker);
    keeper->waker = NULL;
    return false;
}

static void stop_keeper(rl_client *client)
{
    struct rli_keeper *keeper = &client->poll.keeper;

    if (!keeper->waker)
        return;
    rli_poll_stop_keeping(&client->poll);
    pthread_mutex_unlock(&client->base.mutex);
    pthread_join(client->keeper, NULL);
    pthread_mutex_lock(&client->base.mutex);
    rli_waker_drop(keeper->waker);
    keeper->waker = NULL;
}

/* ---- The end -------------------------------------------------------------------------------------------------------------------------- */

void rl_client_free(rl_client *client)
{
    struct call call;

    if (!client || rli_guard_forked(client->base.guard))
        return;
    call = enter(client);
    stop_keeper(client);
    client->base.closed = true;
    rli_poll_settle(&client->poll, rli_add(rli_now(), client->base.terms.cleanup_timeout));
    rli_engine_free(&client->base.engine);
    leave_for_good(&call, RL_OK);
}

static struct rli_op *running_acquire(rl_client *client)
{
    struct rli_op *op = client->base.engine.running;
    while (op && op->type != RLI_OP_ACQUIRE)
        op = op->next;
    return op;
}

void rl_client_stop(rl_client *client)
{
    struct call call;

    if (!client || rli_guard_forked(client->base.guard))
        return;
    call = enter(client);
    client->base.stopped = true;
    for (struct rli_op *op; (op = running_acquire(client));)
        rli_op_cancel(op, rli_now());
    rli_poll_flush(&client->poll, rli_now());
    leave(&call, RL_OK);
}

/* ---- Check ---------------------------------------------------------------------------------------------------------------------------- */

/* A lock on a key that no user has: the digits of a first token are its name. */
static rl_lock *probe_new(rl_client *client)
{
    char name[] = "redlatch-check:0123456789abcdef0123456789abcdef";
    rl_lock *digits = rli_lock_new(&client->base, "d", 1, NULL, RLI_FENCE_NONE, 0), *probe;

    if (!digits)
        return NULL;
    rli_lock_fresh_token(digits);
    memcpy(name + sizeof name - 1 - RLI_TOKEN_DIGITS, rli_lock_token(digits), RLI_TOKEN_DIGITS);
    rli_lock_unref(digits);
    probe = rli_lock_new(&client->base, name, sizeof name - 1, NULL, client->base.fence, 0);
    if (!probe)
        return NULL;
    rli_lock_fresh_token(probe);
    probe->probe = true;
    probe->ttl = rli_add(client->base.terms.node_timeout * 4, 1000 * RLI_MS);
    return probe;
}

/* Two URLs that lead to one server are two votes of one. */
static bool find_twins(rl_client *client, struct rli_op *op)
{
    static const char text[] = "the same server as another URL";
    const struct rli_node *nodes = client->base.engine.nodes;
    bool found = false;

    for (uint32_t i = 1; i < client->base.terms.nodes; i++)
        for (uint32_t j = 0; j < i; j++) {
            struct rli_answer answer = rli_answer_lost(RL_NODE_ERROR, 0);
            if (!nodes[i].run_id[0] || strcmp(nodes[i].run_id, nodes[j].run_id) != 0)
                continue;
            answer.text = text;
            answer.text_len = sizeof text - 1;
            rli_result_set(&op->results[i], &answer, true);
            rli_result_set(&op->results[j], &answer, true);
            found = true;
        }
    return found;
}

static int check(rl_client *client, rl_report *report)
{
    rl_lock *probe = probe_new(client);
    struct rli_op *op = probe ? rli_op_new_check(&client->base.engine, probe) : NULL;
    int status;

    if (probe)
        rli_lock_unref(probe);
    if (!op)
        return RL_E_NO_MEMORY;
    for (uint32_t i = 0; i < client->base.terms.nodes; i++)
        client->base.engine.nodes[i].run_id[0] = '\0';
    status = run(client, op, report, false);
    if (find_twins(client, op)) {
        status = RL_E_UNSUPPORTED;
        rli_report_fill(report, client->base.urls, op->results, client->base.terms.nodes);
    }
    rli_op_free(op);
    return status;
}

int rl_client_check(rl_client *client, rl_report *report)
{
    struct call call;

    if (!client)
        return RL_E_INVALID;
    if (rli_guard_forked(client->base.guard))
        return RL_E_FORKED;
    rli_report_reset(report);
    call = enter(client);
    return leave(&call, check(client, report));
}

/* ---- Acquire -------------------------------------------------------------------------------------------------------------------------- */

static int acquire(rl_client *client, const rl_request *request, rl_report *report, rl_lock **ret_lock)
{
    struct rli_client *base = &client->base;
    rl_lock *lock = !request->renew || start_keeper(client) ? rli_client_lock(base, request) : NULL;
    struct rli_op *op = lock ? rli_op_new_acquire(&base->engine, lock, request) : NULL;
    int status;

    if (lock)
        rli_lock_unref(lock);
    if (!op)
        return RL_E_NO_MEMORY;
    status = run(client, op, report, false);
    if (status == RL_OK) {
        *ret_lock = rli_client_give_handle(base, op->lock);
    }
    if (status == RL_OK && request->renew) {
        rli_keep_start(*ret_lock, rli_now());
        rli_poll_flush(&client->poll, rli_now());
    }
    rli_op_free(op);
    return status;
}

int rl_acquire_with(rl_client *client, const rl_request *theirs, rl_report *report, rl_lock **ret_lock)
{
    rl_request request;
    struct call call;
    int rc;

    if (ret_lock)
        *ret_lock = NULL;
    if (!client || !theirs || !ret_lock)
        return RL_E_INVALID;
    if (rli_guard_forked(client->base.guard))
        return RL_E_FORKED;
    rli_report_reset(report);
    if ((rc = rli_request_read(theirs, &request)) || (rc = rli_request_check(&request, &client->base.terms)))
        return rc;
    if (request.on_event) /* no thread of ours calls back */
        return RL_E_INVALID;
    call = enter(client);
    return leave(&call, client->base.stopped ? RL_CANCELED : acquire(client, &request, report, ret_lock));
}

int rl_acquire(rl_client *client, const char *name, int64_t ttl_ms, int64_t wait_ms, rl_lock **ret_lock)
{
    rl_request request;

    rl_request_init(&request);
    request.name = name;
    request.name_len = name ? strnlen(name, RL_MAX_NAME + 1) : 0;
    request.ttl_ms = ttl_ms;
    request.wait_ms = wait_ms;
    return rl_acquire_with(client, &request, NULL, ret_lock);
}

/* ---- Extend --------------------------------------------------------------------------------------------------------------------------- */

static int extend(rl_lock *lock, rli_span ttl, rl_report *report)
{
    rl_client *client = client_of(lock);
    struct rli_op *op;
    int status;

    if (rli_lock_is_over(lock, rli_now()))
        return RL_LOST;
    op = rli_op_new_extend(&client->base.engine, lock, ttl);
    if (!op)
        return RL_E_NO_MEMORY;
    status = run(client, op, report, true);
    rli_op_free(op);
    return status;
}

int rl_extend(rl_lock *lock, int64_t ttl_ms, rl_report *report)
{
    struct call call;

    if (!lock || lock->client->async)
        return RL_E_INVALID;
    if (rli_guard_forked(lock->client->guard))
        return RL_E_FORKED;
    rli_report_reset(report);
    if (rli_ttl_check(ttl_ms, &lock->client->terms))
        return RL_E_INVALID;
    call = enter(client_of(lock));
    return leave(&call, lock->client->closed ? RL_E_CLOSED : extend(lock, rli_from_ms(ttl_ms), report));
}

/* ---- Release -------------------------------------------------------------------------------------------------------------------------- */

static int release(rl_lock *lock, uint32_t flags, rl_report *report)
{
    rl_client *client = client_of(lock);
    struct rli_engine *engine = &client->base.engine;
    struct rli_op *op = rli_op_new_release(engine, lock, flags & RL_NO_WAIT);
    int status;

    if (!op) {
        rli_engine_owe_release(engine, lock, rli_now());
        return RL_E_NO_MEMORY;
    }
    status = run(client, op, report, false);
    if (report)
        rli_report_set_free_in(report, rli_op_free_in(op, rli_now()));
    rli_op_free(op);
    return status;
}

int rl_release_with(rl_lock *lock, uint32_t flags, rl_report *report)
{
    struct call call;
    int status;

    if (!lock || lock->client->async || flags & ~(uint32_t)RL_NO_WAIT)
        return RL_E_INVALID;
    if (rli_guard_forked(lock->client->guard))
        return RL_E_FORKED;
    rli_report_reset(report);
    call = enter(client_of(lock));
    status = lock->client->closed ? RL_E_CLOSED : release(lock, flags, report);
    rli_client_take_handle(lock->client, lock);
    return leave_for_good(&call, status);
}

int rl_release(rl_lock *lock)
{
    return rl_release_with(lock, 0, NULL);
}

/* ---- Checked writes -------------------------------------------------------------------------------------------------------------------- */

static int store(rl_client *client, rl_lock *subject, rl_report *report)
{
    struct rli_op *op = subject ? rli_op_new_store(&client->base.engine, subject) : NULL;
    int status;

    if (subject)
        rli_lock_unref(subject);
    if (!op)
        return RL_E_NO_MEMORY;
    status = run(client, op, report, false);
    rli_op_free(op);
    return status;
}

static int fenced(rl_client *client, const void *key, size_t key_len, const rl_lock *lock, const void *value, size_t value_len,
                  rl_report *report)
{
    struct call call;

    if (!client || !key || !key_len || key_len > RL_MAX_NAME || value_len > RL_MAX_VALUE || !lock || !rl_lock_fence(lock))
        return RL_E_INVALID;
    if (rli_guard_forked(client->base.guard) || rli_guard_forked(lock->client->guard))
        return RL_E_FORKED;
    if (client->base.terms.nodes != 1)
        return RL_E_INVALID;
    rli_report_reset(report);
    call = enter(client);
    return leave(&call, store(client, rli_lock_new_store(&client->base, key, key_len, value, value_len, lock), report));
}

int rl_fenced_begin(rl_client *store_client, const void *key, size_t key_len, const rl_lock *lock, rl_report *report)
{
    return fenced(store_client, key, key_len, lock, NULL, 0, report);
}

int rl_fenced_set(rl_client *store_client, const void *key, size_t key_len, const rl_lock *lock, const void *value,
                  size_t value_len, rl_report *report)
{
    if (!value)
        return RL_E_INVALID;
    return fenced(store_client, key, key_len, lock, value, value_len, report);
}

/* ---- Import ---------------------------------------------------------------------------------------------------------------------------- */

static bool is_token(const char *token)
{
    size_t digits = strspn(token, "0123456789abcdef");

    if (digits != RLI_TOKEN_DIGITS)
        return false;
    if (token[digits] != ':')
        return token[digits] == '\0';
    token += digits + 1;
    return token[0] && !token[rli_printable(token, RL_MAX_LABEL, true)];
}

int rl_lock_import(rl_client *client, const void *name, size_t name_len, const char *token, int64_t fence, rl_lock **ret_lock)
{
    struct call call;
    rl_lock *lock;

    if (ret_lock)
        *ret_lock = NULL;
    if (!client || !ret_lock || !token || rli_name_check(name, name_len) || !is_token(token) || fence < 0 || fence >= RL_MAX_FENCE)
        return RL_E_INVALID;
    if (rli_guard_forked(client->base.guard))
        return RL_E_FORKED;
    call = enter(client);
    lock = rli_lock_new(&client->base, name, name_len, token[RLI_TOKEN_DIGITS] ? token + RLI_TOKEN_DIGITS + 1 : NULL,
                        fence ? client->base.fence : RLI_FENCE_NONE, RLI_ROOM_FOR_FENCE);
    if (!lock)
        return leave(&call, RL_E_NO_MEMORY);
    memcpy(rli_lock_token(lock), token, RLI_TOKEN_DIGITS);
    lock->state = RLI_LOCK_UNPROVED;
    rli_lock_set_fence(lock, fence);
    lock->touched = rli_all(&client->base.terms); /* for all we know */
    *ret_lock = rli_client_give_handle(&client->base, lock);
    rli_lock_unref(lock);
    return leave(&call, RL_OK);
}
