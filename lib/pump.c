/* pump.c - see pump.h. */
#include "pump.h"

#include "client.h"
#include "sock.h"

#include <errno.h>

enum { READ_SIZE = 16 * 1024, MOST_READS = 16 };

void rli_pump_init(struct rli_pump *pump, struct rli_engine *engine)
{
    *pump = (struct rli_pump){.engine = engine};
    for (uint32_t i = 0; i < RL_MAX_NODES; i++)
        pump->links[i].fd = -1;
}

static void close_link(struct rli_pump *pump, uint32_t node)
{
    struct rli_link *link = &pump->links[node];

    if (link->fd < 0)
        return;
    if (pump->closing)
        pump->closing(pump, node);
    rli_sock_close(link->fd);
    link->fd = -1;
    link->connecting = false;
}

static void connect_node(struct rli_node *node, struct rli_link *link, rli_instant now)
{
    int fd = rli_sock_open(&node->addresses[node->address % node->address_count], &link->connecting);

    if (fd < 0) {
        rli_node_failed(node, -fd, now);
        return;
    }
    link->fd = fd;
    link->serial++;
    if (!link->connecting)
        rli_node_connected(node, now);
}

static void take_lookup(struct rli_node *node, struct rli_link *link, rli_instant now)
{
    struct rli_address addresses[RLI_MAX_ADDRESSES];
    const char *error;
    uint32_t count;

    if (node->state != RLI_NODE_RESOLVING || !link->lookup) /* one that ended late waits for the next time */
        return;
    if (!rli_lookup_done(link->lookup, addresses, &count, &error))
        return;
    for (uint32_t i = 0; i < count; i++)
        node->addresses[i] = addresses[i];
    rli_node_resolved(node, count, error, now);
    rli_lookup_drop(link->lookup);
    link->lookup = NULL;
}

static void resolve_node(struct rli_engine *engine, struct rli_node *node, struct rli_link *link, rli_instant now)
{
    if (!link->lookup) /* else one is in flight still */
        link->lookup = rli_lookup_start(engine->client->waker, node->url->host, node->url->port);
    if (!link->lookup)
        rli_node_failed(node, EAGAIN, now);
    else
        take_lookup(node, link, now);
}

static void send_out(struct rli_node *node, struct rli_link *link, rli_instant now)
{
    while (link->fd >= 0 && !link->connecting && rli_node_unsent(node) && !(node->want & RLI_WANT_CLOSE)) {
        ssize_t n = rli_sock_send(link->fd, node->out.bytes + node->out.from, rli_node_unsent(node));
        if (n == 0) {
            rli_node_blocked(node, now);
            return;
        }
        if (n < 0)
            rli_node_ended(node, (int)-n, now);
        else
            rli_node_sent(node, (size_t)n, now);
    }
}

/* Takes one wish off the node. */
static bool take(struct rli_node *node, enum rli_want want)
{
    bool is = node->want & want;
    node->want &= ~(uint32_t)want;
    return is;
}

static void flush_node(struct rli_pump *pump, uint32_t i, rli_instant now)
{
    struct rli_node *node = &pump->engine->nodes[i];
    struct rli_link *link = &pump->links[i];

    if (take(node, RLI_WANT_CLOSE))
        close_link(pump, i);
    if (take(node, RLI_WANT_RESOLVE))
        resolve_node(pump->engine, node, link, now);
    if (take(node, RLI_WANT_CONNECT)) {
        close_link(pump, i);
        connect_node(node, link, now);
    }
    send_out(node, link, now);
    if (link->fd >= 0 && !rli_node_unsent(node) && take(node, RLI_WANT_SHUTDOWN))
        rli_sock_shut(link->fd);
}

void rli_pump_flush(struct rli_pump *pump, rli_instant now)
{
    while (pump->engine->dirty) {
        uint32_t i = (uint32_t)__builtin_ctz(pump->engine->dirty);
        pump->engine->dirty &= ~rli_bit(i);
        flush_node(pump, i, now);
    }
}

