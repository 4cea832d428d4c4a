/* Plain C: rare folds. */
#define MF_VEC_BYTES 16
#define MF_UNROLLED
#include "vec_generic.h"

#define MF_SPARSE
#include "rare_folds.inc"

void mf_rare_scalar(struct kernels *k);

void mf_rare_scalar(struct kernels *k)
{
    fill_rare_folds(k);
}
