/* test_node_lost.c - a node whose connection is lost or given up: what is sent again and what never, how the old connection is ended on
 * the server before anything else is said, and how owed releases are kept, delivered or settled. Bytes in, bytes out, virtual time. */
#include "node_alone.h"

static void stream_ends(void)
{
    alone.node.want = 0;
    rli_node_ended(&alone.node, ECONNRESET, fake.now);
}

/* ---- The stream ends ---------------------------------------------------------------------------------------------------------------- */

/* Design 3: what changes nothing if it is done twice is sent again on a new connection, in order; a creating request never (S3.2). */
static void all_but_creating_requests_are_sent_again(void **state)
{
    (void)state;
    begin_ready();
    struct rli_round *a = ask(RLI_SET, "a", 250 * MS), *b = ask(RLI_EXTEND, "b", 250 * MS);
    struct rli_round *c = ask(RLI_TOP_UP, "c", 250 * MS), *d = ask(RLI_RELEASE, "d", 250 * MS);
    struct rli_round *g = ask(RLI_GRANT, "g", 250 * MS);
    ask(RLI_INFO, "e", 250 * MS);
    ask(RLI_CONFIRM, "h", 250 * MS);
    ask(RLI_MINT, "i", 250 * MS);
    while (next_command(&alone.node, fake.now))
        ;
    stream_ends();
    expect_log("a!no-answer,ECONNRESET,died,unknown c!no-answer,ECONNRESET,died,unknown g!no-answer,ECONNRESET,died,unknown");
    expect_want(RLI_WANT_CLOSE | RLI_WANT_CONNECT);
    fake.now += 100 * MS;
    connect_as(8);
    expect_sent(KILL("7"), EXTEND("b"), RELEASE("d"), "INFO server", CONFIRM("h"), MINT("i"));
    assert_true(b->request.resent && d->request.resent && b->request.sent == fake.now);
    assert_true(a->writes == 1 && c->writes == 1 && g->writes == 1 && b->writes == 2 && d->writes == 2);
    receive(":1\r\n:1\r\n:0\r\n");
    expect_log("b:1 d:0");
    end();
}

/* ... once. */
static void nothing_is_sent_a_third_time(void **state)
{
    (void)state;
    begin_ready();
    struct rli_round *b = ask(RLI_EXTEND, "b", 250 * MS), *d = ask(RLI_RELEASE, "d", 250 * MS);
    stream_ends();
    connect_as(8);
    ask(RLI_EXTEND, "f", 250 * MS);
    expect_sent(EXTEND("b"), RELEASE("d"), EXTEND("f"));
    stream_ends();
    expect_log("b!no-answer,ECONNRESET,died,unknown d!no-answer,ECONNRESET,died,unknown");
    assert_true(b->request.resent && d->request.resent);
    connect_as(9);
    expect_sent(EXTEND("f"));
    stream_ends();
    expect_log("f!no-answer,ECONNRESET,died,unknown");
    expect_state(RLI_NODE_OFF); /* nobody waits for a connection any more */
    expect_want(RLI_WANT_CLOSE);
    end();
}

/* What is sent again stands before what the loss of the others brought about, and that before what comes later. */
static void release_of_what_was_lost(struct rli_round *round)
{
    if (round->request.kind == RLI_SET)
        ask(RLI_RELEASE, name_of(round), 250 * MS);
}

static void what_is_sent_again_comes_first(void **state)
{
    (void)state;
    begin_ready();
    alone.on_lost = release_of_what_was_lost;
    ask(RLI_SET, "a", 250 * MS);
    ask(RLI_EXTEND, "b", 250 * MS);
    ask(RLI_SET, "c", 250 * MS);
    ask(RLI_RELEASE, "d", 250 * MS);
    expect_sent(SET("a"), EXTEND("b"), SET("c"), RELEASE("d"));
    stream_ends();
    ask(RLI_SET, "e", 250 * MS);
    connect_as(8);
    expect_sent(KILL("7"), EXTEND("b"), RELEASE("d"), RELEASE("a"), RELEASE("c"), SET("e"));
    end();
}

