/* test_fork.c - what a child finds of its parent's clients and locks: nothing that it could use or break.
 */
#include "real.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- What is inherited ------------------------------------------------------------------------------------------------------------ */

/* Static, so that a leak checker finds it in the child, too. */
static struct {
    rl_client *client;
    rl_lock *lock, *import; /* NULL: there is none */
    rl_report *report;
} in;

enum { MOST_ANSWERS = 32 };

struct answers { /* what the calls in the child returned, by their lines here; and how long all took */
    int count;
    struct {
        int line, rc;
    } bad[MOST_ANSWERS];
    int64_t took_ms;
};

static void want(struct answers *a, int line, int rc, int wanted, int or_else)
{
    if (rc != wanted && rc != or_else && a->count < MOST_ANSWERS) {
        a->bad[a->count].line = line;
        a->bad[a->count++].rc = rc;
    }
}

#define FORKED(rc) want(a, __LINE__, (rc), RL_E_FORKED, RL_E_FORKED)
#define FORKED_OR_INVALID(rc) want(a, __LINE__, (rc), RL_E_FORKED, RL_E_INVALID)
#define INVALID(rc) want(a, __LINE__, (rc), RL_E_INVALID, RL_E_INVALID)
#define ZERO(value) want(a, __LINE__, (value) != 0, 0, 0)

static void use_inherited_client(struct answers *a)
{
    rl_lock *none = (rl_lock *)(uintptr_t)1;
    FORKED(rl_acquire(in.client, "job", LONG, 0, &none));
    ZERO(none != NULL);
    FORKED(rl_acquire(in.client, "job", LONG, RL_FOREVER, &none));
    FORKED(take(in.client, "other", LONG, 0, in.report, &none));
    ZERO(none != NULL);
    FORKED(rl_client_check(in.client, in.report));
    FORKED(rl_client_check(in.client, NULL));
    FORKED(rl_lock_import(in.client, "job", 3, "0123456789abcdef0123456789abcdef", 0, &none));
    ZERO(none != NULL);
    rl_client_stop(in.client);
}

static void use_inherited_handle(struct answers *a, rl_lock *lock)
{
    if (!lock)
        return;
    ZERO(rl_lock_remaining_ms(lock) != 0);
    FORKED(rl_extend(lock, LONG, NULL));
    FORKED(rl_extend(lock, LONG, in.report));
    FORKED(rl_release(lock)); /* which does not consume it: */
    FORKED(rl_release(lock));
    FORKED(rl_release_with(lock, RL_NO_WAIT, in.report));
    FORKED(rl_lock_wait_lost(lock, 0));
    FORKED(rl_lock_wait_lost(lock, RL_FOREVER));
    FORKED(rl_lock_lost_fd(lock));
    FORKED(rl_lock_stop_renewing(lock));
    FORKED_OR_INVALID(rl_lock_touch(lock));
    ZERO(rl_lock_lost_reason(lock));
    rl_lock_free(lock);
    FORKED(rl_extend(lock, LONG, NULL));
    ZERO(rl_lock_remaining_ms(lock) != 0);
}

/* Of the two objects of a fenced write, one inherited is enough. */
static void use_fenced_writes(struct answers *a)
{
    rl_lock *own = NULL;
    rl_client *client = NULL;
    ZERO(rl_client_new("redis://127.0.0.1:1", NULL, &client, NULL));
    ZERO(rl_lock_import(client, "job", 3, "0123456789abcdef0123456789abcdef", 7, &own));
    FORKED(rl_fenced_begin(in.client, "data", 4, own, in.report));
    FORKED(rl_fenced_set(in.client, "data", 4, own, "x", 1, in.report));
    FORKED(rl_fenced_begin(client, "data", 4, in.import, in.report));
    FORKED(rl_fenced_set(client, "data", 4, in.import, "x", 1, in.report));
    FORKED(rl_fenced_begin(in.client, "data", 4, in.import, in.report));
    rl_lock_free(own);
    rl_client_free(client);
}

