/* Plain C: maps and conversions. */
#define MF_VEC_BYTES 16
#define MF_UNROLLED
#include "vec_generic.h"

#define MF_SPARSE
#include "map_kernels.inc"

void mf_maps_scalar(struct kernels *k);

void mf_maps_scalar(struct kernels *k)
{
    fill_map_kernels(k);
}
