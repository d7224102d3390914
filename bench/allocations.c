/* allocations.c - see allocations.h. The program's own malloc stands before the C library's (glibc's, which is below), for the
 * libraries too. While nothing is counted it costs a branch. */
#include "allocations.h"

#include <stdbool.h>
#include <stdlib.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);

static bool counting;
static long allocations;

static void count_one(void)
{
    if (counting)
        allocations++;
}

void *malloc(size_t size)
{
    count_one();
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    count_one();
    return __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size)
{
    count_one();
    return __libc_realloc(memory, size);
}

double count_allocations(long (*step)(void *arg), void *arg, long count)
{
    allocations = 0;
    counting = true;
    for (long i = 0; i < count; i++)
        step(arg);
    counting = false;
    return (double)allocations / (double)count;
}
