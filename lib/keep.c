/* keep.c - see keep.h. */
#include "keep.h"

#include "client.h"
#include "renewal.h"

#include <assert.h>

enum { MOST_BATCHES_A_TURN = 4, MOST_FREE_BATCHES = 64 };

static struct rli_keep *keep_of(const rl_lock *lock)
{
    return &lock->client->engine.keep;
}

static rl_lock *lock_of(struct rli_timer *timer)
{
    return (rl_lock *)(void *)((char *)timer - offsetof(rl_lock, timer));
}

static rli_instant valid_until(const rl_lock *lock)
{
    return atomic_load_explicit(&lock->valid_until, memory_order_relaxed);
}

/* ---- Beginning and end -------------------------------------------------------------------------------------------------------- */

bool rli_keep_ask(rl_lock *lock, const rl_request *request)
{
    struct rli_keep *keep = keep_of(lock);
    struct rli_limits *limits = rli_lock_limits(lock);

    if (!request->renew && !request->on_event)
        return true;
    if (!rli_heap_reserve(&keep->timers, keep->count + 1))
        return false;
    keep->count++;
    lock->kept = true;
    lock->renewing = request->renew == 1;
    if (request->on_event) {
        lock->front.tell.callback = (void (*)(void))request->on_event;
        lock->front.tell.user_data = request->event_data;
    }
    if (limits) {
        limits->hold_until = request->max_hold_ms ? rli_from_ms(request->max_hold_ms) : RLI_NEVER; /* a span until it is held */
        limits->touch_within = request->touch_within_ms ? rli_from_ms(request->touch_within_ms) : RLI_NEVER;
    }
    return true;
}

void rli_keep_take_over(rl_lock *again, rl_lock *lock)
{
    again->kept = lock->kept;
    again->renewing = lock->renewing;
    again->front = lock->front;
    if (lock->has_limits) {
        rli_lock_limits(again)->hold_until = rli_lock_limits(lock)->hold_until;
        rli_lock_limits(again)->touch_within = rli_lock_limits(lock)->touch_within;
    }
    lock->kept = false;
}

/* When to look at it again. */
static void arm(rl_lock *lock, rli_instant now)
{
    struct rli_engine *engine = &lock->client->engine;
    rli_instant at = valid_until(lock);

    if (lock->renewing && !lock->capped)
        at = rli_renewal_due(now, at, rli_engine_random(engine));
    rli_heap_set(&engine->keep.timers, &lock->timer, at);
}

void rli_keep_start(rl_lock *lock, rli_instant now)
{
    struct rli_limits *limits = rli_lock_limits(lock);

    if (!lock->kept)
        return;
    if (limits) {
        limits->hold_until = rli_add(now, limits->hold_until);
        atomic_store_explicit(&limits->touched_at, now, memory_order_relaxed);
    }
    lock->listening = lock->client->async && lock->front.tell.callback; /* not before it has the handle */
    keep_of(lock)->attend_until = rli_max(keep_of(lock)->attend_until, rli_add(now, lock->client->terms.node_timeout));
    arm(lock, now);
}

void rli_keep_stop(rl_lock *lock, rli_instant now)
{
    lock->renewing = lock->trying = false;
    if (lock->timer.place)
        arm(lock, now);
}

void rli_keep_end(rl_lock *lock)
{
    lock->trying = false;
    rli_heap_set(&keep_of(lock)->timers, &lock->timer, RLI_NEVER);
}

void rli_keep_forget(rl_lock *lock)
{
    if (lock->kept)
        keep_of(lock)->count--;
}

/* ---- What the holder is told ---------------------------------------------------------------------------------------------------- */

void rli_keep_tell(rl_lock *lock)
{
    struct rli_keep *keep = keep_of(lock);

    if (!lock->listening || lock->queued || lock->client->closed)
        return;
    lock->queued = true;
    lock->next_event = NULL;
    *(keep->events ? &keep->last_event->next_event : &keep->events) = rli_lock_ref(lock);
    keep->last_event = lock;
}

/* What is there to tell of it by now? Trouble that is over again before anybody was told is none. */
static int event_of(rl_lock *lock)
{
    if (!lock->listening)
        return 0;
    if (lock->lost) {
        lock->listening = false; /* the last one */
        lock->told_lost = true;
        return RL_EVENT_LOST;
    }
    if (lock->failing == lock->told_failing)
        return 0;
    lock->told_failing = lock->failing;
    return lock->failing ? RL_EVENT_JEOPARDY : RL_EVENT_RECOVERED;
}

rl_lock *rli_keep_next_event(struct rli_engine *engine, rl_event *ret, rli_instant now)
{
    for (rl_lock *lock; (lock = engine->keep.events);) {
        engine->keep.events = lock->next_event;
        lock->queued = false;
        *ret = (rl_event){.size = sizeof *ret, .kind = event_of(lock), .reason = lock->lost};
        if (!ret->kind) {
            rli_lock_unref(lock);
            continue;
        }
        if (ret->kind != RL_EVENT_LOST)
            ret->remaining_ms = rli_to_ms_floor(rli_until(valid_until(lock), now));
        if (ret->kind == RL_EVENT_JEOPARDY)
            ret->reason = lock->untouched ? RL_LOST_NOT_TOUCHED : RL_LOST_EXPIRED;
        return lock;
    }
    return NULL;
}

