/* AVX2, FMA, F16C: rare folds. */
#define MF_VEC_BYTES 32
#include "vec_avx2.h"

#include "rare_folds.inc"
#include "full_rare_folds.inc"

void mf_rare_avx2(struct kernels *k);

void mf_rare_avx2(struct kernels *k)
{
    fill_rare_folds(k);
    fill_full_rare_folds(k);
}
