/* test_command.c - the exact words of every command that the library sends, and the digests of its scripts. */
#include "codec.h"
#include "resp.h"
#include "script.h"
#include "sha1.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>

struct words { /* what is expected: words with their lengths */
    int count;
    const char *word[RLI_MAX_ARGS];
    size_t length[RLI_MAX_ARGS];
};

#define W(literal) (literal), sizeof(literal) - 1

static void say(struct words *w, const char *word, size_t length)
{
    assert_true(w->count < RLI_MAX_ARGS);
    w->word[w->count] = word;
    w->length[w->count++] = length;
}

/* As an argument vector, and once more as the server reads it. */
static void assert_command(const struct rli_command *command, const struct words *expected)
{
    ts_words read;
    char bytes[16384];
    size_t size = rli_format(command, bytes, sizeof bytes);

    assert_true(ts_resp_words(bytes, size, &read) && ts_resp_length(bytes, size) == (ssize_t)size);
    assert_int_equal(command->argc, expected->count);
    assert_int_equal(read.count, expected->count);
    for (int i = 0; i < expected->count; i++) {
        assert_int_equal(command->length[i], expected->length[i]);
        assert_memory_equal(command->argv[i], expected->word[i], expected->length[i]);
        assert_int_equal(read.len[i], expected->length[i]);
        assert_memory_equal(read.word[i], expected->word[i], expected->length[i]);
    }
}

static const char key[] = "rl:a\0b\r\n", token[] = "0123456789abcdef0123456789abcdef:la bel";
static const char counter[] = "{rl:a\0b\r\n}:fence", value[] = "any\0thing\r\n";
static const struct rli_subject subject = {.key = key,
                                           .token = token,
                                           .counter = counter,
                                           .key_len = sizeof key - 1,
                                           .token_len = sizeof token - 1,
                                           .counter_len = sizeof counter - 1,
                                           .nodes = 3};

/* S1.7: relative PX only. S5.3: a top-up is the same SET NX. */
static void taking_is_set_nx_px(void **state)
{
    static const struct {
        rli_span ttl;
        const char *digits;
    } ttls[] = {{10 * MS, "10"}, {1000 * MS, "1000"}, {RL_MAX_TTL_MS * MS, "31536000000"}, {10 * MS + 999999, "10"}};
    (void)state;
    for (size_t i = 0; i < sizeof ttls / sizeof *ttls; i++)
        for (int kind = RLI_SET; kind <= RLI_TOP_UP; kind++) {
            struct rli_command command;
            struct words w = {0};
            rli_command_request(&command, (enum rli_kind)kind, &subject, ttls[i].ttl, i % 2);
            say(&w, W("SET"));
            say(&w, key, sizeof key - 1);
            say(&w, token, sizeof token - 1);
            say(&w, W("NX"));
            say(&w, W("PX"));
            say(&w, ttls[i].digits, strlen(ttls[i].digits));
            assert_command(&command, &w);
        }
}

static struct words script_call(enum rli_script_id id, bool whole)
{
    struct words w = {0};

    if (whole)
        say(&w, W("EVAL"));
    else
        say(&w, W("EVALSHA"));
    say(&w, whole ? rli_scripts[id].text : rli_scripts[id].sha1, whole ? rli_scripts[id].length : 40);
    say(&w, W("1"));
    say(&w, key, sizeof key - 1);
    say(&w, token, sizeof token - 1);
    return w;
}

/* S5.1, S6.1: one key, our token, and for an extension the ttl. S2.5: by digest or whole. */
static void extending_and_releasing_are_scripts(void **state)
{
    (void)state;
    for (int whole = 0; whole < 2; whole++) {
        struct rli_command command;
        struct words w = script_call(RLI_SCRIPT_RELEASE, whole);
        rli_command_request(&command, RLI_RELEASE, &subject, 1000 * MS, whole);
        assert_command(&command, &w);
        w = script_call(RLI_SCRIPT_EXTEND, whole);
        say(&w, W("31536000000"));
        rli_command_request(&command, RLI_EXTEND, &subject, RL_MAX_TTL_MS * MS, whole);
        assert_command(&command, &w);
    }
}

/* ---- With a fence ------------------------------------------------------------------------------------------------------------------ */

