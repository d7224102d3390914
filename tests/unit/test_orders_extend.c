/* test_orders_extend.c - an extension under every order of answers, losses, the deadline and a cancel, for 1 to 3 nodes whose
 * leases are gone, over, short or long, own or imported, settling or not; and a sample for 5 nodes.
 *
 * The oracle follows S5.1 - S5.3, S5.5 and S5.7 answer by answer, with e_i of its own. */
#include "choices.h"
#include "extend.h"
#include "oracle.h"

#include <string.h>

#define TTL (300 * MS)
#define SHORT (40 * MS) /* ends before the node timeout */
#define LONG (400 * MS)

struct setup {
    uint32_t nodes, quorum;
    bool unproved, settle;
    rli_span min_validity;
    uint32_t lefts;   /* how many of the leases below are tried */
    uint32_t answers; /* how many of the answers below are tried */
};

/* What a node may answer; to an extension the last three are the same. */
static const enum said answers[] = {YES, OTHER, ABSENT, ERROR, DENIED, UNKNOWN, UNSENT, DIED};
static const rli_span lefts[] = {RLI_GONE, SHORT, LONG, 0, 1};

struct world {
    struct choices *c;
    const struct setup *setup;
    struct rli_terms terms;
    struct rli_extend m;
    rli_instant e[RL_MAX_NODES];     /* the machine's */
    rli_instant truth[RL_MAX_NODES]; /* the oracle's */
    rli_instant now, end;
    bool over; /* the lease ended before the last answer came */
    enum said said[RL_MAX_NODES];
    uint32_t topped_up, resent;
    bool won;
    struct rli_actions out;
};

static rli_instant valid_until(const struct world *w)
{
    return kth_by_sort(w->truth, w->setup->nodes, w->terms.quorum);
}

static void step(struct world *w, enum rli_event event, uint32_t node, const struct rli_answer *answer, uint32_t unsent)
{
    struct rli_input in = {.event = event, .node = node, .answer = answer, .unsent = unsent, .resent = w->resent};
    memset(&w->out, 0xa5, sizeof w->out);
    rli_extend_step(&w->m, w->now, &in, &w->out);
    rule(w->c, !w->out.clean && !w->out.fresh_token, "S5.2: a failed extend deletes nothing");
    rule(w->c, event == RLI_START || !w->out.send, "nothing is sent twice");
    for (uint32_t i = 0; i < w->setup->nodes; i++)
        rule(w->c, w->over || w->e[i] == w->truth[i], "S1.2, S5.2: e");
    if (w->out.finished)
        rule(w->c, w->out.wake == RLI_NEVER, "nobody waits for a finished machine");
    else
        rule(w->c, w->out.wake == w->end, "S4.1: ends at start + node_timeout, or with the lease");
    rule(w->c, !w->out.finished || w->out.status != RL_OK || valid_until(w) - w->now >= w->terms.min_validity,
         "S1.4: min_validity remains");
}

static void expect(struct world *w, bool finished, int status, const char *text)
{
    tell(w->c, "  %s: %d, want %s: %d\n", w->out.finished ? "finished" : "goes on", w->out.finished ? w->out.status : 0,
         finished ? "finished" : "goes on", finished ? status : 0);
    rule(w->c, w->out.finished == finished && (!finished || w->out.status == status), text);
}

/* S5.3: once per ballot, each node that answered "absent", after q "yes", with validity left. */
static void expect_top_up(struct world *w, bool allowed)
{
    uint32_t wanted = 0;
    for (uint32_t i = 0; i < w->setup->nodes; i++)
        if (allowed && w->said[i] == ABSENT && !(w->topped_up & rli_bit(i)))
            wanted |= rli_bit(i);
    tell(w->c, "  top up %x, want %x\n", w->out.top_up, wanted);
    rule(w->c, w->out.top_up == wanted, "S5.3: top-up");
    w->topped_up |= w->out.top_up;
}

static bool settling(const struct world *w)
{
    for (uint32_t i = 0; w->setup->settle && i < w->setup->nodes; i++)
        if (w->said[i] == OPEN && w->resent & rli_bit(i))
            return true;
    return false;
}

