/* test_release.c - the machine of a release, rule by rule, in virtual time: whether the lock is free, and whether it was ours until
 * the call. */
#include "release.h"
#include "unit.h"

#include <string.h>

struct run {
    struct rli_terms terms;
    struct rli_release m;
    rli_instant e[RL_MAX_NODES];
    rli_instant now;
    uint32_t unsent;
    struct rli_actions out;
};

static void step(struct run *r, enum rli_event event, uint32_t node, const struct rli_answer *answer)
{
    struct rli_input in = {.event = event, .node = node, .answer = answer, .unsent = r->unsent};
    memset(&r->out, 0xa5, sizeof r->out);
    rli_release_step(&r->m, r->now, &in, &r->out);
    assert_int_equal(r->out.clean | r->out.top_up, 0);
    assert_false(r->out.fresh_token);
}

/* A lock whose nodes keep it for that long from now (RLI_GONE = not at all). */
static struct run *prepare(struct run *r, uint32_t nodes, const rli_span *left)
{
    *r = (struct run){.terms = terms_of(nodes), .now = T0};
    r->m = (struct rli_release){.terms = &r->terms, .e = r->e};
    for (uint32_t i = 0; i < nodes; i++)
        r->e[i] = left[i] == RLI_GONE ? RLI_GONE : T0 + left[i];
    return r;
}

static void begin(struct run *r)
{
    step(r, RLI_START, 0, NULL);
}

static const rli_span all_left[] = {600 * MS, 600 * MS, 600 * MS, 600 * MS, 600 * MS};
static const rli_span two_left[] = {600 * MS, 600 * MS, RLI_GONE}; /* granted by two of three */
static const rli_span none_left[] = {-1, -1, -1, -1, -1};

static struct run *started(struct run *r, uint32_t nodes, const rli_span *left)
{
    begin(prepare(r, nodes, left));
    return r;
}

static struct run *imported(struct run *r, uint32_t nodes)
{
    prepare(r, nodes, none_left)->m.unproved = true;
    begin(r);
    return r;
}

static void vote(struct run *r, uint32_t node, enum said said)
{
    struct rli_answer answer = answer_of(said, T0, r->now);
    step(r, RLI_VOTE, node, &answer);
}

/* To a request sent again after its connection broke. */
static void vote_resent(struct run *r, uint32_t node, enum said said)
{
    struct rli_answer answer = answer_of(said, T0, r->now);
    answer.resent = true;
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
    assert_false(r->out.finished || r->out.send);
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
    } while (0)

#define assert_quiet(r)                                                                                                            \
    do {                                                                                                                           \
        assert_false((r)->out.finished);                                                                                           \
        assert_int_equal((r)->out.send, 0);                                                                                        \
    } while (0)

/* S6.1: to all N nodes, bounded. S4.1: within node_timeout, exactly. */
static void asks_all_nodes_for_at_most_the_node_timeout(void **state)
{
    struct run r;
    (void)state;
    started(&r, 3, two_left);
    assert_false(r.out.finished);
    assert_int_equal(r.out.send, 7);
    assert_int_equal(r.out.kind, RLI_RELEASE);
    assert_true(r.out.wake == T0 + 250 * MS);
    wake(&r);
    assert_finished(&r, RL_E_NO_QUORUM); /* case R5 */
}

/* S6.2: OK as soon as q nodes no longer hold our token (case R3). */
static void succeeds_when_a_quorum_has_deleted(void **state)
{
    struct run r;
    (void)state;
    started(&r, 5, all_left);
    vote(&r, 4, YES);
    vote(&r, 0, YES);
    assert_quiet(&r);
    vote(&r, 2, YES);
    assert_finished(&r, RL_OK);
    started(&r, 1, all_left);
    vote(&r, 0, YES);
    assert_finished(&r, RL_OK);
}

/* S6.2: a node that never granted is as good as one that deleted: it does not hold our token. */
static void nodes_that_never_had_it_count_as_free(void **state)
{
    struct run r;
    (void)state;
    started(&r, 3, two_left);
    vote(&r, 2, ABSENT);
    vote(&r, 0, YES);
    assert_quiet(&r); /* node 1 may still say that it was lost */
    vote(&r, 1, UNKNOWN);
    assert_finished(&r, RL_OK);

    started(&r, 3, two_left);
    vote(&r, 2, OTHER);
    vote(&r, 0, YES);
    vote(&r, 1, YES);
    assert_finished(&r, RL_OK);
}

