/* The finish part over a group of outputs: reducers' results in, outputs stored. Shared by the reducing solvers. */
#ifndef MF_CPU_FINISH_H
#define MF_CPU_FINISH_H

#include "block.h"

/* Results of the reducers for up to BLOCK consecutive outputs: part[r][p] is an array in the class of that state.
 * RED_FOLD: 0 the value. RED_MOMENTS: 0 mean, 1 m2. RED_LSE: 0 m, 1 s. RED_ARG: 0 best, 1 index (i64). RED_USER:
 * results. */
struct results {
    void *part[MAX_REDUCERS][MAX_REDUCER_ARGS];
};

struct finish_plan {
    struct block_plan block;
    struct block_outputs out;
    int parts[MAX_REDUCERS];
    int counts[CLS_COUNT]; /* whether counts are wanted in that class */
};

void mf_finish_plan(struct finish_plan *plan, const struct problem *problem, const struct kernels *kernels);
/* Whether the only output, of the fold's class, is the only fold's result, but for zeros and NaNs. */
enum answers mf_finish_answers(const struct mf_plan *plan);
/* The operand that a reducer's kernels read straight from memory: itself, its squares to be added, the first one of
 * terms, or its bytes as doubles. */
int mf_reducer_operand(const struct problem *problem, const struct reducer *reducer);
/* Whether the reducer is the logsumexp of a byte operand. */
int mf_reducer_is_lse_of_bytes(const struct problem *problem, const struct reducer *reducer);
/* The terms of two operands of one type of floats, of its class, that the reducer adds, and which ones (a magnitude's
 * are the same); or NO_TERM. */
enum term_kind mf_reducer_term(const struct problem *problem, const struct reducer *reducer, int operand[2]);
/* Whether the reducer is a sum or product: of floats their order counts. */
static inline int mf_reducer_adds(const struct reducer *reducer)
{
    return reducer->fold == FOLD_SUM || reducer->fold == FOLD_PROD;
}

/* What changes no value of the fold, in memory: its identity, or the type's least or greatest value. */
union value mf_reducer_outside(const struct reducer *reducer, enum dtype type);
/* Whether the reducer adds the squares of an operand. */
int mf_reducer_is_squares(const struct problem *problem, const struct reducer *reducer);
/* Where a summary's kernel puts what a reducer wants. */
void mf_summary_place(struct summary *out, const struct problem *problem, const struct reducer *reducer, void *first,
                      void *second);
/* Bytes a worker needs for the results of `group` outputs and for finishing them. */
size_t mf_finish_memory(const struct finish_plan *plan, const struct problem *problem, int64_t group);

struct finish {
    const struct finish_plan *plan;
    const struct mf_plan *fold;
    const struct pointers *pointers;
    struct results results; /* the worker's own arrays; block.state may point elsewhere */
    struct block block;
    char *spare, *counts;
};

/* Lays out a worker's memory; group: the most outputs at once. */
void mf_finish_start(struct finish *finish, const struct finish_plan *plan, const struct mf_plan *fold,
                     const struct pointers *pointers, char *memory, int64_t group);
/* Finishes outputs o ... o+n-1 (flat kept positions), whose results block.state points to: at first, to results.
 * counts: how many elements took part in each, or null for those of the call before, which are all of them at first. */
void mf_finish_store(struct finish *finish, int64_t o, int64_t n, const int64_t *counts);

#endif
