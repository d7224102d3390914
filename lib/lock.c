/* lock.c - see lock.h. */
#include "lock.h"

#include "client.h"
#include "port.h"

#include <assert.h>
#include <string.h>

static rl_lock *make(struct rli_client *client, size_t key_len, size_t token_len, size_t counter_len, size_t value_len)
{
    size_t e = client->terms.nodes * sizeof(rli_instant);
    rl_lock *lock = rli_calloc(sizeof *lock + e + key_len + 1 + token_len + 1 + (counter_len ? counter_len + 1 : 0) + value_len);
    if (!lock)
        return NULL;
    char *key = (char *)lock + sizeof *lock + e, *token = key + key_len + 1;
    lock->client = client;
    lock->refs = 1;
    lock->subject = (struct rli_subject){
        .key = key,
        .token = token,
        .counter = counter_len ? token + token_len + 1 : NULL,
        .key_len = key_len,
        .token_len = token_len,
        .counter_len = counter_len,
        .nodes = client->terms.nodes,
    };
    atomic_init(&lock->valid_until, RLI_GONE);
    for (uint32_t i = 0; i < client->terms.nodes; i++)
        lock->e[i] = RLI_GONE;
    lock->free_by = RLI_GONE;
    lock->prefix_len = (uint32_t)client->prefix_len;
    return lock;
}

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

static void write_side_key(const struct rli_subject *subject, const char *suffix)
{
    char *to = (char *)(uintptr_t)subject->counter;
    bool tagged = counter_is_tagged(subject->key, subject->key_len);

    if (tagged)
        *to++ = '{';
    memcpy(to, subject->key, subject->key_len);
    to += subject->key_len;
    if (tagged)
        *to++ = '}';
    memcpy(to, suffix, strlen(suffix));
}

rl_lock *rli_lock_new(struct rli_client *client, const void *name, size_t name_len, const char *label, enum rli_fence mode)
{
    size_t label_len = label ? 1 + strlen(label) : 0, key_len = client->prefix_len + name_len;
    char key[RL_MAX_PREFIX + RL_MAX_NAME];
    rl_lock *lock;

    memcpy(key, client->prefix, client->prefix_len);
    memcpy(key + client->prefix_len, name, name_len);
    lock = make(client, key_len, RLI_TOKEN_DIGITS + label_len, mode ? side_key_len(key, key_len, ":fence") : 0, 0);
    if (!lock)
        return NULL;
    char *token = (char *)(uintptr_t)lock->subject.token;
    memcpy((char *)(uintptr_t)lock->subject.key, key, key_len);
    if (label) {
        token[RLI_TOKEN_DIGITS] = ':';
        memcpy(token + RLI_TOKEN_DIGITS + 1, label, label_len - 1);
    }
    lock->subject.mode = mode;
    if (mode)
        write_side_key(&lock->subject, ":fence");
    return lock;
}

rl_lock *rli_lock_new_store(struct rli_client *client, const void *key, size_t key_len, const void *value, size_t value_len,
                            const rl_lock *holder)
{
    const struct rli_subject *theirs = &holder->subject;
    size_t side = side_key_len(key, key_len, ":fenced");
    rl_lock *store = make(client, key_len, theirs->token_len, side, value_len);

    if (!store)
        return NULL;
    struct rli_subject *subject = &store->subject;
    memcpy((char *)(uintptr_t)subject->key, key, key_len);
    memcpy((char *)(uintptr_t)subject->token, theirs->token, theirs->token_len);
    write_side_key(subject, ":fenced");
    subject->fence = theirs->fence;
    if (value) {
        char *to = (char *)(uintptr_t)subject->counter + side + 1;
        memcpy(to, value, value_len);
        subject->value = to;
        subject->value_len = value_len;
    }
    return store;
}

rl_lock *rli_lock_again(const rl_lock *lock)
{
    const struct rli_subject *s = &lock->subject;
    rl_lock *again = make(lock->client, s->key_len, s->token_len, s->counter_len, 0);

    if (!again)
        return NULL;
    memcpy((char *)(uintptr_t)again->subject.key, s->key,
           s->key_len + 1 + s->token_len + 1 + (s->counter_len ? s->counter_len + 1 : 0));
    again->subject.mode = s->mode;
    again->ttl = lock->ttl;
    return again;
}

void rli_lock_fresh_token(rl_lock *lock)
{
    static const char digits[] = "0123456789abcdef";
    char *token = (char *)(uintptr_t)lock->subject.token;
    unsigned char random[RLI_TOKEN_DIGITS / 2];

    rli_guard_random(lock->client->guard, random, sizeof random);
    for (size_t i = 0; i < sizeof random; i++) {
        token[2 * i] = digits[random[i] >> 4];
        token[2 * i + 1] = digits[random[i] & 15];
    }
    for (uint32_t i = 0; i < lock->client->terms.nodes; i++)
        lock->e[i] = RLI_GONE;
    lock->touched = lock->adrift = 0;
    lock->subject.fence = 0;
    lock->free_by = RLI_GONE;
}

void rli_lock_end(rl_lock *lock)
{
    lock->state = RLI_LOCK_OVER;
    atomic_store_explicit(&lock->valid_until, RLI_GONE, memory_order_relaxed);
}

void rli_lock_refresh(rl_lock *lock, rli_instant now)
{
    rli_instant valid_until;

    if (lock->state != RLI_LOCK_HELD)
        return;
    valid_until = rli_valid_until(&lock->client->terms, lock->e);
    if (valid_until <= now)
        rli_lock_end(lock);
    else
        atomic_store_explicit(&lock->valid_until, valid_until, memory_order_relaxed);
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

void rli_lock_unref(rl_lock *lock)
{
    assert(lock->refs > 0);
    if (--lock->refs == 0)
        rli_free(lock);
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
    return lock ? lock->subject.fence : 0;
}

const char *rl_lock_token(const rl_lock *lock)
{
    return lock ? lock->subject.token : NULL;
}

const void *rl_lock_name(const rl_lock *lock, size_t *ret_len)
{
    if (!lock)
        return NULL;
    if (ret_len)
        *ret_len = lock->subject.key_len - lock->prefix_len;
    return lock->subject.key + lock->prefix_len;
}
