/* test_orders_release.c - a release under every order of answers, losses and the deadline, for 1 to 3 nodes, and a sample for 5.
 *
 * The oracle says S6.2 of a complete set of answers. OK may be given early only if it is the verdict of every way in which the open
 * answers may still turn out, and anything else only if it is that of none; and it must be given as soon as that is so. */
#include "choices.h"
#include "oracle.h"
#include "release.h"

#include <string.h>

#define LEFT (100 * MS) /* of a lease that is long enough */

struct setup {
    uint32_t nodes, quorum;
    bool unproved, lost, no_wait;
};

struct world {
    struct choices *c;
    const struct setup *setup;
    struct rli_terms terms;
    struct rli_release m;
    rli_instant e[RL_MAX_NODES];
    rli_instant now;
    enum said said[RL_MAX_NODES];
    struct rli_actions out;
};

static bool in_time(const struct world *w)
{
    return !w->setup->unproved && oracle_holding(w->e, w->setup->nodes, T0) >= w->terms.quorum;
}

/* S6.2 and S7.3 of the answers as they are, open ones never coming. A node that deleted it had it. */
static int verdict(const struct world *w, const enum said *said)
{
    uint32_t n = w->setup->nodes, q = w->terms.quorum, ours = 0;
    uint32_t deleted = how_many(said, n, YES), gone = how_many(said, n, ABSENT) + how_many(said, n, OTHER);
    bool lost;

    for (uint32_t i = 0; i < n; i++)
        ours += said[i] == YES || (w->e[i] > T0 && said[i] != ABSENT && said[i] != OTHER);
    if (w->setup->unproved)
        lost = n - gone < q; /* a quorum can never have been ours */
    else
        lost = in_time(w) ? ours < q : deleted < q;
    return lost || w->setup->lost ? RL_LOST : deleted + gone >= q ? RL_OK : oracle_failure(said, n);
}

enum { MAY_OK = 1, MAY_LOSE = 2, MAY_FAIL = 4 };

/* What may come of it, over all ways in which the open answers may turn out, from node `from` on. */
static unsigned futures(const struct world *w, enum said *said, uint32_t from)
{
    static const enum said ways[] = {YES, ABSENT, ERROR};
    unsigned may = 0;

    while (from < w->setup->nodes && said[from] != OPEN)
        from++;
    if (from == w->setup->nodes) {
        int status = verdict(w, said);
        return status == RL_OK ? MAY_OK : status == RL_LOST ? MAY_LOSE : MAY_FAIL;
    }
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        said[from] = ways[i];
        may |= futures(w, said, from + 1);
    }
    said[from] = OPEN;
    return may;
}

static void step(struct world *w, enum rli_event event, uint32_t node, const struct rli_answer *answer, uint32_t unsent)
{
    struct rli_input in = {.event = event, .node = node, .answer = answer, .unsent = unsent};
    memset(&w->out, 0xa5, sizeof w->out);
    rli_release_step(&w->m, w->now, &in, &w->out);
    rule(w->c, !w->out.clean && !w->out.top_up && !w->out.fresh_token, "S6.1: a release only releases");
    rule(w->c, event == RLI_START || !w->out.send, "nothing is sent after the first requests");
    rule(w->c, !w->out.finished || w->out.wake == RLI_NEVER, "nobody waits for a finished machine");
    rule(w->c, w->out.finished || w->out.wake == T0 + 250 * MS, "S4.1: the deadline is start + node_timeout");
}

static void expect_after_vote(struct world *w)
{
    unsigned may = futures(w, w->said, 0);
    if (w->setup->lost) { /* S6.3: nothing is left to find out; it ends like one that was not */
        uint32_t open = how_many(w->said, w->setup->nodes, OPEN);
        uint32_t answered = w->setup->nodes - open - how_many_failed(w->said, w->setup->nodes);
        bool enough = answered >= w->terms.quorum || answered + open < w->terms.quorum;
        rule(w->c, w->out.finished == (open == 0 || enough), "S6.1: until q nodes have answered, or cannot");
        rule(w->c, !w->out.finished || w->out.status == RL_LOST, "S5.5: lost is terminal");
        return;
    }
    if (!w->out.finished) {
        rule(w->c, may & MAY_OK && may != MAY_OK, "S6.2: a verdict that cannot change any more is given at once");
        return;
    }
    rule(w->c, w->out.status != RL_OK || may == MAY_OK, "S6.2: OK too early");
    rule(w->c, w->out.status == RL_OK || !(may & MAY_OK), "S6.2: gave up while it could succeed");
    rule(w->c, w->out.status == RL_OK || w->out.status == verdict(w, w->said), "S6.2: the verdict");
}

/* When a repeated release is answered: the lease ends in one tick, has just ended, is valid, or even the deadline has passed
 * unnoticed. */
static rli_instant some_instant(struct world *w)
{
    const rli_instant instants[] = {T0 + LEFT - 1, T0 + LEFT, w->now, T0 + 250 * MS + 1};
    return rli_max(w->now, instants[pick(w->c, w->setup->nodes == 3 ? 2 : 4)]);
}

