/* test_answer.c - what each kind of reply means to each kind of request, and what servers say when they refuse. The texts are those of
 * real servers. */
#include "answer.h"
#include "redlatch.h"
#include "unit.h"

#include <errno.h>
#include <string.h>

static struct rli_reply text_reply(enum rli_reply_type type, const char *text)
{
    return (struct rli_reply){.type = type, .text = text, .text_len = strlen(text)};
}

static struct rli_reply error(const char *text)
{
    return text_reply(RLI_ERROR, text);
}

/* ---- Every reply to every request ---------------------------------------------------------------------------------------------- */

/* YES, OTHER, ABSENT; ERROR: the server's own; UNKNOWN: no answer to what was asked, it may have acted. */
static const struct {
    struct rli_reply reply;
    enum said set, script, info;
    rli_span holder_left;
} meanings[] = {
    {{.type = RLI_NIL}, OTHER, UNKNOWN, UNKNOWN, RLI_NEVER},
    {{.type = RLI_STATUS, .text = "OK", .text_len = 2}, YES, UNKNOWN, UNKNOWN, RLI_NEVER},
    {{.type = RLI_STATUS, .text = "ok", .text_len = 2}, UNKNOWN, UNKNOWN, UNKNOWN, RLI_NEVER},
    {{.type = RLI_STATUS, .text = "OKAY", .text_len = 4}, UNKNOWN, UNKNOWN, UNKNOWN, RLI_NEVER},
    {{.type = RLI_STATUS, .text = "", .text_len = 0}, UNKNOWN, UNKNOWN, UNKNOWN, RLI_NEVER},
    {{.type = RLI_STATUS, .text = "QUEUED", .text_len = 6}, UNKNOWN, UNKNOWN, UNKNOWN, RLI_NEVER},
    {{.type = RLI_ERROR, .text = "ERR what", .text_len = 8}, ERROR, ERROR, ERROR, RLI_NEVER},
    {{.type = RLI_ERROR, .text = "OK", .text_len = 2}, ERROR, ERROR, ERROR, RLI_NEVER},
    {{.type = RLI_ERROR, .text = "", .text_len = 0}, ERROR, ERROR, ERROR, RLI_NEVER},
    {{.type = RLI_INTEGER, .integer = 0}, UNKNOWN, ABSENT, UNKNOWN, RLI_NEVER},
    {{.type = RLI_INTEGER, .integer = 1}, UNKNOWN, YES, UNKNOWN, RLI_NEVER},
    {{.type = RLI_INTEGER, .integer = 2}, UNKNOWN, OTHER, UNKNOWN, RLI_NEVER},
    {{.type = RLI_INTEGER, .integer = 3}, UNKNOWN, UNKNOWN, UNKNOWN, RLI_NEVER},
    {{.type = RLI_INTEGER, .integer = -1}, UNKNOWN, UNKNOWN, UNKNOWN, RLI_NEVER},
    {{.type = RLI_INTEGER, .integer = INT64_C(0x100000001)}, UNKNOWN, UNKNOWN, UNKNOWN, RLI_NEVER},
    {{.type = RLI_BULK, .text = "OK", .text_len = 2}, UNKNOWN, UNKNOWN, YES, RLI_NEVER},
    {{.type = RLI_BULK, .text = "1", .text_len = 1}, UNKNOWN, UNKNOWN, YES, RLI_NEVER},
    {{.type = RLI_BULK, .text = "", .text_len = 0}, UNKNOWN, UNKNOWN, YES, RLI_NEVER},
    {{.type = RLI_ARRAY, .elements = 2, .ints = 2, .values = (const int64_t[]){2, 4711}}, UNKNOWN, OTHER, UNKNOWN, 4711 * MS},
    {{.type = RLI_ARRAY, .elements = 2, .ints = 2, .values = (const int64_t[]){2, 0}}, UNKNOWN, OTHER, UNKNOWN, 0},
    {{.type = RLI_ARRAY, .elements = 2, .ints = 2, .values = (const int64_t[]){2, -1}},
     UNKNOWN,
     OTHER,
     UNKNOWN,
     RLI_NEVER}, /* it never ends */
    {{.type = RLI_ARRAY, .elements = 2, .ints = 2, .values = (const int64_t[]){2, -2}}, UNKNOWN, OTHER, UNKNOWN, RLI_NEVER},
    {{.type = RLI_ARRAY, .elements = 2, .ints = 2, .values = (const int64_t[]){2, INT64_MAX}}, UNKNOWN, OTHER, UNKNOWN, RLI_NEVER},
    {{.type = RLI_ARRAY, .elements = 2, .ints = 2, .values = (const int64_t[]){1, 5}}, UNKNOWN, UNKNOWN, UNKNOWN, RLI_NEVER},
    {{.type = RLI_ARRAY, .elements = 2, .ints = 2, .values = (const int64_t[]){0, 5}}, UNKNOWN, UNKNOWN, UNKNOWN, RLI_NEVER},
    {{.type = RLI_ARRAY, .elements = 2, .ints = 1, .values = (const int64_t[]){2, 5}}, UNKNOWN, UNKNOWN, UNKNOWN, RLI_NEVER},
    {{.type = RLI_ARRAY, .elements = 3, .ints = 2, .values = (const int64_t[]){2, 5}}, UNKNOWN, UNKNOWN, UNKNOWN, RLI_NEVER},
    {{.type = RLI_ARRAY, .elements = 1, .ints = 1, .values = (const int64_t[]){2}}, UNKNOWN, UNKNOWN, UNKNOWN, RLI_NEVER},
    {{.type = RLI_ARRAY}, UNKNOWN, UNKNOWN, UNKNOWN, RLI_NEVER},
};

