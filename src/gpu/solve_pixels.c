/* Solver "pixels" of a GPU: convolutions of at most 4 channels with windows of at most 3 x 3 that may leave the
 * picture, on tensor cores (kernels/pixels.cl). The picture is read where it is, mapped, and not copied into a padded
 * one before: sum(f16(a / 255) * b), b being f16, or bf16 likewise. "pixels:rounded": of f32 whose values have 11 bits
 * on both sides; others are ignored. Its order of adding is the instruction's, zeros beside a window count as terms (an
 * infinity or a NaN reaches the sums of the positions beside its own), so it runs by name only.
 *
 * With plan->pool, the greatest of 2 x 2 positions are the outputs: mf_plan_create_pooled. */
#include <stdio.h>
#include <string.h>

#include "product.h"
#include "texts.h"

enum {
    MOST_CHANNELS = 4,
    MOST_TAPS = 3,
    MOST_SIZE = 1 << 28,
    COLUMNS = 16,
    TILE_DOWN = 16,
    TILE_ACROSS = 16,
    WARPS = 8
};

/* Loops of positions, of windows' rows and places, of channels (-1: none) and columns; the windows down and across. */
struct pixels {
    int x, y, down, across, i, j, channel, column, window[2];
    int64_t columns;
    struct gpu_contraction contraction;
    const struct product_type *type;
};

/* ---- which folds ---- */

/* The window's kept and reduced loops, by each of which it goes on by one. */
static int find_steps(const struct nest *nest, int w, int *kept, int *reduced)
{
    *kept = *reduced = -1;
    for (int l = 0; l < nest->kept + nest->reduced; l++) {
        int *const found = l < nest->kept ? kept : reduced;
        if (!nest->window[w].step[l])
            continue;
        if (nest->window[w].step[l] != 1 || *found >= 0)
            return 0;
        *found = l;
    }
    return *kept >= 0 && *reduced >= 0 && nest->size[*reduced] <= MOST_TAPS;
}

/* Rows are what the first output has further apart. */
static int find_windows(const struct problem *problem, struct pixels *p)
{
    const struct nest *nest = &problem->memory;
    const int64_t *stride = nest->in[p->x];
    int kept[2], reduced[2];
    if (nest->window_count != 2 || nest->window[0].input != p->x || nest->window[1].input != p->x ||
        !find_steps(nest, 0, &kept[0], &reduced[0]) || !find_steps(nest, 1, &kept[1], &reduced[1]) ||
        kept[0] == kept[1] || reduced[0] == reduced[1])
        return 0;
    const int first = nest->out[0][kept[0]] < nest->out[0][kept[1]];
    p->window[0] = first;
    p->window[1] = !first;
    p->down = kept[first];
    p->across = kept[!first];
    p->i = reduced[first];
    p->j = reduced[!first];
    for (int w = 0; w < 2; w++)
        if (nest->window[w].extent > MOST_SIZE || nest->window[w].offset < -MOST_SIZE ||
            nest->window[w].offset > MOST_SIZE)
            return 0;
    return stride[p->down] == stride[p->i] && stride[p->across] == stride[p->j] && nest->out[0][p->across] > 0;
}

static int find_channels(const struct nest *nest, struct pixels *p)
{
    p->channel = -1;
    for (int l = nest->kept; l < nest->kept + nest->reduced; l++) {
        if (l == p->i || l == p->j)
            continue;
        if (p->channel >= 0 || nest->size[l] > MOST_CHANNELS)
            return 0;
        p->channel = l;
    }
    return 1;
}

/* The one operand of a node. */
enum { NONE = -1, SEVERAL = -2 };
static int operand_of(const struct pool *pool, int node)
{
    const struct node *n = &pool->node[node];
    int found = n->op == OP_OPERAND ? n->index : NONE;
    for (int k = 0; k < 3; k++) {
        const int below = n->arg[k] >= 0 ? operand_of(pool, n->arg[k]) : NONE;
        if (below == SEVERAL || (below >= 0 && found >= 0 && below != found))
            return SEVERAL;
        found = below >= 0 ? below : found;
    }
    return found;
}

/* Which factor is the picture and which the weights, an operand as it is; 16-bit ones go with a picture that was cast
 * to their type, which shared memory's does anyhow. */
static int find_operands(const struct problem *problem, struct pixels *p)
{
    const struct pool *map = &problem->program.map;
    int *node = p->contraction.node;
    if (map->node[node[1]].op != OP_OPERAND ||
        (problem->memory.window_count && problem->memory.window[0].input == map->node[node[1]].index)) {
        const int picture = node[1];
        node[1] = node[0];
        node[0] = picture;
    }
    if (map->node[node[1]].op != OP_OPERAND)
        return 0;
    p->y = map->node[node[1]].index;
    p->type = mf_gpu_products_type(problem->in_type[p->y]);
    if (!p->type)
        return 0;
    const struct node *x = &map->node[node[0]];
    const int is_cast = x->op == OP_CAST && x->dtype == p->type->type;
    if (p->type->type != DT_f32 && !is_cast && !(x->op == OP_OPERAND && problem->in_type[x->index] == p->type->type))
        return 0;
    if (is_cast && map->node[x->arg[0]].cls == CLS_F32) /* rounded in shared memory */
        node[0] = x->arg[0];
    p->x = operand_of(map, node[0]);
    return p->x >= 0 && map->node[node[0]].cls == CLS_F32;
}

