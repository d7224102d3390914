/* test_codec.c - replies come out the same however the stream is cut, nothing that is not RESP2 or is too large comes out at all, and
 * commands go in whole whatever bytes they hold. */
#include "codec.h"
#include "resp.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>

struct sample {
    const char *bytes;
    size_t size;
    enum rli_reply_type type;
    const char *text; /* STATUS, ERROR, BULK */
    size_t text_len;
    int64_t integer;
    size_t elements;
    uint32_t ints;
    int64_t values[RLI_MAX_INTS];
};

#define BYTES(literal) .bytes = (literal), .size = sizeof(literal) - 1
#define TEXT(literal) .text = (literal), .text_len = sizeof(literal) - 1

static const struct sample samples[] = {
    {BYTES("+OK\r\n"), .type = RLI_STATUS, TEXT("OK")},
    {BYTES("+\r\n"), .type = RLI_STATUS, TEXT("")},
    {BYTES("-ERR what\r\n"), .type = RLI_ERROR, TEXT("ERR what")},
    {BYTES("-\r\n"), .type = RLI_ERROR, TEXT("")},
    {BYTES(":0\r\n"), .type = RLI_INTEGER},
    {BYTES(":-17\r\n"), .type = RLI_INTEGER, .integer = -17},
    {BYTES(":9223372036854775807\r\n"), .type = RLI_INTEGER, .integer = INT64_MAX},
    {BYTES("$-1\r\n"), .type = RLI_NIL},
    {BYTES("*-1\r\n"), .type = RLI_NIL},
    {BYTES("$0\r\n\r\n"), .type = RLI_BULK, TEXT("")},
    {BYTES("$8\r\n+OK\r\n:1\r\r\n"), .type = RLI_BULK, TEXT("+OK\r\n:1\r")},
    {BYTES("$3\r\na\0b\r\n"), .type = RLI_BULK, TEXT("a\0b")},
    {BYTES("*0\r\n"), .type = RLI_ARRAY},
    {BYTES("*2\r\n:2\r\n:4711\r\n"), .type = RLI_ARRAY, .elements = 2, .ints = 2, .values = {2, 4711}},
    {BYTES("*2\r\n:2\r\n:-1\r\n"), .type = RLI_ARRAY, .elements = 2, .ints = 2, .values = {2, -1}},
    {BYTES("*5\r\n:1\r\n:2\r\n:3\r\n:4\r\n:5\r\n"), .type = RLI_ARRAY, .elements = 5, .ints = 5, .values = {1, 2, 3, 4, 5}},
    {BYTES("*2\r\n$1\r\n2\r\n:3\r\n"), .type = RLI_ARRAY, .elements = 2},
    {BYTES("*3\r\n:1\r\n$-1\r\n:3\r\n"), .type = RLI_ARRAY, .elements = 3, .ints = 1, .values = {1}},
    {BYTES("*3\r\n:1\r\n*2\r\n:8\r\n:9\r\n:3\r\n"), .type = RLI_ARRAY, .elements = 3, .ints = 1, .values = {1}},
    {BYTES("*2\r\n*1\r\n:8\r\n+x\r\n"), .type = RLI_ARRAY, .elements = 2},
    {BYTES("*2\r\n-ERR inside\r\n*0\r\n"), .type = RLI_ARRAY, .elements = 2},
    {BYTES("*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n"), .type = RLI_ARRAY, .elements = 1}, /* RLI_MAX_DEPTH */
};
enum { SAMPLES = sizeof samples / sizeof *samples };

static void assert_sample(const struct rli_reply *reply, const struct sample *s)
{
    assert_int_equal(reply->type, s->type);
    if (s->text) {
        assert_int_equal(reply->text_len, s->text_len);
        assert_memory_equal(reply->text, s->text, s->text_len + 1); /* ended by NUL */
    }
    if (s->type == RLI_INTEGER)
        assert_true(reply->integer == s->integer);
    if (s->type != RLI_ARRAY)
        return;
    assert_int_equal(reply->elements, s->elements);
    assert_int_equal(reply->ints, s->ints);
    for (uint32_t i = 0; i < s->ints; i++)
        assert_true(reply->values[i] == s->values[i]);
}

