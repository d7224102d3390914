/* round.c - see round.h. */
#include "round.h"

#include "client.h"
#include "keep.h"

#include <errno.h>
#include <string.h>

enum { MOST_FREE_ROUNDS = 1024 };

static const struct rli_terms *terms_of(const struct rli_engine *engine)
{
    return &engine->client->terms;
}

static struct rli_round *make(struct rli_engine *engine, enum rli_kind kind, bool keeps)
{
    size_t size = sizeof(struct rli_round) + terms_of(engine)->nodes * sizeof(struct rli_request);
    struct rli_round *round = engine->free_rounds;

    if (round) {
        engine->free_rounds = round->next_free;
        engine->free_round_count--;
        memset(round, 0, size);
    } else if (!(round = rli_calloc(size))) {
        return NULL;
    }
    round->engine = engine;
    round->kind = kind;
    round->keeps = keeps;
    engine->keep.open += keeps;
    return round;
}

struct rli_round *rli_round_new(struct rli_engine *engine, rl_lock *lock, enum rli_kind kind, rli_span ttl)
{
    struct rli_round *round = make(engine, kind, rli_creates(kind) && lock->kept); /* stragglers count, too */

    if (!round)
        return NULL;
    round->lock = rli_lock_ref(lock);
    round->ttl = ttl;
    return round;
}

struct rli_round *rli_round_new_batch(struct rli_engine *engine, struct rli_batch *batch)
{
    struct rli_round *round = make(engine, RLI_RENEW, true);

    if (round)
        round->batch = batch;
    return round;
}

void rli_round_free_if_done(struct rli_round *round)
{
    struct rli_engine *engine = round->engine;

    if (round->open || round->op)
        return;
    engine->keep.open -= round->keeps;
    if (round->batch)
        rli_batch_free(engine, round->batch);
    else
        rli_lock_unref(round->lock);
    if (engine->free_round_count >= MOST_FREE_ROUNDS) {
        rli_free(round);
        return;
    }
    round->next_free = engine->free_rounds;
    engine->free_rounds = round;
    engine->free_round_count++;
}

void rli_rounds_free(struct rli_engine *engine)
{
    for (struct rli_round *round; (round = engine->free_rounds);) {
        engine->free_rounds = round->next_free;
        rli_free(round);
    }
    engine->free_round_count = 0;
}

struct rli_request *rli_round_request(struct rli_round *round, uint32_t node, rli_instant deadline)
{
    struct rli_request *request = &round->requests[node];

    *request = (struct rli_request){.round = round,
                                    .kind = round->kind,
                                    .node = (uint8_t)node,
                                    .sent = RLI_GONE,
                                    .deadline = deadline,
                                    .whole_script = round->whole_script};
    round->open |= rli_bit(node);
    return request;
}

/* A lock that is over by now is asked for with a token that no key holds. */
static void build_batch(const struct rli_batch *batch, bool whole_script, struct rli_command *ret)
{
    rli_command_renew(ret, batch->count, whole_script);
    for (uint32_t i = 0; i < batch->count; i++)
        rli_command_renew_key(ret, rli_lock_key(batch->slots[i].lock), batch->slots[i].lock->key_len);
    for (uint32_t i = 0; i < batch->count; i++) {
        const rl_lock *lock = batch->slots[i].lock;
        rli_command_renew_for(ret, rli_lock_token(lock), lock->state == RLI_LOCK_HELD ? lock->token_len : 0, batch->slots[i].ttl);
    }
}

void rli_round_build(const struct rli_round *round, bool whole_script, struct rli_command *ret)
{
    if (round->batch) {
        build_batch(round->batch, whole_script, ret);
        return;
    }
    struct rli_subject subject = rli_lock_subject(round->lock);
    rli_command_request(ret, round->kind, &subject, round->ttl, whole_script);
}

/* Do too many nodes back off to do without them? */
bool rli_back_off_is_over(const struct rli_engine *engine, rli_instant now)
{
    uint32_t backing_off = 0;

    for (uint32_t i = 0; i < terms_of(engine)->nodes; i++)
        backing_off += rli_node_backing_off(&engine->nodes[i], now);
    return backing_off > terms_of(engine)->nodes - terms_of(engine)->quorum;
}