/* Rows' lists keep only what tells pictures; one loop is along the columns. */
static int find_columns(const struct problem *problem, struct pixels *p)
{
    struct factor_loops *loops = &p->contraction.loops;
    int others = 0;
    mf_factors_loops(problem, p->contraction.node, loops);
    if (loops->count[1] != 1)
        return 0;
    p->column = loops->loop[1][0];
    p->columns = problem->memory.size[p->column];
    for (int l = 0; l < loops->count[0]; l++)
        if (loops->loop[0][l] != p->down && loops->loop[0][l] != p->across)
            loops->loop[0][others++] = loops->loop[0][l];
    for (int l = 0; l < loops->count[FACTORS]; l++) { /* a picture may be there again and again */
        if (problem->memory.in[p->y][loops->loop[FACTORS][l]])
            return 0;
        loops->loop[0][others++] = loops->loop[FACTORS][l];
    }
    loops->count[0] = others;
    loops->count[FACTORS] = 0;
    return 1;
}

/* Whether the finish part's operands are the same for all positions. */
static int finishes_alike(const struct problem *problem, const struct pixels *p)
{
    for (int l = 0; l < problem->memory.kept; l++)
        if (l != p->column && mf_gpu_finish_varies(problem, l))
            return 0;
    return 1;
}

static int64_t over(int64_t n, int64_t by)
{
    return (n + by - 1) / by;
}

/* Tiles of all pictures. */
static int64_t tiles_of(const struct problem *problem, const struct pixels *p)
{
    const int64_t *size = problem->memory.size;
    return problem->kept_total / size[p->down] / size[p->across] / p->columns * over(size[p->down], 2 * TILE_DOWN) *
           over(size[p->across], 2 * TILE_ACROSS);
}

/* Whether a tile's elements are so many that an int tells them from its first one on. */
static int reaches_far(const struct problem *problem, const struct pixels *p)
{
    const int64_t *stride = problem->memory.in[p->x], most = INT32_MAX / (4 * (TILE_DOWN + TILE_ACROSS));
    return stride[p->down] > most || stride[p->down] < -most || stride[p->across] > most || stride[p->across] < -most;
}

static int find(const struct mf_plan *plan, struct pixels *p)
{
    enum { MOST_TILES = 1 << 30 };
    const struct problem *problem = &plan->problem;
    const struct program *program = &problem->program;
    const struct reducer *reducer = &program->reducer[0];
    const int architecture = MF_GPU_LIMITS(plan->device->gpu)->architecture;
    if ((architecture && architecture < LEAST_ARCHITECTURE) || program->reducer_count != 1 ||
        problem->output_count != 1 || program->uses_count || reducer->kind != RED_FOLD || reducer->fold != FOLD_SUM ||
        reducer->cls != CLS_F32 || program->map.node[reducer->arg[0]].op != OP_mul || !problem->kept_total ||
        !mf_factors_find(&program->map, reducer->arg[0], p->contraction.node) ||
        !mf_gpu_multiplies_factors(program, &p->contraction) || !find_operands(problem, p))
        return 0;
    return find_windows(problem, p) && find_channels(&problem->memory, p) && find_columns(problem, p) &&
           finishes_alike(problem, p) && !reaches_far(problem, p) && problem->memory.size[p->down] <= MOST_SIZE &&
           problem->memory.size[p->across] <= MOST_SIZE && p->columns <= MOST_SIZE &&
           tiles_of(problem, p) <= MOST_TILES / over(p->columns, COLUMNS);
}

static int applicable(const struct mf_plan *plan)
{
    struct pixels p = {0};
    const int64_t *size = plan->problem.memory.size;
    return find(plan, &p) &&
           (!plan->pool[0] || (size[p.down] % 2 == 0 && size[p.across] % 2 == 0 && size[p.down] == plan->pool_of[0] &&
                               size[p.across] == plan->pool_of[1]));
}

/* ---- plans ---- */

static void write_stride(struct gpu_text *to, const char *name, int slot, int loop)
{
    if (loop < 0)
        mf_text_add(to, "#define %s 0\n", name);
    else
        mf_text_add(to, "#define %s in_stride(S, %d, %d)\n", name, slot, loop);
}

