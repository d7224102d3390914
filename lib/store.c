/* store.c - see store.h. */
#include "store.h"

#include "redlatch.h"

static void finish(struct rli_store *m, int status, struct rli_actions *out)
{
    m->wake = RLI_NEVER;
    out->finished = true;
    out->status = status;
}

static int verdict(const struct rli_ballot *b)
{
    if (b->yes)
        return RL_OK;
    return b->absent ? RL_LOST : rli_ballot_failure(b);
}

void rli_store_step(struct rli_store *m, rli_instant now, const struct rli_input *in, struct rli_actions *out)
{
    *out = (struct rli_actions){0};
    switch (in->event) {
    case RLI_START:
        m->wake = rli_add(now, m->terms->node_timeout);
        rli_ballot_open(&m->ballot, rli_all(m->terms));
        out->send = rli_all(m->terms);
        out->kind = RLI_STORE;
        break;
    case RLI_VOTE:
        if (rli_ballot_count(&m->ballot, in->node, in->answer))
            finish(m, verdict(&m->ballot), out);
        break;
    case RLI_DEADLINE:
        if (now < m->wake)
            break;
        rli_ballot_close(&m->ballot, in->unsent);
        finish(m, verdict(&m->ballot), out);
        break;
    case RLI_CANCEL:
    case RLI_CLEANED:
    case RLI_FENCED:
        break;
    }
    out->wake = m->wake;
}
