/* servers.h - a real client and engine, driven by hand in virtual time, against servers that are a few lines each: they keep keys with
 * their expiry, count their connections, and do wrong what the test tells them to. What each was asked stands in its log, readably:
 * "SET a#1 OK, RELEASE a#1 1" - the first token seen is #1, and so on.
 * It holds the definitions themselves: for one file of a program. */
#ifndef RLT_SERVERS_H
#define RLT_SERVERS_H

#include "client.h"
#include "fake_port.h"
#include "wire.h"

#include <errno.h>

#ifndef RLT_MANY_LOCKS
enum { MOST_SERVERS = 5, MOST_CONNS = 32, MOST_KEYS = 16, MOST_TOKENS = 4096, BUFFER = 8192 };
#else
enum { MOST_SERVERS = 5, MOST_CONNS = 16, MOST_KEYS = 1100, MOST_TOKENS = 4096, BUFFER = 1 << 16 };
#endif

struct conn {      /* at the server */
    bool open;     /* the server has it still */
    bool joined;   /* the client has it still */
    bool finished; /* no more comes from the client */
    bool held;     /* what comes from the client is under way for now */
    int id;
    char up[BUFFER], down[BUFFER];
    size_t up_size, down_size;
};

struct key {
    char name[32], token[128];
    rli_instant expires; /* 0 = no key */
};

struct server {
    bool refuses;                /* connections */
    bool unheard;                /* connects hang */
    bool deaf;                   /* reads nothing, like SIGSTOP */
    bool mute;                   /* its answers are under way for now */
    bool no_kill;                /* the user may not CLIENT KILL */
    bool forgetful;              /* knows no script by its digest, ever */
    bool hashes;                 /* under every name sits something else than a string */
    const char *says;            /* to every SET, EVAL and EVALSHA, in RESP, instead of doing it */
    const char *says_of_renewal; /* ... only to calls that renew */
    const char *denied_key;      /* the user may not have this one renewed: an error for the whole call */
    const char *faulty_key;      /* its renewal comes to an error of its own */
    int renewals, renewed;       /* calls that renewed; the locks that they were about */
    bool loaded[RLI_SCRIPTS];
    int next_id;
    struct conn conns[MOST_CONNS];
    int conn_count;
    struct key keys[MOST_KEYS];
    char log[4096];
    size_t logged;
};

static struct {
    struct rli_client *client;
    struct server servers[MOST_SERVERS];
    uint32_t count;
    char tokens[MOST_TOKENS][40];
    int token_count;
} net;

/* ---- Servers ---------------------------------------------------------------------------------------------------------------------------- */

static inline int token_number(const char *token, size_t length)
{
    for (int i = 0; i < net.token_count; i++)
        if (strlen(net.tokens[i]) == length && memcmp(net.tokens[i], token, length) == 0)
            return i + 1;
    assert_true(net.token_count < MOST_TOKENS && length < sizeof net.tokens[0]);
    memcpy(net.tokens[net.token_count], token, length);
    return ++net.token_count;
}

