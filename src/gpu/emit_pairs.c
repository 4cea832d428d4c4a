/* The greatest and the least of 16-bit floats as text, two neighbouring lanes' in one instruction. */
#include "emit_reducers.h"

enum dtype mf_emit_paired_type(const struct problem *problem, int r)
{
    const struct reducer *reducer = &problem->program.reducer[r];
    const struct node *node = &problem->program.map.node[reducer->arg[0]];
    const int extreme = reducer->kind == RED_FOLD && (reducer->fold == FOLD_MIN || reducer->fold == FOLD_MAX);
    if ((!extreme && reducer->kind != RED_LSE) || node->op != OP_OPERAND)
        return DT_COUNT;
    const enum dtype type = problem->in_type[node->index];
    return type == DT_f16 || type == DT_bf16 ? type : DT_COUNT;
}

int mf_emit_has_pairs(const struct problem *problem)
{
    for (int r = 0; r < problem->program.reducer_count; r++)
        if (mf_emit_paired_type(problem, r) != DT_COUNT)
            return 1;
    return 0;
}

/* The greatest of a logsumexp, how far all are above the gray zone (kernels/sums.cl), and the sums, of each, in the
 * unit 1: then that is whole words of the elements' bits. part: of mf_emit_pairs' functions. */
static void emit_paired_sums(int r, enum dtype type, int part, struct gpu_text *to)
{
    static const char *const halves[2][2] = {
        {"mf_bits_f32(high%d << 16)", "mf_bits_f32(high%d & 0xffff0000u)"},
        {"mf_f16_to_f32((uint16_t)high%d)", "mf_f16_to_f32((uint16_t)(high%d >> 16))"}};
    const char *name = mf_dtypes[type].name;
    const int half = type == DT_f16;
    const unsigned lowest = half ? 0xd570 : 0xc2ae /* -87 */, gray = half ? 0xd381 : 0xc271 /* -60, and one more */;
    if (part == 0)
        mf_text_add(to, "    s[0].r%d_m = mf_bits_f32(0x%xu);\n", r, half ? 0xfc00fc00u : 0xff80ff80u);
    if (part == 1)
        mf_text_add(to,
                    "    const uint32_t there%d = present ? pair : 0x%xu, high%d = greater_%s(there%d, 0x%xu);\n"
                    "    s[0].r%d_m = mf_bits_f32(greater_%s(mf_f32_bits(s[0].r%d_m), there%d));\n"
                    "    s[0].r%d_gray = LESSER_OF_SUMS(there%d, 0x%xu, s[0].r%d_gray);\n",
                    r, half ? 0xfc00fc00u : 0xff80ff80u, r, name, r, lowest * 0x10001u, r, name, r, r, r, r,
                    (0x10000u - gray) * 0x10001u, r);
    for (int high = 0; high < 2 && part; high++)
        if (part == 1) {
            mf_text_add(to, "    s[%d].r%d_s = s[%d].r%d_s + plain_exp_f32(", high, r, high, r);
            mf_text_add(to, halves[half][high], r);
            mf_text_append(to, ", MF_MAGIC_f32);\n");
        } else {
            mf_text_add(to,
                        "    s[%d].r%d_m = mf_%s_to_f32((uint16_t)(mf_f32_bits(s[0].r%d_m) >> %d));\n"
                        "    s[%d].r%d_gray = (uint16_t)(s[0].r%d_gray >> %d) < %uu ? 0 : ~(uint32_t)0;\n",
                        !high, r, name, r, 16 * !high, !high, r, r, 16 * !high, lowest - gray);
        }
}

void mf_emit_pairs(const struct problem *problem, struct gpu_text *to)
{
    static const char *const names[] = {"start_pair(struct lane s[2])",
                                        "chain_pair(struct lane s[2], uint32_t pair, int present)",
                                        "end_pair(struct lane s[2])"};
    mf_text_append(to, "#if PAIRED_FOLDS\n");
    for (int i = 0; i < 3; i++) {
        mf_text_add(to, "static inline void %s\n{\n", names[i]);
        for (int r = 0; r < problem->program.reducer_count; r++) {
            const enum dtype type = mf_emit_paired_type(problem, r);
            if (type == DT_COUNT)
                continue;
            const int least = problem->program.reducer[r].fold == FOLD_MIN;
            const char *name = mf_dtypes[type].name;
            if (problem->program.reducer[r].kind == RED_LSE) {
                emit_paired_sums(r, type, i, to);
                continue;
            }
            const unsigned infinity = (type == DT_f16 ? 0x7c007c00u : 0x7f807f80u) | (least ? 0 : 0x80008000u);
            if (i == 0)
                mf_text_add(to, "    s[0].r%d = mf_bits_f32(0x%xu);\n", r, infinity);
            else if (i == 1)
                mf_text_add(to,
                            "    s[0].r%d = present ? mf_bits_f32(%s_%s(mf_f32_bits(s[0].r%d), pair)) : s[0].r%d;\n", r,
                            least ? "least" : "greater", name, r, r);
            else
                mf_text_add(to,
                            "    s[1].r%d = mf_%s_to_f32((uint16_t)(mf_f32_bits(s[0].r%d) >> 16));\n"
                            "    s[0].r%d = mf_%s_to_f32((uint16_t)mf_f32_bits(s[0].r%d));\n",
                            r, name, r, r, name, r);
        }
        mf_text_append(to, "}\n\n");
    }
    mf_text_append(to, "#endif\n");
}
