/* Users' operations become known to a device: given as callbacks, or as text. */
#include <stdio.h>

#include "cpu/recipe_blocks.h"
#include "scalar.h"
#include "text.h"

static mf_status check_operation(const mf_operation *op)
{
    if (!op->name || !op->identity || !op->lift || !op->combine || !op->finish)
        return mf_fail(MF_ERROR_ARGUMENT, "mf_operation_define: the name or a callback is null");
    size_t length = strlen(op->name);
    if (length < 2 || length > 63 || !mf_is_letter(op->name[0]))
        return mf_fail(MF_ERROR_ARGUMENT, "operation \"%.70s\": a name is a letter and 1 to 62 letters, digits or '_'",
                       op->name);
    for (const char *c = op->name; *c; c++)
        if (!mf_is_word(*c))
            return mf_fail(MF_ERROR_ARGUMENT, "operation \"%.70s\": a name has letters, digits and '_' only", op->name);
    if (mf_expr_name_taken(op->name))
        return mf_fail(MF_ERROR_ARGUMENT, "operation \"%.70s\": there is a built-in operation of this name", op->name);
    if (op->input_count < 1 || op->input_count > MAX_REDUCER_ARGS || op->output_count < 1 ||
        op->output_count > MAX_REDUCER_ARGS)
        return mf_fail(MF_ERROR_ARGUMENT, "operation \"%.70s\" has %d inputs and %d outputs; both must be 1 to %d",
                       op->name, op->input_count, op->output_count, MAX_REDUCER_ARGS);
    if (op->state_size < 1 || op->state_size > 4096)
        return mf_fail(MF_ERROR_ARGUMENT, "operation \"%.70s\" has states of %zu bytes; 1 to 4096 are possible",
                       op->name, op->state_size);
    const mf_type types[2] = {op->input_type, op->output_type};
    for (int i = 0; i < 2; i++)
        if (types[i] != MF_F32 && types[i] != MF_F64 && types[i] != MF_I64 && types[i] != MF_U64)
            return mf_fail(MF_ERROR_TYPE, "operation \"%.70s\": its %s type must be f32, f64, i64 or u64", op->name,
                           i ? "output" : "input");
    return MF_OK;
}

static void forget(struct operation *operation)
{
    if (!operation)
        return;
    mf_free(operation->recipe);
    mf_free(operation->blocks);
    mf_free(operation);
}

void mf_operations_forget(mf_device *device)
{
    while (device->operations) {
        struct operation *next = device->operations->next;
        forget(device->operations);
        device->operations = next;
    }
}

/* Takes the operation over; one of the same text may be there already. */
static mf_status add_operation(mf_device *device, struct operation *made)
{
    pthread_mutex_lock(&device->lock);
    const struct operation *there = device->operations;
    while (there && strcmp(there->name, made->name) != 0)
        there = there->next;
    if (!there) {
        made->next = device->operations;
        device->operations = made;
    }
    pthread_mutex_unlock(&device->lock);
    if (!there)
        return MF_OK;
    int same = *there->text && !strcmp(there->text, made->text);
    forget(made);
    return same ? MF_OK : mf_fail(MF_ERROR_ARGUMENT, "operation \"%.70s\" is defined already", there->name);
}

mf_status mf_operation_define(mf_device *device, const mf_operation *operation)
{
    if (!device || !operation)
        return mf_fail(MF_ERROR_ARGUMENT, "mf_operation_define: %s is null", device ? "the operation" : "the device");
    MF_TRY(check_operation(operation));
    struct operation *made = mf_calloc(sizeof *made + 1);
    if (!made)
        return MF_ERROR_MEMORY;
    made->is = *operation;
    snprintf(made->name, sizeof made->name, "%s", operation->name);
    made->is.name = made->name;
    made->plain = made->is;
    return add_operation(device, made);
}

/* ---- text, one element at a time: what the reference calls ---- */

/* values: the stage's leaves are state[0 or 1][part]. */
static void evaluate(const struct stage *stage, const struct leaves *leaves, union value *results)
{
    union value values[MAX_NODES];
    mf_pool_evaluate(&stage->pool, leaves, values);
    for (int k = 0; k < stage->count; k++)
        results[k] = values[stage->root[k]];
}

static size_t size_of(const struct recipe *recipe)
{
    return (size_t)mf_dtypes[recipe->type].size;
}

