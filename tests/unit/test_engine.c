/* test_engine.c - the engine with real machines and nodes against small servers, in virtual time: what late answers are worth, what is
 * taken back and in which order, and that nothing is left in the end: no key without an owner, no round, no lock. */
#include "servers.h"

static struct server *const s0 = &net.servers[0], *const s1 = &net.servers[1], *const s2 = &net.servers[2];

/* Of a ttl in ms: the lease as it is counted (1 % and 2 ms of drift). */
static rli_span counted(int64_t ttl_ms)
{
    return rli_from_ms(ttl_ms) - ttl_ms * 10000 - 2 * MS;
}

static rli_instant valid_until(const rl_lock *lock)
{
    return atomic_load(&lock->valid_until);
}

static void mute_all(bool mute)
{
    for (uint32_t i = 0; i < net.count; i++)
        net.servers[i].mute = mute;
}

/* All servers ready and their logs empty. */
static void warm_up(void)
{
    assert_int_equal(let_go(hold("warm-up", 1000)), RL_OK);
    for (uint32_t i = 0; i < net.count; i++)
        assert_int_equal(node_of(i)->state, RLI_NODE_READY);
    forget_logs();
    memset(net.tokens, 0, sizeof net.tokens);
    net.token_count = 0;
}

static void begin_warm(uint32_t count)
{
    begin(count);
    warm_up();
}

/* ---- A life --------------------------------------------------------------------------------------------------------------------------- */

/* S2.7: one server or five, the same. */
static void acquire_extend_release(void **state)
{
    (void)state;
    for (uint32_t n = 1; n <= MOST_SERVERS; n++) {
        begin(n);
        rl_lock *lock = hold("a", 1000);
        assert_true(valid_until(lock) == T0 + counted(1000));
        assert_int_equal(rl_lock_remaining_ms(lock), 988);
        pass(300 * MS);
        struct rli_op *op = start_extend(lock, 2000);
        settle();
        assert_int_equal(take(op, NULL), RL_OK);
        assert_true(valid_until(lock) == fake.now + counted(2000));
        for (uint32_t i = 0; i < n; i++)
            assert_int_equal(holder(&net.servers[i], "a"), 1);
        assert_int_equal(let_go(lock), RL_OK);
        for (uint32_t i = 0; i < n; i++)
            expect_log(i, "SET a#1 OK, EXTEND a#1 1, RELEASE a#1 1");
        end();
    }
}

static void a_lock_runs_out_by_itself(void **state)
{
    (void)state;
    begin(3);
    rl_lock *lock = hold("a", 1000);
    pass(988 * MS - 1);
    assert_int_equal(rl_lock_remaining_ms(lock), 0);
    rli_lock_refresh(lock, fake.now);
    assert_int_equal(lock->state, RLI_LOCK_HELD);
    pass(1);
    rli_lock_refresh(lock, fake.now);
    assert_int_equal(lock->state, RLI_LOCK_OVER); /* S5.5: to the instant */
    assert_true(valid_until(lock) == RLI_GONE);
    pass(12 * MS);
    assert_int_equal(let_go(lock), RL_LOST);
    end();
}

/* ---- Late answers ------------------------------------------------------------------------------------------------------------------------ */

/* S2.2: a grant that comes after success raises e_i, as of the sending of its request. */
static void a_late_grant_counts_for_a_held_lock(void **state)
{
    (void)state;
    begin_warm(3);
    s2->mute = true;
    rl_lock *lock = hold("a", 1000);
    assert_true(lock->e[2] == RLI_GONE && lock->e[0] == T0 + counted(1000));
    pass(100 * MS);
    s2->mute = false;
    settle();
    assert_true(lock->e[2] == T0 + counted(1000));
    restart(0, true); /* now the third carries the lock */
    struct rli_op *op = start_extend(lock, 500);
    settle();
    assert_int_equal(take(op, NULL), RL_OK);
    assert_true(valid_until(lock) == T0 + counted(1000)); /* never shortened */
    assert_int_equal(let_go(lock), RL_OK);
    end();
}

/* ... also where the connection came about only then: stragglers are finished behind the caller's back. */
static void a_request_that_waits_is_sent_after_success(void **state)
{
    (void)state;
    begin(3);
    s2->unheard = true;
    rl_lock *lock = hold("a", 1000);
    pass(100 * MS);
    s2->unheard = false;
    rli_node_connected(node_of(2), fake.now);
    settle();
    expect_log(2, "SET a#1 OK");
    assert_true(lock->e[2] == T0 + 100 * MS + counted(1000));
    assert_int_equal(let_go(lock), RL_OK);
    end();
}

/* ... after failure it changes nothing, and is released: the release was sent behind it. */
static void a_late_grant_after_failure_is_released(void **state)
{
    (void)state;
    begin_warm(3);
    s2->mute = true;
    hold_by_other(s0, "a", 1000 * MS);
    hold_by_other(s1, "a", 1000 * MS);
    struct rli_op *op = start_acquire("a", 1000, 0);
    rl_lock *lock = rli_lock_ref(op->lock);
    settle();
    assert_int_equal(take(op, NULL), RL_BUSY);
    assert_true(lock->refs > 1 && lock->state == RLI_LOCK_TAKING); /* the rounds keep it */
    expect_log(2, "SET a#1 OK, RELEASE a#1 1");
    s2->mute = false;
    settle();
    assert_true(lock->e[2] == RLI_GONE && lock->state == RLI_LOCK_TAKING && lock->refs == 1);
    rli_lock_unref(lock);
    assert_int_equal(holder(s2, "a"), 0);
    assert_int_equal(holder(s0, "a"), 2); /* the other's */
    end();
}

