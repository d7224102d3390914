/* heap.c - see heap.h. */
#include "heap.h"

#include "port.h"

#include <assert.h>

static void put(struct rli_heap *heap, size_t at, struct rli_timer *timer)
{
    heap->timers[at] = timer;
    timer->place = at + 1;
}

static void sift_up(struct rli_heap *heap, size_t at, struct rli_timer *timer)
{
    while (at > 0 && heap->timers[(at - 1) / 2]->at > timer->at) {
        put(heap, at, heap->timers[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    put(heap, at, timer);
}

static void sift_down(struct rli_heap *heap, size_t at, struct rli_timer *timer)
{
    for (size_t child; (child = 2 * at + 1) < heap->count; at = child) {
        if (child + 1 < heap->count && heap->timers[child + 1]->at < heap->timers[child]->at)
            child++;
        if (heap->timers[child]->at >= timer->at)
            break;
        put(heap, at, heap->timers[child]);
    }
    put(heap, at, timer);
}

static void take_out(struct rli_heap *heap, struct rli_timer *timer)
{
    size_t at = timer->place - 1;
    struct rli_timer *last = heap->timers[--heap->count];

    timer->place = 0;
    if (last == timer)
        return;
    if (last->at < timer->at)
        sift_up(heap, at, last);
    else
        sift_down(heap, at, last);
}

bool rli_heap_reserve(struct rli_heap *heap, size_t timers)
{
    if (timers <= heap->room)
        return true;
    size_t room = heap->room ? heap->room : 16;
    while (room < timers)
        room *= 2;
    struct rli_timer **grown = rli_realloc(heap->timers, room * sizeof *grown);
    if (!grown)
        return false;
    heap->timers = grown;
    heap->room = room;
    return true;
}

void rli_heap_free(struct rli_heap *heap)
{
    rli_free(heap->timers);
    *heap = (struct rli_heap){0};
}

void rli_heap_set(struct rli_heap *heap, struct rli_timer *timer, rli_instant at)
{
    if (timer->place && timer->at == at)
        return;
    if (timer->place)
        take_out(heap, timer);
    timer->at = at;
    if (at == RLI_NEVER)
        return;
    assert(heap->count < heap->room);
    sift_up(heap, heap->count++, timer);
}
