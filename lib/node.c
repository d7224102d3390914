/* node.c - see node.h. */
#include "node.h"

#include "script.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const rli_span backoff_first = 50 * RLI_MS, backoff_most = 2000 * RLI_MS;
static const rli_span given_up_after = 10000 * RLI_MS; /* past the deadline of its oldest answer */
static const rli_span idle_is_suspect = 10 * RLI_MS;   /* sooner no server is restarted */
static const rli_span backlog_retry = 5 * RLI_MS;
enum { MOST_UNSENT = 1024 * 1024, EVER_UNSENT = 16 * MOST_UNSENT, FIRST_OWES = 32 };

enum greeting { GREET_AUTH, GREET_SELECT, GREET_NAME, GREET_INFO, GREET_LOAD /* + script */ };
_Static_assert(GREET_LOAD + RLI_SCRIPTS <= RLI_MAX_GREETING, "room for the whole handshake");

/* ---- Queues -------------------------------------------------------------------------------------------------------------------- */

static void queue_init(struct rli_queue *queue)
{
    queue->first = NULL;
    queue->last = &queue->first;
}

static void queue_push(struct rli_queue *queue, struct rli_request *request)
{
    request->next = NULL;
    *queue->last = request;
    queue->last = &request->next;
}

static struct rli_request *queue_pop(struct rli_queue *queue)
{
    struct rli_request *request = queue->first;

    if (!request)
        return NULL;
    queue->first = request->next;
    if (!queue->first)
        queue->last = &queue->first;
    request->next = NULL;
    request->state = RLI_REQUEST_IDLE;
    return request;
}

static void queue_remove(struct rli_queue *queue, struct rli_request *request)
{
    struct rli_request **at = &queue->first;

    while (*at != request) {
        at = &(*at)->next;
        assert(*at);
    }
    *at = request->next;
    if (!*at)
        queue->last = at;
    request->next = NULL;
    request->state = RLI_REQUEST_IDLE;
}

/* All of `from` goes to `to`, to be dealt with one by one: none of it waits any more. */
static void queue_take(struct rli_queue *to, struct rli_queue *from)
{
    queue_init(to);
    if (!from->first)
        return;
    for (struct rli_request *request = from->first; request; request = request->next)
        request->state = RLI_REQUEST_IDLE;
    *to = *from;
    queue_init(from);
}

/* All of `from` goes to the end of `to`. */
static void queue_append(struct rli_queue *to, struct rli_queue *from)
{
    if (!from->first)
        return;
    *to->last = from->first;
    to->last = from->last;
    queue_init(from);
}

/* ---- Bytes out ------------------------------------------------------------------------------------------------------------------ */

static bool out_reserve(struct rli_node *node, size_t size)
{
    if (node->out.from == node->out.to)
        node->out.from = node->out.to = 0;
    if (node->out.to + size <= node->out.room)
        return true;
    if (node->out.from > 0) {
        memmove(node->out.bytes, node->out.bytes + node->out.from, rli_node_unsent(node));
        node->out.to -= node->out.from;
        node->out.from = 0;
    }
    size_t room = node->out.room ? node->out.room : 1024;
    while (room < node->out.to + size)
        room *= 2;
    if (room == node->out.room)
        return true;
    char *grown = rli_realloc(node->out.bytes, room);
    if (!grown)
        return false;
    node->out.bytes = grown;
    node->out.room = room;
    return true;
}

static bool out_append(struct rli_node *node, const char *bytes, size_t size)
{
    if (!out_reserve(node, size))
        return false;
    memcpy(node->out.bytes + node->out.to, bytes, size);
    node->out.to += size;
    node->written += size;
    rli_engine_dirty(node->engine, node->index);
    return true;
}

static bool out_command(struct rli_node *node, const struct rli_command *command)
{
    size_t size = rli_format(command, NULL, 0);

    if (!out_reserve(node, size))
        return false;
    rli_format(command, node->out.bytes + node->out.to, size);
    node->out.to += size;
    node->written += size;
    rli_engine_dirty(node->engine, node->index);
    return true;
}

static void want(struct rli_node *node, uint32_t what)
{
    node->want |= what;
    rli_engine_dirty(node->engine, node->index);
}