static void answer(struct conn *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void answer(struct conn *c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    c->down_size += (size_t)vsnprintf(c->down + c->down_size, sizeof c->down - c->down_size, format, args);
    va_end(args);
    assert_true(c->down_size < sizeof c->down);
}

static void server_log(struct server *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void server_log(struct server *s, const char *format, ...)
{
    va_list args;
    if (s->logged > sizeof s->log - 200) /* long tests look only at its beginning */
        return;
    va_start(args, format);
    s->logged += (size_t)vsnprintf(s->log + s->logged, sizeof s->log - s->logged, format, args);
    va_end(args);
}

static inline struct key *find_key(struct server *s, const char *name, size_t length, bool make)
{
    struct key *free_one = NULL;

    for (int i = 0; i < MOST_KEYS; i++) {
        struct key *k = &s->keys[i];
        if (k->expires <= fake.now)
            k->expires = 0;
        if (k->expires && strlen(k->name) == length && memcmp(k->name, name, length) == 0)
            return k;
        if (!k->expires)
            free_one = k;
    }
    if (!make)
        return NULL;
    assert_true(free_one && length < sizeof free_one->name);
    snprintf(free_one->name, sizeof free_one->name, "%.*s", (int)length, name);
    return free_one;
}

static inline void put_key(struct server *s, const char *name, const char *token, size_t length, rli_span ttl)
{
    struct key *k = find_key(s, name, strlen(name), true);
    snprintf(k->token, sizeof k->token, "%.*s", (int)length, token);
    k->expires = fake.now + ttl;
}

/* Another's token under that name. */
static inline void hold_by_other(struct server *s, const char *name, rli_span ttl)
{
    put_key(s, name, "another's", 9, ttl);
}

/* The key's token as a number, 0 = no key. */
static inline int holder(struct server *s, const char *name)
{
    const struct key *k = find_key(s, name, strlen(name), false);
    return k ? token_number(k->token, strlen(k->token)) : 0;
}

struct asked { /* a request taken apart */
    const ts_words *words;
    enum rli_script_id script; /* RLI_SCRIPTS: SET */
    bool whole;                /* EVAL */
    int keys, token, rest;     /* where the keys, the token (0 = none) and what follows are */
    char name[32], counter[40];
};

static inline struct asked take_apart(const ts_words *w)
{
    struct asked a = {.words = w, .script = RLI_SCRIPTS, .keys = 1, .token = 2, .rest = 5};

    if (!ts_resp_is(w, "SET")) {
        a.script = script_of(w->word[1], w->len[1], &a.whole);
        assert_true(a.script != RLI_SCRIPTS && a.whole == ts_resp_is(w, "EVAL"));
        a.keys = 3;
        a.rest = 3 + atoi(w->word[2]);
        a.token = a.script == RLI_SCRIPT_MINT ? 0 : a.rest++;
        if (w->word[2][0] == '2')
            snprintf(a.counter, sizeof a.counter, "%.*s", (int)w->len[4], w->word[4]);
    }
    snprintf(a.name, sizeof a.name, "%.*s", (int)w->len[a.keys], w->word[a.keys]);
    return a;
}

static inline int64_t argument(const struct asked *a, int i)
{
    return atoll(a->words->word[a->rest + i]);
}

static inline void put_number(struct server *s, const char *name, int64_t number, int64_t px)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)number);
    put_key(s, name, text, strlen(text), px * MS);
}

/* A counter; 0 = none. */
static inline int64_t counter_of(struct server *s, const char *name)
{
    const struct key *k = find_key(s, name, strlen(name), false);
    return k ? atoll(k->token) : 0;
}

static inline void say_number(struct server *s, struct conn *c, int64_t number)
{
    answer(c, ":%lld\r\n", (long long)number);
    server_log(s, "%lld", (long long)number);
}

/* SET, the grant and the fenced top-up. */
static inline void serve_set(struct server *s, struct conn *c, const struct asked *a)
{
    const ts_words *w = a->words;
    int64_t n = counter_of(s, a->counter), now = fake.now / 1000, next = 0;

    if (s->hashes || find_key(s, a->name, strlen(a->name), false)) {
        answer(c, "$-1\r\n");
        server_log(s, "nil");
        return;
    }
    if (a->script == RLI_SCRIPT_GRANT) {
        next = n ? rli_max(n + 1, now - now % argument(a, 2)) : now;
        put_number(s, a->counter, next, argument(a, 1));
    } else if (a->script == RLI_SCRIPT_FENCED_TOP_UP && n < argument(a, 1)) {
        put_number(s, a->counter, argument(a, 1), argument(a, 2));
    }
    put_key(s, a->name, w->word[a->token], w->len[a->token], argument(a, 0) * MS);
    if (next) {
        say_number(s, c, next);
        return;
    }
    answer(c, "+OK\r\n");
    server_log(s, "OK");
}

static inline void serve_mint(struct server *s, struct conn *c, const struct asked *a)
{
    int64_t next = rli_max(counter_of(s, a->counter) + 1, fake.now / 1000);
    put_number(s, a->counter, next, argument(a, 0));
    say_number(s, c, next);
}

/* What compares first: extend, release, confirm. */
static inline void serve_compare(struct server *s, struct conn *c, const struct asked *a)
{
    const ts_words *w = a->words;
    struct key *k = find_key(s, a->name, strlen(a->name), false);
    bool ours = k && strlen(k->token) == w->len[a->token] && memcmp(k->token, w->word[a->token], w->len[a->token]) == 0;
    bool raises = (a->script == RLI_SCRIPT_CONFIRM && ours) || a->script == RLI_SCRIPT_FENCED_RELEASE;

    if (s->hashes) {
        answer(c, "-WRONGTYPE Operation against a key holding the wrong kind of value script: 20da, on @user_script:1.\r\n");
        server_log(s, "WRONGTYPE");
        return;
    }
    if (raises && counter_of(s, a->counter) < argument(a, 0))
        put_number(s, a->counter, argument(a, 0), argument(a, 1));
    if (k && !ours && (a->script == RLI_SCRIPT_RELEASE || a->script == RLI_SCRIPT_FENCED_RELEASE)) {
        answer(c, "*2\r\n:2\r\n:%lld\r\n", (long long)((k->expires - fake.now) / MS));
        server_log(s, "2");
        return;
    }
    say_number(s, c, ours ? 1 : k && a->script != RLI_SCRIPT_CONFIRM ? 2 : 0);
    if (ours && a->script == RLI_SCRIPT_EXTEND)
        k->expires = rli_max(k->expires, fake.now + argument(a, 0) * MS);
    else if (ours && a->script != RLI_SCRIPT_CONFIRM)
        k->expires = 0;
}