bool rli_round_refuses(const struct rli_round *round, uint32_t node, bool needed, rli_instant now, struct rli_answer *ret)
{
    const struct rli_engine *engine = round->engine;
    const rl_lock *lock = round->lock;

    if (lock && lock->mode == RLI_FENCE_NODE && node == engine->client->fence_node && round->kind != RLI_RELEASE)
        needed = true;                                   /* without the designated node nothing can be won */
    *ret = rli_answer_lost(RL_NODE_UNREACHABLE, ENOMEM); /* if it is not that, it is this */
    return rli_node_refuses(&engine->nodes[node], round->kind, lock && lock->touched & rli_bit(node), needed, now, ret);
}

/* A release that the node did not get stays owed, if it may keep the key. */
static void owe_if_release(struct rli_round *round, uint32_t node, rli_instant now)
{
    if (round->kind == RLI_RELEASE && round->lock->touched & rli_bit(node))
        rli_node_owe(&round->engine->nodes[node], round->lock, now, round->again);
}

uint32_t rli_round_put(struct rli_round *round, uint32_t mask, rli_instant deadline, rli_instant now)
{
    struct rli_engine *engine = round->engine;
    struct rli_command command;
    struct rli_answer why;
    uint32_t refused = 0;
    char bytes[8192]; /* once for all nodes; what does not fit is formatted by each */
    bool needed = rli_back_off_is_over(engine, now);
    size_t size;

    rli_round_build(round, round->whole_script, &command);
    size = rli_format(&command, bytes, sizeof bytes);
    for (uint32_t i = 0; i < terms_of(engine)->nodes; i++) {
        if (!(mask & rli_bit(i)))
            continue;
        if (!rli_round_refuses(round, i, needed, now, &why) &&
            rli_node_send(&engine->nodes[i], rli_round_request(round, i, deadline), size <= sizeof bytes ? bytes : NULL, size, now))
            continue;
        round->open &= ~rli_bit(i);
        refused |= rli_bit(i);
        owe_if_release(round, i, now);
    }
    return refused;
}

void rli_round_withdraw(struct rli_round *round, rli_instant now)
{
    struct rli_engine *engine = round->engine;

    for (uint32_t i = 0; i < terms_of(engine)->nodes; i++) {
        struct rli_request *request = &round->requests[i];
        if (!(round->open & rli_bit(i)) || request->state != RLI_REQUEST_WAITING)
            continue;
        rli_node_withdraw(&engine->nodes[i], request);
        round->open &= ~rli_bit(i);
        owe_if_release(round, i, now);
    }
}

/* (A batch that waits renews only those of its locks that are still held: see rli_round_build.) */
void rli_withdraw_all_of(struct rli_engine *engine, const rl_lock *lock, rli_instant now)
{
    for (uint32_t i = 0; i < terms_of(engine)->nodes; i++) {
        struct rli_request *request = engine->nodes[i].waiting.first, *next;
        for (; request; request = next) {
            struct rli_round *round = request->round;
            next = request->next;
            if (round->lock != lock || round->kind == RLI_RELEASE)
                continue;
            rli_round_withdraw(round, now);
            rli_round_free_if_done(round);
            next = engine->nodes[i].waiting.first; /* the round may have had several here */
        }
    }
}

void rli_top_up(rl_lock *lock, uint32_t mask, rli_span ttl, rli_instant now)
{
    struct rli_engine *engine = &lock->client->engine;
    rli_instant deadline = rli_add(now, terms_of(engine)->node_timeout);
    struct rli_round *round;

    for (uint32_t i = 0; i < terms_of(engine)->nodes; i++)
        if (engine->nodes[i].state != RLI_NODE_READY) /* it may not wait for a connection: the lock could be over by then */
            mask &= ~rli_bit(i);
    if (!mask || lock->state != RLI_LOCK_HELD || !(round = rli_round_new(engine, lock, RLI_TOP_UP, ttl)))
        return;
    engine->keep.attend_until = rli_max(engine->keep.attend_until, deadline);
    rli_round_put(round, mask, deadline, now);
    rli_round_free_if_done(round);
}
