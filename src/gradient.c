/* mf_plan_gradient: the gradients of a fold, as a plan like any other. Its problem lists the tensors only, so that
 * plan.c checks pointers as always; its steps are plans of folds (gradient_folds.c, gradient_winners.c), on the
 * caller's tensors and a workspace of a few times their size. gradient_run.c runs them. */
#include "gradient.h"

#include <stdio.h>

/* ---- what the fold is ---- */

static int peel(const struct pool *pool, int node)
{
    while (pool->node[node].op == OP_CONVERT)
        node = pool->node[node].arg[0];
    return node;
}

/* Whether the node is an operand, or a sum, difference or product of two different ones. */
static int find_argument(const struct pool *pool, int root, struct argument *argument)
{
    const struct node *node = &pool->node[peel(pool, root)];
    argument->op = node->op;
    argument->count = node->op == OP_OPERAND ? 1 : FACTORS_MOST;
    if (node->op == OP_OPERAND) {
        argument->operand[0] = node->index;
        return 1;
    }
    if (node->op != OP_add && node->op != OP_sub && node->op != OP_mul)
        return 0;
    for (int f = 0; f < FACTORS_MOST; f++) {
        const struct node *factor = &pool->node[peel(pool, node->arg[f])];
        if (factor->op != OP_OPERAND)
            return 0;
        argument->operand[f] = factor->index;
    }
    return argument->operand[0] != argument->operand[1];
}

static const char *skip_blanks(const char *text)
{
    while (*text == ' ' || *text == '\t' || *text == '\n')
        text++;
    return text;
}

/* Which reducer the whole text is, NAME(...); -1 where it is none of those known. */
static int find_kind(const char *text)
{
    static const char *const names[] = {[GRADIENT_SUM] = "sum",
                                        [GRADIENT_MEAN] = "mean",
                                        [GRADIENT_LOG] = "logsumexp",
                                        [GRADIENT_MAX] = "max",
                                        [GRADIENT_MIN] = "min"};
    text = skip_blanks(text);
    for (int kind = 0; kind < (int)(sizeof names / sizeof names[0]); kind++) {
        const size_t n = strlen(names[kind]);
        const char *at = skip_blanks(strncmp(text, names[kind], n) ? "" : text + n);
        int depth = 0;
        if (*at != '(')
            continue;
        for (; *at && (depth += (*at == '(') - (*at == ')')); at++) {
        }
        return *at && !*skip_blanks(at + 1) ? kind : -1;
    }
    return -1;
}

static mf_status find_form(struct gradient *data, const char *expression, const struct problem *fold)
{
    const struct program *program = &fold->program;
    const int kind = find_kind(expression);
    if (kind < 0 || program->reducer_count != 1 || program->output_count != 1 ||
        !find_argument(&program->map, program->reducer[0].arg[0], &data->argument))
        return mf_fail(MF_ERROR_UNSUPPORTED,
                       "the gradient of \"%.100s\" is not known; those are of one reducer, sum, mean, logsumexp, max "
                       "or min, of one operand or of x+y, x-y or x*y of two",
                       expression);
    data->kind = (enum gradient_kind)kind;
    data->cls = program->reducer[0].cls;
    data->input_count = fold->input_count;
    for (int f = 0; f < data->argument.count; f++)
        data->operand_type[f] = fold->in_type[data->argument.operand[f]];
    if (!mf_cls_is_float(data->cls))
        return mf_fail(MF_ERROR_TYPE, "\"%.100s\" is of integers here, which have no gradient", expression);
    if (data->input_count > GRADIENT_OPERANDS)
        return mf_fail(MF_ERROR_UNSUPPORTED, "a fold with a gradient has at most %d operands and here are %d",
                       GRADIENT_OPERANDS, data->input_count);
    return MF_OK;
}

/* ---- tensors ---- */

