/* Short integers computed as they lie in memory. */
#ifndef MF_CPU_NARROW_H
#define MF_CPU_NARROW_H

#include "block.h"

/* Whether all outputs' bits can be had so: integers of one size of 4 bytes or less, as all operands are, and operations
 * whose low bits depend on low bits only, or whose operands surely fit. Then plan->narrow is that size, and
 * plan->fits what is known of each node. */
int mf_narrow_plan(struct block_plan *plan, const struct problem *problem, const struct kernels *kernels);
/* The kernel whose operands are the only output's last operation's; null: it is none of the pair kernels'. */
pair_fn *mf_narrow_last(const struct block_plan *plan, int root, const struct kernels *kernels);
/* Node i of n positions, which is no leaf, in `to`, or an operand's own elements. */
const void *mf_narrow_node(const struct block *block, int i, void *to, int64_t n);

#endif
