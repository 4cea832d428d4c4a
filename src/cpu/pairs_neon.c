/* ARM NEON: operations from memory to memory. */
#define MF_VEC_BYTES 16
#include "vec_generic.h"

#include "pair_table.inc"

void mf_pairs_neon(struct kernels *k);

void mf_pairs_neon(struct kernels *k)
{
    fill_pairs(k);
}
