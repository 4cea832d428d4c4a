/* Plain C: folds of integers. */
#define MF_VEC_BYTES 16
#define MF_UNROLLED
#include "vec_generic.h"

#define MF_SPARSE
#include "fold_integers.inc"

void mf_ints_scalar(struct kernels *k);

void mf_ints_scalar(struct kernels *k)
{
    fill_integer_folds(k);
}
