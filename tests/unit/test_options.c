/* test_options.c - the structs of the caller: their defaults, the growth rule in both directions, and every range at its limits. */
#include "options.h"
#include "unit.h"

#include <string.h>

#define DAY_MS INT64_C(86400000)

static const rl_options *defaults(rl_options *o)
{
    rl_options_init(o);
    return o;
}

static void defaults_are_those_of_the_header(void **state)
{
    rl_options o;
    rl_request r;
    (void)state;
    defaults(&o);
    assert_true(o.size == sizeof o);
    assert_string_equal(o.prefix, "rl:");
    assert_string_equal(o.client_name, "redlatch");
    assert_int_equal(o.node_timeout_ms, 250);
    assert_int_equal(o.cleanup_timeout_ms, 250);
    assert_int_equal(o.retry_min_ms, 5);
    assert_int_equal(o.retry_max_ms, 200);
    assert_int_equal(o.min_validity_ms, 1);
    assert_int_equal(o.drift_ppm, 10000);
    assert_int_equal(o.quorum, 0);
    assert_int_equal(o.fence, RL_FENCE_DEFAULT);
    assert_int_equal(o.fence_node, 0);
    rl_request_init(&r);
    assert_true(r.size == sizeof r);
    assert_true(!r.name && !r.label);
    assert_true(!r.name_len && !r.ttl_ms && !r.wait_ms && !r.fail_fast && !r.fence);
}

/* ---- Growth ------------------------------------------------------------------------------------------------------------------- */

enum { ROOM = 256, CANARY = 0xc5 };

typedef void init_fn(void *theirs, size_t size);

static void init_options(void *theirs, size_t size)
{
    rl_options_init_sized(theirs, size);
}

static void init_request(void *theirs, size_t size)
{
    rl_request_init_sized(theirs, size);
}

/* Exactly `size` bytes are written: of the defaults, then zeros; what lies beyond is left alone. */
static void check_init(init_fn *init, const void *whole, size_t known)
{
    _Alignas(16) unsigned char theirs[ROOM];

    for (size_t size = 0; size <= known + 64; size++) {
        memset(theirs, CANARY, sizeof theirs);
        init(theirs, size);
        for (size_t i = size; i < ROOM; i++)
            assert_int_equal(theirs[i], CANARY);
        for (size_t i = sizeof size; i < size; i++)
            assert_int_equal(theirs[i], i < known ? ((const unsigned char *)whole)[i] : 0);
        if (size >= sizeof size)
            assert_memory_equal(theirs, &size, sizeof size);
    }
    init(NULL, known);
    init(NULL, 0);
}

static void init_writes_exactly_size_bytes(void **state)
{
    rl_options o;
    rl_request r;
    (void)state;
    defaults(&o);
    rl_request_init(&r);
    check_init(init_options, &o, sizeof o);
    check_init(init_request, &r, sizeof r);
}

/* Another value than its default in every field. */
static rl_options other_options(void)
{
    return (rl_options){.size = sizeof(rl_options),
                        .prefix = "p",
                        .client_name = "n",
                        .node_timeout_ms = 1,
                        .cleanup_timeout_ms = 2,
                        .retry_min_ms = 3,
                        .retry_max_ms = 4,
                        .min_validity_ms = 5,
                        .drift_ppm = 6,
                        .quorum = 7,
                        .fence = 8,
                        .fence_node = 9};
}

static rl_request other_request(void)
{
    return (rl_request){.size = sizeof(rl_request),
                        .name = "n",
                        .name_len = 1,
                        .ttl_ms = 2,
                        .wait_ms = 3,
                        .label = "l",
                        .fail_fast = 4,
                        .fence = 5};
}

