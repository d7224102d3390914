/* test_hostile.c - servers that answer what no Redis server answers, stop in the middle, or talk without end.
 *
 * Alone (N = 1) every such answer gets its status within the call's bound; among two honest ones (N = 3) it changes nothing. No
 * crash, no SIGPIPE, no leak, no memory without bound.
 */
#include "../real/real.h"

#include "hostile.h"

#include <fcntl.h>
#include <unistd.h>

/* ---- Bounds ------------------------------------------------------------------------------------------------------------------- */

enum {
    TIMEOUT = 150,        /* ms: of nodes, where an answer is not meant to come */
    CLEANUP = 10,         /* ms: of a clean-up that nobody listens to */
    LULL = 1500,          /* ms: what a busy machine may add; what these tests look for takes longer, or for ever */
    MOST_MEMORY = 4 << 20 /* bytes that a call may need, the hostile server's included */
};

static int64_t timeout(void)
{
    return TIMEOUT * (int64_t)ts_slowness();
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* A line of /proc/self/status, in bytes. */
static int64_t status_line(const char *name)
{
    char line[256];
    long long kb = 0;
    FILE *file = fopen("/proc/self/status", "re");
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        if (strncmp(line, name, strlen(name)) == 0)
            kb = atoll(line + strlen(name) + 1);
    fclose(file);
    return kb * 1024;
}

/* Starts to watch for the most memory in use; memory_grew is by how much it was more than now. Nothing where it can't be told. */
static int64_t memory_before;

static void memory_watch(void)
{
    int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
    bool reset = fd >= 0 && write(fd, "5", 1) == 1;
    if (fd >= 0)
        close(fd);
    memory_before = reset && !SANITIZED && ts_slowness() == 1 ? status_line("VmRSS") : -1;
}

static void memory_check(const char *what)
{
    if (memory_before < 0)
        return;
    int64_t grew = status_line("VmHWM") - memory_before;
    ts_check(grew < MOST_MEMORY, "%s: %lld KiB of memory", what, (long long)grew / 1024);
}

/* ---- One hostile server, and a client of it ------------------------------------------------------------------------------------- */

struct trial {
    const char *what; /* for messages */
    ts_hostile *hostile;
    rl_client *client;
    rl_report *report;
    rl_lock *lock;
    int status;
    rl_node_result said; /* of the hostile one */
    int64_t took;
};

static struct trial trial_of(const char *what, const ts_step *script)
{
    struct trial t = {.what = what, .hostile = ts_hostile_start(script), .report = new_report()};
    return t;
}

/* As the only node. `answers`: something comes of each request, so that no time has to run out, however busy the machine is. */
static void alone(struct trial *t, bool answers)
{
    rl_options options = options_with(answers ? SOON : timeout(), CLEANUP);
    t->client = client_with(ts_hostile_url(t->hostile), &options);
}

/* The hostile one first, so that it is asked first. */
static void among_honest_ones(struct trial *t)
{
    char urls[256];
    rl_options options = options_with(SOON, CLEANUP);
    snprintf(urls, sizeof urls, "%s,%s,%s", ts_hostile_url(t->hostile), ts_server_url(P1), ts_server_url(P2));
    t->client = client_with(urls, &options);
}

static void note(struct trial *t, int64_t began, int status)
{
    t->took = ts_mono_ms() - began;
    t->status = status;
    if (rl_report_count(t->report))
        t->said = said(t->report, 0);
}

static void acquire(struct trial *t)
{
    int64_t began = ts_mono_ms();
    t->lock = (rl_lock *)(uintptr_t)1;
    note(t, began, take(t->client, "job", LONG, 0, t->report, &t->lock));
    ts_check((t->lock != NULL) == (t->status == RL_OK), "%s: a handle with %s", t->what, rl_strstatus(t->status));
}

/* Where the time is short: again, if it ran out before the SET was sent. */
static void acquire_in_time(struct trial *t)
{
    int tries = 0;
    do
        acquire(t);
    while (t->said.outcome == RL_NODE_UNREACHABLE && ++tries < 20);
}

static void extend(struct trial *t)
{
    int64_t began = ts_mono_ms();
    note(t, began, rl_extend(t->lock, LONG, t->report));
}

static void release(struct trial *t)
{
    int64_t began = ts_mono_ms();
    note(t, began, rl_release_with(t->lock, 0, t->report));
    t->lock = NULL;
}

/* The call ended like that, within ms; the hostile node's part in it was that. -1 = whatever. */
#define check_trial(t, status, outcome, ms) check_trial_at(__LINE__, (t), (status), (outcome), (ms))
static void check_trial_at(int line, const struct trial *t, int status, int outcome, int64_t ms)
{
    if ((status != -1 && t->status != status) || (outcome != -1 && t->said.outcome != outcome) ||
        t->took > ms + LULL * ts_slowness())
        ts_fail_at(__FILE__, line, "%s: %s after %lld ms, outcome %d, errno %d, \"%s\"; expected %s, %d", t->what,
                   rl_strstatus(t->status), (long long)t->took, (int)t->said.outcome, (int)t->said.sys_errno,
                   t->said.text ? t->said.text : "", rl_strstatus(status), outcome);
}

static void end_client(struct trial *t)
{
    int64_t began = ts_mono_ms();
    rl_lock_free(t->lock);
    rl_client_free(t->client);
    t->took = ts_mono_ms() - began;
    ts_check(t->took <= CLEANUP + LULL * ts_slowness(), "%s: rl_client_free took %lld ms", t->what, (long long)t->took);
    t->client = NULL;
    t->lock = NULL;
}

static void end(struct trial *t)
{
    end_client(t);
    ts_hostile_stop(t->hostile);
    rl_report_free(t->report);
    t->hostile = NULL;
}

/* ---- What is no RESP2 ------------------------------------------------------------------------------------------------------------ */

struct noise {
    const char *what, *bytes;
    size_t len;
    int64_t times; /* 1, a number, or -1 = without end */
    bool unended;  /* not wrong yet: the rest of it never comes */
};
#define NOISE(what, literal, times)                                                                                                \
    {                                                                                                                              \
        (what), (literal), sizeof(literal) - 1, (times), false                                                                     \
    }
#define UNENDED(what, literal)                                                                                                     \
    {                                                                                                                              \
        (what), (literal), sizeof(literal) - 1, 1, true                                                                            \
    }

static const struct noise noises[] = {
    NOISE("array of 2^31 - 1", "*2147483647\r\n", 1),
    NOISE("array of 2^32", "*4294967296\r\n", 1),
    NOISE("array of 2^63", "*9223372036854775808\r\n", 1),
    NOISE("array of 1025", "*1025\r\n", 1),
    NOISE("array of -2", "*-2\r\n", 1),
    NOISE("a million nested arrays", "*1\r\n", 1000000),
    NOISE("five nested arrays", "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n", 1),
    NOISE("nested arrays of 1024", "*1024\r\n", 1000),
    NOISE("bulk of 4 GB, endless", "$4000000000\r\n", -1),
    NOISE("bulk of 65537, endless", "$65537\r\n", -1),
    NOISE("bulk of -2", "$-2\r\n", 1),
    NOISE("bulk of text", "$abc\r\n", 1),
    NOISE("array of endless bulks", "*1000\r\n$60000\r\n", -1),
    NOISE("endless status", "+a", -1),
    NOISE("endless error", "-a", -1),
    NOISE("endless integer", ":1", -1),
    NOISE("integer too large", ":99999999999999999999\r\n", 1),
    NOISE("integer of text", ":12x\r\n", 1),
    NOISE("empty integer", ":\r\n", 1),
    NOISE("HTTP", "HTTP/1.1 400 Bad Request\r\nServer: nginx\r\nConnection: close\r\n\r\n<html></html>", 1),
    NOISE("TLS alert", "\x15\x03\x01\x00\x02\x02\x28", 1),
    NOISE("TLS hello, endless", "\x16\x03\x03\x00\x7a\x02\x00\x00", -1),
    NOISE("SMTP", "220 mail.example ESMTP\r\n", 1),
    NOISE("zeros, endless", "\0\0\0\0\0\0\0\0", -1),
    NOISE("line ends", "\r\n\r\n\r\n", 1),
    NOISE("RESP3 map", "%1\r\n+a\r\n:1\r\n", 1),
    NOISE("RESP3 null", "_\r\n", 1),
    NOISE("RESP3 boolean", "#t\r\n", 1),
    NOISE("RESP3 double", ",1.5\r\n", 1),
    NOISE("RESP3 push", ">2\r\n+message\r\n+x\r\n", 1),
    NOISE("RESP3 set", "~1\r\n+OK\r\n", 1),
    NOISE("RESP3 attribute", "|1\r\n+a\r\n:1\r\n+OK\r\n", 1),
    NOISE("RESP3 big number", "(3492890328409238509324850943850943825024385\r\n", 1),
    NOISE("RESP3 verbatim", "=6\r\ntxt:OK\r\n", 1),
    NOISE("RESP3 blob error", "!5\r\nERR x\r\n", 1),
    NOISE("RESP3 boolean in an array", "*1\r\n#t\r\n", 1),
    UNENDED("half an array", "*2\r\n:2\r\n"),
    UNENDED("half a bulk", "$10\r\nabc"),
    UNENDED("a status without its end", "+OK\r"),
    UNENDED("nothing", ""),
};
enum { NOISES = sizeof noises / sizeof noises[0] };

enum stage { AT_HELLO, AT_SET, AT_EXTEND, AT_RELEASE, STAGES };

/* An honest server until it comes to that command; then noise, until the client has gone. */
static void write_script(ts_step script[5], const struct noise *noise, enum stage stage)
{
    static const char *const until[STAGES] = {"CLIENT SETNAME", "SET", "EVALSHA", "EVALSHA"};
    script[0] = (ts_step)TS_SERVE_UNTIL(until[stage]);
    script[1] = (ts_step)TS_EXPECT(until[stage]);
    script[2] = (ts_step)TS_STEP(REPEAT, noise->bytes, noise->len, noise->times);
    if (noise->len == 0)
        script[2] = (ts_step)TS_SLEEP(0);
    script[3] = (ts_step)TS_READ_TO_END;
    script[4] = (ts_step)TS_END;
}

static void check_noise(struct trial *t, const struct noise *noise, enum stage stage, int64_t end)
{
    int outcome = !noise->unended ? RL_NODE_ERROR : stage == AT_HELLO ? RL_NODE_UNREACHABLE : RL_NODE_NO_ANSWER;
    check_trial(t, RL_E_NO_QUORUM, outcome, noise->unended ? timeout() : 0);
    if (!noise->unended)
        ts_check(strstr(t->said.text, "not a Redis server's answer"), "%s: \"%s\"", t->what, t->said.text);
    if (stage == AT_EXTEND)
        ts_between(ts_now_ms() + rl_lock_remaining_ms(t->lock), end - 2, end + 2);
    if (stage == AT_RELEASE)
        ts_between(rl_report_free_in_ms(t->report), LONG / 2, 2 * LONG);
}

static void noise_alone(enum stage stage)
{
    for (int i = 0; i < NOISES; i++) {
        ts_step script[5];
        int64_t until = 0;
        write_script(script, &noises[i], stage);
        struct trial t = trial_of(noises[i].what, script);
        memory_watch();
        alone(&t, !noises[i].unended);
        if (stage == AT_HELLO)
            acquire(&t);
        else
            acquire_in_time(&t);
        if (stage == AT_EXTEND || stage == AT_RELEASE) {
            check_trial(&t, RL_OK, RL_NODE_YES, 0);
            until = ts_now_ms() + rl_lock_remaining_ms(t.lock);
            if (stage == AT_EXTEND)
                extend(&t);
            else
                release(&t);
        }
        check_noise(&t, &noises[i], stage, until);
        end_client(&t);
        memory_check(t.what);
        end(&t);
    }
}

/* S9.1, S2.3, hiredis' pitfalls 33 - 36: in place of the first answer of the handshake. */
static void noise_at_hello(void **state)
{
    (void)state;
    noise_alone(AT_HELLO);
}

static void noise_for_set(void **state)
{
    (void)state;
    noise_alone(AT_SET);
}

/* S5.2: the old deadline stands. */
static void noise_for_extend(void **state)
{
    (void)state;
    noise_alone(AT_EXTEND);
}

static void noise_for_release(void **state)
{
    (void)state;
    noise_alone(AT_RELEASE);
}

/* S2.6: whatever one of three says, the other two decide, at once. */
static void noise_among_honest_ones(void **state)
{
    (void)state;
    for (int i = 0; i < NOISES * 3; i++) {
        ts_step script[5];
        write_script(script, &noises[i / 3], i % 3);
        struct trial t = trial_of(noises[i / 3].what, script);
        memory_watch();
        among_honest_ones(&t);
        acquire(&t);
        check_trial(&t, RL_OK, -1, 0);
        extend(&t);
        check_trial(&t, RL_OK, -1, 0);
        release(&t);
        check_trial(&t, RL_OK, -1, 0);
        end_client(&t);
        memory_check(t.what);
        end(&t);
        check_gone("rl:job");
    }
}

/* ---- Good RESP2 of the wrong kind --------------------------------------------------------------------------------------------------- */

struct reply {
    const char *bytes;
    int set, extend, release; /* what the calls return at N = 1 */
};

static const struct reply replies[] = {
    /* rl_acquire, rl_extend, rl_release */
    {"+OK\r\n", RL_OK, RL_E_NO_QUORUM, RL_E_NO_QUORUM},
    {"+ok\r\n", RL_E_NO_QUORUM, RL_E_NO_QUORUM, RL_E_NO_QUORUM},
    {"+QUEUED\r\n", RL_E_NO_QUORUM, RL_E_NO_QUORUM, RL_E_NO_QUORUM},
    {"+\r\n", RL_E_NO_QUORUM, RL_E_NO_QUORUM, RL_E_NO_QUORUM},
    {"$2\r\nOK\r\n", RL_E_NO_QUORUM, RL_E_NO_QUORUM, RL_E_NO_QUORUM},
    {"$1\r\n1\r\n", RL_E_NO_QUORUM, RL_E_NO_QUORUM, RL_E_NO_QUORUM},
    {"$0\r\n\r\n", RL_E_NO_QUORUM, RL_E_NO_QUORUM, RL_E_NO_QUORUM},
    {"$-1\r\n", RL_BUSY, RL_E_NO_QUORUM, RL_E_NO_QUORUM},
    {":1\r\n", RL_E_NO_QUORUM, RL_OK, RL_OK},
    {":0\r\n", RL_E_NO_QUORUM, RL_LOST, RL_LOST},
    {":2\r\n", RL_E_NO_QUORUM, RL_LOST, RL_LOST},
    {":3\r\n", RL_E_NO_QUORUM, RL_E_NO_QUORUM, RL_E_NO_QUORUM},
    {":-1\r\n", RL_E_NO_QUORUM, RL_E_NO_QUORUM, RL_E_NO_QUORUM},
    {":4294967297\r\n", RL_E_NO_QUORUM, RL_E_NO_QUORUM, RL_E_NO_QUORUM},
    {":9223372036854775807\r\n", RL_E_NO_QUORUM, RL_E_NO_QUORUM, RL_E_NO_QUORUM},
    {":-9223372036854775808\r\n", RL_E_NO_QUORUM, RL_E_NO_QUORUM, RL_E_NO_QUORUM},
    {"*0\r\n", RL_E_NO_QUORUM, RL_E_NO_QUORUM, RL_E_NO_QUORUM},
    {"*1\r\n:1\r\n", RL_E_NO_QUORUM, RL_E_NO_QUORUM, RL_E_NO_QUORUM},
    {"*1\r\n:2\r\n", RL_E_NO_QUORUM, RL_E_NO_QUORUM, RL_E_NO_QUORUM},
    {"*1\r\n+OK\r\n", RL_E_NO_QUORUM, RL_E_NO_QUORUM, RL_E_NO_QUORUM},
    {"*2\r\n:1\r\n:1\r\n", RL_E_NO_QUORUM, RL_E_NO_QUORUM, RL_E_NO_QUORUM},
    {"*2\r\n:0\r\n:0\r\n", RL_E_NO_QUORUM, RL_E_NO_QUORUM, RL_E_NO_QUORUM},
    {"*2\r\n:2\r\n$1\r\nx\r\n", RL_E_NO_QUORUM, RL_E_NO_QUORUM, RL_E_NO_QUORUM},
    {"*2\r\n+2\r\n:5\r\n", RL_E_NO_QUORUM, RL_E_NO_QUORUM, RL_E_NO_QUORUM},
    {"*2\r\n$-1\r\n:5\r\n", RL_E_NO_QUORUM, RL_E_NO_QUORUM, RL_E_NO_QUORUM},
    {"*3\r\n:2\r\n:5\r\n:5\r\n", RL_E_NO_QUORUM, RL_E_NO_QUORUM, RL_E_NO_QUORUM},
    {"*2\r\n*1\r\n:2\r\n:5\r\n", RL_E_NO_QUORUM, RL_E_NO_QUORUM, RL_E_NO_QUORUM},
    {"*2\r\n*2\r\n:2\r\n:5\r\n:5\r\n", RL_E_NO_QUORUM, RL_E_NO_QUORUM, RL_E_NO_QUORUM},
    {"*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n", RL_E_NO_QUORUM, RL_E_NO_QUORUM, RL_E_NO_QUORUM},
    {"*2\r\n:2\r\n:100\r\n", RL_E_NO_QUORUM, -1, RL_LOST},
    {"*2\r\n:2\r\n:-1\r\n", RL_E_NO_QUORUM, -1, RL_LOST},
    {"*2\r\n:2\r\n:9223372036854775807\r\n", RL_E_NO_QUORUM, -1, RL_LOST},
    {"*2\r\n:2\r\n:-9223372036854775808\r\n", RL_E_NO_QUORUM, -1, RL_LOST},
    {"-WRONGTYPE Operation against a key holding the wrong kind of value\r\n", RL_E_NO_QUORUM, RL_LOST, RL_LOST},
    {"-ERR\r\n", RL_E_NO_QUORUM, RL_E_NO_QUORUM, RL_E_NO_QUORUM},
    {"-\r\n", RL_E_NO_QUORUM, RL_E_NO_QUORUM, RL_E_NO_QUORUM},
    {"-NOPERM x\r\n", RL_E_AUTH, RL_E_AUTH, RL_E_AUTH},
    {"-MOVED 1 127.0.0.1:1\r\n", RL_E_NO_QUORUM, RL_E_NO_QUORUM, RL_E_NO_QUORUM},
};
enum { REPLIES = sizeof replies / sizeof replies[0] };

/* A lock of a server that answers the release, or the extension, like that. */
static struct trial held(const char *bytes)
{
    struct trial t = trial_of(bytes, NULL);
    alone(&t, true);
    acquire(&t);
    check_trial(&t, RL_OK, RL_NODE_YES, 0);
    ts_hostile_answer(t.hostile, "EVALSHA", bytes);
    return t;
}

/* S2.4: the type is looked at before the value; an unexpected one is an error. */
static void wrong_types(void **state)
{
    (void)state;
    for (int i = 0; i < REPLIES; i++) {
        const struct reply *r = &replies[i];
        struct trial t = trial_of(r->bytes, NULL);
        ts_hostile_answer(t.hostile, "SET", r->bytes);
        alone(&t, true);
        acquire(&t);
        check_trial(&t, r->set, r->set == RL_OK ? RL_NODE_YES : r->set == RL_BUSY ? RL_NODE_HELD_BY_OTHER : RL_NODE_ERROR, 0);
        ts_equal(ts_hostile_connections(t.hostile), 1);     /* it is an answer: the connection goes on */
        if (r->set == RL_E_NO_QUORUM && r->bytes[0] != '-') /* whatever it means, the key may be set (S2.3) */
            ts_check(ts_hostile_wait(t.hostile, "EVALSHA", 1, SOON), "%s: no release", t.what);
        end(&t);

        t = held(r->bytes);
        int64_t until = ts_now_ms() + rl_lock_remaining_ms(t.lock);
        extend(&t);
        check_trial(&t, r->extend, -1, 0);
        if (t.status < 0)
            ts_between(ts_now_ms() + rl_lock_remaining_ms(t.lock), until - 2, until + 2);
        end(&t);

        t = held(r->bytes);
        release(&t);
        check_trial(&t, r->release, -1, 0);
        ts_check((rl_report_free_in_ms(t.report) == 0) == (t.status >= 0), "%s: free in %lld ms", t.what,
                 (long long)rl_report_free_in_ms(t.report));
        end(&t);
    }
}

static void wrong_types_among_honest_ones(void **state)
{
    (void)state;
    for (int i = 0; i < REPLIES; i++) {
        struct trial t = trial_of(replies[i].bytes, NULL);
        ts_hostile_answer(t.hostile, NULL, replies[i].bytes);
        ts_hostile_answer(t.hostile, "CLIENT", i % 2 ? replies[i].bytes : "+OK\r\n");
        among_honest_ones(&t);
        acquire(&t);
        check_trial(&t, RL_OK, -1, 0);
        extend(&t);
        check_trial(&t, RL_OK, -1, 0);
        release(&t);
        check_trial(&t, RL_OK, -1, 0);
        end(&t);
        check_gone("rl:job");
    }
}

/* S8.6: an answer to a grant that is no usable counter makes no fence: an error alone, a vote against among honest ones. */
static void counters_of_no_use(void **state)
{
    (void)state;
    static const char *const counters[] = {
        ":0\r\n", ":-1\r\n",     ":9007199254740992\r\n", ":9223372036854775807\r\n", ":-9223372036854775808\r\n", "+OK\r\n",
        "+5\r\n", "$1\r\n5\r\n", "*1\r\n:5\r\n",          "*2\r\n:2\r\n:5\r\n",       "-ERR no fence\r\n",         "*0\r\n",
        ":1\r\n",
    };
    enum { COUNT = sizeof counters / sizeof counters[0] };
    for (int i = 0; i < 2 * COUNT; i++) {
        char urls[256];
        bool good = i / 2 == COUNT - 1, single = i % 2 == 0;
        rl_options options = options_with(SOON, CLEANUP);
        options.fence = RL_FENCE_QUORUM;
        struct trial t = trial_of(counters[i / 2], NULL);
        ts_hostile_answer(t.hostile, "EVALSHA", counters[i / 2]);
        snprintf(urls, sizeof urls, single ? "%s" : "%s,%s,%s", ts_hostile_url(t.hostile), ts_server_url(P1), ts_server_url(P2));
        t.client = client_with(urls, &options);
        acquire(&t);
        check_trial(&t, good || !single ? RL_OK : RL_E_NO_QUORUM, single ? good ? RL_NODE_YES : RL_NODE_ERROR : -1, 0);
        if (t.lock)
            ts_between(rl_lock_fence(t.lock), 1, RL_MAX_FENCE - 1);
        if (!single) {
            extend(&t);
            check_trial(&t, RL_OK, -1, 0);
            release(&t);
            check_trial(&t, RL_OK, -1, 0);
        }
        end(&t);
    }
    check_gone("rl:job");
}

/* Another's lease as the server tells it: whatever it says, a waiting acquisition neither spins nor oversleeps its wait. */
static void leases_of_others(void **state)
{
    (void)state;
    static const char *const left[] = {
        "*2\r\n:2\r\n:0\r\n",
        "*2\r\n:2\r\n:-1\r\n",
        "*2\r\n:2\r\n:-9223372036854775808\r\n",
        "*2\r\n:2\r\n:9223372036854775807\r\n",
        ":2\r\n",
        "$-1\r\n",
    };
    enum { WAIT = 120 };
    for (size_t i = 0; i < sizeof left / sizeof left[0]; i++) {
        struct trial t = trial_of(left[i], NULL);
        ts_hostile_answer(t.hostile, "SET", "$-1\r\n");
        ts_hostile_answer(t.hostile, "EVALSHA", left[i]);
        alone(&t, true);
        int64_t began = ts_mono_ms();
        t.lock = NULL;
        note(&t, began, take(t.client, "job", LONG, WAIT, t.report, &t.lock));
        check_trial(&t, -1, -1, WAIT);
        ts_check(t.status == RL_BUSY || t.status == RL_E_NO_QUORUM, "%s: %s", t.what, rl_strstatus(t.status));
        ts_between(t.took, WAIT - 10, WAIT + slack());
        ts_between(ts_hostile_count(t.hostile, "SET"), 1, i == 0 ? WAIT : 16); /* it is worth being quick only where it ends now */
        end(&t);
    }
}

/* ---- Answers too many ---------------------------------------------------------------------------------------------------------------- */

/* S3.5: the surplus ends the connection; the answer before it counts, and the release finds its way over a new one. */
static void answer_too_many(void **state)
{
    (void)state;
    static const ts_step one[] = {TS_SERVE_UNTIL("SET"), TS_EXPECT("SET"), TS_SEND("+OK\r\n+OK\r\n"), TS_READ_TO_END, TS_END};
    static const ts_step endless[] = {TS_SERVE_UNTIL("SET"), TS_EXPECT("SET"), TS_REPEAT("+OK\r\n", -1), TS_READ_TO_END, TS_END};
    static const ts_step honest[] = {TS_SERVE(-1), TS_END};
    for (int i = 0; i < 2; i++) {
        struct trial t = trial_of(i ? "endless answers" : "one too many", honest);
        ts_hostile_script(t.hostile, 0, i ? endless : one);
        memory_watch();
        alone(&t, true);
        acquire(&t);
        check_trial(&t, RL_OK, RL_NODE_YES, 0);
        release(&t);
        check_trial(&t, RL_OK, RL_NODE_YES, 0);
        ts_equal(ts_hostile_connections(t.hostile), 2);
        end_client(&t);
        memory_check(t.what);
        ts_check(!ts_hostile_error(t.hostile), "%s", ts_hostile_error(t.hostile));
        end(&t);
    }
}

/* "Taken" that was meant for nobody is not read as "acquired": it came before the request was sent. */
static void answer_before_the_request(void **state)
{
    (void)state;
    static const ts_step script[] = {TS_EXPECT("CLIENT SETNAME"),
                                     TS_EXPECT("CLIENT INFO"),
                                     TS_EXPECT("SCRIPT LOAD"),
                                     TS_EXPECT("SCRIPT LOAD"),
                                     TS_SEND("+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n"),
                                     TS_READ_TO_END,
                                     TS_END};
    struct trial t = trial_of("an answer before the request", script);
    alone(&t, false);
    acquire(&t);
    check_trial(&t, RL_E_NO_QUORUM, -1, timeout());
    end(&t);
}

/* Answers to the whole handshake, and nothing more, before it was read. */
static void answers_in_advance(void **state)
{
    (void)state;
    static const ts_step script[] = {TS_SEND("+OK\r\n+OK\r\n+OK\r\n+OK\r\n"), TS_READ_TO_END, TS_END};
    struct trial t = trial_of("answers in advance", script);
    alone(&t, false);
    acquire(&t);
    check_trial(&t, RL_E_NO_QUORUM, -1, timeout());
    end(&t);
}

/* ---- Slow ---------------------------------------------------------------------------------------------------------------------------- */

/* S1.2, A6: an answer byte by byte that is late as a whole is no vote, nor is it taken for the next one's. */
static void trickle_too_slow(void **state)
{
    (void)state;
    static const ts_step slow[] = {TS_SERVE_UNTIL("SET"), TS_EXPECT("SET"), TS_TRICKLE("+OK\r\n", 200), TS_SERVE(-1), TS_END};
    struct trial t = trial_of("a slow answer", slow);
    t.client = hasty(ts_hostile_url(t.hostile), 500);
    acquire(&t);
    check_trial(&t, RL_E_NO_QUORUM, RL_NODE_NO_ANSWER, 500);
    ts_hostile_answer(t.hostile, "SET", "$-1\r\n");
    for (int64_t limit = ts_mono_ms() + SOON; t.status == RL_E_NO_QUORUM && ts_mono_ms() < limit;)
        acquire(&t);
    check_trial(&t, RL_BUSY, RL_NODE_HELD_BY_OTHER, 500);
    ts_equal(ts_hostile_connections(t.hostile), 1);
    end(&t);
}

static void trickle_in_time(void **state)
{
    (void)state;
    static const ts_step slow[] = {TS_EXPECT("CLIENT SETNAME"),
                                   TS_EXPECT("CLIENT INFO"),
                                   TS_EXPECT("SCRIPT LOAD"),
                                   TS_EXPECT("SCRIPT LOAD"),
                                   TS_TRICKLE("+OK\r\n$21\r\nid=7 addr=127.0.0.1:1\r\n-ERR\r\n+\r\n", 2),
                                   TS_EXPECT("SET"),
                                   TS_TRICKLE("+OK\r\n", 5),
                                   TS_EXPECT("EVALSHA"),
                                   TS_TRICKLE("-NOSCRIPT x\r\n", 1),
                                   TS_EXPECT("EVAL"),
                                   TS_TRICKLE(":1\r\n", 5),
                                   TS_EXPECT("EVALSHA"),
                                   TS_TRICKLE("*2\r\n:2\r\n:12345\r\n", 1),
                                   TS_READ_TO_END,
                                   TS_END};
    struct trial t = trial_of("a slow answer, in time", slow);
    t.client = hasty(ts_hostile_url(t.hostile), SOON);
    acquire(&t);
    check_trial(&t, RL_OK, RL_NODE_YES, SOON);
    ts_between(t.took, 80, SOON);
    extend(&t);
    check_trial(&t, RL_OK, RL_NODE_YES, SOON);
    release(&t);
    check_trial(&t, RL_LOST, RL_NODE_HELD_BY_OTHER, SOON);
    ts_check(!ts_hostile_error(t.hostile), "%s", ts_hostile_error(t.hostile));
    end(&t);
}

static void trickle_for_ever(void **state)
{
    (void)state;
    static const ts_step hello[] = {TS_TRICKLE("+OKOKOKOKOKOKOKOKOKOKOKOKOKOKOKOKOKOKOKOKOKOKOKOK", 20), TS_READ_TO_END, TS_END};
    static const ts_step silent[] = {TS_READ_TO_END, TS_END};
    static const ts_step deaf[] = {TS_HANG, TS_END};
    const ts_step *const scripts[] = {hello, silent, deaf};
    for (int i = 0; i < 3; i++) {
        struct trial t = trial_of("a handshake without end", scripts[i]);
        alone(&t, false);
        acquire(&t);
        check_trial(&t, RL_E_NO_QUORUM, RL_NODE_UNREACHABLE, timeout());
        ts_equal(t.said.sys_errno, ETIMEDOUT);
        ts_between(t.took, timeout() - 1, timeout() + slack());
        for (int64_t limit = ts_mono_ms() + SOON; ts_hostile_connections(t.hostile) < 2 && ts_mono_ms() < limit;)
            acquire(&t); /* the half-made connection was given up, too */
        ts_between(ts_hostile_connections(t.hostile), 2, 3);
        end(&t);

        t = trial_of("a handshake without end", scripts[i]);
        among_honest_ones(&t);
        acquire(&t);
        check_trial(&t, RL_OK, RL_NODE_PENDING, 0);
        release(&t);
        check_trial(&t, RL_OK, RL_NODE_PENDING, 0);
        end(&t);
        check_gone("rl:job");
    }
}

/* A flood that is to be drained, since a SET was not answered: as long as the clean-up may last, and in bounded memory. */
static void flood_while_cleaning_up(void **state)
{
    (void)state;
    static const ts_step flood[] = {TS_SERVE_UNTIL("SET"), TS_EXPECT("SET"), TS_REPEAT("$4000000000\r\n", -1), TS_READ_TO_END,
                                    TS_END};
    struct trial t = trial_of("a flood", flood);
    memory_watch();
    t.client = hasty(ts_hostile_url(t.hostile), timeout());
    acquire(&t);
    check_trial(&t, RL_E_NO_QUORUM, RL_NODE_ERROR, 0);
    acquire(&t);
    check_trial(&t, RL_E_NO_QUORUM, -1, 2 * timeout());
    int64_t began = ts_mono_ms();
    rl_client_free(t.client);
    t.client = NULL;
    ts_between(ts_mono_ms() - began, 0, timeout() + slack());
    memory_check(t.what);
    end(&t);
}

/* Reads nothing after the handshake: what it is sent, and what it owes, stays bounded; the honest ones go on as ever. */
static void deaf_after_the_handshake(void **state)
{
    (void)state;
    static const ts_step deaf[] = {TS_HANDSHAKE, TS_HANG, TS_END};
    struct trial t = trial_of("deaf", deaf);
    char urls[256];
    rl_options options = options_with(400, CLEANUP);
    snprintf(urls, sizeof urls, "%s,%s,%s", ts_hostile_url(t.hostile), ts_server_url(P1), ts_server_url(P2));
    memory_watch();
    t.client = client_with(urls, &options);
    int good = 0, bad = 0;
    for (int64_t until = ts_mono_ms() + 700; ts_mono_ms() < until;) { /* so that it is late for a good while */
        acquire_in_time(&t);
        if (t.lock)
            release(&t);
        check_trial(&t, -1, -1, 400);
        good += t.status == RL_OK;
        bad += t.status != RL_OK;
    }
    ts_equal(t.said.outcome, RL_NODE_LATE);
    ts_check(good >= 20 && bad <= 2, "%d calls succeeded, %d failed", good, bad); /* a busy machine may stop for 400 ms */
    end_client(&t);
    memory_check(t.what);
    end(&t);
    check_gone("rl:job");
}

/* ---- Ended in the middle ----------------------------------------------------------------------------------------------------------------- */

/* What an honest server says from the start to the grant of a SET, for tests to cut. */
static size_t whole_dialogue(char *bytes, size_t size, size_t *ret_greeting)
{
    static const char info[] = "id=7 addr=127.0.0.1:40000 laddr=127.0.0.1:6379 fd=8 name= age=0 idle=0 flags=N db=0 resp=2\n";
    static const char digest[] = "da39a3ee5e6b4b0d3255bfef95601890afd80709";
    int greeting = snprintf(bytes, size, "+OK\r\n$%zu\r\n%s\r\n$40\r\n%s\r\n$40\r\n%s\r\n", sizeof info - 1, info, digest, digest);
    *ret_greeting = (size_t)greeting;
    return (size_t)snprintf(bytes + greeting, size - (size_t)greeting, "+OK\r\n") + (size_t)greeting;
}

/* The first `cut` bytes of the dialogue, then the end of the stream or a reset. */
static void write_cut(ts_step script[10], const char *bytes, size_t greeting, size_t cut, bool reset)
{
    ts_step *at = script;
    *at++ = (ts_step)TS_EXPECT("CLIENT SETNAME");
    *at++ = (ts_step)TS_EXPECT("CLIENT INFO");
    *at++ = (ts_step)TS_EXPECT("SCRIPT LOAD");
    *at++ = (ts_step)TS_EXPECT("SCRIPT LOAD");
    *at++ = (ts_step)TS_SEND_BYTES(bytes, cut < greeting ? cut : greeting);
    if (cut >= greeting) {
        *at++ = (ts_step)TS_EXPECT("SET");
        *at++ = (ts_step)TS_SEND_BYTES(bytes + greeting, cut - greeting);
    }
    *at++ = reset ? (ts_step)TS_RESET : (ts_step)TS_CLOSE;
    *at = (ts_step)TS_END;
}

/* S2.3: at every byte, by FIN and by RST; noticed at once, not at the timeout. SIGPIPE keeps its default action (S9.3). */
static void cut_at_every_byte(void **state)
{
    (void)state;
    char bytes[512];
    size_t greeting, len = whole_dialogue(bytes, sizeof bytes, &greeting);
    for (size_t i = 0; i <= 2 * len + 1; i++) {
        size_t cut = i / 2;
        bool reset = i % 2;
        ts_step script[10];
        char what[64];
        snprintf(what, sizeof what, "%s after %zu bytes of %zu", reset ? "RST" : "FIN", cut, len);
        write_cut(script, bytes, greeting, cut, reset);
        struct trial t = trial_of(what, script);
        rl_options options = options_with(SOON, CLEANUP);
        t.client = client_with(ts_hostile_url(t.hostile), &options);
        acquire(&t);
        if (cut < len)
            check_trial(&t, RL_E_NO_QUORUM, reset ? -1 : cut < greeting ? RL_NODE_UNREACHABLE : RL_NODE_NO_ANSWER, 0);
        else if (!reset) /* a reset may overtake the answer */
            check_trial(&t, RL_OK, RL_NODE_YES, 0);
        end(&t);
    }
}

static void cut_among_honest_ones(void **state)
{
    (void)state;
    char bytes[512];
    size_t greeting, len = whole_dialogue(bytes, sizeof bytes, &greeting);
    for (size_t cut = 0; cut <= len; cut++) {
        ts_step script[10];
        write_cut(script, bytes, greeting, cut, cut % 2);
        struct trial t = trial_of("cut", script);
        among_honest_ones(&t);
        acquire(&t);
        check_trial(&t, RL_OK, -1, 0);
        release(&t);
        check_trial(&t, RL_OK, -1, 0);
        end(&t);
    }
    check_gone("rl:job");
}

/* S3.5: within the answer to an extend or a release: half an answer is none, and is not put together with the next one's. */
static void cut_within_an_answer(void **state)
{
    (void)state;
    static const char answer[] = "*2\r\n:2\r\n:12345\r\n";
    const size_t len = sizeof answer - 1;
    for (size_t i = 0; i < 4 * len; i++) {
        size_t cut = i / 4;
        const ts_step script[] = {TS_SERVE_UNTIL("EVALSHA"), TS_EXPECT("EVALSHA"), TS_SEND_BYTES(answer, cut),
                                  i % 2 ? (ts_step)TS_RESET : (ts_step)TS_CLOSE, TS_END};
        struct trial t = trial_of("cut within an answer", script);
        alone(&t, true);
        acquire(&t);
        check_trial(&t, RL_OK, RL_NODE_YES, 0);
        if (i % 4 < 2)
            extend(&t);
        else
            release(&t);
        check_trial(&t, RL_E_NO_QUORUM, -1, 0);
        end(&t);
    }
}

/* Ends at points between the commands, before any byte, and after reading nothing. */
static void ends_between_commands(void **state)
{
    (void)state;
    static const ts_step scripts[][6] = {
        {TS_CLOSE, TS_END},
        {TS_RESET, TS_END},
        {TS_SHUT_WRITE, TS_READ_TO_END, TS_END},
        {TS_EXPECT("CLIENT SETNAME"), TS_RESET, TS_END},
        {TS_HANDSHAKE, TS_CLOSE, TS_END},
        {TS_HANDSHAKE, TS_RESET, TS_END},
        {TS_HANDSHAKE, TS_SHUT_WRITE, TS_READ_TO_END, TS_END},
        {TS_SERVE_UNTIL("SET"), TS_EXPECT("SET"), TS_RESET, TS_END},
        {TS_SERVE_UNTIL("SET"), TS_EXPECT("SET"), TS_SHUT_WRITE, TS_READ_TO_END, TS_END},
    };
    for (size_t i = 0; i < 2 * sizeof scripts / sizeof scripts[0]; i++) {
        char what[32];
        snprintf(what, sizeof what, "end %zu", i / 2);
        struct trial t = trial_of(what, scripts[i / 2]);
        if (i % 2)
            among_honest_ones(&t);
        else
            alone(&t, true);
        for (int again = 0; again < 3; again++) {
            acquire(&t);
            check_trial(&t, i % 2 ? RL_OK : RL_E_NO_QUORUM, -1, 0);
            if (t.lock) {
                extend(&t);
                check_trial(&t, RL_OK, -1, 0);
                release(&t);
                check_trial(&t, RL_OK, -1, 0);
            }
        }
        end(&t);
        check_gone("rl:job");
    }
}

/* S9.3: written to when it is long closed, and once more when that was answered by a reset: no SIGPIPE. */
static void writes_to_a_dead_connection(void **state)
{
    (void)state;
    static const ts_step dies[] = {TS_HANDSHAKE, TS_SERVE(2), TS_CLOSE, TS_END};
    struct trial t = trial_of("a dead connection", NULL);
    ts_hostile_script(t.hostile, 0, dies);
    alone(&t, true);
    rl_lock *first = taken(t.client, "first", LONG), *second = taken(t.client, "second", LONG);
    ts_check(ts_hostile_wait_done(t.hostile, 0, SOON), "it does not close");
    rl_release_with(first, RL_NO_WAIT, NULL);
    ts_sleep_ms(20);
    rl_release_with(second, RL_NO_WAIT, NULL);
    acquire(&t);
    check_trial(&t, RL_OK, RL_NODE_YES, timeout());
    release(&t);
    check_trial(&t, RL_OK, RL_NODE_YES, timeout());
    ts_equal(ts_hostile_connections(t.hostile), 2);
    end(&t);
}

/* Hangs up on a holder: extend and release are sent once more on a new connection, and then it is enough. */
static void ends_at_extend_and_release(void **state)
{
    (void)state;
    static const ts_step ends[] = {TS_SERVE_UNTIL("EVALSHA"), TS_EXPECT("EVALSHA"), TS_CLOSE, TS_END};
    static const ts_step resets[] = {TS_SERVE_UNTIL("EVALSHA"), TS_EXPECT("EVALSHA"), TS_RESET, TS_END};
    static const ts_step partly[] = {TS_SERVE_UNTIL("EVALSHA"), TS_EXPECT("EVALSHA"), TS_SEND(":"), TS_RESET, TS_END};
    const ts_step *const scripts[] = {ends, resets, partly};
    for (int i = 0; i < 3; i++) {
        struct trial t = trial_of("hangs up", scripts[i]);
        rl_options options = options_with(SOON, CLEANUP);
        t.client = client_with(ts_hostile_url(t.hostile), &options);
        acquire(&t);
        check_trial(&t, RL_OK, RL_NODE_YES, 0);
        extend(&t);
        check_trial(&t, RL_E_NO_QUORUM, -1, 0);
        ts_check(rl_lock_remaining_ms(t.lock) > LONG / 2, "lost");
        int sent = ts_hostile_count(t.hostile, "EVALSHA");
        ts_between(sent, 1, 2);
        release(&t);
        check_trial(&t, RL_E_NO_QUORUM, -1, 0);
        ts_between(ts_hostile_count(t.hostile, "EVALSHA") - sent, 0, 3);
        end(&t);
    }
}

/* ---- Words --------------------------------------------------------------------------------------------------------------------------------- */

/* S9.2: printable, and not much of it. */
static void check_text(const struct trial *t, const char *begins)
{
    ts_check(strncmp(t->said.text, begins, strlen(begins)) == 0, "%s: \"%s\"", t->what, t->said.text);
    ts_check(strlen(t->said.text) < 256, "%s: %zu bytes of text", t->what, strlen(t->said.text));
    for (const char *at = t->said.text; *at; at++)
        ts_check(*at >= ' ' && *at <= '~', "%s: \\x%02x in the text", t->what, (unsigned char)*at);
}

static rl_client *with_password(const struct trial *t)
{
    char url[128];
    rl_options options = options_with(SOON, CLEANUP);
    snprintf(url, sizeof url, "redis://user:hunter2@127.0.0.1:%d", ts_hostile_port(t->hostile));
    return client_with(url, &options);
}

static void hostile_words(void **state)
{
    (void)state;
    static char large[10 * 1024 + 16];
    memset(large, 'x', sizeof large);
    memcpy(large, "-ERR ", 5);
    memcpy(large + sizeof large - 3, "\r\n", 3);
    static const struct {
        const char *bytes, *text;
        size_t len;
    } words[] = {
        {"-ERR \x1b[31mred\x1b[0m\a\b\t\x7f\xff\xc3\xa9 \\x41\r\n", "ERR \\x1b[31mred\\x1b[0m\\x07\\x08\\x09\\x7f\\xff\\xc3\\xa9 ",
         0},
        {"-\x01\x02\x03\x04\r\n", "\\x01\\x02\\x03\\x04", 0},
        {"-ERR a\0b\r\n", "ERR a", 10},
        {large, "ERR xxxxxxxxxx", 0},
        {"-ERR %s%n%s%n %99999999d\r\n", "ERR %s%n%s%n", 0},
    };
    static const char *const where[] = {"SET", "AUTH", "EVALSHA"};
    for (size_t i = 0; i < 3 * sizeof words / sizeof words[0]; i++) {
        size_t len = words[i / 3].len ? words[i / 3].len : strlen(words[i / 3].bytes);
        struct trial t = trial_of(words[i / 3].text, NULL);
        ts_hostile_answer_len(t.hostile, where[i % 3], words[i / 3].bytes, len);
        t.client = with_password(&t);
        acquire(&t);
        if (i % 3 == 2) {
            check_trial(&t, RL_OK, RL_NODE_YES, 0);
            extend(&t);
        }
        check_trial(&t, i % 3 == 1 ? RL_E_AUTH : RL_E_NO_QUORUM, RL_NODE_ERROR, 0);
        check_text(&t, words[i / 3].text);
        ts_check(!strstr(t.said.node, "hunter2") && !strstr(t.said.node, "user"), "%s", t.said.node);
        end(&t);
    }
}

/* S9.2: servers that repeat what they were told: passwords, and tokens, which are worth as much. */
static void words_that_repeat_secrets(void **state)
{
    (void)state;
    static const struct {
        const char *command, *words;
        int status;
    } cases[] = {
        {"AUTH", "-ERR unknown command `AUTH`, with args beginning with: `user`, `hunter2`, \r\n", RL_E_AUTH},
        {"AUTH", "-ERR unknown command 'AUTH', with args beginning with: 'user' 'hunter2' \r\n", RL_E_AUTH},
        {"AUTH", "-ERR invalid password hunter2\r\n", RL_E_AUTH},
        {"AUTH", "-WRONGPASS hunter2\r\n", RL_E_AUTH},
        {"SET", "-ERR unknown command `SET`, with args beginning with: `rl:job`, `hunter2`, `NX`, \r\n", RL_E_NO_QUORUM},
        {"SET", "-ERR unknown command 'SET', with args beginning with: 'rl:job' 'hunter2' 'NX' \r\n", RL_E_NO_QUORUM},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct trial t = trial_of(cases[i].words, NULL);
        ts_hostile_answer(t.hostile, cases[i].command, cases[i].words);
        t.client = with_password(&t);
        acquire(&t);
        check_trial(&t, cases[i].status, RL_NODE_ERROR, 0);
        ts_check(!strstr(t.said.text, "hunter2"), "\"%s\"", t.said.text);
        end(&t);
    }
}

/* S2.5: one EVAL, and no second one, whatever it says. */
static void noscript_for_ever(void **state)
{
    (void)state;
    static const char *const evals[] = {"-ERR unknown command 'EVAL'\r\n", "-NOSCRIPT No matching script.\r\n"};
    for (int i = 0; i < 4; i++) {
        struct trial t = trial_of("NOSCRIPT", NULL);
        ts_hostile_answer(t.hostile, "EVALSHA", "-NOSCRIPT No matching script. Please use EVAL.\r\n");
        ts_hostile_answer(t.hostile, "EVAL", evals[i / 2]);
        if (i % 2)
            among_honest_ones(&t);
        else
            alone(&t, true);
        acquire(&t);
        check_trial(&t, RL_OK, -1, 0);
        extend(&t);
        check_trial(&t, i % 2 ? RL_OK : RL_E_NO_QUORUM, i % 2 ? -1 : RL_NODE_ERROR, 0);
        if (i % 2 == 0) {
            ts_equal(ts_hostile_count(t.hostile, "EVALSHA"), 1);
            ts_equal(ts_hostile_count(t.hostile, "EVAL"), 1);
        }
        release(&t);
        check_trial(&t, i % 2 ? RL_OK : RL_E_NO_QUORUM, i % 2 ? -1 : RL_NODE_ERROR, 0);
        if (i % 2 == 0) {
            ts_equal(ts_hostile_count(t.hostile, "EVALSHA"), 2);
            ts_equal(ts_hostile_count(t.hostile, "EVAL"), 2);
        }
        end(&t);
        check_gone("rl:job");
    }
}

/* ---- rl_client_check ------------------------------------------------------------------------------------------------------------------------- */

static void check_among(struct trial *t)
{
    int64_t began = ts_mono_ms();
    note(t, began, rl_client_check(t->client, t->report));
}

/* The same noise in answer to INFO, which only the check asks for. */
static void check_of_hostile_servers(void **state)
{
    (void)state;
    for (int i = 0; i < NOISES; i++) {
        const ts_step script[] = {TS_SERVE_UNTIL("INFO"), TS_EXPECT("INFO"),
                                  TS_STEP(REPEAT, noises[i].len ? noises[i].bytes : " ", noises[i].len, noises[i].times),
                                  TS_READ_TO_END, TS_END};
        struct trial t = trial_of(noises[i].what, script);
        alone(&t, !noises[i].unended);
        check_among(&t);
        check_trial(&t, RL_E_NO_QUORUM, -1, 4 * timeout());
        end(&t);
    }
    for (int i = 0; i < REPLIES; i++) {
        struct trial t = trial_of(replies[i].bytes, NULL);
        ts_hostile_answer(t.hostile, "INFO", replies[i].bytes);
        alone(&t, true);
        check_among(&t);
        check_trial(&t, -1, -1, 0);
        end(&t);
    }
}

/* A run_id that is another node's, or none, or too long to be one. */
static void check_of_a_forged_identity(void **state)
{
    (void)state;
    char info[2048], id[1024];
    for (int i = 0; i < 4; i++) {
        struct trial t = trial_of("a forged run_id", NULL);
        memset(id, 'a', sizeof id);
        id[i == 0 ? 0 : sizeof id - 1] = '\0';
        if (i == 2)
            snprintf(id, sizeof id, "%s", ts_info(P1, "run_id"));
        int len = snprintf(info, sizeof info, "$%zu\r\nrun_id:%s\r\n", strlen(id) + 7 + (i == 3 ? 2 : 0), id);
        snprintf(info + len, sizeof info - (size_t)len, "%s", i == 3 ? "\r\n" : "");
        ts_hostile_answer(t.hostile, "INFO", info);
        among_honest_ones(&t);
        check_among(&t);
        check_trial(&t, i == 2 ? RL_E_UNSUPPORTED : RL_OK, -1, 0);
        end(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        REAL_TEST(noise_at_hello),
        REAL_TEST(noise_for_set),
        REAL_TEST(noise_for_extend),
        REAL_TEST(noise_for_release),
        REAL_TEST(noise_among_honest_ones),
        REAL_TEST(wrong_types),
        REAL_TEST(wrong_types_among_honest_ones),
        REAL_TEST(counters_of_no_use),
        REAL_TEST(leases_of_others),
        REAL_TEST(answer_too_many),
        REAL_TEST(answer_before_the_request),
        REAL_TEST(answers_in_advance),
        REAL_TEST(trickle_too_slow),
        REAL_TEST(trickle_in_time),
        REAL_TEST(trickle_for_ever),
        REAL_TEST(flood_while_cleaning_up),
        REAL_TEST(deaf_after_the_handshake),
        REAL_TEST(cut_at_every_byte),
        REAL_TEST(cut_among_honest_ones),
        REAL_TEST(cut_within_an_answer),
        REAL_TEST(ends_between_commands),
        REAL_TEST(writes_to_a_dead_connection),
        REAL_TEST(ends_at_extend_and_release),
        REAL_TEST(hostile_words),
        REAL_TEST(words_that_repeat_secrets),
        REAL_TEST(noscript_for_ever),
        REAL_TEST(check_of_hostile_servers),
        REAL_TEST(check_of_a_forged_identity),
    };
    return REAL_RUN("hostile", tests);
}
