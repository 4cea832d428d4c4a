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

/* What is asked of many lanes that are summed together: their origin, with an element at hand; the greatest of them,
 * and how far above the gray zone they are; the same of elements that are summed in the unit 1, before they are, and
 * how far from 0 they are: if all are near, no lane has some that may be low; an element that is all of a lane; then
 * whether what was gathered will do. */
static void emit_gathered(const struct problem *problem, struct gpu_text *to)
{
    enum { ORIGIN, GATHER, GATHER_IN_1, EXTENT, ONLY, CLEAR, CLEAR_IN_1, NOTABLE, SMALL, FUNCTIONS };
    static const char *const begins[] = {"void set_origin(struct lane *s, struct element x)\n{\n",
                                         "void gather(struct lane *all, struct lane s)\n{\n",
                                         "void gather_in_1(struct lane *all, struct element x, int present, int "
                                         "greatest)\n{\n",
                                         "void gather_extent(struct lane *all, struct element x, int present)\n{\n",
                                         "void only_element(struct lane *s, struct element x, int present)\n{\n",
                                         "int lane_is_clear(struct lane s)\n{\n    int yes = 1;\n",
                                         "int all_are_clear(struct lane s)\n{\n    int yes = 1;\n",
                                         "int all_are_notable(struct lane s)\n{\n    int yes = 1;\n",
                                         "int extents_are_small(struct lane s)\n{\n    int yes = 1;\n"};
    static const char *const tests[] = {[CLEAR] = "    yes &= is_clear_%s(s.r%d_gray);\n",
                                        [CLEAR_IN_1] = "    yes &= is_clear_in_1_%s(s.r%d_gray);\n",
                                        [NOTABLE] = "    yes &= is_plain_%s(s.r%d_m, s.r%d_origin);\n",
                                        [SMALL] = "    yes &= is_small_%s(s.r%d_m);\n"};
    const struct program *program = &problem->program;
    for (int i = ORIGIN; i < FUNCTIONS; i++) {
        mf_text_add(to, "static inline %s", begins[i]);
        for (int r = 0; r < program->reducer_count; r++) {
            const enum cls of = program->reducer[r].cls;
            const char *cls = mf_class_name[of];
            if (program->reducer[r].kind != RED_LSE)
                continue;
            if (i == ORIGIN)
                mf_text_add(
                    to, "    s->r%d_origin = origin_at_%s(x.a%d);\n    s->r%d_lowest = lowest_at_%s(s->r%d_origin);\n",
                    r, cls, r, r, cls, r);
            else if (i == GATHER)
                mf_text_add(to,
                            "    all->r%d_m = fold_max_%s(all->r%d_m, s.r%d_m);\n"
                            "    all->r%d_gray = LESSER_OF_SUM(s.r%d_gray, 0, all->r%d_gray);\n"
                            "    all->r%d_origin = s.r%d_origin;\n",
                            r, cls, r, r, r, r, r, r, r);
            else if (i == EXTENT)
                mf_text_add(to, "    all->r%d_m = fold_max_%s(all->r%d_m, present ? %s(x.a%d) : 0);\n", r, cls, r,
                            of == CLS_F64 ? "fabs" : "fabsf", r);
            else if (i == ONLY)
                mf_text_add(to,
                            "    const %s x%d = present ? x.a%d : %s;\n    s->r%d_m = x%d;\n"
                            "    s->r%d_s = plain_exp_%s(s->may_be_low ? AT_LEAST_%s(x%d, s->r%d_lowest) : x%d, "
                            "MF_MAGIC_%s);\n    s->r%d_s = present || s->may_be_low ? s->r%d_s : 0;\n",
                            mf_class_type[of], r, r, mf_emit_fold_identity(FOLD_MAX, of), r, r, r, cls, cls, r, r, r,
                            cls, r, r);
            else if (i == GATHER_IN_1)
                mf_text_add(to,
                            "    const %s x%d = present ? x.a%d : %s;\n"
                            "    all->r%d_gray = grayer_in_1_%s(all->r%d_gray, x%d);\n"
                            "    all->r%d_m = greatest ? fold_max_%s(all->r%d_m, x%d) : all->r%d_m;\n",
                            mf_class_type[of], r, r, mf_emit_fold_identity(FOLD_MAX, of), r, cls, r, r, r, cls, r, r,
                            r);
            else
                mf_text_add(to, tests[i], cls, r, r);
        }
        mf_text_append(to, i >= CLEAR ? "    return yes;\n}\n\n" : "}\n\n");
    }
}

