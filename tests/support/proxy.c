/* proxy.c - see proxy.h.
 *
 * One thread owns everything but the mailbox: the calls of the header hand it a function to run and wait until it has, so that
 * nothing else needs a lock and each call has taken effect when it returns.
 */
#include "proxy.h"

#include "check.h"
#include "net.h"
#include "resp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

/* The two ends of a connection, and the two flows: flow i reads from end i and writes to the other. */
enum { CLIENT = 0, SERVER = 1, UP = 0, DOWN = 1 };

/* A piece of a flow on its way, or something to be done when all before it is written. */
typedef enum ts_act { ACT_BYTES, ACT_END, ACT_RESET } ts_act;
typedef struct ts_chunk {
    struct ts_chunk *next;
    ts_act act;
    int64_t due;
    size_t len, done;
    char bytes[];
} ts_chunk;

typedef struct ts_flow {
    char *in; /* read, not yet a whole request or reply */
    size_t in_len, in_room;
    bool raw;       /* not RESP: handed on as it comes */
    bool in_ended;  /* nothing more will be read */
    bool out_ended; /* the end was written, or nobody is there to write to */
    bool blocked;   /* the last write found no room */
    ts_chunk *first, *last;
    int64_t delay;     /* of this connection alone */
    int64_t last_due;  /* nothing overtakes */
    int64_t next_byte; /* trickling: not before */
} ts_flow;

/* What is to happen to the reply of a forwarded request; or bytes that stand for a request that was not forwarded. */
typedef enum owed_kind { OWED_PASS, OWED_SWALLOW, OWED_RESET_INSTEAD, OWED_RESET_AFTER, OWED_DELAY, OWED_CANNED } owed_kind;
typedef struct ts_owed {
    struct ts_owed *next;
    owed_kind kind;
    int64_t arg;
    char *bytes;
} ts_owed;

typedef struct ts_pair {
    struct ts_pair *next;
    int fd[2];
    bool ignored, connecting, held;
    ts_flow flow[2];
    ts_owed *owed_first, *owed_last;
} ts_pair;

typedef struct ts_plan {
    char *name; /* NULL = any */
    int skip;
    ts_fault kind;
    int64_t arg;
} ts_plan;

typedef struct ts_canned {
    char *name;
    int times;
    char *bytes;
} ts_canned;

typedef struct ts_tally {
    char name[64];
    int64_t count;
} ts_tally;

typedef void order_fn(ts_proxy *proxy, void *arg);

struct ts_proxy {
    /* set once */
    pthread_t thread;
    int port, guard, wake;
    char url[64];

    /* the mailbox */
    pthread_mutex_t lock;
    pthread_cond_t done;
    order_fn *order;
    void *order_arg;
    int64_t obeyed; /* orders so far */

