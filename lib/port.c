/* port.c - see port.h. */
#include "port.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

void *rli_calloc(size_t size)
{
    return calloc(1, size);
}

void *rli_realloc(void *memory, size_t size)
{
    return realloc(memory, size);
}

void rli_free(void *memory)
{
    free(memory);
}

rli_instant rli_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 * RLI_MS + now.tv_nsec;
}

/* ---- Fork guard and random bytes ------------------------------------------------------------------------------------------- */

enum { POOL = 2048, PAGE = 4096 };

struct rli_guard {
    uint32_t alive; /* wiped to 0 in a child */
    pid_t pid;      /* where the kernel cannot wipe (before 4.14): compared instead; else 0 */
    size_t left;    /* bytes of the pool not yet drawn */
    unsigned char pool[POOL];
};
_Static_assert(sizeof(struct rli_guard) <= PAGE, "the guard fits its page");

struct rli_guard *rli_guard_new(void)
{
    struct rli_guard *guard = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (guard == MAP_FAILED)
        return NULL;
    if (madvise(guard, PAGE, MADV_WIPEONFORK) != 0)
        guard->pid = getpid();
    guard->alive = 1;
    return guard;
}

void rli_guard_free(struct rli_guard *guard)
{
    if (guard)
        munmap(guard, PAGE);
}

bool rli_guard_forked(const struct rli_guard *guard)
{
    return !guard->alive || (guard->pid && guard->pid != getpid());
}

static void refill(struct rli_guard *guard)
{
    size_t got = 0;
    while (got < POOL) { /* blocks only before the kernel's generator is seeded, early at boot */
        ssize_t n = getrandom(guard->pool + got, POOL - got, 0);
        if (n > 0)
            got += (size_t)n;
    }
    guard->left = POOL;
}

void rli_guard_random(struct rli_guard *guard, void *bytes, size_t size)
{
    if (guard->left < size)
        refill(guard);
    guard->left -= size;
    memcpy(bytes, guard->pool + guard->left, size);
    memset(guard->pool + guard->left, 0, size);
}

/* ---- Addresses ---------------------------------------------------------------------------------------------------------------- */

static bool address_copy(struct rli_address *ret, const void *address, size_t size)
{
    if (size > sizeof ret->bytes)
        return false;
    memset(ret, 0, sizeof *ret);
    memcpy(ret->bytes, address, size);
    ret->size = (uint32_t)size;
    return true;
}

static int look_up(const char *host, uint16_t port, int flags, struct rli_address *ret, uint32_t room, uint32_t *ret_count)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = flags | AI_NUMERICSERV}, *list;
    char service[8];

    *ret_count = 0;
    snprintf(service, sizeof service, "%u", port);
    int rc = getaddrinfo(host, service, &hints, &list);
    if (rc != 0)
        return rc;
    for (struct addrinfo *a = list; a && *ret_count < room; a = a->ai_next)
        *ret_count += address_copy(&ret[*ret_count], a->ai_addr, a->ai_addrlen);
    freeaddrinfo(list);
    return *ret_count ? 0 : EAI_NONAME;
}

bool rli_address_numeric(const char *host, uint16_t port, struct rli_address *ret)
{
    uint32_t count;
    return look_up(host, port, AI_NUMERICHOST, ret, 1, &count) == 0;
}

bool rli_address_unix(const char *path, struct rli_address *ret)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};

    if (strlen(path) >= sizeof un.sun_path)
        return false;
    memcpy(un.sun_path, path, strlen(path) + 1);
    return address_copy(ret, &un, offsetof(struct sockaddr_un, sun_path) + strlen(path) + 1);
}

/* ---- Alarms -------------------------------------------------------------------------------------------------------------------- */

int rli_alarm_new(void)
{
    return timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
}

void rli_alarm_set(int alarm, rli_instant at)
{
    int64_t ns = rli_max(at, 1); /* 0 would disarm it */
    struct itimerspec when = {.it_value = {.tv_sec = ns / (1000 * RLI_MS), .tv_nsec = ns % (1000 * RLI_MS)}};

    timerfd_settime(alarm, TFD_TIMER_ABSTIME, &when, NULL);
}

/* poll(2) does not count suspended time: a wait is in pieces of at most 1 s. */
void rli_alarm_wait(int alarm, rli_instant until)
{
    struct pollfd wait = {.fd = alarm, .events = POLLIN};
    rli_span left;

    do {
        left = rli_max(rli_until(until, rli_now()), 0);
        if (poll(&wait, 1, (int)rli_to_ms_ceil(rli_min(left, 1000 * RLI_MS))) > 0)
            return;
    } while (left > 0);
}