/* A part of an answer has come: the first of them was carried out, and nothing is sent again. */
static void after_a_partial_answer_nothing_is_sent_again(void **state)
{
    static const char answer[] = "*2\r\n:2\r\n:99\r\n";
    (void)state;
    for (size_t length = 1; length < sizeof answer - 1; length++) {
        begin_ready();
        ask(RLI_EXTEND, "a", 250 * MS);
        ask(RLI_RELEASE, "b", 250 * MS);
        rli_node_received(&alone.node, answer, length, fake.now);
        stream_ends();
        expect_log("a!no-answer,ECONNRESET,unknown b!no-answer,ECONNRESET,unknown");
        expect_state(RLI_NODE_OFF);
        end();
    }
    begin_ready(); /* but whole answers before it do not matter */
    ask(RLI_EXTEND, "a", 250 * MS);
    ask(RLI_RELEASE, "b", 250 * MS);
    receive(":1\r\n");
    stream_ends();
    expect_log("a:1");
    connect_as(8);
    expect_sent(RELEASE("b"));
    end();
}

/* An extension is only sent again within its deadline, to the instant; a release at any time. */
static void again_only_within_the_deadline(void **state)
{
    (void)state;
    for (int late = 0; late < 2; late++) {
        begin_ready();
        ask(RLI_EXTEND, "a", 100 * MS);
        ask(RLI_RELEASE, "b", 100 * MS);
        stream_ends();
        pass(100 * MS - 1 + late);
        connect_as(8);
        if (!late)
            assert_string_equal(next_command(&alone.node, fake.now), EXTEND("a"));
        expect_sent(RELEASE("b"));
        expect_log(late ? "a!unreachable,ETIMEDOUT" : "");
        end();
    }
}

/* Nobody waits for it any more: it is not sent again. What was sent as a whole script is so again. */
static void abandoned_and_whole(void **state)
{
    (void)state;
    begin_ready();
    ask(RLI_EXTEND, "a", 250 * MS)->request.abandoned = true;
    ask(RLI_RELEASE, "b", 250 * MS)->request.whole_script = true;
    stream_ends();
    expect_log("a!no-answer,ECONNRESET,died,unknown");
    connect_as(8);
    expect_sent("EVAL @release 1 b t");
    end();
}

static void an_idle_connection_that_ends_is_no_failure(void **state)
{
    (void)state;
    begin_ready();
    stream_ends();
    expect_state(RLI_NODE_OFF);
    expect_want(RLI_WANT_CLOSE);
    expect_refusal(RLI_SET, false, false, "");
    ask(RLI_SET, "a", 250 * MS);
    connect_as(8);
    expect_sent(SET("a"));
    end();
}

/* A connection that was asked and never answered is as bad as none: no peer that ends each one is called without pause. One that was not
 * asked, or has answered before, is not to blame. */
static void a_connection_that_answered_nothing_is_useless(void **state)
{
    (void)state;
    for (int how = 0; how < 3; how++) { /* asked; asked nothing; answered once */
        begin();
        struct rli_round *a = ask(RLI_SET, "a", 250 * MS);
        if (how == 1)
            rli_node_withdraw(&alone.node, &a->request);
        connect_as(7);
        while (next_command(&alone.node, fake.now))
            ;
        if (how == 2) {
            receive("$-1\r\n");
            ask(RLI_SET, "b", 250 * MS);
        }
        stream_ends();
        assert_int_equal(rli_node_backing_off(&alone.node, fake.now), how == 0);
        end();
    }
}

/* If no new connection comes about, the one that waits to be sent again is lost like any that waits. */
static void the_second_connection_may_fail_too(void **state)
{
    (void)state;
    begin_ready();
    struct rli_round *a = ask(RLI_EXTEND, "a", 250 * MS);
    stream_ends();
    rli_node_failed(&alone.node, ECONNREFUSED, fake.now);
    expect_log("a!unreachable,ECONNREFUSED");
    assert_true(a->request.sent != RLI_GONE && a->request.resent); /* by which the engine knows that it may have acted */
    expect_state(RLI_NODE_OFF);
    end();
}

