/* proxy.h - a TCP proxy between the library and a server that does to the traffic what bad networks do.
 *
 * It reads whole requests and whole replies (RESP2) and hands them on, so that a fault can be aimed at a command; a request is
 * taken to have one reply (so aim nothing at what follows a SUBSCRIBE). A stream that is not RESP is handed on as it comes. What
 * a side sent before it ended is still delivered, in order and in its time, then the end itself. Each call takes effect before it
 * returns: for everything read after that, on old and new connections, unless it says otherwise. "Up" is from the client to the
 * server.
 */
#ifndef TS_PROXY_H
#define TS_PROXY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server.h"

typedef struct ts_proxy ts_proxy;
typedef enum ts_dir { TS_UP = 1, TS_DOWN = 2, TS_BOTH = 3 } ts_dir;

ts_proxy *ts_proxy_start(const char *host, int port); /* host: a numeric IPv4 address */
ts_proxy *ts_proxy_to(const ts_server *server);       /* which must listen on TCP; may be down */
void ts_proxy_stop(ts_proxy *proxy);                  /* NULL is fine */
int ts_proxy_port(const ts_proxy *proxy);
const char *ts_proxy_url(const ts_proxy *proxy); /* redis://127.0.0.1:PORT */

/* ---- Lasting conditions ---------------------------------------------------------------------------------------------------- */

void ts_proxy_delay(ts_proxy *proxy, ts_dir dir, int64_t ms); /* 0 = no longer (what is delayed stays so) */
/* The same for one connection only: the next that is accepted. */
void ts_proxy_delay_next(ts_proxy *proxy, ts_dir dir, int64_t ms);
/* Whole requests or replies vanish, and so does the end of the stream; the connections stay open. */
void ts_proxy_drop(ts_proxy *proxy, ts_dir dir, bool on);
void ts_proxy_trickle(ts_proxy *proxy, ts_dir dir, int64_t ms); /* one byte every ms; 0 = no longer */
/* New connections are accepted, and nothing else: neither read nor joined to the server. Switched off, they are served. */
void ts_proxy_ignore(ts_proxy *proxy, bool on);
/* New connections are refused (nobody listens). Open ones go on. Switched off, the same port listens again. */
void ts_proxy_refuse(ts_proxy *proxy, bool on);
void ts_proxy_target(ts_proxy *proxy, int port); /* where new connections go: for a server that moved */
void ts_proxy_clear(ts_proxy *proxy);            /* ends all lasting conditions and pending faults; held bytes stay held */

/* ---- Now, on the open connections ------------------------------------------------------------------------------------------ */

void ts_proxy_reset(ts_proxy *proxy); /* RST to both sides; what was not delivered is lost */
void ts_proxy_close(ts_proxy *proxy); /* the same with FIN */
/* From now on, what comes from the clients of the open connections is kept in the proxy. */
void ts_proxy_hold(ts_proxy *proxy);
/* RST to the clients of the open connections; what is held stays held, and their halves to the server open. (Where nothing is
 * held, what came is delivered, and then the end.) */
void ts_proxy_cut(ts_proxy *proxy);
/* Delivers what is held, in order. A connection whose client was cut or has closed is then ended towards the server, after its
 * replies. If the server closed it meanwhile, the bytes are lost. */
void ts_proxy_unhold(ts_proxy *proxy);

/* ---- At a certain request -------------------------------------------------------------------------------------------------- */

typedef enum ts_fault {
    TS_RESET_BEFORE,     /* not forwarded; both sides are reset */
    TS_RESET_UNANSWERED, /* forwarded; when the reply is there it is thrown away and the client reset (the server gets a FIN) */
    TS_RESET_ANSWERED,   /* forwarded, answered, then the client is reset */
    TS_SWALLOW_REQUEST,  /* not forwarded, never answered; the connection goes on */
    TS_SWALLOW_REPLY,    /* forwarded, its reply is thrown away; the connection goes on */
    TS_DELAY_REPLY,      /* forwarded; its reply, and so all later ones, come `arg` ms later */
    TS_DELAY_REQUEST,    /* forwarded `arg` ms later, and so all later ones */
    TS_HOLD,             /* this request and all that follow on its connection are held, as by ts_proxy_hold */
    TS_HOLD_AND_CUT      /* the same, and the client is reset at once */
} ts_fault;

/* Happens once, at the next request named `command` (any case; NULL = any request; two words for a subcommand: "CLIENT KILL")
 * after `skip` other matching ones, on whatever connection. Several may be pending; a request is matched against them in the order
 * of their making, and meets one at most. */
void ts_proxy_fault(ts_proxy *proxy, const char *command, int skip, ts_fault fault, int64_t arg);
/* The next `times` (-1 = all) requests of that name are not forwarded but answered with these bytes, in their turn. Copied. */
void ts_proxy_answer(ts_proxy *proxy, const char *command, int times, const char *bytes);
/* RST to the client when `count` more replies have gone to clients (0 = at the next request, before it is forwarded). */
void ts_proxy_reset_after(ts_proxy *proxy, int count);

/* ---- What was seen --------------------------------------------------------------------------------------------------------- */

typedef struct ts_proxy_stats {
    int connections;    /* accepted so far */
    int open;           /* clients connected now */
    int pending_faults; /* of ts_proxy_fault and ts_proxy_reset_after, that have not happened yet */
    int64_t requests;   /* complete ones read from clients */
    int64_t replies;    /* complete ones read from servers */
    int64_t bytes_up;   /* read from clients */
    int64_t bytes_down; /* read from servers */
    int64_t bytes_held; /* held now */
} ts_proxy_stats;
ts_proxy_stats ts_proxy_seen(ts_proxy *proxy);
int64_t ts_proxy_requests(ts_proxy *proxy, const char *command); /* complete requests of that name so far ("SET", "CLIENT KILL") */

/* Wait for these; false if not within ms. */
bool ts_proxy_wait_requests(ts_proxy *proxy, const char *command, int64_t count, int64_t ms);
bool ts_proxy_wait_open(ts_proxy *proxy, int count, int64_t ms);     /* exactly `count` clients connected */
bool ts_proxy_wait_faults(ts_proxy *proxy, int64_t ms);              /* no fault is pending any more */
bool ts_proxy_wait_held(ts_proxy *proxy, int64_t bytes, int64_t ms); /* at least so many bytes are held */

#endif
