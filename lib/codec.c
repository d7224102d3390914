/* codec.c - see codec.h.
 *
 * hiredis builds replies through a table of functions. Ours build nothing: they note the outermost value and the first integers of an
 * array in the codec. A function that returns NULL makes the reader give up, which is how the limits work; without them 13 bytes
 * ("*2147483647") stall any hiredis for seconds. */
#include "codec.h"

#include "port.h"

#include <hiredis/hiredis.h>
#include <string.h>

#if HIREDIS_MAJOR == 0 && HIREDIS_MINOR < 14
#error "hiredis 0.14 or later is needed"
#endif

#if HIREDIS_MAJOR >= 1
typedef size_t element_count;
#else
typedef int element_count;
#endif

struct rli_codec {
    redisReader *reader;
    size_t since_reply; /* bytes fed since the end of the last whole reply */
    struct rli_reply reply;
    char text[RLI_MAX_TEXT + 1];
    int64_t values[RLI_MAX_INTS];
};

static struct rli_codec *codec_of(const redisReadTask *task)
{
    return task->privdata;
}

static bool too_deep(const redisReadTask *task)
{
    int depth = 0;
    for (; task; task = task->parent)
        depth++;
    return depth > RLI_MAX_DEPTH;
}

static void *create_string(const redisReadTask *task, char *text, size_t length)
{
    struct rli_codec *codec = codec_of(task);
    struct rli_reply *reply = &codec->reply;

    if (length > RLI_MAX_BULK ||
        (task->type != REDIS_REPLY_STRING && task->type != REDIS_REPLY_STATUS && task->type != REDIS_REPLY_ERROR))
        return NULL;
    if (task->parent)
        return codec;
    reply->type = task->type == REDIS_REPLY_ERROR ? RLI_ERROR : task->type == REDIS_REPLY_STATUS ? RLI_STATUS : RLI_BULK;
    reply->text_len = length < RLI_MAX_TEXT ? length : RLI_MAX_TEXT;
    memcpy(codec->text, text, reply->text_len);
    codec->text[reply->text_len] = '\0';
    reply->text = codec->text;
    return codec;
}

static void *create_array(const redisReadTask *task, element_count elements)
{
    struct rli_codec *codec = codec_of(task);

    if (task->type != REDIS_REPLY_ARRAY || elements > RLI_MAX_ELEMENTS || too_deep(task))
        return NULL;
    if (!task->parent) {
        codec->reply.type = RLI_ARRAY;
        codec->reply.elements = (size_t)elements;
        codec->reply.ints = 0;
        codec->reply.values = codec->values;
    }
    return codec;
}

static void *create_integer(const redisReadTask *task, long long value)
{
    struct rli_codec *codec = codec_of(task);
    struct rli_reply *reply = &codec->reply;

    if (!task->parent) {
        reply->type = RLI_INTEGER;
        reply->integer = value;
    } else if (!task->parent->parent && (uint32_t)task->idx == reply->ints && reply->ints < RLI_MAX_INTS) {
        codec->values[reply->ints++] = value;
    }
    return codec;
}

static void *create_nil(const redisReadTask *task)
{
    struct rli_codec *codec = codec_of(task);

    if (task->type == REDIS_REPLY_NIL) /* RESP3's own: RESP2's is a string or an array of length -1 */
        return NULL;
    if (!task->parent)
        codec->reply.type = RLI_NIL;
    return codec;
}

static void free_object(void *object)
{
    (void)object; /* part of the codec */
}

#if HIREDIS_MAJOR >= 1
static void *refuse_double(const redisReadTask *task, double value, char *text, size_t length)
{
    (void)task, (void)value, (void)text, (void)length;
    return NULL;
}

static void *refuse_bool(const redisReadTask *task, int value)
{
    (void)task, (void)value;
    return NULL;
}
#endif

/* RESP2 only: what came with RESP3 is refused. */
static const redisReplyObjectFunctions functions = {
    .createString = create_string,
    .createArray = create_array,
    .createInteger = create_integer,
    .createNil = create_nil,
    .freeObject = free_object,
#if HIREDIS_MAJOR >= 1
    .createDouble = refuse_double,
    .createBool = refuse_bool,
#endif
};

struct rli_codec *rli_codec_new(void)
{
    struct rli_codec *codec = rli_calloc(sizeof *codec);

    if (!codec)
        return NULL;
    codec->reader = redisReaderCreateWithFunctions((redisReplyObjectFunctions *)(uintptr_t)&functions);
    if (!codec->reader) {
        rli_free(codec);
        return NULL;
    }
    codec->reader->privdata = codec;
    return codec;
}

void rli_codec_free(struct rli_codec *codec)
{
    if (!codec)
        return;
    redisReaderFree(codec->reader);
    rli_free(codec);
}

bool rli_codec_feed(struct rli_codec *codec, const char *bytes, size_t size)
{
    codec->since_reply += size;
    return redisReaderFeed(codec->reader, bytes, size) == REDIS_OK;
}

enum rli_next rli_codec_next(struct rli_codec *codec, struct rli_reply *ret)
{
    void *object = NULL;

    if (redisReaderGetReply(codec->reader, &object) != REDIS_OK)
        return RLI_NEXT_VIOLATION;
    if (!object) /* a reply in progress may not grow without end either */
        return codec->since_reply > 2 * RLI_MAX_BULK ? RLI_NEXT_VIOLATION : RLI_NEXT_NONE;
    codec->since_reply = codec->reader->len - codec->reader->pos;
    *ret = codec->reply;
    return RLI_NEXT_REPLY;
}

bool rli_codec_partial(const struct rli_codec *codec)
{
    return codec->since_reply > 0;
}

/* "$12\r\n": a letter and a length. */
static size_t put_length(char *to, char letter, size_t value)
{
    char digits[20];
    size_t count = 0, at = 0;

    to[at++] = letter;
    for (; value >= 100; value /= 10)
        digits[count++] = (char)('0' + value % 10);
    if (value >= 10)
        to[at++] = (char)('0' + value / 10);
    to[at++] = (char)('0' + value % 10);
    while (count)
        to[at++] = digits[--count];
    to[at++] = '\r';
    to[at++] = '\n';
    return at;
}

size_t rli_format(const struct rli_command *command, char *to, size_t room)
{
    enum { MOST_LENGTH = 1 + 20 + 2 };
    size_t bound = MOST_LENGTH, at;
    char length[MOST_LENGTH];

    for (int i = 0; i < command->argc; i++)
        bound += MOST_LENGTH + command->length[i] + 2;
    if (bound > room) { /* only then is it worth counting to the byte */
        bound = put_length(length, '*', (size_t)command->argc);
        for (int i = 0; i < command->argc; i++)
            bound += put_length(length, '$', command->length[i]) + command->length[i] + 2;
        if (bound > room)
            return bound;
    }
    at = put_length(to, '*', (size_t)command->argc);
    for (int i = 0; i < command->argc; i++) {
        at += put_length(to + at, '$', command->length[i]);
        memcpy(to + at, command->argv[i], command->length[i]);
        at += command->length[i];
        memcpy(to + at, "\r\n", 2);
        at += 2;
    }
    return at;
}
