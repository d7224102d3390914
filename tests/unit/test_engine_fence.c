/* test_engine_fence.c - fencing tokens through the engine, against small servers in virtual time: one round trip in the steady state, two
 * after disagreement, a mint only once the quorum is won; tokens rise whatever the servers forget, and no failure leaves a key. */
#include "servers.h"

static struct server *const s0 = &net.servers[0], *const s1 = &net.servers[1], *const s2 = &net.servers[2];

#define COUNTER "{a}:fence"

static void begin_fenced(uint32_t count, uint32_t fence, uint32_t node)
{
    rl_options options = test_options();
    options.fence = fence;
    options.fence_node = node;
    begin_with(count, &options);
    assert_int_equal(let_go(hold("a", 1000)), RL_OK);
    for (uint32_t i = 0; i < count; i++)
        lose_keys(&net.servers[i]);
    forget_logs();
    memset(net.tokens, 0, sizeof net.tokens);
    net.token_count = 0;
}

static void set_counters(int64_t n0, int64_t n1, int64_t n2)
{
    const int64_t numbers[] = {n0, n1, n2};
    for (uint32_t i = 0; i < net.count; i++)
        put_number(&net.servers[i], COUNTER, numbers[i], 86400000);
}

/* Far above the clock, so that the counters alone decide. */
static const int64_t far = INT64_C(1000000000000000);

static void expect_counters(int64_t n0, int64_t n1, int64_t n2)
{
    const int64_t numbers[] = {n0, n1, n2};
    for (uint32_t i = 0; i < net.count; i++)
        if (numbers[i])
            assert_true(counter_of(&net.servers[i], COUNTER) == numbers[i]);
}

static bool said(uint32_t i, const char *what)
{
    return strstr(net.servers[i].log, what) != NULL;
}

static void expect_no_key(void)
{
    for (uint32_t i = 0; i < net.count; i++)
        assert_int_equal(holder(&net.servers[i], "a"), 0);
}

/* ---- By quorum (design 5) --------------------------------------------------------------------------------------------------------------- */

/* Where the counters agree the confirmation vanishes; they start with the clock in microseconds (S8.5). */
static void counters_that_agree_cost_nothing(void **state)
{
    int64_t last = 0;
    (void)state;
    begin_fenced(3, RL_FENCE_QUORUM, 0);
    for (int i = 0; i < 5; i++) {
        rl_lock *lock = hold("a", 1000);
        int64_t fence = rl_lock_fence(lock);
        assert_true(i ? fence == last + 1 : fence == T0 / 1000);
        expect_counters(fence, fence, fence);
        last = fence;
        for (uint32_t j = 0; j < 3; j++)
            assert_true(said(j, "GRANT a#") && !said(j, "CONFIRM"));
        assert_int_equal(let_go(lock), RL_OK);
        forget_logs();
    }
    end();
}

/* After disagreement: the highest of the first q, and the others are raised to it before it counts. */
static void counters_that_do_not_are_raised(void **state)
{
    (void)state;
    begin_fenced(3, RL_FENCE_QUORUM, 0);
    set_counters(far, far + 50, far + 7);
    rl_lock *lock = hold("a", 1000);
    assert_true(rl_lock_fence(lock) == far + 51);
    expect_log(0, "GRANT a#1 1000000000000001, CONFIRM a#1 1");
    expect_log(1, "GRANT a#1 1000000000000051");
    expect_log(2, "GRANT a#1 1000000000000008, CONFIRM a#1 1");
    expect_counters(far + 51, far + 51, far + 51);
    assert_int_equal(let_go(lock), RL_OK);
    end();
}

