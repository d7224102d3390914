/* poll_driver.c - see poll_driver.h. */
#include "poll_driver.h"

#include "client.h"
#include "sock.h"

#include <assert.h>

enum { READ_SIZE = 16 * 1024 };

static const rli_span patience = 5 * RLI_MS; /* of a driver that reads */

/* poll(2), under a name that no variable hides. */
static int wait_for(struct pollfd *fds, nfds_t count)
{
    return poll(fds, count, -1);
}

void rli_poll_init(struct rli_poll *poll, struct rli_engine *engine)
{
    poll->last = &poll->sleepers;
    rli_pump_init(&poll->pump, engine);
}

static uint32_t node_count(const struct rli_poll *poll)
{
    return poll->pump.engine->client->terms.nodes;
}

/* What the driver is to wait for at the node's connection. */
static struct rli_watched wish(const struct rli_poll *poll, uint32_t node)
{
    short events = rli_pump_wants_write(&poll->pump, node) ? POLLIN | POLLOUT : POLLIN;
    return (struct rli_watched){.serial = poll->pump.links[node].serial, .events = events};
}

static bool driver_may_wait_on(const struct rli_poll *poll)
{
    if (poll->driver && poll->driver->done)
        return false;
    for (uint32_t i = 0; i < node_count(poll); i++) {
        struct rli_watched now = wish(poll, i);
        if (poll->pump.links[i].fd >= 0 && (now.serial != poll->watched[i].serial || now.events != poll->watched[i].events))
            return false;
    }
    return poll->driven_until <= rli_engine_deadline(poll->pump.engine);
}

/* Has the keeper to do what nobody else does? */
static void call_keeper(struct rli_poll *poll)
{
    const struct rli_engine *engine = poll->pump.engine;

    if (!poll->keeper.resting || (rli_engine_deadline(engine) >= poll->keeper.until && !rli_keep_attends(engine, rli_now())))
        return;
    poll->keeper.resting = false;
    rli_waker_wake(poll->keeper.waker);
}

void rli_poll_flush(struct rli_poll *poll, rli_instant now)
{
    if (poll->pump.engine->dirty)
        rli_pump_flush(&poll->pump, now);
    if (!poll->driving)
        call_keeper(poll);
    else if (!driver_may_wait_on(poll))
        rli_waker_wake(poll->pump.engine->client->waker);
}

/* What the descriptors have to say counts before any deadline that has passed. */
static rli_instant catch_up(struct rli_poll *poll)
{
    rli_pump_look(&poll->pump, true, rli_now());
    rli_engine_tick(poll->pump.engine, rli_now());
    return rli_now();
}

rli_instant rli_poll_prepare(struct rli_poll *poll, bool all)
{
    struct rli_engine *engine = poll->pump.engine;
    rli_instant now = rli_now();

    rli_pump_look(&poll->pump, all, now);
    if (poll->driving)
        return now;
    for (uint32_t i = 0; i < node_count(poll); i++)
        rli_node_resumed(&engine->nodes[i], now);
    return rli_engine_deadline(engine) <= now ? catch_up(poll) : now;
}

static void handle(struct rli_poll *poll, uint32_t node, const struct pollfd *ready, rli_instant now)
{
    if (poll->pump.links[node].serial != poll->watched[node].serial) /* another connection by now */
        return;
    if (poll->pump.links[node].connecting || ready->revents & POLLOUT)
        rli_pump_writable(&poll->pump, node, now);
    if (ready->revents & (POLLIN | POLLHUP | POLLERR))
        rli_pump_readable(&poll->pump, node, now);
}

