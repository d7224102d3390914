/* lock.c - see lock.h. */
#include "lock.h"

#include "client.h"
#include "keep.h"
#include "port.h"

#include <assert.h>
#include <string.h>

/* ---- The block ------------------------------------------------------------------------------------------------------------------ */

static int64_t *fence_of(const rl_lock *lock)
{
    return lock->has_fence ? (int64_t *)(uintptr_t)(lock->e + lock->nodes) : NULL;
}

struct rli_limits *rli_lock_limits(const rl_lock *lock)
{
    return lock->has_limits ? (struct rli_limits *)(uintptr_t)(lock->e + lock->nodes + lock->has_fence) : NULL;
}

char *rli_lock_key(const rl_lock *lock)
{
    char *limits = (char *)(uintptr_t)(lock->e + lock->nodes + lock->has_fence);
    return limits + (lock->has_limits ? sizeof(struct rli_limits) : 0);
}

char *rli_lock_token(const rl_lock *lock)
{
    return rli_lock_key(lock) + lock->key_len + 1;
}

static char *counter_of(const rl_lock *lock)
{
    return rli_lock_token(lock) + lock->token_len + 1;
}

static char *value_of(const rl_lock *lock)
{
    return counter_of(lock) + lock->counter_len + 1;
}

struct rli_subject rli_lock_subject(const rl_lock *lock)
{
    const char *key = rli_lock_key(lock), *token = key + lock->key_len + 1;

    return (struct rli_subject){
        .key = key,
        .token = token,
        .counter = lock->counter_len ? token + lock->token_len + 1 : NULL,
        .key_len = lock->key_len,
        .token_len = lock->token_len,
        .counter_len = lock->counter_len,
        .mode = lock->mode,
        .probe = lock->probe,
        .nodes = lock->nodes,
        .value = lock->has_value ? value_of(lock) : NULL,
        .value_len = lock->has_value ? lock->front.value_len : 0,
        .fence = lock->has_fence ? *fence_of(lock) : 0,
    };
}

void rli_lock_set_fence(rl_lock *lock, int64_t fence)
{
    if (lock->has_fence)
        *fence_of(lock) = fence;
}

struct parts {
    size_t key_len, token_len, counter_len, value_len;
    bool fence, limits;
};

static rl_lock *make(struct rli_client *client, const struct parts *parts)
{
    uint32_t nodes = client->terms.nodes;
    size_t numbers = (nodes + parts->fence) * sizeof(rli_instant) + (parts->limits ? sizeof(struct rli_limits) : 0);
    size_t texts = parts->key_len + 1 + parts->token_len + 1 + (parts->counter_len ? parts->counter_len + 1 : 0);
    rl_lock *lock = rli_calloc(sizeof *lock + numbers + texts + parts->value_len);

    if (!lock)
        return NULL;
    lock->client = client;
    lock->refs = 1;
    lock->nodes = nodes & 63;
    lock->key_len = (uint16_t)parts->key_len;
    lock->token_len = (uint8_t)parts->token_len;
    lock->counter_len = (uint16_t)parts->counter_len;
    lock->prefix_len = (uint8_t)client->prefix_len;
    lock->has_fence = parts->fence;
    lock->has_limits = parts->limits;
    atomic_init(&lock->valid_until, RLI_GONE);
    for (uint32_t i = 0; i < nodes; i++)
        lock->e[i] = RLI_GONE;
    lock->free_by = RLI_GONE;
    return lock;
}

/* ---- Keys ----------------------------------------------------------------------------------------------------------------------- */

/* Does Redis Cluster hash only a part of the key? */
static bool has_hash_tag(const char *key, size_t length)
{
    const char *open = memchr(key, '{', length), *close;

    if (!open)
        return false;
    close = memchr(open + 1, '}', length - (size_t)(open + 1 - key));
    return close && close > open + 1;
}

/* The key of a lock's counter, or of what is known of the holders of data, hashes to the slot of the lock's: as key:suffix if that has a hash tag, else as {key}:suffix if
 * it can. */
static bool counter_is_tagged(const char *key, size_t length)
{
    return !has_hash_tag(key, length) && !memchr(key, '}', length);
}

static size_t side_key_len(const char *key, size_t length, const char *suffix)
{
    return length + (counter_is_tagged(key, length) ? 2 : 0) + strlen(suffix);
}

