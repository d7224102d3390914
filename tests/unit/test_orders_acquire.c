/* test_orders_acquire.c - an acquisition under every order of answers, losses, deadlines and a cancel, through its attempts, their
 * clean-up and the pauses between them, for 1 to 3 nodes; and a sample for 5.
 *
 * The oracle follows S1.4, S2.8, S3.1, S4.1 and S4.2 event by event, with votes and e_i of its own. Pauses are random: it knows
 * their limits only (S4.3, S4.4). */
#include "acquire.h"
#include "choices.h"
#include "oracle.h"

#include <string.h>

struct setup {
    uint32_t nodes, quorum;
    rli_span wait, ttl;
    bool fail_fast;
    bool jumps;         /* the clock may jump before an answer */
    uint32_t attempts;  /* after so many the call is cancelled */
    uint32_t answers;   /* how many kinds of answers are tried in the first attempt */
    uint32_t answers_2; /* and in later ones */
};

static const enum said answers[] = {YES, OTHER, DIED, UNKNOWN, ERROR, UNSENT, DENIED, ABSENT};

struct world {
    struct choices *c;
    const struct setup *setup;
    struct rli_terms terms;
    struct rli_acquire m;
    rli_instant e[RL_MAX_NODES];
    rli_instant now;
    struct rli_actions out;

    /* The oracle's own. */
    enum { VOTING, CLEANING, PAUSING, ENDED } phase;
    rli_instant deadline, began; /* of the call; of the attempt */
    rli_instant end;             /* of the phase; a pause's is the machine's choice */
    enum said said[RL_MAX_NODES];
    rli_instant truth[RL_MAX_NODES];
    bool awaited[RL_MAX_NODES]; /* answers to the clean-up */
    rli_span free_in[RL_MAX_NODES];
    int verdict; /* of the last attempt that ran to its end */
    bool cut_short;
    uint32_t repeated; /* nodes */
    uint32_t attempts, splits;
    rli_span slowest;
};

/* ---- What the rules demand -------------------------------------------------------------------------------------------------- */

static void expect_goes_on(struct world *w, const char *text)
{
    rule(w->c, !w->out.finished && !w->out.clean && !w->out.send && !w->out.fresh_token && w->out.wake == w->end, text);
}

static void expect_finished(struct world *w, int status, const char *text)
{
    w->phase = ENDED;
    tell(w->c, "  want the end: %d\n", status);
    rule(w->c, w->out.finished && w->out.status == status && !w->out.send && !w->out.fresh_token, text);
}

static void expect_clean(struct world *w, uint32_t mask, const char *text)
{
    tell(w->c, "  want clean %x\n", mask);
    rule(w->c, w->out.clean == mask, text);
}

/* S1.5, S2.2, S3.6, S4.1: a new attempt: all nodes at once, a new token, its own time. */
static void expect_attempt(struct world *w)
{
    const struct rli_terms *t = &w->terms;
    rli_instant by_validity = oracle_e(t, w->now, w->setup->ttl) - t->min_validity;

    tell(w->c, "  want an attempt\n");
    w->phase = VOTING;
    w->began = w->now;
    w->end = rli_min(rli_min(w->now + t->node_timeout, w->deadline), by_validity);
    w->attempts++;
    w->cut_short = false;
    w->slowest = 0;
    for (uint32_t i = 0; i < t->nodes; i++) {
        w->said[i] = OPEN;
        w->truth[i] = w->e[i] = RLI_GONE;
        w->free_in[i] = RLI_NEVER;
    }
    rule(w->c, !w->out.finished && w->out.send == (UINT32_C(1) << t->nodes) - 1 && w->out.kind == RLI_SET, "S2.2: all at once");
    rule(w->c, w->out.fresh_token, "S3.6: a new attempt has a new token");
    rule(w->c, w->now < w->deadline, "S4.1: an attempt starts only before the deadline");
    rule(w->c, w->out.wake == w->end, "S4.1: when an attempt ends");
}

/* S3.1: granted, unknown and open ones, always. */
static uint32_t may_hold(const struct world *w)
{
    uint32_t mask = 0;
    for (uint32_t i = 0; i < w->setup->nodes; i++)
        if (w->said[i] == YES || w->said[i] == UNKNOWN || w->said[i] == DIED || w->said[i] == OPEN)
            mask |= rli_bit(i);
    return mask;
}