static int is_float_tensor(const DLTensor *tensor)
{
    int type = mf_dtype_find(tensor->dtype);
    return type >= 0 && mf_cls_is_float(mf_dtypes[type].cls);
}

/* A gradient has the shape of what it is a gradient of, and floats. */
static mf_status check_like(const DLTensor *tensor, const DLTensor *like, const char *what)
{
    if (tensor->ndim != like->ndim || (tensor->ndim && !tensor->shape))
        return mf_fail(MF_ERROR_SHAPE, "the gradient of %s has %d dimensions and %s itself has %d", what, tensor->ndim,
                       what, like->ndim);
    for (int d = 0; d < like->ndim; d++)
        if (tensor->shape[d] != like->shape[d])
            return mf_fail(MF_ERROR_SHAPE, "dimension %d of the gradient of %s is %lld and of %s itself %lld", d, what,
                           (long long)tensor->shape[d], what, (long long)like->shape[d]);
    return MF_OK;
}

static mf_status check_float(const DLTensor *tensor, const char *what)
{
    const char *name = mf_type_name(tensor->dtype);
    if (is_float_tensor(tensor))
        return MF_OK;
    return mf_fail(MF_ERROR_TYPE, "gradients are floats and %s is %s", what, name ? name : "of an unknown type");
}

/* Letters of a tensor whose dimensions are these modes. */
static void set_view(struct place_view *view, const DLTensor *tensor)
{
    view->tensor = *tensor;
    for (int d = 0; d < tensor->ndim; d++)
        view->shape[d] = tensor->shape[d];
    view->tensor.shape = view->shape;
    view->plain = 1;
}

static void view_output(struct gradient_maker *maker, int place, const DLTensor *tensor)
{
    struct place_view *view = &maker->view[place];
    set_view(view, tensor);
    for (int d = 0; d < tensor->ndim; d++)
        view->letters[d] = maker->modes->letter[maker->modes->output_mode[d]];
}

static int is_mode(const struct mode_term *term)
{
    return term->parts == 1 && term->coefficient[0] == 1 && term->offset == 0;
}

static void view_operand(struct gradient_maker *maker, int place, int operand, const DLTensor *tensor)
{
    const struct mode_list *list = &maker->modes->input[operand];
    struct place_view *view = &maker->view[place];
    set_view(view, tensor);
    for (int d = 0; d < list->rank; d++) {
        const char letter = is_mode(&list->term[d]) ? maker->modes->letter[list->term[d].mode[0]] : 0;
        view->plain &= letter && !memchr(view->letters, letter, (size_t)d);
        view->letters[d] = letter;
    }
    if (!view->plain)
        view->letters[0] = 0;
}

static mf_status take_tensors(struct gradient_maker *maker, const DLTensor *inputs, const DLTensor *output,
                              const DLTensor *given, const DLTensor *gradients)
{
    struct gradient *data = maker->data;
    int wanted = 0;
    MF_TRY(check_like(given, output, "the output"));
    MF_TRY(check_float(given, "the output's"));
    view_output(maker, AT_OUTPUT, output);
    view_output(maker, AT_GIVEN, given);
    for (int i = 0; i < data->input_count; i++) {
        char what[] = "operand a", whose[] = "operand a's";
        what[8] = whose[8] = (char)('a' + i);
        view_operand(maker, AT_OPERAND + i, i, &inputs[i]);
        if (!gradients[i].dtype.bits)
            continue;
        const int f = i == data->argument.operand[0]                               ? 0
                      : data->argument.count > 1 && i == data->argument.operand[1] ? 1
                                                                                   : -1;
        if (f < 0)
            return mf_fail(MF_ERROR_UNSUPPORTED, "the expression does not use operand %c, whose gradient is wanted",
                           'a' + i);
        MF_TRY(check_like(&gradients[i], &inputs[i], what));
        MF_TRY(check_float(&gradients[i], whose));
        if (!is_float_tensor(&inputs[i]))
            return mf_fail(MF_ERROR_TYPE, "operand %c is %s, which has no gradient", 'a' + i,
                           mf_type_name(inputs[i].dtype));
        view_operand(maker, AT_GRADIENT + f, i, &gradients[i]);
        data->output[f] = wanted++;
        data->wanted[f] = 1;
    }
    if (data->wanted[0] && data->wanted[1] && data->argument.operand[0] > data->argument.operand[1]) {
        data->output[0] = 1; /* in the order of the operands */
        data->output[1] = 0;
    }
    return wanted ? MF_OK : mf_fail(MF_ERROR_ARGUMENT, "mf_plan_gradient: no operand's gradient is wanted");
}

