/* test_url.c - node URLs: every form and its parts, every fault with its place, nothing secret in what is shown, and no server twice. */
#include "unit.h"
#include "url.h"

#include <stdio.h>
#include <string.h>

struct form {
    const char *text;
    const char *host, *path, *user, *password;
    uint16_t port;
    uint32_t db;
    const char *shown; /* NULL: as it was written */
};

/* Where there is a user or password it says "hush", so that it can be looked for. */
static const struct form forms[] = {
    {"redis://h", "h", NULL, NULL, NULL, 6379, 0, NULL},
    {"redis://h/", "h", NULL, NULL, NULL, 6379, 0, NULL},
    {"redis://h:1", "h", NULL, NULL, NULL, 1, 0, NULL},
    {"redis://h:65535/15", "h", NULL, NULL, NULL, 65535, 15, NULL},
    {"redis://db-1.example.com/1000000", "db-1.example.com", NULL, NULL, NULL, 6379, 1000000, NULL},
    {"redis://10.0.0.1:007/00", "10.0.0.1", NULL, NULL, NULL, 7, 0, NULL},
    {"redis://[::1]", "::1", NULL, NULL, NULL, 6379, 0, NULL},
    {"redis://[fe80::1%25eth0]:7000/3", "fe80::1%eth0", NULL, NULL, NULL, 7000, 3, NULL},
    {"redis://h%2Dx:70", "h-x", NULL, NULL, NULL, 70, 0, NULL},
    {"redis://:hush@h", "h", NULL, NULL, "hush", 6379, 0, "redis://h"},
    {"redis://hush1:hush2@h:70/9", "h", NULL, "hush1", "hush2", 70, 9, "redis://h:70/9"},
    {"redis://hush1:hush2:3:@h", "h", NULL, "hush1", "hush2:3:", 6379, 0, "redis://h"},
    {"redis://hush1:hush@2@h", "h", NULL, "hush1", "hush@2", 6379, 0, "redis://h"},
    {"redis://hush%3a1:hush%2C2%40%25%2f@[::1]:70", "::1", NULL, "hush:1", "hush,2@%/", 70, 0, "redis://[::1]:70"},
    {"redis://:hush/?#[ ]@h", "h", NULL, NULL, "hush/?#[ ]", 6379, 0, "redis://h"},
    {"redis://:hush\xc3\xa4@h", "h", NULL, NULL, "hush\xc3\xa4", 6379, 0, "redis://h"},
    {"unix:///run/redis.sock", NULL, "/run/redis.sock", NULL, NULL, 0, 0, NULL},
    {"unix:///", NULL, "/", NULL, NULL, 0, 0, NULL},
    {"unix:///a%20b%2c%3F%40c?db=7", NULL, "/a b,?@c", NULL, NULL, 0, 7, NULL},
    {"unix://:hush@/s", NULL, "/s", NULL, "hush", 0, 0, "unix:///s"},
    {"unix://hush1:hush/@2@/s?db=12", NULL, "/s", "hush1", "hush/@2", 0, 12, "unix:///s?db=12"},
};
enum { FORMS = sizeof forms / sizeof *forms };

