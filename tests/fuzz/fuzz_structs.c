/* fuzz_structs.c - the caller's structs, of any size and with any bytes: the growth rule.
 *
 * A struct of `size` bytes lies in a block of exactly that size. Its pointers are made to point to texts of the input; a header
 * whose struct ends inside a pointer does not exist. */
#include "fuzz.h"

#include "redlatch.h"

#include "options.h"

static const uint8_t *input;
static size_t left;

static uint8_t byte(void)
{
    if (!left)
        return 0;
    left--;
    return *input++;
}

/* NULL, or a text of the input. */
static char *draw_text(void)
{
    size_t length = byte();
    char *text;

    if (length == 255)
        return NULL;
    length = length < left ? length : left;
    text = text_of(input, length);
    input += length;
    left -= length;
    return text;
}

/* Puts a pointer at that offset, if there is room for all of it; a struct that would end inside it ends before it. */
static void *put_pointer(unsigned char *at, size_t offset, size_t *size)
{
    void *pointer;

    if (*size <= offset)
        return NULL;
    if (*size < offset + sizeof pointer) {
        *size = offset;
        return NULL;
    }
    pointer = draw_text();
    memcpy(at + offset, &pointer, sizeof pointer);
    return pointer;
}

static bool is_zero(const unsigned char *from, const unsigned char *to)
{
    while (from < to && !*from)
        from++;
    return from >= to;
}

/* A struct of the size drawn: what init writes, then bytes of the input over it. */
static unsigned char *draw_struct(size_t known, size_t *ret_size, void (*init)(void *, size_t))
{
    size_t size = byte() % (known + 64), changes = byte() % 32, at;
    unsigned char *bytes = malloc(size ? size : 1);

    MUST(bytes);
    init(bytes, size);
    while (changes--) {
        at = byte();
        if (at < size)
            bytes[at] = byte();
    }
    *ret_size = size;
    return bytes;
}

/* The struct in a block that ends where it ends. */
static void *cut(unsigned char *bytes, size_t size)
{
    void *exact = malloc(size);

    MUST(exact);
    memcpy(exact, bytes, size);
    memcpy(exact, &size, sizeof size);
    free(bytes);
    return exact;
}

static void init_options(void *bytes, size_t size)
{
    rl_options_init_sized(bytes, size);
}

static void fuzz_options(void)
{
    size_t size;
    unsigned char *bytes = draw_struct(sizeof(rl_options), &size, init_options);
    struct rli_terms terms;
    rl_options options;
    void *prefix, *client_name, *theirs;
    uint32_t nodes = 1 + byte() % RL_MAX_NODES;
    int rc;

    if (size < sizeof size) {
        free(bytes);
        return;
    }
    prefix = put_pointer(bytes, offsetof(rl_options, prefix), &size);
    client_name = put_pointer(bytes, offsetof(rl_options, client_name), &size);
    theirs = cut(bytes, size);
    rc = rli_options_read(theirs, &options);
    MUST(rc == RL_OK || (rc == RL_E_UNSUPPORTED && size > sizeof options));
    MUST((rc == RL_OK) ==
         is_zero((unsigned char *)theirs + sizeof options, (unsigned char *)theirs + (size > sizeof options ? size : 0)));
    if (rc == RL_OK && rli_terms_make(&options, nodes, &terms) == RL_OK) {
        MUST(terms.nodes == nodes && terms.quorum > nodes / 2 && terms.quorum <= nodes);
        MUST(terms.node_timeout > 0 && terms.cleanup_timeout >= 0 && terms.retry_min > 0 && terms.retry_max >= terms.retry_min);
        MUST(options.fence <= RL_FENCE_NODE && options.fence_node < nodes);
        MUST(strlen(options.prefix) <= RL_MAX_PREFIX && options.client_name[0] && terms.min_validity > 0);
    }
    free(theirs);
    free(prefix);
    free(client_name);
}

static void init_request(void *bytes, size_t size)
{
    rl_request_init_sized(bytes, size);
}

static void check_request(const rl_request *request)
{
    struct rli_terms terms;
    rl_options options;
    rli_span ttl;

    rl_options_init(&options);
    MUST(rli_terms_make(&options, 3, &terms) == RL_OK);
    if (rli_request_check(request, &terms) != RL_OK)
        return;
    ttl = rli_from_ms(request->ttl_ms);
    MUST(request->name && request->name_len >= 1 && request->name_len <= RL_MAX_NAME);
    MUST(request->ttl_ms >= RL_MIN_TTL_MS && request->ttl_ms <= RL_MAX_TTL_MS && ttl - rli_drift(&terms, ttl) > terms.min_validity);
    MUST(request->wait_ms >= RL_FOREVER && request->fail_fast <= 1 && request->fence <= RL_FENCE_NODE);
    MUST(!request->label || (strlen(request->label) >= 1 && strlen(request->label) <= RL_MAX_LABEL));
}

static void fuzz_request(void)
{
    size_t size;
    unsigned char *bytes = draw_struct(sizeof(rl_request), &size, init_request);
    void *name, *label, *theirs;
    rl_request request;
    int rc;

    if (size < sizeof size) {
        free(bytes);
        return;
    }
    name = put_pointer(bytes, offsetof(rl_request, name), &size);
    label = put_pointer(bytes, offsetof(rl_request, label), &size);
    theirs = cut(bytes, size);
    rc = rli_request_read(theirs, &request);
    MUST(rc == RL_OK || (rc == RL_E_UNSUPPORTED && size > sizeof request));
    if (rc == RL_OK)
        check_request(&request);
    free(theirs);
    free(name);
    free(label);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input = data;
    left = size;
    if (byte() & 1)
        fuzz_options();
    else
        fuzz_request();
    return 0;
}
