/* engine.c - see engine.h. */
#include "engine.h"

#include "client.h"
#include "script.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

enum { MOST_FREE_OPS = 1024 };

static const struct rli_terms *terms_of(const struct rli_engine *engine)
{
    return &engine->client->terms;
}

/* ---- What nodes ask for --------------------------------------------------------------------------------------------------------- */

const struct rli_terms *rli_engine_terms(const struct rli_engine *engine)
{
    return terms_of(engine);
}

const char *rli_engine_client_name(const struct rli_engine *engine)
{
    return engine->client->client_name;
}

unsigned rli_engine_scripts(const struct rli_engine *engine)
{
    /* The others are sent whole at their first use. */
    return engine->client->fence ? RLI_SCRIPTS : engine->keep.count ? RLI_SCRIPT_RENEW + 1 : RLI_SCRIPT_EXTEND + 1;
}

uint64_t rli_engine_random(struct rli_engine *engine)
{
    /* Each seed of a pause differs from the last; the machines' generators do the mixing. */
    engine->client->seed += UINT64_C(0x9e3779b97f4a7c15);
    return engine->client->seed >> 16;
}

void rli_engine_dirty(struct rli_engine *engine, uint32_t node)
{
    engine->dirty |= rli_bit(node);
}

void rli_engine_build(const struct rli_request *request, struct rli_command *ret)
{
    rli_round_build(request->round, request->whole_script, ret);
}

static void may_last(rl_lock *lock, rli_span ttl, rli_instant now)
{
    lock->free_by = rli_max(lock->free_by, rli_add(now, ttl + rli_drift(&lock->client->terms, ttl)));
}

/* Whatever comes of it, from now on this node may keep our key for so long. */
void rli_engine_sent(struct rli_request *request, rli_instant now)
{
    struct rli_round *round = request->round;
    const struct rli_batch *batch = round->batch;

    for (uint32_t i = 0; batch && i < batch->count; i++)
        if (batch->slots[i].lock->state == RLI_LOCK_HELD)
            may_last(batch->slots[i].lock, batch->slots[i].ttl, now);
    if (rli_creates(round->kind))
        round->lock->touched |= rli_bit(request->node);
    if (rli_creates(round->kind) || round->kind == RLI_EXTEND)
        may_last(round->lock, round->ttl, now);
}

/* ---- Rounds ----------------------------------------------------------------------------------------------------------------------- */

/* The operation moves on from a round; `abandon`: what was not sent of it is not to be. */
static void leave(struct rli_op *op, struct rli_round **slot, bool abandon, rli_instant now)
{
    struct rli_round *round = *slot;

    *slot = NULL;
    if (!round)
        return;
    round->op = NULL;
    if (abandon) {
        rli_round_withdraw(round, now);
        for (uint32_t i = 0; i < op->lock->client->terms.nodes; i++)
            round->requests[i].abandoned = true;
    }
    rli_round_free_if_done(round);
}

struct rli_request *rli_engine_orphan(struct rli_engine *engine, uint32_t node, rl_lock *lock, bool again, rli_instant now)
{
    struct rli_round *round = rli_round_new(engine, lock, RLI_RELEASE, lock->ttl);

    if (!round)
        return NULL;
    round->again = again;
    /* Nobody waits for it; it has what a request has, so that a silent node is found late. */
    return rli_round_request(round, node, rli_add(now, terms_of(engine)->node_timeout));
}

void rli_engine_owe_release(struct rli_engine *engine, rl_lock *lock, rli_instant now)
{
    rli_withdraw_all_of(engine, lock, now);
    for (uint32_t i = 0; i < terms_of(engine)->nodes; i++)
        if (lock->touched & rli_bit(i))
            rli_node_owe(&engine->nodes[i], lock, now, false);
}

/* ---- Carrying out what a machine says ------------------------------------------------------------------------------------------------ */

static void top_up(struct rli_round *extend, uint32_t mask, rli_instant now)
{
    mask &= ~extend->topped; /* once per ballot */
    extend->topped |= mask;
    rli_top_up(extend->lock, mask, extend->ttl, now);
}

