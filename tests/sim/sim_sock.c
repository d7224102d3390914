/* sim_sock.c - the library's sockets in a simulated world: TCP as an application sees it.
 *
 * Each direction of a connection is a stream of segments with delays of their own, in order. Bytes under way when a client closes
 * still arrive; a server that answers a closed client has the connection reset, and what it had not read may be dropped. */
#include "sock.h"

#include "world.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct segment { /* under way, in a list of all */
    struct segment *next, **link;
    int conn;
    bool to_server;
    size_t size;
    char bytes[];
};

struct conn {
    int client, server;
    bool used;
    bool client_open;   /* the client has not closed it */
    bool server_open;   /* the server has it, or will have once it is up */
    bool connecting;    /* no outcome yet */
    int outcome;        /* errno of the connect */
    bool lost_syn;      /* no outcome ever */
    bool client_shut;   /* the client sends no more */
    bool end;           /* end of stream has reached the client */
    int error;          /* a reset has reached the client */
    true_time up, down; /* arrival of the last segment to the server, to the client */
    char *in;           /* arrived, not yet read by the client */
    size_t in_size;
    int coming; /* segments under way to the client */
    char address[32];
};

static struct conn conns[MAX_CONNS];
static int conn_count;
static true_time stalled_until[MAX_SERVERS + 1], trickles_until[MAX_SERVERS + 1];
static struct segment *under_way;

static struct conn *of_fd(int fd)
{
    return &conns[fd - FIRST_FD];
}

static int number(const struct conn *conn)
{
    return (int)(conn - conns);
}

static void segment_free(struct segment *segment)
{
    *segment->link = segment->next;
    if (segment->next)
        segment->next->link = segment->link;
    free(segment);
}

void net_begin(void)
{
    conn_count = 0;
    memset(stalled_until, 0, sizeof stalled_until);
    memset(trickles_until, 0, sizeof trickles_until);
}

void net_end(void)
{
    while (under_way)
        segment_free(under_way);
    for (int i = 0; i < conn_count; i++) {
        if (conns[i].client_open && !world_failed)
            violated("descriptor of connection %d was never closed", i);
        free(conns[i].in);
    }
}

int net_conn_server(int conn)
{
    return conns[conn].server;
}

const char *net_address(int conn)
{
    return conns[conn].address;
}

static true_time arrival(const struct conn *conn, true_time last)
{
    true_time from = client_current() >= 0 ? client_present() : world_now;
    true_time when = from + between(20 * 1000, world_now < nature.chaos_ends ? nature.delay_most : MS);

    if (world_now < nature.chaos_ends && conn->server > nature.safe && one_in(60))
        when += between(1, 2000) * MS;
    if (stalled_until[conn->server] > when)
        when = stalled_until[conn->server] + between(0, MS);
    return when > last ? when : last;
}

/* ---- Connecting -------------------------------------------------------------------------------------------------------------------- */

static void connect_ends(void *arg)
{
    struct conn *conn = arg;

    if (!conn->used || !conn->connecting || !conn->client_open)
        return;
    conn->connecting = false;
    conn->outcome = server_is_up(conn->server) ? 0 : ECONNREFUSED;
    conn->server_open = conn->outcome == 0;
    client_poke(conn->client);
}

int rli_sock_open(const struct rli_address *address, bool *ret_connecting)
{
    struct conn *conn = &conns[conn_count];
    int server = address->bytes[0];

    if (conn_count == MAX_CONNS) {
        violated("a connection is opened again and again");
        return -EMFILE;
    }
    if (!server_is_up(server) && one_in(2))
        return -ECONNREFUSED;
    *conn = (struct conn){.client = client_current(), .server = server, .used = true, .client_open = true, .connecting = true};
    snprintf(conn->address, sizeof conn->address, "10.1.0.%d:%d", conn->client, conn_count);
    conn_count++;
    *ret_connecting = true;
    if (world_now < nature.chaos_ends && server > nature.safe && one_in(30))
        conn->lost_syn = true;
    else
        world_at(arrival(conn, 0), connect_ends, conn);
    return FIRST_FD + number(conn);
}

int rli_sock_connected(int fd)
{
    return of_fd(fd)->connecting ? 1 : -of_fd(fd)->outcome;
}

bool net_connect_ended(int fd)
{
    return !of_fd(fd)->connecting;
}

/* ---- Bytes --------------------------------------------------------------------------------------------------------------------------- */

static void reset(struct conn *conn)
{
    if (conn->server_open)
        server_lost(number(conn));
    conn->server_open = false;
    if (conn->client_open && !conn->error) {
        conn->error = ECONNRESET;
        client_poke(conn->client);
    }
}