/* The low bytes of a value are the number itself. */
static void get_state(const struct recipe *recipe, const char *state, union value *parts)
{
    for (int k = 0; k < recipe->part_count; k++)
        parts[k] = mf_value_load(recipe->type, state + (size_t)k * size_of(recipe));
}

static void put_state(const struct recipe *recipe, const union value *parts, char *state)
{
    for (int k = 0; k < recipe->part_count; k++)
        memcpy(state + (size_t)k * size_of(recipe), &parts[k], size_of(recipe));
}

static void plain_identity(void *context, int64_t n, void *states)
{
    const struct recipe *recipe = context;
    for (int64_t i = 0; i < n; i++)
        put_state(recipe, recipe->identity, (char *)states + (size_t)(i * recipe->part_count) * size_of(recipe));
}

static void plain_lift(void *context, int64_t n, const void *const *values, void *states)
{
    const struct recipe *recipe = context;
    struct leaves leaves;
    union value parts[MAX_REDUCER_ARGS];
    for (int64_t i = 0; i < n; i++) {
        for (int k = 0; k < recipe->arg_count; k++)
            leaves.state[0][k] = mf_value_load(recipe->type, (const char *)values[k] + (size_t)i * size_of(recipe));
        evaluate(&recipe->lift, &leaves, parts);
        put_state(recipe, parts, (char *)states + (size_t)(i * recipe->part_count) * size_of(recipe));
    }
}

static void plain_combine(void *context, int64_t n, void *left, int64_t left_stride, const void *right,
                          int64_t right_stride)
{
    const struct recipe *recipe = context;
    struct leaves leaves;
    union value parts[MAX_REDUCER_ARGS];
    for (int64_t i = 0; i < n; i++) {
        get_state(recipe, (char *)left + i * left_stride, leaves.state[0]);
        get_state(recipe, (const char *)right + i * right_stride, leaves.state[1]);
        evaluate(&recipe->combine, &leaves, parts);
        put_state(recipe, parts, (char *)left + i * left_stride);
    }
}

static void plain_finish(void *context, int64_t n, const void *states, void *const *results)
{
    const struct recipe *recipe = context;
    struct leaves leaves;
    union value values[MAX_REDUCER_ARGS];
    for (int64_t i = 0; i < n; i++) {
        get_state(recipe, (const char *)states + (size_t)(i * recipe->part_count) * size_of(recipe), leaves.state[0]);
        evaluate(&recipe->finish, &leaves, values);
        for (int k = 0; k < recipe->finish.count; k++)
            memcpy((char *)results[k] + (size_t)i * size_of(recipe), &values[k], size_of(recipe));
    }
}

/* ---- text ---- */

static mf_type public_type(enum dtype type)
{
    return (mf_type)(mf_dtypes[type].code * 256 + mf_dtypes[type].bits);
}

static mf_status make_of_text(mf_device *device, const char *text, struct operation *made)
{
    made->recipe = mf_alloc(sizeof *made->recipe);
    if (!made->recipe)
        return MF_ERROR_MEMORY;
    strcpy(made->text, text);
    struct recipe *recipe = made->recipe;
    MF_TRY(mf_recipe_parse(text, made->name, recipe));
    made->plain = (mf_operation){.name = made->name,
                                 .input_count = recipe->arg_count,
                                 .output_count = recipe->finish.count,
                                 .input_type = public_type(recipe->type),
                                 .output_type = public_type(recipe->type),
                                 .state_size = size_of(recipe) * (size_t)recipe->part_count,
                                 .commutative = !recipe->ordered,
                                 .identity = plain_identity,
                                 .lift = plain_lift,
                                 .combine = plain_combine,
                                 .finish = plain_finish,
                                 .context = recipe};
    made->is = made->plain;
    MF_TRY(check_operation(&made->is));
    return device->kernels ? mf_recipe_blocks(recipe, device->kernels, &made->is, &made->blocks) : MF_OK;
}

mf_status mf_operation_define_text(mf_device *device, const char *text)
{
    if (!device || !text)
        return mf_fail(MF_ERROR_ARGUMENT, "mf_operation_define_text: %s is null", device ? "the text" : "the device");
    struct operation *made = mf_calloc(sizeof *made + strlen(text) + 1);
    if (!made)
        return MF_ERROR_MEMORY;
    mf_status status = make_of_text(device, text, made);
    if (status == MF_OK)
        return add_operation(device, made);
    forget(made);
    return status;
}
