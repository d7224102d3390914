/* hostile.c - see hostile.h.
 *
 * One thread accepts; each connection has a thread that plays its script with blocking steps. What they share is under one lock.
 * A stop makes an eventfd readable for good, which every wait looks at.
 */
#include "hostile.h"

#include "check.h"
#include "net.h"
#include "resp.h"
#include "sha1.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

typedef struct ts_player {
    ts_hostile *hostile;
    pthread_t thread;
    int number;
    const ts_step *script;
    ts_peer peer;
    bool done, joined;

    /* of its thread alone */
    int fd;
    char *in; /* read, not yet taken */
    size_t in_len, in_room;
} ts_player;

typedef struct ts_entry {
    const char *command; /* NULL = any */
    const char *bytes;   /* NULL = no answer */
    size_t len;
    bool once, used;
} ts_entry;

typedef struct ts_own_script {
    int connection;
    const ts_step *script;
} ts_own_script;

struct ts_hostile {
    int port, guard, listener, stop;
    char url[64];
    const ts_step *script;
    pthread_t thread;

    pthread_mutex_t lock;
    ts_player **players;
    int player_count;
    ts_own_script *own_scripts;
    size_t own_script_count;
    ts_entry *table;
    size_t table_count;
    ts_received **received;
    size_t received_count;
    int64_t bytes;
    char error[256];
};

static void *must(void *memory)
{
    if (memory == NULL) {
        abort();
    }
    return memory;
}

static void note_error(ts_player *player, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void note_error(ts_player *player, const char *format, ...)
{
    ts_hostile *hostile = player->hostile;
    char text[200];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    pthread_mutex_lock(&hostile->lock);
    if (hostile->error[0] == '\0') {
        snprintf(hostile->error, sizeof hostile->error, "connection %d: %s", player->number, text);
    }
    pthread_mutex_unlock(&hostile->lock);
}

static void set_peer(ts_player *player, ts_peer peer)
{
    pthread_mutex_lock(&player->hostile->lock);
    player->peer = peer;
    pthread_mutex_unlock(&player->hostile->lock);
}

/* ---- Waiting, reading, writing --------------------------------------------------------------------------------------------- */

typedef enum wait_result { WAIT_READY, WAIT_TIMEOUT, WAIT_STOP } wait_result;

/* Waits for an event of the socket (0 = none: for the time alone) for ms (-1 = for ever), or for the stop. */
static wait_result wait_for(ts_player *player, short events, int64_t ms)
{
    int64_t end = ts_mono_ms() + ms;
    for (;;) {
        struct pollfd polled[2] = {{player->hostile->stop, POLLIN, 0}, {events != 0 ? player->fd : -1, events, 0}};
        int64_t left = ms < 0 ? 1000 : end - ts_mono_ms();
        poll(polled, 2, left < 0 ? 0 : left > 1000 ? 1000 : (int)left);
        if (polled[0].revents != 0) {
            return WAIT_STOP;
        }
        if (polled[1].revents != 0) {
            return WAIT_READY;
        }
        if (ms >= 0 && ts_mono_ms() >= end) {
            return WAIT_TIMEOUT;
        }
    }
}

/* Reads what there is, waiting for it up to ms. */
typedef enum read_result { READ_BYTES, READ_TIMEOUT, READ_END } read_result;
static read_result read_more(ts_player *player, int64_t ms)
{
    enum { PIECE = 16384 };
    wait_result waited = wait_for(player, POLLIN, ms);
    if (waited != WAIT_READY) {
        return waited == WAIT_TIMEOUT ? READ_TIMEOUT : READ_END;
    }
    if (player->in_room - player->in_len < PIECE) {
        player->in_room = player->in_room * 2 + PIECE;
        player->in = must(realloc(player->in, player->in_room));
    }
    ssize_t n = recv(player->fd, player->in + player->in_len, PIECE, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return READ_BYTES;
    }
    if (n <= 0) {
        set_peer(player, n == 0 ? TS_PEER_FIN : TS_PEER_RST);
        return READ_END;
    }
    player->in_len += (size_t)n;
    pthread_mutex_lock(&player->hostile->lock);
    player->hostile->bytes += n;
    pthread_mutex_unlock(&player->hostile->lock);
    return READ_BYTES;
}

/* false = the peer is gone, or the stop. */
static bool send_all(ts_player *player, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = send(player->fd, bytes, len, MSG_NOSIGNAL);
        if (n >= 0) {
            bytes += n;
            len -= (size_t)n;
        } else if (errno == EAGAIN) {
            if (wait_for(player, POLLOUT, -1) != WAIT_READY) {
                return false;
            }
        } else if (errno != EINTR) {
            set_peer(player, TS_PEER_RST);
            return false;
        }
    }
    return true;
}

