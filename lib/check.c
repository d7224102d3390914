/* check.c - see check.h. */
#include "check.h"

#include "redlatch.h"

/* A node goes on to the next step if it passed the one before. INFO only serves to find two URLs of one server: a user may be
 * denied it. */
static const enum rli_kind steps[] = {RLI_INFO, RLI_SET, RLI_EXTEND, RLI_RELEASE};
enum { STEPS = sizeof steps / sizeof *steps };

static void ask(struct rli_check *m, rli_instant now, struct rli_actions *out)
{
    rli_ballot_open(&m->ballot, m->fine);
    m->wake = rli_add(now, m->terms->node_timeout);
    out->send = m->fine;
    out->kind = steps[m->step];
}

static void finish(struct rli_check *m, struct rli_actions *out)
{
    m->wake = RLI_NEVER;
    out->finished = true;
    out->status = m->denied ? RL_E_AUTH : rli_count(m->fine) >= m->terms->quorum ? RL_OK : RL_E_NO_QUORUM;
}

static void step_over(struct rli_check *m, rli_instant now, struct rli_actions *out)
{
    const struct rli_ballot *b = &m->ballot;

    m->fine &= b->yes;
    m->denied |= b->denied;
    if (++m->step < STEPS && m->fine)
        ask(m, now, out);
    else
        finish(m, out);
}

void rli_check_step(struct rli_check *m, rli_instant now, const struct rli_input *in, struct rli_actions *out)
{
    *out = (struct rli_actions){0};
    switch (in->event) {
    case RLI_START:
        m->fine = rli_all(m->terms);
        ask(m, now, out);
        break;
    case RLI_VOTE:
        if (rli_ballot_count(&m->ballot, in->node, in->answer) && !m->ballot.open)
            step_over(m, now, out);
        break;
    case RLI_DEADLINE:
        if (now < m->wake)
            break;
        rli_ballot_close(&m->ballot, in->unsent);
        step_over(m, now, out);
        break;
    case RLI_CANCEL:
    case RLI_CLEANED:
    case RLI_FENCED:
        break;
    }
    out->wake = m->wake;
}