/* Takes the failed attempt back: what was never sent is withdrawn, the rest released. Returns the nodes that could not be told. */
static uint32_t clean(struct rli_op *op, uint32_t mask, rli_instant now)
{
    struct rli_engine *engine = &op->lock->client->engine;
    struct rli_round *round;
    uint32_t refused;

    if (op->round)
        rli_round_withdraw(op->round, now);
    mask &= op->lock->touched | op->machine.acquire.ballot.other;
    leave(op, &op->round, true, now);
    leave(op, &op->fencing, true, now);
    leave(op, &op->cleaning, false, now);
    round = mask ? rli_round_new(engine, op->lock, RLI_RELEASE, op->lock->ttl) : NULL;
    if (!round) {
        if (mask)
            rli_engine_owe_release(engine, op->lock, now);
        return mask;
    }
    round->op = op;
    op->cleaning = round;
    refused = rli_round_put(round, mask, rli_add(now, terms_of(engine)->node_timeout), now);
    return refused;
}

/* A token for the next attempt; the last one may still be needed for what is under way about it. */
static bool fresh_token(struct rli_op *op)
{
    if (op->lock->refs > 1) {
        rl_lock *again = rli_lock_again(op->lock);
        if (!again)
            return false;
        rli_lock_unref(op->lock);
        op->lock = again;
        op->machine.acquire.e = again->e;
    }
    rli_lock_fresh_token(op->lock);
    return true;
}

static uint32_t send(struct rli_op *op, const struct rli_actions *a, rli_instant now)
{
    struct rli_engine *engine = &op->lock->client->engine;
    enum rli_kind kind = a->kind;
    struct rli_round *round;

    leave(op, &op->round, true, now);
    for (uint32_t i = 0; i < terms_of(engine)->nodes; i++)
        if (a->send & rli_bit(i))
            rli_result_clear(&op->results[i], RL_NODE_PENDING);
    if (op->type == RLI_OP_CHECK && a->kind == RLI_SET && op->lock->mode)
        kind = RLI_GRANT;
    if (op->type == RLI_OP_CHECK && a->kind == RLI_EXTEND)
        op->lock->ttl += 1000 * RLI_MS; /* so that there is something to extend */
    round = rli_round_new(engine, op->lock, kind, op->lock->ttl);
    if (!round) {
        if (a->kind == RLI_RELEASE)
            rli_engine_owe_release(engine, op->lock, now);
        return a->send;
    }
    round->op = op;
    round->whole_script = op->type == RLI_OP_CHECK && a->kind == RLI_RELEASE; /* both ways to run a script are tried */
    op->round = round;
    return rli_round_put(round, a->send, a->wake, now);
}

/* Confirmations, or the mint. Later grants may need a confirmation too: they join the same round. */
static uint32_t send_fence(struct rli_op *op, const struct rli_actions *a, rli_instant now)
{
    struct rli_engine *engine = &op->lock->client->engine;

    rli_lock_set_fence(op->lock, a->token);
    if (!op->fencing) {
        op->fencing = rli_round_new(engine, op->lock, a->fence_kind, op->lock->ttl);
        if (!op->fencing)
            return a->fence;
        op->fencing->op = op;
    }
    return rli_round_put(op->fencing, a->fence, a->wake, now);
}

static void finish(struct rli_op *op, int status, rli_instant now)
{
    struct rli_engine *engine = &op->lock->client->engine;

    if (op->type == RLI_OP_EXTEND && status == RL_LOST) {
        rli_lock_lose(op->lock);
        op->lock->told_lost = true;
        rli_withdraw_all_of(engine, op->lock, now);
    }
    rli_lock_refresh(op->lock, now);
    if (op->type == RLI_OP_EXTEND && status == RL_OK)
        rli_keep_renewed(op->lock, now);
    leave(op, &op->round, op->type != RLI_OP_RELEASE && status != RL_OK, now);
    leave(op, &op->cleaning, false, now);
    leave(op, &op->fencing, true, now);
    rli_heap_set(&engine->timers, &op->timer, RLI_NEVER);
    *op->link = op->next;
    if (op->next)
        op->next->link = op->link;
    op->finished = true;
    op->status = status;
    op->done(op);
}

