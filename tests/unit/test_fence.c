/* test_fence.c - fencing tokens in the machine of an acquisition (S8, design 5), in virtual time; and what it asks of nodes, word by
 * word.
 */
#include "acquire.h"
#include "answer.h"
#include "command.h"
#include "script.h"
#include "unit.h"

#include <string.h>

#define TTL (1000 * MS)

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
    if (!r->out.fresh_token || r->out.finished)
        return;
    r->sent = r->now;
    for (uint32_t i = 0; i < r->terms.nodes; i++)
        r->e[i] = RLI_GONE;
}

static void prepare(struct run *r, uint32_t nodes, enum rli_fence fence, rli_span wait)
{
    *r = (struct run){.terms = terms_of(nodes), .now = T0};
    r->m = (struct rli_acquire){.terms = &r->terms, .e = r->e, .ttl = TTL, .wait = wait, .fence = fence};
    for (uint32_t i = 0; i < nodes; i++)
        r->e[i] = RLI_GONE;
}

static void started(struct run *r, uint32_t nodes, enum rli_fence fence, rli_span wait)
{
    prepare(r, nodes, fence, wait);
    step(r, RLI_START, 0, NULL);
}

static void grant(struct run *r, uint32_t node, int64_t counter)
{
    struct rli_answer answer = answer_of(YES, r->sent, r->now);
    answer.fence = counter;
    step(r, RLI_VOTE, node, &answer);
}

static void vote(struct run *r, uint32_t node, enum said said)
{
    struct rli_answer answer = answer_of(said, r->sent, r->now);
    step(r, RLI_VOTE, node, &answer);
}

static void fenced(struct run *r, uint32_t node, enum said said)
{
    struct rli_answer answer = answer_of(said, r->now, r->now);
    step(r, RLI_FENCED, node, &answer);
}

static void minted(struct run *r, uint32_t node, int64_t token)
{
    struct rli_answer answer = answer_of(YES, r->now, r->now);
    answer.fence = token;
    step(r, RLI_FENCED, node, &answer);
}

/* Goes to the wake-up instant; one tick before it nothing happens. */
static void wake(struct run *r)
{
    rli_instant at = r->out.wake;
    assert_true(at >= r->now && at != RLI_NEVER);
    r->now = at - 1;
    step(r, RLI_DEADLINE, 0, NULL);
    assert_false(r->out.finished || r->out.clean || r->out.send || r->out.fence);
    assert_true(r->out.wake == at);
    r->now = at;
    step(r, RLI_DEADLINE, 0, NULL);
}

#define assert_quiet(r)                                                                                                            \
    do {                                                                                                                           \
        assert_false((r)->out.finished || (r)->out.fresh_token);                                                                   \
        assert_int_equal((r)->out.clean | (r)->out.send | (r)->out.top_up | (r)->out.fence, 0);                                    \
    } while (0)

#define assert_asks(r, mask, what, value)                                                                                          \
    do {                                                                                                                           \
        assert_false((r)->out.finished || (r)->out.fresh_token);                                                                   \
        assert_int_equal((r)->out.clean | (r)->out.send | (r)->out.top_up, 0);                                                     \
        assert_int_equal((r)->out.fence, (mask));                                                                                  \
        assert_int_equal((r)->out.fence_kind, (what));                                                                             \
        assert_int_equal((r)->out.token, (value));                                                                                 \
    } while (0)

#define assert_held(r, value)                                                                                                      \
    do {                                                                                                                           \
        assert_true((r)->out.finished);                                                                                            \
        assert_int_equal((r)->out.status, RL_OK);                                                                                  \
        assert_int_equal((r)->out.token, (value));                                                                                 \
        assert_int_equal((r)->out.clean | (r)->out.send, 0);                                                                       \
        assert_true((r)->out.wake == RLI_NEVER);                                                                                   \
    } while (0)

#define assert_failed(r, expected, mask)                                                                                           \
    do {                                                                                                                           \
        assert_true((r)->out.finished);                                                                                            \
        assert_int_equal((r)->out.status, (expected));                                                                             \
        assert_int_equal((r)->out.clean, (mask));                                                                                  \
        assert_int_equal((r)->out.send | (r)->out.fence, 0);                                                                       \
        assert_true((r)->out.wake == RLI_NEVER);                                                                                   \
    } while (0)