/* A grant or a mint answers the counter: a positive integer. Held is nil, which a mint never is. */
static enum said said_to_counter(enum rli_kind kind, const struct rli_reply *reply)
{
    if (reply->type == RLI_INTEGER)
        return reply->integer > 0 ? YES : UNKNOWN;
    if (reply->type == RLI_NIL)
        return kind == RLI_GRANT ? OTHER : UNKNOWN;
    return reply->type == RLI_ERROR ? ERROR : UNKNOWN;
}

static enum said said_to(enum rli_kind kind, size_t i)
{
    switch (kind) {
    case RLI_SET:
    case RLI_TOP_UP:
        return meanings[i].set;
    case RLI_EXTEND:
    case RLI_RELEASE:
    case RLI_CONFIRM:
    case RLI_STORE:
        return meanings[i].script;
    case RLI_GRANT:
    case RLI_MINT:
        return said_to_counter(kind, &meanings[i].reply);
    case RLI_RENEW: /* one for each of many locks: see test_keep.c */
        return meanings[i].reply.type == RLI_ARRAY ? YES : meanings[i].reply.type == RLI_ERROR ? ERROR : UNKNOWN;
    case RLI_INFO:
        break;
    }
    return meanings[i].info;
}

/* S2.4: the type is looked at before the value; what is no answer to the request is an error. S2.3: it may have acted. */
static void every_reply_to_every_request(void **state)
{
    static const int outcomes[] = {[YES] = RL_NODE_YES,
                                   [OTHER] = RL_NODE_HELD_BY_OTHER,
                                   [ABSENT] = RL_NODE_ABSENT,
                                   [ERROR] = RL_NODE_ERROR,
                                   [UNKNOWN] = RL_NODE_ERROR};
    (void)state;
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++)
        for (enum rli_kind kind = RLI_SET; kind <= RLI_RENEW; kind++) {
            enum said said = said_to(kind, i);
            const struct rli_reply *reply = &meanings[i].reply;
            struct rli_answer a = rli_answer_from_reply(kind, reply);
            if (a.outcome != outcomes[said] || a.unknown != (said == UNKNOWN))
                fail_msg("meaning %zu, kind %d: outcome %d, unknown %d", i, kind, a.outcome, a.unknown);
            assert_true(a.holder_left == (said == OTHER ? meanings[i].holder_left : RLI_NEVER));
            assert_true(a.fence == (said == YES && (kind == RLI_GRANT || kind == RLI_MINT) ? reply->integer : 0));
            assert_false(a.denied || a.died || a.resent);
            assert_int_equal(a.sys_errno, 0);
            if (said == ERROR) { /* S2.4: with the server's own words */
                assert_ptr_equal(a.text, reply->text);
                assert_int_equal(a.text_len, reply->text_len);
            } else if (said == UNKNOWN) {
                assert_non_null(a.text);
                assert_int_equal(a.text_len, strlen(a.text));
            } else {
                assert_null(a.text);
            }
        }
}

/* ---- What errors say ------------------------------------------------------------------------------------------------------------ */