/* A copy that ends with its block, so that the sanitizer sees a step beyond it. */
static char *exactly(const char *text, size_t length)
{
    char *copy = malloc(length + 1);
    assert_non_null(copy);
    memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

struct parsed {
    struct rli_url urls[RL_MAX_NODES];
    uint32_t count;
    size_t error_at;
    int rc;
};

static struct parsed *parse(struct parsed *p, const char *text, size_t length)
{
    char *list = exactly(text, length);

    *p = (struct parsed){.error_at = SIZE_MAX};
    p->rc = rli_urls_parse(list, p->urls, &p->count, &p->error_at);
    free(list);
    if (p->rc == RL_OK) {
        assert_true(p->error_at == SIZE_MAX);
        assert_in_range(p->count, 1, RL_MAX_NODES);
    } else {
        assert_true(p->rc == RL_E_INVALID || p->rc == RL_E_UNSUPPORTED);
        assert_true(p->error_at <= length);
    }
    return p;
}

static void done(struct parsed *p)
{
    if (p->rc == RL_OK)
        rli_urls_free(p->urls, p->count);
}

static void assert_text(const char *actual, const char *expected)
{
    if (expected && actual)
        assert_string_equal(actual, expected);
    assert_true(!expected == !actual);
}

static void assert_form(const struct rli_url *url, const struct form *form)
{
    assert_text(url->host, form->host);
    assert_text(url->path, form->path);
    assert_text(url->user, form->user);
    assert_text(url->password, form->password);
    assert_int_equal(url->port, form->port);
    assert_int_equal(url->db, form->db);
    assert_text(url->shown, form->shown ? form->shown : form->text);
    assert_null(strstr(url->shown, "hush")); /* S9.2 */
}

static void every_form_has_its_parts(void **state)
{
    struct parsed p;
    (void)state;
    for (size_t i = 0; i < FORMS; i++) {
        parse(&p, forms[i].text, strlen(forms[i].text));
        if (p.rc)
            fail_msg("%s is refused at %zu", forms[i].text, p.error_at);
        assert_int_equal(p.count, 1);
        assert_true(p.urls[0].at == 0);
        assert_form(&p.urls[0], &forms[i]);
        done(&p);
    }
}

/* Any two of them as a list: neither takes anything from the other. */
static void a_list_is_cut_at_commas(void **state)
{
    struct parsed p;
    char list[256];
    (void)state;
    for (size_t i = 0; i < FORMS * FORMS; i++) {
        const struct form *a = &forms[i / FORMS], *b = &forms[i % FORMS];
        int length = snprintf(list, sizeof list, "%s,%s", a->text, b->text);
        parse(&p, list, (size_t)length);
        assert_int_equal(p.rc, RL_OK);
        assert_int_equal(p.count, 2);
        assert_true(p.urls[0].at == 0 && p.urls[1].at == strlen(a->text) + 1);
        assert_form(&p.urls[0], a);
        assert_form(&p.urls[1], b);
        done(&p);
    }
}

/* Whatever is cut off a URL, the rest is one too, or refused at a place inside it; nor does another before it bear the blame. */
static void every_prefix_is_valid_or_refused_in_its_place(void **state)
{
    static const char before[] = "redis://other:1,";
    const size_t skip = sizeof before - 1;
    struct parsed p, second;
    char list[256];
    (void)state;
    for (size_t i = 0; i < FORMS; i++)
        for (size_t length = 0; length < strlen(forms[i].text); length++) {
            parse(&p, forms[i].text, length);
            snprintf(list, sizeof list, "%s%.*s", before, (int)length, forms[i].text);
            parse(&second, list, skip + length);
            assert_int_equal(second.rc, p.rc);
            if (p.rc)
                assert_int_equal(second.error_at, skip + p.error_at);
            done(&p);
            done(&second);
        }
}

/* The '^' stands before the fault, and is not part of the text. */
static const char *const faults[] = {
    "^",
    "^h",
    "^h:6379",
    "^http://h",
    "^REDIS://h",
    "^redis:/h",
    "^ redis://h",
    "redis://^",
    "redis://^:6379",
    "redis://^/0",
    "redis://h:^",
    "redis://h:^/1",
    "redis://h:^0",
    "redis://h:^65536",
    "redis://h:^4294967297",
    "redis://h:^18446744073709551617",
    "redis://h:^6379x",
    "redis://h:^-1",
    "redis://h:^+1",
    "redis://h:^6379:1",
    "redis://:^:1",
    "redis://h/1^x",
    "redis://h/^-1",
    "redis://h/1^/",
    "redis://h/1^?db=2",
    "redis://h/^1000001",
    "redis://h/^4294967296",
    "redis://^[::1",
    "redis://[^]",
    "redis://[^h]",
    "redis://[^127.0.0.1]:1",
    "redis://[::1]^6379",
    "redis://[::1]:^",
    "redis://[::1]^]",
    "redis://[:^[:1]",
    "redis://a^ b",
    "redis://a^?db=1",
    "redis://a^#b",
    "redis://a^%",
    "redis://a^%2",
    "redis://a^%2:1",
    "redis://a^%2g",
    "redis://a^%g2",
    "redis://a^%00b",
    "redis://a^%0Ab",
    "redis://a^%7fb",
    "redis://a^\x01",
    "redis://a^\x7f",
    "redis://a^\n",
    "redis://:hush^\r@h",
    "redis://:hush^%00@h",
    "redis://:hush^%4@h",
    "redis://hush^%1f:hush@h",
    "redis://hush^@h", /* a user without a password */
    "redis://^@h",
    "redis://:^@h",
    "redis://hush:^@h",
    "redis://:hush@^",
    "redis://:hush@^:1",
    "unix://^",
    "unix://^run/s",
    "unix://^?db=1",
    "unix://:hush@^",
    "unix://:hush@^s",
    "unix://:^@/s",
    "unix:///s^@h", /* all before the last '@' is user and password */
    "unix:///s^?",
    "unix:///s^?db",
    "unix:///s^?DB=1",
    "unix:///s?db=^",
    "unix:///s?db=1^&x",
    "unix:///s?db=^1000001",
    "unix:///s^\t",
    "redis://a,^",
    "^,redis://a",
    "redis://a,^,redis://b",
    "redis://a,^ redis://b",
    "redis://a,redis://b,redis://c:^0,redis://d:0",
    "redis://:^hush,1@h", /* a comma in a password has to be escaped: as it is, "hush" is a port */
};

static void every_fault_has_its_place(void **state)
{
    struct parsed p;
    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        const char *mark = strchr(faults[i], '^');
        size_t at = (size_t)(mark - faults[i]), length = strlen(faults[i]) - 1;
        char list[128];
        snprintf(list, sizeof list, "%.*s%s", (int)at, faults[i], mark + 1);
        parse(&p, list, length);
        if (p.rc != RL_E_INVALID || p.error_at != at)
            fail_msg("%s: result %d, at %zu and not %zu", list, p.rc, p.error_at, at);
    }
}