/* A NULL is always invalid; an inherited object never is something else than forked or invalid. */
static void use_bad_arguments(struct answers *a)
{
    rl_lock *none = NULL;
    INVALID(rl_acquire(NULL, "job", LONG, 0, &none));
    INVALID(rl_acquire_with(NULL, NULL, NULL, NULL));
    INVALID(rl_client_check(NULL, NULL));
    INVALID(rl_extend(NULL, LONG, NULL));
    INVALID(rl_release(NULL));
    INVALID(rl_release_with(NULL, 0, NULL));
    INVALID(rl_lock_wait_lost(NULL, 0));
    INVALID(rl_lock_lost_fd(NULL));
    INVALID(rl_lock_touch(NULL));
    INVALID(rl_lock_stop_renewing(NULL));
    ZERO(rl_lock_lost_reason(NULL));
    INVALID(rl_lock_import(NULL, "job", 3, "0123456789abcdef0123456789abcdef", 0, &none));
    ZERO(rl_lock_remaining_ms(NULL) != 0);
    rl_client_stop(NULL);
    rl_client_free(NULL);
    rl_lock_free(NULL);
    FORKED_OR_INVALID(rl_acquire(in.client, NULL, LONG, 0, &none));
    FORKED_OR_INVALID(rl_acquire(in.client, "", LONG, 0, &none));
    FORKED_OR_INVALID(rl_acquire(in.client, "job", 0, 0, &none));
    FORKED_OR_INVALID(rl_acquire(in.client, "job", LONG, 0, NULL));
    FORKED_OR_INVALID(rl_acquire_with(in.client, NULL, NULL, &none));
    FORKED_OR_INVALID(rl_lock_import(in.client, "job", 3, "no token", 0, &none));
    if (in.lock) {
        FORKED_OR_INVALID(rl_extend(in.lock, 0, NULL));
        FORKED_OR_INVALID(rl_release_with(in.lock, 2, NULL));
        FORKED_OR_INVALID(rl_lock_wait_lost(in.lock, -2));
    }
}

static void use_all(struct answers *a)
{
    int64_t began = ts_mono_ms();
    a->count = 0;
    use_bad_arguments(a);
    use_inherited_client(a);
    use_inherited_handle(a, in.lock);
    use_inherited_handle(a, in.import);
    if (in.import)
        use_fenced_writes(a);
    rl_client_free(in.client); /* does nothing: */
    use_inherited_client(a);
    use_inherited_handle(a, in.lock);
    rl_client_free(in.client);
    a->took_ms = ts_mono_ms() - began;
}

/* The end of a child: another program, so that no tool looks for leaks in what it inherited. */
static int vanish(void)
{
    execl("/bin/true", "true", (char *)NULL);
    return 0;
}

static int child_uses_all(int out, void *arg)
{
    struct answers answers = {.count = 0};
    (void)arg;
    use_all(&answers);
    return write(out, &answers, sizeof answers) == sizeof answers ? vanish() : 1;
}

static void check_answers(const struct answers *a)
{
    ts_check(a->count == 0, "line %d: %d (%s)", a->bad[0].line, a->bad[0].rc, rl_strstatus(a->bad[0].rc));
    ts_between(a->took_ms, 0, slack());
}

/* Forks here and now, lets the child use all that it inherits, and sees that no server has heard of it. */
static void fork_and_check(bool quiet)
{
    struct answers answers;
    int64_t before[3], connections[3];
    for (int i = 0; i < 3; i++) {
        connections[i] = ts_info_int(p.at[i], "total_connections_received");
        before[i] = ts_info_int(p.at[i], "total_commands_processed");
    }
    ts_equal(ts_fork(child_uses_all, NULL, &answers, sizeof answers, NULL), 0);
    check_answers(&answers);
    for (int i = 0; quiet && i < 3; i++) {
        ts_equal(ts_info_int(p.at[i], "total_commands_processed"), before[i] + 1); /* this question */
        ts_equal(ts_info_int(p.at[i], "total_connections_received"), connections[i]);
    }
}

static void begin(const char *urls)
{
    in.client = patient(urls);
    in.report = new_report();
}

static void end(void)
{
    rl_lock_free(in.import);
    rl_client_free(in.client);
    rl_report_free(in.report);
    memset(&in, 0, sizeof in);
}

/* ---- In every state ---------------------------------------------------------------------------------------------------------------- */

static void fresh_client(void **state)
{
    (void)state;
    begin(p.urls);
    fork_and_check(true);
    in.lock = taken(in.client, "job", LONG);
    ts_equal(rl_release(in.lock), RL_OK);
    end();
}