/* The origins that many lanes have, if their sums are plain together, or that of the unit 1; what ends a state of
 * those, and whether it is plain as far as its greatest says. */
static void emit_origins(const struct problem *problem, struct gpu_text *to)
{
    enum { FIELDS, NONE, KEEP, SETTLE };
    static const char *const begins[] = {
        "struct origins {\n    int plain;\n",
        "};\n\nstatic inline struct origins no_origins(void)\n{\n    struct origins of;\n    of.plain = 0;\n",
        "    return of;\n}\n\nstatic inline void keep_origins(struct origins *to, struct lane s)\n{\n",
        "}\n\nstatic inline int settle_at(struct state *s, const struct origins *of)\n{\n    int yes = 1;\n"};
    const struct program *program = &problem->program;
    for (int i = FIELDS; i <= SETTLE; i++) {
        mf_text_append(to, begins[i]);
        for (int r = 0; r < program->reducer_count; r++) {
            const char *cls = mf_class_name[program->reducer[r].cls];
            if (program->reducer[r].kind != RED_LSE)
                continue;
            if (i == FIELDS)
                mf_text_add(to, "    %s r%d;\n", mf_class_type[program->reducer[r].cls], r);
            else if (i == NONE)
                mf_text_add(to, "    of.r%d = MF_MAGIC_%s;\n", r, cls);
            else if (i == KEEP)
                mf_text_add(to, "    to->r%d = s.r%d_origin;\n", r, r);
            else
                mf_text_add(to,
                            "    yes &= is_plain_%s(s->r%d_m, of->r%d);\n"
                            "    s->r%d_s = from_plain_%s(s->r%d_s, s->r%d_m, of->r%d);\n",
                            cls, r, r, r, cls, r, r, r);
        }
    }
    mf_text_append(to, "    return yes;\n}\n\n");
}

/* The same of a lane of one element, if it is there. */
void mf_emit_settle_one(const struct problem *problem, struct gpu_text *to)
{
    const struct program *program = &problem->program;
    emit_origins(problem, to);
    emit_gathered(problem, to);
    mf_text_append(to, "static inline void settle_one(struct lane *s, int present)\n{\n");
    for (int r = 0; r < program->reducer_count; r++)
        if (program->reducer[r].kind == RED_LSE)
            mf_text_add(to, "    s->r%d_s = present ? sum_unit_%s(s->r%d_m) : 0;\n", r,
                        mf_class_name[program->reducer[r].cls], r);
    mf_text_append(to, "}\n\n");
}

/* Whether a state's greatest is too far from 0 for the short formulas; the state of one element that is not. */
void mf_emit_sum_states(const struct problem *problem, struct gpu_text *to)
{
    static const char *const begins[] = {"static inline int state_is_far(struct state s)\n{\n    int far = 0;\n",
                                         "static inline void settle_near(struct state *s)\n{\n"};
    const struct program *program = &problem->program;
    for (int i = 0; i < 2; i++) {
        mf_text_append(to, begins[i]);
        for (int r = 0; r < program->reducer_count; r++) {
            const char *cls = mf_class_name[program->reducer[r].cls];
            if (program->reducer[r].kind != RED_LSE)
                continue;
            if (i == 0)
                mf_text_add(to, "    far |= is_far_%s(s.r%d_m);\n", cls, r);
            else
                mf_text_add(to, "    s->r%d_s = near_unit_%s(s->r%d_m);\n", r, cls, r);
        }
        mf_text_append(to, i == 0 ? "    return far;\n}\n\n" : "}\n\n");
    }
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
