/* test_keep.c - renewed locks of one client: the keeper, holders, those who watch them, and others who come and go, all at once.
 */
#include "../real/keep.h"

#include <poll.h>
#include <unistd.h>

/* The first thing that a thread found wrong: only the test's own thread may fail the test. */
static struct {
    pthread_mutex_t mutex;
    char text[256];
} fault = {.mutex = PTHREAD_MUTEX_INITIALIZER};

#define expect(rc, wanted) expect_at(__LINE__, (rc), (wanted), (wanted))
#define expect_either(rc, wanted, or_else) expect_at(__LINE__, (rc), (wanted), (or_else))
static bool expect_at(int line, int64_t rc, int64_t wanted, int64_t or_else)
{
    if (rc == wanted || rc == or_else)
        return true;
    pthread_mutex_lock(&fault.mutex);
    if (!fault.text[0])
        snprintf(fault.text, sizeof fault.text, "line %d: %lld, expected %lld", line, (long long)rc, (long long)wanted);
    pthread_mutex_unlock(&fault.mutex);
    return false;
}

static void check_no_fault(void)
{
    ts_check(!fault.text[0], "%s", fault.text);
}

static int64_t lease_ms(void)
{
    return 60 + 40 * (int64_t)ts_slowness();
}

/* ---- One lock, many eyes ------------------------------------------------------------------------------------------------------------ */

struct watched {
    rl_lock *lock;
    int fd;
    int64_t fence;
    atomic_bool end;
    atomic_int looks;
};

/* All that any thread may ask of a handle. */
static void *watch(void *arg)
{
    struct watched *w = arg;
    while (!atomic_load(&w->end)) {
        struct pollfd wait = {.fd = w->fd, .events = POLLIN};
        expect(rl_lock_touch(w->lock), RL_OK);
        expect(rl_lock_remaining_ms(w->lock) > 0, true);
        expect(rl_lock_fence(w->lock), w->fence);
        expect(rl_lock_token(w->lock)[0] != '\0', true);
        expect(rl_lock_lost_reason(w->lock), RL_LOST_NOT);
        expect(rl_lock_wait_lost(w->lock, atomic_load(&w->looks) % 3), RL_OK);
        expect(rl_lock_lost_fd(w->lock), w->fd);
        expect(poll(&wait, 1, 1), 0);
        atomic_fetch_add(&w->looks, 1);
    }
    return NULL;
}

static void watched_by_many(void **state)
{
    (void)state;
    enum { WATCHERS = 4 };
    pthread_t threads[WATCHERS];
    struct watched w = {.fd = -1};
    rl_client *client = patient(p.urls);
    rl_request request = keeping("job", 4 * lease_ms());
    request.touch_within_ms = LONG;
    request.fence = RL_FENCE_QUORUM;
    ts_equal(rl_acquire_with(client, &request, NULL, &w.lock), RL_OK);
    w.fd = rl_lock_lost_fd(w.lock);
    w.fence = rl_lock_fence(w.lock);
    for (int i = 0; i < WATCHERS; i++)
        ts_equal(pthread_create(&threads[i], NULL, watch, &w), 0);
    for (int64_t end = ts_mono_ms() + 10 * lease_ms(); ts_mono_ms() < end; ts_sleep_ms(5))
        ts_equal(rl_extend(w.lock, 4 * lease_ms(), NULL), RL_OK);
    ts_sleep_ms(4 * lease_ms());
    atomic_store(&w.end, true);
    for (int i = 0; i < WATCHERS; i++)
        ts_equal(pthread_join(threads[i], NULL), 0);
    check_no_fault();
    ts_check(atomic_load(&w.looks) > WATCHERS, "nobody looked");
    ts_equal(rl_release(w.lock), RL_OK);
    check_gone("rl:job");
    rl_client_free(client);
}

/* ---- Everything at once -------------------------------------------------------------------------------------------------------------- */

enum { HOLDERS = 4, OTHERS = 2 };

