/* common.c - see common.h. */
#include "common.h"

#include <malloc.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int64_t read_clock(clockid_t clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}

int64_t now_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

int64_t cpu_ns(void)
{
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

void sleep_ns(int64_t ns)
{
    struct timespec ts = {ns / 1000000000, ns % 1000000000};
    nanosleep(&ts, NULL);
}

void die(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    exit(1);
}

double heap_bytes(void)
{
    struct mallinfo2 info = mallinfo2();
    return (double)info.uordblks + (double)info.hblkhd;
}

void *zalloc(size_t size)
{
    void *memory = calloc(1, size);
    if (!memory)
        die("out of memory");
    return memory;
}

/* What it could use before the first pin_to_core. */
static cpu_set_t allowed;

static void read_allowed(void)
{
    if (!CPU_COUNT(&allowed) && sched_getaffinity(0, sizeof allowed, &allowed))
        die("cannot read the CPU affinity");
}

int pin_to_core(int core)
{
    cpu_set_t set;
    read_allowed();
    for (int i = CPU_SETSIZE - 1; core < 0 && i >= 0; i--) {
        if (CPU_ISSET(i, &allowed))
            core = i;
    }
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    if (sched_setaffinity(0, sizeof set, &set))
        die("cannot pin to core %d", core);
    return core;
}

void unpin(void)
{
    read_allowed();
    if (sched_setaffinity(0, sizeof allowed, &allowed))
        die("cannot set the CPU affinity");
}

rl_client *client_or_die(const char *urls, const rl_options *options)
{
    rl_client *client;
    int rc = rl_client_new(urls, options, &client, NULL);
    if (rc)
        die("rl_client_new: %s", rl_strstatus(rc));
    return client;
}

rl_lock *acquire_or_die(rl_client *client, const char *name, int64_t wait_ms)
{
    rl_lock *lock;
    int rc = rl_acquire(client, name, 10000, wait_ms, &lock);
    if (rc)
        die("rl_acquire: %s", rl_strstatus(rc));
    return lock;
}

void release_or_die(rl_lock *lock, uint32_t flags)
{
    int rc = rl_release_with(lock, flags, NULL);
    if (rc)
        die("rl_release_with: %s", rl_strstatus(rc));
}

long our_cycle(void *arg)
{
    struct our_cycle *ours = arg;
    release_or_die(acquire_or_die(ours->client, ours->name, 0), ours->release_flags);
    return 1;
}

void samples_add(struct samples *samples, int64_t ns)
{
    if (samples->count == samples->capacity) {
        samples->capacity = samples->capacity ? samples->capacity * 2 : 4096;
        samples->ns = realloc(samples->ns, samples->capacity * sizeof *samples->ns);
        if (!samples->ns)
            die("out of memory");
    }
    samples->ns[samples->count++] = ns;
    samples->sorted = false;
}

void samples_append(struct samples *samples, const struct samples *more)
{
    for (size_t i = 0; i < more->count; i++)
        samples_add(samples, more->ns[i]);
}

void samples_clear(struct samples *samples)
{
    samples->count = 0;
}

void samples_free(struct samples *samples)
{
    free(samples->ns);
    *samples = (struct samples){0};
}

static int by_time(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

int64_t samples_at(struct samples *samples, int permille)
{
    if (!samples->count)
        die("no samples");
    if (!samples->sorted)
        qsort(samples->ns, samples->count, sizeof *samples->ns, by_time);
    samples->sorted = true;
    return samples->ns[(samples->count - 1) * (size_t)permille / 1000];
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct spread spread_of(const double *values, long count)
{
    double sorted[MAX_REPETITIONS];
    memcpy(sorted, values, (size_t)count * sizeof *sorted);
    qsort(sorted, (size_t)count, sizeof *sorted, by_size);
    return (struct spread){sorted[0], sorted[count / 2], sorted[count - 1]};
}
