/* Solvers "contract", "contract-arg" and "contract-several" of a GPU: a product of two factors that have kept
 * loops of their own, folded (kernels/contract.cl). */
#include <stdio.h>

#include "../term_order.h"
#include "emit_reducers.h"
#include "form.h"
#include "solve_contract.h"
#include "texts.h"

enum {
    VECTOR = MF_GPU_CONTRACT_VECTOR,
    YOUNGEST_OUTPUTS = 32,
    MOST_TILES = 128,
    ROOM_FOR_STEPS = 4096 /* past the last term */
};

/* ---- which folds ---- */

/* The stride of the largest operand of a node along a loop, as a distance. */
static int64_t stride_along(const struct problem *problem, int node, int loop)
{
    const struct node *n = &problem->program.map.node[node];
    int64_t most = 0;
    if (n->op == OP_OPERAND) {
        most = problem->memory.in[n->index][loop];
        return most < 0 ? -most : most;
    }
    for (int k = 0; k < 3; k++) {
        int64_t stride = n->arg[k] >= 0 ? stride_along(problem, n->arg[k], loop) : 0;
        most = stride > most ? stride : most;
    }
    return most;
}

/* Whether all operands of a node can be read in vectors of VECTOR elements along a loop: strides there are 1 (of some)
 * or 0, all others and the loop itself whole vectors. */
static int has_vectors(const struct problem *problem, int node, int loop, int *found)
{
    const struct node *n = &problem->program.map.node[node];
    const struct nest *nest = &problem->memory;
    if (n->op == OP_OPERAND) {
        const int64_t *stride = nest->in[n->index];
        for (int w = 0; w < nest->window_count; w++)
            if (nest->window[w].input == n->index) /* each element is asked whether it is inside */
                return 0;
        for (int l = 0; l < nest->kept + nest->reduced; l++)
            if (l != loop && stride[loop] && stride[l] % VECTOR)
                return 0;
        *found |= stride[loop] == 1;
        return stride[loop] == 1 || stride[loop] == 0;
    }
    for (int k = 0; k < 3; k++)
        if (n->arg[k] >= 0 && !has_vectors(problem, n->arg[k], loop, found))
            return 0;
    return 1;
}

/* How a factor is read: neighbouring terms or positions, several at a time. */
static void choose_reading(const struct problem *problem, struct gpu_contraction *c, int f)
{
    const int last = c->loops.loop[f][c->loops.count[f] - 1], term = problem->memory.kept + problem->memory.reduced - 1;
    int found = 0;
    c->along_terms[f] = stride_along(problem, c->node[f], term) < stride_along(problem, c->node[f], last);
    c->fast_loop[f] = c->along_terms[f] ? term : last;
    c->at_a_time[f] = problem->memory.size[c->fast_loop[f]] % VECTOR == 0 &&
                              has_vectors(problem, c->node[f], c->fast_loop[f], &found) && found
                          ? VECTOR
                          : 1;
}

/* Rows, and columns. */
static void set_factors(const struct problem *problem, struct gpu_contraction *c, int rows, int columns)
{
    const int node[FACTORS] = {rows, columns};
    mf_factors_loops(problem, node, &c->loops);
    for (int f = 0; f < FACTORS; f++) {
        c->node[f] = node[f];
        choose_reading(problem, c, f);
    }
}

static int find_contraction(const struct mf_plan *plan, struct gpu_contraction *c)
{
    const struct problem *problem = &plan->problem;
    int node[FACTORS];
    if (!problem->program.reducer_count || !problem->kept_total || problem->reduced_total < 2 ||
        problem->reduced_total > INT32_MAX - ROOM_FOR_STEPS || problem->program.reducer[0].kind == RED_USER ||
        !mf_factors_find(&problem->program.map, problem->program.reducer[0].arg[0], node))
        return 0;
    mf_factors_loops(problem, node, &c->loops);
    if (!c->loops.count[0] || !c->loops.count[1] || mf_factors_positions(problem, &c->loops, 0) > INT32_MAX ||
        mf_factors_positions(problem, &c->loops, 1) > INT32_MAX)
        return 0;
    if (c->loops.loop[0][c->loops.count[0] - 1] > c->loops.loop[1][c->loops.count[1] - 1])
        set_factors(problem, c, node[1], node[0]);
    else
        set_factors(problem, c, node[0], node[1]);
    return 1;
}

