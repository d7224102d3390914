/* mariadb.c - the worker for MariaDB's GET_LOCK. The URL is the path of the server's unix socket, or 127.0.0.1:PORT.
 *
 * A lock belongs to its connection and has no lease: it is free when the server sees the connection end. Each thread has its own
 * connection; the wait is the second argument of GET_LOCK, in seconds.
 */
#include <mysql.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker.h"

struct session {
    MYSQL *conn;
    const char *url;
    char key[64];
    bool broken; /* the connection: the next lock makes another */
};
static atomic_llong statements;

/* Whether the statement's one value is 1. */
static bool ask(struct session *session, const char *statement, const char **ret_error)
{
    atomic_fetch_add(&statements, 1);
    *ret_error = "not held or busy";
    if (mysql_query(session->conn, statement)) {
        *ret_error = mysql_error(session->conn);
        session->broken = true;
        return false;
    }
    MYSQL_RES *result = mysql_store_result(session->conn);
    MYSQL_ROW row = result ? mysql_fetch_row(result) : NULL;
    bool yes = row && row[0] && !strcmp(row[0], "1");
    mysql_free_result(result);
    return yes;
}

static bool connect_session(struct session *session)
{
    char host[128];
    snprintf(host, sizeof host, "%s", session->url);
    char *colon = strchr(host, ':');
    if (colon)
        *colon = 0;
    session->conn = mysql_init(NULL);
    if (!session->conn)
        worker_die("out of memory");
    session->broken = !mysql_real_connect(session->conn, colon ? host : NULL, "root", NULL, NULL,
                                          colon ? (unsigned)atoi(colon + 1) : 0, colon ? NULL : session->url, 0);
    return !session->broken;
}

static void *open_session(const char *mode, const char *url)
{
    (void)mode;
    struct session *session = calloc(1, sizeof *session);
    if (!session)
        worker_die("out of memory");
    session->url = url;
    if (!connect_session(session))
        worker_die(mysql_error(session->conn));
    return session;
}

static void close_session(void *data)
{
    struct session *session = data;
    mysql_close(session->conn);
    free(session);
}

static void *acquire(void *data, const char *key, int64_t ttl_ms, int64_t wait_ms, const char **ret_error)
{
    (void)ttl_ms;
    struct session *session = data;
    char statement[160];
    if (session->broken) {
        mysql_close(session->conn);
        if (!connect_session(session)) {
            *ret_error = mysql_error(session->conn);
            return NULL;
        }
    }
    snprintf(session->key, sizeof session->key, "%s", key);
    snprintf(statement, sizeof statement, "SELECT GET_LOCK('%s', %lld.%03d)", session->key, (long long)(wait_ms / 1000),
             (int)(wait_ms % 1000));
    return ask(session, statement, ret_error) ? session : NULL;
}

static bool release(void *data, void *handle, const char **ret_error)
{
    (void)handle;
    struct session *session = data;
    char statement[128];
    snprintf(statement, sizeof statement, "SELECT RELEASE_LOCK('%s')", session->key);
    return ask(session, statement, ret_error);
}

static int64_t commands(void)
{
    return atomic_load(&statements);
}

int main(int argc, char **argv)
{
    static const struct peer peer = {
        .open = open_session, .close = close_session, .acquire = acquire, .release = release, .commands = commands};
    mysql_library_init(0, NULL, NULL);
    return worker_main(argc, argv, &peer);
}