/* It is no success before it is confirmed: with the confirmations under way the call goes on, and what comes of them decides. */
static void an_unconfirmed_token_is_none(void **state)
{
    (void)state;
    for (int comes = 0; comes < 2; comes++) {
        begin_fenced(3, RL_FENCE_QUORUM, 0);
        set_counters(far, far + 50, far + 7);
        s2->refuses = true;
        restart(2, false);
        struct rli_op *op = start_acquire("a", 100000, 0);
        take_wishes(0), move_up(0), serve(s0), move_down(0);
        take_wishes(1), move_up(1), serve(s1), move_down(1);
        s0->mute = true;
        settle();
        assert_false(is_over(op));
        assert_true(said(0, "CONFIRM a#1 1"));
        if (comes) {
            s0->mute = false;
            settle();
            rl_lock *lock;
            assert_int_equal(take(op, &lock), RL_OK);
            assert_true(rl_lock_fence(lock) == far + 51);
            assert_int_equal(let_go(lock), RL_OK);
        } else {
            pass(250 * MS);
            assert_int_equal(take(op, NULL), RL_E_NO_QUORUM);
            s0->mute = false;
            pass(1000 * MS);
        }
        expect_no_key();
        end();
    }
}

/* S3.6: the next attempt has a token of its own, and confirmations of its own. */
static void the_next_attempt_confirms_anew(void **state)
{
    (void)state;
    begin_fenced(3, RL_FENCE_QUORUM, 0);
    set_counters(far, far + 50, far);
    s2->refuses = true;
    restart(2, false);
    struct rli_op *op = start_acquire("a", 100000, 1000);
    take_wishes(0), move_up(0), serve(s0), move_down(0);
    s0->deaf = true;
    take_wishes(1), move_up(1), serve(s1), move_down(1);
    settle();
    put_key(s0, "a", "another's", 9, 1 * MS); /* for a moment */
    s0->deaf = false;
    settle();
    assert_true(said(0, "CONFIRM a#1 0"));
    put_number(s0, COUNTER, far, 86400000); /* so that there is something to confirm again */
    rl_lock *lock;
    pass(300 * MS);
    assert_int_equal(take(op, &lock), RL_OK);
    assert_true(said(0, "CONFIRM a#2 1") || said(0, "CONFIRM a#3 1"));
    assert_int_equal(let_go(lock), RL_OK);
    end();
}

/* Design 5, step 2: a grant whose counter is beyond the token never counts for it, however late the token is confirmed. */
static void a_grant_beyond_the_token_never_counts(void **state)
{
    (void)state;
    begin_fenced(3, RL_FENCE_QUORUM, 0);
    set_counters(far, far + 50, far + 1000);
    s2->mute = true;
    s0->deaf = true;
    struct rli_op *op = start_acquire("a", 100000, 0);
    settle();
    s0->deaf = false;
    take_wishes(0), move_up(0), serve(s0), move_down(0); /* its grant: the token is fixed, and its confirmation leaves */
    s0->deaf = true;
    s2->mute = false;
    settle(); /* two of three have granted and stand at the token or beyond */
    assert_true(said(2, "GRANT a#1 1000000000001001"));
    assert_false(is_over(op));
    lose_keys(s0); /* so it can confirm nothing */
    s0->deaf = false;
    settle();
    assert_int_equal(take(op, NULL), RL_BUSY);
    pass(100 * MS);
    expect_no_key();
    end();
}

/* ... after success every granted node counts again (step 4). */
static void after_success_every_grant_counts(void **state)
{
    (void)state;
    begin_fenced(3, RL_FENCE_QUORUM, 0);
    set_counters(far, far, far + 1000);
    s2->mute = true;
    rl_lock *lock = hold("a", 1000);
    assert_true(rl_lock_fence(lock) == far + 1);
    s2->mute = false;
    settle();
    assert_true(lock->e[2] == lock->e[0] && lock->e[2] != RLI_GONE);
    assert_true(rl_lock_fence(lock) == far + 1);
    assert_int_equal(let_go(lock), RL_OK);
    end();
}

