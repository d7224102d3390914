/* test_keep.c - locks that are held for longer than one lease, in virtual time against small servers: when renewals are sent, in which
 * batches, what each answer does to each lock, and what the holder is told, when and how often (semantics S5.2 - S5.6, S1.8). */
#define RLT_MANY_LOCKS
#include "servers.h"

/* ---- The holder ------------------------------------------------------------------------------------------------------------------- */

static struct {
    char text[2048]; /* "a jeopardy 1, b lost 3" */
    size_t length;
    int64_t remaining_ms; /* of the last one */
} told;

/* The front's callback: its place is taken by hear(). */
static void on_event(rl_lock *lock, const rl_event *event, void *event_data)
{
    (void)lock, (void)event, (void)event_data;
}

static void hear(void)
{
    static const char *const kinds[] = {
        [RL_EVENT_JEOPARDY] = "jeopardy", [RL_EVENT_RECOVERED] = "recovered", [RL_EVENT_LOST] = "lost"};
    rl_event event;

    for (rl_lock *lock; (lock = rli_keep_next_event(&net.client->engine, &event, fake.now)); rli_lock_unref(lock)) {
        told.length += (size_t)snprintf(told.text + told.length, sizeof told.text - told.length, "%s%s %s %d",
                                        told.length ? ", " : "", rli_lock_key(lock), kinds[event.kind], event.reason);
        assert_true(told.length < sizeof told.text);
        assert_true((event.kind == RL_EVENT_LOST) == (lock->lost != 0) && (lock->lost == 0 || event.reason == lock->lost));
        told.remaining_ms = event.remaining_ms;
    }
}

static void expect_told(const char *expected)
{
    hear();
    if (strcmp(told.text, expected) != 0)
        fail_msg("told: %s; not: %s", told.text, expected);
    memset(&told, 0, sizeof told);
}

static void begin_keeping(uint32_t count, const rl_options *options)
{
    rl_options o = options ? *options : test_options();

    begin_with(count, &o);
    net.client->async = true;
    memset(&told, 0, sizeof told);
}

static rl_request request_of(const char *name, int64_t ttl_ms)
{
    rl_request request;

    rl_request_init(&request);
    request.name = name;
    request.name_len = strlen(name);
    request.ttl_ms = ttl_ms;
    request.renew = 1;
    request.on_event = on_event;
    assert_int_equal(rli_request_check(&request, &net.client->terms), RL_OK);
    return request;
}

static struct rli_op *start_taking(const rl_request *request)
{
    rl_lock *lock = rli_client_lock(net.client, request);
    struct rli_op *op = lock ? rli_op_new_acquire(&net.client->engine, lock, request) : NULL;

    if (lock)
        rli_lock_unref(lock);
    return start(op);
}

static rl_lock *keep_by(const rl_request *request)
{
    struct rli_op *op = start_taking(request);
    rl_lock *lock;

    settle();
    assert_int_equal(take(op, &lock), RL_OK);
    rli_keep_start(lock, fake.now);
    return lock;
}

static rl_lock *keep(const char *name, int64_t ttl_ms)
{
    rl_request request = request_of(name, ttl_ms);
    return keep_by(&request);
}

static rli_instant end_of(const rl_lock *lock)
{
    return atomic_load(&lock->valid_until);
}

/* Until when a lease asked for now lasts. */
static rli_instant from_now(int64_t ttl_ms)
{
    return rli_confirmed(&net.client->terms, fake.now, ttl_ms * MS);
}

static void is_due_at(rl_lock *lock, rli_instant at)
{
    assert_true(lock->timer.place);
    rli_heap_set(&net.client->engine.keep.timers, &lock->timer, at);
}

/* The next renewal comes now; whatever can happen without time passing, has. */
static void renew_now(rl_lock *lock)
{
    is_due_at(lock, fake.now);
    rli_engine_tick(&net.client->engine, fake.now);
    settle();
    hear();
}

/* Time goes on, with every tick on the way, and the holder hears what there is to hear. */
static void go_on(rli_span span)
{
    rli_instant until = fake.now + span, due;
    int at_once = 0;

    settle();
    hear();
    while ((due = rli_engine_deadline(&net.client->engine)) <= until) {
        at_once = due > fake.now ? 0 : at_once + 1;
        assert_true(at_once < 16);
        fake.now = rli_max(fake.now, due);
        rli_engine_tick(&net.client->engine, fake.now);
        settle();
        hear();
    }
    fake.now = until;
}

static void go_on_until(rli_instant when)
{
    go_on(when - fake.now);
}

static void give_back(rl_lock *lock)
{
    struct rli_op *op = start_release(lock);
    pass(300 * MS);
    assert_int_equal(take(op, NULL), RL_OK);
}

static void mute(bool first, bool second, bool third)
{
    net.servers[0].mute = first;
    net.servers[1].mute = second;
    net.servers[2].mute = third;
}

static void they_say(const char *words)
{
    for (uint32_t i = 0; i < net.count; i++)
        net.servers[i].says_of_renewal = words;
}

static void expect_logs(const char *expected)
{
    for (uint32_t i = 0; i < net.count; i++)
        expect_log(i, expected);
}

/* ---- When --------------------------------------------------------------------------------------------------------------------------- */

/* S5.4: each renewal between 0.8 and 0.9 thirds of what remained after the last one. */
static void renewed_when_due_and_not_before(void **state)
{
    rl_lock *lock;
    (void)state;
    begin_keeping(3, NULL);
    lock = keep("a", 1000);
    forget_logs();
    for (int i = 0; i < 300; i++) {
        rli_instant last = end_of(lock) - 988 * MS;
        go_on_until(last + 988 * MS * 8 / 30 - 10);
        expect_logs("");
        go_on_until(last + 988 * MS * 9 / 30);
        expect_logs("RENEW [a#1 for 1000: 1]");
        assert_true(end_of(lock) >= last + 988 * MS + 988 * MS * 8 / 30 - 10);
    }
    expect_told("");
    give_back(lock);
    go_on(5000 * MS);
    expect_told("");
    end();
}

/* S5.6: opt-in; but the holder is told of the end of any lock, at its end. */
static void not_renewed_unless_asked_for(void **state)
{
    rl_request request;
    rl_lock *lock;
    (void)state;
    begin_keeping(3, NULL);
    request = request_of("a", 1000);
    request.renew = 0;
    lock = keep_by(&request);
    forget_logs();
    go_on_until(T0 + 988 * MS - 1);
    expect_told("");
    assert_true(lock->state == RLI_LOCK_HELD);
    go_on(1);
    expect_told("a lost 1");
    expect_logs("");
    go_on(5000 * MS);
    expect_told("");
    drop(lock);
    end();
}