    /* the thread's */
    bool stopping;
    int listener;
    struct sockaddr_in target;
    ts_pair *conns;
    int64_t delay[2], delay_next[2], trickle[2];
    bool drop[2], ignore;
    int reset_after; /* -1 = never */
    ts_plan *faults;
    size_t fault_count;
    ts_canned *answers;
    size_t answer_count;
    ts_tally *tallies;
    size_t tally_count;
    ts_proxy_stats stats;
    struct pollfd *polled;
    size_t polled_room;
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

/* ---- Flows ----------------------------------------------------------------------------------------------------------------- */

static void drop_first_chunk(ts_flow *flow)
{
    ts_chunk *first = flow->first;
    flow->first = first->next;
    if (flow->first == NULL) {
        flow->last = NULL;
    }
    free(first);
}

static void drop_chunks(ts_flow *flow)
{
    while (flow->first != NULL) {
        drop_first_chunk(flow);
    }
    flow->blocked = false;
}

static void push(ts_proxy *proxy, ts_pair *conn, int dir, ts_act act, const void *bytes, size_t len)
{
    ts_flow *flow = &conn->flow[dir];
    if (flow->out_ended || (act == ACT_BYTES && len == 0)) {
        return;
    }
    ts_chunk *new = must(malloc(sizeof *new + len));
    int64_t delay = proxy->delay[dir] + flow->delay;
    int64_t due = ts_mono_ms() + delay + (delay > 0); /* the clock is rounded down */
    flow->last_due = due > flow->last_due ? due : flow->last_due;
    *new = (ts_chunk){NULL, act, flow->last_due, len, 0};
    if (len > 0) {
        memcpy(new->bytes, bytes, len);
    }
    if (flow->last == NULL) {
        flow->first = new;
    } else {
        flow->last->next = new;
    }
    flow->last = new;
}

static void postpone(ts_flow *flow, int64_t ms)
{
    int64_t due = ts_mono_ms() + ms + 1;
    flow->last_due = due > flow->last_due ? due : flow->last_due;
}

/* Closes one end; what was on its way to it is lost. */
static void close_end(ts_pair *conn, int end, bool reset)
{
    if (conn->fd[end] >= 0) {
        struct linger now = {1, 0};
        if (reset) {
            setsockopt(conn->fd[end], SOL_SOCKET, SO_LINGER, &now, sizeof now);
        }
        ts_fd_close(conn->fd[end]);
        conn->fd[end] = -1;
    }
    conn->flow[end].in_ended = true;
    conn->flow[!end].out_ended = true;
    drop_chunks(&conn->flow[!end]);
}

/* No more will come from the end that this flow reads: passes on what is left, and the news. */
static void end_flow(ts_proxy *proxy, ts_pair *conn, int dir, ts_act act)
{
    ts_flow *flow = &conn->flow[dir];
    if (!proxy->drop[dir]) {
        push(proxy, conn, dir, ACT_BYTES, flow->in, flow->in_len);
        push(proxy, conn, dir, act, NULL, 0);
    }
    flow->in_len = 0;
    flow->in_ended = true;
}

static void reset_client(ts_proxy *proxy, ts_pair *conn)
{
    bool ended = conn->flow[UP].in_ended;
    close_end(conn, CLIENT, true);
    if (!ended) {
        end_flow(proxy, conn, UP, ACT_END);
    }
}

static void reset_both(ts_pair *conn)
{
    close_end(conn, CLIENT, true);
    close_end(conn, SERVER, true);
    conn->flow[UP].in_len = conn->flow[DOWN].in_len = 0;
}

/* Writes some bytes of the first chunk. false = not now. */
static bool write_bytes(ts_proxy *proxy, ts_pair *conn, int dir, int64_t now)
{
    ts_flow *flow = &conn->flow[dir];
    ts_chunk *first = flow->first;
    size_t len = first->len - first->done;
    if (proxy->trickle[dir] > 0) {
        if (now < flow->next_byte) {
            return false;
        }
        len = len > 1 ? 1 : len;
        flow->next_byte = now + proxy->trickle[dir];
    }
    ssize_t n = send(conn->fd[!dir], first->bytes + first->done, len, MSG_NOSIGNAL);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        flow->blocked = true;
        return false;
    }
    if (n < 0) {
        /* What it sent before it went may still be unread: leave the descriptor to the reading side. */
        flow->out_ended = true;
        drop_chunks(flow);
        return false;
    }
    first->done += (size_t)n;
    if (first->done == first->len) {
        drop_first_chunk(flow);
    }
    return true;
}

static void write_flow(ts_proxy *proxy, ts_pair *conn, int dir, int64_t now)
{
    ts_flow *flow = &conn->flow[dir];
    flow->blocked = false;
    while (flow->first != NULL && flow->first->due <= now && conn->fd[!dir] >= 0 && !conn->connecting &&
           !(dir == UP && conn->held)) {
        ts_act act = flow->first->act;
        if (act == ACT_BYTES) {
            if (!write_bytes(proxy, conn, dir, now)) {
                return;
            }
            continue;
        }
        drop_first_chunk(flow);
        if (act == ACT_RESET) {
            reset_client(proxy, conn); /* only ever on the way down */
        } else {
            shutdown(conn->fd[!dir], SHUT_WR);
            flow->out_ended = true;
            drop_chunks(flow);
        }
    }
}

/* ---- Requests -------------------------------------------------------------------------------------------------------------- */

static void count_request(ts_proxy *proxy, const ts_words *words)
{
    static const char *const containers[] = {"CLIENT", "SCRIPT", "CONFIG", "ACL", "DEBUG", "FUNCTION", "COMMAND"};
    char name[sizeof proxy->tallies->name];
    int len = snprintf(name, sizeof name, "%.*s", (int)words->len[0], words->word[0]);
    for (size_t i = 0; i < sizeof containers / sizeof containers[0]; i++) {
        if (words->count > 1 && ts_resp_is(words, containers[i])) {
            snprintf(name + len, sizeof name - (size_t)len, " %.*s", (int)words->len[1], words->word[1]);
        }
    }
    size_t i = 0;
    while (i < proxy->tally_count && strcasecmp(proxy->tallies[i].name, name) != 0) {
        i++;
    }
    if (i == proxy->tally_count) {
        proxy->tallies = must(realloc(proxy->tallies, ++proxy->tally_count * sizeof *proxy->tallies));
        memcpy(proxy->tallies[i].name, name, sizeof name);
        proxy->tallies[i].count = 0;
    }
    proxy->tallies[i].count++;
    proxy->stats.requests++;
}

/* Takes the first pending fault that this request meets out of the list. */
static bool take_fault(ts_proxy *proxy, const ts_words *words, ts_plan *ret)
{
    for (size_t i = 0; i < proxy->fault_count; i++) {
        ts_plan *fault = &proxy->faults[i];
        if (!ts_resp_is(words, fault->name)) {
            continue;
        }
        if (fault->skip > 0) {
            fault->skip--;
            continue;
        }
        *ret = *fault;
        free(fault->name);
        memmove(fault, fault + 1, (--proxy->fault_count - i) * sizeof *fault);
        return true;
    }
    return false;
}

