/* raw.c - see raw.h. */
#include "raw.h"

#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

static const char token[] = "0123456789abcdef0123456789abcdef";
static const char ttl[] = "10000";
static const char release_script[] =
    "if redis.call('GET',KEYS[1])==ARGV[1] then return redis.call('DEL',KEYS[1]) else return 0 end";
enum { SHA_LENGTH = 40, WAIT_MS = 1000 };

/* A command with the lengths that hiredis wants. */
struct command {
    int argc;
    const char *argv[6];
    size_t lengths[6];
};

static struct command command_of(int argc, const char *const *argv)
{
    struct command command = {.argc = argc};
    for (int i = 0; i < argc; i++) {
        command.argv[i] = argv[i];
        command.lengths[i] = strlen(argv[i]);
    }
    return command;
}

static struct command acquire_command(const char *key)
{
    return command_of(6, (const char *const[]){"SET", key, token, "NX", "PX", ttl});
}

static struct command release_command(const char *key, const char *sha)
{
    return command_of(5, (const char *const[]){"EVALSHA", sha, "1", key, token});
}

static bool is_ok(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_STATUS && !strcmp(reply->str, "OK");
}

static bool is_one(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_INTEGER && reply->integer == 1;
}

/* Loads the release script over a connection of its own. */
static void load_script(const char *path, int port, char sha[SHA_LENGTH + 1])
{
    redisContext *context = path ? redisConnectUnix(path) : redisConnect("127.0.0.1", port);
    if (!context || context->err)
        die("cannot connect to a server");
    redisReply *reply = redisCommand(context, "SCRIPT LOAD %s", release_script);
    if (!reply || reply->type != REDIS_REPLY_STRING || reply->len != SHA_LENGTH)
        die("cannot load the release script");
    memcpy(sha, reply->str, SHA_LENGTH + 1);
    freeReplyObject(reply);
    redisFree(context);
}

/* ---- One server -------------------------------------------------------------------------------------------------------------- */

struct raw_blocking {
    redisContext *context;
    char sha[SHA_LENGTH + 1];
    struct command acquire, release;
};

raw_blocking *raw_blocking_new(const char *path, int port, const char *key)
{
    raw_blocking *raw = calloc(1, sizeof *raw);
    if (!raw)
        die("out of memory");
    load_script(path, port, raw->sha);
    raw->context = path ? redisConnectUnix(path) : redisConnect("127.0.0.1", port);
    if (!raw->context || raw->context->err)
        die("cannot connect to a server");
    raw->acquire = acquire_command(key);
    raw->release = release_command(key, raw->sha);
    return raw;
}

void raw_blocking_free(raw_blocking *raw)
{
    redisFree(raw->context);
    free(raw);
}

static void blocking_call(redisContext *context, struct command *command, bool (*expected)(const redisReply *))
{
    redisReply *reply = redisCommandArgv(context, command->argc, command->argv, command->lengths);
    if (!reply || !expected(reply))
        die("raw client: %s answered %s", command->argv[0], reply && reply->str ? reply->str : "something else");
    freeReplyObject(reply);
}

void raw_blocking_cycle(raw_blocking *raw)
{
    blocking_call(raw->context, &raw->acquire, is_ok);
    blocking_call(raw->context, &raw->release, is_one);
}

/* ---- A majority of several --------------------------------------------------------------------------------------------------- */

struct raw_node {
    int fd;
    redisReader *reader;
    int owed;  /* replies still to come */
    int stale; /* how many of them belong to former cycles */
};

struct raw_majority {
    int count;
    char sha[SHA_LENGTH + 1];
    struct command acquire, release;
    struct raw_node nodes[RAW_MAX_NODES];
};

static int connect_unix(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) || fcntl(fd, F_SETFL, O_NONBLOCK))
        die("cannot connect to %s", path);
    return fd;
}

