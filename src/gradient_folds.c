/* Gradients as folds over the caller's tensors: of sums and means
 *
 *     out = sum(a*b):   da = sum over the modes that a has not, of d * b
 *
 * and of logsumexp, whose weight of a term is exp(a + b - out):
 *
 *     da = sum of d * exp(a + b - out)                          one exp a term ("exact")
 *
 * or, where both operands have kept modes of their own, two products of matrices and one exp an element:
 *
 *     r = max of a's row, c = max of b's column, E = exp(a - r), F = exp(b - c), W = d exp(r + c - out)
 *     da = E * sum(W * F), db = F * sum(W * E)
 *
 * That is right as long as r + c - out is not great: a factor that underflows is below 2^-126, its term's weight below
 * that times exp(r + c - out). (It is never below -log K.) Outputs with more than 40 take part with W = 0 and are left
 * for the same in f64, which can bear 600; what is left then gets its exact terms. Outputs of -inf have W = 0, so that
 * nothing of them is NaN. */
#include "gradient.h"
#include "gpu/gpu.h"

#include <stdio.h>

enum { TEXT = 256, TIERS = 2 };

/* Up to what r + c - out, and |d|, an output belongs to a tier: sums of W then stay finite. */
static const struct {
    enum dtype type;
    const char *most_gap, *most_given;
} tiers[TIERS] = {{DT_f32, "40", "1e10"}, {DT_f64, "600", "1e38"}};

/* The letter of operand number i of a step's expression. */
static char name(int i)
{
    return (char)('a' + i);
}

/* Modes of a place that the output has too. */
static void kept_letters(const struct gradient_maker *maker, int place, char *kept)
{
    const char *letters = maker->view[place].letters;
    for (; *letters; letters++)
        if (strchr(maker->view[AT_OUTPUT].letters, *letters))
            *kept++ = *letters;
    *kept = 0;
}

static int has_all(const char *letters, const char *of, const char *or_of)
{
    for (; *letters; letters++)
        if (!strchr(of, *letters) && !strchr(or_of, *letters))
            return 0;
    return 1;
}

/* Appends all operands, for the sizes and reduced modes that they have. */
static int add_operands(const struct gradient_maker *maker, int *in, int n)
{
    for (int i = 0; i < maker->data->input_count; i++)
        in[n++] = AT_OPERAND + i;
    return n;
}

/* Whether a step over these places, for factor f, sums anything. */
static int sums(const struct gradient_maker *maker, int f, const int *in, int n)
{
    for (int i = 0; i < n; i++)
        if (!has_all(maker->view[in[i]].letters, maker->view[AT_GRADIENT + f].letters, ""))
            return 1;
    return 0;
}

int mf_gradient_is_negative(const struct gradient *data, int f)
{
    return data->argument.op == OP_sub && f == 1;
}

mf_status mf_gradient_plan_sum(struct gradient_maker *maker)
{
    struct gradient *data = maker->data;
    const struct argument *argument = &data->argument;
    for (int f = 0; f < argument->count; f++) {
        char expression[TEXT], divided[32] = "", term[8] = "a";
        int in[MF_MAX_INPUTS] = {AT_GIVEN}, n = add_operands(maker, in, 1);
        if (!data->wanted[f])
            continue;
        if (argument->op == OP_mul)
            snprintf(term, sizeof term, "a*%c", name(1 + argument->operand[!f]));
        if (data->kind == GRADIENT_MEAN)
            snprintf(divided, sizeof divided, "/%lld", (long long)maker->reduced_total);
        snprintf(expression, sizeof expression, sums(maker, f, in, n) ? "%ssum(%s)%s" : "%s(%s)%s",
                 mf_gradient_is_negative(data, f) ? "-" : "", term, divided);
        data->slot_type[f] = data->cls == CLS_F32 ? DT_f32 : DT_f64;
        MF_TRY(mf_gradient_slot(maker, SLOT_GRADIENT + (enum slot)f, maker->view[AT_GRADIENT + f].letters,
                                data->slot_type[f]));
        int out = mf_gradient_target(maker, f);
        if (out < AT_SLOT)
            data->slot_bytes[SLOT_GRADIENT + f] = 0;
        MF_TRY(mf_gradient_step(maker, expression, 0, n, in, 1, &out));
    }
    return MF_OK;
}

