/* zookeeper.c - the worker for ZooKeeper, with the lock recipe of its documentation on the C client's synchronous calls. The URL is
 * host:port.
 *
 * A contender makes an ephemeral sequential node under the lock's node; the lowest number holds the lock, and each other one
 * watches the node before its own. A crashed holder's node goes with its session. Each waiter has a session of its own, as it would
 * have in a process of its own.
 */
#define THREADED /* the synchronous calls are only declared with it */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <zookeeper/zookeeper.h>

#include "worker.h"

enum { SESSION_MS = 2000, PATH = 160, CONNECT_MS = 10000 };

struct session {
    zhandle_t *zh;
    char url[64];
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    unsigned events; /* how many watches have fired */
};

static void on_event(zhandle_t *zh, int type, int state, const char *path, void *context)
{
    (void)zh, (void)type, (void)state, (void)path;
    struct session *session = context;
    pthread_mutex_lock(&session->mutex);
    session->events++;
    pthread_cond_broadcast(&session->changed);
    pthread_mutex_unlock(&session->mutex);
}

/* Until a watch fires after `seen` were counted, or until the time is over. */
static void await(struct session *session, unsigned seen, int64_t until_us)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    int64_t us = until_us - worker_now_us(), ns = until.tv_nsec + us % 1000000 * 1000;
    until.tv_sec += us / 1000000 + ns / 1000000000;
    until.tv_nsec = ns % 1000000000;
    pthread_mutex_lock(&session->mutex);
    while (us > 0 && session->events == seen && !pthread_cond_timedwait(&session->changed, &session->mutex, &until))
        ;
    pthread_mutex_unlock(&session->mutex);
}

static unsigned events(struct session *session)
{
    pthread_mutex_lock(&session->mutex);
    unsigned seen = session->events;
    pthread_mutex_unlock(&session->mutex);
    return seen;
}

static bool connect_session(struct session *session)
{
    unsigned seen = events(session);
    session->zh = zookeeper_init(session->url, on_event, SESSION_MS, NULL, session, 0);
    int64_t until = worker_now_us() + CONNECT_MS * 1000;
    while (session->zh && zoo_state(session->zh) != ZOO_CONNECTED_STATE && worker_now_us() < until) {
        await(session, seen, until);
        seen = events(session);
    }
    return session->zh && zoo_state(session->zh) == ZOO_CONNECTED_STATE;
}

static void *open_session(const char *mode, const char *url)
{
    (void)mode;
    struct session *session = calloc(1, sizeof *session);
    if (!session)
        worker_die("out of memory");
    snprintf(session->url, sizeof session->url, "%s", url);
    pthread_mutex_init(&session->mutex, NULL);
    pthread_cond_init(&session->changed, NULL);
    zoo_set_debug_level((ZooLogLevel)0);
    if (!connect_session(session))
        worker_die("no connection to ZooKeeper");
    return session;
}

static void close_session(void *data)
{
    struct session *session = data;
    zookeeper_close(session->zh);
    free(session);
}

/* The name of the node that comes before `mine` in order, into `before`; false if there is none: ours is the lowest. All names have
 * the same length. */
static bool predecessor(const struct String_vector *children, const char *mine, char *before)
{
    bool found = false;
    for (int i = 0; i < children->count; i++) {
        const char *name = children->data[i];
        if (strcmp(name, mine) < 0 && (!found || strcmp(name, before) > 0)) {
            snprintf(before, PATH, "%s", name);
            found = true;
        }
    }
    return found;
}

/* Waits until the own node is the lowest: ZOK, or what went wrong. */
static int wait_turn(struct session *session, const char *parent, const char *own, int64_t until_us)
{
    for (;;) {
        struct String_vector children;
        char before[PATH], path[2 * PATH];
        int rc = zoo_get_children(session->zh, parent, 0, &children);
        if (rc)
            return rc;
        bool waits = predecessor(&children, strrchr(own, '/') + 1, before);
        deallocate_String_vector(&children);
        if (!waits)
            return ZOK;
        unsigned seen = events(session);
        snprintf(path, sizeof path, "%s/%s", parent, before);
        rc = zoo_wexists(session->zh, path, on_event, session, NULL);
        if (rc == ZOK)
            await(session, seen, until_us);
        else if (rc != ZNONODE)
            return rc;
        if (worker_now_us() >= until_us)
            return ZOPERATIONTIMEOUT;
    }
}

static void *acquire(void *data, const char *key, int64_t ttl_ms, int64_t wait_ms, const char **ret_error)
{
    (void)ttl_ms;
    struct session *session = data;
    char parent[PATH], path[2 * PATH], *own = malloc(PATH);
    if (zoo_state(session->zh) == ZOO_EXPIRED_SESSION_STATE) {
        zookeeper_close(session->zh);
        connect_session(session);
    }
    snprintf(parent, sizeof parent, "/%s", key);
    snprintf(path, sizeof path, "%s/n-", parent);
    int rc = zoo_create(session->zh, path, NULL, -1, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL | ZOO_SEQUENCE, own, PATH);
    if (rc == ZNONODE) { /* the first use of this lock */
        zoo_create(session->zh, parent, NULL, -1, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0);
        rc = zoo_create(session->zh, path, NULL, -1, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL | ZOO_SEQUENCE, own, PATH);
    }
    if (rc == ZOK && (rc = wait_turn(session, parent, own, worker_now_us() + wait_ms * 1000)))
        zoo_delete(session->zh, own, -1);
    if (rc == ZOK)
        return own;
    *ret_error = zerror(rc);
    free(own);
    return NULL;
}

static bool release(void *data, void *own, const char **ret_error)
{
    struct session *session = data;
    int rc = zoo_delete(session->zh, own, -1);
    free(own);
    *ret_error = zerror(rc);
    return rc == ZOK;
}

int main(int argc, char **argv)
{
    static const struct peer peer = {.open = open_session, .close = close_session, .acquire = acquire, .release = release};
    return worker_main(argc, argv, &peer);
}
