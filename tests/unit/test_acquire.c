/* test_acquire.c - the machine of an acquisition, rule by rule, in virtual time: its verdicts, what it takes back, when it gives
 * up, and how long it pauses. Every instant that matters is tried exactly and one tick before. */
#include "acquire.h"
#include "unit.h"

#include <string.h>

#define TTL (10000 * MS)
#define DRIFT (102 * MS) /* of TTL: 1 % + 2 ms */

struct run {
    struct rli_terms terms;
    struct rli_acquire m;
    rli_instant e[RL_MAX_NODES];
    rli_instant now, sent;
    uint32_t unsent;
    struct rli_actions out;
};

static void step(struct run *r, enum rli_event event, uint32_t node, const struct rli_answer *answer)
{
    struct rli_input in = {.event = event, .node = node, .answer = answer, .unsent = r->unsent};
    memset(&r->out, 0xa5, sizeof r->out);
    rli_acquire_step(&r->m, r->now, &in, &r->out);
    if (r->out.finished || !r->out.fresh_token)
        return;
    r->sent = r->now; /* a new lease begins */
    for (uint32_t i = 0; i < r->terms.nodes; i++)
        r->e[i] = RLI_GONE;
}

static struct run *prepare(struct run *r, uint32_t nodes, rli_span wait)
{
    *r = (struct run){.terms = terms_of(nodes), .now = T0};
    r->m = (struct rli_acquire){.terms = &r->terms, .e = r->e, .ttl = TTL, .wait = wait};
    for (uint32_t i = 0; i < nodes; i++)
        r->e[i] = RLI_GONE;
    return r;
}

static void begin(struct run *r)
{
    step(r, RLI_START, 0, NULL);
}

static struct run *started(struct run *r, uint32_t nodes, rli_span wait)
{
    begin(prepare(r, nodes, wait));
    return r;
}

static void vote(struct run *r, uint32_t node, enum said said)
{
    struct rli_answer answer = answer_of(said, r->sent, r->now);
    step(r, RLI_VOTE, node, &answer);
}

static void votes(struct run *r, const enum said *said)
{
    for (uint32_t i = 0; i < r->terms.nodes; i++)
        vote(r, i, said[i]);
}

static void cleaned_left(struct run *r, uint32_t node, enum said said, rli_span holder_left)
{
    struct rli_answer answer = answer_of(said, r->sent, r->now);
    answer.holder_left = holder_left;
    step(r, RLI_CLEANED, node, &answer);
}

static void cleaned(struct run *r, uint32_t node, enum said said)
{
    cleaned_left(r, node, said, RLI_NEVER);
}

static void deadline(struct run *r)
{
    step(r, RLI_DEADLINE, 0, NULL);
}

/* Goes to the wake-up instant; one tick before it nothing happens. */
static void wake(struct run *r)
{
    rli_instant at = r->out.wake;
    assert_true(at >= r->now && at != RLI_NEVER);
    r->now = at - 1;
    deadline(r);
    assert_false(r->out.finished || r->out.clean || r->out.send);
    assert_true(r->out.wake == at);
    r->now = at;
    deadline(r);
}

static void cancel(struct run *r)
{
    step(r, RLI_CANCEL, 0, NULL);
}

#define assert_finished(r, expected)                                                                                               \
    do {                                                                                                                           \
        assert_true((r)->out.finished);                                                                                            \
        assert_int_equal((r)->out.status, (expected));                                                                             \
        assert_int_equal((r)->out.send, 0);                                                                                        \
        assert_true((r)->out.wake == RLI_NEVER);                                                                                   \
    } while (0)

#define assert_quiet(r)                                                                                                            \
    do {                                                                                                                           \
        assert_false((r)->out.finished || (r)->out.fresh_token);                                                                   \
        assert_int_equal((r)->out.clean | (r)->out.send | (r)->out.top_up, 0);                                                     \
    } while (0)

#define assert_new_attempt(r)                                                                                                      \
    do {                                                                                                                           \
        assert_false((r)->out.finished);                                                                                           \
        assert_true((r)->out.fresh_token);                                                                                         \
        assert_int_equal((r)->out.send, rli_all(&(r)->terms));                                                                     \
        assert_int_equal((r)->out.kind, RLI_SET);                                                                                  \
    } while (0)

#define assert_cleaning(r, mask)                                                                                                   \
    do {                                                                                                                           \
        assert_false((r)->out.finished);                                                                                           \
        assert_int_equal((r)->out.clean, (mask));                                                                                  \
        assert_int_equal((r)->out.send, 0);                                                                                        \
    } while (0)

/* ---- Votes ------------------------------------------------------------------------------------------------------------------ */

/* S2.2: all nodes at once. S3.6: a token of its own. */
static void asks_all_nodes_at_once(void **state)
{
    struct run r;
    (void)state;
    started(&r, 5, 0);
    assert_new_attempt(&r);
    assert_int_equal(r.out.clean | r.out.top_up, 0);
}

/* S2.2: success is returned at the q-th grant, not before and not later. */
static void succeeds_at_the_qth_grant(void **state)
{
    struct run r;
    (void)state;
    started(&r, 5, 0);
    vote(&r, 4, YES);
    assert_quiet(&r);
    vote(&r, 0, YES);
    assert_quiet(&r);
    vote(&r, 2, YES);
    assert_finished(&r, RL_OK);
    assert_int_equal(r.out.clean, 0);
}

/* S2.7: one node is the same code with q = 1. */
static void one_node_is_a_quorum_of_one(void **state)
{
    static const struct {
        enum said said;
        int status;
        uint32_t clean;
    } cases[] = {{YES, RL_OK, 0},        {OTHER, RL_BUSY, 0},          {ERROR, RL_E_NO_QUORUM, 0},
                 {DENIED, RL_E_AUTH, 0}, {UNKNOWN, RL_E_NO_QUORUM, 1}, {UNSENT, RL_E_NO_QUORUM, 0}};
    struct run r;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        started(&r, 1, 0);
        vote(&r, 0, cases[i].said);
        assert_finished(&r, cases[i].status);
        assert_int_equal(r.out.clean, cases[i].clean);
    }
}

/* S2.1: nodes that are away do not shrink the quorum. */
static void unreachable_nodes_do_not_shrink_the_quorum(void **state)
{
    struct run r;
    (void)state;
    started(&r, 5, 0);
    vote(&r, 0, UNSENT);
    vote(&r, 1, UNSENT);
    vote(&r, 2, YES);
    vote(&r, 3, YES);
    assert_quiet(&r);
    vote(&r, 4, UNSENT);
    assert_finished(&r, RL_E_NO_QUORUM);
    assert_int_equal(r.out.clean, 4 | 8);
}

