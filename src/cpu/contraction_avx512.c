/* The contraction kernels of this instruction set. */
#define MF_VEC_BYTES 64
#include "vec_avx512.h"

#include "contraction_kernels.inc"

void mf_contractions_avx512(struct contraction_kernels *k);

void mf_contractions_avx512(struct contraction_kernels *k)
{
    fill_contractions(k);
}