/* ---- logsumexp, one exp a term ---- */

/* if_left: for outputs that are left only, on top of what is there. */
static mf_status plan_exact(struct gradient_maker *maker, int f, int if_left)
{
    const struct gradient *data = maker->data;
    const struct argument *argument = &data->argument;
    int in[MF_MAX_INPUTS] = {AT_GIVEN, AT_OUTPUT}, n = add_operands(maker, in, 2), out = mf_gradient_target(maker, f);
    const char x = name(2 + argument->operand[0]), y = name(2 + argument->operand[argument->count - 1]);
    const char op = argument->op == OP_add ? '+' : argument->op == OP_sub ? '-' : '*';
    char term[32], factor[8] = "", takes_part[16] = "b!=-inf", more[8] = "", expression[TEXT];
    snprintf(term, sizeof term, argument->count == 1 ? "%c" : "%c%c%c", x, op, y);
    if (argument->op == OP_mul)
        snprintf(factor, sizeof factor, "*%c", f ? x : y);
    if (if_left) {
        snprintf(takes_part, sizeof takes_part, "%c", name(n));
        in[n++] = AT_SLOT + SLOT_LEFT;
        snprintf(more, sizeof more, "+%c", name(n));
        in[n++] = out;
    }
    snprintf(expression, sizeof expression,
             sums(maker, f, in, n) ? "%ssum(where(%s,a*exp(%s-b)%s,0))%s" : "%s(where(%s,a*exp(%s-b)%s,0))%s",
             mf_gradient_is_negative(data, f) ? "-" : "", takes_part, term, factor, more);
    return mf_gradient_step(maker, expression, if_left, n, in, 1, &out);
}

/* ---- logsumexp as products ---- */

/* Whether both factors have kept modes of their own, and together all modes there are. */
static int is_product(const struct gradient_maker *maker)
{
    const struct gradient *data = maker->data;
    const char *letters[FACTORS_MOST], *output = maker->view[AT_OUTPUT].letters;
    char kept[FACTORS_MOST][MF_MAX_RANK + 1];
    if (data->argument.count < FACTORS_MOST || data->argument.op == OP_mul || !maker->reduced_total ||
        !maker->kept_total)
        return 0;
    for (int f = 0; f < FACTORS_MOST; f++) {
        letters[f] = maker->view[data->argument.operand[f]].letters;
        kept_letters(maker, data->argument.operand[f], kept[f]);
    }
    for (int i = 0; i < data->input_count; i++)
        if (!has_all(maker->view[i].letters, letters[0], letters[1]))
            return 0;
    return has_all(output, letters[0], letters[1]) && !has_all(kept[0], kept[1], "") && !has_all(kept[1], kept[0], "");
}

/* The greatest value of every row and column. */
mf_status mf_gradient_plan_maxima(struct gradient_maker *maker)
{
    const struct gradient *data = maker->data;
    for (int f = 0; f < FACTORS_MOST; f++) {
        const int in = data->argument.operand[f], out = AT_SLOT + SLOT_MOST + f;
        char kept[MF_MAX_RANK + 1];
        kept_letters(maker, in, kept);
        MF_TRY(mf_gradient_slot(maker, SLOT_MOST + (enum slot)f, kept, data->cls == CLS_F32 ? DT_f32 : DT_f64));
        MF_TRY(mf_gradient_step(maker, mf_gradient_is_negative(data, f) ? "max(-a)" : "max(a)", 0, 1, &in, 1, &out));
    }
    return MF_OK;
}