/* S5.4: a late answer to an extension raises e_i, or takes it away; and the lock is over at once if that was one too many (S5.5). */
static void late_answers_to_an_extension_count_both_ways(void **state)
{
    (void)state;
    begin_warm(3);
    rl_lock *lock = hold("a", 1000);
    pass(100 * MS);
    s2->mute = true;
    struct rli_op *op = start_extend(lock, 2000);
    settle();
    assert_int_equal(take(op, NULL), RL_OK);
    assert_true(lock->e[2] == T0 + counted(1000));
    s2->mute = false;
    settle();
    assert_true(lock->e[2] == T0 + 100 * MS + counted(2000));
    s1->mute = s2->mute = true;
    lose_keys(s1);
    lose_keys(s2);
    op = start_extend(lock, 2000);
    pass(250 * MS);
    assert_int_equal(take(op, NULL), RL_E_NO_QUORUM);
    s1->mute = false;
    settle();
    assert_int_equal(lock->state, RLI_LOCK_HELD); /* as far as two of three know */
    assert_true(lock->e[1] == RLI_GONE);
    s2->mute = false;
    settle();
    assert_int_equal(lock->state, RLI_LOCK_OVER);
    assert_int_equal(rl_lock_remaining_ms(lock), 0);
    let_go(lock);
    end();
}

/* S5.5: a lock that is over does not come back by a late answer. */
static void a_lost_lock_stays_lost(void **state)
{
    (void)state;
    begin_warm(3);
    rl_lock *lock = hold("a", 1000);
    mute_all(true);
    pass(900 * MS);
    struct rli_op *op = start_extend(lock, 5000);
    pass(88 * MS);
    assert_int_equal(take(op, NULL), RL_LOST);
    assert_int_equal(lock->state, RLI_LOCK_OVER);
    mute_all(false);
    settle(); /* three times yes */
    assert_int_equal(lock->state, RLI_LOCK_OVER);
    assert_int_equal(rl_lock_remaining_ms(lock), 0);
    assert_int_equal(let_go(lock), RL_LOST);
    end();
}

/* An extension that has failed is over: what still waits of it is not sent, and what was sent not again. */
static void a_failed_extension_is_over(void **state)
{
    (void)state;
    for (int sent = 0; sent < 3; sent++) { /* not, with its connection cut, by a digest that is not known */
        begin_warm(3);
        rl_lock *lock = hold("a", 1000);
        forget_logs();
        if (sent == 0) {
            s2->unheard = true;
            cut(2);
        }
        s0->says = s1->says = "-BUSY Redis is busy\r\n";
        s2->deaf = sent == 1;
        s2->mute = s2->forgetful = sent == 2;
        struct rli_op *op = start_extend(lock, 1000);
        settle();
        assert_int_equal(take(op, NULL), RL_E_NO_QUORUM);
        s2->unheard = s2->deaf = s2->mute = false;
        if (sent == 0)
            assert_int_equal(node_of(2)->state, RLI_NODE_CONNECTING), rli_node_connected(node_of(2), fake.now);
        if (sent == 1)
            joined(s2)->open = false, cut(2);
        pass(100 * MS);
        expect_log(2, sent == 2 ? "EXTEND a#1 NOSCRIPT" : "");
        s0->says = s1->says = NULL;
        assert_int_equal(let_go(lock), RL_OK);
        end();
    }
}

/* ---- Imported locks (S7.3) ---------------------------------------------------------------------------------------------------------------- */

/* As rl_lock_import makes it. */
static rl_lock *import(const char *name, const char *token)
{
    rl_lock *lock = rli_lock_new(net.client, name, strlen(name), NULL, RLI_FENCE_NONE, 0);

    memcpy(rli_lock_token(lock), token, RLI_TOKEN_DIGITS);
    lock->state = RLI_LOCK_UNPROVED;
    lock->touched = rli_all(&net.client->terms);
    rli_client_give_handle(net.client, lock);
    rli_lock_unref(lock);
    return lock;
}

/* It is held once its own first extension has succeeded, which also heals the nodes that lost it. */
static void an_imported_lock_is_held_by_its_first_extension(void **state)
{
    (void)state;
    begin_warm(3);
    rl_lock *lock = hold("a", 1000), *other = import("a", rli_lock_token(lock));
    lose_keys(s2);
    forget_logs();
    assert_int_equal(rl_lock_remaining_ms(other), 0);
    struct rli_op *op = start_extend(other, 2000);
    settle();
    assert_int_equal(take(op, NULL), RL_OK);
    assert_int_equal(other->state, RLI_LOCK_HELD);
    assert_true(valid_until(other) == fake.now + counted(2000) && other->e[2] == fake.now + counted(2000));
    expect_log(2, "EXTEND a#1 0, SET a#1 OK");
    drop(lock);
    assert_int_equal(let_go(other), RL_OK);
    other = import("a", net.tokens[0]);
    op = start_extend(other, 1000);
    settle();
    assert_int_equal(take(op, NULL), RL_LOST);
    assert_int_equal(let_go(other), RL_LOST);
    end();
}

/* ---- NOSCRIPT (S2.5) ------------------------------------------------------------------------------------------------------------------------ */

static void forget_scripts(void)
{
    for (uint32_t i = 0; i < net.count; i++)
        memset(net.servers[i].loaded, 0, sizeof net.servers[i].loaded);
}

/* Case A14: EVAL once, behind whatever is queued; no vote is lost. */
static void noscript_is_answered_by_eval_once(void **state)
{
    (void)state;
    begin_warm(3);
    rl_lock *lock = hold("a", 1000);
    forget_logs();
    forget_scripts();
    struct rli_op *op = start_extend(lock, 1000);
    settle();
    assert_int_equal(take(op, NULL), RL_OK);
    op = start_extend(lock, 1000);
    settle();
    assert_int_equal(take(op, NULL), RL_OK);
    forget_scripts();
    assert_int_equal(let_go(lock), RL_OK);
    for (uint32_t i = 0; i < 3; i++)
        expect_log(i, "EXTEND a#1 NOSCRIPT, EVAL-EXTEND a#1 1, EXTEND a#1 1, RELEASE a#1 NOSCRIPT, EVAL-RELEASE a#1 1");
    end();
}

