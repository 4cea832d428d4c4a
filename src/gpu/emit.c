/* From a program (expr.h) to the text of its functions. Every value is one constant, named by its node: v3 of the map,
 * w3 of the finish. The functions called are those of vocab/, so the bits are the reference's. */
#include "emit.h"

#include <inttypes.h>
#include <math.h>

#include "../scalar.h"
#include "emit_reducers.h"

const char *const mf_emit_storage[DT_COUNT] = {
#define DTYPE(name, bytes, code, bits, cls, type) [DT_##name] = #type,
#include "../dtypes.def"
#undef DTYPE
};
static const char *const map_name[] = {
#define MAP(name, arity, domain, result) #name,
#include "../ops.def"
#undef MAP
};

void mf_emit_slots(const struct problem *problem, struct gpu_slots *slots)
{
    slots->count = 0;
    for (int i = 0; i < problem->input_count; i++) {
        slots->of[i] = problem->map_uses[i] || problem->finish_uses[i] ? slots->count : -1;
        if (slots->of[i] >= 0)
            slots->input[slots->count++] = i;
    }
}

/* ---- nodes ---- */

void mf_emit_mark(const struct pool *pool, int node, char *used)
{
    if (used[node])
        return;
    used[node] = 1;
    for (int k = 0; k < 3; k++)
        if (pool->node[node].arg[k] >= 0)
            mf_emit_mark(pool, pool->node[node].arg[k], used);
}

void mf_emit_constant(enum cls cls, union value value, struct gpu_text *to)
{
    uint32_t bits;
    switch (cls) {
    case CLS_F32:
        memcpy(&bits, &value.f32, sizeof bits);
        mf_text_add(to, "mf_bits_f32(0x%08" PRIx32 "u)", bits);
        break;
    case CLS_F64:
        mf_text_add(to, "mf_bits_f64(0x%" PRIx64 "ul)", value.u64);
        break;
    default:
        mf_text_add(to, "(%s)0x%" PRIx64 "ul", mf_class_type[cls], value.u64);
    }
}

/* A part of a reducer's state, a result of a user's operation, or (without a problem) a leaf of a recipe's step. */
static void emit_state(const struct problem *problem, const struct node *node, struct gpu_text *to)
{
    static const char *const parts[][2] = {
        [RED_FOLD] = {"", ""}, [RED_MOMENTS] = {"_mean", "_m2"}, [RED_LSE] = {"_m", "_s"}, [RED_ARG] = {"", "_at"}};
    if (!problem) {
        mf_text_add(to, "x%d_%d", node->index, node->part);
        return;
    }
    const struct program *program = &problem->program;
    if (program->reducer[node->index].kind == RED_USER)
        mf_text_add(to, "z%d.y%d", node->index, node->part);
    else
        mf_text_add(to, "s.r%d%s", node->index, parts[program->reducer[node->index].kind][node->part]);
}

