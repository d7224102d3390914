/* sim_server.c - Redis in a simulated world: as much of it as the library uses, with its scripts run by the same Lua.
 *
 * Keys expire by the server's own clock, whose rate is a little off. A paused server reads nothing, and everything once it goes on;
 * a restarted one loses its connections and scripts, and in a forgetful world its keys. */
#include "world.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "script.h"

enum { MAX_KEYS = 64, MAX_ARGS = 3 + 3 * RLI_MAX_KEYS, MAX_SAID = 512, MAX_TRACKED = 64 };

struct key {
    char name[64], value[112];
    int64_t expires; /* by the server's clock, in ms; -1 = never */
};

struct server {
    bool up, paused;
    int64_t rate_ppm; /* of its clock */
    struct key keys[MAX_KEYS];
    int key_count;
    bool loaded[RLI_SCRIPTS];
    int64_t next_id;
};

struct peer { /* of a connection, as the server sees it */
    int64_t id;
    char *in; /* read, not yet carried out */
    size_t size;
    bool ended;   /* its end of stream has come, behind what is in `in` */
    bool garbled; /* it was sent what is no reply: nobody reads on */
};

static struct server servers[MAX_SERVERS + 1];
static struct peer peers[MAX_CONNS];
static lua_State *lua;
static struct server *running; /* whose script runs */
static int script_refs[RLI_SCRIPTS];
static struct said { /* the last word about a token; the oldest are forgotten */
    int server, conn;
    bool no;
    char token[40];
} said[MAX_SAID];
static int said_count;
static struct tracked { /* what was asked about a token that is held; the oldest are forgotten */
    char token[40];
    uint32_t confirmed;            /* servers that extended it */
    int absent[MAX_SERVERS + 1];   /* 1 + the connection on which the server said so; 0 = it has not */
    int released[MAX_SERVERS + 1]; /* ... on which it was asked to release it */
} tracked[MAX_TRACKED];
static int tracked_count;

static int64_t clock_ms(const struct server *server, true_time when)
{
    return (when + when / 1000000 * server->rate_ppm) / MS;
}

static int64_t now_ms(const struct server *server)
{
    return clock_ms(server, world_now);
}

/* ---- Keys ---------------------------------------------------------------------------------------------------------------------------- */

static struct key *find_at(struct server *server, const char *name, true_time when)
{
    for (int i = 0; i < server->key_count; i++) {
        struct key *key = &server->keys[i];
        if (strcmp(key->name, name) == 0)
            return key->expires >= 0 && clock_ms(server, when) > key->expires ? NULL : key;
    }
    return NULL;
}

static struct key *find(struct server *server, const char *name)
{
    return find_at(server, name, world_now);
}

static void remove_key(struct server *server, const char *name)
{
    for (int i = 0; i < server->key_count; i++)
        if (strcmp(server->keys[i].name, name) == 0) {
            server->keys[i] = server->keys[--server->key_count];
            return;
        }
}

static void set_key(struct server *server, const char *name, const char *value, int64_t px)
{
    remove_key(server, name);
    if (server->key_count == MAX_KEYS) { /* the ones that have expired make room */
        for (int i = server->key_count - 1; i >= 0; i--)
            if (!find(server, server->keys[i].name))
                server->keys[i] = server->keys[--server->key_count];
    }
    struct key *key = &server->keys[server->key_count++];
    snprintf(key->name, sizeof key->name, "%s", name);
    snprintf(key->value, sizeof key->value, "%s", value);
    key->expires = px < 0 ? -1 : now_ms(server) + px;
}

const char *server_value(int server, const char *key, true_time when)
{
    const struct key *found = find_at(&servers[server], key, when);
    return found ? found->value : NULL;
}

void servers_each_key(true_time when, void (*callback)(int server, const char *key, const char *value))
{
    for (int s = 1; s <= nature.servers; s++)
        for (int i = 0; i < servers[s].key_count; i++)
            if (find_at(&servers[s], servers[s].keys[i].name, when))
                callback(s, servers[s].keys[i].name, servers[s].keys[i].value);
}

