/* Solver "tensor-sum" of a GPU: sums of 16-bit and 8-bit elements as products by ones on tensor cores
 * (kernels/tensor.cl and what stands on it), by Navarro et al., GPU Tensor Cores for fast Arithmetic Reductions. Its
 * order of adding is the instruction's own, so it runs where any order will do and it is faster, or by name:
 * "tensor-sum:FORM:CHAIN:BLOCK:CHAINS".
 *
 *   single      one launch; CHAINS of each warp (0: as many as fill the device)          kernels/tensor_sum.cl
 *   split       of the chains CHAINS tenths as products, the others as additions (5)     the same
 *   plain       no products: the reduction by shuffles that the others are compared with  the same
 *   recurrence  a launch for every level, whose results are elements again               kernels/tensor_level.cl
 *   rows        short rows, one a column                                                 kernels/tensor_rows.cl */
#include <stdio.h>

#include "emit_reducers.h"
#include "form.h"
#include "texts.h"

enum { TENTHS = 10, PIECE_BYTES = 16, MOST_CHAIN = 5, BATCHES = 4, SHORT = 2048, MOST_CHAINS = 1 << 16 };
enum tensor_kind { SINGLE, SPLIT, PLAIN, RECURRENCE, ROWS, TENSOR_KINDS };

struct tensor_form {
    enum tensor_kind kind;
    int chain, threads, chains; /* products of a chain, threads of a block, chains of a warp or tenths */
};

/* An element type of the instruction: its shape and types, a word of ones, the type of its sums, and from which
 * architecture on. */
static const struct tensor_type {
    enum dtype type;
    const char *name, *ones, *sum, *total, *constraint;
    int architecture;
} types[] = {
    {DT_f16, "m16n8k16.row.col.f32.f16.f16.f32", "0x3c003c00u", "float", "float", "+f", 80},
    {DT_bf16, "m16n8k16.row.col.f32.bf16.bf16.f32", "0x3f803f80u", "float", "float", "+f", 80},
    {DT_i8, "m16n8k32.row.col.s32.s8.s8.s32", "0x01010101u", "int", "int64_t", "+r", 80},
    {DT_f8e4m3, "m16n8k32.row.col.f32.e4m3.e4m3.f32", "0x38383838u", "float", "float", "+f", 89},
    {DT_f8e5m2, "m16n8k32.row.col.f32.e5m2.e5m2.f32", "0x3c3c3c3cu", "float", "float", "+f", 89},
};

/* The operand that is summed. */
static int summed(const struct problem *problem)
{
    return problem->program.map.node[problem->program.reducer[0].arg[0]].index;
}

static const struct tensor_type *type_of(const struct problem *problem)
{
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++)
        if (types[t].type == problem->in_type[summed(problem)])
            return &types[t];
    return NULL;
}

/* One sum of an operand as it is, along one loop in which its elements are neighbours; an architecture that has the
 * product. */
static int applicable(const struct mf_plan *plan)
{
    const struct problem *problem = &plan->problem;
    const struct program *program = &problem->program;
    const struct nest *nest = &problem->memory;
    if (program->reducer_count != 1 || program->reducer[0].kind != RED_FOLD || program->reducer[0].fold != FOLD_SUM ||
        program->map.node[program->reducer[0].arg[0]].op != OP_OPERAND || nest->reduced != 1 || nest->window_count)
        return 0;
    const struct tensor_type *type = type_of(problem);
    const int architecture = MF_GPU_LIMITS(plan->device->gpu)->architecture;
    return type && nest->in[summed(problem)][nest->kept] == 1 && (!architecture || architecture >= type->architecture);
}

/* Where it was faster (bench/results/gpu-h200-tensor.md): one sum of many elements, and rows of some lengths of 8-bit
 * floats, which cost the other solvers a dozen instructions each to read. */
int mf_gpu_tensor_sum_pays(const struct mf_plan *plan)
{
    enum { MANY = 1 << 20, E4_FROM = 32, E5_FROM = 64, E5_TO = 128 };
    const struct problem *problem = &plan->problem;
    if (!MF_GPU_LIMITS(plan->device->gpu)->architecture || !applicable(plan))
        return 0;
    const enum dtype type = problem->in_type[summed(problem)];
    const int64_t row = problem->reduced_total;
    return (problem->kept_total == 1 && row >= MANY) || (type == DT_f8e4m3 && row >= E4_FROM) ||
           (type == DT_f8e5m2 && row >= E5_FROM && row <= E5_TO);
}

