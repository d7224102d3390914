/* report.h - what every node answered to one call, on its way to the caller. */
#ifndef RLI_REPORT_H
#define RLI_REPORT_H

#include "redlatch.h"

#include "ballot.h"
#include "url.h"

/* One node's result inside an operation. The text is a copy, made only if somebody will read it. */
struct rli_result {
    int outcome;
    int sys_errno;
    int64_t rtt_us;
    char *text;
};

/* Notes an answer; `with_text`: keep its words, escaped and cut (without memory for them they are dropped). */
void rli_result_set(struct rli_result *result, const struct rli_answer *answer, bool with_text);
void rli_result_clear(struct rli_result *result, int outcome);

/* NULL reports are fine. */
void rli_report_reset(rl_report *report);
void rli_report_fill(rl_report *report, const struct rli_url *urls, const struct rli_result *results, uint32_t count);
void rli_report_set_free_in(rl_report *report, rli_span span); /* RLI_NEVER: not known */

#endif
