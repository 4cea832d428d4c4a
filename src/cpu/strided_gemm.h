/* Products of strided matrices by a BLAS: what it cannot read or write is copied in blocks that stay in the caches. */
#ifndef MF_CPU_STRIDED_GEMM_H
#define MF_CPU_STRIDED_GEMM_H

#include "../plan.h"
#include "walk.h"

/* A matrix of a batch, in memory and as the BLAS gets it: by columns, or transposed, by rows. What runs along a column
 * (transposed: a row) is the inner walk. */
struct strided_matrix {
    int packed, transposed;
    int64_t pitch; /* elements from column to column */
    struct walk inner, outer, batch;
    int64_t elements; /* where packed: of a block, */
    size_t at;        /* bytes of scratch memory before the first of those that are copied together */
};

enum { STRIDED_A, STRIDED_B, STRIDED_C, STRIDED_MATRICES };

/* c[m, n] = sum over k of a[m, k] b[k, n], `batch` times, `together` of them at once. */
struct strided_gemm {
    enum dtype type;
    int operand[2]; /* a, b */
    int64_t m, n, k, batch;
    int64_t together;
    int64_t lines, rows, columns, terms; /* of blocks; a block of b is for `lines` rows of a, in blocks of `rows` */
    struct strided_matrix matrix[STRIDED_MATRICES];
    size_t bytes; /* scratch memory of an execution */
};

/* One product of blocks as a BLAS has it; all by columns, or transposed. accumulate: added to c, else c is written. */
struct strided_block {
    int m, n, k, transposed[2], pitch[STRIDED_MATRICES], accumulate;
    const char *a, *b;
    char *c;
};
typedef void strided_multiply(void *context, enum dtype type, const struct strided_block *block);

/* Whether a fold is sum(a*b) of f32 or f64 with loops of a, of b, of both and of the sum; fills gemm. own: to be
 * multiplied by fused_gemm.c, not by a BLAS. */
int mf_strided_gemm_find(const struct problem *problem, int own, struct strided_gemm *gemm);
/* memory: g->bytes, aligned to 64. Copies by the plan's threads; the BLAS has its own. */
void mf_strided_gemm_run(const struct mf_plan *plan, const struct strided_gemm *gemm, const struct pointers *pointers,
                         char *memory, strided_multiply *multiply, void *context);
/* A plan's scratch memory waits for its next execution, since the system clears what it gives, which takes as long as
 * the copies. Executions at the same time have their own. Null where there is none. */
typedef _Atomic(char *) strided_scratch;
char *mf_strided_scratch_take(strided_scratch *scratch, size_t bytes);
void mf_strided_scratch_keep(strided_scratch *scratch, char *memory);
/* A solver's print. */
void mf_strided_gemm_print(const struct strided_gemm *gemm, char *text, size_t size);

#endif
