/* Gradients of max and min: every output's gradient goes to its winner, the smallest index in the order as written,
 * which a fold with argmax or argmin finds. One step an output, in order, added in double; windows and diagonals are
 * places like others. An output that is the identity (-inf of max, inf of min) sends nothing. */
#include "gradient.h"

#include <math.h>
#include <stdio.h>

#include "scalar.h"

/* How a tensor with an operand's dimensions is reached. */
static void find_reach(const struct gradient_maker *maker, int operand, const int64_t *strides, struct reach *reach)
{
    const struct mode_list *list = &maker->modes->input[operand];
    const struct winners *winners = &maker->data->winners;
    for (int d = 0; d < list->rank; d++) {
        reach->base += list->term[d].offset * strides[d];
        for (int p = 0; p < list->term[d].parts; p++) {
            const int mode = list->term[d].mode[p];
            const int64_t step = list->term[d].coefficient[p] * strides[d];
            for (int o = 0; o < winners->rank; o++)
                if (maker->modes->output_mode[o] == mode)
                    reach->kept[o] += step;
            for (int r = 0, m = 0; m < maker->modes->mode_count; m++)
                if (!memchr(maker->view[AT_OUTPUT].letters, maker->modes->letter[m], (size_t)winners->rank)) {
                    reach->reduced[r] += m == mode ? step : 0;
                    r++;
                }
        }
    }
}

/* A tensor's strides; row-major where it has none. Returns its elements. */
static int64_t find_strides(const DLTensor *tensor, int row_major, int64_t *strides)
{
    int64_t count = 1;
    for (int d = tensor->ndim - 1; d >= 0; count *= tensor->shape[d--])
        strides[d] = tensor->strides && !row_major ? tensor->strides[d] : count;
    return count;
}

static void find_places(struct gradient_maker *maker)
{
    struct gradient *data = maker->data;
    struct winners *winners = &data->winners;
    int64_t strides[MF_MAX_RANK];
    winners->rank = maker->view[AT_OUTPUT].tensor.ndim;
    winners->total = maker->reduced_total ? maker->kept_total : 0;
    memcpy(winners->shape, maker->view[AT_OUTPUT].shape, sizeof winners->shape);
    for (int m = 0; m < maker->modes->mode_count; m++)
        if (!memchr(maker->view[AT_OUTPUT].letters, maker->modes->letter[m], (size_t)winners->rank))
            winners->reduced_size[winners->reduced_count++] = maker->size[m];
    find_strides(&maker->view[AT_GIVEN].tensor, 0, winners->given.kept);
    for (int f = 0; f < data->argument.count; f++) {
        const int operand = data->argument.operand[f];
        find_strides(&maker->view[operand].tensor, 0, strides);
        find_reach(maker, operand, strides, &winners->operand[f]);
        if (!data->wanted[f])
            continue;
        const int64_t count = find_strides(&maker->view[operand].tensor, 1, strides);
        find_reach(maker, operand, strides, &winners->sum[f]);
        data->slot_type[f] = DT_f64;
        data->slot_bytes[SLOT_GRADIENT + f] = count * (int64_t)sizeof(double);
        data->delivered[f] = 1;
    }
}

mf_status mf_gradient_plan_winners(struct gradient_maker *maker)
{
    struct gradient *data = maker->data;
    const struct argument *argument = &data->argument;
    const char op = argument->op == OP_add ? '+' : argument->op == OP_sub ? '-' : '*';
    struct gradient_step *step = &data->step[0];
    DLTensor inputs[MF_MAX_INPUTS];
    char expression[32];
    if (maker->plan->device->api)
        return mf_fail(MF_ERROR_UNSUPPORTED, "gradients of max and min are for the CPU, not for %s",
                       maker->plan->device->name);
    MF_TRY(mf_gradient_slot(maker, SLOT_WEIGHT, maker->view[AT_OUTPUT].letters, DT_i64));
    find_places(maker);
    if (!data->winners.total)
        return MF_OK;
    snprintf(expression, sizeof expression, argument->count == 1 ? "arg%s(%c)" : "arg%s(%c%c%c)",
             data->kind == GRADIENT_MAX ? "max" : "min", 'a' + argument->operand[0], op,
             'a' + argument->operand[argument->count - 1]);
    for (int i = 0; i < data->input_count; i++) {
        inputs[i] = maker->view[i].tensor;
        step->in[i] = i;
    }
    step->input_count = data->input_count;
    step->output_count = 1;
    step->out[0] = AT_SLOT + SLOT_WEIGHT;
    MF_TRY(mf_plan_create(maker->plan->device, maker->modes_text, expression, inputs,
                          &maker->view[AT_SLOT + SLOT_WEIGHT].tensor, &maker->options, &step->plan));
    data->step_count = 1;
    return MF_OK;
}

