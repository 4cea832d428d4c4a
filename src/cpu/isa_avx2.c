/* AVX2, FMA, F16C: the tables of this instruction set, and its folds of floats and bytes. */
#define MF_VEC_BYTES 32
#include "vec_avx2.h"

#include "fold_kernels.inc"
#include "full_folds.inc"

void mf_kernels_avx2(struct kernels *k);
void mf_rare_avx2(struct kernels *k);
void mf_maps_avx2(struct kernels *k);
void mf_pairs_avx2(struct kernels *k);

void mf_kernels_avx2(struct kernels *k)
{
    k->name = "avx2";
    fill_fold_kernels(k);
    fill_full_folds(k);
    mf_rare_avx2(k);
    mf_maps_avx2(k);
    mf_pairs_avx2(k);
}