static void a_stopped_renewal_stays_stopped(void **state)
{
    rl_lock *lock;
    (void)state;
    begin_keeping(3, NULL);
    lock = keep("a", 1000);
    go_on(500 * MS);
    forget_logs();
    assert_int_equal(rl_lock_stop_renewing(lock), RL_OK);
    go_on_until(end_of(lock) - 1);
    expect_told("");
    go_on(1);
    expect_told("a lost 1");
    expect_logs("");
    assert_int_equal(rl_lock_stop_renewing(lock), RL_OK);
    drop(lock);
    end();
}

/* ... but what is under way may still prolong it. */
static void a_renewal_stopped_on_its_way(void **state)
{
    rl_lock *lock;
    (void)state;
    begin_keeping(3, NULL);
    lock = keep("a", 1000);
    mute(true, true, true);
    go_on(100 * MS);
    rli_instant until = from_now(1000);
    renew_now(lock);
    assert_int_equal(rl_lock_stop_renewing(lock), RL_OK);
    mute(false, false, false);
    settle();
    assert_true(end_of(lock) == until);
    forget_logs();
    go_on_until(until - 1);
    expect_told("");
    go_on(1);
    expect_told("a lost 1");
    expect_logs("");
    drop(lock);
    end();
}

/* The next renewal counts from what the holder has made of the lease, and asks for the ttl last asked for. */
static void the_holder_extends_it_in_between(void **state)
{
    struct rli_op *op;
    rl_lock *lock;
    (void)state;
    begin_keeping(3, NULL);
    lock = keep("a", 1000);
    go_on(200 * MS);
    op = start_extend(lock, 10000);
    settle();
    assert_int_equal(take(op, NULL), RL_OK);
    forget_logs();
    rli_span left = end_of(lock) - fake.now;
    assert_true(left == 9898 * MS);
    go_on(left * 8 / 30 - 10);
    expect_logs("");
    go_on(left / 30 + 10);
    expect_logs("RENEW [a#1 for 10000: 1]");
    expect_told("");
    give_back(lock);
    end();
}

/* Renewals for less than is left change nothing, and that is no failure. */
static void the_holder_extends_it_for_less(void **state)
{
    struct rli_op *op;
    rl_lock *lock;
    (void)state;
    begin_keeping(3, NULL);
    lock = keep("a", 10000);
    op = start_extend(lock, 1000);
    settle();
    assert_int_equal(take(op, NULL), RL_OK);
    go_on(60000 * MS);
    expect_told("");
    assert_true(lock->state == RLI_LOCK_HELD && end_of(lock) <= from_now(1000));
    give_back(lock);
    end();
}

/* ---- Batches -------------------------------------------------------------------------------------------------------------------------- */

static const char *number_name(int i)
{
    static char name[16];
    snprintf(name, sizeof name, "lock-%d", i);
    return name;
}

static void keep_many(rl_lock **locks, int count, int64_t ttl_ms)
{
    for (int i = 0; i < count; i++)
        locks[i] = keep(number_name(i), ttl_ms);
    for (int i = 0; i < count; i++)
        is_due_at(locks[i], fake.now);
}

static void expect_calls(int calls, int locks)
{
    for (uint32_t i = 0; i < net.count; i++) {
        assert_int_equal(net.servers[i].renewals, calls);
        assert_int_equal(net.servers[i].renewed, locks);
        net.servers[i].renewals = net.servers[i].renewed = 0;
    }
}

static void drop_all(rl_lock **locks, int count)
{
    for (int i = 0; i < count; i++)
        drop(locks[i]);
}

static void locks_that_are_due_together_are_one_call(void **state)
{
    rl_lock *locks[5];
    (void)state;
    begin_keeping(3, NULL);
    keep_many(locks, 5, 1000);
    rli_engine_tick(&net.client->engine, fake.now);
    settle();
    expect_calls(1, 5);
    go_on(1);
    expect_calls(0, 0);
    drop_all(locks, 5);
    end();
}

static void a_batch_is_as_large_as_the_option_says(void **state)
{
    static const struct {
        uint32_t batch;
        int calls;
    } cases[] = {{1, 4}, {2, 3}, {3, 2}, {4, 2}, {5, 1}, {64, 1}};
    rl_options options = test_options();
    rl_lock *locks[5];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        options.renew_batch = cases[i].batch;
        begin_keeping(3, &options);
        keep_many(locks, 5, 1000);
        rli_engine_tick(&net.client->engine, fake.now);
        settle();
        expect_calls(cases[i].calls, cases[i].batch == 1 ? 4 : 5); /* four calls a turn, at most */
        drop_all(locks, 5);
        end();
    }
}

/* 300 are due: 256 in this turn; then others' requests come through, before the rest. */
static void a_turn_sends_four_batches_at_most(void **state)
{
    enum { LOCKS = 300 };
    rl_lock *locks[LOCKS], *other;
    struct rli_op *op;
    (void)state;
    begin_keeping(3, NULL);
    keep_many(locks, LOCKS, 10000);
    rli_engine_tick(&net.client->engine, fake.now);
    assert_true(rli_engine_deadline(&net.client->engine) <= fake.now);
    op = start_acquire("other", 1000, 0);
    settle();
    assert_int_equal(take(op, &other), RL_OK);
    expect_calls(4, 256);
    rli_engine_tick(&net.client->engine, fake.now);
    settle();
    expect_calls(1, LOCKS - 256);
    assert_true(rli_engine_deadline(&net.client->engine) > fake.now);
    drop_all(locks, LOCKS);
    drop(other);
    end();
}