/* Broken connections first: an operation that the others decide should know of them (rli_extend's settle). */
static void handle_ready(struct rli_poll *poll, const struct pollfd *fds, uint32_t count, rli_instant now)
{
    const short broken = POLLHUP | POLLERR | POLLNVAL;

    for (uint32_t i = 0; i < count; i++)
        if (fds[i].revents & broken)
            handle(poll, i, &fds[i], now);
    for (uint32_t i = 0; i < count; i++)
        if (fds[i].revents && !(fds[i].revents & broken))
            handle(poll, i, &fds[i], now);
    if (fds[count].revents) {
        rli_waker_clear(poll->pump.engine->client->waker);
        rli_pump_lookups(&poll->pump, now);
    }
}

/* Is the answer of the only node all that there is to wait for, and no time near at which there is something else to do? (On a unix
 * socket polling is the faster way.) */
static bool may_read(const struct rli_poll *poll)
{
    const struct rli_node *node = &poll->pump.engine->nodes[0];
    const struct rli_link *link = &poll->pump.links[0];

    return node_count(poll) == 1 && !node->url->path && !poll->silent && node->state == RLI_NODE_READY && node->owed.first &&
           !node->want && !rli_node_unsent(node) && link->fd >= 0 && rli_until(poll->driven_until, node->used) > 4 * patience;
}

static bool lend(struct rli_poll *poll)
{
    const struct rli_link *link = &poll->pump.links[0];

    if (poll->lent != link->serial && rli_sock_lend(link->fd, patience))
        poll->lent = link->serial;
    return poll->lent == link->serial;
}

/* Waits by reading. The mutex is free meanwhile: others may send on the connection, or give it up. */
static rli_instant wait_by_reading(struct rli_poll *poll)
{
    pthread_mutex_t *mutex = &poll->pump.engine->client->mutex;
    const struct rli_link *link = &poll->pump.links[0];
    int fd = link->fd;
    uint32_t serial = link->serial;
    char bytes[READ_SIZE];
    rli_instant now;
    ssize_t n;

    poll->pump.lent = true;
    pthread_mutex_unlock(mutex);
    n = rli_sock_wait(fd, bytes, sizeof bytes);
    pthread_mutex_lock(mutex);
    poll->pump.lent = poll->driving = false;
    poll->silent = n == 0;
    now = rli_now();
    if (serial == link->serial && link->fd >= 0)
        rli_pump_received(&poll->pump, 0, bytes, n, now);
    return now;
}

/* The mutex is free while it waits. The waker is set to the deadline, so the wait itself has no timeout. */
static rli_instant wait_by_polling(struct rli_poll *poll)
{
    const struct rli_engine *engine = poll->pump.engine;
    struct pollfd fds[RL_MAX_NODES + 1];
    uint32_t count = node_count(poll);
    rli_instant now;
    int ready;

    for (uint32_t i = 0; i < count; i++)
        fds[i] = (struct pollfd){.fd = poll->pump.links[i].fd, .events = poll->watched[i].events};
    fds[count] = (struct pollfd){.fd = rli_waker_fd(engine->client->waker), .events = POLLIN};
    pthread_mutex_unlock(&engine->client->mutex);
    ready = wait_for(fds, count + 1);
    pthread_mutex_lock(&engine->client->mutex);
    poll->silent = poll->driving = false;
    now = rli_now();
    if (ready > 0)
        handle_ready(poll, fds, count, now);
    return now;
}

/* One turn: wait, read, judge, write. */
static void turn(struct rli_poll *poll, const struct rli_waiter *waiter, rli_instant until)
{
    struct rli_engine *engine = poll->pump.engine;
    rli_instant now;

    poll->driver = waiter;
    poll->driven_until = rli_min(until, rli_engine_deadline(engine));
    for (uint32_t i = 0; i < node_count(poll); i++)
        poll->watched[i] = wish(poll, i);
    rli_waker_set(engine->client->waker, poll->driven_until); /* if that is past, it is readable */
    poll->driving = true;
    now = may_read(poll) && lend(poll) ? wait_by_reading(poll) : wait_by_polling(poll);
    if (rli_engine_deadline(engine) <= now)
        now = catch_up(poll);
    rli_pump_flush(&poll->pump, now);
}