/* S2.1: one vote per node. */
static void a_second_answer_of_a_node_does_not_count(void **state)
{
    struct run r;
    (void)state;
    started(&r, 3, 0);
    vote(&r, 0, YES);
    vote(&r, 0, YES);
    assert_quiet(&r);
    vote(&r, 1, OTHER);
    assert_quiet(&r);
    vote(&r, 1, YES);
    assert_quiet(&r);
}

/* S2.3: unknown is never a grant, and is released. */
static void unknown_is_never_a_grant(void **state)
{
    struct run r;
    (void)state;
    started(&r, 3, 0);
    vote(&r, 0, UNKNOWN);
    assert_quiet(&r);
    vote(&r, 1, UNKNOWN);
    assert_finished(&r, RL_E_NO_QUORUM);
    assert_int_equal(r.out.clean, 7);
}

/* S2.4: a reply of an unexpected type is an error, and may have set the key. */
static void a_reply_that_is_no_answer_is_released(void **state)
{
    struct rli_answer garbage = answer_of(ERROR, T0, T0);
    struct run r;
    (void)state;
    started(&r, 1, 0);
    garbage.unknown = true;
    step(&r, RLI_VOTE, 0, &garbage);
    assert_finished(&r, RL_E_NO_QUORUM);
    assert_int_equal(r.out.clean, 1);
}

/* S2.6: a node error never turns an achieved quorum into a failure. */
static void errors_do_not_spoil_a_quorum(void **state)
{
    static const enum said bad[] = {ERROR, DENIED, UNKNOWN, UNSENT, DIED, OTHER};
    struct run r;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        started(&r, 3, 1000 * MS);
        vote(&r, 1, bad[i]);
        assert_quiet(&r);
        vote(&r, 0, YES);
        vote(&r, 2, YES);
        assert_finished(&r, RL_OK);
        assert_int_equal(r.out.clean, 0);
    }
}

/* S2.8: fails as soon as a quorum is out of reach; a split vote is BUSY; a tie settles. */
static void fails_as_soon_as_a_quorum_is_out_of_reach(void **state)
{
    struct run r;
    (void)state;
    started(&r, 5, 0);
    vote(&r, 0, OTHER);
    vote(&r, 1, YES);
    vote(&r, 2, OTHER);
    assert_quiet(&r);
    vote(&r, 3, OTHER);
    assert_finished(&r, RL_BUSY);
    assert_int_equal(r.out.clean, 2 | 16); /* node 4 has been asked */

    started(&r, 2, 0);
    vote(&r, 1, YES);
    vote(&r, 0, OTHER);
    assert_finished(&r, RL_BUSY);
    assert_int_equal(r.out.clean, 2);
}

/* S2.8: a raised quorum. */
static void a_raised_quorum_needs_its_votes(void **state)
{
    struct run r;
    (void)state;
    prepare(&r, 3, 0)->terms.quorum = 3;
    begin(&r);
    vote(&r, 0, YES);
    vote(&r, 1, YES);
    assert_quiet(&r);
    vote(&r, 2, YES);
    assert_finished(&r, RL_OK);

    prepare(&r, 3, 0)->terms.quorum = 3;
    begin(&r);
    vote(&r, 1, ERROR);
    assert_finished(&r, RL_E_NO_QUORUM);
}

/* S2.8: denied is AUTH only if nothing else failed. */
static void all_denied_is_auth(void **state)
{
    struct run r;
    (void)state;
    started(&r, 3, 0);
    vote(&r, 0, DENIED);
    vote(&r, 1, DENIED);
    assert_finished(&r, RL_E_AUTH);

    started(&r, 3, 0);
    vote(&r, 0, DENIED);
    vote(&r, 1, UNSENT);
    assert_finished(&r, RL_E_NO_QUORUM);
}

/* ---- Validity --------------------------------------------------------------------------------------------------------------- */

/* S1.2: e counts from the sending, never from the reply. S1.3: the lease ends with the q-th largest. */
static void validity_counts_from_the_sending(void **state)
{
    struct rli_answer answer;
    struct run r;

    (void)state;
    started(&r, 3, 0);
    answer = answer_of(YES, T0 + 3 * MS, T0 + 90 * MS);
    r.now = T0 + 90 * MS;
    step(&r, RLI_VOTE, 0, &answer);
    answer = answer_of(YES, T0 + 1 * MS, T0 + 200 * MS);
    r.now = T0 + 200 * MS;
    step(&r, RLI_VOTE, 2, &answer);
    assert_finished(&r, RL_OK);
    assert_true(r.e[0] == T0 + 3 * MS + TTL - DRIFT);
    assert_true(r.e[1] == RLI_GONE);
    assert_true(r.e[2] == T0 + 1 * MS + TTL - DRIFT);
    assert_true(rli_valid_until(&r.terms, r.e) == T0 + 1 * MS + TTL - DRIFT);
}

/* A lease of 100 ms is worth 97 ms; node 0's request went out at once, the others' when the q-th grant comes at `at`. */
static void grant_at(struct run *r, rli_instant at)
{
    prepare(r, 3, 0)->m.ttl = 100 * MS;
    r->terms.node_timeout = 1000 * MS;
    r->terms.min_validity = 7 * MS;
    begin(r);
    vote(r, 0, YES);
    r->now = at;
    vote(r, 1, YES);
}

/* S1.4: min_validity must remain: exactly that is enough, one tick less is too slow, and is taken back. */
static void min_validity_must_remain(void **state)
{
    struct run r;
    (void)state;
    grant_at(&r, T0 + 90 * MS);
    assert_finished(&r, RL_OK);
    grant_at(&r, T0 + 90 * MS + 1);
    assert_finished(&r, RL_E_TOO_SLOW);
    assert_int_equal(r.out.clean, 7);
    grant_at(&r, T0 + 627 * MS);
    assert_finished(&r, RL_E_TOO_SLOW);
    assert_int_equal(r.out.clean, 7);
}

/* S4.1: an attempt that can no longer be valid ends at now + L - drift - min_validity, as too slow (case A7). */
static void an_attempt_ends_when_its_lease_would_be_too_short(void **state)
{
    struct run r;
    (void)state;
    prepare(&r, 3, 0)->m.ttl = 50 * MS;
    begin(&r);
    assert_true(r.out.wake == T0 + 50 * MS - 2500000 - 1 * MS);
    vote(&r, 0, YES);
    wake(&r);
    assert_finished(&r, RL_E_TOO_SLOW);
    assert_int_equal(r.out.clean, 7);
}