/* S2.4: an answer that is none, for all or for some, is a vote against: nothing is lost by it, the next try succeeds. */
static void answers_that_confirm_nothing(void **state)
{
    static const char *const answers[] = {
        "*0\r\n",
        "*1\r\n:1\r\n",
        "*3\r\n:1\r\n:1\r\n:1\r\n",
        "*2\r\n:1\r\n+OK\r\n",
        "*3\r\n:1\r\n:1\r\n+OK\r\n",
        "*2\r\n$1\r\n1\r\n:1\r\n",
        "*2\r\n*1\r\n:1\r\n:1\r\n",
        "*2\r\n:-1\r\n:-1\r\n",
        "*2\r\n:3\r\n:7\r\n",
        "*2\r\n:4294967297\r\n:-4294967295\r\n", /* 1, if cut */
        "*-1\r\n",
        "$-1\r\n",
        ":1\r\n",
        "+OK\r\n",
        "$1\r\n1\r\n",
        "-BUSY Redis is busy running a script.\r\n",
        "-LOADING Redis is loading the dataset in memory\r\n",
        "-READONLY You can't write against a read only replica.\r\n",
        "-OOM command not allowed when used memory > 'maxmemory'.\r\n",
        "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n",
    };
    (void)state;
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        begin_keeping(3, NULL);
        rl_lock *a = keep("a", 1000), *b = keep("b", 1000);
        they_say(answers[i]);
        go_on(100 * MS);
        is_due_at(a, fake.now);
        renew_now(b);
        if (strcmp(told.text, "a jeopardy 1, b jeopardy 1") != 0 && strcmp(told.text, "b jeopardy 1, a jeopardy 1") != 0)
            fail_msg("%s: told: %s", answers[i], told.text);
        memset(&told, 0, sizeof told);
        assert_true(end_of(a) == T0 + 988 * MS && end_of(b) == T0 + 988 * MS);
        they_say(NULL);
        is_due_at(a, fake.now);
        renew_now(b);
        assert_true(end_of(a) == from_now(1000) && end_of(b) == from_now(1000));
        assert_int_equal(net.servers[0].conn_count, 1);
        give_back(a);
        give_back(b);
        end();
    }
}

/* The script's -1: an error with one key is no concern of the others. */
static void an_error_with_one_key(void **state)
{
    (void)state;
    begin_keeping(3, NULL);
    rl_lock *a = keep("a", 1000), *b = keep("b", 1000), *c = keep("c", 1000);
    net.servers[0].faulty_key = net.servers[1].faulty_key = "b";
    go_on(100 * MS);
    is_due_at(a, fake.now);
    is_due_at(b, fake.now);
    renew_now(c);
    expect_told("b jeopardy 1");
    assert_true(end_of(a) == from_now(1000) && end_of(c) == from_now(1000) && end_of(b) == T0 + 988 * MS);
    net.servers[0].faulty_key = NULL;
    renew_now(b);
    expect_told("b recovered 0");
    give_back(a);
    give_back(b);
    give_back(c);
    end();
}

/* S2.5: no vote is lost by a script that is not there. */
static void servers_without_the_script(void **state)
{
    (void)state;
    begin_keeping(3, NULL);
    rl_lock *lock = keep("a", 1000);
    for (int i = 0; i < 3; i++)
        net.servers[i].loaded[RLI_SCRIPT_RENEW] = false;
    forget_logs();
    go_on(100 * MS);
    renew_now(lock);
    expect_logs("RENEW NOSCRIPT, EVAL-RENEW [a#1 for 1000: 1]");
    assert_true(end_of(lock) == from_now(1000));
    for (int i = 0; i < 3; i++)
        net.servers[i].forgetful = true;
    go_on(10000 * MS);
    expect_told("");
    give_back(lock);
    end();
}

/* An ACL that denies one key fails the whole call: then each is renewed by a call of its own. */
static void a_key_that_is_denied_is_no_concern_of_the_others(void **state)
{
    (void)state;
    begin_keeping(3, NULL);
    rl_lock *a = keep("a", 1000), *b = keep("b", 1000), *c = keep("c", 1000);
    for (int i = 0; i < 3; i++)
        net.servers[i].denied_key = "b";
    go_on(100 * MS);
    is_due_at(a, fake.now);
    is_due_at(b, fake.now);
    renew_now(c);
    assert_true(a->failing && b->failing && c->failing);
    is_due_at(a, fake.now);
    is_due_at(b, fake.now);
    renew_now(c);
    assert_true(!a->failing && b->failing && !c->failing);
    expect_calls(2, 2);
    go_on(5000 * MS);
    assert_true(a->state == RLI_LOCK_HELD && b->state == RLI_LOCK_OVER && c->state == RLI_LOCK_HELD);
    assert_int_equal(b->lost, RL_LOST_EXPIRED);
    assert_int_equal(net.servers[0].renewals, net.servers[0].renewed);
    memset(&told, 0, sizeof told);
    drop(b);
    give_back(a);
    give_back(c);
    end();
}

/* ---- Votes ------------------------------------------------------------------------------------------------------------------------------ */

/* S5.2, S5.5: what is said of one lock of a batch is said of it alone; lost at once if too few keep it, and why. */
static void votes_count_for_each_lock(void **state)
{
    (void)state;
    begin_keeping(3, NULL);
    rl_lock *a = keep("a", 1000), *b = keep("b", 1000), *c = keep("c", 1000);
    for (uint32_t i = 1; i < 3; i++) {
        put_key(&net.servers[i], "b", "another's", 9, 10000 * MS);
        find_key(&net.servers[i], "c", 1, false)->expires = 0;
    }
    go_on(100 * MS);
    is_due_at(a, fake.now);
    is_due_at(b, fake.now);
    renew_now(c);
    assert_true(end_of(a) == from_now(1000));
    assert_true(end_of(b) == RLI_GONE && end_of(c) == RLI_GONE);
    assert_int_equal(rl_lock_lost_reason(a), RL_LOST_NOT);
    assert_int_equal(rl_lock_lost_reason(b), RL_LOST_TAKEN_OVER);
    assert_int_equal(rl_lock_lost_reason(c), RL_LOST_QUORUM_GONE);
    assert_int_equal(rl_lock_remaining_ms(b), 0);
    assert_non_null(strstr(told.text, "b lost 2"));
    assert_non_null(strstr(told.text, "c lost 3"));
    assert_null(strstr(told.text, "a "));
    memset(&told, 0, sizeof told);
    go_on(5000 * MS);
    expect_told("");
    drop(b);
    drop(c);
    give_back(a);
    end();
}

/* S5.2: "not yours" takes back what a node had promised; the lease then ends with what the others have. */
static void one_node_that_lost_it_shortens_the_lease(void **state)
{
    (void)state;
    begin_keeping(3, NULL);
    rl_lock *lock = keep("a", 1000);
    net.servers[2].deaf = true;
    go_on(100 * MS);
    renew_now(lock);
    assert_true(end_of(lock) == from_now(1000));
    lose_keys(&net.servers[1]);
    go_on(10 * MS);
    renew_now(lock);
    assert_true(lock->e[0] == from_now(1000) && lock->e[1] == RLI_GONE && end_of(lock) == T0 + 988 * MS);
    go_on_until(T0 + 988 * MS - 1);
    expect_told("a jeopardy 1");
    go_on(1);
    expect_told("a lost 1");
    drop(lock);
    end();
}

