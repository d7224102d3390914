/* resp.c - see resp.h.
 */
#include "resp.h"

#include <string.h>
#include <strings.h>

/* A line at `at`: its type, the number in it (0 if it has none), and where the next one begins. */
typedef struct line {
    char type;
    long long number;
    size_t next;
} line;

enum { MAX_LINE = 65536 };

/* 1 = read, 0 = not complete, -1 = no RESP. */
static int read_line(const char *bytes, size_t len, size_t at, line *ret)
{
    if (at >= len) {
        return 0;
    }
    ret->type = bytes[at];
    if (ret->type == '\0' || strchr("+-:$*_#,(!=~>%", ret->type) == NULL) {
        return -1;
    }
    const char *end = memchr(bytes + at, '\n', len - at);
    if (end == NULL) {
        return len - at > MAX_LINE ? -1 : 0;
    }
    ret->next = (size_t)(end - bytes) + 1;
    ret->number = 0;
    bool sized = strchr("$*!=~>%", ret->type) != NULL, negative = sized && bytes[at + 1] == '-';
    for (const char *digit = bytes + at + 1 + negative; sized && digit < end && *digit != '\r'; digit++) {
        if (*digit < '0' || *digit > '9' || ret->number > 1000000000) {
            return -1;
        }
        ret->number = ret->number * 10 + (*digit - '0');
    }
    ret->number = negative ? -1 : ret->number;
    return 1;
}

ssize_t ts_resp_length(const char *bytes, size_t len)
{
    size_t at = 0;
    for (long long left = 1; left > 0; left--) {
        line head;
        int rc = read_line(bytes, len, at, &head);
        if (rc <= 0) {
            return rc;
        }
        at = head.next;
        if (head.number < 0) {
            continue;
        }
        if (strchr("$!=", head.type) != NULL) {
            at += (size_t)head.number + 2;
            if (at > len) {
                return 0;
            }
        } else if (strchr("*~>", head.type) != NULL) {
            left += head.number;
        } else if (head.type == '%') {
            left += 2 * head.number;
        }
    }
    return (ssize_t)at;
}

bool ts_resp_words(const char *bytes, size_t len, ts_words *ret_words)
{
    line head;
    if (read_line(bytes, len, 0, &head) != 1 || head.type != '*' || head.number < 1 || head.number > TS_RESP_MAX_WORDS) {
        return false;
    }
    ret_words->count = (int)head.number;
    for (int i = 0; i < ret_words->count; i++) {
        if (read_line(bytes, len, head.next, &head) != 1 || head.type != '$' || head.number < 0) {
            return false;
        }
        ret_words->word[i] = bytes + head.next;
        ret_words->len[i] = (size_t)head.number;
        head.next += (size_t)head.number + 2;
    }
    return true;
}

static bool word_is(const ts_words *words, int i, const char *name, size_t len)
{
    return i < words->count && words->len[i] == len && strncasecmp(words->word[i], name, len) == 0;
}

bool ts_resp_is(const ts_words *words, const char *name)
{
    if (name == NULL) {
        return true;
    }
    size_t first = strcspn(name, " ");
    if (!word_is(words, 0, name, first)) {
        return false;
    }
    return name[first] == '\0' || word_is(words, 1, name + first + 1, strlen(name + first + 1));
}