static void write_side_key(const rl_lock *lock, const char *suffix)
{
    const char *key = rli_lock_key(lock);
    char *to = counter_of(lock);
    bool tagged = counter_is_tagged(key, lock->key_len);

    if (tagged)
        *to++ = '{';
    memcpy(to, key, lock->key_len);
    to += lock->key_len;
    if (tagged)
        *to++ = '}';
    memcpy(to, suffix, strlen(suffix));
}

/* ---- Making one ------------------------------------------------------------------------------------------------------------------ */

rl_lock *rli_lock_new(struct rli_client *client, const void *name, size_t name_len, const char *label, enum rli_fence mode,
                      unsigned room)
{
    size_t label_len = label ? 1 + strlen(label) : 0, key_len = client->prefix_len + name_len;
    char key[RL_MAX_PREFIX + RL_MAX_NAME];
    rl_lock *lock;

    memcpy(key, client->prefix, client->prefix_len);
    memcpy(key + client->prefix_len, name, name_len);
    lock = make(client, &(struct parts){.key_len = key_len,
                                        .token_len = RLI_TOKEN_DIGITS + label_len,
                                        .counter_len = mode ? side_key_len(key, key_len, ":fence") : 0,
                                        .fence = mode || room & RLI_ROOM_FOR_FENCE,
                                        .limits = room & RLI_ROOM_FOR_LIMITS});
    if (!lock)
        return NULL;
    memcpy(rli_lock_key(lock), key, key_len);
    if (label) {
        char *token = rli_lock_token(lock);
        token[RLI_TOKEN_DIGITS] = ':';
        memcpy(token + RLI_TOKEN_DIGITS + 1, label, label_len - 1);
    }
    lock->mode = mode;
    if (mode)
        write_side_key(lock, ":fence");
    return lock;
}

rl_lock *rli_lock_new_store(struct rli_client *client, const void *key, size_t key_len, const void *value, size_t value_len,
                            const rl_lock *holder)
{
    rl_lock *store = make(client, &(struct parts){.key_len = key_len,
                                                  .token_len = holder->token_len,
                                                  .counter_len = side_key_len(key, key_len, ":fenced"),
                                                  .value_len = value_len,
                                                  .fence = true});

    if (!store)
        return NULL;
    memcpy(rli_lock_key(store), key, key_len);
    memcpy(rli_lock_token(store), rli_lock_token(holder), holder->token_len);
    write_side_key(store, ":fenced");
    rli_lock_set_fence(store, rl_lock_fence(holder));
    if (value) {
        store->has_value = true;
        store->front.value_len = value_len;
        memcpy(value_of(store), value, value_len);
    }
    return store;
}

rl_lock *rli_lock_again(rl_lock *lock)
{
    const struct rli_limits *limits = rli_lock_limits(lock);
    rl_lock *again = make(lock->client, &(struct parts){.key_len = lock->key_len,
                                                        .token_len = lock->token_len,
                                                        .counter_len = lock->counter_len,
                                                        .fence = lock->has_fence,
                                                        .limits = limits});

    if (!again)
        return NULL;
    memcpy(rli_lock_key(again), rli_lock_key(lock),
           lock->key_len + 1 + lock->token_len + 1 + (lock->counter_len ? lock->counter_len + 1 : 0));
    again->mode = lock->mode;
    again->ttl = lock->ttl;
    rli_keep_take_over(again, lock);
    return again;
}

void rli_lock_fresh_token(rl_lock *lock)
{
    static const char digits[] = "0123456789abcdef";
    char *token = rli_lock_token(lock);
    unsigned char random[RLI_TOKEN_DIGITS / 2];

    rli_guard_random(lock->client->guard, random, sizeof random);
    for (size_t i = 0; i < sizeof random; i++) {
        token[2 * i] = digits[random[i] >> 4];
        token[2 * i + 1] = digits[random[i] & 15];
    }
    for (uint32_t i = 0; i < lock->nodes; i++)
        lock->e[i] = RLI_GONE;
    lock->touched = lock->adrift = 0;
    rli_lock_set_fence(lock, 0);
    lock->free_by = RLI_GONE;
}

/* ---- Its life -------------------------------------------------------------------------------------------------------------------- */