/* S1.5: each attempt has its own time; waiting does not eat into the lease. */
static void each_attempt_has_its_own_time(void **state)
{
    struct run r;
    (void)state;
    started(&r, 1, 60000 * MS);
    vote(&r, 0, OTHER);
    r.now += 20 * MS;
    cleaned_left(&r, 0, OTHER, 100000 * MS);
    wake(&r);
    assert_new_attempt(&r);
    assert_true(r.out.wake == r.now + 250 * MS);
    rli_instant second = r.now;
    r.now += 2 * MS;
    vote(&r, 0, YES);
    assert_finished(&r, RL_OK);
    assert_true(r.e[0] == second + TTL - DRIFT);
}

/* ---- The end of an attempt -------------------------------------------------------------------------------------------------- */

/* S4.1: at node_timeout; silent nodes are votes against, and are released (S2.3). */
static void an_attempt_ends_at_the_node_timeout(void **state)
{
    struct run r;
    (void)state;
    started(&r, 3, 0);
    assert_true(r.out.wake == T0 + 250 * MS);
    r.now += 5 * MS;
    vote(&r, 1, YES);
    assert_true(r.out.wake == T0 + 250 * MS);
    wake(&r);
    assert_finished(&r, RL_E_NO_QUORUM);
    assert_int_equal(r.out.clean, 7);
}

/* S3.1: a request never written needs no clean-up. */
static void what_was_never_sent_is_not_released(void **state)
{
    struct run r;
    (void)state;
    started(&r, 3, 0);
    vote(&r, 0, YES);
    r.unsent = 2;
    wake(&r);
    assert_finished(&r, RL_E_NO_QUORUM);
    assert_int_equal(r.out.clean, 1 | 4);
}

/* S2.8: silence of fewer than N - q + 1 nodes beside holders is BUSY. */
static void one_silent_node_beside_a_holder_is_busy(void **state)
{
    struct run r;
    (void)state;
    started(&r, 3, 0);
    vote(&r, 0, OTHER);
    vote(&r, 1, YES);
    wake(&r);
    assert_finished(&r, RL_BUSY);
    assert_int_equal(r.out.clean, 2 | 4);
}

/* S4.1: wait 0 = exactly one attempt, its clean-up written but not awaited, and not sent to those that said held. */
static void without_waiting_there_is_one_attempt(void **state)
{
    struct run r;
    (void)state;
    started(&r, 3, 0);
    vote(&r, 0, OTHER);
    vote(&r, 1, YES);
    vote(&r, 2, OTHER);
    assert_finished(&r, RL_BUSY);
    assert_int_equal(r.out.clean, 2);
}

/* S4.1: ttl, wait and node timeout are independent: a wait shorter than the node timeout does not cut the first attempt. */
static void a_short_wait_does_not_cut_the_first_attempt(void **state)
{
    struct run r;
    (void)state;
    started(&r, 3, 10 * MS);
    assert_true(r.out.wake == T0 + 250 * MS);
    r.now = T0 + 249 * MS;
    vote(&r, 0, YES);
    vote(&r, 1, YES);
    assert_finished(&r, RL_OK);
}

/* ---- Clean-up --------------------------------------------------------------------------------------------------------------- */

/* S3.1: before it waits, also to those that said held; what never was sent, or failed with an error, gets none. */
static void a_waiting_acquire_cleans_up_before_it_waits(void **state)
{
    struct run r;
    (void)state;
    started(&r, 5, 1000 * MS);
    vote(&r, 0, YES);
    vote(&r, 1, OTHER);
    vote(&r, 2, UNKNOWN);
    vote(&r, 3, ERROR);
    assert_cleaning(&r, 1 | 2 | 4 | 16);

    started(&r, 5, 1000 * MS);
    vote(&r, 0, UNSENT);
    vote(&r, 1, DENIED);
    vote(&r, 2, UNKNOWN);
    assert_cleaning(&r, 4 | 8 | 16);
}

/* S4.1: answers to the clean-up are awaited from nodes that did answer, never from those that did not. */
static void only_nodes_that_answered_are_awaited(void **state)
{
    struct run r;
    (void)state;
    started(&r, 3, 1000 * MS);
    vote(&r, 0, YES);
    vote(&r, 1, UNKNOWN);
    vote(&r, 2, UNKNOWN);
    assert_cleaning(&r, 7);
    assert_true(r.out.wake == r.now + 100 * MS);
    cleaned(&r, 1, YES); /* nobody waits for it */
    assert_true(r.out.wake == T0 + 100 * MS);
    r.now += 3 * MS;
    cleaned(&r, 0, YES);
    assert_quiet(&r);
    assert_true(r.out.wake <= r.now + 200 * MS);
    wake(&r);
    assert_new_attempt(&r);

    started(&r, 3, 1000 * MS); /* nobody answered: on to the pause at once */
    vote(&r, 0, UNKNOWN);
    vote(&r, 1, UNKNOWN);
    assert_cleaning(&r, 7);
    wake(&r);
    assert_new_attempt(&r);
}

/* S4.1, S3.7: the clean-up has a budget of its own, and ends exactly with it. */
static void the_clean_up_has_its_own_budget(void **state)
{
    struct run r;
    (void)state;
    started(&r, 3, 250 * MS);
    vote(&r, 0, YES);
    wake(&r); /* at the deadline of the call */
    assert_cleaning(&r, 7);
    assert_true(r.out.wake == T0 + 350 * MS);
    wake(&r);
    assert_finished(&r, RL_E_NO_QUORUM);
    assert_int_equal(r.out.clean, 0); /* once is enough: it was written */

    prepare(&r, 3, 250 * MS)->terms.cleanup_timeout = 0;
    begin(&r);
    vote(&r, 0, YES);
    wake(&r);
    assert_cleaning(&r, 7);
    assert_true(r.out.wake == r.now);
    deadline(&r);
    assert_finished(&r, RL_E_NO_QUORUM);
}

/* S4.1: returns within max(wait, node_timeout) + cleanup_timeout. */
static void returns_as_soon_as_the_clean_up_is_answered(void **state)
{
    struct run r;
    (void)state;
    started(&r, 3, 250 * MS);
    vote(&r, 0, YES);
    vote(&r, 2, OTHER);
    wake(&r);
    assert_cleaning(&r, 7);
    cleaned(&r, 2, OTHER);
    assert_quiet(&r);
    cleaned(&r, 0, YES);
    assert_finished(&r, RL_BUSY);
    assert_int_equal(r.out.clean, 0);
}

/* S3.1: the clean-up goes out with or before the next attempt's requests: never after. S3.6: with a new token. */
static void nothing_is_sent_between_failure_and_clean_up(void **state)
{
    struct run r;
    (void)state;
    started(&r, 3, RLI_NEVER);
    for (int attempt = 0; attempt < 50; attempt++) {
        vote(&r, 0, YES);
        vote(&r, 1, ERROR);
        assert_quiet(&r);
        vote(&r, 2, ERROR);
        assert_cleaning(&r, 1);
        assert_false(r.out.fresh_token);
        cleaned(&r, 0, YES);
        assert_quiet(&r);
        wake(&r);
        assert_new_attempt(&r);
        assert_int_equal(r.out.clean, 0);
    }
}

