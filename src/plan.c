/* Plans: parse, check, choose a solver, execute. */
#include "plan.h"

#include <stdio.h>
#include <stdlib.h>

/* In the order of preference. The first whose hypothesis holds makes the plan. */
const struct solver *const mf_solvers[] = {
    &mf_solver_pair, &mf_solver_map, &mf_solver_outer, &mf_solver_inner, &mf_solver_reference, NULL,
};

/* Type and memory of one tensor: the processor's own, or memory of a GPU that the processor may read (CUDA's and
 * ROCm's host memory, CUDA's managed memory). 0 is what a DLTensor has whose device was not set. */
static mf_status find_type(const DLTensor *tensor, const char *what, int number, enum dtype *found)
{
    enum { UNSET = 0, CPU = 1, CUDA_HOST = 3, ROCM_HOST = 11, CUDA_MANAGED = 13 };
    DLDataType type = tensor->dtype;
    int t = mf_dtype_find(type), memory = mf_device_type(tensor);
    if (memory != UNSET && memory != CPU && memory != CUDA_HOST && memory != ROCM_HOST && memory != CUDA_MANAGED)
        return mf_fail(MF_ERROR_UNSUPPORTED, "%s %d is in the memory of DLPack device type %d, not of the CPU", what,
                       number, memory);
    if (t < 0)
        return mf_fail(MF_ERROR_TYPE,
                       "%s %d has DLPack type code %d with %d bits and %d lanes, which modefold does not have", what,
                       number, type.code, type.bits, type.lanes);
    *found = (enum dtype)t;
    return MF_OK;
}

static mf_status check_arguments(const struct modes *modes, const DLTensor *inputs)
{
    for (int i = 0; i < modes->input_count; i++)
        if (inputs[i].ndim < 0 || inputs[i].ndim > MF_MAX_RANK)
            return mf_fail(MF_ERROR_SHAPE, "operand %c has %d dimensions and the most is %d", 'a' + i, inputs[i].ndim,
                           MF_MAX_RANK);
    return MF_OK;
}

/* Parses the expression with the device's operations known. */
static mf_status parse_expression(mf_device *device, const char *expression, struct problem *problem)
{
    pthread_mutex_lock(&device->lock);
    const struct operation *operations = device->operations; /* only ever grows at its head */
    pthread_mutex_unlock(&device->lock);
    MF_TRY(mf_expr_parse(expression, problem->input_count, problem->in_type, operations, &problem->program));
    problem->output_count = problem->program.output_count;
    return MF_OK;
}

/* What an output is of, when the expression ends in its type: storing rounds as the cast does. */
static int without_cast(const struct program *program, int node, enum dtype type)
{
    const struct node *last = &program->finish.node[node];
    return last->op == OP_CAST && last->dtype == type ? last->arg[0] : node;
}

static mf_status make_problem(mf_device *device, const struct modes *modes, const char *expression,
                              const DLTensor *inputs, const DLTensor *outputs, uint32_t flags, struct problem *problem)
{
    problem->input_count = modes->input_count;
    MF_TRY(check_arguments(modes, inputs));
    for (int i = 0; i < modes->input_count; i++)
        MF_TRY(find_type(&inputs[i], "operand", i, &problem->in_type[i]));
    MF_TRY(parse_expression(device, expression, problem));
    for (int k = 0; k < problem->output_count; k++) {
        if (outputs[k].ndim < 0 || outputs[k].ndim > MF_MAX_RANK)
            return mf_fail(MF_ERROR_SHAPE, "output %d has %d dimensions and the most is %d", k, outputs[k].ndim,
                           MF_MAX_RANK);
        MF_TRY(find_type(&outputs[k], "output", k, &problem->out_type[k]));
        problem->program.output[k] = without_cast(&problem->program, problem->program.output[k], problem->out_type[k]);
    }
    return mf_problem_make(modes, inputs, outputs, flags & MF_ORDER_AS_WRITTEN, problem);
}

static mf_status choose_solver(struct mf_plan *plan, const char *wanted)
{
    if (!wanted || !*wanted)
        wanted = getenv("MODEFOLD_SOLVER");
    if (wanted && !*wanted)
        wanted = NULL;
    for (const struct solver *const *s = mf_solvers; *s; s++) {
        if (wanted && strcmp((*s)->name, wanted) != 0)
            continue;
        if ((*s)->applicable(plan)) {
            plan->solver = *s;
            return (*s)->plan ? (*s)->plan(plan) : MF_OK;
        }
        if (wanted)
            return mf_fail(MF_ERROR_UNSUPPORTED, "solver %.40s does not apply to this fold", wanted);
    }
    char names[128] = "";
    for (const struct solver *const *s = mf_solvers; *s; s++)
        snprintf(names + strlen(names), sizeof names - strlen(names), " %s", (*s)->name);
    return mf_fail(MF_ERROR_ARGUMENT, "there is no solver \"%.40s\"; there are%s", wanted, names);
}

