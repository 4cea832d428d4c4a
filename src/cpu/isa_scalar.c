/* Plain C: the tables of this instruction set, and its folds of floats. */
#define MF_VEC_BYTES 16
#define MF_UNROLLED
#include "vec_generic.h"

#define MF_SPARSE
#include "fold_kernels.inc"

void mf_kernels_scalar(struct kernels *k);
void mf_rare_scalar(struct kernels *k);
void mf_maps_scalar(struct kernels *k);

void mf_kernels_scalar(struct kernels *k)
{
    k->name = "scalar";
    fill_fold_kernels(k);
    mf_rare_scalar(k);
    mf_maps_scalar(k);
}
