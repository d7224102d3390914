/* fuzz_url.c - any text as a list of node URLs: taken or refused, with the fault inside it; what reports show of it has no secrets
 * and means the same node. */
#include "fuzz.h"

#include "redlatch.h"

#include "url.h"

static int same(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static void check_shown(const struct rli_url *url)
{
    struct rli_url again[RL_MAX_NODES];
    uint32_t count;
    size_t error_at;

    MUST(rli_urls_parse(url->shown, again, &count, &error_at) == RL_OK && count == 1);
    MUST(same(url->host, again->host) && same(url->path, again->path) && url->port == again->port && url->db == again->db);
    MUST(!again->user && !again->password);
    rli_urls_free(again, count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rli_url urls[RL_MAX_NODES];
    char *list = text_of(data, size);
    size_t length = strlen(list), error_at = SIZE_MAX;
    uint32_t count = 0;
    int rc = rli_urls_parse(list, urls, &count, &error_at);

    if (rc == RL_OK) {
        MUST(count >= 1 && count <= RL_MAX_NODES);
        for (uint32_t i = 0; i < count; i++) {
            MUST(!urls[i].host != !urls[i].path);
            MUST(urls[i].at < length && (i == 0 || urls[i].at > urls[i - 1].at));
            check_shown(&urls[i]);
        }
        rli_urls_free(urls, count);
    } else {
        MUST(rc == RL_E_INVALID || rc == RL_E_UNSUPPORTED);
        MUST(error_at <= length);
    }
    free(list);
    return 0;
}
