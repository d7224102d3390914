/* test_extend.c - the machine of an extension, rule by rule, in virtual time: it is refused once the lease is over, it is lost by
 * what the nodes keep and not by what they say last, and it tops up only after a quorum has confirmed. */
#include "extend.h"
#include "unit.h"

#include <string.h>

#define TTL (1000 * MS)
#define DRIFT (12 * MS) /* of TTL: 1 % + 2 ms */

struct run {
    struct rli_terms terms;
    struct rli_extend m;
    rli_instant e[RL_MAX_NODES];
    rli_instant now, sent;
    uint32_t unsent, resent;
    struct rli_actions out;
};

static void step(struct run *r, enum rli_event event, uint32_t node, const struct rli_answer *answer)
{
    struct rli_input in = {.event = event, .node = node, .answer = answer, .unsent = r->unsent, .resent = r->resent};
    memset(&r->out, 0xa5, sizeof r->out);
    rli_extend_step(&r->m, r->now, &in, &r->out);
    assert_int_equal(r->out.clean, 0); /* S5.2, S5.6: a failed extend deletes nothing */
    assert_false(r->out.fresh_token);
}

/* A lock whose nodes keep it for that long from now (RLI_GONE = not at all). */
static struct run *prepare(struct run *r, uint32_t nodes, const rli_span *left)
{
    *r = (struct run){.terms = terms_of(nodes), .now = T0, .sent = T0};
    r->m = (struct rli_extend){.terms = &r->terms, .e = r->e, .ttl = TTL};
    for (uint32_t i = 0; i < nodes; i++)
        r->e[i] = left[i] == RLI_GONE ? RLI_GONE : T0 + left[i];
    return r;
}

static void begin(struct run *r)
{
    step(r, RLI_START, 0, NULL);
}

static const rli_span all_left[] = {600 * MS, 600 * MS, 600 * MS, 600 * MS, 600 * MS};

static struct run *started(struct run *r, uint32_t nodes, const rli_span *left)
{
    begin(prepare(r, nodes, left));
    return r;
}

static void vote(struct run *r, uint32_t node, enum said said)
{
    struct rli_answer answer = answer_of(said, r->sent, r->now);
    step(r, RLI_VOTE, node, &answer);
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
    assert_false(r->out.finished || r->out.send || r->out.top_up);
    assert_true(r->out.wake == at);
    r->now = at;
    deadline(r);
}

#define assert_finished(r, expected)                                                                                               \
    do {                                                                                                                           \
        assert_true((r)->out.finished);                                                                                            \
        assert_int_equal((r)->out.status, (expected));                                                                             \
        assert_int_equal((r)->out.send, 0);                                                                                        \
        assert_true((r)->out.wake == RLI_NEVER);                                                                                   \
        assert_true((r)->out.status == RL_OK || (r)->out.top_up == 0);                                                             \
    } while (0)

#define assert_quiet(r)                                                                                                            \
    do {                                                                                                                           \
        assert_false((r)->out.finished);                                                                                           \
        assert_int_equal((r)->out.send | (r)->out.top_up, 0);                                                                      \
    } while (0)

/* ---- Asking ----------------------------------------------------------------------------------------------------------------- */

/* S5.4: sent to all N, also to nodes that did not have it. */
static void asks_all_nodes(void **state)
{
    struct run r;
    (void)state;
    started(&r, 3, (rli_span[]){600 * MS, RLI_GONE, 600 * MS});
    assert_false(r.out.finished);
    assert_int_equal(r.out.send, 7);
    assert_int_equal(r.out.kind, RLI_EXTEND);
    assert_int_equal(r.out.top_up, 0);
}

