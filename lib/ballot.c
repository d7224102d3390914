/* ballot.c - see ballot.h. */
#include "ballot.h"

#include "redlatch.h"

void rli_ballot_open(struct rli_ballot *ballot, uint32_t nodes)
{
    *ballot = (struct rli_ballot){.open = nodes};
}

bool rli_ballot_count(struct rli_ballot *ballot, uint32_t node, const struct rli_answer *answer)
{
    uint32_t bit = rli_bit(node);

    if (!(ballot->open & bit))
        return false;
    ballot->open &= ~bit;
    if (answer->at != RLI_GONE && answer->sent != RLI_GONE)
        ballot->slowest = rli_max(ballot->slowest, rli_until(answer->at, answer->sent));
    switch (answer->outcome) {
    case RL_NODE_YES:
        ballot->yes |= bit;
        return true;
    case RL_NODE_HELD_BY_OTHER:
        ballot->other |= bit;
        return true;
    case RL_NODE_ABSENT:
        ballot->absent |= bit;
        return true;
    default:
        break;
    }
    ballot->failed |= bit;
    if (answer->denied)
        ballot->denied |= bit;
    if (answer->unknown)
        ballot->unknown |= bit;
    if (answer->died)
        ballot->died |= bit;
    return true;
}

void rli_ballot_close(struct rli_ballot *ballot, uint32_t unsent)
{
    ballot->failed |= ballot->open;
    ballot->unknown |= ballot->open & ~unsent;
    ballot->open = 0;
}

int rli_ballot_failure(const struct rli_ballot *ballot)
{
    return ballot->failed && ballot->denied == ballot->failed ? RL_E_AUTH : RL_E_NO_QUORUM;
}

int rli_ballot_verdict(const struct rli_ballot *ballot, const struct rli_terms *terms)
{
    if (rli_count(ballot->yes) >= terms->quorum)
        return RL_OK;
    if (rli_count(ballot->yes | ballot->open) >= terms->quorum)
        return RLI_UNDECIDED;
    if (rli_count(ballot->failed) > terms->nodes - terms->quorum)
        return rli_ballot_failure(ballot);
    return RL_BUSY;
}