static void emit_node(const struct problem *problem, const struct gpu_slots *slots, const struct pool *pool, int i,
                      char letter, struct gpu_text *to)
{
    const struct node *node = &pool->node[i];
    const char *cls = mf_class_name[node->cls];
    mf_text_add(to, "    const %s %c%d = ", mf_class_type[node->cls], letter, i);
    switch (node->op) {
    case OP_OPERAND:
        mf_text_add(to, "mf_load_%s(r.x%d)", mf_dtypes[problem->in_type[node->index]].name, slots->of[node->index]);
        break;
    case OP_CONST:
        mf_emit_constant(node->cls, node->value, to);
        break;
    case OP_CONVERT:
        if (mf_emit_is_truth(pool, node->arg[0])) { /* whatever the class: converting takes longer */
            mf_text_add(to, "%c%d != 0", letter, node->arg[0]);
            break;
        }
        mf_text_add(to, "mf_convert_%s_%s(%c%d)", mf_class_name[pool->node[node->arg[0]].cls], cls, letter,
                    node->arg[0]);
        break;
    case OP_CAST: {
        const char *type = mf_dtypes[node->dtype].name;
        mf_text_add(to, "mf_load_%s(mf_store_%s_%s(%c%d))", type, type, mf_class_name[pool->node[node->arg[0]].cls],
                    letter, node->arg[0]);
        break;
    }
    case OP_STATE:
        emit_state(problem, node, to);
        break;
    case OP_COUNT:
        mf_text_add(to, "mf_convert_i64_%s(count)", cls);
        break;
    case OP_logsum:
        mf_text_add(to, "log_of_%s(%c%d, %c%d)", cls, letter, node->arg[0], letter, node->arg[1]);
        break;
    default:
        mf_text_add(to, "mf_%s_%s(", map_name[node->op - OP_FIRST_MAP], cls);
        for (int k = 0; k < 3 && node->arg[k] >= 0; k++)
            mf_text_add(to, "%s%c%d", k ? ", " : "", letter, node->arg[k]);
        mf_text_append(to, ")");
    }
    mf_text_append(to, ";\n");
}

void mf_emit_pool(const struct problem *problem, const struct gpu_slots *slots, const struct pool *pool,
                  const char *used, char letter, struct gpu_text *to)
{
    for (int i = 0; i < pool->count; i++)
        if (used[i])
            emit_node(problem, slots, pool, i, letter, to);
}

/* ---- tensors ---- */

static void emit_list(const char *name, const struct gpu_slots *slots, const int *uses, struct gpu_text *to)
{
    mf_text_add(to, "#define %s(X)", name);
    for (int s = 0; s < slots->count; s++)
        if (uses[slots->input[s]])
            mf_text_add(to, " X(%d)", s);
    mf_text_append(to, "\n");
}

/* Strides of 0 and 1 are constants: they make an index much cheaper, and there are few such patterns. */
static void emit_strides(const char *name, const struct problem *problem, const struct gpu_slots *slots, int outputs,
                         struct gpu_text *to)
{
    const struct nest *nest = &problem->memory;
    int count = outputs ? problem->output_count : slots->count,
        loops = outputs ? nest->kept : nest->kept + nest->reduced;
    mf_text_add(to, "static inline int64_t %s_stride(shape_ptr S, int s, int l)\n{\n", name);
    for (int s = 0; s < count; s++)
        for (int l = 0; l < loops; l++) {
            int64_t stride = outputs ? nest->out[s][l] : nest->in[slots->input[s]][l];
            if (stride == 0 || stride == 1)
                mf_text_add(to, "    if (s == %d && l == %d)\n        return %d;\n", s, l, (int)stride);
        }
    mf_text_add(to, "    return S->%s[s][l];\n}\n\n", name);
}

int mf_emit_is_flat(const struct nest *nest, const int64_t *stride)
{
    int64_t step = 1;
    for (int l = nest->kept - 1; l >= 0; l--) {
        if (stride[l] != step)
            return 0;
        step *= nest->size[l];
    }
    return 1;
}

/* FLAT_IN_s, FLAT_OUT_k: there the loops need not be taken apart. */
static void emit_flat(const struct problem *problem, const struct gpu_slots *slots, struct gpu_text *to)
{
    const struct nest *nest = &problem->memory;
    for (int s = 0; s < slots->count; s++)
        mf_text_add(to, "#define FLAT_IN_%d %d\n", s, mf_emit_is_flat(nest, nest->in[slots->input[s]]));
    for (int k = 0; k < problem->output_count; k++)
        mf_text_add(to, "#define FLAT_OUT_%d %d\n", k, mf_emit_is_flat(nest, nest->out[k]));
}

