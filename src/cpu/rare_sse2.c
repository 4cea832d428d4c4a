/* x86-64: rare folds, which plain C has no others of there. */
#define MF_VEC_BYTES 16
#include "vec_sse2.h"

#define MF_SPARSE
#include "rare_folds.inc"

void mf_rare_sse2(struct kernels *k);
void mf_rare_scalar(struct kernels *k);

void mf_rare_sse2(struct kernels *k)
{
    fill_rare_folds(k);
}

void mf_rare_scalar(struct kernels *k)
{
    fill_rare_folds(k);
}