/* ---- One step, or two -------------------------------------------------------------------------------------------------------- */

/* S8.2 */
static void one_node_sets_and_mints_in_one_step(void **state)
{
    struct run r;
    (void)state;
    for (int fence = RLI_FENCE_QUORUM; fence <= RLI_FENCE_NODE; fence++) {
        started(&r, 1, (enum rli_fence)fence, 0);
        assert_int_equal(r.out.kind, RLI_GRANT);
        grant(&r, 0, 77);
        assert_held(&r, 77);
    }
    started(&r, 1, RLI_FENCE_NONE, 0);
    assert_int_equal(r.out.kind, RLI_SET);
    vote(&r, 0, YES);
    assert_held(&r, 0);
}

static void what_several_nodes_are_asked(void **state)
{
    static const enum rli_kind kinds[] = {RLI_SET, RLI_GRANT, RLI_SET};
    struct run r;
    (void)state;
    for (int fence = RLI_FENCE_NONE; fence <= RLI_FENCE_NODE; fence++) {
        started(&r, 3, (enum rli_fence)fence, 0);
        assert_int_equal(r.out.kind, kinds[fence]);
        assert_int_equal(r.out.send, 7);
        assert_int_equal(r.out.fence | r.out.clean, 0);
        assert_int_equal(r.out.token, 0);
    }
}

/* Design 5, step 4: where the counters agree, nothing more is asked. */
static void agreement_needs_no_confirmation(void **state)
{
    struct run r;
    (void)state;
    started(&r, 5, RLI_FENCE_QUORUM, 0);
    grant(&r, 4, 50);
    assert_quiet(&r);
    grant(&r, 0, 50);
    assert_quiet(&r);
    grant(&r, 2, 50);
    assert_held(&r, 50);
}

/* Step 2, 3: the highest of the first q; the others are asked to confirm it. */
static void the_highest_of_the_first_q(void **state)
{
    struct run r;
    (void)state;
    started(&r, 5, RLI_FENCE_QUORUM, 0);
    grant(&r, 4, 50);
    grant(&r, 0, 60);
    grant(&r, 2, 55);
    assert_asks(&r, 1 << 4 | 1 << 2, RLI_CONFIRM, 60);
    fenced(&r, 2, YES);
    assert_quiet(&r);
    fenced(&r, 4, YES);
    assert_held(&r, 60);
}

/* Step 2: fixed once. */
static void late_grants(void **state)
{
    struct run r;
    (void)state;
    started(&r, 5, RLI_FENCE_QUORUM, 0);
    grant(&r, 0, 50);
    grant(&r, 1, 60);
    grant(&r, 2, 50);
    assert_asks(&r, 1 << 0 | 1 << 2, RLI_CONFIRM, 60);
    grant(&r, 3, 61); /* beyond it: never counts */
    assert_quiet(&r);
    assert_int_equal(r.out.token, 60);
    fenced(&r, 0, YES);
    assert_quiet(&r);
    grant(&r, 4, 60); /* at it: counts at once */
    assert_held(&r, 60);

    started(&r, 5, RLI_FENCE_QUORUM, 0);
    grant(&r, 0, 50);
    grant(&r, 1, 60);
    grant(&r, 2, 50);
    grant(&r, 3, 59); /* below it: is asked */
    assert_asks(&r, 1 << 3, RLI_CONFIRM, 60);
    fenced(&r, 3, YES);
    assert_quiet(&r);
    fenced(&r, 2, YES);
    assert_held(&r, 60);
}

/* A grant beyond the token never counts, however many there are. */
static void grants_beyond_the_token_do_not_win(void **state)
{
    struct run r;
    (void)state;
    started(&r, 3, RLI_FENCE_QUORUM, 0);
    grant(&r, 0, 50);
    grant(&r, 1, 60);
    assert_asks(&r, 1 << 0, RLI_CONFIRM, 60);
    grant(&r, 2, 70);
    assert_quiet(&r);
    fenced(&r, 0, OTHER);
    assert_failed(&r, RL_BUSY, 1 << 1 | 1 << 2);
}

