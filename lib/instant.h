/* instant.h - time: one type for points in time, one for lengths of it, and all arithmetic on them.
 *
 * Both count nanoseconds in 64 bits; an instant is a reading of CLOCK_BOOTTIME. Sums saturate, so that "never" stays never and a
 * huge ttl cannot wrap into the past. */
#ifndef RLI_INSTANT_H
#define RLI_INSTANT_H

#include <stdint.h>

typedef int64_t rli_instant;
typedef int64_t rli_span;

#define RLI_NEVER INT64_MAX /* later than every instant; longer than every span */
#define RLI_GONE INT64_MIN  /* earlier than every instant: minus infinity */
#define RLI_MS INT64_C(1000000)

static inline int64_t rli_add(int64_t a, int64_t b)
{
    int64_t sum;
    if (a == RLI_NEVER || a == RLI_GONE)
        return a;
    if (__builtin_add_overflow(a, b, &sum))
        return b > 0 ? RLI_NEVER : RLI_GONE;
    return sum;
}

static inline rli_span rli_from_ms(int64_t ms)
{
    rli_span span;
    if (__builtin_mul_overflow(ms, RLI_MS, &span))
        return ms > 0 ? RLI_NEVER : RLI_GONE;
    return span;
}

/* From `from` to `to`. */
static inline rli_span rli_until(rli_instant to, rli_instant from)
{
    int64_t span;
    if (to == RLI_NEVER || to == RLI_GONE)
        return to;
    if (__builtin_sub_overflow(to, from, &span))
        return to > from ? RLI_NEVER : RLI_GONE;
    return span;
}

/* Whole milliseconds, rounded towards minus infinity: what remains of a lease is never overstated. */
static inline int64_t rli_to_ms_floor(rli_span span)
{
    return span / RLI_MS - (span % RLI_MS < 0);
}

/* Whole milliseconds, rounded towards plus infinity: a sleep never ends early. */
static inline int64_t rli_to_ms_ceil(rli_span span)
{
    return span / RLI_MS + (span % RLI_MS > 0);
}

static inline int64_t rli_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t rli_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

#endif