static bool is_split(const struct world *w)
{
    return w->verdict == RL_BUSY && how_many(w->said, w->setup->nodes, YES) > 0;
}

/* S4.3, S4.4: after a split vote in [r, r * 2^k]; else no longer than the options and the holder's lease say. */
static void expect_length(struct world *w, rli_span pause)
{
    rli_span negated[RL_MAX_NODES], r = rli_max(rli_min(w->slowest, w->terms.node_timeout), MS);

    if (is_split(w)) {
        rli_span longest = rli_min(r << w->splits, rli_max(w->terms.retry_max, r));
        rule(w->c, pause <= longest, "S4.3: a pause after a split vote is not too long");
        rule(w->c, pause >= r || w->end >= rli_add(T0, w->setup->wait - 5 * MS), "S4.3: nor too short");
        return;
    }
    for (uint32_t i = 0; i < w->setup->nodes; i++)
        negated[i] = -w->free_in[i];
    rli_span free_in = -kth_by_sort(negated, w->setup->nodes, w->terms.quorum);
    rule(w->c, pause <= rli_min(w->terms.retry_max, rli_add(free_in, 5 * MS)), "S4.3, S4.4: a pause is not too long");
}

/* S4.1, S4.2: the clean-up is over: the call is at its end, or pauses. Within 5 ms of the end of the wait either will do. */
static void expect_pause_or_end(struct world *w)
{
    bool waits = w->setup->wait != 0 && w->verdict != RL_E_AUTH && (w->verdict == RL_BUSY || !w->setup->fail_fast);
    rli_instant give_up = rli_add(T0, w->setup->wait);

    if (!waits || w->now >= w->deadline) {
        expect_finished(w, w->verdict, "S4.2: not waited out, or the wait is over");
        return;
    }
    if (w->out.finished) {
        rule(w->c, w->now >= give_up - 5 * MS, "S4.1: gave up before its time");
        expect_finished(w, w->verdict, "S4.2: the verdict of the last attempt");
        return;
    }
    w->splits = is_split(w) ? w->splits + 1 : 0;
    w->phase = PAUSING;
    w->end = w->out.wake;
    rule(w->c, !w->out.send && !w->out.fresh_token, "S4.3: a pause first");
    rule(w->c, w->end >= w->now && w->end < w->deadline, "S4.4: a pause ends before the deadline");
    expect_length(w, w->end - w->now);
}

/* An attempt has failed. */
static void expect_failure(struct world *w, int verdict)
{
    uint32_t n = w->setup->nodes, awaited = 0, held = 0;
    uint32_t chances = how_many(w->said, n, YES) + how_many(w->said, n, OPEN) + how_many(w->said, n, DIED);

    tell(w->c, "  the attempt failed: %d\n", verdict);
    w->verdict = verdict;
    uint32_t died = who(w->said, n, DIED);
    if (died & ~w->repeated && w->now < w->deadline && chances >= w->terms.quorum) {
        w->repeated |= died;
        expect_clean(w, may_hold(w), "S3.1: clean-up before the repetition");
        expect_attempt(w);
        return;
    }
    for (uint32_t i = 0; w->setup->wait != 0 && i < n; i++) {
        held |= w->said[i] == OTHER ? rli_bit(i) : 0;
        w->awaited[i] = w->said[i] == YES || w->said[i] == OTHER;
        awaited += w->awaited[i];
    }
    expect_clean(w, may_hold(w) | held, "S3.1: clean-up");
    if (w->setup->wait == 0) {
        expect_finished(w, verdict, "S4.1: wait 0 is one attempt");
    } else if (awaited > 0) {
        w->phase = CLEANING;
        w->end = w->now + w->terms.cleanup_timeout;
        rule(w->c, !w->out.finished && !w->out.send && w->out.wake == w->end, "S4.1: the clean-up's own budget");
    } else {
        expect_pause_or_end(w);
    }
}

static void expect_after_vote(struct world *w)
{
    int verdict = oracle_verdict(w->said, w->setup->nodes, w->terms.quorum);
    rli_instant valid_until = kth_by_sort(w->truth, w->setup->nodes, w->terms.quorum);

    for (uint32_t i = 0; i < w->setup->nodes; i++)
        rule(w->c, w->e[i] == w->truth[i], "S1.2: e");
    if (verdict == RLI_UNDECIDED) {
        expect_goes_on(w, "S2.8: undecided");
    } else if (verdict != RL_OK) {
        expect_failure(w, verdict);
    } else if (valid_until - w->now < w->terms.min_validity) {
        expect_failure(w, RL_E_TOO_SLOW);
    } else {
        expect_clean(w, 0, "nothing is taken back from a lock that is held");
        expect_finished(w, RL_OK, "S2.8: OK at q grants");
    }
}