/* S2.8: credentials or commands are refused, in whatever words the versions have for it. */
static const char *const denials[] = {
    "NOAUTH Authentication required.",
    "WRONGPASS invalid username-password pair or user is disabled.",
    "WRONGPASS invalid username-password pair", /* 6.0 */
    "ERR invalid password",                     /* before 6 */
    "ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?",
    "NOPERM this user has no permissions to run the 'set' command or its subcommand",  /* 6.x */
    "NOPERM this user has no permissions to access one of the keys used as arguments", /* 6.x */
    "NOPERM this user has no permissions to run the 'set' command",                    /* 7.0 */
    "NOPERM User bob has no permissions to run the 'evalsha' command",                 /* 7.2 */
    "NOPERM No permissions to access a key",                                           /* 7.x */
    "NOPERM User bob has no permissions to access the 'rl:x' key",                     /* 8.0 */
    "ERR Error running script (call to f_20da75687f66f315d9737393e4194a045311e236): @user_script:1: @user_script: 1: "
    "The user executing the script can't run this command or subcommand", /* 6.x */
    "ERR Error running script (call to f_20da75687f66f315d9737393e4194a045311e236): @user_script:1: @user_script: 1: "
    "The user executing the script can't access at least one of the keys mentioned in the command arguments", /* 6.x */
    "ERR The user executing the script can't run this command or subcommand script: "
    "20da75687f66f315d9737393e4194a045311e236, on @user_script:1.", /* 7.0 */
    "ERR The user executing the script can't access at least one of the keys mentioned in the command arguments script: "
    "20da75687f66f315d9737393e4194a045311e236, on @user_script:1.",                        /* 7.0 */
    "ERR The user executing the script is lacking the permissions for the command script", /* 6.2, 7.0 */
    "ERR ACL failure in script: User bob has no permissions to run the 'get' command script: "
    "20da75687f66f315d9737393e4194a045311e236, on @user_script:1.",                                   /* 7.2, 8, Valkey */
    "ERR ACL failure in script: No permissions to access a key script: 20da7568, on @user_script:1.", /* 7.2, Valkey */
    "NOPERM ACL failure in script: User bob has no permissions to run the 'get' command",
};

static const char *const other_errors[] = {
    "ERR what",
    "ERR",
    "",
    "LOADING Redis is loading the dataset in memory",
    "READONLY You can't write against a read only replica.",
    "OOM command not allowed when used memory > 'maxmemory'.",
    "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
    "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
    "CLUSTERDOWN The cluster is down",
    "MOVED 3999 127.0.0.1:6381",
    "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
    "NOREPLICAS Not enough good replicas to write.",
    "ERR max number of clients reached",
    "NOSCRIPT No matching script. Please use EVAL.",
    "ERR NOPERM is what it says further on",
    "ERR WRONGPASS",
    "noauth",
    "ERR DB index is out of range",
    "ERR unknown command 'EVALSHA'",
    "ERR the fence counter is not usable",
};

static void denials_are_known_in_every_version(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof denials / sizeof *denials; i++) {
        struct rli_reply reply = error(denials[i]), said = text_reply(RLI_BULK, denials[i]);
        if (!rli_is_denial(&reply))
            fail_msg("no denial: %s", denials[i]);
        assert_false(rli_is_denial(&said)); /* an error only */
        said.type = RLI_STATUS;
        assert_false(rli_is_denial(&said));
        for (enum rli_kind kind = RLI_SET; kind <= RLI_STORE; kind++) {
            struct rli_answer a = rli_answer_from_reply(kind, &reply);
            if (kind == RLI_INFO)
                continue;
            assert_int_equal(a.outcome, RL_NODE_ERROR);
            assert_true(a.denied && !a.unknown);
            assert_ptr_equal(a.text, denials[i]);
        }
        assert_int_equal(rli_answer_from_reply(RLI_INFO, &reply).outcome, RL_NODE_YES); /* INFO is no must for a user */
        assert_false(rli_answer_from_reply(RLI_INFO, &reply).denied);
    }
}

static void other_errors_are_no_denials(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof other_errors / sizeof *other_errors; i++) {
        struct rli_reply reply = error(other_errors[i]);
        assert_false(rli_is_denial(&reply));
        for (enum rli_kind kind = RLI_SET; kind <= RLI_STORE; kind++) {
            struct rli_answer a = rli_answer_from_reply(kind, &reply);
            assert_int_equal(a.outcome, RL_NODE_ERROR);
            assert_false(a.denied || a.unknown);
            assert_ptr_equal(a.text, other_errors[i]);
        }
    }
}