/* S1.2: what a batch confirms counts from its sending, on each node. */
static void validity_counts_from_the_sending(void **state)
{
    (void)state;
    begin_keeping(3, NULL);
    rl_lock *lock = keep("a", 1000);
    go_on(100 * MS);
    rli_instant until = from_now(1000);
    mute(true, true, true);
    renew_now(lock);
    go_on(100 * MS);
    mute(false, false, false);
    settle();
    for (int i = 0; i < 3; i++)
        assert_true(lock->e[i] == until);
    assert_true(end_of(lock) == until);
    give_back(lock);
    end();
}

/* ---- Jeopardy ----------------------------------------------------------------------------------------------------------------------------- */

/* Silence of too many: when the try has lasted for as long as it may; once, however many more tries fail; and over once. */
static void jeopardy_when_a_try_has_been_silent_for_too_long(void **state)
{
    static const int64_t ttls[] = {3000, 600, 100};
    (void)state;
    for (size_t i = 0; i < sizeof ttls / sizeof *ttls; i++) {
        begin_keeping(3, NULL);
        rl_lock *lock = keep("a", ttls[i]);
        rli_span third = (end_of(lock) - (fake.now + 5 * MS)) / 3;
        go_on(5 * MS);
        mute(false, true, true);
        renew_now(lock);
        go_on(rli_min(250 * MS, third) - 1);
        expect_told("");
        go_on(1);
        expect_told("a jeopardy 1");
        go_on((end_of(lock) - fake.now) / 2);
        expect_told("");
        mute(false, false, false);
        go_on((end_of(lock) - fake.now) / 2);
        expect_told("a recovered 0");
        go_on(5000 * MS);
        expect_told("");
        give_back(lock);
        end();
    }
}

/* As soon as too few are left who could confirm it; not before. */
static void jeopardy_when_a_quorum_cannot_be_reached(void **state)
{
    (void)state;
    begin_keeping(3, NULL);
    rl_lock *lock = keep("a", 1000);
    net.servers[2].refuses = true;
    cut(2);
    go_on(2000 * MS);
    expect_told(""); /* two are enough */
    mute(true, true, false);
    renew_now(lock);
    expect_told("");
    cut(1);
    net.servers[1].refuses = true;
    hear();
    settle();
    expect_told("a jeopardy 1");
    assert_true(rl_lock_remaining_ms(lock) > 500);
    net.servers[1].refuses = net.servers[2].refuses = false;
    mute(false, false, false);
    go_on(500 * MS);
    expect_told("a recovered 0");
    give_back(lock);
    end();
}

/* What is told in jeopardy: how long it will last. Trouble that is over before anybody was told is none. */
static void jeopardy_tells_what_is_left(void **state)
{
    (void)state;
    begin_keeping(1, NULL);
    rl_lock *lock = keep("a", 1000);
    they_say("-BUSY\r\n");
    go_on(100 * MS);
    renew_now(lock);
    assert_int_equal(told.remaining_ms, 888);
    expect_told("a jeopardy 1");
    they_say(NULL);
    renew_now(lock);
    expect_told("a recovered 0");
    they_say("-BUSY\r\n");
    is_due_at(lock, fake.now);
    rli_engine_tick(&net.client->engine, fake.now);
    settle();
    assert_true(lock->failing);
    they_say(NULL);
    is_due_at(lock, fake.now);
    rli_engine_tick(&net.client->engine, fake.now);
    settle();
    expect_told("");
    give_back(lock);
    end();
}

/* A single yes that happens to lift the end of the lease, from one node's word to the next one's, confirms nothing. */
static void one_node_is_no_recovery(void **state)
{
    (void)state;
    begin_keeping(3, NULL);
    rl_lock *lock = keep("a", 1000);
    lock->e[0] -= 300 * MS; /* as if it had been asked earlier */
    lock->e[2] = RLI_GONE;
    rli_lock_refresh(lock, fake.now);
    mute(true, true, true);
    renew_now(lock);
    go_on(250 * MS);
    expect_told("a jeopardy 1");
    rli_instant before = end_of(lock);
    mute(false, true, true);
    settle();
    assert_true(end_of(lock) == before + 300 * MS);
    expect_told("");
    go_on(400 * MS);
    expect_told("");
    mute(false, false, false);
    go_on(100 * MS);
    expect_told("a recovered 0");
    give_back(lock);
    end();
}

/* ---- Loss ------------------------------------------------------------------------------------------------------------------------------------ */

/* S5.5: at valid_until, not a tick before; once. S1.3: remaining <= 0 from then on. */
static void lost_at_the_end_exactly(void **state)
{
    (void)state;
    begin_keeping(3, NULL);
    rl_lock *lock = keep("a", 1000);
    go_on(2000 * MS);
    mute(false, true, true);
    rli_instant until = end_of(lock);
    go_on_until(until - 1);
    expect_told("a jeopardy 1");
    assert_true(lock->state == RLI_LOCK_HELD && rl_lock_lost_reason(lock) == RL_LOST_NOT);
    go_on(1);
    expect_told("a lost 1");
    assert_int_equal(rl_lock_remaining_ms(lock), 0);
    assert_int_equal(rl_lock_lost_reason(lock), RL_LOST_EXPIRED);
    go_on(5000 * MS);
    expect_told("");
    drop(lock);
    end();
}

/* S1.8: the process stood still; the first thing that runs finds the truth, and sends nothing. */
static void lost_while_the_process_stood_still(void **state)
{
    (void)state;
    begin_keeping(3, NULL);
    rl_lock *lock = keep("a", 1000);
    forget_logs();
    fake.now += 988 * MS;
    rli_engine_tick(&net.client->engine, fake.now);
    settle();
    expect_told("a lost 1");
    expect_logs("");
    drop(lock);
    end();
}

/* S5.5: the holder's own extension finds it lost: told by both, the event once. */
static void an_extension_finds_it_lost(void **state)
{
    (void)state;
    begin_keeping(3, NULL);
    rl_lock *lock = keep("a", 1000);
    lose_keys(&net.servers[0]);
    lose_keys(&net.servers[1]);
    struct rli_op *op = start_extend(lock, 1000);
    settle();
    assert_int_equal(take(op, NULL), RL_LOST);
    expect_told("a lost 3");
    go_on(3000 * MS);
    expect_told("");
    drop(lock);
    end();
}