/* ---- What happens ----------------------------------------------------------------------------------------------------------- */

static void step(struct world *w, enum rli_event event, uint32_t node, const struct rli_answer *answer, uint32_t unsent)
{
    struct rli_input in = {.event = event, .node = node, .answer = answer, .unsent = unsent};
    memset(&w->out, 0xa5, sizeof w->out);
    rli_acquire_step(&w->m, w->now, &in, &w->out);
    if (w->out.finished || w->out.clean || w->out.send)
        tell(w->c, "  -> clean %x, send %x, %s %d\n", w->out.clean, w->out.send, w->out.finished ? "the end:" : "goes on",
             w->out.finished ? w->out.status : 0);
    rule(w->c, w->out.top_up == 0, "S5.3: no top-up before success");
    rule(w->c, w->out.finished ? w->out.wake == RLI_NEVER : w->out.wake != RLI_NEVER, "woken until finished, and not after");
}

/* What must change nothing: an early wake-up, a second vote, an answer to a clean-up that nobody awaits. */
static void stray_steps(struct world *w)
{
    struct rli_answer stray = answer_of(YES, w->now, w->now);

    if (w->now < w->end) {
        step(w, RLI_DEADLINE, 0, NULL, 0);
        expect_goes_on(w, "woken too early");
    }
    for (uint32_t i = 0; i < w->setup->nodes; i++) {
        if (w->phase != VOTING || w->said[i] != OPEN) {
            step(w, RLI_VOTE, i, &stray, 0);
            expect_goes_on(w, "S2.1: one vote per node and attempt");
        }
        if (w->phase != CLEANING || !w->awaited[i]) {
            step(w, RLI_CLEANED, i, &stray, 0);
            expect_goes_on(w, "an answer that nobody awaits");
        }
    }
}

static rli_instant much_later(const struct world *w)
{
    return rli_min(w->deadline, T0 + 3600000 * MS) + 1;
}

/* The clock before an answer: soon, or it has jumped to the last instant with min_validity, beyond it, or beyond everything. */
static void pass_time(struct world *w)
{
    rli_instant last = oracle_e(&w->terms, w->began, w->setup->ttl) - w->terms.min_validity;
    const rli_instant instants[] = {w->now + 700000, last, last + 1, much_later(w)};

    w->now = rli_max(w->now, instants[w->setup->jumps ? pick(w->c, 4) : 0]);
}

static void one_vote(struct world *w, uint32_t nth)
{
    uint32_t node = 0;
    while (w->said[node] != OPEN || nth-- > 0)
        node++;
    enum said said = answers[pick(w->c, w->attempts == 1 ? w->setup->answers : w->setup->answers_2)];
    rli_instant sent = w->began + node * 100000;

    pass_time(w);
    tell(w->c, "  %.6f ms: node %u votes %s\n", (double)(w->now - T0) / 1e6, node, said_names[said]);
    struct rli_answer answer = answer_of(said, sent, w->now);
    w->said[node] = said;
    if (said == YES)
        w->truth[node] = oracle_e(&w->terms, sent, w->setup->ttl);
    if (answer.at != RLI_GONE)
        w->slowest = rli_max(w->slowest, answer.at - sent);
    step(w, RLI_VOTE, node, &answer, 0);
    expect_after_vote(w);
}

/* An answer to the clean-up: S3.1's three, an error (case A13), a refusal, or none. */
static void one_cleaned(struct world *w, uint32_t nth)
{
    static const enum said replies[] = {YES, ABSENT, OTHER, ERROR, DENIED, UNKNOWN};
    uint32_t node = 0, left = 0;
    while (!w->awaited[node] || nth-- > 0)
        node++;
    enum said said = replies[pick(w->c, 6)];
    struct rli_answer answer = answer_of(said, w->now, w->now + 300000);

    w->now += 300000;
    if (said == OTHER)
        answer.holder_left = pick(w->c, 2) ? 3 * MS : RLI_NEVER;
    tell(w->c, "  %.6f ms: node %u cleaned: %s\n", (double)(w->now - T0) / 1e6, node, said_names[said]);
    w->awaited[node] = false;
    w->free_in[node] = said == YES || said == ABSENT ? 0 : answer.holder_left;
    if (w->said[node] == OTHER && (said == ERROR || said == DENIED))
        w->said[node] = said;
    if (w->verdict == RL_BUSY && !w->cut_short)
        w->verdict = oracle_verdict(w->said, w->setup->nodes, w->terms.quorum);
    step(w, RLI_CLEANED, node, &answer, 0);
    for (uint32_t i = 0; i < w->setup->nodes; i++)
        left += w->awaited[i];
    expect_clean(w, 0, "S3.1: cleaned up once");
    if (left > 0)
        expect_goes_on(w, "S4.1: the others are awaited");
    else
        expect_pause_or_end(w);
}

