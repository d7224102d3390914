/* raw.c - the raw clients that do one thing at a time: see raw.h. */
#include "raw.h"

#include "nodes.h"
#include "raw_command.h"

#include "../lib/script.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const char token[] = "0123456789abcdef0123456789abcdef";
static const char ttl[] = "10000";
static const char release_script[] =
    "if redis.call('GET',KEYS[1])==ARGV[1] then return redis.call('DEL',KEYS[1]) else return 0 end";

struct command command_of(int argc, const char *const *argv)
{
    struct command command = {.argc = argc};
    for (int i = 0; i < argc; i++) {
        command.argv[i] = argv[i];
        command.lengths[i] = strlen(argv[i]);
    }
    return command;
}

struct command acquire_command(const char *key)
{
    return command_of(6, (const char *const[]){"SET", key, token, "NX", "PX", ttl});
}

struct command release_command(const char *key, const char *sha)
{
    return command_of(5, (const char *const[]){"EVALSHA", sha, "1", key, token});
}

/* As the library does on a single server: the counter lasts a day and needs no grain to agree with others. */
static struct command fenced_command(void)
{
    return command_of(9, (const char *const[]){"EVALSHA", rli_scripts[RLI_SCRIPT_GRANT].sha1, "2", RAW_KEY, "{" RAW_KEY "}:fence",
                                               token, ttl, "86400000", "1"});
}

bool is_ok(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_STATUS && !strcmp(reply->str, "OK");
}

bool is_one(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_INTEGER && reply->integer == 1;
}

static bool is_fence(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_INTEGER && reply->integer > 1;
}

static bool is_pong(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_STATUS && !strcmp(reply->str, "PONG");
}

static void load_script(const struct address *address, const char *text, char ret_sha[SHA_LENGTH + 1])
{
    redisContext *context = connect_to(address);
    redisReply *reply = redisCommand(context, "SCRIPT LOAD %s", text);
    if (!reply || reply->type != REDIS_REPLY_STRING || reply->len != SHA_LENGTH)
        die("cannot load a script");
    memcpy(ret_sha, reply->str, SHA_LENGTH + 1);
    freeReplyObject(reply);
    redisFree(context);
}

void load_release(const struct address *address, char ret_sha[SHA_LENGTH + 1])
{
    load_script(address, release_script, ret_sha);
}

int socket_to(const struct address *address)
{
    redisContext *context = connect_to(address);
    int fd = fcntl(context->fd, F_DUPFD_CLOEXEC, 0), yes = 1;
    redisFree(context);
    if (fd < 0 || fcntl(fd, F_SETFL, O_NONBLOCK) || (!address->path && setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes)))
        die("cannot connect to a server");
    return fd;
}

/* ---- One server -------------------------------------------------------------------------------------------------------------- */

struct raw_blocking {
    redisContext *context;
    char sha[SHA_LENGTH + 1];
    struct command acquire, release, ping;
    bool (*granted)(const redisReply *reply);
};

raw_blocking *raw_blocking_new(const struct address *address, const char *key)
{
    raw_blocking *raw = zalloc(sizeof *raw);
    load_release(address, raw->sha);
    raw->context = connect_to(address);
    raw->acquire = acquire_command(key);
    raw->granted = is_ok;
    raw->release = release_command(key, raw->sha);
    raw->ping = command_of(1, (const char *const[]){"PING"});
    return raw;
}