/* ---- Commands on keys, for connections and scripts ------------------------------------------------------------------------------------------ */

struct answer {
    enum { NIL, STATUS, ERROR, INTEGER, BULK } type;
    int64_t integer;
    char text[128];
};

static struct answer integer(int64_t value)
{
    return (struct answer){.type = INTEGER, .integer = value};
}

static struct answer text(int type, const char *words)
{
    struct answer answer = {.type = type};
    snprintf(answer.text, sizeof answer.text, "%s", words);
    return answer;
}

static struct answer set_command(struct server *server, int argc, char **argv)
{
    bool nx = false;
    int64_t px = -1;

    for (int i = 3; i < argc; i++) {
        if (strcmp(argv[i], "NX") == 0)
            nx = true;
        else if (strcmp(argv[i], "PX") == 0 && i + 1 < argc)
            px = atoll(argv[++i]);
    }
    if (nx && find(server, argv[1]))
        return (struct answer){.type = NIL};
    set_key(server, argv[1], argv[2], px);
    return text(STATUS, "OK");
}

static struct answer pexpire(struct server *server, const char *name, int64_t px)
{
    struct key *key = find(server, name);

    if (!key)
        return integer(0);
    key->expires = now_ms(server) + px;
    return integer(1);
}

static struct answer on_keys(struct server *server, int argc, char **argv)
{
    struct key *key = argc > 1 ? find(server, argv[1]) : NULL;

    if (strcmp(argv[0], "SET") == 0)
        return set_command(server, argc, argv);
    if (strcmp(argv[0], "GET") == 0)
        return key ? text(BULK, key->value) : (struct answer){.type = NIL};
    if (strcmp(argv[0], "PTTL") == 0)
        return integer(!key ? -2 : key->expires < 0 ? -1 : key->expires - now_ms(server));
    if (strcmp(argv[0], "EXISTS") == 0)
        return integer(key != NULL);
    if (strcmp(argv[0], "PEXPIRE") == 0)
        return pexpire(server, argv[1], atoll(argv[2]));
    if (strcmp(argv[0], "DEL") == 0) {
        remove_key(server, argv[1]);
        return integer(key != NULL);
    }
    return text(ERROR, "ERR unknown command");
}

/* ---- Scripts -------------------------------------------------------------------------------------------------------------------------------- */

/* Seconds and microseconds. Fencing tokens are only as good as clocks that agree (S8.5): here they do, to the microsecond. */
static int push_time(lua_State *state)
{
    const int64_t epoch = 1700000000;
    int64_t now = world_now / 1000;

    lua_createtable(state, 2, 0);
    lua_pushfstring(state, "%f", (lua_Number)(epoch + now / 1000000));
    lua_rawseti(state, -2, 1);
    lua_pushfstring(state, "%f", (lua_Number)(now % 1000000));
    lua_rawseti(state, -2, 2);
    return 1;
}

static int redis_call(lua_State *state)
{
    char *argv[MAX_ARGS];
    int argc = lua_gettop(state);
    struct answer answer;

    if (strcmp(luaL_checkstring(state, 1), "TIME") == 0)
        return push_time(state);
    for (int i = 0; i < argc && i < MAX_ARGS; i++)
        argv[i] = (char *)(uintptr_t)luaL_checkstring(state, i + 1);
    answer = on_keys(running, argc, argv);
    if (answer.type == ERROR)
        return luaL_error(state, "%s", answer.text);
    if (answer.type == NIL)
        lua_pushboolean(state, 0);
    else if (answer.type == INTEGER)
        lua_pushnumber(state, (lua_Number)answer.integer);
    else
        lua_pushstring(state, answer.text);
    return 1;
}

