/* ARM NEON: folds of integers. */
#define MF_VEC_BYTES 16
#include "vec_generic.h"

#include "fold_integers.inc"

void mf_ints_neon(struct kernels *k);

void mf_ints_neon(struct kernels *k)
{
    fill_integer_folds(k);
}
