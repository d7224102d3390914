/* test_processes.c - processes that exclude each other, while holders are killed and servers stand still or restart.
 *
 * Each worker notes in shared memory from when until when it may act as the holder. Whatever happens, no two such spans overlap.
 */
#include "real.h"

#include <signal.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* ---- Who held it, and when -------------------------------------------------------------------------------------------------------- */

enum { MOST_CLAIMS = 16384, WORKERS = 5, TTL = 100 };

struct claim { /* nanoseconds of CLOCK_BOOTTIME */
    int64_t from;
    _Atomic int64_t until; /* by the handle's own account; earlier if it was released before */
    pid_t by;
};

struct board { /* shared by all processes */
    atomic_int count, stop;
    _Atomic pid_t holder; /* the last one that acquired; 0 after its release */
    atomic_int lost_in_time;
    struct claim claims[MOST_CLAIMS];
};

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* No later than the end of the handle's validity. */
static int64_t claimed_until(const rl_lock *lock)
{
    int64_t now = now_ns();
    return now + rl_lock_remaining_ms(lock) * 1000000;
}

static struct board *new_board(void)
{
    struct board *board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(board != MAP_FAILED);
    return board;
}

static int by_start(const void *a, const void *b)
{
    const struct claim *x = a, *y = b;
    return (x->from > y->from) - (x->from < y->from);
}

/* How many claims there were. */
static int check_no_overlap(struct board *board)
{
    int count = atomic_load(&board->count);
    ts_check(count <= MOST_CLAIMS, "%d claims", count);
    qsort(board->claims, (size_t)count, sizeof board->claims[0], by_start);
    const struct claim *last = NULL; /* the one that lasts longest so far */
    for (int i = 0; i < count; i++) {
        const struct claim *c = &board->claims[i];
        if (c->from == 0) /* killed before it had written it: it claimed nothing */
            continue;
        ts_check(!last || c->from >= last->until, "%d holds from %lld us before the end of %d's lease", (int)c->by,
                 (long long)(last->until - c->from) / 1000, (int)last->by);
        if (!last || c->until > last->until)
            last = c;
    }
    return count;
}

/* ---- Workers ------------------------------------------------------------------------------------------------------------------------- */

struct job {
    struct board *board;
    unsigned seed;
};

static void begin_claim(struct board *board, struct claim **ret_claim, const rl_lock *lock)
{
    int i = atomic_fetch_add(&board->count, 1);
    struct claim *claim = &board->claims[i < MOST_CLAIMS ? i : MOST_CLAIMS - 1];
    claim->by = getpid();
    atomic_store(&claim->until, claimed_until(lock));
    claim->from = now_ns();
    atomic_store(&board->holder, getpid());
    *ret_claim = claim;
}

static void end_claim(struct board *board, struct claim *claim)
{
    pid_t self = getpid();
    int64_t now = now_ns();
    if (now < claim->until)
        atomic_store(&claim->until, now);
    atomic_compare_exchange_strong(&board->holder, &self, 0);
}

static void extend_claim(struct board *board, struct claim *claim, rl_lock *lock)
{
    int rc = rl_extend(lock, TTL, NULL);
    if (rc == RL_OK) {
        int64_t until = claimed_until(lock);
        if (until > claim->until)
            atomic_store(&claim->until, until);
    } else if (rc == RL_LOST && now_ns() < claim->until - 5000000) { /* taken away in the middle of the lease */
        atomic_fetch_add(&board->lost_in_time, 1);
    }
}

/* Holds for a while in one of the ways in which programs hold locks. */
static void use(struct job *job, rl_lock *lock)
{
    struct claim *claim;
    begin_claim(job->board, &claim, lock);
    switch (rand_r(&job->seed) % 8) {
    case 0: /* works for longer than the lease, and releases what is another's by now */
        ts_sleep_ms(TTL + 20);
        break;
    case 1: /* forgets it */
        end_claim(job->board, claim);
        rl_lock_free(lock);
        return;
    case 2:
    case 3:
        ts_sleep_ms(rand_r(&job->seed) % 30);
        extend_claim(job->board, claim, lock);
        ts_sleep_ms(rand_r(&job->seed) % 30);
        break;
    default:
        ts_sleep_ms(rand_r(&job->seed) % 10);
        break;
    }
    end_claim(job->board, claim);
    rl_release(lock);
}

