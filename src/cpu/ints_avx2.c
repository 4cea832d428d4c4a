/* AVX2, FMA, F16C: folds of integers. */
#define MF_VEC_BYTES 32
#include "vec_avx2.h"

#include "fold_integers.inc"

void mf_ints_avx2(struct kernels *k);

void mf_ints_avx2(struct kernels *k)
{
    fill_integer_folds(k);
}
