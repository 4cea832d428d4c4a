/* Gradients of max and min: every output's gradient goes to its winner, the smallest index in the order as written,
 * which a fold with argmax or argmin finds, with the extreme itself. One step an output, in order, added in double;
 * windows and diagonals are places like others. An output that is the identity (-inf of max, inf of min) sends nothing.
 * Only a product needs its operands again. On a GPU gpu/winners.c sends them. */
#include "gradient.h"

#include <math.h>
#include <stdio.h>

#include "scalar.h"

void mf_gradient_reach(const struct gradient_maker *maker, int operand, const int64_t *strides, struct reach *reach)
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

int64_t mf_gradient_strides(const DLTensor *tensor, int row_major, int64_t *strides)
{
    int64_t count = 1;
    for (int d = tensor->ndim - 1; d >= 0; count *= tensor->shape[d--])
        strides[d] = tensor->strides && !row_major ? tensor->strides[d] : count;
    return count;
}

static mf_status find_places(struct gradient_maker *maker)
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
    mf_gradient_strides(&maker->view[AT_GIVEN].tensor, 0, winners->given.kept);
    for (int f = 0; f < data->argument.count; f++) {
        const int operand = data->argument.operand[f];
        mf_gradient_strides(&maker->view[operand].tensor, 0, strides);
        mf_gradient_reach(maker, operand, strides, &winners->operand[f]);
        if (!data->wanted[f] || maker->plan->device->api)
            continue;
        const int64_t count = mf_gradient_strides(&maker->view[operand].tensor, 1, strides);
        mf_gradient_reach(maker, operand, strides, &winners->sum[f]);
        data->slot_type[f] = DT_f64;
        MF_TRY(mf_gradient_reserve(maker, SLOT_GRADIENT + (enum slot)f, count, 1));
        data->delivered[f] = 1;
    }
    return MF_OK;
}

mf_status mf_gradient_plan_winners(struct gradient_maker *maker)
{
    struct gradient *data = maker->data;
    const struct argument *argument = &data->argument;
    const char op = argument->op == OP_add ? '+' : argument->op == OP_sub ? '-' : '*';
    struct gradient_step *step = &data->step[0];
    const char *extreme = data->kind == GRADIENT_MAX ? "max" : "min", *letters = maker->view[AT_OUTPUT].letters;
    DLTensor inputs[MF_MAX_INPUTS], outputs[2];
    char term[8], expression[48];
    MF_TRY(mf_gradient_slot(maker, SLOT_WEIGHT, letters, DT_i64));
    MF_TRY(mf_gradient_slot(maker, SLOT_LEFT, letters, data->cls == CLS_F32 ? DT_f32 : DT_f64));
    MF_TRY(find_places(maker));
    if (maker->plan->device->api)
        MF_TRY(mf_gpu_winners_plan(maker));
    if (!data->winners.total)
        return MF_OK;
    snprintf(term, sizeof term, argument->count == 1 ? "%c" : "%c%c%c", 'a' + argument->operand[0], op,
             'a' + argument->operand[argument->count - 1]);
    snprintf(expression, sizeof expression, "arg%s(%s);%s(%s)", extreme, term, extreme, term);
    for (int i = 0; i < data->input_count; i++) {
        inputs[i] = maker->view[i].tensor;
        step->in[i] = i;
    }
    step->input_count = data->input_count;
    step->output_count = 2;
    for (int k = 0; k < 2; k++) {
        step->out[k] = AT_SLOT + (k ? SLOT_LEFT : SLOT_WEIGHT);
        outputs[k] = maker->view[step->out[k]].tensor;
    }
    MF_TRY(mf_plan_create(maker->plan->device, maker->modes_text, expression, inputs, outputs, &maker->options,
                          &step->plan));
    data->step_count = 1;
    return MF_OK;
}

/* ---- execution ---- */

static double load(enum dtype type, const char *from)
{
    const union value value = mf_value_load(type, from);
    return mf_value_convert(mf_dtypes[type].cls, CLS_F64, value).f64;
}