static bool send_repeated(ts_player *player, const char *bytes, size_t len, int64_t times)
{
    size_t per_block = len == 0 ? 0 : 65536 / len + 1;
    char *block = must(malloc(per_block * len + 1));
    for (size_t i = 0; i < per_block; i++) {
        memcpy(block + i * len, bytes, len);
    }
    bool sent = len > 0;
    for (int64_t left = times; sent && left != 0;) {
        int64_t now = left < 0 || left > (int64_t)per_block ? (int64_t)per_block : left;
        sent = send_all(player, block, (size_t)now * len);
        left -= left < 0 ? 0 : now;
    }
    free(block);
    return sent;
}

static bool trickle(ts_player *player, const char *bytes, size_t len, int64_t ms)
{
    for (size_t i = 0; i < len; i++) {
        if (!send_all(player, bytes + i, 1) || wait_for(player, 0, ms) == WAIT_STOP) {
            return false;
        }
    }
    return true;
}

/* ---- Commands -------------------------------------------------------------------------------------------------------------- */

/* The first command that was read and not taken, without taking it. */
typedef enum peek_result { PEEK_COMMAND, PEEK_TIMEOUT, PEEK_END } peek_result;
static peek_result peek_command(ts_player *player, int64_t ms, ts_words *ret_words, size_t *ret_len)
{
    int64_t end = ts_mono_ms() + ms;
    for (;;) {
        ssize_t len = ts_resp_length(player->in, player->in_len);
        if (len < 0 || (len > 0 && !ts_resp_words(player->in, (size_t)len, ret_words))) {
            note_error(player, "received what is no command: %.*s", (int)(player->in_len > 60 ? 60 : player->in_len), player->in);
            return PEEK_END;
        }
        if (len > 0) {
            *ret_len = (size_t)len;
            return PEEK_COMMAND;
        }
        read_result result = read_more(player, ms < 0 ? -1 : end > ts_mono_ms() ? end - ts_mono_ms() : 0);
        if (result == READ_END) {
            if (player->in_len > 0) {
                note_error(player, "ended within a command");
            }
            return PEEK_END;
        }
        if (result == READ_TIMEOUT) {
            return PEEK_TIMEOUT;
        }
    }
}

/* Records the command and takes it. */
static void take_command(ts_player *player, const ts_words *words, size_t len)
{
    ts_hostile *hostile = player->hostile;
    ts_received *received = must(malloc(sizeof *received));
    size_t count = (size_t)words->count;
    received->connection = player->number;
    received->argc = words->count;
    received->argv = must(calloc(count, sizeof *received->argv));
    received->len = must(calloc(count, sizeof *received->len));
    received->at_ms = ts_now_ms();
    for (size_t i = 0; i < count; i++) {
        received->len[i] = words->len[i];
        received->argv[i] = must(malloc(words->len[i] + 1));
        memcpy(received->argv[i], words->word[i], words->len[i]);
        received->argv[i][words->len[i]] = '\0';
    }
    pthread_mutex_lock(&hostile->lock);
    hostile->received = must(realloc(hostile->received, (hostile->received_count + 1) * sizeof(ts_received *)));
    hostile->received[hostile->received_count++] = received;
    pthread_mutex_unlock(&hostile->lock);
    player->in_len -= len;
    memmove(player->in, player->in + len, player->in_len);
}

static bool send_bulk(ts_player *player, const char *text)
{
    char bytes[512];
    int n = snprintf(bytes, sizeof bytes, "$%zu\r\n%s\r\n", strlen(text), text);
    return send_all(player, bytes, (size_t)n);
}

static bool send_text(ts_player *player, const char *text)
{
    return send_all(player, text, strlen(text));
}