/* ---- execution ---- */

static double load(enum dtype type, const char *from)
{
    const union value value = mf_value_load(type, from);
    return mf_value_convert(mf_dtypes[type].cls, CLS_F64, value).f64;
}

static int64_t at(const struct reach *reach, const struct winners *winners, const int64_t *kept, const int64_t *reduced)
{
    int64_t sum = reach->base;
    for (int d = 0; d < winners->rank; d++)
        sum += reach->kept[d] * kept[d];
    for (int r = 0; r < winners->reduced_count; r++)
        sum += reach->reduced[r] * reduced[r];
    return sum;
}

/* The winner's value in the fold's class. */
static double combine(const struct gradient *data, const double *x)
{
    const double value = data->argument.op == OP_OPERAND ? x[0]
                         : data->argument.op == OP_add   ? x[0] + x[1]
                         : data->argument.op == OP_sub   ? x[0] - x[1]
                                                         : x[0] * x[1];
    return data->cls == CLS_F32 ? (double)(float)value : value;
}

/* What the argument's derivative by factor f is. */
static double slope(const struct gradient *data, const double *x, int f)
{
    return data->argument.op == OP_mul ? x[!f] : data->argument.op == OP_sub && f ? -1 : 1;
}

static void send_one(const struct gradient_run *run, const int64_t *kept, int64_t winner)
{
    const struct gradient *data = run->plan->data;
    const struct winners *winners = &data->winners;
    int64_t reduced[MF_MAX_MODES];
    double x[FACTORS_MOST] = {0, 0};
    for (int r = winners->reduced_count - 1; r >= 0; winner /= winners->reduced_size[r--])
        reduced[r] = winner % winners->reduced_size[r];
    for (int f = 0; f < data->argument.count; f++) {
        const char *operand = mf_gradient_place(run, AT_OPERAND + data->argument.operand[f]);
        const enum dtype type = data->operand_type[f];
        x[f] = load(type, operand + at(&winners->operand[f], winners, kept, reduced) * mf_dtypes[type].size);
    }
    if (combine(data, x) == (data->kind == GRADIENT_MAX ? -INFINITY : INFINITY))
        return;
    const char *given = mf_gradient_place(run, AT_GIVEN);
    const double d =
        load(data->given_type, given + at(&winners->given, winners, kept, reduced) * mf_dtypes[data->given_type].size);
    for (int f = 0; f < data->argument.count; f++)
        if (data->wanted[f]) {
            double *sum = mf_gradient_place(run, AT_SLOT + SLOT_GRADIENT + f);
            sum[at(&winners->sum[f], winners, kept, reduced)] += d * slope(data, x, f);
        }
}

/* Every NaN that is stored is the same one. */
static void make_canonical(double *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (x[i] != x[i])
            x[i] = (double)NAN;
}

void mf_gradient_send(const struct gradient_run *run)
{
    const struct gradient *data = run->plan->data;
    const struct winners *winners = &data->winners;
    const int64_t *winner = mf_gradient_place(run, AT_SLOT + SLOT_WEIGHT);
    int64_t kept[MF_MAX_RANK] = {0};
    for (int f = 0; f < data->argument.count; f++)
        if (data->wanted[f])
            memset(mf_gradient_place(run, AT_SLOT + SLOT_GRADIENT + f), 0, (size_t)data->slot_bytes[SLOT_GRADIENT + f]);
    for (int64_t o = 0; o < winners->total; o++) {
        if (winner[o] >= 0)
            send_one(run, kept, winner[o]);
        for (int d = winners->rank - 1; d >= 0 && ++kept[d] == winners->shape[d]; d--)
            kept[d] = 0;
    }
    for (int f = 0; f < data->argument.count; f++)
        if (data->wanted[f])
            make_canonical(mf_gradient_place(run, AT_SLOT + SLOT_GRADIENT + f),
                           data->slot_bytes[SLOT_GRADIENT + f] / (int64_t)sizeof(double));
}
