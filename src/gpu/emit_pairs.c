/* The greatest and the least of 16-bit floats as text, two neighbouring lanes' in one instruction. */
#include "emit_reducers.h"

enum dtype mf_emit_paired_type(const struct problem *problem, int r)
{
    const struct reducer *reducer = &problem->program.reducer[r];
    const struct node *node = &problem->program.map.node[reducer->arg[0]];
    if (reducer->kind != RED_FOLD || (reducer->fold != FOLD_MIN && reducer->fold != FOLD_MAX) || node->op != OP_OPERAND)
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

void mf_emit_pairs(const struct problem *problem, struct gpu_text *to)
{
    static const char *const names[] = {"start_pair(struct lane s[2])", "chain_pair(struct lane s[2], uint32_t pair)",
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
            const unsigned infinity = (type == DT_f16 ? 0x7c007c00u : 0x7f807f80u) | (least ? 0 : 0x80008000u);
            if (i == 0)
                mf_text_add(to, "    s[0].r%d = mf_bits_f32(0x%xu);\n", r, infinity);
            else if (i == 1)
                mf_text_add(to, "    s[0].r%d = mf_bits_f32(%s_%s(mf_f32_bits(s[0].r%d), pair));\n", r,
                            least ? "least" : "greater", name, r);
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
