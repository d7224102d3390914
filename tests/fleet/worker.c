/* worker.c - one contender of the mixed fleet, through the public API.
 *
 * Why: redlatch claims that with an empty prefix it shares locks with other Redlock clients. This program and its siblings
 * worker.js and worker.py take one lock in turn and raise one shared counter under it, deliberately not atomically: read, pause,
 * write. If two of them are ever inside at once an update is lost, and run.sh sees a counter below the number of sections.
 *
 * With a sixth argument "unlocked" it does the same without the lock: the control run, which has to lose updates.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <redlatch.h>

enum { TTL_MS = 10000, WAIT_MS = 2000, COUNTER_WIDTH = 20 };

static int64_t now_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * INT64_C(1000) + ts.tv_nsec / 1000000;
}

static void pause_ms(long ms)
{
    struct timespec ts = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&ts, NULL);
}

static void fail(const char *who, const char *what)
{
    fprintf(stderr, "%s: %s\n", who, what);
    exit(1);
}

/* The guarded section: three steps that only a lock makes one. The text has a fixed width, so that a write never leaves a tail. */
static void raise_counter(const char *who, int fd)
{
    char text[COUNTER_WIDTH + 1] = "";
    if (pread(fd, text, COUNTER_WIDTH, 0) < 0)
        fail(who, "cannot read the counter");
    int64_t next = strtoll(text, NULL, 10) + 1;
    pause_ms(1);
    snprintf(text, sizeof text, "%0*" PRId64, COUNTER_WIDTH, next);
    if (pwrite(fd, text, COUNTER_WIDTH, 0) != COUNTER_WIDTH)
        fail(who, "cannot write the counter");
}

/* One turn: 1 if the section was entered, 0 if somebody else held the lock all the time. */
static int take_turn(const char *who, rl_client *client, const char *key, int fd)
{
    rl_lock *lock;
    int rc = rl_acquire(client, key, TTL_MS, WAIT_MS, &lock);
    if (rc == RL_BUSY)
        return 0;
    if (rc)
        fail(who, rl_strstatus(rc));
    raise_counter(who, fd);
    rc = rl_release(lock);
    if (rc)
        fail(who, rl_strstatus(rc));
    return 1;
}

static rl_client *new_client(const char *who, const char *urls)
{
    rl_options options;
    rl_options_init(&options);
    options.prefix = "";
    rl_client *client;
    int rc = rl_client_new(urls, &options, &client, NULL);
    if (rc)
        fail(who, rl_strstatus(rc));
    return client;
}

int main(int argc, char **argv)
{
    if (argc < 6) {
        fprintf(stderr, "usage: %s NAME URLS KEY COUNTER-FILE SECONDS [unlocked]\n", argv[0]);
        return 2;
    }
    const char *who = argv[1];
    int unlocked = argc > 6 && !strcmp(argv[6], "unlocked");
    int fd = open(argv[4], O_RDWR | O_CLOEXEC);
    if (fd < 0)
        fail(who, "cannot open the counter");
    rl_client *client = new_client(who, argv[2]);
    int64_t sections = 0, end = now_ms() + strtoll(argv[5], NULL, 10) * 1000;
    srandom((unsigned)getpid());
    while (now_ms() < end) {
        if (unlocked) {
            raise_counter(who, fd);
            sections++;
        } else {
            sections += take_turn(who, client, argv[3], fd);
        }
        pause_ms(1 + random() % 5);
    }
    rl_client_free(client);
    close(fd);
    printf("%s %" PRId64 "\n", who, sections);
    return 0;
}
