/* selftest.c - the fixtures of the tests, tested: each fault is looked at with a raw connection before the library meets it.
 */
#include "check.h"
#include "hostile.h"
#include "net.h"
#include "proxy.h"
#include "resp.h"
#include "server.h"
#include "sha1.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* Most tests share one server; those that stop it start their own. */
static ts_server *shared;

static int start_shared(void **state)
{
    (void)state;
    shared = ts_server_start(NULL);
    return 0;
}

static int stop_shared(void **state)
{
    (void)state;
    ts_server_stop(shared);
    return 0;
}

/* ---- Helpers --------------------------------------------------------------------------------------------------------------- */

static ts_conn *open_conn(int port)
{
    ts_conn *conn = ts_conn_tcp(port);
    ts_check(conn != NULL, "cannot connect to port %d", port);
    return conn;
}

/* Sends a command and checks the reply, as text. */
static void ask(ts_conn *conn, const char *command, const char *expected)
{
    redisReply *reply = NULL;
    ts_check(ts_conn_command(conn, command), "cannot send %s", command);
    ts_equal(ts_conn_read(conn, 3000, &reply), TS_CONN_REPLY);
    char text[128];
    if (reply->type == REDIS_REPLY_INTEGER) {
        snprintf(text, sizeof text, "%lld", reply->integer);
    } else {
        snprintf(text, sizeof text, "%s", reply->type == REDIS_REPLY_NIL ? "(nil)" : reply->str);
    }
    freeReplyObject(reply);
    assert_string_equal(text, expected);
}

/* The outcome of waiting for a reply: TS_CONN_... */
static int outcome(ts_conn *conn, int64_t ms)
{
    redisReply *reply = NULL;
    int rc = ts_conn_read(conn, ms, &reply);
    if (rc == TS_CONN_REPLY) {
        freeReplyObject(reply);
    }
    return rc;
}

/* A proxy to the shared server, which is emptied. */
static ts_proxy *open_proxy(void)
{
    ts_command(shared, "FLUSHALL");
    return ts_proxy_to(shared);
}

/* ---- check.h --------------------------------------------------------------------------------------------------------------- */

static void leaking(void **state)
{
    (void)state;
    (void)!open("/dev/null", O_RDONLY);
}

static void balanced(void **state)
{
    (void)state;
    close(open("/dev/null", O_RDONLY));
}

static void failing(void **state)
{
    (void)state;
    ts_server_start(NULL);
    ts_proxy_to(shared);
    ts_hostile_start(NULL);
    ts_equal(1, 2);
}

static void hanging(void **state)
{
    (void)state;
    ts_server *server = ts_server_start(NULL);
    ts_time_limit(1);
    printf("[dir %s]", ts_server_dir(server));
    fflush(stdout);
    for (;;) {
        pause();
    }
}

/* In the child the inner program's server takes the place of this one, which a leak check would miss. */
static ts_server *volatile outer;

/* Runs a program of one test in this child, with its messages going to `out`. */
static int run_one(int out, CMUnitTestFunction test, const char *name)
{
    outer = shared;
    unsetenv("CMOCKA_TEST_ABORT");
    unsetenv("CMOCKA_XML_FILE");
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    const struct CMUnitTest tests[] = {TS_TEST(test, name)};
    return ts_run_group("inner", tests, 1, start_shared, stop_shared);
}

static int run_leaking(int out, void *arg)
{
    (void)arg;
    return run_one(out, leaking, "leaking");
}

static int run_balanced(int out, void *arg)
{
    (void)arg;
    return run_one(out, balanced, "balanced");
}

/* The second test must not be blamed for what the first left. */
static int run_failing(int out, void *arg)
{
    (void)arg;
    outer = shared;
    unsetenv("CMOCKA_TEST_ABORT");
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    const struct CMUnitTest tests[] = {ts_test(failing), ts_test(balanced)};
    ts_hostile_stop(ts_hostile_start(NULL)); /* the thread sanitizer starts a thread of its own with the first */
    int before = ts_thread_count();
    int rc = ts_run_group("inner", tests, 2, start_shared, stop_shared);
    return rc + 2 * (ts_thread_count() - before);
}

static int run_hanging(int out, void *arg)
{
    (void)arg;
    return run_one(out, hanging, "hanging");
}

static void test_leak_check(void **state)
{
    (void)state;
    char text[8192] = "";
    ts_equal(ts_fork(run_balanced, NULL, text, sizeof text - 1, NULL), 0);
    memset(text, 0, sizeof text);
    ts_equal(ts_fork(run_leaking, NULL, text, sizeof text - 1, NULL), 1);
    ts_check(strstr(text, "descriptors left open: 1") != NULL && strstr(text, "/dev/null") != NULL, "%s", text);
}

static void test_failed_test_is_cleaned_up(void **state)
{
    (void)state;
    char text[8192] = "";
    ts_equal(ts_fork(run_failing, NULL, text, sizeof text - 1, NULL), 1);
    ts_check(strstr(text, "1 is 1, expected 2") != NULL, "%s", text);
    ts_check(strstr(text, "descriptors left open") == NULL, "%s", text);
}

static bool is_gone(void *path)
{
    return access(path, F_OK) != 0;
}

static void test_time_limit(void **state)
{
    (void)state;
    char text[8192] = "";
    ts_equal(ts_fork(run_hanging, NULL, text, sizeof text - 1, NULL), TS_TIMED_OUT);
    ts_check(strstr(text, "ts: hanging: time limit of") != NULL, "%s", text);
    char *dir = strstr(text, "[dir ");
    ts_check(dir != NULL, "%s", text);
    dir += 5;
    dir[strcspn(dir, "]")] = '\0';
    ts_check(ts_eventually(5000, is_gone, dir), "%s was left behind", dir);
}

static int child_seven(int out, void *arg)
{
    return write(out, arg, 5) == 5 ? 7 : 1;
}

static int child_asserts(int out, void *arg)
{
    (void)arg;
    dup2(out, STDERR_FILENO);
    ts_equal(3, 4);
    return 0;
}

static int child_exits(int out, void *arg)
{
    (void)out;
    (void)arg;
    exit(9);
}

static int child_sleeps(int out, void *arg)
{
    (void)out;
    (void)arg;
    ts_sleep_ms(60000);
    return 0;
}