/* ---- The old connection is ended on the server first (S3.4) --------------------------------------------------------------------------- */

/* ... if a creating request was unanswered on it; then what is owed, then what waits. */
static void kill_then_owed_then_waiting(void **state)
{
    (void)state;
    for (enum rli_kind kind = RLI_SET; kind <= RLI_STORE; kind++) {
        begin_ready();
        ask(kind, "a", 250 * MS)->request.abandoned = true;
        assert_non_null(next_command(&alone.node, fake.now));
        owe("b", 20 * MS, 1000 * MS);
        stream_ends();
        ask(RLI_SET, "c", 250 * MS);
        pass(20 * MS);
        connect_as(8);
        if (kind == RLI_SET || kind == RLI_TOP_UP || kind == RLI_GRANT)
            expect_sent(KILL("7"), RELEASE("b"), SET("c"));
        else
            expect_sent(RELEASE("b"), SET("c"));
        end();
    }
}

/* A server that was restarted counts its connections from the beginning: the old one went with it. */
static void a_restarted_server_has_nothing_to_kill(void **state)
{
    (void)state;
    for (int id = 5; id < 10; id++) {
        begin_ready(); /* as 7 */
        ask(RLI_SET, "a", 250 * MS);
        expect_sent(SET("a"));
        stream_ends();
        ask(RLI_SET, "b", 250 * MS);
        connect_as(id);
        if (id < 7)
            expect_sent(SET("b"));
        else
            expect_sent(KILL("7"), SET("b"));
        if (id < 7)
            assert_true(alone.node.lost_count == 0 && !alone.node.blind);
        end();
    }
}

/* It is ended until the server says so; the number of connections ended (0 or 1) does not matter. */
static void kill_is_repeated_until_answered(void **state)
{
    (void)state;
    begin_ready();
    ask(RLI_SET, "a", 250 * MS);
    expect_sent(SET("a"));
    for (int i = 8; i < 11; i++) {
        stream_ends();
        ask(RLI_INFO, "b", 250 * MS)->request.abandoned = true;
        rli_node_withdraw(&alone.node, alone.node.waiting.first);
        connect_as(i);
        expect_sent(KILL("7"));
    }
    receive(":0\r\n");
    assert_int_equal(alone.node.lost_count, 0);
    stream_ends();
    ask(RLI_SET, "c", 250 * MS);
    connect_as(11);
    expect_sent(SET("c"));
    end();
}

/* S3.5 for it too: its answer cannot come before it went out. */
static void an_answer_before_the_kill_went_out(void **state)
{
    (void)state;
    begin_ready();
    ask(RLI_SET, "a", 250 * MS);
    stream_ends();
    ask(RLI_SET, "b", 250 * MS);
    forget_log();
    rli_node_connected(&alone.node, fake.now);
    expect_sent(GREETING);
    greet_back(8);
    rli_node_received(&alone.node, ":1\r\n", 4, fake.now);
    expect_log("b!error,EPROTO,unknown,\"an answer too many\"");
    expect_state(RLI_NODE_DRAINING);
    end();
}

/* Several may be lost in a row, before one could be ended: the last four are remembered, and that there were more. */
static void the_last_four_are_ended(void **state)
{
    (void)state;
    begin();
    for (int id = 1; id <= 5; id++) {
        ask(RLI_SET, "a", 250 * MS);
        connect_as(id);
        while (next_command(&alone.node, fake.now))
            ;
        stream_ends();
    }
    ask(RLI_SET, "b", 250 * MS);
    connect_as(6);
    expect_sent(KILL("2"), KILL("3"), KILL("4"), KILL("5"), SET("b"));
    forget_log();
    receive(":1\r\n:1\r\n:1\r\n");
    assert_int_equal(alone.node.lost_count, 4);
    receive(":1\r\n");
    assert_int_equal(alone.node.lost_count, 0);
    assert_true(alone.node.blind);
    receive("+OK\r\n");
    expect_log("b:+OK");
    end();
}