static bool write_request(struct rli_node *node, struct rli_request *request, const char *bytes, size_t size, rli_instant now)
{
    struct rli_command command;
    bool ok;

    rli_engine_sent(request, now);
    if (bytes) {
        ok = out_append(node, bytes, size);
    } else {
        rli_engine_build(request, &command);
        ok = out_command(node, &command);
    }
    if (!ok)
        return false;
    request->sent = now;
    request->end = node->written;
    node->asked = true;
    request->state = RLI_REQUEST_OWED;
    queue_push(&node->owed, request);
    node->used = now;
    return true;
}

/* ---- Failures ------------------------------------------------------------------------------------------------------------------- */

static void note_failure(struct rli_node *node, int outcome, int sys_errno, const char *words)
{
    struct rli_failure *f = &node->failure;

    f->outcome = outcome;
    f->sys_errno = sys_errno;
    f->denied = false;
    f->words_len = words ? strnlen(words, sizeof f->words) : 0;
    if (f->words_len)
        memcpy(f->words, words, f->words_len);
}

static struct rli_answer failure_answer(const struct rli_node *node)
{
    const struct rli_failure *f = &node->failure;
    struct rli_answer answer = rli_answer_lost(f->outcome, f->sys_errno);

    answer.denied = f->denied;
    answer.text = f->words_len ? f->words : NULL;
    answer.text_len = f->words_len;
    return answer;
}

static void disconnect(struct rli_node *node)
{
    node->state = RLI_NODE_OFF;
    rli_codec_free(node->codec);
    node->codec = NULL;
    node->out.from = node->out.to = 0;
    node->overfull = false;
    node->want &= ~(uint32_t)(RLI_WANT_SHUTDOWN | RLI_WANT_CONNECT | RLI_WANT_RESOLVE);
    want(node, RLI_WANT_CLOSE);
}

static void back_off(struct rli_node *node, rli_instant now)
{
    int64_t fifth;

    node->backoff = node->backoff ? rli_min(node->backoff * 2, backoff_most) : backoff_first;
    fifth = node->backoff / 5; /* +- 20 % */
    node->backoff_until =
        rli_add(now, node->backoff - fifth + (int64_t)(rli_engine_random(node->engine) % (uint64_t)(2 * fifth + 1)));
}

/* No connection came about: whoever waited for it is told, and for a while nobody tries again. */
static void give_up_connecting(struct rli_node *node, rli_instant now)
{
    struct rli_answer why = failure_answer(node);
    struct rli_queue waiting;

    disconnect(node);
    back_off(node, now);
    node->reconnecting = false;
    queue_take(&waiting, &node->waiting);
    for (struct rli_request *request; (request = queue_pop(&waiting));)
        rli_engine_lost(request, &why, now);
}

/* ---- Connecting ------------------------------------------------------------------------------------------------------------------ */

static void try_address(struct rli_node *node)
{
    node->state = RLI_NODE_CONNECTING;
    node->retry_at = RLI_NEVER;
    want(node, RLI_WANT_CONNECT);
}

static void begin_connecting(struct rli_node *node, rli_instant now)
{
    const struct rli_url *url = node->url;
    bool at_hand;

    assert(node->state == RLI_NODE_OFF);
    node->expires = rli_add(now, rli_engine_terms(node->engine)->node_timeout);
    node->addresses_tried = 0;
    at_hand = url->path ? rli_address_unix(url->path, node->addresses) : rli_address_numeric(url->host, url->port, node->addresses);
    if (at_hand) {
        node->address_count = 1;
        try_address(node);
    } else { /* again at every reconnect: the name may have moved */
        node->state = RLI_NODE_RESOLVING;
        want(node, RLI_WANT_RESOLVE);
    }
}

void rli_node_resolved(struct rli_node *node, uint32_t count, const char *error, rli_instant now)
{
    if (node->state != RLI_NODE_RESOLVING)
        return;
    node->address_count = count;
    if (count > 0) {
        try_address(node);
        return;
    }
    note_failure(node, RL_NODE_UNREACHABLE, 0, error);
    give_up_connecting(node, now);
}

