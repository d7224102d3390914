/* fuzz_token.c - any name and token as a lock to import: taken if it has the form of a token, and then kept to the byte. */
#include "fuzz.h"

#include "redlatch.h"

static int is_token(const char *token)
{
    size_t label;

    if (strspn(token, "0123456789abcdef") < 32)
        return 0;
    if (!token[32])
        return 1;
    label = strlen(token + 33);
    if (token[32] != ':' || label < 1 || label > RL_MAX_LABEL)
        return 0;
    for (const char *c = token + 33; *c; c++)
        if (*c < ' ' || *c > '~')
            return 0;
    return 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static rl_client *client;
    static const int64_t fences[] = {0, 1, INT64_C(1) << 53, RL_MAX_FENCE - 1, -1};
    size_t name_len = size ? data[0] % 40u : 0, kept_len;
    int64_t fence = fences[size ? data[0] / 40u % 5 : 0];
    char *name, *token;
    rl_lock *lock;
    int rc;

    if (!client)
        MUST(rl_client_new("redis://127.0.0.1,redis://127.0.0.2,redis://127.0.0.3", NULL, &client, NULL) == RL_OK);
    data += size > 0;
    size -= size > 0;
    name_len = name_len < size ? name_len : size;
    name = text_of(data, name_len);
    token = text_of(data + name_len, size - name_len);
    rc = rl_lock_import(client, name, name_len, token, fence, &lock);
    MUST((rc == RL_OK) == (name_len > 0 && is_token(token) && fence >= 0 && fence < RL_MAX_FENCE));
    if (rc == RL_OK) {
        MUST(strcmp(rl_lock_token(lock), token) == 0 && rl_lock_remaining_ms(lock) == 0);
        MUST(rl_lock_fence(lock) == fence);
        MUST(memcmp(rl_lock_name(lock, &kept_len), name, name_len + 1) == 0 && kept_len == name_len);
    } else {
        MUST(rc == RL_E_INVALID && !lock);
    }
    rl_lock_free(lock);
    free(name);
    free(token);
    return 0;
}