/* FORM[:CHAIN[:BLOCK[:CHAINS]]], 0 for the solver's own choice. The paper's fastest are chains of 4 in blocks of 128,
 * for recurrences of 5 in blocks of 32. */
static mf_status read_form(const char *text, const struct problem *problem, struct tensor_form *form)
{
    static const char *const names[TENSOR_KINDS] = {"single", "split", "plain", "recurrence", "rows"};
    char name[16];
    int number[3] = {0, 0, 0}, kind = TENSOR_KINDS;
    if (!text)
        kind = problem->reduced_total <= SHORT && problem->kept_total > 1 ? ROWS : SINGLE;
    else if (mf_gpu_read_form(text, name, 3, number))
        for (kind = 0; kind < TENSOR_KINDS && strcmp(name, names[kind]) != 0;)
            kind++;
    form->kind = (enum tensor_kind)kind;
    form->chain = number[0] ? number[0] : kind == RECURRENCE ? 5 : kind == SPLIT ? 1 : 4;
    form->threads = number[1] ? number[1] : kind == RECURRENCE ? 32 : 128;
    form->chains = number[2];
    if (kind < TENSOR_KINDS && form->chain >= 1 && form->chain <= MOST_CHAIN && form->threads >= GPU_WARP &&
        form->threads <= 1024 && form->threads % GPU_WARP == 0 && form->chains >= 0 &&
        form->chains <= (kind == SPLIT ? TENTHS : MOST_CHAINS))
        return MF_OK;
    return mf_fail(MF_ERROR_ARGUMENT,
                   "solver tensor-sum has no form \"%.40s\"; a form is one of single, split, plain, recurrence and "
                   "rows, then perhaps :CHAIN:BLOCK:CHAINS, which are at most %d products, whole warps of at most 1024 "
                   "threads, and at most %d chains of a warp, or tenths of a split",
                   text ? text : "", MOST_CHAIN, MOST_CHAINS);
}

/* What the kernels know of the type, the texts they stand on, and the instruction or what emulates it. */
static void describe_type(const struct mf_plan *plan, const struct tensor_form *form, const char *kernel,
                          struct gpu_choice *choice)
{
    const struct problem *problem = &plan->problem;
    const struct tensor_type *type = type_of(problem);
    const char *name = mf_dtypes[type->type].name;
    const int item = mf_dtypes[type->type].size;
    choice->kernel = kernel;
    choice->threads = form->threads;
    choice->vector = PIECE_BYTES / item;
    choice->vector_loop = problem->memory.kept;
    mf_text_add(&choice->macros,
                "#define ITEM %d\n#define ONES %s\n#define LOAD mf_load_%s\n#define STORE mf_store_%s_f32\n"
                "#define MMA_NAME \"%s\"\n#define MMA_SUM(x) \"%s\"(x)\ntypedef %s sum_t;\ntypedef %s total_t;\n"
                "typedef uint%d_t bits_t;\n#define CHAIN %d\n#define BATCHES %d\n",
                item, type->ones, name, name, type->name, type->constraint, type->sum, type->total, 8 * item,
                form->chain, BATCHES);
    mf_text_append(&choice->functions,
                   MF_GPU_LIMITS(plan->device->gpu)->dlpack == 2 ? mf_text_tensor_mma_cu : mf_text_tensor_mma_cl);
    mf_text_append(&choice->functions, mf_text_tensor_cl);
}

static int64_t step_of(const struct problem *problem)
{
    return (int64_t)GPU_WARP * PIECE_BYTES / mf_dtypes[problem->in_type[summed(problem)]].size;
}