/* Where the server refuses, or the id was never learned, the engine is told by `blind`. */
static void without_kill_the_node_is_blind(void **state)
{
    (void)state;
    begin_ready();
    ask(RLI_SET, "a", 250 * MS);
    stream_ends();
    ask(RLI_RELEASE, "b", 250 * MS);
    forget_log();
    connect_as(8);
    expect_sent(KILL("7"), RELEASE("b"));
    assert_false(alone.node.blind);
    receive("-NOPERM this user has no permissions to run the 'client|kill' command\r\n");
    assert_true(alone.node.blind && alone.node.lost_count == 0);
    receive(":1\r\n");
    expect_log("b:1");
    end();

    begin();
    ask(RLI_SET, "a", 250 * MS);
    rli_node_connected(&alone.node, fake.now);
    expect_sent(GREETING);
    receive("+OK\r\n-ERR unknown subcommand\r\n+OK\r\n+OK\r\n");
    stream_ends();
    forget_log();
    ask(RLI_RELEASE, "b", 250 * MS);
    connect_as(8);
    expect_sent(RELEASE("b"));
    assert_true(alone.node.blind && alone.node.lost_count == 0);
    end();
}

/* The id is that of this connection, or unknown; never the last one's. */
static void the_id_is_learned_anew(void **state)
{
    (void)state;
    begin_ready(); /* as 7 */
    stream_ends();
    ask(RLI_SET, "a", 250 * MS);
    rli_node_connected(&alone.node, fake.now);
    expect_sent(GREETING);
    receive("+OK\r\n-ERR unknown subcommand\r\n+OK\r\n+OK\r\n");
    expect_sent(SET("a"));
    stream_ends();
    ask(RLI_RELEASE, "b", 250 * MS);
    connect_as(9);
    expect_sent(RELEASE("b"));
    assert_true(alone.node.blind);
    end();
}

/* One refusal among several is enough, wherever it comes; and it is not forgotten with the connection that it came on. */
static void one_refusal_makes_it_blind(void **state)
{
    (void)state;
    for (int refused = 0; refused < 3; refused++) {
        begin();
        for (int id = 7; id < 9; id++) {
            ask(RLI_SET, "a", 250 * MS);
            connect_as(id);
            stream_ends();
        }
        ask(RLI_RELEASE, "b", 250 * MS);
        connect_as(9);
        expect_sent(KILL("7"), KILL("8"), RELEASE("b"));
        receive(refused == 0 ? "-NOPERM\r\n" : ":1\r\n");
        receive(refused == 1 ? "-NOPERM\r\n" : ":1\r\n");
        assert_int_equal(alone.node.blind, refused < 2);
        stream_ends();
        connect_as(10);
        expect_sent(RELEASE("b"));
        assert_int_equal(alone.node.blind, refused < 2);
        end();
    }
}

/* ---- Given up by us --------------------------------------------------------------------------------------------------------------------- */

/* 10 s after the deadline of its oldest answer, to the instant. S3.3: not closed, but shut down once all is written, then read to its
 * end. What the lost SET may have left is owed, and is said first on the next connection, behind the end of the old one. */
static void given_up_ten_seconds_past_the_deadline(void **state)
{
    (void)state;
    begin_ready();
    alone.on_lost = owe_lost_releases;
    ask(RLI_SET, "a", 200 * MS);
    ask(RLI_RELEASE, "a", 250 * MS);
    expect_sent(SET("a"), RELEASE("a"));
    alone.node.want = 0;
    expect_tick_in(10200 * MS);
    expect_state(RLI_NODE_DRAINING);
    expect_want(RLI_WANT_SHUTDOWN);
    expect_log("a!no-answer,ETIMEDOUT,unknown a!no-answer,ETIMEDOUT,unknown");
    for (int kind = RLI_SET; kind <= RLI_INFO; kind++)
        expect_refusal((enum rli_kind)kind, true, true, "late");
    receive("+OK\r\n:1\r\n+garbage\r\n$"); /* read, and of no interest */
    expect_log("");
    rli_node_ended(&alone.node, ECONNRESET, fake.now);
    expect_state(RLI_NODE_OFF);
    expect_want(RLI_WANT_CLOSE);
    expect_tick_in(0);
    expect_want(RLI_WANT_CONNECT);
    connect_as(8);
    expect_sent(KILL("7"), RELEASE("a"));
    receive(":0\r\n:0\r\n");
    expect_log("a:0");
    assert_false(rli_node_owes(&alone.node));
    end();
}