/* S6.2: not OK while an open answer may still turn it into a loss. */
static void success_is_not_told_too_early(void **state)
{
    struct run r;
    (void)state;
    started(&r, 4, all_left);
    vote(&r, 0, YES);
    vote(&r, 1, ABSENT);
    vote(&r, 2, YES);
    assert_quiet(&r);
    vote(&r, 3, YES);
    assert_finished(&r, RL_OK);

    started(&r, 3, two_left);
    vote(&r, 2, ABSENT);
    vote(&r, 0, YES);
    assert_quiet(&r); /* two are free, but one alone had it for certain */
    vote(&r, 1, ABSENT);
    assert_finished(&r, RL_LOST);
}

/* S6.2: lost if fewer than q nodes that kept it at the call remain, once those that no longer had it are taken away. */
static void lost_when_too_few_nodes_still_had_it(void **state)
{
    static const enum said gone[] = {OTHER, ABSENT};
    struct run r;
    (void)state;
    for (size_t i = 0; i < sizeof gone / sizeof *gone; i++) {
        started(&r, 3, two_left);
        vote(&r, 0, gone[i]);
        assert_quiet(&r);
        vote(&r, 2, gone[i]);
        assert_finished(&r, RL_LOST);

        started(&r, 3, all_left);
        vote(&r, 0, gone[i]);
        assert_quiet(&r);
        vote(&r, 2, gone[i]);
        assert_finished(&r, RL_LOST);

        started(&r, 1, all_left);
        vote(&r, 0, gone[i]);
        assert_finished(&r, RL_LOST);
    }
}

/* A node that deleted it proves that it was ours there until now, whatever was known of it; in whatever order they answer. */
static void a_deleted_key_proves_that_it_was_held(void **state)
{
    static const uint32_t orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    static const enum said said[] = {ABSENT, YES, YES};
    struct run r;
    (void)state;
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        started(&r, 3, two_left);
        for (size_t k = 0; k < 3 && !r.out.finished; k++)
            vote(&r, orders[i][k], said[orders[i][k]]);
        assert_finished(&r, RL_OK);
    }
    started(&r, 3, two_left);
    vote(&r, 0, ABSENT);
    assert_quiet(&r);
    vote(&r, 2, UNKNOWN);
    assert_finished(&r, RL_LOST);
}

/* S6.2: B(at the call) counts, not the time of the answers. */
static void a_lease_that_ends_during_the_release_is_no_loss(void **state)
{
    struct run r;
    (void)state;
    started(&r, 3, (rli_span[]){1, 1, RLI_GONE});
    r.now = T0 + 100 * MS;
    vote(&r, 0, YES);
    vote(&r, 1, YES);
    assert_finished(&r, RL_OK);

    started(&r, 3, (rli_span[]){0, 0, RLI_GONE}); /* over at the call, exactly */
    vote(&r, 0, ERROR);
    assert_quiet(&r);
    vote(&r, 1, YES);
    assert_quiet(&r);
    vote(&r, 2, ABSENT);
    assert_finished(&r, RL_LOST);
}

/* S6.2, S6.3: after valid_until it is lost, unless q nodes show that they had it to the last. Case R1: in one round trip. */
static void a_late_release_is_lost_without_q_deletions(void **state)
{
    struct run r;
    (void)state;
    started(&r, 3, none_left);
    assert_int_equal(r.out.send, 7);
    vote(&r, 0, ABSENT);
    assert_quiet(&r);
    vote(&r, 1, ABSENT);
    assert_finished(&r, RL_LOST);

    started(&r, 3, none_left); /* case R2 */
    vote(&r, 0, OTHER);
    vote(&r, 2, OTHER);
    assert_finished(&r, RL_LOST);

    started(&r, 3, none_left);
    vote(&r, 0, YES);
    vote(&r, 1, ABSENT);
    assert_quiet(&r);
    vote(&r, 2, YES);
    assert_finished(&r, RL_OK);

    started(&r, 3, none_left);
    vote(&r, 0, UNKNOWN);
    vote(&r, 1, ERROR);
    assert_finished(&r, RL_LOST);

    started(&r, 3, none_left);
    vote(&r, 0, YES);
    wake(&r);
    assert_finished(&r, RL_LOST);
}