/* Feeds a copy that ends with its block: the reader may not look beyond it, nor into it later. */
static bool feed(struct rli_codec *codec, const char *bytes, size_t size)
{
    char *copy = malloc(size ? size : 1);
    assert_non_null(copy);
    memcpy(copy, bytes, size);
    bool ok = rli_codec_feed(codec, copy, size);
    free(copy);
    return ok;
}

static void expect(struct rli_codec *codec, const struct sample *s)
{
    struct rli_reply reply;
    memset(&reply, 0xa5, sizeof reply);
    assert_int_equal(rli_codec_next(codec, &reply), RLI_NEXT_REPLY);
    assert_sample(&reply, s);
}

static void expect_none(struct rli_codec *codec, bool partial)
{
    struct rli_reply reply;
    assert_int_equal(rli_codec_next(codec, &reply), RLI_NEXT_NONE);
    assert_int_equal(rli_codec_partial(codec), partial);
}

static void replies_whole(void **state)
{
    struct rli_codec *codec = rli_codec_new();
    (void)state;
    expect_none(codec, false);
    for (size_t i = 0; i < SAMPLES; i++) {
        assert_true(feed(codec, samples[i].bytes, samples[i].size));
        expect(codec, &samples[i]);
        expect_none(codec, false);
    }
    rli_codec_free(codec);
}

/* Byte by byte, without a break between the replies: "partial" from the first byte of each to the last but one. */
static void replies_byte_by_byte(void **state)
{
    struct rli_codec *codec = rli_codec_new();
    (void)state;
    for (size_t i = 0; i < SAMPLES; i++) {
        for (size_t at = 0; at < samples[i].size; at++) {
            expect_none(codec, at > 0);
            assert_true(feed(codec, samples[i].bytes + at, 1));
        }
        expect(codec, &samples[i]);
        assert_false(rli_codec_partial(codec));
    }
    expect_none(codec, false);
    rli_codec_free(codec);
}

/* Of an array the integers that come first are kept, up to RLI_MAX_INTS; what follows is counted. `odd`: where something else is. */
static void an_array_of(struct rli_codec *codec, size_t elements, size_t odd, size_t cut)
{
    static char bytes[24 * RLI_MAX_ELEMENTS];
    struct rli_reply reply;
    size_t size = (size_t)sprintf(bytes, "*%zu\r\n", elements);

    for (size_t i = 0; i < elements; i++)
        size += (size_t)(i == odd ? sprintf(bytes + size, "$1\r\n1\r\n") : sprintf(bytes + size, ":%d\r\n", (int)(i * 7) - 3));
    cut = cut < size ? cut : size;
    assert_true(feed(codec, bytes, cut));
    if (cut < size)
        expect_none(codec, cut > 0);
    assert_true(feed(codec, bytes + cut, size - cut));
    assert_int_equal(rli_codec_next(codec, &reply), RLI_NEXT_REPLY);
    assert_true(reply.type == RLI_ARRAY && reply.elements == elements);
    size_t ints = odd < elements ? odd : elements;
    assert_int_equal(reply.ints, ints < RLI_MAX_INTS ? ints : RLI_MAX_INTS);
    for (uint32_t i = 0; i < reply.ints; i++)
        assert_int_equal(reply.values[i], (int)(i * 7) - 3);
    expect_none(codec, false);
}

static void arrays_of_many_integers(void **state)
{
    static const size_t lengths[] = {1, 2, 63, 64, 65, 66, 127, 128, 1000, RLI_MAX_ELEMENTS};
    struct rli_codec *codec = rli_codec_new();
    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (size_t odd = 0; odd <= lengths[i]; odd += lengths[i] > 200 && odd > 70 && odd < lengths[i] - 10 ? 9 : 1)
            an_array_of(codec, lengths[i], odd, SIZE_MAX);
    for (size_t length = 63; length < 66; length++)
        for (size_t cut = 0; cut < 420; cut++)
            an_array_of(codec, length, SIZE_MAX, cut);
    rli_codec_free(codec);
}