/* A server that says so again is not asked for ever: it is an error of that node. */
static void noscript_again_is_an_error(void **state)
{
    (void)state;
    begin_warm(1);
    rl_lock *lock = hold("a", 1000);
    forget_logs();
    s0->says = "-NOSCRIPT No matching script.\r\n";
    struct rli_op *op = start_extend(lock, 1000);
    settle();
    assert_int_equal(op->results[0].outcome, RL_NODE_ERROR);
    assert_string_equal(op->results[0].text, "NOSCRIPT No matching script.");
    assert_int_equal(take(op, NULL), RL_E_NO_QUORUM);
    expect_log(0, "EXTEND a#1 -NOSCRIPT, EVAL-EXTEND a#1 -NOSCRIPT");
    s0->says = NULL;
    assert_int_equal(let_go(lock), RL_OK);
    end();
}

/* e_i counts from the sending of what was carried out, not of what was refused. */
static void eval_counts_from_its_own_sending(void **state)
{
    (void)state;
    begin_warm(1);
    rl_lock *lock = hold("a", 1000);
    s0->forgetful = true;
    s0->mute = true;
    struct rli_op *op = start_extend(lock, 1000);
    pass(100 * MS);
    s0->mute = false;
    settle();
    assert_int_equal(take(op, NULL), RL_OK);
    assert_true(valid_until(lock) == T0 + 100 * MS + counted(1000));
    assert_int_equal(let_go(lock), RL_OK);
    end();
}

/* ---- Top-up (S5.3) --------------------------------------------------------------------------------------------------------------------------- */

static void tops_up_once_after_a_quorum(void **state)
{
    (void)state;
    begin_warm(3);
    rl_lock *lock = hold("a", 1000);
    forget_logs();
    lose_keys(s2);
    pass(100 * MS);
    struct rli_op *op = start_extend(lock, 1000);
    settle();
    assert_int_equal(take(op, NULL), RL_OK);
    expect_log(2, "EXTEND a#1 0, SET a#1 OK");
    expect_log(0, "EXTEND a#1 1");
    assert_true(lock->e[2] == T0 + 100 * MS + counted(1000)); /* by its own OK */
    assert_true(lock->touched & rli_bit(2));
    assert_int_equal(let_go(lock), RL_OK);
    assert_int_equal(holder(s2, "a"), 0);
    end();
}

static void no_top_up_without_a_quorum(void **state)
{
    (void)state;
    begin_warm(3);
    rl_lock *lock = hold("a", 1000);
    forget_logs();
    restart(2, true); /* it says "absent" in time */
    s1->mute = true;
    struct rli_op *op = start_extend(lock, 1000);
    pass(250 * MS);
    assert_int_equal(take(op, NULL), RL_E_NO_QUORUM);
    expect_log(2, "EXTEND a#1 0");
    s1->mute = false;
    settle(); /* the second "yes" comes too late to make a ballot of it for the third */
    expect_log(2, "");
    assert_int_equal(let_go(lock), RL_OK);
    end();
}

/* ... but one that answers "absent" after the others have confirmed gets the lock again. */
static void a_late_absent_is_topped_up(void **state)
{
    (void)state;
    begin_warm(3);
    rl_lock *lock = hold("a", 1000);
    forget_logs();
    lose_keys(s2);
    s2->mute = true;
    struct rli_op *op = start_extend(lock, 1000);
    settle();
    assert_int_equal(take(op, NULL), RL_OK);
    pass(50 * MS);
    s2->mute = false;
    settle();
    expect_log(2, "EXTEND a#1 0, SET a#1 OK");
    assert_true(lock->e[2] == T0 + 50 * MS + counted(1000));
    assert_int_equal(let_go(lock), RL_OK);
    end();
}

/* Never after the release began, nor once the lock is over. */
static void no_top_up_after_release_or_loss(void **state)
{
    (void)state;
    for (int lost = 0; lost < 2; lost++) {
        begin_warm(3);
        rl_lock *lock = hold("a", 1000);
        forget_logs();
        lose_keys(s2);
        s2->mute = true;
        struct rli_op *op = start_extend(lock, 1000);
        settle();
        assert_int_equal(take(op, NULL), RL_OK);
        if (lost)
            pass(1000 * MS);
        else
            op = start_release(lock), settle(), assert_int_equal(take(op, NULL), RL_OK);
        s2->mute = false;
        settle();
        expect_log(2, lost ? "EXTEND a#1 0" : "EXTEND a#1 0, RELEASE a#1 0");
        assert_int_equal(holder(s2, "a"), 0);
        if (lost)
            assert_int_equal(let_go(lock), RL_LOST);
        end();
    }
}

/* Nor over a connection that is yet to come: the lock could be over by then. */
static void no_top_up_over_a_new_connection(void **state)
{
    (void)state;
    begin_warm(3);
    rl_lock *lock = hold("a", 1000);
    forget_logs();
    lose_keys(s2);
    s0->mute = s1->mute = true;
    struct rli_op *op = start_extend(lock, 1000);
    settle(); /* the third has said "absent" */
    cut(2);
    mute_all(false);
    settle();
    assert_int_equal(take(op, NULL), RL_OK);
    pass(500 * MS);
    assert_int_equal(node_of(2)->state, RLI_NODE_OFF);
    expect_log(2, "EXTEND a#1 0");
    assert_int_equal(let_go(lock), RL_OK);
    end();
}

/* ---- Handing over ------------------------------------------------------------------------------------------------------------------------- */

/* S1.4: judged again when the result is handed over; what is not handed over is taken back. To the instant. */
static void a_result_is_judged_again_when_handed_over(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) { /* in time, too late, unwanted */
        begin_warm(3);
        struct rli_op *op = start_acquire("a", 1000, 0);
        settle();
        fake.now += counted(1000) - 1 * MS + (i == 1);
        int status = rli_op_hand_over(op, i == 2, fake.now);
        assert_int_equal(status, i == 0 ? RL_OK : i == 1 ? RL_E_TOO_SLOW : RL_CANCELED);
        settle();
        for (uint32_t j = 0; j < 3; j++)
            expect_log(j, i ? "SET a#1 OK, RELEASE a#1 1" : "SET a#1 OK");
        assert_int_equal(op->lock->state, i ? RLI_LOCK_OVER : RLI_LOCK_HELD);
        rli_lock_end(op->lock);
        take(op, NULL);
        end();
    }
}