/* Folds by modes need every tensor's dimensions to be modes. The winners of max and min are places, whatever they are
 * called. */
static mf_status check_plain(const struct gradient_maker *maker)
{
    for (int i = 0; i < maker->data->input_count; i++)
        if (!maker->view[AT_OPERAND + i].plain && !mf_gradient_has_winners(maker->data))
            return mf_fail(MF_ERROR_UNSUPPORTED,
                           "operand %c has a window or a mode twice: only max and min have gradients of those",
                           'a' + i);
    return MF_OK;
}

/* ---- the plan's problem: where its tensors lie ---- */

/* The loop of one dimension: its mode's, or one of its own. */
static int find_loop(struct nest *nest, int *loop_of_letter, char letter, int64_t n)
{
    int *known = letter ? &loop_of_letter[(unsigned char)letter] : NULL;
    if (known && *known >= 0)
        return *known;
    if (nest->kept == MAX_LOOPS - 1)
        return -1;
    nest->size[nest->kept] = n;
    if (known)
        *known = nest->kept;
    return nest->kept++;
}

static mf_status add_tensor(struct gradient_maker *maker, int place, const char *what, int64_t *loops, int64_t *low,
                            int64_t *high, enum dtype *type, int *loop_of_letter)
{
    const struct place_view *view = &maker->view[place];
    struct nest *nest = &maker->plan->problem.memory;
    int64_t stride[MF_MAX_RANK];
    int number = place < AT_OUTPUT ? place : 0;
    MF_TRY(mf_tensor_type(maker->plan->device, &view->tensor, what, number, type));
    MF_TRY(mf_tensor_layout(&view->tensor, what, mf_dtypes[*type].size, stride, low, high));
    for (int d = 0; d < view->tensor.ndim; d++) {
        const int64_t n = view->shape[d];
        const int l = n > 1 ? find_loop(nest, loop_of_letter, view->plain ? view->letters[d] : 0, n) : 0;
        if (l < 0)
            return mf_fail(MF_ERROR_UNSUPPORTED, "a fold with a gradient has at most %d modes and windows",
                           MAX_LOOPS - 1);
        if (n > 1)
            loops[l] = stride[d];
    }
    return MF_OK;
}

static mf_status check_itself(const DLTensor *tensor, int64_t item, char letter)
{
    int64_t bytes[MF_MAX_RANK], count = 1;
    for (int d = tensor->ndim - 1; d >= 0; count *= tensor->shape[d--])
        bytes[d] = tensor->shape[d] > 1 ? (tensor->strides ? tensor->strides[d] : count) * item : 0;
    if (mf_set_overlaps_itself(tensor->ndim, tensor->shape, bytes, item))
        return mf_fail(MF_ERROR_OVERLAP, "the gradient of operand %c overlaps itself: two of its elements share memory",
                       letter);
    return MF_OK;
}