static void test_children(void **state)
{
    (void)state;
    char bytes[4096] = "";
    size_t len = 0;
    char word[] = "hello";
    ts_equal(ts_fork(child_seven, word, bytes, sizeof bytes, &len), 7);
    ts_equal(len, 5);
    assert_memory_equal(bytes, "hello", 5);

    memset(bytes, 0, sizeof bytes);
    ts_equal(ts_fork(child_asserts, NULL, bytes, sizeof bytes - 1, NULL), 128 + SIGABRT);
    ts_check(strstr(bytes, "3 is 3, expected 4") != NULL, "%s", bytes);

    /* exit() in a child leaves the parent's server alone. */
    ts_equal(ts_fork(child_exits, NULL, NULL, 0, NULL), 9);
    assert_string_equal(ts_command(shared, "PING"), "PONG");
    assert_int_equal(access(ts_server_dir(shared), F_OK), 0);

    ts_child child = ts_child_start(child_sleeps, NULL);
    kill(child.pid, SIGKILL);
    ts_equal(ts_child_wait(&child, 5000), 128 + SIGKILL);
    ts_child_start(child_sleeps, NULL); /* the teardown ends it */
}

static bool third_time(void *arg)
{
    return ++*(int *)arg == 3;
}

static void test_clocks(void **state)
{
    (void)state;
    int64_t boot = ts_now_ms(), mono = ts_mono_ms();
    ts_sleep_ms(20);
    ts_between(ts_now_ms() - boot, 19, 2000);
    ts_between(ts_mono_ms() - mono, 19, 2000);
    int calls = 0;
    assert_true(ts_eventually(1000, third_time, &calls));
    calls = 10;
    assert_false(ts_eventually(10, third_time, &calls));
}

/* ---- net.h, resp.h, sha1.h ------------------------------------------------------------------------------------------------- */

static void test_ports_are_reserved(void **state)
{
    (void)state;
    enum { COUNT = 50 };
    int port[COUNT], guard[COUNT];
    for (int i = 0; i < COUNT; i++) {
        port[i] = ts_port_reserve(&guard[i]);
        for (int j = 0; j < i; j++) {
            assert_int_not_equal(port[i], port[j]);
        }
        assert_null(ts_conn_tcp(port[i]));
    }
    for (int i = 0; i < COUNT; i++) {
        ts_port_release(guard[i]);
    }
}

static void test_void(void **state)
{
    (void)state;
    ts_void *hole = ts_void_start();
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct sockaddr_storage address;
    ts_conn *other = open_conn(ts_server_port(shared));
    socklen_t len = sizeof address;
    /* the address of the shared server, with the other port */
    getpeername(ts_conn_fd(other), (struct sockaddr *)&address, &len);
    uint16_t port = (uint16_t)ts_void_port(hole);
    unsigned char *bytes = (unsigned char *)&address + 2;
    bytes[0] = (unsigned char)(port >> 8);
    bytes[1] = (unsigned char)port;
    assert_int_equal(connect(fd, (struct sockaddr *)&address, len), -1);
    assert_int_equal(errno, EINPROGRESS);
    struct pollfd polled = {fd, POLLOUT, 0};
    assert_int_equal(poll(&polled, 1, 200), 0);
    close(fd);
    ts_conn_close(other);
    ts_void_stop(hole);
}

static void test_resp(void **state)
{
    (void)state;
    static const char *const whole[] = {"+OK\r\n",
                                        ":-5\r\n",
                                        "$-1\r\n",
                                        "*-1\r\n",
                                        "*0\r\n",
                                        "$0\r\n\r\n",
                                        "$4\r\na\r\nb\r\n",
                                        "-ERR a\r\n",
                                        "_\r\n",
                                        "%1\r\n+a\r\n:1\r\n",
                                        "*2\r\n*1\r\n$1\r\nx\r\n:7\r\n"};
    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++) {
        size_t len = strlen(whole[i]);
        ts_equal(ts_resp_length(whole[i], len), len);
        for (size_t part = 0; part < len; part++) {
            ts_equal(ts_resp_length(whole[i], part), 0);
        }
    }
    ts_equal(ts_resp_length("PING\r\n", 6), -1);
    ts_equal(ts_resp_length("$1x\r\n", 5), -1);
    ts_words words;
    const char *kill_command = "*3\r\n$6\r\nclient\r\n$4\r\nKILL\r\n$1\r\n7\r\n";
    assert_true(ts_resp_words(kill_command, strlen(kill_command), &words));
    ts_equal(words.count, 3);
    assert_true(ts_resp_is(&words, "CLIENT"));
    assert_true(ts_resp_is(&words, "client kill"));
    assert_false(ts_resp_is(&words, "CLIENT KIL"));
    assert_false(ts_resp_is(&words, "CLIEN"));
    assert_true(ts_resp_is(&words, NULL));
}

static void test_sha1(void **state)
{
    (void)state;
    char hex[41];
    ts_sha1_hex("abc", 3, hex);
    assert_string_equal(hex, "a9993e364706816aba3e25717850c26c9cd0d89d");
    char script[200];
    for (size_t len = 0; len < sizeof script; len++) {
        memset(script, ' ', len);
        ts_sha1_hex(script, len, hex);
        assert_string_equal(ts_command(shared, "SCRIPT LOAD %b", script, len), hex);
    }
}

/* ---- server.h -------------------------------------------------------------------------------------------------------------- */

static void test_server_keys(void **state)
{
    (void)state;
    ts_command(shared, "FLUSHALL");
    assert_false(ts_exists(shared, "k"));
    ts_set_px(shared, "k", "v w", 5000);
    assert_true(ts_holds(shared, "k", "v w"));
    assert_false(ts_holds(shared, "k", "v"));
    char *value = ts_get(shared, "k");
    assert_string_equal(value, "v w");
    free(value);
    assert_null(ts_get(shared, "none"));
    ts_between(ts_pttl(shared, "k"), 1, 5000);
    ts_equal(ts_dbsize(shared), 1);
    assert_true(ts_exists(shared, "k"));
    assert_true(ts_del(shared, "k"));
    assert_false(ts_del(shared, "k"));
    ts_equal(ts_pttl(shared, "k"), -2);
    ts_set_px(shared, "k", "v", 0);
    ts_equal(ts_pttl(shared, "k"), -1);
    assert_false(ts_wait_absent(shared, "k", 10));
    ts_set_px(shared, "k", "v", 30);
    assert_true(ts_wait_absent(shared, "k", 3000));
    assert_false(ts_wait_present(shared, "k", 10));
}