/* Case A13: WRONGTYPE met by the clean-up is that node's failure; a try says busy. */
static void wrong_type_met_by_the_clean_up_is_a_failure(void **state)
{
    struct run r;
    (void)state;
    started(&r, 3, 100 * MS);
    vote(&r, 0, OTHER);
    vote(&r, 1, OTHER);
    assert_cleaning(&r, 7);
    cleaned(&r, 0, ERROR);
    assert_quiet(&r);
    r.now = T0 + 100 * MS;
    cleaned(&r, 1, ERROR);
    assert_finished(&r, RL_E_NO_QUORUM);

    started(&r, 3, 0);
    vote(&r, 0, OTHER);
    vote(&r, 1, OTHER);
    assert_finished(&r, RL_BUSY);
}

/* Case A13: with fail_fast the wrong type ends the call; one node of the wrong type does not. */
static void one_wrong_type_is_no_lost_quorum(void **state)
{
    struct run r;
    (void)state;
    prepare(&r, 3, 1000 * MS)->m.fail_fast = true;
    begin(&r);
    votes(&r, (enum said[]){YES, OTHER, OTHER});
    assert_cleaning(&r, 7);
    cleaned(&r, 0, YES);
    cleaned(&r, 1, ERROR);
    cleaned_left(&r, 2, OTHER, 500 * MS);
    assert_quiet(&r); /* BUSY: waited out */

    prepare(&r, 3, 1000 * MS)->m.fail_fast = true;
    begin(&r);
    vote(&r, 0, OTHER);
    vote(&r, 1, OTHER);
    cleaned(&r, 0, ERROR);
    cleaned(&r, 1, ERROR);
    assert_finished(&r, RL_E_NO_QUORUM);
}

/* S2.8: a user who may SET but not run the scripts is found out by the clean-up. */
static void denial_met_by_the_clean_up_is_auth(void **state)
{
    struct run r;
    (void)state;
    started(&r, 1, RLI_NEVER);
    vote(&r, 0, OTHER);
    assert_cleaning(&r, 1);
    cleaned(&r, 0, DENIED);
    assert_finished(&r, RL_E_AUTH);
}

/* A lost clean-up proves nothing. */
static void a_lost_clean_up_does_not_change_the_verdict(void **state)
{
    static const enum said lost[] = {UNKNOWN, UNSENT, DIED};
    struct run r;
    (void)state;
    for (size_t i = 0; i < sizeof lost / sizeof *lost; i++) {
        started(&r, 1, 50 * MS);
        vote(&r, 0, OTHER);
        r.now = T0 + 60 * MS;
        cleaned(&r, 0, lost[i]);
        assert_finished(&r, RL_BUSY);
    }
}

/* ---- Waiting ---------------------------------------------------------------------------------------------------------------- */

/* S4.2: what is waited out and what is not. */
static void policies_of_waiting(void **state)
{
    static const struct {
        enum said said;
        bool fail_fast, waits;
        int status;
    } cases[] = {{OTHER, false, true, RL_BUSY},        {OTHER, true, true, RL_BUSY},          {ERROR, false, true, RL_E_NO_QUORUM},
                 {ERROR, true, false, RL_E_NO_QUORUM}, {UNSENT, false, true, RL_E_NO_QUORUM}, {UNSENT, true, false, RL_E_NO_QUORUM},
                 {DENIED, false, false, RL_E_AUTH},    {DENIED, true, false, RL_E_AUTH}};
    struct run r;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        prepare(&r, 1, 1000 * MS)->m.fail_fast = cases[i].fail_fast;
        begin(&r);
        vote(&r, 0, cases[i].said);
        if (cases[i].said == OTHER)
            cleaned(&r, 0, OTHER);
        assert_int_equal(r.out.finished, !cases[i].waits);
        if (r.out.finished)
            assert_int_equal(r.out.status, cases[i].status);
        else
            wake(&r);
        if (cases[i].waits)
            assert_new_attempt(&r);
    }
}

/* S4.2: fail_fast ends a call whose votes came too slowly; without it they are tried again. */
static void too_slow_is_retried_unless_fail_fast(void **state)
{
    struct run r;
    (void)state;
    for (int fail_fast = 0; fail_fast < 2; fail_fast++) {
        prepare(&r, 1, 10000 * MS)->m.fail_fast = fail_fast;
        r.m.ttl = 50 * MS;
        begin(&r);
        wake(&r);
        assert_int_equal(r.out.clean, 1);
        if (fail_fast) {
            assert_finished(&r, RL_E_TOO_SLOW);
        } else {
            wake(&r);
            assert_new_attempt(&r);
        }
    }
}

/* S4.1: for ever is for ever, and can be cancelled. S4.3: the state does not grow. */
static void forever_does_not_end(void **state)
{
    struct run r;
    (void)state;
    started(&r, 1, RLI_NEVER);
    for (int attempt = 0; attempt < 100000; attempt++) {
        vote(&r, 0, attempt % 2 ? OTHER : UNSENT);
        if (attempt % 2)
            cleaned(&r, 0, OTHER);
        assert_false(r.out.finished);
        assert_true(r.out.wake <= r.now + 200 * MS);
        r.now = r.out.wake;
        deadline(&r);
        assert_new_attempt(&r);
    }
    assert_true(r.now - T0 > 3600 * 1000 * MS);
    cancel(&r);
    assert_finished(&r, RL_CANCELED);
}

/* S4.1: an attempt starts only before the deadline; the pause before the last one is cut so that it can still be made. */
static void the_last_attempt_starts_before_the_deadline(void **state)
{
    struct run r;
    (void)state;
    started(&r, 1, 1000 * MS);
    vote(&r, 0, OTHER);
    r.now = T0 + 994 * MS; /* 6 ms are left, and the pause would be 5 .. 20 ms */
    cleaned_left(&r, 0, OTHER, RLI_NEVER);
    assert_quiet(&r);
    wake(&r);
    assert_new_attempt(&r);
    assert_true(r.now == T0 + 995 * MS);
    assert_true(r.out.wake == T0 + 1000 * MS);
}

/* S4.1: with the last start past, a failure ends the call; one tick before it does not. */
static void a_failure_after_the_last_start_ends_the_call(void **state)
{
    struct run r;
    (void)state;
    started(&r, 1, 1000 * MS);
    r.now = T0 + 995 * MS - 1;
    vote(&r, 0, UNSENT);
    assert_quiet(&r);
    assert_true(r.out.wake == T0 + 995 * MS);
    started(&r, 1, 1000 * MS);
    r.now = T0 + 995 * MS;
    vote(&r, 0, UNSENT);
    assert_finished(&r, RL_E_NO_QUORUM);
}