/* ---- Confirmations that do not come -------------------------------------------------------------------------------------------------- */

/* Step 3: "not yours", an error, silence; the third node decides. */
static void a_confirmation_is_refused(void **state)
{
    static const struct {
        enum said said;
        uint32_t clean; /* if it comes to that: the lock may still sit there */
        int status;
    } cases[] = {{OTHER, 0, RL_BUSY}, {ABSENT, 0, RL_BUSY}, {ERROR, 1, RL_BUSY}, {DENIED, 1, RL_BUSY}, {UNKNOWN, 1, RL_BUSY}};
    struct run r;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        started(&r, 3, RLI_FENCE_QUORUM, 0);
        grant(&r, 0, 50);
        grant(&r, 1, 60);
        fenced(&r, 0, cases[i].said);
        assert_quiet(&r); /* the third may do */
        assert_true(r.e[0] == RLI_GONE);
        grant(&r, 2, 60);
        assert_held(&r, 60);

        started(&r, 3, RLI_FENCE_QUORUM, 0);
        grant(&r, 0, 50);
        grant(&r, 1, 60);
        fenced(&r, 0, cases[i].said);
        vote(&r, 2, OTHER);
        assert_failed(&r, cases[i].status, 1 << 1 | cases[i].clean);
    }
}

/* At once, not at the deadline; what was granted, is unknown or open is released. */
static void fails_when_too_few_can_confirm(void **state)
{
    struct run r;
    (void)state;
    started(&r, 5, RLI_FENCE_QUORUM, 0);
    vote(&r, 0, UNKNOWN);
    grant(&r, 1, 50);
    grant(&r, 2, 60);
    grant(&r, 3, 50);
    assert_asks(&r, 1 << 1 | 1 << 3, RLI_CONFIRM, 60);
    fenced(&r, 1, OTHER);
    assert_quiet(&r);
    fenced(&r, 3, ERROR);
    assert_failed(&r, RL_BUSY, 1 << 0 | 1 << 2 | 1 << 3 | 1 << 4);
}

/* S2.8 */
static void failures_are_told_from_contention(void **state)
{
    struct run r;
    (void)state;
    started(&r, 3, RLI_FENCE_QUORUM, 0);
    grant(&r, 0, 50);
    grant(&r, 1, 60);
    vote(&r, 2, ERROR);
    fenced(&r, 0, UNKNOWN);
    assert_failed(&r, RL_E_NO_QUORUM, 1 << 0 | 1 << 1);

    started(&r, 3, RLI_FENCE_QUORUM, 0);
    grant(&r, 0, 50);
    grant(&r, 1, 60);
    vote(&r, 2, DENIED);
    fenced(&r, 0, DENIED);
    assert_failed(&r, RL_E_AUTH, 1 << 0 | 1 << 1);
}

/* Answers of nodes that were not asked, or were asked once and answer twice. */
static void surplus_answers_do_not_count(void **state)
{
    struct run r;
    (void)state;
    started(&r, 5, RLI_FENCE_QUORUM, 0);
    grant(&r, 0, 50);
    fenced(&r, 0, YES);
    assert_quiet(&r);
    grant(&r, 1, 60);
    grant(&r, 2, 50);
    assert_asks(&r, 1 << 0 | 1 << 2, RLI_CONFIRM, 60);
    fenced(&r, 1, OTHER);
    assert_quiet(&r);
    fenced(&r, 4, YES);
    assert_quiet(&r);
    fenced(&r, 0, YES);
    assert_quiet(&r);
    fenced(&r, 0, YES);
    assert_quiet(&r);
    grant(&r, 0, 60);
    assert_quiet(&r);
    fenced(&r, 2, YES);
    assert_held(&r, 60);
}

/* ---- Time -------------------------------------------------------------------------------------------------------------------- */