struct crowd {
    rl_client *client;
    atomic_bool end;
    atomic_int next, held, lost, shared_inside;
};

struct waiter {
    rl_lock *lock;
    int64_t timeout_ms;
    atomic_int tid;
    int rc;
    pthread_t thread;
};

static void *wait_for_loss(void *arg)
{
    struct waiter *w = arg;
    atomic_store(&w->tid, (int)gettid());
    w->rc = rl_lock_wait_lost(w->lock, w->timeout_ms);
    return NULL;
}

/* Whoever waits must have begun before the handle ends: it is seen asleep, and given a moment more. */
static bool is_asleep(const struct waiter *w)
{
    char path[64], state = 0;
    int tid = atomic_load(&w->tid);
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
    FILE *file = tid ? fopen(path, "r") : NULL;
    if (!file)
        return false;
    if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
        state = 0;
    fclose(file);
    return state == 'S';
}

static void hold_and_be_watched(struct crowd *crowd, rl_lock *lock, unsigned *seed)
{
    struct waiter w = {.lock = lock, .timeout_ms = rand_r(seed) % 2 ? RL_FOREVER : rand_r(seed) % 30};
    if (!expect(pthread_create(&w.thread, NULL, wait_for_loss, &w), 0))
        return;
    for (int i = rand_r(seed) % 8; i > 0; i--) {
        expect_either(rl_lock_touch(lock), RL_OK, RL_LOST);
        if (rand_r(seed) % 2)
            expect_either(rl_extend(lock, lease_ms(), NULL), RL_OK, RL_LOST);
        ts_sleep_ms(rand_r(seed) % (lease_ms() / 4));
    }
    if (rand_r(seed) % 4 == 0)
        expect(rl_lock_stop_renewing(lock), RL_OK);
    while (!is_asleep(&w) && w.timeout_ms == RL_FOREVER && rl_lock_remaining_ms(lock) > 0)
        ts_sleep_ms(1);
    ts_sleep_ms(10);
    if (w.timeout_ms != RL_FOREVER)
        pthread_join(w.thread, NULL);
    bool lost = rl_lock_lost_reason(lock) != RL_LOST_NOT;
    if (rand_r(seed) % 8 == 0)
        rl_lock_free(lock);
    else
        expect_either(rl_release_with(lock, rand_r(seed) % 4 ? 0 : RL_NO_WAIT, NULL), RL_OK, RL_LOST);
    if (w.timeout_ms == RL_FOREVER)
        pthread_join(w.thread, NULL);
    expect_either(w.rc, w.timeout_ms == RL_FOREVER ? RL_CANCELED : RL_OK, RL_LOST);
    atomic_fetch_add(lost ? &crowd->lost : &crowd->held, 1);
}

static void *hold_own(void *arg)
{
    struct crowd *crowd = arg;
    unsigned seed = 1 + (unsigned)atomic_fetch_add(&crowd->next, 1);
    for (int i = 0; !atomic_load(&crowd->end); i++) {
        char name[32];
        rl_lock *lock = NULL;
        snprintf(name, sizeof name, "own-%u-%d", seed, i % 1000 + 1000 * (int)(seed % 1000));
        rl_request request = keeping(name, lease_ms());
        request.touch_within_ms = i % 2 ? LONG : 0;
        request.max_hold_ms = i % 3 ? 0 : 2 * lease_ms();
        request.wait_ms = LONG;
        if (!request.touch_within_ms)
            request.touch_within_ms = lease_ms() / 2;
        if (!expect(rl_acquire_with(crowd->client, &request, NULL, &lock), RL_OK))
            return NULL;
        hold_and_be_watched(crowd, lock, &seed);
    }
    return NULL;
}

