/* test_orders_fence.c - acquisitions with a quorum fence that run into each other (design 5), against servers of a few lines each: in
 * every order of requests, answers and vanishing keys, or in a random sample of them. Tokens are unique, and rise. */
#include "acquire.h"
#include "choices.h"

#include <string.h>

enum { MOST = 3 };

struct contest { /* what is tried */
    uint32_t nodes, attempts;
    uint32_t vanish; /* so many keys vanish at some time: their lease ended, or a release came */
    bool at_once;    /* a request is carried out and answered in one step */
    uint32_t steps;
};

struct request { /* of an attempt to a node */
    bool sent, done, read;
    enum said said;
    int64_t counter;
};

struct attempt {
    struct rli_acquire m;
    rli_instant e[RL_MAX_NODES];
    struct rli_actions out;
    bool begun, over, won;
    uint32_t before; /* attempts that had won when it began */
    int64_t fence;
    struct request grants[5], confirms[5], releases[5];
};

static struct {
    struct choices *c;
    const struct contest *contest;
    struct rli_terms terms;
    uint32_t holder[5]; /* attempt + 1; 0 = no key */
    int64_t counter[5];
    uint32_t vanished;
    struct attempt attempts[MOST];
} w;

static void send_to(struct request *requests, uint32_t mask)
{
    for (uint32_t i = 0; i < w.contest->nodes; i++)
        if (mask & rli_bit(i))
            requests[i].sent = true;
}

static void has_won(uint32_t a)
{
    struct attempt *me = &w.attempts[a];

    me->won = true;
    me->fence = me->out.token;
    tell(w.c, "  %c has won: %d\n", 'A' + (int)a, (int)me->fence);
    for (uint32_t b = 0; b < w.contest->attempts; b++) {
        const struct attempt *other = &w.attempts[b];
        if (b == a || !other->won)
            continue;
        rule(w.c, other->fence != me->fence, "a token was given twice");
        rule(w.c, !(me->before & rli_bit(b)) || other->fence < me->fence, "an earlier lock has a higher token");
    }
}

static void carry_on(uint32_t a)
{
    struct attempt *me = &w.attempts[a];

    send_to(me->releases, me->out.clean);
    send_to(me->grants, me->out.send);
    send_to(me->confirms, me->out.fence);
    if (!me->out.finished)
        return;
    me->over = true;
    if (me->out.status == RL_OK)
        has_won(a);
}

static void begin(uint32_t a)
{
    struct attempt *me = &w.attempts[a];

    tell(w.c, "  %c begins\n", 'A' + (int)a);
    me->begun = true;
    for (uint32_t b = 0; b < w.contest->attempts; b++)
        me->before |= w.attempts[b].won ? rli_bit(b) : 0;
    me->m = (struct rli_acquire){.terms = &w.terms, .e = me->e, .ttl = 1000 * MS, .fence = RLI_FENCE_QUORUM};
    for (uint32_t i = 0; i < w.contest->nodes; i++)
        me->e[i] = RLI_GONE;
    rli_acquire_step(&me->m, T0, &(struct rli_input){.event = RLI_START}, &me->out);
    carry_on(a);
}

/* At the node. */
static void carry_out(uint32_t a, uint32_t i, struct request *request, char what)
{
    struct attempt *me = &w.attempts[a];

    request->done = true;
    request->said = what == 'g' ? OTHER : w.holder[i] == a + 1 ? YES : ABSENT;
    if (what == 'g' && !w.holder[i]) {
        request->said = YES;
        request->counter = ++w.counter[i];
        w.holder[i] = a + 1;
    } else if (what == 'c' && request->said == YES) {
        w.counter[i] = rli_max(w.counter[i], me->m.token);
    } else if (what == 'r' && request->said == YES) {
        w.holder[i] = 0;
    }
    tell(w.c, "  node %u: %c of %c: %s %d\n", i, what, 'A' + (int)a, said_names[request->said], (int)w.counter[i]);
}