/* S1.8, S4.1: woken at the deadline or after it, no attempt starts; one tick before, one does. */
static void no_attempt_starts_at_the_deadline(void **state)
{
    struct run r;
    (void)state;
    for (int late = -1; late <= 1; late++) {
        started(&r, 1, 1000 * MS);
        vote(&r, 0, OTHER);
        cleaned(&r, 0, OTHER);
        r.now = T0 + 1000 * MS + late;
        deadline(&r);
        if (late < 0)
            assert_new_attempt(&r);
        else
            assert_finished(&r, RL_BUSY);
    }
}

/* Brings a waiting acquire (wait 1 s) to an attempt that starts 5 ms before its deadline; the one before was busy. */
static void last_attempt_after_busy(struct run *r)
{
    started(r, 3, 1000 * MS);
    votes(r, (enum said[]){YES, OTHER, OTHER});
    r->now = T0 + 994 * MS;
    cleaned(r, 0, UNKNOWN);
    cleaned(r, 1, OTHER);
    cleaned(r, 2, OTHER);
    assert_quiet(r);
    r->now = T0 + 995 * MS;
    deadline(r);
    assert_new_attempt(r);
}

/* S4.2: the verdict is that of the last attempt that ran to its end, not of one that the deadline cut short. */
static void an_attempt_cut_short_does_not_decide(void **state)
{
    struct run r;
    (void)state;
    last_attempt_after_busy(&r);
    wake(&r);
    assert_true(r.now == T0 + 1000 * MS);
    assert_finished(&r, RL_BUSY); /* three silent nodes would be NO_QUORUM */
    assert_int_equal(r.out.clean, 7);
}

/* S4.2: nor do the answers to its clean-up. */
static void the_clean_up_of_an_attempt_cut_short_does_not_decide(void **state)
{
    struct run r;
    (void)state;
    last_attempt_after_busy(&r);
    vote(&r, 0, OTHER);
    wake(&r);
    assert_cleaning(&r, 7);
    cleaned(&r, 0, OTHER);
    assert_finished(&r, RL_BUSY);

    last_attempt_after_busy(&r);
    vote(&r, 0, OTHER);
    wake(&r);
    cleaned(&r, 0, ERROR);
    assert_finished(&r, RL_BUSY);
}

/* S4.2: but one that was decided by votes before the deadline does. */
static void a_short_attempt_that_was_decided_counts(void **state)
{
    struct run r;
    (void)state;
    last_attempt_after_busy(&r);
    r.now = T0 + 1000 * MS - 1;
    vote(&r, 0, ERROR);
    vote(&r, 1, ERROR);
    assert_finished(&r, RL_E_NO_QUORUM);
    assert_int_equal(r.out.clean, 4);

    last_attempt_after_busy(&r);
    r.now = T0 + 1000 * MS - 1;
    vote(&r, 0, YES);
    vote(&r, 1, YES);
    assert_finished(&r, RL_OK);
}

/* S4.2: the first attempt has nobody before it: its own votes decide. */
static void a_single_attempt_decides_itself(void **state)
{
    struct run r;
    (void)state;
    started(&r, 3, 250 * MS);
    wake(&r);
    assert_finished(&r, RL_E_NO_QUORUM);
}

/* ---- Pauses ----------------------------------------------------------------------------------------------------------------- */

struct range {
    rli_span low, high;
};

static void widen(struct range *range, rli_span pause)
{
    range->low = rli_min(range->low, pause);
    range->high = rli_max(range->high, pause);
}

/* The pauses seen fill [low, high] but for 2 % at each end. */
static void assert_fills(const struct range *range, rli_span low, rli_span high)
{
    rli_span edge = (high - low) / 50;
    assert_true(range->low >= low && range->low <= low + edge);
    assert_true(range->high <= high && range->high >= high - edge);
}

/* One busy or failed attempt of one node, and the pause after it. */
static rli_span pause_of(struct run *r, enum said said, rli_span holder_left)
{
    vote(r, 0, said);
    if (said == OTHER)
        cleaned_left(r, 0, OTHER, holder_left);
    assert_quiet(r);
    rli_span pause = r->out.wake - r->now;
    r->now = r->out.wake;
    deadline(r);
    return pause;
}

/* S4.3: full jitter in [retry_min, bound]; the bound starts at 20 ms and doubles to retry_max. */
static void pauses_grow_to_their_bound(void **state)
{
    static const rli_span bounds[] = {20 * MS, 40 * MS, 80 * MS, 160 * MS, 200 * MS, 200 * MS};
    enum { STEPS = sizeof bounds / sizeof *bounds };
    struct range seen[STEPS];
    struct run r;

    (void)state;
    for (int i = 0; i < STEPS; i++)
        seen[i] = (struct range){RLI_NEVER, RLI_GONE};
    for (uint64_t seed = 0; seed < 1000; seed++) {
        prepare(&r, 1, RLI_NEVER)->m.seed = seed * 7919;
        begin(&r);
        for (int i = 0; i < STEPS; i++)
            widen(&seen[i], pause_of(&r, seed % 2 ? OTHER : ERROR, RLI_NEVER));
    }
    for (int i = 0; i < STEPS; i++)
        assert_fills(&seen[i], 5 * MS, bounds[i]);
}

/* S4.3: bounds smaller than the usual start are kept. */
static void pauses_keep_to_narrow_options(void **state)
{
    struct run r;
    (void)state;
    for (uint64_t seed = 0; seed < 100; seed++) {
        prepare(&r, 1, RLI_NEVER)->m.seed = seed;
        r.terms.retry_min = r.terms.retry_max = 3 * MS;
        begin(&r);
        for (int i = 0; i < 5; i++)
            assert_true(pause_of(&r, ERROR, RLI_NEVER) == 3 * MS);

        prepare(&r, 1, RLI_NEVER)->m.seed = seed;
        r.terms.retry_min = r.terms.retry_max = 100 * MS;
        begin(&r);
        for (int i = 0; i < 3; i++)
            pause_of(&r, ERROR, RLI_NEVER);
        assert_true(pause_of(&r, ERROR, RLI_NEVER) == 100 * MS);
    }
}

/* S4.4: never longer than the holder's lease, and its jitter of 5 ms. */
static void pauses_end_with_the_holders_lease(void **state)
{
    static const rli_span left[] = {0, 1 * MS, 7 * MS, 12 * MS};
    struct run r;

    (void)state;
    for (size_t i = 0; i < sizeof left / sizeof *left; i++) {
        struct range seen = {RLI_NEVER, RLI_GONE};
        for (uint64_t seed = 0; seed < 2000; seed++) {
            prepare(&r, 1, RLI_NEVER)->m.seed = seed;
            r.terms.retry_min = r.terms.retry_max = 100 * MS;
            begin(&r);
            pause_of(&r, ERROR, 0); /* the first bound is 20 ms, whatever retry_min says */
            widen(&seen, pause_of(&r, OTHER, left[i]));
        }
        assert_fills(&seen, left[i], left[i] + 5 * MS);
    }
}