/* Exponentials of a tier; 0 in rows whose greatest value is no finite number. */
static mf_status plan_powers(struct gradient_maker *maker, int tier, int if_left)
{
    const struct gradient *data = maker->data;
    for (int f = 0; f < FACTORS_MOST; f++) {
        const int x = data->argument.operand[f], in[2] = {x, AT_SLOT + SLOT_MOST + f}, out = AT_SLOT + SLOT_POWER + f;
        char expression[TEXT];
        snprintf(expression, sizeof expression, "where(isfinite(b),exp(%s%s-b),0)",
                 mf_gradient_is_negative(data, f) ? "-" : "", tiers[tier].type == DT_f64 ? "f64(a)" : "a");
        MF_TRY(mf_gradient_slot(maker, SLOT_POWER + (enum slot)f, maker->view[x].letters, tiers[tier].type));
        MF_TRY(mf_gradient_step(maker, expression, if_left, 2, in, 1, &out));
    }
    return MF_OK;
}

void mf_gradient_weight_text(int tier, int before, char *weight, char *left, size_t size)
{
    char taken[FACTORS_MOST][TEXT / 2] = {"", ""};
    for (int t = tier - (before != 0); t <= tier; t++)
        snprintf(taken[t != tier], sizeof taken[0], "((abs(f64(a)+b-c)<=%s)&(abs(d)<=%s))", tiers[t].most_gap,
                 tiers[t].most_given);
    snprintf(weight, size, "where((c!=-inf)&%s%s%s,d*exp(f64(a)+b-c),0)", taken[0], before ? "&~" : "", taken[1]);
    snprintf(left, size, "(c!=-inf)&~%s", taken[0]);
}

/* What a tier's outputs weigh, and which are left after it. before: an earlier tier has taken its own. */
static mf_status plan_weights(struct gradient_maker *maker, int tier, int before)
{
    const char *output = maker->view[AT_OUTPUT].letters;
    const int in[] = {AT_SLOT + SLOT_MOST, AT_SLOT + SLOT_MOST + 1, AT_OUTPUT, AT_GIVEN};
    const int out[] = {AT_SLOT + SLOT_WEIGHT, AT_SLOT + SLOT_LEFT};
    char weight[2 * TEXT], left[2 * TEXT], expression[4 * TEXT + 4];
    mf_gradient_weight_text(tier, before, weight, left, sizeof weight);
    snprintf(expression, sizeof expression, "%s; %s", weight, left);
    MF_TRY(mf_gradient_slot(maker, SLOT_WEIGHT, output, tiers[tier].type));
    MF_TRY(mf_gradient_slot(maker, SLOT_LEFT, output, DT_bool));
    return mf_gradient_step(maker, expression, before, 4, in, 2, out);
}

static mf_status plan_products(struct gradient_maker *maker, int f, int before)
{
    const int out = mf_gradient_target(maker, f);
    const int in[] = {AT_SLOT + SLOT_WEIGHT, AT_SLOT + SLOT_POWER + !f, AT_SLOT + SLOT_POWER + f, out};
    const char *minus = mf_gradient_is_negative(maker->data, f) ? "-" : "";
    char expression[TEXT];
    snprintf(expression, sizeof expression, "%ssum(a*b)*c%s", minus, before ? "+d" : "");
    return mf_gradient_step(maker, expression, before, before ? 4 : 3, in, 1, &out);
}

/* Steps that run while some outputs are left look at the count. On GPUs it is added up, for mf_plan_tier_count. */
mf_status mf_gradient_plan_count(struct gradient_maker *maker, int before)
{
    static const int in[] = {AT_SLOT + SLOT_LEFT, AT_SLOT + SLOT_TOTAL},
                     out[] = {AT_SLOT + SLOT_COUNT, AT_SLOT + SLOT_TOTAL};
    MF_TRY(mf_gradient_slot(maker, SLOT_COUNT, "", DT_i64));
    if (!maker->plan->device->api)
        return mf_gradient_step(maker, "count(a)", before, 1, in, 1, out);
    MF_TRY(mf_gradient_slot(maker, SLOT_TOTAL, "", DT_i64));
    return mf_gradient_step(maker, "count(a); count(a)+b", before, 2, in, 2, out);
}

