/* The loops behind limit.c, one table an instruction set. */
#ifndef MF_CLI_LIMIT_LOOPS_H
#define MF_CLI_LIMIT_LOOPS_H

#include <stddef.h>
#include <stdint.h>

/* Memories are aligned to 64 bytes and sizes are multiples of 512. */
struct limit_loops {
    const char *name;
    uint64_t (*read)(const void *from, size_t bytes);
    uint64_t (*read_ahead)(const void *from, size_t bytes); /* with prefetches */
    void (*copy)(void *to, const void *from, size_t bytes); /* past the cache */
    void (*fill)(void *to, size_t bytes);                   /* past the cache */
};

/* The widest that this processor has. */
const struct limit_loops *limit_loops_best(void);

#endif
