/* logsumexp as text: its lanes and states (kernels/sums.cl). */
#include "emit_reducers.h"
#include "texts.h"

void mf_emit_sums(const struct problem *problem, struct gpu_text *to)
{
    static const char *const type[2][2] = {{"float", "uint32_t"}, {"double", "uint64_t"}};
    static const char *const calls[] = {"EXP2", "EXP_STEP", "EXP_UNIT", "LOG"};
    static const char *const called[] = {"exp2", "exp_step", "exp_unit", "log"};
    int wanted[2] = {0, 0};
    for (int r = 0; r < problem->program.reducer_count; r++)
        if (problem->program.reducer[r].kind == RED_LSE)
            wanted[problem->program.reducer[r].cls == CLS_F64] = 1;
    for (int c = 0; c < 2; c++) {
        const char *name = mf_class_name[c];
        if (!wanted[c])
            continue;
        mf_text_add(to,
                    "#define REAL %s\n#define NAMED(name) name##_%s\n#define REAL_CONSTANT(name) MF_##name##_%s\n"
                    "#define UNSIGNED_OF %s\n#define TO_BITS_OF mf_%s_bits\n#define FROM_BITS_OF mf_bits_%s\n"
                    "#define LOWEST %d\n#define GRAY %d\n#define TOP %d\n#define EXPONENT_OF %d\n"
                    "#define UPPER_AT %d\n#define FIRST_GRAY %s\n#define GRAYS %s\n#define "
                    "FMA_OF %s\n#define FABS_OF %s\n#define INFINITE %s\n",
                    type[c][0], name, name, type[c][1], name, name, c ? 1022 : 126, c ? 80 : 39, c ? 954 : 114,
                    c ? 52 : 23, c ? 32 : 0, c ? "0xc0845001u" : "0xc2700001u", c ? "0x1d32bu" : "0x3eac4fu",
                    c ? "fma" : "fmaf", c ? "fabs" : "fabsf", mf_emit_fold_identity(FOLD_MIN, c ? CLS_F64 : CLS_F32));
        for (int i = 0; i < 4; i++)
            mf_text_add(to, "#define %s_OF mf_%s_%s\n", calls[i], called[i], name);
        mf_text_add(to, "#define AT_LEAST_%s(x, low) %s\n", name,
                    c ? "((x) > (low) ? (x) : (low))" : "fold_max_f32(x, low)");
        mf_text_append(to, mf_text_sums_cl);
        mf_text_append(to, "#undef REAL\n#undef NAMED\n#undef REAL_CONSTANT\n#undef UNSIGNED_OF\n#undef TO_BITS_OF\n"
                           "#undef FROM_BITS_OF\n#undef LOWEST\n#undef GRAY\n#undef TOP\n#undef EXPONENT_OF\n#undef "
                           "UPPER_AT\n#undef FIRST_GRAY\n#undef GRAYS\n"
                           "#undef FMA_OF\n#undef FABS_OF\n#undef INFINITE\n");
        for (int i = 0; i < 4; i++)
            mf_text_add(to, "#undef %s_OF\n", calls[i]);
    }
}

/* What is not there counts as -inf does. */
void mf_emit_sum_step(const struct problem *problem, int r, struct gpu_text *to)
{
    const struct reducer *reducer = &problem->program.reducer[r];
    const char *cls = mf_class_name[reducer->cls], *type = mf_class_type[reducer->cls];
    mf_text_add(to,
                "    {\n        const %s y = present ? x.a%d : %s, z = AT_LEAST_%s(y, s->r%d_lowest);\n"
                "        s->r%d_m = fold_max_%s(s->r%d_m, y);\n"
                "        s->r%d_gray = grayer_%s(s->r%d_gray, z, s->r%d_origin);\n"
                "        s->r%d_s = s->r%d_s + plain_exp_%s(z, s->r%d_origin);\n    }\n",
                type, r, mf_emit_fold_identity(FOLD_MAX, reducer->cls), cls, r, r, cls, r, r, cls, r, r, r, r, cls, r);
}

