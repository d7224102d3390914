/* server.c - see server.h.
 */
#include "server.h"

#include "check.h"
#include "net.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { COMMAND_MS = 5000, START_MS = 10000, EXIT_MS = 10000, FRESH_PORTS = 5, MAX_DIR = 64 };

struct ts_server {
    char dir[MAX_DIR];
    char path[MAX_DIR + 8]; /* of the unix socket, or "" */
    char url[MAX_DIR + 16];
    int port, guard; /* 0 and -1 with a unix socket */
    pid_t pid;       /* 0 = does not run */
    char **args, **env;
    char *user, *password;
    ts_conn *conn;
    redisReply *reply; /* of the last command */
    char *text;        /* the same as text */
};

static void *must(void *memory)
{
    if (memory == NULL) {
        abort();
    }
    return memory;
}

static char *copy(const char *text)
{
    return text == NULL ? NULL : must(strdup(text));
}

static int64_t stretched(int64_t ms)
{
    return ms * ts_slowness();
}

/* ---- The process ----------------------------------------------------------------------------------------------------------- */

static void drop_connection(ts_server *server)
{
    ts_conn_close(server->conn);
    server->conn = NULL;
}

static void exec_server(const ts_server *server, pid_t parent) __attribute__((noreturn));
static void exec_server(const ts_server *server, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(127);
    }
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    const char *program = getenv("RL_TEST_SERVER");
    if (program == NULL || *program == '\0') {
        program = "redis-server";
    }
    int null = open("/dev/null", O_RDONLY);
    int console = chdir(server->dir) == 0 ? open("console", O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;
    if (null < 0 || console < 0 || dup2(null, 0) < 0 || dup2(console, 1) < 0 || dup2(console, 2) < 0) {
        _exit(127);
    }
    close(null);
    close(console);
    /* The tools that the tests run under do not belong in the server. */
    unsetenv("LD_PRELOAD");
    for (size_t i = 0; server->env[i] != NULL; i++) {
        putenv(server->env[i]);
    }
    execvp(program, server->args);
    _exit(127);
}

void ts_server_launch(ts_server *server)
{
    drop_connection(server);
    fflush(NULL);
    pid_t parent = getpid(), pid = fork();
    if (pid < 0) {
        ts_fail("fork: %s", strerror(errno));
    }
    if (pid == 0) {
        exec_server(server, parent);
    }
    server->pid = pid;
}

/* The last lines of a file of the server's, for messages. */
static void read_tail(const ts_server *server, const char *name, char *text, size_t size)
{
    char file[MAX_DIR + 32];
    snprintf(file, sizeof file, "%s/%s", server->dir, name);
    text[0] = '\0';
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return;
    }
    off_t len = lseek(fd, 0, SEEK_END), from = len > (off_t)size - 1 ? len - (off_t)size + 1 : 0;
    ssize_t n = pread(fd, text, size - 1, from);
    text[n < 0 ? 0 : n] = '\0';
    close(fd);
}

static bool has_exited(ts_server *server)
{
    if (waitpid(server->pid, NULL, WNOHANG) != server->pid) {
        return false;
    }
    server->pid = 0;
    return true;
}

static void reap(ts_server *server)
{
    waitpid(server->pid, NULL, 0);
    server->pid = 0;
    drop_connection(server);
}

void ts_server_kill(ts_server *server)
{
    if (server->pid != 0) {
        kill(server->pid, SIGKILL);
        reap(server);
    }
}

static bool exited(void *server)
{
    return has_exited(server);
}

void ts_server_term(ts_server *server)
{
    if (server->pid == 0) {
        return;
    }
    kill(server->pid, SIGTERM);
    kill(server->pid, SIGCONT);
    if (!ts_eventually(EXIT_MS, exited, server)) {
        ts_server_kill(server);
        ts_fail("the server of %s did not end on SIGTERM", server->url);
    }
    drop_connection(server);
}

void ts_server_restart(ts_server *server)
{
    ts_server_term(server);
    ts_server_launch(server);
    ts_server_await(server);
}