/* Step 4: the q-th largest e over the confirmed, whatever the others have. */
static void validity_is_that_of_the_confirmed(void **state)
{
    struct run r;
    (void)state;
    for (int late = 0; late < 2; late++) {
        prepare(&r, 3, RLI_FENCE_QUORUM, 0);
        r.terms.node_timeout = 5000 * MS;
        step(&r, RLI_START, 0, NULL);
        rli_instant last = rli_confirmed(&r.terms, T0, TTL) - r.terms.min_validity;
        assert_true(r.out.wake == last);
        grant(&r, 0, 50);
        r.sent = T0 + 500 * MS; /* as if the others had been sent later */
        grant(&r, 1, 60);
        grant(&r, 2, 61);
        r.now = last + late; /* the instant at which just enough is left, or too little */
        fenced(&r, 0, YES);
        if (late)
            assert_failed(&r, RL_E_TOO_SLOW, 7);
        else
            assert_held(&r, 60);
    }
}

static void time_is_up_while_confirming(void **state)
{
    struct run r;
    (void)state;
    started(&r, 3, RLI_FENCE_QUORUM, 0);
    grant(&r, 0, 50);
    grant(&r, 1, 60);
    wake(&r);
    assert_true(r.now == T0 + 250 * MS);
    assert_failed(&r, RL_E_NO_QUORUM, 7);

    started(&r, 3, RLI_FENCE_QUORUM, 0); /* the third was never sent */
    grant(&r, 0, 50);
    grant(&r, 1, 60);
    r.unsent = 1 << 2;
    wake(&r);
    assert_failed(&r, RL_E_NO_QUORUM, 3);

    started(&r, 3, RLI_FENCE_QUORUM, 0); /* one tick before it is in time */
    grant(&r, 0, 50);
    grant(&r, 1, 60);
    r.now = r.out.wake - 1;
    fenced(&r, 0, YES);
    assert_held(&r, 60);
}

static void the_lease_is_up_while_confirming(void **state)
{
    struct run r;
    (void)state;
    for (int fence = RLI_FENCE_QUORUM; fence <= RLI_FENCE_NODE; fence++) {
        prepare(&r, 3, (enum rli_fence)fence, 0);
        r.terms.node_timeout = 5000 * MS;
        step(&r, RLI_START, 0, NULL);
        r.now += 10 * MS;
        grant(&r, 0, 50);
        grant(&r, 1, 60);
        wake(&r);
        assert_true(r.now == rli_confirmed(&r.terms, T0, TTL) - r.terms.min_validity);
        assert_failed(&r, RL_E_TOO_SLOW, 7);
    }
}

/* S8.3 */
static void the_mint_comes_after_the_quorum(void **state)
{
    struct run r;
    (void)state;
    prepare(&r, 3, RLI_FENCE_NODE, 0);
    r.m.fence_node = 2;
    step(&r, RLI_START, 0, NULL);
    vote(&r, 0, YES);
    assert_quiet(&r);
    r.now += 100 * MS;
    vote(&r, 1, YES);
    assert_asks(&r, 1 << 2, RLI_MINT, 0);
    assert_true(r.out.wake == T0 + 250 * MS); /* all of it takes no longer than one node may (S4.1) */
    vote(&r, 2, OTHER);                       /* whoever holds it there: it can mint */
    assert_quiet(&r);
    minted(&r, 2, 99);
    assert_held(&r, 99);
}

static void a_mint_that_fails(void **state)
{
    static const struct {
        enum said said;
        int status;
    } cases[] = {
        {ERROR, RL_E_NO_QUORUM}, {DENIED, RL_E_AUTH}, {UNKNOWN, RL_E_NO_QUORUM}, {UNSENT, RL_E_NO_QUORUM}, {DIED, RL_E_NO_QUORUM}};
    struct run r;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        started(&r, 5, RLI_FENCE_NODE, 0);
        vote(&r, 4, OTHER);
        vote(&r, 0, YES);
        vote(&r, 1, YES);
        vote(&r, 2, YES);
        assert_asks(&r, 1 << 0, RLI_MINT, 0);
        fenced(&r, 0, cases[i].said);
        assert_failed(&r, cases[i].status, 1 << 0 | 1 << 1 | 1 << 2 | 1 << 3);
    }
}

