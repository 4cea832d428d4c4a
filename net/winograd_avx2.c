/* Winograd's transforms for this instruction set. */
#define MF_VEC_BYTES 32
#include "../src/cpu/vec_avx2.h"

#include "winograd_kernels.inc"

void mf_winograd_avx2(struct winograd_kernels *k)
{
    fill_winograd(k);
}
