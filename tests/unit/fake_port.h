/* fake_port.h - a port (lib/port.h) that does as the test says: its own time, memory that is counted and can be short, numbers from a
 * seed, addresses that need no system. It holds the definitions themselves: for one file of a program. */
#ifndef RLT_FAKE_PORT_H
#define RLT_FAKE_PORT_H

#include "port.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>

static struct {
    rli_instant now;
    uint64_t seed;
    /* Memory */
    long live;         /* blocks not freed */
    uint64_t calls;    /* so far */
    uint64_t fail_at;  /* the call that gets none, counted like `calls` from 1; 0 = none does */
    bool fail_forever; /* ... and all after it */
} fake;

static inline void fake_begin(void)
{
    memset(&fake, 0, sizeof fake);
    fake.now = T0;
    fake.seed = 1;
}

static inline bool fake_is_short(void)
{
    fake.calls++;
    return fake.fail_at && (fake.fail_forever ? fake.calls >= fake.fail_at : fake.calls == fake.fail_at);
}

void *rli_calloc(size_t size)
{
    void *memory = fake_is_short() ? NULL : calloc(1, size);
    fake.live += memory != NULL;
    return memory;
}

void *rli_realloc(void *memory, size_t size)
{
    void *grown = fake_is_short() ? NULL : realloc(memory, size);
    fake.live += grown && !memory;
    return grown;
}

void rli_free(void *memory)
{
    fake.live -= memory != NULL;
    free(memory);
}

/* For the test itself: memory that is never short, to be freed with rli_free. */
static inline void *fake_calloc(size_t size)
{
    void *memory = calloc(1, size);
    assert_non_null(memory);
    fake.live++;
    return memory;
}

rli_instant rli_now(void)
{
    return fake.now;
}

struct rli_guard {
    bool forked;
};

struct rli_guard *rli_guard_new(void)
{
    return rli_calloc(sizeof(struct rli_guard));
}

void rli_guard_free(struct rli_guard *guard)
{
    rli_free(guard);
}

bool rli_guard_forked(const struct rli_guard *guard)
{
    return guard->forked;
}

void rli_guard_random(struct rli_guard *guard, void *bytes, size_t size)
{
    (void)guard;
    for (size_t i = 0; i < size; i++)
        ((unsigned char *)bytes)[i] = (unsigned char)random_of(&fake.seed);
}

struct rli_waker {
    int unused;
};

struct rli_waker *rli_waker_new(void)
{
    return rli_calloc(sizeof(struct rli_waker));
}

void rli_waker_drop(struct rli_waker *waker)
{
    rli_free(waker);
}

/* Nobody waits on a descriptor here. */
int rli_alarm_new(void)
{
    return -1;
}

void rli_alarm_wait(int alarm, rli_instant until)
{
    (void)alarm, (void)until;
}

void rli_alarm_set(int alarm, rli_instant at)
{
    (void)alarm, (void)at;
}

void rli_alarm_free(int alarm)
{
    (void)alarm;
}

/* An address is the text "HOST:PORT" or the path. */
static inline void fake_address(struct rli_address *ret, const char *host, uint16_t port)
{
    memset(ret, 0, sizeof *ret);
    ret->size = (uint32_t)snprintf((char *)ret->bytes, sizeof ret->bytes, "%s:%u", host, port);
}

bool rli_address_numeric(const char *host, uint16_t port, struct rli_address *ret)
{
    if ((host[0] < '0' || host[0] > '9') && !strchr(host, ':'))
        return false;
    fake_address(ret, host, port);
    return true;
}

bool rli_address_unix(const char *path, struct rli_address *ret)
{
    memset(ret, 0, sizeof *ret);
    ret->size = (uint32_t)snprintf((char *)ret->bytes, sizeof ret->bytes, "%s", path);
    return true;
}

#endif