/* Two replies in three pieces, cut at every pair of points. */
static void replies_cut_at_every_point(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAMPLES; i++) {
        const struct sample *a = &samples[i], *b = &samples[(i * 7 + 3) % SAMPLES];
        char both[128];
        size_t size = a->size + b->size;
        memcpy(both, a->bytes, a->size);
        memcpy(both + a->size, b->bytes, b->size);
        for (size_t x = 0; x <= size; x++)
            for (size_t y = x; y <= size; y++) {
                const size_t cuts[] = {0, x, y, size};
                struct rli_codec *codec = rli_codec_new();
                for (int piece = 0; piece < 3; piece++) {
                    size_t from = cuts[piece], to = cuts[piece + 1];
                    assert_true(feed(codec, both + from, to - from));
                    if (from < a->size && to >= a->size)
                        expect(codec, a);
                    if (from < size && to == size)
                        expect(codec, b);
                    expect_none(codec, to != 0 && to != a->size && to != size);
                }
                rli_codec_free(codec);
            }
    }
}

/* Many replies in one feed come out one by one; text is valid until the next. */
static void several_replies_in_one_feed(void **state)
{
    static char all[SAMPLES * 64 * 50];
    struct rli_codec *codec = rli_codec_new();
    size_t size = 0;
    (void)state;
    for (size_t i = 0; i < SAMPLES * 50; size += samples[i++ % SAMPLES].size)
        memcpy(all + size, samples[i % SAMPLES].bytes, samples[i % SAMPLES].size);
    assert_true(feed(codec, all, size));
    assert_true(feed(codec, "+rest", 5));
    for (size_t i = 0; i < SAMPLES * 50; i++)
        expect(codec, &samples[i % SAMPLES]);
    expect_none(codec, true);
    assert_true(feed(codec, "\r\n", 2));
    expect(codec, &(struct sample){.type = RLI_STATUS, TEXT("rest")});
    rli_codec_free(codec);
}

/* ---- Limits ------------------------------------------------------------------------------------------------------------------- */

struct text { /* that grows */
    char *bytes;
    size_t size, room;
};

static void add(struct text *t, const char *bytes, size_t size)
{
    if (t->size + size > t->room) {
        t->room = 2 * (t->size + size);
        t->bytes = realloc(t->bytes, t->room);
        assert_non_null(t->bytes);
    }
    memcpy(t->bytes + t->size, bytes, size);
    t->size += size;
}

static void add_word(struct text *t, const char *word)
{
    add(t, word, strlen(word));
}

/* "<type><length>\r\n", then so many times c, then "\r\n". */
static void add_bulk(struct text *t, size_t length, char c)
{
    char head[32];
    snprintf(head, sizeof head, "$%zu\r\n", length);
    add_word(t, head);
    for (size_t i = 0; i < length; i++)
        add(t, &c, 1);
    add_word(t, "\r\n");
}

/* What comes of the bytes, fed `step` at a time. After a violation the stream stays one. */
static enum rli_next outcome(const struct text *t, size_t step, struct rli_reply *ret, size_t *ret_fed)
{
    struct rli_codec *codec = rli_codec_new();
    enum rli_next next = RLI_NEXT_NONE;
    size_t at = 0;

    while (next == RLI_NEXT_NONE && at < t->size) {
        size_t n = t->size - at < step ? t->size - at : step;
        next = feed(codec, t->bytes + at, n) ? rli_codec_next(codec, ret) : RLI_NEXT_VIOLATION;
        at += n;
    }
    if (next == RLI_NEXT_VIOLATION) {
        struct rli_reply more;
        bool fed = feed(codec, "+OK\r\n", 5);
        assert_true(!fed || rli_codec_next(codec, &more) == RLI_NEXT_VIOLATION);
    }
    ret->text = NULL; /* goes with the codec */
    *ret_fed = at;
    rli_codec_free(codec);
    return next;
}

static void expect_outcome(struct text *t, enum rli_next expected)
{
    static const size_t steps[] = {1, 1000, 16384, SIZE_MAX};
    struct rli_reply reply;
    size_t fed;

    for (size_t i = t->size > 10000 ? 1 : 0; i < sizeof steps / sizeof *steps; i++)
        assert_int_equal(outcome(t, steps[i], &reply, &fed), expected);
    t->size = 0;
}