static void machine_step(struct rli_op *op, rli_instant now, const struct rli_input *in, struct rli_actions *out)
{
    switch (op->type) {
    case RLI_OP_ACQUIRE:
        rli_acquire_step(&op->machine.acquire, now, in, out);
        break;
    case RLI_OP_EXTEND:
        rli_extend_step(&op->machine.extend, now, in, out);
        rli_lock_refresh(op->lock, now);
        break;
    case RLI_OP_RELEASE:
        rli_release_step(&op->machine.release, now, in, out);
        break;
    case RLI_OP_STORE:
        rli_store_step(&op->machine.store, now, in, out);
        break;
    case RLI_OP_CHECK:
        rli_check_step(&op->machine.check, now, in, out);
        break;
    }
}

/* Which requests of the current round have not been sent at all, or are being sent again? */
static void look_at_requests(const struct rli_op *op, struct rli_input *in)
{
    for (uint32_t i = 0; op->round && i < op->lock->client->terms.nodes; i++) {
        const struct rli_request *request = &op->round->requests[i];
        if (!(op->round->open & rli_bit(i)))
            continue;
        if (request->state == RLI_REQUEST_WAITING && request->sent == RLI_GONE)
            in->unsent |= rli_bit(i);
        if (request->resent || (request->state == RLI_REQUEST_WAITING && op->lock->client->engine.nodes[i].reconnecting))
            in->resent |= rli_bit(i);
    }
}

/* An acquisition, or an imported lock's first extension, has succeeded. */
static void is_held_now(const struct rli_op *op, int64_t token)
{
    if (op->type == RLI_OP_ACQUIRE)
        rli_lock_set_fence(op->lock, token);
    if (op->type == RLI_OP_ACQUIRE || (op->type == RLI_OP_EXTEND && op->lock->state == RLI_LOCK_UNPROVED))
        op->lock->state = RLI_LOCK_HELD;
}

static void step(struct rli_op *op, struct rli_input *in, rli_instant now);

static const struct rli_round *round_of(const struct rli_op *op, enum rli_event event)
{
    return event == RLI_CLEANED ? op->cleaning : event == RLI_FENCED ? op->fencing : op->round;
}

/* Why the node was not asked: as rli_round_put() found it, or no memory. */
static struct rli_answer reason(const struct rli_op *op, const struct rli_round *round, uint32_t node, rli_instant now)
{
    const struct rli_engine *engine = &op->lock->client->engine;
    struct rli_answer why = rli_answer_lost(RL_NODE_UNREACHABLE, ENOMEM);

    if (round)
        rli_round_refuses(round, node, rli_back_off_is_over(engine, now), now, &why);
    return why;
}

/* Nodes that would not take the request have voted by that; the report tells of all of them, whichever settles it. */
static void feed_refused(struct rli_op *op, enum rli_event event, const struct rli_round *round, uint32_t refused, rli_instant now)
{
    bool moved_on;

    if (!refused)
        return;
    moved_on = op->finished || round_of(op, event) != round;
    for (uint32_t i = 0; i < op->lock->client->terms.nodes && event != RLI_CLEANED && !moved_on; i++)
        if (refused & rli_bit(i)) {
            struct rli_answer why = reason(op, round, i, now);
            rli_result_set(&op->results[i], &why, op->with_text);
        }
    for (uint32_t i = 0; i < op->lock->client->terms.nodes; i++) {
        if (!(refused & rli_bit(i)))
            continue;
        if (op->finished || round_of(op, event) != round)
            return;
        struct rli_answer why = reason(op, round, i, now);
        step(op, &(struct rli_input){.event = event, .node = i, .answer = &why}, now);
    }
}

static void step(struct rli_op *op, struct rli_input *in, rli_instant now)
{
    struct rli_engine *engine = &op->lock->client->engine;
    const struct rli_round *round, *cleaning, *fencing;
    uint32_t not_cleaned = 0, not_sent = 0, not_fenced = 0;
    struct rli_actions a;

    look_at_requests(op, in);
    machine_step(op, now, in, &a);
    if (a.clean)
        not_cleaned = clean(op, a.clean, now);
    if (a.fresh_token && !fresh_token(op)) {
        finish(op, RL_E_NO_MEMORY, now);
        return;
    }
    if (a.send)
        not_sent = send(op, &a, now);
    if (a.fence)
        not_fenced = send_fence(op, &a, now);
    if (a.finished && a.status == RL_OK)
        is_held_now(op, a.token);
    if (a.top_up && op->round)
        top_up(op->round, a.top_up, now);
    if (a.finished) {
        finish(op, a.status, now);
        return;
    }
    rli_heap_set(&engine->timers, &op->timer, a.wake);
    round = op->round;
    cleaning = op->cleaning;
    fencing = op->fencing;
    feed_refused(op, RLI_CLEANED, cleaning, not_cleaned, now);
    feed_refused(op, RLI_VOTE, round, not_sent, now);
    feed_refused(op, RLI_FENCED, fencing, not_fenced, now);
}