/* "EVALSHA sha1 2 key counter", or "EVAL text 2 key counter". */
static struct words fenced_call(enum rli_script_id id, bool whole)
{
    struct words w = {0};

    if (whole)
        say(&w, W("EVAL"));
    else
        say(&w, W("EVALSHA"));
    say(&w, whole ? rli_scripts[id].text : rli_scripts[id].sha1, whole ? rli_scripts[id].length : 40);
    say(&w, W("2"));
    say(&w, key, sizeof key - 1);
    say(&w, counter, sizeof counter - 1);
    return w;
}

static void say_token(struct words *w)
{
    say(w, token, sizeof token - 1);
}

#define DAY "86400000"

/* S8.5: a counter lasts max(1 day, 2 L), to the millisecond. S8.2, S8.5: nodes that have to agree round the clock, a single one does
 * not. */
static void a_grant_raises_the_counter(void **state)
{
    static const struct {
        int64_t ttl_ms;
        const char *ttl, *px;
    } ttls[] = {{10, "10", DAY},
                {43200000, "43200000", DAY},
                {43200001, "43200001", "86400002"},
                {RL_MAX_TTL_MS, "31536000000", "63072000000"}};
    (void)state;
    for (size_t i = 0; i < sizeof ttls / sizeof *ttls; i++)
        for (uint32_t nodes = 1; nodes <= 3; nodes++)
            for (int whole = 0; whole < 2; whole++) {
                struct rli_command command;
                struct rli_subject s = subject;
                struct words w = fenced_call(RLI_SCRIPT_GRANT, whole);
                s.mode = RLI_FENCE_QUORUM;
                s.nodes = nodes;
                say_token(&w);
                say(&w, ttls[i].ttl, strlen(ttls[i].ttl));
                say(&w, ttls[i].px, strlen(ttls[i].px));
                if (nodes == 1)
                    say(&w, W("1"));
                else
                    say(&w, W("1048576"));
                rli_command_request(&command, RLI_GRANT, &s, ttls[i].ttl_ms * MS, whole);
                assert_command(&command, &w);
            }
}

/* Design 5, step 3; S8.3. */
static void confirming_and_minting(void **state)
{
    (void)state;
    for (int whole = 0; whole < 2; whole++) {
        struct rli_command command;
        struct rli_subject s = subject;
        struct words w = fenced_call(RLI_SCRIPT_CONFIRM, whole);
        s.mode = RLI_FENCE_QUORUM;
        s.fence = RL_MAX_FENCE - 1;
        say_token(&w);
        say(&w, W("9007199254740991"));
        say(&w, W(DAY));
        rli_command_request(&command, RLI_CONFIRM, &s, 1000 * MS, whole);
        assert_command(&command, &w);
        w = fenced_call(RLI_SCRIPT_MINT, whole);
        say(&w, W("63072000000"));
        s.mode = RLI_FENCE_NODE;
        rli_command_request(&command, RLI_MINT, &s, RL_MAX_TTL_MS * MS, whole);
        assert_command(&command, &w);
    }
}

/* S5.3: with a quorum fence a top-up first raises the counter. Design 5, step 5: so does a release, among several nodes. Otherwise, and
 * before the token is known, they are as without a fence. */
static void top_up_and_release_carry_the_token(void **state)
{
    static const enum rli_fence modes[] = {RLI_FENCE_NONE, RLI_FENCE_QUORUM, RLI_FENCE_NODE};
    (void)state;
    for (int i = 0; i < 3 * 2 * 2 * 2; i++) {
        struct rli_command command;
        struct rli_subject s = subject;
        bool whole = i & 1, known = i & 2, alone = i & 4;
        s.mode = modes[i / 8];
        s.fence = known ? 4711 : 0;
        s.nodes = alone ? 1 : 3;
        struct words w = fenced_call(RLI_SCRIPT_FENCED_RELEASE, whole);
        if (s.mode == RLI_FENCE_QUORUM && known && !alone) {
            say_token(&w);
            say(&w, W("4711"));
            say(&w, W(DAY));
        } else {
            w = script_call(RLI_SCRIPT_RELEASE, whole);
        }
        rli_command_request(&command, RLI_RELEASE, &s, 1000 * MS, whole);
        assert_command(&command, &w);
        w = fenced_call(RLI_SCRIPT_FENCED_TOP_UP, whole);
        say_token(&w);
        say(&w, W("1000"));
        say(&w, W("4711"));
        say(&w, W(DAY));
        rli_command_request(&command, RLI_TOP_UP, &s, 1000 * MS, whole);
        if (s.mode == RLI_FENCE_QUORUM && known)
            assert_command(&command, &w);
        else
            assert_string_equal(command.argv[0], "SET");
        w = script_call(RLI_SCRIPT_EXTEND, whole);
        say(&w, W("1000"));
        rli_command_request(&command, RLI_EXTEND, &s, 1000 * MS, whole);
        assert_command(&command, &w);
    }
}

