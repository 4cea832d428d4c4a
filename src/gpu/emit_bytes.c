/* Several folds of one operand's bytes as text, four at a time (kernels/byte_folds.cl). */
#include "emit_reducers.h"
#include "texts.h"

/* What reducer r folds, if it is that: its operand, else -1; *squares: of their squares the sum. */
static int operand_of(const struct problem *problem, int r, int *squares)
{
    const struct reducer *reducer = &problem->program.reducer[r];
    const struct node *pool = problem->program.map.node, *node = &pool[reducer->arg[0]];
    *squares = 0;
    if (reducer->kind != RED_FOLD || reducer->cls != CLS_I64)
        return -1;
    if (reducer->fold == FOLD_SUM && node->op == OP_mul && node->arg[0] == node->arg[1]) {
        *squares = 1;
        node = &pool[node->arg[0]];
    } else if (reducer->fold != FOLD_SUM && reducer->fold != FOLD_MIN && reducer->fold != FOLD_MAX) {
        return -1;
    }
    return node->op == OP_OPERAND ? node->index : -1;
}

int mf_emit_packed_bytes(const struct problem *problem)
{
    int squares, operand = -1;
    if (!problem->reduced_total || problem->memory.window_count || mf_emit_bytes_operand(problem) >= 0)
        return -1;
    for (int r = 0; r < problem->program.reducer_count; r++) {
        const int here = operand_of(problem, r, &squares);
        if (here < 0 || (r && here != operand) || (problem->in_type[here] != DT_i8 && problem->in_type[here] != DT_u8))
            return -1;
        operand = here;
    }
    return operand;
}

const char *mf_emit_extreme_identity(const struct problem *problem, enum fold fold)
{
    if (mf_emit_packed_bytes(problem) >= 0)
        return fold == FOLD_MIN ? "(PACKED_BYTES ? 0x00ff00ff : INT32_MAX)" : "(PACKED_BYTES ? 0 : INT32_MIN)";
    return fold == FOLD_MIN ? "INT32_MAX" : "INT32_MIN";
}

void mf_emit_extreme_end(const struct problem *problem, int r, const char *field, struct gpu_text *to)
{
    const int operand = mf_emit_packed_bytes(problem);
    const enum fold fold = problem->program.reducer[r].fold;
    if (operand >= 0)
        mf_text_add(to, "#if PACKED_BYTES\n    s.%s = %s_of_%s(l.%s);\n#else\n", field,
                    fold == FOLD_MIN ? "least" : "greatest", mf_dtypes[problem->in_type[operand]].name, field);
    mf_text_add(to, "    s.%s = count > 0 ? (int64_t)l.%s : %s;\n", field, field, mf_emit_fold_identity(fold, CLS_I64));
    mf_text_append(to, operand >= 0 ? "#endif\n" : "");
}

/* A lane's next four bytes, lowest first, as far as factors are 1. */
void mf_emit_byte_folds(const struct problem *problem, struct gpu_text *to)
{
    const int operand = mf_emit_packed_bytes(problem);
    if (operand < 0)
        return;
    const char *name = mf_dtypes[problem->in_type[operand]].name;
    const int is_signed = problem->in_type[operand] == DT_i8;
    mf_text_append(to, mf_text_byte_folds_cl);
    mf_text_add(to,
                "static inline void fold_word(struct lane *l, uint32_t word, uint32_t factors)\n{\n"
                "    const uint32_t there = factors * 255u, value = word ^ %s;\n",
                is_signed ? "0x80808080u" : "0");
    for (int r = 0; r < problem->program.reducer_count; r++) {
        const enum fold fold = problem->program.reducer[r].fold;
        int squares;
        operand_of(problem, r, &squares);
        if (squares)
            mf_text_add(to, "    l->r%d = l->r%d + square_bytes_%s(word & there);\n", r, r, name);
        else if (fold == FOLD_SUM)
            mf_text_add(to, "    l->r%d = fold_bytes_%s(l->r%d, word, factors);\n", r, name, r);
        else if (fold == FOLD_MIN)
            mf_text_add(to, "    l->r%d = least_bytes(l->r%d, value | ~there);\n", r, r);
        else
            mf_text_add(to, "    l->r%d = greatest_bytes(l->r%d, value & there);\n", r, r);
    }
    mf_text_append(to, "}\n\n");
}
