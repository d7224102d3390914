/* test_ballot.c - counting votes, and the verdict of an acquisition: every vector of votes for 1 to 5 nodes and every quorum,
 * against an oracle that counts from scratch. */
#include "oracle.h"
#include "unit.h"

static struct rli_ballot ballot_of(const enum said *said, uint32_t nodes)
{
    struct rli_ballot ballot;
    rli_ballot_open(&ballot, UINT32_MAX >> (32 - nodes));
    for (uint32_t i = 0; i < nodes; i++) {
        struct rli_answer answer = answer_of(said[i], T0, T0 + 1);
        if (said[i] != OPEN)
            assert_true(rli_ballot_count(&ballot, i, &answer));
    }
    return ballot;
}

static int verdict_of(const enum said *said, uint32_t nodes)
{
    struct rli_terms terms = terms_of(nodes);
    struct rli_ballot ballot = ballot_of(said, nodes);
    return rli_ballot_verdict(&ballot, &terms);
}

/* S2.8 */
static void verdict_of_every_vector(void **state)
{
    (void)state;
    for (uint32_t n = 1, cases = SAID_COUNT; n <= 5; n++, cases *= SAID_COUNT)
        for (uint32_t code = 0; code < cases; code++) {
            enum said said[5];
            for (uint32_t i = 0, rest = code; i < n; i++, rest /= SAID_COUNT)
                said[i] = (enum said)(rest % SAID_COUNT);
            struct rli_ballot ballot = ballot_of(said, n);
            struct rli_terms terms = terms_of(n);
            for (; terms.quorum <= n; terms.quorum++)
                assert_int_equal(rli_ballot_verdict(&ballot, &terms), oracle_verdict(said, n, terms.quorum));
        }
}

/* S2.8, S2.6 */
static void q_grants_win_whatever_the_others_say(void **state)
{
    (void)state;
    assert_int_equal(verdict_of((enum said[]){YES}, 1), RL_OK);
    assert_int_equal(verdict_of((enum said[]){YES, ERROR, YES}, 3), RL_OK);
    assert_int_equal(verdict_of((enum said[]){YES, OTHER, OPEN}, 3), RLI_UNDECIDED);
    assert_int_equal(verdict_of((enum said[]){OPEN, YES, DENIED, YES, YES}, 5), RL_OK);
}

/* S2.8: a tie on even N must settle. */
static void ties_settle(void **state)
{
    (void)state;
    assert_int_equal(verdict_of((enum said[]){YES, OTHER}, 2), RL_BUSY);
    assert_int_equal(verdict_of((enum said[]){YES, OTHER, YES, OTHER}, 4), RL_BUSY);
    assert_int_equal(verdict_of((enum said[]){YES, OTHER, OPEN, OTHER}, 4), RL_BUSY);
    assert_int_equal(verdict_of((enum said[]){YES, ERROR}, 2), RL_E_NO_QUORUM);
    assert_int_equal(verdict_of((enum said[]){YES, UNKNOWN, YES, UNSENT}, 4), RL_E_NO_QUORUM);
}

/* S2.8, S4.2: held by another and no quorum of nodes are different results. */
static void busy_and_no_quorum_differ(void **state)
{
    (void)state;
    assert_int_equal(verdict_of((enum said[]){OTHER, OTHER, OPEN}, 3), RL_BUSY);
    assert_int_equal(verdict_of((enum said[]){OTHER, ERROR, YES}, 3), RL_BUSY);
    assert_int_equal(verdict_of((enum said[]){OTHER, ERROR, UNSENT}, 3), RL_E_NO_QUORUM);
    assert_int_equal(verdict_of((enum said[]){YES, OTHER, OTHER}, 3), RL_BUSY);
    assert_int_equal(verdict_of((enum said[]){DIED, OPEN, DIED}, 3), RL_E_NO_QUORUM);
}

/* S2.8 */
static void auth_if_all_failures_are_denials(void **state)
{
    (void)state;
    assert_int_equal(verdict_of((enum said[]){DENIED}, 1), RL_E_AUTH);
    assert_int_equal(verdict_of((enum said[]){DENIED, OTHER, DENIED}, 3), RL_E_AUTH);
    assert_int_equal(verdict_of((enum said[]){DENIED, ERROR, OPEN}, 3), RL_E_NO_QUORUM);
    assert_int_equal(verdict_of((enum said[]){DENIED, OTHER, OTHER}, 3), RL_BUSY);
    assert_int_equal(verdict_of((enum said[]){DENIED, UNSENT, DENIED}, 3), RL_E_NO_QUORUM);
}

/* S2.1: one vote per node. */
static void a_node_votes_once(void **state)
{
    struct rli_answer yes = answer_of(YES, T0, T0 + 1), died = answer_of(DIED, T0, T0 + 1);
    struct rli_ballot ballot;

    (void)state;
    rli_ballot_open(&ballot, 3);
    assert_true(rli_ballot_count(&ballot, 0, &yes));
    assert_false(rli_ballot_count(&ballot, 0, &yes));
    assert_false(rli_ballot_count(&ballot, 0, &died));
    assert_false(rli_ballot_count(&ballot, 2, &yes)); /* was not asked */
    assert_int_equal(ballot.yes, 1);
    assert_int_equal(ballot.open, 2);
    assert_int_equal(ballot.failed | ballot.died | ballot.unknown, 0);
}