/* Design 5, step 5: the release heals a node that was away, though the lock never was there. */
static void a_release_heals_nodes_that_were_away(void **state)
{
    (void)state;
    begin_fenced(3, RL_FENCE_QUORUM, 0);
    set_counters(far, far, 1);
    s2->refuses = true;
    restart(2, false);
    rl_lock *lock = hold("a", 1000);
    s2->refuses = false;
    pass(100 * MS);
    assert_int_equal(let_go(lock), RL_OK);
    pass(100 * MS);
    expect_counters(far + 1, far + 1, far + 1);
    end();
}

/* S5.3: a top-up first raises the counter. */
static void a_top_up_raises_the_counter(void **state)
{
    (void)state;
    begin_fenced(3, RL_FENCE_QUORUM, 0);
    rl_lock *lock = hold("a", 1000);
    forget_logs();
    lose_keys(s2);
    struct rli_op *op = start_extend(lock, 1000);
    settle();
    assert_int_equal(take(op, NULL), RL_OK);
    expect_log(2, "EXTEND a#1 0, FENCED-TOP-UP a#1 OK");
    assert_true(counter_of(s2, COUNTER) == rl_lock_fence(lock));
    assert_int_equal(let_go(lock), RL_OK);
    end();
}

/* S8.6: an unreadable counter is a vote against in quorum mode. */
static void a_node_without_a_usable_counter_votes_against(void **state)
{
    (void)state;
    begin_fenced(3, RL_FENCE_QUORUM, 0);
    s0->says = "-ERR the fence counter is not usable\r\n";
    struct rli_op *op = start_acquire("a", 1000, 0);
    settle();
    assert_int_equal(op->results[0].outcome, RL_NODE_ERROR);
    assert_string_equal(op->results[0].text, "ERR the fence counter is not usable");
    s0->says = NULL;
    rl_lock *lock;
    assert_int_equal(take(op, &lock), RL_OK);
    assert_true(rl_lock_fence(lock) > 0);
    assert_int_equal(let_go(lock), RL_OK);
    end();
}

/* S8.2: on a single node it is one atomic step, whoever is to mint; and the release is the plain one. */
static void a_single_node_mints_as_it_grants(void **state)
{
    (void)state;
    for (uint32_t fence = RL_FENCE_QUORUM; fence <= RL_FENCE_NODE; fence++) {
        begin_fenced(1, fence, 0);
        put_number(s0, COUNTER, far, 86400000);
        rl_lock *lock = hold("a", 1000);
        assert_true(rl_lock_fence(lock) == far + 1);
        assert_int_equal(let_go(lock), RL_OK);
        expect_log(0, "GRANT a#1 1000000000000001, RELEASE a#1 1");
        end();
    }
}

/* S2.5 for what is not loaded beforehand. */
static void scripts_of_the_fence_are_sent_whole_at_need(void **state)
{
    (void)state;
    begin_fenced(3, RL_FENCE_QUORUM, 0);
    for (uint32_t i = 0; i < 3; i++)
        memset(net.servers[i].loaded, 0, sizeof net.servers[i].loaded);
    set_counters(far, far + 5, far);
    rl_lock *lock = hold("a", 1000);
    assert_int_equal(let_go(lock), RL_OK);
    expect_log(0,
               "GRANT a#1 NOSCRIPT, EVAL-GRANT a#1 1000000000000001, CONFIRM a#1 NOSCRIPT, EVAL-CONFIRM a#1 1, FENCED-RELEASE a#1 "
               "NOSCRIPT, EVAL-FENCED-RELEASE a#1 1");
    end();
}

/* S3.2: a grant is a creating request: never sent again, and taken back with its connection. */
static void a_grant_is_never_sent_again(void **state)
{
    (void)state;
    begin_fenced(1, RL_FENCE_QUORUM, 0);
    joined(s0)->held = true;
    struct rli_op *op = start_acquire("a", 100000, 0);
    settle();
    int before = joined(s0)->id;
    cut(0);
    settle();
    rl_lock *lock;
    assert_int_equal(take(op, &lock), RL_OK);
    char expected[128];
    snprintf(expected, sizeof expected, "KILL %d, RELEASE a#1 0, GRANT a#2 ", before);
    assert_true(strncmp(s0->log, expected, strlen(expected)) == 0);
    assert_int_equal(let_go(lock), RL_OK);
    expect_no_key();
    end();
}