static bool has_alarm(const rl_lock *lock)
{
    return lock->front.alarm && !lock->has_value && !lock->client->async;
}

static void publish(rl_lock *lock, rli_instant valid_until)
{
    atomic_store_explicit(&lock->valid_until, valid_until, memory_order_relaxed);
    if (has_alarm(lock))
        rli_alarm_set(lock->front.alarm - 1, valid_until);
}

void rli_lock_end(rl_lock *lock)
{
    lock->state = RLI_LOCK_OVER;
    publish(lock, RLI_GONE);
    rli_keep_end(lock);
}

/* Did the time run out, or did nodes say that they do not keep it? */
static enum rl_lost_reason reason_of(const rl_lock *lock)
{
    uint32_t keep = 0;

    for (uint32_t i = 0; i < lock->nodes; i++)
        keep += lock->e[i] != RLI_GONE;
    if (keep < lock->client->terms.quorum)
        return lock->taken_over ? RL_LOST_TAKEN_OVER : RL_LOST_QUORUM_GONE;
    return lock->capped ? RL_LOST_HOLD_CAP : lock->untouched ? RL_LOST_NOT_TOUCHED : RL_LOST_EXPIRED;
}

void rli_lock_lose(rl_lock *lock)
{
    if (lock->state == RLI_LOCK_OVER)
        return;
    lock->lost = reason_of(lock);
    rli_lock_end(lock);
    rli_keep_tell(lock);
}

void rli_lock_refresh(rl_lock *lock, rli_instant now)
{
    rli_instant before = atomic_load_explicit(&lock->valid_until, memory_order_relaxed), valid_until;

    if (lock->state != RLI_LOCK_HELD)
        return;
    valid_until = rli_valid_until(&lock->client->terms, lock->e);
    if (valid_until <= now) {
        rli_lock_lose(lock);
    } else if (valid_until != before) {
        publish(lock, valid_until);
        rli_keep_changed(lock, now);
    }
}

bool rli_lock_is_over(rl_lock *lock, rli_instant now)
{
    rli_lock_refresh(lock, now);
    lock->told_lost |= lock->state == RLI_LOCK_OVER;
    return lock->told_lost;
}

rl_lock *rli_lock_ref(rl_lock *lock)
{
    lock->refs++;
    return lock;
}

static void free_if_unused(rl_lock *lock)
{
    if (lock->refs > 0 || atomic_load(&lock->watchers) > 0)
        return;
    rli_keep_forget(lock);
    if (has_alarm(lock))
        rli_alarm_free(lock->front.alarm - 1);
    rli_free(lock);
}

void rli_lock_unref(rl_lock *lock)
{
    assert(lock->refs > 0);
    lock->refs--;
    free_if_unused(lock);
}

bool rli_lock_watch(rl_lock *lock)
{
    uint8_t watchers = atomic_load(&lock->watchers);

    do
        if (watchers == UINT8_MAX)
            return false;
    while (!atomic_compare_exchange_weak(&lock->watchers, &watchers, (uint8_t)(watchers + 1)));
    return true;
}

void rli_lock_unwatch(rl_lock *lock)
{
    atomic_fetch_sub(&lock->watchers, 1);
    free_if_unused(lock);
}

/* ---- Public: what a handle knows without I/O ---------------------------------------------------------------------------------- */

int64_t rl_lock_remaining_ms(const rl_lock *lock)
{
    rli_instant valid_until;

    if (!lock || rli_guard_forked(lock->client->guard))
        return 0;
    valid_until = atomic_load_explicit(&lock->valid_until, memory_order_relaxed);
    return valid_until == RLI_GONE ? 0 : rli_to_ms_floor(rli_until(valid_until, rli_now()));
}

int64_t rl_lock_fence(const rl_lock *lock)
{
    return lock && lock->has_fence ? *fence_of(lock) : 0;
}

const char *rl_lock_token(const rl_lock *lock)
{
    return lock ? rli_lock_token(lock) : NULL;
}

const void *rl_lock_name(const rl_lock *lock, size_t *ret_len)
{
    if (!lock)
        return NULL;
    if (ret_len)
        *ret_len = lock->key_len - lock->prefix_len;
    return rli_lock_key(lock) + lock->prefix_len;
}