/* The bytes that stand for this request, to be freed; NULL = it is to be forwarded. */
static char *take_answer(ts_proxy *proxy, const ts_words *words)
{
    for (size_t i = 0; i < proxy->answer_count; i++) {
        ts_canned *answer = &proxy->answers[i];
        if (answer->times != 0 && ts_resp_is(words, answer->name)) {
            answer->times -= answer->times > 0;
            return copy(answer->bytes);
        }
    }
    return NULL;
}

static void owe(ts_pair *conn, owed_kind kind, int64_t arg, char *bytes)
{
    ts_owed *new = must(malloc(sizeof *new));
    *new = (ts_owed){NULL, kind, arg, bytes};
    if (conn->owed_last == NULL) {
        conn->owed_first = new;
    } else {
        conn->owed_last->next = new;
    }
    conn->owed_last = new;
}

static ts_owed take_owed(ts_pair *conn)
{
    ts_owed none = {NULL, OWED_PASS, 0, NULL};
    ts_owed *first = conn->owed_first;
    if (first == NULL) {
        return none; /* nobody asked: a server that sends by itself */
    }
    ts_owed taken = *first;
    conn->owed_first = first->next;
    if (conn->owed_first == NULL) {
        conn->owed_last = NULL;
    }
    free(first);
    return taken;
}

static void send_reply(ts_proxy *proxy, ts_pair *conn, const char *bytes, size_t len)
{
    if (proxy->drop[DOWN]) {
        return;
    }
    push(proxy, conn, DOWN, ACT_BYTES, bytes, len);
    if (proxy->reset_after > 0 && --proxy->reset_after == 0) {
        proxy->reset_after = -1;
        push(proxy, conn, DOWN, ACT_RESET, NULL, 0);
    }
}

static void send_canned(ts_proxy *proxy, ts_pair *conn)
{
    while (conn->owed_first != NULL && conn->owed_first->kind == OWED_CANNED) {
        ts_owed canned = take_owed(conn);
        send_reply(proxy, conn, canned.bytes, strlen(canned.bytes));
        free(canned.bytes);
    }
}

static void forward(ts_proxy *proxy, ts_pair *conn, const char *bytes, size_t len, owed_kind kind, int64_t arg)
{
    if (!proxy->drop[UP]) {
        push(proxy, conn, UP, ACT_BYTES, bytes, len);
        owe(conn, kind, arg, NULL);
    }
}

static void meet_fault(ts_proxy *proxy, ts_pair *conn, const ts_plan *fault, const char *bytes, size_t len)
{
    switch (fault->kind) {
    case TS_RESET_BEFORE:
        reset_both(conn);
        break;
    case TS_RESET_UNANSWERED:
        forward(proxy, conn, bytes, len, OWED_RESET_INSTEAD, 0);
        break;
    case TS_RESET_ANSWERED:
        forward(proxy, conn, bytes, len, OWED_RESET_AFTER, 0);
        break;
    case TS_SWALLOW_REQUEST:
        break;
    case TS_SWALLOW_REPLY:
        forward(proxy, conn, bytes, len, OWED_SWALLOW, 0);
        break;
    case TS_DELAY_REPLY:
        forward(proxy, conn, bytes, len, OWED_DELAY, fault->arg);
        break;
    case TS_DELAY_REQUEST:
        postpone(&conn->flow[UP], fault->arg);
        forward(proxy, conn, bytes, len, OWED_PASS, 0);
        break;
    case TS_HOLD:
    case TS_HOLD_AND_CUT:
        conn->held = true;
        forward(proxy, conn, bytes, len, OWED_PASS, 0);
        if (fault->kind == TS_HOLD_AND_CUT) {
            reset_client(proxy, conn);
        }
        break;
    }
}

static void on_request(ts_proxy *proxy, ts_pair *conn, const ts_words *words, const char *bytes, size_t len)
{
    ts_plan fault;
    char *canned;
    count_request(proxy, words);
    if (proxy->reset_after == 0) {
        proxy->reset_after = -1;
        reset_both(conn);
    } else if (take_fault(proxy, words, &fault)) {
        meet_fault(proxy, conn, &fault, bytes, len);
    } else if ((canned = take_answer(proxy, words)) != NULL) {
        owe(conn, OWED_CANNED, 0, canned);
        send_canned(proxy, conn);
    } else {
        forward(proxy, conn, bytes, len, OWED_PASS, 0);
    }
}

static void on_reply(ts_proxy *proxy, ts_pair *conn, const char *bytes, size_t len)
{
    ts_owed owed = take_owed(conn);
    proxy->stats.replies++;
    if (owed.kind == OWED_RESET_INSTEAD) {
        reset_client(proxy, conn);
        return;
    }
    if (owed.kind == OWED_DELAY) {
        postpone(&conn->flow[DOWN], owed.arg);
    }
    if (owed.kind != OWED_SWALLOW) {
        send_reply(proxy, conn, bytes, len);
    }
    if (owed.kind == OWED_RESET_AFTER) {
        push(proxy, conn, DOWN, ACT_RESET, NULL, 0);
    }
    send_canned(proxy, conn);
}