/* The holder is told of nothing that it does not have: not yet, or no longer. */
static void a_lock_that_is_not_handed_over_tells_nothing(void **state)
{
    rl_request request;
    rl_lock *lock;
    (void)state;
    begin_keeping(3, NULL);
    mute(false, false, true);
    request = request_of("a", 1000);
    struct rli_op *op = start_taking(&request);
    settle();
    assert_true(op->finished && op->status == RL_OK);
    fake.now += 990 * MS; /* stands still, before the front comes to hand it over */
    mute(false, false, false);
    settle(); /* a late vote finds it lost */
    expect_told("");
    assert_int_equal(rli_op_hand_over(op, false, fake.now), RL_E_TOO_SLOW);
    lock = op->lock;
    assert_true(lock->state == RLI_LOCK_OVER);
    rli_op_free(op);
    go_on(3000 * MS);
    expect_told("");
    end();
}

static void a_lock_that_was_given_up_tells_nothing(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        begin_keeping(3, NULL);
        rl_lock *lock = keep("a", 1000);
        if (i % 2) {
            mute(false, true, true);
            go_on_until(end_of(lock));
            expect_told("a jeopardy 1, a lost 1");
            mute(false, false, false);
            settle();
            drop(lock);
            lock = keep("b", 1000);
        }
        they_say("-BUSY\r\n");
        is_due_at(lock, fake.now);
        rli_engine_tick(&net.client->engine, fake.now);
        settle();
        assert_true(lock->failing && lock->queued); /* a jeopardy that nobody has been told of */
        if (i / 2)
            drop(lock);
        else
            give_back(lock);
        go_on(3000 * MS);
        expect_told("");
        end();
    }
}

/* ---- What comes late --------------------------------------------------------------------------------------------------------------------------- */

/* The next reply that waits in the server's connection, whatever comes behind it. */
static void deliver_one(uint32_t i)
{
    struct conn *c = joined(&net.servers[i]);
    ssize_t size = ts_resp_length(c->down, c->down_size);

    assert_true(size > 0);
    char *bytes = malloc((size_t)size);
    memcpy(bytes, c->down, (size_t)size);
    c->down_size -= (size_t)size;
    memmove(c->down, c->down + size, c->down_size);
    rli_node_received(node_of(i), bytes, (size_t)size, fake.now);
    free(bytes);
}

/* A vote of an earlier try does not fail a later one; a yes in it counts from its own sending. */
static void votes_of_an_earlier_try(void **state)
{
    (void)state;
    begin_keeping(3, NULL);
    rl_lock *lock = keep("a", 600);
    mute(true, true, true);
    go_on(10 * MS);
    they_say("-BUSY\r\n");
    net.servers[0].says_of_renewal = NULL;
    rli_instant first = from_now(600);
    renew_now(lock);
    go_on(200 * MS);
    expect_told("a jeopardy 1");
    they_say(NULL);
    rli_instant second = from_now(600);
    renew_now(lock);
    assert_true(lock->trying);
    for (uint32_t i = 0; i < 3; i++)
        deliver_one(i);
    assert_true(lock->trying); /* though the first one has failed for good */
    assert_true(lock->e[0] == first && lock->e[1] == T0 + 592 * MS);
    for (uint32_t i = 0; i < 3; i++)
        deliver_one(i);
    assert_true(!lock->trying && end_of(lock) == second);
    expect_told("a recovered 0");
    mute(false, false, false);
    give_back(lock);
    end();
}

/* S5.4: after the release nothing about the lock is sent, and what is said about it is not heard. */
static void votes_after_the_release(void **state)
{
    (void)state;
    begin_keeping(3, NULL);
    rl_lock *lock = keep("a", 1000);
    lose_keys(&net.servers[2]);
    go_on(100 * MS);
    mute(true, true, true);
    renew_now(lock);
    forget_logs();
    struct rli_op *op = start_release(lock);
    mute(false, false, false);
    settle();
    assert_int_equal(take(op, NULL), RL_OK);
    go_on(5000 * MS);
    expect_log(0, "RELEASE a#1 1");
    expect_log(1, "RELEASE a#1 1");
    expect_log(2, "RELEASE a#1 0"); /* and no top-up */
    expect_told("");
    end();
}

/* S5.5: terminal. The servers agree, too late. */
static void votes_after_the_loss(void **state)
{
    (void)state;
    for (int tick = 0; tick < 2; tick++) { /* found by its timer, or by the vote itself */
        begin_keeping(3, NULL);
        rl_lock *lock = keep("a", 300);
        lose_keys(&net.servers[2]);
        go_on(100 * MS);
        mute(true, true, true);
        renew_now(lock);
        if (tick) {
            go_on_until(end_of(lock));
            expect_told("a jeopardy 1, a lost 1");
        } else {
            fake.now = end_of(lock);
        }
        forget_logs();
        mute(false, false, false);
        settle();
        assert_true(lock->state == RLI_LOCK_OVER && end_of(lock) == RLI_GONE);
        assert_int_equal(rl_lock_remaining_ms(lock), 0);
        expect_told(tick ? "" : "a lost 1");
        expect_log(2, "");
        go_on(3000 * MS);
        expect_told("");
        drop(lock);
        end();
    }
}

/* A renewal that waits for its connection when the lock is given back goes out without that lock's token; for the others it counts. */
static void a_waiting_renewal_of_a_lock_that_was_given_back(void **state)
{
    (void)state;
    begin_keeping(3, NULL);
    rl_lock *a = keep("a", 1000), *b = keep("b", 1000);
    net.servers[2].unheard = true;
    cut(2);
    go_on(100 * MS);
    is_due_at(a, fake.now);
    renew_now(b);
    forget_logs();
    struct rli_op *op = start_release(a);
    settle();
    go_on(20 * MS);
    rli_instant until = from_now(1000);
    rli_node_connected(node_of(2), fake.now);
    settle();
    expect_log(2, "RENEW [a#0 for 1000: 2; b#2 for 1000: 1], RELEASE a#1 1");
    assert_true(b->e[2] == until);
    assert_int_equal(take(op, NULL), RL_OK);
    net.servers[2].unheard = false;
    give_back(b);
    expect_told("");
    end();
}

/* ---- Top-up (S5.3) -------------------------------------------------------------------------------------------------------------------------------- */

/* Only once q nodes have confirmed in this try, once, and it is a node like the others afterwards. */
static void topped_up_once_a_quorum_has_confirmed(void **state)
{
    (void)state;
    begin_keeping(3, NULL);
    rl_lock *lock = keep("a", 1000);
    lose_keys(&net.servers[2]);
    forget_logs();
    go_on(100 * MS);
    mute(true, true, true);
    renew_now(lock);
    deliver_one(2); /* absent */
    settle();
    assert_true(lock->e[2] == RLI_GONE);
    deliver_one(0);
    settle();
    expect_log(2, "RENEW [a#1 for 1000: 0]");
    go_on(10 * MS);
    deliver_one(1);
    rli_instant until = from_now(1000);
    settle();
    expect_log(2, "SET a#1 OK");
    mute(false, false, false);
    settle();
    assert_true(lock->e[2] == until);
    go_on(150 * MS);
    expect_log(2, "");
    expect_told("");
    give_back(lock);
    end();
}