/* The pause after an attempt in which another holds so many of four or two nodes, all of them with that lease. */
static rli_span pause_beside_a_holder(struct run *r, uint32_t nodes, uint64_t seed, rli_span holder_left)
{
    prepare(r, nodes, RLI_NEVER)->m.seed = seed;
    r->terms.retry_min = r->terms.retry_max = 20 * MS;
    begin(r);
    for (uint32_t i = 0; i < nodes; i++)
        vote(r, i, OTHER);
    for (uint32_t i = 0; i < nodes; i++)
        cleaned_left(r, i, OTHER, holder_left);
    assert_true(r->m.state == RLI_ACQUIRE_SLEEPING);
    return r->out.wake - r->now;
}

/* S4.4: with several nodes, when a quorum may be free: also where the attempt was decided before all had answered. */
static void pauses_end_when_a_quorum_may_be_free(void **state)
{
    struct run r;
    (void)state;
    for (uint32_t nodes = 1; nodes <= 7; nodes++) {
        struct range seen = {RLI_NEVER, RLI_GONE}, long_lease = {RLI_NEVER, RLI_GONE};
        for (uint64_t seed = 0; seed < 2000; seed++) {
            widen(&seen, pause_beside_a_holder(&r, nodes, seed, 4 * MS));
            widen(&long_lease, pause_beside_a_holder(&r, nodes, seed, TTL));
        }
        assert_fills(&seen, 4 * MS, 9 * MS);
        assert_true(long_lease.low == 20 * MS && long_lease.high == 20 * MS);
    }
}

/* S4.4: a node that timed out or failed is not known to be free at any time. */
static void failed_nodes_do_not_shorten_pauses(void **state)
{
    struct range seen = {RLI_NEVER, RLI_GONE};
    struct run r;

    (void)state;
    for (uint64_t seed = 0; seed < 2000; seed++) {
        prepare(&r, 3, RLI_NEVER)->m.seed = seed;
        begin(&r);
        vote(&r, 1, OTHER);
        wake(&r);
        assert_cleaning(&r, 7);
        cleaned_left(&r, 1, OTHER, 1 * MS);
        widen(&seen, r.out.wake - r.now);
    }
    assert_fills(&seen, 5 * MS, 20 * MS);
}

/* S4.3, S1.8: a clock that jumped during an attempt makes no pause longer than the node timeout, however many splits there were. */
static void a_jump_of_the_clock_is_no_round_trip(void **state)
{
    struct run r;
    (void)state;
    started(&r, 3, RLI_NEVER);
    for (int splits = 0; splits < 40; splits++) {
        vote(&r, 0, YES);
        r.now += splits % 2 ? 86400000 * MS : 100 * MS; /* a day */
        vote(&r, 1, OTHER);
        vote(&r, 2, OTHER);
        assert_cleaning(&r, 7);
        cleaned(&r, 0, YES);
        cleaned(&r, 1, OTHER);
        cleaned(&r, 2, OTHER);
        assert_true(r.out.wake - r.now <= 250 * MS);
        wake(&r);
        assert_new_attempt(&r);
    }
}

/* S4.3: after a split vote uniform in [r, r * 2^k], r = the slowest answer (at least 1 ms), k = how many in a row. */
static void pauses_after_split_votes(void **state)
{
    static const rli_span trips[] = {300000, 1 * MS, 8 * MS};
    enum { SPLITS = 4 };
    struct run r;

    (void)state;
    for (size_t t = 0; t < sizeof trips / sizeof *trips; t++) {
        rli_span low = rli_max(trips[t], 1 * MS);
        struct range seen[SPLITS];
        for (int k = 0; k < SPLITS; k++)
            seen[k] = (struct range){RLI_NEVER, RLI_GONE};
        for (uint64_t seed = 0; seed < 1500; seed++) {
            prepare(&r, 3, RLI_NEVER)->m.seed = seed;
            begin(&r);
            for (int k = 0; k < SPLITS; k++) {
                vote(&r, 0, YES);
                r.now += trips[t]; /* the slowest */
                vote(&r, 1, OTHER);
                vote(&r, 2, OTHER);
                assert_cleaning(&r, 7);
                cleaned(&r, 0, YES);
                cleaned_left(&r, 1, OTHER, TTL);
                cleaned_left(&r, 2, OTHER, TTL);
                widen(&seen[k], r.out.wake - r.now);
                wake(&r);
            }
        }
        for (int k = 0; k < SPLITS; k++)
            assert_fills(&seen[k], low, rli_min(low << (k + 1), 200 * MS));
    }
}

/* S4.3: also where the clean-up tells that the other contenders have gone: all of them know it at the same time. */
static void pauses_after_split_votes_are_not_cut(void **state)
{
    struct range seen = {RLI_NEVER, RLI_GONE};
    struct run r;

    (void)state;
    for (uint64_t seed = 0; seed < 2000; seed++) {
        prepare(&r, 3, RLI_NEVER)->m.seed = seed;
        begin(&r);
        vote(&r, 0, YES);
        r.now += 40 * MS;
        vote(&r, 1, OTHER);
        vote(&r, 2, OTHER);
        cleaned(&r, 0, YES);
        cleaned(&r, 1, ABSENT);
        cleaned(&r, 2, ABSENT);
        widen(&seen, r.out.wake - r.now);
    }
    assert_fills(&seen, 40 * MS, 80 * MS);
}

/* S4.3: k counts split votes in a row; the usual bound goes on growing beside it. */
static void a_plain_failure_ends_a_row_of_split_votes(void **state)
{
    struct range after = {RLI_NEVER, RLI_GONE};
    struct run r;

    (void)state;
    for (uint64_t seed = 0; seed < 1500; seed++) {
        prepare(&r, 3, RLI_NEVER)->m.seed = seed;
        begin(&r);
        for (int attempt = 0; attempt < 4; attempt++) {
            rli_span pause;
            vote(&r, 0, attempt == 2 ? UNSENT : YES);
            vote(&r, 1, OTHER);
            vote(&r, 2, OTHER);
            if (attempt != 2)
                cleaned(&r, 0, YES);
            cleaned_left(&r, 1, OTHER, TTL);
            cleaned_left(&r, 2, OTHER, TTL);
            pause = r.out.wake - r.now;
            if (attempt == 3)
                widen(&after, pause);
            wake(&r);
        }
    }
    assert_fills(&after, 1 * MS, 2 * MS);
}

