/* test_node.c - a node as bytes in and bytes out, in virtual time: how its connection comes about, what is sent on it and when, and when
 * it takes nothing more. What becomes of it when the connection is lost is in test_node_lost.c. */
#include "node_alone.h"

/* ---- The handshake ---------------------------------------------------------------------------------------------------------------- */

static char host[] = "10.0.0.1", user[] = "bob", password[] = "pw", path[] = "/run/s", name[] = "redis.example";

/* Design 3: in one write, before anything is answered; AUTH first, SELECT only for another database than 0. */
static void the_handshake_is_one_write(void **state)
{
    (void)state;
    for (int i = 0; i < 6; i++) {
        begin_at((struct rli_url){.host = host,
                                  .port = 6379,
                                  .user = i % 3 == 2 ? user : NULL,
                                  .password = i % 3 ? password : NULL,
                                  .db = i < 3 ? 0 : 12});
        ask(RLI_SET, "a", 250 * MS);
        expect_want(RLI_WANT_CONNECT);
        assert_string_equal((char *)alone.node.addresses[0].bytes, "10.0.0.1:6379");
        assert_int_equal(rli_node_unsent(&alone.node), 0);
        rli_node_connected(&alone.node, fake.now);
        if (i % 3) {
            const char *auth = next_command(&alone.node, fake.now);
            assert_string_equal(auth, i % 3 == 2 ? "AUTH bob pw" : "AUTH pw");
        }
        if (i >= 3)
            assert_string_equal(next_command(&alone.node, fake.now), "SELECT 12");
        expect_sent(GREETING);
        const char *answers = "+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n";
        receive(answers + 5 * (2 - (i % 3 != 0) - (i >= 3)));
        expect_state(RLI_NODE_READY);
        expect_sent(SET("a"));
        expect_want(0);
        end();
    }
}

/* S4.1 and design 2: what is asked meanwhile waits, and goes out in order once the last answer of the handshake is there. */
static void requests_wait_for_the_handshake_in_order(void **state)
{
    static const char answers[] = "+OK\r\n$33\r\nid=7 addr=10.0.0.9:7 user=default\r\n$3\r\nsha\r\n$3\r\nsha\r\n";
    (void)state;
    begin();
    ask(RLI_SET, "a", 250 * MS);
    ask(RLI_EXTEND, "b", 250 * MS);
    expect_state(RLI_NODE_CONNECTING);
    rli_node_connected(&alone.node, fake.now);
    ask(RLI_RELEASE, "c", 250 * MS);
    expect_sent(GREETING);
    for (size_t i = 0; i + 1 < sizeof answers; i++) {
        expect_state(RLI_NODE_GREETING);
        expect_nothing_sent();
        if (i == 20)
            ask(RLI_SET, "d", 250 * MS);
        rli_node_received(&alone.node, answers + i, 1, fake.now);
    }
    expect_state(RLI_NODE_READY);
    expect_sent(SET("a"), EXTEND("b"), RELEASE("c"), SET("d"));
    assert_int_equal(alone.node.self.id, 7);
    assert_string_equal(alone.node.self.address, "10.0.0.9:7");
    receive("+OK\r\n:1\r\n:0\r\n$-1\r\n");
    expect_log("a:+OK b:1 c:0 d:nil");
    end();
}

/* Begins a handshake with everything in it; what was asked waits. */
static void begin_greeting(void)
{
    begin_at((struct rli_url){.host = host, .port = 6379, .user = user, .password = password, .db = 3});
    ask(RLI_SET, "a", 250 * MS);
    ask(RLI_RELEASE, "b", 250 * MS);
    rli_node_connected(&alone.node, fake.now);
    expect_sent("AUTH bob pw", "SELECT 3", GREETING);
    alone.node.want = 0;
}

