/* nodes.c - see nodes.h. */
#include "nodes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

redisContext *connect_to(const struct address *address)
{
    redisContext *context = address->path ? redisConnectUnix(address->path) : redisConnect(address->host, address->port);
    if (!context || context->err)
        die("cannot connect to %s: %s", address->path ? address->path : address->host, context ? context->errstr : "out of memory");
    return context;
}

void urls_add(char urls[URLS_ROOM], const struct address *address)
{
    size_t used = strlen(urls);
    const char *comma = used ? "," : "";
    int length = address->path ? snprintf(urls + used, URLS_ROOM - used, "%sunix://%s", comma, address->path)
                               : snprintf(urls + used, URLS_ROOM - used, "%sredis://%s:%d", comma, address->host, address->port);
    if (length < 0 || (size_t)length >= URLS_ROOM - used)
        die("the URLs are too long");
}

/* Cuts the address out of a URL, in place. */
static struct address address_of(char *url)
{
    struct address address = {0};
    char *port;
    if (strchr(url, '@'))
        die("%s: servers with passwords are not for the bench", url);
    if (!strncmp(url, "unix://", 7)) {
        address.path = url + 7;
        return address;
    }
    address.host = url + 8;
    port = strncmp(url, "redis://", 8) ? NULL : strchr(address.host, ':');
    if (!port || (address.port = atoi(port + 1)) <= 0)
        die("%s: to be redis://host:port or unix:///path", url);
    *port = '\0';
    return address;
}

/* The first of them for one server, else the last: who gives one and five has the five for the cases with five. */
static bool take_given(struct nodes *nodes, int count, enum transport transport, const char *given)
{
    struct address fitting[RL_MAX_NODES];
    int found = 0;
    char *rest = nodes->given = strdup(given), *url;
    if (!rest)
        die("out of memory");
    while (found < RL_MAX_NODES && (url = strsep(&rest, ","))) {
        fitting[found] = address_of(url);
        if ((fitting[found].path != NULL) == (transport == OVER_UNIX))
            found++;
    }
    if (found < count)
        return false;
    memcpy(nodes->at, fitting + (count == 1 ? 0 : found - count), (size_t)count * sizeof *fitting);
    nodes->count = count;
    return true;
}

static void start_own(struct nodes *nodes, int count, enum transport transport)
{
    for (; nodes->count < count; nodes->count++) {
        ts_server *server = ts_server_start_with(&(ts_server_options){.unix_socket = transport == OVER_UNIX});
        nodes->own[nodes->count] = server;
        nodes->at[nodes->count] = (struct address){ts_server_path(server), "127.0.0.1", ts_server_port(server)};
    }
}

bool nodes_open(struct nodes *nodes, int count, enum transport transport, const char *given)
{
    *nodes = (struct nodes){0};
    if (count > MAX_NODES)
        die("at most %d servers", MAX_NODES);
    if (!given)
        start_own(nodes, count, transport);
    else if (!take_given(nodes, count, transport, given)) {
        free(nodes->given);
        return false;
    }
    for (int i = 0; i < count; i++) {
        urls_add(nodes->urls, &nodes->at[i]);
        nodes->control[i] = connect_to(&nodes->at[i]);
    }
    return true;
}

void nodes_close(struct nodes *nodes)
{
    for (int i = 0; i < nodes->count; i++) {
        redisFree(nodes->control[i]);
        ts_server_stop(nodes->own[i]);
    }
    free(nodes->given);
}

static redisReply *ask(redisContext *control, const char *question)
{
    redisReply *reply = redisCommand(control, question);
    if (!reply || reply->type != REDIS_REPLY_STRING)
        die("%s: no answer", question);
    return reply;
}

/* The number after `before` in a text; -1 if that is not in it. */
static int64_t number_after(const char *text, const char *before)
{
    const char *at = strstr(text, before);
    return at ? strtoll(at + strlen(before), NULL, 10) : -1;
}

int64_t nodes_calls(struct nodes *nodes, const char *command)
{
    int64_t sum = 0;
    char before[64];
    snprintf(before, sizeof before, "\ncmdstat_%s:calls=", command);
    for (int i = 0; i < nodes->count; i++) {
        redisReply *reply = ask(nodes->control[i], "INFO commandstats");
        int64_t calls = number_after(reply->str, before);
        sum += calls > 0 ? calls : 0;
        freeReplyObject(reply);
    }
    return sum;
}

int64_t nodes_info(struct nodes *nodes, int i, const char *field)
{
    char before[64];
    snprintf(before, sizeof before, "\n%s:", field);
    redisReply *reply = ask(nodes->control[i], "INFO");
    int64_t value = number_after(reply->str, before);
    freeReplyObject(reply);
    return value;
}

int nodes_connections(struct nodes *nodes)
{
    int count = 0;
    for (int i = 0; i < nodes->count; i++) {
        redisReply *reply = ask(nodes->control[i], "CLIENT LIST");
        for (const char *at = reply->str; (at = strstr(at, " name=redlatch ")); at++)
            count++;
        freeReplyObject(reply);
    }
    return count;
}
