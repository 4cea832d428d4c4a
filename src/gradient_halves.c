/* Gradients of logsumexp as products of matrices on CUDA: gradient_folds.c's first tier, with factors that cuBLAS
 * multiplies on tensor cores. A float is high + low, where high has the 11 bits that they take, so that a product of
 * two is low high + high low + high high, with 2^-22 of it lost; that is one product of three times as many terms if
 * every number lies there three times, in this order:
 *
 *     weights    W[i][h][j]   low, high, high
 *     exponentials  F[k][h][j]   high, low, high     da[i][k] = E[i][k] sum over h, j of W[i][h][j] F[k][h][j]
 *                   E[k][i][h]   high, low, high     db[k][j] = F[k][j] sum over i, h of W[i][h][j] E[k][i][h]
 *
 * so that a product's terms are one loop, along which at least one of its matrices has neighbours: cuBLAS takes 1.6
 * times as long where neither has. i, j and k: own modes of both operands, and the mode that is summed. */
#include "gradient.h"

#include <stdio.h>

#include "gpu/gpu.h"

enum { THIRDS = 3, TEXT = 1600, BATCH_AND_TWO = 3 };

/* Numbers in thirds. */
struct thirds {
    char letters[BATCH_AND_TWO + 2], letters_of_one[BATCH_AND_TWO + 1];
    int64_t shape[BATCH_AND_TWO + 1], shape_of_one[BATCH_AND_TWO], strides[BATCH_AND_TWO];
    int64_t step; /* bytes from a third to the next */
    DLTensor all, one;
};

int mf_gradient_find_letters(const struct gradient_maker *maker, struct gradient_letters *letters)
{
    const char *x = maker->view[maker->data->argument.operand[0]].letters,
               *y = maker->view[maker->data->argument.operand[1]].letters, *output = maker->view[AT_OUTPUT].letters;
    int known = 0;
    memset(letters, 0, sizeof *letters);
    for (const char *all = maker->modes->letter; all < maker->modes->letter + maker->modes->mode_count; all++) {
        const int in_x = strchr(x, *all) != NULL, in_y = strchr(y, *all) != NULL, kept = strchr(output, *all) != NULL;
        char *to = in_x && in_y && kept   ? &letters->batch
                   : in_x && in_y         ? &letters->summed
                   : kept && in_x != in_y ? &letters->own[in_y]
                                          : NULL;
        if (!to || *to)
            return 0;
        *to = *all;
        known++;
    }
    for (letters->third = 'a'; memchr(maker->modes->letter, letters->third, (size_t)known); letters->third++) {
    }
    return letters->summed && letters->own[0] && letters->own[1];
}

int mf_gradient_has_halves(const struct gradient_maker *maker)
{
    const struct gradient *data = maker->data;
    struct gradient_letters letters;
    if (maker->plan->device->api != &mf_gpu_cuda || data->input_count != FACTORS_MOST ||
        !mf_gradient_find_letters(maker, &letters))
        return 0;
    for (int f = 0; f < FACTORS_MOST; f++) /* they become gradients in place */
        if (data->wanted[f] && mf_dtype_find(maker->view[AT_GRADIENT + f].tensor.dtype) != DT_f32)
            return 0;
    return 1;
}

int64_t mf_gradient_size_of(const struct gradient_maker *maker, char letter)
{
    const struct modes *modes = maker->modes;
    return maker->size[(const char *)memchr(modes->letter, letter, (size_t)modes->mode_count) - modes->letter];
}

/* Room for numbers with these modes, in this order, h among them. */
static mf_status make_thirds(struct gradient_maker *maker, enum slot slot, const char order[4], char third,
                             struct thirds *t)
{
    const DLTensor output = maker->view[AT_OUTPUT].tensor;
    int64_t bytes = (int64_t)sizeof(float);
    int n = 0, m = 0;
    memset(t, 0, sizeof *t);
    for (int d = 0; d < 4; d++)
        if (order[d]) {
            t->letters[n] = order[d];
            t->shape[n++] = order[d] == third ? THIRDS : mf_gradient_size_of(maker, order[d]);
        }
    int64_t stride = 1, strides[BATCH_AND_TWO + 1];
    for (int d = n - 1; d >= 0; stride *= t->shape[d--]) {
        strides[d] = stride;
        if (!mf_mul(bytes, t->shape[d], &bytes) || bytes > INT64_MAX / (2 * SLOTS))
            return mf_fail(MF_ERROR_OVERFLOW, "the gradient's workspace does not fit in 63 bits");
    }
    for (int d = 0; d < n; d++) {
        if (t->letters[d] == third) {
            t->step = strides[d] * (int64_t)sizeof(float);
            continue;
        }
        t->letters_of_one[m] = t->letters[d];
        t->shape_of_one[m] = t->shape[d];
        t->strides[m++] = strides[d];
    }
    t->all = (DLTensor){.device = output.device, .ndim = n, .dtype = {kDLFloat, 32, 1}, .shape = t->shape};
    t->one = t->all;
    t->one.ndim = m;
    t->one.shape = t->shape_of_one;
    t->one.strides = t->strides;
    maker->data->slot_bytes[slot] = bytes;
    return MF_OK;
}