int mf_gpu_contraction_fits(const struct mf_plan *plan, struct gpu_contraction *c)
{
    return !plan->problem.memory.window_count && find_contraction(plan, c);
}

void mf_gpu_contraction_turn(const struct problem *problem, struct gpu_contraction *c)
{
    set_factors(problem, c, c->node[1], c->node[0]);
}

/* Whether tiles are worth while: the smallest one is not nearly empty. */
static int fills_tiles(const struct problem *problem, const struct gpu_contraction *c)
{
    enum { FEW = 24 };
    return mf_factors_positions(problem, &c->loops, 0) * mf_factors_positions(problem, &c->loops, 1) >= FEW;
}

static int is_ordered(const struct reducer *reducer)
{
    return mf_cls_is_float(reducer->cls) && (reducer->fold == FOLD_SUM || reducer->fold == FOLD_PROD);
}

/* Whether a value can stand for what lies outside of windows: of operands of the factors, in a sum of their products or
 * an extreme of their sums, and nobody counts. Places outside have no address, so all parts of one are to fit. */
static int packs_windows(const struct problem *problem, const struct gpu_contraction *c)
{
    enum { MOST_WINDOWS = 4 };
    const struct reducer *reducer = &problem->program.reducer[0];
    const struct node *term = &problem->program.map.node[reducer->arg[0]];
    const struct nest *nest = &problem->memory;
    if (!nest->window_count)
        return 1;
    for (int w = 0; w < nest->window_count; w++)
        if (!problem->map_uses[nest->window[w].input] ||
            !mf_nest_parts_fit(nest, nest->window[w].step, nest->window[w].offset) ||
            !mf_nest_parts_fit(nest, nest->in[nest->window[w].input], 0))
            return 0;
    for (int f = 0; f < FACTORS; f++)
        if (c->node[f] != term->arg[0] && c->node[f] != term->arg[1])
            return 0;
    return nest->window_count <= MOST_WINDOWS && !problem->program.uses_count &&
           ((term->op == OP_mul && reducer->fold == FOLD_SUM) ||
            ((term->op == OP_add || term->op == OP_sub) && mf_cls_is_float(reducer->cls) &&
             (reducer->fold == FOLD_MIN || reducer->fold == FOLD_MAX)));
}

static int applicable(const struct mf_plan *plan)
{
    const struct program *program = &plan->problem.program;
    struct gpu_contraction c;
    return program->reducer_count == 1 && program->reducer[0].kind == RED_FOLD && find_contraction(plan, &c) &&
           packs_windows(&plan->problem, &c) && fills_tiles(&plan->problem, &c) &&
           (!is_ordered(&program->reducer[0]) || plan->problem.reduced_total <= (int64_t)MOST_TILES * TILE);
}

static int arg_applicable(const struct mf_plan *plan)
{
    struct gpu_contraction c;
    return mf_factors_argument(&plan->problem.program) >= 0 && mf_gpu_contraction_fits(plan, &c) &&
           fills_tiles(&plan->problem, &c);
}

static int count_arguments(const struct program *program)
{
    int count = 0;
    for (int r = 0; r < program->reducer_count; r++)
        count += program->reducer[r].kind == RED_ARG;
    return count;
}

static int is_tree(const struct program *program)
{
    int ordered = 0;
    for (int r = 0; r < program->reducer_count; r++)
        ordered |= program->reducer[r].kind == RED_FOLD && is_ordered(&program->reducer[r]);
    return ordered;
}