/* Whether every thread of the process is in this state. */
static bool all_in_state(pid_t pid, char state)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *dir = opendir(path);
    bool all = dir != NULL;
    for (struct dirent *entry; all && (entry = readdir(dir)) != NULL;) {
        if (entry->d_name[0] == '.') {
            continue;
        }
        char file[PATH_MAX], text[512] = "";
        snprintf(file, sizeof file, "%s/%s/stat", path, entry->d_name);
        int fd = open(file, O_RDONLY | O_CLOEXEC);
        if (fd >= 0) {
            ssize_t n = read(fd, text, sizeof text - 1);
            text[n < 0 ? 0 : n] = '\0';
            close(fd);
        }
        const char *name_end = strrchr(text, ')');
        all = name_end != NULL && name_end[1] == ' ' && name_end[2] == state;
    }
    if (dir != NULL) {
        closedir(dir);
    }
    return all;
}

static bool is_stopped(void *server)
{
    return all_in_state(((ts_server *)server)->pid, 'T');
}

void ts_server_pause(ts_server *server)
{
    ts_check(server->pid != 0, "%s does not run", server->url);
    kill(server->pid, SIGSTOP);
    ts_check(ts_eventually(COMMAND_MS, is_stopped, server), "%s did not stop", server->url);
}

void ts_server_resume(ts_server *server)
{
    ts_check(server->pid != 0, "%s does not run", server->url);
    kill(server->pid, SIGCONT);
}

/* ---- The connection -------------------------------------------------------------------------------------------------------- */

static void set_reply(ts_server *server, redisReply *reply)
{
    if (server->reply != NULL) {
        freeReplyObject(server->reply);
    }
    server->reply = reply;
}

/* Connects and logs in. false if that is not possible now; the server's answer, if any, is then in server->reply. */
static bool connect_fixture(ts_server *server)
{
    server->conn = server->port != 0 ? ts_conn_tcp(server->port) : ts_conn_unix(server->path);
    if (server->conn == NULL) {
        return false;
    }
    if (server->password == NULL) {
        return true;
    }
    redisReply *reply = NULL;
    const char *user = server->user != NULL ? server->user : "default";
    if (ts_conn_command(server->conn, "AUTH %s %s", user, server->password) &&
        ts_conn_read(server->conn, stretched(COMMAND_MS), &reply) == TS_CONN_REPLY) {
        set_reply(server, reply);
        if (reply->type == REDIS_REPLY_STATUS) {
            return true;
        }
    }
    drop_connection(server);
    return false;
}

/* Sends the command and reads its reply; connects first if needed. One of TS_CONN_... */
static int try_command(ts_server *server, const char *format, va_list args)
{
    if (server->conn == NULL && !connect_fixture(server)) {
        return TS_CONN_EOF;
    }
    int rc = TS_CONN_RESET;
    redisReply *reply = NULL;
    if (ts_conn_vcommand(server->conn, format, args)) {
        rc = ts_conn_read(server->conn, stretched(COMMAND_MS), &reply);
    }
    if (rc == TS_CONN_REPLY) {
        set_reply(server, reply);
    } else {
        drop_connection(server);
    }
    return rc;
}

static redisReply *run(ts_server *server, const char *format, va_list args)
{
    bool idle = server->conn != NULL;
    va_list again;
    va_copy(again, args);
    int rc = try_command(server, format, args);
    if (idle && (rc == TS_CONN_EOF || rc == TS_CONN_RESET)) {
        rc = try_command(server, format, again); /* the connection had died since the last command, for example by CLIENT KILL */
    }
    va_end(again);
    if (rc != TS_CONN_REPLY) {
        ts_fail("%s: no reply to %s (%s)", server->url, format,
                server->pid == 0        ? "the server does not run"
                : rc == TS_CONN_TIMEOUT ? "timeout; is the server paused?"
                                        : "connection lost or refused");
    }
    return server->reply;
}

static int try_text(ts_server *server, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int rc = try_command(server, format, args);
    va_end(args);
    return rc;
}

static bool answers_or_exited(void *arg)
{
    ts_server *server = arg;
    if (has_exited(server)) {
        return true;
    }
    if (try_text(server, "PING") != TS_CONN_REPLY) {
        return false;
    }
    /* An error is waited out: it may be LOADING. */
    return server->reply->type == REDIS_REPLY_STATUS && strcmp(server->reply->str, "PONG") == 0;
}

/* false if the server exited. */
static bool await(ts_server *server)
{
    if (!ts_eventually(START_MS, answers_or_exited, server)) {
        ts_fail("%s does not answer PING: %s", server->url, server->reply != NULL ? server->reply->str : "no connection");
    }
    return server->pid != 0;
}

