/* test_threads.c - one client, many threads: exclusion, hand-over of the driving, stopping, cancellation.
 */
#include "../real/real.h"

/* ---- Teams of threads ---------------------------------------------------------------------------------------------------------- */

/* The first thing that a thread found wrong: only the test's own thread may fail the test. */
static struct {
    pthread_mutex_t mutex;
    char text[256];
} fault = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void note_fault(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void note_fault(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    pthread_mutex_lock(&fault.mutex);
    if (!fault.text[0])
        vsnprintf(fault.text, sizeof fault.text, format, args);
    pthread_mutex_unlock(&fault.mutex);
    va_end(args);
}

#define expect(rc, wanted) expect_at(__LINE__, (rc), (wanted))
static bool expect_at(int line, int rc, int wanted)
{
    if (rc != wanted)
        note_fault("line %d: %s, expected %s", line, rl_strstatus(rc), rl_strstatus(wanted));
    return rc == wanted;
}

enum { MOST = 64 };

struct team {
    rl_client *client;
    const char *name; /* of the lock they all want; NULL = each its own */
    int count, rounds;
    pthread_t threads[MOST];
    atomic_int next, inside, done, go;
    pthread_barrier_t barrier;
};

static void team_start(struct team *team, int count, void *(*run)(void *))
{
    team->count = count;
    fault.text[0] = '\0';
    for (int i = 0; i < count; i++)
        ts_equal(pthread_create(&team->threads[i], NULL, run, team), 0);
}

static void team_join(struct team *team)
{
    for (int i = 0; i < team->count; i++)
        ts_equal(pthread_join(team->threads[i], NULL), 0);
    ts_check(!fault.text[0], "%s", fault.text);
}

/* The lock's name for the calling member of the team. */
static const char *own_name(struct team *team, char *room, size_t size)
{
    if (team->name)
        return team->name;
    snprintf(room, size, "own-%d", atomic_fetch_add(&team->next, 1));
    return room;
}

struct level {
    atomic_int *value;
    int wanted;
};

static bool is_reached(void *arg)
{
    const struct level *level = arg;
    return atomic_load(level->value) >= level->wanted;
}

static void await_level(atomic_int *value, int wanted)
{
    struct level level = {value, wanted};
    ts_check(ts_eventually(20000 * (int64_t)ts_slowness(), is_reached, &level), "%d of %d", atomic_load(value), wanted);
}

/* Retries often, so that the tests wait little. */
static rl_client *eager(const char *urls)
{
    rl_options options = options_with(SOON, SOON);
    options.retry_min_ms = 1;
    options.retry_max_ms = 5;
    return client_with(urls, &options);
}

/* Once refused, pauses for longer than any test lasts. */
static rl_client *sluggish(const char *urls)
{
    rl_options options = options_with(SOON, SOON);
    options.retry_min_ms = options.retry_max_ms = 60000;
    return client_with(urls, &options);
}

/* ---- Exclusion ------------------------------------------------------------------------------------------------------------------ */

/* Guarded by the lock alone. What one holder wrote the next one must see: whoever acquires has been inside the client after whoever
 * released, so a thread sanitizer has nothing to say about a plain int, unless two are in here at once. */
static int counter;

static void *count_up(void *arg)
{
    struct team *team = arg;
    for (int i = 0; i < team->rounds; i++) {
        rl_lock *lock = NULL;
        if (!expect(rl_acquire(team->client, team->name, LONG, RL_FOREVER, &lock), RL_OK))
            return NULL;
        if (atomic_fetch_add(&team->inside, 1) != 0)
            note_fault("two holders");
        int seen = counter;
        ts_sleep_ms(i % 3 == 0);
        counter = seen + 1;
        atomic_fetch_sub(&team->inside, 1);
        expect(rl_release(lock), RL_OK);
        ts_sleep_ms(1); /* or it would have the lock again before the others wake */
    }
    return NULL;
}

static void count_with(const char *urls, int threads, int rounds)
{
    struct team team = {.client = eager(urls), .name = "counter", .rounds = rounds};
    counter = 0;
    team_start(&team, threads, count_up);
    team_join(&team);
    ts_equal(counter, threads * rounds);
    rl_client_free(team.client);
    check_gone("rl:counter");
}

/* Ten threads, one client, one server. */
static void counter_on_one_server(void **state)
{
    (void)state;
    count_with(ts_server_url(P1), 10, 40);
}

/* A8 with one client: split votes are settled, and never two hold. */
static void counter_on_three_servers(void **state)
{
    (void)state;
    count_with(p.urls, 10, 20);
}

/* Each thread has a client of its own: nothing but the servers stands between them. (Nor does anything order their accesses that a
 * sanitizer could see: so the counter is atomic here, though its increment is none.) */
static atomic_int counter_of_all;

static void *count_up_alone(void *arg)
{
    struct team *team = arg;
    rl_client *client = NULL;
    rl_options options = options_with(SOON, SOON);
    options.retry_min_ms = 1;
    options.retry_max_ms = 5;
    if (!expect(rl_client_new(p.urls, &options, &client, NULL), RL_OK))
        return NULL;
    for (int i = 0; i < team->rounds; i++) {
        rl_lock *lock = NULL;
        if (!expect(rl_acquire(client, "counter", LONG, RL_FOREVER, &lock), RL_OK))
            break;
        int seen = atomic_load_explicit(&counter_of_all, memory_order_relaxed);
        ts_sleep_ms(i % 3 == 0);
        atomic_store_explicit(&counter_of_all, seen + 1, memory_order_relaxed);
        expect(rl_release(lock), RL_OK);
        ts_sleep_ms(1);
    }
    rl_client_free(client);
    return NULL;
}

static void counter_with_many_clients(void **state)
{
    (void)state;
    struct team team = {.rounds = 20};
    atomic_store(&counter_of_all, 0);
    team_start(&team, 4, count_up_alone);
    team_join(&team);
    ts_equal(atomic_load(&counter_of_all), 4 * 20);
}

/* ---- Many at once ----------------------------------------------------------------------------------------------------------------- */

static void *cycle(void *arg)
{
    struct team *team = arg;
    char room[32];
    const char *name = own_name(team, room, sizeof room);
    for (int i = 0; i < team->rounds; i++) {
        rl_lock *lock = NULL;
        if (!expect(rl_acquire(team->client, name, LONG, 0, &lock), RL_OK))
            return NULL;
        expect(rl_extend(lock, LONG, NULL), RL_OK);
        expect(rl_release(lock), RL_OK);
    }
    return NULL;
}

static void check_empty(ts_server *server)
{
    int64_t end = ts_mono_ms() + SOON;
    while (ts_dbsize(server) > 0 && ts_mono_ms() < end)
        ts_sleep_ms(1);
    ts_check(ts_dbsize(server) == 0, "%s: left behind: %s", ts_server_url(server), ts_command(server, "KEYS *"));
}

/* Different names do not wait for each other, and all threads share one connection to each node. */
static void different_names(void **state)
{
    (void)state;
    struct team team = {.client = patient(p.urls), .rounds = 60};
    int64_t before[3];
    for (int i = 0; i < 3; i++)
        before[i] = ts_info_int(p.at[i], "total_connections_received");
    team_start(&team, 16, cycle);
    team_join(&team);
    for (int i = 0; i < 3; i++)
        ts_equal(ts_info_int(p.at[i], "total_connections_received") - before[i], 1);
    rl_client_free(team.client);
    for (int i = 0; i < 3; i++)
        check_empty(p.at[i]);
}

static void *wait_and_pass_on(void *arg)
{
    struct team *team = arg;
    rl_lock *lock = NULL;
    atomic_fetch_add(&team->next, 1);
    if (!expect(rl_acquire(team->client, team->name, LONG, RL_FOREVER, &lock), RL_OK))
        return NULL;
    if (atomic_fetch_add(&team->inside, 1) != 0)
        note_fault("two holders");
    atomic_fetch_sub(&team->inside, 1);
    expect(rl_release(lock), RL_OK);
    atomic_fetch_add(&team->done, 1);
    return NULL;
}

/* 64 threads wait while one holds; then each gets its turn. */
static void many_waiters(void **state)
{
    (void)state;
    struct team team = {.client = eager(ts_server_url(P1)), .name = "job"};
    rl_lock *lock = taken(team.client, "job", LONG);
    team_start(&team, 64, wait_and_pass_on);
    await_level(&team.next, 64);
    await_calls(P1, "set", 5 * 64);
    ts_equal(atomic_load(&team.done), 0);
    ts_equal(rl_extend(lock, LONG, NULL), RL_OK);
    ts_equal(rl_release(lock), RL_OK);
    team_join(&team);
    ts_equal(atomic_load(&team.done), 64);
    ts_equal(ts_info_int(P1, "total_connections_received"), 1);
    rl_client_free(team.client);
    check_empty(P1);
}

/* ---- Driving ------------------------------------------------------------------------------------------------------------------------ */

/* All start at once; whoever comes first drives, and leaves when its own answer is there. */
static void *cycle_in_step(void *arg)
{
    struct team *team = arg;
    char room[32];
    const char *name = own_name(team, room, sizeof room);
    for (int i = 0; i < team->rounds; i++) {
        rl_lock *lock = NULL;
        pthread_barrier_wait(&team->barrier);
        if (expect(rl_acquire(team->client, name, LONG, 0, &lock), RL_OK))
            expect(rl_release(lock), RL_OK);
    }
    return NULL;
}

static void drivers_come_and_go(void **state)
{
    (void)state;
    enum { THREADS = 6 };
    struct team team = {.client = patient(ts_server_url(P1)), .rounds = 1000};
    pthread_barrier_init(&team.barrier, NULL, THREADS);
    team_start(&team, THREADS, cycle_in_step);
    team_join(&team);
    pthread_barrier_destroy(&team.barrier);
    rl_client_free(team.client);
    check_empty(P1);
}

/* The first of two comes to drive, waits for a short time and leaves; the second one, asleep by then, waits longer: nobody else is
 * there to drive for it. */
static void *wait_in_vain(void *arg)
{
    struct team *team = arg;
    bool first = atomic_fetch_add(&team->next, 1) == 0;
    for (int i = 0; i < team->rounds; i++) {
        rl_lock *lock = NULL;
        pthread_barrier_wait(&team->barrier);
        if (!first)
            ts_sleep_ms(1);
        expect(rl_acquire(team->client, "job", LONG, first ? 2 : 3, &lock), RL_BUSY);
        atomic_fetch_add(&team->done, 1);
    }
    return NULL;
}

static void driver_leaves_a_sleeper(void **state)
{
    (void)state;
    ts_set_px(P1, "rl:job", "another", 0);
    struct team team = {.client = eager(ts_server_url(P1)), .rounds = 400};
    pthread_barrier_init(&team.barrier, NULL, 2);
    team_start(&team, 2, wait_in_vain);
    team_join(&team);
    ts_equal(atomic_load(&team.done), 800);
    pthread_barrier_destroy(&team.barrier);
    rl_client_free(team.client);
    ts_equal(ts_dbsize(P1), 1);
}

/* Thousands of short calls drive while five others wait; when the calls cease, the waiting ones drive themselves. */
static void short_calls_among_waiters(void **state)
{
    (void)state;
    rl_client *other = patient(ts_server_url(P1));
    rl_lock *lock = taken(other, "job", LONG);
    rl_client *client = eager(ts_server_url(P1));
    struct team waiters = {.client = client, .name = "job"}, busy = {.client = client, .rounds = 700};
    team_start(&waiters, 5, wait_and_pass_on);
    team_start(&busy, 2, cycle);
    team_join(&busy);
    ts_equal(atomic_load(&waiters.done), 0);
    ts_equal(rl_release(lock), RL_OK);
    team_join(&waiters);
    rl_client_free(client);
    rl_client_free(other);
    check_empty(P1);
}

/* An answer that another thread reads: the driver's own call is over, and it has to notice, though its poll has nothing to say. */
static void *extend_often(void *arg)
{
    struct team *team = arg;
    char room[32];
    const char *name = own_name(team, room, sizeof room);
    rl_lock *lock = NULL;
    if (!expect(rl_acquire(team->client, name, LONG, 0, &lock), RL_OK))
        return NULL;
    for (int i = 0; i < team->rounds; i++)
        expect(rl_extend(lock, LONG, NULL), RL_OK);
    expect(rl_release(lock), RL_OK);
    return NULL;
}

static void threads_read_for_each_other(void **state)
{
    (void)state;
    struct team team = {.client = patient(p.urls), .rounds = 400};
    team_start(&team, 6, extend_often);
    team_join(&team);
    rl_client_free(team.client);
}

/* ---- Stopping ---------------------------------------------------------------------------------------------------------------------- */

static void *wait_for_the_stop(void *arg)
{
    struct team *team = arg;
    rl_lock *lock = (rl_lock *)(uintptr_t)1;
    expect(rl_acquire(team->client, team->name, LONG, RL_FOREVER, &lock), RL_CANCELED);
    if (lock)
        note_fault("a handle with RL_CANCELED");
    atomic_fetch_add(&team->done, 1);
    return NULL;
}

/* rl_client_stop ends all waiting at once, however long the pauses are; the holder goes on. */
static void stop_wakes_waiters(void **state)
{
    (void)state;
    struct team team = {.client = sluggish(ts_server_url(P1)), .name = "job"};
    rl_lock *lock = taken(team.client, "job", LONG), *none = NULL;
    team_start(&team, 20, wait_for_the_stop);
    await_calls(P1, "evalsha", 20); /* the clean-up of the first attempt of each: now they pause */
    int64_t began = ts_mono_ms();
    rl_client_stop(team.client);
    await_level(&team.done, 20);
    ts_between(ts_mono_ms() - began, 0, slack());
    team_join(&team);
    ts_equal(rl_acquire(team.client, "other", LONG, RL_FOREVER, &none), RL_CANCELED);
    rl_client_stop(team.client);
    ts_equal(rl_extend(lock, LONG, NULL), RL_OK);
    ts_equal(rl_release(lock), RL_OK);
    rl_client_free(team.client);
    check_empty(P1);
}

/* The same while a node does not answer; what was asked of it is taken back. */
static void stop_while_a_node_is_silent(void **state)
{
    (void)state;
    ts_proxy *proxy = ts_proxy_to(P1);
    struct team team = {.client = patient(ts_proxy_url(proxy)), .name = "job"};
    warm_up(team.client);
    int64_t before = ts_proxy_requests(proxy, "SET");
    ts_proxy_delay(proxy, TS_DOWN, 2000);
    team_start(&team, 20, wait_for_the_stop);
    ts_check(ts_proxy_wait_requests(proxy, "SET", before + 20, SOON), "they did not all ask");
    int64_t began = ts_mono_ms();
    rl_client_stop(team.client);
    await_level(&team.done, 20);
    ts_between(ts_mono_ms() - began, 0, slack());
    team_join(&team);
    rl_client_free(team.client);
    check_empty(P1);
    ts_proxy_stop(proxy);
}

/* Stop meets acquisitions at every point of their lives. */
static void *acquire_until_stopped(void *arg)
{
    struct team *team = arg;
    char room[32];
    const char *name = own_name(team, room, sizeof room);
    int rc = RL_OK;
    while (rc == RL_OK) {
        rl_lock *lock = NULL;
        rc = rl_acquire(team->client, name, LONG, 0, &lock);
        if (rc == RL_OK)
            expect(rl_release(lock), RL_OK);
    }
    expect(rc, RL_CANCELED);
    return NULL;
}

static void stop_at_any_point(void **state)
{
    (void)state;
    for (int i = 0; i < 60; i++) {
        struct team team = {.client = patient(p.urls)};
        team_start(&team, 4, acquire_until_stopped);
        ts_sleep_ms(i % 6);
        rl_client_stop(team.client);
        team_join(&team);
        rl_client_free(team.client);
    }
    for (int i = 0; i < 3; i++)
        check_empty(p.at[i]);
}

/* The driver pauses for long. What others want earlier must reach it: here a deadline, with nothing to read before it. */
static void earlier_deadline_under_the_driver(void **state)
{
    (void)state;
    enum { TIMEOUT = 150 };
    ts_proxy *proxy = ts_proxy_to(P1);
    rl_options options = options_with(TIMEOUT, TIMEOUT);
    options.retry_min_ms = options.retry_max_ms = 60000;
    struct team team = {.client = client_with(ts_proxy_url(proxy), &options), .name = "job"};
    warm_up(team.client);
    ts_set_px(P1, "rl:job", "another", 0);
    team_start(&team, 1, wait_for_the_stop);
    await_calls(P1, "evalsha", 1);
    ts_sleep_ms(TIMEOUT + 50); /* no timer of the first attempt may do the work of a wake-up */
    ts_proxy_drop(proxy, TS_DOWN, true);
    int64_t began = ts_mono_ms();
    ts_equal(refused(team.client, "other", LONG, 0, NULL), RL_E_NO_QUORUM);
    ts_between(ts_mono_ms() - began, TIMEOUT - 1, TIMEOUT + slack());
    rl_client_stop(team.client);
    team_join(&team);
    rl_client_free(team.client);
    ts_proxy_stop(proxy);
}

/* ... and connections that were not there, while those that are have nothing to say. */
static void new_connection_under_the_driver(void **state)
{
    (void)state;
    struct team team = {.client = sluggish(p.urls), .name = "job"};
    warm_up(team.client);
    ts_server_kill(P1);
    ts_server_kill(P2);
    team_start(&team, 1, wait_for_the_stop);
    await_calls(P3, "evalsha", 1);
    ts_sleep_ms(20);
    ts_server_pause(P3);
    ts_server_restart(P1);
    ts_server_restart(P2);
    ts_sleep_ms(300); /* their back-off is over: it is not the same for both */
    int64_t began = ts_mono_ms();
    rl_lock *lock = taken(team.client, "other", LONG);
    ts_between(ts_mono_ms() - began, 0, slack());
    ts_equal(rl_release(lock), RL_OK);
    rl_client_stop(team.client);
    team_join(&team);
    ts_server_resume(P3);
    rl_client_free(team.client);
    for (int i = 0; i < 3; i++)
        check_empty(p.at[i]);
}

/* ---- Handles ------------------------------------------------------------------------------------------------------------------------ */

struct watched {
    rl_lock *lock;
    atomic_bool end;
    pthread_t threads[3];
};

static void *watch(void *arg)
{
    struct watched *watched = arg;
    while (!atomic_load(&watched->end)) {
        int64_t left = rl_lock_remaining_ms(watched->lock);
        if (left < LONG / 2 || left > 2 * LONG)
            note_fault("%lld ms remain", (long long)left);
    }
    return NULL;
}

/* Any thread may ask how long a handle is valid, while its owner extends it. */
static void remaining_from_other_threads(void **state)
{
    (void)state;
    rl_client *client = patient(p.urls);
    struct watched watched = {.lock = taken(client, "job", LONG)};
    fault.text[0] = '\0';
    for (int i = 0; i < 3; i++)
        ts_equal(pthread_create(&watched.threads[i], NULL, watch, &watched), 0);
    for (int i = 0; i < 300; i++)
        ts_equal(rl_extend(watched.lock, LONG + i, NULL), RL_OK);
    atomic_store(&watched.end, true);
    for (int i = 0; i < 3; i++)
        ts_equal(pthread_join(watched.threads[i], NULL), 0);
    ts_check(!fault.text[0], "%s", fault.text);
    ts_equal(rl_release(watched.lock), RL_OK);
    rl_client_free(client);
}

/* A handle may go from thread to thread, and outlive its client. */
static void *release_one(void *arg)
{
    expect(rl_extend(arg, LONG, NULL), RL_OK);
    expect(rl_release(arg), RL_OK);
    return NULL;
}

static void *free_one(void *arg)
{
    expect(rl_extend(arg, LONG, NULL), RL_E_CLOSED);
    expect(rl_release(arg), RL_E_CLOSED);
    return NULL;
}

static void handles_change_hands(void **state)
{
    (void)state;
    enum { HANDLES = 16 };
    rl_client *client = patient(ts_server_url(P1));
    rl_lock *locks[HANDLES];
    pthread_t threads[HANDLES];
    fault.text[0] = '\0';
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < HANDLES; i++) {
            char name[32];
            snprintf(name, sizeof name, "own-%d", i);
            locks[i] = taken(client, name, LONG);
        }
        if (round == 1)
            rl_client_free(client);
        for (int i = 0; i < HANDLES; i++)
            ts_equal(pthread_create(&threads[i], NULL, round == 0 ? release_one : free_one, locks[i]), 0);
        for (int i = 0; i < HANDLES; i++)
            ts_equal(pthread_join(threads[i], NULL), 0);
    }
    ts_check(!fault.text[0], "%s", fault.text);
}

