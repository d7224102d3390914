/* world.c - see world.h: the queue of events, chance, and the transcript. */
#include "world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct event {
    true_time when;
    uint64_t order; /* of equals, first come first served */
    void (*callback)(void *arg);
    void *arg;
};

true_time world_now;
bool world_trace, world_failed;
char world_failure[256];
struct nature nature;

static uint64_t chance;
static struct event *events;
static size_t count, room;
static uint64_t order;

uint64_t chance_bits(void)
{
    uint64_t z = (chance += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

int64_t between(int64_t low, int64_t high)
{
    return low + (int64_t)(chance_bits() % (uint64_t)(high - low + 1));
}

bool one_in(int64_t n)
{
    return between(1, n) == 1;
}

static bool before(const struct event *a, const struct event *b)
{
    return a->when != b->when ? a->when < b->when : a->order < b->order;
}

void world_at(true_time when, void (*callback)(void *arg), void *arg)
{
    struct event event = {when > world_now ? when : world_now, order++, callback, arg};
    size_t at = count++;

    if (count > room) {
        room = room ? room * 2 : 256;
        events = realloc(events, room * sizeof *events);
        if (!events)
            abort();
    }
    for (; at > 0 && before(&event, &events[(at - 1) / 2]); at = (at - 1) / 2)
        events[at] = events[(at - 1) / 2];
    events[at] = event;
}

static struct event pop(void)
{
    struct event first = events[0], last = events[--count];
    size_t at = 0;

    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && before(&events[child + 1], &events[child]))
            child++;
        if (!before(&events[child], &last))
            break;
        events[at] = events[child];
    }
    events[at] = last;
    return first;
}

void world_run(true_time end)
{
    for (uint64_t steps = 0; !world_failed && count && events[0].when <= end; steps++) {
        if (steps == 2000000)
            violated("the world does not come to rest");
        struct event event = pop();
        world_now = event.when;
        event.callback(event.arg);
    }
    if (world_now < end)
        world_now = end;
}

static void draw_nature(void)
{
    nature = (struct nature){
        .servers = (int)between(0, 2) * 2 + 1,
        .clients = (int)between(2, MAX_CLIENTS),
        .forgetful = one_in(4),
        .long_leases = one_in(2),
        .storm = one_in(8),
        .hostile = one_in(20),
        .delay_most = one_in(3) ? 30 * MS : MS,
        .may_kill = true,
        .chaos_ends = world_now + between(500, 3000) * MS,
    };
    if (one_in(10)) /* an even number */
        nature.servers = (int)between(1, 2) * 2;
    nature.quorum = nature.servers / 2 + 1;
    if (one_in(4))
        nature.quorum = (int)between(nature.quorum, nature.servers);
    nature.fence = one_in(2) ? 1 : (int)between(2, 3);
    if (one_in(2))
        nature.forgetters = 2 * nature.quorum - nature.servers - 1;
    nature.renewing = one_in(4);
    nature.names = nature.renewing ? (int)between(2, 4) : 2;
    if (nature.renewing && !nature.forgetful && !nature.hostile && one_in(3)) {
        nature.safe = nature.quorum;
        nature.delay_most = MS;
    }
    if (nature.renewing && nature.long_leases) /* so that some renewals are due in it */
        nature.chaos_ends = world_now + between(4500, 8000) * MS;
    if (!nature.long_leases)
        nature.may_kill = !one_in(4); /* else a SET that comes late is a ghost for as long as its lease */
}

void world_begin(uint64_t seed)
{
    static const char *const fences[] = {"", "", ", a fence of the quorum", ", a fence of one node"};

    chance = seed * UINT64_C(0xd1342543de82ef95) + 1;
    world_now = 1000 * MS;
    count = 0;
    order = 0;
    world_failed = false;
    draw_nature();
    note("seed %llu: %d servers, a quorum of %d%s%s, %d clients%s, %s leases%s, delays up to %lld us%s%s%s",
         (unsigned long long)seed, nature.servers, nature.quorum, fences[nature.fence], nature.forgetful ? ", that forget" : "",
         nature.clients, nature.storm ? " that want the same" : "", nature.long_leases ? "long" : "short",
         nature.renewing ? ", renewed" : "", (long long)nature.delay_most / 1000, nature.may_kill ? "" : ", no CLIENT KILL",
         nature.hostile ? ", hostile servers" : "", nature.safe ? ", a quorum that is safe" : "");
}

void world_end(void)
{
    free(events);
    events = NULL;
    count = room = 0;
}

static void print_time(void)
{
    true_time when = client_current() >= 0 ? client_present() : world_now;
    printf("%10.3f ms ", (double)when / (double)MS);
    if (client_current() >= 0)
        printf("client %d: ", client_current());
    else
        printf("          ");
}

void note(const char *format, ...)
{
    va_list args;

    if (!world_trace)
        return;
    print_time();
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
}

void violated(const char *format, ...)
{
    va_list args;

    if (world_failed)
        return;
    world_failed = true;
    va_start(args, format);
    vsnprintf(world_failure, sizeof world_failure, format, args);
    va_end(args);
    note("VIOLATED: %s", world_failure);
}