static mf_status describe(struct mf_plan *plan, const char *modes, const char *expression)
{
    enum { SIZE = 2048 };
    const struct problem *problem = &plan->problem;
    const struct nest *nest = &problem->memory;
    char *text = plan->text = mf_alloc(SIZE);
    if (!text)
        return MF_ERROR_MEMORY;
    int n = snprintf(text, SIZE, "%.300s  %.500s\nkept", modes, expression);
    for (int l = 0; l < nest->kept && n < SIZE - 100; l++)
        n += snprintf(text + n, SIZE - (size_t)n, " %lld", (long long)nest->size[l]);
    n += snprintf(text + n, SIZE - (size_t)n, "  reduced");
    for (int l = nest->kept; l < nest->kept + nest->reduced && n < SIZE - 100; l++)
        n += snprintf(text + n, SIZE - (size_t)n, " %lld", (long long)nest->size[l]);
    n += snprintf(text + n, SIZE - (size_t)n, "  windows checked %d\nsolver %s: %s\n%s", nest->window_count,
                  plan->solver->name, plan->solver->what, plan->device->description);
    if (plan->solver->print && n < SIZE - 1) {
        text[n++] = '\n';
        text[n] = 0;
        plan->solver->print(plan, text + n, SIZE - (size_t)n);
    }
    return MF_OK;
}

static mf_status check_options(const mf_options *options)
{
    if (!options || (!(options->flags & ~(uint32_t)MF_ORDER_AS_WRITTEN) && options->threads >= 0))
        return MF_OK;
    return mf_fail(MF_ERROR_ARGUMENT,
                   "the options have flags 0x%x and %d threads; the flag is MF_ORDER_AS_WRITTEN, threads are 0 or more",
                   (unsigned)options->flags, options->threads);
}

static mf_status fill_plan(mf_device *device, const char *modes, const char *expression, const DLTensor *inputs,
                           const DLTensor *outputs, const mf_options *options, struct mf_plan *plan)
{
    MF_TRY(check_options(options));
    struct modes *parsed = mf_alloc(sizeof *parsed);
    if (!parsed)
        return MF_ERROR_MEMORY;
    plan->device = device;
    plan->threads = device->thread_count;
    if (options && options->threads > 0 && options->threads < plan->threads)
        plan->threads = options->threads;
    mf_status status = mf_modes_parse(modes, parsed);
    if (status == MF_OK)
        status =
            make_problem(device, parsed, expression, inputs, outputs, options ? options->flags : 0, &plan->problem);
    mf_free(parsed);
    MF_TRY(status);
    MF_TRY(choose_solver(plan, options ? options->solver : NULL));
    return describe(plan, modes, expression);
}

mf_status mf_plan_create(mf_device *device, const char *modes, const char *expression, const DLTensor *inputs,
                         const DLTensor *outputs, const mf_options *options, mf_plan **result)
{
    if (!device || !modes || !expression || !inputs || !outputs || !result)
        return mf_fail(MF_ERROR_ARGUMENT, "mf_plan_create: %s is null",
                       !device       ? "the device"
                       : !modes      ? "the modes string"
                       : !expression ? "the expression"
                       : !inputs     ? "inputs"
                       : !outputs    ? "outputs"
                                     : "the result");
    *result = NULL;
    struct mf_plan *plan = mf_calloc(sizeof *plan);
    if (!plan)
        return MF_ERROR_MEMORY;
    mf_status status = fill_plan(device, modes, expression, inputs, outputs, options, plan);
    if (status != MF_OK) {
        mf_plan_destroy(plan);
        return status;
    }
    *result = plan;
    return MF_OK;
}

void mf_plan_destroy(mf_plan *plan)
{
    if (!plan)
        return;
    mf_free(plan->data);
    mf_free(plan->text);
    mf_free(plan);
}

const char *mf_plan_describe(const mf_plan *plan)
{
    return plan ? plan->text : "";
}

const char *mf_plan_solver(const mf_plan *plan)
{
    return plan ? plan->solver->name : "";
}

static mf_status misaligned(const char *what, int number, enum dtype type)
{
    return mf_fail(MF_ERROR_ARGUMENT, "%s %d is not aligned to the %d bytes of its type %s", what, number,
                   mf_dtypes[type].size, mf_dtypes[type].name);
}

mf_status mf_plan_execute(const mf_plan *plan, const void *const *inputs, void *const *outputs, void *stream)
{
    if (!plan || (!inputs && plan->problem.input_count) || !outputs)
        return mf_fail(MF_ERROR_ARGUMENT, "mf_plan_execute: %s is null",
                       !plan      ? "the plan"
                       : !outputs ? "outputs"
                                  : "inputs");
    const struct problem *problem = &plan->problem;
    if (stream)
        return mf_fail(MF_ERROR_ARGUMENT, "mf_plan_execute: the CPU has no streams and one was given");
    if (!problem->kept_total)
        return MF_OK;
    struct pointers pointers;
    for (int i = 0; i < problem->input_count; i++) {
        int64_t size = mf_dtypes[problem->in_type[i]].size;
        if (!inputs[i] && problem->high[i])
            return mf_fail(MF_ERROR_ARGUMENT, "the pointer of operand %c is null", 'a' + i);
        if ((uintptr_t)inputs[i] % (uintptr_t)size)
            return misaligned("operand", i, problem->in_type[i]);
        pointers.in[i] = (const char *)((uintptr_t)inputs[i] + (uintptr_t)(problem->in_base[i] * size));
    }
    for (int k = 0; k < problem->output_count; k++) {
        if (!outputs[k])
            return mf_fail(MF_ERROR_ARGUMENT, "the pointer of output %d is null", k);
        if ((uintptr_t)outputs[k] % (uintptr_t)mf_dtypes[problem->out_type[k]].size)
            return misaligned("output", k, problem->out_type[k]);
        pointers.out[k] = outputs[k];
    }
    MF_TRY(mf_problem_check_overlap(problem, inputs, outputs));
    return plan->solver->execute(plan, &pointers);
}
