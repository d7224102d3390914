/* resolver.h - a getaddrinfo of the test's own, which the library finds before the C library's:
 *
 *     *.none.test    is unknown
 *     *.stall.test   is answered after 5 s, or when stall_end is called: 127.0.0.1
 *     *.two.test     has the addresses 127.0.0.2 (where nobody listens) and 127.0.0.1
 *     all others     as ever
 */
#ifndef RLT_RESOLVER_H
#define RLT_RESOLVER_H

#include <dlfcn.h>
#include <netdb.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t ended;
    bool end;
    atomic_int asked, answered; /* for names of .stall.test */
} stall = {.mutex = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER};

static inline void stall_begin(void)
{
    pthread_mutex_lock(&stall.mutex);
    stall.end = false;
    stall.asked = stall.answered = 0;
    pthread_mutex_unlock(&stall.mutex);
}

static inline void stall_end(void)
{
    pthread_mutex_lock(&stall.mutex);
    stall.end = true;
    pthread_cond_broadcast(&stall.ended);
    pthread_mutex_unlock(&stall.mutex);
}

static void stall_wait(void)
{
    struct timespec until;
    int rc = 0;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 5;
    atomic_fetch_add(&stall.asked, 1);
    pthread_mutex_lock(&stall.mutex);
    while (!stall.end && rc == 0)
        rc = pthread_cond_timedwait(&stall.ended, &stall.mutex, &until);
    pthread_mutex_unlock(&stall.mutex);
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

typedef int look_up_fn(const char *, const char *, const struct addrinfo *, struct addrinfo **);

/* The C library's, as a function: a data pointer may not be cast to one. */
static look_up_fn *real_look_up(void)
{
    void *symbol = dlsym(RTLD_NEXT, "getaddrinfo");
    look_up_fn *fn;
    memcpy(&fn, &symbol, sizeof fn);
    return fn;
}

/* Both addresses in one list, as freeaddrinfo takes it. */
static int look_up_two(look_up_fn *real, const char *service, const struct addrinfo *hints, struct addrinfo **ret)
{
    struct addrinfo *second;
    int rc = real("127.0.0.2", service, hints, ret);

    if (rc != 0)
        return rc;
    rc = real("127.0.0.1", service, hints, &second);
    if (rc == 0)
        (*ret)->ai_next = second;
    else
        freeaddrinfo(*ret);
    return rc;
}

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **ret)
{
    look_up_fn *real = real_look_up();

    if (!node || !hints || hints->ai_flags & AI_NUMERICHOST)
        return real(node, service, hints, ret);
    if (ends_with(node, ".none.test"))
        return EAI_NONAME;
    if (ends_with(node, ".two.test"))
        return look_up_two(real, service, hints, ret);
    if (!ends_with(node, ".stall.test"))
        return real(node, service, hints, ret);
    stall_wait();
    int rc = real("127.0.0.1", service, hints, ret);
    atomic_fetch_add(&stall.answered, 1);
    return rc;
}

#endif
