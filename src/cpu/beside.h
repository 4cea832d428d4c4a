/* Rows the same distance apart, read side by side, each by load instructions of its own.
 *
 * How much of memory's speed that gives depends on how many loads the processor sees ahead, and on its prefetcher, that
 * learns from instructions that walk along one row each. On a Zen 5, of sixteen rows: with few other instructions .8 to
 * .95 of a plain read, with no-ops between the loads down to .77, with one load instruction for all rows .6 to .8. Four
 * pointers and a gap in registers make sixteen addresses with next to nothing beside the loads. */
#ifndef MF_CPU_BESIDE_H
#define MF_CPU_BESIDE_H

#include "vec.h"

/* Elements that widen as they are loaded are too much work beside it: those are asked for so many bytes ahead. */
enum { BESIDE_ROWS = 16, BESIDE_AHEAD = 512 };

struct beside {
    uintptr_t at[4];     /* rows 0, 4, 8, 12 */
    uintptr_t gap, gap3; /* bytes from a row to the next one, and to the third */
};

/* The row that a lane's element k has among all those of lanes (1, 2, 4 ... 16) lanes: neighbouring leaves of the tree
 * over the lanes are numbers whose bits, read backwards, follow each other. */
MF_INLINE int beside_number(int lanes, int lane, int k)
{
    int backwards = 0;
    MF_UNROLLED
    for (int bit = 1; bit < lanes; bit *= 2)
        backwards = 2 * backwards + (lane & bit ? 1 : 0);
    return k * lanes + backwards;
}

/* The bytes from one of count rows to the next, if they are the same everywhere; else 0. */
static inline int64_t beside_gap(const void *const *x, int64_t count)
{
    const uintptr_t gap = (uintptr_t)x[1] - (uintptr_t)x[0];
    for (int64_t k = 2; k < count; k++)
        if ((uintptr_t)x[k] - (uintptr_t)x[k - 1] != gap)
            return 0;
    return (int64_t)gap;
}

MF_INLINE struct beside beside_rows(const void *first, int64_t gap)
{
    const uintptr_t at = (uintptr_t)first, apart = (uintptr_t)gap;
    struct beside b = {{at, at + 4 * apart, at + 8 * apart, at + 12 * apart}, apart, 3 * apart};
    __asm__("" : "+r"(b.gap), "+r"(b.gap3));
    return b;
}

/* Where row number `row` (a constant) is read now. */
MF_INLINE const void *beside_row(const struct beside *b, int row)
{
    const uintptr_t past = row % 4 == 0 ? 0 : row % 4 == 1 ? b->gap : row % 4 == 2 ? 2 * b->gap : b->gap3;
    return (const void *)(b->at[row / 4] + past);
}

/* All rows go on by so many bytes. The compiler is not to know how the pointers differ: it would make sixteen of them,
 * for which there are no registers. */
MF_INLINE void beside_step(struct beside *b, int64_t bytes)
{
    MF_UNROLLED
    for (int i = 0; i < 4; i++) {
        b->at[i] += (uintptr_t)bytes;
        __asm__("" : "+r"(b->at[i]));
    }
}

#endif
