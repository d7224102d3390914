/* redlatch.h - distributed locks over the Redis servers you already run: types, and the blocking front.
 *
 * One server, or a majority of N independent ones (Redlock: https://redis.io/docs/latest/develop/use/patterns/distributed-locks/).
 * Times are milliseconds in int64_t, measured on CLOCK_BOOTTIME. Results are `int`: 0 held or done, > 0 a normal outcome, < 0 a
 * failure, so `if (rc)` always means "do not enter". Outputs come last, are called ret_..., and are written only on success,
 * except that a pointer to an object is set to NULL on failure where a function says so.
 *
 * Threads: any number may use one rl_client. One rl_lock belongs to one thread at a time, but for the calls that
 * say "any thread": rl_lock_remaining_ms, rl_lock_touch, and those that tell of a loss.
 * fork(): in a child every call on an inherited object answers RL_E_FORKED, or does nothing where it returns nothing. It sends
 * nothing and takes no lock. The child makes clients of its own; it leaves inherited ones alone (their memory is not reclaimed).
 * Signals: the library installs no handler, raises none (SIGPIPE included), and goes on after EINTR. No call is a cancellation
 * point.
 */
#ifndef REDLATCH_H
#define REDLATCH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define RL_API __attribute__((visibility("default")))
#define RL_CHECK __attribute__((warn_unused_result))
#else
#define RL_API
#define RL_CHECK
#endif

/* Result of a call. The numbers are part of the ABI and are never reused. RL_E_INVALID and RL_E_FORKED always mean that
 * nothing was sent, changed or consumed. */
enum rl_status {
    RL_OK = 0,             /* held, or done */
    RL_BUSY = 1,           /* somebody else holds the lock, or contenders split the votes: try later */
    RL_LOST = 2,           /* the lease is over: stop working on what it protects */
    RL_CANCELED = 3,       /* rl_client_stop or rl_op_cancel was called, or the rl_async was freed */
    RL_E_INVALID = -1,     /* a bad argument: a bug in the caller */
    RL_E_NO_MEMORY = -2,   /* out of memory (rl_client_new: or of descriptors; other calls report those as RL_E_NO_QUORUM) */
    RL_E_NO_QUORUM = -3,   /* too many nodes failed, refused or did not answer: the report says which and why */
    RL_E_TOO_SLOW = -4,    /* the votes came, but too little of the lease was left: a longer ttl, or nearer servers */
    RL_E_AUTH = -5,        /* the servers refused our credentials or commands: mend the URL or the ACL */
    RL_E_UNSUPPORTED = -6, /* this build or these servers cannot do that (rediss:// in a build without TLS, a field of a
                              newer header that is not 0, two URLs that lead to one server) */
    RL_E_CLOSED = -7,      /* the client of this handle was freed */
    RL_E_FORKED = -8       /* the object was inherited over fork() */
};

#define RL_FOREVER (-1) /* a wait_ms without end */
#define RL_MIN_TTL_MS 10
#define RL_MAX_TTL_MS INT64_C(31536000000) /* 365 days */
enum { RL_MAX_NODES = 32, RL_MAX_NAME = 512, RL_MAX_LABEL = 64, RL_MAX_PREFIX = 128 };

enum { RL_MAX_VALUE = 1048576 };               /* bytes of rl_fenced_set */
#define RL_MAX_FENCE INT64_C(9007199254740992) /* 2^53: fencing tokens are less */

typedef struct rl_client rl_client; /* a set of nodes with its options */
typedef struct rl_lock rl_lock;     /* a lease; keeps its client's memory alive */
typedef struct rl_report rl_report; /* what every node answered to one call; the caller's, reusable */

/* ---- Options ---------------------------------------------------------------------------------------------------------------
 * Growth rule of both structs: `size` is the sizeof that the caller was compiled with. The library gives defaults for fields
 * beyond a shorter one, and refuses a longer one (RL_E_UNSUPPORTED) if any byte it does not know is not 0. */

/* Whether a lock comes with a fencing token (rl_lock_fence), and who mints it. All clients of a lock must use the same way. The
 * manual has the guarantees of each; all of them are worth something only if the protected resource checks the token. */
enum rl_fence {
    RL_FENCE_DEFAULT = 0, /* not said */
    RL_FENCE_NONE = 1,
    RL_FENCE_QUORUM =
        2,            /* the nodes agree on it: no node need be up but a quorum; one round trip, two after nodes have disagreed */
    RL_FENCE_NODE = 3 /* one designated node mints it, after the quorum is won: two round trips; that node must be up */
};