void rli_node_failed(struct rli_node *node, int sys_errno, rli_instant now)
{
    if (sys_errno == EAGAIN && node->url->path && node->state == RLI_NODE_CONNECTING) { /* full backlog: nothing was started */
        node->retry_at = rli_add(now, backlog_retry);
        return;
    }
    assert(node->state == RLI_NODE_RESOLVING || node->state == RLI_NODE_CONNECTING || node->state == RLI_NODE_GREETING);
    note_failure(node, RL_NODE_UNREACHABLE, sys_errno, NULL);
    if (node->state != RLI_NODE_RESOLVING)
        node->address++; /* the next attempt begins with the next address; a refused one leads to it at once */
    if (node->state == RLI_NODE_CONNECTING) {
        if (sys_errno != ETIMEDOUT && ++node->addresses_tried < node->address_count) {
            want(node, RLI_WANT_CLOSE);
            try_address(node);
            return;
        }
    }
    give_up_connecting(node, now);
}

static bool greet(struct rli_node *node, uint8_t what)
{
    struct rli_command command;

    switch (what) {
    case GREET_AUTH:
        rli_command_auth(&command, node->url->user, node->url->password);
        break;
    case GREET_SELECT:
        rli_command_select(&command, node->url->db);
        break;
    case GREET_NAME:
        rli_command_set_name(&command, rli_engine_client_name(node->engine));
        break;
    case GREET_INFO:
        rli_command_client_info(&command);
        break;
    default:
        rli_command_script_load(&command, what - (unsigned)GREET_LOAD);
        break;
    }
    node->greeting[node->greeting_count++] = what;
    return out_command(node, &command);
}

void rli_node_connected(struct rli_node *node, rli_instant now)
{
    bool ok;

    if (node->state != RLI_NODE_CONNECTING)
        return;
    node->state = RLI_NODE_GREETING;
    node->greeting_count = node->greeted = 0;
    node->written = node->gone = 0;
    node->self.id = 0;
    node->heard = node->used = now;
    node->codec = rli_codec_new();
    ok = node->codec && (!node->url->password || greet(node, GREET_AUTH)) && (!node->url->db || greet(node, GREET_SELECT)) &&
         greet(node, GREET_NAME) && greet(node, GREET_INFO);
    for (unsigned i = 0; ok && i < rli_engine_scripts(node->engine); i++)
        ok = greet(node, (uint8_t)(GREET_LOAD + i));
    if (ok)
        return;
    note_failure(node, RL_NODE_UNREACHABLE, ENOMEM, NULL);
    give_up_connecting(node, now);
}

/* "id=7 addr=127.0.0.1:5 ...": how the server will know this connection when it is to be killed. */
static void learn_self(struct rli_node *node, const struct rli_reply *reply)
{
    const char *id, *address;

    if (reply->type != RLI_BULK || !rli_field(reply->text, "id", &id))
        return;
    size_t length = rli_field(reply->text, "addr", &address);
    if (!length || length >= sizeof node->self.address)
        return;
    memcpy(node->self.address, address, length);
    node->self.address[length] = '\0';
    node->self.id = strtoll(id, NULL, 10);
}

/* First thing on a new connection: the ones lost with a creating request unanswered are ended on the server too (S3.4). */
static void send_kills(struct rli_node *node, rli_instant now)
{
    const struct rli_peer *lost;
    struct rli_command command;
    bool sent = false;

    node->blind = node->lost_more || (node->blind && !node->lost_count); /* what is known of those ended earlier still holds */
    node->lost_more = false;
    for (uint32_t i = 0; i < node->lost_count; i++) {
        lost = &node->lost[i];
        /* A smaller id than the one to kill: the server was restarted, and the old connection went with it. */
        if (lost->id && node->self.id && node->self.id < lost->id)
            continue;
        rli_command_client_kill(&command, lost->id, lost->address);
        if (!lost->id || !out_command(node, &command)) {
            node->blind = true;
            continue;
        }
        node->kills[i] = (struct rli_request){.node = (uint8_t)node->index,
                                              .state = RLI_REQUEST_OWED,
                                              .sent = now,
                                              .end = node->written,
                                              .deadline = rli_add(now, rli_engine_terms(node->engine)->node_timeout)};
        queue_push(&node->owed, &node->kills[i]);
        sent = true;
    }
    if (!sent)
        node->lost_count = 0;
}

/* The entry goes; the lock may go with it. */
static void owe_ends(struct rli_node *node, rl_lock *lock)
{
    lock->owed &= ~rli_bit(node->index);
    rli_lock_unref(lock);
}