/* No global state: clients come and go in all threads. */
static void *make_clients(void *arg)
{
    struct team *team = arg;
    char room[32];
    const char *name = own_name(team, room, sizeof room);
    for (int i = 0; i < team->rounds; i++) {
        rl_client *client = NULL;
        rl_lock *lock = NULL;
        rl_options options = options_with(SOON, SOON);
        if (!expect(rl_client_new(p.urls, &options, &client, NULL), RL_OK))
            return NULL;
        if (expect(rl_acquire(client, name, LONG, 0, &lock), RL_OK))
            expect(rl_release(lock), RL_OK);
        rl_client_free(client);
    }
    return NULL;
}

static void clients_come_and_go(void **state)
{
    (void)state;
    struct team team = {.rounds = 25};
    team_start(&team, 6, make_clients);
    team_join(&team);
    for (int i = 0; i < 3; i++)
        check_empty(p.at[i]);
}

/* ---- Cancellation -------------------------------------------------------------------------------------------------------------------- */

static void release_it(void *arg)
{
    rl_lock **lock = arg;
    if (*lock)
        expect(rl_release(*lock), RL_OK);
}

static void *wait_to_be_cancelled(void *arg)
{
    struct team *team = arg;
    rl_lock *lock = NULL;
    pthread_cleanup_push(release_it, &lock);
    atomic_fetch_add(&team->next, 1);
    expect(rl_acquire(team->client, team->name, LONG, RL_FOREVER, &lock), RL_OK);
    atomic_fetch_add(&team->done, 1);
    pthread_testcancel();
    note_fault("not cancelled");
    pthread_cleanup_pop(1);
    return NULL;
}