/* An extension that comes too late is none: the lock is lost, or its old deadline stands. */
static void an_extension_is_judged_again_too(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        static const int statuses[] = {RL_OK, RL_E_TOO_SLOW, RL_E_TOO_SLOW, RL_LOST};
        begin_warm(3);
        rl_lock *lock = hold("a", 1000);
        struct rli_op *op = start_extend(lock, 1000);
        settle();
        fake.now += counted(1000) - (i == 0 ? MS : i == 1 ? MS - 1 : i == 2);
        assert_int_equal(rli_op_hand_over(op, false, fake.now), statuses[i]);
        assert_int_equal(lock->state, i == 3 ? RLI_LOCK_OVER : RLI_LOCK_HELD);
        take(op, NULL);
        drop(lock);
        end();
    }
}

/* RL_NO_WAIT: right after the flush, what was sent is done. */
static void a_release_without_waiting(void **state)
{
    (void)state;
    begin_warm(3);
    for (int down = 0; down < 3; down++) { /* so many connections are gone */
        rl_lock *lock = hold("a", 1000);
        for (int i = 0; i < down; i++) {
            net.servers[i].unheard = true;
            cut((uint32_t)i);
        }
        mute_all(true);
        struct rli_op *op = start(rli_op_new_release(&net.client->engine, lock, true));
        settle();
        assert_false(is_over(op));
        rli_op_expire(op, fake.now);
        assert_int_equal(op->results[2].outcome, RL_NODE_PENDING);
        assert_int_equal(op->results[0].outcome, down ? RL_NODE_UNREACHABLE : RL_NODE_PENDING);
        assert_int_equal(take(op, NULL), down < 2 ? RL_OK : RL_E_NO_QUORUM);
        rli_client_take_handle(net.client, lock);
        for (int i = 0; i < 3; i++) {
            net.servers[i].mute = false;
            net.servers[i].unheard = false;
            if (i < down)
                rli_node_connected(node_of((uint32_t)i), fake.now);
        }
        settle();
        for (int i = 0; i < 3; i++)
            assert_int_equal(holder(&net.servers[i], "a"), 0); /* S6.1: on all of them */
    }
    end();
}

/* ---- Clean-up (S3.1) --------------------------------------------------------------------------------------------------------------------------- */

/* It goes to every node that granted or did not answer, before the next attempt, whose token is new (S3.6). */
static void a_failed_attempt_is_taken_back_before_the_next(void **state)
{
    (void)state;
    begin_warm(3);
    hold_by_other(s0, "a", 300 * MS);
    hold_by_other(s1, "a", 300 * MS);
    s2->mute = true; /* it granted, but nobody knows */
    struct rli_op *op = start_acquire("a", 1000, 1000);
    settle();
    expect_log(2, "SET a#1 OK, RELEASE a#1 1");
    expect_log(0, "SET a#1 nil, RELEASE a#1 2"); /* asked how long it will last */
    s2->mute = false;
    pass(500 * MS);
    rl_lock *lock;
    assert_int_equal(take(op, &lock), RL_OK);
    assert_non_null(lock);
    assert_true(strstr(s2->log, "#1") == NULL);
    assert_int_equal(let_go(lock), RL_OK);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(holder(&net.servers[i], "a"), 0);
    end();
}

/* A request that was never written needs no clean-up: it is withdrawn. */
static void what_was_not_sent_is_withdrawn(void **state)
{
    (void)state;
    begin(3);
    s2->unheard = true;
    hold_by_other(s0, "a", 1000 * MS);
    hold_by_other(s1, "a", 1000 * MS);
    struct rli_op *op = start_acquire("a", 1000, 0);
    settle();
    assert_int_equal(take(op, NULL), RL_BUSY);
    s2->unheard = false;
    rli_node_connected(node_of(2), fake.now);
    settle();
    assert_int_equal(node_of(2)->state, RLI_NODE_READY);
    expect_log(2, "");
    end();
}

/* ... also if an earlier attempt was sent there: what counts is this one's token. */
static void what_was_sent_of_an_earlier_attempt_does_not_count(void **state)
{
    (void)state;
    begin_warm(3);
    hold_by_other(s0, "a", 100000 * MS);
    hold_by_other(s1, "a", 100000 * MS);
    struct rli_op *op = start_acquire("a", 1000, RL_FOREVER);
    settle();
    expect_log(2, "SET a#1 OK, RELEASE a#1 1");
    s2->unheard = true;
    cut(2);
    while (!strstr(s0->log, "#3")) /* #2 is the other's */
        pass(1 * MS);
    s2->unheard = false;
    rli_op_cancel(op, fake.now);
    assert_int_equal(take(op, NULL), RL_CANCELED);
    if (node_of(2)->state == RLI_NODE_CONNECTING)
        rli_node_connected(node_of(2), fake.now);
    pass(500 * MS);
    assert_null(strstr(s2->log, "RELEASE"));
    end();
}

/* A lock that was won while a node was still being connected to, and released before it was: nothing is set there (S3.6). */
static void a_release_withdraws_what_still_waits(void **state)
{
    (void)state;
    for (int owed = 0; owed < 2; owed++) {
        begin(3);
        s2->unheard = true;
        rl_lock *lock = hold("a", 1000);
        if (owed) { /* no memory for an operation */
            rli_lock_end(lock);
            rli_engine_owe_release(&net.client->engine, lock, fake.now);
            rli_client_take_handle(net.client, lock);
        } else {
            struct rli_op *op = start_release(lock);
            settle();
            assert_int_equal(take(op, NULL), RL_OK);
        }
        s2->unheard = false;
        rli_node_connected(node_of(2), fake.now);
        pass(100 * MS);
        assert_int_equal(node_of(2)->state, RLI_NODE_READY);
        assert_true(!strstr(s2->log, "SET"));
        for (uint32_t i = 0; i < 3; i++)
            assert_int_equal(holder(&net.servers[i], "a"), 0);
        end();
    }
}