static void has_failed(rl_lock *lock, bool failing)
{
    lock->trying = false;
    if (lock->failing == failing)
        return;
    lock->failing = failing;
    rli_keep_tell(lock);
}

static void fail(rl_lock *lock, rli_instant now)
{
    has_failed(lock, true);
    arm(lock, now);
}

void rli_keep_changed(rl_lock *lock, rli_instant now)
{
    rli_instant deadline = rli_renewal_deadline(&lock->client->terms, now, valid_until(lock));

    if (!lock->timer.place)
        return;
    if (lock->trying)
        rli_heap_set(&keep_of(lock)->timers, &lock->timer, deadline);
    else
        arm(lock, now);
}

void rli_keep_renewed(rl_lock *lock, rli_instant now)
{
    if (!lock->timer.place)
        return;
    has_failed(lock, false);
    arm(lock, now);
}

/* ---- Batches --------------------------------------------------------------------------------------------------------------------- */

static struct rli_batch *batch_new(struct rli_keep *keep)
{
    struct rli_batch *batch = keep->free_batches;

    if (!batch)
        return rli_calloc(sizeof *batch);
    keep->free_batches = batch->next_free;
    keep->free_batch_count--;
    batch->count = 0;
    return batch;
}

void rli_batch_free(struct rli_engine *engine, struct rli_batch *batch)
{
    struct rli_keep *keep = &engine->keep;

    for (uint32_t i = 0; i < batch->count; i++)
        rli_lock_unref(batch->slots[i].lock);
    if (keep->free_batch_count >= MOST_FREE_BATCHES) {
        rli_free(batch);
        return;
    }
    batch->next_free = keep->free_batches;
    keep->free_batches = batch;
    keep->free_batch_count++;
}

/* Can this try still succeed? A vote of an earlier one says nothing about it. */
static void judge(const struct rli_round *round, const struct rli_slot *slot, rli_instant now)
{
    rl_lock *lock = slot->lock;

    if (lock->trying && lock->tries == slot->tries && rli_count(slot->yes | round->open) < lock->client->terms.quorum)
        fail(lock, now);
}

static void send(struct rli_engine *engine, struct rli_batch *batch, rli_instant now)
{
    const struct rli_terms *terms = &engine->client->terms;
    struct rli_round *round = rli_round_new_batch(engine, batch);
    rli_instant deadline = rli_add(now, terms->node_timeout);

    if (!round) {
        for (uint32_t i = 0; i < batch->count; i++)
            fail(batch->slots[i].lock, now);
        rli_batch_free(engine, batch);
        return;
    }
    engine->keep.attend_until = rli_max(engine->keep.attend_until, deadline);
    rli_round_put(round, rli_all(terms), deadline, now);
    for (uint32_t i = 0; i < batch->count; i++)
        judge(round, &batch->slots[i], now);
    rli_round_free_if_done(round);
}

/* That ttl, from now on, but in whole milliseconds up to the cap. */
static rli_span within_cap(const rl_lock *lock, rli_span ttl, rli_instant now)
{
    const struct rli_limits *limits = rli_lock_limits(lock);
    return limits ? rli_min(ttl, rli_until(limits->hold_until, now) / RLI_MS * RLI_MS) : ttl;
}

/* For how long the lock is to be renewed; 0 = not now. */
static rli_span renewal_of(rl_lock *lock, rli_instant now)
{
    const struct rli_limits *limits = rli_lock_limits(lock);
    const struct rli_terms *terms = &lock->client->terms;

    if (!limits)
        return lock->ttl;
    lock->untouched = rli_until(now, atomic_load_explicit(&limits->touched_at, memory_order_relaxed)) > limits->touch_within;
    if (lock->untouched) {
        fail(lock, now);
        return 0;
    }
    if (rli_add(valid_until(lock), rli_drift(terms, lock->ttl) + RLI_MS) < limits->hold_until)
        return within_cap(lock, lock->ttl, now);
    lock->capped = true;
    arm(lock, now);
    return 0;
}

/* Adds the lock to a batch, which is sent when it is full; returns the one that is not. */
static struct rli_batch *renew(struct rli_engine *engine, struct rli_batch *batch, rl_lock *lock, rli_instant now)
{
    rli_span ttl = renewal_of(lock, now);
    struct rli_batch *to = lock->alone ? NULL : batch;