/* Is the key a token's, of nothing else? */
static inline bool is_key_of(const struct key *k, const char *token, size_t length)
{
    return k && strlen(k->token) == length && memcmp(k->token, token, length) == 0;
}

static inline int renew_key(struct server *s, const ts_words *w, int i)
{
    int count = atoi(w->word[2]);
    const char *name = w->word[3 + i], *token = w->word[3 + count + 2 * i];
    size_t name_len = w->len[3 + i], token_len = w->len[3 + count + 2 * i];
    struct key *k = find_key(s, name, name_len, false);
    int answer = is_key_of(k, token, token_len) ? 1 : k ? 2 : 0;

    if (s->faulty_key && strlen(s->faulty_key) == name_len && memcmp(s->faulty_key, name, name_len) == 0)
        answer = -1;
    if (answer == 1)
        k->expires = rli_max(k->expires, fake.now + atoll(w->word[4 + count + 2 * i]) * MS);
    server_log(s, "%s%.*s#%d for %.*s: %d", i ? "; " : "", (int)name_len, name, token_len ? token_number(token, token_len) : 0,
               (int)w->len[4 + count + 2 * i], w->word[4 + count + 2 * i], answer);
    return answer;
}

/* "RENEW [a#1 for 1000: 1; b#2 for 1000: 2]". A token of no length is #0. */
static inline void serve_renew(struct server *s, struct conn *c, const ts_words *w)
{
    int count = atoi(w->word[2]);

    assert_int_equal(w->count, 3 + 3 * count);
    for (int i = 0; i < count && s->denied_key; i++)
        if (strlen(s->denied_key) == w->len[3 + i] && memcmp(s->denied_key, w->word[3 + i], w->len[3 + i]) == 0) {
            answer(c, "-NOPERM No permissions to access a key\r\n");
            server_log(s, "NOPERM");
            return;
        }
    s->renewals++;
    s->renewed += count;
    server_log(s, "[");
    answer(c, "*%d\r\n", count);
    for (int i = 0; i < count; i++)
        answer(c, ":%d\r\n", renew_key(s, w, i));
    server_log(s, "]");
}

/* SET, EVALSHA, EVAL. */
static inline void serve_request(struct server *s, struct conn *c, const ts_words *w)
{
    static const char *const names[] = {
        [RLI_SCRIPT_RELEASE] = "RELEASE",
        [RLI_SCRIPT_EXTEND] = "EXTEND",
        [RLI_SCRIPT_RENEW] = "RENEW",
        [RLI_SCRIPT_GRANT] = "GRANT",
        [RLI_SCRIPT_CONFIRM] = "CONFIRM",
        [RLI_SCRIPT_MINT] = "MINT",
        [RLI_SCRIPT_FENCED_TOP_UP] = "FENCED-TOP-UP",
        [RLI_SCRIPT_FENCED_RELEASE] = "FENCED-RELEASE",
        [RLI_SCRIPTS] = "SET",
    };
    struct asked a = take_apart(w);

    server_log(s, "%s%s%s", s->logged ? ", " : "", a.whole ? "EVAL-" : "", names[a.script]);
    if (a.script != RLI_SCRIPT_RENEW)
        server_log(s, " %s", a.name);
    if (a.token && a.script != RLI_SCRIPT_RENEW)
        server_log(s, "#%d", token_number(w->word[a.token], w->len[a.token]));
    server_log(s, " ");
    const char *says = a.script == RLI_SCRIPT_RENEW && s->says_of_renewal ? s->says_of_renewal : s->says;
    if (says) {
        answer(c, "%s", says);
        server_log(s, "%.*s", (int)strcspn(says, " \r"), says);
    } else if (a.script != RLI_SCRIPTS && !a.whole && (s->forgetful || !s->loaded[a.script])) {
        answer(c, "-NOSCRIPT No matching script. Please use EVAL.\r\n");
        server_log(s, "NOSCRIPT");
    } else {
        if (a.script != RLI_SCRIPTS)
            s->loaded[a.script] = true;
        if (a.script == RLI_SCRIPTS || a.script == RLI_SCRIPT_GRANT || a.script == RLI_SCRIPT_FENCED_TOP_UP)
            serve_set(s, c, &a);
        else if (a.script == RLI_SCRIPT_RENEW)
            serve_renew(s, c, w);
        else if (a.script == RLI_SCRIPT_MINT)
            serve_mint(s, c, &a);
        else
            serve_compare(s, c, &a);
    }
}