static void connected_client(void **state)
{
    (void)state;
    begin(p.urls);
    warm_up(in.client);
    fork_and_check(true);
    warm_up(in.client);
    end();
}

/* The parent's lock, handle and connections go on as if nothing had been. */
static void holding(void **state)
{
    (void)state;
    begin(p.urls);
    warm_up(in.client);
    int64_t connections = ts_info_int(P1, "total_connections_received");
    in.lock = taken(in.client, "job", LONG);
    ts_equal(rl_lock_import(in.client, "job", 3, rl_lock_token(in.lock), 7, &in.import), RL_OK);
    for (int i = 0; i < 3; i++)
        ts_check(ts_wait_present(p.at[i], "rl:job", SOON), "not set");
    int64_t left = rl_lock_remaining_ms(in.lock);
    fork_and_check(true);
    ts_between(rl_lock_remaining_ms(in.lock), left - slack(), left);
    for (int i = 0; i < 3; i++)
        ts_check(ts_holds(p.at[i], "rl:job", rl_lock_token(in.lock)), "P%d lost the lock", i + 1);
    ts_equal(rl_extend(in.lock, LONG, NULL), RL_OK);
    ts_equal(rl_extend(in.import, LONG, NULL), RL_OK);
    fork_and_check(true);
    ts_equal(rl_release(in.lock), RL_OK);
    ts_equal(ts_info_int(P1, "total_connections_received"), connections);
    in.lock = NULL;
    check_gone("rl:job");
    end();
}

/* A renewed lock: the thread that keeps it is the parent's alone, and goes on whatever the children do. */
static void keeping(void **state)
{
    (void)state;
    rl_request request;
    begin(p.urls);
    warm_up(in.client);
    rl_request_init(&request);
    request.name = "job";
    request.name_len = 3;
    request.ttl_ms = 300 * (int64_t)ts_slowness();
    request.renew = 1;
    request.touch_within_ms = LONG;
    ts_equal(rl_acquire_with(in.client, &request, NULL, &in.lock), RL_OK);
    ts_check(rl_lock_lost_fd(in.lock) >= 0, "no descriptor");
    for (int64_t end = ts_mono_ms() + 3 * request.ttl_ms; ts_mono_ms() < end;)
        fork_and_check(false);
    ts_equal(rl_lock_touch(in.lock), RL_OK);
    ts_equal(rl_lock_wait_lost(in.lock, 0), RL_OK);
    ts_check(ts_holds(P1, "rl:job", rl_lock_token(in.lock)), "P1 lost the lock");
    ts_equal(rl_release(in.lock), RL_OK);
    in.lock = NULL;
    check_gone("rl:job");
    end();
}

static void stopped_client(void **state)
{
    (void)state;
    begin(ts_server_url(P1));
    in.lock = taken(in.client, "job", LONG);
    rl_client_stop(in.client);
    fork_and_check(true);
    ts_equal(rl_release(in.lock), RL_OK);
    end();
}

/* A handle that outlived its client. */
static int child_uses_handle(int out, void *arg)
{
    struct answers answers = {.count = 0}, *a = &answers;
    (void)arg;
    use_inherited_handle(a, in.lock);
    return write(out, a, sizeof *a) == sizeof *a ? vanish() : 1;
}

static void handle_of_a_freed_client(void **state)
{
    (void)state;
    struct answers answers;
    begin(ts_server_url(P1));
    in.lock = taken(in.client, "job", LONG);
    rl_client_free(in.client);
    in.client = NULL;
    ts_equal(ts_fork(child_uses_handle, NULL, &answers, sizeof answers, NULL), 0);
    check_answers(&answers);
    ts_equal(rl_extend(in.lock, LONG, NULL), RL_E_CLOSED);
    ts_equal(rl_release(in.lock), RL_E_CLOSED);
    end();
}

/* ---- Beside other threads ------------------------------------------------------------------------------------------------------------ */

static void *wait_for_lock(void *arg)
{
    rl_lock *lock = NULL;
    int *rc = arg;
    *rc = rl_acquire(in.client, "held", LONG, RL_FOREVER, &lock);
    if (*rc == RL_OK)
        *rc = rl_release(lock);
    return NULL;
}

