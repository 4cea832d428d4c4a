/* Plain C: the tables of this instruction set. */
#define MF_VEC_BYTES 16
#define MF_UNROLLED
#include "vec_generic.h"

/* A store past the cache, to an aligned address. */
#define MF_STREAM(to, v) vstore_u8((uint8_t *)(to), (vec_u8)(v))

#define MF_SPARSE
#include "fold_kernels.inc"
#include "map_kernels.inc"

void mf_kernels_scalar(struct kernels *k);

void mf_kernels_scalar(struct kernels *k)
{
    k->name = "scalar";
    fill_fold_kernels(k);
    fill_map_kernels(k);
}