static bool send_client_info(ts_player *player)
{
    char text[256];
    struct sockaddr_in peer = {0};
    socklen_t len = sizeof peer;
    getpeername(player->fd, (struct sockaddr *)&peer, &len);
    snprintf(text, sizeof text, "id=%d addr=127.0.0.1:%d laddr=127.0.0.1:%d fd=8 name= age=0 idle=0 flags=N db=0 resp=2\n",
             player->number + 7, ntohs(peer.sin_port), player->hostile->port);
    return send_bulk(player, text);
}

/* Answers as an empty server would. */
static bool answer_honestly(ts_player *player, const ts_words *words)
{
    static const struct {
        const char *name, *bytes;
    } plain[] = {{"AUTH", "+OK\r\n"},       {"SELECT", "+OK\r\n"}, {"PING", "+PONG\r\n"}, {"SET", "+OK\r\n"},
                 {"GET", "$-1\r\n"},        {"EVAL", ":1\r\n"},    {"EVALSHA", ":1\r\n"}, {"DEL", ":1\r\n"},
                 {"CLIENT KILL", ":0\r\n"}, {"CLIENT", "+OK\r\n"}};
    char text[256], digest[41];
    if (ts_resp_is(words, "CLIENT INFO")) {
        return send_client_info(player);
    }
    if (ts_resp_is(words, "CLIENT ID")) {
        snprintf(text, sizeof text, ":%d\r\n", player->number + 7);
        return send_text(player, text);
    }
    if (ts_resp_is(words, "SCRIPT LOAD") && words->count == 3) {
        ts_sha1_hex(words->word[2], words->len[2], digest);
        return send_bulk(player, digest);
    }
    if (ts_resp_is(words, "INFO")) {
        snprintf(text, sizeof text, "# Server\r\nredis_version:7.0.15\r\nrun_id:%040d\r\ntcp_port:%d\r\n", player->hostile->port,
                 player->hostile->port);
        return send_bulk(player, text);
    }
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++) {
        if (ts_resp_is(words, plain[i].name)) {
            return send_text(player, plain[i].bytes);
        }
    }
    snprintf(text, sizeof text, "-ERR unknown command '%.*s'\r\n", (int)(words->len[0] > 128 ? 128 : words->len[0]),
             words->word[0]);
    return send_text(player, text);
}

/* The entry for this command: those for once first, then by name, then the one for any. */
static bool find_entry(ts_hostile *hostile, const ts_words *words, ts_entry *ret)
{
    ts_entry *found = NULL;
    for (size_t i = 0; i < hostile->table_count; i++) {
        ts_entry *entry = &hostile->table[i];
        if (entry->used || !ts_resp_is(words, entry->command)) {
            continue;
        }
        if (entry->once) {
            entry->used = true;
            found = entry;
            break;
        }
        if (found == NULL || entry->command != NULL) {
            found = entry;
        }
    }
    if (found != NULL) {
        *ret = *found;
    }
    return found != NULL;
}

static bool answer_from_table(ts_player *player, const ts_words *words)
{
    ts_entry entry;
    pthread_mutex_lock(&player->hostile->lock);
    bool found = find_entry(player->hostile, words, &entry);
    pthread_mutex_unlock(&player->hostile->lock);
    if (!found) {
        return answer_honestly(player, words);
    }
    return entry.bytes == NULL || send_all(player, entry.bytes, entry.len);
}

/* Answers commands while `wanted` says so, at most n (-1 = any number), until none came for ms (-1 = for ever). */
typedef bool wanted_fn(const ts_words *words, const char *name);
static bool serve(ts_player *player, int64_t n, int64_t ms, wanted_fn *wanted, const char *name)
{
    for (int64_t left = n; left != 0; left -= left > 0) {
        ts_words words;
        size_t len;
        peek_result result = peek_command(player, ms, &words, &len);
        if (result != PEEK_COMMAND) {
            return result == PEEK_TIMEOUT;
        }
        if (!wanted(&words, name)) {
            return true;
        }
        char *bytes = must(malloc(len));
        memcpy(bytes, player->in, len);
        take_command(player, &words, len);
        bool sent = ts_resp_words(bytes, len, &words) && answer_from_table(player, &words);
        free(bytes);
        if (!sent) {
            return false;
        }
    }
    return true;
}

static bool is_handshake(const ts_words *words, const char *name)
{
    (void)name;
    return ts_resp_is(words, "AUTH") || ts_resp_is(words, "SELECT") || ts_resp_is(words, "CLIENT") || ts_resp_is(words, "SCRIPT");
}