static void test_server_commands(void **state)
{
    (void)state;
    ts_command(shared, "FLUSHALL");
    assert_string_equal(ts_command(shared, "RPUSH list a b"), "2");
    assert_string_equal(ts_command(shared, "LRANGE list 0 -1"), "a\nb");
    assert_string_equal(ts_command(shared, "GET none"), "(nil)");
    assert_non_null(strstr(ts_command(shared, "GET list"), "WRONGTYPE"));
    ts_equal(ts_command_int(shared, "LLEN list"), 2);
    ts_equal(ts_reply(shared, "GET list")->type, REDIS_REPLY_ERROR);
    int64_t before = ts_calls(shared, "llen");
    ts_command(shared, "LLEN list");
    ts_equal(ts_calls(shared, "llen"), before + 1);
    ts_equal(ts_calls(shared, "client|kill"), 0);
    ts_equal(ts_info_int(shared, "tcp_port"), ts_server_port(shared));
    assert_null(ts_info(shared, "no_such_field"));
    int64_t connections = ts_info_int(shared, "total_connections_received");
    ts_conn *conn = open_conn(ts_server_port(shared));
    ask(conn, "PING", "PONG");
    ts_conn_close(conn);
    ts_equal(ts_info_int(shared, "total_connections_received"), connections + 1);
    /* A lost connection of the fixture is opened again. */
    ts_command(shared, "CLIENT KILL TYPE normal SKIPME no");
    assert_string_equal(ts_command(shared, "PING"), "PONG");
}

static void test_server_restart(void **state)
{
    (void)state;
    static const char *const persistent[] = {"--appendonly", "yes", "--appendfsync", "always", NULL};
    ts_server *lost = ts_server_start(NULL), *kept = ts_server_start(persistent);
    int port = ts_server_port(lost);
    pid_t pid = ts_server_pid(lost);
    ts_set_px(lost, "k", "v", 0);
    ts_set_px(kept, "k", "v", 0);
    ts_server_kill(kept);
    ts_equal(ts_server_pid(kept), 0);
    assert_null(ts_conn_tcp(ts_server_port(kept)));
    ts_server_restart(kept);
    ts_server_restart(lost);
    ts_equal(ts_server_port(lost), port);
    ts_check(ts_server_pid(lost) != pid, "the same process");
    assert_false(ts_exists(lost, "k"));
    assert_true(ts_holds(kept, "k", "v"));
    ts_server_term(lost);
    ts_server_launch(lost);
    ts_server_await(lost);
    char dir[256];
    snprintf(dir, sizeof dir, "%s", ts_server_dir(kept));
    ts_server_stop(kept);
    assert_true(is_gone(dir));
    ts_server_stop(lost);
}

static void test_server_pause(void **state)
{
    (void)state;
    ts_server *server = ts_server_start(NULL);
    ts_conn *conn = open_conn(ts_server_port(server));
    ts_server_pause(server);
    ts_check(ts_conn_command(conn, "SET k v"), "send");
    ts_equal(outcome(conn, 50), TS_CONN_TIMEOUT);
    ts_server_resume(server);
    ts_equal(outcome(conn, 3000), TS_CONN_REPLY);
    ts_conn_close(conn);
    assert_true(ts_holds(server, "k", "v"));
    ts_server_pause(server);
    ts_server_stop(server);
}

static void test_server_logins(void **state)
{
    (void)state;
    static const char *const args[] = {"--requirepass", "secret", "--user", "bob", "on", ">pw", "~*", "+set", "+ping", NULL};
    ts_server *server = ts_server_start(args);
    assert_string_equal(ts_command(server, "SET k v"), "OK");
    ts_conn *conn = open_conn(ts_server_port(server));
    ask(conn, "PING", "NOAUTH Authentication required.");
    ask(conn, "AUTH bob pw", "OK");
    ask(conn, "SET k w", "OK");
    ts_check(ts_conn_command(conn, "EVAL x 0"), "send");
    redisReply *reply = NULL;
    ts_equal(ts_conn_read(conn, 3000, &reply), TS_CONN_REPLY);
    ts_check(strncmp(reply->str, "NOPERM", 6) == 0, "%s", reply->str);
    freeReplyObject(reply);
    ts_conn_close(conn);
    ts_server_restart(server);
    assert_string_equal(ts_command(server, "SET k v"), "OK");
    ts_server_stop(server);
}

static void test_server_on_a_unix_socket(void **state)
{
    (void)state;
    ts_server_options options = {0};
    options.unix_socket = true;
    ts_server *server = ts_server_start_with(&options);
    ts_equal(ts_server_port(server), 0);
    assert_memory_equal(ts_server_url(server), "unix:///", 8);
    ts_conn *conn = ts_conn_unix(ts_server_path(server));
    assert_non_null(conn);
    ask(conn, "PING", "PONG");
    ts_conn_close(conn);
    ts_server_restart(server);
    assert_string_equal(ts_command(server, "PING"), "PONG");
}

/* RL_TEST_SERVER names the program; the caller's environment reaches it. */
static void test_server_program_and_environment(void **state)
{
    (void)state;
    static const char *const env[] = {"RL_TEST_MARK=here", NULL};
    const char *program = getenv("RL_TEST_SERVER");
    char old[256], wrapper[] = "/tmp/rl-wrapper-XXXXXX";
    snprintf(old, sizeof old, "%s", program == NULL ? "redis-server" : program);
    int fd = mkstemp(wrapper);
    dprintf(fd, "#!/bin/sh\necho -n $RL_TEST_MARK >mark\nexec %s \"$@\"\n", old);
    fchmod(fd, 0700);
    close(fd);
    setenv("RL_TEST_SERVER", wrapper, 1);
    ts_server_options options = {0};
    options.env = env;
    ts_server *server = ts_server_start_with(&options);
    if (program == NULL) {
        unsetenv("RL_TEST_SERVER");
    } else {
        setenv("RL_TEST_SERVER", old, 1);
    }
    unlink(wrapper);
    char file[256], mark[16] = "";
    snprintf(file, sizeof file, "%s/mark", ts_server_dir(server));
    fd = open(file, O_RDONLY | O_CLOEXEC);
    assert_int_equal(read(fd, mark, sizeof mark), 4);
    close(fd);
    assert_string_equal(mark, "here");
}

