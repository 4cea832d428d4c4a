/* Solver "cublas" of a GPU: sum(a*b) of floats as a product of matrices by cuBLAS, where loops and strides are such a
 * product's. Its order of adding is cuBLAS's own, so it runs only when it is asked for by name. */
#include <limits.h>
#include <stdio.h>

#include "cublas.h"
#include "form.h"
#include "solve_contract.h"

/* Whether the only result is the sum itself, and the term a product of two operands. */
static int is_plain(const struct problem *problem, const struct gpu_contraction *c)
{
    const struct program *program = &problem->program;
    const struct node *term = &program->map.node[program->reducer[0].arg[0]];
    const struct node *result = &program->finish.node[program->output[0]];
    if (result->op == OP_add) /* a sum that is zero is +0 */
        result = &program->finish.node[result->arg[0]];
    return problem->output_count == 1 && result->op == OP_STATE && term->op == OP_mul &&
           program->map.node[c->node[0]].op == OP_OPERAND && program->map.node[c->node[1]].op == OP_OPERAND;
}

/* One matrix: the strides of its rows and columns (as cuBLAS counts them) become a pitch, and whether it is stored by
 * rows. 0 where cuBLAS cannot read it. */
static int fits_pitch(int64_t along, int64_t across, int64_t length, int64_t other, int *transposed, int64_t *pitch)
{
    *transposed = along != 1;
    *pitch = *transposed ? along : across;
    return (*transposed ? across == 1 && along >= other : across >= length) && *pitch <= INT_MAX;
}

/* Fills the product; *first: the factor that is a. */
static int find(const struct mf_plan *plan, struct gemm *gemm, int *first)
{
    const struct problem *problem = &plan->problem;
    const struct nest *nest = &problem->memory;
    struct gpu_contraction c = {.kind = CONTRACT_FOLD};
    const struct reducer *reducer = &problem->program.reducer[0];
    if (problem->program.reducer_count != 1 || reducer->kind != RED_FOLD || reducer->fold != FOLD_SUM ||
        !mf_cls_is_float(reducer->cls) || !mf_gpu_contraction_fits(plan, &c) || !is_plain(problem, &c) ||
        c.loops.count[0] != 1 || c.loops.count[1] != 1 || c.loops.count[2] > 1 || nest->reduced != 1)
        return 0;
    /* by columns: c[m, n] has stride 1 along m */
    const int rows_first = nest->out[0][c.loops.loop[0][0]] == 1, a = rows_first ? 0 : 1;
    const int m = c.loops.loop[a][0], n = c.loops.loop[!a][0], k = nest->kept;
    const int batch = c.loops.count[2] ? c.loops.loop[2][0] : -1;
    const int in_a = problem->program.map.node[c.node[a]].index, in_b = problem->program.map.node[c.node[!a]].index;
    int by_rows;
    *first = in_a;
    *gemm = (struct gemm){.in = problem->in_type[in_a],
                          .out = problem->out_type[0],
                          .m = nest->size[m],
                          .n = nest->size[n],
                          .k = nest->size[k],
                          .batch = batch < 0 ? 1 : nest->size[batch],
                          .a_step = batch < 0 ? 0 : nest->in[in_a][batch],
                          .b_step = batch < 0 ? 0 : nest->in[in_b][batch],
                          .c_step = batch < 0 ? 0 : nest->out[0][batch]};
    const enum dtype in = gemm->in, out = gemm->out;
    return problem->in_type[in_b] == in && (in == DT_f32 || in == DT_f64 || in == DT_f16 || in == DT_bf16) &&
           (out == in || (out == DT_f32 && in != DT_f64)) && gemm->m <= INT_MAX && gemm->n <= INT_MAX &&
           gemm->k <= INT_MAX && gemm->batch <= INT_MAX &&
           fits_pitch(nest->in[in_a][m], nest->in[in_a][k], gemm->m, gemm->k, &gemm->a_transposed, &gemm->a_pitch) &&
           fits_pitch(nest->in[in_b][k], nest->in[in_b][n], gemm->k, gemm->n, &gemm->b_transposed, &gemm->b_pitch) &&
           fits_pitch(nest->out[0][m], nest->out[0][n], gemm->m, gemm->n, &by_rows, &gemm->c_pitch) && !by_rows;
}

static int applicable(const struct mf_plan *plan)
{
    struct gemm gemm;
    int first;
    return plan->device->api == &mf_gpu_cuda && find(plan, &gemm, &first);
}

struct cublas_plan {
    struct cublas *cublas;
    struct gemm gemm;
    int a, b; /* operands */
};

static mf_status run(const struct mf_plan *plan, const void *context, void *workspace, const struct pointers *pointers)
{
    const struct cublas_plan *data = context;
    const int64_t in = mf_dtypes[data->gemm.in].size, out = mf_dtypes[data->gemm.out].size;
    (void)plan;
    (void)workspace;
    return mf_cublas_multiply(data->cublas, &data->gemm, pointers->in[data->a] + pointers->in_offset[data->a] * in,
                              pointers->in[data->b] + pointers->in_offset[data->b] * in,
                              pointers->out[0] + pointers->out_offset[0] * out, 0, pointers->stream);
}

static void forget(void *context)
{
    struct cublas_plan *data = context;
    mf_cublas_close(data->cublas);
    mf_free(data);
}

static mf_status make(struct mf_plan *plan)
{
    struct cublas_plan *data = mf_calloc(sizeof *data);
    if (!data)
        return MF_ERROR_MEMORY;
    find(plan, &data->gemm, &data->a);
    for (int i = 0; i < plan->problem.input_count; i++)
        if (plan->problem.map_uses[i] && i != data->a)
            data->b = i;
    mf_status status = mf_cublas_open(plan->device->gpu, &data->cublas);
    if (status != MF_OK) {
        mf_free(data);
        return status;
    }
    const struct gpu_call call = {"one product of matrices by cuBLAS", run, forget, data};
    return mf_gpu_add_call(plan, &call);
}

const struct solver mf_gpu_cublas = {
    "cublas",      "sum(a*b) of floats by cuBLAS, in its own order", applicable, make, mf_gpu_execute, mf_gpu_print,
    mf_gpu_forget,
};
