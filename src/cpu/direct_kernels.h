/* The kernel of solver "direct": a tile of outputs, sums of products, read where the operands lie. */
#ifndef MF_CPU_DIRECT_KERNELS_H
#define MF_CPU_DIRECT_KERNELS_H

#include <stdint.h>

/* Consecutive terms: offsets of the first one in both operands. */
struct direct_run {
    int64_t x, y, terms;
};

enum { DIRECT_STEP = 4 };
enum direct_end { DIRECT_PLAIN, DIRECT_LEAKY, DIRECT_RELU };

/* out[r * out_pitch + j] (+)= the sum over all runs and terms k of x[r * x_pitch + run.x + k] *
 * y[run.y + k * y_pitch + j], for r < rows (at most the table's) and j < columns (the table's, or half of them).
 * Each sum is one chain, with one rounding a term where the processor can. Then, with end, v = out + bias[j] (bias may
 * be null), and leaky is v > 0 ? v : v * slope. */
struct direct_tile {
    float *out;
    const float *x, *y, *bias;
    int64_t out_pitch, x_pitch, y_pitch;
    const struct direct_run *run;
    int64_t runs;
    int rows, half; /* half the columns */
    int goes_on;    /* out holds what the sum is added to */
    int ends;       /* this is the last part of the sum */
    enum direct_end end;
    float slope;
    const char *fetch; /* memory that is read afterwards: fetch_step bytes of it every DIRECT_STEP terms of a run */
    int64_t fetch_step, fetches; /* how often in all */
};
typedef void direct_fn(const struct direct_tile *tile);

#endif