static void fail_start(const ts_server *server)
{
    char log[1024], console[1024];
    read_tail(server, "log", log, sizeof log);
    read_tail(server, "console", console, sizeof console);
    ts_fail("the server of %s exited while starting\n%s%s", server->url, log, console);
}

void ts_server_await(ts_server *server)
{
    if (!await(server)) {
        fail_start(server);
    }
}

/* ---- Making and removing --------------------------------------------------------------------------------------------------- */

/* The directory of all servers of this program, and a process that removes it however the program ends: it reads from a pipe
 * whose other end nobody but the program (and what it forks) has open. */
static char base_dir[MAX_DIR - 16];
static pid_t base_owner;

static void become_janitor(int in) __attribute__((noreturn));
static void become_janitor(int in)
{
    int null = open("/dev/null", O_RDWR);
    /* A grandchild, so that no wait() of a test meets it; in a session of its own, so that Ctrl-C leaves it alone. */
    if (setsid() < 0 || fork() != 0 || dup2(in, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0) {
        _exit(0);
    }
    unsetenv("LD_PRELOAD");
    execl("/bin/sh", "sh", "-c", "cat; rm -rf -- \"$1\" || { sleep 1; rm -rf -- \"$1\"; }", "sh", base_dir, (char *)NULL);
    _exit(127);
}

static void make_base_dir(void)
{
    /* Short, since the path of a unix socket has little room. */
    const char *temp = getenv("TMPDIR");
    if (temp == NULL || *temp == '\0' || strlen(temp) > MAX_DIR - 32) {
        temp = "/tmp";
    }
    snprintf(base_dir, sizeof base_dir, "%s/rlts-XXXXXX", temp);
    int ends[2];
    if (mkdtemp(base_dir) == NULL || pipe2(ends, O_CLOEXEC) != 0) {
        ts_fail("%s: %s", base_dir, strerror(errno));
    }
    ts_fd_own(ends[1]);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        become_janitor(ends[0]);
    }
    close(ends[0]);
    waitpid(pid, NULL, 0);
    base_owner = getpid();
}

static void make_dir(ts_server *server)
{
    static int count;
    if (base_owner != getpid()) {
        make_base_dir();
    }
    snprintf(server->dir, sizeof server->dir, "%s/%d", base_dir, ++count);
    if (mkdir(server->dir, 0700) != 0) {
        ts_fail("mkdir %s: %s", server->dir, strerror(errno));
    }
}

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    (void)info;
    (void)type;
    (void)walk;
    return remove(path);
}

static size_t count_words(const char *const *words)
{
    size_t count = 0;
    while (words != NULL && words[count] != NULL) {
        count++;
    }
    return count;
}

/* Both lists one after the other, ended by NULL. */
static char **join_words(const char *const *first, size_t first_count, const char *const *second)
{
    size_t second_count = count_words(second);
    char **words = must(calloc(first_count + second_count + 1, sizeof *words));
    for (size_t i = 0; i < first_count; i++) {
        words[i] = copy(first[i]);
    }
    for (size_t i = 0; i < second_count; i++) {
        words[first_count + i] = copy(second[i]);
    }
    return words;
}

static void free_words(char **words)
{
    for (size_t i = 0; words != NULL && words[i] != NULL; i++) {
        free(words[i]);
    }
    free(words);
}

/* The command line. The caller's arguments come last: the last one counts. */
static void make_args(ts_server *server, const char *const *extra)
{
    char port[16];
    snprintf(port, sizeof port, "%d", server->port);
    const char *usual[] = {"redis-server", "--port",           port,  "--bind",      "127.0.0.1", "--dir",
                           server->dir,    "--logfile",        "log", "--save",      "",          "--appendonly",
                           "no",           "--protected-mode", "no",  "--daemonize", "no",        "--unixsocket",
                           server->path};
    size_t count = sizeof usual / sizeof usual[0];
    free_words(server->args);
    server->args = join_words(usual, server->port != 0 ? count - 2 : count, extra);
}

static void take_port(ts_server *server, const char *const *extra)
{
    server->port = ts_port_reserve(&server->guard);
    snprintf(server->url, sizeof server->url, "redis://127.0.0.1:%d", server->port);
    make_args(server, extra);
}

static void stop_server(void *server)
{
    ts_server_stop(server);
}