/* No call is a cancellation point: a cancelled thread waits on, drives on if it was to, and ends after the call. */
static void cancelled_threads(void **state)
{
    (void)state;
    enum { WAITERS = 6 };
    rl_client *client = eager(ts_server_url(P1)), *other = patient(ts_server_url(P1));
    rl_lock *lock = taken(other, "job", LONG);
    struct team waiters = {.client = client, .name = "job"}, busy = {.client = client, .rounds = 100};
    team_start(&waiters, WAITERS, wait_to_be_cancelled);
    await_calls(P1, "set", 1 + 2 * WAITERS);
    for (int i = 0; i < WAITERS; i++)
        ts_equal(pthread_cancel(waiters.threads[i]), 0);
    team_start(&busy, 2, cycle);
    team_join(&busy);
    for (int i = 0; i < WAITERS; i++)
        ts_equal(pthread_tryjoin_np(waiters.threads[i], NULL), EBUSY);
    ts_equal(rl_release(lock), RL_OK);
    for (int i = 0; i < WAITERS; i++) {
        void *result = NULL;
        ts_equal(pthread_join(waiters.threads[i], &result), 0);
        ts_check(result == PTHREAD_CANCELED, "not cancelled");
    }
    ts_equal(atomic_load(&waiters.done), WAITERS);
    ts_check(!fault.text[0], "%s", fault.text);
    rl_client_free(client);
    rl_client_free(other);
    check_empty(P1);
}

