/* A user's operation: its states in blocks, in the contract's order. */
#ifndef MF_USER_H
#define MF_USER_H

#include "expr.h"

/* Gives the next element's arguments; 0 where the element takes no part (it then counts as the identity). */
typedef int (*mf_next_element)(void *context, union value *values);

/* The fold of `total` elements; results (in the output type's class) go to result. tile and tiles have room for 4096
 * states and for one state of each tile, at least one. */
void mf_user_reduce(const struct reducer *reducer, int64_t total, mf_next_element next, void *context, char *tile,
                    char *tiles, union value *result);

/* Folds n <= 4096 states into states[0]: lanes and halving tree, or neighbours in pairs where the order matters. */
void mf_user_fold_tile(const mf_operation *op, char *states, int64_t n);
/* The same for rows of n states, into states[0], states[1] ... */
void mf_user_fold_rows(const mf_operation *op, char *states, int64_t rows, int64_t n);
/* Folds n states into states[0]: tiles of tiles. */
void mf_user_fold(const mf_operation *op, char *states, int64_t n);
/* The results of one state. */
void mf_user_finish(const mf_operation *op, const char *state, union value *result);

#endif
