/* worker.h - what the C programs of the comparison share: the protocol that run.py speaks with every worker (README.md), threads, times.
 *
 * A program describes its library or service by one `struct peer` and calls worker_main. Nothing here knows what a lock is.
 */
#ifndef PEERS_WORKER_H
#define PEERS_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How long a call may wait: what is left until a point of worker_now_us, and at least one attempt. */
int64_t worker_now_us(void);
/* One line of JSON with the message as "error", then the end of the program. */
void worker_die(const char *message) __attribute__((noreturn));

/* The measured cycles of one command. worker_add is thread-safe. */
struct worker_run;
void worker_add(struct worker_run *run, int64_t us);
void worker_error(struct worker_run *run, const char *message);
int64_t worker_end_us(const struct worker_run *run);

struct peer {
    /* A connection to the servers of `urls` (mode: what the program was told as its first argument). Dies if there is none. */
    void *(*open)(const char *mode, const char *urls);
    void (*close)(void *session);
    /* A handle, or NULL with *ret_error set when wait_ms went by or something failed. Waits in the way of the library. */
    void *(*acquire)(void *session, const char *key, int64_t ttl_ms, int64_t wait_ms, const char **ret_error);
    /* Consumes the handle. False, with *ret_error set, if the lock was not ours to the end as far as the peer can tell. */
    bool (*release)(void *session, void *handle, const char **ret_error);
    /* `count` cycles outstanding until worker_end_us, each on its own key; NULL: a thread for each. */
    void (*many)(const char *mode, const char *urls, int count, struct worker_run *run);
    /* One session serves any number of threads of `many`; else each thread gets its own, as each waiter of a contention does. */
    bool shared;
    /* What the commands cost as counted by the program itself (statements, requests); NULL: the driver counts at the server. */
    int64_t (*commands)(void);
};

/* Reads commands from stdin to its end. Usage: PROGRAM MODE URLS. */
int worker_main(int argc, char **argv, const struct peer *peer);

#ifdef __cplusplus
}
#endif
#endif