/* Once per try: further votes bring no second one; other nodes that say so later are topped up then. */
static void each_node_is_topped_up_once(void **state)
{
    (void)state;
    begin_keeping(5, NULL);
    rl_lock *lock = keep("a", 1000);
    lose_keys(&net.servers[0]);
    lose_keys(&net.servers[1]);
    forget_logs();
    go_on(100 * MS);
    for (int i = 0; i < 5; i++)
        net.servers[i].mute = true;
    renew_now(lock);
    for (uint32_t i = 4; i > 0; i--) { /* yes, yes, yes, absent */
        deliver_one(i);
        settle();
    }
    expect_log(0, "RENEW [a#1 for 1000: 0]");
    expect_log(1, "RENEW [a#1 for 1000: 0], SET a#1 OK");
    deliver_one(0);
    settle();
    expect_log(0, "SET a#1 OK");
    expect_log(1, "");
    for (int i = 0; i < 5; i++)
        net.servers[i].mute = false;
    settle();
    forget_logs();
    lose_keys(&net.servers[0]);
    for (int i = 1; i < 5; i++)
        net.servers[i].mute = true;
    renew_now(lock); /* absent, then four times yes */
    for (uint32_t i = 1; i < 5; i++) {
        deliver_one(i);
        settle();
    }
    expect_log(0, "RENEW [a#1 for 1000: 0], SET a#1 OK");
    for (int i = 0; i < 5; i++)
        net.servers[i].mute = false;
    give_back(lock);
    end();
}

/* "Absent" may come last. With a fence of the quorum the counter is raised first (S8). */
static void topped_up_with_its_fencing_token(void **state)
{
    rl_options options = test_options();
    (void)state;
    options.fence = RL_FENCE_QUORUM;
    begin_keeping(3, &options);
    rl_lock *lock = keep("a", 1000);
    int64_t fence = rl_lock_fence(lock);
    lose_keys(&net.servers[1]);
    forget_logs();
    go_on(100 * MS);
    renew_now(lock);
    expect_log(1, "RENEW [a#1 for 1000: 0], FENCED-TOP-UP a#1 OK");
    assert_true(fence > 0 && counter_of(&net.servers[1], "{a}:fence") == fence && rl_lock_fence(lock) == fence);
    give_back(lock);
    end();
}

static void not_topped_up_without_a_quorum(void **state)
{
    (void)state;
    begin_keeping(3, NULL);
    rl_lock *lock = keep("a", 1000);
    lose_keys(&net.servers[2]);
    go_on(100 * MS);
    mute(false, true, false);
    forget_logs();
    renew_now(lock);
    renew_now(lock); /* two tries with one yes each are no quorum either */
    go_on(250 * MS);
    assert_null(strstr(net.servers[2].log, "SET"));
    mute(false, false, false);
    settle();
    assert_non_null(strstr(net.servers[2].log, "SET a#1 OK"));
    memset(&told, 0, sizeof told);
    give_back(lock);
    end();
}

/* A top-up does not wait for a connection: the lock could be over by then. */
static void no_top_up_waits_for_a_connection(void **state)
{
    (void)state;
    begin_keeping(3, NULL);
    rl_lock *lock = keep("a", 1000);
    lose_keys(&net.servers[2]);
    go_on(100 * MS);
    mute(true, true, false);
    renew_now(lock);
    cut(2);
    net.servers[2].unheard = true;
    mute(false, false, false);
    settle();
    assert_int_equal(holder(&net.servers[2], "a"), 0);
    net.servers[2].unheard = false;
    go_on(1500 * MS); /* by a later try it is */
    assert_int_equal(holder(&net.servers[2], "a"), 1);
    expect_told("");
    give_back(lock);
    end();
}

/* ---- Limits --------------------------------------------------------------------------------------------------------------------------------------- */

static void held_for_its_cap(int64_t ttl_ms, int64_t cap_ms)
{
    begin_keeping(1, NULL);
    rl_request request = request_of("a", ttl_ms);
    request.max_hold_ms = cap_ms;
    rl_lock *lock = keep_by(&request);
    rli_instant cap = fake.now + cap_ms * MS, last = 0;
    rli_span drift = rli_drift(&net.client->terms, ttl_ms * MS);
    while (lock->state == RLI_LOCK_HELD) {
        last = end_of(lock);
        assert_true(last <= cap);
        go_on(MS / 4);
    }
    assert_true(last >= cap - drift - MS);
    expect_told("a lost 4");
    rli_span least = (ttl_ms * MS - drift) * 8 / 30, gained = (cap_ms - ttl_ms) * MS; /* between renewals; by them */
    assert_in_range(net.servers[0].renewals, gained > 2 * MS, (uint64_t)(gained / least) + 1);
    drop(lock);
    end();
}

/* S5.6: never beyond the cap, to within drift and a millisecond of it, and without renewals that gain nothing. */
static void renewed_up_to_its_cap(void **state)
{
    (void)state;
    for (int64_t cap_ms = 60; cap_ms < 260; cap_ms++)
        held_for_its_cap(60, cap_ms);
    for (int64_t cap_ms = 1000; cap_ms < 6000; cap_ms += 241)
        held_for_its_cap(1000, cap_ms);
}

/* A renewal that waits for its connection is sent later, and asks for as much: that does not lift the cap. */
static void a_cap_holds_for_what_is_sent_late(void **state)
{
    (void)state;
    begin_keeping(1, NULL);
    rl_request request = request_of("a", 1000);
    request.max_hold_ms = 1200;
    rl_lock *lock = keep_by(&request);
    rli_instant cap = fake.now + 1200 * MS;
    net.servers[0].unheard = true;
    cut(0);
    go_on(250 * MS);
    renew_now(lock);
    go_on(200 * MS);
    rli_node_connected(node_of(0), fake.now);
    settle();
    assert_true(end_of(lock) == cap);
    go_on_until(cap - 1);
    assert_true(lock->state == RLI_LOCK_HELD);
    go_on(1);
    expect_told("a lost 4");
    drop(lock);
    end();
}

