/* server.h - real Redis servers for tests: each in a fresh directory, on a free loopback port or a unix socket, gone with the test.
 *
 * The binary is RL_TEST_SERVER (a name or a path), or redis-server. Every server runs with --save "" --appendonly no and
 * protected mode off, unless the caller's arguments say otherwise. Start them from the thread that runs the tests: the kernel
 * kills a server when the thread that started it ends.
 *
 * The commands below go over one connection of the fixture's own (so it counts in INFO: compare differences). It is opened again
 * after a restart. They fail the test if the server does not answer within 5 s, so not on a paused one.
 */
#ifndef TS_SERVER_H
#define TS_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <hiredis/hiredis.h>

typedef struct ts_server ts_server;

typedef struct ts_server_options {
    const char *const
        *args; /* more arguments, NULL-terminated; copied. One word each: "--user", "bob", "on", ">pw", "~*", "+@all" */
    const char *const *env; /* more environment, NULL-terminated, as NAME=value (LD_PRELOAD of a shim); copied */
    bool unix_socket;       /* listen on a unix socket only */
    const char *user;       /* whom the fixture logs in as; NULL = default */
    const char *password;   /* NULL = that of --requirepass in args, if any */
} ts_server_options;

/* Start a server and wait until it answers PING. args: NULL-terminated, or NULL. */
ts_server *ts_server_start(const char *const *args);
ts_server *ts_server_start_with(const ts_server_options *options);
/* Kills the server, removes its directory, frees the fixture. NULL is fine. */
void ts_server_stop(ts_server *server);

/* End the process only; ts_server_restart can bring it back. */
void ts_server_term(ts_server *server); /* SIGTERM: saves what it is configured to save */
void ts_server_kill(ts_server *server); /* SIGKILL */
/* Ends it by SIGTERM if it runs; starts it again on the same port, in the same directory; waits for PING. Memory is lost unless
 * it was persisted. */
void ts_server_restart(ts_server *server);
/* The same in two steps: other things may be done while it comes up. */
void ts_server_launch(ts_server *server);
void ts_server_await(ts_server *server);

void ts_server_pause(ts_server *server);  /* SIGSTOP; returns when all of it stands still */
void ts_server_resume(ts_server *server); /* SIGCONT; no effect on a running one */

int ts_server_port(const ts_server *server);         /* 0 with a unix socket */
const char *ts_server_url(const ts_server *server);  /* redis://127.0.0.1:PORT or unix://PATH; no user or password */
const char *ts_server_path(const ts_server *server); /* of the unix socket; NULL with TCP */
const char *ts_server_dir(const ts_server *server);
pid_t ts_server_pid(const ts_server *server); /* 0 while it does not run */
bool ts_server_is_valkey(ts_server *server);

/* Several servers at once: all are started before the first is waited for. */
enum { TS_MAX_SERVERS = 32 };
typedef struct ts_servers {
    int count;
    ts_server *at[TS_MAX_SERVERS];
    char urls[TS_MAX_SERVERS * 64]; /* joined by commas */
} ts_servers;
void ts_servers_start(ts_servers *ret_servers, int count, const char *const *args);
void ts_servers_stop(ts_servers *servers);
int ts_servers_holding(ts_servers *servers, const char *key); /* on how many of the running, unpaused ones the key exists */

/* ---- Keys ------------------------------------------------------------------------------------------------------------------ */

char *ts_get(ts_server *server, const char *key);                     /* to be freed; NULL if there is no such key */
bool ts_holds(ts_server *server, const char *key, const char *value); /* whether the key has exactly this value */
void ts_set_px(ts_server *server, const char *key, const char *value, int64_t px_ms); /* px_ms 0 = for ever */
bool ts_del(ts_server *server, const char *key);
int64_t ts_pttl(ts_server *server, const char *key); /* -1 no expiry, -2 no key */
bool ts_exists(ts_server *server, const char *key);
int64_t ts_dbsize(ts_server *server);
bool ts_wait_absent(ts_server *server, const char *key, int64_t ms);  /* polls; false if it is still there after ms */
bool ts_wait_present(ts_server *server, const char *key, int64_t ms); /* polls; false if it did not appear within ms */

/* ---- Anything else --------------------------------------------------------------------------------------------------------- */

/* Run a command, formatted like redisCommand. What they return belongs to the fixture until the next command on this server.
 * ts_reply: the reply, an error reply too. ts_command: it as text: "OK", "12", "(nil)", a string, or an error's own words; the
 * elements of an array joined by newlines. ts_command_int: an integer (or a string that is one); anything else fails the test. */
redisReply *ts_reply(ts_server *server, const char *format, ...);
const char *ts_command(ts_server *server, const char *format, ...);
int64_t ts_command_int(ts_server *server, const char *format, ...);

/* A field of INFO ALL: as text (the fixture's until the next command; NULL if there is none), or as a number (else the test
 * fails). */
const char *ts_info(ts_server *server, const char *field);
int64_t ts_info_int(ts_server *server, const char *field);
/* How often a command was called, from INFO commandstats: "set", "evalsha", "client|kill". 0 if never. */
int64_t ts_calls(ts_server *server, const char *command);

#endif