/* Threads are in rl_acquire, one of them in poll; in the child they do not exist. */
static void while_threads_wait(void **state)
{
    (void)state;
    enum { THREADS = 3 };
    pthread_t threads[THREADS];
    int rcs[THREADS];
    begin(ts_server_url(P1));
    in.lock = taken(in.client, "job", LONG);
    ts_set_px(P1, "rl:held", "another", 0);
    for (int i = 0; i < THREADS; i++)
        ts_equal(pthread_create(&threads[i], NULL, wait_for_lock, &rcs[i]), 0);
    await_calls(P1, "evalsha", THREADS);
    for (int i = 0; i < 5; i++)
        fork_and_check(false);
    ts_equal(rl_extend(in.lock, LONG, NULL), RL_OK);
    ts_equal(rl_release(in.lock), RL_OK);
    ts_del(P1, "rl:held");
    for (int i = 0; i < THREADS; i++) {
        ts_equal(pthread_join(threads[i], NULL), 0);
        ts_equal(rcs[i], RL_OK);
    }
    in.lock = NULL;
    end();
}

struct busy {
    atomic_bool end;
    atomic_int failed, done, next;
};

static void *hammer(void *arg)
{
    struct busy *busy = arg;
    char name[32];
    snprintf(name, sizeof name, "own-%d", atomic_fetch_add(&busy->next, 1));
    while (!atomic_load(&busy->end)) {
        rl_lock *lock = NULL;
        if (rl_acquire(in.client, name, LONG, 0, &lock) != RL_OK || rl_extend(lock, LONG, NULL) != RL_OK ||
            rl_release(lock) != RL_OK)
            atomic_fetch_add(&busy->failed, 1);
        atomic_fetch_add(&busy->done, 1);
    }
    return NULL;
}

/* The client's mutex is held by a thread that the child does not have, most of the time. */
static void while_threads_work(void **state)
{
    (void)state;
    enum { THREADS = 3, FORKS = 100 };
    pthread_t threads[THREADS];
    struct busy busy = {.next = 0};
    struct answers answers;
    begin(p.urls);
    in.lock = taken(in.client, "job", LONG);
    for (int i = 0; i < THREADS; i++)
        ts_equal(pthread_create(&threads[i], NULL, hammer, &busy), 0);
    for (int i = 0; i < FORKS; i++) {
        ts_equal(ts_fork(child_uses_all, NULL, &answers, sizeof answers, NULL), 0);
        check_answers(&answers);
    }
    atomic_store(&busy.end, true);
    for (int i = 0; i < THREADS; i++)
        ts_equal(pthread_join(threads[i], NULL), 0);
    ts_equal(atomic_load(&busy.failed), 0);
    ts_check(atomic_load(&busy.done) > 0, "nothing was done");
    ts_equal(rl_release(in.lock), RL_OK);
    in.lock = NULL;
    end();
}

/* The fork comes from a second thread, which is the child's only one. */
static void *fork_from_here(void *arg)
{
    int *status = arg, ends[2];
    struct answers answers = {.count = -1};
    *status = -1;
    if (pipe(ends) != 0)
        return NULL;
    pid_t pid = fork();
    if (pid == 0)
        _exit(child_uses_all(ends[1], NULL));
    close(ends[1]);
    if (read(ends[0], &answers, sizeof answers) == sizeof answers && waitpid(pid, status, 0) == pid && answers.count > 0)
        *status = answers.bad[0].line;
    close(ends[0]);
    return NULL;
}

static void from_a_second_thread(void **state)
{
    (void)state;
    pthread_t thread;
    int status;
    begin(p.urls);
    in.lock = taken(in.client, "job", LONG);
    ts_equal(pthread_create(&thread, NULL, fork_from_here, &status), 0);
    ts_equal(pthread_join(thread, NULL), 0);
    ts_equal(status, 0);
    ts_equal(rl_extend(in.lock, LONG, NULL), RL_OK);
    ts_equal(rl_release(in.lock), RL_OK);
    in.lock = NULL;
    end();
}

/* ---- The child's own ------------------------------------------------------------------------------------------------------------------- */

struct own {
    struct answers answers;
    int32_t held_by_parent, acquired, extended, released, grandchild;
    char token[64];
};

