/* measure.c - see measure.h. */
#include "measure.h"

enum { WARM_UP_NS = 20000000 };

static void warm_up(struct variant *variant)
{
    int64_t end = now_ns() + WARM_UP_NS;
    while (now_ns() < end)
        variant->step(variant->arg);
    if (variant->latencies)
        samples_clear(variant->latencies);
}

/* One slice: `steps` gets the nanoseconds a cycle of each step. */
static void run_slice(struct variant *variant, struct samples *steps)
{
    int64_t start = now_ns(), begin = start, end = start + SLICE_MS * INT64_C(1000000), cpu = cpu_ns();
    while (start < end) {
        long cycles = variant->step(variant->arg);
        int64_t now = now_ns();
        samples_add(steps, (now - start) / cycles);
        variant->cycles += cycles;
        start = now;
    }
    variant->wall_ns += start - begin;
    variant->cpu_ns += cpu_ns() - cpu;
}

/* Which variant comes first changes from slice to slice. */
static void run_repetition(struct comparison *comparison, long repetition, long slices)
{
    struct samples steps[MAX_VARIANTS] = {{0}};
    for (long i = 0; i < slices; i++) {
        for (int j = 0; j < comparison->count; j++) {
            int which = (int)((i + j) % comparison->count);
            run_slice(&comparison->variants[which], &steps[which]);
        }
    }
    for (int j = 0; j < comparison->count; j++) {
        struct variant *variant = &comparison->variants[j];
        if (!variant->latencies)
            samples_append(&variant->own, &steps[j]);
        variant->medians[repetition] = (double)samples_at(&steps[j], 500);
        samples_free(&steps[j]);
    }
}

void measure(struct comparison *comparison, const struct effort *effort)
{
    comparison->repetitions = effort->repetitions;
    for (int j = 0; j < comparison->count; j++)
        warm_up(&comparison->variants[j]);
    for (long i = 0; i < effort->repetitions; i++)
        run_repetition(comparison, i, effort->slices);
}

void comparison_free(struct comparison *comparison)
{
    for (int j = 0; j < comparison->count; j++)
        samples_free(variant_latencies(&comparison->variants[j]));
}

struct samples *variant_latencies(struct variant *variant)
{
    return variant->latencies ? variant->latencies : &variant->own;
}

struct spread time_ratio(const struct comparison *comparison, int of, int to)
{
    double ratios[MAX_REPETITIONS];
    for (long i = 0; i < comparison->repetitions; i++)
        ratios[i] = comparison->variants[of].medians[i] / comparison->variants[to].medians[i];
    return spread_of(ratios, comparison->repetitions);
}

struct spread rate_ratio(const struct comparison *comparison, int of, int to)
{
    return time_ratio(comparison, to, of);
}