/* All of an input is read before the last of an output is written: a reduced loop says so. */
static mf_status make_problem(struct gradient_maker *maker)
{
    struct gradient *data = maker->data;
    struct problem *problem = &maker->plan->problem;
    struct nest *nest = &problem->memory;
    int loop[256];
    for (int c = 0; c < 256; c++)
        loop[c] = -1;
    problem->input_count = data->input_count + 2;
    for (int i = 0; i < problem->input_count; i++) {
        const int place = i < data->input_count ? i : i == data->input_count ? AT_OUTPUT : AT_GIVEN;
        MF_TRY(add_tensor(maker, place, place < AT_OUTPUT ? "operand" : "the output", nest->in[i], &problem->low[i],
                          &problem->high[i], &problem->in_type[i], loop));
        problem->map_uses[i] = place == AT_GIVEN || (place == AT_OUTPUT && data->kind == GRADIENT_LOG) ||
                               place == data->argument.operand[0] ||
                               (data->argument.count > 1 && place == data->argument.operand[1]);
        if (place == AT_OUTPUT && !problem->map_uses[i])
            problem->low[i] = problem->high[i] = 0;
    }
    data->given_type = problem->in_type[data->input_count + 1];
    for (int f = 0; f < data->argument.count; f++) {
        const int k = data->output[f], to = MF_MAX_INPUTS + k;
        if (!data->wanted[f])
            continue;
        MF_TRY(add_tensor(maker, AT_GRADIENT + f, "gradient", nest->out[k], &problem->low[to], &problem->high[to],
                          &problem->out_type[k], loop));
        MF_TRY(check_itself(&maker->view[AT_GRADIENT + f].tensor, mf_dtypes[problem->out_type[k]].size,
                            (char)('a' + data->argument.operand[f])));
        problem->output_count++;
    }
    nest->size[nest->kept] = 1;
    nest->reduced = 1;
    problem->kept_total = problem->reduced_total = 1;
    return MF_OK;
}

/* ---- slots and steps ---- */

mf_status mf_gradient_slot(struct gradient_maker *maker, enum slot slot, const char *letters, enum dtype type)
{
    const struct dtype_info *info = &mf_dtypes[type];
    struct place_view *view = &maker->view[AT_SLOT + slot];
    int64_t bytes = info->size;
    int fits = 1, ndim = (int)strlen(letters);
    for (int d = 0; d < ndim; d++) {
        const char *at = memchr(maker->modes->letter, letters[d], (size_t)maker->modes->mode_count);
        view->shape[d] = maker->size[at - maker->modes->letter];
        fits = fits && mf_mul(bytes, view->shape[d], &bytes);
    }
    if (!fits || bytes > INT64_MAX / (2 * SLOTS))
        return mf_fail(MF_ERROR_OVERFLOW, "the gradient's workspace does not fit in 63 bits");
    strcpy(view->letters, letters);
    memset(&view->tensor, 0, sizeof view->tensor);
    view->tensor.shape = view->shape;
    view->tensor.ndim = ndim;
    view->tensor.device = maker->view[AT_OUTPUT].tensor.device;
    view->tensor.dtype = (DLDataType){info->code, info->bits, 1};
    if (bytes > maker->data->slot_bytes[slot])
        maker->data->slot_bytes[slot] = bytes;
    return MF_OK;
}

mf_status mf_gradient_reserve(struct gradient_maker *maker, enum slot slot, int64_t count, int64_t more)
{
    int64_t bytes;
    if (!mf_mul(count, more, &bytes) || !mf_mul(bytes, 8, &bytes) || bytes > INT64_MAX / (2 * SLOTS))
        return mf_fail(MF_ERROR_OVERFLOW, "the gradient's workspace does not fit in 63 bits");
    maker->data->slot_bytes[slot] = bytes;
    return MF_OK;
}

