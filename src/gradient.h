/* Gradients: one fold's gradients as a list of folds over the caller's tensors and pieces of workspace. */
#ifndef MF_GRADIENT_H
#define MF_GRADIENT_H

#include "plan.h"

enum { FACTORS_MOST = 2, GRADIENT_STEPS = 24, GRADIENT_OPERANDS = 12, GRADIENT_RESULTS = 4 };

/* Pieces of the workspace. By factor: greatest values, exponentials, and the gradient before it is delivered. */
enum slot {
    SLOT_MOST,
    SLOT_POWER = SLOT_MOST + FACTORS_MOST,
    SLOT_GRADIENT = SLOT_POWER + FACTORS_MOST,
    SLOT_WEIGHT = SLOT_GRADIENT + FACTORS_MOST, /* of outputs; of max and min: the winners' numbers */
    SLOT_LEFT,                                  /* whether an output is still to be done */
    SLOT_COUNT,                                 /* how many are */
    SLOT_TOTAL,                                 /* how many were, in all executions: of products on GPUs */
    SLOT_LOOPS,                                 /* of max and min on GPUs, by factor: the kernel's loops */
    SLOTS = SLOT_LOOPS + FACTORS_MOST
};

/* What a step reads or writes. */
enum place {
    AT_OPERAND,                             /* + i: operand i */
    AT_OUTPUT = AT_OPERAND + MF_MAX_INPUTS, /* the fold's output */
    AT_GIVEN,                               /* the output's gradient */
    AT_GRADIENT,                            /* + f: the wanted gradient of factor f */
    AT_SLOT = AT_GRADIENT + FACTORS_MOST,   /* + s: a piece of the workspace */
    PLACES = AT_SLOT + SLOTS
};

/* A tensor by dimensions' letters; "" and not plain where a dimension is no mode of its own (windows, diagonals). */
struct place_view {
    DLTensor tensor;
    int64_t shape[MF_MAX_RANK];
    char letters[MF_MAX_RANK + 1];
    int plain;
};

/* The reducer's argument: an operand, or one of two with + - *. */
struct argument {
    enum op op; /* OP_OPERAND, OP_add, OP_sub, OP_mul */
    int count, operand[FACTORS_MOST];
};

enum gradient_kind { GRADIENT_SUM, GRADIENT_MEAN, GRADIENT_LOG, GRADIENT_MAX, GRADIENT_MIN };

/* A fold, run only while outputs are left where that is asked for; the first step that is not run is the last. On CUDA
 * its kernels look themselves. out_more: bytes behind the place's beginning. */
struct gradient_step {
    struct mf_plan *plan;
    int if_left, input_count, output_count, in[MF_MAX_INPUTS], out[GRADIENT_RESULTS];
    int64_t out_more[GRADIENT_RESULTS];
};

/* A tensor of a step: with these modes, so many bytes behind the place's beginning. */
struct step_tensor {
    int place;
    int64_t more;
    const char *letters;
    const DLTensor *tensor;
};

/* One tensor as the winners' positions reach it: elements for an output's dimension, for a reduced mode. */
struct reach {
    int64_t base, kept[MF_MAX_RANK], reduced[MF_MAX_MODES];
};

/* Where max and min send gradients. */
struct winners {
    int rank, reduced_count;
    int64_t shape[MF_MAX_RANK], total, reduced_size[MF_MAX_MODES];
    struct reach operand[FACTORS_MOST], sum[FACTORS_MOST], given;
};

struct gpu_winners;
struct gpu_gradient_near;

struct gradient {
    enum gradient_kind kind;
    struct argument argument;
    enum cls cls;
    int wanted[FACTORS_MOST], output[FACTORS_MOST]; /* output: which of the plan's */
    int input_count;                                /* the fold's operands */
    int64_t outputs;
    int step_count;
    struct gradient_step step[GRADIENT_STEPS];
    int64_t slot_bytes[SLOTS], slot_at[SLOTS], workspace_bytes;
    void *memory, *count; /* on a GPU: the workspace, and SLOT_COUNT, which steps are planned with */
    struct place_view gradient[FACTORS_MOST]; /* to deliver to; its shape and strides are its own */
    int64_t strides[FACTORS_MOST][MF_MAX_RANK];
    int delivered[FACTORS_MOST]; /* from SLOT_GRADIENT */
    enum dtype slot_type[FACTORS_MOST], given_type, operand_type[FACTORS_MOST];
    struct winners winners;
    struct gpu_winners *gpu[FACTORS_MOST];
    struct gpu_gradient_near *near; /* or null: there are steps */
};

static inline int mf_gradient_has_winners(const struct gradient *data)
{
    return data->kind == GRADIENT_MAX || data->kind == GRADIENT_MIN;
}