/* ---- Reading --------------------------------------------------------------------------------------------------------------- */

/* Deals with one whole request or reply; true if it was one. */
static bool take_element(ts_proxy *proxy, ts_pair *conn, int dir, const char *bytes, size_t len)
{
    ts_words words;
    if (dir == DOWN) {
        on_reply(proxy, conn, bytes, len);
    } else if (ts_resp_words(bytes, len, &words)) {
        on_request(proxy, conn, &words, bytes, len);
    } else {
        return false;
    }
    return true;
}

static void take_elements(ts_proxy *proxy, ts_pair *conn, int dir)
{
    ts_flow *flow = &conn->flow[dir];
    while (flow->in_len > 0) {
        ssize_t len = flow->raw ? -1 : ts_resp_length(flow->in, flow->in_len);
        if (len == 0) {
            return;
        }
        /* Taken out first: a fault may end the flow, which passes on all that is still in. */
        size_t taken = len < 0 ? flow->in_len : (size_t)len;
        char *bytes = must(malloc(taken));
        memcpy(bytes, flow->in, taken);
        flow->in_len -= taken;
        memmove(flow->in, flow->in + taken, flow->in_len);
        if (len < 0 || !take_element(proxy, conn, dir, bytes, taken)) {
            flow->raw = true;
            if (!proxy->drop[dir]) {
                push(proxy, conn, dir, ACT_BYTES, bytes, taken);
            }
        }
        free(bytes);
    }
}

/* Something went wrong with the socket of this end: it was reset, most likely. */
static void lose_end(ts_proxy *proxy, ts_pair *conn, int end)
{
    close_end(conn, end, false);
    end_flow(proxy, conn, end, end == SERVER ? ACT_RESET : ACT_END);
}

static void read_end(ts_proxy *proxy, ts_pair *conn, int end)
{
    ts_flow *flow = &conn->flow[end];
    while (conn->fd[end] >= 0 && !flow->in_ended) {
        enum { PIECE = 16384 };
        if (flow->in_room - flow->in_len < PIECE) {
            flow->in_room = flow->in_room * 2 + PIECE;
            flow->in = must(realloc(flow->in, flow->in_room));
        }
        ssize_t n = recv(conn->fd[end], flow->in + flow->in_len, PIECE, 0);
        if (n > 0) {
            *(end == CLIENT ? &proxy->stats.bytes_up : &proxy->stats.bytes_down) += n;
            flow->in_len += (size_t)n;
            take_elements(proxy, conn, end);
        } else if (n == 0) {
            end_flow(proxy, conn, end, ACT_END);
        } else if (errno == EAGAIN) {
            return;
        } else if (errno != EINTR) {
            lose_end(proxy, conn, end);
        }
    }
}

/* ---- Connections ----------------------------------------------------------------------------------------------------------- */

static void connect_to_server(ts_proxy *proxy, ts_pair *conn)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1;
    ts_fd_own(fd);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    conn->fd[SERVER] = fd;
    conn->connecting = true;
    if (connect(fd, (struct sockaddr *)&proxy->target, sizeof proxy->target) == 0) {
        conn->connecting = false;
    } else if (errno != EINPROGRESS) {
        conn->connecting = false;
        reset_both(conn);
    }
}

static void finish_connecting(ts_pair *conn)
{
    int error = 0;
    socklen_t len = sizeof error;
    getsockopt(conn->fd[SERVER], SOL_SOCKET, SO_ERROR, &error, &len);
    conn->connecting = false;
    if (error != 0) {
        reset_both(conn);
    }
}

static void accept_client(ts_proxy *proxy)
{
    int fd = accept4(proxy->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC), on = 1;
    if (fd < 0) {
        return;
    }
    ts_fd_own(fd);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    proxy->stats.connections++;
    ts_pair *new = must(calloc(1, sizeof *new));
    new->fd[CLIENT] = fd;
    new->fd[SERVER] = -1;
    for (int dir = UP; dir <= DOWN; dir++) {
        new->flow[dir].delay = proxy->delay_next[dir];
        proxy->delay_next[dir] = 0;
    }
    ts_pair **last = &proxy->conns;
    while (*last != NULL) {
        last = &(*last)->next;
    }
    *last = new;
    new->ignored = proxy->ignore;
    if (!new->ignored) {
        connect_to_server(proxy, new);
    }
}

static void free_conn(ts_pair *conn)
{
    close_end(conn, CLIENT, false);
    close_end(conn, SERVER, false);
    while (conn->owed_first != NULL) {
        free(take_owed(conn).bytes);
    }
    free(conn->flow[UP].in);
    free(conn->flow[DOWN].in);
    free(conn);
}