static void test_servers(void **state)
{
    (void)state;
    ts_servers three;
    ts_servers_start(&three, 3, NULL);
    char urls[256];
    snprintf(urls, sizeof urls, "redis://127.0.0.1:%d,redis://127.0.0.1:%d,redis://127.0.0.1:%d", ts_server_port(three.at[0]),
             ts_server_port(three.at[1]), ts_server_port(three.at[2]));
    assert_string_equal(three.urls, urls);
    for (int i = 0; i < 3; i++) {
        ts_set_px(three.at[i], "k", "v", 0);
    }
    ts_equal(ts_servers_holding(&three, "k"), 3);
    ts_del(three.at[0], "k");
    ts_server_pause(three.at[1]);
    ts_equal(ts_servers_holding(&three, "k"), 1);
    ts_server_kill(three.at[2]);
    ts_equal(ts_servers_holding(&three, "k"), 0);
    ts_servers_stop(&three);
}

static int start_and_die(int out, void *arg)
{
    (void)arg;
    ts_server *server = ts_server_start(NULL);
    pid_t pid = ts_server_pid(server);
    ssize_t n = write(out, &pid, sizeof pid);
    (void)n;
    n = write(out, ts_server_dir(server), strlen(ts_server_dir(server)));
    (void)n;
    raise(SIGKILL);
    return 0;
}

static bool process_is_gone(void *pid)
{
    return kill(*(pid_t *)pid, 0) != 0 && errno == ESRCH;
}

static void test_server_dies_with_the_test(void **state)
{
    (void)state;
    char bytes[256] = "";
    ts_equal(ts_fork(start_and_die, NULL, bytes, sizeof bytes - 1, NULL), 128 + SIGKILL);
    pid_t pid;
    memcpy(&pid, bytes, sizeof pid);
    /* Where nobody reaps orphans it stays as a zombie: then it is no longer connected to anything, at least. */
    char file[64], text[256] = "";
    snprintf(file, sizeof file, "/proc/%d/stat", (int)pid);
    if (!ts_eventually(1000, process_is_gone, &pid)) {
        int fd = open(file, O_RDONLY | O_CLOEXEC);
        ssize_t n = read(fd, text, sizeof text - 1);
        close(fd);
        ts_check(n > 0 && strstr(text, ") Z ") != NULL, "the server lives: %s", text);
    }
    char *dir = bytes + sizeof pid;
    ts_check(ts_eventually(5000, is_gone, dir), "%s was left behind", dir);
}

/* ---- proxy.h --------------------------------------------------------------------------------------------------------------- */

static void test_proxy_passes_on(void **state)
{
    (void)state;
    ts_proxy *proxy = open_proxy();
    ts_conn *conn = open_conn(ts_proxy_port(proxy));
    ask(conn, "SET k v", "OK");
    ask(conn, "GET k", "v");
    ask(conn, "CLIENT SETNAME me", "OK");
    ask(conn, "GET none", "(nil)");
    ts_proxy_stats seen = ts_proxy_seen(proxy);
    ts_equal(seen.connections, 1);
    ts_equal(seen.open, 1);
    ts_equal(seen.requests, 4);
    ts_equal(seen.replies, 4);
    ts_equal(seen.bytes_down, strlen("+OK\r\n$1\r\nv\r\n+OK\r\n$-1\r\n"));
    ts_check(seen.bytes_up > 80, "%lld bytes up", (long long)seen.bytes_up);
    ts_equal(ts_proxy_requests(proxy, "get"), 2);
    ts_equal(ts_proxy_requests(proxy, "CLIENT"), 1);
    ts_equal(ts_proxy_requests(proxy, "CLIENT SETNAME"), 1);
    ts_equal(ts_proxy_requests(proxy, "CLIENT KILL"), 0);

    /* A value larger than any buffer, there and back. */
    size_t len = 3000000;
    char *value = malloc(len);
    assert_non_null(value);
    memset(value, 'x', len);
    redisReply *reply = NULL;
    ts_check(ts_conn_command(conn, "SET big %b", value, len) && ts_conn_command(conn, "GET big"), "send");
    ts_equal(outcome(conn, 5000), TS_CONN_REPLY);
    ts_equal(ts_conn_read(conn, 5000, &reply), TS_CONN_REPLY);
    ts_equal(reply->len, len);
    freeReplyObject(reply);
    free(value);

    /* What is not RESP passes too. */
    ts_conn *other = open_conn(ts_proxy_port(proxy));
    ts_check(ts_conn_send(other, "PING\r\n", 6), "send");
    ts_equal(outcome(other, 3000), TS_CONN_REPLY);
    ts_conn_close(other);
    ts_conn_close(conn);
    assert_true(ts_proxy_wait_open(proxy, 0, 3000));
}

static void test_proxy_passes_on_ends(void **state)
{
    (void)state;
    ts_proxy *proxy = open_proxy();
    int clients = (int)ts_info_int(shared, "connected_clients");
    ts_conn *conn = open_conn(ts_proxy_port(proxy));
    /* half closed: the reply still comes, then the end */
    ts_check(ts_conn_command(conn, "SET k v"), "send");
    shutdown(ts_conn_fd(conn), SHUT_WR);
    ts_equal(outcome(conn, 3000), TS_CONN_REPLY);
    ts_equal(outcome(conn, 3000), TS_CONN_EOF);
    ts_conn_close(conn);
    /* reset by the client: what it sent arrives all the same */
    conn = open_conn(ts_proxy_port(proxy));
    ts_check(ts_conn_command(conn, "SET l v"), "send");
    assert_true(ts_proxy_wait_requests(proxy, "SET", 2, 3000));
    ts_conn_reset(conn);
    assert_true(ts_wait_present(shared, "l", 3000));
    /* ended by the server */
    conn = open_conn(ts_proxy_port(proxy));
    ask(conn, "PING", "PONG");
    ts_command(shared, "CLIENT KILL TYPE normal SKIPME yes");
    ts_equal(outcome(conn, 3000), TS_CONN_EOF);
    ts_conn_close(conn);
    assert_true(ts_proxy_wait_open(proxy, 0, 3000));
    ts_equal(ts_info_int(shared, "connected_clients"), clients);
    /* no server */
    int guard, port = ts_port_reserve(&guard);
    ts_proxy_target(proxy, port);
    conn = ts_conn_tcp(ts_proxy_port(proxy));
    ts_check(conn == NULL || outcome(conn, 3000) == TS_CONN_RESET, "no reset");
    ts_conn_close(conn);
    ts_port_release(guard);
}

static int64_t ping_ms(ts_conn *conn)
{
    int64_t start = ts_mono_ms();
    ask(conn, "PING", "PONG");
    return ts_mono_ms() - start;
}