mf_status mf_gradient_step_of(struct gradient_maker *maker, const char *expression, const mf_options *options,
                              int if_left, int input_count, const struct step_tensor *in, int output_count,
                              const struct step_tensor *out)
{
    struct gradient_step *step = &maker->data->step[maker->data->step_count];
    char modes[(MF_MAX_INPUTS + 1) * (MF_MAX_RANK + 2)];
    DLTensor inputs[MF_MAX_INPUTS], outputs[GRADIENT_RESULTS];
    size_t n = 0;
    for (int i = 0; i < input_count; i++) {
        n += (size_t)snprintf(modes + n, sizeof modes - n, "%s%s", i ? "," : "", in[i].letters);
        inputs[i] = *in[i].tensor;
        step->in[i] = in[i].place;
    }
    snprintf(modes + n, sizeof modes - n, "->%s", out[0].letters);
    for (int k = 0; k < output_count; k++) {
        outputs[k] = *out[k].tensor;
        step->out[k] = out[k].place;
        step->out_more[k] = out[k].more;
    }
    step->input_count = input_count;
    step->output_count = output_count;
    step->if_left = if_left;
    MF_TRY(mf_plan_create_if(maker->plan->device, modes, expression, inputs, outputs, options,
                             if_left ? maker->data->count : NULL, &step->plan));
    maker->data->step_count++;
    return MF_OK;
}

mf_status mf_gradient_step(struct gradient_maker *maker, const char *expression, int if_left, int input_count,
                           const int *in, int output_count, const int *out)
{
    struct step_tensor from[MF_MAX_INPUTS], to[GRADIENT_RESULTS];
    for (int i = 0; i < input_count; i++)
        from[i] = (struct step_tensor){in[i], 0, maker->view[in[i]].letters, &maker->view[in[i]].tensor};
    for (int k = 0; k < output_count; k++)
        to[k] = (struct step_tensor){out[k], 0, maker->view[out[k]].letters, &maker->view[out[k]].tensor};
    return mf_gradient_step_of(maker, expression, &maker->options, if_left, input_count, from, output_count, to);
}

int mf_gradient_target(struct gradient_maker *maker, int f)
{
    struct gradient *data = maker->data;
    const int last = data->kind <= GRADIENT_MEAN && (f == 1 || !data->wanted[1]);
    if (maker->plan->device->api || last)
        return AT_GRADIENT + f;
    data->delivered[f] = 1;
    return AT_SLOT + SLOT_GRADIENT + f;
}

/* ---- planning ---- */

static mf_status lay_out(struct gradient_maker *maker)
{
    struct gradient *data = maker->data;
    for (int s = 0; s < SLOTS; s++) {
        data->slot_at[s] = data->workspace_bytes;
        data->workspace_bytes += (data->slot_bytes[s] + 63) / 64 * 64;
    }
    for (int f = 0; f < data->argument.count; f++) {
        struct place_view *view = &data->gradient[f];
        int64_t count = 1;
        *view = maker->view[AT_GRADIENT + f];
        view->tensor.shape = NULL; /* the caller's, or the maker's */
        for (int d = view->tensor.ndim - 1; d >= 0; count *= view->shape[d--])
            data->strides[f][d] = view->tensor.strides ? view->tensor.strides[d] : count;
        view->tensor.strides = NULL;
    }
    return maker->plan->device->api && data->workspace_bytes
               ? mf_memory_create(maker->plan->device, data->workspace_bytes, &data->memory)
               : MF_OK;
}

static mf_status take_options(struct gradient_maker *maker, const mf_options *options)
{
    const char *solver = options && options->solver && *options->solver ? options->solver : "gradient";
    MF_TRY(mf_options_check(options));
    maker->plan->threads = maker->plan->device->thread_count;
    const int exact = !strcmp(solver, "gradient-exact");
    maker->exact = exact || (options && options->flags & MF_LOG_EXACT);
    maker->products = !strcmp(solver, "gradient-products");
    if (strcmp(solver, "gradient") != 0 && !exact && !maker->products)
        return mf_fail(MF_ERROR_ARGUMENT,
                       "there is no solver \"%.40s\" for gradients; there are gradient gradient-exact "
                       "gradient-products",
                       solver);
    if (options) {
        maker->options = *options;
        maker->options.solver = NULL;
    }
    return MF_OK;
}