/* Closes ends that have nothing left to do. */
static void settle(ts_pair *conn)
{
    ts_flow *up = &conn->flow[UP], *down = &conn->flow[DOWN];
    if (conn->ignored) {
        return;
    }
    if (conn->fd[SERVER] >= 0 && down->in_ended && (up->out_ended || conn->fd[CLIENT] < 0)) {
        close_end(conn, SERVER, false);
    }
    if (conn->fd[CLIENT] >= 0 && down->out_ended && (up->in_ended || conn->fd[SERVER] < 0)) {
        close_end(conn, CLIENT, false);
    }
}

static void tend_conns(ts_proxy *proxy)
{
    int64_t now = ts_mono_ms();
    for (ts_pair **at = &proxy->conns; *at != NULL;) {
        ts_pair *conn = *at;
        write_flow(proxy, conn, UP, now);
        write_flow(proxy, conn, DOWN, now);
        settle(conn);
        if (conn->fd[CLIENT] < 0 && conn->fd[SERVER] < 0) {
            *at = conn->next;
            free_conn(conn);
        } else {
            at = &conn->next;
        }
    }
}

/* ---- The thread ------------------------------------------------------------------------------------------------------------ */

static short wanted_events(const ts_pair *conn, int end)
{
    int events = 0;
    if (end == SERVER && conn->connecting) {
        return POLLOUT;
    }
    events |= !conn->flow[end].in_ended && !conn->ignored ? POLLIN : 0;
    events |= conn->flow[!end].blocked ? POLLOUT : 0;
    return (short)events;
}

/* When the flow wants to write next; -1 = not by itself. */
static int64_t next_write(const ts_proxy *proxy, const ts_pair *conn, int dir)
{
    const ts_flow *flow = &conn->flow[dir];
    if (flow->first == NULL || flow->blocked || conn->connecting || conn->fd[!dir] < 0 || (dir == UP && conn->held)) {
        return -1;
    }
    bool waits = proxy->trickle[dir] > 0 && flow->first->act == ACT_BYTES && flow->next_byte > flow->first->due;
    return waits ? flow->next_byte : flow->first->due;
}

/* Fills the array: the mailbox, the listener, then two for each connection. Returns how long to wait. */
static int prepare_poll(ts_proxy *proxy, size_t *ret_count)
{
    size_t count = 2;
    for (ts_pair *conn = proxy->conns; conn != NULL; conn = conn->next) {
        count += 2;
    }
    if (count > proxy->polled_room) {
        proxy->polled_room = count * 2;
        proxy->polled = must(realloc(proxy->polled, proxy->polled_room * sizeof *proxy->polled));
    }
    proxy->polled[0] = (struct pollfd){proxy->wake, POLLIN, 0};
    proxy->polled[1] = (struct pollfd){proxy->listener, POLLIN, 0};
    struct pollfd *next = proxy->polled + 2;
    int64_t now = ts_mono_ms(), soonest = now + 60000;
    for (ts_pair *conn = proxy->conns; conn != NULL; conn = conn->next) {
        for (int end = CLIENT; end <= SERVER; end++) {
            short events = wanted_events(conn, end);
            *next++ = (struct pollfd){events != 0 ? conn->fd[end] : -1, events, 0};
            int64_t at = next_write(proxy, conn, end);
            soonest = at >= 0 && at < soonest ? at : soonest;
        }
    }
    *ret_count = count;
    return soonest <= now ? 0 : (int)(soonest - now);
}

static void handle_events(ts_proxy *proxy)
{
    const struct pollfd *polled = proxy->polled + 2;
    for (ts_pair *conn = proxy->conns; conn != NULL; conn = conn->next) {
        if (polled[SERVER].revents != 0 && conn->connecting) {
            finish_connecting(conn);
        } else if (polled[SERVER].revents & (POLLIN | POLLERR | POLLHUP)) {
            read_end(proxy, conn, SERVER);
        }
        if (polled[CLIENT].revents & (POLLIN | POLLERR | POLLHUP)) {
            read_end(proxy, conn, CLIENT);
        }
        polled += 2;
    }
    if (proxy->polled[1].revents & POLLIN) {
        accept_client(proxy);
    }
}

static void obey(ts_proxy *proxy)
{
    uint64_t ignored;
    ssize_t n = read(proxy->wake, &ignored, sizeof ignored);
    (void)n;
    pthread_mutex_lock(&proxy->lock);
    if (proxy->order != NULL) {
        proxy->order(proxy, proxy->order_arg);
        proxy->order = NULL;
        proxy->obeyed++;
        pthread_cond_broadcast(&proxy->done);
    }
    pthread_mutex_unlock(&proxy->lock);
}

static void *run(void *arg)
{
    ts_proxy *proxy = arg;
    while (!proxy->stopping) {
        size_t count;
        tend_conns(proxy);
        int timeout = prepare_poll(proxy, &count);
        if (poll(proxy->polled, (nfds_t)count, timeout) > 0) {
            handle_events(proxy);
        }
        if (proxy->polled[0].revents != 0) {
            obey(proxy);
        }
    }
    return NULL;
}

