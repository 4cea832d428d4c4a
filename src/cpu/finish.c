/* Finishing: an expression over the reducers' results and operands with kept modes. */
#include "finish.h"

#include "../scalar.h"

void mf_finish_plan(struct finish_plan *plan, const struct problem *problem, const struct kernels *kernels)
{
    const struct nest *nest = &problem->memory;
    const struct program *program = &problem->program;
    mf_block_plan(&plan->block, &program->finish, program->output, problem->output_count, problem->in_type);
    for (int i = 0; i < problem->input_count; i++)
        mf_walk_make(&plan->block.walk[i], nest->kept, nest->size, nest->in[i]);
    mf_block_plan_outputs(&plan->out, &plan->block, problem, kernels);
    for (int k = 0; k < problem->output_count; k++)
        mf_walk_make(&plan->out.walk[k], nest->kept, nest->size, nest->out[k]);
    for (int n = 0; n < program->finish.count; n++)
        if (program->finish.node[n].op == OP_COUNT)
            plan->counts[program->finish.node[n].cls] = 1;
    for (int r = 0; r < program->reducer_count; r++) {
        const struct reducer *reducer = &program->reducer[r];
        plan->parts[r] = reducer->kind == RED_FOLD ? 1 : reducer->kind == RED_USER ? reducer->user->is.output_count : 2;
    }
}

enum answers mf_finish_answers(const struct mf_plan *plan)
{
    const struct program *program = &plan->problem.program;
    const struct reducer *reducer = &program->reducer[0];
    const struct node *root = &program->finish.node[program->output[0]];
    int64_t from, to;
    if (program->reducer_count != 1 || program->output_count != 1 || reducer->kind != RED_FOLD ||
        mf_dtypes[plan->problem.out_type[0]].cls != reducer->cls ||
        (plan->problem.framed && mf_reducer_of_nothing(program, reducer, &from, &to)))
        return NO_ANSWERS;
    enum answers answers = ANSWERS_AS_THEY_ARE;
    if (root->op == OP_add) {
        const struct node *zero = &program->finish.node[root->arg[1]];
        if (zero->op != OP_CONST || zero->value.u64 != 0)
            return NO_ANSWERS;
        answers = ANSWERS_PLUS_ZERO;
        root = &program->finish.node[root->arg[0]];
    }
    return root->op == OP_STATE ? answers : NO_ANSWERS;
}

int mf_reducer_operand(const struct problem *problem, const struct reducer *reducer)
{
    const struct node *pool = problem->program.map.node, *node = &pool[reducer->arg[0]];
    while (node->op != OP_OPERAND && node->arg[0] >= 0)
        node = &pool[node->arg[0]];
    return node->index;
}

int mf_reducer_is_lse_of_bytes(const struct problem *problem, const struct reducer *reducer)
{
    const struct node *pool = problem->program.map.node, *node = &pool[reducer->arg[0]];
    if (reducer->kind != RED_LSE || node->op != OP_CONVERT || pool[node->arg[0]].op != OP_OPERAND)
        return 0;
    const enum dtype type = problem->in_type[pool[node->arg[0]].index];
    return reducer->cls == CLS_F64 && (type == DT_i8 || type == DT_u8);
}

int mf_reducer_is_squares(const struct problem *problem, const struct reducer *reducer)
{
    const struct node *pool = problem->program.map.node, *node = &pool[reducer->arg[0]];
    return reducer->kind == RED_FOLD && reducer->fold == FOLD_SUM && node->op == OP_mul &&
           node->arg[0] == node->arg[1] && pool[node->arg[0]].op == OP_OPERAND;
}

enum term_kind mf_reducer_term(const struct problem *problem, const struct reducer *reducer, int operand[2])
{
    const struct node *pool = problem->program.map.node, *node = &pool[reducer->arg[0]];
    enum term_kind term = node->op == OP_mul ? TERM_PRODUCT : node->op == OP_abs ? TERM_MAGNITUDE : NO_TERM;
    if (reducer->kind != RED_FOLD || reducer->fold != FOLD_SUM || !term || !mf_cls_is_float(reducer->cls))
        return NO_TERM;
    const int second = term == TERM_PRODUCT ? node->arg[1] : node->arg[0];
    const struct node *args[2] = {&pool[node->arg[0]], &pool[second]};
    if (args[0] == args[1] && args[0]->op == OP_sub) {
        term = term == TERM_PRODUCT ? TERM_SQUARED_DISTANCE : TERM_DISTANCE;
        args[1] = &pool[args[0]->arg[1]];
        args[0] = &pool[args[0]->arg[0]];
    }
    if (args[0]->op != OP_OPERAND || args[1]->op != OP_OPERAND)
        return NO_TERM;
    for (int k = 0; k < 2; k++)
        operand[k] = args[k]->index;
    const enum dtype type = problem->in_type[operand[0]];
    return problem->in_type[operand[1]] == type && mf_dtypes[type].cls == reducer->cls ? term : NO_TERM;
}