/* A top-up comes after the renewal that it belongs to, and asks for what is left until the cap. */
static void a_cap_holds_for_top_ups(void **state)
{
    (void)state;
    begin_keeping(3, NULL);
    rl_request request = request_of("a", 1000);
    request.max_hold_ms = 1200;
    rl_lock *lock = keep_by(&request);
    rli_instant cap = fake.now + 1200 * MS;
    lose_keys(&net.servers[2]);
    go_on(250 * MS);
    mute(true, true, false);
    renew_now(lock);
    go_on(100 * MS);
    mute(false, false, false);
    settle();
    assert_true(find_key(&net.servers[2], "a", 1, false)->expires == cap);
    assert_true(lock->e[2] > T0 + 988 * MS && lock->e[2] < cap);
    go_on(2000 * MS);
    expect_told("a lost 4");
    drop(lock);
    end();
}

/* The cap is one on renewal: the holder's own word counts for as long as it says, and there are no renewals after it. */
static void the_holder_extends_it_beyond_its_cap(void **state)
{
    (void)state;
    begin_keeping(3, NULL);
    rl_request request = request_of("a", 1000);
    request.max_hold_ms = 1500;
    rl_lock *lock = keep_by(&request);
    go_on(1400 * MS);
    struct rli_op *op = start_extend(lock, 3000);
    settle();
    assert_int_equal(take(op, NULL), RL_OK);
    assert_true(end_of(lock) == from_now(3000));
    forget_logs();
    go_on_until(end_of(lock) - 1);
    expect_told("");
    expect_logs("");
    go_on(1);
    expect_told("a lost 4");
    drop(lock);
    end();
}

/* The holder checks in: renewed while it does so in time, in jeopardy when not, over as soon as it does again. */
static void renewed_while_the_holder_checks_in(void **state)
{
    (void)state;
    begin_keeping(3, NULL);
    rl_request request = request_of("a", 1000);
    request.touch_within_ms = 500;
    rl_lock *lock = keep_by(&request);
    for (int i = 0; i < 20; i++) {
        go_on(300 * MS);
        assert_int_equal(rl_lock_touch(lock), RL_OK);
    }
    expect_told("");
    rli_instant last = fake.now;
    go_on(500 * MS);
    expect_told("");
    forget_logs();
    go_on(400 * MS);
    expect_told("a jeopardy 5");
    expect_logs("");
    assert_int_equal(rl_lock_touch(lock), RL_OK);
    go_on(300 * MS);
    expect_told("a recovered 0");
    last = fake.now - 300 * MS;
    go_on_until(last + 1500 * MS);
    expect_told("a jeopardy 5, a lost 5");
    assert_int_equal(rl_lock_touch(lock), RL_LOST);
    drop(lock);
    end();
}

static void touch_is_for_those_who_asked_for_it(void **state)
{
    (void)state;
    begin_keeping(1, NULL);
    rl_request request = request_of("b", 1000);
    rl_lock *a = keep("a", 1000), *b;
    request.max_hold_ms = 5000;
    b = keep_by(&request);
    assert_int_equal(rl_lock_touch(NULL), RL_E_INVALID);
    assert_int_equal(rl_lock_touch(a), RL_E_INVALID);
    assert_int_equal(rl_lock_touch(b), RL_E_INVALID);
    assert_int_equal(rl_lock_stop_renewing(NULL), RL_E_INVALID);
    drop(a);
    drop(b);
    end();
}

/* What was asked for stays asked for when it takes several attempts. */
static void limits_outlive_a_failed_attempt(void **state)
{
    rl_lock *lock;
    (void)state;
    begin_keeping(3, NULL);
    hold_by_other(&net.servers[0], "a", 100 * MS);
    hold_by_other(&net.servers[1], "a", 100 * MS);
    rl_request request = request_of("a", 1000);
    request.max_hold_ms = 1500;
    request.touch_within_ms = 5000;
    request.wait_ms = 1000;
    struct rli_op *op = start_taking(&request);
    go_on(900 * MS);
    assert_int_equal(take(op, &lock), RL_OK);
    rli_keep_start(lock, fake.now);
    rli_instant cap = fake.now + 1500 * MS;
    assert_int_equal(rl_lock_touch(lock), RL_OK);
    go_on_until(cap);
    expect_told("a lost 4");
    assert_true(net.servers[0].renewals > 0);
    drop(lock);
    end();
}

/* ---- Memory, numbers, the end -------------------------------------------------------------------------------------------------------------------------- */

static rl_lock *held[3];

/* Three locks, one of which a node has lost; another node has forgotten its scripts, a third one lost its connection. */
static void hold_three(void)
{
    begin_keeping(3, NULL);
    for (int i = 0; i < 3; i++)
        held[i] = keep(number_name(i), 2000);
    find_key(&net.servers[2], "lock-1", 6, false)->expires = 0;
    memset(net.servers[1].loaded, 0, sizeof net.servers[1].loaded);
    cut(0);
    settle();
    empty_pools();
    for (int i = 0; i < 3; i++)
        is_due_at(held[i], fake.now + 100 * MS);
}

static void release_three(void)
{
    for (int i = 0; i < 3; i++) {
        if (held[i]->state == RLI_LOCK_HELD)
            give_back(held[i]);
        else
            drop(held[i]);
    }
    go_on(5000 * MS);
    for (uint32_t i = 0; i < net.count; i++)
        for (int j = 0; j < 3; j++)
            assert_int_equal(holder(&net.servers[i], number_name(j)), 0);
    end();
}

/* A single allocation that fails costs a try, at most; no lock. */
static void each_allocation_failed_once(void **state)
{
    uint64_t n = 0;
    bool failed;
    (void)state;
    do {
        hold_three();
        uint64_t before = fake.calls;
        fake.fail_at = before + ++n;
        go_on(2000 * MS);
        failed = fake.calls >= fake.fail_at;
        fake.fail_at = 0;
        for (int i = 0; i < 3; i++)
            if (held[i]->state != RLI_LOCK_HELD)
                fail_msg("allocation %d: lock %d is lost", (int)n, i);
        assert_null(strstr(told.text, "lost"));
        go_on(2000 * MS);
        memset(&told, 0, sizeof told);
        release_three();
    } while (failed);
    assert_true(n > 5);
}

/* It has failed at once then, and is tried again. */
static void a_try_without_memory(void **state)
{
    (void)state;
    for (uint64_t n = 1; n <= 2; n++) { /* the batch, the round */
        begin_keeping(3, NULL);
        rl_lock *a = keep("a", 1000), *b = keep("b", 1000);
        empty_pools();
        is_due_at(a, fake.now);
        fake.fail_at = fake.calls + n;
        renew_now(b);
        fake.fail_at = 0;
        assert_non_null(strstr(told.text, n == 1 ? "jeopardy 1" : "jeopardy 1, "));
        go_on(600 * MS);
        assert_true(!a->failing && !b->failing);
        memset(&told, 0, sizeof told);
        give_back(a);
        give_back(b);
        end();
    }
}