static void emit_tensors(const struct problem *problem, const struct gpu_slots *slots, int vector, struct gpu_text *to)
{
    for (int s = 0; s < slots->count; s++) {
        const char *type = mf_emit_storage[problem->in_type[slots->input[s]]];
        mf_text_add(to, "typedef %s in%d_t;\n", type, s);
    }
    for (int k = 0; k < problem->output_count; k++)
        mf_text_add(to, "typedef %s out%d_t;\n", mf_emit_storage[problem->out_type[k]], k);
    mf_text_append(to, "#define POINTERS");
    for (int s = 0; s < slots->count; s++)
        mf_text_add(to, " GLOBAL const in%d_t *in%d,", s, s);
    for (int k = 0; k < problem->output_count; k++)
        mf_text_add(to, " GLOBAL out%d_t *out%d,", k, k);
    mf_text_append(to, "\n#define POINTER_NAMES");
    for (int s = 0; s < slots->count; s++)
        mf_text_add(to, " in%d,", s);
    for (int k = 0; k < problem->output_count; k++)
        mf_text_add(to, " out%d,", k);
    mf_text_append(to, "\n#define TENSORS(b) {");
    for (int s = 0; s < slots->count; s++)
        mf_text_add(to, "in%d + (b).in[%d], ", s, s);
    for (int k = 0; k < problem->output_count; k++)
        mf_text_add(to, "out%d + (b).out[%d]%s", k, k, k + 1 < problem->output_count ? ", " : "}\n");
    mf_text_append(to, "struct tensors {\n");
    for (int s = 0; s < slots->count; s++)
        mf_text_add(to, "    GLOBAL const in%d_t *in%d;\n", s, s);
    for (int k = 0; k < problem->output_count; k++)
        mf_text_add(to, "    GLOBAL out%d_t *out%d;\n", k, k);
    mf_text_append(to, "};\n");
    for (int s = 0; s < slots->count && vector > 1; s++) {
        int bytes = vector * mf_dtypes[problem->in_type[slots->input[s]]].size;
        mf_text_add(to, "struct ALIGNED(%d) in%d_vector {\n    in%d_t v[%d];\n};\n", bytes < 16 ? bytes : 16, s, s,
                    vector);
    }
    for (int k = 0; k < problem->output_count && vector > 1; k++) {
        int bytes = vector * mf_dtypes[problem->out_type[k]].size;
        mf_text_add(to, "struct ALIGNED(%d) out%d_vector {\n    out%d_t v[%d];\n};\n", bytes < 16 ? bytes : 16, k, k,
                    vector);
    }
}

/* The operands' values that one part of the expression takes. */
static void emit_raw(const char *name, const struct gpu_slots *slots, const int *uses, struct gpu_text *to)
{
    mf_text_add(to, "struct %s {\n", name);
    for (int s = 0; s < slots->count; s++)
        if (uses[slots->input[s]])
            mf_text_add(to, "    in%d_t x%d;\n", s, s);
    mf_text_append(to, "    int none;\n};\n\n");
}

static void emit_map(const struct problem *problem, const struct gpu_slots *slots, struct gpu_text *to)
{
    static const char *const argument[MAX_REDUCER_ARGS] = {"", "_1", "_2", "_3", "_4", "_5", "_6", "_7"};
    const struct program *program = &problem->program;
    char used[MAX_NODES] = {0};
    mf_text_append(to, "struct element {\n");
    for (int r = 0; r < program->reducer_count; r++)
        for (int a = 0; a < program->reducer[r].arg_count; a++) {
            mf_text_add(to, "    %s a%d%s;\n",
                        mf_emit_is_narrow(problem, r) ? "int" : mf_class_type[program->reducer[r].cls], r, argument[a]);
            mf_emit_mark(&program->map, program->reducer[r].arg[a], used);
        }
    mf_text_append(to, "    int none;\n};\n\nstatic inline struct element map_element(struct raw r)\n{\n"
                       "    struct element x;\n");
    mf_emit_pool(problem, slots, &program->map, used, 'v', to);
    for (int r = 0; r < program->reducer_count; r++)
        for (int a = 0; a < program->reducer[r].arg_count; a++)
            mf_text_add(to, "    x.a%d%s = %sv%d;\n", r, argument[a], mf_emit_is_narrow(problem, r) ? "(int)" : "",
                        program->reducer[r].arg[a]);
    mf_text_append(to, "    x.none = 0;\n    return x;\n}\n\n");
}