/* A caller compiled with a header that ended there: it says what it knows, the rest are defaults. Its struct ends with its block. */
static void shorter_structs_get_defaults(void **state)
{
    rl_options theirs = other_options(), o, read;
    rl_request their_request = other_request(), r, read_request;
    (void)state;
    defaults(&o);
    rl_request_init(&r);
    for (size_t size = sizeof(size_t); size <= sizeof theirs; size++) {
        void *shorter = malloc(size);
        theirs.size = size;
        memcpy(shorter, &theirs, size);
        assert_int_equal(rli_options_read(shorter, &read), RL_OK);
        assert_true(read.size == sizeof read);
        assert_memory_equal((char *)&read + sizeof size, (char *)&theirs + sizeof size, size - sizeof size);
        assert_memory_equal((char *)&read + size, (char *)&o + size, sizeof o - size);
        free(shorter);
    }
    for (size_t size = sizeof(size_t); size <= sizeof their_request; size++) {
        void *shorter = malloc(size);
        their_request.size = size;
        memcpy(shorter, &their_request, size);
        assert_int_equal(rli_request_read(shorter, &read_request), RL_OK);
        assert_true(read_request.size == sizeof read_request);
        assert_memory_equal((char *)&read_request + sizeof size, (char *)&their_request + sizeof size, size - sizeof size);
        assert_memory_equal((char *)&read_request + size, (char *)&r + size, sizeof r - size);
        free(shorter);
    }
}

/* A caller with a newer header: fields that we do not know must say "as before". */
static void longer_structs_must_end_in_zeros(void **state)
{
    struct {
        rl_options known;
        unsigned char more[40];
    } theirs = {.known = other_options()};
    struct {
        rl_request known;
        unsigned char more[40];
    } their_request = {.known = other_request()};
    rl_options read;
    rl_request read_request;
    (void)state;
    for (size_t more = 1; more <= sizeof theirs.more; more++) {
        theirs.known.size = sizeof theirs.known + more;
        their_request.known.size = sizeof their_request.known + more;
        for (size_t i = 0; i < sizeof theirs.more; i++) {
            theirs.more[i] = their_request.more[i] = 1;
            assert_int_equal(rli_options_read(&theirs.known, &read), i < more ? RL_E_UNSUPPORTED : RL_OK);
            assert_int_equal(rli_request_read(&their_request.known, &read_request), i < more ? RL_E_UNSUPPORTED : RL_OK);
            theirs.more[i] = their_request.more[i] = 0;
        }
        assert_int_equal(rli_options_read(&theirs.known, &read), RL_OK);
        assert_true(read.size == sizeof read && read.quorum == 7 && read.drift_ppm == 6);
        assert_int_equal(rli_request_read(&their_request.known, &read_request), RL_OK);
        assert_true(read_request.size == sizeof read_request && read_request.ttl_ms == 2);
    }
}

/* A struct that no init macro filled. */
static void impossible_sizes_are_invalid(void **state)
{
    static const size_t sizes[] = {0, 1, sizeof(size_t) - 1, 4097, SIZE_MAX};
    rl_options theirs = other_options(), read;
    rl_request their_request = other_request(), read_request;
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        theirs.size = their_request.size = sizes[i];
        assert_int_equal(rli_options_read(&theirs, &read), RL_E_INVALID);
        assert_int_equal(rli_request_read(&their_request, &read_request), RL_E_INVALID);
    }
}

/* ---- Options ------------------------------------------------------------------------------------------------------------------ */

static void options_become_terms(void **state)
{
    rl_options o;
    struct rli_terms t;
    (void)state;
    defaults(&o);
    assert_int_equal(rli_terms_make(&o, 5, &t), RL_OK);
    assert_int_equal(t.nodes, 5);
    assert_int_equal(t.quorum, 3);
    assert_int_equal(t.drift_ppm, 10000);
    assert_true(t.node_timeout == 250 * MS && t.cleanup_timeout == 250 * MS);
    assert_true(t.retry_min == 5 * MS && t.retry_max == 200 * MS && t.min_validity == 1 * MS);
    o.node_timeout_ms = 600000;
    o.cleanup_timeout_ms = 0;
    o.retry_min_ms = 7;
    o.retry_max_ms = 9;
    o.min_validity_ms = 365 * DAY_MS;
    o.drift_ppm = 500000;
    o.quorum = 4;
    assert_int_equal(rli_terms_make(&o, 5, &t), RL_OK);
    assert_int_equal(t.quorum, 4);
    assert_int_equal(t.drift_ppm, 500000);
    assert_true(t.node_timeout == 600000 * MS && t.cleanup_timeout == 0);
    assert_true(t.retry_min == 7 * MS && t.retry_max == 9 * MS && t.min_validity == 365 * DAY_MS * MS);
}

