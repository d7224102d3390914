/* log.h - what the processes of the storm have in common: who claimed to hold which name from when until when, and how often a call
 * ended in which way. In shared memory, so that what a killed process has claimed stays.
 *
 * A claim begins when the successful acquisition has returned and ends when the handle says so, or when the holder begins to release
 * it. It is noted such that it is never longer than what the library promised: an overlap is the library's fault. */
#ifndef STORM_LOG_H
#define STORM_LOG_H

#include <redlatch.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { STORM_NAMES = 10, STORM_MAX_CLAIMS = 4 * 1000 * 1000, STORM_STATUSES = 12 /* RL_CANCELED .. RL_E_FORKED */ };
enum storm_front { STORM_BLOCKING, STORM_EVENT, STORM_FRONTS };
enum storm_call { STORM_ACQUIRE, STORM_EXTEND, STORM_RELEASE, STORM_CALLS };

struct claim {
    int64_t begun_ns; /* before the acquisition was called */
    int64_t from_ns;  /* CLOCK_BOOTTIME; 0: not written to its end */
    int64_t fence;
    _Atomic int64_t until_ns;
    int32_t name, pid;
    int32_t front, extended;
};

struct log {
    atomic_bool stop;
    atomic_uint_fast64_t seed;
    atomic_uint_fast64_t count; /* of claims */
    atomic_uint_fast64_t blocked;
    atomic_uint_fast64_t statuses[STORM_FRONTS][STORM_CALLS][STORM_STATUSES];
    struct claim claims[STORM_MAX_CLAIMS];
};

int64_t boot_ns(void);

struct log *log_new(void);
uint64_t log_random(struct log *log); /* a number that no other process gets */

/* A successful acquisition has returned that was called at begun_ns. NULL if the log is full. */
struct claim *log_claim(struct log *log, enum storm_front front, int name, int64_t begun_ns, const rl_lock *lock);
void log_extended(struct claim *claim, const rl_lock *lock);
void log_end(struct claim *claim); /* the holder stops acting: it begins to release the lock, or was told that it is lost */
void log_status(struct log *log, enum storm_front front, enum storm_call call, int status);

/* Prints what there is. False if a fencing token does not rise, if two claims of one name overlap (unless `forgetful`: servers lost
 * their keys, and tokens are all there is), or if a front claimed fewer than `least`. */
bool log_check(struct log *log, uint64_t least, bool forgetful);

#endif
