/* AVX-512 F, BW, DQ, VL: the tables of this instruction set. */
#define MF_VEC_BYTES 64
#include "vec_avx512.h"

/* A store past the cache, to an aligned address. */
#define MF_STREAM(to, v) _mm512_stream_si512((__m512i *)(to), (__m512i)(v))

#include "fold_kernels.inc"
#include "map_kernels.inc"
#include "full_folds.inc"
#include "full_maps.inc"

void mf_kernels_avx512(struct kernels *k);

void mf_kernels_avx512(struct kernels *k)
{
    k->name = "avx512";
    fill_fold_kernels(k);
    fill_map_kernels(k);
    fill_full_folds(k);
    fill_full_maps(k);
}