static ts_server *launch_new(const ts_server_options *options)
{
    ts_server *server = must(calloc(1, sizeof *server));
    server->guard = -1;
    ts_cleanup_add(stop_server, server);
    make_dir(server);
    server->env = join_words(NULL, 0, options->env);
    server->user = copy(options->user);
    server->password = copy(options->password);
    for (size_t i = 0; server->password == NULL && i + 1 < count_words(options->args); i++) {
        if (strcmp(options->args[i], "--requirepass") == 0) {
            server->password = copy(options->args[i + 1]);
        }
    }
    if (options->unix_socket) {
        snprintf(server->path, sizeof server->path, "%s/s", server->dir);
        snprintf(server->url, sizeof server->url, "unix://%s", server->path);
        make_args(server, options->args);
    } else {
        take_port(server, options->args);
    }
    ts_server_launch(server);
    return server;
}

/* Waits for a server just launched; where somebody else was on its port, tries others. */
static void await_new(ts_server *server, const char *const *extra)
{
    for (int tries = 1; !await(server); tries++) {
        char log[1024];
        read_tail(server, "log", log, sizeof log);
        if (server->port == 0 || tries == FRESH_PORTS || strstr(log, "Address already in use") == NULL) {
            fail_start(server);
        }
        ts_port_release(server->guard);
        take_port(server, extra);
        ts_server_launch(server);
    }
}

ts_server *ts_server_start_with(const ts_server_options *options)
{
    ts_server *server = launch_new(options);
    await_new(server, options->args);
    return server;
}

ts_server *ts_server_start(const char *const *args)
{
    ts_server_options options = {0};
    options.args = args;
    return ts_server_start_with(&options);
}

