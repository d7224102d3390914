/* extend.c - see extend.h. */
#include "extend.h"

#include "redlatch.h"

#include <assert.h>

static void finish(struct rli_extend *m, int status, struct rli_actions *out)
{
    m->state = RLI_EXTEND_DONE;
    m->wake = RLI_NEVER;
    out->finished = true;
    out->status = status;
}

void rli_extend_apply(const struct rli_terms *terms, rli_instant *e, uint32_t node, rli_span ttl, const struct rli_answer *answer)
{
    if (answer->outcome == RL_NODE_YES)
        e[node] = rli_max(e[node], rli_confirmed(terms, answer->sent, ttl));
    else if (answer->outcome == RL_NODE_HELD_BY_OTHER || answer->outcome == RL_NODE_ABSENT)
        e[node] = RLI_GONE;
}

static bool is_lost(const struct rli_extend *m, rli_instant now)
{
    const struct rli_ballot *b = &m->ballot;

    if (m->unproved)
        return rli_count(b->other | b->absent) > m->terms->nodes - m->terms->quorum;
    return rli_count(rli_holding(m->terms, m->e, now)) < m->terms->quorum;
}

static bool is_confirmed(const struct rli_extend *m)
{
    return rli_count(m->ballot.yes) >= m->terms->quorum;
}

static void judge(struct rli_extend *m, rli_instant now, const struct rli_input *in, struct rli_actions *out)
{
    if (!is_confirmed(m)) {
        if (is_lost(m, now))
            finish(m, RL_LOST, out);
        else if (rli_count(m->ballot.yes | m->ballot.open) < m->terms->quorum)
            finish(m, rli_ballot_failure(&m->ballot), out);
        return;
    }
    if (rli_until(rli_valid_until(m->terms, m->e), now) < m->terms->min_validity) {
        finish(m, is_lost(m, now) ? RL_LOST : RL_E_TOO_SLOW, out);
        return;
    }
    out->top_up = m->state == RLI_EXTEND_VOTING                                    ? m->ballot.absent
                  : in->event == RLI_VOTE && in->answer->outcome == RL_NODE_ABSENT ? rli_bit(in->node)
                                                                                   : 0;
    if (m->settle && m->ballot.open & in->resent)
        m->state = RLI_EXTEND_SETTLING;
    else
        finish(m, RL_OK, out);
}

static void start(struct rli_extend *m, rli_instant now, struct rli_actions *out)
{
    m->wake = rli_add(now, m->terms->node_timeout);
    if (!m->unproved) {
        rli_instant valid_until = rli_valid_until(m->terms, m->e);
        if (valid_until <= now) { /* even if the servers would agree (S5.1) */
            finish(m, RL_LOST, out);
            return;
        }
        m->wake = rli_min(m->wake, valid_until);
    }
    m->state = RLI_EXTEND_VOTING;
    rli_ballot_open(&m->ballot, rli_all(m->terms));
    out->send = rli_all(m->terms);
    out->kind = RLI_EXTEND;
}

static void time_is_up(struct rli_extend *m, rli_instant now, const struct rli_input *in, struct rli_actions *out)
{
    rli_ballot_close(&m->ballot, in->unsent);
    if (m->state == RLI_EXTEND_SETTLING)
        judge(m, now, in, out);
    else
        finish(m, is_lost(m, now) ? RL_LOST : rli_ballot_failure(&m->ballot), out);
}

void rli_extend_step(struct rli_extend *m, rli_instant now, const struct rli_input *in, struct rli_actions *out)
{
    assert(m->state != RLI_EXTEND_DONE);
    assert((m->state == RLI_EXTEND_NEW) == (in->event == RLI_START));
    *out = (struct rli_actions){0};
    switch (in->event) {
    case RLI_START:
        start(m, now, out);
        break;
    case RLI_VOTE:
        if (!rli_ballot_count(&m->ballot, in->node, in->answer))
            break;
        if (!m->unproved && rli_valid_until(m->terms, m->e) <= now) { /* terminal, whatever the answer (S5.5) */
            finish(m, RL_LOST, out);
            break;
        }
        rli_extend_apply(m->terms, m->e, in->node, m->ttl, in->answer);
        judge(m, now, in, out);
        break;
    case RLI_DEADLINE:
        if (now >= m->wake)
            time_is_up(m, now, in, out);
        break;
    case RLI_CANCEL:
        finish(m, RL_CANCELED, out);
        break;
    case RLI_CLEANED:
    case RLI_FENCED:
        break;
    }
    out->wake = m->wake;
}
