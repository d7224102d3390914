/* heap.h - a heap of deadlines, the earliest first.
 *
 * A timer in an object that waits is only its place in the heap: the deadlines lie in the heap itself, four children side by side, so
 * that moving one among 100,000 touches few objects. The heap grows by realloc, by a quarter. */
#ifndef RLI_HEAP_H
#define RLI_HEAP_H

#include "instant.h"

#include <stdbool.h>
#include <stddef.h>

struct rli_timer {
    uint32_t place; /* 1 + index in the heap; 0 = not in it */
};

struct rli_heap {
    struct rli_heap_entry {
        rli_instant at;
        struct rli_timer *timer;
    } * entries;
    size_t count, room;
};

/* Makes room for that many timers, so that arming them cannot fail; false if out of memory. */
bool rli_heap_reserve(struct rli_heap *heap, size_t timers);
void rli_heap_free(struct rli_heap *heap);

/* Arms, moves or (RLI_NEVER) disarms a timer. */
void rli_heap_set(struct rli_heap *heap, struct rli_timer *timer, rli_instant at);

/* When the earliest timer is due, or RLI_NEVER. */
static inline rli_instant rli_heap_due(const struct rli_heap *heap)
{
    return heap->count ? heap->entries[0].at : RLI_NEVER;
}

/* The earliest timer if it is due at that time, or NULL. */
static inline struct rli_timer *rli_heap_expired(const struct rli_heap *heap, rli_instant now)
{
    return rli_heap_due(heap) <= now && heap->count ? heap->entries[0].timer : NULL;
}

#endif
