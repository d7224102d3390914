/* raw.c - see raw.h. */
#include "raw.h"

#include "common.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