/* How a client behaves. Fill it with rl_options_init, then change what you need. All clients of the same locks must agree on
 * the nodes, quorum and prefix, or they do not exclude each other. */
typedef struct rl_options {
    size_t size;
    const char *prefix;         /* "rl:"; put before every name to make the key; at most RL_MAX_PREFIX bytes; "" shares keys
                                   with other Redlock clients; copied */
    const char *client_name;    /* "redlatch"; shown by CLIENT LIST; printable ASCII without spaces, at most 64; copied */
    int64_t node_timeout_ms;    /* 250; 1 .. 600000; for one node to be looked up, connected to and to answer one request */
    int64_t cleanup_timeout_ms; /* 250; 0 .. 600000; on top of that, for taking back a failed attempt */
    int64_t retry_min_ms;       /* 5; 1 .. retry_max; a pause between attempts is uniform in [min, bound], */
    int64_t retry_max_ms;       /* 200; .. 600000; where bound doubles from 20 up to max; never beyond the holder's lease */
    int64_t min_validity_ms;    /* 1; 1 .. RL_MAX_TTL_MS; less than this left on success is RL_E_TOO_SLOW */
    uint32_t drift_ppm;         /* 10000 (1 %); 0 .. 500000; the lease is taken to be ttl * drift + 2 ms shorter. Must cover the
                                   rate error of both clocks and forward steps of a server's clock within a lease */
    uint32_t quorum;            /* 0 = majority; N/2 + 1 .. N. With Q of N, 2Q - N - 1 nodes may forget keys at once */
    uint32_t fence;             /* enum rl_fence; what acquisitions ask for that do not say; RL_FENCE_DEFAULT = RL_FENCE_NONE */
    uint32_t fence_node;        /* RL_FENCE_NODE: the designated node, by its place in the URLs, from 0 */
    uint32_t renew_batch; /* 0 = 64; 1 .. 64; so many locks are renewed by one script call at most. 1 for servers or proxies that
                                   want one key a call */
    uint32_t reserved;    /* 0 */
} rl_options;

/* What becomes of a lock while it is held. The numbers are part of the ABI. */
enum rl_lost_reason {
    RL_LOST_NOT = 0,         /* it was not lost: it is held, or was given back */
    RL_LOST_EXPIRED = 1,     /* the lease ran out: it was not renewed, or not in time, or this process was stopped for too long */
    RL_LOST_TAKEN_OVER = 2,  /* somebody else's token sits where ours was, so that too few nodes keep ours */
    RL_LOST_QUORUM_GONE = 3, /* too few nodes keep it: keys were deleted or evicted, servers restarted without their data */
    RL_LOST_HOLD_CAP = 4,    /* it was held for max_hold_ms */
    RL_LOST_NOT_TOUCHED = 5  /* rl_lock_touch was not called within touch_within_ms */
};
enum rl_event_kind {
    RL_EVENT_JEOPARDY = 1,  /* renewal is failing; the lock is still held, for remaining_ms unless it recovers */
    RL_EVENT_RECOVERED = 2, /* it was renewed after all */
    RL_EVENT_LOST = 3       /* stop working. Exactly once, and the last event of a lock */
};
typedef struct rl_event {
    size_t size;          /* growth rule as below, but written by the library */
    int64_t remaining_ms; /* as rl_lock_remaining_ms at this moment */
    int32_t kind;         /* enum rl_event_kind */
    int32_t reason;       /* enum rl_lost_reason: of the loss; in jeopardy, of the loss that threatens */
} rl_event;
typedef void rl_event_cb(rl_lock *lock, const rl_event *event, void *event_data);