/* S5.1: refused locally once validity is over, even if the servers would agree: at valid_until exactly, not one tick before. */
static void an_expired_lease_is_refused_without_asking(void **state)
{
    struct run r;
    (void)state;
    started(&r, 3, (rli_span[]){600 * MS, 0, 0});
    assert_finished(&r, RL_LOST);
    started(&r, 3, (rli_span[]){600 * MS, 0, 1});
    assert_int_equal(r.out.send, 7);
    assert_true(r.out.wake == T0 + 1);
    started(&r, 1, (rli_span[]){RLI_GONE});
    assert_finished(&r, RL_LOST);
    started(&r, 1, (rli_span[]){-5000 * MS});
    assert_finished(&r, RL_LOST);
}

/* S4.1: within node_timeout, and never past the lease's own end. */
static void ends_at_the_node_timeout_or_with_the_lease(void **state)
{
    struct run r;
    (void)state;
    started(&r, 3, all_left);
    assert_true(r.out.wake == T0 + 250 * MS);
    wake(&r);
    assert_finished(&r, RL_E_NO_QUORUM);

    started(&r, 3, (rli_span[]){600 * MS, 90 * MS, 80 * MS});
    assert_true(r.out.wake == T0 + 90 * MS);
    wake(&r);
    assert_finished(&r, RL_LOST);
}

/* S5.5: at the node timeout it is not lost while q nodes have e > now: one tick decides. */
static void lost_at_the_end_only_if_the_lease_is_over(void **state)
{
    struct run r;
    (void)state;
    started(&r, 3, (rli_span[]){250 * MS + 1, 250 * MS + 1, RLI_GONE});
    wake(&r);
    assert_finished(&r, RL_E_NO_QUORUM);
    started(&r, 3, (rli_span[]){250 * MS, 250 * MS, RLI_GONE});
    wake(&r);
    assert_finished(&r, RL_LOST);
}

/* ---- Confirmations ---------------------------------------------------------------------------------------------------------- */

/* S5.7: OK at q confirmations. S1.2: at least ttl minus drift from the sending. */
static void succeeds_at_q_confirmations(void **state)
{
    struct run r;
    (void)state;
    started(&r, 3, all_left);
    r.now = T0 + 40 * MS;
    vote(&r, 2, YES);
    assert_quiet(&r);
    assert_true(rli_valid_until(&r.terms, r.e) == T0 + 600 * MS);
    vote(&r, 0, YES);
    assert_finished(&r, RL_OK);
    assert_true(r.e[0] == T0 + TTL - DRIFT && r.e[2] == T0 + TTL - DRIFT);
    assert_true(r.e[1] == T0 + 600 * MS);
    assert_true(rli_valid_until(&r.terms, r.e) == T0 + TTL - DRIFT);
}

/* S2.6: errors do not spoil it; S5.2: nodes that did not answer keep what they had. */
static void failed_nodes_keep_their_instant(void **state)
{
    static const enum said bad[] = {ERROR, DENIED, UNKNOWN, UNSENT, DIED};
    struct run r;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        started(&r, 3, all_left);
        vote(&r, 0, bad[i]);
        assert_quiet(&r);
        assert_true(r.e[0] == T0 + 600 * MS);
        vote(&r, 1, YES);
        vote(&r, 2, YES);
        assert_finished(&r, RL_OK);
        assert_int_equal(r.out.top_up, 0);
    }
}

/* S5.1: it never shortens: a shorter confirmation leaves the longer promise. */
static void a_shorter_extension_does_not_shorten(void **state)
{
    struct run r;
    (void)state;
    started(&r, 1, (rli_span[]){5000 * MS});
    vote(&r, 0, YES);
    assert_finished(&r, RL_OK);
    assert_true(r.e[0] == T0 + 5000 * MS);
}

/* S2.1: a node's second answer is no vote, and does not change what it is worth. */
static void a_second_answer_does_not_count(void **state)
{
    struct run r;
    (void)state;
    started(&r, 3, all_left);
    vote(&r, 0, YES);
    vote(&r, 0, YES);
    assert_quiet(&r);
    vote(&r, 0, ABSENT);
    assert_quiet(&r);
    assert_true(r.e[0] == T0 + TTL - DRIFT);
}