static void test_proxy_delays(void **state)
{
    (void)state;
    ts_proxy *proxy = open_proxy();
    ts_proxy_delay_next(proxy, TS_UP, 60);
    ts_conn *late = open_conn(ts_proxy_port(proxy)), *prompt = open_conn(ts_proxy_port(proxy));
    ts_between(ping_ms(prompt), 0, 40);
    ts_between(ping_ms(late), 60, 1000);
    ts_conn_close(late);
    ts_proxy_delay(proxy, TS_UP, 40);
    ts_between(ping_ms(prompt), 40, 1000);
    ts_proxy_delay(proxy, TS_DOWN, 40);
    ts_between(ping_ms(prompt), 80, 1000);
    ts_proxy_delay(proxy, TS_BOTH, 0);
    ts_between(ping_ms(prompt), 0, 40);

    /* Delayed bytes outlive their client (A5). */
    ts_proxy_delay(proxy, TS_UP, 80);
    ts_check(ts_conn_command(prompt, "SET k v"), "send");
    assert_true(ts_proxy_wait_requests(proxy, "SET", 1, 3000));
    ts_conn_reset(prompt);
    assert_false(ts_exists(shared, "k"));
    assert_true(ts_wait_present(shared, "k", 3000));

    ts_proxy_clear(proxy);
    ts_conn *conn = open_conn(ts_proxy_port(proxy));
    ts_proxy_fault(proxy, "PING", 0, TS_DELAY_REPLY, 50);
    ts_between(ping_ms(conn), 50, 1000);
    ts_between(ping_ms(conn), 0, 40);
    ts_proxy_fault(proxy, "PING", 1, TS_DELAY_REQUEST, 50);
    ts_between(ping_ms(conn), 0, 40);
    ts_between(ping_ms(conn), 50, 1000);
    ts_conn_close(conn);
}

static void test_proxy_trickles(void **state)
{
    (void)state;
    ts_proxy *proxy = open_proxy();
    ts_conn *conn = open_conn(ts_proxy_port(proxy));
    ts_proxy_trickle(proxy, TS_DOWN, 10);
    ts_check(ts_conn_command(conn, "PING"), "send");
    int64_t start = ts_mono_ms();
    char bytes[64];
    int pieces = 0;
    for (int got = 0; got < 7; pieces++) {
        int n = ts_conn_read_raw(conn, 3000, bytes, sizeof bytes);
        ts_check(n > 0, "%d", n);
        got += n;
    }
    ts_between(ts_mono_ms() - start, 55, 2000);
    ts_between(pieces, 4, 7);
    ts_proxy_trickle(proxy, TS_BOTH, 0);
    ts_conn_close(conn);
}

static void test_proxy_drops(void **state)
{
    (void)state;
    ts_proxy *proxy = open_proxy();
    ts_conn *conn = open_conn(ts_proxy_port(proxy));
    ask(conn, "PING", "PONG");
    ts_proxy_drop(proxy, TS_UP, true);
    ts_check(ts_conn_command(conn, "SET k v"), "send");
    ts_equal(outcome(conn, 40), TS_CONN_TIMEOUT);
    assert_false(ts_exists(shared, "k"));
    ts_proxy_drop(proxy, TS_UP, false);
    ask(conn, "PING", "PONG");
    ts_proxy_drop(proxy, TS_DOWN, true);
    ts_check(ts_conn_command(conn, "SET k v"), "send");
    ts_equal(outcome(conn, 40), TS_CONN_TIMEOUT);
    assert_true(ts_exists(shared, "k"));
    ts_proxy_drop(proxy, TS_DOWN, false);
    ask(conn, "PING", "PONG");
    /* nor does the server hear of the end */
    int64_t clients = ts_info_int(shared, "connected_clients");
    ts_proxy_drop(proxy, TS_BOTH, true);
    ts_conn_close(conn);
    assert_true(ts_proxy_wait_open(proxy, 0, 3000));
    ts_sleep_ms(20);
    ts_equal(ts_info_int(shared, "connected_clients"), clients);
}

static void test_proxy_resets(void **state)
{
    (void)state;
    ts_proxy *proxy = open_proxy();
    ts_conn *conn = open_conn(ts_proxy_port(proxy));
    ask(conn, "PING", "PONG");
    ts_proxy_reset(proxy);
    ts_equal(outcome(conn, 3000), TS_CONN_RESET);
    ts_conn_close(conn);
    conn = open_conn(ts_proxy_port(proxy));
    ask(conn, "PING", "PONG");
    ts_proxy_close(proxy);
    ts_equal(outcome(conn, 3000), TS_CONN_EOF);
    ts_conn_close(conn);

    conn = open_conn(ts_proxy_port(proxy));
    ts_proxy_reset_after(proxy, 2);
    ask(conn, "PING", "PONG");
    ts_equal(ts_proxy_seen(proxy).pending_faults, 1);
    ask(conn, "PING", "PONG");
    ts_equal(outcome(conn, 3000), TS_CONN_RESET);
    ts_conn_close(conn);
    conn = open_conn(ts_proxy_port(proxy));
    ts_proxy_reset_after(proxy, 0);
    ts_check(ts_conn_command(conn, "SET k v"), "send");
    ts_equal(outcome(conn, 3000), TS_CONN_RESET);
    ts_conn_close(conn);
    assert_false(ts_exists(shared, "k"));
    assert_true(ts_proxy_wait_faults(proxy, 0));
}

/* Meets the fault at a SET that follows a PING; returns what becomes of its reply. */
static int meet(ts_proxy *proxy, ts_fault fault, ts_conn **ret_conn)
{
    ts_command(shared, "FLUSHALL");
    ts_conn *conn = open_conn(ts_proxy_port(proxy));
    ts_proxy_fault(proxy, "SET", 0, fault, 0);
    ask(conn, "PING", "PONG");
    ts_equal(ts_proxy_seen(proxy).pending_faults, 1);
    ts_check(ts_conn_command(conn, "SET k v"), "send");
    int rc = outcome(conn, 100);
    assert_true(ts_proxy_wait_faults(proxy, 3000));
    *ret_conn = conn;
    return rc;
}