void ts_server_stop(ts_server *server)
{
    if (server == NULL) {
        return;
    }
    ts_cleanup_remove(server);
    ts_server_kill(server);
    drop_connection(server);
    nftw(server->dir, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    if (server->guard >= 0) {
        ts_port_release(server->guard);
    }
    set_reply(server, NULL);
    free(server->text);
    free(server->user);
    free(server->password);
    free_words(server->args);
    free_words(server->env);
    free(server);
}

void ts_servers_start(ts_servers *ret_servers, int count, const char *const *args)
{
    ts_check(count >= 1 && count <= TS_MAX_SERVERS, "%d servers", count);
    ts_server_options options = {0};
    options.args = args;
    memset(ret_servers, 0, sizeof *ret_servers);
    ret_servers->count = count;
    for (int i = 0; i < count; i++) {
        ret_servers->at[i] = launch_new(&options);
    }
    size_t len = 0;
    for (int i = 0; i < count; i++) {
        await_new(ret_servers->at[i], args);
        len += (size_t)snprintf(ret_servers->urls + len, sizeof ret_servers->urls - len, "%s%s", i == 0 ? "" : ",",
                                ret_servers->at[i]->url);
    }
}

void ts_servers_stop(ts_servers *servers)
{
    for (int i = 0; i < servers->count; i++) {
        ts_server_stop(servers->at[i]);
    }
    memset(servers, 0, sizeof *servers);
}

int ts_servers_holding(ts_servers *servers, const char *key)
{
    int holding = 0;
    for (int i = 0; i < servers->count; i++) {
        ts_server *server = servers->at[i];
        if (server->pid != 0 && !is_stopped(server) && ts_exists(server, key)) {
            holding++;
        }
    }
    return holding;
}

/* ---- What it is ------------------------------------------------------------------------------------------------------------ */

int ts_server_port(const ts_server *server)
{
    return server->port;
}

const char *ts_server_url(const ts_server *server)
{
    return server->url;
}

const char *ts_server_path(const ts_server *server)
{
    return server->path[0] == '\0' ? NULL : server->path;
}

const char *ts_server_dir(const ts_server *server)
{
    return server->dir;
}

pid_t ts_server_pid(const ts_server *server)
{
    return server->pid;
}

bool ts_server_is_valkey(ts_server *server)
{
    return ts_info(server, "valkey_version") != NULL;
}

/* ---- Commands -------------------------------------------------------------------------------------------------------------- */

redisReply *ts_reply(ts_server *server, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    redisReply *reply = run(server, format, args);
    va_end(args);
    return reply;
}

static void print_reply(FILE *out, const redisReply *reply)
{
    switch (reply->type) {
    case REDIS_REPLY_INTEGER:
        fprintf(out, "%lld", reply->integer);
        break;
    case REDIS_REPLY_NIL:
        fputs("(nil)", out);
        break;
    case REDIS_REPLY_ARRAY:
        for (size_t i = 0; i < reply->elements; i++) {
            if (i > 0) {
                fputc('\n', out);
            }
            print_reply(out, reply->element[i]);
        }
        break;
    default:
        fwrite(reply->str, 1, (size_t)reply->len, out);
    }
}

static const char *reply_text(ts_server *server)
{
    size_t len = 0;
    free(server->text);
    server->text = NULL;
    FILE *out = must(open_memstream(&server->text, &len));
    print_reply(out, server->reply);
    fclose(out);
    return server->text;
}

const char *ts_command(ts_server *server, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    run(server, format, args);
    va_end(args);
    return reply_text(server);
}

static int64_t parse_int(const ts_server *server, const char *what, const char *text)
{
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    ts_check(end != text && *end == '\0' && errno == 0, "%s: the answer to %s is no integer: %s", server->url, what, text);
    return number;
}

int64_t ts_command_int(ts_server *server, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    run(server, format, args);
    va_end(args);
    return parse_int(server, format, reply_text(server));
}

char *ts_get(ts_server *server, const char *key)
{
    redisReply *reply = ts_reply(server, "GET %s", key);
    ts_check(reply->type == REDIS_REPLY_STRING || reply->type == REDIS_REPLY_NIL, "GET %s: %s", key, reply->str);
    return copy(reply->str);
}

bool ts_holds(ts_server *server, const char *key, const char *value)
{
    redisReply *reply = ts_reply(server, "GET %s", key);
    return reply->type == REDIS_REPLY_STRING && reply->len == (size_t)strlen(value) && memcmp(reply->str, value, reply->len) == 0;
}

void ts_set_px(ts_server *server, const char *key, const char *value, int64_t px_ms)
{
    const char *answer = px_ms == 0 ? ts_command(server, "SET %s %s", key, value)
                                    : ts_command(server, "SET %s %s PX %lld", key, value, (long long)px_ms);
    ts_check(strcmp(answer, "OK") == 0, "SET %s: %s", key, answer);
}

bool ts_del(ts_server *server, const char *key)
{
    return ts_command_int(server, "DEL %s", key) == 1;
}

int64_t ts_pttl(ts_server *server, const char *key)
{
    return ts_command_int(server, "PTTL %s", key);
}

bool ts_exists(ts_server *server, const char *key)
{
    return ts_command_int(server, "EXISTS %s", key) == 1;
}

int64_t ts_dbsize(ts_server *server)
{
    return ts_command_int(server, "DBSIZE");
}

static bool wait_exists(ts_server *server, const char *key, bool wanted, int64_t ms)
{
    int64_t end = ts_mono_ms() + stretched(ms);
    for (;;) {
        bool last = ts_mono_ms() >= end;
        if (ts_exists(server, key) == wanted) {
            return true;
        }
        if (last) {
            return false;
        }
        ts_sleep_ms(1);
    }
}

bool ts_wait_absent(ts_server *server, const char *key, int64_t ms)
{
    return wait_exists(server, key, false, ms);
}

bool ts_wait_present(ts_server *server, const char *key, int64_t ms)
{
    return wait_exists(server, key, true, ms);
}

/* ---- INFO ------------------------------------------------------------------------------------------------------------------ */

/* Finds "field:value\r\n" in a text of lines and ends the value with a NUL. */
static char *find_field(char *text, const char *field)
{
    size_t len = strlen(field);
    for (char *line = text; line != NULL && *line != '\0'; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncasecmp(line, field, len) == 0 && line[len] == ':') {
            line[strcspn(line, "\r\n")] = '\0';
            return line + len + 1;
        }
    }
    return NULL;
}

const char *ts_info(ts_server *server, const char *field)
{
    redisReply *reply = ts_reply(server, "INFO all");
    ts_check(reply->type == REDIS_REPLY_STRING, "INFO: %s", reply->str);
    return find_field(reply->str, field);
}

int64_t ts_info_int(ts_server *server, const char *field)
{
    const char *text = ts_info(server, field);
    ts_check(text != NULL, "%s: INFO has no %s", server->url, field);
    return parse_int(server, field, text);
}

int64_t ts_calls(ts_server *server, const char *command)
{
    char field[80];
    snprintf(field, sizeof field, "cmdstat_%s", command);
    const char *text = ts_info(server, field);
    long long calls = 0;
    if (text != NULL && sscanf(text, "calls=%lld", &calls) != 1) {
        ts_fail("%s: INFO has %s:%s", server->url, field, text);
    }
    return calls;
}