/* S8.7: the highest token and its holder, and the value, in one step; or only shown. An empty value is a value. */
static void storing_shows_the_token(void **state)
{
    (void)state;
    for (int whole = 0; whole < 2; whole++)
        for (int length = -1; length < (int)sizeof value; length++) {
            struct rli_command command;
            struct rli_subject s = subject;
            struct words w = fenced_call(RLI_SCRIPT_STORE, whole);
            s.fence = 1;
            say(&w, W("1"));
            say_token(&w);
            if (length >= 0) {
                s.value = value;
                s.value_len = (size_t)length;
                say(&w, value, (size_t)length);
            }
            rli_command_request(&command, RLI_STORE, &s, 0, whole);
            assert_command(&command, &w);
        }
}

/* The keys of all, then token and ttl of each, in the same order: as many as a batch may have, with ttl of any length. */
static void a_renewal_is_about_many_locks(void **state)
{
    static const int counts[] = {1, 2, 9, 10, 63, RLI_MAX_KEYS};
    static char keys[RLI_MAX_KEYS][16], tokens[RLI_MAX_KEYS][64], digits[RLI_MAX_KEYS][24], count_digits[8];
    (void)state;
    for (size_t i = 0; i < 2 * sizeof counts / sizeof *counts; i++) {
        const int count = counts[i / 2];
        bool whole = i % 2;
        struct rli_command command;
        struct words w = {0};
        if (whole)
            say(&w, W("EVAL"));
        else
            say(&w, W("EVALSHA"));
        if (whole)
            say(&w, rli_scripts[RLI_SCRIPT_RENEW].text, rli_scripts[RLI_SCRIPT_RENEW].length);
        else
            say(&w, rli_scripts[RLI_SCRIPT_RENEW].sha1, 40);
        snprintf(count_digits, sizeof count_digits, "%d", count);
        say(&w, count_digits, strlen(count_digits));
        rli_command_renew(&command, (uint32_t)count, whole);
        for (int k = 0; k < count; k++) {
            size_t length = (size_t)snprintf(keys[k], sizeof keys[k], "rl:\r\n%d", k);
            say(&w, keys[k], length + 1); /* with a NUL, as any byte */
            rli_command_renew_key(&command, keys[k], length + 1);
        }
        for (int k = 0; k < count; k++) {
            size_t length = k % 5 == 3 ? 0 : (size_t)snprintf(tokens[k], sizeof tokens[k], "%032d:label", k); /* 0: it is over */
            rli_span ttl = k == 1 ? RL_MAX_TTL_MS * MS : (10 + k * 997) * MS + k; /* whole milliseconds */
            snprintf(digits[k], sizeof digits[k], "%lld", (long long)(ttl / MS));
            say(&w, tokens[k], length);
            say(&w, digits[k], strlen(digits[k]));
            rli_command_renew_for(&command, tokens[k], length, ttl);
        }
        assert_command(&command, &w);
        assert_true(command.argc <= RLI_MAX_ARGS && command.numbers <= RLI_MAX_NUMBERS);
    }
}

static void asking_who_is_info_server(void **state)
{
    struct rli_command command;
    struct words w = {0};
    (void)state;
    rli_command_request(&command, RLI_INFO, &subject, 1000 * MS, false);
    say(&w, W("INFO"));
    say(&w, W("server"));
    assert_command(&command, &w);
}