/* Every number at both of its limits, and one beyond. */
static void numbers_have_ranges(void **state)
{
    static const struct {
        size_t at;
        int64_t low, high;
    } ranges[] = {
        {offsetof(rl_options, node_timeout_ms), 1, 600000},
        {offsetof(rl_options, cleanup_timeout_ms), 0, 600000},
        {offsetof(rl_options, retry_min_ms), 1, 200},
        {offsetof(rl_options, retry_max_ms), 5, 600000},
        {offsetof(rl_options, min_validity_ms), 1, RL_MAX_TTL_MS},
    };
    struct rli_terms t;
    (void)state;
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        const struct {
            int64_t value;
            int rc;
        } tries[] = {{ranges[i].low, RL_OK},
                     {ranges[i].high, RL_OK},
                     {ranges[i].low - 1, RL_E_INVALID},
                     {ranges[i].high + 1, RL_E_INVALID},
                     {INT64_MAX, RL_E_INVALID},
                     {INT64_MIN, RL_E_INVALID},
                     {-1, RL_E_INVALID}};
        for (size_t j = 0; j < sizeof tries / sizeof *tries; j++) {
            rl_options o;
            defaults(&o);
            memcpy((char *)&o + ranges[i].at, &tries[j].value, sizeof tries[j].value);
            assert_int_equal(rli_terms_make(&o, 3, &t), tries[j].rc);
        }
    }
}

static void drift_and_quorum_have_ranges(void **state)
{
    rl_options o;
    struct rli_terms t;
    (void)state;
    defaults(&o);
    for (uint32_t i = 0; i < 2; i++) {
        o.drift_ppm = i * 500000;
        assert_int_equal(rli_terms_make(&o, 3, &t), RL_OK);
        o.drift_ppm = i ? UINT32_MAX : 500001;
        assert_int_equal(rli_terms_make(&o, 3, &t), RL_E_INVALID);
    }
    defaults(&o);
    for (uint32_t n = 1; n <= RL_MAX_NODES; n++)
        for (uint32_t q = 0; q <= n + 2; q++) {
            o.quorum = q;
            assert_int_equal(rli_terms_make(&o, n, &t), q == 0 || (q > n / 2 && q <= n) ? RL_OK : RL_E_INVALID);
            if (q == 0) {
                rli_terms_make(&o, n, &t);
                assert_int_equal(t.quorum, n / 2 + 1);
            }
        }
    o.quorum = UINT32_MAX;
    assert_int_equal(rli_terms_make(&o, 3, &t), RL_E_INVALID);
}

/* The designated node is one of them, whether it is asked for or not. */
static void fences_have_ranges(void **state)
{
    rl_options o;
    struct rli_terms t;
    (void)state;
    defaults(&o);
    for (uint32_t n = 1; n <= RL_MAX_NODES; n++)
        for (uint32_t fence = 0; fence <= RL_FENCE_NODE + 1; fence++)
            for (uint32_t node = 0; node <= RL_MAX_NODES; node++) {
                o.fence = fence;
                o.fence_node = node;
                assert_int_equal(rli_terms_make(&o, n, &t), fence <= RL_FENCE_NODE && node < n ? RL_OK : RL_E_INVALID);
            }
    o.fence = UINT32_MAX;
    o.fence_node = 0;
    assert_int_equal(rli_terms_make(&o, 3, &t), RL_E_INVALID);
    o.fence = RL_FENCE_NODE;
    o.fence_node = UINT32_MAX;
    assert_int_equal(rli_terms_make(&o, 3, &t), RL_E_INVALID);
}

/* What a request says is done; where it says nothing, what the options say. */
static void a_request_may_ask_for_another_fence(void **state)
{
    static const enum rli_fence fences[] = {RLI_FENCE_NONE, RLI_FENCE_QUORUM, RLI_FENCE_NODE};
    rl_request r;
    (void)state;
    rl_request_init(&r);
    for (int i = 0; i < 3; i++) {
        r.fence = RL_FENCE_DEFAULT;
        assert_int_equal(rli_request_fence(&r, fences[i]), fences[i]);
        for (uint32_t fence = RL_FENCE_NONE; fence <= RL_FENCE_NODE; fence++) {
            r.fence = fence;
            assert_int_equal(rli_request_fence(&r, fences[i]), fences[fence - RL_FENCE_NONE]);
        }
    }
}

static int with_texts(const char *prefix, const char *client_name)
{
    struct rli_terms t;
    rl_options o;

    defaults(&o);
    o.prefix = prefix;
    o.client_name = client_name;
    return rli_terms_make(&o, 3, &t);
}

