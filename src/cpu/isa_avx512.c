/* AVX-512 F, BW, DQ, VL: the tables of this instruction set, and its folds of floats and bytes. */
#define MF_VEC_BYTES 64
#include "vec_avx512.h"

#include "fold_kernels.inc"
#include "full_folds.inc"

void mf_kernels_avx512(struct kernels *k);
void mf_rare_avx512(struct kernels *k);
void mf_maps_avx512(struct kernels *k);
void mf_pairs_avx512(struct kernels *k);

void mf_kernels_avx512(struct kernels *k)
{
    k->name = "avx512";
    fill_fold_kernels(k);
    fill_full_folds(k);
    mf_rare_avx512(k);
    mf_maps_avx512(k);
    mf_pairs_avx512(k);
}
