/* AVX-512 F, BW, DQ, VL: operations from memory to memory. */
#define MF_VEC_BYTES 64
#include "vec_avx512.h"

#include "pair_table.inc"

void mf_pairs_avx512(struct kernels *k);

void mf_pairs_avx512(struct kernels *k)
{
    fill_pairs(k);
}