/* A text of `length` bytes that ends with its block. */
static char *text_of(size_t length, char c)
{
    char *text = malloc(length + 1);
    assert_non_null(text);
    memset(text, c, length);
    text[length] = '\0';
    return text;
}

static void texts_have_limits(void **state)
{
    char text[] = "a?b";
    (void)state;
    for (size_t length = 0; length < 200; length++) {
        char *t = text_of(length, 'x');
        assert_int_equal(with_texts(t, "n"), length <= RL_MAX_PREFIX ? RL_OK : RL_E_INVALID);
        assert_int_equal(with_texts("", t), length >= 1 && length <= 64 ? RL_OK : RL_E_INVALID);
        free(t);
    }
    assert_int_equal(with_texts(NULL, "n"), RL_E_INVALID);
    assert_int_equal(with_texts("", NULL), RL_E_INVALID);
    for (int c = 1; c < 256; c++) { /* CLIENT SETNAME takes printable ASCII without spaces; a prefix may hold anything */
        text[1] = (char)c;
        assert_int_equal(with_texts(text, "n"), RL_OK);
        assert_int_equal(with_texts("", text), c >= '!' && c <= '~' ? RL_OK : RL_E_INVALID);
    }
}

/* ---- Requests ----------------------------------------------------------------------------------------------------------------- */

static int check(const rl_request *r)
{
    struct rli_terms t = terms_of(3);
    return rli_request_check(r, &t);
}

static rl_request good(void)
{
    rl_request r;
    rl_request_init(&r);
    r.name = "n";
    r.name_len = 1;
    r.ttl_ms = 1000;
    return r;
}

/* S7.2: any bytes, 1 .. RL_MAX_NAME of them. Case A11. */
static void names_have_limits(void **state)
{
    static const char zeros[RL_MAX_NAME + 1];
    static const struct {
        const void *name;
        size_t length;
        int rc;
    } names[] = {{"n", 1, RL_OK},
                 {zeros, 1, RL_OK},
                 {zeros, RL_MAX_NAME, RL_OK},
                 {zeros, RL_MAX_NAME + 1, RL_E_INVALID},
                 {"n", 0, RL_E_INVALID},
                 {NULL, 0, RL_E_INVALID},
                 {NULL, 1, RL_E_INVALID},
                 {"n", SIZE_MAX, RL_E_INVALID},
                 {"n", (size_t)1 << 63, RL_E_INVALID},
                 {"n", ((size_t)1 << 32) + 1, RL_E_INVALID}};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        rl_request r = good();
        r.name = names[i].name;
        r.name_len = names[i].length;
        assert_int_equal(check(&r), names[i].rc);
        assert_int_equal(rli_name_check(names[i].name, names[i].length), names[i].rc);
    }
}

static void waits_and_flags_have_ranges(void **state)
{
    rl_request r = good();
    (void)state;
    r.wait_ms = RL_FOREVER;
    assert_int_equal(check(&r), RL_OK);
    r.wait_ms = INT64_MAX;
    assert_int_equal(check(&r), RL_OK);
    r.wait_ms = -2;
    assert_int_equal(check(&r), RL_E_INVALID);
    r.wait_ms = INT64_MIN;
    assert_int_equal(check(&r), RL_E_INVALID);
    r = good();
    r.fail_fast = 1;
    assert_int_equal(check(&r), RL_OK);
    r.fail_fast = 2;
    assert_int_equal(check(&r), RL_E_INVALID);
    r = good();
    for (uint32_t fence = 0; fence <= RL_FENCE_NODE + 1; fence++) {
        r.fence = fence;
        assert_int_equal(check(&r), fence <= RL_FENCE_NODE ? RL_OK : RL_E_INVALID);
    }
    r.fence = UINT32_MAX;
    assert_int_equal(check(&r), RL_E_INVALID);
}

/* S7.1: a label is 1 .. RL_MAX_LABEL printable ASCII bytes. */
static void labels_have_limits(void **state)
{
    rl_request r = good();
    char text[] = "a?b";
    (void)state;
    for (size_t length = 0; length < 100; length++) {
        char *t = text_of(length, 'x');
        r.label = t;
        assert_int_equal(check(&r), length >= 1 && length <= RL_MAX_LABEL ? RL_OK : RL_E_INVALID);
        free(t);
    }
    r.label = text;
    for (int c = 1; c < 256; c++) {
        text[1] = (char)c;
        assert_int_equal(check(&r), c >= ' ' && c <= '~' ? RL_OK : RL_E_INVALID);
    }
}

