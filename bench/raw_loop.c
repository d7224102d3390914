/* raw_loop.c - the raw client with many cycles outstanding: see raw.h. What an epoll program would be that was written for
 * nothing else. */
#include "raw.h"

#include "raw_command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* A cycle in progress. Each command is a phase, so that a straggler's reply is known as one. */
struct slot {
    char key[24];
    uint32_t phase;
    int votes;
    bool releasing;
    int64_t began;
};

struct expected {
    struct slot *slot;
    uint32_t phase;
    bool release;
};

/* A server: the replies that it owes in a ring, and what its socket has not yet taken. */
struct loop_node {
    int fd;
    redisReader *reader;
    struct expected *ring;
    size_t first, owed, room; /* room: a power of two */
    char *out;
    size_t out_len, out_room;
};

struct raw_loop {
    struct loop_node nodes[RAW_MAX_NODES];
    int count, outstanding, rounds, epoll;
    long started, done, cycles;
    char sha[SHA_LENGTH + 1];
    struct slot *slots;
    struct samples *latencies;
};

raw_loop *raw_loop_new(const struct address *at, int count, int outstanding, int rounds, struct samples *latencies)
{
    raw_loop *raw = zalloc(sizeof *raw);
    *raw = (raw_loop){.count = count, .outstanding = outstanding, .rounds = rounds, .latencies = latencies};
    raw->slots = zalloc((size_t)outstanding * sizeof *raw->slots);
    raw->epoll = epoll_create1(EPOLL_CLOEXEC);
    for (int i = 0; i < outstanding; i++)
        snprintf(raw->slots[i].key, sizeof raw->slots[i].key, "rl:loop-%06d", i);
    for (int i = 0; i < count; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &raw->nodes[i]};
        load_release(&at[i], raw->sha);
        raw->nodes[i].fd = socket_to(&at[i]);
        raw->nodes[i].reader = redisReaderCreate();
        if (epoll_ctl(raw->epoll, EPOLL_CTL_ADD, raw->nodes[i].fd, &event))
            die("no epoll");
    }
    return raw;
}

static void expect(struct loop_node *node, struct expected expected)
{
    if (node->owed == node->room) {
        size_t room = node->room ? 2 * node->room : 64;
        struct expected *ring = zalloc(room * sizeof *ring);
        for (size_t i = 0; i < node->owed; i++)
            ring[i] = node->ring[(node->first + i) & (node->room - 1)];
        free(node->ring);
        node->ring = ring;
        node->room = room;
        node->first = 0;
    }
    node->ring[(node->first + node->owed++) & (node->room - 1)] = expected;
}

static void queue_bytes(struct loop_node *node, const char *bytes, size_t length)
{
    if (node->out_len + length > node->out_room) {
        node->out_room = 2 * node->out_room + length;
        node->out = realloc(node->out, node->out_room);
        if (!node->out)
            die("out of memory");
    }
    memcpy(node->out + node->out_len, bytes, length);
    node->out_len += length;
}

static void begin_phase(raw_loop *raw, struct slot *slot, bool releasing)
{
    struct command command = releasing ? release_command(slot->key, raw->sha) : acquire_command(slot->key);
    char *bytes;
    long long length = redisFormatCommandArgv(&bytes, command.argc, command.argv, command.lengths);
    if (length < 0)
        die("cannot format a command");
    slot->phase++;
    slot->votes = 0;
    slot->releasing = releasing;
    for (int i = 0; i < raw->count; i++) {
        queue_bytes(&raw->nodes[i], bytes, (size_t)length);
        expect(&raw->nodes[i], (struct expected){slot, slot->phase, releasing});
    }
    redisFreeCommand(bytes);
}

static void begin_cycle(raw_loop *raw, struct slot *slot)
{
    raw->started++;
    slot->began = now_ns();
    begin_phase(raw, slot, false);
}

static void end_phase(raw_loop *raw, struct slot *slot)
{
    if (!slot->releasing) {
        begin_phase(raw, slot, true);
        return;
    }
    slot->phase++;
    samples_add(raw->latencies, now_ns() - slot->began);
    raw->done++;
    if (raw->started < raw->cycles)
        begin_cycle(raw, slot);
}

static void take_reply(raw_loop *raw, struct loop_node *node, const redisReply *reply)
{
    if (!node->owed)
        die("raw client: an answer that nobody asked for");
    struct expected *expected = &node->ring[node->first];
    struct slot *slot = expected->slot;
    if (!(expected->release ? is_one(reply) : is_ok(reply)))
        die("raw client: an unexpected answer: %s", reply->str ? reply->str : "(no text)");
    bool counts = slot->phase == expected->phase;
    node->first = (node->first + 1) & (node->room - 1);
    node->owed--;
    if (counts && ++slot->votes == raw->count / 2 + 1)
        end_phase(raw, slot);
}

static void read_replies(raw_loop *raw, struct loop_node *node)
{
    char bytes[16384];
    void *reply;
    ssize_t length = recv(node->fd, bytes, sizeof bytes, 0);
    if (length <= 0 || redisReaderFeed(node->reader, bytes, (size_t)length))
        die("raw client: lost a server");
    while (redisReaderGetReply(node->reader, &reply) == REDIS_OK && reply) {
        take_reply(raw, node, reply);
        freeReplyObject(reply);
    }
}

/* Returns whether something is left to be sent. */
static bool flush_out(raw_loop *raw)
{
    bool left = false;
    for (int i = 0; i < raw->count; i++) {
        struct loop_node *node = &raw->nodes[i];
        ssize_t sent = node->out_len ? send(node->fd, node->out, node->out_len, MSG_NOSIGNAL) : 0;
        if (sent < 0 && errno != EAGAIN)
            die("raw client: lost a server");
        if (sent > 0) {
            node->out_len -= (size_t)sent;
            memmove(node->out, node->out + sent, node->out_len);
        }
        left = left || node->out_len;
    }
    return left;
}

/* Sends what is left, and waits for answers and takes them. */
static void turn(raw_loop *raw)
{
    struct epoll_event events[RAW_MAX_NODES];
    bool left = flush_out(raw);
    /* What a socket did not take is taken when answers have come: the servers read all the time. */
    int ready = epoll_wait(raw->epoll, events, RAW_MAX_NODES, left ? 1 : WAIT_MS);
    if (ready < 0 || (ready == 0 && !left))
        die("raw client: no answer");
    for (int i = 0; i < ready; i++)
        read_replies(raw, events[i].data.ptr);
}

long raw_loop_step(void *arg)
{
    raw_loop *raw = arg;
    raw->started = raw->done = 0;
    raw->cycles = (long)raw->outstanding * raw->rounds;
    for (int i = 0; i < raw->outstanding; i++)
        begin_cycle(raw, &raw->slots[i]);
    while (raw->done < raw->cycles)
        turn(raw);
    return raw->cycles;
}

static size_t owed(const raw_loop *raw)
{
    size_t sum = 0;
    for (int i = 0; i < raw->count; i++)
        sum += raw->nodes[i].owed;
    return sum;
}

/* A connection that ends before its last release is carried out leaves a key. */
void raw_loop_free(raw_loop *raw)
{
    while (owed(raw))
        turn(raw);
    for (int i = 0; i < raw->count; i++) {
        struct loop_node *node = &raw->nodes[i];
        close(node->fd);
        redisReaderFree(node->reader);
        free(node->ring);
        free(node->out);
    }
    close(raw->epoll);
    free(raw->slots);
    free(raw);
}