    if (!ttl)
        return batch;
    if (!to && !(to = batch_new(&engine->keep))) {
        fail(lock, now);
        return batch;
    }
    lock->trying = true;
    lock->tries++;
    to->slots[to->count++] = (struct rli_slot){.lock = rli_lock_ref(lock), .ttl = ttl, .tries = lock->tries};
    rli_heap_set(&engine->keep.timers, &lock->timer, rli_renewal_deadline(&engine->client->terms, now, valid_until(lock)));
    if (!lock->alone && to->count < engine->keep.most)
        return to;
    send(engine, to, now);
    return lock->alone ? batch : NULL;
}

void rli_keep_tick(struct rli_engine *engine, rli_instant now)
{
    struct rli_batch *batch = NULL;
    struct rli_timer *timer;

    for (uint32_t i = 0; i < MOST_BATCHES_A_TURN * engine->keep.most; i++) {
        if (!(timer = rli_heap_expired(&engine->keep.timers, now)))
            break;
        rl_lock *lock = lock_of(timer);
        rli_lock_refresh(lock, now);
        if (lock->state != RLI_LOCK_HELD)
            continue;
        if (lock->alone) /* it takes a call of its own */
            i += engine->keep.most - 1;
        if (lock->trying)
            fail(lock, now);
        else if (lock->renewing && !lock->capped)
            batch = renew(engine, batch, lock, now);
        else
            arm(lock, now);
    }
    if (batch)
        send(engine, batch, now);
}

/* ---- Votes ------------------------------------------------------------------------------------------------------------------------ */

/* What the answer says of the lock on this node. A request that waited for its connection lasts from when it was sent on: but the cap
 * stands. */
static void apply(rl_lock *lock, uint32_t node, rli_span ttl, const struct rli_answer *answer)
{
    const struct rli_limits *limits = rli_lock_limits(lock);
    rli_instant before = lock->e[node];

    rli_extend_apply(&lock->client->terms, lock->e, node, ttl, answer);
    if (limits)
        lock->e[node] = rli_min(lock->e[node], rli_max(before, limits->hold_until));
}

/* Gives the lock back to nodes that forgot it. */
static void restore(struct rli_slot *slot, rli_instant now)
{
    rli_span ttl = within_cap(slot->lock, slot->ttl, now);

    if (ttl > 0)
        rli_top_up(slot->lock, slot->absent, ttl, now);
    slot->absent = 0;
}

static void count(struct rli_slot *slot, uint32_t node, const struct rli_answer *answer, rli_instant now)
{
    rl_lock *lock = slot->lock;
    uint32_t quorum = lock->client->terms.quorum;

    rli_lock_refresh(lock, now);
    if (lock->state != RLI_LOCK_HELD) /* released or lost meanwhile: nothing that comes late revives it */
        return;
    lock->taken_over |= answer->outcome == RL_NODE_HELD_BY_OTHER;
    apply(lock, node, slot->ttl, answer);
    rli_lock_refresh(lock, now);
    if (lock->state != RLI_LOCK_HELD)
        return;
    if (answer->outcome == RL_NODE_ABSENT)
        slot->absent |= rli_bit(node);
    if (answer->outcome == RL_NODE_YES) {
        slot->yes |= rli_bit(node);
        if (rli_count(slot->yes) == quorum)
            rli_keep_renewed(lock, now);
    }
    if (slot->absent && rli_count(slot->yes) >= quorum)
        restore(slot, now);
}

static int outcome_of(int64_t value)
{
    return value == 1 ? RL_NODE_YES : value == 0 ? RL_NODE_ABSENT : value == 2 ? RL_NODE_HELD_BY_OTHER : RL_NODE_ERROR;
}

void rli_keep_vote(struct rli_round *round, uint32_t node, const struct rli_answer *answer, const int64_t *values, rli_instant now)
{
    struct rli_batch *batch = round->batch;
    struct rli_answer mine = *answer;

    round->open &= ~rli_bit(node);
    for (uint32_t i = 0; i < batch->count; i++) {
        struct rli_slot *slot = &batch->slots[i];
        if (values)
            mine.outcome = outcome_of(values[i]);
        slot->lock->alone |= answer->denied && batch->count > 1; /* perhaps only one of the keys was denied */
        count(slot, node, &mine, now);
        judge(round, slot, now);
    }
    rli_round_free_if_done(round);
}

bool rli_keep_attends(const struct rli_engine *engine, rli_instant now)
{
    return engine->keep.open && now < engine->keep.attend_until;
}

void rli_keep_free(struct rli_engine *engine)
{
    struct rli_keep *keep = &engine->keep;

    for (size_t i = 0; i < keep->timers.count; i++)
        keep->timers.entries[i].timer->place = 0; /* handles may outlive it */
    rli_heap_free(&keep->timers);
    for (rl_lock *lock; (lock = keep->events);) {
        keep->events = lock->next_event;
        lock->queued = false;
        rli_lock_unref(lock);
    }
    for (struct rli_batch *batch; (batch = keep->free_batches);) {
        keep->free_batches = batch->next_free;
        rli_free(batch);
    }
    keep->free_batch_count = 0;
}