static void arrays_have_at_most_1024_elements(void **state)
{
    struct text t = {0};
    char head[16];
    (void)state;
    for (int elements = 1023; elements <= 1025; elements++) {
        snprintf(head, sizeof head, "*%d\r\n", elements);
        add_word(&t, head);
        for (int i = 0; i < elements; i++)
            add_word(&t, ":7\r\n");
        expect_outcome(&t, elements <= 1024 ? RLI_NEXT_REPLY : RLI_NEXT_VIOLATION);
    }
    add_word(&t, "*1025\r\n"); /* refused by its head alone */
    expect_outcome(&t, RLI_NEXT_VIOLATION);
    add_word(&t, "*1\r\n*1025\r\n");
    expect_outcome(&t, RLI_NEXT_VIOLATION);
    free(t.bytes);
}

static void arrays_are_at_most_4_deep(void **state)
{
    struct text t = {0};
    (void)state;
    for (int depth = 1; depth <= 12; depth++) {
        for (int i = 1; i < depth; i++)
            add_word(&t, i == 2 ? "*2\r\n+x\r\n" : "*1\r\n");
        add_word(&t, "*0\r\n");
        expect_outcome(&t, depth <= 4 ? RLI_NEXT_REPLY : RLI_NEXT_VIOLATION);
    }
    free(t.bytes);
}

/* Strings of 64 KiB at most, of which 4 KiB are kept. */
static void strings_are_at_most_64_kib(void **state)
{
    struct text t = {0};
    (void)state;
    for (size_t length = 65535; length <= 65537; length++) {
        enum rli_next expected = length <= 65536 ? RLI_NEXT_REPLY : RLI_NEXT_VIOLATION;
        add_bulk(&t, length, 'x');
        expect_outcome(&t, expected);
        add_word(&t, "*1\r\n");
        add_bulk(&t, length, '\r');
        expect_outcome(&t, expected);
        add_word(&t, "-");
        for (size_t i = 0; i < length; i++)
            add(&t, "x", 1);
        add_word(&t, "\r\n");
        expect_outcome(&t, expected);
    }
    free(t.bytes);
}

static void long_texts_are_cut(void **state)
{
    struct rli_codec *codec = rli_codec_new();
    struct rli_reply reply;
    struct text t = {0};
    (void)state;
    for (size_t length = 4095; length < 4100; length++) {
        t.size = 0;
        add_bulk(&t, length, 'x');
        assert_true(feed(codec, t.bytes, t.size));
        assert_int_equal(rli_codec_next(codec, &reply), RLI_NEXT_REPLY);
        assert_int_equal(reply.text_len, length <= RLI_MAX_TEXT ? length : RLI_MAX_TEXT);
        assert_int_equal(strlen(reply.text), reply.text_len);
    }
    rli_codec_free(codec);
    free(t.bytes);
}