/* ---- Ttl ---------------------------------------------------------------------------------------------------------------------- */

/* S1.6: 10 ms .. 365 days, and never a value that PEXPIRE would take for "delete". */
static void ttls_have_a_range(void **state)
{
    static const struct {
        int64_t ttl_ms;
        int rc;
    } ttls[] = {{RL_MIN_TTL_MS, RL_OK},
                {RL_MAX_TTL_MS, RL_OK},
                {RL_MIN_TTL_MS - 1, RL_E_INVALID},
                {RL_MAX_TTL_MS + 1, RL_E_INVALID},
                {0, RL_E_INVALID},
                {-1, RL_E_INVALID},
                {-1000, RL_E_INVALID},
                {INT64_MIN, RL_E_INVALID},
                {INT64_MAX, RL_E_INVALID},
                {INT64_MAX / MS, RL_E_INVALID},
                {INT64_MAX / MS + 1, RL_E_INVALID}};
    struct rli_terms t = terms_of(3);
    (void)state;
    assert_true(RL_MIN_TTL_MS == 10 && RL_MAX_TTL_MS == 365 * DAY_MS);
    for (size_t i = 0; i < sizeof ttls / sizeof *ttls; i++) {
        rl_request r = good();
        r.ttl_ms = ttls[i].ttl_ms;
        assert_int_equal(check(&r), ttls[i].rc);
        assert_int_equal(rli_ttl_check(ttls[i].ttl_ms, &t), ttls[i].rc);
    }
}

/* S1.6: more than min_validity has to be left of L - drift(L), or no attempt could take any time; drift(L) = L * drift + 2 ms (S1.2),
 * here in nanoseconds. */
static void a_ttl_outlasts_drift_and_min_validity(void **state)
{
    static const uint32_t drifts[] = {0, 1, 10000, 83333, 499999, 500000};
    static const int64_t minima[] = {1, 8, 9, 10, 500, 1000};
    struct rli_terms t = terms_of(3);
    (void)state;
    for (size_t d = 0; d < sizeof drifts / sizeof *drifts; d++)
        for (size_t m = 0; m < sizeof minima / sizeof *minima; m++)
            for (int64_t ttl = RL_MIN_TTL_MS; ttl < 2100; ttl++) {
                int64_t left = ttl * (1000000 - drifts[d]) - 2000000; /* ns */
                t.drift_ppm = drifts[d];
                t.min_validity = minima[m] * MS;
                assert_int_equal(rli_ttl_check(ttl, &t), left > minima[m] * MS ? RL_OK : RL_E_INVALID);
            }
    t.drift_ppm = 500000;
    t.min_validity = RL_MAX_TTL_MS * MS;
    assert_int_equal(rli_ttl_check(RL_MAX_TTL_MS, &t), RL_E_INVALID);
    t.min_validity = RL_MAX_TTL_MS / 2 * MS - 2 * MS - 1;
    assert_int_equal(rli_ttl_check(RL_MAX_TTL_MS, &t), RL_OK);
    t.min_validity++;
    assert_int_equal(rli_ttl_check(RL_MAX_TTL_MS, &t), RL_E_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_those_of_the_header),
        cmocka_unit_test(init_writes_exactly_size_bytes),
        cmocka_unit_test(shorter_structs_get_defaults),
        cmocka_unit_test(longer_structs_must_end_in_zeros),
        cmocka_unit_test(impossible_sizes_are_invalid),
        cmocka_unit_test(options_become_terms),
        cmocka_unit_test(numbers_have_ranges),
        cmocka_unit_test(drift_and_quorum_have_ranges),
        cmocka_unit_test(fences_have_ranges),
        cmocka_unit_test(a_request_may_ask_for_another_fence),
        cmocka_unit_test(texts_have_limits),
        cmocka_unit_test(names_have_limits),
        cmocka_unit_test(waits_and_flags_have_ranges),
        cmocka_unit_test(labels_have_limits),
        cmocka_unit_test(ttls_have_a_range),
        cmocka_unit_test(a_ttl_outlasts_drift_and_min_validity),
    };
    return cmocka_run_group_tests_name("options", tests, NULL, NULL);
}
