/* One tensor's view of a group of loops: the loops merged as far as this tensor allows, and copies of ranges of
 * them. */
#ifndef MF_CPU_WALK_H
#define MF_CPU_WALK_H

#include "../layout.h"

/* A flat position f counts the loops' positions, the last loop fastest. */
struct walk {
    int loops;
    int64_t size[MAX_LOOPS], stride[MAX_LOOPS]; /* elements */
};

/* Merges neighbours that continue each other. No loops at all become one loop of 1. */
void mf_walk_make(struct walk *walk, int loops, const int64_t *size, const int64_t *stride);
/* The same for some of the loops, given by their numbers. */
void mf_walk_choose(struct walk *walk, const int64_t *size, const int64_t *stride, int count, const int *loop);
/* Elements from the base to flat position f. */
int64_t mf_walk_offset(const struct walk *walk, int64_t f);
/* The same for positions f, f+step ...: n of them, at least one. */
void mf_walk_offsets(const struct walk *walk, int64_t f, int64_t step, int64_t n, int64_t *offset);
/* Whether positions f ... f+n-1 lie within one run of the last loop. */
int mf_walk_in_run(const struct walk *walk, int64_t f, int64_t n);

/* How many bytes after an element the one lies that is to be asked for when it is read, some kilobytes of runs later; 0
 * where processors see it coming. */
int64_t mf_walk_ahead(const struct walk *walk, int item);
/* Copies a run, and asks for what lies `ahead` bytes later, if not 0. */
void mf_copy_run(void *to, const void *from, int64_t bytes, int64_t ahead);

/* to[0 ... n-1] = the elements at positions f ... f+n-1; item is their size in bytes (1, 2, 4, 8). */
void mf_walk_gather(const struct walk *walk, int item, const char *base, int64_t f, int64_t n, void *to);
/* The reverse. */
void mf_walk_scatter(const struct walk *walk, int item, char *base, int64_t f, int64_t n, const void *from);

#endif
