/* The part of a program's text that its reducers make. */
#ifndef MF_GPU_EMIT_REDUCERS_H
#define MF_GPU_EMIT_REDUCERS_H

#include "emit.h"

/* By class: the type's name in a kernel, and what names of functions end in. */
extern const char *const mf_class_type[], *const mf_class_name[];

int mf_emit_has_kind(const struct problem *problem, enum reducer_kind kind);
/* Whether states count their elements: moments merge by counts, and a window may leave some out. */
int mf_emit_has_count(const struct problem *problem);
/* The names of a state's fields but the count: how many there are, of which `most` are written. No user's reducers. */
int mf_emit_field_names(const struct problem *problem, int most, char name[][16]);
/* Whether it is a user's reducer, given as text, that keeps its elements' order. */
int mf_emit_keeps_order(const struct reducer *reducer);
/* Whether a node's value is 0 or 1. */
int mf_emit_is_truth(const struct pool *pool, int i);
/* Whether a lane of this reducer is an int, and its element an operand as it is, or a truth. */
int mf_emit_is_narrow(const struct problem *problem, int r);
/* emit_pairs.c: the type of the 16-bit floats, as they are, whose greatest or least reducer r is, which is exact in
 * that type, or DT_COUNT; whether there is such a reducer. */
enum dtype mf_emit_paired_type(const struct problem *problem, int r);
int mf_emit_has_pairs(const struct problem *problem);
/* Where a kernel says PAIRED_FOLDS: two such lanes as a word in the first one's field, before the first step, for a
 * step's two elements, and after the last one. */
void mf_emit_pairs(const struct problem *problem, struct gpu_text *to);

/* emit_sums.c, logsumexp: what all of it calls (kernels/sums.cl); an element in a lane; what ends a lane, after
 * kernels/common.cl; what else is done to lanes and states (kernels/sum_lanes.cl); two states, of which nothing is
 * known, or that none is far, or that they are plain in one unit. */
enum sums_known { SUMS_ANY, SUMS_NEAR, SUMS_PLAIN };
void mf_emit_sums(const struct problem *problem, struct gpu_text *to);
void mf_emit_sum_step(const struct problem *problem, int r, struct gpu_text *to);
void mf_emit_settle(const struct problem *problem, struct gpu_text *to);
void mf_emit_sum_lanes(const struct problem *problem, struct gpu_text *to);
void mf_emit_joined_sums(const struct reducer *reducer, int r, enum sums_known known, struct gpu_text *to);

/* emit_bytes.c: a narrow lane of least or greatest before the first element; the state's field that it ends as; and
 * where a kernel says PACKED_BYTES, four bytes in a lane. */
const char *mf_emit_extreme_identity(const struct problem *problem, enum fold fold);
void mf_emit_extreme_end(const struct problem *problem, int r, const char *field, struct gpu_text *to);
void mf_emit_byte_folds(const struct problem *problem, struct gpu_text *to);

/* What combines two states of a fold, without its class's suffix, and the neutral value as text. */
const char *mf_emit_fold_function(enum fold fold);
const char *mf_emit_fold_identity(enum fold fold, enum cls cls);

/* emit.c: the nodes that a root needs, and a pool's used nodes as constants. problem and slots are null in a step of a
 * user's operation. */
void mf_emit_mark(const struct pool *pool, int node, char *used);
void mf_emit_pool(const struct problem *problem, const struct gpu_slots *slots, const struct pool *pool,
                  const char *used, char letter, struct gpu_text *to);
void mf_emit_constant(enum cls cls, union value value, struct gpu_text *to);

/* Types and functions of the users' operations, which are given as text. */
void mf_emit_users(const struct problem *problem, struct gpu_text *to);
/* One element in a lane of reducer r's; two states that both have elements, or either. */
void mf_emit_user_chain(const struct problem *problem, int r, struct gpu_text *to);
void mf_emit_user_combine(int r, struct gpu_text *to);
/* For kernels/ordered.cl: states of the reducers that keep their elements' order, after struct state and combine. */
void mf_emit_ordered(const struct problem *problem, struct gpu_text *to);

/* struct state and its functions; the functions of lanes that need struct shape; what ends a lane. */
void mf_emit_states(const struct problem *problem, struct gpu_text *to);
void mf_emit_chain(const struct problem *problem, struct gpu_text *to);
void mf_emit_lane_state(const struct problem *problem, struct gpu_text *to);

#endif