/* A lane that was not plain: the contract's merges, element after element, some read together. */
static void emit_again(const struct reducer *reducer, int r, struct gpu_text *to)
{
    const char *cls = mf_class_name[reducer->cls], *type = mf_class_type[reducer->cls];
    mf_text_add(to,
                "static inline %s sum_again%d(struct tensors T, shape_ptr S, struct place start, %s greatest, int64_t "
                "first, int count)\n{\n    %s m = %s, s = 0;\n    NO_UNROLL\n    for (int k = 0; k < count; k += 4) {\n"
                "        %s x[4];\n        int there[4];\n        UNROLL\n"
                "        for (int u = 0; u < 4; u++) {\n            struct raw r = one_of_vector(no_elements(), 0);\n"
                "            const int64_t e = first + (int64_t)(k + u < count ? k + u : k) * LANE_PITCH;\n"
                "            const struct place p = element_place(S, start, e);\n"
                "            there[u] = inside(S, p);\n            if (there[u])\n"
                "                r = fetch(T, p);\n            there[u] &= k + u < count;\n"
                "            x[u] = map_element(r).a%d;\n        }\n",
                type, r, type, type, mf_emit_fold_identity(FOLD_MAX, reducer->cls), type, r);
    mf_text_add(to,
                "        UNROLL\n        for (int u = 0; u < 4; u++) {\n"
                "            const %s all = merged_%s(m, s, x[u], greatest);\n"
                "            s = there[u] ? all : s;\n            m = there[u] ? fold_max_%s(m, x[u]) : m;\n"
                "        }\n    }\n    return s;\n}\n\n",
                type, cls, cls);
}

void mf_emit_settle(const struct problem *problem, struct gpu_text *to)
{
    const struct program *program = &problem->program;
    for (int r = 0; r < program->reducer_count; r++)
        if (program->reducer[r].kind == RED_LSE)
            emit_again(&program->reducer[r], r, to);
    mf_text_append(to, "static inline void settle(struct tensors T, shape_ptr S, struct place start, struct lane *s, "
                       "int64_t first, int count)\n{\n");
    for (int r = 0; r < program->reducer_count; r++) {
        const char *cls = mf_class_name[program->reducer[r].cls];
        if (program->reducer[r].kind == RED_LSE)
            mf_text_add(to,
                        "    s->r%d_s = is_clear_%s(s->r%d_gray) && is_plain_%s(s->r%d_m, s->r%d_origin)\n"
                        "        ? from_plain_%s(s->r%d_s, s->r%d_m, s->r%d_origin)\n        : s->r%d_m - s->r%d_m == "
                        "0 ? sum_again%d(T, S, start, s->r%d_m, first, count) : 0;\n",
                        r, cls, r, cls, r, r, cls, r, r, r, r, r, r, r);
    }
    mf_text_append(to, "}\n\n");
}

/* What is done to lanes and states, kernels/sum_lanes.cl. */
void mf_emit_sum_lanes(const struct problem *problem, struct gpu_text *to)
{
    mf_text_append(to, "#define FOR_SUMS(X)");
    for (int r = 0; r < problem->program.reducer_count; r++) {
        const enum cls cls = problem->program.reducer[r].cls;
        if (problem->program.reducer[r].kind == RED_LSE)
            mf_text_add(to, " X(%s, %s, %d)", mf_class_type[cls], mf_class_name[cls], r);
    }
    /* one after the other they are compiled in two thirds of the time; of 16 bits it would cost 2 % of the speed */
    int least = 8;
    for (int i = 0; i < problem->input_count; i++)
        if (problem->map_uses[i] && mf_dtypes[problem->in_type[i]].size < least)
            least = mf_dtypes[problem->in_type[i]].size;
    mf_text_add(to, "\n#define SETTLING %s\n", least < 4 ? "UNROLL" : "NO_UNROLL");
    mf_text_append(to, mf_text_sum_lanes_cl);
}

void mf_emit_joined_sums(const struct reducer *reducer, int r, enum sums_known known, struct gpu_text *to)
{
    const char *cls = mf_class_name[reducer->cls];
    if (known == SUMS_PLAIN)
        mf_text_add(to, "    c.r%d_m = fold_max_%s(a.r%d_m, b.r%d_m);\n    c.r%d_s = a.r%d_s + b.r%d_s;\n", r, cls, r,
                    r, r, r, r);
    else
        mf_text_add(to,
                    "    c.r%d_m = fold_max_%s(a.r%d_m, b.r%d_m);\n"
                    "    c.r%d_s = %s_joined_%s(a.r%d_m, a.r%d_s, b.r%d_m, b.r%d_s, c.r%d_m);\n",
                    r, cls, r, r, r, known == SUMS_NEAR ? "near" : "sure", cls, r, r, r, r, r);
}