/* The end of the stream is waited for as long as the clean-up budget. */
static void draining_takes_at_most_the_clean_up_budget(void **state)
{
    (void)state;
    for (int none = 0; none < 2; none++) {
        begin_ready();
        alone.engine.terms.cleanup_timeout = none ? 0 : 100 * MS;
        ask(RLI_SET, "a", 200 * MS);
        expect_sent(SET("a"));
        fake.now += 10200 * MS;
        rli_node_tick(&alone.node, fake.now);
        expect_state(RLI_NODE_DRAINING);
        alone.node.want = 0;
        expect_tick_in(none ? 0 : 100 * MS);
        expect_state(RLI_NODE_OFF);
        expect_want(RLI_WANT_CLOSE);
        assert_true(rli_node_deadline(&alone.node) == RLI_NEVER);
        end();
    }
}

/* The bytes that were not taken yet are still to be written; the driver shuts down after them. */
static void what_was_written_is_still_sent(void **state)
{
    (void)state;
    begin_ready();
    ask(RLI_SET, "a", 200 * MS);
    expect_sent(SET("a"));
    ask(RLI_RELEASE, "a", 200 * MS);
    pass(10200 * MS);
    expect_state(RLI_NODE_DRAINING);
    expect_sent(RELEASE("a"));
    end();
}

/* A connection that owes no clean-up is closed at once. */
static void without_a_debt_it_is_closed_at_once(void **state)
{
    (void)state;
    begin_ready();
    ask(RLI_EXTEND, "a", 200 * MS);
    alone.node.want = 0;
    expect_tick_in(10200 * MS);
    expect_state(RLI_NODE_OFF);
    expect_want(RLI_WANT_CLOSE);
    expect_log("a!no-answer,ETIMEDOUT,unknown"); /* not sent again: the server is alive, if slow */
    assert_int_equal(alone.node.lost_count, 0);
    end();
}

/* An answered one makes the next the oldest. */
static void the_ten_seconds_are_those_of_the_oldest(void **state)
{
    (void)state;
    begin_ready();
    ask(RLI_SET, "a", 200 * MS);
    pass(5000 * MS);
    ask(RLI_RELEASE, "a", 200 * MS);
    receive("+OK\r\n");
    assert_true(rli_node_deadline(&alone.node) == fake.now + 10200 * MS);
    receive(":1\r\n");
    assert_true(rli_node_deadline(&alone.node) == RLI_NEVER);
    end();
}

/* Also a CLIENT KILL that is not answered. */
static void an_unanswered_kill_is_given_up_too(void **state)
{
    (void)state;
    begin_ready();
    ask(RLI_SET, "a", 250 * MS);
    stream_ends();
    struct rli_round *b = ask(RLI_SET, "b", 250 * MS);
    connect_as(8);
    expect_sent(KILL("7"), SET("b"));
    forget_log();
    expect_refusal(RLI_SET, false, false, "");
    pass(250 * MS);
    expect_refusal(RLI_SET, false, false, "late");
    pass(10000 * MS);
    expect_state(RLI_NODE_DRAINING);
    assert_int_equal(b->ends, 1);
    stream_ends();
    forget_log();
    ask(RLI_SET, "c", 250 * MS);
    connect_as(9);
    expect_sent(KILL("7"), KILL("8"), SET("c"));
    end();
}

/* ---- A violation (S3.5) ------------------------------------------------------------------------------------------------------------------ */

static void an_answer_too_many_ends_it(void **state)
{
    (void)state;
    begin_ready();
    ask(RLI_EXTEND, "a", 250 * MS);
    alone.node.want = 0;
    receive(":1\r\n:2\r\n:3\r\n");
    expect_log("a:1");
    expect_state(RLI_NODE_OFF);
    expect_want(RLI_WANT_CLOSE);
    ask(RLI_EXTEND, "b", 250 * MS); /* no reason to back off */
    connect_as(8);
    expect_sent(EXTEND("b"));
    end();
}