/* Nodes that will not take the clean-up are not waited for. */
static void a_clean_up_that_is_refused_is_not_waited_for(void **state)
{
    (void)state;
    begin_warm(3);
    hold_by_other(s0, "a", 100000 * MS);
    hold_by_other(s1, "a", 100000 * MS);
    s1->mute = true;
    struct rli_op *op = start_acquire("a", 1000, 1000);
    settle();
    cut(0); /* after its vote */
    node_of(0)->backoff_until = fake.now + 50 * MS;
    s1->mute = false;
    settle();
    assert_int_equal(op->machine.acquire.state, RLI_ACQUIRE_SLEEPING);
    rli_op_cancel(op, fake.now);
    assert_int_equal(take(op, NULL), RL_CANCELED);
    end();
}

/* Case A13: the clean-up finds that no lock sits there, and the verdict is the node's error. */
static void wrongtype_is_found_by_the_clean_up(void **state)
{
    (void)state;
    begin_warm(1);
    s0->hashes = true;
    struct rli_op *op = start_acquire("a", 1000, 0);
    settle();
    assert_int_equal(take(op, NULL), RL_BUSY); /* a try asks no further */
    op = start_acquire("a", 1000, 100);
    pass(110 * MS);
    assert_true(strncmp(op->results[0].text, "WRONGTYPE Operation against a key", 33) == 0);
    assert_int_equal(op->results[0].outcome, RL_NODE_ERROR);
    assert_int_equal(take(op, NULL), RL_E_NO_QUORUM);
    end();
}

/* A release that a server could not carry out is tried again every 100 ms while the lease lasts; one that it refuses us is not. */
static void a_release_that_failed_stays_owed(void **state)
{
    (void)state;
    begin_warm(1);
    rl_lock *lock = hold("a", 1000);
    forget_logs();
    s0->says = "-BUSY Redis is busy running a script.\r\n";
    assert_int_equal(let_go(lock), RL_E_NO_QUORUM);
    pass(250 * MS);
    expect_log(0, "RELEASE a#1 -BUSY, RELEASE a#1 -BUSY, RELEASE a#1 -BUSY");
    s0->says = NULL;
    pass(100 * MS);
    expect_log(0, "RELEASE a#1 1");
    pass(10000 * MS);
    expect_log(0, "");
    lock = hold("b", 300);
    forget_logs();
    s0->says = "-BUSY Redis is busy running a script.\r\n";
    let_go(lock);
    pass(10000 * MS); /* until the lease is over by itself */
    expect_log(0, "RELEASE b#2 -BUSY, RELEASE b#2 -BUSY, RELEASE b#2 -BUSY, RELEASE b#2 -BUSY");
    s0->says = NULL;
    lock = hold("c", 1000);
    forget_logs();
    s0->says = "-NOPERM this user has no permissions to run the 'evalsha' command\r\n";
    assert_int_equal(let_go(lock), RL_E_AUTH);
    pass(10000 * MS);
    expect_log(0, "RELEASE c#3 -NOPERM");
    end();
}

/* ---- Dead connections --------------------------------------------------------------------------------------------------------------------------- */

/* Case A14: a server that was restarted while we were idle costs no acquisition, N = 1 and wait 0 included. */
static void a_restarted_server_costs_no_acquisition(void **state)
{
    (void)state;
    for (uint32_t n = 1; n <= 3; n += 2) {
        begin_warm(n);
        for (uint32_t i = 0; i < n; i++)
            restart(i, true);
        rl_lock *lock = hold("a", 1000);
        uint32_t held = 0;
        for (uint32_t i = 0; i < n; i++)
            held += holder(&net.servers[i], "a") > 0;
        assert_true(held >= n / 2 + 1);
        assert_int_equal(let_go(lock), RL_OK);
        end();
    }
}

/* ... also if another node is down, and the deaths are noticed one after the other: each connection is to blame once. */
static void two_restarted_servers_and_one_down_do_not_either(void **state)
{
    (void)state;
    begin_warm(3);
    s2->refuses = true;
    restart(2, true);
    assert_int_equal(let_go(hold("b", 1000)), RL_OK);
    assert_true(rli_node_backing_off(node_of(2), fake.now));
    restart(0, true);
    restart(1, true);
    assert_int_equal(let_go(hold("a", 1000)), RL_OK);
    end();
}

/* ... once: the second time it is a failure like any. */
static void a_server_that_dies_twice_does(void **state)
{
    (void)state;
    begin_warm(1);
    s0->deaf = true;
    struct rli_op *op = start_acquire("a", 1000, 0);
    settle();
    cut(0);
    settle(); /* the new connection is not served either */
    assert_false(is_over(op));
    s0->deaf = false;
    s0->mute = true; /* the handshake is over, and the SET is there ... */
    settle();
    s0->mute = false;
    move_down(0);
    s0->deaf = true;
    settle();
    assert_int_equal(node_of(0)->state, RLI_NODE_READY);
    cut(0);
    settle();
    assert_int_equal(take(op, NULL), RL_E_NO_QUORUM);
    s0->deaf = false;
    pass(2000 * MS);
    assert_int_equal(holder(s0, "a"), 0);
    end();
}

/* S3.4, case R6: the connection breaks while its SET is held up on the way. The new connection ends the old one on the server before it
 * says anything else; nothing is left. */
