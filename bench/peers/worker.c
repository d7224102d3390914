/* worker.c - see worker.h and README.md. */
#include "worker.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* A waiter that the end of a contention finds waiting gets DRAIN_MS to take the lock and give it back: no library is measured while it
 * gives up. */
enum { TTL_MS = 10000, POLL_MS = 1000, DRAIN_MS = 1000, MAX_TASKS = 1024, LINE = 512, STACK_BYTES = 256 * 1024 };

int64_t worker_now_us(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * INT64_C(1000000) + ts.tv_nsec / 1000;
}

static void sleep_us(long us)
{
    struct timespec ts = {us / 1000000, us % 1000000 * 1000};
    nanosleep(&ts, NULL);
}

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
    fflush(stdout);
}

/* An error as the value of a JSON string: what could end the string is left out. */
static const char *quoted(const char *text, char *buffer, size_t size)
{
    size_t n = 0;
    for (; *text && n + 1 < size; text++) {
        if (*text >= ' ' && *text != '"' && *text != '\\')
            buffer[n++] = *text;
    }
    buffer[n] = 0;
    return buffer;
}

void worker_die(const char *message)
{
    char text[200];
    say("{\"error\": \"%s\"}", quoted(message, text, sizeof text));
    exit(1);
}

/* ---- What is measured --------------------------------------------------------------------------------------------------------- */

struct worker_run {
    pthread_mutex_t mutex;
    int64_t *us;
    size_t count, capacity;
    int64_t at_us; /* the beginning by the time of day: the driver looks at what servers got from then on */
    int64_t begin_us, end_us, cpu_us, commands;
    size_t errors;
    char error[200];
};

static int64_t cpu_now_us(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * INT64_C(1000000) + usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
}

static void run_begin(struct worker_run *run, const struct peer *peer, int64_t ms)
{
    memset(run, 0, sizeof *run);
    pthread_mutex_init(&run->mutex, NULL);
    run->commands = peer->commands ? peer->commands() : 0;
    run->cpu_us = cpu_now_us();
    struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    run->at_us = at.tv_sec * INT64_C(1000000) + at.tv_nsec / 1000;
    run->begin_us = worker_now_us();
    run->end_us = run->begin_us + ms * 1000;
}

int64_t worker_end_us(const struct worker_run *run)
{
    return run->end_us;
}

static void add(struct worker_run *run, int64_t us)
{
    if (run->count == run->capacity) {
        run->capacity = run->capacity ? run->capacity * 2 : 4096;
        run->us = realloc(run->us, run->capacity * sizeof *run->us);
        if (!run->us)
            worker_die("out of memory");
    }
    run->us[run->count++] = us;
}

void worker_add(struct worker_run *run, int64_t us)
{
    pthread_mutex_lock(&run->mutex);
    add(run, us);
    pthread_mutex_unlock(&run->mutex);
}

