/* Winograd's transforms for this instruction set. */
#define MF_VEC_BYTES 16
#include "../src/cpu/vec_generic.h"

#include "winograd_kernels.inc"

void mf_winograd_neon(struct winograd_kernels *k)
{
    fill_winograd(k);
}
