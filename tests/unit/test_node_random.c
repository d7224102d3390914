/* test_node_random.c - a node among random events: requests, bytes in any pieces, ends of the stream, silence, garbage, restarts of the
 * server, short memory. Whatever happens:
 *
 *   each request is answered or lost, once, and by its own answer (S3.5); a creating request is written at most once, any other at most
 *   twice; the node always knows when it will look up next, and that is never in the past; and the server comes to no
 *   request on a connection before those are ended there on which a creating request went unanswered (S3.4). */
#include "node_alone.h"

enum { RUNS = 2500, STEPS = 150, MOST_LOCKS = 400, PIPE = 64 * 1024 };

static struct {
    uint64_t seed;
    unsigned run;
    int asked;
    char names[MOST_LOCKS][12]; /* "12": the name of a lock, and the answer to whatever is asked about it */
    bool calm;                  /* from now on everything works */

    /* The connection, as the driver and the server see it. */
    bool open, greeted;
    int next_id, id; /* as the server counts them */
    int connections; /* as we do */
    char up[PIPE], down[PIPE];
    size_t up_size, down_size;
    int commands;
    struct {
        int id, connection;
    } to_kill[RLI_MAX_LOST]; /* before any request on a later connection */
    int to_kill_count;
    int killed[16], killed_count; /* on this connection */
    bool creating_lost;           /* in the call that just ended */
} w;

static uint64_t draw(uint64_t n)
{
    return random_of(&w.seed) % n;
}

static bool one_in(uint64_t n)
{
    return !w.calm && draw(n) == 0;
}

