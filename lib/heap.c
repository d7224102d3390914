/* heap.c - see heap.h. */
#include "heap.h"

#include "port.h"

#include <assert.h>

enum { CHILDREN = 4 };

static void put(struct rli_heap *heap, size_t at, struct rli_heap_entry entry)
{
    heap->entries[at] = entry;
    entry.timer->place = (uint32_t)at + 1;
}

static void sift_up(struct rli_heap *heap, size_t at, struct rli_heap_entry entry)
{
    while (at > 0 && heap->entries[(at - 1) / CHILDREN].at > entry.at) {
        put(heap, at, heap->entries[(at - 1) / CHILDREN]);
        at = (at - 1) / CHILDREN;
    }
    put(heap, at, entry);
}

static void sift_down(struct rli_heap *heap, size_t at, struct rli_heap_entry entry)
{
    for (size_t first; (first = CHILDREN * at + 1) < heap->count;) {
        size_t end = first + CHILDREN < heap->count ? first + CHILDREN : heap->count, least = first;
        for (size_t child = first + 1; child < end; child++)
            if (heap->entries[child].at < heap->entries[least].at)
                least = child;
        if (heap->entries[least].at >= entry.at)
            break;
        put(heap, at, heap->entries[least]);
        at = least;
    }
    put(heap, at, entry);
}

/* The entry at that index gives way to another one. */
static void replace(struct rli_heap *heap, size_t at, struct rli_heap_entry entry)
{
    if (entry.at < heap->entries[at].at)
        sift_up(heap, at, entry);
    else
        sift_down(heap, at, entry);
}

bool rli_heap_reserve(struct rli_heap *heap, size_t timers)
{
    if (timers <= heap->room)
        return true;
    size_t room = heap->room ? heap->room : 16;
    while (room < timers)
        room += room / 4;
    struct rli_heap_entry *grown = rli_realloc(heap->entries, room * sizeof *grown);
    if (!grown)
        return false;
    heap->entries = grown;
    heap->room = room;
    return true;
}

void rli_heap_free(struct rli_heap *heap)
{
    rli_free(heap->entries);
    *heap = (struct rli_heap){0};
}

void rli_heap_set(struct rli_heap *heap, struct rli_timer *timer, rli_instant at)
{
    size_t place = timer->place;
    struct rli_heap_entry last;

    if (at != RLI_NEVER && place) {
        replace(heap, place - 1, (struct rli_heap_entry){at, timer});
    } else if (at != RLI_NEVER) {
        assert(heap->count < heap->room);
        sift_up(heap, heap->count++, (struct rli_heap_entry){at, timer});
    } else if (place) {
        timer->place = 0;
        last = heap->entries[--heap->count];
        if (last.timer != timer)
            replace(heap, place - 1, last);
    }
}