/* Each part at its limit, and one byte beyond it: that byte is the fault, whether it is written as itself or as an escape. */
static void parts_have_limits(void **state)
{
    static const struct {
        const char *before, *after;
        size_t most;
    } parts[] = {{"redis://", "", 255},     {"redis://", ":7/1", 255}, {"redis://:", "@h", 512},
                 {"redis://", ":p@h", 512}, {"unix://:", "@/s", 512},  {"unix:///", "?db=1", 106}};
    struct parsed p;
    char list[4096];
    (void)state;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        for (int escaped = 0; escaped < 2; escaped++)
            for (size_t extra = 0; extra < 2; extra++) {
                size_t length = strlen(parts[i].before);
                memcpy(list, parts[i].before, length);
                for (size_t n = 0; n < parts[i].most + extra; n++, length += escaped ? 3 : 1)
                    memcpy(list + length, escaped ? "%61" : "a", escaped ? 3 : 1);
                strcpy(list + length, parts[i].after);
                parse(&p, list, strlen(list));
                assert_int_equal(p.rc, extra ? RL_E_INVALID : RL_OK);
                if (extra)
                    assert_int_equal(p.error_at, length - (escaped ? 3 : 1));
                done(&p);
            }
}

/* "redis://h0,redis://h1,...": 32 nodes are a client, the 33rd is refused where it begins. */
static void at_most_32_nodes(void **state)
{
    struct parsed p;
    char list[1024];
    size_t length = 0, last = 0;
    (void)state;
    for (int i = 0; i < RL_MAX_NODES + 1; i++) {
        last = length;
        length += (size_t)snprintf(list + length, sizeof list - length, "redis://h%d,", i);
        parse(&p, list, length - 1);
        assert_int_equal(p.rc, i < RL_MAX_NODES ? RL_OK : RL_E_INVALID);
        if (p.rc == RL_OK)
            assert_int_equal(p.count, i + 1);
        else
            assert_int_equal(p.error_at, last);
        done(&p);
    }
}