/* S1.4: min_validity must remain of the new lease. */
static void min_validity_must_remain(void **state)
{
    struct run r;
    (void)state;
    for (int late = 0; late <= 1; late++) {
        prepare(&r, 1, (rli_span[]){60 * MS})->m.ttl = 50 * MS; /* worth 47.5 ms: the old lease is longer */
        r.terms.min_validity = 10 * MS;
        begin(&r);
        r.now = T0 + 50 * MS + late;
        vote(&r, 0, YES);
        assert_finished(&r, late ? RL_E_TOO_SLOW : RL_OK);
        assert_true(r.e[0] == T0 + 60 * MS);
    }
}

/* ---- Loss ------------------------------------------------------------------------------------------------------------------- */

/* S5.2, S5.5: "not yours" is worth nothing from then on; lost as soon as fewer than q nodes keep it (case E12). */
static void lost_as_soon_as_too_few_nodes_keep_it(void **state)
{
    static const enum said gone[] = {OTHER, ABSENT};
    struct run r;
    (void)state;
    for (size_t i = 0; i < sizeof gone / sizeof *gone; i++) {
        started(&r, 3, (rli_span[]){600 * MS, 600 * MS, RLI_GONE});
        vote(&r, 1, gone[i]);
        assert_finished(&r, RL_LOST);
        assert_true(r.e[1] == RLI_GONE && r.e[0] == T0 + 600 * MS);

        started(&r, 3, all_left);
        vote(&r, 1, gone[i]);
        assert_quiet(&r);
        vote(&r, 0, gone[i]);
        assert_finished(&r, RL_LOST);
    }
}

/* S5.5: by e, not by counting answers: a node that did not count before makes up for one that is gone, if it came first. */
static void a_node_that_confirms_makes_up_for_one_that_is_gone(void **state)
{
    struct run r;
    (void)state;
    started(&r, 3, (rli_span[]){600 * MS, 600 * MS, RLI_GONE});
    vote(&r, 2, YES);
    vote(&r, 1, ABSENT);
    assert_quiet(&r);
    vote(&r, 0, YES);
    assert_finished(&r, RL_OK);
    assert_int_equal(r.out.top_up, 2);
}

/* S5.5: an expired node does not count as keeping it. */
static void expired_nodes_do_not_count(void **state)
{
    struct run r;
    (void)state;
    started(&r, 3, (rli_span[]){600 * MS, 100 * MS, 10 * MS});
    r.now = T0 + 10 * MS - 1;
    vote(&r, 1, ABSENT);
    assert_quiet(&r);
    started(&r, 3, (rli_span[]){600 * MS, 100 * MS, 10 * MS});
    r.now = T0 + 10 * MS;
    vote(&r, 1, ABSENT);
    assert_finished(&r, RL_LOST);
}

/* S5.5: an answer that comes when the lease is over revives nothing, though the deadline has not been noticed: exactly then. */
static void later_replies_never_revive_it(void **state)
{
    struct run r;
    (void)state;
    for (int late = 0; late <= 1; late++) {
        started(&r, 3, (rli_span[]){600 * MS, 90 * MS, 80 * MS});
        vote(&r, 2, YES);
        r.now = T0 + 600 * MS - 1 + late; /* the second largest of 600, 90 and 988 ms */
        vote(&r, 1, YES);
        assert_finished(&r, late ? RL_LOST : RL_OK);

        started(&r, 1, (rli_span[]){40 * MS});
        r.now = T0 + 40 * MS - 1 + late;
        vote(&r, 0, YES);
        assert_finished(&r, late ? RL_LOST : RL_OK);
    }
}