/* ---- What comes back ------------------------------------------------------------------------------------------------------------------ */

/* A vote that comes after its operation has moved on counts for the lock, as long as it is held (S2.2, S5.4). */
static void late_vote(struct rli_round *round, uint32_t node, const struct rli_answer *answer, rli_instant now)
{
    rl_lock *lock = round->lock;

    rli_lock_refresh(lock, now);
    if (lock->state != RLI_LOCK_HELD || (round->kind != RLI_EXTEND && !rli_creates(round->kind)))
        return;
    if (round->kind == RLI_EXTEND || answer->outcome == RL_NODE_YES)
        rli_extend_apply(&lock->client->terms, lock->e, node, round->ttl, answer);
    rli_lock_refresh(lock, now);
    if (round->kind == RLI_EXTEND && answer->outcome == RL_NODE_ABSENT && rli_count(round->yes) >= lock->client->terms.quorum)
        top_up(round, rli_bit(node), now);
}

static void vote(struct rli_request *request, const struct rli_answer *answer, rli_instant now)
{
    struct rli_round *round = request->round;
    uint32_t node = request->node;
    struct rli_op *op = round->op;
    struct rli_answer read = *answer;

    request->state = RLI_REQUEST_IDLE;
    if (round->batch) {
        rli_keep_vote(round, node, answer, NULL, now);
        return;
    }
    if (answer->outcome == RL_NODE_YES)
        round->yes |= rli_bit(node);
    round->lock->taken_over |= round->kind == RLI_EXTEND && answer->outcome == RL_NODE_HELD_BY_OTHER;
    if (op && round == op->round) {
        rli_result_set(&op->results[node], answer, op->with_text);
        step(op, &(struct rli_input){.event = RLI_VOTE, .node = node, .answer = answer}, now);
    } else if (op && round == op->fencing) {
        if (answer->outcome != RL_NODE_YES)
            rli_result_set(&op->results[node], answer, op->with_text);
        step(op, &(struct rli_input){.event = RLI_FENCED, .node = node, .answer = answer}, now);
    } else if (op) {
        if (read.outcome == RL_NODE_HELD_BY_OTHER && read.text) /* WRONGTYPE: no lock sits there, and none ever will (A13) */
            read.outcome = RL_NODE_ERROR;
        /* In the report it stands for that attempt, not for one that was begun since. */
        if (read.outcome == RL_NODE_ERROR && op->machine.acquire.state == RLI_ACQUIRE_CLEANING)
            rli_result_set(&op->results[node], &read, op->with_text);
        step(op, &(struct rli_input){.event = RLI_CLEANED, .node = node, .answer = &read}, now);
    } else {
        late_vote(round, node, answer, now);
    }
    round->open &= ~rli_bit(node); /* only now, so that the round has lived through all this */
    rli_round_free_if_done(round);
}

void rli_engine_lost(struct rli_request *request, const struct rli_answer *why, rli_instant now)
{
    struct rli_round *round = request->round;
    struct rli_answer answer = *why;

    answer.sent = request->sent;
    answer.resent = request->resent;
    if (request->sent != RLI_GONE && answer.outcome == RL_NODE_UNREACHABLE) /* it was asked, the first time */
        answer.outcome = RL_NODE_NO_ANSWER;
    if (request->sent != RLI_GONE) /* also if it waited to be sent again: the first time it may have acted */
        answer.unknown = true;
    if (request->sent != RLI_GONE && rli_creates(round->kind))
        round->lock->adrift |= rli_bit(request->node);
    if (round->kind == RLI_RELEASE && round->lock->touched & rli_bit(request->node) && why->outcome != RL_NODE_NOT_ASKED)
        rli_node_owe(&round->engine->nodes[request->node], round->lock, now, round->again);
    vote(request, &answer, now);
}