/* What sending needs, found once. */
struct sending {
    const struct gradient *data;
    const char *operand[FACTORS_MOST], *given;
    double *sum[FACTORS_MOST];
    const int64_t *winner;
    const void *extreme;
};

/* Elements to an output; reaches in the order of operands, sums, given. */
enum { REACHES = 2 * FACTORS_MOST + 1 };
struct positions {
    int64_t at[REACHES];
};

static const struct reach *reach_of(const struct winners *winners, int r)
{
    return r < FACTORS_MOST  ? &winners->operand[r]
           : r < REACHES - 1 ? &winners->sum[r - FACTORS_MOST]
                             : &winners->given;
}

static int64_t to_winner(const struct winners *winners, int reach, int64_t winner)
{
    const int64_t *step = reach_of(winners, reach)->reduced;
    if (winners->reduced_count == 1)
        return winner * step[0];
    int64_t sum = 0;
    for (int r = winners->reduced_count - 1; r >= 0; winner /= winners->reduced_size[r--])
        sum += winner % winners->reduced_size[r] * step[r];
    return sum;
}

/* The argument's derivative by factor f, at the winner. */
static double slope(const struct sending *s, const struct positions *at, int f, int64_t winner)
{
    const struct gradient *data = s->data;
    if (data->argument.op != OP_mul)
        return data->argument.op == OP_sub && f ? -1 : 1;
    const enum dtype type = data->operand_type[!f];
    return load(type, s->operand[!f] + (at->at[!f] + to_winner(&data->winners, !f, winner)) * mf_dtypes[type].size);
}

static void send_one(const struct sending *s, const struct positions *at, int64_t o)
{
    const struct gradient *data = s->data;
    const struct winners *winners = &data->winners;
    const double extreme =
        data->cls == CLS_F32 ? (double)((const float *)s->extreme)[o] : ((const double *)s->extreme)[o];
    if (s->winner[o] < 0 || extreme == (data->kind == GRADIENT_MAX ? -INFINITY : INFINITY))
        return;
    const double d = load(data->given_type, s->given + at->at[REACHES - 1] * mf_dtypes[data->given_type].size);
    for (int f = 0; f < data->argument.count; f++)
        if (data->wanted[f])
            s->sum[f][at->at[FACTORS_MOST + f] + to_winner(winners, FACTORS_MOST + f, s->winner[o])] +=
                d * slope(s, at, f, s->winner[o]);
}

/* All outputs, in their order. */
static void send_all(const struct sending *s)
{
    const struct winners *winners = &s->data->winners;
    int64_t kept[MF_MAX_RANK] = {0};
    struct positions at;
    for (int r = 0; r < REACHES; r++)
        at.at[r] = reach_of(winners, r)->base;
    for (int64_t o = 0; o < winners->total; o++) {
        send_one(s, &at, o);
        for (int d = winners->rank - 1; d >= 0; d--) {
            const int64_t back = ++kept[d] == winners->shape[d] ? winners->shape[d] : 0;
            for (int r = 0; r < REACHES; r++)
                at.at[r] += reach_of(winners, r)->kept[d] * (1 - back);
            if (!back)
                break;
            kept[d] = 0;
        }
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
    struct sending s = {.data = data,
                        .given = mf_gradient_place(run, AT_GIVEN),
                        .winner = mf_gradient_place(run, AT_SLOT + SLOT_WEIGHT),
                        .extreme = mf_gradient_place(run, AT_SLOT + SLOT_LEFT)};
    for (int f = 0; f < data->argument.count; f++) {
        s.operand[f] = mf_gradient_place(run, AT_OPERAND + data->argument.operand[f]);
        s.sum[f] = mf_gradient_place(run, AT_SLOT + SLOT_GRADIENT + f);
        if (data->wanted[f] && s.sum[f]) /* there is no workspace where all slots are empty */
            memset(s.sum[f], 0, (size_t)data->slot_bytes[SLOT_GRADIENT + f]);
    }
    send_all(&s);
    for (int f = 0; f < data->argument.count; f++)
        if (data->wanted[f])
            make_canonical(s.sum[f], data->slot_bytes[SLOT_GRADIENT + f] / (int64_t)sizeof(double));
}
