/* heap.h - a binary heap of deadlines, the earliest first. Its nodes lie in the objects that wait; it grows by realloc. */
#ifndef RLI_HEAP_H
#define RLI_HEAP_H

#include "instant.h"

#include <stdbool.h>
#include <stddef.h>

struct rli_timer {
    rli_instant at;
    size_t place; /* 1 + index in the heap; 0 = not in it */
};

struct rli_heap {
    struct rli_timer **timers;
    size_t count, room;
};

/* Makes room for that many timers, so that arming them cannot fail; false if out of memory. */
bool rli_heap_reserve(struct rli_heap *heap, size_t timers);
void rli_heap_free(struct rli_heap *heap);

/* Arms, moves or (RLI_NEVER) disarms a timer. */
void rli_heap_set(struct rli_heap *heap, struct rli_timer *timer, rli_instant at);

/* The earliest timer, or NULL. */
static inline struct rli_timer *rli_heap_first(const struct rli_heap *heap)
{
    return heap->count ? heap->timers[0] : NULL;
}

#endif
