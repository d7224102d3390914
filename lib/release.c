/* release.c - see release.h.
 *
 * The verdict tells two things apart: whether a quorum no longer holds our token (the lock is free), and whether it was still ours
 * when the call was made (the work under it was protected to its end). */
#include "release.h"

#include "redlatch.h"

#include <assert.h>

static void finish(struct rli_release *m, int status, struct rli_actions *out)
{
    m->wake = RLI_NEVER;
    out->finished = true;
    out->status = status;
}

/* Was the lock lost before the call, if the nodes of `not_ours` turn out not to hold our token? */
static bool is_lost(const struct rli_release *m, uint32_t not_ours, bool no_more_votes)
{
    uint32_t q = m->terms->quorum, may_delete = m->ballot.yes | (no_more_votes ? 0 : m->ballot.open);

    if (m->lost)
        return no_more_votes || !m->ballot.open || rli_count(m->ballot.yes | m->ballot.other | m->ballot.absent) >= q;
    if (m->unproved)
        return rli_count(not_ours) > m->terms->nodes - q;
    if (m->in_time) /* a node that deletes it proves that it was ours there until now */
        return rli_count((rli_holding(m->terms, m->e, m->called) & ~not_ours) | may_delete) < q;
    return rli_count(may_delete) < q;
}

/* The verdict if no further vote came. */
static int final_verdict(const struct rli_release *m)
{
    const struct rli_ballot *b = &m->ballot;

    if (is_lost(m, b->other | b->absent, true))
        return RL_LOST;
    if (rli_count(b->yes | b->other | b->absent) >= m->terms->quorum)
        return RL_OK;
    return rli_ballot_failure(b);
}

static void judge(struct rli_release *m, struct rli_actions *out)
{
    const struct rli_ballot *b = &m->ballot;
    uint32_t not_ours = b->other | b->absent, gone = b->yes | not_ours;

    if (is_lost(m, not_ours, false))
        finish(m, RL_LOST, out);
    else if (!b->open || rli_count(gone | b->open) < m->terms->quorum)
        finish(m, final_verdict(m), out);
    else if (rli_count(gone) >= m->terms->quorum && !is_lost(m, not_ours | b->open, true))
        finish(m, RL_OK, out); /* whatever the others say */
}

static void start(struct rli_release *m, rli_instant now, struct rli_actions *out)
{
    m->started = true;
    m->called = now;
    m->in_time = !m->unproved && rli_valid_until(m->terms, m->e) > now;
    m->wake = rli_add(now, m->terms->node_timeout);
    rli_ballot_open(&m->ballot, rli_all(m->terms));
    out->send = rli_all(m->terms);
    out->kind = RLI_RELEASE;
}

static void time_is_up(struct rli_release *m, const struct rli_input *in, struct rli_actions *out)
{
    uint32_t sent = m->ballot.yes | m->ballot.other | m->ballot.absent | (m->ballot.open & ~in->unsent);

    rli_ballot_close(&m->ballot, in->unsent);
    if (!m->no_wait)
        finish(m, final_verdict(m), out);
    else if (!m->unproved && !m->in_time)
        finish(m, RL_LOST, out);
    else
        finish(m, rli_count(sent) >= m->terms->quorum ? RL_OK : rli_ballot_failure(&m->ballot), out);
}

/* "Absent" to a release sent again after its connection broke: the first one deleted it, if it was still ours (S6.2). So it did
 * if another has taken the lock since. */
static struct rli_answer reread(const struct rli_release *m, rli_instant now, const struct rli_answer *answer)
{
    struct rli_answer vote = *answer;

    bool gone = vote.outcome == RL_NODE_ABSENT || (vote.outcome == RL_NODE_HELD_BY_OTHER && !vote.text);

    if (gone && vote.resent && !m->unproved && rli_valid_until(m->terms, m->e) > now)
        vote.outcome = RL_NODE_YES;
    return vote;
}

void rli_release_step(struct rli_release *m, rli_instant now, const struct rli_input *in, struct rli_actions *out)
{
    struct rli_answer vote;

    assert(m->started == (in->event != RLI_START));
    *out = (struct rli_actions){0};
    switch (in->event) {
    case RLI_START:
        start(m, now, out);
        break;
    case RLI_VOTE:
        vote = reread(m, now, in->answer);
        if (rli_ballot_count(&m->ballot, in->node, &vote))
            judge(m, out);
        break;
    case RLI_DEADLINE:
        if (now >= m->wake || m->no_wait)
            time_is_up(m, in, out);
        break;
    case RLI_CANCEL: /* a release cannot be cancelled */
    case RLI_CLEANED:
    case RLI_FENCED:
        break;
    }
    out->wake = m->wake;
}
