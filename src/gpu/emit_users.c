/* Users' operations, given as text, as functions: user0 is the state of reducer 0, user0_lift and so on its steps. */
#include <inttypes.h>

#include "emit_reducers.h"

/* The numbers that come out of a step, into fields of `to`. */
static void emit_step(const struct stage *stage, const char *field, struct gpu_text *to)
{
    char used[MAX_NODES] = {0};
    for (int k = 0; k < stage->count; k++)
        mf_emit_mark(&stage->pool, stage->root[k], used);
    mf_emit_pool(NULL, NULL, &stage->pool, used, 'v', to);
    for (int k = 0; k < stage->count; k++)
        mf_text_add(to, "    s.%s%d = v%d;\n", field, k, stage->root[k]);
    mf_text_append(to, "    return s;\n}\n\n");
}

static void emit_struct(const char *type, const char *behind, const char *field, int r, int count, struct gpu_text *to)
{
    mf_text_add(to, "struct user%d%s {\n    %s ", r, behind, type);
    for (int k = 0; k < count; k++)
        mf_text_add(to, "%s%s%d", k ? ", " : "", field, k);
    mf_text_append(to, ";\n};\n\n");
}

/* The parts of state `from` as what leaves on a side are called. */
static void emit_leaves(const char *type, char from, int side, int count, struct gpu_text *to)
{
    mf_text_add(to, "    const %s ", type);
    for (int k = 0; k < count; k++)
        mf_text_add(to, "%sx%d_%d = %c.p%d", k ? ", " : "", side, k, from, k);
    mf_text_append(to, ";\n");
}

static void emit_user(const struct recipe *recipe, int r, struct gpu_text *to)
{
    const enum cls cls = mf_dtypes[recipe->type].cls;
    const char *type = mf_class_type[cls];
    emit_struct(type, "", "p", r, recipe->part_count, to);
    mf_text_add(to, "static inline struct user%d user%d_identity(void)\n{\n    struct user%d s;\n", r, r, r);
    for (int k = 0; k < recipe->part_count; k++) {
        mf_text_add(to, "    s.p%d = ", k);
        mf_emit_constant(cls, recipe->identity[k], to);
        mf_text_append(to, ";\n");
    }
    mf_text_add(to, "    return s;\n}\n\nstatic inline struct user%d user%d_lift(", r, r);
    for (int k = 0; k < recipe->arg_count; k++)
        mf_text_add(to, "%s%s x0_%d", k ? ", " : "", type, k);
    mf_text_add(to, ")\n{\n    struct user%d s;\n", r);
    emit_step(&recipe->lift, "p", to);
    mf_text_add(to,
                "static inline struct user%d user%d_combine(struct user%d a, struct user%d b)\n{\n    struct user%d "
                "s;\n",
                r, r, r, r, r);
    emit_leaves(type, 'a', 0, recipe->part_count, to);
    emit_leaves(type, 'b', 1, recipe->part_count, to);
    emit_step(&recipe->combine, "p", to);
    emit_struct(type, "_results", "y", r, recipe->finish.count, to);
    mf_text_add(to,
                "static inline struct user%d_results user%d_finish(struct user%d a)\n{\n    struct user%d_results s;\n",
                r, r, r, r);
    emit_leaves(type, 'a', 0, recipe->part_count, to);
    emit_step(&recipe->finish, "y", to);
}

void mf_emit_users(const struct problem *problem, struct gpu_text *to)
{
    int any = mf_emit_has_kind(problem, RED_USER);
    /* an element that is there but outside of its window is not present, and an identity to users' operations */
    mf_text_add(to, "#define PRESENCE(there, inside) %s\n\n",
                any ? "((there) ? (inside) ? 1 : -1 : 0)" : "((there) && (inside))");
    for (int r = 0; r < problem->program.reducer_count; r++)
        if (problem->program.reducer[r].kind == RED_USER)
            emit_user(problem->program.reducer[r].user->recipe, r, to);
}