static int work(int out, void *arg)
{
    struct job *job = arg;
    rl_options options = options_with(150, 50);
    (void)out;
    options.retry_min_ms = 1;
    options.retry_max_ms = 10;
    rl_client *client = client_with(p.urls, &options);
    while (!atomic_load(&job->board->stop)) {
        rl_lock *lock = NULL;
        if (rl_acquire(client, "job", TTL, rand_r(&job->seed) % 4 ? 500 : 0, &lock) == RL_OK)
            use(job, lock);
        else if (lock)
            return 1;
    }
    rl_client_free(client);
    return 0;
}

/* ---- Whoever makes trouble ------------------------------------------------------------------------------------------------------------ */

struct crowd {
    struct board *board;
    struct job jobs[WORKERS];
    ts_child children[WORKERS];
    int kills;
};

static void start_worker(struct crowd *crowd, int i)
{
    crowd->jobs[i].board = crowd->board;
    crowd->jobs[i].seed += 12345 + (unsigned)i * 777;
    crowd->children[i] = ts_child_start(work, &crowd->jobs[i]);
}

static void start_crowd(struct crowd *crowd)
{
    crowd->board = new_board();
    for (int i = 0; i < WORKERS; i++)
        start_worker(crowd, i);
}

/* Kills whoever holds the lock, if anybody does, and puts another in its place. */
static void kill_holder(struct crowd *crowd)
{
    pid_t holder = atomic_load(&crowd->board->holder);
    for (int i = 0; i < WORKERS; i++)
        if (crowd->children[i].pid == holder) {
            kill(holder, SIGKILL);
            ts_equal(ts_child_wait(&crowd->children[i], SOON), 128 + SIGKILL);
            crowd->kills++;
            start_worker(crowd, i);
        }
}

static void stop_crowd(struct crowd *crowd)
{
    atomic_store(&crowd->board->stop, 1);
    for (int i = 0; i < WORKERS; i++)
        ts_equal(ts_child_wait(&crowd->children[i], 3 * SOON), 0);
}

/* Lets them work for ms, and kills a holder now and then. */
static void let_work(struct crowd *crowd, int64_t ms)
{
    int64_t until = ts_mono_ms() + ms;
    for (int i = 1; ts_mono_ms() < until; i++) {
        ts_sleep_ms(7);
        if (i % 4 == 0)
            kill_holder(crowd);
    }
}

/* Servers that remember what they granted: the condition M of Redlock (a node that forgets breaks it). */
static void start_remembering_servers(ts_servers *servers, int count)
{
    static const char *const args[] = {"--appendonly", "yes", "--appendfsync", "always", NULL};
    ts_servers_start(servers, count, args);
    snprintf(p.urls, sizeof p.urls, "%s", servers->urls); /* the children know them by this */
}

static void exclusion(int count)
{
    ts_servers servers;
    char urls[sizeof p.urls];
    memcpy(urls, p.urls, sizeof urls);
    start_remembering_servers(&servers, count);
    struct crowd crowd = {.kills = 0};
    start_crowd(&crowd);
    for (int round = 0; round < 2; round++) {
        ts_server *victim = servers.at[round % count], *other = servers.at[(round + 1) % count];
        let_work(&crowd, 400);
        ts_server_pause(victim);
        let_work(&crowd, 2 * TTL + 50);
        ts_server_resume(victim);
        let_work(&crowd, 200);
        ts_server_kill(other);
        let_work(&crowd, 50);
        ts_server_restart(other);
        let_work(&crowd, 200);
    }
    stop_crowd(&crowd);
    int claims = check_no_overlap(crowd.board);
    ts_check(claims >= 20 && crowd.kills >= 3, "%d claims, %d kills: too little happened", claims, crowd.kills);
    ts_equal(atomic_load(&crowd.board->lost_in_time), 0);
    munmap(crowd.board, sizeof *crowd.board);
    ts_servers_stop(&servers);
    memcpy(p.urls, urls, sizeof urls);
}

