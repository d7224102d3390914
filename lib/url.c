/* url.c - see url.h.
 *
 *     redis://[[user]:password@]host[:port][/db]      unix://[[user]:password@]/path[?db=n]
 *
 * Parts are cut by their delimiters first and unescaped afterwards, so that an escaped delimiter is data. */
#include "url.h"

#include "port.h"
#include "redlatch.h"

#include <string.h>

enum { MAX_HOST = 255, MAX_PATH = 107, MAX_SECRET = 512, MAX_DB = 1000000 };

struct part { /* of the list: [from, to) */
    const char *from, *to;
};

struct parser {
    const char *list;
    const char *fault; /* where it went wrong */
    int status;
};

static bool refuse(struct parser *p, const char *at)
{
    p->fault = at;
    p->status = RL_E_INVALID;
    return false;
}

static const char *find(struct part part, char c)
{
    return part.from < part.to ? memchr(part.from, c, (size_t)(part.to - part.from)) : NULL;
}

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Copies a part, unescaped, as a string of 1 .. max bytes. Control characters, NUL above all, have no place in any part. */
static bool unescape(struct parser *p, struct part part, size_t max, char **ret)
{
    char *out = rli_calloc((size_t)(part.to - part.from) + 1);
    size_t length = 0;

    if (!out) {
        p->status = RL_E_NO_MEMORY;
        return false;
    }
    *ret = out;
    if (part.from == part.to)
        return refuse(p, part.from);
    for (const char *c = part.from; c < part.to; c++) {
        unsigned char byte = (unsigned char)*c;
        const char *start = c;
        if (byte == '%') {
            if (part.to - c < 3 || hex(c[1]) < 0 || hex(c[2]) < 0)
                return refuse(p, c);
            byte = (unsigned char)(hex(c[1]) << 4 | hex(c[2]));
            c += 2;
        }
        if (byte < 0x20 || byte == 0x7f || length == max)
            return refuse(p, start);
        out[length++] = (char)byte;
    }
    return true;
}

static bool number(struct parser *p, struct part part, uint32_t max, uint32_t *ret)
{
    uint32_t value = 0;

    if (part.from == part.to)
        return refuse(p, part.from);
    for (const char *c = part.from; c < part.to; c++) {
        if (*c < '0' || *c > '9')
            return refuse(p, c);
        value = value * 10 + (uint32_t)(*c - '0');
        if (value > max)
            return refuse(p, part.from);
    }
    *ret = value;
    return true;
}

/* user[:password]@ - a password may stand alone behind ':', a user may not. */
static bool credentials(struct parser *p, struct rli_url *url, struct part part)
{
    const char *colon = find(part, ':');

    if (!colon)
        return refuse(p, part.to);
    if (colon > part.from && !unescape(p, (struct part){part.from, colon}, MAX_SECRET, &url->user))
        return false;
    return unescape(p, (struct part){colon + 1, part.to}, MAX_SECRET, &url->password);
}

/* Takes user and password off the front, if there are any. The last '@' ends them: what stands before it is never shown. */
static bool take_credentials(struct parser *p, struct rli_url *url, struct part *rest)
{
    const char *at = NULL;

    for (const char *c = rest->from; c < rest->to; c++)
        if (*c == '@')
            at = c;
    if (!at)
        return true;
    if (!credentials(p, url, (struct part){rest->from, at}))
        return false;
    rest->from = at + 1;
    return true;
}

static bool host_and_port(struct parser *p, struct rli_url *url, struct part part)
{
    struct part host = part;
    const char *colon;
    uint32_t port = 6379;

    if (part.from < part.to && *part.from == '[') {
        const char *close = find(part, ']');
        if (!close)
            return refuse(p, part.from);
        host = (struct part){part.from + 1, close};
        if (!find(host, ':'))
            return refuse(p, host.from);
        colon = close + 1;
        if (colon < part.to && *colon != ':')
            return refuse(p, colon);
    } else {
        colon = find(part, ':');
        if (!colon)
            colon = part.to;
        host.to = colon;
    }
    if (colon < part.to && (!number(p, (struct part){colon + 1, part.to}, 65535, &port) || port == 0))
        return refuse(p, colon + 1);
    url->port = (uint16_t)port;
    if (!unescape(p, host, MAX_HOST, &url->host))
        return false;
    for (const char *c = host.from; c < host.to; c++)
        if (*c == ' ' || *c == '/' || *c == '?' || *c == '#' || *c == '[')
            return refuse(p, c);
    return true;
}

