/* A contraction's product as text: its factors, the term they make, what a thread keeps of an output. */
#ifndef MF_GPU_EMIT_CONTRACT_H
#define MF_GPU_EMIT_CONTRACT_H

#include "../factors.h"
#include "emit.h"

/* Tiles of a block and of a thread. */
struct contract_tile {
    int rows, columns, row_own, column_own, step, at_once;
    int threads; /* 0: one for row_own x column_own outputs */
};

/* What is made of the terms: one number, in the contract's order where that matters; the best and where it is; several
 * of these; their logsumexp, in any order; sums of products of exponentials (kernels/log_product.cl). */
enum contraction_kind { CONTRACT_FOLD, CONTRACT_ARGUMENT, CONTRACT_SEVERAL, CONTRACT_LOG, CONTRACT_LOG_PRODUCT };

/* A contraction that kernels/contract.cl can compute. */
struct gpu_contraction {
    enum contraction_kind kind;
    int node[FACTORS]; /* of the map's pool; outputs are stored along the columns */
    struct factor_loops loops;
    int along_terms[FACTORS]; /* neighbouring terms are neighbours in memory, and neighbouring positions are not */
    int fast_loop[FACTORS];   /* the loop along which neighbours are read, */
    int at_a_time[FACTORS];   /* so many: operands have stride 1 or 0 there, and vectors do not cross a loop's end */
    int copied;               /* into shared memory past the registers: floats as they are, kernels/copied_side.cl */
    int by_bits;              /* copied, and the greatest or least sum or difference: compared as integers, tile.cl */
    int in_tree;              /* terms are folded in the contract's order */
    int two_passes;           /* logarithms: the greatest of all terms first, else of every tile's */
    int negate[FACTORS];      /* logarithms: the term is the sum of the factors, this one negated */
};

/* Adds the lists of loops, kernels/terms.cl, the factors (types, operands, values), and the functions on a thread's
 * values of outputs: acc_t, acc_empty, accumulate, acc_join, acc_state. */
void mf_emit_contraction(const struct problem *problem, const struct gpu_slots *slots,
                         const struct gpu_contraction *contraction, struct gpu_text *to);
/* Adds the lists of loops alone. */
void mf_emit_loops(const struct factor_loops *loops, struct gpu_text *to);
/* Adds one factor: its type, operands and value. */
void mf_emit_factor(const struct problem *problem, const struct gpu_slots *slots,
                    const struct gpu_contraction *contraction, int f, struct gpu_text *to);
/* Adds kernels/factor.cl for both factors, or kernels/copied_side.cl. */
void mf_emit_factors(const struct problem *problem, const struct gpu_slots *slots,
                     const struct gpu_contraction *contraction, const struct contract_tile *tile, struct gpu_text *to);

#endif
