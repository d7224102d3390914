/* log.c - see log.h. */
#include "log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { FIRST_STATUS = RL_E_FORKED };

int64_t boot_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_BOOTTIME, &ts);
    return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}

struct log *log_new(void)
{
    struct log *log = mmap(NULL, sizeof *log, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (log == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    return log;
}

uint64_t log_random(struct log *log)
{
    uint64_t x = atomic_fetch_add(&log->seed, UINT64_C(0x9e3779b97f4a7c15));
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* Never later than the handle's own end: the clock is read first, and the remaining time is rounded down. */
static int64_t end_of(const rl_lock *lock)
{
    int64_t now = boot_ns();
    return now + rl_lock_remaining_ms(lock) * 1000000;
}

struct claim *log_claim(struct log *log, enum storm_front front, int name, int64_t begun_ns, const rl_lock *lock)
{
    int64_t from = boot_ns(), until = end_of(lock);
    uint64_t i = atomic_fetch_add(&log->count, 1);
    if (i >= STORM_MAX_CLAIMS)
        return NULL;
    struct claim *claim = &log->claims[i];
    claim->name = name;
    claim->pid = getpid();
    claim->front = front;
    claim->begun_ns = begun_ns;
    claim->fence = rl_lock_fence(lock);
    atomic_store(&claim->until_ns, until);
    claim->from_ns = from;
    return claim;
}

void log_extended(struct claim *claim, const rl_lock *lock)
{
    int64_t until = end_of(lock);
    /* The lease was without a break only if it had not ended before: else the library must have said so. */
    if (until > atomic_load(&claim->until_ns))
        atomic_store(&claim->until_ns, until);
    claim->extended++;
}

void log_end(struct claim *claim)
{
    int64_t now = boot_ns();
    if (now < atomic_load(&claim->until_ns))
        atomic_store(&claim->until_ns, now);
}

void log_status(struct log *log, enum storm_front front, enum storm_call call, int status)
{
    atomic_fetch_add(&log->statuses[front][call][status - FIRST_STATUS], 1);
}

/* ---- The checker ------------------------------------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    const struct claim *x = a, *y = b;
    if (x->name != y->name)
        return x->name < y->name ? -1 : 1;
    return (x->from_ns > y->from_ns) - (x->from_ns < y->from_ns);
}

static void print_overlap(const struct claim *a, const struct claim *b)
{
    printf("OVERLAP name %d: pid %d (front %d, extended %d) until %" PRId64 " us, pid %d (front %d) from %" PRId64 " us: %" PRId64
           " us together\n",
           a->name, a->pid, a->front, a->extended, (int64_t)a->until_ns / 1000, b->pid, b->front, b->from_ns / 1000,
           ((int64_t)a->until_ns - b->from_ns) / 1000);
}

static uint64_t count_overlaps(struct claim *claims, uint64_t count)
{
    uint64_t overlaps = 0;
    const struct claim *longest = NULL; /* of those before, of this name */
    qsort(claims, count, sizeof *claims, compare);
    for (uint64_t i = 0; i < count; i++) {
        const struct claim *claim = &claims[i];
        if (claim->from_ns == 0 || claim->until_ns <= claim->from_ns) /* never written, or over when it began */
            continue;
        if (longest && longest->name == claim->name && longest->until_ns > claim->from_ns && overlaps++ < 10)
            print_overlap(longest, claim);
        if (!longest || longest->name != claim->name || longest->until_ns < claim->until_ns)
            longest = claim;
    }
    return overlaps;
}

/* An acquisition that was called after another of its name had returned has the higher token; and no two are equal. The claims are
 * sorted by name and by their return. */
static uint64_t count_fallen(const struct claim *claims, uint64_t count)
{
    uint64_t fallen = 0;

    for (uint64_t i = 0, first = 0, returned = 0; i < count; i++) {
        const struct claim *claim = &claims[i];
        if (claim->name != claims[first].name)
            first = returned = i;
        for (uint64_t k = i; k > first && i - k < 2000; k--) { /* the last 2,000 of the name are enough: calls are short */
            const struct claim *before = &claims[k - 1];
            if (claim->from_ns == 0 || before->from_ns == 0)
                continue;
            bool wrong = before->fence == claim->fence || (before->from_ns < claim->begun_ns && before->fence > claim->fence);
            if (wrong && fallen++ < 10)
                printf("TOKEN name %d: %" PRId64 " after %" PRId64 "\n", claim->name, claim->fence, before->fence);
        }
    }
    return fallen;
}

static void print_statuses(struct log *log)
{
    static const char *const fronts[] = {"blocking", "event"}, *const calls[] = {"acquire", "extend", "release"};
    for (int front = 0; front < STORM_FRONTS; front++) {
        for (int call = 0; call < STORM_CALLS; call++) {
            printf("%-9s %-8s", fronts[front], calls[call]);
            for (int i = STORM_STATUSES - 1; i >= 0; i--) {
                uint64_t count = atomic_load(&log->statuses[front][call][i]);
                if (count)
                    printf("  %" PRIu64 " x %s;", count, rl_strstatus(i + FIRST_STATUS));
            }
            printf("\n");
        }
    }
}

bool log_check(struct log *log, uint64_t least, bool forgetful)
{
    uint64_t count = atomic_load(&log->count), fronts[STORM_FRONTS] = {0}, extended = 0;
    print_statuses(log);
    if (count > STORM_MAX_CLAIMS) {
        printf("FAIL: the log is full\n");
        return false;
    }
    for (uint64_t i = 0; i < count; i++) {
        fronts[log->claims[i].front]++;
        extended += log->claims[i].extended != 0;
    }
    uint64_t overlaps = forgetful ? 0 : count_overlaps(log->claims, count), fallen;
    if (forgetful)
        qsort(log->claims, count, sizeof *log->claims, compare);
    fallen = count_fallen(log->claims, count);
    printf("claims: %" PRIu64 " blocking, %" PRIu64 " event; %" PRIu64 " extended; callbacks that blocked 300 ms: %" PRIu64
           "; overlaps: %" PRIu64 "; tokens that did not rise: %" PRIu64 "\n",
           fronts[STORM_BLOCKING], fronts[STORM_EVENT], extended, (uint64_t)atomic_load(&log->blocked), overlaps, fallen);
    return overlaps == 0 && fallen == 0 && fronts[STORM_BLOCKING] >= least && fronts[STORM_EVENT] >= least;
}
