/* The contraction kernels of this instruction set. */
#define MF_VEC_BYTES 32
#include "vec_avx2.h"

#include "contraction_kernels.inc"

void mf_contractions_avx2(struct contraction_kernels *k);

void mf_contractions_avx2(struct contraction_kernels *k)
{
    fill_contractions(k);
}
