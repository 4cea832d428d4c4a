/* Short integers computed as they lie in memory. */
#ifndef MF_CPU_NARROW_H
#define MF_CPU_NARROW_H

#include "block.h"

/* Whether that is all that the outputs keep; then they are computed so, in plan->narrow bytes. */
int mf_narrow_plan(struct block_plan *plan, const struct problem *problem, const struct kernels *kernels);
/* Rows of short integers, or of bool where floats are compared, that these reducers' folds read as if they were
 * memory's: for all that are not straight, or for none. Returns the size of their elements, 0 for none. type: of each
 * of these reducers, -1 where it reads its class. */
int mf_narrow_rows(struct block_plan *plan, const struct mf_plan *of, const int *reducer, int count,
                   const int *straight, int *type);
/* The kernel whose operands are the only output's last operation's; null: it is none of the pair kernels'. */
pair_fn *mf_narrow_last(const struct block_plan *plan, int root, const struct kernels *kernels);
/* Node i of n positions, which is no leaf, in `to`, or an operand's own elements. */
const void *mf_narrow_node(const struct block *block, int i, void *to, int64_t n);

#endif