/* Cases F2, F3, F5: nodes are away by turns, and forget everything by turns; tokens strictly rise throughout. */
static void tokens_rise_whatever_is_forgotten(void **state)
{
    int64_t last = 0;
    uint64_t seed = 9;
    (void)state;
    for (int mode = RL_FENCE_QUORUM; mode <= RL_FENCE_NODE; mode++) {
        begin_fenced(3, (uint32_t)mode, 1);
        last = 0;
        for (int i = 0; i < 600; i++) {
            uint32_t away = (uint32_t)(i / 20 % 3), other = (away + 1 + (uint32_t)(random_of(&seed) % 2)) % 3;
            if (i % 20 == 0)
                for (uint32_t j = 0; j < 3; j++) {
                    bool leaves = j == away && (mode == RL_FENCE_QUORUM || j != 1);
                    if (leaves && !net.servers[j].refuses)
                        restart(j, random_of(&seed) % 2);
                    net.servers[j].refuses = leaves;
                    net.servers[j].conn_count = joined(&net.servers[j]) ? net.servers[j].conn_count : 0;
                }
            if (random_of(&seed) % 10 == 0)
                lose_keys(&net.servers[other]);
            memset(net.tokens, 0, sizeof net.tokens[0] * (size_t)net.token_count);
            net.token_count = 0;
            struct rli_op *op = start_acquire("a", 1000, 500);
            pass(20 * MS);
            rl_lock *lock;
            if (!is_over(op))
                pass(600 * MS);
            assert_int_equal(take(op, &lock), RL_OK);
            if (rl_lock_fence(lock) <= last)
                fail_msg("mode %d, lock %d: %lld after %lld", mode, i, (long long)rl_lock_fence(lock), (long long)last);
            last = rl_lock_fence(lock);
            let_go(lock);
            forget_logs();
        }
        end();
    }
}

/* ---- By a designated node (S8.3) ------------------------------------------------------------------------------------------------------------ */

/* Asked once the quorum is won, and only it. */
static void the_designated_node_mints_after_the_quorum(void **state)
{
    (void)state;
    begin_fenced(3, RL_FENCE_NODE, 2);
    put_number(s2, COUNTER, far, 86400000);
    s1->mute = s2->mute = true;
    struct rli_op *op = start_acquire("a", 1000, 0);
    settle();
    expect_log(2, "SET a#1 OK");
    s1->mute = false;
    settle();
    expect_log(2, "MINT a 1000000000000001");
    assert_false(is_over(op));
    s2->mute = false;
    settle();
    rl_lock *lock;
    assert_int_equal(take(op, &lock), RL_OK);
    assert_true(rl_lock_fence(lock) == far + 1);
    assert_int_equal(let_go(lock), RL_OK);
    expect_log(2, "RELEASE a#1 1");
    expect_log(0, "SET a#1 OK, RELEASE a#1 1");
    expect_counters(0, 0, far + 1);
    end();
}