/* S2.4: WRONGTYPE is proof that the key is not ours, in the words of a command, of a script, and of a script before Redis 7. */
static void wrongtype_is_held_by_another(void **state)
{
    static const char *const texts[] = {
        "WRONGTYPE Operation against a key holding the wrong kind of value",
        "WRONGTYPE Operation against a key holding the wrong kind of value script: 20da75687f66f315d9737393e4194a045311e236, on "
        "@user_script:1.",
        "ERR Error running script (call to f_20da75687f66f315d9737393e4194a045311e236): @user_script:1: WRONGTYPE Operation "
        "against a key "
        "holding the wrong kind of value",
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct rli_reply reply = error(texts[i]);
        static const enum rli_kind kinds[] = {RLI_EXTEND, RLI_RELEASE},
                                   others[] = {RLI_SET, RLI_GRANT, RLI_MINT, RLI_STORE, RLI_CONFIRM};
        for (int k = 0; k < 2; k++) {
            struct rli_answer a = rli_answer_from_reply(kinds[k], &reply);
            assert_int_equal(a.outcome, RL_NODE_HELD_BY_OTHER);
            assert_true(a.holder_left == RLI_NEVER && !a.denied && !a.unknown);
            assert_ptr_equal(a.text, texts[i]); /* the clean-up of an acquisition tells it by this from another's lock (A13) */
        }
        for (int k = 0; k < 5; k++) /* there it is about a counter, or the data */
            assert_int_equal(rli_answer_from_reply(others[k], &reply).outcome, RL_NODE_ERROR);
    }
    struct rli_reply elsewhere = error("ERR unknown command 'WRONGTYPE'");
    assert_int_equal(rli_answer_from_reply(RLI_RELEASE, &elsewhere).outcome, RL_NODE_ERROR);
    struct rli_reply said = text_reply(RLI_BULK, "WRONGTYPE");
    assert_int_equal(rli_answer_from_reply(RLI_RELEASE, &said).outcome, RL_NODE_ERROR);
}

/* S2.5: matched by its beginning. */
static void noscript_is_known(void **state)
{
    static const char *const texts[] = {"NOSCRIPT No matching script. Please use EVAL.", "NOSCRIPT No matching script.",
                                        "NOSCRIPT"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct rli_reply reply = error(texts[i]), status = text_reply(RLI_STATUS, texts[i]);
        assert_true(rli_is_noscript(&reply));
        assert_false(rli_is_noscript(&status));
    }
    struct rli_reply reply = error("ERR NOSCRIPT");
    assert_false(rli_is_noscript(&reply));
    reply = error("NOSCRIP");
    assert_false(rli_is_noscript(&reply));
}

static void fatal_errors_are_known(void **state)
{
    static const char *const texts[] = {
        "ERR max number of clients reached",
        "ERR max number of clients + cluster connections reached",
        "DENIED Redis is running in protected mode because protected mode is enabled and no password is set for the default user.",
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct rli_reply reply = error(texts[i]), status = text_reply(RLI_STATUS, texts[i]);
        assert_true(rli_is_fatal(&reply));
        assert_false(rli_is_fatal(&status) || rli_is_denial(&reply));
    }
    for (size_t i = 0; i < sizeof denials / sizeof *denials; i++) {
        struct rli_reply reply = error(denials[i]);
        assert_false(rli_is_fatal(&reply));
    }
}

/* S9.2: what servers repeat of a request is cut off: it may be a token, or a password. */
static void repeated_arguments_are_cut_off(void **state)
{
    static const struct {
        const char *text;
        size_t length;
    } texts[] = {{"ERR unknown command 'EVALSHA', with args beginning with: '20da' '1' 'key' 'token' ", 29},
                 {"ERR unknown command `CLIENT`, with args beginning with: `x`, ", 28},
                 {"ERR what", 8},
                 {"", 0}};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct rli_reply reply = error(texts[i].text);
        assert_int_equal(rli_error_words(&reply), texts[i].length);
        for (enum rli_kind kind = RLI_SET; kind <= RLI_STORE; kind++)
            assert_int_equal(rli_answer_from_reply(kind, &reply).text_len, texts[i].length);
    }
}