/* Whether an output's values stay floats until two are stored together, as one word. */
static int is_paired(const struct problem *problem, int output)
{
    const struct program *program = &problem->program;
    enum dtype type = problem->out_type[output];
    return (type == DT_f16 || type == DT_bf16) && program->finish.node[program->output[output]].cls == CLS_F32;
}

/* The words that a vector of outputs is, where they are 1, 2 or 4: of pairs, or of numbers of 2 or 4 bytes; else 0. */
static int vector_words(const struct problem *problem, int k, int vector)
{
    const int item = mf_dtypes[problem->out_type[k]].size, bytes = vector * item;
    return (item == 2 || item == 4) && (bytes == 4 || bytes == 8 || bytes == 16) ? bytes / 4 : 0;
}

/* Stores a vector where it is aligned. */
static void emit_vector_store(const struct problem *problem, int k, int vector, struct gpu_text *to)
{
    const int words = vector_words(problem, k, vector);
    const enum dtype type = problem->out_type[k];
    mf_text_add(to, "static inline void store_vector%d(GLOBAL out%d_t *to, const struct values v[%d])\n{\n", k, k,
                vector);
    for (int i = 0; i < words; i++)
        if (is_paired(problem, k))
            mf_text_add(to, "    const uint32_t w%d = store_pair_%s(v[%d].y%d, v[%d].y%d);\n", i, mf_dtypes[type].name,
                        2 * i, k, 2 * i + 1, k);
        else if (mf_dtypes[type].size == 2)
            mf_text_add(to, "    const uint32_t w%d = (uint32_t)(uint16_t)v[%d].y%d | (uint32_t)v[%d].y%d << 16;\n", i,
                        2 * i, k, 2 * i + 1, k);
        else
            mf_text_add(to, "    const uint32_t w%d = %sv[%d].y%d);\n", i,
                        type == DT_f32 ? "mf_f32_bits(" : "(uint32_t)(", i, k);
    mf_text_append(to, words == 1   ? "    *(GLOBAL uint32_t *)to = w0;\n}\n\n"
                       : words == 2 ? "    store_two(to, w0, w1);\n}\n\n"
                       : words == 4 ? "    store_four(to, w0, w1, w2, w3);\n}\n\n"
                                    : "");
    if (!words)
        mf_text_add(to, "    *(GLOBAL struct out%d_vector *)to = stored_vector%d(v);\n}\n\n", k, k);
}

/* From values to what is stored: one, and a vector of them. */
static void emit_stores(const struct problem *problem, int vector, struct gpu_text *to)
{
    mf_text_append(to, "static inline struct results stored(struct values v)\n{\n    struct results y;\n");
    for (int k = 0; k < problem->output_count; k++)
        if (is_paired(problem, k))
            mf_text_add(to, "    y.y%d = mf_store_%s_f32(v.y%d);\n", k, mf_dtypes[problem->out_type[k]].name, k);
        else
            mf_text_add(to, "    y.y%d = v.y%d;\n", k, k);
    mf_text_append(to, "    return y;\n}\n\n");
    for (int k = 0; k < problem->output_count && vector > 1; k++) {
        mf_text_add(to,
                    "static inline struct out%d_vector stored_vector%d(const struct values v[%d])\n{\n"
                    "    struct out%d_vector y;\n    UNROLL\n",
                    k, k, vector, k);
        if (is_paired(problem, k))
            mf_text_add(to,
                        "    for (int i = 0; i < %d; i += 2) {\n"
                        "        const uint32_t pair = store_pair_%s(v[i].y%d, v[i + 1].y%d);\n"
                        "        y.v[i] = (uint16_t)pair;\n        y.v[i + 1] = (uint16_t)(pair >> 16);\n    }\n",
                        vector, mf_dtypes[problem->out_type[k]].name, k, k);
        else
            mf_text_add(to, "    for (int i = 0; i < %d; i++)\n        y.v[i] = v[i].y%d;\n", vector, k);
        mf_text_append(to, "    return y;\n}\n\n");
        emit_vector_store(problem, k, vector, to);
    }
}

