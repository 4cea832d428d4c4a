/* Short integers computed as they lie in memory. */
#ifndef MF_CPU_NARROW_H
#define MF_CPU_NARROW_H

#include "block.h"

/* Whether all nodes' low bits can be had in integers of `size` bytes, as all operands are; plan->fits says of which ones
 * that is the number itself. */
int mf_narrow_fits(struct block_plan *plan, int size, const struct kernels *kernels);
/* After that: they are computed so. */
void mf_narrow_take(struct block_plan *plan, int size);
/* Both, if that is all that the outputs keep. */
int mf_narrow_plan(struct block_plan *plan, const struct problem *problem, const struct kernels *kernels);
/* The type of a node's numbers; -1 where its low bits are known only. */
int mf_narrow_type(const struct block_plan *plan, int node, int size);
/* The kernel whose operands are the only output's last operation's; null: it is none of the pair kernels'. */
pair_fn *mf_narrow_last(const struct block_plan *plan, int root, const struct kernels *kernels);
/* Node i of n positions, which is no leaf, in `to`, or an operand's own elements. */
const void *mf_narrow_node(const struct block *block, int i, void *to, int64_t n);

#endif
