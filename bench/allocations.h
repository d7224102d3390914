/* allocations.h - how often anything in this process asks the C library for memory. */
#ifndef BENCH_ALLOCATIONS_H
#define BENCH_ALLOCATIONS_H

/* Allocations of one of `count` steps. Nothing else may run meanwhile. */
double count_allocations(long (*step)(void *arg), void *arg, long count);

#endif