static bool redis_url(struct parser *p, struct rli_url *url, struct part part)
{
    const char *slash;

    if (!take_credentials(p, url, &part))
        return false;
    slash = find(part, '/');
    if (slash && slash + 1 < part.to && !number(p, (struct part){slash + 1, part.to}, MAX_DB, &url->db))
        return false;
    if (slash)
        part.to = slash;
    return host_and_port(p, url, part);
}

static bool unix_url(struct parser *p, struct rli_url *url, struct part part)
{
    static const char db[] = "?db=";
    const char *query;

    if (!take_credentials(p, url, &part))
        return false;
    query = find(part, '?');
    if (query) {
        size_t length = sizeof db - 1;
        if ((size_t)(part.to - query) < length || memcmp(query, db, length) != 0)
            return refuse(p, query);
        if (!number(p, (struct part){query + length, part.to}, MAX_DB, &url->db))
            return false;
        part.to = query;
    }
    if (part.from == part.to || *part.from != '/')
        return refuse(p, part.from);
    return unescape(p, part, MAX_PATH, &url->path);
}

/* The URL as reports show it: everything but user and password, as it was written. */
static bool show(struct parser *p, struct rli_url *url, struct part whole, const char *rest)
{
    const char *at = NULL;
    size_t scheme = (size_t)(rest - whole.from), length;

    for (const char *c = rest; c < whole.to; c++)
        if (*c == '@')
            at = c;
    if (at)
        rest = at + 1;
    length = (size_t)(whole.to - rest);
    url->shown = rli_calloc(scheme + length + 1);
    if (!url->shown) {
        p->status = RL_E_NO_MEMORY;
        return false;
    }
    memcpy(url->shown, whole.from, scheme);
    memcpy(url->shown + scheme, rest, length);
    return true;
}

static bool has_scheme(struct part part, const char *scheme)
{
    size_t length = strlen(scheme);
    return (size_t)(part.to - part.from) >= length && memcmp(part.from, scheme, length) == 0;
}

static bool one_url(struct parser *p, struct rli_url *url, struct part part)
{
    static const char redis[] = "redis://", unix_scheme[] = "unix://", tls[] = "rediss://";
    const char *rest;
    bool ok;

    url->at = (size_t)(part.from - p->list);
    if (has_scheme(part, tls)) {
        refuse(p, part.from);
        p->status = RL_E_UNSUPPORTED;
        return false;
    }
    if (has_scheme(part, redis)) {
        rest = part.from + sizeof redis - 1;
        ok = redis_url(p, url, (struct part){rest, part.to});
    } else if (has_scheme(part, unix_scheme)) {
        rest = part.from + sizeof unix_scheme - 1;
        ok = unix_url(p, url, (struct part){rest, part.to});
    } else {
        return refuse(p, part.from);
    }
    return ok && show(p, url, part, rest);
}

int rli_urls_parse(const char *list, struct rli_url *urls, uint32_t *ret_count, size_t *ret_error_at)
{
    struct parser p = {.list = list, .status = RL_OK};
    const char *end = list + strlen(list), *from = list;
    uint32_t count = 0;
    bool ok;

    do {
        const char *comma = memchr(from, ',', (size_t)(end - from));
        struct part part = {from, comma ? comma : end};
        if (count == RL_MAX_NODES) {
            ok = refuse(&p, from);
            break;
        }
        urls[count] = (struct rli_url){0};
        ok = one_url(&p, &urls[count++], part);
        from = part.to + 1;
    } while (ok && from <= end);
    if (!ok) {
        rli_urls_free(urls, count);
        if (p.fault)
            *ret_error_at = (size_t)(p.fault - list);
        return p.status;
    }
    *ret_count = count;
    return RL_OK;
}

static void free_secret(char *secret)
{
    if (secret)
        explicit_bzero(secret, strlen(secret));
    rli_free(secret);
}

void rli_urls_free(struct rli_url *urls, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        rli_free(urls[i].host);
        rli_free(urls[i].path);
        rli_free(urls[i].shown);
        free_secret(urls[i].user);
        free_secret(urls[i].password);
        urls[i] = (struct rli_url){0};
    }
}