/* S6.2: else NO_QUORUM; AUTH if all failures are refusals (case R4). */
static void too_few_answers_are_no_quorum(void **state)
{
    struct run r;
    (void)state;
    started(&r, 3, all_left);
    vote(&r, 0, ERROR);
    assert_quiet(&r);
    vote(&r, 1, UNSENT);
    assert_finished(&r, RL_E_NO_QUORUM);

    started(&r, 3, all_left);
    vote(&r, 0, DENIED);
    vote(&r, 1, DENIED);
    assert_finished(&r, RL_E_AUTH);

    started(&r, 3, all_left);
    vote(&r, 0, YES);
    wake(&r);
    assert_finished(&r, RL_E_NO_QUORUM);

    started(&r, 3, all_left);
    vote(&r, 0, YES);
    vote(&r, 2, DENIED);
    r.unsent = 2;
    wake(&r);
    assert_finished(&r, RL_E_NO_QUORUM);
}

/* S6.2: at the deadline, what is known decides. */
static void at_the_deadline_what_is_known_decides(void **state)
{
    struct run r;
    (void)state;
    started(&r, 3, two_left);
    vote(&r, 2, ABSENT);
    vote(&r, 0, YES);
    assert_quiet(&r);
    wake(&r);
    assert_finished(&r, RL_OK);
}

/* S6.2: "absent" to a release sent again after a lost connection counts as deleted while B() < valid_until, exactly. */
static void absent_to_a_repeated_release_counts_as_deleted(void **state)
{
    struct run r;
    (void)state;
    started(&r, 1, all_left);
    vote_resent(&r, 0, ABSENT);
    assert_finished(&r, RL_OK);

    for (int late = 0; late <= 1; late++) {
        started(&r, 1, (rli_span[]){100 * MS});
        r.now = T0 + 100 * MS - 1 + late;
        vote_resent(&r, 0, ABSENT);
        assert_finished(&r, late ? RL_LOST : RL_OK);
    }

    imported(&r, 1); /* nothing is known of when an imported one was valid */
    vote_resent(&r, 0, ABSENT);
    assert_finished(&r, RL_LOST);
    started(&r, 1, none_left);
    vote_resent(&r, 0, ABSENT);
    assert_finished(&r, RL_LOST);
}

/* S6.2: so does "another's", who can only have taken it after the first release; but not what is no lock at all (S2.4). */
static void a_successor_found_by_a_repeated_release_proves_it(void **state)
{
    struct rli_answer wrong_type = answer_of(OTHER, T0, T0);
    struct run r;
    (void)state;
    for (int late = 0; late <= 1; late++) {
        started(&r, 1, (rli_span[]){100 * MS});
        r.now = T0 + 100 * MS - 1 + late;
        vote_resent(&r, 0, OTHER);
        assert_finished(&r, late ? RL_LOST : RL_OK);
    }
    started(&r, 1, all_left);
    wrong_type.resent = true;
    wrong_type.text = "WRONGTYPE";
    wrong_type.text_len = 9;
    step(&r, RLI_VOTE, 0, &wrong_type);
    assert_finished(&r, RL_LOST);
}

/* S5.5, S6.3: once the holder was told that it is lost, no answer makes it anything else; the nodes are still cleaned. */
static void what_was_told_to_be_lost_stays_lost(void **state)
{
    struct run r;
    (void)state;
    prepare(&r, 3, none_left)->m.lost = true;
    begin(&r);
    assert_int_equal(r.out.send, 7);
    vote(&r, 0, YES);
    assert_quiet(&r);
    vote(&r, 1, YES);
    assert_finished(&r, RL_LOST);

    prepare(&r, 3, none_left)->m.lost = true;
    begin(&r);
    vote(&r, 0, YES);
    vote(&r, 1, ERROR);
    assert_quiet(&r);
    vote(&r, 2, UNKNOWN);
    assert_finished(&r, RL_LOST);

    prepare(&r, 3, none_left)->m.lost = true;
    begin(&r);
    wake(&r);
    assert_finished(&r, RL_LOST);

    prepare(&r, 3, none_left)->m.lost = true;
    r.m.no_wait = true;
    begin(&r);
    deadline(&r);
    assert_finished(&r, RL_LOST);
}