static void learn_run_id(struct rli_node *node, const struct rli_reply *reply)
{
    const char *run_id;
    size_t length = reply->type == RLI_BULK ? rli_field(reply->text, "run_id", &run_id) : 0;

    node->run_id[0] = '\0';
    if (length > 0 && length < sizeof node->run_id) {
        memcpy(node->run_id, run_id, length);
        node->run_id[length] = '\0';
    }
}

/* A release came to nothing for now, or the connection it is to outrun could not be ended: it is owed again (S3.4). */
static void owe_again(const struct rli_round *round, struct rli_node *node, const struct rli_answer *answer, rli_instant now)
{
    const struct rli_terms *terms = &round->lock->client->terms;
    rl_lock *lock = round->lock;

    if (lock->adrift & rli_bit(node->index) && node->blind && !round->again)
        rli_node_owe(node, lock, rli_add(now, lock->ttl + rli_drift(terms, lock->ttl)), true);
    else if (answer->outcome == RL_NODE_ERROR && !answer->denied && lock->touched & rli_bit(node->index) && lock->free_by > now)
        rli_node_owe(node, lock, rli_add(now, 100 * RLI_MS), round->again);
}

/* A grant or top-up whose lock is over already: to send it again would be to send it behind the release. */
static bool is_given_up(const struct rli_round *round)
{
    return rli_creates(round->kind) && round->lock->state == RLI_LOCK_OVER;
}

/* One number for each lock of the batch, or NULL. */
static const int64_t *values_of(const struct rli_reply *reply, const struct rli_batch *batch)
{
    return reply->type == RLI_ARRAY && reply->elements == batch->count && reply->ints == batch->count ? reply->values : NULL;
}

void rli_engine_answered(struct rli_request *request, const struct rli_reply *reply, rli_instant now)
{
    struct rli_round *round = request->round;
    struct rli_node *node = &round->engine->nodes[request->node];
    struct rli_answer answer;

    if (rli_is_noscript(reply) && !request->whole_script && !request->abandoned && !is_given_up(round)) {
        request->whole_script = true;
        if (rli_node_send(node, request, NULL, 0, now))
            return;
    }
    answer = rli_answer_from_reply(round->kind, reply);
    answer.sent = request->sent;
    answer.at = now;
    answer.resent = request->resent;
    if (round->kind == RLI_INFO)
        learn_run_id(node, reply);
    if (round->kind == RLI_RELEASE)
        owe_again(round, node, &answer, now);
    if (round->batch) {
        request->state = RLI_REQUEST_IDLE;
        const int64_t *values = values_of(reply, round->batch);
        if (!values)
            answer.outcome = RL_NODE_ERROR;
        rli_keep_vote(round, request->node, &answer, values, now);
        return;
    }
    vote(request, &answer, now);
}

/* ---- Operations ------------------------------------------------------------------------------------------------------------------------ */

static struct rli_op *op_new(struct rli_engine *engine, enum rli_op_type type, rl_lock *lock)
{
    size_t size = sizeof(struct rli_op) + terms_of(engine)->nodes * sizeof(struct rli_result);
    struct rli_op *op = engine->free_ops;

    if (op) {
        engine->free_ops = op->next;
        engine->free_op_count--;
        memset(op, 0, size);
    } else {
        if (!rli_heap_reserve(&engine->timers, engine->op_count + 1) || !(op = rli_calloc(size)))
            return NULL;
        engine->op_count++;
    }
    op->type = type;
    op->lock = rli_lock_ref(lock);
    return op;
}

struct rli_op *rli_op_new_acquire(struct rli_engine *engine, rl_lock *lock, const rl_request *request)
{
    struct rli_op *op = op_new(engine, RLI_OP_ACQUIRE, lock);

    if (!op)
        return NULL;
    lock->ttl = rli_from_ms(request->ttl_ms);
    op->machine.acquire = (struct rli_acquire){
        .terms = terms_of(engine),
        .e = lock->e,
        .ttl = lock->ttl,
        .wait = request->wait_ms == RL_FOREVER ? RLI_NEVER : rli_from_ms(request->wait_ms),
        .fail_fast = request->fail_fast,
        .fence = lock->mode,
        .fence_node = engine->client->fence_node,
        .seed = rli_engine_random(engine),
    };
    return op;
}

