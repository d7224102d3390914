/* report.c - see report.h. A report has room for every node of the largest client, so that filling it cannot fail. */
#include "report.h"

#include "port.h"

#include <string.h>

enum { MAX_TEXT = 200, MAX_URL = 400 };

struct rl_report {
    uint32_t count;
    int64_t free_in_ms;
    struct {
        int outcome, sys_errno;
        int64_t rtt_us;
        char url[MAX_URL], text[MAX_TEXT];
    } nodes[RL_MAX_NODES];
};

/* The server's words go into logs: control characters and everything else that is not printable ASCII become \xhh. */
static char *escaped(const char *text, size_t length)
{
    static const char digits[] = "0123456789abcdef";
    char *out = rli_calloc(MAX_TEXT), *to = out;

    for (size_t i = 0; out && i < length && to + 5 < out + MAX_TEXT; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c >= ' ' && c <= '~' && c != '\\') {
            *to++ = (char)c;
        } else {
            memcpy(to, "\\x", 2);
            to[2] = digits[c >> 4];
            to[3] = digits[c & 15];
            to += 4;
        }
    }
    return out;
}

void rli_result_clear(struct rli_result *result, int outcome)
{
    rli_free(result->text);
    *result = (struct rli_result){.outcome = outcome, .rtt_us = -1};
}

void rli_result_set(struct rli_result *result, const struct rli_answer *answer, bool with_text)
{
    rli_result_clear(result, answer->outcome);
    result->sys_errno = answer->sys_errno;
    if (answer->at != RLI_GONE && answer->sent != RLI_GONE)
        result->rtt_us = rli_until(answer->at, answer->sent) / 1000;
    if (with_text && answer->text)
        result->text = escaped(answer->text, answer->text_len);
}

int rl_report_new(rl_report **ret_report)
{
    if (!ret_report)
        return RL_E_INVALID;
    *ret_report = rli_calloc(sizeof **ret_report);
    return *ret_report ? RL_OK : RL_E_NO_MEMORY;
}

void rl_report_free(rl_report *report)
{
    rli_free(report);
}

void rli_report_reset(rl_report *report)
{
    if (report)
        report->count = 0, report->free_in_ms = 0;
}

static void copy(char *to, size_t room, const char *from)
{
    size_t length = from ? strnlen(from, room - 1) : 0;
    if (length)
        memcpy(to, from, length);
    to[length] = '\0';
}

void rli_report_fill(rl_report *report, const struct rli_url *urls, const struct rli_result *results, uint32_t count)
{
    if (!report)
        return;
    report->count = count;
    for (uint32_t i = 0; i < count; i++) {
        report->nodes[i].outcome = results[i].outcome;
        report->nodes[i].sys_errno = results[i].sys_errno;
        report->nodes[i].rtt_us = results[i].rtt_us;
        copy(report->nodes[i].url, MAX_URL, urls[i].shown);
        copy(report->nodes[i].text, MAX_TEXT, results[i].text);
    }
}

void rli_report_set_free_in(rl_report *report, rli_span span)
{
    if (report)
        report->free_in_ms = span == RLI_NEVER ? -1 : rli_max(rli_to_ms_ceil(span), 0);
}

size_t rl_report_count(const rl_report *report)
{
    return report ? report->count : 0;
}

int64_t rl_report_free_in_ms(const rl_report *report)
{
    return report ? report->free_in_ms : 0;
}

int rl_report_node(const rl_report *report, size_t i, rl_node_result *ret_result)
{
    if (!report || !ret_result || ret_result->size < sizeof(size_t) || i >= report->count)
        return RL_E_INVALID;

    rl_node_result result = {
        .size = ret_result->size,
        .node = report->nodes[i].url,
        .text = report->nodes[i].text,
        .rtt_us = report->nodes[i].rtt_us,
        .outcome = report->nodes[i].outcome,
        .sys_errno = report->nodes[i].sys_errno,
    };
    if (ret_result->size > sizeof result)
        memset((char *)ret_result + sizeof result, 0, ret_result->size - sizeof result);
    memcpy(ret_result, &result, result.size < sizeof result ? result.size : sizeof result);
    return RL_OK;
}