/* Delivers the owed releases that are due and drops those that the end of their lease has settled. */
static void send_owes(struct rli_node *node, rli_instant now)
{
    uint32_t kept = 0, count = node->owes_count;

    for (uint32_t i = 0; i < count; i++) {
        struct rli_owe owe = node->owes[i];
        struct rli_request *request;
        if (owe.due > now) {
            node->owes[kept++] = owe;
            continue;
        }
        if (!owe.again && owe.lock->free_by <= now && !node->lost_count && !node->blind) {
            owe_ends(node, owe.lock);
            continue;
        }
        request = rli_engine_orphan(node->engine, node->index, owe.lock, owe.again, now);
        if (!request || !write_request(node, request, NULL, 0, now)) {
            if (request) { /* settles the round; the lock is kept by the entry */
                struct rli_answer why = rli_answer_lost(RL_NODE_NOT_ASKED, ENOMEM);
                rli_engine_lost(request, &why, now);
            }
            owe.due = rli_add(now, 100 * RLI_MS);
            node->owes[kept++] = owe;
            continue;
        }
        owe_ends(node, owe.lock);
    }
    node->owes_count = kept;
}

/* What waited for the connection goes out, in order; what has come too late for its deadline does not. */
static void send_waiting(struct rli_node *node, rli_instant now)
{
    struct rli_queue waiting;

    queue_take(&waiting, &node->waiting);
    for (struct rli_request *request; (request = queue_pop(&waiting));) {
        bool too_late = request->abandoned || (request->kind != RLI_RELEASE && request->deadline <= now);
        if (!too_late && write_request(node, request, NULL, 0, now))
            continue;
        struct rli_answer why = rli_answer_lost(RL_NODE_UNREACHABLE, too_late ? ETIMEDOUT : ENOMEM);
        rli_engine_lost(request, &why, now);
    }
}

static void ready(struct rli_node *node, rli_instant now)
{
    node->state = RLI_NODE_READY;
    node->reconnecting = node->asked = node->useful = false;
    node->address %= node->address_count;
    send_kills(node, now);
    send_owes(node, now);
    send_waiting(node, now);
}

/* An answer of the handshake. Only AUTH and SELECT must succeed: without the others there is less comfort. */
static void greeted(struct rli_node *node, const struct rli_reply *reply, rli_instant now)
{
    uint8_t what = node->greeting[node->greeted++];
    bool must = what == GREET_AUTH || what == GREET_SELECT;

    if (reply->type == RLI_ERROR && (must || rli_is_fatal(reply))) {
        note_failure(node, RL_NODE_ERROR, 0, reply->text);
        node->failure.words_len = rli_min((int64_t)node->failure.words_len, (int64_t)rli_error_words(reply));
        if (node->url->password && strstr(reply->text, node->url->password))
            note_failure(node, RL_NODE_ERROR, 0, "refused, in words that hold the password");
        node->failure.denied = rli_is_denial(reply) || (what == GREET_AUTH && !rli_is_fatal(reply));
        give_up_connecting(node, now);
        return;
    }
    if (what == GREET_INFO)
        learn_self(node, reply);
    if (node->greeted == node->greeting_count)
        ready(node, now);
}

/* ---- The life of a connection ----------------------------------------------------------------------------------------------------- */

/* A connection is lost: if a creating request is unanswered on it, the server may still come to it. */
static void remember_peer(struct rli_node *node)
{
    bool creating = false;

    for (const struct rli_request *r = node->owed.first; r; r = r->next)
        creating |= r->round && rli_creates(r->kind);
    if (!creating)
        return;
    node->lost_more |= node->lost_count == RLI_MAX_LOST;
    if (node->lost_count == RLI_MAX_LOST)
        memmove(node->lost, node->lost + 1, --node->lost_count * sizeof *node->lost);
    node->lost[node->lost_count++] = node->self;
}

static bool may_resend(const struct rli_request *request)
{
    return !rli_creates(request->kind) && !request->resent && !request->abandoned;
}

/* All owed answers are lost. Extends and releases of a connection that died before any byte of an answer are sent once more. */
static void lose_owed(struct rli_node *node, bool died, int outcome, int sys_errno, const char *words, rli_instant now)
{
    struct rli_answer why = rli_answer_lost(outcome, sys_errno);
    struct rli_queue again, lost;

    why.died = died;
    why.unknown = true;
    why.text = words;
    why.text_len = words ? strlen(words) : 0;
    queue_init(&again);
    queue_init(&lost);
    for (struct rli_request *request; (request = queue_pop(&node->owed));) {
        if (!request->round)
            continue; /* a CLIENT KILL: its target stays on the list */
        if (died && may_resend(request)) {
            request->resent = true;
            request->state = RLI_REQUEST_WAITING;
            queue_push(&again, request);
        } else {
            queue_push(&lost, request);
        }
    }
    queue_append(&again, &node->waiting);
    queue_append(&node->waiting, &again);
    for (struct rli_request *request; (request = queue_pop(&lost));)
        rli_engine_lost(request, &why, now);
}