/* S4.1: an attempt's end; whose verdict counts (S4.2); too slow by validity (S1.4). */
static void attempt_ends(struct world *w, uint32_t unsent)
{
    rli_instant by_node = w->began + w->terms.node_timeout;
    bool by_deadline = w->end == w->deadline && w->end < by_node;
    bool by_validity = !by_deadline && w->end < by_node;

    for (uint32_t i = 0; i < w->setup->nodes; i++)
        if (w->said[i] == OPEN)
            w->said[i] = unsent & rli_bit(i) ? UNSENT : UNKNOWN;
    w->cut_short = by_deadline && w->attempts > 1;
    if (by_validity)
        expect_failure(w, RL_E_TOO_SLOW);
    else if (w->cut_short)
        expect_failure(w, w->verdict);
    else
        expect_failure(w, oracle_verdict(w->said, w->setup->nodes, w->terms.quorum));
}

/* The wake-up: nothing one tick before it; then the end of an attempt, of the clean-up's budget, or of a pause. */
static void wake_up(struct world *w)
{
    uint32_t unsent = w->phase == VOTING ? pick(w->c, UINT32_C(1) << how_many(w->said, w->setup->nodes, OPEN)) : 0, mask = 0;

    for (uint32_t i = 0; i < w->setup->nodes; i++)
        if (w->said[i] == OPEN) {
            mask |= unsent & 1 ? rli_bit(i) : 0;
            unsent >>= 1;
        }
    if (w->now < w->end) {
        w->now = w->end - 1;
        step(w, RLI_DEADLINE, 0, NULL, mask);
        expect_goes_on(w, "one tick before the wake-up nothing happens");
    }
    w->now = rli_max(w->now, w->end);
    if (w->phase == PAUSING && w->setup->jumps && pick(w->c, 4) == 0)
        w->now = rli_max(w->now, much_later(w));
    tell(w->c, "  %.6f ms: woken, unsent %x\n", (double)(w->now - T0) / 1e6, mask);
    step(w, RLI_DEADLINE, 0, NULL, mask);
    if (w->phase == VOTING) {
        attempt_ends(w, mask);
    } else {
        expect_clean(w, 0, "S3.1: cleaned up once");
        if (w->phase == CLEANING)
            expect_pause_or_end(w);
        else if (w->now >= w->deadline)
            expect_finished(w, w->verdict, "S4.1: no attempt at the deadline");
        else
            expect_attempt(w);
    }
}

static void cancel(struct world *w)
{
    uint32_t mask = w->phase == VOTING ? may_hold(w) : 0;

    tell(w->c, "  cancel\n");
    step(w, RLI_CANCEL, 0, NULL, 0);
    expect_clean(w, mask, "S3.6: never a key that nobody owns");
    expect_finished(w, RL_CANCELED, "S3.6: cancelled at once");
}

static void begin(struct world *w, struct choices *c, const struct setup *setup)
{
    *w = (struct world){.c = c, .setup = setup, .terms = terms_of(setup->nodes), .now = T0, .verdict = RLI_UNDECIDED};
    w->terms.quorum = setup->quorum ? setup->quorum : w->terms.quorum;
    w->deadline = rli_add(T0, rli_max(setup->wait, w->terms.node_timeout));
    w->m = (struct rli_acquire){.terms = &w->terms,
                                .e = w->e,
                                .ttl = setup->ttl,
                                .wait = setup->wait,
                                .fail_fast = setup->fail_fast,
                                .seed = c->random ? random_of(&c->seed) : 7};
    for (uint32_t i = 0; i < setup->nodes; i++)
        w->e[i] = RLI_GONE;
    step(w, RLI_START, 0, NULL, 0);
    expect_clean(w, 0, "nothing to clean up yet");
    expect_attempt(w);
}