/* Everything owed is lost, and may have acted; nothing is sent again; S3.3 holds. */
static void garbage_ends_it(void **state)
{
    static const char *const streams[] = {"HTTP/1.1 400\r\n", "*2147483647\r\n", ":1\r\n!x\r\n", "\r\n"};
    (void)state;
    for (int i = 0; i < 4; i++)
        for (int debt = 0; debt < 2; debt++) {
            begin_ready();
            ask(RLI_EXTEND, "a", 250 * MS);
            ask(RLI_EXTEND, "b", 250 * MS);
            ask(debt ? RLI_SET : RLI_EXTEND, "c", 250 * MS);
            alone.node.want = 0;
            receive(streams[i]);
#define WHY "error,EPROTO,unknown,\"not a Redis server's answer\""
            expect_log(i == 2 ? "a:1 b!" WHY " c!" WHY : "a!" WHY " b!" WHY " c!" WHY);
#undef WHY
            expect_state(debt ? RLI_NODE_DRAINING : RLI_NODE_OFF);
            expect_want(debt ? RLI_WANT_SHUTDOWN : RLI_WANT_CLOSE);
            assert_int_equal(alone.node.lost_count, debt);
            receive("+OK\r\n");
            expect_log("");
            end();
        }
}

/* ---- Owed releases -------------------------------------------------------------------------------------------------------------------------- */

/* Delivered when due, over a connection made for it; not before the back-off is over. */
static void owed_releases_bring_about_a_connection(void **state)
{
    (void)state;
    begin();
    owe("a", 30 * MS, 1000 * MS);
    owe("b", 10 * MS, 1000 * MS);
    expect_tick_in(10 * MS);
    expect_want(RLI_WANT_CONNECT);
    rli_node_failed(&alone.node, ECONNREFUSED, fake.now);
    expect_state(RLI_NODE_OFF);
    expect_tick_in(40 * MS); /* 50 ms - 20 % */
    expect_state(RLI_NODE_CONNECTING);
    connect_as(7);
    expect_sent(RELEASE("a"), RELEASE("b"));
    assert_true(rli_node_owes(&alone.node)); /* their answers */
    receive(":1\r\n:0\r\n");
    expect_log("a:1 b:0");
    assert_false(rli_node_owes(&alone.node));
    assert_true(rli_node_deadline(&alone.node) == RLI_NEVER);
    end();
}

static void owed_releases_are_sent_when_due(void **state)
{
    (void)state;
    begin_ready();
    owe("a", 30 * MS, 1000 * MS);
    owe("b", 10 * MS, 1000 * MS);
    expect_nothing_sent();
    expect_tick_in(10 * MS);
    expect_sent(RELEASE("b"));
    expect_tick_in(20 * MS);
    expect_sent(RELEASE("a"));
    assert_true(rli_node_deadline(&alone.node) == fake.now - 20 * MS + 10250 * MS); /* b's answer */
    end();
}

/* The end of the lease has settled it: no connection is made. To the instant. */
static void the_end_of_the_lease_settles_it(void **state)
{
    (void)state;
    for (int over = 0; over < 2; over++) {
        begin();
        owe("a", 100 * MS, 100 * MS + !over);
        expect_tick_in(100 * MS);
        expect_state(over ? RLI_NODE_OFF : RLI_NODE_CONNECTING);
        assert_int_equal(rli_node_owes(&alone.node), !over);
        if (over)
            assert_true(rli_node_deadline(&alone.node) == RLI_NEVER);
        end();
        begin_ready();
        owe("a", 100 * MS, 100 * MS + !over);
        expect_tick_in(100 * MS);
        assert_int_equal(next_command(&alone.node, fake.now) != NULL, !over);
        end();
    }
}

/* ... but not while a SET of ours may be on its way to the server on a connection that lives there (S3.4), nor the second delivery: these
 * are settled when a lease that began at the end of this one is over too. To the instant. */
