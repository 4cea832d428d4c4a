/* Winograd's transforms for this instruction set. */
#define MF_VEC_BYTES 64
#include "../src/cpu/vec_avx512.h"

#include "winograd_kernels.inc"

void mf_winograd_avx512(struct winograd_kernels *k)
{
    fill_winograd(k);
}
