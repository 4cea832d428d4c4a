/* Log-space products that the library adds in an order of its own (docs/numerics.md, section 10): near the reference,
 * by that page's bound, instead of its bits. */
#include "verify.h"

#include <string.h>

enum { TEXT = 512 };

int verify_is_free(mf_device *device, const struct problem_line *line)
{
    mf_plan *plan = NULL;
    if (line->solver[0] || problem_plan(device, line, NULL, 0, &plan) != MF_OK)
        return 0;
    const int free_order = !strncmp(mf_plan_solver(plan), "log-", 4);
    mf_plan_destroy(plan);
    return free_order;
}

int verify_has_bound(const struct problem_line *line)
{
    return !strcmp(line->expression, "logsumexp(a+b)");
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

/* Both the reference and the solver may be off by 1e-5 + 4 u max(|o|, |a| + |b|), a and b at most the greatest ones.
 * What is so near becomes the expected value, by a map on itself. */
void verify_forgive(mf_device *device, const struct problem_line *line, const struct problem_memory *memory)
{
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