/* All reducers are of the same two factors. Terms cannot come both in the contract's order and as they are written. */
static int several_applicable(const struct mf_plan *plan)
{
    enum { MOST_WORDS = 8 };
    const struct program *program = &plan->problem.program;
    struct gpu_contraction c;
    int node[FACTORS];
    if (program->reducer_count < 2 || !mf_gpu_contraction_fits(plan, &c) || !fills_tiles(&plan->problem, &c))
        return 0;
    for (int r = 0; r < program->reducer_count; r++) {
        const struct reducer *reducer = &program->reducer[r];
        if ((reducer->kind != RED_FOLD && reducer->kind != RED_ARG) ||
            !mf_factors_find(&program->map, reducer->arg[0], node) ||
            !((node[0] == c.node[0] && node[1] == c.node[1]) || (node[0] == c.node[1] && node[1] == c.node[0])))
            return 0;
    }
    return mf_emit_state_words(&plan->problem) <= MOST_WORDS &&
           (!is_tree(program) ||
            (!count_arguments(program) && plan->problem.reduced_total <= (int64_t)MOST_TILES * TILE));
}

/* ---- tiles ---- */

/* From large to small; a thread has fewer outputs where their values are wide. */
static const struct contract_tile narrow_tiles[] = {{128, 128, 8, 8, 16, 8, 0},
                                                    {128, 64, 8, 8, 16, 8, 0},
                                                    {64, 64, 8, 4, 16, 8, 0},
                                                    {32, 32, 4, 4, 16, 8, 0},
                                                    {16, 16, 2, 2, 16, 8, 0}};
static const struct contract_tile log_tiles[] = {
    {64, 64, 4, 4, 16, 4, 0}, {32, 32, 4, 4, 16, 4, 0}, {16, 16, 2, 2, 16, 8, 0}};
static const struct contract_tile wide_tiles[] = {
    {128, 64, 8, 4, 16, 8, 0}, {64, 64, 4, 4, 16, 8, 0}, {32, 32, 4, 4, 16, 8, 0}, {16, 16, 2, 2, 16, 8, 0}};

int64_t mf_gpu_tile_blocks(const struct problem *problem, const struct gpu_contraction *c,
                           const struct contract_tile *tile)
{
    const int64_t rows = mf_factors_positions(problem, &c->loops, 0),
                  columns = mf_factors_positions(problem, &c->loops, 1);
    return problem->kept_total / rows / columns * ((rows + tile->rows - 1) / tile->rows) *
           ((columns + tile->columns - 1) / tile->columns);
}

int mf_gpu_tile_threads(const struct contract_tile *tile)
{
    return tile->threads ? tile->threads : tile->rows / tile->row_own * (tile->columns / tile->column_own);
}

/* What a multiprocessor takes for its share: its blocks' outputs, and more for each where a thread has few of them or
 * few threads are there to hide each other's waiting. */
static double cost_of(const struct problem *problem, const struct gpu_contraction *c, const struct contract_tile *tile,
                      int multiprocessors)
{
    const int64_t blocks = mf_gpu_tile_blocks(problem, c, tile),
                  share = (blocks + multiprocessors - 1) / multiprocessors;
    const double reads = 1.0 / tile->row_own + 1.0 / tile->column_own,
                 warps = mf_gpu_tile_threads(tile) / 32.0 * (double)share;
    return (double)share * tile->rows * tile->columns * (1 + 1.5 * reads) * (warps < 8 ? 8 / warps : 1);
}

/* Bytes of the wider factor's values. */
static size_t value_bytes(const struct problem *problem, const struct gpu_contraction *c)
{
    const size_t x = mf_cls_size(problem->program.map.node[c->node[0]].cls);
    const size_t y = mf_cls_size(problem->program.map.node[c->node[1]].cls);
    return x > y ? x : y;
}

struct tiles {
    const struct contract_tile *tile;
    int count;
};

/* The tiles that are good for a contraction. In the contract's order, where a factor's neighbouring terms are
 * neighbours in memory but come far apart, larger tiles that read them less often are better than few registers. */