/* Has the thread run fn(proxy, arg), and waits until it has. */
static void on_thread(ts_proxy *proxy, order_fn *fn, void *arg)
{
    uint64_t one = 1;
    pthread_mutex_lock(&proxy->lock);
    while (proxy->order != NULL) {
        pthread_cond_wait(&proxy->done, &proxy->lock);
    }
    int64_t ticket = proxy->obeyed + 1;
    proxy->order = fn;
    proxy->order_arg = arg;
    ssize_t n = write(proxy->wake, &one, sizeof one);
    (void)n;
    while (proxy->obeyed < ticket) {
        pthread_cond_wait(&proxy->done, &proxy->lock);
    }
    pthread_mutex_unlock(&proxy->lock);
}

/* ---- Making and ending ----------------------------------------------------------------------------------------------------- */

static void stop_proxy(void *proxy)
{
    ts_proxy_stop(proxy);
}

ts_proxy *ts_proxy_start(const char *host, int port)
{
    ts_proxy *proxy = must(calloc(1, sizeof *proxy));
    proxy->port = ts_port_reserve(&proxy->guard);
    snprintf(proxy->url, sizeof proxy->url, "redis://127.0.0.1:%d", proxy->port);
    proxy->listener = ts_listen(proxy->port, 128);
    proxy->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    ts_fd_own(proxy->wake);
    proxy->target.sin_family = AF_INET;
    proxy->target.sin_port = htons((uint16_t)port);
    proxy->reset_after = -1;
    pthread_mutex_init(&proxy->lock, NULL);
    pthread_cond_init(&proxy->done, NULL);
    ts_check(inet_pton(AF_INET, host, &proxy->target.sin_addr) == 1, "no numeric IPv4 address: %s", host);
    ts_check(proxy->listener >= 0 && proxy->wake >= 0, "proxy: %s", strerror(errno));
    /* Signals are for the thread that runs the tests. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&proxy->thread, NULL, run, proxy);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    ts_check(error == 0, "proxy: %s", strerror(error));
    ts_cleanup_add(stop_proxy, proxy);
    return proxy;
}

ts_proxy *ts_proxy_to(const ts_server *server)
{
    ts_check(ts_server_port(server) != 0, "%s is not on TCP", ts_server_url(server));
    return ts_proxy_start("127.0.0.1", ts_server_port(server));
}

static void clear_plans(ts_proxy *proxy)
{
    for (size_t i = 0; i < proxy->fault_count; i++) {
        free(proxy->faults[i].name);
    }
    for (size_t i = 0; i < proxy->answer_count; i++) {
        free(proxy->answers[i].name);
        free(proxy->answers[i].bytes);
    }
    proxy->fault_count = proxy->answer_count = 0;
    proxy->reset_after = -1;
}

static void order_stop(ts_proxy *proxy, void *arg)
{
    (void)arg;
    proxy->stopping = true;
}

void ts_proxy_stop(ts_proxy *proxy)
{
    if (proxy == NULL) {
        return;
    }
    ts_cleanup_remove(proxy);
    on_thread(proxy, order_stop, NULL);
    pthread_join(proxy->thread, NULL);
    while (proxy->conns != NULL) {
        ts_pair *next = proxy->conns->next;
        free_conn(proxy->conns);
        proxy->conns = next;
    }
    clear_plans(proxy);
    ts_fd_close(proxy->listener);
    ts_fd_close(proxy->wake);
    ts_port_release(proxy->guard);
    pthread_mutex_destroy(&proxy->lock);
    pthread_cond_destroy(&proxy->done);
    free(proxy->faults);
    free(proxy->answers);
    free(proxy->tallies);
    free(proxy->polled);
    free(proxy);
}

int ts_proxy_port(const ts_proxy *proxy)
{
    return proxy->port;
}

const char *ts_proxy_url(const ts_proxy *proxy)
{
    return proxy->url;
}

/* ---- Conditions ------------------------------------------------------------------------------------------------------------ */

/* The arguments of most calls. */
typedef struct ts_setting {
    ts_dir dir;
    int64_t value;
} ts_setting;

static void order_delay(ts_proxy *proxy, void *arg)
{
    ts_setting *set = arg;
    for (int dir = UP; dir <= DOWN; dir++) {
        proxy->delay[dir] = (int)set->dir & 1 << dir ? set->value : proxy->delay[dir];
    }
}

void ts_proxy_delay(ts_proxy *proxy, ts_dir dir, int64_t ms)
{
    on_thread(proxy, order_delay, &(ts_setting){dir, ms});
}

static void order_delay_next(ts_proxy *proxy, void *arg)
{
    ts_setting *set = arg;
    for (int dir = UP; dir <= DOWN; dir++) {
        proxy->delay_next[dir] = (int)set->dir & 1 << dir ? set->value : proxy->delay_next[dir];
    }
}

void ts_proxy_delay_next(ts_proxy *proxy, ts_dir dir, int64_t ms)
{
    on_thread(proxy, order_delay_next, &(ts_setting){dir, ms});
}

static void order_drop(ts_proxy *proxy, void *arg)
{
    ts_setting *set = arg;
    for (int dir = UP; dir <= DOWN; dir++) {
        proxy->drop[dir] = (int)set->dir & 1 << dir ? set->value != 0 : proxy->drop[dir];
    }
}

void ts_proxy_drop(ts_proxy *proxy, ts_dir dir, bool on)
{
    on_thread(proxy, order_drop, &(ts_setting){dir, on});
}

static void order_trickle(ts_proxy *proxy, void *arg)
{
    ts_setting *set = arg;
    for (int dir = UP; dir <= DOWN; dir++) {
        proxy->trickle[dir] = (int)set->dir & 1 << dir ? set->value : proxy->trickle[dir];
    }
}

void ts_proxy_trickle(ts_proxy *proxy, ts_dir dir, int64_t ms)
{
    on_thread(proxy, order_trickle, &(ts_setting){dir, ms});
}

static void order_ignore(ts_proxy *proxy, void *arg)
{
    proxy->ignore = ((ts_setting *)arg)->value != 0;
    for (ts_pair *conn = proxy->conns; conn != NULL && !proxy->ignore; conn = conn->next) {
        if (conn->ignored) {
            conn->ignored = false;
            connect_to_server(proxy, conn);
        }
    }
}

void ts_proxy_ignore(ts_proxy *proxy, bool on)
{
    on_thread(proxy, order_ignore, &(ts_setting){TS_BOTH, on});
}

static void order_refuse(ts_proxy *proxy, void *arg)
{
    if (((ts_setting *)arg)->value != 0) {
        ts_fd_close(proxy->listener);
        proxy->listener = -1;
    } else if (proxy->listener < 0) {
        proxy->listener = ts_listen(proxy->port, 128);
    }
}

static void order_look(ts_proxy *proxy, void *arg)
{
    ((ts_setting *)arg)->value = proxy->listener;
}

static void check_listening(ts_proxy *proxy)
{
    ts_setting set = {TS_BOTH, 0};
    on_thread(proxy, order_look, &set);
    ts_check(set.value >= 0, "%s: somebody else took the port", proxy->url);
}

void ts_proxy_refuse(ts_proxy *proxy, bool on)
{
    on_thread(proxy, order_refuse, &(ts_setting){TS_BOTH, on});
    if (!on) {
        check_listening(proxy);
    }
}

static void order_target(ts_proxy *proxy, void *arg)
{
    proxy->target.sin_port = htons((uint16_t)((ts_setting *)arg)->value);
}

void ts_proxy_target(ts_proxy *proxy, int port)
{
    on_thread(proxy, order_target, &(ts_setting){TS_BOTH, port});
}

static void order_clear(ts_proxy *proxy, void *arg)
{
    ts_setting none = {TS_BOTH, 0};
    (void)arg;
    order_delay(proxy, &none);
    order_delay_next(proxy, &none);
    order_drop(proxy, &none);
    order_trickle(proxy, &none);
    order_ignore(proxy, &none);
    order_refuse(proxy, &none);
    clear_plans(proxy);
}

void ts_proxy_clear(ts_proxy *proxy)
{
    on_thread(proxy, order_clear, NULL);
    check_listening(proxy);
}

/* ---- Now ------------------------------------------------------------------------------------------------------------------- */

static void order_reset(ts_proxy *proxy, void *arg)
{
    bool reset = ((ts_setting *)arg)->value != 0;
    for (ts_pair *conn = proxy->conns; conn != NULL; conn = conn->next) {
        close_end(conn, CLIENT, reset);
        close_end(conn, SERVER, reset);
    }
    tend_conns(proxy);
}

void ts_proxy_reset(ts_proxy *proxy)
{
    on_thread(proxy, order_reset, &(ts_setting){TS_BOTH, 1});
}

void ts_proxy_close(ts_proxy *proxy)
{
    on_thread(proxy, order_reset, &(ts_setting){TS_BOTH, 0});
}

static void order_hold(ts_proxy *proxy, void *arg)
{
    for (ts_pair *conn = proxy->conns; conn != NULL; conn = conn->next) {
        conn->held = ((ts_setting *)arg)->value != 0;
    }
}

void ts_proxy_hold(ts_proxy *proxy)
{
    on_thread(proxy, order_hold, &(ts_setting){TS_BOTH, 1});
}

void ts_proxy_unhold(ts_proxy *proxy)
{
    on_thread(proxy, order_hold, &(ts_setting){TS_BOTH, 0});
}

static void order_cut(ts_proxy *proxy, void *arg)
{
    (void)arg;
    for (ts_pair *conn = proxy->conns; conn != NULL; conn = conn->next) {
        read_end(proxy, conn, CLIENT); /* what has arrived is to be held, not lost with the reset */
        reset_client(proxy, conn);
    }
}

void ts_proxy_cut(ts_proxy *proxy)
{
    on_thread(proxy, order_cut, NULL);
}

/* ---- At a certain request -------------------------------------------------------------------------------------------------- */

static void order_fault(ts_proxy *proxy, void *arg)
{
    proxy->faults = must(realloc(proxy->faults, (proxy->fault_count + 1) * sizeof *proxy->faults));
    proxy->faults[proxy->fault_count++] = *(ts_plan *)arg;
}

void ts_proxy_fault(ts_proxy *proxy, const char *command, int skip, ts_fault kind, int64_t arg)
{
    on_thread(proxy, order_fault, &(ts_plan){copy(command), skip, kind, arg});
}

static void order_answer(ts_proxy *proxy, void *arg)
{
    proxy->answers = must(realloc(proxy->answers, (proxy->answer_count + 1) * sizeof *proxy->answers));
    proxy->answers[proxy->answer_count++] = *(ts_canned *)arg;
}

void ts_proxy_answer(ts_proxy *proxy, const char *command, int times, const char *bytes)
{
    on_thread(proxy, order_answer, &(ts_canned){copy(command), times, copy(bytes)});
}

static void order_reset_after(ts_proxy *proxy, void *arg)
{
    proxy->reset_after = (int)((ts_setting *)arg)->value;
}

void ts_proxy_reset_after(ts_proxy *proxy, int count)
{
    on_thread(proxy, order_reset_after, &(ts_setting){TS_BOTH, count});
}

/* ---- What was seen --------------------------------------------------------------------------------------------------------- */

static int64_t bytes_waiting(const ts_flow *flow)
{
    int64_t bytes = 0;
    for (const ts_chunk *chunk = flow->first; chunk != NULL; chunk = chunk->next) {
        bytes += (int64_t)(chunk->len - chunk->done);
    }
    return bytes;
}

static void order_stats(ts_proxy *proxy, void *arg)
{
    ts_proxy_stats *stats = arg;
    *stats = proxy->stats;
    stats->pending_faults = (int)proxy->fault_count + (proxy->reset_after >= 0);
    for (ts_pair *conn = proxy->conns; conn != NULL; conn = conn->next) {
        stats->open += conn->fd[CLIENT] >= 0 && !conn->flow[UP].in_ended;
        stats->bytes_held += conn->held ? bytes_waiting(&conn->flow[UP]) : 0;
    }
}

ts_proxy_stats ts_proxy_seen(ts_proxy *proxy)
{
    ts_proxy_stats stats;
    on_thread(proxy, order_stats, &stats);
    return stats;
}

typedef struct ts_question {
    ts_proxy *proxy;
    const char *command;
    int64_t count;
} ts_question;

/* The tally of "CLIENT KILL" answers to both "CLIENT KILL" and "CLIENT". */
static void order_requests(ts_proxy *proxy, void *arg)
{
    ts_question *question = arg;
    size_t len = strlen(question->command);
    for (size_t i = 0; i < proxy->tally_count; i++) {
        const char *name = proxy->tallies[i].name;
        if (strncasecmp(name, question->command, len) == 0 && (name[len] == '\0' || name[len] == ' ')) {
            question->count += proxy->tallies[i].count;
        }
    }
}

int64_t ts_proxy_requests(ts_proxy *proxy, const char *command)
{
    ts_question question = {proxy, command, 0};
    on_thread(proxy, order_requests, &question);
    return question.count;
}

static bool has_requests(void *arg)
{
    ts_question *question = arg;
    return ts_proxy_requests(question->proxy, question->command) >= question->count;
}

bool ts_proxy_wait_requests(ts_proxy *proxy, const char *command, int64_t count, int64_t ms)
{
    return ts_eventually(ms, has_requests, &(ts_question){proxy, command, count});
}

static bool has_open(void *arg)
{
    ts_question *question = arg;
    return ts_proxy_seen(question->proxy).open == question->count;
}

bool ts_proxy_wait_open(ts_proxy *proxy, int count, int64_t ms)
{
    return ts_eventually(ms, has_open, &(ts_question){proxy, NULL, count});
}

static bool has_no_faults(void *proxy)
{
    return ts_proxy_seen(proxy).pending_faults == 0;
}

bool ts_proxy_wait_faults(ts_proxy *proxy, int64_t ms)
{
    return ts_eventually(ms, has_no_faults, proxy);
}

static bool has_held(void *arg)
{
    ts_question *question = arg;
    return ts_proxy_seen(question->proxy).bytes_held >= question->count;
}

bool ts_proxy_wait_held(ts_proxy *proxy, int64_t bytes, int64_t ms)
{
    return ts_eventually(ms, has_held, &(ts_question){proxy, NULL, bytes});
}