void worker_error(struct worker_run *run, const char *message)
{
    pthread_mutex_lock(&run->mutex);
    run->errors++;
    quoted(message, run->error, sizeof run->error);
    pthread_mutex_unlock(&run->mutex);
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* The line of a command that ran for a time: `end_us` is when it was over. */
static void run_print(struct worker_run *run, const struct peer *peer, int64_t end_us)
{
    size_t n = run->count;
    printf("{\"count\": %zu, \"at_us\": %lld, \"us\": %lld, \"cpu_us\": %lld", n, (long long)run->at_us,
           (long long)(end_us - run->begin_us), (long long)(cpu_now_us() - run->cpu_us));
    if (peer->commands)
        printf(", \"commands\": %lld", (long long)(peer->commands() - run->commands));
    if (n) {
        qsort(run->us, n, sizeof *run->us, compare);
        printf(", \"p50\": %lld, \"p90\": %lld, \"p99\": %lld", (long long)run->us[n / 2], (long long)run->us[n * 9 / 10],
               (long long)run->us[n * 99 / 100]);
    }
    if (run->errors)
        printf(", \"errors\": %zu, \"last_error\": \"%s\"", run->errors, run->error);
    say("}");
    free(run->us);
    pthread_mutex_destroy(&run->mutex);
}

/* ---- The commands ------------------------------------------------------------------------------------------------------------- */

struct worker {
    const struct peer *peer;
    const char *mode, *urls;
    void *session; /* of the main thread, and of all where one is enough */
    void *held;    /* by `hold` and `wait` */
};

/* What the threads of `many` and `contend` share. */
struct crew {
    struct worker *worker;
    struct worker_run run;
    long hold_us;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int members;
    int last;            /* who held the lock last; -1 */
    int64_t released_us; /* when that one began to release it; 0 */
};

struct member {
    struct crew *crew;
    int number;
    void *session;
    pthread_t thread;
};

static void cycle(struct worker *worker, void *session, const char *key, struct worker_run *run)
{
    const char *error = "?";
    int64_t start = worker_now_us();
    void *handle = worker->peer->acquire(session, key, TTL_MS, POLL_MS, &error);
    if (!handle || !worker->peer->release(session, handle, &error))
        worker_error(run, error);
    else
        worker_add(run, worker_now_us() - start);
}

static void do_cycle(struct worker *worker, long ms)
{
    struct worker_run run;
    char key[64];
    snprintf(key, sizeof key, "%.40s-cycle", worker->mode);
    run_begin(&run, worker->peer, ms);
    int64_t now;
    while ((now = worker_now_us()) < run.end_us)
        cycle(worker, worker->session, key, &run);
    run_print(&run, worker->peer, now);
}

static void *one_of_many(void *data)
{
    struct member *member = data;
    struct crew *crew = member->crew;
    char key[64];
    snprintf(key, sizeof key, "%.40s-many-%d", crew->worker->mode, member->number);
    while (worker_now_us() < crew->run.end_us)
        cycle(crew->worker, member->session, key, &crew->run);
    return NULL;
}

/* A waiter that has had the lock stands back until another has it, and then for a random time of up to half a round: so each
 * acquisition is a hand-off, and those who poll at fixed intervals do not fall into step. */
static void *one_waiter(void *data)
{
    struct member *member = data;
    struct crew *crew = member->crew;
    const struct peer *peer = crew->worker->peer;
    char key[64];
    snprintf(key, sizeof key, "%.40s-contend", crew->worker->mode);
    while (worker_now_us() < crew->run.end_us) {
        pthread_mutex_lock(&crew->mutex);
        while (crew->last == member->number && worker_now_us() < crew->run.end_us) {
            struct timespec until;
            clock_gettime(CLOCK_REALTIME, &until);
            until.tv_sec++;
            pthread_cond_timedwait(&crew->changed, &crew->mutex, &until);
        }
        pthread_mutex_unlock(&crew->mutex);
        sleep_us((long)((double)random() / RAND_MAX * (double)crew->hold_us * (crew->members - 1) / 2));
        const char *error = "?";
        int64_t left_us = crew->run.end_us - worker_now_us();
        if (left_us <= 0)
            break;
        void *handle = peer->acquire(member->session, key, TTL_MS, left_us / 1000 + DRAIN_MS, &error);
        int64_t now = worker_now_us();
        if (!handle) {
            if (now < crew->run.end_us)
                worker_error(&crew->run, error);
            continue;
        }
        pthread_mutex_lock(&crew->mutex);
        if (crew->released_us && now < crew->run.end_us)
            worker_add(&crew->run, now - crew->released_us);
        crew->last = member->number;
        pthread_cond_broadcast(&crew->changed);
        pthread_mutex_unlock(&crew->mutex);
        if (now < crew->run.end_us)
            sleep_us(crew->hold_us);
        pthread_mutex_lock(&crew->mutex);
        crew->released_us = worker_now_us();
        pthread_mutex_unlock(&crew->mutex);
        if (!peer->release(member->session, handle, &error))
            worker_error(&crew->run, error);
    }
    return NULL;
}

/* The session of a thread that has its own, as it would have in a process of its own. It is kept for the next command: opening and
 * closing hundreds of them would disturb what is measured next. */
static void *session_of(const struct worker *worker, int number)
{
    static void *sessions[MAX_TASKS];
    if (!sessions[number])
        sessions[number] = worker->peer->open(worker->mode, worker->urls);
    return sessions[number];
}

static void run_crew(struct worker *worker, int count, long ms, long hold_us, bool own, void *(*body)(void *))
{
    static struct member members[MAX_TASKS];
    const struct peer *peer = worker->peer;
    struct crew crew = {.worker = worker, .hold_us = hold_us, .members = count, .last = -1, .mutex = PTHREAD_MUTEX_INITIALIZER};
    pthread_cond_init(&crew.changed, NULL);
    for (int i = 0; i < count; i++)
        members[i] = (struct member){.crew = &crew, .number = i, .session = own ? session_of(worker, i) : worker->session};
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    run_begin(&crew.run, peer, ms);
    for (int i = 0; i < count; i++) {
        if (pthread_create(&members[i].thread, &attr, body, &members[i]))
            worker_die("cannot start a thread");
    }
    for (int i = 0; i < count; i++)
        pthread_join(members[i].thread, NULL);
    pthread_attr_destroy(&attr);
    run_print(&crew.run, peer, crew.run.end_us);
    pthread_cond_destroy(&crew.changed);
}

static void do_many(struct worker *worker, int count, long ms)
{
    if (!worker->peer->many) {
        run_crew(worker, count, ms, 0, !worker->peer->shared, one_of_many);
        return;
    }
    struct worker_run run;
    run_begin(&run, worker->peer, ms);
    worker->peer->many(worker->mode, worker->urls, count, &run);
    run_print(&run, worker->peer, worker_now_us());
}

static void do_take(struct worker *worker, const char *key, long ttl_ms, long wait_ms)
{
    const char *error = "?";
    char text[200];
    worker->held = worker->peer->acquire(worker->session, key, ttl_ms, wait_ms, &error);
    if (worker->held)
        say("{\"held\": true}");
    else
        say("{\"held\": false, \"error\": \"%s\"}", quoted(error, text, sizeof text));
}

static void do_release(struct worker *worker)
{
    const char *error = "nothing is held";
    char text[200];
    if (worker->held && worker->peer->release(worker->session, worker->held, &error))
        say("{\"released\": true}");
    else
        say("{\"released\": false, \"error\": \"%s\"}", quoted(error, text, sizeof text));
    worker->held = NULL;
}

int worker_main(int argc, char **argv, const struct peer *peer)
{
    if (argc != 3) {
        fprintf(stderr, "usage: %s MODE URLS, then commands on stdin (see bench/peers/README.md)\n", argv[0]);
        return 2;
    }
    struct worker worker = {.peer = peer, .mode = argv[1], .urls = argv[2], .session = peer->open(argv[1], argv[2])};
    say("{\"ready\": true}");
    char line[LINE], key[LINE];
    while (fgets(line, sizeof line, stdin)) {
        long a, b, c;
        if (sscanf(line, "cycle %ld", &a) == 1)
            do_cycle(&worker, a);
        else if (sscanf(line, "many %ld %ld", &a, &b) == 2 && a > 0 && a <= MAX_TASKS)
            do_many(&worker, (int)a, b);
        else if (sscanf(line, "contend %ld %ld %ld", &a, &b, &c) == 3 && a > 1 && a <= MAX_TASKS)
            run_crew(&worker, (int)a, b, c, true, one_waiter);
        else if (sscanf(line, "take %511s %ld %ld", key, &a, &b) == 3)
            do_take(&worker, key, a, b);
        else if (!strncmp(line, "release", 7))
            do_release(&worker);
        else if (!strncmp(line, "quit", 4))
            break;
        else
            say("{\"error\": \"unknown command\"}");
    }
    peer->close(worker.session);
    return 0;
}