/* Case F1 and S8.3: no mint, no lock; everything is released, and a late answer changes nothing. */
static void without_the_mint_there_is_no_lock(void **state)
{
    (void)state;
    for (int how = 0; how < 4; how++) { /* silent, down, refuses, cut off */
        begin_fenced(3, RL_FENCE_NODE, 2);
        s2->deaf = how == 0 || how == 3;
        s2->refuses = how == 1;
        if (how == 1)
            restart(2, false);
        struct rli_op *op = start_acquire("a", 100000, 0);
        if (how == 2) {
            take_wishes(2), move_up(2), serve(s2);
            s2->says = "-ERR the fence counter is not usable\r\n";
        }
        settle();
        if (how == 3) {
            s2->refuses = true;
            cut(2);
            settle();
        }
        assert_int_equal(is_over(op), how != 0);
        pass(250 * MS);
        /* The last is repeated at once for its dead connection, and refused then. */
        assert_int_equal(op->results[2].outcome, how == 0 ? RL_NODE_NO_ANSWER : how == 2 ? RL_NODE_ERROR : RL_NODE_UNREACHABLE);
        assert_int_equal(take(op, NULL), RL_E_NO_QUORUM);
        s2->deaf = s2->refuses = false;
        s2->says = NULL;
        pass(3000 * MS);
        expect_no_key();
        end();
    }
}

/* S8.3: accepted only if its answer finds the lease valid. To the instant. */
static void a_mint_that_comes_too_late_is_none(void **state)
{
    (void)state;
    for (int late = 0; late < 2; late++) {
        begin_fenced(3, RL_FENCE_NODE, 2);
        s2->deaf = true;
        struct rli_op *op = start_acquire("a", 100, 0); /* 97 ms as it is counted, of which 1 has to be left */
        settle();
        pass(96 * MS - !late);
        s2->deaf = false;
        settle();
        rl_lock *lock;
        assert_int_equal(take(op, &lock), late ? RL_E_TOO_SLOW : RL_OK);
        if (lock)
            assert_int_equal(let_go(lock), RL_OK);
        pass(50 * MS);
        expect_no_key();
        end();
    }
}

/* S3.6: cancelled while it waits for the mint, or for confirmations. */
static void cancelled_on_the_way_to_a_token(void **state)
{
    (void)state;
    for (uint32_t fence = RL_FENCE_QUORUM; fence <= RL_FENCE_NODE; fence++) {
        begin_fenced(3, fence, 2);
        set_counters(far, far + 10, far + 20);
        struct rli_op *op = start_acquire("a", 100000, RL_FOREVER);
        s2->mute = fence == RL_FENCE_NODE;
        for (uint32_t i = 0; i < 3; i++)
            take_wishes(i), move_up(i), serve(&net.servers[i]), move_down(i);
        for (uint32_t i = 0; i < 3; i++)
            net.servers[i].mute = true;
        settle();
        assert_false(is_over(op));
        assert_true(fence == RL_FENCE_NODE ? said(2, "MINT") : said(0, "CONFIRM"));
        rli_op_cancel(op, fake.now);
        assert_int_equal(take(op, NULL), RL_CANCELED);
        for (uint32_t i = 0; i < 3; i++)
            net.servers[i].mute = false;
        pass(100 * MS);
        expect_no_key();
        end();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counters_that_agree_cost_nothing),
        cmocka_unit_test(counters_that_do_not_are_raised),
        cmocka_unit_test(an_unconfirmed_token_is_none),
        cmocka_unit_test(the_next_attempt_confirms_anew),
        cmocka_unit_test(a_grant_beyond_the_token_never_counts),
        cmocka_unit_test(after_success_every_grant_counts),
        cmocka_unit_test(a_release_heals_nodes_that_were_away),
        cmocka_unit_test(a_top_up_raises_the_counter),
        cmocka_unit_test(a_node_without_a_usable_counter_votes_against),
        cmocka_unit_test(a_single_node_mints_as_it_grants),
        cmocka_unit_test(scripts_of_the_fence_are_sent_whole_at_need),
        cmocka_unit_test(a_grant_is_never_sent_again),
        cmocka_unit_test(tokens_rise_whatever_is_forgotten),
        cmocka_unit_test(the_designated_node_mints_after_the_quorum),
        cmocka_unit_test(without_the_mint_there_is_no_lock),
        cmocka_unit_test(a_mint_that_comes_too_late_is_none),
        cmocka_unit_test(cancelled_on_the_way_to_a_token),
    };
    return cmocka_run_group_tests_name("engine_fence", tests, NULL, NULL);
}
