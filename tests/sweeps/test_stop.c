/* test_stop.c - rl_client_stop at every n-th wait of a blocking call. (Its like on a loop, rl_op_cancel and rl_async_free after every event,
 * is event/test_cancel.c.)
 *
 * The linker gives us the library's poll and recv (--wrap): they stop the client, as another thread would, while the library waits. */
#include "../real/real.h"

#include <poll.h>
#include <sys/socket.h>

static struct {
    rl_client *client; /* NULL: not now */
    int count, stop_at;
    bool stopped;
} waits;

int __real_poll(struct pollfd *fds, nfds_t count, int timeout);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout);
ssize_t __real_recv(int fd, void *bytes, size_t size, int flags);
ssize_t __wrap_recv(int fd, void *bytes, size_t size, int flags);

static void before_a_wait(void)
{
    rl_client *client = waits.client;
    if (client && ++waits.count == waits.stop_at) {
        waits.client = NULL; /* stopping may wait as well */
        rl_client_stop(client);
        waits.stopped = true;
        waits.client = client;
    }
}

int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout)
{
    before_a_wait();
    return __real_poll(fds, count, timeout);
}

ssize_t __wrap_recv(int fd, void *bytes, size_t size, int flags)
{
    if (!(flags & MSG_DONTWAIT))
        before_a_wait();
    return __real_recv(fd, bytes, size, flags);
}

/* Returns whether the client was stopped meanwhile. */
static bool acquire_stopped_at(const char *urls, bool contended, bool warm, int at)
{
    rl_client *client = patient(urls);
    rl_lock *lock = NULL;
    if (warm)
        warm_up(client);
    for (int i = 0; contended && i < 2; i++)
        ts_set_px(p.at[i], "rl:job", foreign, LONG);
    waits.client = client;
    waits.count = 0;
    waits.stop_at = at;
    waits.stopped = false;
    int rc = rl_acquire(client, "job", LONG, contended ? RL_FOREVER : 0, &lock);
    waits.client = NULL;
    ts_check(rc == RL_OK || (waits.stopped && rc == RL_CANCELED), "stopped at %d: %s", at, rl_strstatus(rc));
    ts_check((lock != NULL) == (rc == RL_OK), "a handle with %s", rl_strstatus(rc));
    if (lock) {
        ts_equal(rl_extend(lock, LONG, NULL), RL_OK); /* they go on working */
        ts_equal(rl_release(lock), RL_OK);
    }
    if (waits.stopped)
        ts_equal(rl_acquire(client, "job", LONG, 0, &lock), RL_CANCELED);
    for (int i = 0; contended && i < 2; i++)
        ts_check(ts_holds(p.at[i], "rl:job", foreign) && ts_del(p.at[i], "rl:job"), "the other's key was touched");
    rl_client_free(client);
    check_gone("rl:job");
    return waits.stopped;
}

static void sweep(const char *urls, const char *label)
{
    ts_time_limit(60);
    for (int warm = 0; warm < 2; warm++) {
        int at = 1;
        while (at < 100 && acquire_stopped_at(urls, false, warm, at))
            at++;
        printf("%s, %s: %d waits\n", label, warm ? "warm" : "cold", at - 1);
        ts_between(at, 2, 99);
    }
}

static void one_node(void **state)
{
    (void)state;
    sweep(ts_server_url(P1), "N = 1");
}

static void three_nodes(void **state)
{
    (void)state;
    sweep(p.urls, "N = 3");
}

static void a_contended_lock(void **state)
{
    (void)state;
    ts_time_limit(60);
    for (int at = 1; at <= 40; at++)
        ts_check(acquire_stopped_at(p.urls, true, at % 2, at), "it came back before");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        REAL_TEST(one_node),
        REAL_TEST(three_nodes),
        REAL_TEST(a_contended_lock),
    };
    return REAL_RUN("sweeps-stop", tests);
}