/* S5.7: a quorum out of reach, and the lease still valid: may be tried again (S5.2). */
static void too_few_confirmations_are_no_quorum(void **state)
{
    struct run r;
    (void)state;
    started(&r, 3, all_left);
    vote(&r, 0, ERROR);
    vote(&r, 1, UNKNOWN);
    assert_finished(&r, RL_E_NO_QUORUM);
    assert_true(rli_valid_until(&r.terms, r.e) == T0 + 600 * MS); /* case E4: the old deadline is untouched */

    started(&r, 3, all_left);
    vote(&r, 0, ABSENT);
    vote(&r, 1, ERROR);
    assert_finished(&r, RL_E_NO_QUORUM);

    started(&r, 3, all_left);
    vote(&r, 0, YES);
    wake(&r);
    assert_finished(&r, RL_E_NO_QUORUM);
}

/* S2.8 */
static void all_denied_is_auth(void **state)
{
    struct run r;
    (void)state;
    started(&r, 3, all_left);
    vote(&r, 0, DENIED);
    vote(&r, 1, DENIED);
    assert_finished(&r, RL_E_AUTH);
    started(&r, 3, all_left);
    vote(&r, 0, DENIED);
    vote(&r, 1, UNSENT);
    assert_finished(&r, RL_E_NO_QUORUM);
}

/* ---- Top-up ----------------------------------------------------------------------------------------------------------------- */

/* S5.3: only after q confirmations, only nodes that answered "absent", not those that another holds or that failed. */
static void tops_up_absent_nodes_after_a_quorum(void **state)
{
    struct run r;
    (void)state;
    started(&r, 5, all_left);
    vote(&r, 4, ABSENT);
    assert_quiet(&r);
    vote(&r, 0, YES);
    vote(&r, 1, YES);
    assert_quiet(&r);
    vote(&r, 2, YES);
    assert_finished(&r, RL_OK);
    assert_int_equal(r.out.top_up, 16);

    started(&r, 5, all_left);
    vote(&r, 3, OTHER);
    vote(&r, 4, ERROR);
    vote(&r, 0, YES);
    vote(&r, 1, YES);
    vote(&r, 2, YES);
    assert_finished(&r, RL_OK);
    assert_int_equal(r.out.top_up, 0);
}

/* S5.3: a top-up is no vote: absent nodes do not help to a quorum. */
static void absent_nodes_are_no_votes(void **state)
{
    struct run r;
    (void)state;
    started(&r, 3, all_left);
    vote(&r, 0, YES);
    vote(&r, 1, ABSENT);
    assert_quiet(&r);
    vote(&r, 2, ERROR);
    assert_finished(&r, RL_E_NO_QUORUM);
    assert_int_equal(r.out.top_up, 0);
}

/* S5.3: never where the lease would be too short. */
static void nothing_is_topped_up_without_validity(void **state)
{
    struct run r;
    (void)state;
    prepare(&r, 3, (rli_span[]){60 * MS, 60 * MS, 60 * MS})->m.ttl = 50 * MS;
    r.terms.min_validity = 10 * MS;
    begin(&r);
    vote(&r, 2, ABSENT);
    vote(&r, 0, YES);
    r.now = T0 + 51 * MS;
    vote(&r, 1, YES);
    assert_finished(&r, RL_E_TOO_SLOW);
}

/* Settling: nodes being asked again after their restart are waited for, and topped up (case E7); others are not waited for. */
static void settling_waits_for_restarted_nodes(void **state)
{
    struct run r;
    (void)state;
    prepare(&r, 5, all_left)->m.settle = true;
    begin(&r);
    r.resent = 8;
    vote(&r, 4, ABSENT);
    vote(&r, 0, YES);
    vote(&r, 1, YES);
    vote(&r, 2, YES);
    assert_false(r.out.finished);
    assert_int_equal(r.out.top_up, 16);
    r.now += 5 * MS;
    vote(&r, 3, ABSENT);
    assert_finished(&r, RL_OK);
    assert_int_equal(r.out.top_up, 8); /* and node 4 only once */

    prepare(&r, 3, all_left)->m.settle = true; /* node 2 is slow, not restarted */
    begin(&r);
    vote(&r, 0, YES);
    vote(&r, 1, YES);
    assert_finished(&r, RL_OK);

    started(&r, 3, all_left); /* without settle */
    r.resent = 4;
    vote(&r, 0, YES);
    vote(&r, 1, YES);
    assert_finished(&r, RL_OK);
}