static void arrives(void *arg)
{
    struct segment *segment = arg;
    struct conn *conn = &conns[segment->conn];

    conn->coming -= !segment->to_server;
    if (segment->to_server) {
        if (conn->server_open && segment->size)
            server_receive(segment->conn, segment->bytes, segment->size);
        else if (conn->server_open) /* the client's end of stream */
            server_ended(segment->conn);
    } else if (!conn->client_open) {
        if (conn->server_open && segment->size)
            reset(conn); /* nobody reads this any more */
    } else if (segment->size) {
        conn->in = realloc(conn->in, conn->in_size + segment->size);
        memcpy(conn->in + conn->in_size, segment->bytes, segment->size);
        conn->in_size += segment->size;
        client_poke(conn->client);
    } else {
        conn->end = true;
        client_poke(conn->client);
    }
    segment_free(segment);
}

static void travel(struct conn *conn, bool to_server, const char *bytes, size_t size)
{
    struct segment *segment = malloc(sizeof *segment + size);
    true_time *last = to_server ? &conn->up : &conn->down;

    if (!segment)
        abort();
    *segment = (struct segment){.next = under_way, .link = &under_way, .conn = number(conn), .to_server = to_server, .size = size};
    if (under_way)
        under_way->link = &segment->next;
    under_way = segment;
    if (size)
        memcpy(segment->bytes, bytes, size);
    conn->coming += !to_server;
    *last = arrival(conn, *last);
    world_at(*last, arrives, segment);
}

/* Now and then one write arrives in pieces. */
static void travel_in_pieces(struct conn *conn, bool to_server, const char *bytes, size_t size)
{
    bool trickles = trickles_until[conn->server] > world_now;

    while (size > 1 && (trickles || one_in(10))) {
        size_t most = trickles ? size / 64 + 1 : size - 1;
        size_t piece = (size_t)between(1, (int64_t)most);
        travel(conn, to_server, bytes, piece);
        bytes += piece;
        size -= piece;
    }
    travel(conn, to_server, bytes, size);
}

ssize_t rli_sock_send(int fd, const void *bytes, size_t size)
{
    struct conn *conn = of_fd(fd);

    if (one_in(500)) /* stopped right before it sends */
        client_stumble(between(1, 400) * MS);
    if (conn->error)
        return -conn->error;
    if (size > 1 && one_in(50))
        size = (size_t)between(1, (int64_t)size - 1);
    travel_in_pieces(conn, true, bytes, size);
    return (ssize_t)size;
}

bool net_readable(int fd)
{
    const struct conn *conn = of_fd(fd);
    return conn->in_size || conn->end || conn->error;
}

ssize_t rli_sock_receive(int fd, void *bytes, size_t size)
{
    struct conn *conn = of_fd(fd);

    if (conn->error) {
        note("connection %d to server %d is broken", number(conn), conn->server);
        return -conn->error;
    }
    if (!conn->in_size)
        return conn->end ? -ECONNRESET : 0;
    if (size > conn->in_size)
        size = conn->in_size;
    client_heard();
    memcpy(bytes, conn->in, size);
    conn->in_size -= size;
    memmove(conn->in, conn->in + size, conn->in_size);
    return (ssize_t)size;
}

void rli_sock_shut(int fd)
{
    struct conn *conn = of_fd(fd);

    if (!conn->client_shut && !conn->error)
        travel(conn, true, NULL, 0);
    conn->client_shut = true;
}

void rli_sock_close(int fd)
{
    note("closes connection %d to server %d", number(of_fd(fd)), of_fd(fd)->server);
    rli_sock_shut(fd);
    of_fd(fd)->client_open = false;
}

/* ---- The server's side ------------------------------------------------------------------------------------------------------------------ */

void net_reply(int conn, const char *bytes, size_t size)
{
    travel_in_pieces(&conns[conn], false, bytes, size);
}

void net_server_closes(int conn)
{
    if (!conns[conn].server_open)
        return;
    server_lost(conn);
    conns[conn].server_open = false;
    travel(&conns[conn], false, NULL, 0);
}

void net_server_died(int server)
{
    for (int i = 0; i < conn_count; i++)
        if (conns[i].used && conns[i].server == server && conns[i].server_open)
            reset(&conns[i]);
}

/* ---- Trouble -------------------------------------------------------------------------------------------------------------------------------- */

/* A middlebox forgets a connection: the client sees a reset, what is under way may still arrive. */
void net_reset_some(void)
{
    struct conn *conn = conn_count ? &conns[between(conn_count > 8 ? conn_count - 8 : 0, conn_count - 1)] : NULL;

    if (!conn || !conn->client_open || conn->error || conn->server <= nature.safe)
        return;
    note("connection %d of client %d to server %d is reset", number(conn), conn->client, conn->server);
    conn->error = ECONNRESET;
    client_poke(conn->client);
    if (one_in(2)) {
        if (conn->server_open)
            server_lost(number(conn));
        conn->server_open = false;
    }
}

void net_stall(int server, int64_t length)
{
    note("nothing passes to or from server %d for %lld ms", server, (long long)(length / MS));
    stalled_until[server] = world_now + length;
}

void net_trickle(int server, int64_t length)
{
    note("to and from server %d bytes come one by one for %lld ms", server, (long long)(length / MS));
    trickles_until[server] = world_now + length;
}

bool net_is_whole(int conn)
{
    return conns[conn].client_open && conns[conn].server_open && !conns[conn].error && !conns[conn].in_size && !conns[conn].coming;
}
