/* lost.c - how the holder of a lock learns that it is over, and what it says about its renewal. For the blocking front there is a
 * descriptor, set to the end of the validity: it tells the truth whatever the threads of the library are doing. */
#include "client.h"
#include "port.h"

/* Inside the client, or not at all: then why. */
static int enter(struct rli_client *client)
{
    pthread_mutex_lock(&client->mutex);
    if (!client->closed)
        return RL_OK;
    pthread_mutex_unlock(&client->mutex);
    return RL_E_CLOSED;
}

static int leave(struct rli_client *client, int result)
{
    pthread_mutex_unlock(&client->mutex);
    return result;
}

/* The lock's alarm, made when it is first asked for; RL_E_NO_MEMORY. */
static int alarm_of(rl_lock *lock)
{
    int alarm;

    if (lock->front.alarm)
        return lock->front.alarm - 1;
    alarm = rli_alarm_new();
    if (alarm < 0)
        return RL_E_NO_MEMORY;
    lock->front.alarm = alarm + 1;
    /* One that was imported and not yet extended is not over either. */
    rli_alarm_set(alarm,
                  lock->state == RLI_LOCK_UNPROVED ? RLI_NEVER : atomic_load_explicit(&lock->valid_until, memory_order_relaxed));
    return alarm;
}

int rl_lock_lost_fd(rl_lock *lock)
{
    int rc;

    if (!lock || lock->client->async)
        return RL_E_INVALID;
    if (rli_guard_forked(lock->client->guard))
        return RL_E_FORKED;
    rc = enter(lock->client);
    return rc ? rc : leave(lock->client, alarm_of(lock));
}

/* RL_LOST or RL_CANCELED if the lock is over, else RL_OK. An imported one that nobody has extended yet is not over. */
static int state_of(rl_lock *lock)
{
    rli_lock_refresh(lock, rli_now());
    if (lock->state != RLI_LOCK_OVER)
        return RL_OK;
    lock->told_lost |= lock->lost != RL_LOST_NOT;
    return lock->lost ? RL_LOST : RL_CANCELED;
}

/* The mutex is free while it waits. */
static int wait_lost(rl_lock *lock, rli_instant until)
{
    int state, alarm;

    while ((state = state_of(lock)) == RL_OK && rli_now() < until) {
        alarm = alarm_of(lock);
        if (alarm < 0)
            return alarm;
        pthread_mutex_unlock(&lock->client->mutex);
        rli_alarm_wait(alarm, until);
        pthread_mutex_lock(&lock->client->mutex);
    }
    return state;
}

/* From here on the handle may be ended by another thread: the memory stays. */
static int watch(rl_lock *lock, rli_instant until)
{
    struct rli_client *client = lock->client;
    int rc;

    if (!rli_lock_watch(lock))
        return RL_E_NO_MEMORY;
    pthread_mutex_lock(&client->mutex);
    rc = client->closed ? RL_E_CLOSED : wait_lost(lock, until);
    rli_lock_unwatch(lock);
    pthread_mutex_unlock(&client->mutex);
    return rc;
}

int rl_lock_wait_lost(rl_lock *lock, int64_t timeout_ms)
{
    int rc, cancel_state;

    if (!lock || lock->client->async || timeout_ms < RL_FOREVER)
        return RL_E_INVALID;
    if (rli_guard_forked(lock->client->guard))
        return RL_E_FORKED;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    rc = watch(lock, timeout_ms == RL_FOREVER ? RLI_NEVER : rli_add(rli_now(), rli_from_ms(timeout_ms)));
    pthread_setcancelstate(cancel_state, NULL);
    return rc;
}

int rl_lock_lost_reason(rl_lock *lock)
{
    struct rli_client *client = lock ? lock->client : NULL;

    if (!lock || rli_guard_forked(client->guard))
        return RL_LOST_NOT;
    pthread_mutex_lock(&client->mutex);
    rli_lock_refresh(lock, rli_now());
    lock->told_lost |= lock->lost != RL_LOST_NOT;
    return leave(client, lock->lost);
}

int rl_lock_touch(rl_lock *lock)
{
    struct rli_limits *limits = lock ? rli_lock_limits(lock) : NULL;
    rli_instant now;

    if (!limits || limits->touch_within == RLI_NEVER)
        return RL_E_INVALID;
    if (rli_guard_forked(lock->client->guard))
        return RL_E_FORKED;
    now = rli_now();
    atomic_store_explicit(&limits->touched_at, now, memory_order_relaxed);
    return atomic_load_explicit(&lock->valid_until, memory_order_relaxed) > now ? RL_OK : RL_LOST;
}

int rl_lock_stop_renewing(rl_lock *lock)
{
    struct rli_client *client = lock ? lock->client : NULL;

    if (!lock)
        return RL_E_INVALID;
    if (rli_guard_forked(client->guard))
        return RL_E_FORKED;
    pthread_mutex_lock(&client->mutex);
    rli_keep_stop(lock, rli_now());
    return leave(client, RL_OK);
}
