/* keep.h - what the tests of renewed locks share, on both fronts: requests, when a validity ends by the handle's own account, servers that
 * stop at random, and how much of it all is wanted.
 *
 * A program of such tests takes three arguments: releases that race a renewal, leases to be held while servers stop, and runs with a
 * majority stopped. */
#ifndef RLT_KEEP_H
#define RLT_KEEP_H

#include "real.h"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>

static int races = 500, leases = 8, runs = 10;

static inline void read_arguments(int argc, char **argv)
{
    races = argc > 1 ? atoi(argv[1]) : races / ts_slowness();
    leases = argc > 2 ? atoi(argv[2]) : leases;
    runs = argc > 3 ? atoi(argv[3]) : ts_slowness() > 1 ? runs / 2 : runs;
}

/* The lease of a lock that is to be held: the machine may be busy for a part of it. */
static inline int64_t lease(void)
{
    return 160 + 40 * (int64_t)ts_slowness();
}

static inline int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

#define UNTIL(condition)                                                                                                           \
    do {                                                                                                                           \
        for (int64_t end_ = ts_mono_ms() + 2 * SOON * ts_slowness(); !(condition); ts_sleep_ms(1))                                 \
            ts_check(ts_mono_ms() < end_, "in vain: %s", #condition);                                                              \
    } while (0)

static inline rl_request keeping(const char *name, int64_t ttl_ms)
{
    rl_request request;
    rl_request_init(&request);
    request.name = name;
    request.name_len = strlen(name);
    request.ttl_ms = ttl_ms;
    request.renew = 1;
    return request;
}

/* ---- When a validity ends ------------------------------------------------------------------------------------------------------ */

enum { MS = 1000000 /* ns */ };

/* Each answer of rl_lock_remaining_ms says between which instants the validity ends; these are what all answers together leave. A
 * renewal begins anew. */
struct ending {
    int64_t low, high; /* ns */
};

static inline int64_t look(struct ending *ending, const rl_lock *lock)
{
    int64_t before = now_ns(), left = rl_lock_remaining_ms(lock), after = now_ns();
    int64_t low = left > 0 ? before + left * MS : 0, high = after + (left > 0 ? left + 1 : 1) * MS;
    if (!ending->high || low > ending->high) {
        *ending = (struct ending){low, high};
        return left;
    }
    ending->low = low > ending->low ? low : ending->low;
    ending->high = high < ending->high ? high : ending->high;
    ts_check(ending->low <= ending->high, "%lld ms are said to remain %lld us after the end", (long long)left,
             (long long)(before - ending->high) / 1000);
    return left;
}

/* How late losses are told. */
struct delays {
    int count, at[10];
    int64_t most;
};
static const int64_t delay_bounds_us[10] = {100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, INT64_MAX};

static inline void note_delay(struct delays *delays, const struct ending *ending, int64_t told_ns)
{
    int64_t us = (told_ns - (ending->low + ending->high) / 2) / 1000;
    int i = 0;
    ts_check(told_ns >= ending->low, "told %lld us before the end", (long long)(ending->low - told_ns) / 1000);
    ts_check(us <= slack() * 1000, "told %lld us after the end", (long long)us);
    while (us >= delay_bounds_us[i])
        i++;
    delays->at[i]++;
    delays->count++;
    delays->most = us > delays->most ? us : delays->most;
}

static inline void print_delays(const char *what, const struct delays *delays)
{
    printf("%s: lost %d times; told after the end of the validity:", what, delays->count);
    for (int i = 0; i < 9; i++)
        printf(" %d < %lld us,", delays->at[i], (long long)delay_bounds_us[i]);
    printf(" %d later; at most %lld us\n", delays->at[9], (long long)delays->most);
    int soon = 0;
    for (int i = 0; delay_bounds_us[i] <= 5000; i++)
        soon += delays->at[i];
    ts_check(soon * 2 > delays->count, "only %d of %d were told within 5 ms", soon, delays->count);
}

/* ---- Servers that stop ----------------------------------------------------------------------------------------------------------- */

/* Fewer than a half of the servers stand still, others every now and then. */
struct trouble {
    ts_servers *servers;
    unsigned seed;
    bool stopped[TS_MAX_SERVERS];
    int64_t next_ms;
    int stops;
};

static inline void all_go_on(struct trouble *t)
{
    for (int i = 0; i < t->servers->count; i++)
        if (t->stopped[i])
            ts_server_resume(t->servers->at[i]);
    memset(t->stopped, 0, sizeof t->stopped);
}

static inline void make_trouble(struct trouble *t)
{
    if (ts_mono_ms() < t->next_ms)
        return;
    all_go_on(t);
    for (int left = rand_r(&t->seed) % ((t->servers->count + 1) / 2); left > 0; left--) {
        int i = rand_r(&t->seed) % t->servers->count;
        if (!t->stopped[i])
            ts_server_pause(t->servers->at[i]);
        t->stops += !t->stopped[i];
        t->stopped[i] = true;
    }
    t->next_ms = ts_mono_ms() + 10 + rand_r(&t->seed) % lease();
}

static inline const char *key_of(const char *name)
{
    static char key[128];
    snprintf(key, sizeof key, "rl:%s", name);
    return key;
}

static inline bool key_is(ts_server *server, const rl_lock *lock)
{
    return ts_holds(server, key_of(rl_lock_name(lock, NULL)), rl_lock_token(lock));
}

#endif