static void authentication(void **state)
{
    struct rli_command command;
    struct words w = {0};
    (void)state;
    rli_command_auth(&command, NULL, "pass word\r\n");
    say(&w, W("AUTH"));
    say(&w, W("pass word\r\n"));
    assert_command(&command, &w);
    rli_command_auth(&command, "user", "pass");
    w = (struct words){0};
    say(&w, W("AUTH"));
    say(&w, W("user"));
    say(&w, W("pass"));
    assert_command(&command, &w);
}

static void the_rest_of_the_handshake(void **state)
{
    struct rli_command command;
    struct words w = {0};
    (void)state;
    rli_command_select(&command, 1000000);
    say(&w, W("SELECT"));
    say(&w, W("1000000"));
    assert_command(&command, &w);
    rli_command_set_name(&command, "red/latch");
    w = (struct words){0};
    say(&w, W("CLIENT"));
    say(&w, W("SETNAME"));
    say(&w, W("red/latch"));
    assert_command(&command, &w);
    rli_command_client_info(&command);
    w = (struct words){0};
    say(&w, W("CLIENT"));
    say(&w, W("INFO"));
    assert_command(&command, &w);
    for (unsigned i = 0; i < RLI_SCRIPTS; i++) {
        rli_command_script_load(&command, i);
        w = (struct words){0};
        say(&w, W("SCRIPT"));
        say(&w, W("LOAD"));
        say(&w, rli_scripts[i].text, rli_scripts[i].length);
        assert_command(&command, &w);
    }
}

/* S3.4: by id and address, so that no other client's connection can be meant. */
static void killing_a_connection(void **state)
{
    struct rli_command command;
    struct words w = {0};
    (void)state;
    rli_command_client_kill(&command, INT64_MAX, "[::1]:52344");
    say(&w, W("CLIENT"));
    say(&w, W("KILL"));
    say(&w, W("ID"));
    say(&w, W("9223372036854775807"));
    say(&w, W("ADDR"));
    say(&w, W("[::1]:52344"));
    assert_command(&command, &w);
}

/* S2.5: each digest is that of its text. */
static void digests_are_those_of_the_scripts(void **state)
{
    char sha1[41];
    (void)state;
    for (unsigned i = 0; i < RLI_SCRIPTS; i++) {
        assert_int_equal(rli_scripts[i].length, strlen(rli_scripts[i].text));
        ts_sha1_hex(rli_scripts[i].text, rli_scripts[i].length, sha1);
        assert_string_equal(rli_scripts[i].sha1, sha1);
    }
}

/* S5.1, S6.1 as far as the text tells: compared before it writes, and never a bare DEL, SET or EXPIRE. Real servers run them elsewhere. */
static void scripts_compare_before_they_write(void **state)
{
    (void)state;
    for (unsigned i = 0; i <= RLI_SCRIPT_RENEW; i++) { /* those without a fence */
        const char *text = rli_scripts[i].text, *compare = strstr(text, i == RLI_SCRIPT_RENEW ? "== ARGV[2 * i - 1]" : "ARGV[1]"),
                   *get = strstr(text, "'GET'");
        const char *del = strstr(text, "'DEL'"), *pexpire = strstr(text, "'PEXPIRE'");
        assert_true(get && compare && get < compare);
        assert_true(!del || del > compare);
        assert_true(!pexpire || pexpire > compare);
        assert_true(!del == (i != RLI_SCRIPT_RELEASE) && !pexpire == (i == RLI_SCRIPT_RELEASE));
        assert_true(!strstr(text, "'SET'") && !strstr(text, "'EXPIRE'"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(taking_is_set_nx_px),
        cmocka_unit_test(extending_and_releasing_are_scripts),
        cmocka_unit_test(a_grant_raises_the_counter),
        cmocka_unit_test(confirming_and_minting),
        cmocka_unit_test(top_up_and_release_carry_the_token),
        cmocka_unit_test(storing_shows_the_token),
        cmocka_unit_test(a_renewal_is_about_many_locks),
        cmocka_unit_test(asking_who_is_info_server),
        cmocka_unit_test(authentication),
        cmocka_unit_test(the_rest_of_the_handshake),
        cmocka_unit_test(killing_a_connection),
        cmocka_unit_test(digests_are_those_of_the_scripts),
        cmocka_unit_test(scripts_compare_before_they_write),
    };
    return cmocka_run_group_tests_name("command", tests, NULL, NULL);
}
