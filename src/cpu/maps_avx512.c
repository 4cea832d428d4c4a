/* AVX-512 F, BW, DQ, VL: maps and conversions. */
#define MF_VEC_BYTES 64
#include "vec_avx512.h"

#include "map_kernels.inc"

/* An instruction moves any elements of two vectors: units of whole lines. Two bytes: of half a line, since as many of
 * whole ones as they have elements would not fit in registers. */
#define LIST(...) __VA_ARGS__
#define ZIP_LOW LIST(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define ZIP_HIGH LIST(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#define TURN_UNROLLED MF_UNROLLED
#define BITS 64
#define N 8
#define LOW LIST(0, 8, 1, 9, 2, 10, 3, 11)
#define HIGH LIST(4, 12, 5, 13, 6, 14, 7, 15)
#include "turn_item.inc"
#define BITS 32
#define N 16
#define LOW ZIP_LOW
#define HIGH ZIP_HIGH
#include "turn_item.inc"
#define BITS 16
#define N 16
#define LOW ZIP_LOW
#define HIGH ZIP_HIGH
#include "turn_item.inc"

void mf_maps_avx512(struct kernels *k);

void mf_maps_avx512(struct kernels *k)
{
    fill_map_kernels(k);
    k->turn[1] = turn_16;
    k->turn[2] = turn_32;
    k->turn[3] = turn_64;
}