static int redis_reply(lua_State *state, const char *field)
{
    luaL_checkstring(state, 1);
    lua_createtable(state, 0, 1);
    lua_pushvalue(state, 1);
    lua_setfield(state, -2, field);
    return 1;
}

static int error_reply(lua_State *state)
{
    return redis_reply(state, "err");
}

static int status_reply(lua_State *state)
{
    return redis_reply(state, "ok");
}

static void push_list(const char *name, char **items, int count)
{
    lua_createtable(lua, count, 0);
    for (int i = 0; i < count; i++) {
        lua_pushstring(lua, items[i]);
        lua_rawseti(lua, -2, i + 1);
    }
    lua_setglobal(lua, name);
}

static struct said *said_of(int server, const char *token)
{
    for (int i = said_count < MAX_SAID ? said_count : MAX_SAID; i-- > 0;)
        if (said[i].server == server && strncmp(said[i].token, token, sizeof said[i].token - 1) == 0)
            return &said[i];
    return NULL;
}

static void say_of(int conn, const char *token, bool no)
{
    int server = net_conn_server(conn);
    struct said *found;

    if (!(nature.forgetful && nature.long_leases) && !nature.renewing) /* elsewhere no server takes back what it granted */
        return;
    found = said_of(server, token);
    if (!found)
        found = &said[said_count++ % MAX_SAID];
    *found = (struct said){.server = server, .conn = conn, .no = no};
    snprintf(found->token, sizeof found->token, "%s", token);
}

bool server_has_denied(int server, const char *token)
{
    const struct said *found = said_of(server, token);
    return found && found->no && net_is_whole(found->conn) && !peers[found->conn].garbled;
}

static struct tracked *track(const char *token, bool make)
{
    int known = tracked_count < MAX_TRACKED ? tracked_count : MAX_TRACKED;

    for (int i = 0; i < known && nature.renewing; i++)
        if (strncmp(tracked[i].token, token, sizeof tracked[i].token - 1) == 0)
            return &tracked[i];
    if (!make || !nature.renewing || nature.hostile)
        return NULL;
    struct tracked *found = &tracked[tracked_count++ % MAX_TRACKED];
    *found = (struct tracked){.confirmed = 0};
    snprintf(found->token, sizeof found->token, "%s", token);
    return found;
}

/* An extension, or a renewal's part about one lock: on a connection no older than that of the release there is none (S5.4). */
static void was_asked_to_extend(int conn, const char *token, int answer, bool renewal)
{
    int server = net_conn_server(conn);
    struct tracked *found = *token ? track(token, true) : NULL; /* a lock that is over is renewed with no token at all */

    if (!found)
        return;
    if (renewal && found->released[server] && conn + 1 >= found->released[server])
        violated("server %d is asked to renew %.8s after its release", server, token);
    if (answer == 1)
        found->confirmed |= UINT32_C(1) << server;
    if (answer == 0)
        found->absent[server] = conn + 1;
}

/* Where the server had said that there is none, it is a top-up: only of what a quorum has confirmed (S5.3). */
static void was_asked_to_set(int conn, const char *token)
{
    int server = net_conn_server(conn);
    const struct tracked *found = track(token, false);

    if (found && found->absent[server] && conn + 1 >= found->absent[server] && __builtin_popcount(found->confirmed) < nature.quorum)
        violated("server %d is topped up with %.8s, which no quorum has confirmed", server, token);
}

static void was_asked_to_release(int conn, const char *token)
{
    struct tracked *found = track(token, false);

    if (found)
        found->released[net_conn_server(conn)] = conn + 1;
}

/* An array of integers. */
static void reply_array(int conn)
{
    char bytes[16 + 24 * RLI_MAX_KEYS];
    int count = (int)lua_objlen(lua, -1), length = snprintf(bytes, sizeof bytes, "*%d\r\n", count);

    for (int i = 1; i <= count; i++) {
        lua_rawgeti(lua, -1, i);
        length += snprintf(bytes + length, sizeof bytes - (size_t)length, ":%lld\r\n", (long long)lua_tonumber(lua, -1));
        lua_pop(lua, 1);
    }
    net_reply(conn, bytes, (size_t)length);
}