/* Settling ends by any answer of the restarted node, and with its loss. */
static void settling_ends_with_any_answer(void **state)
{
    static const enum said answers[] = {YES, OTHER, ERROR, UNKNOWN, UNSENT, DIED};
    struct run r;
    (void)state;
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        prepare(&r, 3, all_left)->m.settle = true;
        begin(&r);
        r.resent = 2;
        vote(&r, 0, YES);
        vote(&r, 2, YES);
        assert_quiet(&r);
        vote(&r, 1, answers[i]);
        assert_finished(&r, RL_OK);
        assert_int_equal(r.out.top_up, 0);
    }
}

/* Settling stays within the deadline, exactly. */
static void settling_ends_at_the_deadline(void **state)
{
    struct run r;
    (void)state;
    prepare(&r, 3, all_left)->m.settle = true;
    begin(&r);
    r.resent = 2;
    vote(&r, 0, YES);
    vote(&r, 2, YES);
    assert_quiet(&r);
    assert_true(r.out.wake == T0 + 250 * MS);
    wake(&r);
    assert_finished(&r, RL_OK);
    assert_int_equal(r.out.top_up, 0);
}

/* S1.4: what is too short when settling ends is not success. */
static void settling_ends_in_success_only_with_validity(void **state)
{
    struct run r;
    (void)state;
    prepare(&r, 3, (rli_span[]){60 * MS, 60 * MS, 60 * MS})->m.ttl = 50 * MS;
    r.m.settle = true;
    r.terms.min_validity = 10 * MS;
    begin(&r);
    r.resent = 2;
    vote(&r, 0, YES);
    vote(&r, 2, YES);
    r.now = T0 + 51 * MS;
    vote(&r, 1, ABSENT);
    assert_finished(&r, RL_E_TOO_SLOW);
}

/* ---- Imported locks --------------------------------------------------------------------------------------------------------- */

/* S7.3: asked whatever the local clock says; valid once q nodes have confirmed. */
static void an_imported_lock_is_asked_regardless(void **state)
{
    struct run r;
    (void)state;
    prepare(&r, 3, (rli_span[]){RLI_GONE, RLI_GONE, RLI_GONE})->m.unproved = true;
    begin(&r);
    assert_int_equal(r.out.send, 7);
    assert_true(r.out.wake == T0 + 250 * MS);
    vote(&r, 0, YES);
    assert_quiet(&r);
    vote(&r, 1, ABSENT);
    assert_quiet(&r);
    vote(&r, 2, YES);
    assert_finished(&r, RL_OK);
    assert_int_equal(r.out.top_up, 2);
    assert_true(rli_valid_until(&r.terms, r.e) == T0 + TTL - DRIFT);
}

/* S7.3: it is lost when a quorum can no longer be ours, and only then. */
static void an_imported_lock_is_lost_by_answers_alone(void **state)
{
    struct run r;
    (void)state;
    prepare(&r, 4, (rli_span[]){RLI_GONE, RLI_GONE, RLI_GONE, RLI_GONE})->m.unproved = true;
    begin(&r);
    vote(&r, 0, ABSENT);
    assert_quiet(&r);
    vote(&r, 3, OTHER);
    assert_finished(&r, RL_LOST);

    prepare(&r, 3, (rli_span[]){RLI_GONE, RLI_GONE, RLI_GONE})->m.unproved = true;
    begin(&r);
    vote(&r, 0, ABSENT);
    vote(&r, 1, ERROR);
    assert_finished(&r, RL_E_NO_QUORUM);

    prepare(&r, 3, (rli_span[]){RLI_GONE, RLI_GONE, RLI_GONE})->m.unproved = true;
    begin(&r);
    vote(&r, 0, YES);
    wake(&r);
    assert_finished(&r, RL_E_NO_QUORUM);
}