/* S7.3, S6.2: of an imported, never confirmed lock the answers alone tell. */
static void an_imported_lock_is_judged_by_the_answers(void **state)
{
    struct run r;
    (void)state;
    imported(&r, 3);
    vote(&r, 0, YES);
    vote(&r, 1, YES);
    assert_finished(&r, RL_OK);

    imported(&r, 3);
    vote(&r, 0, YES);
    vote(&r, 1, ABSENT);
    assert_quiet(&r);
    vote(&r, 2, OTHER);
    assert_finished(&r, RL_LOST);

    imported(&r, 3);
    vote(&r, 0, ABSENT);
    vote(&r, 1, ERROR);
    assert_quiet(&r); /* one is gone, one is open: two are no longer ours, perhaps */
    vote(&r, 2, YES);
    assert_finished(&r, RL_OK);

    imported(&r, 3);
    wake(&r);
    assert_finished(&r, RL_E_NO_QUORUM);
}

/* RL_NO_WAIT: done when it was sent to a quorum, without an answer. */
static void without_waiting_sent_is_done(void **state)
{
    static const struct {
        uint32_t unsent;
        int status;
    } cases[] = {{0, RL_OK}, {1, RL_OK}, {1 | 4, RL_E_NO_QUORUM}, {7, RL_E_NO_QUORUM}};
    struct run r;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        prepare(&r, 3, two_left)->m.no_wait = true;
        begin(&r);
        assert_int_equal(r.out.send, 7);
        r.unsent = cases[i].unsent;
        deadline(&r); /* right after the flush */
        assert_finished(&r, cases[i].status);
    }
}

/* RL_NO_WAIT: a node that failed at once was not sent to; one that answered was; an expired lease is lost all the same. */
static void without_waiting_early_answers_count(void **state)
{
    struct run r;
    (void)state;
    prepare(&r, 3, all_left)->m.no_wait = true;
    begin(&r);
    vote(&r, 0, UNSENT);
    assert_quiet(&r);
    r.unsent = 2;
    deadline(&r);
    assert_finished(&r, RL_E_NO_QUORUM);

    prepare(&r, 3, all_left)->m.no_wait = true;
    begin(&r);
    vote(&r, 0, YES);
    r.unsent = 2;
    deadline(&r);
    assert_finished(&r, RL_OK);

    prepare(&r, 3, none_left)->m.no_wait = true;
    begin(&r);
    deadline(&r);
    assert_finished(&r, RL_LOST);

    prepare(&r, 3, none_left)->m.no_wait = true;
    r.m.unproved = true;
    begin(&r);
    deadline(&r);
    assert_finished(&r, RL_OK);
}

/* A release cannot be cancelled; early wake-ups and answers to clean-ups are none of its business. */
static void what_comes_at_the_wrong_time_changes_nothing(void **state)
{
    struct rli_answer answer = answer_of(ABSENT, T0, T0);
    struct run r;
    (void)state;
    started(&r, 1, all_left);
    step(&r, RLI_CANCEL, 0, NULL);
    assert_quiet(&r);
    step(&r, RLI_CLEANED, 0, &answer);
    assert_quiet(&r);
    deadline(&r);
    assert_quiet(&r);
    assert_true(r.out.wake == T0 + 250 * MS);
    vote(&r, 0, YES);
    assert_finished(&r, RL_OK);
}

/* S2.1 */
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
    vote(&r, 1, YES);
    assert_finished(&r, RL_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(asks_all_nodes_for_at_most_the_node_timeout),
        cmocka_unit_test(succeeds_when_a_quorum_has_deleted),
        cmocka_unit_test(nodes_that_never_had_it_count_as_free),
        cmocka_unit_test(success_is_not_told_too_early),
        cmocka_unit_test(lost_when_too_few_nodes_still_had_it),
        cmocka_unit_test(a_deleted_key_proves_that_it_was_held),
        cmocka_unit_test(a_lease_that_ends_during_the_release_is_no_loss),
        cmocka_unit_test(a_late_release_is_lost_without_q_deletions),
        cmocka_unit_test(too_few_answers_are_no_quorum),
        cmocka_unit_test(at_the_deadline_what_is_known_decides),
        cmocka_unit_test(absent_to_a_repeated_release_counts_as_deleted),
        cmocka_unit_test(a_successor_found_by_a_repeated_release_proves_it),
        cmocka_unit_test(what_was_told_to_be_lost_stays_lost),
        cmocka_unit_test(an_imported_lock_is_judged_by_the_answers),
        cmocka_unit_test(without_waiting_sent_is_done),
        cmocka_unit_test(without_waiting_early_answers_count),
        cmocka_unit_test(what_comes_at_the_wrong_time_changes_nothing),
        cmocka_unit_test(a_second_answer_does_not_count),
    };
    return cmocka_run_group_tests_name("release", tests, NULL, NULL);
}
