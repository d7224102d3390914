/* poll_driver.h - the driver of the blocking front: whoever waits, drives.
 *
 * One engine, one connection per node, any number of threads. A thread that waits for its operation becomes the driver if there is
 * none: it polls without the mutex, and handles what is ready with it. The others sleep until their operation is done, or until the
 * driver leaves and hands over to one of them. Whoever starts an operation sends its requests itself; the driver is woken only if it
 * has to wait for something new (another descriptor, writability, an earlier deadline), or need not wait any more.
 *
 * With a single node, whose answer is all there is to wait for, the driver reads at once instead of polling first, which is most of what a
 * cycle costs beside the bytes. Since nobody can wake it then, it does so for a few milliseconds only. */
#ifndef RLI_POLL_DRIVER_H
#define RLI_POLL_DRIVER_H

#include "pump.h"
#include "redlatch.h"

#include <poll.h>
#include <pthread.h>

struct rli_waiter { /* on the stack of a thread that waits */
    struct rli_waiter *next, **link;
    bool done;
    bool asleep;
    pthread_cond_t woken;
};

/* The keeper is a thread that sees to renewals: it drives while one is under way and nobody else drives, and rests otherwise. */
struct rli_keeper {
    struct rli_waker *waker; /* NULL: there is none */
    bool resting;
    bool stop;
    rli_instant until; /* resting: when it looks up at the latest */
};

struct rli_poll {
    struct rli_pump pump;
    struct rli_keeper keeper;
    struct rli_waiter *sleepers, **last;
    bool driving;
    const struct rli_waiter *driver; /* while driving: whom it drives for, or NULL */
    rli_instant driven_until;        /* ... and when it looks up at the latest */
    struct rli_watched {             /* ... and what it waits for */
        uint32_t serial;
        short events;
    } watched[RL_MAX_NODES];
    uint32_t lent; /* the serial of the connection that may be waited on by reading; 0 = none yet */
    bool silent;   /* the only node has not answered at once: wait for it in the ordinary way */
};

void rli_poll_init(struct rli_poll *poll, struct rli_engine *engine);

/* Before an operation starts: takes notice of connections that died, and (`all`) of answers that came since the last call. Returns
 * the time. All of these functions: under the client's mutex. */
rli_instant rli_poll_prepare(struct rli_poll *poll, bool all);

/* Sends what there is to send. */
void rli_poll_flush(struct rli_poll *poll, rli_instant now);

/* Until the waiter is done. */
void rli_poll_wait(struct rli_poll *poll, struct rli_waiter *waiter);
void rli_waiter_done(struct rli_waiter *waiter);

/* The keeper's life, on its thread, until it is told to stop. keeper.waker has been made before. */
void rli_poll_keep(struct rli_poll *poll);
void rli_poll_stop_keeping(struct rli_poll *poll);

/* Until no node owes an answer that decides whether a key of ours stays behind, `until` at the latest; then closes everything. */
void rli_poll_settle(struct rli_poll *poll, rli_instant until);

#endif