static void test_proxy_faults_at_a_request(void **state)
{
    (void)state;
    ts_proxy *proxy = open_proxy();
    ts_conn *conn;
    ts_equal(meet(proxy, TS_RESET_BEFORE, &conn), TS_CONN_RESET);
    assert_false(ts_exists(shared, "k"));
    ts_conn_close(conn);

    ts_equal(meet(proxy, TS_RESET_UNANSWERED, &conn), TS_CONN_RESET);
    assert_true(ts_exists(shared, "k"));
    ts_conn_close(conn);

    ts_equal(meet(proxy, TS_RESET_ANSWERED, &conn), TS_CONN_REPLY);
    ts_equal(outcome(conn, 3000), TS_CONN_RESET);
    assert_true(ts_exists(shared, "k"));
    ts_conn_close(conn);

    ts_equal(meet(proxy, TS_SWALLOW_REQUEST, &conn), TS_CONN_TIMEOUT);
    assert_false(ts_exists(shared, "k"));
    ask(conn, "GET k", "(nil)");
    ts_conn_close(conn);

    ts_equal(meet(proxy, TS_SWALLOW_REPLY, &conn), TS_CONN_TIMEOUT);
    assert_true(ts_exists(shared, "k"));
    ask(conn, "GET k", "v");
    ask(conn, "SET k w", "OK");
    ts_conn_close(conn);
}

static void test_proxy_faults_in_a_pipeline(void **state)
{
    (void)state;
    static const char pipeline[] = "*1\r\n$4\r\nPING\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n";
    ts_proxy *proxy = open_proxy();
    ts_conn *conn = open_conn(ts_proxy_port(proxy));
    ts_proxy_fault(proxy, "SET", 0, TS_SWALLOW_REPLY, 0);
    ts_check(ts_conn_send(conn, pipeline, sizeof pipeline - 1), "send");
    ts_equal(outcome(conn, 3000), TS_CONN_REPLY);
    ts_equal(outcome(conn, 3000), TS_CONN_REPLY);
    ts_equal(outcome(conn, 20), TS_CONN_TIMEOUT);
    /* the reply before is delivered, that of the fault and those behind are not */
    ts_proxy_fault(proxy, "SET", 0, TS_RESET_UNANSWERED, 0);
    ts_proxy_fault(proxy, NULL, 10, TS_RESET_BEFORE, 0);
    ts_check(ts_conn_send(conn, pipeline, sizeof pipeline - 1), "send");
    int replies = 0, rc;
    while ((rc = outcome(conn, 3000)) == TS_CONN_REPLY) {
        replies++;
    }
    ts_equal(rc, TS_CONN_RESET);
    ts_between(replies, 0, 1);
    ts_equal(ts_proxy_seen(proxy).pending_faults, 1);
    ts_conn_close(conn);
}

static void test_proxy_answers(void **state)
{
    (void)state;
    ts_proxy *proxy = open_proxy();
    ts_conn *conn = open_conn(ts_proxy_port(proxy));
    ts_proxy_answer(proxy, "SET", 1, "-LOADING Redis is loading the dataset in memory\r\n");
    ask(conn, "SET k v", "LOADING Redis is loading the dataset in memory");
    assert_false(ts_exists(shared, "k"));
    ask(conn, "SET k v", "OK");
    /* in its turn, behind the reply of a request before it */
    ts_proxy_answer(proxy, "GET", -1, "$1\r\nz\r\n");
    ts_check(ts_conn_command(conn, "PING") && ts_conn_command(conn, "GET k") && ts_conn_command(conn, "PING"), "send");
    char bytes[64] = "";
    for (size_t len = 0; len < 21;) {
        int n = ts_conn_read_raw(conn, 3000, bytes + len, sizeof bytes - 1 - len);
        ts_check(n > 0, "%d", n);
        len += (size_t)n;
    }
    assert_string_equal(bytes, "+PONG\r\n$1\r\nz\r\n+PONG\r\n");
    ts_proxy_clear(proxy);
    ask(conn, "GET k", "v");
    ts_conn_close(conn);
}

static bool has_clients(void *count)
{
    return ts_info_int(shared, "connected_clients") == *(int64_t *)count;
}

static void test_proxy_holds(void **state)
{
    (void)state;
    ts_proxy *proxy = open_proxy();
    /* R6: hold, cut, deliver later */
    ts_conn *conn = open_conn(ts_proxy_port(proxy));
    ask(conn, "PING", "PONG");
    ts_proxy_hold(proxy);
    ts_check(ts_conn_command(conn, "SET k v"), "send");
    assert_true(ts_proxy_wait_held(proxy, 10, 3000));
    ts_conn *other = open_conn(ts_proxy_port(proxy));
    ask(other, "PING", "PONG"); /* a new connection is not held */
    ts_conn_close(other);
    ts_proxy_cut(proxy);
    ts_equal(outcome(conn, 3000), TS_CONN_RESET);
    ts_conn_close(conn);
    assert_false(ts_exists(shared, "k"));
    int64_t clients = 2; /* the fixture's, and the held one */
    assert_true(ts_eventually(3000, has_clients, &clients));
    ts_proxy_unhold(proxy);
    assert_true(ts_wait_present(shared, "k", 3000));
    clients = 1;
    assert_true(ts_eventually(3000, has_clients, &clients));

    /* the same at a request, and the server ends the connection meanwhile (S3.4) */
    int rc = meet(proxy, TS_HOLD_AND_CUT, &conn);
    ts_equal(rc, TS_CONN_RESET);
    ts_conn_close(conn);
    ts_check(ts_proxy_seen(proxy).bytes_held > 10, "nothing held");
    ts_command(shared, "CLIENT KILL TYPE normal SKIPME yes");
    ts_sleep_ms(20);
    ts_equal(ts_proxy_seen(proxy).bytes_held, 0);
    ts_proxy_unhold(proxy);
    ts_sleep_ms(20);
    assert_false(ts_exists(shared, "k"));

    /* held, not cut: the connection goes on */
    ts_equal(meet(proxy, TS_HOLD, &conn), TS_CONN_TIMEOUT);
    ts_check(ts_conn_command(conn, "GET k"), "send");
    ts_equal(outcome(conn, 20), TS_CONN_TIMEOUT);
    ts_proxy_unhold(proxy);
    ts_equal(outcome(conn, 3000), TS_CONN_REPLY);
    ts_equal(outcome(conn, 3000), TS_CONN_REPLY);
    ts_conn_close(conn);
}