static void write_texts(const struct mf_plan *plan, const struct pixels *p, struct gpu_choice *choice)
{
    const struct problem *problem = &plan->problem;
    const int is_cuda = MF_GPU_LIMITS(plan->device->gpu)->dlpack == 2, item = mf_dtypes[p->type->type].size;
    struct gpu_slots slots;
    mf_emit_slots(problem, &slots);
    const int x = slots.of[p->x], y = slots.of[p->y];
    mf_text_add(&choice->macros,
                "#define ITEM %d\n#define CLUSTER 1\n#define IN_TREE 0\n#define MMA_NAME \"%s\"\n"
                "#define MMA_SUM(x) \"+f\"(x)\n#define LOAD(x) %s\n#define STORE_PAIR store_pair_%s\n"
                "typedef float sum_t;\ntypedef uint%d_t bits_t;\n"
                "#define TILE_DOWN %d\n#define TILE_ACROSS %d\n#define TAPS_DOWN %d\n#define TAPS_ACROSS %d\n"
                "#define CHANNELS %d\n#define POOL %d\n#define LOOP_DOWN %d\n#define LOOP_ACROSS %d\n#define LOOP_I "
                "%d\n#define LOOP_J %d\n#define LOOP_COLUMNS %d\n#define WINDOW_DOWN %d\n#define WINDOW_ACROSS %d\n"
                "#define SLOT_X %d\n#define SLOT_Y %d\n#define PLACE_X i%d\n#define RAW_X x%d\n#define ELEMENT_X "
                "in%d_t\n#define ELEMENTS_X in%d\n#define ELEMENTS_Y in%d\n",
                item, p->type->instruction, p->type->emulated, p->type->type == DT_bf16 ? "bf16" : "f16", 8 * item,
                TILE_DOWN, TILE_ACROSS, (int)problem->memory.size[p->i], (int)problem->memory.size[p->j],
                p->channel < 0 ? 1 : (int)problem->memory.size[p->channel], plan->pool[0] != 0, p->down, p->across,
                p->i, p->j, p->column, p->window[0], p->window[1], x, y, x, x, x, x, y);
    write_stride(&choice->macros, "CHANNEL_STRIDE", x, p->channel);
    write_stride(&choice->macros, "CHANNEL_STRIDE_Y", y, p->channel);
    mf_emit_loops(&p->contraction.loops, &choice->functions);
    mf_text_append(&choice->functions, mf_text_terms_cl);
    mf_text_append(&choice->functions, is_cuda ? mf_text_tensor_mma_cu : mf_text_tensor_mma_cl);
    mf_text_append(&choice->functions, is_cuda ? mf_text_product_mma_cu : mf_text_product_mma_cl);
    mf_emit_factor(problem, &slots, &p->contraction, 0, &choice->functions);
}

static mf_status make(struct mf_plan *plan)
{
    enum { BESIDE = 2, VECTOR = 4 };
    struct pixels p = {0};
    const int64_t *size = plan->problem.memory.size;
    find(plan, &p);
    const int is_f32 = p.type->type == DT_f32;
    if (is_f32 ? !plan->form || strcmp(plan->form, "rounded") != 0 : plan->form && strcmp(plan->form, "full") != 0)
        return mf_fail(MF_ERROR_ARGUMENT, "solver pixels has no form \"%.40s\" for %s; the form is %s",
                       plan->form ? plan->form : "", mf_dtypes[p.type->type].name, is_f32 ? "rounded" : "full");
    plan->form = NULL;
    struct gpu_choice choice = {
        .kernel = mf_text_pixels_cl, .threads = WARPS * GPU_WARP, .vector = VECTOR, .flat = 1, .beside = BESIDE};
    const int64_t tiles = tiles_of(&plan->problem, &p), right = over(p.columns, COLUMNS);
    const int64_t room = over((int64_t)BESIDE * MF_GPU_LIMITS(plan->device->gpu)->multiprocessors, right);
    choice.own[0] = over(size[p.across], 2 * TILE_ACROSS);
    choice.own[1] = over(size[p.down], 2 * TILE_DOWN);
    choice.own[2] = mf_gpu_divisor(choice.own[0]);
    choice.own[3] = mf_gpu_divisor(choice.own[1]);
    choice.own[4] = tiles;
    choice.own[5] = over(tiles, over(tiles, room)); /* as many tiles for each block */
    choice.own[6] = p.columns;
    choice.own[7] = right;
    choice.blocks = choice.own[5] * right;
    if (plan->pool[0])
        mf_gpu_pool_output(plan, p.down, p.across);
    write_texts(plan, &p, &choice);
    snprintf(choice.text, sizeof choice.text, "%lld tiles of %d x %d positions x %d of %lld columns, %s%s",
             (long long)tiles, 2 * TILE_DOWN, 2 * TILE_ACROSS, COLUMNS, (long long)p.columns,
             is_f32 ? "f32 of 11 bits" : mf_dtypes[p.type->type].name, plan->pool[0] ? ", the greatest of 2 x 2" : "");
    return mf_gpu_make(plan, &choice);
}

const struct solver mf_gpu_pixels = {
    "pixels",       "convolutions of few channels on tensor cores, read where they are, in any order",
    applicable,     make,
    mf_gpu_execute, mf_gpu_print,
    mf_gpu_forget,
};