/* A lock that these want by turns, renewed or not. */
static void *hold_shared(void *arg)
{
    struct crowd *crowd = arg;
    for (int i = 0; !atomic_load(&crowd->end); i++) {
        rl_lock *lock = NULL;
        rl_request request = keeping("shared", LONG);
        request.renew = i % 2;
        request.wait_ms = RL_FOREVER;
        if (!expect(rl_acquire_with(crowd->client, &request, NULL, &lock), RL_OK))
            return NULL;
        expect(atomic_fetch_add(&crowd->shared_inside, 1), 0);
        ts_sleep_ms(i % 4);
        atomic_fetch_sub(&crowd->shared_inside, 1);
        expect(rl_release(lock), RL_OK);
        ts_sleep_ms(1);
    }
    return NULL;
}

static void crowd_on(const char *urls, bool trouble)
{
    struct crowd crowd = {.client = patient(urls)};
    pthread_t threads[HOLDERS + OTHERS];
    for (int i = 0; i < HOLDERS + OTHERS; i++)
        ts_equal(pthread_create(&threads[i], NULL, i < HOLDERS ? hold_own : hold_shared, &crowd), 0);
    for (int64_t end = ts_mono_ms() + 1000 + 100 * ts_slowness(); ts_mono_ms() < end; ts_sleep_ms(30)) {
        if (!trouble)
            continue;
        ts_server_pause(P3);
        ts_sleep_ms(20);
        ts_server_resume(P3);
        ts_command(P2, "SCRIPT FLUSH");
    }
    atomic_store(&crowd.end, true);
    for (int i = 0; i < HOLDERS + OTHERS; i++)
        ts_equal(pthread_join(threads[i], NULL), 0);
    check_no_fault();
    printf("%d held to their end, %d lost before\n", atomic_load(&crowd.held), atomic_load(&crowd.lost));
    ts_check(atomic_load(&crowd.held) > 0, "nothing was held");
    rl_client_free(crowd.client);
    for (int i = 0; i < 3; i++)
        UNTIL(ts_dbsize(p.at[i]) == 0);
}

static void all_at_once(void **state)
{
    (void)state;
    crowd_on(ts_server_url(P1), false);
    crowd_on(p.urls, false);
    crowd_on(p.urls, true);
}

/* ---- Clients that come and go ---------------------------------------------------------------------------------------------------------- */

static void *come_and_go(void *arg)
{
    unsigned seed = 77 + (unsigned)(uintptr_t)arg;
    for (int i = 0; i < 15; i++) {
        rl_options options = options_with(SOON, 300);
        rl_client *client = NULL;
        rl_lock *locks[3] = {NULL};
        if (!expect(rl_client_new(p.urls, &options, &client, NULL), RL_OK))
            return NULL;
        for (int j = 0; j < 3; j++) {
            char name[32];
            snprintf(name, sizeof name, "%u-%d-%d", (unsigned)(uintptr_t)arg, i, j);
            rl_request request = keeping(name, lease_ms());
            expect(rl_acquire_with(client, &request, NULL, &locks[j]), RL_OK);
        }
        usleep((useconds_t)(rand_r(&seed) % (lease_ms() * 500)));
        if (locks[0])
            expect_either(rl_release(locks[0]), RL_OK, RL_LOST);
        rl_client_free(client);
        for (int j = 1; j < 3; j++)
            rl_lock_free(locks[j]);
    }
    return NULL;
}

static void clients_come_and_go(void **state)
{
    (void)state;
    enum { THREADS = 3 };
    pthread_t threads[THREADS];
    int before = ts_thread_count();
    for (int i = 0; i < THREADS; i++)
        ts_equal(pthread_create(&threads[i], NULL, come_and_go, (void *)(uintptr_t)i), 0);
    for (int i = 0; i < THREADS; i++)
        ts_equal(pthread_join(threads[i], NULL), 0);
    check_no_fault();
    UNTIL(ts_thread_count() == before);
    UNTIL(ts_dbsize(P1) + ts_dbsize(P2) + ts_dbsize(P3) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        REAL_TEST(watched_by_many),
        REAL_TEST(all_at_once),
        REAL_TEST(clients_come_and_go),
    };
    return REAL_RUN("threads-keep", tests);
}