/* S5.7, after an answer. */
static void expect_verdict(struct world *w)
{
    uint32_t n = w->setup->nodes, q = w->terms.quorum;
    uint32_t yes = how_many(w->said, n, YES), open = how_many(w->said, n, OPEN);
    uint32_t not_ours = how_many(w->said, n, OTHER) + how_many(w->said, n, ABSENT);
    bool lost = w->setup->unproved ? n - not_ours < q : oracle_holding(w->truth, n, w->now) < q;
    bool enough = yes >= q && valid_until(w) - w->now >= w->terms.min_validity;

    expect_top_up(w, enough && !w->over);
    if (w->over)
        expect(w, true, RL_LOST, "S5.5: later replies never revive it");
    else if (enough)
        expect(w, !settling(w), RL_OK, "S5.7: OK at q confirmations with validity left");
    else if (lost)
        expect(w, true, RL_LOST, "S5.5: lost as soon as fewer than q nodes keep it");
    else if (yes >= q)
        expect(w, true, RL_E_TOO_SLOW, "S1.4: too little is left");
    else if (yes + open < q)
        expect(w, true, oracle_failure(w->said, n), "S5.7: a quorum is out of reach");
    else
        expect(w, false, 0, "S5.7: undecided");
}

/* When the answer comes: soon; or, rarely, the clock has jumped: to the last tick of the lease, to its end, past everything. */
static void pass_time(struct world *w)
{
    uint32_t how = w->c->random ? pick(w->c, 16) : 4;
    rli_instant valid = valid_until(w);

    if (how == 0 && valid > w->now && valid != RLI_GONE)
        w->now = valid - 1;
    else if (how == 1 && valid > w->now)
        w->now = valid;
    else if (how == 2)
        w->now = rli_max(w->now, T0 + 1000 * MS);
    else
        w->now += 7 * MS;
}

static void one_answer(struct world *w, uint32_t nth)
{
    uint32_t node = 0;
    while (w->said[node] != OPEN || nth-- > 0)
        node++;
    enum said said = answers[pick(w->c, w->setup->answers)];
    rli_instant sent = T0 + node * 100000;

    pass_time(w);
    tell(w->c, "  %.6f ms: node %u: %s\n", (double)(w->now - T0) / 1e6, node, said_names[said]);
    w->over = !w->setup->unproved && valid_until(w) <= w->now;
    struct rli_answer answer = answer_of(said, sent, w->now);

    w->said[node] = said;
    if (!w->over && said == YES)
        w->truth[node] = rli_max(w->truth[node], oracle_e(&w->terms, sent, TTL));
    else if (!w->over && (said == OTHER || said == ABSENT))
        w->truth[node] = RLI_GONE;
    step(w, RLI_VOTE, node, &answer, 0);
    expect_verdict(w);
    w->won |= how_many(w->said, w->setup->nodes, YES) >= w->terms.quorum;
}

static void the_deadline(struct world *w)
{
    uint32_t n = w->setup->nodes, q = w->terms.quorum, unsent = pick(w->c, 2) ? UINT32_MAX : 0;

    if (w->now < w->end) {
        w->now = rli_max(w->now, w->end - 1);
        step(w, RLI_DEADLINE, 0, NULL, unsent);
        expect(w, false, 0, "one tick before the deadline nothing happens");
    }
    w->now = rli_max(w->now, w->end);
    tell(w->c, "  %.6f ms: deadline\n", (double)(w->now - T0) / 1e6);
    step(w, RLI_DEADLINE, 0, NULL, unsent);
    rule(w->c, w->out.top_up == 0, "S5.3: no top-up without an answer");
    for (uint32_t i = 0; i < n; i++)
        if (w->said[i] == OPEN)
            w->said[i] = UNKNOWN;
    if (w->won) /* and settling */
        expect_verdict(w);
    else if (w->setup->unproved || oracle_holding(w->truth, n, w->now) >= q)
        expect(w, true, oracle_failure(w->said, n), "S5.7: at the deadline, NO_QUORUM");
    else
        expect(w, true, RL_LOST, "S5.5: lost at valid_until at the latest");
}