/* What the script on top of the stack returned, in RESP. */
static void reply_value(int conn)
{
    char bytes[256];
    int length;

    if (lua_type(lua, -1) == LUA_TTABLE && lua_objlen(lua, -1) > 0) {
        reply_array(conn);
        return;
    }
    if (lua_type(lua, -1) == LUA_TTABLE) {
        lua_getfield(lua, -1, "ok");
        lua_getfield(lua, -2, "err");
        length = snprintf(bytes, sizeof bytes, "%c%.200s\r\n", lua_isstring(lua, -2) ? '+' : '-',
                          lua_tostring(lua, lua_isstring(lua, -2) ? -2 : -1));
        lua_pop(lua, 2);
    } else if (lua_type(lua, -1) == LUA_TNUMBER) {
        length = snprintf(bytes, sizeof bytes, ":%lld\r\n", (long long)lua_tonumber(lua, -1));
    } else {
        length = snprintf(bytes, sizeof bytes, "$-1\r\n");
    }
    net_reply(conn, bytes, (size_t)length);
}

/* What a script said about tokens, for those who watch. */
static void note_answer(int conn, int script, int keys, char **argv)
{
    if (script == RLI_SCRIPT_EXTEND) {
        say_of(conn, argv[4], lua_tonumber(lua, -1) != 1);
        was_asked_to_extend(conn, argv[4], (int)lua_tonumber(lua, -1), false);
    }
    for (int i = 0; script == RLI_SCRIPT_RENEW && i < keys; i++) {
        const char *token = argv[3 + keys + 2 * i];
        lua_rawgeti(lua, -1, i + 1);
        if (*token)
            say_of(conn, token, lua_tonumber(lua, -1) != 1);
        was_asked_to_extend(conn, token, (int)lua_tonumber(lua, -1), true);
        lua_pop(lua, 1);
    }
    if (script == RLI_SCRIPT_GRANT ? lua_isnumber(lua, -1) : script == RLI_SCRIPT_FENCED_TOP_UP && lua_istable(lua, -1))
        say_of(conn, argv[5], false);
    if (script == RLI_SCRIPT_FENCED_TOP_UP)
        was_asked_to_set(conn, argv[5]);
    if (script == RLI_SCRIPT_RELEASE || script == RLI_SCRIPT_FENCED_RELEASE)
        was_asked_to_release(conn, argv[3 + keys]);
}

static void run_script(struct server *server, int conn, int script, int argc, char **argv)
{
    int keys = atoi(argv[2]);
    char bytes[256];

    running = server;
    push_list("KEYS", argv + 3, keys);
    push_list("ARGV", argv + 3 + keys, argc - 3 - keys);
    lua_rawgeti(lua, LUA_REGISTRYINDEX, script_refs[script]);
    if (lua_pcall(lua, 0, 1, 0) == 0) {
        note_answer(conn, script, keys, argv);
        reply_value(conn);
    } else {
        int length = snprintf(bytes, sizeof bytes, "-ERR %.200s\r\n", lua_tostring(lua, -1));
        net_reply(conn, bytes, (size_t)length);
    }
    lua_pop(lua, 1);
}

static int script_named(const char *sha1)
{
    for (int i = 0; i < RLI_SCRIPTS; i++)
        if (strcmp(rli_scripts[i].sha1, sha1) == 0)
            return i;
    return -1;
}

static int script_reading(const char *words)
{
    for (int i = 0; i < RLI_SCRIPTS; i++)
        if (strcmp(rli_scripts[i].text, words) == 0)
            return i;
    return -1;
}

/* ---- Connections ------------------------------------------------------------------------------------------------------------------------------- */

static void say(int conn, const char *bytes)
{
    net_reply(conn, bytes, strlen(bytes));
}

