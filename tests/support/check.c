/* check.c - see check.h.
 */
#include "check.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- Failing --------------------------------------------------------------------------------------------------------------- */

void ts_fail_at(const char *file, int line, const char *format, ...)
{
    char text[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    print_error("ERROR: %s\n", text);
    _fail(file, line);
    abort(); /* _fail does not return */
}

void ts_equal_at(const char *file, int line, const char *what, int64_t actual, int64_t expected)
{
    if (actual != expected) {
        ts_fail_at(file, line, "%s is %lld, expected %lld", what, (long long)actual, (long long)expected);
    }
}

void ts_between_at(const char *file, int line, const char *what, int64_t actual, int64_t low, int64_t high)
{
    if (actual < low || actual > high) {
        ts_fail_at(file, line, "%s is %lld, expected %lld .. %lld", what, (long long)actual, (long long)low, (long long)high);
    }
}

/* ---- Time ------------------------------------------------------------------------------------------------------------------ */

static int64_t clock_ms(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t ts_now_ms(void)
{
    return clock_ms(CLOCK_BOOTTIME);
}

int64_t ts_mono_ms(void)
{
    return clock_ms(CLOCK_MONOTONIC);
}

void ts_sleep_ms(int64_t ms)
{
    if (ms <= 0) {
        return;
    }
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)(ms / 1000);
    until.tv_nsec += (long)(ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {
    }
}

bool ts_eventually(int64_t ms, ts_predicate *predicate, void *arg)
{
    int64_t end = ts_mono_ms() + ms * ts_slowness();
    for (;;) {
        bool last = ts_mono_ms() >= end;
        if (predicate(arg)) {
            return true;
        }
        if (last) {
            return false;
        }
        ts_sleep_ms(1);
    }
}

/* ---- Descriptors and threads ----------------------------------------------------------------------------------------------- */

enum { MAX_FD = 65536 };

/* Descriptors of fixtures. Their threads write it while the test's thread reads: hence atomic. */
static _Atomic unsigned char owned[MAX_FD];

void ts_fd_own(int fd)
{
    if (fd >= 0 && fd < MAX_FD) {
        owned[fd] = 1;
    }
}

void ts_fd_close(int fd)
{
    if (fd < 0) {
        return;
    }
    if (fd < MAX_FD) {
        owned[fd] = 0;
    }
    close(fd);
}

/* Counts the entries of a directory of numbers; where `open` is wanted, without the owned ones, and marks them in it. */
static int count_numbers(const char *path, bool descriptors, unsigned char *open)
{
    DIR *dir = opendir(path);
    if (dir == NULL) {
        ts_fail("%s: %s", path, strerror(errno));
    }
    int count = 0;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        char *end;
        long number = strtol(entry->d_name, &end, 10);
        if (end == entry->d_name || *end != '\0') {
            continue;
        }
        if (descriptors && (number == dirfd(dir) || (number < MAX_FD && owned[number]))) {
            continue;
        }
        if (open != NULL && number < MAX_FD) {
            open[number] = 1;
        }
        count++;
    }
    closedir(dir);
    return count;
}

int ts_fd_count(void)
{
    return count_numbers("/proc/self/fd", true, NULL);
}

int ts_thread_count(void)
{
    return count_numbers("/proc/self/task", false, NULL);
}

/* ---- Clean-up -------------------------------------------------------------------------------------------------------------- */

typedef struct cleanup {
    ts_cleanup_fn *fn;
    void *arg;
} cleanup;

static cleanup *cleanups;
static size_t cleanup_count, cleanup_room;
static pid_t cleanup_owner; /* a child that ends by exit() must not stop what is its parent's */

static void run_cleanups(size_t down_to)
{
    while (cleanup_count > down_to) {
        cleanup last = cleanups[--cleanup_count];
        last.fn(last.arg);
    }
}

static void cleanup_at_exit(void)
{
    if (getpid() == cleanup_owner) {
        run_cleanups(0);
        free(cleanups);
        cleanups = NULL;
    }
}

void ts_cleanup_add(ts_cleanup_fn *fn, void *arg)
{
    if (cleanup_owner == 0) {
        atexit(cleanup_at_exit);
    }
    if (cleanup_owner != getpid()) {
        cleanup_owner = getpid();
        cleanup_count = 0;
    }
    if (cleanup_count == cleanup_room) {
        cleanup_room = cleanup_room * 2 + 16;
        cleanups = realloc(cleanups, cleanup_room * sizeof *cleanups);
        if (cleanups == NULL) {
            abort();
        }
    }
    cleanups[cleanup_count++] = (cleanup){fn, arg};
}

void ts_cleanup_remove(void *arg)
{
    for (size_t i = cleanup_count; i > 0; i--) {
        if (cleanups[i - 1].arg == arg) {
            memmove(&cleanups[i - 1], &cleanups[i], (cleanup_count - i) * sizeof *cleanups);
            cleanup_count--;
            return;
        }
    }
}

/* ---- The time limit -------------------------------------------------------------------------------------------------------- */

#define LIMIT_SIGNAL (SIGRTMIN + 9)

static timer_t limit_timer;
static pid_t limit_owner; /* a child inherits no timers */
static const char *test_name = "?";
static char limit_text[256];
static size_t limit_text_len;

static void on_limit(int signal_number)
{
    (void)signal_number;
    ssize_t ignored = write(STDERR_FILENO, limit_text, limit_text_len);
    (void)ignored;
    _exit(TS_TIMED_OUT);
}

static void prepare_limit(void)
{
    struct sigaction action = {0};
    action.sa_handler = on_limit;
    sigemptyset(&action.sa_mask);
    sigaction(LIMIT_SIGNAL, &action, NULL);
    struct sigevent event = {0};
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = LIMIT_SIGNAL;
    if (timer_create(CLOCK_MONOTONIC, &event, &limit_timer) != 0) {
        ts_fail("timer_create: %s", strerror(errno));
    }
    limit_owner = getpid();
}

void ts_time_limit(int seconds)
{
    if (limit_owner != getpid()) {
        if (seconds == 0) {
            return;
        }
        prepare_limit();
    }
    struct itimerspec stop = {0};
    timer_settime(limit_timer, 0, &stop, NULL); /* so that the handler never sees a text half written */
    int n = snprintf(limit_text, sizeof limit_text, "ts: %s: time limit of %d s exceeded\n", test_name, seconds * ts_slowness());
    limit_text_len = n < (int)sizeof limit_text ? (size_t)n : sizeof limit_text - 1;
    struct itimerspec when = {0};
    when.it_value.tv_sec = (time_t)seconds * ts_slowness();
    timer_settime(limit_timer, 0, &when, NULL);
}

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UNDER_TSAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define UNDER_TSAN 1
#endif

static bool under_valgrind(void)
{
    const char *preload = getenv("LD_PRELOAD");
    return preload != NULL && strstr(preload, "/vgpreload_") != NULL;
}

int ts_slowness(void)
{
    const char *text = getenv("RL_TEST_SLOW");
    if (text != NULL) {
        int factor = atoi(text);
        return factor < 1 ? 1 : factor > 100 ? 100 : factor;
    }
    if (under_valgrind()) {
        return 10;
    }
#ifdef UNDER_TSAN
    return 4;
#else
    return 1;
#endif
}

/* ---- Setup and teardown ---------------------------------------------------------------------------------------------------- */

static int fds_before;
static unsigned char open_before[MAX_FD];
static size_t cleanups_before;

int ts_setup(void **state)
{
    (void)state;
    memset(open_before, 0, sizeof open_before);
    fds_before = count_numbers("/proc/self/fd", true, open_before);
    cleanups_before = cleanup_count;
    ts_time_limit(TS_DEFAULT_LIMIT_S);
    return 0;
}

int ts_setup_named(void **state)
{
    test_name = *state;
    *state = NULL;
    return ts_setup(state);
}

static bool fds_are_back(void *arg)
{
    (void)arg;
    return ts_fd_count() <= fds_before;
}

static void name_new_fds(char *text, size_t size)
{
    static unsigned char open_now[MAX_FD];
    memset(open_now, 0, sizeof open_now);
    count_numbers("/proc/self/fd", true, open_now);
    size_t len = 0;
    for (int fd = 0; fd < MAX_FD && len < size; fd++) {
        if (!open_now[fd] || open_before[fd]) {
            continue;
        }
        char link[64], target[128];
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t n = readlink(link, target, sizeof target - 1);
        target[n < 0 ? 0 : n] = '\0';
        len += (size_t)snprintf(text + len, size - len, " %d (%s)", fd, target);
    }
}

int ts_teardown(void **state)
{
    (void)state;
    run_cleanups(cleanups_before);
    /* A thread of the library that looks up a name may outlive its client for a moment. */
    bool back = ts_eventually(500, fds_are_back, NULL);
    ts_time_limit(0);
    test_name = "?";
    if (!back) {
        char text[512] = "";
        name_new_fds(text, sizeof text);
        ts_fail("descriptors left open: %d, new are%s", ts_fd_count() - fds_before, text);
    }
    return 0;
}

int ts_run_group(const char *name, const struct CMUnitTest *tests, size_t count, CMFixtureFunction setup,
                 CMFixtureFunction teardown)
{
    int failed = _cmocka_run_group_tests(name, tests, count, setup, teardown);
    return failed != 0; /* a count could be read as TS_SKIP */
}

void ts_skip_program(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("skipped: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(TS_SKIP);
}

static bool can_run(const char *program)
{
    if (strchr(program, '/') != NULL) {
        return access(program, X_OK) == 0;
    }
    const char *path = getenv("PATH");
    while (path != NULL && *path != '\0') {
        size_t len = strcspn(path, ":");
        char file[PATH_MAX];
        snprintf(file, sizeof file, "%.*s/%s", (int)len, path, program);
        if (access(file, X_OK) == 0) {
            return true;
        }
        path += len + (path[len] == ':');
    }
    return false;
}

void ts_need_server(void)
{
    const char *program = getenv("RL_TEST_SERVER");
    if (program == NULL || *program == '\0') {
        program = "redis-server";
    }
    if (!can_run(program)) {
        ts_skip_program("cannot run %s", program);
    }
}

/* ---- Child processes ------------------------------------------------------------------------------------------------------- */

static void kill_child(void *arg)
{
    pid_t pid = (pid_t)(intptr_t)arg;
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static void run_child(ts_child_fn *fn, void *arg, int out, pid_t parent) __attribute__((noreturn));
static void run_child(ts_child_fn *fn, void *arg, int out, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(127);
    }
    cleanup_owner = getpid();
    cleanup_count = 0;
    /* cmocka would answer a failed assertion by a longjmp into the parent's run of tests. */
    setenv("CMOCKA_TEST_ABORT", "1", 1);
    signal(SIGABRT, SIG_DFL); /* the address sanitizer may have a handler, and an exit status of its own */
    int status = fn(out, arg);
    run_cleanups(0);
    fflush(NULL);
    if (under_valgrind()) {
        /* Or its leak check would blame the child for what is its parent's. */
        char command[32];
        snprintf(command, sizeof command, "exit %d", status & 255);
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    }
    _exit(status);
}

ts_child ts_child_start(ts_child_fn *fn, void *arg)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        ts_fail("pipe: %s", strerror(errno));
    }
    fflush(NULL);
    pid_t parent = getpid(), pid = fork();
    if (pid < 0) {
        ts_fail("fork: %s", strerror(errno));
    }
    if (pid == 0) {
        close(ends[0]);
        run_child(fn, arg, ends[1], parent);
    }
    close(ends[1]);
    ts_fd_own(ends[0]);
    ts_cleanup_add(kill_child, (void *)(intptr_t)pid);
    return (ts_child){pid, ends[0]};
}