/* One server, that stands still for longer than a lease, and dies. */
static void exclusion_on_one_server(void **state)
{
    (void)state;
    exclusion(1);
}

/* Three, of which one at a time does that. */
static void exclusion_on_three_servers(void **state)
{
    (void)state;
    exclusion(3);
}

/* ---- A holder dies ------------------------------------------------------------------------------------------------------------------------ */

struct holder {
    const char *urls;
    int64_t ttl_ms;
};

/* Acquires, says until when it holds, and hangs. */
static int hold_and_hang(int out, void *arg)
{
    const struct holder *holder = arg;
    rl_client *client = patient(holder->urls);
    rl_lock *lock = taken(client, "job", holder->ttl_ms);
    int64_t until = claimed_until(lock);
    if (write(out, &until, sizeof until) != sizeof until)
        return 1;
    for (;;)
        pause();
}

/* A dead holder's lock is free after its lease: not before, and soon after. */
static void dead_holder(void **state)
{
    (void)state;
    enum { LEASE = 300 };
    const char *urls[] = {ts_server_url(P1), p.urls};
    for (int n = 0; n < 2; n++) {
        struct holder holder = {urls[n], LEASE};
        rl_client *client = patient(urls[n]);
        warm_up(client);
        ts_child child = ts_child_start(hold_and_hang, &holder);
        int64_t until;
        ts_child_read(&child, &until, sizeof until, SOON);
        kill(child.pid, SIGKILL);
        ts_equal(ts_child_wait(&child, SOON), 128 + SIGKILL);
        ts_equal(refused(client, "job", LEASE, 0, NULL), RL_BUSY);
        rl_lock *lock = NULL;
        ts_equal(rl_acquire(client, "job", LEASE, SOON, &lock), RL_OK);
        ts_between((now_ns() - until) / 1000000, 0, 50 + slack());
        rl_release(lock);
        rl_client_free(client);
        for (int i = 0; i < 3; i++)
            make_fresh(p.at[i]);
    }
}

/* Takes and gives back without a pause. */
static int cycle_for_ever(int out, void *arg)
{
    const struct holder *holder = arg;
    rl_client *client = patient(holder->urls);
    char ready = 1;
    for (;;) {
        rl_lock *lock = NULL;
        if (rl_acquire(client, "job", holder->ttl_ms, SOON, &lock) != RL_OK)
            return 1;
        if (ready && write(out, &ready, 1) != 1)
            return 1;
        ready = 0;
        if (rl_extend(lock, holder->ttl_ms, NULL) < 0)
            return 1;
        rl_release(lock);
    }
}

/* Killed at any point of acquire, extend and release: at the latest its lease later the lock is free, on every node. */
static void killed_at_any_point(void **state)
{
    (void)state;
    enum { LEASE = 60 };
    struct holder holder = {p.urls, LEASE};
    rl_client *client = patient(p.urls);
    warm_up(client);
    for (int round = 0; round < 25; round++) {
        ts_child child = ts_child_start(cycle_for_ever, &holder);
        char ready;
        ts_child_read(&child, &ready, 1, SOON);
        struct timespec nap = {0, (round * 137 % 1000) * 1000};
        nanosleep(&nap, NULL);
        kill(child.pid, SIGKILL);
        int64_t killed = ts_mono_ms();
        ts_equal(ts_child_wait(&child, SOON), 128 + SIGKILL);
        rl_lock *lock = NULL;
        ts_equal(rl_acquire(client, "job", LONG, SOON, &lock), RL_OK);
        ts_between(ts_mono_ms() - killed, 0, LEASE + 50 + slack());
        ts_equal(rl_release(lock), RL_OK);
        for (int i = 0; i < 3; i++)
            ts_check(ts_wait_absent(p.at[i], "rl:job", LEASE + slack()), "a key is left on %s", ts_server_url(p.at[i]));
    }
    rl_client_free(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        REAL_TEST(exclusion_on_one_server),
        REAL_TEST(exclusion_on_three_servers),
        REAL_TEST(dead_holder),
        REAL_TEST(killed_at_any_point),
    };
    return REAL_RUN("processes", tests);
}
