/* Plans: parse, check, choose a solver, execute. */
#include "plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/form.h"

/* In the order of preference. The first whose hypothesis holds makes the plan. */
const struct solver *const mf_solvers[] = {
    &mf_solver_pair,         &mf_solver_turned,
    &mf_solver_map,          &mf_solver_contract,
    &mf_solver_contract_arg, &mf_solver_contract_several,
    &mf_solver_pool,         &mf_solver_sliding,
    &mf_solver_few,          &mf_solver_outer,
    &mf_solver_framed,       &mf_solver_inner,
    &mf_solver_reference,    NULL,
};
const struct solver *const mf_solvers_by_name[] = {
    &mf_solver_log_certified, &mf_solver_log_fast,     &mf_solver_log_exact,
    &mf_solver_log_running,   &mf_solver_log_two_pass, &mf_solver_direct,
    &mf_solver_fused,         &mf_solver_openblas,     NULL};

/* The processor reads its own memory and what a GPU shares with it (CUDA's and ROCm's host memory, CUDA's managed
 * memory), CUDA its own and those two. 0 is what a DLTensor has whose device was not set. */
int mf_device_reads(const struct mf_device *device, int memory)
{
    enum { UNSET = 0, CPU = 1, CUDA = 2, CUDA_HOST = 3, ROCM_HOST = 11, CUDA_MANAGED = 13 };
    int own = mf_device_kind(device);
    if (memory == UNSET || memory == own)
        return 1;
    if (memory == CUDA_HOST || memory == CUDA_MANAGED)
        return own == CPU || own == CUDA;
    return own == CPU && memory == ROCM_HOST;
}

