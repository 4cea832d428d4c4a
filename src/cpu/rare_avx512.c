/* AVX-512 F, BW, DQ, VL: rare folds. */
#define MF_VEC_BYTES 64
#include "vec_avx512.h"

#include "rare_folds.inc"
#include "full_rare_folds.inc"

void mf_rare_avx512(struct kernels *k);

void mf_rare_avx512(struct kernels *k)
{
    fill_rare_folds(k);
    fill_full_rare_folds(k);
}