raw_majority *raw_majority_new(const char *const *paths, int count, const char *key)
{
    raw_majority *raw = calloc(1, sizeof *raw);
    if (!raw || count > RAW_MAX_NODES)
        die("out of memory or too many nodes");
    raw->count = count;
    for (int i = 0; i < count; i++) {
        load_script(paths[i], 0, raw->sha);
        raw->nodes[i].fd = connect_unix(paths[i]);
        raw->nodes[i].reader = redisReaderCreate();
    }
    raw->acquire = acquire_command(key);
    raw->release = release_command(key, raw->sha);
    return raw;
}

void raw_majority_free(raw_majority *raw)
{
    for (int i = 0; i < raw->count; i++) {
        close(raw->nodes[i].fd);
        redisReaderFree(raw->nodes[i].reader);
    }
    free(raw);
}

static void send_to_all(raw_majority *raw, struct command *command)
{
    char *bytes;
    long long length = redisFormatCommandArgv(&bytes, command->argc, command->argv, command->lengths);
    if (length < 0)
        die("cannot format a command");
    for (int i = 0; i < raw->count; i++) {
        /* A few hundred bytes to a server that reads: a socket's buffer takes them whole. */
        if (send(raw->nodes[i].fd, bytes, (size_t)length, MSG_NOSIGNAL) != length)
            die("raw client: short write");
        raw->nodes[i].owed++;
    }
    redisFreeCommand(bytes);
}

/* Takes what a node sent: 1 if the reply to this cycle's SET came, and was OK. */
static int take_replies(struct raw_node *node)
{
    char bytes[16384];
    void *object;
    int grants = 0;
    ssize_t length = recv(node->fd, bytes, sizeof bytes, 0);
    if (length <= 0 || redisReaderFeed(node->reader, bytes, (size_t)length))
        die("raw client: lost a server");
    while (redisReaderGetReply(node->reader, &object) == REDIS_OK && object) {
        redisReply *reply = object;
        node->owed--;
        if (node->stale) {
            node->stale--;
            if (!is_ok(reply) && !is_one(reply))
                die("raw client: a former command failed: %s", reply->str ? reply->str : "(no text)");
        } else if (is_ok(reply)) {
            grants++;
        }
        freeReplyObject(reply);
    }
    return grants;
}

void raw_majority_cycle(raw_majority *raw)
{
    struct pollfd wanted[RAW_MAX_NODES];
    for (int i = 0; i < raw->count; i++) {
        raw->nodes[i].stale = raw->nodes[i].owed;
        wanted[i] = (struct pollfd){raw->nodes[i].fd, POLLIN, 0};
    }
    send_to_all(raw, &raw->acquire);
    int grants = 0;
    while (grants < raw->count / 2 + 1) {
        if (poll(wanted, (nfds_t)raw->count, WAIT_MS) <= 0)
            die("raw client: no majority");
        for (int i = 0; i < raw->count; i++) {
            if (!wanted[i].revents)
                continue;
            grants += take_replies(&raw->nodes[i]);
            if (!raw->nodes[i].owed)
                wanted[i].fd = -1;
        }
    }
    send_to_all(raw, &raw->release);
}

/* ---- Many outstanding -------------------------------------------------------------------------------------------------------- */

struct raw_slot {
    char key[24];
    bool acquired;
    struct raw_slot *next; /* in the queue of those that wait for an answer */
};

struct raw_loop {
    int fd, epoll, count;
    long started, done, cycles;
    char sha[SHA_LENGTH + 1];
    redisReader *reader;
    struct raw_slot *slots, *first, **last;
    char *out;
    size_t out_len, out_room;
};

static int connect_tcp(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) || fcntl(fd, F_SETFL, O_NONBLOCK) ||
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes))
        die("cannot connect to port %d", port);
    return fd;
}

