/* postgres.c - the worker for PostgreSQL's session-level advisory locks. The URL is a libpq connection string.
 *
 * A lock belongs to its connection and has no lease: it is free when the server sees the connection end. Each thread has its own
 * connection; the lock and its end are one prepared statement each.
 */
#include <libpq-fe.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker.h"

enum { MESSAGE = 200 };
struct session {
    PGconn *conn;
    char key[128];
    char error[MESSAGE];
};
static atomic_llong statements;

static bool run(struct session *session, const char *statement, const char *key)
{
    const char *values[] = {key};
    atomic_fetch_add(&statements, 1);
    PGresult *result = PQexecPrepared(session->conn, statement, 1, values, NULL, NULL, 0);
    bool answered = PQresultStatus(result) == PGRES_TUPLES_OK;
    bool good = answered && strcmp(PQgetvalue(result, 0, 0), "f"); /* the unlock says whether it was held; the lock, nothing */
    snprintf(session->error, sizeof session->error, "%s", answered ? "the lock was not held" : PQresultErrorMessage(result));
    PQclear(result);
    return good;
}

static bool prepare(struct session *session)
{
    PGresult *lock = PQprepare(session->conn, "lock", "SELECT pg_advisory_lock(hashtextextended($1, 0))", 1, NULL);
    PGresult *unlock = PQprepare(session->conn, "unlock", "SELECT pg_advisory_unlock(hashtextextended($1, 0))", 1, NULL);
    bool good = PQresultStatus(lock) == PGRES_COMMAND_OK && PQresultStatus(unlock) == PGRES_COMMAND_OK;
    snprintf(session->error, sizeof session->error, "%s", PQerrorMessage(session->conn));
    PQclear(lock);
    PQclear(unlock);
    return good;
}

static void *open_session(const char *mode, const char *url)
{
    (void)mode;
    struct session *session = calloc(1, sizeof *session);
    if (!session)
        worker_die("out of memory");
    session->conn = PQconnectdb(url);
    if (PQstatus(session->conn) != CONNECTION_OK || !prepare(session))
        worker_die(PQerrorMessage(session->conn));
    return session;
}

static void close_session(void *data)
{
    struct session *session = data;
    PQfinish(session->conn);
    free(session);
}

/* Waits without a limit, as pg_advisory_lock does: to set one (lock_timeout) would be another statement. */
static void *acquire(void *data, const char *key, int64_t ttl_ms, int64_t wait_ms, const char **ret_error)
{
    (void)ttl_ms, (void)wait_ms;
    struct session *session = data;
    *ret_error = session->error;
    if (PQstatus(session->conn) != CONNECTION_OK) { /* the server was restarted */
        PQreset(session->conn);
        if (!prepare(session))
            return NULL;
    }
    snprintf(session->key, sizeof session->key, "%s", key);
    return run(session, "lock", key) ? session : NULL;
}

static bool release(void *data, void *handle, const char **ret_error)
{
    (void)handle;
    struct session *session = data;
    *ret_error = session->error;
    return run(session, "unlock", session->key);
}

static int64_t commands(void)
{
    return atomic_load(&statements);
}

int main(int argc, char **argv)
{
    static const struct peer peer = {
        .open = open_session, .close = close_session, .acquire = acquire, .release = release, .commands = commands};
    return worker_main(argc, argv, &peer);
}