static void a_held_up_set_is_ended_with_its_connection(void **state)
{
    rl_lock *lock;
    (void)state;
    begin_warm(1);
    s0->conns[0].held = true;
    struct rli_op *op = start_acquire("a", 100000, 0);
    settle();
    cut(0);
    settle();
    assert_int_equal(take(op, &lock), RL_OK); /* the repeated attempt */
    expect_log(0, "KILL 1, RELEASE a#1 0, SET a#2 OK");
    s0->conns[0].held = false;
    settle();
    assert_int_equal(holder(s0, "a"), 2);
    assert_int_equal(let_go(lock), RL_OK);
    end();
}

/* Where we may not kill it, the release is repeated at the reconnect and about L after it: a SET held up for less leaves nothing behind
 * that outlives this. */
static void without_kill_the_release_is_repeated(void **state)
{
    (void)state;
    for (int owed = 0; owed < 2; owed++) {
        begin_warm(1);
        s0->no_kill = true;
        s0->conns[0].held = true;
        struct rli_op *op = start_acquire("a", 10000, 0);
        settle();
        if (owed) /* the attempt has failed before; its release waits in the list of owed ones */
            s0->refuses = true;
        cut(0);
        settle();
        if (owed) {
            assert_int_equal(take(op, NULL), RL_E_NO_QUORUM);
            s0->refuses = false;
        } else {
            rl_lock *lock;
            assert_int_equal(take(op, &lock), RL_OK);
            assert_int_equal(let_go(lock), RL_OK);
        }
        pass(5000 * MS);
        assert_non_null(strstr(s0->log, "KILL 1, RELEASE a#1 0"));
        forget_logs();
        s0->conns[0].held = false;
        settle();
        assert_int_equal(holder(s0, "a"), 1); /* there it is */
        pass(15200 * MS);
        if (!strstr(s0->log, "RELEASE a#1 1"))
            fail_msg("%s: not repeated: %s", owed ? "owed" : "waiting", s0->log);
        assert_int_equal(holder(s0, "a"), 0);
        forget_logs();
        pass(60000 * MS);
        expect_log(0, ""); /* once */
        end();
    }
}

/* ... also if the connection that was refused the kill is lost in its turn before the release is answered. */
static void a_refused_kill_is_not_forgotten(void **state)
{
    (void)state;
    begin_warm(1);
    s0->no_kill = true;
    s0->conns[0].held = true;
    struct rli_op *op = start_acquire("a", 10000, 0);
    settle();
    s0->refuses = true;
    cut(0);
    settle();
    assert_int_equal(take(op, NULL), RL_E_NO_QUORUM);
    s0->refuses = false;
    s0->mute = true;
    pass(100 * MS); /* a new connection; the handshake is under way */
    s0->mute = false;
    move_down(0);
    s0->mute = true; /* KILL and release are asked and done */
    settle();
    assert_non_null(strstr(s0->log, "KILL 1, RELEASE a#1 0"));
    struct conn *c = joined(s0);
    c->down_size = (size_t)(strchr(c->down, '\n') + 1 - c->down); /* the refusal arrives, the answer to the release does not */
    s0->mute = false;
    move_down(0);
    cut(0);
    pass(1000 * MS);
    assert_true(strstr(strstr(s0->log, "KILL 1"), "RELEASE a#1 0, ") != NULL);
    forget_logs();
    s0->conns[0].held = false;
    settle();
    assert_int_equal(holder(s0, "a"), 1);
    pass(15200 * MS);
    if (!strstr(s0->log, "RELEASE a#1 1"))
        fail_msg("not repeated: %s", s0->log);
    end();
}

/* S3.3, case R6: SET and release go to a stopped server, the library gives the connection up, the server continues. */
static void a_stopped_server_comes_to_the_release(void **state)
{
    (void)state;
    begin_warm(3);
    s2->deaf = true;
    rl_lock *lock = hold("a", 1000000);
    assert_int_equal(let_go(lock), RL_OK);
    pass(11000 * MS);
    assert_int_equal(node_of(2)->state == RLI_NODE_READY, false);
    s2->deaf = false;
    pass(5000 * MS);
    assert_int_equal(holder(s2, "a"), 0);
    assert_int_equal(node_of(2)->owes_count, 0);
    end();
}

/* ---- Nodes that take nothing ------------------------------------------------------------------------------------------------------------------------ */

/* Late nodes get nothing new, at once; but the release of what they were sent. */
static void late_nodes_vote_late(void **state)
{
    (void)state;
    begin_warm(3);
    s1->mute = s2->mute = true;
    struct rli_op *op = start_acquire("a", 1000, 0);
    pass(250 * MS);
    assert_int_equal(take(op, NULL), RL_E_NO_QUORUM);
    expect_log(1, "SET a#1 OK, RELEASE a#1 1");
    op = start_acquire("b", 1000, 0);
    assert_true(is_over(op)); /* without an answer */
    assert_int_equal(op->results[1].outcome, RL_NODE_LATE);
    assert_int_equal(op->results[2].outcome, RL_NODE_LATE);
    assert_int_equal(take(op, NULL), RL_E_NO_QUORUM);
    settle();
    expect_log(1, "");
    mute_all(false);
    settle();
    assert_int_equal(let_go(hold("c", 1000)), RL_OK);
    end();
}