static void emit_arguments(const struct reducer *reducer, int r, struct gpu_text *to)
{
    mf_text_add(to, "x.a%d", r);
    for (int a = 1; a < reducer->arg_count; a++)
        mf_text_add(to, ", x.a%d_%d", r, a);
}

void mf_emit_user_chain(const struct problem *problem, int r, struct gpu_text *to)
{
    mf_text_add(to,
                "    if (there) {\n        struct user%d y = user%d_identity();\n        if (present)\n"
                "            y = user%d_lift(",
                r, r, r);
    emit_arguments(&problem->program.reducer[r], r, to);
    mf_text_add(to, ");\n        if (step)\n            y = user%d_combine(s->r%d, y);\n        s->r%d = y;\n    }\n",
                r, r, r);
}

void mf_emit_user_combine(int r, struct gpu_text *to)
{
    mf_text_add(to,
                "    if (a.some && b.some)\n        c.r%d = user%d_combine(a.r%d, b.r%d);\n    else if (a.some)\n"
                "        c.r%d = a.r%d;\n    else\n        c.r%d = b.r%d;\n",
                r, r, r, r, r, r, r, r);
}

int mf_emit_keeps_order(const struct reducer *reducer)
{
    return reducer->kind == RED_USER && reducer->user->recipe && reducer->user->recipe->ordered;
}

void mf_emit_ordered(const struct problem *problem, struct gpu_text *to)
{
    const struct program *program = &problem->program;
    mf_text_append(to, "static inline struct state ordered_state(struct element x, int presence)\n{\n"
                       "    struct state s = state_identity();\n    s.some = presence != 0;\n");
    for (int r = 0; r < program->reducer_count; r++)
        if (mf_emit_keeps_order(&program->reducer[r])) {
            mf_text_add(to, "    if (presence > 0)\n        s.r%d = user%d_lift(", r, r);
            emit_arguments(&program->reducer[r], r, to);
            mf_text_append(to, ");\n");
        }
    mf_text_append(to, "    return s;\n}\n\nstatic inline struct state combine_ordered(struct state a, struct state b)"
                       "\n{\n    struct state c = a;\n");
    for (int r = 0; r < program->reducer_count; r++)
        if (mf_emit_keeps_order(&program->reducer[r]))
            mf_emit_user_combine(r, to);
    mf_text_append(to, "    c.some = a.some | b.some;\n    return c;\n}\n\n"
                       "static inline struct state with_others(struct state s, struct state others)\n{\n");
    for (int r = 0; r < program->reducer_count; r++)
        if (mf_emit_keeps_order(&program->reducer[r]))
            mf_text_add(to, "    others.r%d = s.r%d;\n", r, r);
    mf_text_append(to, "    return others;\n}\n\n");
}

void mf_emit_written_order(const struct problem *problem, const struct gpu_slots *slots, struct gpu_text *to)
{
    const struct nest *nest = &problem->written;
    mf_text_append(to, "#define MOVE_AS_WRITTEN(v, p)");
    for (int l = nest->kept + nest->reduced - 1; l >= nest->kept; l--) {
        for (int s = 0; s < slots->count; s++)
            if (problem->map_uses[slots->input[s]] && nest->in[slots->input[s]][l])
                mf_text_add(to, " (p).i%d += (v) %% %" PRId64 " * (%" PRId64 ");", s, nest->size[l],
                            nest->in[slots->input[s]][l]);
        for (int w = 0; w < nest->window_count; w++)
            if (nest->window[w].step[l])
                mf_text_add(to, " (p).window[%d] += (v) %% %" PRId64 " * (%" PRId64 ");", w, nest->size[l],
                            nest->window[w].step[l]);
        mf_text_add(to, " (v) /= %" PRId64 ";", nest->size[l]);
    }
    mf_text_append(to, "\n");
}