/* While a gradient is planned. */
struct gradient_maker {
    struct mf_plan *plan;
    struct gradient *data;
    const struct modes *modes;
    const char *modes_text;
    int64_t size[MF_MAX_MODES];
    mf_options options;
    int exact;    /* logsumexp: one exp a term for every output */
    int products; /* as products, however few terms there are */
    int64_t reduced_total, kept_total;
    struct place_view view[PLACES];
};

/* ---- gradient.c ---- */

/* A piece of the workspace with these modes; where it is defined again, the larger one is allocated. MF_ERROR_OVERFLOW
 * where that does not fit. */
mf_status mf_gradient_slot(struct gradient_maker *maker, enum slot slot, const char *letters, enum dtype type);
/* A piece for count * more numbers of eight bytes. */
mf_status mf_gradient_reserve(struct gradient_maker *maker, enum slot slot, int64_t count, int64_t more);
/* One step: places in the order of the expression's operands, and of its results, which all have out[0]'s modes. */
mf_status mf_gradient_step(struct gradient_maker *maker, const char *expression, int if_left, int input_count,
                           const int *in, int output_count, const int *out);
/* The same of these tensors, by a solver (or null), with more flags. */
mf_status mf_gradient_step_of(struct gradient_maker *maker, const char *expression, const mf_options *options,
                              int if_left, int input_count, const struct step_tensor *in, int output_count,
                              const struct step_tensor *out);
/* Where a step writes the gradient of factor f: its slot, or the caller's tensor. */
int mf_gradient_target(struct gradient_maker *maker, int f);

/* ---- gradient_run.c ---- */

/* A piece of the workspace, or a caller's tensor's first element (on the CPU). */
struct gradient_run {
    const struct mf_plan *plan;
    const struct pointers *pointers;
    char *workspace;
};
void *mf_gradient_place(const struct gradient_run *run, int place);

extern const struct solver mf_solver_gradient;

/* ---- gradient_folds.c ---- */

mf_status mf_gradient_plan_sum(struct gradient_maker *maker);
mf_status mf_gradient_plan_log(struct gradient_maker *maker);
/* The greatest value of every row and column, into SLOT_MOST. */
mf_status mf_gradient_plan_maxima(struct gradient_maker *maker);
/* Counts what is left, the last step of a tier. */
mf_status mf_gradient_plan_count(struct gradient_maker *maker, int before);
/* Which outputs take part in a tier, and what one weighs: expressions over the maxima, the output and its gradient. */
void mf_gradient_weight_text(int tier, int before, char *weight, char *left, size_t size);
int mf_gradient_is_negative(const struct gradient *data, int f);

/* ---- gradient_halves.c ---- */

/* The modes of a product: of all, own ones, the one that is summed, and one that none has. Batch may be 0: none.
 * Returns 0 where there are several of a kind, or one of all but batch is not there. */
struct gradient_letters {
    char batch, own[FACTORS_MOST], summed, third;
};
int mf_gradient_find_letters(const struct gradient_maker *maker, struct gradient_letters *letters);
int64_t mf_gradient_size_of(const struct gradient_maker *maker, char letter);

/* Whether both factors are matrices, maybe many, of floats that cuBLAS multiplies in halves. */
int mf_gradient_has_halves(const struct gradient_maker *maker);
mf_status mf_gradient_plan_halves(struct gradient_maker *maker);

/* ---- gradient_winners.c ---- */

mf_status mf_gradient_plan_winners(struct gradient_maker *maker);
/* Adds every output's gradient to its winner's. */
void mf_gradient_send(const struct gradient_run *run);
/* How a tensor with an operand's dimensions and these strides is reached; added to what *reach has. */
void mf_gradient_reach(const struct gradient_maker *maker, int operand, const int64_t *strides, struct reach *reach);
/* A tensor's strides; row-major where it has none, or where that is wanted. Returns its elements. */
int64_t mf_gradient_strides(const DLTensor *tensor, int row_major, int64_t *strides);

/* ---- gpu/gradient_near.c ---- */

/* Whether both gradients of a logsumexp are one kernel's work; plans it. */
int mf_gpu_gradient_near_pays(const struct gradient_maker *maker);
mf_status mf_gpu_gradient_near_plan(struct gradient_maker *maker);
mf_status mf_gpu_gradient_near_run(const struct mf_plan *plan, const struct pointers *pointers);
int mf_gpu_gradient_near_print(const struct mf_plan *plan, char *text, size_t size);

/* ---- gpu/winners.c ---- */

mf_status mf_gpu_winners_plan(struct gradient_maker *maker);
/* Puts the kernels' loops into the workspace, whose places are known. */
mf_status mf_gpu_winners_place(const struct mf_plan *plan);
mf_status mf_gpu_winners_send(const struct mf_plan *plan, const struct pointers *pointers);
int mf_gpu_winners_print(const struct mf_plan *plan, char *text, size_t size);
void mf_gpu_winners_forget(struct mf_plan *plan);

#endif
