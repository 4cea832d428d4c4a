/* ARM NEON: the tables of this instruction set, and its folds of floats and bytes. */
#define MF_VEC_BYTES 16
#include "vec_generic.h"

#include "fold_kernels.inc"
#include "full_folds.inc"

void mf_kernels_neon(struct kernels *k);
void mf_rare_neon(struct kernels *k);
void mf_maps_neon(struct kernels *k);
void mf_pairs_neon(struct kernels *k);

void mf_kernels_neon(struct kernels *k)
{
    k->name = "neon";
    fill_fold_kernels(k);
    fill_full_folds(k);
    mf_rare_neon(k);
    mf_maps_neon(k);
    mf_pairs_neon(k);
}