static void a_ghost_outlives_the_lease(void **state)
{
    (void)state;
    for (int over = 0; over < 2; over++)
        for (int again = 0; again < 2; again++) {
            begin_ready();
            if (!again)
                ask(RLI_SET, "a", 250 * MS);
            stream_ends();
            rl_lock *lock = new_lock("a", 50 * MS); /* its ttl is 1 s */
            rli_node_owe(&alone.node, lock, fake.now, again);
            rli_lock_unref(lock);
            alone.node.backoff_until = fake.now + 50 * MS + 2000 * MS - !over;
            expect_tick_in(2050 * MS - !over);
            assert_int_equal(rli_node_owes(&alone.node), !over);
            expect_state(over ? RLI_NODE_OFF : RLI_NODE_CONNECTING);
            if (over) {
                end();
                continue;
            }
            connect_as(8);
            if (again)
                expect_sent(RELEASE("a"));
            else
                expect_sent(KILL("7"), RELEASE("a"));
            assert_int_equal(alone.rounds->again, again);
            end();
        }
}

static void a_blind_node_delivers_even_what_is_settled(void **state)
{
    (void)state;
    begin_ready();
    ask(RLI_SET, "a", 250 * MS);
    stream_ends();
    owe("a", 0, 0);
    owe("b", 5 * MS, 0);
    ask(RLI_SET, "c", 250 * MS);
    connect_as(8);
    expect_sent(KILL("7"), RELEASE("a"), SET("c"));
    receive("-NOPERM\r\n");
    expect_tick_in(5 * MS);
    expect_sent(RELEASE("b"));
    end();
}

/* One entry for each lock: at the sooner time, and "again" only if both are (a first delivery is followed by a second if need be). */
static void one_debt_for_each_lock(void **state)
{
    (void)state;
    for (int again = 0; again < 4; again++) {
        begin();
        rl_lock *lock = new_lock("a", 1000 * MS);
        rli_node_owe(&alone.node, lock, fake.now + 50 * MS, again & 1);
        rli_node_owe(&alone.node, lock, fake.now + 20 * MS, again & 2);
        assert_int_equal(alone.node.owes_count, 1);
        assert_int_equal(lock->refs, 2);
        rli_node_owe(&alone.node, lock, fake.now + 70 * MS, true);
        rli_lock_unref(lock);
        expect_tick_in(20 * MS);
        connect_as(7);
        expect_sent(RELEASE("a"));
        assert_int_equal(alone.rounds->again, again == 3);
        assert_false(alone.rounds->lock->owed); /* and it may be owed anew */
        rli_node_owe(&alone.node, alone.rounds->lock, fake.now, false);
        assert_int_equal(alone.node.owes_count, 1);
        end();
    }
}

/* Without memory for more, the one that is over soonest makes room. */
static void the_soonest_to_expire_makes_room(void **state)
{
    enum { ALL = 300, KEPT = 256 };
    static char names[ALL][16];
    bool seen[ALL] = {false};
    const char *command;
    (void)state;
    begin();
    for (int i = 0; i < ALL; i++) {
        snprintf(names[i], sizeof names[i], "k%d", i);
        if (i == KEPT)
            fake.fail_at = fake.calls + 1, fake.fail_forever = true;
        owe(names[i], 0, (1000 + (i * 7919) % ALL) * MS);
    }
    fake.fail_at = 0;
    assert_int_equal(alone.node.owes_count, KEPT);
    rli_node_tick(&alone.node, fake.now);
    connect_as(7);
    while ((command = next_command(&alone.node, fake.now)))
        seen[atoi(strchr(command, 'k') + 1)] = true;
    for (int i = 0; i < ALL; i++)
        assert_int_equal(seen[i], (i * 7919) % ALL >= ALL - KEPT);
    end();
}

/* 65536 at most. */
static void debts_have_a_limit(void **state)
{
    (void)state;
    begin();
    for (int i = 0; i < RLI_MAX_OWES; i++)
        owe("k", 0, (2000 + i) * MS);
    assert_int_equal(alone.node.owes_count, RLI_MAX_OWES);
    long live = fake.live;
    owe("k", 0, 1000 * MS);
    assert_int_equal(alone.node.owes_count, RLI_MAX_OWES);
    assert_int_equal(fake.live, live);
    end();
}

