/* x86-64: the tables of this instruction set, and its folds of floats. */
#define MF_VEC_BYTES 16
#include "vec_sse2.h"

#define MF_SPARSE
#include "fold_kernels.inc"

void mf_kernels_sse2(struct kernels *k);
void mf_rare_sse2(struct kernels *k);
void mf_maps_sse2(struct kernels *k);

void mf_kernels_sse2(struct kernels *k)
{
    k->name = "sse2";
    fill_fold_kernels(k);
    mf_rare_sse2(k);
    mf_maps_sse2(k);
}
