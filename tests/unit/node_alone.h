/* node_alone.h - one node without an engine, a driver or a server: the test is all three. What the node tells its engine goes into a log
 * that reads like "a:+OK b!no-answer,ECONNRESET,died": a was answered, b was lost.
 * It holds the definitions themselves: for one file of a program. */
#ifndef RLT_NODE_ALONE_H
#define RLT_NODE_ALONE_H

#include "fake_port.h"
#include "node.h"
#include "wire.h"

#include <errno.h>
#include <inttypes.h>

/* What a node is told by these commands; the keys are the names of the requests. */
#define SET(name) "SET " name " t NX PX 1000"
#define EXTEND(name) "EVALSHA #extend 1 " name " t 1000"
#define RELEASE(name) "EVALSHA #release 1 " name " t"
#define CONFIRM(name) "EVALSHA #confirm 2 " name " c t 0 86400000"
#define MINT(name) "EVALSHA #mint 2 " name " c 86400000"
#define GREETING "CLIENT SETNAME redlatch", "CLIENT INFO", "SCRIPT LOAD @release", "SCRIPT LOAD @extend"
#define KILL(id) "CLIENT KILL ID " id " ADDR 10.0.0.9:" id

struct rli_engine {
    struct rli_terms terms;
    uint32_t dirty;
    uint64_t random; /* the next random number */
    bool no_orphans; /* there is no memory for them */
};

struct rli_round { /* one request, and what became of it */
    struct rli_round *next;
    struct rli_request request;
    rl_lock *lock;
    unsigned writes; /* how often it was written */
    unsigned ends;   /* answered or lost */
    bool orphan, again;
    bool withdrawn; /* by the test, or never taken */
};

static struct {
    struct rli_engine engine;
    struct rli_url url;
    char urls[2][8];
    struct rli_node node;
    struct rli_round *rounds;
    char log[2048];
    size_t logged;
    void (*on_lost)(struct rli_round *round); /* what the engine does then, if anything */
    void (*on_answer)(const struct rli_request *request, const struct rli_reply *reply);
} alone;

/* ---- The engine ----------------------------------------------------------------------------------------------------------------- */