static mf_status plan_tier(struct gradient_maker *maker, int tier, int before)
{
    MF_TRY(plan_powers(maker, tier, before));
    MF_TRY(plan_weights(maker, tier, before));
    for (int f = 0; f < FACTORS_MOST; f++)
        if (maker->data->wanted[f])
            MF_TRY(plan_products(maker, f, before));
    return mf_gradient_plan_count(maker, before);
}

/* On GPUs nobody counts on the way: what is left after the first tier is computed exactly. Products cost more launches,
 * which few terms are not worth, and only CUDA's kernels can see that nothing is left for them. */
static int wants_products(const struct gradient_maker *maker)
{
    enum { FEW_TERMS = 1 << 22 };
    const struct gpu_api *api = maker->plan->device->api;
    int64_t terms;
    if (maker->exact || !is_product(maker) || (api && maker->data->cls != CLS_F32))
        return 0;
    if (!api || maker->products)
        return 1;
    return api == &mf_gpu_cuda && !(maker->options.flags & (MF_ORDER_CONTRACT | MF_ORDER_AS_WRITTEN)) &&
           mf_mul(maker->kept_total, maker->reduced_total, &terms) && terms >= FEW_TERMS;
}

static mf_status plan_tiers(struct gradient_maker *maker)
{
    const int first = maker->data->cls == CLS_F32 ? 0 : 1;
    if (!maker->plan->device->api) {
        MF_TRY(mf_gradient_plan_maxima(maker));
        for (int tier = first; tier < TIERS; tier++)
            MF_TRY(plan_tier(maker, tier, tier > first));
        return MF_OK;
    }
    MF_TRY(mf_memory_create(maker->plan->device, sizeof(int64_t), &maker->data->count));
    MF_TRY(mf_gradient_plan_maxima(maker));
    return mf_gradient_has_halves(maker) ? mf_gradient_plan_halves(maker) : plan_tier(maker, 0, 0);
}

/* Outputs that the products left, in all executions. */
static int64_t count_left(const struct mf_plan *plan)
{
    const struct gradient *data = plan->data;
    const struct mf_device *device = plan->device;
    int64_t total = 0;
    if (!atomic_load(&plan->tiers[MF_TIER_CERTIFIED]))
        return 0;
    return device->api->copy(device->gpu, data->memory, data->slot_at[SLOT_TOTAL], &total, sizeof total, 1) == MF_OK
               ? total
               : -1;
}

mf_status mf_gradient_plan_log(struct gradient_maker *maker)
{
    struct gradient *data = maker->data;
    const int products = wants_products(maker);
    MF_TRY(mf_plan_start_tiers(maker->plan));
    if (mf_gpu_gradient_near_pays(maker))
        return mf_gpu_gradient_near_plan(maker);
    if (maker->plan->device->api && products)
        maker->plan->refused = count_left;
    for (int f = 0; f < data->argument.count; f++)
        if (data->wanted[f]) {
            data->slot_type[f] = data->cls == CLS_F32 ? DT_f32 : DT_f64;
            MF_TRY(mf_gradient_slot(maker, SLOT_GRADIENT + (enum slot)f, maker->view[AT_GRADIENT + f].letters,
                                    data->slot_type[f]));
            if (mf_gradient_target(maker, f) < AT_SLOT)
                data->slot_bytes[SLOT_GRADIENT + f] = 0;
        }
    if (products)
        MF_TRY(plan_tiers(maker));
    for (int f = 0; f < data->argument.count; f++)
        if (data->wanted[f])
            MF_TRY(plan_exact(maker, f, products));
    return MF_OK;
}