static struct tiles tiles_of(const struct problem *problem, const struct gpu_contraction *c)
{
    enum { NARROW = sizeof narrow_tiles / sizeof *narrow_tiles, WIDE = sizeof wide_tiles / sizeof *wide_tiles };
    const int wide_values = value_bytes(problem, c) > 4; /* of the largest tile there is no room for them */
    if (c->kind == CONTRACT_LOG)
        return (struct tiles){log_tiles, sizeof log_tiles / sizeof *log_tiles};
    if (c->kind == CONTRACT_SEVERAL && mf_emit_state_words(problem) > 2)
        return (struct tiles){wide_tiles + 1, WIDE - 1};
    if (c->kind == CONTRACT_ARGUMENT || c->kind == CONTRACT_SEVERAL ||
        mf_cls_size(problem->program.reducer[0].cls) > 4 || (c->in_tree && !c->along_terms[0] && !c->along_terms[1]))
        return (struct tiles){wide_tiles + wide_values, WIDE - wide_values};
    return (struct tiles){narrow_tiles + 2 * wide_values, NARROW - 2 * wide_values};
}

const struct contract_tile *mf_gpu_choose_tile(const struct problem *problem, const struct gpu_contraction *c,
                                               const struct contract_tile *within, int multiprocessors)
{
    const struct tiles tiles = tiles_of(problem, c);
    const struct contract_tile *best = NULL;
    double least = 0;
    for (int i = 0; i < tiles.count; i++) {
        const struct contract_tile *tile = &tiles.tile[i];
        const double cost = cost_of(problem, c, tile, multiprocessors);
        if ((!within || (tile->rows <= within->rows && tile->columns <= within->columns)) && (!best || cost < least)) {
            best = tile;
            least = cost;
        }
    }
    return best; /* the smallest tile lies within all others */
}

/* ---- the sequence of terms ---- */

/* struct term and struct part of kernels/terms.cl. */
struct term {
    int32_t number, run;
};
struct part {
    int32_t first, end, joins;
};

/* Terms of a block of the order, from *at on; the block starts a part if it has one of its own. */
static void fill_block(const struct term_order *order, const struct term_block *block, int64_t start, int step,
                       struct term *terms, int64_t *at)
{
    for (int l = 0; l < block->leaves; l++) {
        const struct leaf *leaf = &order->leaf[block->leaf + l];
        int joins = leaf->joins + (l == block->leaves - 1 ? block->joins : 0);
        for (int32_t i = 0; i < leaf->count; i++) {
            int64_t room = step - (*at - start) % step, left = leaf->count - i;
            int cut = left > room;
            terms[*at].number = (int32_t)(leaf->first + i * order->step);
            terms[(*at)++].run = (int32_t)((cut ? room : left) * 16 + (cut ? 0 : joins + 1));
        }
    }
}

/* The table of terms, then that of parts: every block of the order is a part, or all are one. From mf_alloc. */
static mf_status make_table(int64_t count, int step, int in_parts, void **table, int64_t *parts, int *levels)
{
    struct term_order order;
    MF_TRY(mf_term_order_make(&order, count, 0));
    *parts = in_parts ? order.block_count : 1;
    *levels = count > TILE ? 17 : 9;
    struct term *terms = mf_alloc((size_t)count * sizeof *terms + (size_t)*parts * sizeof(struct part));
    if (terms) {
        struct part *part = (struct part *)(void *)(terms + count);
        int64_t at = 0, start = 0;
        for (int64_t b = 0; b < order.block_count; b++) {
            start = in_parts ? at : 0;
            fill_block(&order, &order.block[b], start, step, terms, &at);
            part[in_parts ? b : 0] = (struct part){(int32_t)start, (int32_t)at, order.block[b].joins};
        }
    }
    mf_free(order.block);
    *table = terms;
    return terms ? MF_OK : MF_ERROR_MEMORY;
}

/* ---- plans ---- */

/* Whether both factors are operands of floats as they are, read in vectors, without windows, and the fold one run of
 * terms that are gone through once. */
