/* fuzz.h - what the fuzzers share. */
#ifndef REDLATCH_FUZZ_H
#define REDLATCH_FUZZ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Not assert: it is to hold in every build. */
#define MUST(condition)                                                                                                            \
    do {                                                                                                                           \
        if (!(condition)) {                                                                                                        \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition);                                         \
            abort();                                                                                                               \
        }                                                                                                                          \
    } while (0)

/* The input as a text of its own, with its NUL right behind it, so that a byte too far is seen. */
static inline char *text_of(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    MUST(text);
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

#endif