/* ---- Trouble ------------------------------------------------------------------------------------------------------------------------- */

static void *cycle_until_told(void *arg)
{
    struct team *team = arg;
    char room[32];
    const char *name = own_name(team, room, sizeof room);
    rl_report *report = NULL;
    expect(rl_report_new(&report), RL_OK);
    while (!atomic_load(&team->go)) {
        rl_lock *lock = NULL, *import = NULL;
        if (!expect(take(team->client, name, LONG, 0, report, &lock), RL_OK))
            break;
        expect(rl_lock_import(team->client, name, strlen(name), rl_lock_token(lock), 0, &import), RL_OK);
        expect(rl_extend(import, LONG, report), RL_OK);
        rl_lock_free(import);
        expect(rl_extend(lock, LONG, report), RL_OK);
        expect(rl_release_with(lock, 0, report), RL_OK);
        atomic_fetch_add(&team->done, 1);
    }
    rl_report_free(report);
    return NULL;
}

/* One of three nodes dies, comes back, stands still and goes on while ten threads work: nobody fails, nothing stays behind. */
static void node_fails_under_load(void **state)
{
    (void)state;
    struct team team = {.client = patient(p.urls)};
    team_start(&team, 10, cycle_until_told);
    for (int i = 0; i < 8; i++) {
        await_level(&team.done, atomic_load(&team.done) + 50);
        ts_server_kill(P3);
        await_level(&team.done, atomic_load(&team.done) + 50);
        ts_server_restart(P3);
        await_level(&team.done, atomic_load(&team.done) + 50);
        ts_server_pause(P3);
        await_level(&team.done, atomic_load(&team.done) + 50);
        ts_server_resume(P3);
    }
    atomic_store(&team.go, 1);
    team_join(&team);
    rl_client_free(team.client);
    for (int i = 0; i < 3; i++)
        check_empty(p.at[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        REAL_TEST(counter_on_one_server),
        REAL_TEST(counter_on_three_servers),
        REAL_TEST(counter_with_many_clients),
        REAL_TEST(different_names),
        REAL_TEST(many_waiters),
        REAL_TEST(drivers_come_and_go),
        REAL_TEST(driver_leaves_a_sleeper),
        REAL_TEST(short_calls_among_waiters),
        REAL_TEST(threads_read_for_each_other),
        REAL_TEST(stop_wakes_waiters),
        REAL_TEST(stop_while_a_node_is_silent),
        REAL_TEST(stop_at_any_point),
        REAL_TEST(earlier_deadline_under_the_driver),
        REAL_TEST(new_connection_under_the_driver),
        REAL_TEST(remaining_from_other_threads),
        REAL_TEST(handles_change_hands),
        REAL_TEST(clients_come_and_go),
        REAL_TEST(cancelled_threads),
        REAL_TEST(node_fails_under_load),
    };
    return REAL_RUN("threads", tests);
}
