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

/* The block that a vector, lanes held by a thread, and threads beside each other give. */
struct columns_form mf_columns_form(const struct problem *problem, int vector, int held, int beside);

/* What is best where there are columns enough: 128 bytes beside each other, four lanes a thread. */
struct columns_form mf_columns_usual_form(const struct problem *problem, int widest);

/* A few hundred or thousand columns of many rows, as where a batch's gradients or statistics are summed
 * (columns_few.c): the form of that, or one of vector 0. tiles: of a column; widest: vector that may be read; many:
 * whether usual blocks are enough. */
struct columns_form mf_columns_few_form(const struct problem *problem, int64_t tiles, int widest, int multiprocessors,
                                        int many);

#endif