/* A byte that no part may hold is refused wherever it stands: control characters, and the NUL of an escape. */
static void control_characters_are_refused_everywhere(void **state)
{
    static const char whole[] = "redis://us:pw@host:7/1";
    struct parsed p;
    char list[64];
    (void)state;
    for (int c = 1; c <= 0x7f; c = c == 0x1f ? 0x7f : c + 1)
        for (size_t at = 0; at < sizeof whole; at++) {
            snprintf(list, sizeof list, "%.*s%c%s", (int)at, whole, c, whole + at);
            parse(&p, list, strlen(list));
            assert_int_equal(p.rc, RL_E_INVALID);
            snprintf(list, sizeof list, "%.*s%%%02x%s", (int)at, whole, c, whole + at);
            parse(&p, list, strlen(list));
            assert_int_equal(p.rc, RL_E_INVALID);
        }
}

/* Mangled URLs are parsed or refused, within their bytes; never is a password shown. */
static void random_bytes_do_no_harm(void **state)
{
    static const char alphabet[] = "redisunx:/@[]%,?=#0123456789abf \x01\xff";
    struct parsed p;
    uint64_t seed = 11;
    (void)state;
    for (int run = 0; run < 20000; run++) {
        char list[256];
        size_t length = (size_t)snprintf(list, sizeof list, "%s,%s", forms[random_of(&seed) % FORMS].text,
                                         forms[random_of(&seed) % FORMS].text);
        for (uint64_t n = random_of(&seed) % 4; n > 0; n--)
            list[random_of(&seed) % length] = alphabet[random_of(&seed) % (sizeof alphabet - 1)];
        parse(&p, list, random_of(&seed) % 4 ? length : random_of(&seed) % length);
        for (uint32_t i = 0; p.rc == RL_OK && i < p.count; i++) {
            assert_non_null(p.urls[i].shown);
            assert_true(!p.urls[i].password || !strstr(p.urls[i].shown, "@"));
        }
        done(&p);
    }
}

/* ---- Through the front -------------------------------------------------------------------------------------------------------- */

static int new_client(const char *urls, size_t *ret_error_at)
{
    rl_client *client = NULL;
    int rc = rl_client_new(urls, NULL, &client, ret_error_at);

    assert_true((rc == RL_OK) == (client != NULL));
    rl_client_free(client);
    return rc;
}

/* S2.9: one server twice would have two votes. The second one bears the fault. */
static void the_same_endpoint_twice_is_refused(void **state)
{
    static const char *const same[][2] = {
        {"redis://h", "redis://h"},
        {"redis://h", "redis://h:6379"},
        {"redis://h:06379", "redis://h/0"},
        {"redis://host.example", "redis://HOST.Example:6379"},
        {"redis://h/1", "redis://h/2"}, /* another database falls with the same server */
        {"redis://a:x@h", "redis://b:y@h"},
        {"redis://h-x", "redis://h%2dx"},
        {"redis://127.0.0.1", "redis://127.1"},
        {"redis://127.0.0.1:70", "redis://0x7f.0.0.1:70"},
        {"redis://127.0.0.1", "redis://2130706433"},
        {"redis://[::1]", "redis://[0:0:0:0:0:0:0:1]:6379"},
        {"redis://[fe80::A]", "redis://[FE80::000a]"},
        {"redis://[::1]", "redis://[0000::1]/3"},
        {"unix:///run/s", "unix:///run/s?db=4"},
        {"unix:///run/s", "unix://:pw@/run/%73"},
    };
    char list[128];
    size_t at;
    (void)state;
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        for (int turned = 0; turned < 2; turned++) {
            int n = snprintf(list, sizeof list, "redis://other,%s,", same[i][turned]);
            strcat(list, same[i][!turned]);
            at = 0;
            if (new_client(list, &at) != RL_E_INVALID)
                fail_msg("%s is accepted", list);
            assert_int_equal(at, n);
        }
}

