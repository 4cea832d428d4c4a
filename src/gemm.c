/* Contractions that are a product of matrices as a BLAS has it. */
#include "gemm.h"

#include <limits.h>

/* Whether the term is the product of two operands, and the only result the sum itself. */
static int is_plain(const struct program *program, const int factor[FACTORS])
{
    const struct node *term = &program->map.node[program->reducer[0].arg[0]];
    const struct node *result = &program->finish.node[program->output[0]];
    const int straight = term->arg[0] == factor[0] && term->arg[1] == factor[1];
    const int crossed = term->arg[0] == factor[1] && term->arg[1] == factor[0];
    if (result->op == OP_add) { /* a sum that is zero is +0 */
        const struct node *zero = &program->finish.node[result->arg[1]];
        if (zero->op != OP_CONST || zero->value.u64 != 0)
            return 0;
        result = &program->finish.node[result->arg[0]];
    }
    return program->output_count == 1 && result->op == OP_STATE && term->op == OP_mul && (straight || crossed) &&
           program->map.node[factor[0]].op == OP_OPERAND && program->map.node[factor[1]].op == OP_OPERAND;
}

int mf_gemm_pitch(int64_t along, int64_t across, int64_t length, int64_t other, int *transposed, int64_t *pitch)
{
    *transposed = along != 1;
    *pitch = *transposed ? along : across;
    return (*transposed ? across == 1 && along >= other : across >= length) && *pitch <= INT_MAX;
}

static int types_fit(enum dtype a, enum dtype b, enum dtype out)
{
    return a == b && (a == DT_f32 || a == DT_f64 || a == DT_f16 || a == DT_bf16) &&
           (out == a || (out == DT_f32 && a != DT_f64));
}

int mf_gemm_factors(const struct problem *problem, int factor[FACTORS], struct factor_loops *loops)
{
    const struct program *program = &problem->program;
    const struct nest *nest = &problem->memory;
    if (program->reducer_count != 1 || program->reducer[0].kind != RED_FOLD || program->reducer[0].fold != FOLD_SUM ||
        !mf_cls_is_float(program->reducer[0].cls) || nest->window_count || !nest->reduced || !problem->kept_total ||
        !problem->reduced_total || !mf_factors_find(&program->map, program->reducer[0].arg[0], factor) ||
        !is_plain(program, factor))
        return 0;
    mf_factors_loops(problem, factor, loops);
    return loops->count[0] && loops->count[1];
}

int mf_gemm_find(const struct problem *problem, struct gemm *gemm)
{
    const struct program *program = &problem->program;
    const struct nest *nest = &problem->memory;
    struct factor_loops loops;
    int factor[FACTORS];
    if (!mf_gemm_factors(problem, factor, &loops) || nest->reduced != 1)
        return 0;
    if (loops.count[0] != 1 || loops.count[1] != 1 || loops.count[FACTORS] > 1)
        return 0;
    /* by columns: c[m, n] has stride 1 along m */
    const int rows_first = nest->out[0][loops.loop[0][0]] == 1, f = rows_first ? 0 : 1;
    const int m = loops.loop[f][0], n = loops.loop[!f][0], k = nest->kept;
    const int batch = loops.count[FACTORS] ? loops.loop[FACTORS][0] : -1;
    const int a = program->map.node[factor[f]].index, b = program->map.node[factor[!f]].index;
    int by_rows;
    *gemm = (struct gemm){.in = problem->in_type[a],
                          .out = problem->out_type[0],
                          .m = nest->size[m],
                          .n = nest->size[n],
                          .k = nest->size[k],
                          .batch = batch < 0 ? 1 : nest->size[batch],
                          .a_step = batch < 0 ? 0 : nest->in[a][batch],
                          .b_step = batch < 0 ? 0 : nest->in[b][batch],
                          .c_step = batch < 0 ? 0 : nest->out[0][batch],
                          .a = a,
                          .b = b};
    return types_fit(gemm->in, problem->in_type[b], gemm->out) && gemm->m <= INT_MAX && gemm->n <= INT_MAX &&
           gemm->k <= INT_MAX && gemm->batch <= INT_MAX &&
           mf_gemm_pitch(nest->in[a][m], nest->in[a][k], gemm->m, gemm->k, &gemm->a_transposed, &gemm->a_pitch) &&
           mf_gemm_pitch(nest->in[b][k], nest->in[b][n], gemm->k, gemm->n, &gemm->b_transposed, &gemm->b_pitch) &&
           mf_gemm_pitch(nest->out[0][m], nest->out[0][n], gemm->m, gemm->n, &by_rows, &gemm->c_pitch) && !by_rows;
}