static void one_answer(struct world *w, uint32_t nth)
{
    uint32_t node = 0;
    while (w->said[node] != OPEN || nth-- > 0)
        node++;
    enum said said = (enum said)(YES + pick(w->c, SAID_COUNT - 1));
    bool resent = (said == ABSENT || said == OTHER) && pick(w->c, 2);
    w->now = resent ? some_instant(w) : w->now + 1 * MS;
    struct rli_answer answer = answer_of(said, T0, w->now);
    answer.resent = resent;
    tell(w->c, "  %.6f ms: node %u: %s%s\n", (double)(w->now - T0) / 1e6, node, said_names[said], resent ? " (resent)" : "");
    if (resent && !w->setup->unproved && w->now < kth_by_sort(w->e, w->setup->nodes, w->terms.quorum))
        said = YES; /* S6.2: counts as deleted, and so does what a successor has taken since */
    w->said[node] = said;
    step(w, RLI_VOTE, node, &answer, 0);
    expect_after_vote(w);
}

static void the_deadline(struct world *w, uint32_t open)
{
    uint32_t unsent = 0, sent = 0;
    int expected;

    w->now = rli_max(w->now, w->setup->no_wait ? w->now : T0 + 250 * MS);
    for (uint32_t i = 0; i < w->setup->nodes; i++) {
        if (w->said[i] == OPEN && pick(w->c, 2))
            unsent |= rli_bit(i);
        sent += w->said[i] == YES || w->said[i] == OTHER || w->said[i] == ABSENT || (w->said[i] == OPEN && !(unsent & rli_bit(i)));
    }
    tell(w->c, "  deadline with %u open, unsent %x\n", open, unsent);
    for (uint32_t i = 0; i < w->setup->nodes; i++)
        if (w->said[i] == OPEN)
            w->said[i] = UNKNOWN;
    step(w, RLI_DEADLINE, 0, NULL, unsent);
    expected = verdict(w, w->said);
    if (w->setup->no_wait)
        expected = !w->setup->unproved && !in_time(w) ? RL_LOST
                   : sent >= w->terms.quorum          ? RL_OK
                                                      : oracle_failure(w->said, w->setup->nodes);
    rule(w->c, w->out.finished, "S6.1: bounded by the node timeout");
    rule(w->c, w->out.status == expected, "S6.2: the verdict at the deadline");
}

static void begin(struct world *w, struct choices *c, const struct setup *setup)
{
    static const rli_span lefts[] = {RLI_GONE, 0, LEFT, 1}; /* the last: valid by one tick */
    uint32_t some = setup->lost ? 2 : setup->nodes == 3 ? 3 : 4;

    *w = (struct world){.c = c, .setup = setup, .terms = terms_of(setup->nodes), .now = T0};
    if (setup->quorum)
        w->terms.quorum = setup->quorum;
    w->m = (struct rli_release){
        .terms = &w->terms, .e = w->e, .unproved = setup->unproved, .lost = setup->lost, .no_wait = setup->no_wait};
    for (uint32_t i = 0; i < setup->nodes; i++) {
        w->e[i] = rli_add(lefts[pick(c, some)], T0);
        tell(c, "  e[%u] = start %+.6f ms\n", i, (double)rli_until(w->e[i], T0) / 1e6);
    }
    step(w, RLI_START, 0, NULL, 0);
    rule(c, w->out.send == (UINT32_C(1) << setup->nodes) - 1 && w->out.kind == RLI_RELEASE, "S6.1: to all N nodes");
    rule(c, !w->out.finished, "a release always asks");
}

static void course_of_release(struct choices *c, const void *setup)
{
    struct world w;

    begin(&w, c, setup);
    while (!w.out.finished && !c->broken) {
        uint32_t open = how_many(w.said, w.setup->nodes, OPEN);
        uint32_t event = pick(c, open + 1);
        if (!w.setup->no_wait) {
            step(&w, RLI_CANCEL, 0, NULL, 0);
            if (w.now < T0 + 250 * MS)
                step(&w, RLI_DEADLINE, 0, NULL, 0);
            rule(c, !w.out.finished, "a release cannot be cancelled, nor ended before its deadline");
        }
        if (event == open)
            the_deadline(&w, open);
        else
            one_answer(&w, event);
    }
}

static void every_order(uint32_t nodes, uint32_t quorum)
{
    for (int kind = 0; kind < 6; kind++) {
        struct setup setup = {.nodes = nodes, .quorum = quorum, .no_wait = kind & 1};
        setup.unproved = kind / 2 == 1;
        setup.lost = kind / 2 == 2;
        explore(course_of_release, &setup);
    }
}

/* N = 1, 2, 3, and raised quorums. */
static void every_order_of_one_node(void **state)
{
    (void)state;
    every_order(1, 0);
}

static void every_order_of_two_nodes(void **state)
{
    (void)state;
    every_order(2, 0);
}

static void every_order_of_three_nodes(void **state)
{
    (void)state;
    every_order(3, 0);
}

static void every_order_of_three_nodes_that_must_all_agree(void **state)
{
    (void)state;
    every_order(3, 3);
}

static void a_sample_of_five_nodes(void **state)
{
    (void)state;
    for (uint32_t kind = 0; kind < 8; kind++) {
        struct setup setup = {.nodes = 5, .quorum = kind & 4 ? 4 : 3, .unproved = kind & 1, .no_wait = kind & 2};
        setup.lost = kind == 0;
        sample(course_of_release, &setup, 0x5e1ea5e + kind, kind ? 28000 : 4000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_order_of_one_node),    cmocka_unit_test(every_order_of_two_nodes),
        cmocka_unit_test(every_order_of_three_nodes), cmocka_unit_test(every_order_of_three_nodes_that_must_all_agree),
        cmocka_unit_test(a_sample_of_five_nodes),
    };
    return cmocka_run_group_tests_name("orders_release", tests, NULL, NULL);
}