/* Without any memory from the n-th allocation on they are lost, each told of once; or held, if that comes late enough. */
static void each_allocation_and_all_after_it_failed(void **state)
{
    bool failed = true;
    (void)state;
    for (uint64_t n = 1; failed; n++) {
        hold_three();
        fake.fail_at = fake.calls + n;
        fake.fail_forever = true;
        go_on(6000 * MS);
        failed = fake.calls >= fake.fail_at;
        for (int i = 0; i < 3; i++) {
            char words[32];
            snprintf(words, sizeof words, "%s lost", number_name(i));
            const char *first = strstr(told.text, words);
            assert_true((first != NULL) == (held[i]->state != RLI_LOCK_HELD));
            assert_true(!first || !strstr(first + 1, words));
        }
        fake.fail_at = 0;
        fake.fail_forever = false;
        memset(&told, 0, sizeof told);
        go_on(2000 * MS);
        release_three();
    }
}

/* A thousand for five minutes: none is lost, and most are renewed together. */
static void a_thousand_locks(void **state)
{
    enum { LOCKS = 1000 };
    rl_lock *locks[LOCKS];
    int64_t calls, renewed;
    (void)state;
    begin_keeping(3, NULL);
    for (int i = 0; i < LOCKS; i++) {
        locks[i] = keep(number_name(i), 30000);
        go_on(MS);
    }
    go_on(300000 * MS);
    expect_told("");
    for (int i = 0; i < LOCKS; i++)
        assert_true(locks[i]->state == RLI_LOCK_HELD && rl_lock_remaining_ms(locks[i]) > 20000);
    calls = net.servers[0].renewals;
    renewed = net.servers[0].renewed;
    print_message("%lld renewals in %lld calls\n", (long long)renewed, (long long)calls);
    assert_true(renewed > LOCKS * 300 * 30 / 9 / 31 && renewed < LOCKS * 302 * 30 / 8 / 29);
    assert_true(renewed > 4 * calls);
    for (int i = 0; i < LOCKS; i++)
        drop(locks[i]);
    end();
}

/* Handles may outlive the client, with what they have to tell; then they are over by the clock alone, and tell nobody. */
static void handles_outlive_the_engine(void **state)
{
    (void)state;
    begin_keeping(3, NULL);
    rl_lock *a = keep("a", 1000), *b = keep("b", 1000), *c = keep("c", 1000);
    they_say("-BUSY\r\n");
    is_due_at(a, fake.now);
    rli_engine_tick(&net.client->engine, fake.now);
    settle();
    assert_true(a->queued);
    mute(true, true, true);
    is_due_at(b, fake.now);
    rli_engine_tick(&net.client->engine, fake.now);
    net.client->closed = true;
    rli_engine_free(&net.client->engine);
    assert_int_equal(rl_lock_remaining_ms(a), 988);
    assert_int_equal(rl_lock_stop_renewing(b), RL_OK);
    assert_int_equal(rl_lock_lost_reason(c), RL_LOST_NOT);
    fake.now += 988 * MS;
    assert_int_equal(rl_lock_lost_reason(c), RL_LOST_EXPIRED);
    assert_int_equal(rl_lock_remaining_ms(a), 0);
    rl_lock_free(a);
    rl_lock_free(b);
    assert_true(fake.live > 0);
    rl_lock_free(c); /* and with the last one, the client */
    assert_int_equal(fake.live, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(renewed_when_due_and_not_before),
        cmocka_unit_test(not_renewed_unless_asked_for),
        cmocka_unit_test(a_stopped_renewal_stays_stopped),
        cmocka_unit_test(a_renewal_stopped_on_its_way),
        cmocka_unit_test(the_holder_extends_it_in_between),
        cmocka_unit_test(the_holder_extends_it_for_less),
        cmocka_unit_test(locks_that_are_due_together_are_one_call),
        cmocka_unit_test(a_batch_is_as_large_as_the_option_says),
        cmocka_unit_test(a_turn_sends_four_batches_at_most),
        cmocka_unit_test(answers_that_confirm_nothing),
        cmocka_unit_test(an_error_with_one_key),
        cmocka_unit_test(servers_without_the_script),
        cmocka_unit_test(a_key_that_is_denied_is_no_concern_of_the_others),
        cmocka_unit_test(votes_count_for_each_lock),
        cmocka_unit_test(one_node_that_lost_it_shortens_the_lease),
        cmocka_unit_test(validity_counts_from_the_sending),
        cmocka_unit_test(jeopardy_when_a_try_has_been_silent_for_too_long),
        cmocka_unit_test(jeopardy_when_a_quorum_cannot_be_reached),
        cmocka_unit_test(jeopardy_tells_what_is_left),
        cmocka_unit_test(one_node_is_no_recovery),
        cmocka_unit_test(lost_at_the_end_exactly),
        cmocka_unit_test(lost_while_the_process_stood_still),
        cmocka_unit_test(an_extension_finds_it_lost),
        cmocka_unit_test(a_lock_that_is_not_handed_over_tells_nothing),
        cmocka_unit_test(a_lock_that_was_given_up_tells_nothing),
        cmocka_unit_test(votes_of_an_earlier_try),
        cmocka_unit_test(votes_after_the_release),
        cmocka_unit_test(votes_after_the_loss),
        cmocka_unit_test(a_waiting_renewal_of_a_lock_that_was_given_back),
        cmocka_unit_test(topped_up_once_a_quorum_has_confirmed),
        cmocka_unit_test(each_node_is_topped_up_once),
        cmocka_unit_test(topped_up_with_its_fencing_token),
        cmocka_unit_test(not_topped_up_without_a_quorum),
        cmocka_unit_test(no_top_up_waits_for_a_connection),
        cmocka_unit_test(renewed_up_to_its_cap),
        cmocka_unit_test(a_cap_holds_for_what_is_sent_late),
        cmocka_unit_test(a_cap_holds_for_top_ups),
        cmocka_unit_test(the_holder_extends_it_beyond_its_cap),
        cmocka_unit_test(renewed_while_the_holder_checks_in),
        cmocka_unit_test(touch_is_for_those_who_asked_for_it),
        cmocka_unit_test(limits_outlive_a_failed_attempt),
        cmocka_unit_test(each_allocation_failed_once),
        cmocka_unit_test(a_try_without_memory),
        cmocka_unit_test(each_allocation_and_all_after_it_failed),
        cmocka_unit_test(a_thousand_locks),
        cmocka_unit_test(handles_outlive_the_engine),
    };
    return cmocka_run_group_tests_name("keep", tests, NULL, NULL);
}