union value mf_reducer_outside(const struct reducer *reducer, enum dtype type)
{
    union value nothing = mf_state_identity(reducer).v[0], outside = nothing;
    const int bits = mf_dtypes[type].bits, is_signed = mf_dtypes[type].code == MF_DL_INT;
    const int is_extreme = reducer->fold == FOLD_MIN || reducer->fold == FOLD_MAX;
    if (!mf_cls_is_float(reducer->cls) && is_extreme && bits < 64) {
        const int64_t half = INT64_C(1) << (bits - 1);
        nothing.i64 = reducer->fold == FOLD_MAX ? (is_signed ? -half : 0) : is_signed ? half - 1 : 2 * half - 1;
    }
    mf_value_store(type, reducer->cls, nothing, &outside);
    return outside;
}

void mf_summary_place(struct summary *out, const struct problem *problem, const struct reducer *reducer, void *first,
                      void *second)
{
    if (reducer->kind == RED_MOMENTS) {
        out->mean = first;
        out->m2 = second;
    } else if (mf_reducer_is_squares(problem, reducer)) {
        out->squares = first;
    } else {
        *(reducer->fold == FOLD_SUM ? &out->sum : reducer->fold == FOLD_MIN ? &out->low : &out->high) = first;
    }
}

size_t mf_finish_memory(const struct finish_plan *plan, const struct problem *problem, int64_t group)
{
    size_t arrays = 1 + 4; /* the spare one, and the counts in every class */
    for (int r = 0; r < problem->program.reducer_count; r++)
        arrays += (size_t)plan->parts[r];
    return arrays * mf_array_bytes(group) + mf_block_memory(&plan->block, group);
}

static void set_counts(struct finish *finish, const int64_t *counts, int64_t n)
{
    const struct kernels *k = finish->block.kernels;
    for (int c = CLS_F32; c <= CLS_U64; c++) {
        if (!finish->plan->counts[c])
            continue;
        char *array = finish->counts + (size_t)c * finish->block.stride;
        k->convert[CLS_I64][c](array, counts, n);
        finish->block.count[c] = array;
    }
}

void mf_finish_start(struct finish *finish, const struct finish_plan *plan, const struct mf_plan *fold,
                     const struct pointers *pointers, char *memory, int64_t group)
{
    const struct program *program = &fold->problem.program;
    const size_t array = mf_array_bytes(group);
    finish->plan = plan;
    finish->fold = fold;
    finish->pointers = pointers;
    finish->spare = memory;
    finish->counts = memory + array;
    memory += 5 * array;
    for (int r = 0; r < program->reducer_count; r++)
        for (int p = 0; p < plan->parts[r]; p++, memory += array)
            finish->results.part[r][p] = memory;
    mf_block_start(&finish->block, &plan->block, fold->device->kernels, memory, group);
    finish->block.copy_operands = mf_outputs_touch_inputs(&fold->problem, pointers);
    for (int r = 0; r < program->reducer_count; r++)
        for (int p = 0; p < plan->parts[r]; p++)
            finish->block.state[r][p] = finish->results.part[r][p];
    if (!program->uses_count)
        return;
    int64_t *all = (int64_t *)(void *)finish->spare;
    for (int64_t i = 0; i < group; i++)
        all[i] = fold->problem.reduced_total;
    set_counts(finish, all, group);
}

/* Outputs whose windows lie outside their tensors have the class's identity: min and max of short integers are to have
 * their type's. */
static void set_nothing(const struct finish *finish, int64_t n)
{
    const struct program *program = &finish->fold->problem.program;
    for (int r = 0; r < program->reducer_count; r++) {
        int64_t from, to, *result = (int64_t *)(uintptr_t)finish->block.state[r][0]; /* the solver's own */
        if (mf_reducer_of_nothing(program, &program->reducer[r], &from, &to))
            for (int64_t i = 0; i < n; i++)
                result[i] = result[i] == from ? to : result[i];
    }
}

void mf_finish_store(struct finish *finish, int64_t o, int64_t n, const int64_t *counts)
{
    const struct problem *problem = &finish->fold->problem;
    if (counts && problem->program.uses_count)
        set_counts(finish, counts, n);
    if (problem->memory.window_count || problem->framed)
        set_nothing(finish, n);
    mf_block_run(&finish->block, &finish->plan->out, finish->pointers->in, finish->pointers->out, o, n, finish->spare);
}