/* single, split and plain. */
static mf_status make_sum(struct mf_plan *plan, const struct tensor_form *form)
{
    const struct problem *problem = &plan->problem;
    const struct gpu_limits *limits = MF_GPU_LIMITS(plan->device->gpu);
    const int warps = form->threads / GPU_WARP;
    const int tenths = form->kind == PLAIN    ? 0
                       : form->kind == SINGLE ? TENTHS
                       : form->chains         ? form->chains
                                              : TENTHS / 2;
    const int64_t each = step_of(problem) * form->chain, chains = (problem->reduced_total + each - 1) / each;
    const int64_t most = (chains + warps - 1) / warps;
    int64_t parts = (int64_t)limits->multiprocessors * (GPU_ROOM / form->threads) /
                    (problem->kept_total ? problem->kept_total : 1); /* all at once, in one wave */
    if (form->chains && form->kind != SPLIT)
        parts = (most + form->chains - 1) / form->chains;
    parts = parts < 1 ? 1 : parts > most ? most : parts;
    struct gpu_choice choice = {.beside = GPU_ROOM / form->threads};
    describe_type(plan, form, mf_text_tensor_sum_cl, &choice);
    choice.blocks = problem->kept_total * parts;
    choice.own[0] = problem->reduced_total;
    choice.own[1] = parts;
    choice.own[2] = (most + parts - 1) / parts;
    if (parts > 1)
        choice.workspace_bytes =
            problem->kept_total * (parts * mf_emit_state_bytes(problem) + (int64_t)sizeof(uint32_t));
    mf_text_add(&choice.macros, "#define SPLIT %d\n", tenths);
    snprintf(choice.text, sizeof choice.text, "chains of %d, %lld a warp, %d tenths of them products", form->chain,
             (long long)choice.own[2], tenths);
    return mf_gpu_make(plan, &choice);
}

static mf_status make_rows(struct mf_plan *plan, const struct tensor_form *form)
{
    const struct problem *problem = &plan->problem;
    const int64_t step = step_of(problem) / 8, block_rows = (int64_t)form->threads / GPU_WARP * 8 * BATCHES;
    struct gpu_choice choice = {.beside = GPU_ROOM / form->threads};
    describe_type(plan, form, mf_text_tensor_rows_cl, &choice);
    choice.blocks = (problem->kept_total + block_rows - 1) / block_rows;
    choice.own[0] = problem->reduced_total;
    choice.own[1] = (problem->reduced_total + step - 1) / step;
    snprintf(choice.text, sizeof choice.text, "%d rows a warp, %lld pieces of a thread", 8 * BATCHES,
             (long long)choice.own[1]);
    return mf_gpu_make(plan, &choice);
}

/* A level a stage. Their elements lie behind each other in the workspace. */
static mf_status make_levels(struct mf_plan *plan, const struct tensor_form *form)
{
    const struct problem *problem = &plan->problem;
    const enum dtype type = problem->in_type[summed(problem)];
    const int64_t each = step_of(problem) * form->chain, item = mf_dtypes[type].size;
    int64_t bytes = 0, from = -1, into = 0;
    if (problem->kept_total > 1 || item != 2)
        return mf_fail(
            MF_ERROR_UNSUPPORTED,
            "solver tensor-sum:recurrence makes one sum of f16 or bf16 elements, which its levels are again, "
            "and here are %lld of %s",
            (long long)problem->kept_total, mf_dtypes[type].name);
    for (int64_t n = problem->reduced_total; n > each; n = (n + each - 1) / each)
        bytes += (((n + each - 1) / each) * item + PIECE_BYTES - 1) / PIECE_BYTES * PIECE_BYTES;
    for (int64_t n = problem->reduced_total, groups = 2; groups > 1; n = groups) {
        groups = (n + each - 1) / each;
        struct gpu_choice choice = {.workspace_bytes = from < 0 ? bytes : 0};
        describe_type(plan, form, mf_text_tensor_level_cl, &choice);
        choice.blocks = problem->kept_total * ((groups * GPU_WARP + form->threads - 1) / form->threads);
        choice.own[0] = n;
        choice.own[1] = from;
        choice.own[2] = groups > 1 ? into : -1;
        choice.own[3] = groups;
        from = into;
        into += (groups * item + PIECE_BYTES - 1) / PIECE_BYTES * PIECE_BYTES;
        snprintf(choice.text, sizeof choice.text, "chains of %d, %lld sums", form->chain, (long long)groups);
        MF_TRY(mf_gpu_make(plan, &choice));
    }
    return MF_OK;
}

static mf_status make(struct mf_plan *plan)
{
    struct tensor_form form;
    MF_TRY(read_form(plan->form, &plan->problem, &form));
    plan->form = NULL;
    return form.kind == RECURRENCE ? make_levels(plan, &form)
           : form.kind == ROWS     ? make_rows(plan, &form)
                                   : make_sum(plan, &form);
}

const struct solver mf_gpu_tensor_sum = {
    "tensor-sum",   "sums of 16-bit and 8-bit elements on tensor cores, in any order",
    applicable,     make,
    mf_gpu_execute, mf_gpu_print,
    mf_gpu_forget,
};