/* A client of its own; a child of its own, for which both clients are inherited. */
static int child_has_its_own(int out, void *arg)
{
    struct own own = {.grandchild = -1};
    struct answers answers;
    rl_lock *lock = NULL;
    (void)arg;
    use_all(&own.answers);
    rl_client *client = patient(p.urls);
    own.held_by_parent = rl_acquire(client, "job", LONG, 0, &lock);
    own.acquired = rl_acquire(client, "own", LONG, 0, &lock);
    snprintf(own.token, sizeof own.token, "%s", rl_lock_token(lock));
    rl_client *parents = in.client;
    rl_lock *parents_lock = in.lock;
    in.client = client;
    in.lock = lock;
    own.grandchild = ts_fork(child_uses_all, NULL, &answers, sizeof answers, NULL);
    if (answers.count)
        own.answers = answers;
    in.client = parents;
    in.lock = parents_lock;
    own.extended = rl_extend(lock, LONG, NULL);
    own.released = rl_release(lock);
    rl_client_free(client);
    return write(out, &own, sizeof own) == sizeof own ? vanish() : 1;
}

/* S7.1: the child draws other tokens than its parent, and than its sisters. */
static void clients_of_the_children(void **state)
{
    (void)state;
    enum { CHILDREN = 4 };
    struct own own[CHILDREN];
    begin(p.urls);
    in.lock = taken(in.client, "job", LONG);
    for (int i = 0; i < CHILDREN; i++) {
        ts_equal(ts_fork(child_has_its_own, NULL, &own[i], sizeof own[i], NULL), 0);
        check_answers(&own[i].answers);
        ts_equal(own[i].held_by_parent, RL_BUSY);
        ts_equal(own[i].acquired, RL_OK);
        ts_equal(own[i].extended, RL_OK);
        ts_equal(own[i].released, RL_OK);
        ts_equal(own[i].grandchild, 0);
        rl_lock *mine = taken(in.client, "mine", LONG);
        ts_check(strcmp(own[i].token, rl_lock_token(mine)) != 0, "the parent drew the child's token");
        for (int j = 0; j < i; j++)
            ts_check(strcmp(own[i].token, own[j].token) != 0, "two children drew one token");
        ts_equal(rl_release(mine), RL_OK);
    }
    ts_equal(rl_release(in.lock), RL_OK);
    in.lock = NULL;
    check_gone("rl:own");
    end();
}

/* The parent goes first: the child's copy stays what it was. */
static int child_waits_then_uses_all(int out, void *arg)
{
    const int *go = arg;
    char byte;
    if (read(*go, &byte, 1) != 1)
        return 1;
    return child_uses_all(out, NULL);
}

static void parent_frees_first(void **state)
{
    (void)state;
    int ends[2];
    struct answers answers;
    begin(p.urls);
    in.lock = taken(in.client, "job", LONG);
    ts_equal(pipe(ends), 0);
    ts_child child = ts_child_start(child_waits_then_uses_all, &ends[0]);
    ts_equal(rl_release(in.lock), RL_OK);
    in.lock = NULL;
    end();
    check_gone("rl:job");
    ts_equal(write(ends[1], "", 1), 1);
    ts_child_read(&child, &answers, sizeof answers, SOON);
    check_answers(&answers);
    ts_equal(ts_child_wait(&child, SOON), 0);
    close(ends[0]);
    close(ends[1]);
}

/* The child ends by exit(): the parent's connections are not shut. */
static int child_exits(int out, void *arg)
{
    (void)out;
    (void)arg;
    exit(0);
}

static void child_exits_orderly(void **state)
{
    (void)state;
    begin(ts_server_url(P1));
    in.lock = taken(in.client, "job", LONG);
    ts_equal(ts_fork(child_exits, NULL, NULL, 0, NULL), 0);
    int64_t connections = ts_info_int(P1, "total_connections_received");
    ts_equal(rl_extend(in.lock, LONG, NULL), RL_OK);
    ts_equal(rl_release(in.lock), RL_OK);
    ts_equal(ts_info_int(P1, "total_connections_received"), connections);
    in.lock = NULL;
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        REAL_TEST(fresh_client),
        REAL_TEST(connected_client),
        REAL_TEST(holding),
        REAL_TEST(keeping),
        REAL_TEST(stopped_client),
        REAL_TEST(handle_of_a_freed_client),
        REAL_TEST(while_threads_wait),
        REAL_TEST(while_threads_work),
        REAL_TEST(from_a_second_thread),
        REAL_TEST(clients_of_the_children),
        REAL_TEST(parent_frees_first),
        REAL_TEST(child_exits_orderly),
    };
    return REAL_RUN("fork", tests);
}