static void different_endpoints_are_fine(void **state)
{
    static const char *const lists[] = {
        "redis://h,redis://h:6380",          "redis://h,redis://h2",
        "redis://127.0.0.1,redis://127.2",   "redis://[::1],redis://127.0.0.1",
        "redis://[::1]:1,redis://[::1]:2",   "unix:///a,unix:///b,redis://a",
        "unix:///run/s,unix:///run/S",       "redis://127.0.0.1,redis://localhost",
        "redis://[fe80::1%25lo],redis://h1", "redis://10.0.0.1,redis://10.0.0.2,redis://10.0.0.3",
    };
    size_t at = 7;
    (void)state;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (new_client(lists[i], &at) != RL_OK)
            fail_msg("%s is refused at %zu", lists[i], at);
    assert_true(at == SIZE_MAX);
    assert_int_equal(new_client(lists[0], NULL), RL_OK);
}

/* rediss:// is another thing than malformed: this build cannot do it. */
static void tls_is_unsupported_in_its_place(void **state)
{
    static const char *const lists[] = {"^rediss://h", "redis://h,^rediss://h2,redis://h3", "^rediss://",
                                        "unix:///a,^rediss://:pw@h:x"};
    size_t at;
    (void)state;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        char list[64];
        size_t mark = (size_t)(strchr(lists[i], '^') - lists[i]);
        snprintf(list, sizeof list, "%.*s%s", (int)mark, lists[i], lists[i] + mark + 1);
        at = SIZE_MAX;
        assert_int_equal(new_client(list, &at), RL_E_UNSUPPORTED);
        assert_int_equal(at, mark);
    }
}

/* SIZE_MAX says that not the URL is at fault. */
static void other_faults_have_no_place(void **state)
{
    rl_client *client = NULL;
    rl_options options;
    size_t at = 3;
    (void)state;
    assert_int_equal(rl_client_new(NULL, NULL, &client, &at), RL_E_INVALID);
    assert_true(at == SIZE_MAX);
    at = 3;
    assert_int_equal(rl_client_new("redis://h", NULL, NULL, &at), RL_E_INVALID);
    assert_true(at == SIZE_MAX);
    rl_options_init(&options);
    options.quorum = 2;
    at = 3;
    assert_int_equal(rl_client_new("redis://h", &options, &client, &at), RL_E_INVALID);
    assert_true(at == SIZE_MAX);
    assert_null(client);
    assert_int_equal(rl_client_new("redis://", NULL, &client, NULL), RL_E_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_has_its_parts),
        cmocka_unit_test(a_list_is_cut_at_commas),
        cmocka_unit_test(every_prefix_is_valid_or_refused_in_its_place),
        cmocka_unit_test(every_fault_has_its_place),
        cmocka_unit_test(parts_have_limits),
        cmocka_unit_test(at_most_32_nodes),
        cmocka_unit_test(control_characters_are_refused_everywhere),
        cmocka_unit_test(random_bytes_do_no_harm),
        cmocka_unit_test(the_same_endpoint_twice_is_refused),
        cmocka_unit_test(different_endpoints_are_fine),
        cmocka_unit_test(tls_is_unsupported_in_its_place),
        cmocka_unit_test(other_faults_have_no_place),
    };
    return cmocka_run_group_tests_name("url", tests, NULL, NULL);
}