static void tell(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void tell(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    alone.logged += (size_t)vsnprintf(alone.log + alone.logged, sizeof alone.log - alone.logged, format, args);
    va_end(args);
    assert_true(alone.logged < sizeof alone.log);
}

static inline const char *name_of(const struct rli_round *round)
{
    return rli_lock_key(round->lock);
}

void rli_engine_build(const struct rli_request *request, struct rli_command *ret)
{
    struct rli_subject subject = rli_lock_subject(request->round->lock);
    rli_command_request(ret, request->kind, &subject, 1000 * MS, request->whole_script);
}

void rli_engine_sent(struct rli_request *request, rli_instant now)
{
    assert_true(now == fake.now);
    request->round->writes++;
}

void rli_engine_answered(struct rli_request *request, const struct rli_reply *reply, rli_instant now)
{
    struct rli_round *round = request->round;

    assert_true(now == fake.now);
    assert_int_equal(request->state, RLI_REQUEST_IDLE);
    round->ends++;
    tell("%s%s:", alone.logged ? " " : "", name_of(round));
    if (reply->type == RLI_INTEGER)
        tell("%" PRId64, reply->integer);
    else if (reply->type == RLI_NIL)
        tell("nil");
    else if (reply->type == RLI_ARRAY)
        tell("[%zu]", reply->elements);
    else
        tell("%s%s", reply->type == RLI_ERROR ? "-" : "+", reply->text);
    if (alone.on_answer)
        alone.on_answer(request, reply);
}

static inline const char *errno_name(int error)
{
    return error == 0              ? ""
           : error == ECONNRESET   ? ",ECONNRESET"
           : error == ECONNREFUSED ? ",ECONNREFUSED"
           : error == ETIMEDOUT    ? ",ETIMEDOUT"
           : error == EPROTO       ? ",EPROTO"
           : error == EPIPE        ? ",EPIPE"
           : error == EAGAIN       ? ",EAGAIN"
           : error == ENOMEM       ? ",ENOMEM"
                                   : ",?";
}

static void tell_answer(const struct rli_answer *answer)
{
    static const char *const outcomes[] = {"not-asked", "yes",         "other", "absent", "error",
                                           "no-answer", "unreachable", "late",  "pending"};

    tell("%s%s%s%s%s", outcomes[answer->outcome], errno_name(answer->sys_errno), answer->died ? ",died" : "",
         answer->unknown ? ",unknown" : "", answer->denied ? ",denied" : "");
    if (answer->text)
        tell(",\"%.*s\"", (int)answer->text_len, answer->text);
}

void rli_engine_lost(struct rli_request *request, const struct rli_answer *why, rli_instant now)
{
    struct rli_round *round = request->round;

    assert_true(now == fake.now);
    assert_int_equal(request->state, RLI_REQUEST_IDLE);
    round->ends++;
    tell("%s%s!", alone.logged ? " " : "", name_of(round));
    tell_answer(why);
    if (alone.on_lost)
        alone.on_lost(round);
}

static inline struct rli_round *new_round(rl_lock *lock, enum rli_kind kind, rli_span deadline)
{
    struct rli_round *round = fake_calloc(sizeof *round);

    round->next = alone.rounds;
    alone.rounds = round;
    round->lock = rli_lock_ref(lock);
    round->request = (struct rli_request){.round = round, .kind = kind, .sent = RLI_GONE, .deadline = rli_add(fake.now, deadline)};
    return round;
}

struct rli_request *rli_engine_orphan(struct rli_engine *engine, uint32_t node, rl_lock *lock, bool again, rli_instant now)
{
    assert_int_equal(node, 0);
    assert_true(now == fake.now);
    if (engine->no_orphans)
        return NULL;
    struct rli_round *round = new_round(lock, RLI_RELEASE, engine->terms.node_timeout);
    round->orphan = true;
    round->again = again;
    return &round->request;
}

void rli_engine_dirty(struct rli_engine *engine, uint32_t node)
{
    engine->dirty |= rli_bit(node);
}

const struct rli_terms *rli_engine_terms(const struct rli_engine *engine)
{
    return &engine->terms;
}

const char *rli_engine_client_name(const struct rli_engine *engine)
{
    (void)engine;
    return "redlatch";
}

unsigned rli_engine_scripts(const struct rli_engine *engine)
{
    (void)engine;
    return RLI_SCRIPT_EXTEND + 1;
}

uint64_t rli_engine_random(struct rli_engine *engine)
{
    return engine->random;
}

/* ---- The test as engine ----------------------------------------------------------------------------------------------------------- */

static inline void begin_at(struct rli_url url)
{
    fake_begin();
    memset(&alone, 0, sizeof alone);
    alone.engine.terms = terms_of(1);
    alone.url = url;
    assert_true(rli_node_init(&alone.node, &alone.engine, &alone.url, 0));
}

static inline void begin(void)
{
    static char host[] = "10.0.0.1";
    begin_at((struct rli_url){.host = host, .port = 6379});
}

static inline void end(void)
{
    rli_node_free(&alone.node);
    for (struct rli_round *round; (round = alone.rounds);) {
        alone.rounds = round->next;
        rli_lock_unref(round->lock);
        rli_free(round);
    }
    assert_int_equal(fake.live, 0); /* locks too: what the node owed is let go */
}

/* A lock of that name (a literal), whose last lease is over `free_in` from now. The caller's reference. */
static inline rl_lock *new_lock(const char *name, rli_span free_in)
{
    rl_lock *lock = fake_calloc(sizeof *lock + sizeof(rli_instant) + strlen(name) + 1 + sizeof "t" + sizeof "c");

    lock->refs = 1;
    lock->nodes = 1;
    lock->key_len = (uint16_t)strlen(name);
    lock->token_len = 1;
    lock->counter_len = 1;
    memcpy(rli_lock_key(lock), name, strlen(name));
    memcpy(rli_lock_token(lock), "t\0c", 4);
    lock->free_by = rli_add(fake.now, free_in);
    lock->ttl = 1000 * MS;
    return lock;
}

/* Puts a request about a lock of its own to the node; its answer is due in `deadline`. */
static inline struct rli_round *ask(enum rli_kind kind, const char *name, rli_span deadline)
{
    rl_lock *lock = new_lock(name, 100000 * MS);
    struct rli_round *round = new_round(lock, kind, deadline);

    rli_lock_unref(lock);
    assert_true(rli_node_send(&alone.node, &round->request, NULL, 0, fake.now));
    return round;
}

/* The release of a lock that is owed, due in `due`, whose lease is over in `free_in`. */
static inline void owe(const char *name, rli_span due, rli_span free_in)
{
    rl_lock *lock = new_lock(name, free_in);
    rli_node_owe(&alone.node, lock, rli_add(fake.now, due), false);
    rli_lock_unref(lock);
}

/* As the engine does for a lock that may be there: the release stays owed. */
static inline void owe_lost_releases(struct rli_round *round)
{
    if (round->request.kind == RLI_RELEASE)
        rli_node_owe(&alone.node, round->lock, fake.now, round->again);
}

static inline void forget_log(void)
{
    alone.log[0] = '\0';
    alone.logged = 0;
}

/* Everything told since the last look. */
static inline void expect_log(const char *expected)
{
    if (strcmp(alone.log, expected) != 0)
        fail_msg("the engine was told: %s, not: %s", alone.log, expected);
    forget_log();
}

/* Would it refuse such a request? With what? "" = no. */
static inline void expect_refusal(enum rli_kind kind, bool touched, bool needed, const char *expected)
{
    struct rli_answer answer = {0};

    if (rli_node_refuses(&alone.node, kind, touched, needed, fake.now, &answer))
        tell_answer(&answer);
    expect_log(expected);
}

/* ---- The test as driver and server --------------------------------------------------------------------------------------------------- */

static inline void expect_want(uint32_t want)
{
    assert_int_equal(alone.node.want, want);
    assert_true(!want || alone.engine.dirty); /* the driver is told to look */
    alone.node.want = 0;
    alone.engine.dirty = 0;
}

static inline void expect_state(enum rli_node_state state)
{
    assert_int_equal(alone.node.state, state);
}

#define expect_sent(...) expect_commands(&alone.node, fake.now, __VA_ARGS__, NULL)
#define expect_nothing_sent() expect_commands(&alone.node, fake.now, NULL)

static inline void receive(const char *bytes)
{
    alone.node.gone = alone.node.written; /* an answer comes to what has been sent */
    rli_node_received(&alone.node, bytes, strlen(bytes), fake.now);
}

/* To that time from now, with every tick on the way, as a driver does it: after a tick the next is due later, or nothing is. */
static inline void pass(rli_span span)
{
    rli_instant until = rli_add(fake.now, span), due;
    int ticks = 0;

    while ((due = rli_node_deadline(&alone.node)) <= until) {
        if (due > fake.now) {
            fake.now = due;
            ticks = 0;
        }
        assert_true(ticks++ < 3); /* e.g. given up and, with a clean-up budget of 0, closed: but no busy loop */
        rli_node_tick(&alone.node, fake.now);
    }
    fake.now = until;
}

/* The next tick is due in exactly `span`: one instant before it nothing happens. */
static inline void expect_tick_in(rli_span span)
{
    size_t logged = alone.logged, unsent = rli_node_unsent(&alone.node);
    enum rli_node_state state = alone.node.state;

    assert_true(rli_node_deadline(&alone.node) == fake.now + span);
    if (span > 0) {
        fake.now += span - 1;
        rli_node_tick(&alone.node, fake.now);
        assert_true(alone.logged == logged && alone.node.state == state && rli_node_unsent(&alone.node) == unsent);
        fake.now++;
    }
    rli_node_tick(&alone.node, fake.now);
}

/* The server's answers to the handshake; it knows the connection by that id. */
static inline void greet_back(int id)
{
    char info[128], bytes[256];
    int length = snprintf(info, sizeof info, "id=%d addr=10.0.0.9:%d laddr=10.0.0.1:6379 fd=8 name=redlatch user=default", id, id);

    snprintf(bytes, sizeof bytes, "+OK\r\n$%d\r\n%s\r\n$3\r\nsha\r\n$3\r\nsha\r\n", length, info);
    receive(bytes);
}

/* From "wants to connect" to ready, in no time. */
static inline void connect_as(int id)
{
    expect_state(RLI_NODE_CONNECTING);
    alone.node.want = 0;
    rli_node_connected(&alone.node, fake.now);
    expect_sent(GREETING);
    expect_state(RLI_NODE_GREETING);
    greet_back(id);
    expect_state(RLI_NODE_READY);
}

/* A node that is ready, and known to the server as 7. A request brought the connection about. */
static inline void begin_ready(void)
{
    begin();
    ask(RLI_EXTEND, "hello", 250 * MS);
    connect_as(7);
    expect_sent(EXTEND("hello"));
    receive(":1\r\n");
    expect_log("hello:1");
}

#endif