/* At the client. */
static void hear(uint32_t a, uint32_t i, struct request *request, char what)
{
    struct attempt *me = &w.attempts[a];

    request->read = true;
    if (what == 'r' || me->over)
        return;
    tell(w.c, "  %c hears %u: %c\n", 'A' + (int)a, i, what);
    struct rli_answer answer = answer_of(request->said, T0, T0);
    answer.fence = request->counter;
    rli_acquire_step(&me->m, T0, &(struct rli_input){.event = what == 'c' ? RLI_FENCED : RLI_VOTE, .node = i, .answer = &answer},
                     &me->out);
    carry_on(a);
}

/* One thing that may happen to a request, if it is the `wanted`th: counted down. True: it was done. */
static bool may_move(uint32_t a, uint32_t i, struct request *request, char what, bool first, int *wanted)
{
    bool done = request->sent && !request->done && first, read = request->done && !request->read && !w.attempts[a].over;

    if ((!done && !read) || (*wanted)-- != 0)
        return false;
    if (done)
        carry_out(a, i, request, what);
    if (read || w.contest->at_once)
        hear(a, i, request, what);
    return true;
}

/* Does the wanted'th of all things that may happen; else how many there are is what `wanted` has fallen by. */
static bool happen(int *wanted)
{
    for (uint32_t a = 0; a < w.contest->attempts; a++) {
        struct attempt *me = &w.attempts[a];
        if (!me->begun && (a == 0 || w.attempts[a - 1].begun) && (*wanted)-- == 0)
            return begin(a), true;
        for (uint32_t i = 0; i < w.contest->nodes; i++) { /* requests to a node are carried out in order */
            struct request *g = &me->grants[i], *c = &me->confirms[i], *r = &me->releases[i];
            if (may_move(a, i, g, 'g', true, wanted) || may_move(a, i, c, 'c', true, wanted) ||
                may_move(a, i, r, 'r', g->done && (c->done || !c->sent), wanted))
                return true;
        }
    }
    for (uint32_t i = 0; i < w.contest->nodes; i++)
        if (w.vanished < w.contest->vanish && w.holder[i] && (*wanted)-- == 0) {
            tell(w.c, "  node %u: the key vanishes\n", i);
            w.vanished++;
            w.holder[i] = 0;
            return true;
        }
    return false;
}

static void contend(struct choices *c, const void *setup)
{
    memset(&w, 0, sizeof w);
    w.c = c;
    w.contest = setup;
    w.terms = terms_of(w.contest->nodes);
    for (uint32_t i = 0; i < w.contest->nodes; i++)
        w.counter[i] = pick(c, i == 0 ? 1 : 3);
    for (uint32_t steps = 0; steps < w.contest->steps && !c->broken; steps++) {
        int count = 1000, wanted;
        happen(&count);
        if (count == 1000)
            return;
        wanted = (int)pick(c, (uint32_t)(1000 - count));
        happen(&wanted);
    }
}

/* Every order, as far as a request is carried out and answered in one step. */
static void two_contenders_in_every_order(void **state)
{
    static const struct contest contest = {.nodes = 3, .attempts = 2, .vanish = 2, .at_once = true, .steps = 9};
    (void)state;
    print_message("%llu courses\n", (unsigned long long)explore(contend, &contest));
}

static void contenders_in_any_order(void **state)
{
    static const struct contest contests[] = {
        {.nodes = 3, .attempts = 2, .vanish = 3, .steps = 100},
        {.nodes = 3, .attempts = 3, .vanish = 6, .steps = 100},
        {.nodes = 4, .attempts = 3, .vanish = 8, .steps = 100},
        {.nodes = 5, .attempts = 3, .vanish = 9, .steps = 100},
    };
    (void)state;
    for (size_t i = 0; i < sizeof contests / sizeof *contests; i++)
        sample(contend, &contests[i], 4711 + i, 100000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_contenders_in_every_order),
        cmocka_unit_test(contenders_in_any_order),
    };
    return cmocka_run_group_tests_name("orders_fence", tests, NULL, NULL);
}
