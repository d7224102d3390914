/* relay.c - see relay.h. One loop over all sockets; what was read waits in a queue until it is due. */
#include "relay.h"

#include "raw_command.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_PAIRS = 64, MAX_EVENTS = 64 };

struct chunk {
    struct chunk *next;
    int64_t due;
    size_t length;
    char bytes[];
};

struct pair;

/* Bytes from one socket to another; or a listener, which has no pair. */
struct flow {
    int from, to;
    struct pair *pair;
    struct chunk *first, **last;
};

struct pair {
    struct flow up, down;
    bool ended;
};

struct loop {
    const struct address *targets;
    struct flow listeners[MAX_NODES];
    int count, epoll;
    struct pair *pairs[MAX_PAIRS];
    int pair_count;
    int64_t delay_ns;
};

static int listen_on_any_port(int *ret_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, length) || listen(fd, MAX_PAIRS) ||
        getsockname(fd, (struct sockaddr *)&address, &length))
        die("relay: cannot listen");
    *ret_port = ntohs(address.sin_port);
    return fd;
}

static void watch(const struct loop *loop, struct flow *flow)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = flow};
    if (epoll_ctl(loop->epoll, EPOLL_CTL_ADD, flow->from, &event))
        die("relay: no epoll");
}

static void accept_pair(struct loop *loop, const struct flow *listener)
{
    int client = accept4(listener->from, NULL, NULL, SOCK_CLOEXEC), yes = 1;
    if (client < 0 || loop->pair_count == MAX_PAIRS || setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes))
        die("relay: cannot accept");
    int server = socket_to(&loop->targets[listener - loop->listeners]);
    fcntl(server, F_SETFL, 0); /* a write may wait: the servers read all the time */
    struct pair *pair = zalloc(sizeof *pair);
    *pair = (struct pair){.up = {.from = client, .to = server, .pair = pair}, .down = {.from = server, .to = client, .pair = pair}};
    pair->up.last = &pair->up.first;
    pair->down.last = &pair->down.first;
    loop->pairs[loop->pair_count++] = pair;
    watch(loop, &pair->up);
    watch(loop, &pair->down);
}

/* Hands on what is due. Returns when the next is, INT64_MAX for never. */
static int64_t deliver(struct flow *flow, int64_t now)
{
    struct chunk *chunk;
    while ((chunk = flow->first) && chunk->due <= now) {
        flow->first = chunk->next;
        /* Nobody may be there any more: then it is lost, as in a network. */
        for (size_t done = 0; done < chunk->length;) {
            ssize_t sent = send(flow->to, chunk->bytes + done, chunk->length - done, MSG_NOSIGNAL);
            if (sent <= 0)
                break;
            done += (size_t)sent;
        }
        free(chunk);
    }
    if (!flow->first)
        flow->last = &flow->first;
    return flow->first ? flow->first->due : INT64_MAX;
}

/* false: the end of the stream. */
static bool take(struct flow *flow, int64_t due)
{
    static char bytes[65536];
    ssize_t length = recv(flow->from, bytes, sizeof bytes, MSG_DONTWAIT);
    if (length <= 0)
        return false;
    struct chunk *chunk = malloc(sizeof *chunk + (size_t)length);
    if (!chunk)
        die("relay: out of memory");
    *chunk = (struct chunk){.due = due, .length = (size_t)length};
    memcpy(chunk->bytes, bytes, (size_t)length);
    *flow->last = chunk;
    flow->last = &chunk->next;
    return true;
}

/* What was sent before the end still arrives, only sooner. */
static void end_pair(struct loop *loop, int i)
{
    struct pair *pair = loop->pairs[i];
    deliver(&pair->up, INT64_MAX);
    deliver(&pair->down, INT64_MAX);
    close(pair->up.from);
    close(pair->up.to);
    free(pair);
    loop->pairs[i] = loop->pairs[--loop->pair_count];
}

static int64_t deliver_all(struct loop *loop)
{
    int64_t now = now_ns(), next = INT64_MAX;
    for (int i = 0; i < loop->pair_count; i++) {
        int64_t up = deliver(&loop->pairs[i]->up, now), down = deliver(&loop->pairs[i]->down, now);
        next = up < next ? up : next;
        next = down < next ? down : next;
    }
    return next;
}

static void turn(struct loop *loop)
{
    struct epoll_event events[MAX_EVENTS];
    struct pollfd polled = {loop->epoll, POLLIN, 0}; /* a wait for nanoseconds, which epoll_wait has not */
    struct timespec timeout = {0};
    int64_t next = deliver_all(loop), now = now_ns();
    if (next != INT64_MAX && next > now)
        timeout = (struct timespec){(next - now) / 1000000000, (next - now) % 1000000000};
    if (ppoll(&polled, 1, next == INT64_MAX ? NULL : &timeout, NULL) <= 0)
        return;
    int count = epoll_wait(loop->epoll, events, MAX_EVENTS, 0);
    int64_t due = now_ns() + loop->delay_ns;
    for (int i = 0; i < count; i++) {
        struct flow *flow = events[i].data.ptr;
        if (!flow->pair)
            accept_pair(loop, flow);
        else if (!take(flow, due))
            flow->pair->ended = true;
    }
    for (int i = loop->pair_count - 1; i >= 0; i--) { /* the last takes the place of one that ends */
        if (loop->pairs[i]->ended)
            end_pair(loop, i);
    }
}

static _Noreturn void run(struct loop *loop, int parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_TIMERSLACK, 1); /* ns: the default is 50 us */
    if (getppid() != parent)
        _exit(0);
    loop->epoll = epoll_create1(EPOLL_CLOEXEC);
    for (int i = 0; i < loop->count; i++)
        watch(loop, &loop->listeners[i]);
    for (;;)
        turn(loop);
}

void relay_start(struct relay *relay, const struct address *targets, int count, int64_t rtt_us)
{
    struct loop loop = {.targets = targets, .count = count, .delay_ns = rtt_us * 1000 / 2};
    int parent = getpid();
    *relay = (struct relay){.count = count};
    for (int i = 0; i < count; i++) {
        relay->at[i].host = "127.0.0.1";
        loop.listeners[i].from = listen_on_any_port(&relay->at[i].port);
        urls_add(relay->urls, &relay->at[i]);
    }
    relay->pid = fork();
    if (relay->pid < 0)
        die("relay: cannot fork");
    if (relay->pid == 0)
        run(&loop, parent);
    for (int i = 0; i < count; i++)
        close(loop.listeners[i].from);
}

void relay_stop(struct relay *relay)
{
    kill(relay->pid, SIGKILL);
    waitpid(relay->pid, NULL, 0);
}