static bool is_other(const ts_words *words, const char *name)
{
    return !ts_resp_is(words, name);
}

static bool is_any(const ts_words *words, const char *name)
{
    (void)name;
    return ts_resp_is(words, NULL);
}

static bool expect(ts_player *player, const char *name)
{
    ts_words words;
    size_t len;
    if (peek_command(player, -1, &words, &len) != PEEK_COMMAND) {
        return false;
    }
    if (!ts_resp_is(&words, name)) {
        note_error(player, "received %.*s, expected %s", (int)(words.len[0] > 60 ? 60 : words.len[0]), words.word[0], name);
    }
    take_command(player, &words, len);
    return true;
}

static void read_to_end(ts_player *player)
{
    ts_words words;
    size_t len;
    peek_result result;
    while ((result = peek_command(player, -1, &words, &len)) == PEEK_COMMAND) {
        take_command(player, &words, len);
    }
    while (player->peer == TS_PEER_OPEN && read_more(player, -1) == READ_BYTES) {
        player->in_len = 0;
    }
}

/* ---- The threads ----------------------------------------------------------------------------------------------------------- */

static void close_player(ts_player *player, bool reset)
{
    struct linger now = {1, 0};
    if (reset && player->fd >= 0) {
        setsockopt(player->fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    }
    ts_fd_close(player->fd);
    player->fd = -1;
}

/* false = the connection is over. */
static bool play_step(ts_player *player, const ts_step *step)
{
    switch (step->kind) {
    case TS_STEP_EXPECT:
        return expect(player, step->bytes);
    case TS_STEP_SEND:
        return send_all(player, step->bytes, step->len);
    case TS_STEP_REPEAT:
        return send_repeated(player, step->bytes, step->len, step->n);
    case TS_STEP_TRICKLE:
        return trickle(player, step->bytes, step->len, step->n);
    case TS_STEP_SLEEP:
        return wait_for(player, 0, step->n) == WAIT_TIMEOUT;
    case TS_STEP_HANDSHAKE:
        return serve(player, -1, step->n, is_handshake, NULL);
    case TS_STEP_SERVE:
        return serve(player, step->n, -1, is_any, NULL);
    case TS_STEP_SERVE_UNTIL:
        return serve(player, -1, -1, is_other, step->bytes);
    case TS_STEP_READ_TO_END:
        read_to_end(player);
        return true;
    case TS_STEP_SHUT_WRITE:
        shutdown(player->fd, SHUT_WR);
        return true;
    case TS_STEP_HANG:
        return wait_for(player, 0, -1) == WAIT_TIMEOUT;
    case TS_STEP_RESET:
        close_player(player, true);
        return false;
    case TS_STEP_CLOSE:
    case TS_STEP_END:
        break;
    }
    return false;
}

static void *play(void *arg)
{
    ts_player *player = arg;
    for (const ts_step *step = player->script; play_step(player, step); step++) {
    }
    close_player(player, false);
    free(player->in);
    player->in = NULL;
    pthread_mutex_lock(&player->hostile->lock);
    player->done = true;
    pthread_mutex_unlock(&player->hostile->lock);
    return NULL;
}

static const ts_step *script_of(const ts_hostile *hostile, int connection)
{
    for (size_t i = 0; i < hostile->own_script_count; i++) {
        if (hostile->own_scripts[i].connection == connection) {
            return hostile->own_scripts[i].script;
        }
    }
    return hostile->script;
}

/* Threads that have ended keep their stacks until they are joined. */
static void join_ended(ts_hostile *hostile)
{
    for (int i = 0; i < hostile->player_count; i++) {
        ts_player *player = hostile->players[i];
        if (player->done && !player->joined) {
            pthread_join(player->thread, NULL);
            player->joined = true;
        }
    }
}

static void accept_client(ts_hostile *hostile)
{
    int fd = accept4(hostile->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC), on = 1;
    if (fd < 0) {
        return;
    }
    ts_fd_own(fd);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ts_player *player = must(calloc(1, sizeof *player));
    player->hostile = hostile;
    player->fd = fd;
    player->peer = TS_PEER_OPEN;
    pthread_mutex_lock(&hostile->lock);
    join_ended(hostile);
    player->number = hostile->player_count;
    player->script = script_of(hostile, player->number);
    hostile->players = must(realloc(hostile->players, (size_t)(hostile->player_count + 1) * sizeof(ts_player *)));
    hostile->players[hostile->player_count++] = player;
    if (pthread_create(&player->thread, NULL, play, player) != 0) {
        abort();
    }
    pthread_mutex_unlock(&hostile->lock);
}

static void *run(void *arg)
{
    ts_hostile *hostile = arg;
    for (;;) {
        struct pollfd polled[2] = {{hostile->stop, POLLIN, 0}, {hostile->listener, POLLIN, 0}};
        poll(polled, 2, -1);
        if (polled[0].revents != 0) {
            return NULL;
        }
        if (polled[1].revents != 0) {
            accept_client(hostile);
        }
    }
}

/* ---- Making and ending ----------------------------------------------------------------------------------------------------- */

static void stop_hostile(void *hostile)
{
    ts_hostile_stop(hostile);
}

ts_hostile *ts_hostile_start(const ts_step *script)
{
    static const ts_step serve_all[] = {TS_SERVE(-1), TS_END};
    ts_hostile *hostile = must(calloc(1, sizeof *hostile));
    hostile->script = script != NULL ? script : serve_all;
    hostile->port = ts_port_reserve(&hostile->guard);
    snprintf(hostile->url, sizeof hostile->url, "redis://127.0.0.1:%d", hostile->port);
    hostile->listener = ts_listen(hostile->port, 128);
    hostile->stop = eventfd(0, EFD_CLOEXEC);
    ts_fd_own(hostile->stop);
    ts_check(hostile->listener >= 0 && hostile->stop >= 0, "hostile: %s", strerror(errno));
    pthread_mutex_init(&hostile->lock, NULL);
    /* Signals are for the thread that runs the tests. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&hostile->thread, NULL, run, hostile);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    ts_check(error == 0, "hostile: %s", strerror(error));
    ts_cleanup_add(stop_hostile, hostile);
    return hostile;
}

static void free_received(ts_received *received)
{
    for (int i = 0; i < received->argc; i++) {
        free(received->argv[i]);
    }
    free(received->argv);
    free(received->len);
    free(received);
}

void ts_hostile_stop(ts_hostile *hostile)
{
    uint64_t one = 1;
    if (hostile == NULL) {
        return;
    }
    ts_cleanup_remove(hostile);
    ssize_t written = write(hostile->stop, &one, sizeof one);
    (void)written;
    pthread_join(hostile->thread, NULL);
    for (int i = 0; i < hostile->player_count; i++) {
        if (!hostile->players[i]->joined) {
            pthread_join(hostile->players[i]->thread, NULL);
        }
        free(hostile->players[i]);
    }
    for (size_t i = 0; i < hostile->received_count; i++) {
        free_received(hostile->received[i]);
    }
    ts_fd_close(hostile->listener);
    ts_fd_close(hostile->stop);
    ts_port_release(hostile->guard);
    pthread_mutex_destroy(&hostile->lock);
    free(hostile->players);
    free(hostile->received);
    free(hostile->own_scripts);
    free(hostile->table);
    free(hostile);
}

int ts_hostile_port(const ts_hostile *hostile)
{
    return hostile->port;
}

const char *ts_hostile_url(const ts_hostile *hostile)
{
    return hostile->url;
}

void ts_hostile_script(ts_hostile *hostile, int connection, const ts_step *script)
{
    pthread_mutex_lock(&hostile->lock);
    hostile->own_scripts = must(realloc(hostile->own_scripts, (hostile->own_script_count + 1) * sizeof *hostile->own_scripts));
    hostile->own_scripts[hostile->own_script_count++] = (ts_own_script){connection, script};
    pthread_mutex_unlock(&hostile->lock);
}

static bool same_command(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcasecmp(a, b) == 0;
}

/* A lasting entry replaces the one of the same name. */
static void add_entry(ts_hostile *hostile, ts_entry entry)
{
    pthread_mutex_lock(&hostile->lock);
    for (size_t i = 0; i < hostile->table_count; i++) {
        ts_entry *old = &hostile->table[i];
        old->used = old->used || (!entry.once && !old->once && same_command(old->command, entry.command));
    }
    hostile->table = must(realloc(hostile->table, (hostile->table_count + 1) * sizeof *hostile->table));
    hostile->table[hostile->table_count++] = entry;
    pthread_mutex_unlock(&hostile->lock);
}

void ts_hostile_answer_len(ts_hostile *hostile, const char *command, const char *bytes, size_t len)
{
    add_entry(hostile, (ts_entry){command, bytes, len, false, false});
}

void ts_hostile_answer(ts_hostile *hostile, const char *command, const char *bytes)
{
    ts_hostile_answer_len(hostile, command, bytes, bytes == NULL ? 0 : strlen(bytes));
}

void ts_hostile_answer_once(ts_hostile *hostile, const char *command, const char *bytes)
{
    add_entry(hostile, (ts_entry){command, bytes, bytes == NULL ? 0 : strlen(bytes), true, false});
}

/* ---- What was seen --------------------------------------------------------------------------------------------------------- */

static bool is_named(const ts_received *received, const char *command)
{
    ts_words words;
    words.count = received->argc > 2 ? 2 : received->argc;
    for (int i = 0; i < words.count; i++) {
        words.word[i] = received->argv[i];
        words.len[i] = received->len[i];
    }
    return ts_resp_is(&words, command);
}

const ts_received *ts_hostile_received(ts_hostile *hostile, const char *command, int i)
{
    const ts_received *found = NULL;
    pthread_mutex_lock(&hostile->lock);
    for (size_t at = 0; at < hostile->received_count && found == NULL; at++) {
        if (is_named(hostile->received[at], command) && i-- == 0) {
            found = hostile->received[at];
        }
    }
    pthread_mutex_unlock(&hostile->lock);
    return found;
}

int ts_hostile_count(ts_hostile *hostile, const char *command)
{
    int count = 0;
    pthread_mutex_lock(&hostile->lock);
    for (size_t i = 0; i < hostile->received_count; i++) {
        count += is_named(hostile->received[i], command);
    }
    pthread_mutex_unlock(&hostile->lock);
    return count;
}

int ts_hostile_connections(ts_hostile *hostile)
{
    pthread_mutex_lock(&hostile->lock);
    int count = hostile->player_count;
    pthread_mutex_unlock(&hostile->lock);
    return count;
}

ts_peer ts_hostile_peer(ts_hostile *hostile, int connection)
{
    pthread_mutex_lock(&hostile->lock);
    ts_peer peer = connection < hostile->player_count ? hostile->players[connection]->peer : TS_PEER_NONE;
    pthread_mutex_unlock(&hostile->lock);
    return peer;
}

int64_t ts_hostile_bytes(ts_hostile *hostile)
{
    pthread_mutex_lock(&hostile->lock);
    int64_t bytes = hostile->bytes;
    pthread_mutex_unlock(&hostile->lock);
    return bytes;
}

const char *ts_hostile_error(ts_hostile *hostile)
{
    pthread_mutex_lock(&hostile->lock);
    const char *error = hostile->error[0] != '\0' ? hostile->error : NULL; /* written once */
    pthread_mutex_unlock(&hostile->lock);
    return error;
}

typedef struct ts_question {
    ts_hostile *hostile;
    const char *command;
    int number;
    ts_peer peer;
} ts_question;

static bool has_received(void *arg)
{
    ts_question *question = arg;
    return ts_hostile_count(question->hostile, question->command) >= question->number;
}

bool ts_hostile_wait(ts_hostile *hostile, const char *command, int count, int64_t ms)
{
    return ts_eventually(ms, has_received, &(ts_question){hostile, command, count, TS_PEER_NONE});
}

static bool has_peer(void *arg)
{
    ts_question *question = arg;
    return ts_hostile_peer(question->hostile, question->number) == question->peer;
}

bool ts_hostile_wait_peer(ts_hostile *hostile, int connection, ts_peer peer, int64_t ms)
{
    return ts_eventually(ms, has_peer, &(ts_question){hostile, NULL, connection, peer});
}

static bool is_done(void *arg)
{
    ts_question *question = arg;
    ts_hostile *hostile = question->hostile;
    pthread_mutex_lock(&hostile->lock);
    bool done = question->number < hostile->player_count && hostile->players[question->number]->done;
    pthread_mutex_unlock(&hostile->lock);
    return done;
}

bool ts_hostile_wait_done(ts_hostile *hostile, int connection, int64_t ms)
{
    return ts_eventually(ms, is_done, &(ts_question){hostile, NULL, connection, TS_PEER_NONE});
}