static void a_mint_that_is_late(void **state)
{
    struct run r;
    (void)state;
    for (int late = 0; late < 2; late++) {
        prepare(&r, 3, RLI_FENCE_NODE, 0);
        r.terms.node_timeout = 5000 * MS;
        step(&r, RLI_START, 0, NULL);
        vote(&r, 0, YES);
        vote(&r, 1, YES);
        r.now = rli_confirmed(&r.terms, T0, TTL) - r.terms.min_validity + late;
        minted(&r, 0, 99);
        if (late)
            assert_failed(&r, RL_E_TOO_SLOW, 7);
        else
            assert_held(&r, 99);
    }
    for (int long_wait = 0; long_wait < 2; long_wait++) { /* it has a timeout of its own, within the call's */
        started(&r, 3, RLI_FENCE_NODE, long_wait ? 10000 * MS : 0);
        vote(&r, 0, YES);
        r.now += 100 * MS;
        vote(&r, 1, YES);
        wake(&r);
        assert_true(r.now == T0 + (long_wait ? 350 : 250) * MS);
        assert_int_equal(r.out.clean, 7);
        assert_int_equal(r.m.verdict, RL_E_NO_QUORUM);
        assert_true(r.out.finished == !long_wait);
    }
}

/* The call's own deadline, after an attempt that says more. */
static void the_call_ends_while_confirming(void **state)
{
    struct run r;
    (void)state;
    for (int fence = RLI_FENCE_QUORUM; fence <= RLI_FENCE_NODE; fence++) {
        started(&r, 3, (enum rli_fence)fence, 300 * MS);
        for (uint32_t i = 0; i < 2; i++)
            vote(&r, i, OTHER);
        assert_int_equal(r.out.clean, 7);
        r.now = T0 + 90 * MS;
        for (uint32_t i = 0; i < 2; i++) {
            struct rli_answer answer = answer_of(OTHER, r.now, r.now);
            step(&r, RLI_CLEANED, i, &answer);
        }
        r.now = r.out.wake;
        step(&r, RLI_DEADLINE, 0, NULL);
        assert_true(r.out.fresh_token && r.out.send == 7 && r.now < T0 + 300 * MS);
        r.now = T0 + 200 * MS;
        grant(&r, 0, 50);
        grant(&r, 1, 60);
        assert_int_equal(r.out.fence, 1);
        wake(&r);
        assert_true(r.now == T0 + 300 * MS);
        assert_int_equal(r.out.clean & 7, 7);
        for (uint32_t i = 0; i < 3 && !r.out.finished; i++) {
            struct rli_answer answer = answer_of(YES, r.now, r.now);
            step(&r, RLI_CLEANED, i, &answer);
        }
        assert_true(r.out.finished);
        assert_int_equal(r.out.status, RL_BUSY);
    }
}

static void canceled_while_confirming(void **state)
{
    struct run r;
    (void)state;
    for (int fence = RLI_FENCE_QUORUM; fence <= RLI_FENCE_NODE; fence++) {
        started(&r, 5, (enum rli_fence)fence, RLI_NEVER);
        vote(&r, 3, UNKNOWN);
        vote(&r, 4, OTHER);
        grant(&r, 0, 50);
        grant(&r, 1, 60);
        grant(&r, 2, 50);
        assert_int_equal(r.out.fence, fence == RLI_FENCE_QUORUM ? 1 << 0 | 1 << 2 : 1 << 0);
        step(&r, RLI_CANCEL, 0, NULL);
        assert_failed(&r, RL_CANCELED, 1 << 0 | 1 << 1 | 1 << 2 | 1 << 3);
    }
}

