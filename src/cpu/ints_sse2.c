/* x86-64: folds of integers. */
#define MF_VEC_BYTES 16
#include "vec_sse2.h"

#define MF_SPARSE
#include "fold_integers.inc"

void mf_ints_sse2(struct kernels *k);

void mf_ints_sse2(struct kernels *k)
{
    fill_integer_folds(k);
}