/* What has arrived in one piece with the request that cuts is held once, and whole. */
static void test_proxy_holds_a_pipeline(void **state)
{
    (void)state;
    static const char pipeline[] = "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\nv\r\n*2\r\n$4\r\nINCR\r\n$1\r\nb\r\n";
    ts_proxy *proxy = open_proxy();
    ts_conn *conn = open_conn(ts_proxy_port(proxy));
    ts_proxy_fault(proxy, "SET", 0, TS_HOLD_AND_CUT, 0);
    ts_check(ts_conn_send(conn, pipeline, sizeof pipeline - 1), "send");
    ts_equal(outcome(conn, 3000), TS_CONN_RESET);
    ts_conn_close(conn);
    ts_equal(ts_proxy_seen(proxy).bytes_held, sizeof pipeline - 1);
    ts_proxy_unhold(proxy);
    assert_true(ts_wait_present(shared, "b", 3000));
    assert_true(ts_holds(shared, "b", "1"));
}

static void test_proxy_ignores_and_refuses(void **state)
{
    (void)state;
    ts_proxy *proxy = open_proxy();
    ts_conn *old = open_conn(ts_proxy_port(proxy));
    ask(old, "PING", "PONG");
    ts_proxy_ignore(proxy, true);
    ts_conn *conn = open_conn(ts_proxy_port(proxy));
    ts_check(ts_conn_command(conn, "PING"), "send");
    ts_equal(outcome(conn, 40), TS_CONN_TIMEOUT);
    ask(old, "PING", "PONG");
    ts_proxy_ignore(proxy, false);
    ts_equal(outcome(conn, 3000), TS_CONN_REPLY);
    ts_conn_close(conn);
    for (int i = 0; i < 3; i++) {
        ts_proxy_refuse(proxy, true);
        assert_null(ts_conn_tcp(ts_proxy_port(proxy)));
        ask(old, "PING", "PONG");
        ts_proxy_refuse(proxy, false);
        ts_conn_close(open_conn(ts_proxy_port(proxy)));
    }
    ts_conn_close(old);
}

static void test_proxy_over_a_restart(void **state)
{
    (void)state;
    ts_server *server = ts_server_start(NULL);
    ts_proxy *proxy = ts_proxy_to(server);
    ts_conn *conn = open_conn(ts_proxy_port(proxy));
    ask(conn, "PING", "PONG");
    ts_server_kill(server);
    int rc = outcome(conn, 3000);
    ts_check(rc == TS_CONN_EOF || rc == TS_CONN_RESET, "%d", rc);
    ts_conn_close(conn);
    ts_server_restart(server);
    conn = open_conn(ts_proxy_port(proxy));
    ask(conn, "PING", "PONG");
    ts_conn_close(conn);
}

static void test_proxy_stops_clean(void **state)
{
    (void)state;
    int threads = ts_thread_count(), fds = ts_fd_count();
    for (int i = 0; i < 5; i++) {
        ts_proxy *proxy = open_proxy();
        ts_conn *conn = open_conn(ts_proxy_port(proxy));
        ts_proxy_hold(proxy);
        ts_proxy_delay(proxy, TS_DOWN, 1000);
        ts_check(ts_conn_command(conn, "PING"), "send");
        ts_proxy_stop(proxy);
        int rc = outcome(conn, 3000);
        ts_check(rc == TS_CONN_EOF || rc == TS_CONN_RESET, "%d", rc);
        ts_conn_close(conn);
    }
    ts_equal(ts_thread_count(), threads);
    ts_equal(ts_fd_count(), fds);
}

/* ---- hostile.h ------------------------------------------------------------------------------------------------------------- */

static void shake_hands(ts_conn *conn)
{
    ask(conn, "AUTH pw", "OK");
    ask(conn, "SELECT 3", "OK");
    ask(conn, "CLIENT SETNAME me", "OK");
    redisReply *reply = NULL;
    ts_check(ts_conn_command(conn, "CLIENT INFO"), "send");
    ts_equal(ts_conn_read(conn, 3000, &reply), TS_CONN_REPLY);
    ts_check(strncmp(reply->str, "id=7 addr=127.0.0.1:", 20) == 0, "%s", reply->str);
    freeReplyObject(reply);
    ask(conn, "CLIENT ID", "7");
    ask(conn, "SCRIPT LOAD abc", "a9993e364706816aba3e25717850c26c9cd0d89d");
}

static void test_hostile_script(void **state)
{
    (void)state;
    static const ts_step script[] = {
        TS_HANDSHAKE, TS_EXPECT("SET"), TS_SEND("+OK\r\n+SURPLUS\r\n"), TS_EXPECT("CLIENT KILL"), TS_CLOSE, TS_END};
    static const ts_step second[] = {TS_EXPECT(NULL), TS_RESET, TS_END};
    ts_hostile *hostile = ts_hostile_start(script);
    ts_hostile_script(hostile, 1, second);
    ts_conn *conn = open_conn(ts_hostile_port(hostile));
    shake_hands(conn);
    ask(conn, "SET k v", "OK");
    ts_equal(outcome(conn, 3000), TS_CONN_REPLY);
    ts_equal(ts_hostile_peer(hostile, 0), TS_PEER_OPEN);
    ts_check(ts_conn_command(conn, "CLIENT KILL ID 7"), "send");
    ts_equal(outcome(conn, 3000), TS_CONN_EOF);
    ts_conn_close(conn);
    assert_true(ts_hostile_wait_done(hostile, 0, 3000));
    assert_null(ts_hostile_error(hostile));
    ts_equal(ts_hostile_count(hostile, NULL), 8);
    ts_equal(ts_hostile_count(hostile, "client"), 4);
    const ts_received *set = ts_hostile_received(hostile, "SET", 0);
    ts_equal(set->argc, 3);
    assert_string_equal(set->argv[1], "k");
    ts_equal(set->len[2], 1);
    assert_null(ts_hostile_received(hostile, "SET", 1));

    conn = open_conn(ts_hostile_port(hostile));
    ts_check(ts_conn_command(conn, "GET k"), "send");
    ts_equal(outcome(conn, 3000), TS_CONN_RESET);
    ts_conn_close(conn);
    ts_equal(ts_hostile_connections(hostile), 2);
    ts_equal(ts_hostile_received(hostile, "GET", 0)->connection, 1);

    /* an unexpected command, and none at all */
    conn = open_conn(ts_hostile_port(hostile));
    ask(conn, "CLIENT ID", "9");
    ts_check(ts_conn_command(conn, "GET k"), "send");
    assert_true(ts_hostile_wait(hostile, "GET", 2, 3000));
    ts_equal(outcome(conn, 3000), TS_CONN_REPLY);
    ts_conn_close(conn);
    assert_string_equal(ts_hostile_error(hostile), "connection 2: received GET, expected SET");
}

