/* common.c - see common.h. */
#include "common.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
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

int pin_to_core(int core)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set))
        die("cannot read the CPU affinity");
    for (int i = 0; core < 0 && i < CPU_SETSIZE; i++) {
        if (CPU_ISSET(CPU_SETSIZE - 1 - i, &set))
            core = CPU_SETSIZE - 1 - i;
    }
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    if (sched_setaffinity(0, sizeof set, &set))
        die("cannot pin to core %d", core);
    return core;
}

rl_client *client_or_die(const char *urls)
{
    rl_client *client;
    int rc = rl_client_new(urls, NULL, &client, NULL);
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

void samples_add(struct samples *samples, int64_t ns)
{
    if (samples->count == samples->capacity) {
        samples->capacity = samples->capacity ? samples->capacity * 2 : 4096;
        samples->ns = realloc(samples->ns, samples->capacity * sizeof *samples->ns);
        if (!samples->ns)
            die("out of memory");
    }
    samples->ns[samples->count++] = ns;
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

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

int64_t samples_at(struct samples *samples, int permille)
{
    if (!samples->count)
        die("no samples");
    qsort(samples->ns, samples->count, sizeof *samples->ns, compare);
    return samples->ns[(samples->count - 1) * (size_t)permille / 1000];
}

void samples_print(const char *label, struct samples *samples)
{
    printf("%-14s %7zu times   p50 %8.1f us   p99 %8.1f us   max %8.1f us\n", label, samples->count,
           (double)samples_at(samples, 500) / 1000, (double)samples_at(samples, 990) / 1000,
           (double)samples_at(samples, 1000) / 1000);
}

bool option_number(const char *argument, const char *name, long *ret_value)
{
    size_t length = strlen(name);
    if (strncmp(argument, name, length) || argument[length] != '=')
        return false;
    char *end;
    *ret_value = strtol(argument + length + 1, &end, 10);
    if (end == argument + length + 1 || *end)
        die("%s needs a number", name);
    return true;
}