/* S3.6: without memory it stays owed, and is tried again 100 ms later. */
static void without_memory_it_stays_owed(void **state)
{
    (void)state;
    begin_ready();
    owe("a", 10 * MS, 1000 * MS);
    alone.engine.no_orphans = true;
    for (int i = 0; i < 3; i++)
        expect_tick_in(i ? 100 * MS : 10 * MS);
    expect_nothing_sent();
    alone.engine.no_orphans = false;
    expect_tick_in(100 * MS);
    expect_sent(RELEASE("a"));
    end();

    begin_ready();
    static char filler[1024];
    rl_lock *lock = new_lock("f", 1000 * MS);
    struct rli_round *f = new_round(lock, RLI_SET, 250 * MS);
    rli_lock_unref(lock);
    assert_true(rli_node_send(&alone.node, &f->request, filler, 1000, fake.now)); /* the buffer is full but for a little */
    owe("a", 10 * MS, 1000 * MS);
    fake.now += 10 * MS;
    fake.fail_at = fake.calls + 1; /* more room in the buffer */
    rli_node_tick(&alone.node, fake.now);
    expect_log("a!not-asked,ENOMEM");
    assert_true(rli_node_unsent(&alone.node) == 1000);
    assert_int_equal(alone.node.owes_count, 1);
    rli_node_sent(&alone.node, 1000, fake.now);
    expect_tick_in(100 * MS);
    expect_sent(RELEASE("a"));
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_but_creating_requests_are_sent_again),
        cmocka_unit_test(nothing_is_sent_a_third_time),
        cmocka_unit_test(what_is_sent_again_comes_first),
        cmocka_unit_test(after_a_partial_answer_nothing_is_sent_again),
        cmocka_unit_test(again_only_within_the_deadline),
        cmocka_unit_test(abandoned_and_whole),
        cmocka_unit_test(an_idle_connection_that_ends_is_no_failure),
        cmocka_unit_test(a_connection_that_answered_nothing_is_useless),
        cmocka_unit_test(the_second_connection_may_fail_too),
        cmocka_unit_test(kill_then_owed_then_waiting),
        cmocka_unit_test(a_restarted_server_has_nothing_to_kill),
        cmocka_unit_test(kill_is_repeated_until_answered),
        cmocka_unit_test(an_answer_before_the_kill_went_out),
        cmocka_unit_test(the_last_four_are_ended),
        cmocka_unit_test(without_kill_the_node_is_blind),
        cmocka_unit_test(the_id_is_learned_anew),
        cmocka_unit_test(one_refusal_makes_it_blind),
        cmocka_unit_test(given_up_ten_seconds_past_the_deadline),
        cmocka_unit_test(draining_takes_at_most_the_clean_up_budget),
        cmocka_unit_test(what_was_written_is_still_sent),
        cmocka_unit_test(without_a_debt_it_is_closed_at_once),
        cmocka_unit_test(the_ten_seconds_are_those_of_the_oldest),
        cmocka_unit_test(an_unanswered_kill_is_given_up_too),
        cmocka_unit_test(an_answer_too_many_ends_it),
        cmocka_unit_test(garbage_ends_it),
        cmocka_unit_test(owed_releases_bring_about_a_connection),
        cmocka_unit_test(owed_releases_are_sent_when_due),
        cmocka_unit_test(the_end_of_the_lease_settles_it),
        cmocka_unit_test(a_ghost_outlives_the_lease),
        cmocka_unit_test(a_blind_node_delivers_even_what_is_settled),
        cmocka_unit_test(one_debt_for_each_lock),
        cmocka_unit_test(the_soonest_to_expire_makes_room),
        cmocka_unit_test(debts_have_a_limit),
        cmocka_unit_test(without_memory_it_stays_owed),
    };
    return cmocka_run_group_tests_name("node_lost", tests, NULL, NULL);
}