static int is_copied(const struct problem *problem, const struct gpu_contraction *c)
{
    if (c->in_tree || c->two_passes || problem->memory.window_count ||
        (c->kind != CONTRACT_FOLD && c->kind != CONTRACT_LOG))
        return 0;
    for (int f = 0; f < FACTORS; f++) {
        const struct node *node = &problem->program.map.node[c->node[f]];
        if (node->op != OP_OPERAND || problem->in_type[node->index] != DT_f32 || c->at_a_time[f] != VECTOR)
            return 0;
    }
    return 1;
}

/* Whether it is the greatest or least sum or difference of both: with CUDA, where no sum is a NaN with a sign. */
static int is_by_bits(const struct mf_plan *plan, const struct gpu_contraction *c)
{
    const struct reducer *reducer = &plan->problem.program.reducer[0];
    const struct node *term = &plan->problem.program.map.node[reducer->arg[0]];
    const int straight = c->node[0] == term->arg[0] && c->node[1] == term->arg[1];
    const int crossed = c->node[0] == term->arg[1] && c->node[1] == term->arg[0];
    return c->copied && c->kind == CONTRACT_FOLD && MF_GPU_LIMITS(plan->device->gpu)->architecture &&
           (reducer->fold == FOLD_MIN || reducer->fold == FOLD_MAX) && (term->op == OP_add || term->op == OP_sub) &&
           (straight || crossed);
}

/* What lies in shared memory of a tile: STAGE_x and STAGE_y of kernels/copied_side.cl. */
static int64_t tile_bytes(const struct gpu_contraction *c, const struct contract_tile *tile)
{
    const int64_t positions[FACTORS] = {tile->rows, tile->columns};
    int64_t floats = 0;
    for (int f = 0; f < FACTORS; f++)
        floats += c->along_terms[f] ? positions[f] * (tile->step + 4) : positions[f] * tile->step;
    return floats * (int64_t)sizeof(float);
}

static int64_t aligned(int64_t bytes)
{
    return (bytes + 15) / 16 * 16;
}

/* How many parts the sequence is cut into: more while multiprocessors would be idle, of at least LEAST_TERMS. */
static int64_t choose_parts(const struct problem *problem, const struct gpu_contraction *c,
                            const struct contract_tile *tile, int multiprocessors)
{
    enum { LEAST_TERMS = 128 };
    const int64_t blocks = mf_gpu_tile_blocks(problem, c, tile), most = problem->reduced_total / LEAST_TERMS;
    int64_t parts = 2 * (int64_t)multiprocessors / blocks;
    return parts > most ? (most > 1 ? most : 1) : parts > 1 ? parts : 1;
}

static int looks_for_nans(const struct program *program)
{
    int looks = 0;
    for (int r = 0; r < program->reducer_count; r++)
        looks |= program->reducer[r].kind == RED_ARG && mf_cls_is_float(program->reducer[r].cls);
    return looks;
}

void mf_gpu_tile_macros(const struct problem *problem, const struct gpu_contraction *c,
                        const struct contract_tile *tile, const struct contract_tile *flags, struct gpu_text *to)
{
    mf_text_add(to,
                "#define ROWS %d\n#define COLUMNS %d\n#define ROW_OWN %d\n#define COLUMN_OWN %d\n#define STEP %d\n"
                "#define AT_ONCE %d\n#define LOOKS_FOR_NANS %d\n#define TWICE %d\n#define PASSES %d\n",
                tile->rows, tile->columns, tile->row_own, tile->column_own, tile->step, tile->at_once,
                (c->kind == CONTRACT_ARGUMENT || c->kind == CONTRACT_SEVERAL) && looks_for_nans(&problem->program),
                c->kind == CONTRACT_LOG && !c->two_passes, c->two_passes ? 2 : 1);
    if (flags)
        mf_text_add(to, "#define FLAG_ROWS %d\n#define FLAG_COLUMNS %d\n", flags->rows, flags->columns);
}

