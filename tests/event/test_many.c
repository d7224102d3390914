/* test_many.c - thousands of operations at once on one loop: one connection per node, one write per node and turn, no memory lost.
 */
#include "event.h"
#include "memory.h"

#include <dlfcn.h>
#include <sys/epoll.h>
#include <sys/socket.h>

/* ---- The library's writes, and the turns of the loop --------------------------------------------------------------------------- */

enum { MAX_FD = 1024 };
static struct {
    int64_t turns, sends, bytes;
    int64_t turn_of[MAX_FD]; /* in which turn this descriptor was last written to, and whether it took all */
    int64_t twice;           /* a descriptor was written to twice in a turn, without need */
} seen;

static void note_send(int fd, size_t size, ssize_t sent)
{
    seen.sends++;
    if (sent > 0)
        seen.bytes += sent;
    if (fd < 0 || fd >= MAX_FD)
        return;
    seen.twice += seen.turn_of[fd] == seen.turns;
    seen.turn_of[fd] = sent == (ssize_t)size ? seen.turns : -1;
}

typedef ssize_t send_fn(int, const void *, size_t, int);
typedef int epoll_wait_fn(int, struct epoll_event *, int, int);

ssize_t send(int fd, const void *bytes, size_t size, int flags)
{
    static send_fn *real;
    if (!real) {
        void *symbol = dlsym(RTLD_NEXT, "send");
        memcpy(&real, &symbol, sizeof real); /* a data pointer may not be cast to a function */
    }
    ssize_t sent = real(fd, bytes, size, flags);
    note_send(fd, size, sent);
    return sent;
}

int epoll_wait(int epoll, struct epoll_event *events, int most, int timeout)
{
    static epoll_wait_fn *real;
    if (!real) {
        void *symbol = dlsym(RTLD_NEXT, "epoll_wait");
        memcpy(&real, &symbol, sizeof real);
    }
    seen.turns++;
    return real(epoll, events, most, timeout);
}

/* ---- Many at once --------------------------------------------------------------------------------------------------------------- */

static int ended; /* callbacks so far */

static void count_it(struct call *call)
{
    (void)call;
    ended++;
}

static struct call *calls_new(int count)
{
    struct call *calls = calloc((size_t)count, sizeof *calls);
    assert_non_null(calls);
    for (int i = 0; i < count; i++)
        calls[i].then = count_it;
    ended = 0;
    return calls;
}

static void all_ended(struct loop *loop, const struct call *calls, int count, int status)
{
    AWAIT(loop, ended == count);
    for (int i = 0; i < count; i++) {
        ts_equal(calls[i].times, 1);
        ts_check(calls[i].status == status, "%d: %s", i, rl_strstatus(calls[i].status));
    }
}

static rl_lock **acquire_many(struct loop *loop, int count)
{
    struct call *calls = calls_new(count);
    rl_lock **locks = calloc((size_t)count, sizeof(rl_lock *));
    assert_non_null(locks);
    for (int i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "many-%d", i);
        start_acquire(loop->async, name, LONG * 10, 0, &calls[i]);
    }
    all_ended(loop, calls, count, RL_OK);
    for (int i = 0; i < count; i++)
        locks[i] = calls[i].lock;
    free(calls);
    return locks;
}

static void extend_many(struct loop *loop, rl_lock **locks, int count)
{
    struct call *calls = calls_new(count);
    for (int i = 0; i < count; i++)
        start_extend(locks[i], LONG * 10, &calls[i]);
    all_ended(loop, calls, count, RL_OK);
    free(calls);
}

static void release_many(struct loop *loop, rl_lock **locks, int count)
{
    struct call *calls = calls_new(count);
    for (int i = 0; i < count; i++)
        start_release(locks[i], &calls[i]);
    all_ended(loop, calls, count, RL_OK);
    free(calls);
    free(locks);
}

