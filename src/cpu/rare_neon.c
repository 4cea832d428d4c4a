/* ARM NEON: rare folds. */
#define MF_VEC_BYTES 16
#include "vec_generic.h"

#include "rare_folds.inc"
#include "full_rare_folds.inc"

void mf_rare_neon(struct kernels *k);

void mf_rare_neon(struct kernels *k)
{
    fill_rare_folds(k);
    fill_full_rare_folds(k);
}