/* The sequence of terms: its table and parts, and where they lie in the workspace. */
static mf_status plan_terms(const struct problem *problem, const struct gpu_contraction *c,
                            const struct contract_tile *tile, int64_t blocks, int64_t parts, struct gpu_choice *choice,
                            int *levels)
{
    int64_t table_bytes = 0;
    void *table = NULL;
    if (c->in_tree) {
        MF_TRY(make_table(problem->reduced_total, tile->step, parts > 1, &table, &parts, levels));
        choice->own[4] = problem->reduced_total * (int64_t)sizeof(struct term);
        table_bytes = choice->own[4] + parts * (int64_t)sizeof(struct part);
    } else {
        int64_t tiles = (problem->reduced_total + tile->step - 1) / tile->step;
        choice->own[3] = (tiles + parts - 1) / parts * tile->step;
        parts = (problem->reduced_total + choice->own[3] - 1) / choice->own[3];
    }
    choice->table = table;
    choice->table_bytes = table_bytes;
    choice->own[2] = parts;
    choice->own[5] = aligned(table_bytes);
    choice->own[6] =
        choice->own[5] + (parts > 1 ? blocks * parts * tile->rows * tile->columns * mf_emit_state_bytes(problem) : 0);
    choice->workspace_bytes = parts > 1 ? choice->own[6] + blocks * (int64_t)sizeof(uint32_t) : table_bytes;
    choice->blocks = blocks * parts;
    return MF_OK;
}

void mf_gpu_place_tiles(const struct problem *problem, const struct gpu_contraction *c,
                        const struct contract_tile *tile, struct gpu_choice *choice)
{
    const int64_t rows = mf_factors_positions(problem, &c->loops, 0);
    const int64_t columns = mf_factors_positions(problem, &c->loops, 1);
    choice->own[0] = (rows + tile->rows - 1) / tile->rows;
    choice->own[1] = (columns + tile->columns - 1) / tile->columns;
    choice->own[7] = rows * ((int64_t)1 << 32) + columns;
}

/* How the factors get into shared memory; fills what depends on that. */
static void choose_copies(const struct mf_plan *plan, struct gpu_contraction *c, struct contract_tile *tile,
                          struct gpu_choice *choice)
{
    const struct problem *problem = &plan->problem;
    enum { STAGES = 3, LOG_STAGES = 2, TAKEN = 4, LOG_TAKEN = 2, LOG_STEP = 64 };
    const int stages = c->kind == CONTRACT_LOG ? LOG_STAGES : STAGES;
    const int wide = mf_cls_size(problem->program.reducer[0].cls) > 4;
    c->copied = is_copied(problem, c) && !wide;
    c->by_bits = is_by_bits(plan, c);
    choice->kernel = c->copied ? mf_text_contract_copied_cl : mf_text_contract_cl;
    choice->beside = (c->kind == CONTRACT_LOG && !wide) || c->copied ? 2 : 1;
    if (c->copied && c->kind == CONTRACT_LOG)
        tile->step = LOG_STEP;
    choice->shared = c->copied ? stages * tile_bytes(c, tile) : 0;
    mf_text_add(&choice->macros, "#define COPIED %d\n#define BY_BITS %d\n#define STAGES %d\n#define TAKEN %d\n",
                c->copied, c->by_bits, stages,
                c->kind == CONTRACT_LOG ? LOG_TAKEN
                : c->by_bits            ? 2
                                        : TAKEN);
}