/* S4.3: retries of different callers are not in step. */
static void seeds_give_different_pauses(void **state)
{
    rli_span first = 0;
    int same = 0;
    struct run r;
    (void)state;
    for (uint64_t seed = 0; seed < 100; seed++) {
        prepare(&r, 1, RLI_NEVER)->m.seed = seed;
        begin(&r);
        rli_span pause = pause_of(&r, ERROR, 0);
        same += pause == first;
        first = pause;
    }
    assert_true(same < 3);
}

/* ---- Connections found dead ------------------------------------------------------------------------------------------------- */

/* Case A14: repeated once, at once, with a new token, clean-up first, even for wait 0 and N = 1. */
static void a_dead_connection_costs_one_repeated_attempt(void **state)
{
    struct run r;
    (void)state;
    started(&r, 1, 0);
    r.now += 3 * MS;
    vote(&r, 0, DIED);
    assert_new_attempt(&r);
    assert_int_equal(r.out.clean, 1);
    assert_true(r.out.wake == T0 + 250 * MS); /* the deadline of the call stays */
    vote(&r, 0, YES);
    assert_finished(&r, RL_OK);
    assert_true(r.e[0] == T0 + 3 * MS + TTL - DRIFT);

    started(&r, 1, 0);
    vote(&r, 0, DIED);
    vote(&r, 0, DIED); /* the second time is a failure like others */
    assert_finished(&r, RL_E_NO_QUORUM);
    assert_int_equal(r.out.clean, 1);
}

/* Case A14: the repetition goes to all nodes, and takes back what the first attempt got. */
static void the_repetition_takes_back_the_first_attempt(void **state)
{
    struct run r;
    (void)state;
    started(&r, 3, 0);
    vote(&r, 0, YES);
    vote(&r, 1, DIED);
    assert_quiet(&r);
    vote(&r, 2, ERROR);
    assert_new_attempt(&r);
    assert_int_equal(r.out.clean, 1 | 2);

    started(&r, 3, 0); /* decided while one is open */
    vote(&r, 1, DIED);
    vote(&r, 2, OTHER);
    assert_new_attempt(&r);
    assert_int_equal(r.out.clean, 1 | 2);

    prepare(&r, 3, 0)->m.ttl = 50 * MS; /* when the attempt's time is up */
    begin(&r);
    vote(&r, 0, YES);
    vote(&r, 1, DIED);
    assert_quiet(&r);
    wake(&r);
    assert_new_attempt(&r);
    assert_int_equal(r.out.clean, 7);
}

/* Case A14: once for the whole call, however many attempts; later deaths are waited out like other failures. */
static void the_repetition_is_spent_once(void **state)
{
    struct run r;
    (void)state;
    started(&r, 1, RLI_NEVER);
    vote(&r, 0, DIED);
    assert_new_attempt(&r);
    for (int i = 0; i < 10; i++) {
        vote(&r, 0, DIED);
        assert_cleaning(&r, 1);
        assert_false(r.out.fresh_token);
        assert_true(r.out.wake > r.now);
        wake(&r);
        assert_new_attempt(&r);
    }
}

/* Not where the others could not make a quorum anyway: they hold it for somebody else, or have been silent to the end. */
static void no_repetition_without_a_chance(void **state)
{
    struct run r;
    (void)state;
    prepare(&r, 3, 0)->m.ttl = 50 * MS;
    begin(&r);
    vote(&r, 1, DIED);
    assert_quiet(&r);
    wake(&r);
    assert_finished(&r, RL_E_TOO_SLOW);
    assert_int_equal(r.out.clean, 7);

    started(&r, 3, 0);
    vote(&r, 0, DIED);
    vote(&r, 1, OTHER);
    assert_new_attempt(&r); /* node 2 may still grant */

    started(&r, 3, 0);
    vote(&r, 0, OTHER);
    vote(&r, 1, DIED);
    assert_new_attempt(&r);

    started(&r, 5, 0);
    vote(&r, 0, DIED);
    vote(&r, 1, OTHER);
    vote(&r, 2, UNSENT);
    assert_new_attempt(&r);

    started(&r, 5, 0);
    vote(&r, 0, OTHER);
    vote(&r, 1, OTHER);
    vote(&r, 2, OTHER);
    assert_finished(&r, RL_BUSY);

    started(&r, 4, 0);
    vote(&r, 0, DIED);
    vote(&r, 1, OTHER);
    assert_new_attempt(&r);

    prepare(&r, 3, 0)->terms.quorum = 3;
    begin(&r);
    vote(&r, 0, OTHER);
    assert_finished(&r, RL_BUSY);
}

/* S4.1: not at the deadline; one tick before it, yes. */
static void no_repetition_at_the_deadline(void **state)
{
    struct run r;
    (void)state;
    started(&r, 1, 0);
    r.now = T0 + 250 * MS - 1;
    vote(&r, 0, DIED);
    assert_new_attempt(&r);
    assert_true(r.out.wake == T0 + 250 * MS);
    r.now = T0 + 250 * MS;
    deadline(&r);
    assert_finished(&r, RL_E_NO_QUORUM); /* of the first */
    assert_int_equal(r.out.clean, 1);

    started(&r, 1, 0);
    r.now = T0 + 250 * MS;
    vote(&r, 0, DIED);
    assert_finished(&r, RL_E_NO_QUORUM);
    assert_int_equal(r.out.clean, 1);
}

/* ---- Cancelling, and steps that must change nothing ------------------------------------------------------------------------- */

/* S3.6: cancelled while voting, everything that may be held is released. */
static void cancel_while_voting(void **state)
{
    struct run r;
    (void)state;
    started(&r, 5, 1000 * MS);
    cancel(&r);
    assert_finished(&r, RL_CANCELED);
    assert_int_equal(r.out.clean, 31);

    started(&r, 5, 1000 * MS);
    vote(&r, 0, YES);
    vote(&r, 1, OTHER);
    vote(&r, 3, UNSENT);
    cancel(&r);
    assert_finished(&r, RL_CANCELED);
    assert_int_equal(r.out.clean, 1 | 4 | 16);

    started(&r, 5, 1000 * MS);
    vote(&r, 3, UNKNOWN);
    vote(&r, 4, ERROR);
    cancel(&r);
    assert_finished(&r, RL_CANCELED);
    assert_int_equal(r.out.clean, 1 | 2 | 4 | 8);
}

/* S3.6: while cleaning up, it has been sent; while pausing, nothing is held. */
static void cancel_while_cleaning_and_pausing(void **state)
{
    struct run r;
    (void)state;
    started(&r, 3, 1000 * MS);
    votes(&r, (enum said[]){YES, OTHER, OTHER});
    cancel(&r);
    assert_finished(&r, RL_CANCELED);
    assert_int_equal(r.out.clean, 0);

    started(&r, 1, 1000 * MS);
    vote(&r, 0, UNSENT);
    cancel(&r);
    assert_finished(&r, RL_CANCELED);
    assert_int_equal(r.out.clean, 0);
}