static void emit_finish(const struct problem *problem, const struct gpu_slots *slots, int vector, struct gpu_text *to)
{
    const struct program *program = &problem->program;
    char used[MAX_NODES] = {0};
    mf_text_append(to, "struct results {\n");
    for (int k = 0; k < problem->output_count; k++) {
        mf_text_add(to, "    out%d_t y%d;\n", k, k);
        mf_emit_mark(&program->finish, program->output[k], used);
    }
    mf_text_append(to, "};\n\nstruct values {\n");
    for (int k = 0; k < problem->output_count; k++)
        if (is_paired(problem, k))
            mf_text_add(to, "    float y%d;\n", k);
        else
            mf_text_add(to, "    out%d_t y%d;\n", k, k);
    mf_text_append(to,
                   "};\n\nstatic inline struct values values_of(struct state s, int64_t count, struct raw_finish r)\n"
                   "{\n    struct values y;\n");
    for (int r = 0; r < program->reducer_count && problem->memory.window_count; r++) {
        int64_t from, into;
        if (mf_reducer_of_nothing(program, &program->reducer[r], &from, &into))
            mf_text_add(to, "    s.r%d = s.r%d == (int64_t)0x%" PRIx64 "ul ? (int64_t)0x%" PRIx64 "ul : s.r%d;\n", r, r,
                        (uint64_t)from, (uint64_t)into, r);
    }
    for (int r = 0; r < program->reducer_count; r++)
        if (program->reducer[r].kind == RED_USER)
            mf_text_add(to, "    const struct user%d_results z%d = user%d_finish(s.r%d);\n", r, r, r, r);
    mf_emit_pool(problem, slots, &program->finish, used, 'w', to);
    for (int k = 0; k < problem->output_count; k++)
        if (is_paired(problem, k))
            mf_text_add(to, "    y.y%d = w%d;\n", k, program->output[k]);
        else
            mf_text_add(to, "    y.y%d = mf_store_%s_%s(w%d);\n", k, mf_dtypes[problem->out_type[k]].name,
                        mf_class_name[program->finish.node[program->output[k]].cls], program->output[k]);
    mf_text_append(to, "    return y;\n}\n\n");
    emit_stores(problem, vector, to);
    mf_text_append(to, "static inline struct results finish(struct state s, int64_t count, struct raw_finish r)\n"
                       "{\n    return stored(values_of(s, count, r));\n}\n\n");
}

static int map_inputs(const struct problem *problem)
{
    int count = 0;
    for (int i = 0; i < problem->input_count; i++)
        count += problem->map_uses[i] != 0;
    return count;
}

/* Whether every window's numbers, and all parts of their sums, are short. */
static int are_windows_short(const struct nest *nest)
{
    enum { MOST = 1 << 30 };
    double reach = 0; /* of all of them */
    for (int w = 0; w < nest->window_count; w++) {
        const struct window *window = &nest->window[w];
        reach += (double)window->extent + fabs((double)window->offset);
        for (int l = 0; l < nest->kept + nest->reduced; l++)
            reach += fabs((double)window->step[l]) * (double)nest->size[l];
    }
    return reach < MOST;
}