/* A connection that never answered anything is as bad as none: otherwise a peer that ends each one would be called without pause. */
static void count_useless(struct rli_node *node, bool violated, rli_instant now)
{
    if ((node->asked || violated) && !node->useful)
        back_off(node, now);
}

static void reconnect_if_wanted(struct rli_node *node, rli_instant now)
{
    if (node->state == RLI_NODE_OFF && node->waiting.first)
        begin_connecting(node, now);
}

void rli_node_ended(struct rli_node *node, int sys_errno, rli_instant now)
{
    bool died;

    switch (node->state) {
    case RLI_NODE_OFF:
    case RLI_NODE_RESOLVING:
        break;
    case RLI_NODE_CONNECTING:
    case RLI_NODE_GREETING:
        rli_node_failed(node, sys_errno, now);
        break;
    case RLI_NODE_DRAINING:
        disconnect(node);
        reconnect_if_wanted(node, now);
        break;
    case RLI_NODE_READY:
        died = !rli_codec_partial(node->codec);
        note_failure(node, RL_NODE_UNREACHABLE, sys_errno, NULL);
        remember_peer(node);
        disconnect(node);
        count_useless(node, false, now);
        node->reconnecting = true;
        lose_owed(node, died, RL_NODE_NO_ANSWER, sys_errno, NULL, now);
        reconnect_if_wanted(node, now);
        break;
    }
}

/* Gives the connection up, but not what was written to it: the server gets the chance to read it all (S3.3). */
static void give_up(struct rli_node *node, int outcome, int sys_errno, const char *words, rli_instant now)
{
    bool owes = rli_node_owes(node);

    note_failure(node, outcome == RL_NODE_ERROR ? RL_NODE_ERROR : RL_NODE_UNREACHABLE, sys_errno, words);
    remember_peer(node);
    count_useless(node, outcome == RL_NODE_ERROR, now);
    node->reconnecting = true;
    if (owes) {
        node->state = RLI_NODE_DRAINING;
        node->expires = rli_add(now, rli_engine_terms(node->engine)->cleanup_timeout);
        want(node, RLI_WANT_SHUTDOWN);
    } else {
        disconnect(node);
    }
    lose_owed(node, false, outcome, sys_errno, words, now);
    reconnect_if_wanted(node, now);
}

static void answered(struct rli_node *node, const struct rli_reply *reply, rli_instant now)
{
    struct rli_request *request = queue_pop(&node->owed);

    if (request->round) {
        node->useful = true;
        node->backoff = 0;
        node->backoff_until = RLI_GONE;
        rli_engine_answered(request, reply, now);
        return;
    }
    if (reply->type != RLI_INTEGER) /* not allowed to kill, or too old a server */
        node->blind = true;
    if (!node->owed.first || node->owed.first->round)
        node->lost_count = 0; /* kills stand first in the queue: this was the last of them */
}

void rli_node_received(struct rli_node *node, const char *bytes, size_t size, rli_instant now)
{
    struct rli_reply reply;
    bool fed;

    node->heard = node->used = now;
    if (node->state == RLI_NODE_DRAINING || !node->codec)
        return;
    fed = rli_codec_feed(node->codec, bytes, size);
    while (node->codec && node->state != RLI_NODE_DRAINING) {
        enum rli_next next = fed ? rli_codec_next(node->codec, &reply) : RLI_NEXT_VIOLATION;
        if (next == RLI_NEXT_NONE)
            return;
        if (next == RLI_NEXT_REPLY && node->state == RLI_NODE_GREETING) {
            greeted(node, &reply, now);
        } else if (next == RLI_NEXT_REPLY && node->owed.first && node->owed.first->end <= node->gone) {
            answered(node, &reply, now);
        } else if (node->state == RLI_NODE_GREETING) {
            note_failure(node, RL_NODE_ERROR, 0, "not a Redis server's answer");
            give_up_connecting(node, now);
        } else {
            give_up(node, RL_NODE_ERROR, EPROTO, next == RLI_NEXT_REPLY ? "an answer too many" : "not a Redis server's answer",
                    now);
        }
    }
}