static void begin(struct world *w, struct choices *c, const struct setup *setup)
{
    *w = (struct world){.c = c, .setup = setup, .terms = terms_of(setup->nodes), .now = T0};
    w->terms.quorum = setup->quorum ? setup->quorum : w->terms.quorum;
    w->terms.min_validity = setup->min_validity;
    w->m = (struct rli_extend){.terms = &w->terms, .e = w->e, .ttl = TTL, .unproved = setup->unproved, .settle = setup->settle};
    for (uint32_t i = 0; i < setup->nodes; i++) {
        w->e[i] = w->truth[i] = setup->unproved ? RLI_GONE : rli_add(lefts[pick(c, setup->lefts)], T0);
        tell(c, "  e[%u] = start %+.6f ms\n", i, (double)rli_until(w->e[i], T0) / 1e6);
    }
    w->resent = setup->settle ? pick(c, UINT32_C(1) << setup->nodes) : 0;
    w->end = T0 + 250 * MS;
    if (!setup->unproved)
        w->end = rli_min(w->end, valid_until(w));
    step(w, RLI_START, 0, NULL, 0);
    if (!setup->unproved && valid_until(w) <= T0) {
        rule(c, w->out.send == 0, "S5.1: refused without asking");
        expect(w, true, RL_LOST, "S5.1: refused locally once validity is over");
        return;
    }
    rule(c, w->out.send == (UINT32_C(1) << setup->nodes) - 1 && w->out.kind == RLI_EXTEND, "S5.4: to all N nodes");
    expect(w, false, 0, "S5.7: undecided");
}

static void course_of_extend(struct choices *c, const void *setup)
{
    struct world w;

    begin(&w, c, setup);
    while (!w.out.finished && !c->broken) {
        uint32_t open = how_many(w.said, w.setup->nodes, OPEN);
        uint32_t event = pick(c, open + 2);
        if (event < open) {
            one_answer(&w, event);
        } else if (event == open) {
            the_deadline(&w);
            rule(c, w.out.finished, "S4.1: finished by the deadline");
        } else {
            step(&w, RLI_CANCEL, 0, NULL, 0);
            rule(c, w.out.top_up == 0, "a cancelled extend sends nothing");
            expect(&w, true, RL_CANCELED, "cancelled at once");
        }
    }
}

static void every_order(struct setup setup)
{
    for (uint32_t kind = 0; kind < 4; kind++) {
        setup.unproved = kind & 1;
        setup.settle = kind & 2;
        for (int valid = 0; valid < 2; valid++) {
            setup.min_validity = valid ? 290 * MS : 1 * MS; /* of 295 ms: the second answer is too slow */
            explore(course_of_extend, &setup);
        }
    }
}

static void every_order_of_one_node(void **state)
{
    (void)state;
    every_order((struct setup){.nodes = 1, .lefts = 5, .answers = 8});
}

static void every_order_of_two_nodes(void **state)
{
    (void)state;
    every_order((struct setup){.nodes = 2, .lefts = 5, .answers = 8});
}

static void every_order_of_three_nodes(void **state)
{
    (void)state;
    every_order((struct setup){.nodes = 3, .lefts = 4, .answers = 8});
    every_order((struct setup){.nodes = 3, .lefts = 3, .answers = 8, .quorum = 3});
}

/* With leases that end while it runs, and a clock that jumps. */
static void a_sample_of_many_nodes(void **state)
{
    static const uint32_t sizes[] = {1, 3, 5, 5};
    (void)state;
    for (uint32_t kind = 0; kind < 32; kind++) {
        struct setup setup = {.nodes = sizes[kind / 8], .lefts = 5, .answers = 8};
        setup.quorum = kind / 8 == 3 ? 4 : 0;
        setup.unproved = kind & 1;
        setup.settle = kind & 2;
        setup.min_validity = kind & 4 ? 280 * MS : 1 * MS;
        sample(course_of_extend, &setup, 0xe47e4d + kind, setup.nodes == 5 ? 12500 : 5000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_order_of_one_node),
        cmocka_unit_test(every_order_of_two_nodes),
        cmocka_unit_test(every_order_of_three_nodes),
        cmocka_unit_test(a_sample_of_many_nodes),
    };
    return cmocka_run_group_tests_name("orders_extend", tests, NULL, NULL);
}