/* S3.6: the next attempt knows nothing of this one's token, grants and confirmations. */
static void the_next_attempt_begins_anew(void **state)
{
    struct run r;
    (void)state;
    started(&r, 3, RLI_FENCE_QUORUM, RLI_NEVER);
    grant(&r, 0, 50);
    grant(&r, 1, 60);
    vote(&r, 2, OTHER);
    fenced(&r, 0, OTHER);
    assert_int_equal(r.out.clean & (1 << 1), 1 << 1);
    for (uint32_t i = 0; i < 3; i++) {
        struct rli_answer answer = answer_of(i == 1 ? YES : OTHER, r.now, r.now);
        step(&r, RLI_CLEANED, i, &answer);
    }
    r.now = r.out.wake;
    step(&r, RLI_DEADLINE, 0, NULL);
    assert_true(r.out.fresh_token);
    assert_int_equal(r.out.kind, RLI_GRANT);
    assert_int_equal(r.out.token, 0);
    fenced(&r, 1, YES); /* of the last attempt */
    assert_quiet(&r);
    grant(&r, 1, 40);
    assert_quiet(&r);
    grant(&r, 2, 45);
    assert_asks(&r, 1 << 1, RLI_CONFIRM, 45);
    fenced(&r, 1, YES);
    assert_held(&r, 45);
}

/* S3.7: a connection that dies at the confirmation costs no acquisition. */
static void a_connection_dies_at_the_confirmation(void **state)
{
    struct run r;
    (void)state;
    started(&r, 3, RLI_FENCE_QUORUM, 0);
    grant(&r, 0, 50);
    grant(&r, 1, 60);
    vote(&r, 2, OTHER);
    fenced(&r, 0, DIED);
    assert_true(r.out.fresh_token && r.out.send == 7 && r.out.clean == 3);
    grant(&r, 0, 61);
    grant(&r, 1, 61);
    assert_held(&r, 61);
}

/* ---- Words ----------------------------------------------------------------------------------------------------------------------- */

static const char key[] = "rl:a\0b", side[] = "{rl:a\0b}:fence", token[] = "0123456789abcdef0123456789abcdef";

static struct rli_subject subject_of(enum rli_fence mode, uint32_t nodes, int64_t fence)
{
    return (struct rli_subject){.key = key,
                                .token = token,
                                .counter = side,
                                .key_len = sizeof key - 1,
                                .token_len = sizeof token - 1,
                                .counter_len = sizeof side - 1,
                                .mode = mode,
                                .nodes = nodes,
                                .fence = fence};
}

/* EVALSHA sha 2 key counter, then the texts up to NULL; "" stands for the token. */
static void assert_script(enum rli_kind kind, const struct rli_subject *subject, rli_span ttl, enum rli_script_id id,
                          const char *const *texts)
{
    for (int whole = 0; whole < 2; whole++) {
        struct rli_command command;
        int at = 5;
        rli_command_request(&command, kind, subject, ttl, whole);
        assert_string_equal(command.argv[0], whole ? "EVAL" : "EVALSHA");
        assert_int_equal(command.length[1], whole ? rli_scripts[id].length : 40);
        assert_memory_equal(command.argv[1], whole ? rli_scripts[id].text : rli_scripts[id].sha1, command.length[1]);
        assert_true(command.length[2] == 1 && command.argv[2][0] == '2');
        assert_int_equal(command.length[3], sizeof key - 1);
        assert_memory_equal(command.argv[3], key, sizeof key - 1);
        assert_int_equal(command.length[4], sizeof side - 1);
        assert_memory_equal(command.argv[4], side, sizeof side - 1);
        for (; *texts && texts[at - 5]; at++) {
            const char *expected = texts[at - 5][0] ? texts[at - 5] : token;
            assert_int_equal(command.length[at], strlen(expected));
            assert_memory_equal(command.argv[at], expected, strlen(expected));
        }
        assert_int_equal(command.argc, at);
    }
}

#define TEXTS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void the_words_of_a_grant(void **state)
{
    struct rli_subject one = subject_of(RLI_FENCE_QUORUM, 1, 0), three = subject_of(RLI_FENCE_QUORUM, 3, 0);
    (void)state;
    assert_script(RLI_GRANT, &one, 1000 * MS, RLI_SCRIPT_GRANT, TEXTS("", "1000", "86400000", "1"));
    assert_script(RLI_GRANT, &three, 43200000 * MS, RLI_SCRIPT_GRANT, TEXTS("", "43200000", "86400000", "1048576"));
    assert_script(RLI_GRANT, &three, 43200001 * MS, RLI_SCRIPT_GRANT, TEXTS("", "43200001", "86400002", "1048576"));
    assert_script(RLI_GRANT, &three, RL_MAX_TTL_MS * MS, RLI_SCRIPT_GRANT, TEXTS("", "31536000000", "63072000000", "1048576"));
}

