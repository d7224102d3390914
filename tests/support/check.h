/* check.h - what every cmocka test here needs besides its assertions: a limit of time and of descriptors for each test, clocks,
 * waiting for a condition, child processes, and the clean-up of fixtures that a failed test left behind.
 *
 * A test program:
 *
 *     static void works(void **state) { (void)state; ts_server *s = ts_server_start(NULL); ... }
 *     int main(void)
 *     {
 *         const struct CMUnitTest tests[] = {ts_test(works)};
 *         ts_need_server();                       (only where real servers are used)
 *         return ts_run("name", tests);
 *     }
 *
 * Everything of ts_ that cannot do its job fails the running test with a message; so there are few results to look at. The
 * asserting functions and macros belong to the thread that runs the test (or to a child of ts_fork): never to other threads.
 * SIGPIPE keeps its default action: a test dies of it if the library raises one.
 */
#ifndef TS_CHECK_H
#define TS_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <cmocka.h>

/* ---- Running --------------------------------------------------------------------------------------------------------------- */

enum { TS_SKIP = 77, TS_TIMED_OUT = 124, TS_DEFAULT_LIMIT_S = 30 };

/* An entry for the array of tests, with the setup and teardown below. *state is NULL in the test. */
#define ts_test(fn) TS_TEST(fn, #fn)
#define TS_TEST(fn, name)                                                                                                          \
    {                                                                                                                              \
        (name), (fn), ts_setup_named, ts_teardown, (void *)(uintptr_t)(name)                                                       \
    }

/* Runs an array of tests. Returns what main returns. */
#define ts_run(name, tests) ts_run_group((name), (tests), sizeof(tests) / sizeof((tests)[0]), NULL, NULL)
int ts_run_group(const char *name, const struct CMUnitTest *tests, size_t count, CMFixtureFunction setup,
                 CMFixtureFunction teardown);

/* The setup notes the open descriptors and the fixtures, and starts the time limit. The teardown stops the fixtures (servers,
 * proxies, hostile servers) that were started since the setup and are still there, so that no test has to stop what it started;
 * then it fails the test if more descriptors are open than before. Those of fixtures do not count. A test with a setup of its
 * own calls these two from there: ts_setup first, ts_teardown last. */
int ts_setup(void **state);
int ts_setup_named(void **state); /* for ts_test: *state is the name of the test */
int ts_teardown(void **state);

/* Gives the running test `seconds` from now; the default is TS_DEFAULT_LIMIT_S. Past it the program writes a line to stderr and
 * exits with TS_TIMED_OUT. 0 = no limit. Multiplied by ts_slowness. It takes SIGRTMIN+9; SIGALRM is left to the tests. */
void ts_time_limit(int seconds);

/* By how much limits of time are to be stretched: the environment variable RL_TEST_SLOW (1 .. 100), or if unset 10 under valgrind,
 * 4 under the thread sanitizer, else 1. */
int ts_slowness(void);

/* Ends the program with exit status TS_SKIP, which meson reports as skipped, unless the server binary (RL_TEST_SERVER or
 * redis-server) can be run. A skip of cmocka's own counts as a failure in its TAP output. */
void ts_need_server(void);
/* Ends the program with exit status TS_SKIP and this reason on stderr. */
void ts_skip_program(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* ---- Failing --------------------------------------------------------------------------------------------------------------- */

/* Fails the running test. */
#define ts_fail(...) ts_fail_at(__FILE__, __LINE__, __VA_ARGS__)
void ts_fail_at(const char *file, int line, const char *format, ...) __attribute__((noreturn, format(printf, 3, 4)));

/* Fails with this message unless the condition holds: ts_check(n > 3, "n is %d", n). */
#define ts_check(condition, ...)                                                                                                   \
    do {                                                                                                                           \
        if (!(condition)) {                                                                                                        \
            ts_fail_at(__FILE__, __LINE__, __VA_ARGS__);                                                                           \
        }                                                                                                                          \
    } while (0)

/* Like cmocka's assert_int_equal and assert_in_range, but signed, and in decimal when they fail. */
#define ts_equal(actual, expected) ts_equal_at(__FILE__, __LINE__, #actual, (int64_t)(actual), (int64_t)(expected))
#define ts_between(actual, low, high) ts_between_at(__FILE__, __LINE__, #actual, (int64_t)(actual), (int64_t)(low), (int64_t)(high))
void ts_equal_at(const char *file, int line, const char *what, int64_t actual, int64_t expected);
void ts_between_at(const char *file, int line, const char *what, int64_t actual, int64_t low, int64_t high);

/* ---- Time ------------------------------------------------------------------------------------------------------------------ */

int64_t ts_now_ms(void);  /* CLOCK_BOOTTIME, which the library measures with */
int64_t ts_mono_ms(void); /* CLOCK_MONOTONIC */
void ts_sleep_ms(int64_t ms);

/* Asks the predicate every millisecond until it says true; false if it did not within ms, times ts_slowness. So do the ts_wait_
 * functions of the other headers. */
typedef bool ts_predicate(void *arg);
bool ts_eventually(int64_t ms, ts_predicate *predicate, void *arg);

/* ---- Child processes ------------------------------------------------------------------------------------------------------- */

/* What runs in the child. `out` is a pipe to the parent. The result is the exit status (0 .. 255). Leaving it by exit() is fine
 * too. Fixtures of the parent are neither stopped nor freed in the child, and must not be used there (their threads do not
 * exist); their ports and URLs may be. A failing assertion kills the child with SIGABRT, its message on stderr. Where threads
 * run in the parent, the thread sanitizer lets the child start none, unless TSAN_OPTIONS has die_after_fork=0. */
typedef int ts_child_fn(int out, void *arg);
typedef struct ts_child {
    pid_t pid;
    int in; /* reading end of the pipe */
} ts_child;

/* Forks. Every child is to be waited for; those that are not are killed at the end of the test. */
ts_child ts_child_start(ts_child_fn *fn, void *arg);
/* Reads exactly `size` bytes the child wrote; fails the test if they do not come within ms. */
void ts_child_read(ts_child *child, void *ret_bytes, size_t size, int64_t ms);
/* Its exit status, or 128 + the signal that killed it. Fails the test (and kills the child) if it takes longer than ms. */
int ts_child_wait(ts_child *child, int64_t ms);

/* All in one: runs fn in a child, reads what it writes into ret_bytes (at most size; NULL, 0 = nothing wanted), waits for at most
 * 20 s. Returns the status like ts_child_wait. *ret_len (may be NULL): how many bytes came. */
int ts_fork(ts_child_fn *fn, void *arg, void *ret_bytes, size_t size, size_t *ret_len);

/* ---- Descriptors, threads, clean-up: for the other fixtures ---------------------------------------------------------------- */

int ts_fd_count(void);     /* open descriptors of this process, without those of fixtures */
int ts_thread_count(void); /* threads of this process */

void ts_fd_own(int fd);   /* this descriptor is a fixture's: the leak check is to overlook it */
void ts_fd_close(int fd); /* closes such a descriptor; -1 is fine */

/* Registers what stops a fixture that the test did not stop; it runs in the teardown, last come first, or at exit (never in a
 * child). ts_cleanup_remove forgets it. */
typedef void ts_cleanup_fn(void *arg);
void ts_cleanup_add(ts_cleanup_fn *fn, void *arg);
void ts_cleanup_remove(void *arg);

#endif
