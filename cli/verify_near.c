/* What is added in an order of its own: near the reference, by a bound instead of its bits. Log-space products
 * (docs/numerics.md, section 10), and sums of products in any order (sections 8 and 13). */
#include "verify.h"

#include <stdlib.h>
#include <string.h>

#include "lists.h"

enum { TEXT = 512 };

int verify_is_free(mf_device *device, const struct problem_line *line)
{
    mf_plan *plan = NULL;
    if (line->solver[0] || !strstr(line->expression, "logsumexp") ||
        problem_plan(device, line, NULL, 0, &plan) != MF_OK)
        return 0;
    const int free_order = !strncmp(mf_plan_solver(plan), "log-", 4);
    mf_plan_destroy(plan);
    return free_order;
}

int verify_has_bound(const struct problem_line *line)
{
    return !strcmp(line->expression, "logsumexp(a+b)") || !strcmp(line->expression, "logsumexp(a-b)");
}

int verify_is_by_name(int kind, const char *solver)
{
    int found = 0;
    for (int s = 0; *solver && list_solver_by_name(kind, s); s++)
        found |= list_is_solver(list_solver_by_name(kind, s), solver);
    return found;
}

static int is_wide_float(DLDataType type)
{
    return type.code == kDLFloat && type.bits >= 32;
}

/* log-fast may be wrong without a word; tensor cores, and products of 11 bits, have bounds of their own. */
int verify_knows_errors(const char *solver, const struct problem_line *line)
{
    static const char *const logs[] = {"log-certified", "log-exact", "log-running", "log-two-pass", NULL},
                             *const sums[] = {"openblas", "direct", "fused", NULL};
    for (int s = 0; logs[s]; s++)
        if (list_is_solver(logs[s], solver))
            return !line || verify_has_bound(line);
    for (int s = 0; sums[s]; s++)
        if (list_is_solver(sums[s], solver))
            return !line || (!strcmp(line->expression, "sum(a*b)") && is_wide_float(line->tensor[0].dtype) &&
                             is_wide_float(line->tensor[1].dtype) && is_wide_float(line->tensor[MF_MAX_INPUTS].dtype));
    return 0;
}

/* One letter a dimension. */
static const char *letters(int ndim)
{
    static const char all[] = "abcdefghijklmnopqrstuvwxyzABCDEF";
    return all + sizeof all - 1 - ndim;
}

/* The greatest finite |x| of an operand. */
static double magnitude(mf_device *device, const DLTensor *tensor)
{
    char modes[TEXT];
    double most = 0;
    const DLTensor out = mf_tensor(&most, MF_F64, 0, NULL);
    snprintf(modes, sizeof modes, "%s->", letters(tensor->ndim));
    return mf_fold(device, modes, "max(where(isfinite(a),abs(f64(a)),0))", tensor, &out) == MF_OK && most > 0 ? most
                                                                                                              : 0;
}

/* What storing can change: relatively, or by one. */
static double rounding(DLDataType type, double *one)
{
    const char *name = mf_type_name(type);
    *one = name[0] == 'i' || name[0] == 'u';
    return !strcmp(name, "f64")      ? 0x1p-51
           : !strcmp(name, "f32")    ? 0x1p-22
           : !strcmp(name, "f16")    ? 0x1p-9
           : !strcmp(name, "bf16")   ? 0x1p-6
           : !strcmp(name, "f8e4m3") ? 0x1p-2
                                     : 0x1p-1;
}

/* Of sums of products: both may be off by (K + 1) u times the sum of |a b|, and by a rounding of what is stored. Sums
 * that may overflow in some order are not compared: one order's infinities, or their difference, are another's
 * number. */