/* What the kernels know of windows: their numbers' type, and which of them move with which loops, a bit each. */
static void emit_window_numbers(const struct nest *nest, struct gpu_text *to)
{
    const int loops = nest->kept + nest->reduced, is_short = are_windows_short(nest);
    uint64_t moves = 0;
    for (int w = 0; w < nest->window_count; w++)
        for (int l = 0; l < loops && w * loops + l < 64; l++)
            moves |= (uint64_t)(nest->window[w].step[l] != 0) << (w * loops + l);
    mf_text_add(to, "#define WINDOW %s\n#define WINDOW_NUMBER %s\n#define WINDOW_MOVES ((uint64_t)%" PRIu64 "u)\n",
                is_short ? "int" : "int64_t", is_short ? "uint32_t" : "uint64_t", moves);
}

void mf_emit_program(const struct problem *problem, const struct gpu_slots *slots, int vector, int packed,
                     struct gpu_text *to)
{
    const struct nest *nest = &problem->memory;
    enum { HALF = 1 << 30 };
    int wide = problem->kept_total > HALF || problem->reduced_total > HALF;
    mf_text_add(to,
                "#define INPUTS %d\n#define MAP_INPUTS %d\n#define OUTPUTS %d\n#define KEPT %d\n#define REDUCED "
                "%d\n#define LOOPS %d\n"
                "#define WINDOWS %d\n#define HAS_INDEX %d\n#define HAS_COUNT %d\n#define LOGSUMS %d\n#define "
                "COMMUTES %d\n#define ORDERED %d\n#define MOMENTS %d\n#define STATE_WORDS %d\n"
                "#define WIDE %d\n#define ROOM(n) ((n) > 0 ? (n) : 1)\n",
                slots->count, map_inputs(problem), problem->output_count, nest->kept, nest->reduced,
                nest->kept + nest->reduced, problem->program.reducer_count ? nest->window_count : 0,
                mf_emit_has_kind(problem, RED_ARG), mf_emit_has_count(problem), mf_emit_has_kind(problem, RED_LSE),
                !mf_emit_has_kind(problem, RED_MOMENTS) && !mf_emit_has_kind(problem, RED_USER),
                mf_emit_is_ordered(problem), mf_emit_has_kind(problem, RED_MOMENTS), mf_emit_state_words(problem),
                wide);
    emit_window_numbers(nest, to);
    int bytes = mf_emit_bytes_operand(problem);
    packed = packed && vector % 4 == 0 && mf_emit_packed_bytes(problem) >= 0;
    mf_text_add(to, "#define BYTES %d\n#define PACKED_BYTES %d\n#define FOLD_BYTES fold_bytes_%s\n",
                (bytes >= 0 || packed) && vector % 4 == 0, packed,
                bytes >= 0 ? mf_dtypes[problem->in_type[bytes]].name : "none");
    emit_list("FOR_MAP_INPUTS", slots, problem->map_uses, to);
    emit_list("FOR_FINISH_INPUTS", slots, problem->finish_uses, to);
    mf_text_append(to, "#define FOR_OUTPUTS(X)");
    for (int k = 0; k < problem->output_count; k++)
        mf_text_add(to, " X(%d)", k);
    mf_text_append(to, "\n");
    emit_flat(problem, slots, to);
    emit_tensors(problem, slots, vector, to);
    emit_raw("raw", slots, problem->map_uses, to);
    emit_raw("raw_finish", slots, problem->finish_uses, to);
    emit_map(problem, slots, to);
    mf_emit_users(problem, to);
    mf_emit_states(problem, to);
    if (mf_emit_has_kind(problem, RED_USER))
        mf_emit_ordered(problem, to);
    emit_finish(problem, slots, vector, to);
}

void mf_emit_after_shape(const struct problem *problem, const struct gpu_slots *slots, struct gpu_text *to)
{
    emit_strides("in", problem, slots, 0, to);
    emit_strides("out", problem, slots, 1, to);
    if (mf_emit_has_kind(problem, RED_ARG))
        mf_text_append(to, "static inline int64_t index_of(shape_ptr S, int64_t e);\n");
    mf_emit_chain(problem, to);
    mf_emit_lane_state(problem, to);
}
