/* AVX-512 F, BW, DQ, VL: folds of integers. */
#define MF_VEC_BYTES 64
#include "vec_avx512.h"

#include "fold_integers.inc"

void mf_ints_avx512(struct kernels *k);

void mf_ints_avx512(struct kernels *k)
{
    fill_integer_folds(k);
}