/* ---- The rest --------------------------------------------------------------------------------------------------------------- */

/* Cancelled at any point: finished, nothing sent, the lease as it was. */
static void cancel_in_every_state(void **state)
{
    struct run r;
    (void)state;
    started(&r, 3, all_left);
    step(&r, RLI_CANCEL, 0, NULL);
    assert_finished(&r, RL_CANCELED);
    assert_true(rli_valid_until(&r.terms, r.e) == T0 + 600 * MS);

    prepare(&r, 3, all_left)->m.settle = true;
    begin(&r);
    r.resent = 2;
    vote(&r, 0, YES);
    vote(&r, 2, YES);
    step(&r, RLI_CANCEL, 0, NULL);
    assert_finished(&r, RL_CANCELED);
}

/* Answers to a clean-up and early wake-ups are none of its business. */
static void what_comes_at_the_wrong_time_changes_nothing(void **state)
{
    struct rli_answer answer = answer_of(ABSENT, T0, T0);
    struct run r;
    (void)state;
    started(&r, 1, all_left);
    step(&r, RLI_CLEANED, 0, &answer);
    assert_quiet(&r);
    deadline(&r);
    assert_quiet(&r);
    assert_true(r.e[0] == T0 + 600 * MS && r.out.wake == T0 + 250 * MS);
}

/* S2.2, S5.2: what a late answer does to e. */
static void late_answers_are_worth_what_they_say(void **state)
{
    struct rli_terms terms = terms_of(1);
    (void)state;
    for (int said = OPEN; said < SAID_COUNT; said++) {
        struct rli_answer answer = answer_of((enum said)said, T0, T0 + 9 * MS);
        rli_instant e[2] = {T0 + 7, T0 + 7};
        rli_extend_apply(&terms, e, 1, TTL, &answer);
        assert_true(e[0] == T0 + 7);
        assert_true(e[1] == (said == YES ? T0 + TTL - DRIFT : said == OTHER || said == ABSENT ? RLI_GONE : T0 + 7));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(asks_all_nodes),
        cmocka_unit_test(an_expired_lease_is_refused_without_asking),
        cmocka_unit_test(ends_at_the_node_timeout_or_with_the_lease),
        cmocka_unit_test(lost_at_the_end_only_if_the_lease_is_over),
        cmocka_unit_test(succeeds_at_q_confirmations),
        cmocka_unit_test(failed_nodes_keep_their_instant),
        cmocka_unit_test(a_shorter_extension_does_not_shorten),
        cmocka_unit_test(a_second_answer_does_not_count),
        cmocka_unit_test(min_validity_must_remain),
        cmocka_unit_test(lost_as_soon_as_too_few_nodes_keep_it),
        cmocka_unit_test(a_node_that_confirms_makes_up_for_one_that_is_gone),
        cmocka_unit_test(expired_nodes_do_not_count),
        cmocka_unit_test(later_replies_never_revive_it),
        cmocka_unit_test(too_few_confirmations_are_no_quorum),
        cmocka_unit_test(all_denied_is_auth),
        cmocka_unit_test(tops_up_absent_nodes_after_a_quorum),
        cmocka_unit_test(absent_nodes_are_no_votes),
        cmocka_unit_test(nothing_is_topped_up_without_validity),
        cmocka_unit_test(settling_waits_for_restarted_nodes),
        cmocka_unit_test(settling_ends_with_any_answer),
        cmocka_unit_test(settling_ends_at_the_deadline),
        cmocka_unit_test(settling_ends_in_success_only_with_validity),
        cmocka_unit_test(an_imported_lock_is_asked_regardless),
        cmocka_unit_test(an_imported_lock_is_lost_by_answers_alone),
        cmocka_unit_test(cancel_in_every_state),
        cmocka_unit_test(what_comes_at_the_wrong_time_changes_nothing),
        cmocka_unit_test(late_answers_are_worth_what_they_say),
    };
    return cmocka_run_group_tests_name("extend", tests, NULL, NULL);
}
