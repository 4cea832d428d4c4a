/* Rows that are a lane each. */
#ifndef MF_CPU_LANES_H
#define MF_CPU_LANES_H

#include "kernels.h"

struct lanes {
    chain_fn *chain, *join; /* of the rows' type; of what chain makes of it */
    int64_t n;              /* columns */
    int64_t spare_bytes;    /* of a row of spare ones */
};

enum { LANE_ROWS = 7 }; /* spare ones of all lanes */

/* to[i] = the fold of elements x[e][i], e < count <= LANES * STEPS, of lane `row`, which are a chain, and those of
 * lanes row + step, row + 2 * step ... by the halving tree (numerics.md, section 2): lane l with lane l + 64, then 32
 * ... 1. */
void mf_fold_lanes(const struct lanes *lanes, const void *const *x, int row, int step, int count, char *to,
                   char *spare);

#endif