void rli_node_sent(struct rli_node *node, size_t size, rli_instant now)
{
    node->out.from += size;
    node->gone += size;
    node->used = now;
    if (rli_node_unsent(node) <= MOST_UNSENT)
        node->overfull = false;
}

void rli_node_blocked(struct rli_node *node, rli_instant now)
{
    size_t unsent = rli_node_unsent(node);
    rli_instant asked = node->owed.first ? node->owed.first->sent : now; /* a connection that rested is not silent */
    bool silent = rli_add(rli_max(node->heard, asked), rli_engine_terms(node->engine)->node_timeout) <= now;

    node->overfull = unsent > EVER_UNSENT || (unsent > MOST_UNSENT && silent);
}

void rli_node_resumed(struct rli_node *node, rli_instant now)
{
    if (node->state == RLI_NODE_RESOLVING || node->state == RLI_NODE_CONNECTING || node->state == RLI_NODE_GREETING)
        node->expires = rli_add(now, rli_engine_terms(node->engine)->node_timeout);
}

/* ---- For the engine --------------------------------------------------------------------------------------------------------------- */

/* The oldest owed answer is past its deadline, and no byte has come for as long either. */
static bool is_late(const struct rli_node *node, rli_instant now)
{
    if (node->state == RLI_NODE_DRAINING || node->overfull)
        return true;
    return node->state == RLI_NODE_READY && node->owed.first && node->owed.first->deadline <= now &&
           rli_add(node->heard, rli_engine_terms(node->engine)->node_timeout) <= now;
}

bool rli_node_backing_off(const struct rli_node *node, rli_instant now)
{
    return node->state == RLI_NODE_OFF && now < node->backoff_until;
}

bool rli_node_refuses(const struct rli_node *node, enum rli_kind kind, bool touched, bool needed, rli_instant now,
                      struct rli_answer *ret)
{
    if (is_late(node, now)) {
        if (kind == RLI_RELEASE && touched && node->state == RLI_NODE_READY && !node->overfull)
            return false;
        *ret = rli_answer_lost(RL_NODE_LATE, 0);
        return true;
    }
    if (!rli_node_backing_off(node, now) || needed)
        return false;
    *ret = failure_answer(node);
    return true;
}

bool rli_node_send(struct rli_node *node, struct rli_request *request, const char *bytes, size_t size, rli_instant now)
{
    if (node->state == RLI_NODE_READY)
        return write_request(node, request, bytes, size, now);
    request->state = RLI_REQUEST_WAITING;
    queue_push(&node->waiting, request);
    if (node->state == RLI_NODE_OFF)
        begin_connecting(node, now);
    return true;
}

void rli_node_withdraw(struct rli_node *node, struct rli_request *request)
{
    assert(request->state == RLI_REQUEST_WAITING);
    queue_remove(&node->waiting, request);
}

static bool owes_grow(struct rli_node *node)
{
    uint32_t room = node->owes_room * 2;
    struct rli_owe *grown = room <= RLI_MAX_OWES ? rli_realloc(node->owes, room * sizeof *grown) : NULL;

    if (!grown)
        return false;
    node->owes = grown;
    node->owes_room = room;
    return true;
}

/* Makes room by letting go of the release whose lease ends soonest. */
static uint32_t owes_drop_one(struct rli_node *node)
{
    uint32_t at = 0;

    for (uint32_t i = 1; i < node->owes_count; i++)
        if (node->owes[i].lock->free_by < node->owes[at].lock->free_by)
            at = i;
    owe_ends(node, node->owes[at].lock);
    return at;
}

void rli_node_owe(struct rli_node *node, rl_lock *lock, rli_instant due, bool again)
{
    uint32_t at;

    for (uint32_t i = 0; lock->owed & rli_bit(node->index) && i < node->owes_count; i++)
        if (node->owes[i].lock == lock) { /* one is enough: at the sooner time, and if need be once more after that */
            node->owes[i].due = rli_min(node->owes[i].due, due);
            node->owes[i].again &= again;
            return;
        }
    if (node->owes_count < node->owes_room || owes_grow(node))
        at = node->owes_count++;
    else
        at = owes_drop_one(node);
    lock->owed |= rli_bit(node->index);
    node->owes[at] = (struct rli_owe){rli_lock_ref(lock), due, again};
}

