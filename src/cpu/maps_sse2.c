/* x86-64: maps and conversions, which plain C has no others of there. */
#define MF_VEC_BYTES 16
#include "vec_sse2.h"

#define MF_SPARSE
#include "map_kernels.inc"

void mf_maps_sse2(struct kernels *k);
void mf_maps_scalar(struct kernels *k);

void mf_maps_sse2(struct kernels *k)
{
    fill_map_kernels(k);
}

void mf_maps_scalar(struct kernels *k)
{
    fill_map_kernels(k);
}
