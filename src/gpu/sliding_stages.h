/* The stages of solver "sliding" (kernels/sliding.cl): from cells of single elements to folds of windows. */
#ifndef MF_GPU_SLIDING_STAGES_H
#define MF_GPU_SLIDING_STAGES_H

#include "form.h"

/* A kept loop with the reduced loop of its windows: output o has elements at o * step + e * gap. */
struct sliding_side {
    int kept, reduced, step, gap;
    int64_t outputs, elements;
};

enum { SLIDING_STAGES = 8, SLIDING_JOINS = 48, SLIDING_SLOTS = 2 };

/* Value number `inputs` + j is join j: of value a, `of_a` cells further, and value b, `of_b` further. */
struct sliding_join {
    int a, of_a, b, of_b;
};

/* A stage reads arrays 0 ... inputs - 1, which are values of those numbers and fold `length` elements, and writes
 * values out[0] ... as arrays 0 ... Its cells are `apart` positions of the tile along the loop apart. */
struct sliding_stage {
    int64_t apart;
    int inputs, length[SLIDING_SLOTS], joins, outputs, out[SLIDING_SLOTS];
    int is_down;
    struct sliding_join join[SLIDING_JOINS];
};

struct sliding_stages {
    int count;
    struct sliding_stage stage[SLIDING_STAGES];
};

/* What a fold of neighbours may do with its order. */
enum sliding_order { SLIDING_TREE /* the contract's */, SLIDING_ANY, SLIDING_AGAIN /* also twice the same */ };

/* Adds the stages that fold n cells, `gap` apart, by rows or (is_down) by columns; in any order, up to `at_once` of
 * them in one stage. Returns 0 where that has too many. */
int mf_sliding_add(struct sliding_stages *stages, int is_down, int64_t n, int64_t gap, enum sliding_order order,
                   int at_once);

/* How many cells a stage reads behind those that a thread makes. */
int mf_sliding_behind(const struct sliding_stage *stage);

/* The stage as text, of `count` cells a unit, which are `apart` cells of the array apart, and of so many units. */
void mf_sliding_emit(const struct sliding_stage *stage, int apart, int count, int units, struct gpu_text *to);

/* ---- sliding_strips.c ---- */

struct strips;

/* of_rows: a bit for each window that moves down. columns, rows: of a block's outputs; inside: channels. fields: a
 * part's numbers; states: no plain sums; cuts: outputs whose windows leave some elements out get their own tree, in
 * cut_blocks blocks of a plane; cost: operations that join two parts; in_1: a
 * logsumexp's sums are in the unit 1 at first. */
struct sliding_strip {
    struct strips *strips;
    const struct sliding_side *down, *across;
    int inside, fields, states, cuts, in_1, cost, of_rows, threads, at_once, columns, rows;
    int64_t shared, cut_blocks;
};

/* Whether there is such a strip of the problem; strips, down, across and inside are set. */
int mf_sliding_find_strip(const struct mf_plan *plan, int64_t planes, struct sliding_strip *strip);

/* The macros of kernels/sliding_strips.cl. */
void mf_sliding_define_parts(const struct mf_plan *plan, const struct sliding_strip *strip, struct gpu_text *to);

#endif