/* One acquisition in full. Fill it with rl_request_init, then set name, name_len and ttl_ms. */
typedef struct rl_request {
    size_t size;
    const void *name;   /* any bytes; borrowed for the call */
    size_t name_len;    /* 1 .. RL_MAX_NAME */
    int64_t ttl_ms;     /* RL_MIN_TTL_MS .. RL_MAX_TTL_MS; the server frees the lock this long after a holder's death */
    int64_t wait_ms;    /* 0 = one attempt (default), RL_FOREVER, or how long to try */
    const char *label;  /* NULL (default), or 1 .. RL_MAX_LABEL printable ASCII bytes appended to the token after ':';
                           borrowed for the call */
    uint32_t fail_fast; /* 1 = RL_E_NO_QUORUM and RL_E_TOO_SLOW end the call at once; only RL_BUSY is waited out; 0 (default) */
    uint32_t fence;     /* enum rl_fence; RL_FENCE_DEFAULT (default) = as the options say */
    /* Holding it for longer than one lease: see below. All 0 by default. */
    uint32_t renew;    /* 1 = renewed, each time for the ttl last asked for, until it is released, freed or lost */
    uint32_t reserved; /* 0 */
    /* With renew: no renewal makes it last longer than this after the acquisition; at least ttl_ms, or 0 = no cap. It is not
     * released then, but ends as RL_LOST_HOLD_CAP. */
    int64_t max_hold_ms;
    /* With renew: it is renewed only while rl_lock_touch is called at least this often; 0 = it need not be. A worker that is stuck
     * loses its lock after at most touch_within_ms + ttl_ms + node_timeout_ms. */
    int64_t touch_within_ms;
    rl_event_cb *on_event; /* only with rl_async_acquire (redlatch_event.h): told of jeopardy, recovery and loss, renewed or not */
    void *event_data;      /* handed to on_event */
} rl_request;

/* Writes the defaults into exactly `size` bytes at the pointer (a size of 0, or a NULL pointer, writes nothing). Call the macros:
 * they pass the sizeof of the header you compile with. Thread-safe. Since 0.1. */
RL_API void rl_options_init_sized(rl_options *options, size_t size);
RL_API void rl_request_init_sized(rl_request *request, size_t size);
#define rl_options_init(options) rl_options_init_sized((options), sizeof *(options))
#define rl_request_init(request) rl_request_init_sized((request), sizeof *(request))

/* ---- Client ---------------------------------------------------------------------------------------------------------------- */

/* Makes a client of 1 .. RL_MAX_NODES nodes. No I/O: the first call that needs a node connects to it.
 *
 * urls: one per node, separated by commas: redis://[[user]:password@]host[:port][/db] or unix://[[user]:password@]/path[?db=n].
 *     IPv6 addresses in brackets; %xx escapes in user, password, host and path; port 6379, db 0 by default. The same endpoint
 *     twice is refused: it would have two votes. rediss:// is RL_E_UNSUPPORTED in a build without TLS.
 * options: NULL for the defaults; copied.
 * *ret_client: the client, to be freed with rl_client_free.
 * *ret_error_at: (may be NULL) on RL_E_INVALID and RL_E_UNSUPPORTED the offset in urls of the fault, or SIZE_MAX if an option is
 *     at fault. Nothing ever echoes the password.
 *
 * Returns RL_OK; RL_E_INVALID (malformed URL or option: a configuration fault, look at *ret_error_at); RL_E_UNSUPPORTED;
 * RL_E_NO_MEMORY. Thread-safe. Since 0.1. */
RL_API RL_CHECK int rl_client_new(const char *urls, const rl_options *options, rl_client **ret_client, size_t *ret_error_at);

/* Closes the connections and frees the client; NULL is fine. No other call on the client or its handles may be running.
 * Locks still held stay on the servers until their leases end. Handles may outlive it: rl_extend and rl_release then answer
 * RL_E_CLOSED without I/O, and the memory goes with the last of them.
 * Where a node still owes an answer to a request that could leave a key behind, this call first sees to it that none stays:
 * at most cleanup_timeout_ms, and no time at all otherwise. Since 0.1. */
RL_API void rl_client_free(rl_client *client);

/* Ends waiting: acquisitions in progress and later ones return RL_CANCELED, and what a cancelled one may have set is taken back.
 * Extend and release go on working. Any thread, not from a signal handler; idempotent; NULL is fine. Since 0.1. */
RL_API void rl_client_stop(rl_client *client);

