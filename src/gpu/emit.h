/* A problem's program as text for a GPU's compiler. */
#ifndef MF_GPU_EMIT_H
#define MF_GPU_EMIT_H

#include "../layout.h"
#include "text.h"

/* Operands that the program uses, numbered anew. */
struct gpu_slots {
    int count, input[MF_MAX_INPUTS], of[MF_MAX_INPUTS]; /* of[input]: its slot, or -1 */
};

/* The C type of an element in memory. */
extern const char *const mf_emit_storage[DT_COUNT];

void mf_emit_slots(const struct problem *problem, struct gpu_slots *slots);

/* Adds the types, counts and functions that kernels/common.cl expects, for vectors of that many elements. packed:
 * whether the kernel folds such bytes as mf_emit_packed_bytes says four at a time. */
void mf_emit_program(const struct problem *problem, const struct gpu_slots *slots, int vector, int packed,
                     struct gpu_text *to);
/* Adds the functions that follow struct shape: strides, and what makes and ends a lane. */
void mf_emit_after_shape(const struct problem *problem, const struct gpu_slots *slots, struct gpu_text *to);

/* Of a program without a reducer whose results are made of short integers, several of them in a word (emit_packed.c):
 * PACKED, the bytes of one, struct packed, words of operands, and packed_output. Else returns 0 and adds nothing. */
int mf_emit_packed(const struct problem *problem, const struct gpu_slots *slots, struct gpu_text *to);

/* Macro MOVE_AS_WRITTEN: place p moved to element v in the order as written, where memory's is another one. Sizes and
 * strides are constants. */
void mf_emit_written_order(const struct problem *problem, const struct gpu_slots *slots, struct gpu_text *to);

/* Whether a tensor's places, by its strides of the kept loops, are the outputs' numbers. */
int mf_emit_is_flat(const struct nest *nest, const int64_t *stride);

/* 32-bit words that the state of a program's reducers has: how many fit in registers. */
int mf_emit_state_words(const struct problem *problem);
/* Whether the order of the elements matters: sums and products of floats, and what is made of them. */
int mf_emit_is_ordered(const struct problem *problem);
/* The operand of a program that only sums its bytes, which are added four at a time; or -1. */
int mf_emit_bytes_operand(const struct problem *problem);
/* emit_bytes.c: the operand of a program of which all reducers are its bytes' sum, least or greatest, or its squares'
 * sum, or -1; not of one that only sums them. */
int mf_emit_packed_bytes(const struct problem *problem);
/* Bytes of one struct state in memory. */
int mf_emit_state_bytes(const struct problem *problem);
/* 32-bit words of a lane, a state under way. */
int mf_emit_lane_words(const struct problem *problem);

#endif