static void client_command(struct server *server, int conn, int argc, char **argv)
{
    char info[128], bytes[192];

    if (strcmp(argv[1], "SETNAME") == 0) {
        say(conn, "+OK\r\n");
    } else if (strcmp(argv[1], "INFO") == 0) {
        int length = snprintf(info, sizeof info, "id=%lld addr=%s name=x\n", (long long)peers[conn].id, net_address(conn));
        snprintf(bytes, sizeof bytes, "$%d\r\n%s\r\n", length, info);
        say(conn, bytes);
    } else if (!nature.may_kill) {
        say(conn, "-NOPERM this user has no permissions\r\n");
    } else { /* KILL ID id ADDR address */
        int killed = 0;
        for (int i = 0; i < MAX_CONNS && argc == 6; i++)
            if (peers[i].id == atoll(argv[3]) && &servers[net_conn_server(i)] == server && strcmp(net_address(i), argv[5]) == 0) {
                net_server_closes(i);
                killed++;
            }
        snprintf(bytes, sizeof bytes, ":%d\r\n", killed);
        say(conn, bytes);
    }
}

static void reply(int conn, const struct answer *answer)
{
    char bytes[192];

    switch (answer->type) {
    case NIL:
        snprintf(bytes, sizeof bytes, "$-1\r\n");
        break;
    case INTEGER:
        snprintf(bytes, sizeof bytes, ":%lld\r\n", (long long)answer->integer);
        break;
    case BULK:
        snprintf(bytes, sizeof bytes, "$%zu\r\n%s\r\n", strlen(answer->text), answer->text);
        break;
    default:
        snprintf(bytes, sizeof bytes, "%c%s\r\n", answer->type == STATUS ? '+' : '-', answer->text);
        break;
    }
    say(conn, bytes);
}

static void eval(struct server *server, int conn, int argc, char **argv)
{
    bool by_name = strcmp(argv[0], "EVALSHA") == 0;
    int script = by_name ? script_named(argv[1]) : script_reading(argv[1]);

    if (script < 0 || (by_name && !server->loaded[script])) {
        say(conn, "-NOSCRIPT No matching script.\r\n");
        return;
    }
    server->loaded[script] = true;
    run_script(server, conn, script, argc, argv);
}

static void note_command(int server, int conn, int argc, char **argv)
{
    static const char *const names[RLI_SCRIPTS] = {"release", "extend",         "renew",           "grant", "confirm",
                                                   "mint",    "top up, fenced", "release, fenced", "store"};
    int script;

    if (!world_trace)
        return;
    script = strcmp(argv[0], "EVALSHA") == 0 ? script_named(argv[1]) : strcmp(argv[0], "EVAL") == 0 ? script_reading(argv[1]) : -1;
    if (script >= 0)
        note("server %d, connection %d: %s %s %.8s%s", server, conn, names[script], argv[3], argv[3 + atoi(argv[2])],
             script == RLI_SCRIPT_RENEW && atoi(argv[2]) > 1 ? " and others" : "");
    else
        note("server %d, connection %d: %s %.10s %.8s", server, conn, argv[0], argc > 1 ? argv[1] : "", argc > 2 ? argv[2] : "");
}

/* Something is wrong with the server, or with what it is. True: the command was not carried out. */
static bool misbehaves(int conn, const char *what)
{
    static const char *const errors[] = {
        "-OOM command not allowed when used memory > 'maxmemory'.\r\n",
        "-LOADING Redis is loading the dataset in memory\r\n",
        "-READONLY You can't write against a read only replica.\r\n",
        "-BUSY Redis is busy running a script.\r\n",
        "-MISCONF Redis is configured to save RDB snapshots.\r\n",
        "+WHAT\r\n",        /* no answer to anything */
        "HTTP/1.1 400\r\n", /* no Redis at all */
        "*2147483647\r\n",  /* nor this */
        "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n",
        "*5\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n", /* more than were asked for */
    };
    static const char *const too_many[] = {"+OK\r\n", ":1\r\n", "*1\r\n:1\r\n", "*2\r\n:1\r\n:1\r\n"};
    enum { ERRORS = sizeof errors / sizeof *errors };

    if (world_now >= nature.chaos_ends || net_conn_server(conn) <= nature.safe)
        return false;
    if (nature.hostile && one_in(50)) {
        say(conn, too_many[between(0, 3)]);
        return one_in(2);
    }
    if (!one_in(300) || strcmp(what, "CLIENT") == 0)
        return false;
    peers[conn].garbled = true;
    say(conn, errors[between(0, ERRORS - 1)]);
    return true;
}

