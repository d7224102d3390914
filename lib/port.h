/* port.h - what the library needs of the host: memory, clock, random bytes, fork detection, name look-up. Linux, glibc or musl.
 * The one file that a test replaces to run the library in a world of its own. */
#ifndef RLI_PORT_H
#define RLI_PORT_H

#include "instant.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

void *rli_calloc(size_t size); /* zeroed; NULL if out of memory */
void *rli_realloc(void *memory, size_t size);
void rli_free(void *memory);

/* CLOCK_BOOTTIME: goes on while the machine is suspended, and no wall-clock step moves it. */
rli_instant rli_now(void);

/* A guard notices that it was inherited over fork(): its page is wiped in a child. It also keeps the block that random bytes are
 * drawn from, so that no two processes ever draw the same ones. */
struct rli_guard;
struct rli_guard *rli_guard_new(void);
void rli_guard_free(struct rli_guard *guard);
bool rli_guard_forked(const struct rli_guard *guard);
void rli_guard_random(struct rli_guard *guard, void *bytes, size_t size); /* at most 256 at a time */

/* A socket address, or a unix path, ready for connect(2). */
struct rli_address {
    uint32_t size;
    _Alignas(8) unsigned char bytes[128];
};
bool rli_address_numeric(const char *host, uint16_t port, struct rli_address *ret); /* needs no look-up and no I/O */
bool rli_address_unix(const char *path, struct rli_address *ret);

/* What wakes a driver: at a set time, or at once. A timerfd, so that a wait needs no timeout of its own (which costs more than all
 * else in it), and counts suspended time. It outlives its owner while a look-up may still use it. */
struct rli_waker;
struct rli_waker *rli_waker_new(void);           /* NULL: out of memory or descriptors */
int rli_waker_fd(const struct rli_waker *waker); /* readable = awake */
/* Its owner: wake at that time at the latest (it may be sooner, from an earlier call). */
void rli_waker_set(struct rli_waker *waker, rli_instant at);
void rli_waker_wake(struct rli_waker *waker);  /* any thread */
void rli_waker_clear(struct rli_waker *waker); /* its owner, once awake */
void rli_waker_drop(struct rli_waker *waker);

/* A descriptor that becomes readable at a set time, which may be moved; for one to wait on who is not told otherwise. */
int rli_alarm_new(void); /* -1: out of descriptors or memory */
void rli_alarm_set(int alarm, rli_instant at);
void rli_alarm_wait(int alarm, rli_instant until); /* until it is readable, or that time */
void rli_alarm_free(int alarm);

/* A thread that receives none of the host's signals; to be joined. False: none to be had. */
bool rli_thread_start(void *(*run)(void *), void *arg, pthread_t *ret);

/* A name being looked up on a thread of its own, since getaddrinfo() cannot be interrupted and may take seconds. */
enum { RLI_MAX_ADDRESSES = 8 };
struct rli_lookup;
struct rli_lookup *rli_lookup_start(struct rli_waker *waker, const char *host, uint16_t port); /* NULL: no memory or no thread */
/* True if it has ended: *ret_count addresses (at most RLI_MAX_ADDRESSES), or 0 and the resolver's words. */
bool rli_lookup_done(struct rli_lookup *lookup, struct rli_address *ret, uint32_t *ret_count, const char **ret_error);
void rli_lookup_drop(struct rli_lookup *lookup); /* done or not; does not wait */

#endif