/* AUTH and SELECT must succeed; their failure is everybody's vote, with the server's words, and S2.8: denied where it is that. */
static void failing_auth_or_select_ends_it(void **state)
{
    static const struct {
        const char *replies, *log;
    } cases[] = {
        {"-WRONGPASS invalid\r\n", "error,denied,\"WRONGPASS invalid\""},
        {"-ERR Client sent AUTH, but no password is set\r\n", "error,denied,\"ERR Client sent AUTH, but no password is set\""},
        {"-ERR max number of clients reached\r\n", "error,\"ERR max number of clients reached\""},
        {"+OK\r\n-ERR DB index is out of range\r\n", "error,\"ERR DB index is out of range\""},
        {"+OK\r\n-NOPERM this user\r\n", "error,denied,\"NOPERM this user\""},
        /* S9.2: servers that repeat what they do not understand */
        {"+OK\r\n-ERR unknown command `SELECT`, with args beginning with: `3`, \r\n", "error,\"ERR unknown command `SELECT`\""},
        {"-ERR unknown command `AUTH`, with args beginning with: `bob`, `pw`, \r\n",
         "error,denied,\"refused, in words that hold the password\""},
        {"-ERR what is pw?\r\n", "error,denied,\"refused, in words that hold the password\""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char expected[300];
        begin_greeting();
        receive(cases[i].replies);
        snprintf(expected, sizeof expected, "a!%s b!%s", cases[i].log, cases[i].log);
        expect_log(expected);
        expect_state(RLI_NODE_OFF);
        expect_want(RLI_WANT_CLOSE);
        expect_refusal(RLI_SET, false, false, cases[i].log); /* for as long as it backs off */
        assert_true(rli_node_backing_off(&alone.node, fake.now));
        end();
    }
}

/* Without a name, an id or loaded scripts there is less comfort, but there are locks. */
static void other_failures_do_not(void **state)
{
    (void)state;
    for (int failing = 2; failing < 6; failing++) {
        begin_greeting();
        for (int i = 0; i < 6; i++)
            receive(i == failing ? "-NOPERM this user has no permissions\r\n" : "+OK\r\n");
        expect_state(RLI_NODE_READY);
        expect_sent(SET("a"), RELEASE("b"));
        expect_log("");
        end();
    }
}

/* ... unless the server says that this connection is of no use at all. */
static void a_server_that_is_full_ends_it(void **state)
{
    static const char *const texts[] = {"ERR max number of clients reached", "DENIED Redis is running in protected mode"};
    (void)state;
    for (int i = 0; i < 2; i++)
        for (int failing = 0; failing < 4; failing++) {
            char bytes[100], expected[100];
            begin();
            ask(RLI_SET, "a", 250 * MS);
            rli_node_connected(&alone.node, fake.now);
            for (int j = 0; j < failing; j++)
                receive("+OK\r\n");
            snprintf(bytes, sizeof bytes, "-%s\r\n", texts[i]);
            snprintf(expected, sizeof expected, "a!error,\"%s\"", texts[i]);
            receive(bytes);
            expect_log(expected);
            expect_state(RLI_NODE_OFF);
            end();
        }
}

/* Nothing was asked yet: whoever waited may be sure that it did not act (no "unknown"). */
static void the_stream_may_end_anywhere_in_the_handshake(void **state)
{
    static const char answers[] = "+OK\r\n+OK\r\n+OK\r\n$33\r\nid=7 addr=10.0.0.9:7 user=default\r\n+OK\r\n+OK\r\n";
    (void)state;
    for (size_t length = 0; length < sizeof answers - 1; length++) {
        begin_greeting();
        rli_node_received(&alone.node, answers, length, fake.now);
        expect_state(RLI_NODE_GREETING);
        rli_node_ended(&alone.node, ECONNRESET, fake.now);
        expect_log("a!unreachable,ECONNRESET b!unreachable,ECONNRESET");
        expect_want(RLI_WANT_CLOSE);
        expect_state(RLI_NODE_OFF);
        assert_true(rli_node_backing_off(&alone.node, fake.now));
        end();
    }
}

static void what_is_no_redis_ends_the_handshake(void **state)
{
    static const char *const streams[] = {"HTTP/1.1 400 Bad Request\r\n\r\n", "+OK\r\n*1025\r\n", "+OK\r\n\r\n"};
    (void)state;
    for (int i = 0; i < 3; i++) {
        begin_greeting();
        receive(streams[i]);
        expect_log("a!error,\"not a Redis server's answer\" b!error,\"not a Redis server's answer\"");
        expect_state(RLI_NODE_OFF);
        expect_want(RLI_WANT_CLOSE);
        end();
    }
}

/* S3.5: nobody asked for it, so the next answer might be nobody's either. */
static void an_answer_too_many_after_the_handshake(void **state)
{
    (void)state;
    begin();
    struct rli_round *a = ask(RLI_SET, "a", 250 * MS);
    rli_node_connected(&alone.node, fake.now);
    rli_node_withdraw(&alone.node, &a->request);
    expect_want(RLI_WANT_CONNECT);
    receive("+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n");
    expect_state(RLI_NODE_OFF);
    expect_want(RLI_WANT_CLOSE);
    expect_log("");
    assert_true(rli_node_backing_off(&alone.node, fake.now)); /* it was of no use to anybody */
    end();
}

/* A partial id, or one without an address, is none; an address that is too long neither. */
static void the_own_id_is_learned_whole_or_not_at_all(void **state)
{
    static const struct {
        const char *info;
        int64_t id;
    } infos[] = {{"id=9 addr=1.2.3.4:5", 9},
                 {"id=9 laddr=1.2.3.4:5 fd=3", 0},
                 {"addr=1.2.3.4:5 tid=3", 0},
                 {"id=9 addr= fd=8", 0},
                 {"id=9223372036854775807 addr=/run/redis.sock:0", INT64_MAX},
                 {"", 0}};
    (void)state;
    for (size_t i = 0; i <= sizeof infos / sizeof *infos; i++) {
        char bytes[512], info[400];
        bool last = i == sizeof infos / sizeof *infos;
        if (last)
            snprintf(info, sizeof info, "id=9 addr=%0300d", 1);
        snprintf(bytes, sizeof bytes, "+OK\r\n$%zu\r\n%s\r\n+OK\r\n+OK\r\n", strlen(last ? info : infos[i].info),
                 last ? info : infos[i].info);
        begin();
        ask(RLI_SET, "a", 250 * MS);
        rli_node_connected(&alone.node, fake.now);
        receive(bytes);
        expect_state(RLI_NODE_READY);
        assert_true(alone.node.self.id == (last ? 0 : infos[i].id));
        if (alone.node.self.id)
            assert_string_equal(alone.node.self.address, i == 0 ? "1.2.3.4:5" : "/run/redis.sock:0");
        end();
    }
}

/* ---- Time limits of connecting ------------------------------------------------------------------------------------------------------ */

/* S4.1: look-up, connect and handshake together take at most the node timeout; to the instant. */
static void connecting_takes_at_most_the_node_timeout(void **state)
{
    (void)state;
    for (int phase = 0; phase < 3; phase++) {
        begin_at((struct rli_url){.host = phase ? host : name, .port = 6379});
        ask(RLI_SET, "a", 1000 * MS);
        expect_want(phase ? RLI_WANT_CONNECT : RLI_WANT_RESOLVE);
        fake.now += 100 * MS;
        if (phase == 2)
            rli_node_connected(&alone.node, fake.now);
        expect_state(phase == 0 ? RLI_NODE_RESOLVING : phase == 1 ? RLI_NODE_CONNECTING : RLI_NODE_GREETING);
        expect_tick_in(150 * MS);
        expect_log("a!unreachable,ETIMEDOUT");
        expect_state(RLI_NODE_OFF);
        expect_want(RLI_WANT_CLOSE);
        rli_node_resolved(&alone.node, 1, NULL, fake.now); /* too late to matter */
        rli_node_connected(&alone.node, fake.now);
        expect_state(RLI_NODE_OFF);
        expect_want(0);
        end();
    }
}

/* What has come too late for its deadline is never sent; a release always is. To the instant. */
static void a_request_is_not_sent_past_its_deadline(void **state)
{
    (void)state;
    for (enum rli_kind kind = RLI_SET; kind <= RLI_STORE; kind++)
        for (int late = 0; late < 2; late++) {
            if (kind == RLI_RELEASE)
                continue;
            begin();
            struct rli_round *a = ask(kind, "a", 100 * MS);
            ask(RLI_RELEASE, "b", 50 * MS);
            pass(100 * MS - 1 + late);
            connect_as(7);
            assert_int_equal(a->writes, !late);
            assert_int_equal(a->ends, late);
            assert_true(!late || a->request.sent == RLI_GONE);
            expect_log(late ? "a!unreachable,ETIMEDOUT" : "");
            if (!late)
                assert_non_null(next_command(&alone.node, fake.now));
            expect_sent(RELEASE("b"));
            end();
        }
}

static void an_abandoned_request_is_not_sent(void **state)
{
    (void)state;
    begin();
    ask(RLI_SET, "a", 250 * MS)->request.abandoned = true;
    ask(RLI_SET, "b", 250 * MS);
    connect_as(7);
    expect_sent(SET("b"));
    expect_log("a!unreachable,ETIMEDOUT");
    end();
}

static void withdrawing_keeps_the_order_of_the_rest(void **state)
{
    static const char *const names[] = {"a", "b", "c", "d"};
    static const char *const left[] = {"b c d e", "a c d e", "a b d e", "a b c e"};
    (void)state;
    for (int gone = 0; gone < 4; gone++) {
        struct rli_round *rounds[4];
        const char *command;
        char sent[64] = "";
        begin();
        for (int i = 0; i < 4; i++)
            rounds[i] = ask(RLI_RELEASE, names[i], 250 * MS);
        rli_node_withdraw(&alone.node, &rounds[gone]->request);
        assert_int_equal(rounds[gone]->request.state, RLI_REQUEST_IDLE);
        ask(RLI_RELEASE, "e", 250 * MS);
        connect_as(7);
        while ((command = next_command(&alone.node, fake.now))) {
            strcat(sent, sent[0] ? " " : "");
            strncat(sent, command + strlen("EVALSHA #release 1 "), 1);
        }
        assert_string_equal(sent, left[gone]);
        end();
    }
    begin(); /* the only one */
    rli_node_withdraw(&alone.node, &ask(RLI_SET, "a", 250 * MS)->request);
    ask(RLI_SET, "b", 250 * MS);
    connect_as(7);
    expect_sent(SET("b"));
    end();
}

/* ---- Back-off ----------------------------------------------------------------------------------------------------------------------- */

static void fail_to_connect(int error)
{
    rli_node_failed(&alone.node, error, fake.now);
    expect_state(RLI_NODE_OFF);
    forget_log();
}

/* Design 3: 50 ms doubling to 2 s, +- 20 %, after a failed connect; from the beginning after a connection. */
static void back_off_doubles_up_to_two_seconds(void **state)
{
    static const rli_span spans[] = {50, 100, 200, 400, 800, 1600, 2000, 2000, 2000};
    (void)state;
    for (int edge = 0; edge < 2; edge++) {
        begin();
        for (size_t i = 0; i < 2 * 9; i++) {
            rli_span span = spans[i % 9] * MS, fifth = span / 5;
            ask(RLI_EXTEND, "a", 250 * MS);
            alone.engine.random = edge ? 2 * (uint64_t)fifth : 0;
            fail_to_connect(ECONNREFUSED);
            fake.now += span + (edge ? fifth : -fifth) - 1;
            expect_refusal(RLI_SET, false, false, "unreachable,ECONNREFUSED");
            assert_true(rli_node_backing_off(&alone.node, fake.now));
            fake.now++;
            expect_refusal(RLI_SET, false, false, "");
            assert_false(rli_node_backing_off(&alone.node, fake.now));
            if (i != 8)
                continue;
            ask(RLI_EXTEND, "a", 250 * MS);
            connect_as(7);
            receive(":1\r\n");
            expect_sent(EXTEND("a"));
            rli_node_ended(&alone.node, ECONNRESET, fake.now); /* that is no failed connect */
            assert_false(rli_node_backing_off(&alone.node, fake.now));
        }
        end();
    }
}

/* ... and is skipped when without this node no quorum can be reached. */
static void back_off_is_skipped_when_needed(void **state)
{
    (void)state;
    begin();
    ask(RLI_SET, "a", 250 * MS);
    fail_to_connect(ENOENT);
    for (int kind = RLI_SET; kind <= RLI_STORE; kind++) {
        expect_refusal((enum rli_kind)kind, true, false, "unreachable,?");
        expect_refusal((enum rli_kind)kind, true, true, "");
    }
    ask(RLI_SET, "b", 250 * MS);
    expect_state(RLI_NODE_CONNECTING);
    expect_refusal(RLI_SET, false, false, ""); /* it is being tried */
    end();
}

/* ---- Addresses ----------------------------------------------------------------------------------------------------------------------- */

static void resolve(uint32_t count)
{
    expect_state(RLI_NODE_RESOLVING);
    for (uint32_t i = 0; i < count; i++)
        fake_address(&alone.node.addresses[i], "10.0.0.1", (uint16_t)(i + 1));
    alone.node.want = 0;
    rli_node_resolved(&alone.node, count, NULL, fake.now);
}

/* The address that a driver would connect to now. */
static int tried(void)
{
    const struct rli_node *n = &alone.node;
    expect_state(RLI_NODE_CONNECTING);
    assert_true(n->want & RLI_WANT_CONNECT);
    return atoi(strchr((const char *)n->addresses[n->address % n->address_count].bytes, ':') + 1);
}

static void begin_with_addresses(uint32_t count)
{
    begin_at((struct rli_url){.host = name, .port = 6379});
    ask(RLI_EXTEND, "a", 100000 * MS);
    resolve(count);
}

/* The name is looked up again for each connection. */
static void reconnect_with_addresses(uint32_t count)
{
    alone.node.backoff_until = RLI_GONE;
    ask(RLI_EXTEND, "a", 100000 * MS);
    resolve(count);
}

/* Design 3: a refused address leads to the next at once, within the same node timeout; the last one to failure. */
static void a_refused_address_leads_to_the_next(void **state)
{
    (void)state;
    begin_with_addresses(3);
    for (int i = 1; i <= 3; i++) {
        assert_int_equal(tried(), i);
        alone.node.want = 0;
        assert_true(rli_node_deadline(&alone.node) == T0 + 250 * MS);
        fake.now += 10 * MS;
        rli_node_failed(&alone.node, i == 2 ? EHOSTUNREACH : ECONNREFUSED, fake.now);
        if (i < 3)
            assert_int_equal(alone.node.want, RLI_WANT_CLOSE | RLI_WANT_CONNECT);
    }
    expect_state(RLI_NODE_OFF);
    expect_log("a!unreachable,ECONNREFUSED");
    expect_want(RLI_WANT_CLOSE);
    reconnect_with_addresses(3); /* all were tried: it begins with the first again */
    assert_int_equal(tried(), 1);
    end();
}

/* ... one that timed out makes the next attempt start with its successor. */
static void a_silent_address_is_skipped_next_time(void **state)
{
    (void)state;
    begin_with_addresses(3);
    for (int i = 0; i < 7; i++) {
        assert_int_equal(tried(), i % 3 + 1);
        expect_tick_in(250 * MS);
        expect_state(RLI_NODE_OFF);
        reconnect_with_addresses(3);
    }
    rli_node_failed(&alone.node, ECONNREFUSED, fake.now); /* 2 is refused, 3 is silent: next is 1 */
    assert_int_equal(tried(), 3);
    expect_tick_in(250 * MS);
    reconnect_with_addresses(3);
    assert_int_equal(tried(), 1);
    end();
}

/* The address that answered is kept; one that fails later, in the handshake or after a reset of it, is not. */
static void a_good_address_is_kept(void **state)
{
    (void)state;
    begin_with_addresses(4);
    rli_node_failed(&alone.node, ECONNREFUSED, fake.now);
    assert_int_equal(tried(), 2);
    connect_as(7);
    rli_node_ended(&alone.node, ECONNRESET, fake.now);
    assert_true(alone.node.want & RLI_WANT_RESOLVE); /* for "a", which is sent again */
    resolve(4);
    assert_int_equal(tried(), 2);
    rli_node_connected(&alone.node, fake.now);
    rli_node_ended(&alone.node, ECONNRESET, fake.now);
    reconnect_with_addresses(4);
    assert_int_equal(tried(), 3);
    expect_tick_in(250 * MS);
    reconnect_with_addresses(1); /* fewer than before */
    assert_int_equal(tried(), 1);
    rli_node_failed(&alone.node, ECONNREFUSED, fake.now);
    expect_state(RLI_NODE_OFF);
    end();
}

/* A full backlog of a unix socket: nothing was started, so it is tried every 5 ms until the time is up. */
static void a_full_unix_backlog_is_tried_again(void **state)
{
    (void)state;
    begin_at((struct rli_url){.path = path});
    ask(RLI_SET, "a", 250 * MS);
    assert_string_equal((char *)alone.node.addresses[0].bytes, "/run/s");
    for (int i = 0; i < 50; i++) {
        expect_want(RLI_WANT_CONNECT);
        rli_node_failed(&alone.node, EAGAIN, fake.now);
        expect_state(RLI_NODE_CONNECTING);
        expect_want(0);
        expect_tick_in(5 * MS);
    }
    expect_log("a!unreachable,ETIMEDOUT");
    assert_true(fake.now == T0 + 250 * MS);
    expect_state(RLI_NODE_OFF);
    fake.now += 100 * MS;
    ask(RLI_SET, "b", 250 * MS);
    rli_node_failed(&alone.node, EAGAIN, fake.now);
    expect_tick_in(5 * MS);
    connect_as(7); /* the second try */
    expect_sent(SET("b"));
    assert_true(rli_node_deadline(&alone.node) == fake.now - 5 * MS + 250 * MS + 10000 * MS);
    end();
}

static void no_port_left_is_a_failure_like_any(void **state)
{
    (void)state;
    begin();
    ask(RLI_SET, "a", 250 * MS);
    rli_node_failed(&alone.node, EAGAIN, fake.now);
    expect_log("a!unreachable,EAGAIN");
    expect_state(RLI_NODE_OFF);
    end();
}

/* Case A2: the resolver's own words, for those who waited and those who come during the back-off. */
static void the_resolvers_words_are_kept(void **state)
{
    char text[300], expected[300];
    (void)state;
    for (size_t length = 1; length < sizeof text; length += 7) {
        memset(text, 'x', length);
        text[length] = '\0';
        begin_at((struct rli_url){.host = name, .port = 6379});
        ask(RLI_SET, "a", 250 * MS);
        rli_node_resolved(&alone.node, 0, text, fake.now);
        snprintf(expected, sizeof expected, "unreachable,\"%.200s\"", text);
        expect_refusal(RLI_SET, false, false,
                       (memmove(alone.log, alone.log + 2, sizeof alone.log - 2), alone.logged = 0, expected));
        end();
    }
    begin_at((struct rli_url){.host = name, .port = 6379});
    ask(RLI_SET, "a", 250 * MS);
    rli_node_resolved(&alone.node, 0, "Name or service not known", fake.now);
    expect_log("a!unreachable,\"Name or service not known\"");
    rli_node_resolved(&alone.node, 0, "again", fake.now);
    expect_log("");
    end();
}

/* ---- Answers -------------------------------------------------------------------------------------------------------------------------- */

/* S3.5: answers are counted off in the order of the requests, however the bytes come. */
static void answers_find_their_requests(void **state)
{
    static const char answers[] = "+OK\r\n:1\r\n*2\r\n:2\r\n:99\r\n$-1\r\n-ERR what\r\n";
    (void)state;
    for (size_t cut = 0; cut < sizeof answers; cut++) {
        begin_ready();
        ask(RLI_SET, "a", 250 * MS);
        ask(RLI_EXTEND, "b", 250 * MS);
        ask(RLI_RELEASE, "c", 250 * MS);
        ask(RLI_SET, "d", 250 * MS);
        ask(RLI_TOP_UP, "e", 250 * MS);
        expect_sent(SET("a"), EXTEND("b"), RELEASE("c"), SET("d"), SET("e"));
        rli_node_received(&alone.node, answers, cut, fake.now);
        rli_node_received(&alone.node, answers + cut, sizeof answers - 1 - cut, fake.now);
        expect_log("a:+OK b:1 c:[2] d:nil e:-ERR what");
        end();
    }
}

/* S3.5: an answer that comes before its request has gone out, to the last byte, is nobody's. */
static void an_answer_to_what_was_not_sent_ends_it(void **state)
{
    (void)state;
    for (int whole = 0; whole < 2; whole++) {
        begin_ready();
        ask(RLI_SET, "a", 250 * MS);
        size_t first = rli_node_unsent(&alone.node);
        ask(RLI_SET, "b", 250 * MS);
        size_t second = rli_node_unsent(&alone.node) - first;
        alone.node.want = 0;
        rli_node_sent(&alone.node, first + second - !whole, fake.now);
        rli_node_received(&alone.node, "+OK\r\n$-1\r\n", 10, fake.now);
        expect_log(whole ? "a:+OK b:nil" : "a:+OK b!error,EPROTO,unknown,\"an answer too many\"");
        expect_state(whole ? RLI_NODE_READY : RLI_NODE_DRAINING);
        end();
    }
}

/* A caller that has the bytes at hand hands them over. */
static void bytes_at_hand_are_sent_as_they_are(void **state)
{
    static const char bytes[] = "*1\r\n$4\r\nPING\r\n";
    (void)state;
    begin_ready();
    rl_lock *lock = new_lock("a", 0);
    struct rli_round *a = new_round(lock, RLI_SET, 250 * MS);
    rli_lock_unref(lock);
    assert_true(rli_node_send(&alone.node, &a->request, bytes, sizeof bytes - 1, fake.now));
    expect_sent("PING");
    assert_true(a->request.sent == fake.now);
    end();
}

/* ---- Late ----------------------------------------------------------------------------------------------------------------------------- */

/* Design 3: late while the oldest owed answer is past its deadline and nothing has come for as long; it then gets only releases of what
 * it was sent before. To the instant. */
static void late_from_the_deadline_on(void **state)
{
    (void)state;
    begin_ready();
    fake.now += 10 * MS;
    ask(RLI_SET, "a", 250 * MS);
    pass(250 * MS - 1);
    for (int kind = RLI_SET; kind <= RLI_STORE; kind++)
        expect_refusal((enum rli_kind)kind, true, true, "");
    pass(1);
    for (int kind = RLI_SET; kind <= RLI_STORE; kind++)
        if (kind != RLI_RELEASE)
            expect_refusal((enum rli_kind)kind, true, true, "late");
    expect_refusal(RLI_RELEASE, true, false, "");
    expect_refusal(RLI_RELEASE, false, true, "late");
    ask(RLI_RELEASE, "a", 250 * MS);
    expect_sent(SET("a"), RELEASE("a"));
    receive("+OK\r\n");
    expect_log("a:+OK");
    expect_refusal(RLI_SET, false, false, ""); /* the release is not late yet */
    pass(250 * MS);
    expect_refusal(RLI_SET, false, false, "late"); /* now it is */
    end();
}

/* ... any byte ends it, for as long as a node timeout. */
static void any_byte_ends_lateness(void **state)
{
    (void)state;
    begin_ready();
    ask(RLI_SET, "a", 250 * MS);
    pass(3000 * MS);
    expect_refusal(RLI_SET, false, false, "late");
    receive("+");
    expect_refusal(RLI_SET, false, false, "");
    pass(250 * MS - 1);
    expect_refusal(RLI_SET, false, false, "");
    pass(1);
    expect_refusal(RLI_SET, false, false, "late");
    receive("OK\r\n");
    expect_log("a:+OK");
    pass(100000 * MS);
    expect_refusal(RLI_SET, false, false, ""); /* owes nothing */
    end();
}

/* A short deadline alone makes nobody late: the silence has to last for a node timeout. */
static void a_short_lease_makes_no_node_late(void **state)
{
    (void)state;
    begin_ready();
    ask(RLI_SET, "a", 5 * MS);
    pass(250 * MS - 1);
    expect_refusal(RLI_SET, false, false, "");
    pass(1);
    expect_refusal(RLI_SET, false, false, "late");
    end();
}

/* More than 1 MiB that a silent node does not take, or 16 MiB that a busy one does not: nothing more goes to it, and at the next tick it
 * is given up. To the byte, and to the instant. */
static void a_node_that_takes_no_bytes_is_given_up(void **state)
{
    enum { MIB = 1024 * 1024 };
    static char bytes[16 * MIB + 1];
    static const struct {
        size_t unsent;
        rli_span silent;
        bool too_much;
    } cases[] = {{MIB, 9000 * MS, false},         {MIB + 1, 250 * MS - 1, false}, {MIB + 1, 250 * MS, true},
                 {16 * MIB, 250 * MS - 1, false}, {16 * MIB, 250 * MS, true},     {16 * MIB + 1, 0, true}};
    (void)state;
    memset(bytes, ' ', sizeof bytes);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin_ready();
        rl_lock *lock = new_lock("a", 1000 * MS);
        struct rli_round *a = new_round(lock, RLI_RELEASE, 10000 * MS);
        rli_lock_unref(lock);
        assert_true(rli_node_send(&alone.node, &a->request, bytes, cases[i].unsent, fake.now));
        expect_refusal(RLI_SET, true, true, "");
        fake.now += cases[i].silent;
        rli_node_blocked(&alone.node, fake.now);
        for (int kind = RLI_SET; kind <= RLI_STORE; kind++)
            expect_refusal((enum rli_kind)kind, true, true, cases[i].too_much ? "late" : "");
        assert_true((rli_node_deadline(&alone.node) <= fake.now) == cases[i].too_much);
        alone.node.want = 0;
        rli_node_tick(&alone.node, fake.now);
        expect_state(cases[i].too_much ? RLI_NODE_DRAINING : RLI_NODE_READY);
        expect_want(cases[i].too_much ? RLI_WANT_SHUTDOWN : 0);
        expect_log(cases[i].too_much ? "a!no-answer,ETIMEDOUT,unknown" : "");
        assert_true(rli_node_unsent(&alone.node) == cases[i].unsent); /* S3.3: to be written still */
        end();
    }
}