/* Reads up to size bytes; returns how many came before the end of the stream or of the time. */
static size_t read_within(int fd, void *bytes, size_t size, int64_t end)
{
    size_t done = 0;
    while (done < size) {
        struct pollfd ready = {fd, POLLIN, 0};
        int64_t left = end - ts_mono_ms();
        int rc = poll(&ready, 1, left < 0 ? 0 : left > 1000 ? 1000 : (int)left);
        if (rc > 0) {
            ssize_t n = read(fd, (char *)bytes + done, size - done);
            if (n == 0 || (n < 0 && errno != EINTR)) {
                break;
            }
            done += n > 0 ? (size_t)n : 0;
        } else if (left <= 0) {
            break;
        }
    }
    return done;
}

void ts_child_read(ts_child *child, void *ret_bytes, size_t size, int64_t ms)
{
    size_t n = read_within(child->in, ret_bytes, size, ts_mono_ms() + ms * ts_slowness());
    ts_check(n == size, "child %d wrote %zu bytes of %zu", (int)child->pid, n, size);
}

int ts_child_wait(ts_child *child, int64_t ms)
{
    int64_t end = ts_mono_ms() + ms * ts_slowness();
    int status = 0;
    pid_t got;
    while ((got = waitpid(child->pid, &status, WNOHANG)) == 0 && ts_mono_ms() < end) {
        ts_sleep_ms(1);
    }
    if (got == 0) {
        kill_child((void *)(intptr_t)child->pid);
    }
    ts_cleanup_remove((void *)(intptr_t)child->pid);
    ts_fd_close(child->in);
    child->in = -1;
    ts_check(got == child->pid, "child %d did not end within %lld ms", (int)child->pid, (long long)ms);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int ts_fork(ts_child_fn *fn, void *arg, void *ret_bytes, size_t size, size_t *ret_len)
{
    enum { LIMIT_MS = 20000 };
    ts_child child = ts_child_start(fn, arg);
    size_t len = read_within(child.in, ret_bytes, size, ts_mono_ms() + (int64_t)LIMIT_MS * ts_slowness());
    if (ret_len != NULL) {
        *ret_len = len;
    }
    return ts_child_wait(&child, LIMIT_MS);
}