static void forgive_sums(mf_device *device, const struct problem_line *line, const struct problem_memory *memory)
{
    const struct problem_tensor *tensor = &line->tensor[MF_MAX_INPUTS];
    const struct problem_block *block = &memory->block[tensor->memory];
    const void *in[MF_MAX_INPUTS];
    void *out[MF_MAX_OUTPUTS];
    DLTensor operand[2], all[3];
    char modes[TEXT], expression[TEXT];
    problem_pointers(line, memory, in, out);
    for (int i = 0; i < 2; i++) {
        operand[i] = problem_dltensor(&line->tensor[i]);
        memcpy(&operand[i].data, &in[i], sizeof in[i]);
        all[i] = problem_dltensor(tensor);
    }
    double *sizes = malloc((size_t)problem_elements(tensor) * sizeof *sizes + 1);
    if (!sizes)
        abort();
    all[2] = mf_tensor(sizes, MF_F64, tensor->ndim, tensor->shape);
    const char *of_all = "sum(abs(f64(a)*f64(b)))*(count((a==a)|(a!=a))+1)";
    const int narrow = line->tensor[0].dtype.bits == 32 && line->tensor[1].dtype.bits == 32;
    const double unit = narrow ? 0x1p-24 : 0x1p-53, stored = tensor->dtype.bits == 32 ? 0x1p-23 : 0x1p-52;
    const double largest = narrow || tensor->dtype.bits == 32 ? 0x1p+127 : 0x1p+1023,
                 least = narrow || tensor->dtype.bits == 32 ? 0x1p-130 : 0x1p-1060; /* what is lost below the normal */
    if (mf_fold(device, line->modes, of_all, operand, &all[2]) == MF_OK) {
        const char *l = letters(tensor->ndim);
        problem_guards_open(block);
        all[0].data = out[0];
        all[1].data = block->expected + ((unsigned char *)out[0] - block->base);
        snprintf(modes, sizeof modes, "%s,%s,%s->%s", l, l, l, l);
        snprintf(expression, sizeof expression,
                 "where((c>=%.17g) | (abs(f64(a)-f64(b)) <= %.17g*c + %.17g*abs(f64(b)) + %.17g) | (isnan(f64(a)) & "
                 "isnan(f64(b))), b, a)",
                 largest, 2 * unit, stored, least);
        mf_fold(device, modes, expression, all, &all[0]);
        problem_guards_close(block);
    }
    free(sizes);
}

/* Both the reference and the solver may be off by 1e-5 + 4 u max(|o|, |a| + |b|), a and b at most the greatest ones.
 * What is so near becomes the expected value, by a map on itself. */
void verify_forgive(mf_device *device, const struct problem_line *line, const struct problem_memory *memory)
{
    if (!verify_has_bound(line)) {
        forgive_sums(device, line, memory);
        return;
    }
    const struct problem_tensor *tensor = &line->tensor[MF_MAX_INPUTS];
    const struct problem_block *block = &memory->block[tensor->memory];
    const void *in[MF_MAX_INPUTS];
    void *out[MF_MAX_OUTPUTS];
    DLTensor operand[2], both[2] = {problem_dltensor(tensor), problem_dltensor(tensor)};
    DLDataType type;
    double size = 0, one, relative = rounding(tensor->dtype, &one);
    char modes[TEXT], expression[TEXT];
    problem_pointers(line, memory, in, out);
    for (int i = 0; i < 2; i++) {
        operand[i] = problem_dltensor(&line->tensor[i]);
        memcpy(&operand[i].data, &in[i], sizeof in[i]);
        size += magnitude(device, &operand[i]);
    }
    if (mf_fold_type(device, line->expression, 2, operand, 0, &type) != MF_OK)
        return;
    const double unit = type.bits == 64 ? 0x1p-53 : 0x1p-24, floor = type.bits == 64 ? 1e-13 : 1e-5;
    const char *l = letters(tensor->ndim);
    problem_guards_open(block);
    both[0].data = out[0];
    both[1].data = block->expected + ((unsigned char *)out[0] - block->base);
    snprintf(modes, sizeof modes, "%s,%s->%s", l, l, l);
    snprintf(expression, sizeof expression,
             "where((abs(f64(a)-f64(b)) <= %.17g + %.17g*abs(f64(b))) | (isnan(f64(a)) & isnan(f64(b))), b, a)",
             one + 2 * (floor + 4 * unit * size), relative + 8 * unit);
    mf_fold(device, modes, expression, both, &both[0]);
    problem_guards_close(block);
}
