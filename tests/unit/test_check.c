/* test_check.c - the machine of rl_client_check: four steps, each on the nodes that passed the one before, each for at most
 * node_timeout; and its verdict. */
#include "check.h"
#include "unit.h"

#include <string.h>

static const enum rli_kind kinds[] = {RLI_INFO, RLI_SET, RLI_EXTEND, RLI_RELEASE};

struct run {
    struct rli_terms terms;
    struct rli_check m;
    rli_instant now;
    struct rli_actions out;
};

static void step(struct run *r, enum rli_event event, uint32_t node, const struct rli_answer *answer)
{
    struct rli_input in = {.event = event, .node = node, .answer = answer};
    memset(&r->out, 0xa5, sizeof r->out);
    rli_check_step(&r->m, r->now, &in, &r->out);
    assert_int_equal(r->out.clean | r->out.top_up, 0);
    assert_false(r->out.fresh_token);
}

static struct run *started(struct run *r, uint32_t nodes)
{
    *r = (struct run){.terms = terms_of(nodes), .now = T0};
    r->m = (struct rli_check){.terms = &r->terms};
    step(r, RLI_START, 0, NULL);
    return r;
}

static void vote(struct run *r, uint32_t node, enum said said)
{
    struct rli_answer answer = answer_of(said, r->now, r->now);
    step(r, RLI_VOTE, node, &answer);
}

static void votes(struct run *r, const enum said *said)
{
    for (uint32_t i = 0; i < r->terms.nodes; i++)
        vote(r, i, said[i]);
}

#define assert_asks(r, mask, what)                                                                                                 \
    do {                                                                                                                           \
        assert_false((r)->out.finished);                                                                                           \
        assert_int_equal((r)->out.send, (mask));                                                                                   \
        assert_int_equal((r)->out.kind, (what));                                                                                   \
        assert_true((r)->out.wake == (r)->now + 250 * MS);                                                                         \
    } while (0)

#define assert_finished(r, expected)                                                                                               \
    do {                                                                                                                           \
        assert_true((r)->out.finished);                                                                                            \
        assert_int_equal((r)->out.status, (expected));                                                                             \
        assert_int_equal((r)->out.send, 0);                                                                                        \
    } while (0)

#define assert_quiet(r)                                                                                                            \
    do {                                                                                                                           \
        assert_false((r)->out.finished);                                                                                           \
        assert_int_equal((r)->out.send, 0);                                                                                        \
    } while (0)

/* The whole protocol, in order, on all nodes. */
static void every_command_is_tried_on_every_node(void **state)
{
    struct run r;
    (void)state;
    started(&r, 3);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        assert_asks(&r, 7, kinds[i]);
        vote(&r, 1, YES);
        assert_quiet(&r);
        vote(&r, 2, YES);
        assert_quiet(&r);
        r.now += 7 * MS;
        vote(&r, 0, YES);
    }
    assert_finished(&r, RL_OK);
}

/* One node down, at any step, in any way but refusal: still fine with a quorum; it is not asked again. */
static void a_quorum_of_fine_nodes_is_enough(void **state)
{
    static const enum said bad[] = {OTHER, ABSENT, ERROR, UNKNOWN, UNSENT, DIED};
    struct run r;
    (void)state;
    for (size_t at = 0; at < sizeof kinds / sizeof *kinds; at++)
        for (size_t b = 0; b < sizeof bad / sizeof *bad; b++) {
            started(&r, 3);
            for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
                assert_asks(&r, i > at ? 5 : 7, kinds[i]);
                if (i <= at)
                    vote(&r, 1, i == at ? bad[b] : YES);
                vote(&r, 0, YES);
                vote(&r, 2, YES);
            }
            assert_finished(&r, RL_OK);
        }
}

/* S2.1: fewer than a quorum fine. */
static void fewer_than_a_quorum_is_no_quorum(void **state)
{
    struct run r;
    (void)state;
    started(&r, 3);
    votes(&r, (enum said[]){YES, UNSENT, YES});
    assert_asks(&r, 5, RLI_SET);
    vote(&r, 0, YES);
    vote(&r, 2, ERROR);
    assert_asks(&r, 1, RLI_EXTEND);
    vote(&r, 0, YES);
    assert_asks(&r, 1, RLI_RELEASE);
    vote(&r, 0, YES);
    assert_finished(&r, RL_E_NO_QUORUM);

    started(&r, 3); /* nobody is left to ask */
    votes(&r, (enum said[]){UNSENT, UNSENT, UNSENT});
    assert_finished(&r, RL_E_NO_QUORUM);
}

/* Case R4: one refusal, at any step, is told, whatever the others say. */
static void one_refusal_is_auth(void **state)
{
    struct run r;
    (void)state;
    for (size_t at = 0; at < sizeof kinds / sizeof *kinds; at++) {
        started(&r, 3);
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
            assert_asks(&r, i > at ? 6 : 7, kinds[i]);
            if (i <= at)
                vote(&r, 0, i == at ? DENIED : YES);
            vote(&r, 1, YES);
            vote(&r, 2, YES);
        }
        assert_finished(&r, RL_E_AUTH);
    }
    started(&r, 3);
    votes(&r, (enum said[]){UNSENT, DENIED, UNSENT});
    assert_finished(&r, RL_E_AUTH);
}

/* Each step for at most node_timeout, exactly; so the call for at most four. */
static void each_step_ends_at_the_node_timeout(void **state)
{
    struct run r;
    (void)state;
    started(&r, 3);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        assert_asks(&r, i ? 3 : 7, kinds[i]);
        vote(&r, 0, YES);
        vote(&r, 1, YES);
        if (i)
            continue;
        assert_quiet(&r);
        r.now = T0 + 250 * MS - 1;
        step(&r, RLI_DEADLINE, 0, NULL);
        assert_quiet(&r);
        assert_true(r.out.wake == T0 + 250 * MS);
        r.now = T0 + 250 * MS;
        step(&r, RLI_DEADLINE, 0, NULL);
    }
    assert_finished(&r, RL_OK);

    started(&r, 3);
    r.now += 250 * MS;
    step(&r, RLI_DEADLINE, 0, NULL);
    assert_finished(&r, RL_E_NO_QUORUM);
}

/* S2.1: one vote per node and step; what comes from elsewhere changes nothing; it cannot be cancelled. */
static void what_comes_at_the_wrong_time_changes_nothing(void **state)
{
    struct rli_answer answer = answer_of(DENIED, T0, T0);
    struct run r;
    (void)state;
    started(&r, 2);
    vote(&r, 0, YES);
    vote(&r, 0, DENIED);
    assert_quiet(&r);
    step(&r, RLI_CANCEL, 0, NULL);
    assert_quiet(&r);
    step(&r, RLI_CLEANED, 1, &answer);
    assert_quiet(&r);
    assert_true(r.out.wake == T0 + 250 * MS);
    vote(&r, 1, ERROR);
    assert_asks(&r, 1, RLI_SET);
    vote(&r, 1, DENIED); /* not asked any more */
    assert_quiet(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_command_is_tried_on_every_node), cmocka_unit_test(a_quorum_of_fine_nodes_is_enough),
        cmocka_unit_test(fewer_than_a_quorum_is_no_quorum),     cmocka_unit_test(one_refusal_is_auth),
        cmocka_unit_test(each_step_ends_at_the_node_timeout),   cmocka_unit_test(what_comes_at_the_wrong_time_changes_nothing),
    };
    return cmocka_run_group_tests_name("check", tests, NULL, NULL);
}