/* Asks every node whether locks will work there: connects, authenticates, and runs each command the library needs on a probe key
 * of its own (prefix + "redlatch-check:" + random; deleted at the end, or gone by itself after 4 * node_timeout_ms and two seconds
 * where it cannot be, as the counter of a fence does). Call it at start-up: it finds the user who may SET but not
 * EVALSHA, and two URLs that lead to one server, before the first lock does.
 *
 * report: (may be NULL) what each node said; a node that is fine has RL_NODE_YES.
 *
 * Returns RL_OK: at least a quorum of nodes is fine, and none refused us (read the report for single nodes that are down);
 * RL_E_AUTH: a node refused our credentials or a command; RL_E_UNSUPPORTED: two URLs lead to the same server (equal run_id);
 * RL_E_NO_QUORUM: fewer than a quorum are fine; RL_E_INVALID (NULL client); RL_E_NO_MEMORY; RL_E_FORKED. Each is a matter for
 * the operator. What only costs comfort where it is denied (SCRIPT LOAD, CLIENT ...) is not tried; where INFO is denied, two URLs of
 * one server are not noticed. Blocks for at most 4 * node_timeout_ms. Thread-safe. Since 0.1. */
RL_API RL_CHECK int rl_client_check(rl_client *client, rl_report *report);

/* ---- Locks ------------------------------------------------------------------------------------------------------------------ */

/* Takes the lock `name` for ttl_ms, waiting for at most wait_ms (0 = one attempt, RL_FOREVER). The short form of
 * rl_acquire_with: name ends at its NUL. See there for everything else. */
RL_API RL_CHECK int rl_acquire(rl_client *client, const char *name, int64_t ttl_ms, int64_t wait_ms, rl_lock **ret_lock);

/* Takes a lock: SET key token NX PX ttl on all nodes at once (Redlock; the token is 128 random bits, new for each attempt).
 * It is held as soon as a quorum granted it with validity left. A failed attempt is taken back on every node that granted it or
 * may have; then, while there is time, it is tried again after a random pause. A connection found dead costs one repeated
 * attempt at once, so a restarted server costs no acquisition, not even with wait_ms 0.
 *
 * request: what to take; borrowed for the call.
 * report: (may be NULL) what each node answered to the last attempt, on success and failure alike.
 * *ret_lock: the handle; NULL on every result but RL_OK. End it with rl_release, or with rl_lock_free.
 *
 * Returns
 *   RL_OK             held until rl_lock_remaining_ms(*ret_lock) <= 0.
 *   RL_BUSY           held by another, or a split vote, until the wait ended. Normal: try later.
 *   RL_CANCELED       rl_client_stop.
 *   RL_E_NO_QUORUM    more than N - quorum nodes failed. Read the report; may be tried again.
 *   RL_E_TOO_SLOW     votes came too late for this ttl.
 *   RL_E_AUTH         all failing nodes refused our credentials or commands; not waited out.
 *   RL_E_INVALID      NULL, an empty or too long name, ttl out of range or not longer than drift and min_validity, wait_ms < -1,
 *                     a label with other than printable ASCII; renew with a ttl into which three tries do not fit (under 13 ms with
 *                     the default options), max_hold_ms below ttl_ms, either limit without renew, on_event.
 *   RL_E_UNSUPPORTED  a request of a newer header with a field this library does not know.
 *   RL_E_NO_MEMORY    RL_E_FORKED
 * Whatever it returns but RL_OK, the lock is not held, and what it may have set is being taken back.
 * The verdict is that of the last attempt that ran to its end.
 * Blocks for at most max(wait_ms, node_timeout_ms) + cleanup_timeout_ms. Thread-safe. Since 0.1. */
RL_API RL_CHECK int rl_acquire_with(rl_client *client, const rl_request *request, rl_report *report, rl_lock **ret_lock);

/* Makes the lease last at least ttl_ms from now; it never shortens one, creates a key or revives an expired lease. Nodes that
 * lost the key get it again once a quorum has confirmed.
 *
 * report: (may be NULL) what each node answered.
 *
 * Returns
 *   RL_OK            at least ttl_ms minus drift from the sending of the request.
 *   RL_LOST          the lease is over, for good: stop working. Free the handle (or release it). Once the local clock says
 *                    so this needs no I/O.
 *   RL_E_NO_QUORUM   too few confirmed it; the old deadline stands: may be tried again while rl_lock_remaining_ms > 0.
 *   RL_E_TOO_SLOW    confirmed, but too little would be left; the old deadline stands: may be tried again with a longer ttl.
 *   RL_E_AUTH        like RL_E_NO_QUORUM, and all failing nodes refused our credentials or commands.
 *   RL_E_CLOSED      the client was freed; the old deadline stands.
 *   RL_E_INVALID     NULL or ttl out of range.   RL_E_NO_MEMORY   RL_E_FORKED
 * Blocks for at most node_timeout_ms. One thread per handle at a time. Since 0.1. */
