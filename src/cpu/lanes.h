/* Rows that are a lane each. */
#ifndef MF_CPU_LANES_H
#define MF_CPU_LANES_H

#include "kernels.h"

struct lanes {
    chain_fn *chain, *join; /* of the rows' type; of what chain makes of it */
    int64_t n;              /* columns */
    int64_t spare_bytes;    /* of a row of spare ones */
};

enum { LANE_ROWS = 6 }; /* spare ones of 128 lanes */

/* to[i] = the fold of x[row][i], x[row + step][i] ... x[below count][i] by the halving tree (numerics.md, section 2):
 * lane l with lane l + 64, then 32 ... 1. spare: a row for every k with 3 * 2^k < count. */
void mf_fold_lanes(const struct lanes *lanes, const void *const *x, int row, int step, int count, char *to,
                   char *spare);

#endif
