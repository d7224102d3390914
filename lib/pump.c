/* pump.c - see pump.h. */
#include "pump.h"

#include "client.h"
#include "sock.h"

#include <errno.h>

enum { READ_SIZE = 16 * 1024, MOST_READS = 16 };

void rli_pump_init(struct rli_link *links, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        links[i] = (struct rli_link){.fd = -1};
}

static void close_link(struct rli_link *link)
{
    if (link->fd >= 0)
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
    if (!link->connecting)
        rli_node_connected(node, now);
}

static void take_lookup(struct rli_node *node, struct rli_link *link, rli_instant now)
{
    struct rli_address addresses[RLI_MAX_ADDRESSES];
    const char *error;
    uint32_t count;

    if (!link->lookup || !rli_lookup_done(link->lookup, addresses, &count, &error))
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
        if (n == 0)
            return;
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

static void flush_node(struct rli_engine *engine, struct rli_node *node, struct rli_link *link, rli_instant now)
{
    if (take(node, RLI_WANT_CLOSE))
        close_link(link);
    if (take(node, RLI_WANT_RESOLVE))
        resolve_node(engine, node, link, now);
    if (take(node, RLI_WANT_CONNECT)) {
        close_link(link);
        connect_node(node, link, now);
    }
    send_out(node, link, now);
    if (node->want & RLI_WANT_SHUTDOWN && !rli_node_unsent(node) && link->fd >= 0) {
        take(node, RLI_WANT_SHUTDOWN);
        rli_sock_shut(link->fd);
    }
}

void rli_pump_flush(struct rli_engine *engine, struct rli_link *links, rli_instant now)
{
    while (engine->dirty) {
        uint32_t i = (uint32_t)__builtin_ctz(engine->dirty);
        engine->dirty &= ~rli_bit(i);
        flush_node(engine, &engine->nodes[i], &links[i], now);
    }
}

bool rli_pump_wants_write(const struct rli_engine *engine, const struct rli_link *links, uint32_t node)
{
    return links[node].fd >= 0 && (links[node].connecting || rli_node_unsent(&engine->nodes[node]));
}

void rli_pump_readable(struct rli_engine *engine, struct rli_link *links, uint32_t node, rli_instant now)
{
    struct rli_link *link = &links[node];
    char bytes[READ_SIZE];

    for (int i = 0; i < MOST_READS && link->fd >= 0 && !link->connecting; i++) {
        ssize_t n = rli_sock_receive(link->fd, bytes, sizeof bytes);
        if (n < 0)
            rli_node_ended(&engine->nodes[node], (int)-n, now);
        else if (n > 0)
            rli_node_received(&engine->nodes[node], bytes, (size_t)n, now);
        if (engine->nodes[node].want & RLI_WANT_CLOSE)
            return;
        if (n < READ_SIZE) /* that was all there was */
            return;
    }
}

void rli_pump_writable(struct rli_engine *engine, struct rli_link *links, uint32_t node, rli_instant now)
{
    struct rli_link *link = &links[node];
    int rc;

    if (link->fd >= 0 && link->connecting) {
        rc = rli_sock_connected(link->fd);
        link->connecting = false;
        if (rc)
            rli_node_failed(&engine->nodes[node], -rc, now);
        else
            rli_node_connected(&engine->nodes[node], now);
    }
    rli_engine_dirty(engine, node);
}

void rli_pump_lookups(struct rli_engine *engine, struct rli_link *links, rli_instant now)
{
    for (uint32_t i = 0; i < rli_engine_terms(engine)->nodes; i++)
        take_lookup(&engine->nodes[i], &links[i], now);
}

void rli_pump_look(struct rli_engine *engine, struct rli_link *links, bool all, rli_instant now)
{
    for (uint32_t i = 0; i < rli_engine_terms(engine)->nodes; i++) {
        const struct rli_node *node = &engine->nodes[i];
        if (rli_node_wants_look(node, now) || (all && node->state == RLI_NODE_READY && node->owed.first))
            rli_pump_readable(engine, links, i, now);
    }
}

void rli_pump_close(struct rli_link *links, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        close_link(&links[i]);
        rli_lookup_drop(links[i].lookup);
        links[i].lookup = NULL;
    }
}