static inline void serve_kill(struct server *s, struct conn *c, const ts_words *w)
{
    int killed = 0;

    server_log(s, "%sKILL %d", s->logged ? ", " : "", atoi(w->word[3]));
    if (s->no_kill) {
        answer(c, "-NOPERM this user has no permissions to run the 'client|kill' command\r\n");
        return;
    }
    for (int i = 0; i < s->conn_count; i++)
        if (s->conns[i].open && s->conns[i].id == atoi(w->word[3]) && &s->conns[i] != c) {
            s->conns[i].open = false;
            killed++;
        }
    answer(c, ":%d\r\n", killed);
}

static inline void serve_command(struct server *s, struct conn *c, const ts_words *w)
{
    char text[128];

    if (ts_resp_is(w, "CLIENT KILL")) {
        serve_kill(s, c, w);
    } else if (ts_resp_is(w, "CLIENT INFO")) {
        snprintf(text, sizeof text, "id=%d addr=10.9.9.9:%d fd=8", c->id, c->id);
        answer(c, "$%zu\r\n%s\r\n", strlen(text), text);
    } else if (ts_resp_is(w, "SCRIPT LOAD")) {
        bool whole;
        s->loaded[script_of(w->word[2], w->len[2], &whole)] = true;
        answer(c, "$3\r\nsha\r\n");
    } else if (ts_resp_is(w, "INFO")) {
        snprintf(text, sizeof text, "# Server\r\nrun_id:run-%d\r\n", (int)(s - net.servers));
        answer(c, "$%zu\r\n%s\r\n", strlen(text), text);
    } else if (ts_resp_is(w, "SET") || ts_resp_is(w, "EVAL") || ts_resp_is(w, "EVALSHA")) {
        serve_request(s, c, w);
    } else {
        answer(c, "+OK\r\n");
    }
}

/* Comes to everything that has arrived. */
static inline bool serve(struct server *s)
{
    bool moved = false;

    for (int i = 0; i < s->conn_count && !s->deaf; i++) {
        struct conn *c = &s->conns[i];
        ssize_t size;
        while (c->open && !c->held && c->up_size && (size = ts_resp_length(c->up, c->up_size)) != 0) {
            ts_words words;
            assert_true(size > 0 && ts_resp_words(c->up, (size_t)size, &words));
            serve_command(s, c, &words);
            c->up_size -= (size_t)size;
            memmove(c->up, c->up + size, c->up_size);
            moved = true;
        }
        if (c->open && !c->held && c->finished && !c->up_size)
            c->open = false; /* read to its end */
    }
    return moved;
}

/* ---- The driver -------------------------------------------------------------------------------------------------------------------------- */

static inline struct rli_node *node_of(uint32_t i)
{
    return &net.client->engine.nodes[i];
}

/* The client's connection to that server, or NULL. */
static inline struct conn *joined(struct server *s)
{
    for (int i = 0; i < s->conn_count; i++)
        if (s->conns[i].joined)
            return &s->conns[i];
    return NULL;
}

/* The client lets go of its connection; what it sent is still on its way. */
static inline void part(struct server *s)
{
    struct conn *c = joined(s);
    if (c)
        c->joined = false, c->finished = true;
}

static inline void join(uint32_t i)
{
    struct server *s = &net.servers[i];
    struct conn *c;

    part(s);
    if (s->refuses) {
        rli_node_failed(node_of(i), ECONNREFUSED, fake.now);
        return;
    }
    assert_true(s->conn_count < MOST_CONNS);
    c = &s->conns[s->conn_count++];
    *c = (struct conn){.open = true, .joined = true, .id = ++s->next_id};
    if (!s->unheard)
        rli_node_connected(node_of(i), fake.now);
}

