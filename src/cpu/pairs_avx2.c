/* AVX2, FMA, F16C: operations from memory to memory. */
#define MF_VEC_BYTES 32
#include "vec_avx2.h"

#include "pair_table.inc"

void mf_pairs_avx2(struct kernels *k);

void mf_pairs_avx2(struct kernels *k)
{
    fill_pairs(k);
}
