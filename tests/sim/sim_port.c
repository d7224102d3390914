/* sim_port.c - the library's port in a simulated world: its clock is the running client's, its random bytes come from the seed. */
#include "port.h"

#include "world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int64_t sim_allocated; /* blocks that are not freed */

void *rli_calloc(size_t size)
{
    sim_allocated++;
    return calloc(1, size);
}

void *rli_realloc(void *memory, size_t size)
{
    sim_allocated += !memory;
    return realloc(memory, size);
}

void rli_free(void *memory)
{
    sim_allocated -= memory != NULL;
    free(memory);
}

rli_instant rli_now(void)
{
    rli_instant now = client_clock(client_current(), client_present());

    client_saw(now);
    if (one_in(4000)) /* stopped right after it looked at the clock */
        client_stumble(between(1, 400) * MS);
    return now;
}

struct rli_guard {
    char nothing;
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
    (void)guard;
    return false;
}

void rli_guard_random(struct rli_guard *guard, void *bytes, size_t size)
{
    (void)guard;
    for (size_t i = 0; i < size; i++)
        ((unsigned char *)bytes)[i] = (unsigned char)chance_bits();
}

/* Servers are 10.0.0.1, 10.0.0.2, ...; the address is the server's number. */
bool rli_address_numeric(const char *host, uint16_t port, struct rli_address *ret)
{
    int server;

    (void)port;
    if (sscanf(host, "10.0.0.%d", &server) != 1)
        return false;
    memset(ret, 0, sizeof *ret);
    ret->size = 1;
    ret->bytes[0] = (unsigned char)server;
    return true;
}

bool rli_address_unix(const char *path, struct rli_address *ret)
{
    (void)path, (void)ret;
    return false;
}

struct rli_waker {
    char nothing;
};

struct rli_waker *rli_waker_new(void)
{
    return rli_calloc(sizeof(struct rli_waker));
}

void rli_waker_set(struct rli_waker *waker, rli_instant at)
{
    (void)waker;
    client_alarm(at);
}

int rli_waker_fd(const struct rli_waker *waker)
{
    (void)waker;
    return -1;
}

void rli_waker_wake(struct rli_waker *waker)
{
    (void)waker;
}

void rli_waker_clear(struct rli_waker *waker)
{
    (void)waker;
}

void rli_waker_drop(struct rli_waker *waker)
{
    rli_free(waker);
}

/* Of the blocking front, which is not simulated. */
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

struct rli_lookup *rli_lookup_start(struct rli_waker *waker, const char *host, uint16_t port)
{
    (void)waker, (void)host, (void)port;
    return NULL;
}

bool rli_lookup_done(struct rli_lookup *lookup, struct rli_address *ret, uint32_t *ret_count, const char **ret_error)
{
    (void)lookup, (void)ret, (void)ret_count, (void)ret_error;
    return false;
}

void rli_lookup_drop(struct rli_lookup *lookup)
{
    (void)lookup;
}