/* S2.3: unknown is a failure of its own kind, never a grant. */
static void failures_keep_their_kind(void **state)
{
    enum said said[] = {ERROR, DENIED, UNKNOWN, UNSENT, DIED};
    struct rli_ballot ballot = ballot_of(said, 5);
    (void)state;
    assert_int_equal(ballot.yes | ballot.other | ballot.absent | ballot.open, 0);
    assert_int_equal(ballot.failed, 31);
    assert_int_equal(ballot.denied, 2);
    assert_int_equal(ballot.unknown, 4 | 16);
    assert_int_equal(ballot.died, 16);
}

/* S2.4: an unexpected type of reply is a failure that may have acted. */
static void a_reply_that_is_no_answer_may_have_acted(void **state)
{
    struct rli_answer garbage = answer_of(ERROR, T0, T0 + 1);
    struct rli_ballot ballot;
    (void)state;
    garbage.unknown = true;
    rli_ballot_open(&ballot, 1);
    assert_true(rli_ballot_count(&ballot, 0, &garbage));
    assert_int_equal(ballot.failed & ballot.unknown, 1);
}

/* S2.1: late, unreachable and pending nodes, and outcomes from the future, are votes against. */
static void every_other_outcome_is_a_vote_against(void **state)
{
    (void)state;
    for (int outcome = RL_NODE_NOT_ASKED; outcome <= RL_NODE_PENDING + 5; outcome++) {
        struct rli_answer answer = {.outcome = outcome, .sent = RLI_GONE, .at = RLI_GONE};
        struct rli_ballot ballot;
        bool counts = outcome == RL_NODE_YES || outcome == RL_NODE_HELD_BY_OTHER || outcome == RL_NODE_ABSENT;
        rli_ballot_open(&ballot, 1);
        assert_true(rli_ballot_count(&ballot, 0, &answer));
        assert_int_equal(ballot.failed, !counts);
        assert_int_equal(ballot.yes, outcome == RL_NODE_YES);
    }
}

/* S2.3, S3.1: when time is up what was sent may have acted, what was never written has not. */
static void time_up_makes_open_votes_unknown(void **state)
{
    enum said said[] = {YES, OPEN, OPEN, OTHER, OPEN};
    struct rli_ballot ballot = ballot_of(said, 5);
    (void)state;
    rli_ballot_close(&ballot, 4 | 1); /* node 2 waits for a connection; node 0 has voted */
    assert_int_equal(ballot.open, 0);
    assert_int_equal(ballot.yes, 1);
    assert_int_equal(ballot.failed, 2 | 4 | 16);
    assert_int_equal(ballot.unknown, 2 | 16);
    assert_int_equal(ballot.denied | ballot.died, 0);
}

/* S4.3 needs the slowest answer; what was lost has none. */
static void the_slowest_answer_is_kept(void **state)
{
    struct rli_answer fast = answer_of(YES, T0 + 5, T0 + 7), slow = answer_of(OTHER, T0 + 1, T0 + 9),
                      lost = answer_of(UNKNOWN, T0, T0 + 500), unsent = answer_of(UNSENT, T0, T0 + 500);
    struct rli_ballot ballot;

    (void)state;
    rli_ballot_open(&ballot, 15);
    assert_true(rli_ballot_count(&ballot, 3, &lost) && rli_ballot_count(&ballot, 2, &unsent));
    assert_true(ballot.slowest == 0);
    assert_true(rli_ballot_count(&ballot, 1, &slow) && rli_ballot_count(&ballot, 0, &fast));
    assert_true(ballot.slowest == 8);
}

/* S2.8, for extend and release. */
static void failure_is_auth_only_if_all_refused(void **state)
{
    (void)state;
    struct rli_ballot none = ballot_of((enum said[]){YES, OTHER}, 2), all = ballot_of((enum said[]){DENIED, DENIED}, 2),
                      some = ballot_of((enum said[]){DENIED, DIED}, 2);
    assert_int_equal(rli_ballot_failure(&none), RL_E_NO_QUORUM);
    assert_int_equal(rli_ballot_failure(&all), RL_E_AUTH);
    assert_int_equal(rli_ballot_failure(&some), RL_E_NO_QUORUM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verdict_of_every_vector),
        cmocka_unit_test(q_grants_win_whatever_the_others_say),
        cmocka_unit_test(ties_settle),
        cmocka_unit_test(busy_and_no_quorum_differ),
        cmocka_unit_test(auth_if_all_failures_are_denials),
        cmocka_unit_test(a_node_votes_once),
        cmocka_unit_test(failures_keep_their_kind),
        cmocka_unit_test(a_reply_that_is_no_answer_may_have_acted),
        cmocka_unit_test(every_other_outcome_is_a_vote_against),
        cmocka_unit_test(time_up_makes_open_votes_unknown),
        cmocka_unit_test(the_slowest_answer_is_kept),
        cmocka_unit_test(failure_is_auth_only_if_all_refused),
    };
    return cmocka_run_group_tests_name("ballot", tests, NULL, NULL);
}
