/* memory.h - how much memory the process has, for tests that want it not to grow. */
#ifndef RLT_MEMORY_H
#define RLT_MEMORY_H

#include "check.h"

#include <stdio.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { RSS_IS_TRUE = 0 };
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
enum { RSS_IS_TRUE = 0 };
#else
enum { RSS_IS_TRUE = 1 };
#endif
#else
enum { RSS_IS_TRUE = 1 };
#endif

/* Under valgrind or a sanitizer, freed memory is not given out again at once. */
static inline bool rss_counts(void)
{
    return RSS_IS_TRUE && ts_slowness() == 1;
}

static inline int64_t rss_kb(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    ts_check(file && fscanf(file, "%*d %ld", &pages) == 1, "no /proc/self/statm");
    fclose(file);
    return pages * (int64_t)sysconf(_SC_PAGESIZE) / 1024;
}

#endif