bool rli_pump_wants_write(const struct rli_pump *pump, uint32_t node)
{
    const struct rli_link *link = &pump->links[node];
    return link->fd >= 0 && (link->connecting || rli_node_unsent(&pump->engine->nodes[node]));
}

void rli_pump_received(struct rli_pump *pump, uint32_t i, const char *bytes, ssize_t size, rli_instant now)
{
    struct rli_node *node = &pump->engine->nodes[i];

    if (node->want & RLI_WANT_CLOSE) /* the node is done with this connection */
        return;
    if (size < 0)
        rli_node_ended(node, (int)-size, now);
    else if (size > 0)
        rli_node_received(node, bytes, (size_t)size, now);
}

void rli_pump_readable(struct rli_pump *pump, uint32_t i, rli_instant now)
{
    struct rli_node *node = &pump->engine->nodes[i];
    struct rli_link *link = &pump->links[i];
    char bytes[READ_SIZE];

    for (int reads = 0; reads < MOST_READS && link->fd >= 0 && !link->connecting && !pump->lent; reads++) {
        if (node->want & RLI_WANT_CLOSE)
            return;
        ssize_t n = rli_sock_receive(link->fd, bytes, sizeof bytes);
        rli_pump_received(pump, i, bytes, n, now);
        if (n < READ_SIZE) /* that was all there was */
            return;
    }
}

void rli_pump_writable(struct rli_pump *pump, uint32_t i, rli_instant now)
{
    const struct rli_node *node = &pump->engine->nodes[i];
    struct rli_link *link = &pump->links[i];
    int rc;

    if (node->want & RLI_WANT_CLOSE) /* the node is done with this connection */
        return;
    if (link->fd >= 0 && link->connecting) {
        rc = rli_sock_connected(link->fd);
        if (rc > 0) /* not yet */
            return;
        link->connecting = false;
        if (rc)
            rli_node_failed(&pump->engine->nodes[i], -rc, now);
        else
            rli_node_connected(&pump->engine->nodes[i], now);
    }
    rli_engine_dirty(pump->engine, i);
}

void rli_pump_lookups(struct rli_pump *pump, rli_instant now)
{
    for (uint32_t i = 0; i < rli_engine_terms(pump->engine)->nodes; i++)
        take_lookup(&pump->engine->nodes[i], &pump->links[i], now);
}

void rli_pump_look(struct rli_pump *pump, bool all, rli_instant now)
{
    for (uint32_t i = 0; i < rli_engine_terms(pump->engine)->nodes; i++) {
        const struct rli_node *node = &pump->engine->nodes[i];
        if (node->state == RLI_NODE_RESOLVING)
            take_lookup(&pump->engine->nodes[i], &pump->links[i], now);
        else if (node->state == RLI_NODE_CONNECTING && pump->links[i].connecting)
            rli_pump_writable(pump, i, now);
        else if (node->state == RLI_NODE_GREETING || rli_node_wants_look(node, now) ||
                 (all && node->state == RLI_NODE_READY && node->owed.first))
            rli_pump_readable(pump, i, now);
    }
}

void rli_pump_close(struct rli_pump *pump)
{
    for (uint32_t i = 0; i < rli_engine_terms(pump->engine)->nodes; i++) {
        struct rli_node *node = &pump->engine->nodes[i];
        struct rli_link *link = &pump->links[i];
        if (link->fd >= 0 && !link->connecting && rli_node_unsent(node))
            (void)rli_sock_send(link->fd, node->out.bytes + node->out.from, rli_node_unsent(node));
        if (link->fd >= 0 && rli_node_owes(node))
            rli_sock_shut(link->fd); /* the server may yet read to the end of it */
        close_link(pump, i);
        rli_lookup_drop(link->lookup);
        link->lookup = NULL;
    }
}