void rli_node_settle_up(struct rli_node *node, rli_instant now)
{
    for (uint32_t i = 0; i < node->owes_count; i++)
        if (!node->owes[i].again)
            node->owes[i].due = rli_min(node->owes[i].due, now);
    if (node->state == RLI_NODE_READY)
        send_owes(node, now);
}

bool rli_node_owes(const struct rli_node *node)
{
    for (const struct rli_request *r = node->owed.first; r; r = r->next)
        if (r->round && (rli_creates(r->kind) || r->kind == RLI_RELEASE))
            return true;
    for (const struct rli_request *r = node->waiting.first; r; r = r->next)
        if (r->kind == RLI_RELEASE)
            return true;
    return node->owes_count > 0;
}

static rli_instant next_due(const struct rli_node *node)
{
    rli_instant due = RLI_NEVER;
    for (uint32_t i = 0; i < node->owes_count; i++)
        due = rli_min(due, node->owes[i].due);
    return due;
}

rli_instant rli_node_deadline(const struct rli_node *node)
{
    rli_instant due = next_due(node);

    switch (node->state) {
    case RLI_NODE_OFF:
        return due == RLI_NEVER ? RLI_NEVER : rli_max(due, node->backoff_until);
    case RLI_NODE_CONNECTING:
        return rli_min(node->expires, node->retry_at);
    case RLI_NODE_READY:
        if (node->overfull)
            return RLI_GONE;
        return node->owed.first ? rli_min(due, rli_add(node->owed.first->deadline, given_up_after)) : due;
    default:
        return node->expires;
    }
}

/* Releases whose leases have ended by themselves need no connection. */
static void drop_settled_owes(struct rli_node *node, rli_instant now)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < node->owes_count; i++) {
        const rl_lock *lock = node->owes[i].lock;
        /* Even what a lost connection brings to the server at the last moment is over by then. */
        rli_instant over = node->lost_count || node->owes[i].again ? rli_add(lock->free_by, 2 * lock->ttl) : lock->free_by;
        if (over <= now)
            owe_ends(node, node->owes[i].lock);
        else
            node->owes[kept++] = node->owes[i];
    }
    node->owes_count = kept;
}

void rli_node_tick(struct rli_node *node, rli_instant now)
{
    if (now < rli_node_deadline(node))
        return;
    switch (node->state) {
    case RLI_NODE_OFF:
        drop_settled_owes(node, now);
        if (next_due(node) <= now)
            begin_connecting(node, now);
        break;
    case RLI_NODE_CONNECTING:
        if (now >= node->retry_at && now < node->expires) {
            try_address(node);
            break;
        } /* fall through */
    case RLI_NODE_RESOLVING:
    case RLI_NODE_GREETING:
        rli_node_failed(node, ETIMEDOUT, now);
        break;
    case RLI_NODE_READY:
        if (node->overfull || (node->owed.first && rli_add(node->owed.first->deadline, given_up_after) <= now))
            give_up(node, RL_NODE_NO_ANSWER, ETIMEDOUT, NULL, now);
        else
            send_owes(node, now);
        break;
    case RLI_NODE_DRAINING:
        disconnect(node);
        reconnect_if_wanted(node, now);
        break;
    }
}

bool rli_node_wants_look(const struct rli_node *node, rli_instant now)
{
    if (node->state != RLI_NODE_READY)
        return false;
    return rli_add(node->used, idle_is_suspect) <= now || (node->owed.first && node->owed.first->deadline <= now);
}

bool rli_node_init(struct rli_node *node, struct rli_engine *engine, const struct rli_url *url, uint32_t index)
{
    *node = (struct rli_node){.engine = engine, .url = url, .index = index, .backoff_until = RLI_GONE, .retry_at = RLI_NEVER};
    queue_init(&node->waiting);
    queue_init(&node->owed);
    note_failure(node, RL_NODE_UNREACHABLE, 0, NULL);
    node->owes_room = FIRST_OWES;
    node->owes = rli_calloc(FIRST_OWES * sizeof *node->owes);
    return node->owes;
}

void rli_node_free(struct rli_node *node)
{
    rli_codec_free(node->codec);
    rli_free(node->out.bytes);
    for (uint32_t i = 0; i < node->owes_count; i++)
        owe_ends(node, node->owes[i].lock);
    rli_free(node->owes);
}
