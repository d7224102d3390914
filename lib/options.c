/* options.c - see options.h. */
#include "options.h"

#include "command.h"
#include "renewal.h"

#include <string.h>

enum { MAX_TIMEOUT_MS = 600000, MAX_CLIENT_NAME = 64, MAX_DRIFT_PPM = 500000 };

static const rl_options default_options = {
    .size = sizeof(rl_options),
    .prefix = "rl:",
    .client_name = "redlatch",
    .node_timeout_ms = 250,
    .cleanup_timeout_ms = 250,
    .retry_min_ms = 5,
    .retry_max_ms = 200,
    .min_validity_ms = 1,
    .drift_ppm = 10000,
};

static const rl_request default_request = {.size = sizeof(rl_request)};

/* Writes the defaults, as this library knows them, into a struct of the caller's size, and 0 into what it does not know. */
static void init_sized(void *theirs, size_t size, const void *defaults, size_t known)
{
    if (!theirs || !size)
        return;
    memset(theirs, 0, size);
    memcpy(theirs, defaults, size < known ? size : known);
    if (size >= sizeof size)
        memcpy(theirs, &size, sizeof size);
}

void rl_options_init_sized(rl_options *options, size_t size)
{
    init_sized(options, size, &default_options, sizeof default_options);
}

void rl_request_init_sized(rl_request *request, size_t size)
{
    init_sized(request, size, &default_request, sizeof default_request);
}

static int read_sized(const void *theirs, void *ret, const void *defaults, size_t known)
{
    size_t size;

    memcpy(&size, theirs, sizeof size);
    if (size < sizeof size || size > 4096) /* not filled by an init macro */
        return RL_E_INVALID;
    for (size_t i = known; i < size; i++)
        if (((const unsigned char *)theirs)[i])
            return RL_E_UNSUPPORTED;
    memcpy(ret, defaults, known);
    memcpy(ret, theirs, size < known ? size : known);
    memcpy(ret, &known, sizeof known);
    return RL_OK;
}

int rli_options_read(const rl_options *theirs, rl_options *ret)
{
    return read_sized(theirs, ret, &default_options, sizeof default_options);
}

int rli_request_read(const rl_request *theirs, rl_request *ret)
{
    return read_sized(theirs, ret, &default_request, sizeof default_request);
}

size_t rli_printable(const char *text, size_t max, bool spaces)
{
    size_t i = 0;
    while (i < max && text[i] >= (spaces ? ' ' : '!') && text[i] <= '~')
        i++;
    return i;
}

static bool in_range(int64_t value, int64_t low, int64_t high)
{
    return value >= low && value <= high;
}

static bool texts_are_fine(const rl_options *o)
{
    if (!o->prefix || !o->client_name || strnlen(o->prefix, RL_MAX_PREFIX + 1) > RL_MAX_PREFIX || !o->client_name[0])
        return false;
    return !o->client_name[rli_printable(o->client_name, MAX_CLIENT_NAME, false)];
}

int rli_terms_make(const rl_options *o, uint32_t nodes, struct rli_terms *ret)
{
    uint32_t majority = nodes / 2 + 1;

    if (!texts_are_fine(o) || !in_range(o->node_timeout_ms, 1, MAX_TIMEOUT_MS) ||
        !in_range(o->cleanup_timeout_ms, 0, MAX_TIMEOUT_MS) || !in_range(o->retry_max_ms, 1, MAX_TIMEOUT_MS) ||
        !in_range(o->retry_min_ms, 1, o->retry_max_ms) || !in_range(o->min_validity_ms, 1, RL_MAX_TTL_MS) ||
        o->drift_ppm > MAX_DRIFT_PPM || o->fence > RL_FENCE_NODE || o->fence_node >= nodes ||
        (o->quorum && !in_range(o->quorum, majority, nodes)) || o->renew_batch > RLI_MAX_KEYS || o->reserved)
        return RL_E_INVALID;
    *ret = (struct rli_terms){
        .nodes = nodes,
        .quorum = o->quorum ? o->quorum : majority,
        .drift_ppm = o->drift_ppm,
        .node_timeout = rli_from_ms(o->node_timeout_ms),
        .cleanup_timeout = rli_from_ms(o->cleanup_timeout_ms),
        .retry_min = rli_from_ms(o->retry_min_ms),
        .retry_max = rli_from_ms(o->retry_max_ms),
        .min_validity = rli_from_ms(o->min_validity_ms),
    };
    return RL_OK;
}

int rli_name_check(const void *name, size_t name_len)
{
    return name && in_range((int64_t)name_len, 1, RL_MAX_NAME) ? RL_OK : RL_E_INVALID;
}

int rli_ttl_check(int64_t ttl_ms, const struct rli_terms *terms)
{
    rli_span ttl = rli_from_ms(ttl_ms);

    if (!in_range(ttl_ms, RL_MIN_TTL_MS, RL_MAX_TTL_MS) || ttl - rli_drift(terms, ttl) <= terms->min_validity)
        return RL_E_INVALID;
    return RL_OK;
}

enum rli_fence rli_request_fence(const rl_request *request, enum rli_fence by_default)
{
    return request->fence ? (enum rli_fence)(request->fence - RL_FENCE_NONE) : by_default;
}

static bool renewal_is_fine(const rl_request *r, const struct rli_terms *terms)
{
    if (!r->renew)
        return !r->max_hold_ms && !r->touch_within_ms;
    return r->renew == 1 && (!r->max_hold_ms || in_range(r->max_hold_ms, r->ttl_ms, INT64_MAX)) &&
           in_range(r->touch_within_ms, 0, INT64_MAX) && rli_renewal_fits(terms, rli_from_ms(r->ttl_ms));
}

int rli_request_check(const rl_request *request, const struct rli_terms *terms)
{
    if (rli_name_check(request->name, request->name_len) || rli_ttl_check(request->ttl_ms, terms))
        return RL_E_INVALID;
    if (request->wait_ms < RL_FOREVER || request->fail_fast > 1 || request->fence > RL_FENCE_NODE)
        return RL_E_INVALID;
    if (request->reserved || !renewal_is_fine(request, terms))
        return RL_E_INVALID;
    if (request->label && (!request->label[0] || request->label[rli_printable(request->label, RL_MAX_LABEL, true)]))
        return RL_E_INVALID;
    return RL_OK;
}