/* Silent is who was asked: a connection that rested has not been silent for that. */
static void a_connection_that_rested_is_not_silent(void **state)
{
    static char bytes[1024 * 1024 + 1];
    (void)state;
    begin_ready();
    fake.now += 60000 * MS;
    rl_lock *lock = new_lock("a", 1000 * MS);
    struct rli_round *a = new_round(lock, RLI_STORE, 250 * MS);
    rli_lock_unref(lock);
    assert_true(rli_node_send(&alone.node, &a->request, bytes, sizeof bytes, fake.now));
    rli_node_blocked(&alone.node, fake.now);
    expect_refusal(RLI_SET, true, true, "");
    rli_node_tick(&alone.node, fake.now);
    expect_state(RLI_NODE_READY);
    fake.now += 250 * MS;
    rli_node_blocked(&alone.node, fake.now);
    expect_refusal(RLI_SET, true, true, "late");
    end();
}

/* What it takes after all before the next tick saves it. */
static void a_node_that_takes_bytes_again_is_kept(void **state)
{
    static char bytes[1024 * 1024 + 1];
    (void)state;
    begin_ready();
    rl_lock *lock = new_lock("a", 1000 * MS);
    struct rli_round *a = new_round(lock, RLI_RELEASE, 10000 * MS);
    rli_lock_unref(lock);
    assert_true(rli_node_send(&alone.node, &a->request, bytes, sizeof bytes, fake.now));
    fake.now += 250 * MS;
    rli_node_blocked(&alone.node, fake.now);
    expect_refusal(RLI_SET, true, true, "late");
    rli_node_sent(&alone.node, 1, fake.now);
    expect_refusal(RLI_SET, true, true, "");
    rli_node_tick(&alone.node, fake.now);
    expect_state(RLI_NODE_READY);
    end();
}