/* The fold itself, checked as if it were planned. */
static mf_status take_fold(struct gradient_maker *maker, const char *expression, const DLTensor *inputs,
                           const DLTensor *output)
{
    struct problem *fold = mf_calloc(sizeof *fold);
    if (!fold)
        return MF_ERROR_MEMORY;
    mf_status status =
        mf_plan_parse(maker->plan->device, maker->modes, expression, inputs, output, maker->options.flags, fold);
    if (status == MF_OK)
        status = find_form(maker->data, expression, fold);
    if (status == MF_OK)
        status = mf_modes_sizes(maker->modes, inputs, output, maker->size);
    maker->reduced_total = fold->reduced_total;
    maker->kept_total = maker->data->outputs = fold->kept_total;
    mf_free(fold);
    return status;
}

static mf_status plan_steps(struct gradient_maker *maker)
{
    switch (maker->data->kind) {
    case GRADIENT_LOG:
        return mf_gradient_plan_log(maker);
    case GRADIENT_MAX:
    case GRADIENT_MIN:
        return mf_gradient_plan_winners(maker);
    default:
        return mf_gradient_plan_sum(maker);
    }
}

/* Everything that the caller gives. */
struct wish {
    const char *modes, *expression;
    const DLTensor *inputs, *output, *given, *gradients;
    const mf_options *options;
};

static mf_status fill_plan(struct gradient_maker *maker, struct modes *parsed, const struct wish *wish)
{
    maker->modes = parsed;
    maker->modes_text = wish->modes;
    MF_TRY(take_options(maker, wish->options));
    MF_TRY(mf_modes_parse(wish->modes, parsed));
    MF_TRY(take_fold(maker, wish->expression, wish->inputs, wish->output));
    MF_TRY(take_tensors(maker, wish->inputs, wish->output, wish->given, wish->gradients));
    MF_TRY(check_plain(maker));
    MF_TRY(make_problem(maker));
    MF_TRY(plan_steps(maker));
    MF_TRY(lay_out(maker));
    if (maker->plan->device->api && mf_gradient_has_winners(maker->data))
        MF_TRY(mf_gpu_winners_place(maker->plan));
    return mf_plan_write(maker->plan, wish->modes, wish->expression);
}

static mf_status make_plan(struct mf_plan *plan, const struct wish *wish)
{
    struct gradient_maker *maker = mf_calloc(sizeof *maker);
    struct modes *parsed = mf_alloc(sizeof *parsed);
    mf_status status = MF_ERROR_MEMORY;
    plan->solver = &mf_solver_gradient;
    plan->data = mf_calloc(sizeof(struct gradient));
    if (maker && parsed && plan->data) {
        maker->plan = plan;
        maker->data = plan->data;
        status = fill_plan(maker, parsed, wish);
    }
    mf_free(parsed);
    mf_free(maker);
    return status;
}

mf_status mf_plan_gradient(mf_device *device, const char *modes, const char *expression, const DLTensor *inputs,
                           const DLTensor *output, const DLTensor *output_gradient, const DLTensor *gradients,
                           const mf_options *options, mf_plan **result)
{
    if (!device || !modes || !expression || !inputs || !output || !output_gradient || !gradients || !result)
        return mf_fail(MF_ERROR_ARGUMENT, "mf_plan_gradient: %s is null",
                       !device            ? "the device"
                       : !modes           ? "the modes string"
                       : !expression      ? "the expression"
                       : !inputs          ? "inputs"
                       : !output          ? "the output"
                       : !output_gradient ? "the output's gradient"
                       : !gradients       ? "gradients"
                                          : "the result");
    *result = NULL;
    const struct wish wish = {modes, expression, inputs, output, output_gradient, gradients, options};
    struct mf_plan *plan = mf_calloc(sizeof *plan);
    if (!plan)
        return MF_ERROR_MEMORY;
    plan->device = device;
    mf_status status = make_plan(plan, &wish);
    if (status != MF_OK) {
        mf_plan_destroy(plan);
        return status;
    }
    *result = plan;
    return MF_OK;
}