static void course_of_acquire(struct choices *c, const void *setup)
{
    struct world w;
    uint32_t ways;

    begin(&w, c, setup);
    while (w.phase != ENDED && !c->broken) {
        if (!c->random || pick(c, 4) == 0)
            stray_steps(&w);
        ways = w.phase == VOTING ? how_many(w.said, w.setup->nodes, OPEN) : 0;
        for (uint32_t i = 0; w.phase == CLEANING && i < w.setup->nodes; i++)
            ways += w.awaited[i];
        uint32_t event = w.attempts > w.setup->attempts ? ways + 1 : pick(c, ways + 2);
        if (event == ways)
            wake_up(&w);
        else if (event > ways)
            cancel(&w);
        else if (w.phase == VOTING)
            one_vote(&w, event);
        else
            one_cleaned(&w, event);
    }
    if (!w.setup->jumps)
        rule(c, w.now <= rli_add(w.deadline, w.terms.cleanup_timeout), "S4.1: within max(wait, node_timeout) + cleanup_timeout");
}

/* ---- Tests ------------------------------------------------------------------------------------------------------------------ */

#define TTL (10000 * MS)

/* One attempt, with a clock that jumps; the call ends where a repetition would begin. */
static void every_order_of_one_attempt(void **state)
{
    struct setup setup = {.jumps = true, .attempts = 1, .answers = 8};
    (void)state;
    for (setup.nodes = 1; setup.nodes <= 3; setup.nodes++)
        for (int too_short = 0; too_short < 2; too_short++) {
            setup.ttl = too_short ? 20 * MS : TTL;
            explore(course_of_acquire, &setup);
        }
}

/* Case A14: one attempt, and the one that repeats it. */
static void every_order_of_the_repetition(void **state)
{
    struct setup setup = {.ttl = TTL, .attempts = 2, .answers = 8};
    (void)state;
    for (setup.nodes = 1; setup.nodes <= 3; setup.nodes++) {
        setup.answers_2 = setup.nodes < 3 ? 8 : 4;
        explore(course_of_acquire, &setup);
    }
}

/* One attempt of a waiting acquire, and its clean-up. */
static void every_order_of_the_clean_up(void **state)
{
    struct setup setup = {.ttl = TTL, .wait = 10000 * MS, .attempts = 1, .answers = 8};
    (void)state;
    for (setup.nodes = 1; setup.nodes <= 3; setup.nodes++)
        for (int fail_fast = 0; fail_fast < 2; fail_fast++) {
            setup.fail_fast = fail_fast;
            explore(course_of_acquire, &setup);
        }
}

/* Two attempts, the second one cut short by the deadline if the first takes all its time; the same of too short a ttl. */
static void every_order_of_two_attempts(void **state)
{
    struct setup setup = {.wait = 300 * MS, .attempts = 2, .answers = 8, .answers_2 = 8};
    (void)state;
    for (setup.nodes = 1; setup.nodes <= 2; setup.nodes++)
        for (int too_short = 0; too_short < 2; too_short++) {
            setup.ttl = too_short ? 20 * MS : TTL;
            explore(course_of_acquire, &setup);
        }
}

/* Everything at once, with many attempts. */
static void a_sample_of_many_nodes(void **state)
{
    static const rli_span waits[] = {0, 40 * MS, 300 * MS, 2000 * MS, RLI_NEVER};
    static const uint32_t sizes[] = {5, 5, 4, 3};
    (void)state;
    for (uint32_t kind = 0; kind < 80; kind++) {
        struct setup setup = {.nodes = sizes[kind % 4], .wait = waits[kind / 4 % 5], .answers = 8, .answers_2 = 8};
        setup.quorum = kind % 4 == 1 ? 4 : 0;
        setup.ttl = kind % 3 == 0 ? 20 * MS : TTL;
        setup.fail_fast = kind % 7 == 0;
        setup.jumps = kind >= 40;
        setup.attempts = 1 + kind % 11;
        sample(course_of_acquire, &setup, 0xac901e + kind, 5000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_order_of_one_attempt),  cmocka_unit_test(every_order_of_the_repetition),
        cmocka_unit_test(every_order_of_the_clean_up), cmocka_unit_test(every_order_of_two_attempts),
        cmocka_unit_test(a_sample_of_many_nodes),
    };
    return cmocka_run_group_tests_name("orders_acquire", tests, NULL, NULL);
}