RL_API RL_CHECK int rl_extend(rl_lock *lock, int64_t ttl_ms, rl_report *report);

enum { RL_NO_WAIT = 1 }; /* flag of rl_release_with */

/* Gives the lock back: the key is deleted on each node where it still holds our token. Consumes the handle: after the call the
 * pointer is dead as after free(), except after RL_E_INVALID and RL_E_FORKED. rl_release(lock) is rl_release_with(lock, 0, NULL).
 *
 * flags: 0, or RL_NO_WAIT: the requests are written and their answers not waited for.
 * report: (may be NULL) what each node answered; rl_report_free_in_ms tells when the lock is free for certain.
 *
 * Returns
 *   RL_OK            it was ours until now, and a quorum no longer holds it. With RL_NO_WAIT: sent to a quorum.
 *   RL_LOST          the lease had ended before the call (unless a quorum shows that it still had it and no other call, and no
 *                    event, has said otherwise), or too few nodes still had it: the work done under it was not
 *                    protected to its end. The lock is not ours any more.
 *   RL_E_NO_QUORUM   too few nodes answered; the lock is free at the latest when the lease ends (rl_report_free_in_ms).
 *   RL_E_AUTH        like RL_E_NO_QUORUM, and all failing nodes refused our credentials or commands.
 *   RL_E_CLOSED      the client was freed; nothing was sent; free when the lease ends.
 *   RL_E_NO_MEMORY   not sent now, but with a later call on the client if there is one; free at the latest when the lease ends.
 *   RL_E_INVALID     NULL lock or an unknown flag.   RL_E_FORKED
 * Blocks for at most node_timeout_ms; not with RL_NO_WAIT. One thread per handle at a time. Since 0.1. */
RL_API int rl_release(rl_lock *lock);
RL_API int rl_release_with(rl_lock *lock, uint32_t flags, rl_report *report);

/* Forgets the handle without telling any node: the key stays until the lease ends. NULL is fine. No I/O. For a lock that was
 * lost, or that another process goes on with (rl_lock_import). A running rl_async_extend of it goes on, and may still make the key
 * last as long as it asked. Since 0.1. */
RL_API void rl_lock_free(rl_lock *lock);

/* Milliseconds, rounded down, for which the holder may still act; <= 0: stop working now. This is the authority on the lease: no
 * question to a server can be better. A local clock reading, no I/O, under a microsecond. Any thread while the handle lives.
 * 0 for NULL, in a child after fork(), for a lost lock, and for an imported one before its first successful rl_extend. Since 0.1. */
RL_API int64_t rl_lock_remaining_ms(const rl_lock *lock);

/* The fencing token: 0 < token < RL_MAX_FENCE, the same for the life of the lock; 0 if none was asked for, and for NULL. Whoever got
 * the lock later has a higher one. Hand it with every write to what the lock protects, which must refuse a write whose token is
 * lower than one it has seen: then a holder that was stopped beyond its lease can do no harm (M. Kleppmann, "How to do distributed
 * locking", 2016; the quorum way is ours). Since 0.1. */
RL_API int64_t rl_lock_fence(const rl_lock *lock);

/* The value of the key on the servers: 32 lower-case hex digits, then ":" and the label if there is one. Belongs to the handle.
 * NULL for NULL. Whoever knows it can extend and release the lock: treat it like a key. Since 0.1. */
RL_API const char *rl_lock_token(const rl_lock *lock);

/* The name as given to the acquisition, with a NUL appended, *ret_len (may be NULL) its length. Belongs to the handle.
 * NULL for NULL. Since 0.1. */
RL_API const void *rl_lock_name(const rl_lock *lock, size_t *ret_len);

/* ---- Holding a lock for longer than one lease ------------------------------------------------------------------------------------
 * With rl_request.renew the library extends the lease by itself, from the first third of its remaining validity on, again and again while
 * that fails; nodes that forgot the lock get it again. Renewal never releases, and never revives a lock that was lost. The
 * holder must still notice a loss: by rl_lock_remaining_ms <= 0 before each step that matters, by rl_lock_wait_lost on a thread of its
 * own, by rl_lock_lost_fd in a poll loop; on a libevent loop by on_event. How to choose a ttl is in the manual (redlatch(7)). */