/* ---- For the driver --------------------------------------------------------------------------------------------------------------------- */

/* A connection in the making between the calls of a blocking front has its time from the next call on. */
static void time_that_nobody_drove_does_not_count(void **state)
{
    (void)state;
    for (int phase = 0; phase < 4; phase++) {
        begin_at((struct rli_url){.host = phase ? host : name, .port = 6379});
        ask(RLI_RELEASE, "a", 250 * MS);
        if (phase == 2)
            rli_node_connected(&alone.node, fake.now);
        if (phase == 3)
            connect_as(7);
        rli_instant before = rli_node_deadline(&alone.node);
        fake.now += 5000 * MS;
        rli_node_resumed(&alone.node, fake.now);
        assert_true(rli_node_deadline(&alone.node) == (phase == 3 ? before : fake.now + 250 * MS));
        end();
    }
}

/* Design 3: a connection that was idle for 10 ms may have died, and an answer past its deadline may be in the socket: read before use. */
static void a_look_is_wanted_when_in_doubt(void **state)
{
    (void)state;
    begin();
    assert_false(rli_node_wants_look(&alone.node, fake.now));
    ask(RLI_SET, "a", 5 * MS);
    assert_false(rli_node_wants_look(&alone.node, fake.now + 5000 * MS));
    connect_as(7);
    expect_sent(SET("a"));
    assert_false(rli_node_wants_look(&alone.node, fake.now + 5 * MS - 1));
    assert_true(rli_node_wants_look(&alone.node, fake.now + 5 * MS));
    receive("+OK\r\n");
    assert_false(rli_node_wants_look(&alone.node, fake.now + 10 * MS - 1));
    assert_true(rli_node_wants_look(&alone.node, fake.now + 10 * MS));
    fake.now += 9 * MS;
    ask(RLI_RELEASE, "b", 5000 * MS);
    expect_sent(RELEASE("b")); /* used, if not heard */
    assert_false(rli_node_wants_look(&alone.node, fake.now + 10 * MS - 1));
    end();
}

