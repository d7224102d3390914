/* acquire.c - see acquire.h.
 *
 * The algorithm is Redlock's, with these differences: validity counts from the sending of each request; an attempt ends when it can
 * no longer succeed; and a failed attempt is taken back, on the same connections, before the next one is sent. */
#include "acquire.h"

#include <assert.h>

static uint64_t draw(uint64_t *seed)
{
    /* splitmix64: every seed is good, 0 included. */
    uint64_t z = (*seed += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Uniform in [low, high]. */
static rli_span between(struct rli_acquire *m, rli_span low, rli_span high)
{
    return low >= high ? low : low + (rli_span)(draw(&m->seed) % (uint64_t)(high - low + 1));
}

static void finish(struct rli_acquire *m, int status, struct rli_actions *out)
{
    m->state = RLI_ACQUIRE_DONE;
    m->wake = RLI_NEVER;
    out->finished = true;
    out->status = status;
}

/* Is the counter raised by the request that takes the lock? On a single node every fence is. */
static bool single_step(const struct rli_acquire *m)
{
    return m->fence == RLI_FENCE_QUORUM || (m->fence == RLI_FENCE_NODE && m->terms->nodes == 1);
}

static void begin_attempt(struct rli_acquire *m, rli_instant now, struct rli_actions *out)
{
    const struct rli_terms *t = m->terms;
    rli_instant by_node = rli_add(now, t->node_timeout);
    rli_instant by_validity = rli_add(rli_confirmed(t, now, m->ttl), -t->min_validity);

    m->state = RLI_ACQUIRE_VOTING;
    m->cut_short = false;
    m->token = 0;
    m->confirmed = m->confirming = 0;
    rli_ballot_open(&m->ballot, rli_all(t));
    m->wake = rli_min(rli_min(by_node, m->deadline), by_validity);
    m->ends_by = m->wake == by_node ? RLI_ENDS_BY_NODE : m->wake == m->deadline ? RLI_ENDS_BY_DEADLINE : RLI_ENDS_BY_VALIDITY;
    for (uint32_t i = 0; i < t->nodes; i++)
        m->holder_left[i] = RLI_NEVER;
    out->fresh_token = true;
    out->send = rli_all(t);
    out->kind = single_step(m) ? RLI_GRANT : RLI_SET;
}

static bool may_retry(const struct rli_acquire *m, rli_instant now)
{
    if (m->wait == 0 || m->verdict == RL_E_AUTH || now >= m->last_start)
        return false;
    return m->verdict == RL_BUSY || !m->fail_fast;
}

/* How long until enough nodes will be free of other holders, as far as they told. */
static rli_span until_free(const struct rli_acquire *m)
{
    rli_span negated[RL_MAX_NODES];
    for (uint32_t i = 0; i < m->terms->nodes; i++)
        negated[i] = -m->holder_left[i];
    return -rli_kth_largest(negated, m->terms->nodes, m->terms->quorum);
}

static rli_span pause_length(struct rli_acquire *m)
{
    const struct rli_terms *t = m->terms;
    rli_span pause, free_in = until_free(m);

    if (m->verdict == RL_BUSY && m->ballot.yes) { /* a split vote: contenders must not meet again in step (S4.3) */
        rli_span round_trip = rli_max(rli_min(m->ballot.slowest, t->node_timeout), RLI_MS);
        rli_span top = rli_max(t->retry_max, round_trip);
        m->splits += m->splits < 20;
        return between(m, round_trip, round_trip < top >> m->splits ? round_trip << m->splits : top);
    }
    m->splits = 0;
    m->bound = m->bound ? rli_min(m->bound * 2, t->retry_max) : rli_min(20 * RLI_MS, t->retry_max);
    pause = between(m, t->retry_min, m->bound);
    if (free_in < pause)
        pause = rli_min(pause, rli_max(free_in, 0) + between(m, 0, 5 * RLI_MS));
    return pause;
}

/* The clean-up is over as far as we wait for it: give up, or sleep until the next attempt. */
static void cleaned(struct rli_acquire *m, rli_instant now, struct rli_actions *out)
{
    m->to_clean = 0;
    if (!may_retry(m, now)) {
        finish(m, m->verdict, out);
        return;
    }
    m->state = RLI_ACQUIRE_SLEEPING;
    m->wake = rli_min(rli_add(now, pause_length(m)), m->last_start);
}

/* An attempt has failed. Everything it may have left behind is released, before anything else is sent (S3.1). */
static void fail(struct rli_acquire *m, int verdict, rli_instant now, struct rli_actions *out)
{
    const struct rli_ballot *b = &m->ballot;

    m->verdict = verdict;
    for (uint32_t i = 0; i < m->terms->nodes; i++)
        if (b->open & rli_bit(i)) /* it was not waited for, and may be free */
            m->holder_left[i] = 0;
    out->clean = b->yes | b->unknown | b->open;
    if (b->died & ~m->repeated && now < m->deadline && rli_count(b->yes | b->open | b->died) >= m->terms->quorum) {
        m->repeated |= b->died; /* a server that restarted while we were idle costs no acquisition, even for wait 0 */
        begin_attempt(m, now, out);
        return;
    }
    if (m->wait == 0) {
        finish(m, verdict, out);
        return;
    }
    out->clean |= b->other; /* the same script tells how long the other's lease lasts, and whether it is a lock at all */
    m->to_clean = out->clean & (b->yes | b->other);
    m->state = RLI_ACQUIRE_CLEANING;
    m->wake = rli_add(now, m->terms->cleanup_timeout);
    if (!m->to_clean)
        cleaned(m, now, out);
}

/* The lock is won; it is held if enough of the lease is left. */
static void won(struct rli_acquire *m, rli_instant valid_until, rli_instant now, struct rli_actions *out)
{
    if (rli_until(valid_until, now) < m->terms->min_validity)
        fail(m, RL_E_TOO_SLOW, now, out);
    else
        finish(m, RL_OK, out);
}

/* The designated node mints once the quorum is won; its answer must find the lease valid (S8.3). */
static void begin_minting(struct rli_acquire *m, rli_instant now, struct rli_actions *out)
{
    rli_instant by_node = rli_add(now, m->terms->node_timeout);
    rli_instant by_validity = rli_add(rli_valid_until(m->terms, m->e), -m->terms->min_validity);

    m->state = RLI_ACQUIRE_MINTING;
    m->wake = rli_min(rli_min(by_node, m->deadline), by_validity);
    m->ends_by = m->wake == by_node ? RLI_ENDS_BY_NODE : m->wake == m->deadline ? RLI_ENDS_BY_DEADLINE : RLI_ENDS_BY_VALIDITY;
    out->fence = rli_bit(m->fence_node);
    out->fence_kind = RLI_MINT;
}

/* The nodes of the mask alone count. */
static rli_instant valid_until_over(const struct rli_acquire *m, uint32_t nodes)
{
    rli_instant e[RL_MAX_NODES];

    for (uint32_t i = 0; i < m->terms->nodes; i++)
        e[i] = nodes & rli_bit(i) ? m->e[i] : RLI_GONE;
    return rli_valid_until(m->terms, e);
}

/* Where the new grants stand to the token: at it, to be raised to it, or beyond it, which never counts for this token. */
static void sort_grants(struct rli_acquire *m, struct rli_actions *out)
{
    uint32_t fresh = m->ballot.yes & ~(m->confirmed | m->confirming);

    for (uint32_t i = 0; i < m->terms->nodes; i++) {
        if (!(fresh & rli_bit(i)))
            continue;
        if (m->counter[i] == m->token)
            m->confirmed |= rli_bit(i);
        else if (m->counter[i] < m->token)
            out->fence |= rli_bit(i);
    }
    m->confirming |= out->fence;
    out->fence_kind = RLI_CONFIRM;
}

/* The token is the highest counter of the first q grants, fixed once (design 5, step 2). */
static void judge_token(struct rli_acquire *m, rli_instant now, struct rli_actions *out)
{
    const struct rli_ballot *b = &m->ballot;

    if (!m->token)
        for (uint32_t i = 0; i < m->terms->nodes; i++)
            if (b->yes & rli_bit(i))
                m->token = rli_max(m->token, m->counter[i]);
    sort_grants(m, out);
    if (rli_count(m->confirmed) >= m->terms->quorum)
        won(m, valid_until_over(m, m->confirmed), now, out);
    else if (rli_count(m->confirmed | m->confirming | b->open) < m->terms->quorum)
        fail(m, rli_count(b->failed) > m->terms->nodes - m->terms->quorum ? rli_ballot_failure(b) : RL_BUSY, now, out);
}

static void judge(struct rli_acquire *m, rli_instant now, struct rli_actions *out)
{
    int verdict = m->token ? RL_OK : rli_ballot_verdict(&m->ballot, m->terms);

    if (verdict == RLI_UNDECIDED)
        return;
    if (verdict != RL_OK)
        fail(m, verdict, now, out);
    else if (single_step(m))
        judge_token(m, now, out);
    else if (m->fence == RLI_FENCE_NODE)
        begin_minting(m, now, out);
    else
        won(m, rli_valid_until(m->terms, m->e), now, out);
}

/* A node that was asked to confirm: it did, or it no longer keeps our lock, or it may. */
static void confirm_vote(struct rli_acquire *m, rli_instant now, const struct rli_input *in, struct rli_actions *out)
{
    struct rli_ballot *b = &m->ballot;
    uint32_t bit = rli_bit(in->node);

    if (!(m->confirming & bit))
        return;
    m->confirming &= ~bit;
    if (in->answer->outcome == RL_NODE_YES) {
        m->confirmed |= bit;
    } else {
        b->yes &= ~bit;
        b->open |= bit; /* it votes again, so to say */
        rli_ballot_count(b, in->node, in->answer);
        b->unknown |= b->failed & bit; /* the lock was set there */
        m->e[in->node] = RLI_GONE;
    }
    judge_token(m, now, out);
}

static void mint_vote(struct rli_acquire *m, rli_instant now, const struct rli_input *in, struct rli_actions *out)
{
    if (in->answer->outcome != RL_NODE_YES) {
        fail(m, in->answer->denied ? RL_E_AUTH : RL_E_NO_QUORUM, now, out);
        return;
    }
    m->token = in->answer->fence;
    won(m, rli_valid_until(m->terms, m->e), now, out);
}

/* Time is up for the confirmations too: whoever has not answered may keep our lock. */
static void close_votes(struct rli_acquire *m, uint32_t unsent)
{
    rli_ballot_close(&m->ballot, unsent);
    m->ballot.yes &= ~m->confirming;
    m->ballot.failed |= m->confirming;
    m->ballot.unknown |= m->confirming;
    m->confirming = 0;
}

static void attempt_ended(struct rli_acquire *m, rli_instant now, const struct rli_input *in, struct rli_actions *out)
{
    bool minting = m->state == RLI_ACQUIRE_MINTING;

    close_votes(m, in->unsent);
    if (m->ends_by == RLI_ENDS_BY_VALIDITY)
        fail(m, RL_E_TOO_SLOW, now, out);
    else if (m->ends_by == RLI_ENDS_BY_DEADLINE && m->verdict != RLI_UNDECIDED) {
        m->cut_short = true; /* the attempt before it says more */
        fail(m, m->verdict, now, out);
    } else if (minting) {
        fail(m, RL_E_NO_QUORUM, now, out);
    } else {
        int verdict = rli_ballot_verdict(&m->ballot, m->terms);
        fail(m, verdict == RL_OK ? RL_BUSY : verdict, now, out); /* granted, but at counters beyond the token */
    }
}

/* A node's answer to the clean-up of the failed attempt. */
static void clean_vote(struct rli_acquire *m, rli_instant now, const struct rli_input *in, struct rli_actions *out)
{
    struct rli_ballot *b = &m->ballot;
    uint32_t bit = rli_bit(in->node);

    if (!(m->to_clean & bit))
        return;
    m->to_clean &= ~bit;
    if (in->answer->outcome == RL_NODE_YES || in->answer->outcome == RL_NODE_ABSENT)
        m->holder_left[in->node] = 0;
    else if (in->answer->outcome == RL_NODE_HELD_BY_OTHER)
        m->holder_left[in->node] = in->answer->holder_left;
    else if (b->other & bit && in->answer->outcome == RL_NODE_ERROR) { /* e.g. WRONGTYPE: no lock sits there (A13) */
        b->other &= ~bit;
        b->failed |= bit;
        b->denied |= in->answer->denied ? bit : 0;
    }
    if (m->verdict == RL_BUSY && !m->cut_short && rli_count(b->failed) > m->terms->nodes - m->terms->quorum)
        m->verdict = rli_ballot_failure(b);
    if (!m->to_clean)
        cleaned(m, now, out);
}

static void start(struct rli_acquire *m, rli_instant now, struct rli_actions *out)
{
    m->last_start = rli_add(now, m->wait);
    m->deadline = rli_add(now, rli_max(m->wait, m->terms->node_timeout));
    if (m->wait != RLI_NEVER) /* the last attempt needs a moment to be more than a gesture */
        m->last_start = rli_min(m->last_start, rli_add(m->deadline, -rli_min(m->wait / 4, 5 * RLI_MS)));
    m->verdict = RLI_UNDECIDED;
    begin_attempt(m, now, out);
}

void rli_acquire_step(struct rli_acquire *m, rli_instant now, const struct rli_input *in, struct rli_actions *out)
{
    assert(m->state != RLI_ACQUIRE_DONE);
    assert((m->state == RLI_ACQUIRE_NEW) == (in->event == RLI_START));
    *out = (struct rli_actions){0};
    switch (in->event) {
    case RLI_START:
        start(m, now, out);
        break;
    case RLI_VOTE:
        if (m->state != RLI_ACQUIRE_VOTING && m->state != RLI_ACQUIRE_MINTING)
            break;
        if (!rli_ballot_count(&m->ballot, in->node, in->answer))
            break;
        if (in->answer->outcome == RL_NODE_YES) {
            m->e[in->node] = rli_max(m->e[in->node], rli_confirmed(m->terms, in->answer->sent, m->ttl));
            m->counter[in->node] = in->answer->fence;
        }
        if (m->state == RLI_ACQUIRE_VOTING)
            judge(m, now, out);
        break;
    case RLI_FENCED:
        if (m->state == RLI_ACQUIRE_MINTING)
            mint_vote(m, now, in, out);
        else if (m->state == RLI_ACQUIRE_VOTING)
            confirm_vote(m, now, in, out);
        break;
    case RLI_CLEANED:
        if (m->state == RLI_ACQUIRE_CLEANING)
            clean_vote(m, now, in, out);
        break;
    case RLI_DEADLINE:
        if (now < m->wake)
            break;
        if (m->state == RLI_ACQUIRE_VOTING || m->state == RLI_ACQUIRE_MINTING)
            attempt_ended(m, now, in, out);
        else if (m->state == RLI_ACQUIRE_CLEANING)
            cleaned(m, now, out);
        else if (now >= m->deadline) /* woken too late, for example after a suspend */
            finish(m, m->verdict, out);
        else
            begin_attempt(m, now, out);
        break;
    case RLI_CANCEL:
        if (m->state == RLI_ACQUIRE_VOTING || m->state == RLI_ACQUIRE_MINTING)
            out->clean = m->ballot.yes | m->ballot.unknown | m->ballot.open;
        finish(m, RL_CANCELED, out);
        break;
    }
    out->wake = m->wake;
    out->token = m->token;
}