static void command(int conn, int argc, char **argv)
{
    int number = net_conn_server(conn);
    struct server *server = &servers[number];

    note_command(number, conn, argc, argv);
    if (misbehaves(conn, argv[0]))
        return;
    if (strcmp(argv[0], "CLIENT") == 0) {
        client_command(server, conn, argc, argv);
    } else if (strcmp(argv[0], "SCRIPT") == 0) {
        int script = script_reading(argv[2]);
        if (script >= 0)
            server->loaded[script] = true;
        say(conn, "$40\r\n0123456789012345678901234567890123456789\r\n");
    } else if (strncmp(argv[0], "EVAL", 4) == 0) {
        eval(server, conn, argc, argv);
    } else {
        struct answer answer = on_keys(server, argc, argv);
        if (answer.type == STATUS)
            say_of(conn, argv[2], false);
        if (strcmp(argv[0], "SET") == 0)
            was_asked_to_set(conn, argv[2]);
        reply(conn, &answer);
    }
}

/* The number that begins there and ends before a line's end; the bytes are no string. */
static size_t number(const char *at)
{
    size_t n = 0;
    while (*at >= '0' && *at <= '9')
        n = n * 10 + (size_t)(*at++ - '0');
    return n;
}

/* Takes one whole command off the connection's bytes: returns its size, 0 if it is not whole. */
static size_t parse(char *in, size_t size, int *argc, char **argv)
{
    char *at = in, *end = in + size, *line;
    int count;

    if (size < 4 || !(line = memchr(at, '\n', size)))
        return 0;
    count = (int)number(at + 1);
    if (*at != '*' || count < 1 || count > MAX_ARGS) {
        violated("what a server reads is no command");
        note("%.*s", (int)size, in);
        return 0;
    }
    at = line + 1;
    for (*argc = 0; *argc < count; ++*argc) {
        if (at >= end || !(line = memchr(at, '\n', (size_t)(end - at))))
            return 0;
        size_t length = number(at + 1);
        if ((size_t)(end - line - 1) < length + 2)
            return 0;
        argv[*argc] = line + 1;
        at = line + 1 + length + 2;
    }
    return (size_t)(at - in);
}

static void carry_out(int conn)
{
    struct peer *peer = &peers[conn];
    char *argv[MAX_ARGS], *copy;
    int argc;

    for (size_t size; peer->size && (size = parse(peer->in, peer->size, &argc, argv));) {
        copy = malloc(size + 1);
        memcpy(copy, peer->in, size);
        copy[size] = '\0';
        for (int i = 0; i < argc; i++) {
            argv[i] = copy + (argv[i] - peer->in);
            size_t length = strcspn(argv[i], "\r");
            argv[i][length] = '\0';
        }
        peer->size -= size;
        memmove(peer->in, peer->in + size, peer->size);
        command(conn, argc, argv);
        free(copy);
    }
    if (peer->ended)
        net_server_closes(conn);
}

void server_receive(int conn, const char *bytes, size_t size)
{
    struct peer *peer = &peers[conn];
    struct server *server = &servers[net_conn_server(conn)];

    if (!peer->id)
        peer->id = ++server->next_id;
    peer->in = realloc(peer->in, peer->size + size);
    memcpy(peer->in + peer->size, bytes, size);
    peer->size += size;
    if (!server->paused)
        carry_out(conn);
}