struct rli_op *rli_op_new_extend(struct rli_engine *engine, rl_lock *lock, rli_span ttl)
{
    struct rli_op *op = op_new(engine, RLI_OP_EXTEND, lock);

    if (!op)
        return NULL;
    lock->ttl = ttl;
    op->machine.extend = (struct rli_extend){
        .terms = terms_of(engine),
        .e = lock->e,
        .ttl = ttl,
        .unproved = lock->state == RLI_LOCK_UNPROVED,
        .settle = !engine->client->async, /* a loop heals the others behind the caller's back */
    };
    return op;
}

struct rli_op *rli_op_new_release(struct rli_engine *engine, rl_lock *lock, bool no_wait)
{
    struct rli_op *op = op_new(engine, RLI_OP_RELEASE, lock);
    bool unproved = lock->state == RLI_LOCK_UNPROVED;

    rli_lock_end(lock);
    if (op)
        op->machine.release = (struct rli_release){
            .terms = terms_of(engine), .e = lock->e, .unproved = unproved, .lost = lock->told_lost, .no_wait = no_wait};
    return op;
}

struct rli_op *rli_op_new_check(struct rli_engine *engine, rl_lock *probe)
{
    struct rli_op *op = op_new(engine, RLI_OP_CHECK, probe);

    if (op)
        op->machine.check.terms = terms_of(engine);
    return op;
}

struct rli_op *rli_op_new_store(struct rli_engine *engine, rl_lock *subject)
{
    struct rli_op *op = op_new(engine, RLI_OP_STORE, subject);

    if (op)
        op->machine.store.terms = terms_of(engine);
    return op;
}

int rli_op_hand_over(struct rli_op *op, bool unwanted, rli_instant now)
{
    struct rli_engine *engine = &op->lock->client->engine;
    bool enough = rli_until(rli_valid_until(terms_of(engine), op->lock->e), now) >= terms_of(engine)->min_validity;
    int status = unwanted ? RL_CANCELED : op->status;

    if (op->status != RL_OK || (op->type != RLI_OP_ACQUIRE && op->type != RLI_OP_EXTEND))
        return status;
    if (op->type == RLI_OP_EXTEND && status == RL_OK && !enough)
        return rli_lock_is_over(op->lock, now) ? RL_LOST : RL_E_TOO_SLOW;
    if (op->type == RLI_OP_ACQUIRE && status == RL_OK && !enough)
        status = RL_E_TOO_SLOW;
    if (op->type == RLI_OP_ACQUIRE && status != RL_OK) {
        rli_lock_end(op->lock);
        rli_engine_owe_release(engine, op->lock, now);
        rli_engine_tick(engine, now);
    }
    return status;
}

rli_span rli_op_free_in(const struct rli_op *op, rli_instant now)
{
    const struct rli_terms *terms = &op->lock->client->terms;
    uint32_t gone = 0;

    if (op->type != RLI_OP_RELEASE)
        return 0;
    for (uint32_t i = 0; i < terms->nodes; i++) {
        int outcome = op->results[i].outcome;
        gone += outcome == RL_NODE_YES || outcome == RL_NODE_ABSENT || outcome == RL_NODE_HELD_BY_OTHER;
    }
    if (gone >= terms->quorum)
        return 0;
    return op->machine.release.unproved ? RLI_NEVER : rli_until(op->lock->free_by, now);
}

void rli_op_free(struct rli_op *op)
{
    struct rli_engine *engine = &op->lock->client->engine;

    for (uint32_t i = 0; i < terms_of(engine)->nodes; i++)
        rli_free(op->results[i].text);
    rli_lock_unref(op->lock);
    if (engine->free_op_count >= MOST_FREE_OPS) {
        engine->op_count--;
        rli_free(op);
        return;
    }
    op->next = engine->free_ops;
    engine->free_ops = op;
    engine->free_op_count++;
}

