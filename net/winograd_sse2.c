/* Winograd's transforms for this instruction set, which plain C has no others of on x86-64. */
#define MF_VEC_BYTES 16
#include "../src/cpu/vec_sse2.h"

#include "winograd_kernels.inc"

void mf_winograd_sse2(struct winograd_kernels *k)
{
    fill_winograd(k);
}

void mf_winograd_scalar(struct winograd_kernels *k)
{
    fill_winograd(k);
}
