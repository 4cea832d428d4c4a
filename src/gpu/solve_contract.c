/* Solvers "contract" and "contract-arg" of a GPU: a product of two factors that have kept loops of their own, folded
 * (kernels/contract.cl). */
#include <stdio.h>

#include "../term_order.h"
#include "emit_reducers.h"
#include "form.h"
#include "solve_contract.h"
#include "texts.h"

/* ---- which folds ---- */

/* The reducer with the argument; -1 unless all others are the extreme of the same. */
static int find_argument(const struct program *program)
{
    int found = -1;
    for (int r = 0; r < program->reducer_count; r++)
        if (program->reducer[r].kind == RED_ARG)
            found = r;
    for (int r = 0; found >= 0 && r < program->reducer_count; r++)
        if ((program->reducer[r].kind != RED_FOLD && r != found) ||
            program->reducer[r].fold != program->reducer[found].fold ||
            program->reducer[r].arg[0] != program->reducer[found].arg[0])
            return -1;
    return found;
}

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

int mf_gpu_contraction_fits(const struct mf_plan *plan, struct gpu_contraction *c)
{
    const struct problem *problem = &plan->problem;
    const struct nest *nest = &problem->memory;
    int node[FACTORS];
    if (!problem->program.reducer_count || !problem->kept_total || problem->reduced_total < 2 || nest->window_count ||
        problem->reduced_total > INT32_MAX || problem->program.reducer[0].kind == RED_USER ||
        !mf_factors_find(&problem->program.map, problem->program.reducer[0].arg[0], node))
        return 0;
    mf_factors_loops(problem, node, &c->loops);
    if (!c->loops.count[0] || !c->loops.count[1])
        return 0;
    if (c->loops.loop[0][c->loops.count[0] - 1] > c->loops.loop[1][c->loops.count[1] - 1]) {
        int swap = node[0];
        node[0] = node[1];
        node[1] = swap;
        mf_factors_loops(problem, node, &c->loops);
    }
    for (int f = 0; f < FACTORS; f++) {
        int last = c->loops.loop[f][c->loops.count[f] - 1];
        c->node[f] = node[f];
        c->along_terms[f] = stride_along(problem, node[f], nest->kept + nest->reduced - 1) <
                            stride_along(problem, node[f], last);
    }
    return 1;
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

static int applicable(const struct mf_plan *plan)
{
    const struct program *program = &plan->problem.program;
    struct gpu_contraction c;
    enum { MOST_TILES = 128 };
    return program->reducer_count == 1 && program->reducer[0].kind == RED_FOLD && mf_gpu_contraction_fits(plan, &c) &&
           fills_tiles(&plan->problem, &c) &&
           (!is_ordered(&program->reducer[0]) || plan->problem.reduced_total <= (int64_t)MOST_TILES * TILE);
}

static int arg_applicable(const struct mf_plan *plan)
{
    struct gpu_contraction c;
    return find_argument(&plan->problem.program) >= 0 && mf_gpu_contraction_fits(plan, &c) &&
           fills_tiles(&plan->problem, &c);
}

/* ---- tiles ---- */

/* From large to small; a thread has fewer outputs where their values are wide. */
static const struct contract_tile narrow_tiles[] = {
    {128, 128, 8, 8, 16, 8}, {128, 64, 8, 8, 16, 8}, {64, 64, 8, 4, 16, 8}, {32, 32, 4, 4, 16, 8}, {16, 16, 2, 2, 16, 8}};
static const struct contract_tile wide_tiles[] = {
    {128, 64, 8, 4, 16, 8}, {64, 64, 4, 4, 16, 8}, {32, 32, 4, 4, 16, 8}, {16, 16, 2, 2, 16, 8}};

static int64_t blocks_of(const struct problem *problem, const struct gpu_contraction *c, const struct contract_tile *tile)
{
    const int64_t rows = mf_factors_positions(problem, &c->loops, 0), columns = mf_factors_positions(problem, &c->loops, 1);
    return problem->kept_total / rows / columns * ((rows + tile->rows - 1) / tile->rows) *
           ((columns + tile->columns - 1) / tile->columns);
}

static int threads_of(const struct contract_tile *tile)
{
    return tile->rows / tile->row_own * (tile->columns / tile->column_own);
}

/* What a multiprocessor takes for its share: its blocks' outputs, and more for each where a thread has few of them or
 * few threads are there to hide each other's waiting. */
static double cost_of(const struct problem *problem, const struct gpu_contraction *c, const struct contract_tile *tile,
                      int multiprocessors)
{
    const int64_t blocks = blocks_of(problem, c, tile), share = (blocks + multiprocessors - 1) / multiprocessors;
    const double reads = 1.0 / tile->row_own + 1.0 / tile->column_own, warps = threads_of(tile) / 32.0 * (double)share;
    return (double)share * tile->rows * tile->columns * (1 + 1.5 * reads) * (warps < 8 ? 8 / warps : 1);
}

static const struct contract_tile *choose_tile(const struct problem *problem, const struct gpu_contraction *c,
                                               int multiprocessors)
{
    const int wide = c->argument >= 0 || mf_cls_size(problem->program.reducer[0].cls) > 4;
    const struct contract_tile *tiles = wide ? wide_tiles : narrow_tiles, *best = tiles;
    const int count = (int)(wide ? sizeof wide_tiles / sizeof *wide_tiles : sizeof narrow_tiles / sizeof *narrow_tiles);
    for (int i = 1; i < count; i++)
        if (cost_of(problem, c, &tiles[i], multiprocessors) < cost_of(problem, c, best, multiprocessors))
            best = &tiles[i];
    return best;
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
static void fill_block(const struct term_order *order, const struct term_block *block, int64_t start, int step, struct term *terms,
                       int64_t *at)
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

static int64_t aligned(int64_t bytes)
{
    return (bytes + 15) / 16 * 16;
}

/* How many parts the sequence is cut into: more while multiprocessors would be idle, of at least 8 tiles' terms. */
static int64_t choose_parts(const struct problem *problem, const struct gpu_contraction *c, const struct contract_tile *tile,
                            int multiprocessors)
{
    const int64_t blocks = blocks_of(problem, c, tile), most = problem->reduced_total / (8 * tile->step);
    int64_t parts = 2 * (int64_t)multiprocessors / blocks;
    return parts > most ? (most > 1 ? most : 1) : parts > 1 ? parts : 1;
}

static void add_macros(const struct problem *problem, const struct gpu_contraction *c, const struct contract_tile *tile,
                       int levels, struct gpu_text *to)
{
    mf_text_add(to,
                "#define ROWS %d\n#define COLUMNS %d\n#define ROW_OWN %d\n#define COLUMN_OWN %d\n#define STEP %d\n"
                "#define AT_ONCE %d\n#define IN_TREE %d\n#define LEVELS %d\n#define LOOKS_FOR_NANS %d\n",
                tile->rows, tile->columns, tile->row_own, tile->column_own, tile->step, tile->at_once, c->in_tree,
                levels, c->argument >= 0 && mf_cls_is_float(problem->program.reducer[0].cls));
}

static mf_status make_any(struct mf_plan *plan, struct gpu_contraction *c)
{
    const struct problem *problem = &plan->problem;
    const int multiprocessors = MF_GPU_LIMITS(plan->device->gpu)->multiprocessors;
    const struct contract_tile *tile = choose_tile(problem, c, multiprocessors);
    const int64_t rows = mf_factors_positions(problem, &c->loops, 0), columns = mf_factors_positions(problem, &c->loops, 1);
    const int64_t blocks = blocks_of(problem, c, tile);
    struct gpu_choice choice = {.kernel = mf_text_contract_cl, .threads = threads_of(tile), .vector = 1};
    struct gpu_slots slots;
    int64_t parts = choose_parts(problem, c, tile, multiprocessors), table_bytes = 0;
    int levels = 1;
    void *table = NULL;
    if (rows > INT32_MAX || columns > INT32_MAX)
        return mf_fail(MF_ERROR_UNSUPPORTED, "%lld x %lld outputs are more than a contraction on a GPU can have",
                       (long long)rows, (long long)columns);
    if (c->in_tree) {
        MF_TRY(make_table(problem->reduced_total, tile->step, parts > 1, &table, &parts, &levels));
        table_bytes = problem->reduced_total * (int64_t)sizeof(struct term);
        choice.own[4] = table_bytes;
        table_bytes += parts * (int64_t)sizeof(struct part);
    } else {
        int64_t tiles = (problem->reduced_total + tile->step - 1) / tile->step;
        choice.own[3] = (tiles + parts - 1) / parts * tile->step;
        parts = (problem->reduced_total + choice.own[3] - 1) / choice.own[3];
    }
    choice.table = table;
    choice.table_bytes = table_bytes;
    choice.own[0] = (rows + tile->rows - 1) / tile->rows;
    choice.own[1] = (columns + tile->columns - 1) / tile->columns;
    choice.own[2] = parts;
    choice.own[5] = aligned(table_bytes);
    choice.own[6] = choice.own[5] + (parts > 1 ? blocks * parts * tile->rows * tile->columns * mf_emit_state_bytes(problem) : 0);
    choice.own[7] = rows * ((int64_t)1 << 32) + columns;
    choice.workspace_bytes = parts > 1 ? choice.own[6] + blocks * (int64_t)sizeof(uint32_t) : table_bytes;
    choice.blocks = blocks * parts;
    mf_emit_slots(problem, &slots);
    add_macros(problem, c, tile, levels, &choice.macros);
    mf_emit_contraction(problem, &slots, c, &choice.functions);
    mf_emit_factors(problem, c, tile, &choice.functions);
    snprintf(choice.text, sizeof choice.text, "%lld x %lld outputs, %d x %d a block, %d x %d a thread, %lld part%s%s",
             (long long)rows, (long long)columns, tile->rows, tile->columns, tile->row_own, tile->column_own,
             (long long)parts, parts == 1 ? "" : "s", c->in_tree ? ", in the contract's order" : "");
    mf_status status = mf_gpu_make(plan, &choice);
    mf_free(table);
    return status;
}

static mf_status make(struct mf_plan *plan)
{
    struct gpu_contraction c = {.argument = -1};
    mf_gpu_contraction_fits(plan, &c);
    c.in_tree = is_ordered(&plan->problem.program.reducer[0]);
    return make_any(plan, &c);
}

/* Terms come as they are numbered: of equal ones the first stays. */
static mf_status arg_make(struct mf_plan *plan)
{
    struct gpu_contraction c = {.argument = find_argument(&plan->problem.program)};
    plan->problem.memory = plan->problem.written;
    mf_gpu_contraction_fits(plan, &c);
    return make_any(plan, &c);
}

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
