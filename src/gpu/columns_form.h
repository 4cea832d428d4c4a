/* How threads share columns, kernels/columns.cl: what solver columns chooses. */
#ifndef MF_GPU_COLUMNS_FORM_H
#define MF_GPU_COLUMNS_FORM_H

#include "form.h"

/* Threads of a block of columns: beside each other, for a column's lanes, columns and lanes of one (in_turn: one after
 * the other); how many of these lanes have elements; whether loads are kept together (as measured on an H200); blocks
 * that a multiprocessor is to have room for, or 0: a compiler that is told keeps a batch's loads together too. */
struct columns_form {
    int vector, held, lane_threads, column_threads, groups, batch, present, in_turn, together, room;
};

enum {
    COLUMNS_SHARED = 40 << 10,    /* bytes of shared memory that a block's states may take */
    COLUMNS_INDEX_ROWS = TILE / 2 /* rows from which on indices of bytes and 16-bit floats were measured */
};

/* Threads of a block. */
static inline int mf_columns_threads(const struct columns_form *form)
{
    return form->column_threads * form->lane_threads * form->groups;
}

/* The block that a vector, lanes held by a thread, and threads beside each other give. */
struct columns_form mf_columns_form(const struct problem *problem, int vector, int held, int beside);

/* What is best where there are columns enough: 128 bytes beside each other, four lanes a thread. */
struct columns_form mf_columns_usual_form(const struct problem *problem, int widest);

/* A few hundred or thousand columns of many rows, as where a batch's gradients or statistics are summed
 * (columns_few.c): the form of that, or one of vector 0. tiles: of a column; widest: vector that may be read; many:
 * whether usual blocks are enough. */
struct columns_form mf_columns_few_form(const struct problem *problem, int64_t tiles, int widest, int multiprocessors,
                                        int many);

/* A thread's lanes one after the other, a batch of steps at once: for states of several words, of which only one lane's
 * are then in registers, and for columns that begin anywhere, whose elements are read one by one. (Forms measured on an
 * H200.) */
struct columns_form mf_columns_turn_form(const struct problem *problem, int widest, const struct gpu_limits *limits);

/* Whether moments of one operand of floats are folded. */
int mf_columns_float_moments(const struct problem *problem);

/* What kernels are told beside their form: of forms in turn. */
void mf_columns_define_turns(const struct problem *problem, const struct columns_form *form, struct gpu_text *macros);

#endif