void rli_alarm_free(int alarm)
{
    close(alarm);
}

/* ---- Waker -------------------------------------------------------------------------------------------------------------------- */

struct rli_waker {
    atomic_uint refs;
    atomic_bool woken; /* since the last clear */
    int fd;
    rli_instant set; /* when it will ring; RLI_NEVER = not set */
};

struct rli_waker *rli_waker_new(void)
{
    struct rli_waker *waker = calloc(1, sizeof *waker);

    if (!waker)
        return NULL;
    waker->fd = rli_alarm_new();
    if (waker->fd < 0) {
        free(waker);
        return NULL;
    }
    waker->set = RLI_NEVER;
    atomic_init(&waker->refs, 1);
    atomic_init(&waker->woken, false);
    return waker;
}

int rli_waker_fd(const struct rli_waker *waker)
{
    return waker->fd;
}

void rli_waker_set(struct rli_waker *waker, rli_instant at)
{
    if (at >= waker->set)
        return;
    waker->set = at;
    rli_alarm_set(waker->fd, at);
    if (atomic_load(&waker->woken)) /* meanwhile, and this may have undone it */
        rli_alarm_set(waker->fd, 1);
}

void rli_waker_wake(struct rli_waker *waker)
{
    atomic_store(&waker->woken, true);
    rli_alarm_set(waker->fd, 1);
}

void rli_waker_clear(struct rli_waker *waker)
{
    uint64_t count;
    ssize_t n;

    atomic_store(&waker->woken, false);
    waker->set = RLI_NEVER;
    do
        n = read(waker->fd, &count, sizeof count);
    while (n < 0 && errno == EINTR);
}

void rli_waker_drop(struct rli_waker *waker)
{
    if (waker && atomic_fetch_sub(&waker->refs, 1) == 1) {
        close(waker->fd);
        free(waker);
    }
}

/* ---- Look-up ------------------------------------------------------------------------------------------------------------------ */

struct rli_lookup { /* shared by the thread and the node that waits for it; the last one frees it */
    atomic_uint refs;
    atomic_bool done;
    struct rli_waker *waker;
    uint16_t port;
    uint32_t count;
    const char *error;
    struct rli_address addresses[RLI_MAX_ADDRESSES];
    char host[];
};

static void *look_up_thread(void *arg)
{
    struct rli_lookup *lookup = arg;
    int rc = look_up(lookup->host, lookup->port, 0, lookup->addresses, RLI_MAX_ADDRESSES, &lookup->count);

    if (rc != 0)
        lookup->error = gai_strerror(rc);
    atomic_store(&lookup->done, true);
    rli_waker_wake(lookup->waker);
    rli_lookup_drop(lookup);
    return NULL;
}

bool rli_thread_start(void *(*run)(void *), void *arg, pthread_t *ret)
{
    sigset_t all, before;
    int rc;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = pthread_create(ret, NULL, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc == 0;
}

static bool start_detached(void *(*run)(void *), void *arg)
{
    pthread_t thread;

    if (!rli_thread_start(run, arg, &thread))
        return false;
    pthread_detach(thread);
    return true;
}

struct rli_lookup *rli_lookup_start(struct rli_waker *waker, const char *host, uint16_t port)
{
    size_t length = strlen(host) + 1;
    struct rli_lookup *lookup = calloc(1, sizeof *lookup + length);

    if (!lookup)
        return NULL;
    memcpy(lookup->host, host, length);
    lookup->port = port;
    lookup->waker = waker;
    atomic_fetch_add(&waker->refs, 1);
    atomic_init(&lookup->refs, 2);
    if (start_detached(look_up_thread, lookup))
        return lookup;
    rli_waker_drop(waker);
    free(lookup);
    return NULL;
}

bool rli_lookup_done(struct rli_lookup *lookup, struct rli_address *ret, uint32_t *ret_count, const char **ret_error)
{
    if (!atomic_load(&lookup->done))
        return false;
    memcpy(ret, lookup->addresses, lookup->count * sizeof *ret);
    *ret_count = lookup->count;
    *ret_error = lookup->error;
    return true;
}

void rli_lookup_drop(struct rli_lookup *lookup)
{
    if (lookup && atomic_fetch_sub(&lookup->refs, 1) == 1) {
        rli_waker_drop(lookup->waker);
        free(lookup);
    }
}