static void the_words_of_what_follows(void **state)
{
    struct rli_subject three = subject_of(RLI_FENCE_QUORUM, 3, RL_MAX_FENCE - 1), node = subject_of(RLI_FENCE_NODE, 3, 0);
    (void)state;
    assert_script(RLI_CONFIRM, &three, 1000 * MS, RLI_SCRIPT_CONFIRM, TEXTS("", "9007199254740991", "86400000"));
    assert_script(RLI_MINT, &node, 1000 * MS, RLI_SCRIPT_MINT, TEXTS("86400000"));
    assert_script(RLI_TOP_UP, &three, 1000 * MS, RLI_SCRIPT_FENCED_TOP_UP, TEXTS("", "1000", "9007199254740991", "86400000"));
    assert_script(RLI_RELEASE, &three, 0, RLI_SCRIPT_FENCED_RELEASE, TEXTS("", "9007199254740991", "86400000"));
}

/* Only a quorum fence has counters to raise when a lock is set again or released. */
static void where_no_counter_is_raised(void **state)
{
    const struct rli_subject cases[] = {subject_of(RLI_FENCE_NONE, 3, 0), subject_of(RLI_FENCE_NODE, 3, 5),
                                        subject_of(RLI_FENCE_NODE, 1, 5), subject_of(RLI_FENCE_QUORUM, 3, 0)};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rli_command command;
        rli_command_request(&command, RLI_RELEASE, &cases[i], 0, false);
        assert_memory_equal(command.argv[1], rli_scripts[RLI_SCRIPT_RELEASE].sha1, 40);
        assert_int_equal(command.argc, 5);
        rli_command_request(&command, RLI_TOP_UP, &cases[i], 1000 * MS, false);
        assert_string_equal(command.argv[0], "SET");
        assert_int_equal(command.argc, 6);
    }
}

static void the_words_of_a_write(void **state)
{
    struct rli_subject write = subject_of(RLI_FENCE_NONE, 1, 77);
    (void)state;
    assert_script(RLI_STORE, &write, 0, RLI_SCRIPT_STORE, TEXTS("77", ""));
    write.value = "value";
    write.value_len = 5;
    assert_script(RLI_STORE, &write, 0, RLI_SCRIPT_STORE, TEXTS("77", "", "value"));
    write.value_len = 0; /* an empty value is one */
    struct rli_command command;
    rli_command_request(&command, RLI_STORE, &write, 0, false);
    assert_int_equal(command.argc, 8);
    assert_int_equal(command.length[7], 0);
}

/* ---- Answers --------------------------------------------------------------------------------------------------------------------- */

static struct rli_answer read_as(enum rli_kind kind, int type, int64_t integer, const char *text)
{
    struct rli_reply reply = {.type = type, .integer = integer, .text = text, .text_len = strlen(text)};
    return rli_answer_from_reply(kind, &reply);
}

static void counters_as_answers(void **state)
{
    static const enum rli_kind kinds[] = {RLI_GRANT, RLI_MINT};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct rli_answer answer = read_as(kinds[i], RLI_INTEGER, RL_MAX_FENCE - 1, "");
        assert_int_equal(answer.outcome, RL_NODE_YES);
        assert_int_equal(answer.fence, RL_MAX_FENCE - 1);
        answer = read_as(kinds[i], RLI_INTEGER, 0, "");
        assert_true(answer.outcome == RL_NODE_ERROR && answer.unknown && !answer.fence);
        answer = read_as(kinds[i], RLI_INTEGER, -1, "");
        assert_true(answer.outcome == RL_NODE_ERROR && answer.unknown && !answer.fence);
        answer = read_as(kinds[i], RLI_STATUS, 0, "OK");
        assert_true(answer.outcome == RL_NODE_ERROR && answer.unknown);
        answer = read_as(kinds[i], RLI_NIL, 0, "");
        assert_int_equal(answer.outcome, kinds[i] == RLI_GRANT ? RL_NODE_HELD_BY_OTHER : RL_NODE_ERROR);
        answer = read_as(kinds[i], RLI_ERROR, 0, "ERR the fence counter is not usable");
        assert_true(answer.outcome == RL_NODE_ERROR && !answer.denied && !answer.unknown);
        answer = read_as(kinds[i], RLI_ERROR, 0, "NOPERM this user has no permissions to run the 'evalsha' command");
        assert_true(answer.outcome == RL_NODE_ERROR && answer.denied);
        answer = read_as(kinds[i], RLI_ERROR, 0, "WRONGTYPE Operation against a key holding the wrong kind of value");
        assert_int_equal(answer.outcome, RL_NODE_ERROR);
    }
}

