/* The program on one element at a time: what the reference solver and small jobs of other solvers need. */
#ifndef MF_SCALAR_H
#define MF_SCALAR_H

#include "expr.h"

union value mf_value_load(enum dtype type, const void *from);
void mf_value_store(enum dtype type, enum cls cls, union value value, void *to);
union value mf_value_convert(enum cls from, enum cls to, union value value);
union value mf_value_map(enum op op, enum cls cls, const union value *args);

/* What the leaves of a pool are, for one element. */
struct leaves {
    const void *operand[MF_MAX_INPUTS]; /* pointers to the elements (map or finish) */
    const enum dtype *types;
    union value state[MAX_REDUCERS][MAX_REDUCER_ARGS]; /* finish: results of the reducers */
    int64_t count;                                     /* finish: elements that took part */
};

/* values[i] = node i of the pool. */
void mf_pool_evaluate(const struct pool *pool, const struct leaves *leaves, union value *values);

/* One reducer's state between elements, and the monoid on it. RED_FOLD: v[0]. RED_MOMENTS: mean, m2 and count n.
 * RED_LSE: m, s. RED_ARG: best v[0] and index n. An empty state is `empty`. */
struct state {
    int empty;
    union value v[2];
    int64_t n;
};

struct state mf_state_identity(const struct reducer *reducer);
/* Of no elements (all of an output's windows lie outside their tensors) a min or max of short integers is its type's
 * greatest or least value, not its class's: 1 where a result equal to *from has to become *to. */
int mf_reducer_of_nothing(const struct program *program, const struct reducer *reducer, int64_t *from, int64_t *to);
/* The state of one element; index is its place in the order as written. */
void mf_state_lift(const struct reducer *reducer, union value x, int64_t index, struct state *state);
struct state mf_state_combine(const struct reducer *reducer, struct state a, struct state b);
/* The fold of one tile, n <= 4096, in the contract's order: lanes, then the halving tree. */
struct state mf_state_fold_tile(const struct reducer *reducer, const struct state *x, int64_t n);
/* The fold of a sequence of n tiles' states: tiles of tiles until one is left. states is overwritten. */
struct state mf_state_fold(const struct reducer *reducer, struct state *states, int64_t n);

#endif