static int64_t connections(ts_server *server)
{
    return ts_info_int(server, "total_connections_received");
}

static void many(const char *urls, int nodes, int count)
{
    struct loop loop;
    int64_t before[3], start = ts_mono_ms();
    ts_time_limit(60);
    for (int i = 0; i < nodes; i++)
        before[i] = connections(p.at[i]);
    loop_start(&loop, urls, 4 * SOON);
    rl_lock **locks = acquire_many(&loop, count);
    extend_many(&loop, locks, count);
    release_many(&loop, locks, count);
    await_empty(&loop);
    for (int i = 0; i < nodes; i++)
        ts_equal(connections(p.at[i]) - before[i], 1);
    loop_end(&loop);
    printf("N = %d: %d acquired, extended and released in %lld ms\n", nodes, count, (long long)(ts_mono_ms() - start));
}

static void thousands_at_once(void **state)
{
    (void)state;
    many(ts_server_url(P1), 1, 1000);
    many(p.urls, 3, 1000);
}

static void tens_of_thousands_at_once(void **state)
{
    (void)state;
    many(ts_server_url(P1), 1, 20000);
    many(p.urls, 3, 20000);
}

/* However many requests there are, a turn of the loop writes to a node once. */
static void one_write_per_node_and_turn(void **state)
{
    (void)state;
    enum { COUNT = 1000 };
    struct loop loop;
    loop_start(&loop, p.urls, 4 * SOON);
    warm_async(&loop);
    memset(&seen, 0, sizeof seen);
    seen.turns = 1;
    rl_lock **locks = acquire_many(&loop, COUNT);
    int64_t sends = seen.sends, turns = seen.turns;
    release_many(&loop, locks, COUNT);
    printf("%d acquired in %lld turns, %lld writes of the library\n", COUNT, (long long)turns, (long long)sends);
    if (seen.turns < 2) {
        printf("(libevent does not wait by epoll_wait here: turns are not seen)\n");
    } else {
        ts_equal(seen.twice, 0);
        ts_between(sends, 3, 3 * turns + 9);
    }
    await_empty(&loop);
    loop_end(&loop);
}

static void release_it(struct call *call)
{
    ended++;
    start_release(call->lock, NULL);
    call->lock = NULL;
}

/* Each waits for all others; each gets it. */
static void many_wait_for_one_lock(void **state)
{
    (void)state;
    enum { COUNT = 100 };
    struct loop loop;
    ts_time_limit(60);
    loop_start(&loop, ts_server_url(P1), 4 * SOON);
    struct call *calls = calls_new(COUNT);
    for (int i = 0; i < COUNT; i++) {
        calls[i].then = release_it;
        start_acquire(loop.async, "one", LONG, RL_FOREVER, &calls[i]);
    }
    all_ended(&loop, calls, COUNT, RL_OK);
    free(calls);
    await_empty(&loop);
    loop_end(&loop);
}

static void clients_come_and_go(int count)
{
    for (int i = 0; i < count; i++) {
        struct loop loop;
        loop_start(&loop, p.urls, SOON);
        rl_lock **locks = acquire_many(&loop, 20);
        release_many(&loop, locks, 20);
        loop_end(&loop);
    }
}

static void memory_is_given_back(void **state)
{
    (void)state;
    clients_come_and_go(20);
    int64_t before = rss_kb();
    clients_come_and_go(100);
    int64_t after = rss_kb();
    printf("RSS %lld KB, after 100 clients more %lld KB\n", (long long)before, (long long)after);
    ts_check(!rss_counts() || after - before < 512, "memory grew");
    check_empty();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        REAL_TEST(thousands_at_once),      REAL_TEST(tens_of_thousands_at_once), REAL_TEST(one_write_per_node_and_turn),
        REAL_TEST(many_wait_for_one_lock), REAL_TEST(memory_is_given_back),
    };
    return REAL_RUN("event-many", tests);
}