/* S3.6: also in the repeated attempt, which has a token of its own. */
static void cancel_in_the_repeated_attempt(void **state)
{
    struct run r;
    (void)state;
    started(&r, 3, 0);
    vote(&r, 0, YES);
    vote(&r, 1, DIED);
    vote(&r, 2, UNSENT);
    assert_new_attempt(&r);
    vote(&r, 2, UNSENT);
    cancel(&r);
    assert_finished(&r, RL_CANCELED);
    assert_int_equal(r.out.clean, 1 | 2);
}

/* S2.2: a grant that comes after the failure changes nothing: it is being released. */
static void a_late_grant_does_not_count(void **state)
{
    struct run r;
    (void)state;
    started(&r, 3, 1000 * MS);
    vote(&r, 0, OTHER);
    vote(&r, 1, OTHER);
    assert_cleaning(&r, 7);
    vote(&r, 2, YES);
    assert_quiet(&r);
    assert_true(r.out.wake == T0 + 100 * MS);
    assert_true(r.e[2] == RLI_GONE);
}

/* Votes while cleaning up or pausing, answers to a clean-up nobody awaits, a wake-up too early: nothing. */
static void what_comes_at_the_wrong_time_changes_nothing(void **state)
{
    struct run r;
    (void)state;
    started(&r, 3, 1000 * MS);
    cleaned(&r, 0, YES);
    assert_quiet(&r);
    assert_true(r.out.wake == T0 + 250 * MS);
    votes(&r, (enum said[]){YES, OTHER, OTHER});
    rli_instant at = r.out.wake;
    vote(&r, 0, YES);
    vote(&r, 1, YES);
    deadline(&r);
    assert_quiet(&r);
    assert_true(r.out.wake == at);
    cleaned(&r, 0, YES);
    cleaned(&r, 0, YES);
    cleaned(&r, 0, ERROR);
    assert_quiet(&r);
    assert_true(r.out.wake == at);
    cleaned(&r, 1, OTHER);
    cleaned(&r, 2, OTHER);
    at = r.out.wake;
    vote(&r, 0, YES);
    cleaned(&r, 1, ERROR);
    deadline(&r);
    assert_quiet(&r);
    assert_true(r.out.wake == at);
    r.now = at;
    deadline(&r);
    assert_new_attempt(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(asks_all_nodes_at_once),
        cmocka_unit_test(succeeds_at_the_qth_grant),
        cmocka_unit_test(one_node_is_a_quorum_of_one),
        cmocka_unit_test(unreachable_nodes_do_not_shrink_the_quorum),
        cmocka_unit_test(a_second_answer_of_a_node_does_not_count),
        cmocka_unit_test(unknown_is_never_a_grant),
        cmocka_unit_test(a_reply_that_is_no_answer_is_released),
        cmocka_unit_test(errors_do_not_spoil_a_quorum),
        cmocka_unit_test(fails_as_soon_as_a_quorum_is_out_of_reach),
        cmocka_unit_test(a_raised_quorum_needs_its_votes),
        cmocka_unit_test(all_denied_is_auth),
        cmocka_unit_test(validity_counts_from_the_sending),
        cmocka_unit_test(min_validity_must_remain),
        cmocka_unit_test(an_attempt_ends_when_its_lease_would_be_too_short),
        cmocka_unit_test(each_attempt_has_its_own_time),
        cmocka_unit_test(an_attempt_ends_at_the_node_timeout),
        cmocka_unit_test(what_was_never_sent_is_not_released),
        cmocka_unit_test(one_silent_node_beside_a_holder_is_busy),
        cmocka_unit_test(without_waiting_there_is_one_attempt),
        cmocka_unit_test(a_short_wait_does_not_cut_the_first_attempt),
        cmocka_unit_test(a_waiting_acquire_cleans_up_before_it_waits),
        cmocka_unit_test(only_nodes_that_answered_are_awaited),
        cmocka_unit_test(the_clean_up_has_its_own_budget),
        cmocka_unit_test(returns_as_soon_as_the_clean_up_is_answered),
        cmocka_unit_test(nothing_is_sent_between_failure_and_clean_up),
        cmocka_unit_test(wrong_type_met_by_the_clean_up_is_a_failure),
        cmocka_unit_test(one_wrong_type_is_no_lost_quorum),
        cmocka_unit_test(denial_met_by_the_clean_up_is_auth),
        cmocka_unit_test(a_lost_clean_up_does_not_change_the_verdict),
        cmocka_unit_test(policies_of_waiting),
        cmocka_unit_test(too_slow_is_retried_unless_fail_fast),
        cmocka_unit_test(forever_does_not_end),
        cmocka_unit_test(the_last_attempt_starts_before_the_deadline),
        cmocka_unit_test(a_failure_after_the_last_start_ends_the_call),
        cmocka_unit_test(no_attempt_starts_at_the_deadline),
        cmocka_unit_test(an_attempt_cut_short_does_not_decide),
        cmocka_unit_test(the_clean_up_of_an_attempt_cut_short_does_not_decide),
        cmocka_unit_test(a_short_attempt_that_was_decided_counts),
        cmocka_unit_test(a_single_attempt_decides_itself),
        cmocka_unit_test(pauses_grow_to_their_bound),
        cmocka_unit_test(pauses_keep_to_narrow_options),
        cmocka_unit_test(pauses_end_with_the_holders_lease),
        cmocka_unit_test(pauses_end_when_a_quorum_may_be_free),
        cmocka_unit_test(failed_nodes_do_not_shorten_pauses),
        cmocka_unit_test(a_jump_of_the_clock_is_no_round_trip),
        cmocka_unit_test(pauses_after_split_votes),
        cmocka_unit_test(pauses_after_split_votes_are_not_cut),
        cmocka_unit_test(a_plain_failure_ends_a_row_of_split_votes),
        cmocka_unit_test(seeds_give_different_pauses),
        cmocka_unit_test(a_dead_connection_costs_one_repeated_attempt),
        cmocka_unit_test(the_repetition_takes_back_the_first_attempt),
        cmocka_unit_test(the_repetition_is_spent_once),
        cmocka_unit_test(no_repetition_without_a_chance),
        cmocka_unit_test(no_repetition_at_the_deadline),
        cmocka_unit_test(cancel_while_voting),
        cmocka_unit_test(cancel_while_cleaning_and_pausing),
        cmocka_unit_test(cancel_in_the_repeated_attempt),
        cmocka_unit_test(a_late_grant_does_not_count),
        cmocka_unit_test(what_comes_at_the_wrong_time_changes_nothing),
    };
    return cmocka_run_group_tests_name("acquire", tests, NULL, NULL);
}