raw_loop *raw_loop_new(int port, int count)
{
    struct epoll_event event = {.events = EPOLLIN};
    raw_loop *raw = calloc(1, sizeof *raw);
    if (!raw || !(raw->slots = calloc((size_t)count, sizeof *raw->slots)))
        die("out of memory");
    raw->count = count;
    for (int i = 0; i < count; i++)
        snprintf(raw->slots[i].key, sizeof raw->slots[i].key, "rl:loop-%06d", i);
    load_script(NULL, port, raw->sha);
    raw->fd = connect_tcp(port);
    raw->epoll = epoll_create1(EPOLL_CLOEXEC);
    raw->reader = redisReaderCreate();
    raw->last = &raw->first;
    if (raw->epoll < 0 || epoll_ctl(raw->epoll, EPOLL_CTL_ADD, raw->fd, &event))
        die("no epoll");
    return raw;
}

void raw_loop_free(raw_loop *raw)
{
    close(raw->fd);
    close(raw->epoll);
    redisReaderFree(raw->reader);
    free(raw->out);
    free(raw->slots);
    free(raw);
}

static void queue_command(raw_loop *raw, struct raw_slot *slot, struct command command)
{
    char *bytes;
    long long length = redisFormatCommandArgv(&bytes, command.argc, command.argv, command.lengths);
    if (length < 0)
        die("cannot format a command");
    if (raw->out_len + (size_t)length > raw->out_room) {
        raw->out_room = 2 * raw->out_room + (size_t)length;
        raw->out = realloc(raw->out, raw->out_room);
        if (!raw->out)
            die("out of memory");
    }
    memcpy(raw->out + raw->out_len, bytes, (size_t)length);
    raw->out_len += (size_t)length;
    redisFreeCommand(bytes);
    slot->next = NULL;
    *raw->last = slot;
    raw->last = &slot->next;
}

static void begin_cycle(raw_loop *raw, struct raw_slot *slot)
{
    slot->acquired = false;
    raw->started++;
    queue_command(raw, slot, acquire_command(slot->key));
}

static void flush_out(raw_loop *raw)
{
    if (!raw->out_len)
        return;
    ssize_t sent = send(raw->fd, raw->out, raw->out_len, MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN)
        die("raw client: lost the server");
    if (sent > 0) {
        raw->out_len -= (size_t)sent;
        memmove(raw->out, raw->out + sent, raw->out_len);
    }
}

static void take_reply(raw_loop *raw, const redisReply *reply)
{
    struct raw_slot *slot = raw->first;
    if (!slot || !(slot->acquired ? is_one(reply) : is_ok(reply)))
        die("raw client: an unexpected answer: %s", reply->str ? reply->str : "(no text)");
    raw->first = slot->next;
    if (!raw->first)
        raw->last = &raw->first;
    if (!slot->acquired) {
        slot->acquired = true;
        queue_command(raw, slot, release_command(slot->key, raw->sha));
    } else {
        raw->done++;
        if (raw->started < raw->cycles)
            begin_cycle(raw, slot);
    }
}

static void read_replies(raw_loop *raw)
{
    char bytes[16384];
    void *reply;
    ssize_t length = recv(raw->fd, bytes, sizeof bytes, 0);
    if (length <= 0 || redisReaderFeed(raw->reader, bytes, (size_t)length))
        die("raw client: lost the server");
    while (redisReaderGetReply(raw->reader, &reply) == REDIS_OK && reply) {
        take_reply(raw, reply);
        freeReplyObject(reply);
    }
}

void raw_loop_run(raw_loop *raw, int rounds)
{
    struct epoll_event event;
    raw->started = raw->done = 0;
    raw->cycles = (long)raw->count * rounds;
    for (int i = 0; i < raw->count; i++)
        begin_cycle(raw, &raw->slots[i]);
    flush_out(raw);
    while (raw->done < raw->cycles) {
        /* What the socket did not take is taken when answers have come: the server reads all the time. */
        int ready = epoll_wait(raw->epoll, &event, 1, raw->out_len ? 1 : WAIT_MS);
        if (ready < 0 || (ready == 0 && !raw->out_len))
            die("raw client: no answer");
        if (ready)
            read_replies(raw);
        flush_out(raw);
    }
}