void server_ended(int conn)
{
    if (servers[net_conn_server(conn)].paused)
        peers[conn].ended = true;
    else
        net_server_closes(conn);
}

void server_lost(int conn)
{
    free(peers[conn].in);
    peers[conn] = (struct peer){0};
}

/* ---- Trouble ------------------------------------------------------------------------------------------------------------------------------------- */

bool server_is_up(int server)
{
    return servers[server].up;
}

static void resume(void *arg)
{
    int server = (int)(intptr_t)arg;

    if (!servers[server].paused)
        return;
    note("server %d goes on", server);
    servers[server].paused = false;
    for (int i = 0; i < MAX_CONNS; i++)
        if (peers[i].id && net_conn_server(i) == server)
            carry_out(i);
}

void server_pause(int server, int64_t length)
{
    if (!servers[server].up)
        return;
    note("server %d stands still for %lld ms", server, (long long)(length / MS));
    servers[server].paused = true;
    world_at(world_now + length, resume, (void *)(intptr_t)server);
}

static void start_again(void *arg)
{
    struct server *server = &servers[(intptr_t)arg];

    note("server %d is back", (int)(intptr_t)arg);
    server->up = true;
}

void server_restart(int server, int64_t down)
{
    struct server *s = &servers[server];

    if (!s->up)
        return;
    note("server %d is killed; back%s in %lld ms", server, nature.forgetful ? " without its memory" : "", (long long)(down / MS));
    s->up = s->paused = false;
    net_server_died(server);
    memset(s->loaded, 0, sizeof s->loaded);
    s->next_id = 0;
    if (nature.forgetful || server <= nature.forgetters)
        s->key_count = 0;
    world_at(world_now + down, start_again, (void *)(intptr_t)server);
}

void server_evict_counters(int server)
{
    struct server *s = &servers[server];

    note("server %d loses its counters", server);
    for (int i = s->key_count - 1; i >= 0; i--)
        if (s->keys[i].name[0] == '{')
            s->keys[i] = s->keys[--s->key_count];
}

void server_wipe(int server)
{
    if (!nature.forgetful && server > nature.forgetters)
        return;
    note("server %d loses its keys", server);
    servers[server].key_count = 0;
}

void server_flush_scripts(int server)
{
    note("server %d forgets its scripts", server);
    memset(servers[server].loaded, 0, sizeof servers[server].loaded);
}

static void begin_lua(void)
{
    if (lua)
        return;
    lua = luaL_newstate();
    luaL_openlibs(lua);
    lua_createtable(lua, 0, 1);
    lua_pushcfunction(lua, redis_call);
    lua_setfield(lua, -2, "call");
    lua_pushcfunction(lua, redis_call); /* nothing fails here */
    lua_setfield(lua, -2, "pcall");
    lua_pushcfunction(lua, error_reply);
    lua_setfield(lua, -2, "error_reply");
    lua_pushcfunction(lua, status_reply);
    lua_setfield(lua, -2, "status_reply");
    lua_setglobal(lua, "redis");
    for (int i = 0; i < RLI_SCRIPTS; i++) {
        if (luaL_loadbuffer(lua, rli_scripts[i].text, rli_scripts[i].length, "script") != 0)
            abort();
        script_refs[i] = luaL_ref(lua, LUA_REGISTRYINDEX);
    }
}

void servers_begin(void)
{
    begin_lua();
    memset(servers, 0, sizeof servers);
    said_count = tracked_count = 0;
    for (int i = 1; i <= nature.servers; i++)
        servers[i] = (struct server){.up = true, .rate_ppm = between(-3000, 3000)};
}

void servers_end(void)
{
    for (int i = 0; i < MAX_CONNS; i++)
        if (peers[i].id || peers[i].in || peers[i].ended)
            server_lost(i);
}