/* Checks in: I am not stuck. For a lock with touch_within_ms. An atomic write and a clock reading, no I/O.
 *
 * Returns RL_OK; RL_LOST (the lease is over: stop working); RL_E_INVALID (NULL, or touch_within_ms was 0); RL_E_FORKED. Any thread while
 * the handle lives. Since 0.1. */
RL_API int rl_lock_touch(rl_lock *lock);

/* No more renewals: the lock stays held until its lease ends, unless rl_extend is called. A renewal that is under way may still make it
 * last as long as it asked. No I/O.
 *
 * Returns RL_OK, also where there was no renewal; RL_E_INVALID (NULL); RL_E_FORKED. One thread per handle at a time. Since 0.1. */
RL_API int rl_lock_stop_renewing(rl_lock *lock);

/* Waits until the lock is lost, at most timeout_ms (RL_FOREVER; 0 = only look). Renewed or not: rl_extend by another thread counts.
 *
 * Returns RL_LOST (see rl_lock_lost_reason); RL_OK: still held after timeout_ms; RL_CANCELED: another thread released or freed the
 * handle meanwhile; RL_E_NO_MEMORY (or no descriptor); RL_E_INVALID (NULL, timeout_ms < -1, a handle of an rl_async); RL_E_CLOSED;
 * RL_E_FORKED. Up to 255 threads may wait while another works; a call that has begun is woken by the end of the handle. Like every call on
 * a handle it must not begin after that: end a thread that watches again and again before the handle. Since 0.1. */
RL_API int rl_lock_wait_lost(rl_lock *lock, int64_t timeout_ms);

/* A descriptor that is readable from the moment at which the lock is over (lost, released or freed), for poll, epoll or an event loop.
 * Made at the first call; belongs to the handle: do not read or close it, and stop waiting for it before the handle ends.
 *
 * Returns the descriptor; RL_E_NO_MEMORY (or no descriptor); RL_E_INVALID (NULL, a handle of an rl_async); RL_E_CLOSED; RL_E_FORKED. Any
 * thread while the handle lives. Since 0.1. */
RL_API RL_CHECK int rl_lock_lost_fd(rl_lock *lock);

/* Why the lock was lost: enum rl_lost_reason; RL_LOST_NOT while it is held, for an imported one before its first successful
 * rl_extend, and for NULL or in a child after fork(). Any thread while the handle lives (on a loop: only its thread). Since 0.1. */
RL_API int rl_lock_lost_reason(rl_lock *lock);

/* A handle for a lock that (name, token) says is held, for example by another process that handed its work to this one. No I/O.
 * Its remaining time is 0 until the first rl_extend, which asks the servers whatever the local clock says; rl_release works
 * at once. Two processes with one token are one holder: they must not both work under it.
 *
 * name, name_len: as in rl_request. token: as rl_lock_token printed it; copied. fence: as rl_lock_fence said, or 0.
 * *ret_lock: the handle; end it with rl_release or rl_lock_free.
 *
 * Returns RL_OK; RL_E_INVALID (name, fence, or a token of another form); RL_E_NO_MEMORY; RL_E_FORKED. Thread-safe. Since 0.1. */
RL_API RL_CHECK int rl_lock_import(rl_client *client, const void *name, size_t name_len, const char *token, int64_t fence,
                                   rl_lock **ret_lock);

/* ---- Writes that check the fencing token ---------------------------------------------------------------------------------------- */

/* For data that lives under a key of a Redis server: the check that a fencing token is for, in one step with the write. The highest
 * token that was shown and its holder are kept beside the data (in a hash, key:fenced or {key}:fenced, without expiry), so the
 * server must be as durable for it as for the data. All writers must go this way. Recipes for other stores are in the manual.
 *
 * A holder shows its token before its first read (rl_fenced_begin), or a stale holder could read, modify, and write over what a newer
 * one has yet to see. It is accepted if it is higher than all before, or equal and of the same holder.
 *
 * store: a client of one URL, the server with the data; it may be the server of the lock. Its prefix is not used here.
 * key, key_len: 1 .. RL_MAX_NAME bytes; borrowed for the call. lock: a handle with a fence, of any client; it need not be valid
 *     still: the store judges. value: any bytes, at most RL_MAX_VALUE; borrowed for the call. report: may be NULL.
 *
 * Returns
 *   RL_OK            accepted (and written).
 *   RL_LOST          a newer holder has shown its token: nothing was written. Stop: the lock is somebody else's.
 *   RL_E_NO_QUORUM   the server failed or did not answer in node_timeout_ms: it may or may not have been written. May be called again
 *                    with the same lock and value.
 *   RL_E_AUTH        the server refused our credentials or commands.
 *   RL_E_INVALID     NULL, a key or value out of range, a lock without a fence, a store of several URLs.
 *   RL_E_NO_MEMORY   RL_E_FORKED
 * Blocks for at most node_timeout_ms. Thread-safe as to store; one thread per handle at a time. Since 0.1. */