void rli_op_start(struct rli_op *op, rli_instant now)
{
    struct rli_engine *engine = &op->lock->client->engine;

    for (uint32_t i = 0; i < terms_of(engine)->nodes; i++)
        op->results[i].rtt_us = -1;
    op->next = engine->running;
    op->link = &engine->running;
    if (op->next)
        op->next->link = &op->next;
    engine->running = op;
    if (op->type == RLI_OP_RELEASE)
        rli_withdraw_all_of(engine, op->lock, now);
    step(op, &(struct rli_input){.event = RLI_START}, now);
}

void rli_op_cancel(struct rli_op *op, rli_instant now)
{
    step(op, &(struct rli_input){.event = RLI_CANCEL}, now);
}

void rli_op_abort(struct rli_op *op, rli_instant now)
{
    finish(op, RL_CANCELED, now);
}

void rli_op_expire(struct rli_op *op, rli_instant now)
{
    struct rli_engine *engine = &op->lock->client->engine;

    for (uint32_t i = 0; op->round && i < terms_of(engine)->nodes; i++) {
        const struct rli_request *request = &op->round->requests[i];
        struct rli_answer why;
        if (!(op->round->open & rli_bit(i)))
            continue;
        if (op->type == RLI_OP_RELEASE && op->machine.release.no_wait && request->sent != RLI_GONE)
            continue; /* it stays pending: nobody wants to know */
        why = rli_answer_lost(request->sent == RLI_GONE ? RL_NODE_UNREACHABLE : RL_NODE_NO_ANSWER, ETIMEDOUT);
        rli_result_set(&op->results[i], &why, op->with_text);
    }
    for (uint32_t i = 0; op->fencing && i < terms_of(engine)->nodes; i++) {
        struct rli_answer why = rli_answer_lost(RL_NODE_NO_ANSWER, ETIMEDOUT);
        if (op->fencing->open & rli_bit(i))
            rli_result_set(&op->results[i], &why, op->with_text);
    }
    step(op, &(struct rli_input){.event = RLI_DEADLINE}, now);
}

rli_instant rli_engine_deadline(const struct rli_engine *engine)
{
    rli_instant deadline = rli_min(rli_heap_due(&engine->timers), rli_heap_due(&engine->keep.timers));

    for (uint32_t i = 0; i < terms_of(engine)->nodes; i++)
        deadline = rli_min(deadline, rli_node_deadline(&engine->nodes[i]));
    return deadline;
}

void rli_engine_tick(struct rli_engine *engine, rli_instant now)
{
    struct rli_timer *first;

    for (uint32_t i = 0; i < terms_of(engine)->nodes; i++)
        rli_node_tick(&engine->nodes[i], now);
    while ((first = rli_heap_expired(&engine->timers, now)))
        rli_op_expire((struct rli_op *)first, now);
    rli_keep_tick(engine, now);
}

bool rli_engine_init(struct rli_engine *engine, struct rli_client *client)
{
    *engine = (struct rli_engine){.client = client};
    engine->keep.most = client->renew_batch;
    engine->nodes = rli_calloc(client->terms.nodes * sizeof *engine->nodes);
    for (uint32_t i = 0; engine->nodes && i < client->terms.nodes; i++)
        if (!rli_node_init(&engine->nodes[i], engine, &client->urls[i], i))
            return false;
    return engine->nodes;
}

static void drop_queue(struct rli_queue *queue)
{
    for (struct rli_request *request = queue->first, *next; request; request = next) {
        struct rli_round *round = request->round;
        next = request->next;
        if (!round)
            continue;
        round->open &= ~rli_bit(request->node);
        rli_round_free_if_done(round);
    }
}

void rli_engine_free(struct rli_engine *engine)
{
    if (!engine->nodes)
        return;
    assert(!engine->running);
    for (uint32_t i = 0; i < terms_of(engine)->nodes; i++) {
        if (!engine->nodes[i].engine) /* initialisation failed before it */
            break;
        drop_queue(&engine->nodes[i].waiting);
        drop_queue(&engine->nodes[i].owed);
        rli_node_free(&engine->nodes[i]);
    }
    rli_keep_free(engine);
    rli_rounds_free(engine);
    for (struct rli_op *op; (op = engine->free_ops);) {
        engine->free_ops = op->next;
        rli_free(op);
    }
    rli_heap_free(&engine->timers);
    rli_free(engine->nodes);
    engine->nodes = NULL;
}