static struct step_tensor whole(const struct gradient_maker *maker, int place)
{
    return (struct step_tensor){place, 0, maker->view[place].letters, &maker->view[place].tensor};
}

/* Outputs of a step: the thirds of a slot. */
static void list_thirds(enum slot slot, const struct thirds *t, struct step_tensor *out)
{
    for (int h = 0; h < THIRDS; h++)
        out[h] = (struct step_tensor){AT_SLOT + (int)slot, h * t->step, t->letters_of_one, &t->one};
}

/* The upper 11 bits of a number are what is left of it beside 2^13 of it (Dekker 1971). */
static void write_halves(const char *number, char high[TEXT / 2], char low[TEXT])
{
    snprintf(high, TEXT / 2, "(%s*8193-(%s*8193-%s))", number, number, number);
    snprintf(low, TEXT, "%s-%s", number, high);
}

static mf_status plan_powers(struct gradient_maker *maker, int f, const struct thirds *t)
{
    const struct gradient *data = maker->data;
    const struct step_tensor in[] = {whole(maker, data->argument.operand[f]), whole(maker, AT_SLOT + SLOT_MOST + f)};
    struct step_tensor out[THIRDS];
    char number[64], high[TEXT / 2], low[TEXT], expression[3 * TEXT];
    snprintf(number, sizeof number, "where(isfinite(b),exp(%sf32(a)-b),0)",
             mf_gradient_is_negative(data, f) ? "-" : "");
    write_halves(number, high, low);
    snprintf(expression, sizeof expression, "%s; %s; %s", high, low, high);
    list_thirds(SLOT_POWER + (enum slot)f, t, out);
    return mf_gradient_step_of(maker, expression, &maker->options, 0, 2, in, THIRDS, out);
}

static mf_status plan_weights(struct gradient_maker *maker, const struct thirds *t)
{
    const struct step_tensor in[] = {whole(maker, AT_SLOT + SLOT_MOST), whole(maker, AT_SLOT + SLOT_MOST + 1),
                                     whole(maker, AT_OUTPUT), whole(maker, AT_GIVEN)};
    struct step_tensor out[THIRDS + 1];
    char weight[TEXT / 8], number[TEXT / 8 + 8], left[TEXT / 8], high[TEXT / 2], low[TEXT], expression[3 * TEXT];
    mf_gradient_weight_text(0, 0, weight, left, sizeof weight);
    snprintf(number, sizeof number, "f32(%s)", weight);
    write_halves(number, high, low);
    snprintf(expression, sizeof expression, "%s; %s; %s; %s", low, high, high, left);
    MF_TRY(mf_gradient_slot(maker, SLOT_LEFT, t->letters_of_one, DT_bool));
    list_thirds(SLOT_WEIGHT, t, out);
    out[THIRDS] = whole(maker, AT_SLOT + SLOT_LEFT);
    return mf_gradient_step_of(maker, expression, &maker->options, 0, 4, in, THIRDS + 1, out);
}

/* The product, where the gradient is to be, and there its other factor. */
static mf_status plan_product(struct gradient_maker *maker, int f, const struct thirds *weights,
                              const struct thirds *powers)
{
    const struct gradient *data = maker->data;
    const struct step_tensor in[] = {{AT_SLOT + SLOT_WEIGHT, 0, weights->letters, &weights->all},
                                     {AT_SLOT + SLOT_POWER + !f, 0, powers->letters, &powers->all}};
    const struct step_tensor out = whole(maker, AT_GRADIENT + f);
    const struct step_tensor times[] = {out, whole(maker, data->argument.operand[f]),
                                        whole(maker, AT_SLOT + SLOT_MOST + f)};
    const mf_options by_cublas = {"cublas:tf32", 0, 0};
    const int negative = mf_gradient_is_negative(data, f);
    MF_TRY(mf_gradient_step_of(maker, "sum(a*b)", &by_cublas, 0, 2, in, 1, &out));
    return mf_gradient_step_of(
        maker, negative ? "-a*where(isfinite(c),exp(-f32(b)-c),0)" : "a*where(isfinite(c),exp(f32(b)-c),0)",
        &maker->options, 0, 3, times, 1, &out);
}

mf_status mf_gradient_plan_halves(struct gradient_maker *maker)
{
    struct gradient_letters l;
    struct thirds weights, powers[FACTORS_MOST];
    mf_gradient_find_letters(maker, &l);
    const char order[FACTORS_MOST + 1][4] = {{l.batch, l.summed, l.own[0], l.third},
                                             {l.batch, l.summed, l.third, l.own[1]},
                                             {l.batch, l.own[0], l.third, l.own[1]}};
    MF_TRY(make_thirds(maker, SLOT_WEIGHT, order[2], l.third, &weights));
    MF_TRY(plan_weights(maker, &weights));
    for (int f = 0; f < FACTORS_MOST; f++) {
        if (!maker->data->wanted[!f])
            continue;
        MF_TRY(make_thirds(maker, SLOT_POWER + (enum slot)f, order[f], l.third, &powers[f]));
        MF_TRY(plan_powers(maker, f, &powers[f]));
        MF_TRY(plan_product(maker, !f, &weights, &powers[f]));
    }
    return mf_gradient_plan_count(maker, 0);
}
