/* The contraction kernels of this instruction set, which plain C has no others of on x86-64. */
#define MF_VEC_BYTES 16
#include "vec_sse2.h"

#define MF_SPARSE
#include "contraction_kernels.inc"

void mf_contractions_sse2(struct contraction_kernels *k);
void mf_contractions_scalar(struct contraction_kernels *k);

void mf_contractions_sse2(struct contraction_kernels *k)
{
    fill_contractions(k);
}

void mf_contractions_scalar(struct contraction_kernels *k)
{
    fill_contractions(k);
}