/* S9.1: the report says so of each of them, also of those that no longer mattered. */
static void the_report_tells_of_all_that_were_not_asked(void **state)
{
    (void)state;
    begin_warm(3);
    mute_all(true);
    struct rli_op *op = start_acquire("a", 1000, 0);
    pass(250 * MS);
    assert_int_equal(take(op, NULL), RL_E_NO_QUORUM);
    op = start_acquire("b", 1000, 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(op->results[i].outcome, RL_NODE_LATE);
    assert_int_equal(take(op, NULL), RL_E_NO_QUORUM);
    end();
}

/* S9.1: what was sent once was asked, and may have acted, though it could not be sent again. */
static void what_was_sent_once_was_asked(void **state)
{
    (void)state;
    begin_warm(1);
    rl_lock *lock = hold("a", 1000);
    s0->deaf = s0->refuses = true;
    struct rli_op *op = start_extend(lock, 1000);
    settle();
    cut(0);
    settle();
    assert_int_equal(op->results[0].outcome, RL_NODE_NO_ANSWER);
    assert_int_equal(op->results[0].sys_errno, ECONNREFUSED);
    assert_int_equal(take(op, NULL), RL_E_NO_QUORUM);
    s0->deaf = s0->refuses = false;
    assert_int_equal(let_go(lock), RL_OK);
    end();
}

/* Back-off: a node that refused a moment ago is not tried, and votes with what it said. Without a quorum of others it is. */
static void back_off_is_skipped_when_needed(void **state)
{
    (void)state;
    begin_warm(3);
    restart(2, true);
    s2->refuses = true;
    assert_int_equal(let_go(hold("a", 1000)), RL_OK);
    assert_true(rli_node_backing_off(node_of(2), fake.now));
    s2->refuses = false;
    struct rli_op *op = start_acquire("b", 1000, 0);
    settle();
    assert_int_equal(op->results[2].outcome, RL_NODE_UNREACHABLE);
    assert_int_equal(op->results[2].sys_errno, ECONNREFUSED);
    assert_int_equal(node_of(2)->state, RLI_NODE_OFF);
    rl_lock *lock;
    assert_int_equal(take(op, &lock), RL_OK);
    assert_int_equal(let_go(lock), RL_OK);
    s1->refuses = s2->refuses = true;
    restart(1, true);
    op = start_acquire("c", 1000, 0);
    settle();
    assert_int_equal(take(op, NULL), RL_E_NO_QUORUM);
    assert_true(rli_node_backing_off(node_of(1), fake.now) && rli_node_backing_off(node_of(2), fake.now));
    s1->refuses = s2->refuses = false;
    assert_int_equal(let_go(hold("d", 1000)), RL_OK); /* both are tried at once */
    assert_int_equal(node_of(1)->state, RLI_NODE_READY);
    end();
}

/* ---- Cancelling (what rl_client_stop does to every acquisition) ---------------------------------------------------------------------------------------- */

enum { CANCEL_CONNECTING, CANCEL_GREETING, CANCEL_SENT, CANCEL_PARTLY, CANCEL_CLEANING, CANCEL_SLEEPING, CANCEL_STATES };

static struct rli_op *in_state(int where)
{
    struct rli_op *op;

    begin(3);
    if (where >= CANCEL_SENT)
        warm_up();
    for (uint32_t i = 0; i < 3; i++) {
        net.servers[i].unheard = where == CANCEL_CONNECTING;
        net.servers[i].mute = where == CANCEL_GREETING || where == CANCEL_SENT || (where == CANCEL_PARTLY && i > 0);
        if (where >= CANCEL_CLEANING && i < 2)
            hold_by_other(&net.servers[i], "a", 100000 * MS);
    }
    op = start_acquire("a", 100000, RL_FOREVER);
    if (where == CANCEL_CLEANING) { /* the votes are in, the answers to the clean-up are not */
        for (uint32_t i = 0; i < 3; i++) {
            move_up(i);
            serve(&net.servers[i]);
            move_down(i);
        }
        mute_all(true);
    }
    settle();
    if (where == CANCEL_SLEEPING)
        pass(1 * MS);
    return op;
}

/* A4 of S3.6: it ends at once, once; and what it may have set is gone as soon as the servers are heard again. */
static void cancel_in_every_state(void **state)
{
    static const int states[] = {RLI_ACQUIRE_VOTING, RLI_ACQUIRE_VOTING,   RLI_ACQUIRE_VOTING,
                                 RLI_ACQUIRE_VOTING, RLI_ACQUIRE_CLEANING, RLI_ACQUIRE_SLEEPING};
    (void)state;
    for (int where = 0; where < CANCEL_STATES; where++) {
        struct rli_op *op = in_state(where);
        assert_int_equal(op->machine.acquire.state, states[where]);
        rli_op_cancel(op, fake.now);
        assert_int_equal(take(op, NULL), RL_CANCELED);
        assert_null(net.client->engine.running);
        for (uint32_t i = 0; i < 3; i++) {
            net.servers[i].mute = false;
            if (where == CANCEL_CONNECTING)
                rli_node_connected(node_of(i), fake.now);
        }
        settle();
        for (uint32_t i = 0; i < 3; i++) {
            int held = holder(&net.servers[i], "a");
            assert_true(held == 0 || strcmp(net.tokens[held - 1], "another's") == 0);
            if (where < CANCEL_SENT) /* never sent */
                assert_null(strstr(net.servers[i].log, "SET a"));
        }
        end();
    }
}

/* ---- Many ------------------------------------------------------------------------------------------------------------------------------------------------ */

/* S4.3: memory does not grow with time or operations; everything is reused. */
static void nothing_piles_up(void **state)
{
    long live = 0;
    (void)state;
    begin_warm(3);
    for (int i = 0; i < 2000; i++) {
        static const char *const names[] = {"a", "b", "c", "d"};
        struct rli_op *ops[4];
        rl_lock *locks[4];
        net.token_count = 0;
        memset(net.tokens, 0, sizeof net.tokens[0] * 8);
        s2->mute = i % 3 == 0;
        for (int j = 0; j < 4; j++)
            ops[j] = start_acquire(names[j], 1000, 0);
        settle();
        for (int j = 0; j < 4; j++)
            assert_int_equal(take(ops[j], &locks[j]), RL_OK);
        for (int j = 0; j < 4; j++)
            ops[j] = start_release(locks[j]);
        settle();
        for (int j = 0; j < 4; j++)
            assert_int_equal(take(ops[j], NULL), RL_OK);
        s2->mute = false;
        settle();
        forget_logs();
        if (i == 10)
            live = fake.live;
    }
    assert_int_equal(fake.live, live);
    end();
}

/* A waiter of a minute, with hundreds of attempts. */
static void a_long_wait_takes_no_memory(void **state)
{
    long live = 0;
    (void)state;
    begin_warm(3);
    for (int i = 0; i < 3; i++)
        hold_by_other(&net.servers[i], "a", 60000 * MS);
    struct rli_op *op = start_acquire("a", 1000, RL_FOREVER);
    for (int i = 0; i < 59; i++) {
        pass(1000 * MS);
        forget_logs();
        assert_false(is_over(op));
        if (i == 2)
            live = fake.live;
        assert_true(i < 2 || fake.live <= live);
    }
    pass(2000 * MS);
    rl_lock *lock;
    assert_int_equal(take(op, &lock), RL_OK);
    assert_int_equal(let_go(lock), RL_OK);
    end();
}

/* rl_client_check's run: both ways to run a script are tried, the server's own name is learned, and the probe key is gone. */
static void check_learns_who_is_who(void **state)
{
    (void)state;
    begin(3);
    rl_lock *probe = rli_lock_new(net.client, "probe", 5, NULL, RLI_FENCE_NONE, 0);
    rli_lock_fresh_token(probe);
    probe->ttl = 2000 * MS;
    struct rli_op *op = start(rli_op_new_check(&net.client->engine, probe));
    rli_lock_unref(probe);
    settle();
    assert_int_equal(take(op, NULL), RL_OK);
    for (uint32_t i = 0; i < 3; i++) {
        char run_id[16];
        snprintf(run_id, sizeof run_id, "run-%u", i);
        assert_string_equal(node_of(i)->run_id, run_id);
        expect_log(i, "SET probe#1 OK, EXTEND probe#1 1, EVAL-RELEASE probe#1 1");
    }
    end();
}

/* A node that cannot be told at its turn is told later: no probe key stays. */
static void check_leaves_no_key_behind(void **state)
{
    (void)state;
    begin(1);
    rl_lock *probe = rli_lock_new(net.client, "probe", 5, NULL, RLI_FENCE_NONE, 0);
    rli_lock_fresh_token(probe);
    probe->ttl = 100000 * MS;
    struct rli_op *op = start(rli_op_new_check(&net.client->engine, probe));
    rli_lock_unref(probe);
    while (!strstr(s0->log, "EXTEND probe#1 1")) { /* step by step, until the release is next */
        assert_false(is_over(op));
        take_wishes(0);
        move_up(0);
        serve(s0);
        if (!strstr(s0->log, "EXTEND"))
            move_down(0);
    }
    move_down(0);
    move_up(0);
    fake.now += 100 * MS; /* the release is written to a connection that breaks before it is read ... */
    s0->unheard = true;
    joined(s0)->open = false;
    cut(0);
    pass(150 * MS); /* ... and the new one takes too long */
    assert_int_equal(take(op, NULL), RL_E_NO_QUORUM);
    assert_int_equal(node_of(0)->state, RLI_NODE_CONNECTING);
    assert_true(holder(s0, "probe") > 0);
    s0->unheard = false;
    rli_node_connected(node_of(0), fake.now);
    pass(1000 * MS);
    assert_int_equal(holder(s0, "probe"), 0);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(acquire_extend_release),
        cmocka_unit_test(a_lock_runs_out_by_itself),
        cmocka_unit_test(a_late_grant_counts_for_a_held_lock),
        cmocka_unit_test(a_request_that_waits_is_sent_after_success),
        cmocka_unit_test(a_late_grant_after_failure_is_released),
        cmocka_unit_test(late_answers_to_an_extension_count_both_ways),
        cmocka_unit_test(a_lost_lock_stays_lost),
        cmocka_unit_test(a_failed_extension_is_over),
        cmocka_unit_test(an_imported_lock_is_held_by_its_first_extension),
        cmocka_unit_test(noscript_is_answered_by_eval_once),
        cmocka_unit_test(noscript_again_is_an_error),
        cmocka_unit_test(eval_counts_from_its_own_sending),
        cmocka_unit_test(tops_up_once_after_a_quorum),
        cmocka_unit_test(no_top_up_without_a_quorum),
        cmocka_unit_test(a_late_absent_is_topped_up),
        cmocka_unit_test(no_top_up_after_release_or_loss),
        cmocka_unit_test(no_top_up_over_a_new_connection),
        cmocka_unit_test(a_result_is_judged_again_when_handed_over),
        cmocka_unit_test(an_extension_is_judged_again_too),
        cmocka_unit_test(a_release_without_waiting),
        cmocka_unit_test(a_failed_attempt_is_taken_back_before_the_next),
        cmocka_unit_test(what_was_not_sent_is_withdrawn),
        cmocka_unit_test(what_was_sent_of_an_earlier_attempt_does_not_count),
        cmocka_unit_test(a_release_withdraws_what_still_waits),
        cmocka_unit_test(a_clean_up_that_is_refused_is_not_waited_for),
        cmocka_unit_test(wrongtype_is_found_by_the_clean_up),
        cmocka_unit_test(a_release_that_failed_stays_owed),
        cmocka_unit_test(a_restarted_server_costs_no_acquisition),
        cmocka_unit_test(two_restarted_servers_and_one_down_do_not_either),
        cmocka_unit_test(a_server_that_dies_twice_does),
        cmocka_unit_test(a_held_up_set_is_ended_with_its_connection),
        cmocka_unit_test(without_kill_the_release_is_repeated),
        cmocka_unit_test(a_refused_kill_is_not_forgotten),
        cmocka_unit_test(a_stopped_server_comes_to_the_release),
        cmocka_unit_test(late_nodes_vote_late),
        cmocka_unit_test(the_report_tells_of_all_that_were_not_asked),
        cmocka_unit_test(what_was_sent_once_was_asked),
        cmocka_unit_test(back_off_is_skipped_when_needed),
        cmocka_unit_test(cancel_in_every_state),
        cmocka_unit_test(nothing_piles_up),
        cmocka_unit_test(a_long_wait_takes_no_memory),
        cmocka_unit_test(check_learns_who_is_who),
        cmocka_unit_test(check_leaves_no_key_behind),
    };
    return cmocka_run_group_tests_name("engine", tests, NULL, NULL);
}
