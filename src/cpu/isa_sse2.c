/* x86-64: the tables of this instruction set. */
#define MF_VEC_BYTES 16
#include "vec_sse2.h"

/* A store past the cache, to an aligned address. */
#define MF_STREAM(to, v) _mm_stream_si128((__m128i *)(to), (__m128i)(v))

#define MF_SPARSE
#include "fold_kernels.inc"
#include "map_kernels.inc"

void mf_kernels_sse2(struct kernels *k);

void mf_kernels_sse2(struct kernels *k)
{
    k->name = "sse2";
    fill_fold_kernels(k);
    fill_map_kernels(k);
}