/* S8.1: no token is 2^53 or more; a server that says so is not to be believed. */
static void tokens_are_less_than_2_to_the_53(void **state)
{
    (void)state;
    for (int64_t value = RL_MAX_FENCE; value > 0; value = value == RL_MAX_FENCE ? INT64_MAX : 0) {
        assert_int_equal(read_as(RLI_GRANT, RLI_INTEGER, value, "").outcome, RL_NODE_ERROR);
        assert_int_equal(read_as(RLI_MINT, RLI_INTEGER, value, "").outcome, RL_NODE_ERROR);
    }
}

static void confirmations_and_writes_as_answers(void **state)
{
    static const enum rli_kind kinds[] = {RLI_CONFIRM, RLI_STORE};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(read_as(kinds[i], RLI_INTEGER, 1, "").outcome, RL_NODE_YES);
        assert_int_equal(read_as(kinds[i], RLI_INTEGER, 0, "").outcome, RL_NODE_ABSENT);
        assert_int_equal(read_as(kinds[i], RLI_INTEGER, 3, "").outcome, RL_NODE_ERROR);
        assert_int_equal(read_as(kinds[i], RLI_NIL, 0, "").outcome, RL_NODE_ERROR);
        assert_int_equal(read_as(kinds[i], RLI_STATUS, 0, "OK").outcome, RL_NODE_ERROR);
        assert_int_equal(read_as(kinds[i], RLI_ERROR, 0, "ERR x").outcome, RL_NODE_ERROR);
    }
    assert_int_equal(read_as(RLI_STORE, RLI_ERROR, 0, "WRONGTYPE Operation").outcome, RL_NODE_ERROR);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_node_sets_and_mints_in_one_step),
        cmocka_unit_test(what_several_nodes_are_asked),
        cmocka_unit_test(agreement_needs_no_confirmation),
        cmocka_unit_test(the_highest_of_the_first_q),
        cmocka_unit_test(late_grants),
        cmocka_unit_test(grants_beyond_the_token_do_not_win),
        cmocka_unit_test(a_confirmation_is_refused),
        cmocka_unit_test(fails_when_too_few_can_confirm),
        cmocka_unit_test(failures_are_told_from_contention),
        cmocka_unit_test(surplus_answers_do_not_count),
        cmocka_unit_test(validity_is_that_of_the_confirmed),
        cmocka_unit_test(time_is_up_while_confirming),
        cmocka_unit_test(the_lease_is_up_while_confirming),
        cmocka_unit_test(the_mint_comes_after_the_quorum),
        cmocka_unit_test(a_mint_that_fails),
        cmocka_unit_test(a_mint_that_is_late),
        cmocka_unit_test(the_call_ends_while_confirming),
        cmocka_unit_test(canceled_while_confirming),
        cmocka_unit_test(the_next_attempt_begins_anew),
        cmocka_unit_test(a_connection_dies_at_the_confirmation),
        cmocka_unit_test(the_words_of_a_grant),
        cmocka_unit_test(the_words_of_what_follows),
        cmocka_unit_test(where_no_counter_is_raised),
        cmocka_unit_test(the_words_of_a_write),
        cmocka_unit_test(counters_as_answers),
        cmocka_unit_test(tokens_are_less_than_2_to_the_53),
        cmocka_unit_test(confirmations_and_writes_as_answers),
    };
    return cmocka_run_group_tests_name("fence", tests, NULL, NULL);
}
