/* lock.c - see lock.h. */
#include "lock.h"

#include "client.h"
#include "port.h"

#include <assert.h>
#include <string.h>

static rl_lock *make(struct rli_client *client, size_t key_len, size_t token_len)
{
    size_t e = client->terms.nodes * sizeof(rli_instant);
    rl_lock *lock = rli_calloc(sizeof *lock + e + key_len + 1 + token_len + 1);
    if (!lock)
        return NULL;
    char *key = (char *)lock + sizeof *lock + e;
    lock->client = client;
    lock->refs = 1;
    lock->subject = (struct rli_subject){key, key + key_len + 1, key_len, token_len};
    atomic_init(&lock->valid_until, RLI_GONE);
    for (uint32_t i = 0; i < client->terms.nodes; i++)
        lock->e[i] = RLI_GONE;
    lock->free_by = RLI_GONE;
    lock->prefix_len = (uint32_t)client->prefix_len;
    return lock;
}

rl_lock *rli_lock_new(struct rli_client *client, const void *name, size_t name_len, const char *label)
{
    size_t label_len = label ? 1 + strlen(label) : 0;
    rl_lock *lock = make(client, client->prefix_len + name_len, RLI_TOKEN_DIGITS + label_len);

    if (!lock)
        return NULL;
    char *key = (char *)(uintptr_t)lock->subject.key, *token = (char *)(uintptr_t)lock->subject.token;
    memcpy(key, client->prefix, client->prefix_len);
    memcpy(key + client->prefix_len, name, name_len);
    if (label) {
        token[RLI_TOKEN_DIGITS] = ':';
        memcpy(token + RLI_TOKEN_DIGITS + 1, label, label_len - 1);
    }
    return lock;
}

rl_lock *rli_lock_again(const rl_lock *lock)
{
    const struct rli_subject *s = &lock->subject;
    rl_lock *again = make(lock->client, s->key_len, s->token_len);

    if (!again)
        return NULL;
    memcpy((char *)(uintptr_t)again->subject.key, s->key, s->key_len + 1 + s->token_len);
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