/* A reply that is never whole may not grow without end, whatever it says of itself: 128 KiB are the most. */
static void a_reply_in_progress_has_a_limit(void **state)
{
    static const struct {
        const char *head, *body; /* NULL: bulk strings of 1000 bytes */
    } endless[] = {
        {"$2147483647\r\n", "x"},
        {"$9223372036854775000\r\n", "x"},
        {"$1000000\r\n", "\r\n"},
        {"+", "x"},
        {"-ERR ", "x"},
        {":1", "1"},
        {"*", "1"},
        {"$", "1"},
        {"*1024\r\n", NULL},
        {"*1024\r\n*1024\r\n*1024\r\n", NULL},
        {"*3\r\n:1\r\n$1000000\r\n", ":1\r\n"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof endless / sizeof *endless; i++) {
        struct rli_reply reply;
        struct text t = {0};
        size_t fed;
        add_word(&t, endless[i].head);
        while (t.size < 200000)
            endless[i].body ? add_word(&t, endless[i].body) : add_bulk(&t, 1000, 'x');
        assert_int_equal(outcome(&t, 1024, &reply, &fed), RLI_NEXT_VIOLATION);
        assert_int_equal(fed, 2 * RLI_MAX_BULK + 1024);
        t.size = 2 * RLI_MAX_BULK; /* so much may lie there */
        assert_int_equal(outcome(&t, 1024, &reply, &fed), RLI_NEXT_NONE);
        free(t.bytes);
    }
}

/* The limit is one of each reply, not of the stream. */
static void the_limit_starts_anew_with_each_reply(void **state)
{
    struct rli_codec *codec = rli_codec_new();
    struct rli_reply reply;
    struct text t = {0};
    size_t replies = 0;
    (void)state;
    for (int i = 0; i < 10; i++) {
        add_bulk(&t, 60000, 'x');
        add_word(&t, ":1\r\n");
    }
    for (size_t at = 0; at < t.size; at += 8192) {
        enum rli_next next;
        assert_true(feed(codec, t.bytes + at, t.size - at < 8192 ? t.size - at : 8192));
        while ((next = rli_codec_next(codec, &reply)) == RLI_NEXT_REPLY)
            replies++;
        assert_int_equal(next, RLI_NEXT_NONE);
    }
    assert_int_equal(replies, 20);
    rli_codec_free(codec);
    free(t.bytes);
}

/* 13 bytes that stall a bare hiredis for seconds, and their like: refused by the head alone, in no time. */
static void monstrous_heads_are_refused_at_once(void **state)
{
    static const char *const heads[] = {
        "*2147483647\r\n",
        "*2147483648\r\n",
        "*4294967296\r\n",
        "*9223372036854775807\r\n",
        "*99999999999999999999999\r\n",
        "*-2\r\n",
        "$-2\r\n",
        "$99999999999999999999999\r\n",
        "*1\r\n*2147483647\r\n",
        "*2\r\n:1\r\n*1000000\r\n",
    };
    struct rli_reply reply;
    (void)state;
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        struct text t = {0};
        size_t fed, size = strlen(heads[i]);
        add_word(&t, heads[i]);
        add_word(&t, ":1\r\n:1\r\n:1\r\n");
        assert_int_equal(outcome(&t, 1, &reply, &fed), RLI_NEXT_VIOLATION);
        assert_true(fed <= size);
        free(t.bytes);
    }
}

static void a_million_nested_arrays_are_refused_at_the_fifth(void **state)
{
    struct rli_reply reply;
    struct text t = {0};
    size_t fed;
    (void)state;
    for (int i = 0; i < 1000000; i++)
        add(&t, "*1\r\n", 4);
    assert_int_equal(outcome(&t, 1, &reply, &fed), RLI_NEXT_VIOLATION);
    assert_int_equal(fed, 5 * 4);
    assert_int_equal(outcome(&t, 16384, &reply, &fed), RLI_NEXT_VIOLATION);
    assert_int_equal(fed, 16384);
    free(t.bytes);
}

/* ---- What is no reply of RESP2 -------------------------------------------------------------------------------------------------- */

static void resp3_is_refused(void **state)
{
    static const char *const replies[] = {
        "_\r\n",
        "#t\r\n",
        ",1.5\r\n",
        "(123456789\r\n",
        "=7\r\ntxt:abc\r\n",
        "!5\r\nERR x\r\n",
        "%1\r\n+a\r\n+b\r\n",
        "~1\r\n+a\r\n",
        ">2\r\n+a\r\n+b\r\n",
        "|1\r\n+a\r\n+b\r\n:1\r\n",
        "%0\r\n",
        "~0\r\n",
    };
    struct text t = {0};
    (void)state;
    for (size_t i = 0; i < sizeof replies / sizeof *replies; i++) {
        add_word(&t, replies[i]);
        expect_outcome(&t, RLI_NEXT_VIOLATION);
        add_word(&t, "*2\r\n:1\r\n");
        add_word(&t, replies[i]);
        expect_outcome(&t, RLI_NEXT_VIOLATION);
    }
    free(t.bytes);
}

static void garbage_is_refused(void **state)
{
    static const char *const streams[] = {
        "HTTP/1.1 400 Bad Request\r\n\r\n",
        "\r\n",
        "\n",
        " +OK\r\n",
        "OK\r\n",
        "\x16\x03\x01\r\n",
        "*x\r\n",
        "*1\r\nx\r\n",
        "*2\r\n:1\r\n\r\n",
        "SSH-2.0-OpenSSH_9.2\r\n",
    };
    struct text t = {0};
    (void)state;
    for (size_t i = 0; i < sizeof streams / sizeof *streams; i++) {
        add_word(&t, streams[i]);
        expect_outcome(&t, RLI_NEXT_VIOLATION);
    }
    add(&t, "", 1);
    expect_outcome(&t, RLI_NEXT_VIOLATION);
    free(t.bytes);
}