static inline bool take_wishes(uint32_t i)
{
    struct rli_node *n = node_of(i);
    uint32_t want = n->want;
    struct conn *c = joined(&net.servers[i]);

    n->want = 0;
    if (want & RLI_WANT_CLOSE)
        part(&net.servers[i]);
    if (want & RLI_WANT_CONNECT)
        join(i);
    if (want & RLI_WANT_SHUTDOWN && c) {
        if (rli_node_unsent(n))
            n->want |= RLI_WANT_SHUTDOWN;
        else
            c->finished = true;
    }
    return want && want != RLI_WANT_SHUTDOWN;
}

static inline bool move_up(uint32_t i)
{
    struct rli_node *n = node_of(i);
    struct conn *c = joined(&net.servers[i]);
    size_t size = rli_node_unsent(n);

    if (!c || !size || (n->want & RLI_WANT_CLOSE))
        return false;
    assert_true(c->up_size + size <= sizeof c->up);
    memcpy(c->up + c->up_size, n->out.bytes + n->out.from, size);
    c->up_size += size;
    rli_node_sent(n, size, fake.now);
    return true;
}

static inline bool move_down(uint32_t i)
{
    struct server *s = &net.servers[i];
    struct conn *c = joined(s);
    char bytes[BUFFER];
    size_t size = c && !s->mute ? c->down_size : 0;

    if (size) {
        memcpy(bytes, c->down, size);
        c->down_size = 0;
        rli_node_received(node_of(i), bytes, size, fake.now);
        return true;
    }
    if (!c || c->open || s->mute)
        return false;
    c->joined = false;
    rli_node_ended(node_of(i), ECONNRESET, fake.now);
    return true;
}

/* Everything that can happen without time passing, has. */
static inline void settle(void)
{
    bool moved = true;

    for (int turns = 0; moved; turns++) {
        assert_true(turns < 1000);
        moved = false;
        for (uint32_t i = 0; i < net.count; i++) {
            moved |= take_wishes(i);
            moved |= move_up(i);
            moved |= serve(&net.servers[i]);
            moved |= move_down(i);
        }
    }
    net.client->engine.dirty = 0;
}

/* Time goes on, with every tick on the way. After a tick (two, where one thing leads to the next) the next one is later. */
static inline void pass(rli_span span)
{
    rli_instant until = fake.now + span, due;
    int ticks = 0;

    settle();
    while ((due = rli_engine_deadline(&net.client->engine)) <= until) {
        ticks = due > fake.now ? 0 : ticks + 1;
        assert_true(ticks < 4);
        fake.now = rli_max(fake.now, due);
        rli_engine_tick(&net.client->engine, fake.now);
        settle();
    }
    fake.now = until;
}

/* The connection breaks; what is on its way to the server, and how much of it, is for the test to say before. */
static inline void cut(uint32_t i)
{
    struct conn *c = joined(&net.servers[i]);

    assert_non_null(c);
    c->joined = false;
    c->finished = true;
    rli_node_ended(node_of(i), ECONNRESET, fake.now);
}

static inline void lose_keys(struct server *s)
{
    for (int i = 0; i < MOST_KEYS; i++)
        s->keys[i].expires = 0;
}

/* The server is killed and started again, with or without what it knew; the client does not know it yet. */
static inline void restart(uint32_t i, bool empty)
{
    struct server *s = &net.servers[i];

    for (int j = 0; j < s->conn_count; j++)
        s->conns[j].open = false;
    if (empty)
        lose_keys(s);
    memset(s->loaded, 0, sizeof s->loaded);
    s->next_id = 0;
}

/* ---- A client ------------------------------------------------------------------------------------------------------------------------------ */

static inline rl_options test_options(void)
{
    rl_options o;
    rl_options_init(&o);
    o.prefix = "";
    return o;
}

static inline void begin_with(uint32_t count, const rl_options *options)
{
    char urls[256] = "";
    size_t at;

    fake_begin();
    memset(&net, 0, sizeof net);
    net.count = count;
    for (uint32_t i = 0; i < count; i++)
        snprintf(urls + strlen(urls), sizeof urls - strlen(urls), "%sredis://10.0.0.%u", i ? "," : "", i + 1);
    net.client = fake_calloc(sizeof *net.client);
    assert_int_equal(rli_client_init(net.client, urls, options, &at), RL_OK);
}

static inline void begin(uint32_t count)
{
    rl_options options = test_options();
    begin_with(count, &options);
}