mf_status mf_gpu_make_contraction(struct mf_plan *plan, const struct gpu_contraction *contraction,
                                  const struct contract_tile *flags)
{
    const struct problem *problem = &plan->problem;
    const int multiprocessors = MF_GPU_LIMITS(plan->device->gpu)->multiprocessors;
    struct gpu_contraction c = *contraction;
    struct contract_tile tile = *mf_gpu_choose_tile(problem, &c, flags, multiprocessors);
    struct gpu_choice choice = {.threads = mf_gpu_tile_threads(&tile), .vector = VECTOR, .flat = 1};
    struct gpu_slots slots;
    int levels = 1, words = contraction->kind == CONTRACT_SEVERAL ? mf_emit_state_words(problem) : 1;
    choose_copies(plan, &c, &tile, &choice);
    MF_TRY(plan_terms(problem, &c, &tile, mf_gpu_tile_blocks(problem, &c, &tile),
                      flags ? 1 : choose_parts(problem, &c, &tile, multiprocessors), &choice, &levels));
    mf_gpu_place_tiles(problem, &c, &tile, &choice);
    mf_emit_slots(problem, &slots);
    mf_gpu_tile_macros(problem, &c, &tile, flags, &choice.macros);
    mf_text_add(&choice.macros, "#define IN_TREE %d\n#define LEVELS %d\n#define FLAGGED %d\n#define HAS_YOUNGEST %d\n",
                c.in_tree, levels, flags != NULL, tile.row_own * tile.column_own * words <= YOUNGEST_OUTPUTS);
    mf_emit_contraction(problem, &slots, &c, &choice.functions);
    mf_emit_factors(problem, &slots, &c, &tile, &choice.functions);
    mf_text_append(&choice.functions, mf_text_tile_cl);
    mf_text_append(&choice.functions, mf_text_contract_parts_cl);
    snprintf(choice.text, sizeof choice.text, "%lld x %lld outputs, %d x %d a block, %d x %d a thread, %lld part%s%s",
             (long long)(choice.own[7] >> 32), (long long)(choice.own[7] & UINT32_MAX), tile.rows, tile.columns,
             tile.row_own, tile.column_own, (long long)choice.own[2], choice.own[2] == 1 ? "" : "s",
             c.in_tree ? ", in the contract's order"
             : flags   ? ", where a block's flag is set"
                       : "");
    void *table = (void *)(uintptr_t)choice.table;
    mf_status status = mf_gpu_make(plan, &choice);
    mf_free(table);
    return status;
}

static mf_status make(struct mf_plan *plan)
{
    struct gpu_contraction c = {.kind = CONTRACT_FOLD};
    find_contraction(plan, &c);
    c.in_tree = is_ordered(&plan->problem.program.reducer[0]);
    for (int f = 0; f < FACTORS; f++)
        if (c.in_tree && c.along_terms[f]) /* terms beside each other are far away in that order */
            c.at_a_time[f] = 1;
    return mf_gpu_make_contraction(plan, &c, NULL);
}

/* Terms come as they are numbered: of equal ones the first stays. */
static mf_status arg_make(struct mf_plan *plan)
{
    struct gpu_contraction c = {.kind = CONTRACT_ARGUMENT};
    plan->problem.memory = plan->problem.written;
    mf_gpu_contraction_fits(plan, &c);
    return mf_gpu_make_contraction(plan, &c, NULL);
}

static mf_status several_make(struct mf_plan *plan)
{
    struct gpu_contraction c = {.kind = CONTRACT_SEVERAL};
    if (count_arguments(&plan->problem.program))
        plan->problem.memory = plan->problem.written;
    mf_gpu_contraction_fits(plan, &c);
    c.in_tree = is_tree(&plan->problem.program);
    for (int f = 0; f < FACTORS; f++)
        if (c.in_tree && c.along_terms[f])
            c.at_a_time[f] = 1;
    return mf_gpu_make_contraction(plan, &c, NULL);
}

/* ---- solvers ---- */

const struct solver mf_gpu_contract = {
    "contract",     "a product of two factors, folded: tiles of outputs in registers",
    applicable,     make,
    mf_gpu_execute, mf_gpu_print,
    mf_gpu_forget,
};

const struct solver mf_gpu_contract_arg = {
    "contract-arg", "the best of products of two factors, and which it is, in tiles",
    arg_applicable, arg_make,
    mf_gpu_execute, mf_gpu_print,
    mf_gpu_forget,
};

const struct solver mf_gpu_contract_several = {
    "contract-several", "several folds of products of the same two factors, in tiles",
    several_applicable, several_make,
    mf_gpu_execute,     mf_gpu_print,
    mf_gpu_forget,
};