/* Random bytes, made of what replies are made of: some end, and the codec lives. */
static void random_streams_do_no_harm(void **state)
{
    static const char *const pieces[] = {"*",    "$",    ":",    "+", "-",      "1",      "2",  "3", "0", "9",
                                         "\r\n", "\r\n", "\r\n", "x", "*2\r\n", ":1\r\n", "\n", "_", "-1"};
    uint64_t seed = 5;
    (void)state;
    for (int run = 0; run < 20000; run++) {
        struct rli_codec *codec = rli_codec_new();
        struct rli_reply reply;
        enum rli_next next = RLI_NEXT_NONE;
        for (int i = 0; i < 30 && next != RLI_NEXT_VIOLATION; i++) {
            const char *piece = pieces[random_of(&seed) % (sizeof pieces / sizeof *pieces)];
            assert_true(feed(codec, piece, strlen(piece)));
            while ((next = rli_codec_next(codec, &reply)) == RLI_NEXT_REPLY)
                assert_true(reply.type != RLI_ARRAY || (reply.ints <= RLI_MAX_INTS && reply.ints <= reply.elements));
        }
        rli_codec_free(codec);
    }
    rli_codec_free(NULL);
}

/* ---- Commands ----------------------------------------------------------------------------------------------------------------- */

/* Any bytes, any lengths: what the server reads is what was given. */
static void commands_hold_any_bytes(void **state)
{
    uint64_t seed = 3;
    (void)state;
    for (int run = 0; run < 2000; run++) {
        char key[600], token[100], bytes[1024];
        struct rli_subject subject = {
            .key = key, .token = token, .key_len = random_of(&seed) % 600, .token_len = random_of(&seed) % 100};
        struct rli_command command;
        ts_words words;
        for (size_t i = 0; i < sizeof key; i++)
            key[i] = (char)(run % 2 ? "\r\n$*%"[random_of(&seed) % 6] : (char)random_of(&seed));
        for (size_t i = 0; i < sizeof token; i++)
            token[i] = (char)random_of(&seed);
        rli_command_request(&command, RLI_SET, &subject, 1000 * MS, false);
        size_t size = rli_format(&command, NULL, 0);
        memset(bytes, 'x', sizeof bytes);
        assert_int_equal(rli_format(&command, bytes, size - 1), size); /* too little room: only the size is told */
        assert_int_equal(bytes[0], 'x');
        assert_int_equal(rli_format(&command, bytes, size), size); /* just enough */
        assert_int_equal(bytes[size], 'x');
        assert_int_equal(ts_resp_length(bytes, size), size);
        assert_true(ts_resp_words(bytes, size, &words));
        assert_int_equal(words.count, 6);
        assert_int_equal(words.len[1], subject.key_len);
        assert_memory_equal(words.word[1], key, subject.key_len);
        assert_int_equal(words.len[2], subject.token_len);
        assert_memory_equal(words.word[2], token, subject.token_len);
        assert_true(words.len[5] == 4 && memcmp(words.word[5], "1000", 4) == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replies_whole),
        cmocka_unit_test(replies_byte_by_byte),
        cmocka_unit_test(arrays_of_many_integers),
        cmocka_unit_test(replies_cut_at_every_point),
        cmocka_unit_test(several_replies_in_one_feed),
        cmocka_unit_test(arrays_have_at_most_1024_elements),
        cmocka_unit_test(arrays_are_at_most_4_deep),
        cmocka_unit_test(strings_are_at_most_64_kib),
        cmocka_unit_test(long_texts_are_cut),
        cmocka_unit_test(a_reply_in_progress_has_a_limit),
        cmocka_unit_test(the_limit_starts_anew_with_each_reply),
        cmocka_unit_test(monstrous_heads_are_refused_at_once),
        cmocka_unit_test(a_million_nested_arrays_are_refused_at_the_fifth),
        cmocka_unit_test(resp3_is_refused),
        cmocka_unit_test(garbage_is_refused),
        cmocka_unit_test(random_streams_do_no_harm),
        cmocka_unit_test(commands_hold_any_bytes),
    };
    return cmocka_run_group_tests_name("codec", tests, NULL, NULL);
}