/* As rl_client_free: nothing of ours may be left, in memory either. */
static inline void end(void)
{
    net.client->closed = true;
    rli_engine_free(&net.client->engine);
    assert_true(rli_client_unused(net.client));
    rli_client_free(net.client);
    assert_int_equal(fake.live, 0);
}

/* What was kept for reuse is given back, so that everything has to be asked for again. */
static inline void empty_pools(void)
{
    struct rli_engine *e = &net.client->engine;

    for (struct rli_op *op; (op = e->free_ops); e->op_count--) {
        e->free_ops = op->next;
        rli_free(op);
    }
    for (struct rli_batch *batch; (batch = e->keep.free_batches);) {
        e->keep.free_batches = batch->next_free;
        rli_free(batch);
    }
    rli_rounds_free(e);
    e->free_op_count = e->keep.free_batch_count = 0;
    assert_int_equal(e->op_count, 0);
    rli_heap_free(&e->timers);
    for (uint32_t i = 0; i < net.count; i++) {
        assert_int_equal(rli_node_unsent(node_of(i)), 0);
        rli_free(node_of(i)->out.bytes);
        memset(&node_of(i)->out, 0, sizeof node_of(i)->out);
    }
}

static inline void expect_log(uint32_t i, const char *expected)
{
    struct server *s = &net.servers[i];
    if (strcmp(s->log, expected) != 0)
        fail_msg("server %u: %s; not: %s", i, s->log, expected);
    s->log[0] = '\0';
    s->logged = 0;
}

static inline void forget_logs(void)
{
    for (uint32_t i = 0; i < net.count; i++)
        net.servers[i].log[0] = '\0', net.servers[i].logged = 0;
}

/* ---- Operations, as a front runs them --------------------------------------------------------------------------------------------------------- */

static inline void op_done(struct rli_op *op)
{
    int *count = op->owner;
    ++*count;
}

static inline struct rli_op *start(struct rli_op *op)
{
    static int ends[4096], next; /* of each operation: it ends once */

    if (!op)
        return NULL;
    ends[next %= 4096] = 0;
    op->owner = &ends[next++];
    op->done = op_done;
    op->with_text = true;
    rli_op_start(op, fake.now);
    return op;
}

static inline struct rli_op *start_acquire(const char *name, int64_t ttl_ms, int64_t wait_ms)
{
    rl_request request;
    rl_lock *lock = rli_lock_new(net.client, name, strlen(name), NULL, net.client->fence, 0);
    struct rli_op *op;

    rl_request_init(&request);
    request.ttl_ms = ttl_ms;
    request.wait_ms = wait_ms;
    op = lock ? rli_op_new_acquire(&net.client->engine, lock, &request) : NULL;
    if (lock)
        rli_lock_unref(lock);
    return start(op);
}

static inline struct rli_op *start_extend(rl_lock *lock, int64_t ttl_ms)
{
    return start(rli_op_new_extend(&net.client->engine, lock, rli_from_ms(ttl_ms)));
}

static inline bool is_over(const struct rli_op *op)
{
    assert_int_equal(*(int *)op->owner, op->finished);
    return op->finished;
}

/* The status of an operation that is over, which is freed. *ret_lock (may be NULL): the handle of one acquired. */
static inline int take(struct rli_op *op, rl_lock **ret_lock)
{
    int status = op->status;

    if (!is_over(op))
        fail_msg("the operation goes on");
    if (ret_lock)
        *ret_lock = status == RL_OK && op->type == RLI_OP_ACQUIRE ? rli_client_give_handle(net.client, op->lock) : NULL;
    rli_op_free(op);
    return status;
}

/* Acquired at once. */
static inline rl_lock *hold(const char *name, int64_t ttl_ms)
{
    struct rli_op *op = start_acquire(name, ttl_ms, 0);
    rl_lock *lock;

    settle();
    assert_int_equal(take(op, &lock), RL_OK);
    return lock;
}

/* The handle is given up, in whatever state. */
static inline void drop(rl_lock *lock)
{
    rli_lock_end(lock);
    rli_client_take_handle(net.client, lock);
}

static inline struct rli_op *start_release(rl_lock *lock)
{
    struct rli_op *op = rli_op_new_release(&net.client->engine, lock, false);

    if (!op)
        rli_engine_owe_release(&net.client->engine, lock, fake.now);
    start(op);
    rli_client_take_handle(net.client, lock);
    return op;
}

/* Released at once. */
static inline int let_go(rl_lock *lock)
{
    struct rli_op *op = start_release(lock);
    settle();
    return take(op, NULL);
}

#endif