#define check(condition)                                                                                                           \
    do {                                                                                                                           \
        if (!(condition))                                                                                                          \
            fail_msg("run %u: %s", w.run, #condition);                                                                             \
    } while (0)

/* ---- The engine ------------------------------------------------------------------------------------------------------------------------ */

static void put(rl_lock *lock, enum rli_kind kind)
{
    struct rli_answer why;

    if (rli_node_refuses(&alone.node, kind, true, draw(2), fake.now, &why)) {
        if (kind == RLI_RELEASE)
            rli_node_owe(&alone.node, lock, fake.now, false);
        return;
    }
    struct rli_round *round = new_round(lock, kind, (rli_span)(1 + draw(400)) * MS);
    if (rli_node_send(&alone.node, &round->request, NULL, 0, fake.now))
        return;
    check(round->request.state == RLI_REQUEST_IDLE);
    round->withdrawn = true;
    if (kind == RLI_RELEASE)
        rli_node_owe(&alone.node, lock, fake.now, false);
}

static void ask_something(void)
{
    if (w.asked == MOST_LOCKS)
        return;
    snprintf(w.names[w.asked], sizeof w.names[0], "%d", w.asked);
    rl_lock *lock = new_lock(w.names[w.asked++], (rli_span)draw(2000) * MS);
    put(lock, (enum rli_kind)draw(RLI_STORE + 1));
    rli_lock_unref(lock);
}

/* As the engine: a lost release stays owed, a lost SET is taken back. */
static void lost(struct rli_round *round)
{
    bool creating = rli_creates(round->request.kind);

    forget_log();
    if (creating && round->writes)
        w.creating_lost = true;
    if (round->request.kind == RLI_RELEASE)
        rli_node_owe(&alone.node, round->lock, fake.now, round->again);
    else if (creating)
        put(round->lock, RLI_RELEASE);
}

static void withdraw_something(void)
{
    struct rli_request *request = alone.node.waiting.first;

    for (uint64_t n = draw(4); request && n > 0; n--)
        request = request->next;
    if (!request)
        return;
    rli_node_withdraw(&alone.node, request);
    request->round->withdrawn = true;
}

/* ---- The server ------------------------------------------------------------------------------------------------------------------------- */

static void reply(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void reply(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    w.down_size += (size_t)vsnprintf(w.down + w.down_size, sizeof w.down - w.down_size, format, args);
    va_end(args);
    check(w.down_size < sizeof w.down);
}

static void serve_kill(const ts_words *words)
{
    check(words->len[3] < 8);
    w.killed[w.killed_count++] = atoi(words->word[3]);
    if (one_in(6))
        reply("-NOPERM no kill\r\n");
    else
        reply(":%d\r\n", (int)draw(2));
}

/* S3.4: all that is to be ended is ended before the first request. */
static void serve_request(const char *name)
{
    for (int i = 0; i < w.to_kill_count; i++) {
        /* It is that connection itself, the server was restarted, or there was no memory for the command (the engine knows). */
        bool is = w.to_kill[i].connection == w.connections || w.to_kill[i].id > w.id || alone.node.blind;
        for (int j = 0; j < w.killed_count; j++)
            is |= w.killed[j] == w.to_kill[i].id;
        check(is);
    }
    reply(":%d\r\n", atoi(name));
}

/* Answers the next command that has come whole. */
static bool serve(void)
{
    ssize_t size = w.up_size ? ts_resp_length(w.up, w.up_size) : 0;
    char info[64];
    ts_words words;

    if (!w.open || size == 0)
        return false;
    check(size > 0 && ts_resp_words(w.up, (size_t)size, &words));
    if (one_in(200))
        reply("!\r\n"); /* whatever it then does */
    if (w.commands++ < 4) {
        int length = snprintf(info, sizeof info, "id=%d addr=10.0.0.9:%d", w.id, w.id);
        if (w.commands == 2)
            reply("$%d\r\n%s\r\n", length, info);
        else
            reply("+OK\r\n");
    } else if (ts_resp_is(&words, "CLIENT KILL")) {
        serve_kill(&words);
    } else {
        serve_request(ts_resp_is(&words, "SET") ? words.word[1] : ts_resp_is(&words, "INFO") ? "-1" : words.word[3]);
    }
    w.up_size -= (size_t)size;
    memmove(w.up, w.up + size, w.up_size);
    return true;
}

/* ---- The driver --------------------------------------------------------------------------------------------------------------------------- */

static void connection_ends(void)
{
    w.open = false;
    w.up_size = w.down_size = 0;
}

static void connection_begins(void)
{
    connection_ends();
    w.open = true;
    w.id = w.next_id++;
    w.connections++;
    w.commands = w.killed_count = 0;
}

static void take_wishes(void)
{
    struct rli_node *n = &alone.node;
    uint32_t want = n->want;

    n->want &= RLI_WANT_SHUTDOWN;
    if (want & RLI_WANT_CLOSE)
        connection_ends();
    if (want & RLI_WANT_RESOLVE && !one_in(20)) {
        uint32_t count = one_in(4) ? 0 : 1 + (uint32_t)draw(3);
        for (uint32_t i = 0; i < count; i++)
            fake_address(&n->addresses[i], "10.0.0.1", (uint16_t)i);
        rli_node_resolved(n, count, count ? NULL : "no such host", fake.now);
    }
    if (!(want & RLI_WANT_CONNECT) || one_in(20))
        return;
    if (one_in(4)) {
        rli_node_failed(n, one_in(3) ? EAGAIN : ECONNREFUSED, fake.now);
    } else {
        connection_begins();
        rli_node_connected(n, fake.now);
    }
}

static void send_some(void)
{
    struct rli_node *n = &alone.node;
    size_t size = rli_node_unsent(n);

    if (!w.open || !size)
        return;
    if (!w.calm)
        size = 1 + draw(size);
    check(w.up_size + size <= sizeof w.up);
    memcpy(w.up + w.up_size, n->out.bytes + n->out.from, size);
    w.up_size += size;
    rli_node_sent(n, size, fake.now);
}

static void receive_some(void)
{
    char bytes[512];
    size_t size = w.down_size < sizeof bytes ? w.down_size : sizeof bytes;

    if (!w.open || !size)
        return;
    if (!w.calm)
        size = 1 + draw(size);
    memcpy(bytes, w.down, size);
    w.down_size -= size;
    memmove(w.down, w.down + size, w.down_size);
    rli_node_received(&alone.node, bytes, size, fake.now);
    forget_log();
}

static void blocked(void)
{
    rli_node_blocked(&alone.node, fake.now);
}

static void resumed(void)
{
    rli_node_resumed(&alone.node, fake.now);
}

static void stream_ends(void)
{
    if (!w.open)
        return;
    connection_ends();
    if (draw(4) == 0) /* ... with the server: its new life counts from the beginning */
        w.next_id = 1 + (int)draw(3);
    rli_node_ended(&alone.node, one_in(2) ? EPIPE : ECONNRESET, fake.now);
}

/* ---- What always holds ---------------------------------------------------------------------------------------------------------------------- */

static void check_queue(const struct rli_queue *queue, int state)
{
    struct rli_request *const *at = &queue->first;

    for (; *at; at = (struct rli_request *const *)&(*at)->next)
        check((int)(*at)->state == state);
    check(queue->last == at);
}

static void check_node(void)
{
    const struct rli_node *n = &alone.node;

    check_queue(&n->waiting, RLI_REQUEST_WAITING);
    check_queue(&n->owed, RLI_REQUEST_OWED);
    check(!n->waiting.first || (n->state != RLI_NODE_OFF && n->state != RLI_NODE_READY)); /* who waits, waits for something */
    check(!n->owed.first || n->state == RLI_NODE_READY);
    check(n->out.from <= n->out.to && n->out.to <= n->out.room);
    check((n->codec != NULL) == (n->state >= RLI_NODE_GREETING));
    for (const struct rli_round *r = alone.rounds; r; r = r->next) {
        check(r->ends + r->withdrawn <= 1);
        check(r->writes <= (rli_creates(r->request.kind) ? 1 : 2));
        check((r->request.state == RLI_REQUEST_IDLE) == (r->ends || r->withdrawn));
    }
}

/* Calls into the node, and keeps book of the connections lost with a creating request unanswered. */
static void happen(void (*event)(void))
{
    bool was_ready = alone.node.state == RLI_NODE_READY;
    int64_t id = alone.node.self.id;
    uint32_t kills = alone.node.lost_count;

    w.creating_lost = false;
    event();
    forget_log();
    if (was_ready && kills && !alone.node.lost_count)
        w.to_kill_count = 0;
    if (was_ready && w.creating_lost && alone.node.state != RLI_NODE_READY && id) {
        if (w.to_kill_count == RLI_MAX_LOST)
            memmove(w.to_kill, w.to_kill + 1, --w.to_kill_count * sizeof *w.to_kill);
        w.to_kill[w.to_kill_count].id = (int)id;
        w.to_kill[w.to_kill_count++].connection = w.connections;
    }
    check_node();
}

static void tick(void)
{
    rli_node_tick(&alone.node, fake.now);
}

/* Time goes on, with every tick that is due; after a tick the next one is later. */
static void time_passes(rli_span span)
{
    rli_instant until = fake.now + span, due;
    int ticks = 0;

    while ((due = rli_node_deadline(&alone.node)) <= until) {
        ticks = due > fake.now ? 0 : ticks + 1;
        check(ticks < 3);
        fake.now = rli_max(fake.now, due);
        happen(tick);
    }
    fake.now = until;
}

static void serve_event(void)
{
    serve();
}

static void something_happens(void)
{
    static void (*const events[])(void) = {ask_something, ask_something, take_wishes, take_wishes,  send_some,   send_some,
                                           serve_event,   serve_event,   serve_event, receive_some, receive_some};

    if (one_in(30))
        fake.fail_at = fake.calls + 1 + draw(4);
    if (one_in(40))
        happen(stream_ends);
    else if (one_in(40))
        happen(withdraw_something);
    else if (one_in(60))
        happen(one_in(2) ? blocked : resumed);
    else if (one_in(10))
        time_passes((rli_span)draw(one_in(20) ? 12000 : 120) * MS + (rli_span)draw(3));
    else
        happen(events[draw(sizeof events / sizeof *events)]);
    fake.fail_at = 0;
}

/* In the end all is well again, and everybody gets an answer. */
static void everything_settles(void)
{
    w.calm = true;
    for (int i = 0; i < 400; i++) {
        happen(take_wishes);
        happen(send_some);
        while (serve())
            ;
        happen(receive_some);
        time_passes(50 * MS);
    }
    for (const struct rli_round *r = alone.rounds; r; r = r->next)
        check(r->ends + r->withdrawn == 1);
    check(!alone.node.owed.first && !alone.node.waiting.first && !alone.node.owes_count);
}

/* S3.5: the log is not kept here; each answer names its request. */
static void check_answer(const struct rli_request *request, const struct rli_reply *answer)
{
    check(request->kind == RLI_INFO || (answer->type == RLI_INTEGER && answer->integer == atoi(name_of(request->round))));
}

static void run(const struct rli_url *url)
{
    memset(&w, 0, sizeof w);
    begin_at(*url);
    alone.on_lost = lost;
    alone.on_answer = check_answer;
    alone.engine.random = 1000000;
}

static void whatever_happens(void **state)
{
    static char host[] = "10.0.0.1", name[] = "redis.example", path[] = "/run/s";
    const struct rli_url urls[] = {{.host = host, .port = 1}, {.host = name, .port = 1}, {.path = path}};
    (void)state;
    for (unsigned i = 0; i < RUNS; i++) {
        run(&urls[i % 3]);
        w.run = i;
        w.seed = i;
        w.next_id = 1;
        for (int step = 0; step < STEPS; step++)
            something_happens();
        everything_settles();
        end();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(whatever_happens)};
    return cmocka_run_group_tests_name("node_random", tests, NULL, NULL);
}