raw_blocking *raw_blocking_new_fenced(const struct address *address)
{
    raw_blocking *raw = raw_blocking_new(address, RAW_KEY);
    char sha[SHA_LENGTH + 1];
    load_script(address, rli_scripts[RLI_SCRIPT_GRANT].text, sha);
    load_script(address, rli_scripts[RLI_SCRIPT_RELEASE].text, raw->sha); /* release_command points to it */
    if (strcmp(sha, rli_scripts[RLI_SCRIPT_GRANT].sha1))
        die("raw client: another script than the library's");
    raw->acquire = fenced_command();
    raw->granted = is_fence;
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

long raw_blocking_cycle(void *arg)
{
    raw_blocking *raw = arg;
    blocking_call(raw->context, &raw->acquire, raw->granted);
    blocking_call(raw->context, &raw->release, is_one);
    return 1;
}

long raw_blocking_ping(void *arg)
{
    raw_blocking *raw = arg;
    blocking_call(raw->context, &raw->ping, is_pong);
    return 1;
}

/* ---- A majority of several --------------------------------------------------------------------------------------------------- */

struct raw_node {
    int fd;
    redisReader *reader;
    int owed;  /* replies still to come */
    int stale; /* how many of them are not to the command that is waited for */
};

struct raw_majority {
    int count;
    bool wait;
    char sha[SHA_LENGTH + 1];
    struct command acquire, release;
    struct raw_node nodes[RAW_MAX_NODES];
};

raw_majority *raw_majority_new(const struct address *at, int count, const char *key, bool wait)
{
    raw_majority *raw = zalloc(sizeof *raw);
    if (count > RAW_MAX_NODES)
        die("too many nodes");
    raw->count = count;
    raw->wait = wait;
    for (int i = 0; i < count; i++) {
        load_release(&at[i], raw->sha);
        raw->nodes[i].fd = socket_to(&at[i]);
        raw->nodes[i].reader = redisReaderCreate();
    }
    raw->acquire = acquire_command(key);
    raw->release = release_command(key, raw->sha);
    return raw;
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
        raw->nodes[i].stale = raw->nodes[i].owed++;
    }
    redisFreeCommand(bytes);
}

/* Takes what a node sent: 1 if the reply that is waited for came, and was good. */
static int take_replies(struct raw_node *node, bool (*expected)(const redisReply *reply))
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
        } else if (expected(reply)) {
            grants++;
        }
        freeReplyObject(reply);
    }
    return grants;
}

static void call_majority(raw_majority *raw, struct command *command, bool (*expected)(const redisReply *reply))
{
    struct pollfd wanted[RAW_MAX_NODES];
    int grants = 0;
    send_to_all(raw, command);
    for (int i = 0; i < raw->count; i++)
        wanted[i] = (struct pollfd){raw->nodes[i].fd, POLLIN, 0};
    while (grants < raw->count / 2 + 1) {
        if (poll(wanted, (nfds_t)raw->count, WAIT_MS) <= 0)
            die("raw client: no majority");
        for (int i = 0; i < raw->count; i++) {
            if (!wanted[i].revents)
                continue;
            grants += take_replies(&raw->nodes[i], expected);
            if (!raw->nodes[i].owed)
                wanted[i].fd = -1;
        }
    }
}

long raw_majority_cycle(void *arg)
{
    raw_majority *raw = arg;
    call_majority(raw, &raw->acquire, is_ok);
    if (raw->wait)
        call_majority(raw, &raw->release, is_one);
    else
        send_to_all(raw, &raw->release);
    return 1;
}

/* A connection that ends before its last release is carried out leaves a key. */
void raw_majority_free(raw_majority *raw)
{
    for (int i = 0; i < raw->count; i++) {
        struct raw_node *node = &raw->nodes[i];
        struct pollfd wanted = {node->fd, POLLIN, 0};
        for (node->stale = node->owed; node->owed;) {
            if (poll(&wanted, 1, WAIT_MS) <= 0)
                die("raw client: no answer");
            take_replies(node, is_one);
        }
        close(node->fd);
        redisReaderFree(node->reader);
    }
    free(raw);
}

/* ---- A message --------------------------------------------------------------------------------------------------------------- */

struct raw_hop {
    redisContext *from, *to;
};

raw_hop *raw_hop_new(const struct address *address)
{
    raw_hop *raw = zalloc(sizeof *raw);
    raw->from = connect_to(address);
    raw->to = connect_to(address);
    redisReply *reply = redisCommand(raw->to, "SUBSCRIBE bench-hop");
    if (!reply || reply->type != REDIS_REPLY_ARRAY)
        die("cannot subscribe");
    freeReplyObject(reply);
    return raw;
}

void raw_hop_free(raw_hop *raw)
{
    redisFree(raw->from);
    redisFree(raw->to);
    free(raw);
}

long raw_hop_step(void *arg)
{
    raw_hop *raw = arg;
    void *message;
    struct command publish = command_of(3, (const char *const[]){"PUBLISH", "bench-hop", "1"});
    redisAppendCommandArgv(raw->from, publish.argc, publish.argv, publish.lengths);
    for (int written = 0; !written;) {
        if (redisBufferWrite(raw->from, &written))
            die("raw client: cannot publish");
    }
    if (redisGetReply(raw->to, &message))
        die("raw client: no message");
    freeReplyObject(message);
    if (redisGetReply(raw->from, &message))
        die("raw client: cannot publish");
    freeReplyObject(message);
    return 1;
}