/* What it owes: creating requests and releases, not extensions or questions. */
static void what_a_node_owes(void **state)
{
    (void)state;
    for (enum rli_kind kind = RLI_SET; kind <= RLI_STORE; kind++) {
        bool creates = kind == RLI_SET || kind == RLI_TOP_UP || kind == RLI_GRANT;
        begin();
        assert_false(rli_node_owes(&alone.node));
        ask(kind, "a", 250 * MS);
        assert_int_equal(rli_node_owes(&alone.node), kind == RLI_RELEASE); /* waiting: nothing was set yet */
        connect_as(7);
        assert_int_equal(rli_node_owes(&alone.node), kind == RLI_RELEASE || creates);
        receive(":1\r\n");
        assert_false(rli_node_owes(&alone.node));
        owe("b", 50 * MS, 1000 * MS);
        assert_true(rli_node_owes(&alone.node));
        end();
    }
}

/* ---- Out of memory ------------------------------------------------------------------------------------------------------------------------- */

/* S3.6: each allocation of a connection and of what it sends, failed in turn: told to whoever asked, and nothing half written. */
static void memory_may_be_short_anywhere(void **state)
{
    uint64_t calls = 0, n;
    (void)state;
    for (n = 1; n <= calls + 1; n++) {
        begin();
        struct rli_round *a = ask(RLI_SET, "a", 250 * MS), *b = ask(RLI_RELEASE, "b", 250 * MS);
        calls = fake.calls;
        fake.fail_at = calls + n;
        rli_node_connected(&alone.node, fake.now);
        if (alone.node.state == RLI_NODE_GREETING) {
            expect_sent(GREETING);
            receive("+OK\r\n+OK\r\n+OK\r\n+OK\r\n");
        }
        calls = fake.calls - calls;
        fake.fail_at = 0;
        if (n > calls) {
            expect_sent(SET("a"), RELEASE("b"));
            expect_log("");
        } else {
            assert_true(a->ends == 1 && b->ends == 1 && !a->writes && !b->writes);
            expect_log("a!unreachable,ENOMEM b!unreachable,ENOMEM");
            expect_state(RLI_NODE_OFF);
        }
        end();
    }
    assert_true(n > 2);
}

