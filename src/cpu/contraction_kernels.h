/* The kernels of contractions: one tile of outputs over packed panels of both operands.
 *
 * A term is x o y, terms are folded in an order given as leaves: a leaf is a chain of terms, left to right; after it
 * come `joins` joins of the two youngest values. So any bracketing of the sequence can be asked for, the contract's
 * halving tree (docs/numerics.md) too. */
#ifndef MF_CPU_CONTRACTION_KERNELS_H
#define MF_CPU_CONTRACTION_KERNELS_H

#include "../term_order.h"
#include "direct_kernels.h"
#include "kernels.h"

/* All of them commute. ABSDIFF is |x - y|, SQDIFF (x - y) * (x - y); AND as a term of FOLD_ANY is 0 or 1. */
enum product {
    PRODUCT_MUL,
    PRODUCT_ADD,
    PRODUCT_MIN,
    PRODUCT_MAX,
    PRODUCT_ABSDIFF,
    PRODUCT_SQDIFF,
    PRODUCT_EQ,
    PRODUCT_NE,
    PRODUCT_AND,
    PRODUCT_OR,
    PRODUCT_XOR,
    PRODUCT_XORCOUNT, /* bits in which x and y differ */
    PRODUCTS
};

/* How many values may wait for their right neighbours within one call. */
enum { LEAF_LEVELS = 8 };

/* out[i * pitch + j] = the fold of x[k][i] o y[k][j], for i < rows, j < columns of the table below; x and y hold `rows`
 * and `columns` values for each term, in the leaves' order. All leaves together give one value. */
typedef void contraction_fn(void *out, int64_t pitch, const void *x, const void *y, const struct leaf *leaf,
                            int64_t leaves);

/* The best term of x[k][i] o y[k][j] and its number, from those in out and index on (first 0: from nothing). Numbers
 * are integers of the size of a value. */
typedef void contraction_arg_fn(void *out, void *index, int64_t pitch, const void *x, const void *y, int64_t terms,
                                int64_t first);

struct contraction_kernels {
    int rows, columns[4]; /* of a tile, by class */
    /* Null where there is none. [1] takes any values; [0] only those of which no term is a NaN (null: use [1]). */
    contraction_fn *tile[PRODUCTS][FOLD_COUNT][4][2];
    contraction_arg_fn *arg[PRODUCTS][2][2][2]; /* by least or greatest, class (floats), and as tile */
    /* CLS_F32, CLS_F64: sums of x * y, each term rounded once where the processor can (then not the contract's bits);
     * fused_more adds them to out;
     * values[i] = E(values[i] - shift[i % period]), E as docs/numerics.md, section 3 has it (no NaN comes out) */
    contraction_fn *fused[2], *fused_more[2];
    void (*exp_shifted[2])(void *values, int64_t n, const void *shift, int64_t period);
    /* sums[i * pitch + j] += E(x[k][i] + y[k][j] - most[i * pitch + j]) for one tile and every term k */
    void (*exp_sums[2])(void *sums, const void *most, int64_t pitch, const void *x, const void *y, int64_t terms);
    /* solver direct: the kernel, and its largest tile */
    direct_fn *direct;
    int direct_rows, direct_columns;
};

#endif