static void test_hostile_table(void **state)
{
    (void)state;
    ts_hostile *hostile = ts_hostile_start(NULL);
    ts_hostile_answer(hostile, "SET", "-READONLY You can't write against a read only replica.\r\n");
    ts_hostile_answer_once(hostile, "SET", "-OOM 1\r\n");
    ts_hostile_answer_once(hostile, "SET", "-OOM 2\r\n");
    ts_hostile_answer(hostile, "GET", NULL);
    ts_conn *conn = open_conn(ts_hostile_port(hostile));
    ask(conn, "SET k v", "OOM 1");
    ask(conn, "SET k v", "OOM 2");
    ask(conn, "SET k v", "READONLY You can't write against a read only replica.");
    ask(conn, "EVALSHA x 0", "1");
    ask(conn, "PING", "PONG");
    ask(conn, "FOO", "ERR unknown command 'FOO'");
    ts_hostile_answer(hostile, NULL, "+any\r\n");
    ask(conn, "FOO", "any");
    ts_hostile_answer(hostile, "SET", "+OK\r\n");
    ask(conn, "SET k v", "OK");
    ts_check(ts_conn_command(conn, "GET k"), "send");
    ts_equal(outcome(conn, 20), TS_CONN_TIMEOUT);
    ts_check(ts_hostile_bytes(hostile) > 100, "bytes");
    ts_conn_close(conn);
    assert_true(ts_hostile_wait_peer(hostile, 0, TS_PEER_FIN, 3000));
    conn = open_conn(ts_hostile_port(hostile));
    ask(conn, "SET k v", "OK");
    ts_conn_reset(conn);
    assert_true(ts_hostile_wait_peer(hostile, 1, TS_PEER_RST, 3000));
    ts_equal(ts_hostile_peer(hostile, 2), TS_PEER_NONE);
}

static void test_hostile_bytes(void **state)
{
    (void)state;
    static const ts_step script[] = {TS_SERVE(1),
                                     TS_HANDSHAKE_THEN_IDLE(20),
                                     TS_REPEAT("*1\r\n", 1000000),
                                     TS_SLEEP(20),
                                     TS_TRICKLE("+OK\r\n", 5),
                                     TS_SHUT_WRITE,
                                     TS_READ_TO_END,
                                     TS_END};
    ts_hostile *hostile = ts_hostile_start(script);
    ts_conn *conn = open_conn(ts_hostile_port(hostile));
    ask(conn, "PING", "PONG");
    ask(conn, "CLIENT ID", "7");
    static char bytes[65536];
    int64_t total = 0;
    int n;
    while ((n = ts_conn_read_raw(conn, 3000, bytes, sizeof bytes)) > 0) {
        total += n;
    }
    ts_equal(n, TS_CONN_EOF);
    ts_equal(total, 4000005);
    ts_check(ts_conn_command(conn, "SET k v"), "send");
    assert_true(ts_hostile_wait(hostile, "SET", 1, 3000));
    ts_conn_close(conn);
    assert_true(ts_hostile_wait_peer(hostile, 0, TS_PEER_FIN, 3000));
    assert_true(ts_hostile_wait_done(hostile, 0, 3000));
    assert_null(ts_hostile_error(hostile));
}

static void test_hostile_without_end(void **state)
{
    (void)state;
    static const ts_step endless[] = {TS_SEND("$100000000000\r\n"), TS_REPEAT("x", -1), TS_END};
    static const ts_step hang[] = {TS_SERVE_UNTIL("SET"), TS_HANG, TS_END};
    int threads = ts_thread_count();
    ts_hostile *hostile = ts_hostile_start(endless);
    ts_hostile_script(hostile, 1, hang);
    ts_hostile_script(hostile, 2, hang);
    ts_conn *conn = open_conn(ts_hostile_port(hostile)), *stuck = open_conn(ts_hostile_port(hostile));
    static char bytes[65536];
    for (int64_t total = 0; total < 5000000;) {
        int n = ts_conn_read_raw(conn, 3000, bytes, sizeof bytes);
        ts_check(n > 0, "%d", n);
        total += n;
    }
    ts_conn_close(conn);
    assert_true(ts_hostile_wait_done(hostile, 0, 3000));
    ask(stuck, "GET k", "(nil)");
    ts_check(ts_conn_command(stuck, "SET k v"), "send");
    ts_equal(outcome(stuck, 20), TS_CONN_TIMEOUT);
    ts_conn *garbage = open_conn(ts_hostile_port(hostile));
    ts_check(ts_conn_send(garbage, "GET / HTTP/1.1\r\n", 16), "send");
    ts_equal(outcome(garbage, 3000), TS_CONN_EOF);
    ts_check(strstr(ts_hostile_error(hostile), "no command: GET / HTTP") != NULL, "%s", ts_hostile_error(hostile));
    ts_conn_close(garbage);
    ts_hostile_stop(hostile); /* in the middle of a step */
    ts_conn_close(stuck);
    ts_equal(ts_thread_count(), threads);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ts_test(test_leak_check),
        ts_test(test_failed_test_is_cleaned_up),
        ts_test(test_time_limit),
        ts_test(test_children),
        ts_test(test_clocks),
        ts_test(test_ports_are_reserved),
        ts_test(test_void),
        ts_test(test_resp),
        ts_test(test_sha1),
        ts_test(test_server_keys),
        ts_test(test_server_commands),
        ts_test(test_server_restart),
        ts_test(test_server_pause),
        ts_test(test_server_logins),
        ts_test(test_server_on_a_unix_socket),
        ts_test(test_server_program_and_environment),
        ts_test(test_servers),
        ts_test(test_server_dies_with_the_test),
        ts_test(test_proxy_passes_on),
        ts_test(test_proxy_passes_on_ends),
        ts_test(test_proxy_delays),
        ts_test(test_proxy_trickles),
        ts_test(test_proxy_drops),
        ts_test(test_proxy_resets),
        ts_test(test_proxy_faults_at_a_request),
        ts_test(test_proxy_faults_in_a_pipeline),
        ts_test(test_proxy_answers),
        ts_test(test_proxy_holds),
        ts_test(test_proxy_holds_a_pipeline),
        ts_test(test_proxy_ignores_and_refuses),
        ts_test(test_proxy_over_a_restart),
        ts_test(test_proxy_stops_clean),
        ts_test(test_hostile_script),
        ts_test(test_hostile_table),
        ts_test(test_hostile_bytes),
        ts_test(test_hostile_without_end),
    };
    ts_need_server();
    return ts_run_group("support", tests, sizeof tests / sizeof tests[0], start_shared, stop_shared);
}