/* A command that there is no room for is not queued, and the answers of the others still find theirs. */
static void without_room_nothing_is_queued(void **state)
{
    static char bytes[3000] = "*1\r\n$4\r\nPING\r\n";
    (void)state;
    begin_ready();
    rl_lock *lock = new_lock("x", 1000 * MS);
    struct rli_round *x = new_round(lock, RLI_SET, 250 * MS);
    ask(RLI_SET, "a", 250 * MS);
    fake.fail_at = fake.calls + 1;
    assert_false(rli_node_send(&alone.node, &x->request, bytes, sizeof bytes, fake.now));
    assert_int_equal(x->request.state, RLI_REQUEST_IDLE);
    ask(RLI_SET, "b", 250 * MS);
    expect_sent(SET("a"), SET("b"));
    receive("+OK\r\n$-1\r\n");
    expect_log("a:+OK b:nil");
    rli_lock_unref(lock);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_handshake_is_one_write),
        cmocka_unit_test(requests_wait_for_the_handshake_in_order),
        cmocka_unit_test(failing_auth_or_select_ends_it),
        cmocka_unit_test(other_failures_do_not),
        cmocka_unit_test(a_server_that_is_full_ends_it),
        cmocka_unit_test(the_stream_may_end_anywhere_in_the_handshake),
        cmocka_unit_test(what_is_no_redis_ends_the_handshake),
        cmocka_unit_test(an_answer_too_many_after_the_handshake),
        cmocka_unit_test(the_own_id_is_learned_whole_or_not_at_all),
        cmocka_unit_test(connecting_takes_at_most_the_node_timeout),
        cmocka_unit_test(a_request_is_not_sent_past_its_deadline),
        cmocka_unit_test(an_abandoned_request_is_not_sent),
        cmocka_unit_test(withdrawing_keeps_the_order_of_the_rest),
        cmocka_unit_test(back_off_doubles_up_to_two_seconds),
        cmocka_unit_test(back_off_is_skipped_when_needed),
        cmocka_unit_test(a_refused_address_leads_to_the_next),
        cmocka_unit_test(a_silent_address_is_skipped_next_time),
        cmocka_unit_test(a_good_address_is_kept),
        cmocka_unit_test(a_full_unix_backlog_is_tried_again),
        cmocka_unit_test(no_port_left_is_a_failure_like_any),
        cmocka_unit_test(the_resolvers_words_are_kept),
        cmocka_unit_test(answers_find_their_requests),
        cmocka_unit_test(an_answer_to_what_was_not_sent_ends_it),
        cmocka_unit_test(bytes_at_hand_are_sent_as_they_are),
        cmocka_unit_test(late_from_the_deadline_on),
        cmocka_unit_test(any_byte_ends_lateness),
        cmocka_unit_test(a_short_lease_makes_no_node_late),
        cmocka_unit_test(a_node_that_takes_no_bytes_is_given_up),
        cmocka_unit_test(a_connection_that_rested_is_not_silent),
        cmocka_unit_test(a_node_that_takes_bytes_again_is_kept),
        cmocka_unit_test(time_that_nobody_drove_does_not_count),
        cmocka_unit_test(a_look_is_wanted_when_in_doubt),
        cmocka_unit_test(what_a_node_owes),
        cmocka_unit_test(memory_may_be_short_anywhere),
        cmocka_unit_test(without_room_nothing_is_queued),
    };
    return cmocka_run_group_tests_name("node", tests, NULL, NULL);
}