/* S2.3: only a request that was asked and not answered may have acted. */
static void lost_answers(void **state)
{
    static const int outcomes[] = {RL_NODE_NOT_ASKED, RL_NODE_ERROR, RL_NODE_NO_ANSWER, RL_NODE_UNREACHABLE, RL_NODE_LATE};
    (void)state;
    for (size_t i = 0; i < sizeof outcomes / sizeof *outcomes; i++) {
        struct rli_answer a = rli_answer_lost(outcomes[i], EPIPE);
        assert_int_equal(a.outcome, outcomes[i]);
        assert_int_equal(a.sys_errno, EPIPE);
        assert_int_equal(a.unknown, outcomes[i] == RL_NODE_NO_ANSWER);
        assert_true(a.sent == RLI_GONE && a.at == RLI_GONE && a.holder_left == RLI_NEVER);
        assert_true(!a.text && !a.text_len && !a.denied && !a.died && !a.resent);
    }
}

/* ---- Fields --------------------------------------------------------------------------------------------------------------------- */

static void assert_field(const char *text, const char *field, const char *expected)
{
    const char *value = "untouched";
    size_t length = rli_field(text, field, &value);

    if (!expected) {
        assert_int_equal(length, 0);
        return;
    }
    assert_int_equal(length, strlen(expected));
    assert_memory_equal(value, expected, length);
}

static void fields_of_client_info(void **state)
{
    static const char v6[] =
        "id=7 addr=127.0.0.1:40022 fd=8 name= age=0 idle=0 flags=N db=0 sub=0 psub=0 multi=-1 qbuf=26 user=default\n";
    static const char v7[] =
        "id=12345678901 addr=[::1]:52344 laddr=[::1]:6379 fd=10 name=redlatch age=3 tot-mem=22298 user=default "
        "redir=-1 resp=2 lib-name= lib-ver=\n";
    (void)state;
    assert_field(v6, "id", "7");
    assert_field(v6, "addr", "127.0.0.1:40022");
    assert_field(v6, "name", NULL); /* empty */
    assert_field(v6, "user", "default");
    assert_field(v7, "id", "12345678901");
    assert_field(v7, "addr", "[::1]:52344");
    assert_field(v7, "laddr", "[::1]:6379");
    assert_field(v7, "lib-ver", NULL);
    assert_field(v7, "ddr", NULL); /* only a whole name is one */
    assert_field(v7, "add", NULL);
    assert_field("laddr=1 xid=2 id=3", "id", "3");
    assert_field("laddr=/run/a:0 addr=/run/b:0", "addr", "/run/b:0");
    assert_field("id id=5", "id", "5");
    assert_field("idid=5 id=6", "id", "6");
    assert_field("id=", "id", NULL);
    assert_field("id", "id", NULL);
    assert_field("", "id", NULL);
}

static void fields_of_info(void **state)
{
    static const char info[] =
        "# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\n"
        "run_id:d2b1e8ae5c0b9d4c0a6f6f4d1d9ad6b7a1f6d5e4\r\ntcp_port:6379\r\nserver_time_usec:1700000000000000\r\n"
        "executable:/usr/bin/redis server\r\nconfig_file:\r\nio_threads_active:0\r\n";
    (void)state;
    assert_field(info, "run_id", "d2b1e8ae5c0b9d4c0a6f6f4d1d9ad6b7a1f6d5e4");
    assert_field(info, "redis_version", "7.0.15");
    assert_field(info, "tcp_port", "6379");
    assert_field(info, "id", NULL);
    assert_field(info, "run", NULL);
    assert_field(info, "config_file", NULL);
    assert_field(info, "io_threads_active", "0");
    assert_field("run_id:x", "run_id", "x");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_reply_to_every_request),
        cmocka_unit_test(denials_are_known_in_every_version),
        cmocka_unit_test(other_errors_are_no_denials),
        cmocka_unit_test(wrongtype_is_held_by_another),
        cmocka_unit_test(noscript_is_known),
        cmocka_unit_test(fatal_errors_are_known),
        cmocka_unit_test(repeated_arguments_are_cut_off),
        cmocka_unit_test(lost_answers),
        cmocka_unit_test(fields_of_client_info),
        cmocka_unit_test(fields_of_info),
    };
    return cmocka_run_group_tests_name("answer", tests, NULL, NULL);
}
