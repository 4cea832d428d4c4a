/* What an instruction set gives for Winograd's algorithm F(4x4, 3x3): its three transforms. */
#ifndef MF_NET_WINOGRAD_KERNELS_H
#define MF_NET_WINOGRAD_KERNELS_H

#include "../src/cpu/direct_kernels.h"

/* A tile of outputs, of the inputs that it depends on, and the products for each filter and channel. */
enum { WINOGRAD_OUT = 4, WINOGRAD_IN = 6, WINOGRAD_POINTS = WINOGRAD_IN * WINOGRAD_IN };
/* Weights are transformed for a third of the points at a time. */
enum { WINOGRAD_THIRDS = 3, WINOGRAD_THIRD = WINOGRAD_POINTS / WINOGRAD_THIRDS };

/* What becomes of a tile's products: m[p * point + f] of point p and filter f < filters. */
struct winograd_tile {
    const float *m, *bias; /* bias by filter, or null */
    int64_t point, filters;
    enum direct_end end;
    float slope;
    float *out;
    int64_t row, pixel; /* elements from row to row and from pixel to pixel */
    int rows, columns;  /* of the tile that are inside the output: 1 to 4 */
    int pool;           /* out gets the greatest of 2 x 2 each */
};

struct winograd_kernels {
    /* v[p * point + c] = (B' d B)[p] of the 36 pixels d at at[0], at[1] ..., rows after each other, for each channel;
     * v has room for whole vectors. */
    void (*input)(const float *const *at, int64_t channels, float *v, int64_t point);
    /* u[p * point + i] = (G g G')[WINOGRAD_THIRD * third + p] of the nine g[t * tap + i], i < count: a multiple of 16,
     * p < WINOGRAD_THIRD. */
    void (*weights)(const float *g, int64_t tap, int64_t count, int third, float *u, int64_t point);
    /* out = end(A' m A + bias); filters: a multiple of 16. */
    void (*output)(const struct winograd_tile *tile);
};

void mf_winograd_scalar(struct winograd_kernels *k);
void mf_winograd_sse2(struct winograd_kernels *k);
void mf_winograd_avx2(struct winograd_kernels *k);
void mf_winograd_avx512(struct winograd_kernels *k);
void mf_winograd_neon(struct winograd_kernels *k);

#endif
