/* The contraction kernels of this instruction set. */
#define MF_VEC_BYTES 16
#include "vec_generic.h"

#include "contraction_kernels.inc"

void mf_contractions_scalar(struct contraction_kernels *k);

void mf_contractions_scalar(struct contraction_kernels *k)
{
    fill_contractions(k);
}