RL_API RL_CHECK int rl_fenced_begin(rl_client *store, const void *key, size_t key_len, const rl_lock *lock, rl_report *report);
RL_API RL_CHECK int rl_fenced_set(rl_client *store, const void *key, size_t key_len, const rl_lock *lock, const void *value,
                                  size_t value_len, rl_report *report);

/* ---- Reports ---------------------------------------------------------------------------------------------------------------- */

/* What one node said to one call. The numbers are part of the ABI. */
enum rl_node_outcome {
    RL_NODE_NOT_ASKED = 0,     /* the call did not come to this node */
    RL_NODE_YES = 1,           /* granted, extended, released; fine */
    RL_NODE_HELD_BY_OTHER = 2, /* the key holds another token, or is not a lock at all */
    RL_NODE_ABSENT = 3,        /* extend, release: no such key */
    RL_NODE_ERROR = 4,         /* an error reply (text), or something that is no answer to what was asked */
    RL_NODE_NO_ANSWER = 5,     /* asked, but the time ran out or the connection broke (sys_errno): it may or may not have acted */
    RL_NODE_UNREACHABLE = 6,   /* not looked up, connected or logged in; nothing was asked */
    RL_NODE_LATE = 7,          /* still owes an answer to an earlier request; nothing was asked */
    RL_NODE_PENDING = 8        /* asked; had not answered when the others had decided the result */
};
typedef struct rl_node_result {
    size_t size;       /* growth rule as above, but written by the library: set it before the call */
    const char *node;  /* the URL without user and password */
    const char *text;  /* the server's or resolver's own words, escaped and cut, or "" */
    int64_t rtt_us;    /* from the sending of the request to its answer; -1 = no reply */
    int32_t outcome;   /* enum rl_node_outcome */
    int32_t sys_errno; /* errno of a failed connection, ETIMEDOUT, or 0 */
} rl_node_result;

/* A report to hand to calls; it is overwritten by each. Big enough for any client, so that filling it cannot fail. One thread at
 * a time. Returns RL_OK, RL_E_INVALID (NULL) or RL_E_NO_MEMORY. Free it with rl_report_free (NULL is fine). Since 0.1. */
RL_API RL_CHECK int rl_report_new(rl_report **ret_report);
RL_API void rl_report_free(rl_report *report);

/* Number of nodes in it, in the order of the URLs: 0 before its first use, after a call that was refused (RL_E_INVALID and the
 * like), and for NULL. Since 0.1. */
RL_API size_t rl_report_count(const rl_report *report);

/* The i-th node's result. ret_result->size must be set; at most that many bytes are written. The strings live until the next call
 * that is given this report, or its end. Returns RL_OK, or RL_E_INVALID (NULL, a size of 0, i out of range). Since 0.1. */
RL_API int rl_report_node(const rl_report *report, size_t i, rl_node_result *ret_result);

/* After a release: in how many milliseconds, counted from its return, the lock is free for certain: 0 if a quorum said so;
 * else until the last lease that was sent has run out on the slowest allowed clock; -1 if that is not known (a lock that was imported
 * and never extended). 0 for other calls and for NULL. Not covered:
 * a SET of ours still in transit somewhere (a proxy) whose connection broke, where the server's ACL denies us CLIENT KILL.
 * Since 0.1. */
RL_API int64_t rl_report_free_in_ms(const rl_report *report);

/* ---- Texts ------------------------------------------------------------------------------------------------------------------ */

/* A short English text for a status; "unknown status" for any other number. Static, never NULL. Since 0.1. */
RL_API const char *rl_strstatus(int status);

/* "major.minor.patch" of the library that runs. Static. Since 0.1. */
RL_API const char *rl_version(void);

#ifdef __cplusplus
}
#endif
#endif