mf_status mf_tensor_type(const struct mf_device *device, const DLTensor *tensor, const char *what, int number,
                         enum dtype *found)
{
    DLDataType type = tensor->dtype;
    int t = mf_dtype_find(type), memory = mf_tensor_memory(tensor);
    if (!mf_device_reads(device, memory))
        return mf_fail(MF_ERROR_UNSUPPORTED, "%s %d is in the memory of DLPack device type %d, not of %s", what, number,
                       memory, device->api ? device->name : "the CPU");
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

mf_status mf_plan_parse(mf_device *device, const struct modes *modes, const char *expression, const DLTensor *inputs,
                        const DLTensor *outputs, uint32_t flags, struct problem *problem)
{
    problem->input_count = modes->input_count;
    MF_TRY(check_arguments(modes, inputs));
    for (int i = 0; i < modes->input_count; i++)
        MF_TRY(mf_tensor_type(device, &inputs[i], "operand", i, &problem->in_type[i]));
    MF_TRY(parse_expression(device, expression, problem));
    for (int k = 0; k < problem->output_count; k++) {
        if (outputs[k].ndim < 0 || outputs[k].ndim > MF_MAX_RANK)
            return mf_fail(MF_ERROR_SHAPE, "output %d has %d dimensions and the most is %d", k, outputs[k].ndim,
                           MF_MAX_RANK);
        MF_TRY(mf_tensor_type(device, &outputs[k], "output", k, &problem->out_type[k]));
        problem->program.output[k] = without_cast(&problem->program, problem->program.output[k], problem->out_type[k]);
    }
    return mf_problem_make(modes, inputs, outputs, flags & MF_ORDER_AS_WRITTEN, problem);
}

int mf_solver_is_named(const char *solver, const char *asked)
{
    size_t n = strlen(solver);
    return !strncmp(solver, asked, n) && (!asked[n] || asked[n] == ':');
}

/* The solver of that name, or the first that applies where wanted is null; null where there is none. */
static const struct solver *find_solver(const struct mf_plan *plan, const char *wanted,
                                        const struct solver *const *table)
{
    for (const struct solver *const *s = table; *s; s++)
        if (wanted ? mf_solver_is_named((*s)->name, wanted) : (*s)->applicable(plan))
            return *s;
    return NULL;
}

static void append_names(const struct solver *const *table, char *names, size_t size)
{
    for (const struct solver *const *s = table; *s; s++)
        snprintf(names + strlen(names), size - strlen(names), " %s", (*s)->name);
}

enum { LOG_TIERS = MF_LOG_EXACT | MF_LOG_CERTIFIED | MF_LOG_FAST };

/* The solver of the tier that the flags ask for; null where there is none, or it is not for this fold. In the
 * contract's order one exp a term is what every solver takes. */
static const struct solver *choose_tier(const struct mf_plan *plan, uint32_t flags)
{
    const int gpu = plan->device->api != NULL;
    const struct solver *solver = NULL;
    if (flags & MF_LOG_EXACT && !(flags & (MF_ORDER_AS_WRITTEN | MF_ORDER_CONTRACT)))
        solver = gpu ? &mf_gpu_log_exact : &mf_solver_log_exact;
    if (flags & MF_LOG_CERTIFIED)
        solver = gpu ? &mf_gpu_log_certified : &mf_solver_log_certified;
    if (flags & MF_LOG_FAST)
        solver = gpu ? &mf_gpu_log_fast : &mf_solver_log_fast;
    return solver && solver->applicable(plan) ? solver : NULL;
}

/* The library's own choice. */
static const struct solver *choose_freely(const struct mf_plan *plan, const struct solver *const *table, uint32_t flags)
{
    const struct solver *tier = choose_tier(plan, flags),
                        *certified = plan->device->api ? &mf_gpu_log_certified : &mf_solver_log_certified;
    if (tier)
        return tier;
    if (flags & MF_ORDER_FREE && !plan->device->api && mf_fused_pays(plan))
        return &mf_solver_fused;
    if (flags & MF_ORDER_FREE && !plan->device->api && mf_solver_direct.applicable(plan))
        return &mf_solver_direct;
    if (flags & MF_ORDER_FREE && plan->device->api && mf_gpu_product_pays(plan))
        return mf_gpu_window_pays(plan) ? &mf_gpu_window : &mf_gpu_product;
    if (flags & MF_ORDER_FREE && plan->device->api && mf_gpu_tensor_sum_pays(plan))
        return &mf_gpu_tensor_sum;
    if (!(flags & (MF_ORDER_AS_WRITTEN | MF_ORDER_CONTRACT)) && mf_log_products_pay(plan) &&
        certified->applicable(plan))
        return certified;
    if (plan->device->api && mf_gpu_straddle_pays(plan))
        return &mf_gpu_straddle;
    if (plan->device->api && mf_gpu_interleaved_pays(plan))
        return &mf_gpu_interleaved;
    return find_solver(plan, NULL, table);
}

/* The plan by this solver, in the form that the name asks for. */
static mf_status make_plan(struct mf_plan *plan, const struct solver *solver, const char *wanted)
{
    const char *colon = wanted ? strchr(wanted, ':') : NULL;
    if (!solver->applicable(plan))
        return mf_fail(MF_ERROR_UNSUPPORTED, "solver %.40s does not apply to this fold", wanted);
    plan->solver = solver;
    plan->form = colon ? colon + 1 : NULL;
    MF_TRY(solver->plan ? solver->plan(plan) : MF_OK);
    return plan->form
               ? mf_fail(MF_ERROR_ARGUMENT, "solver %s has no forms and \"%.40s\" asks for one", solver->name, wanted)
               : MF_OK;
}

static mf_status choose_solver(struct mf_plan *plan, const char *wanted, uint32_t flags)
{
    if (!wanted || !*wanted)
        wanted = getenv("MODEFOLD_SOLVER");
    if (wanted && !*wanted)
        wanted = NULL;
    const struct solver *const *table = plan->device->api ? mf_gpu_solvers : mf_solvers;
    const struct solver *const *by_name = plan->device->api ? mf_gpu_solvers_by_name : mf_solvers_by_name;
    const struct solver *solver = wanted ? find_solver(plan, wanted, table) : choose_freely(plan, table, flags);
    if (!solver && wanted)
        solver = find_solver(plan, wanted, by_name);
    if (solver)
        return make_plan(plan, solver, wanted);
    if (!wanted)
        return mf_fail(MF_ERROR_UNSUPPORTED, "operations given as callbacks run on the CPU, not on %s",
                       plan->device->name);
    char names[400] = "";
    append_names(table, names, sizeof names);
    append_names(by_name, names, sizeof names);
    return mf_fail(MF_ERROR_ARGUMENT, "there is no solver \"%.40s\"; there are%s", wanted, names);
}

mf_status mf_plan_write(struct mf_plan *plan, const char *modes, const char *expression)
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

mf_status mf_options_check(const mf_options *options)
{
    const uint32_t known = MF_ORDER_AS_WRITTEN | MF_ORDER_CONTRACT | MF_ORDER_FREE | LOG_TIERS,
                   both = MF_ORDER_FREE | MF_ORDER_CONTRACT, flags = options ? options->flags : 0,
                   tiers = flags & LOG_TIERS;
    if (flags & ~known || (flags & both) == both || (options && options->threads < 0))
        return mf_fail(
            MF_ERROR_ARGUMENT,
            "the options have flags 0x%x and %d threads; flags are MF_ORDER_AS_WRITTEN and MF_ORDER_CONTRACT "
            "or MF_ORDER_FREE, and a tier, threads are 0 or more",
            (unsigned)flags, options->threads);
    if (tiers & (tiers - 1) || (tiers & ~(uint32_t)MF_LOG_EXACT && flags & (MF_ORDER_AS_WRITTEN | MF_ORDER_CONTRACT)))
        return mf_fail(
            MF_ERROR_ARGUMENT,
            "the options' flags 0x%x ask for %s; of MF_LOG_EXACT, MF_LOG_CERTIFIED and MF_LOG_FAST one can be "
            "given, and the last two add in an order of their own",
            (unsigned)flags, tiers & (tiers - 1) ? "several tiers" : "a tier and an order");
    return MF_OK;
}

static mf_status fill_plan(mf_device *device, const char *modes, const char *expression, const DLTensor *inputs,
                           const DLTensor *outputs, const mf_options *options, struct mf_plan *plan)
{
    MF_TRY(mf_options_check(options));
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
            mf_plan_parse(device, parsed, expression, inputs, outputs, options ? options->flags : 0, &plan->problem);
    mf_free(parsed);
    MF_TRY(status);
    MF_TRY(choose_solver(plan, options ? options->solver : NULL, options ? options->flags : 0));
    return mf_plan_write(plan, modes, expression);
}

static mf_status create_plan(mf_device *device, const char *modes, const char *expression, const DLTensor *inputs,
                             const DLTensor *outputs, const mf_options *options, const int64_t pool[3],
                             const void *condition, mf_plan **result)
{
    *result = NULL;
    struct mf_plan *plan = mf_calloc(sizeof *plan);
    if (!plan)
        return MF_ERROR_MEMORY;
    memcpy(plan->pool, pool, sizeof plan->pool);
    plan->condition = condition;
    for (int d = 0; d < 2 && pool[0]; d++)
        plan->pool_of[d] = outputs->shape[1 + d];
    mf_status status = fill_plan(device, modes, expression, inputs, outputs, options, plan);
    if (status != MF_OK) {
        mf_plan_destroy(plan);
        return status;
    }
    *result = plan;
    return MF_OK;
}

mf_status mf_plan_create_pooled(mf_device *device, const char *modes, const char *expression, const DLTensor *inputs,
                                const DLTensor *output, const int64_t pool[3], const char *solver, mf_plan **result)
{
    const mf_options options = {solver, MF_ORDER_FREE, 0};
    *result = NULL;
    if (!device->api)
        return mf_fail(MF_ERROR_UNSUPPORTED, "solver window is of GPUs");
    if ((!mf_solver_is_named(mf_gpu_window.name, solver) && !mf_solver_is_named(mf_gpu_pixels.name, solver)) ||
        output->ndim < 3)
        return mf_fail(MF_ERROR_ARGUMENT, "a pooled plan by solver %.40s of %d dimensions", solver, output->ndim);
    return create_plan(device, modes, expression, inputs, output, &options, pool, NULL, result);
}

mf_status mf_plan_create(mf_device *device, const char *modes, const char *expression, const DLTensor *inputs,
                         const DLTensor *outputs, const mf_options *options, mf_plan **result)
{
    const int64_t no_pool[3] = {0};
    if (!device || !modes || !expression || !inputs || !outputs || !result)
        return mf_fail(MF_ERROR_ARGUMENT, "mf_plan_create: %s is null",
                       !device       ? "the device"
                       : !modes      ? "the modes string"
                       : !expression ? "the expression"
                       : !inputs     ? "inputs"
                       : !outputs    ? "outputs"
                                     : "the result");
    return create_plan(device, modes, expression, inputs, outputs, options, no_pool, NULL, result);
}

mf_status mf_plan_create_if(mf_device *device, const char *modes, const char *expression, const DLTensor *inputs,
                            const DLTensor *outputs, const mf_options *options, const void *condition, mf_plan **result)
{
    const int64_t no_pool[3] = {0};
    return create_plan(device, modes, expression, inputs, outputs, options, no_pool, condition, result);
}

void mf_plan_destroy(mf_plan *plan)
{
    if (!plan)
        return;
    if (plan->solver && plan->solver->forget)
        plan->solver->forget(plan);
    mf_free(plan->data);
    mf_free(plan->text);
    mf_free(plan->tiers);
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

enum { TIERS = MF_TIER_UNCHECKED + 1 };

mf_status mf_plan_start_tiers(struct mf_plan *plan)
{
    plan->tiers = mf_alloc(sizeof *plan->tiers * TIERS);
    for (int t = 0; plan->tiers && t < TIERS; t++)
        atomic_init(&plan->tiers[t], 0);
    return plan->tiers ? MF_OK : MF_ERROR_MEMORY;
}

void mf_plan_count_tier(const struct mf_plan *plan, mf_tier tier, int64_t outputs)
{
    atomic_fetch_add_explicit(&plan->tiers[tier], outputs, memory_order_relaxed);
}

int64_t mf_plan_tier_count(const mf_plan *plan, mf_tier tier)
{
    if (!plan || !plan->tiers || (int)tier < 0 || (int)tier >= TIERS)
        return 0;
    const int64_t count = atomic_load(&plan->tiers[tier]), refused = plan->refused ? plan->refused(plan) : 0;
    if (refused < 0 && (count || tier == MF_TIER_EXACT))
        return -1;
    return tier == MF_TIER_EXACT ? count + refused : count ? count - refused : 0;
}

static mf_status misaligned(const char *what, int number, enum dtype type)
{
    return mf_fail(MF_ERROR_ARGUMENT, "%s %d is not aligned to the %d bytes of its type %s", what, number,
                   mf_dtypes[type].size, mf_dtypes[type].name);
}

/* Where the tensors are: checks and addresses. what, number: for errors. */
static mf_status place_tensor(const struct mf_plan *plan, const void *memory, int64_t bytes, enum dtype type,
                              const char *what, int number, uintptr_t *place)
{
    *place = (uintptr_t)memory;
    if (plan->device->api && memory)
        MF_TRY(plan->device->api->check(plan->device->gpu, memory, what, number, place));
    *place += (uintptr_t)bytes;
    return *place % (uintptr_t)mf_dtypes[type].size ? misaligned(what, number, type) : MF_OK;
}

static mf_status place_inputs(const struct mf_plan *plan, const struct given *given, struct pointers *pointers)
{
    const struct problem *problem = &plan->problem;
    for (int i = 0; i < problem->input_count; i++) {
        int64_t size = mf_dtypes[problem->in_type[i]].size;
        uint64_t bytes = given->in_bytes ? given->in_bytes[i] : 0;
        int used = !plan->device->api || problem->map_uses[i] || problem->finish_uses[i];
        if (!given->in[i] && problem->high[i])
            return mf_fail(MF_ERROR_ARGUMENT, "the pointer of operand %c is null", 'a' + i);
        if (used)
            MF_TRY(place_tensor(plan, given->in[i], (int64_t)bytes, problem->in_type[i], "operand", i,
                                &pointers->in_place[i]));
        else
            pointers->in_place[i] = 0;
        pointers->in[i] = given->in[i];
        if (plan->device->api)
            pointers->in_offset[i] = (int64_t)(bytes / (uint64_t)size + (uint64_t)problem->in_base[i]);
        else
            pointers->in[i] =
                (const char *)((uintptr_t)given->in[i] + bytes + /* a place past all, if nothing is read */
                               (uintptr_t)(problem->in_base[i] * size));
    }
    return MF_OK;
}

static mf_status place_outputs(const struct mf_plan *plan, const struct given *given, struct pointers *pointers)
{
    const struct problem *problem = &plan->problem;
    for (int k = 0; k < problem->output_count; k++) {
        uint64_t bytes = given->out_bytes ? given->out_bytes[k] : 0;
        if (!given->out[k])
            return mf_fail(MF_ERROR_ARGUMENT, "the pointer of output %d is null", k);
        MF_TRY(place_tensor(plan, given->out[k], (int64_t)bytes, problem->out_type[k], "output", k,
                            &pointers->out_place[k]));
        pointers->out[k] = given->out[k];
        if (plan->device->api)
            pointers->out_offset[k] = (int64_t)bytes / mf_dtypes[problem->out_type[k]].size;
        else
            pointers->out[k] += bytes;
    }
    return MF_OK;
}

mf_status mf_plan_run(const struct mf_plan *plan, const struct given *given)
{
    const struct problem *problem = &plan->problem;
    if (!problem->kept_total)
        return MF_OK;
    struct pointers pointers;
    const void *in[MF_MAX_INPUTS];
    void *out[MF_MAX_OUTPUTS];
    pointers.stream = given->stream;
    MF_TRY(place_inputs(plan, given, &pointers));
    MF_TRY(place_outputs(plan, given, &pointers));
    for (int i = 0; i < problem->input_count; i++)
        in[i] = (const void *)pointers.in_place[i];
    for (int k = 0; k < problem->output_count; k++)
        out[k] = (void *)pointers.out_place[k];
    MF_TRY(mf_problem_check_overlap(problem, in, out));
    for (int i = 0; i < problem->input_count; i++)
        pointers.in_place[i] += (uintptr_t)(problem->in_base[i] * mf_dtypes[problem->in_type[i]].size);
    return plan->solver->execute(plan, &pointers);
}

mf_status mf_plan_execute(const mf_plan *plan, const void *const *inputs, void *const *outputs, void *stream)
{
    if (!plan || (!inputs && plan->problem.input_count) || !outputs)
        return mf_fail(MF_ERROR_ARGUMENT, "mf_plan_execute: %s is null",
                       !plan      ? "the plan"
                       : !outputs ? "outputs"
                                  : "inputs");
    if (stream && !plan->device->api)
        return mf_fail(MF_ERROR_ARGUMENT, "mf_plan_execute: the CPU has no streams and one was given");
    struct given given = {inputs, outputs, NULL, NULL, stream};
    return mf_plan_run(plan, &given);
}
