/* test_quorum.c - what a confirmation is worth, and that a lease ends with the q-th largest of them: against sorting, for every
 * small case and many random ones. */
#include "quorum.h"
#include "unit.h"

/* S1.2: e = L * drift + 2 ms, rounded up. */
static void drift_is_rounded_up(void **state)
{
    struct rli_terms terms = terms_of(1);
    (void)state;
    assert_true(rli_drift(&terms, 1000 * MS) == 12 * MS);
    assert_true(rli_drift(&terms, 10 * MS) == 2 * MS + 100000);
    assert_true(rli_drift(&terms, 1000 * MS + 1) == 12 * MS + 10000);
    terms.drift_ppm = 1;
    assert_true(rli_drift(&terms, 10 * MS) == 2 * MS + 10);
    terms.drift_ppm = 0;
    assert_true(rli_drift(&terms, RL_MAX_TTL_MS * MS) == 2 * MS);
}

/* S1.2: linear, without a cap. */
static void drift_has_no_cap(void **state)
{
    struct rli_terms terms = terms_of(1);
    rli_span longest = rli_from_ms(RL_MAX_TTL_MS);
    (void)state;
    assert_true(rli_drift(&terms, longest) == longest / 100 + 2 * MS);
    terms.drift_ppm = 500000;
    assert_true(rli_drift(&terms, longest) == longest / 2 + 2 * MS);
    assert_true(rli_confirmed(&terms, T0, longest) == T0 + longest / 2 - 2 * MS);
}

/* S1.1: sums near the ends of time saturate. */
static void confirmations_saturate(void **state)
{
    struct rli_terms terms = terms_of(1);
    rli_span longest = rli_from_ms(RL_MAX_TTL_MS);
    (void)state;
    terms.drift_ppm = 500000;
    assert_true(rli_confirmed(&terms, RLI_NEVER - 1, longest) == RLI_NEVER);
    assert_true(rli_confirmed(&terms, RLI_NEVER - 5 * MS, longest) == RLI_NEVER);
    assert_true(rli_confirmed(&terms, RLI_NEVER, longest) == RLI_NEVER);
    assert_true(rli_confirmed(&terms, RLI_GONE, longest) == RLI_GONE);
}

/* S1.2: the sending counts; the ttl that is worth nothing ends before it begins. */
static void a_confirmation_counts_from_the_sending(void **state)
{
    struct rli_terms terms = terms_of(1);
    (void)state;
    assert_true(rli_confirmed(&terms, T0, 1000 * MS) == T0 + 988 * MS);
    assert_true(rli_confirmed(&terms, T0 + 1, 1000 * MS) == T0 + 988 * MS + 1);
    assert_true(rli_confirmed(&terms, T0, 1 * MS) < T0);
}

/* S1.3 */
static void kth_largest_of_every_small_case(void **state)
{
    static const int64_t palette[] = {RLI_GONE, -1, 0, 7, RLI_NEVER};
    int64_t values[5];
    (void)state;
    for (uint32_t n = 1, cases = 5; n <= 5; n++, cases *= 5)
        for (uint32_t code = 0; code < cases; code++) {
            for (uint32_t i = 0, rest = code; i < n; i++, rest /= 5)
                values[i] = palette[rest % 5];
            for (uint32_t k = 1; k <= n; k++)
                assert_true(rli_kth_largest(values, n, k) == kth_by_sort(values, n, k));
        }
}

/* S1.3 */
static void kth_largest_of_random_cases(void **state)
{
    int64_t values[RL_MAX_NODES];
    uint64_t seed = 6;
    (void)state;
    for (int round = 0; round < 20000; round++) {
        uint32_t n = 1 + (uint32_t)(random_of(&seed) % RL_MAX_NODES), k = 1 + (uint32_t)(random_of(&seed) % n);
        unsigned shift = (unsigned)(random_of(&seed) % 64); /* few different values, or many */
        for (uint32_t i = 0; i < n; i++)
            values[i] = (int64_t)random_of(&seed) >> shift;
        assert_true(rli_kth_largest(values, n, k) == kth_by_sort(values, n, k));
    }
}

/* S1.3, with a raised quorum too. */
static void a_lease_ends_with_the_qth_largest(void **state)
{
    static const rli_instant e[] = {T0 + 50, T0 + 10, RLI_GONE, T0 + 40, T0 + 30};
    struct rli_terms terms = terms_of(5);
    (void)state;
    assert_true(rli_valid_until(&terms, e) == T0 + 30);
    terms.quorum = 4;
    assert_true(rli_valid_until(&terms, e) == T0 + 10);
    terms.quorum = 5;
    assert_true(rli_valid_until(&terms, e) == RLI_GONE);
    terms = terms_of(1);
    assert_true(rli_valid_until(&terms, e) == T0 + 50);
}

/* S1.3: only while B() < e. */
static void a_node_holds_until_its_instant_and_not_at_it(void **state)
{
    static const rli_instant e[] = {T0, T0 + 1, RLI_GONE};
    struct rli_terms terms = terms_of(3);
    (void)state;
    assert_int_equal(rli_holding(&terms, e, T0 - 1), 3);
    assert_int_equal(rli_holding(&terms, e, T0), 2);
    assert_int_equal(rli_holding(&terms, e, T0 + 1), 0);
}

/* S1.3: valid means that a quorum holds, and nothing else. */
static void valid_until_and_holding_agree(void **state)
{
    rli_instant e[RL_MAX_NODES];
    uint64_t seed = 7;
    (void)state;
    for (int round = 0; round < 20000; round++) {
        struct rli_terms terms = terms_of(1 + (uint32_t)(random_of(&seed) % RL_MAX_NODES));
        terms.quorum += (uint32_t)(random_of(&seed) % (terms.nodes - terms.quorum + 1));
        for (uint32_t i = 0; i < terms.nodes; i++)
            e[i] = random_of(&seed) % 4 ? T0 + (rli_instant)(random_of(&seed) % 5) : RLI_GONE;
        for (rli_instant now = T0 - 1; now <= T0 + 5; now++)
            assert_int_equal(rli_valid_until(&terms, e) > now, rli_count(rli_holding(&terms, e, now)) >= terms.quorum);
    }
}

static void sets_of_nodes(void **state)
{
    (void)state;
    for (uint32_t n = 1; n <= RL_MAX_NODES; n++) {
        struct rli_terms terms = terms_of(n);
        assert_int_equal(rli_count(rli_all(&terms)), n);
        assert_true(rli_all(&terms) & rli_bit(n - 1));
        assert_true(n == RL_MAX_NODES || !(rli_all(&terms) & rli_bit(n)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drift_is_rounded_up),
        cmocka_unit_test(drift_has_no_cap),
        cmocka_unit_test(confirmations_saturate),
        cmocka_unit_test(a_confirmation_counts_from_the_sending),
        cmocka_unit_test(kth_largest_of_every_small_case),
        cmocka_unit_test(kth_largest_of_random_cases),
        cmocka_unit_test(a_lease_ends_with_the_qth_largest),
        cmocka_unit_test(a_node_holds_until_its_instant_and_not_at_it),
        cmocka_unit_test(valid_until_and_holding_agree),
        cmocka_unit_test(sets_of_nodes),
    };
    return cmocka_run_group_tests_name("quorum", tests, NULL, NULL);
}