static void sleep_until_woken(struct rli_poll *poll, struct rli_waiter *waiter)
{
    waiter->next = NULL;
    waiter->link = poll->last;
    *poll->last = waiter;
    poll->last = &waiter->next;
    pthread_cond_init(&waiter->woken, NULL);
    waiter->asleep = true;
    pthread_cond_wait(&waiter->woken, &poll->pump.engine->client->mutex);
    waiter->asleep = false;
    pthread_cond_destroy(&waiter->woken);
    *waiter->link = waiter->next;
    if (waiter->next)
        waiter->next->link = waiter->link;
    else
        poll->last = waiter->link;
}

/* Somebody else must drive now, if anybody waits. */
static void hand_over(const struct rli_poll *poll)
{
    if (!poll->driving && poll->sleepers)
        pthread_cond_signal(&poll->sleepers->woken);
}

void rli_poll_wait(struct rli_poll *poll, struct rli_waiter *waiter)
{
    while (!waiter->done) {
        if (poll->driving)
            sleep_until_woken(poll, waiter);
        else
            turn(poll, waiter, RLI_NEVER);
    }
    if (poll->pump.engine->dirty || poll->driving || poll->keeper.resting)
        rli_poll_flush(poll, rli_now());
    hand_over(poll);
}

void rli_waiter_done(struct rli_waiter *waiter)
{
    waiter->done = true;
    if (waiter->asleep)
        pthread_cond_signal(&waiter->woken);
}

static void rest(struct rli_poll *poll)
{
    pthread_mutex_t *mutex = &poll->pump.engine->client->mutex;
    struct rli_keeper *keeper = &poll->keeper;

    hand_over(poll);
    keeper->until = poll->driving ? RLI_NEVER : rli_engine_deadline(poll->pump.engine); /* who drives calls it when it leaves */
    keeper->resting = true;
    rli_waker_set(keeper->waker, keeper->until);
    pthread_mutex_unlock(mutex);
    rli_alarm_wait(rli_waker_fd(keeper->waker), RLI_NEVER);
    pthread_mutex_lock(mutex);
    rli_waker_clear(keeper->waker);
    keeper->resting = false;
}

void rli_poll_keep(struct rli_poll *poll)
{
    struct rli_engine *engine = poll->pump.engine;

    while (!poll->keeper.stop) {
        rli_instant now = rli_now();
        if (poll->driving || (rli_engine_deadline(engine) > now && !rli_keep_attends(engine, now))) {
            rest(poll);
            continue;
        }
        rli_poll_prepare(poll, false);
        rli_pump_flush(&poll->pump, rli_now());
        turn(poll, NULL, rli_keep_attends(engine, now) ? engine->keep.attend_until : now);
    }
}

void rli_poll_stop_keeping(struct rli_poll *poll)
{
    poll->keeper.stop = true;
    rli_waker_wake(poll->keeper.waker);
    rli_waker_wake(poll->pump.engine->client->waker);
}

/* Could a node that owes still get rid of it before that time? */
static bool worth_waiting(const struct rli_poll *poll, rli_instant until)
{
    for (uint32_t i = 0; i < node_count(poll); i++) {
        const struct rli_node *node = &poll->pump.engine->nodes[i];
        if (rli_node_owes(node) && (node->state != RLI_NODE_OFF || rli_node_deadline(node) < until))
            return true;
        if (node->state == RLI_NODE_DRAINING)
            return true;
    }
    return false;
}

void rli_poll_settle(struct rli_poll *poll, rli_instant until)
{
    for (uint32_t i = 0; i < node_count(poll); i++)
        rli_node_settle_up(&poll->pump.engine->nodes[i], rli_now());
    rli_pump_flush(&poll->pump, rli_now());
    while (rli_now() < until && worth_waiting(poll, until))
        turn(poll, NULL, until);
    rli_pump_close(&poll->pump);
}
