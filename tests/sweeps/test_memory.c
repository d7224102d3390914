/* test_memory.c - every n-th allocation fails, and every one from the n-th on: those of the library, of hiredis and of libevent, on both
 * fronts. Each call says so truthfully, nothing leaks, no key is left behind.
 *
 * The linker gives us the calls of what is linked into this program (--wrap); libevent hands us its own (event_set_mem_functions). */
#include "session.h"

static struct {
    bool counting; /* the library is at work: its allocations count */
    int count;     /* so many so far */
    int fail_at;   /* 0: none */
    bool fail_on;  /* all the later ones, too */
    int failed;    /* so many were refused */
    int64_t live;  /* blocks that are not freed yet */
} memory;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void __real_free(void *block);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);
void __wrap_free(void *block);

static bool refused_now(void)
{
    if (!memory.counting)
        return false;
    memory.count++;
    bool refuse = memory.fail_at && (memory.fail_on ? memory.count >= memory.fail_at : memory.count == memory.fail_at);
    memory.failed += refuse;
    return refuse;
}

static void *made(void *block)
{
    memory.live += memory.counting && block;
    return block;
}

void *__wrap_malloc(size_t size)
{
    return refused_now() ? NULL : made(__real_malloc(size));
}

void *__wrap_calloc(size_t count, size_t size)
{
    return refused_now() ? NULL : made(__real_calloc(count, size));
}

void *__wrap_realloc(void *block, size_t size)
{
    if (refused_now())
        return NULL;
    return block ? __real_realloc(block, size) : made(__real_realloc(block, size));
}

void __wrap_free(void *block)
{
    memory.live -= memory.counting && block;
    __real_free(block);
}

/* ---- One run ----------------------------------------------------------------------------------------------------------------- */

struct run {
    bool event;
    int nodes;
    int fail_at;
    bool fail_on;
};

static const char *urls_of(const struct run *run)
{
    return run->nodes == 1 ? ts_server_url(P1) : p.urls;
}

/* Nobody else wants the lock and it is not lost: all that may go wrong is memory, here or on the way to a node. */
static bool is_right(int status)
{
    return status == RL_OK || status == RL_E_NO_MEMORY || status == RL_E_NO_QUORUM;
}

#define check_right(run, call, status)                                                                                             \
    ts_check(is_right(status) && ((status) == RL_OK || memory.failed), "%s N = %d, allocation %d%s: %s: %s",                       \
             (run)->event ? "event" : "blocking", (run)->nodes, (run)->fail_at, (run)->fail_on ? " and on" : "", call,             \
             rl_strstatus(status))

static void use(const struct run *run, struct session *session)
{
    rl_lock *lock;
    int rc;
    if (!run->event) {
        rc = rl_client_check(session->client, NULL);
        check_right(run, "check", rc);
    }
    rc = session_acquire(session, "job", LONG, 0, &lock);
    check_right(run, "acquire", rc);
    ts_check((lock != NULL) == (rc == RL_OK), "a handle with %s", rl_strstatus(rc));
    if (!lock)
        return;
    rc = session_extend(session, lock, LONG);
    check_right(run, "extend", rc);
    rc = session_release(session, lock);
    check_right(run, "release", rc);
    ts_check(!run->event || rc != RL_E_NO_MEMORY, "a release of the event front ran out of memory");
}

/* A release that finds no operation to be used again: the loop's, while an extension runs. It cannot run out of memory. */
static void release_during_extension(const struct run *run, struct session *session)
{
    struct call extension = {0}, end = {0};
    rl_lock *lock;
    int rc = session_acquire(session, "job", LONG, 0, &lock);
    check_right(run, "acquire", rc);
    if (!lock)
        return;
    rc = try_extend(lock, LONG, &extension);
    check_right(run, "extend", rc);
    start_release(lock, &end);
    AWAIT(&session->loop, end.times && (rc != RL_OK || extension.times));
    check_right(run, "release", end.status);
    ts_check(end.status != RL_E_NO_MEMORY, "a release of the event front ran out of memory");
    ts_check(rc != RL_OK || extension.status == RL_CANCELED, "extend: %s", rl_strstatus(extension.status));
    ts_equal(end.times, 1);
}

/* With memory again, everything works as before. */
static void use_again(const struct run *run, struct session *session)
{
    rl_lock *lock;
    int rc = session_acquire(session, "job", LONG, SOON, &lock);
    ts_check(rc == RL_OK, "allocation %d: afterwards: %s", run->fail_at, rl_strstatus(rc));
    ts_equal(session_release(session, lock), RL_OK);
}

/* Returns whether there was an allocation to fail. */
static bool run_once(const struct run *run)
{
    rl_options options = options_with(SOON, 300);
    struct session session;
    memory.live = 0;
    memory.counting = true;
    session_begin(&session, run->event); /* the base keeps some of what libevent allocates for the client */
    memory.count = memory.failed = 0;
    memory.fail_at = run->fail_at;
    memory.fail_on = run->fail_on;
    int rc = session_new(&session, urls_of(run), &options);
    check_right(run, "new", rc);
    ts_check(rc != RL_E_NO_QUORUM, "new: %s", rl_strstatus(rc));
    if (rc == RL_OK)
        use(run, &session);
    if (rc == RL_OK && run->event)
        release_during_extension(run, &session);
    bool failed = memory.failed > 0;
    memory.fail_at = 0;
    if (rc == RL_OK)
        use_again(run, &session);
    session_end(&session);
    memory.counting = false;
    ts_check(memory.live == 0, "%s N = %d, allocation %d%s: %d blocks leaked", run->event ? "event" : "blocking", run->nodes,
             run->fail_at, run->fail_on ? " and on" : "", (int)memory.live);
    ts_check(ts_eventually(SOON, servers_empty, NULL), "%s N = %d, allocation %d%s: %d keys are left",
             run->event ? "event" : "blocking", run->nodes, run->fail_at, run->fail_on ? " and on" : "", keys_on_servers());
    return failed;
}

static void sweep(bool event, int nodes, bool fail_on)
{
    struct run run = {event, nodes, 0, fail_on};
    run_once(&run); /* without a failure; what libevent keeps for good is there after it */
    int allocations = memory.count;
    ts_time_limit(100);
    for (run.fail_at = 1; run_once(&run); run.fail_at++)
        ;
    printf("%s, N = %d, %s: %d allocations without a failure, %d swept\n", event ? "event" : "blocking", nodes,
           fail_on ? "all from the n-th on" : "the n-th alone", allocations, run.fail_at - 1);
    ts_check(run.fail_at > allocations / 2, "only %d of %d", run.fail_at, allocations);
}

static void blocking_one_fails(void **state)
{
    (void)state;
    sweep(false, 1, false);
    sweep(false, 3, false);
}

static void blocking_all_fail(void **state)
{
    (void)state;
    sweep(false, 1, true);
    sweep(false, 3, true);
}

static void event_one_fails(void **state)
{
    (void)state;
    sweep(true, 1, false);
    sweep(true, 3, false);
}

static void event_all_fail(void **state)
{
    (void)state;
    sweep(true, 1, true);
    sweep(true, 3, true);
}

int main(void)
{
    event_set_mem_functions(__wrap_malloc, __wrap_realloc, __wrap_free);
    const struct CMUnitTest tests[] = {
        REAL_TEST(blocking_one_fails),
        REAL_TEST(blocking_all_fail),
        REAL_TEST(event_one_fails),
        REAL_TEST(event_all_fail),
    };
    return REAL_RUN("sweeps-memory", tests);
}
