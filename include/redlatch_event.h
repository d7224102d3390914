/* redlatch_event.h - the same locks on the caller's libevent loop. Link libredlatch-event.
 *
 * Everything here belongs to the thread that runs the event_base, rl_lock_remaining_ms and rl_lock_touch excepted. Nothing blocks: host names are
 * looked up on a thread of the library's own. Any number of operations may be outstanding; requests to one node travel on one
 * connection and are written once per turn of the loop.
 *
 * Callbacks are called exactly once for each call that returned RL_OK, on the base's thread, never from inside a call of ours
 * (rl_async_free alone excepted). They may start, cancel and free anything, the rl_async included. A call that returns anything
 * else starts nothing and calls nobody. The report lives until the callback returns.
 *
 * The rules of redlatch.h about names, units, growth, fork() and ownership hold here as well. Handles are of the same type:
 * rl_lock_remaining_ms, rl_lock_token, rl_lock_name, rl_lock_touch, rl_lock_stop_renewing, rl_lock_lost_reason and rl_lock_free work on
 * them; rl_extend and rl_release answer RL_E_INVALID (use rl_async_extend and rl_async_release), and so do rl_lock_wait_lost and
 * rl_lock_lost_fd (use on_event).
 *
 * After fork() a child leaves inherited objects alone: rl_async_free does nothing there, since taking its events out of the
 * inherited event_base would take them out of the parent's epoll set too. For the same reason a child calls event_reinit(base) before
 * anything else on an inherited base, event_base_free included; then it makes a base and clients of its own. */
#ifndef REDLATCH_EVENT_H
#define REDLATCH_EVENT_H

#include <redlatch.h>

#ifdef __cplusplus
extern "C" {
#endif

struct event_base;
typedef struct rl_async rl_async; /* a set of nodes with its options, on one event_base */
typedef struct rl_op rl_op;       /* a running operation: lives until its callback returns */

/* lock: NULL unless status is RL_OK; then the callback's, to be ended by rl_async_release or rl_lock_free. */
typedef void rl_acquire_cb(int status, rl_lock *lock, const rl_report *report, void *user_data);
typedef void rl_done_cb(int status, const rl_report *report, void *user_data);

/* Makes a client on an event_base. No I/O: the first operation that needs a node connects to it.
 *
 * base: must outlive the client: free the client first (this cannot be checked).
 * priority: libevent's, for all events of this client; -1 = the base's default. Callers with busy events of a more urgent priority
 *     starve it.
 * urls, options, *ret_error_at: as in rl_client_new.
 *
 * Returns RL_OK; RL_E_INVALID (NULL, a priority the base does not have, or as rl_client_new); RL_E_UNSUPPORTED (as rl_client_new, or
 * libredlatch is of another version than libredlatch-event); RL_E_NO_MEMORY. Since 0.1. */
RL_API RL_CHECK int rl_async_new(struct event_base *base, int priority, const char *urls, const rl_options *options,
                                 rl_async **ret_async, size_t *ret_error_at);

/* Ends it. Running operations end with RL_CANCELED, a release among them; their callbacks are called before this returns or, when it
 * is called from a callback, after that one has returned. What they may have set is taken back: one write per node without waiting,
 * then the connections are closed in order. Locks still held stay until their leases end. Handles may outlive it: operations on them
 * are then RL_E_CLOSED, rl_lock_free remains. NULL is fine. Since 0.1. */
RL_API void rl_async_free(rl_async *async);

/* Takes a lock: the algorithm, request, results and time limits of rl_acquire_with, without blocking. request and what it points
 * to are copied. *ret_op (ret_op may be NULL) can be cancelled until its callback is called.
 *
 * Returns RL_OK (the callback will come), RL_E_INVALID, RL_E_UNSUPPORTED, RL_E_NO_MEMORY, RL_E_CLOSED (the client is being freed),
 * RL_E_FORKED. The callback's status is one of rl_acquire_with's or RL_CANCELED. Since 0.1. */
RL_API RL_CHECK int rl_async_acquire(rl_async *async, const rl_request *request, rl_acquire_cb *cb, void *user_data,
                                     rl_op **ret_op);

/* Extends: see rl_extend. One operation a lock at a time: RL_E_INVALID while another extend of this lock runs.
 *
 * Returns RL_OK (the callback will come), RL_LOST (the lease is over: no I/O, no callback), RL_E_INVALID, RL_E_NO_MEMORY, RL_E_CLOSED,
 * RL_E_FORKED. The callback's status is one of rl_extend's or RL_CANCELED (rl_op_cancel, or the lock was released meanwhile; the
 * lease may or may not have been extended). Since 0.1. */
RL_API RL_CHECK int rl_async_extend(rl_lock *lock, int64_t ttl_ms, rl_done_cb *cb, void *user_data, rl_op **ret_op);

/* Releases: see rl_release_with. Consumes the handle now, except on RL_E_INVALID and RL_E_FORKED. A running extend of this lock ends
 * with RL_CANCELED first. Cannot be cancelled, and cannot run out of memory: without it the callback comes with RL_E_NO_QUORUM and the
 * release is sent as soon as there is some. cb may be NULL.
 *
 * Returns RL_OK (the callback will come), RL_E_INVALID, RL_E_CLOSED (nothing was sent; free when the lease ends), RL_E_FORKED. The
 * callback's status is one of rl_release_with's, or RL_CANCELED if the client was freed first. Since 0.1. */
RL_API int rl_async_release(rl_lock *lock, rl_done_cb *cb, void *user_data);

/* Cancels: the callback comes with RL_CANCELED, whatever had been decided, in the next turn of the loop; a lock won meanwhile is
 * released by the library. For an acquisition or extension whose callback has not been called; NULL is fine. Since 0.1. */
RL_API void rl_op_cancel(rl_op *op);

#ifdef __cplusplus
}
#endif
#endif
