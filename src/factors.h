/* Contractions: which arguments of a reducer are a product of two factors, and whose the loops are. */
#ifndef MF_FACTORS_H
#define MF_FACTORS_H

#include "layout.h"

enum { ROW_FACTOR, COLUMN_FACTOR, FACTORS };

/* The two nodes below which the map's node `root` depends on no operand: root is a function of their values. 0 where
 * there are more, or fewer. */
int mf_factors_find(const struct pool *pool, int root, int node[FACTORS]);

/* The reducer that is an argmin or argmax; -1 where there is none, or another one is not the extreme of the same. */
int mf_factors_argument(const struct program *program);

/* An argmin or argmax of what reducer r is the extreme of, so that it has r's result too; else r itself. */
int mf_factors_leader(const struct program *program, int r);

/* The kept loops along which one factor alone varies, by factor; in the last list those of both or none. */
struct factor_loops {
    int count[FACTORS + 1], loop[FACTORS + 1][MAX_LOOPS];
};
void mf_factors_loops(const struct problem *problem, const int node[FACTORS], struct factor_loops *loops);
/* The product of the sizes of a list's loops. */
int64_t mf_factors_positions(const struct problem *problem, const struct factor_loops *loops, int list);

#endif
