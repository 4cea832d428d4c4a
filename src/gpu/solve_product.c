/* Solver "product" of a GPU: sums of products of two operands on tensor cores (kernels/product.cl), convolutions
 * without a copied window among them. Its order of adding is the instruction's own, so it runs with MF_ORDER_FREE, or
 * asked for by name: "product:FORM:ROWS:COLUMNS:PARTS".
 *
 *   full   f32 as sums of two numbers of 11 bits: about f32's precision (docs/numerics.md, section 15); the form of
 *          16-bit floats too, whose products are exact
 *   tf32   f32 rounded to 11 bits
 *
 * ROWS x COLUMNS of a block and PARTS of the terms: 0 for the solver's own choice. */
#include <stdio.h>

#include "form.h"
#include "solve_contract.h"
#include "texts.h"

enum {
    PIECE_BYTES = 16,
    TILE_TERM_BYTES = 64,
    MOST_PARTS = 64,
    LEFT = 10 << 10 /* bytes of shared memory for others */,
    LEAST_ARCHITECTURE = 80
};

/* A block's outputs and warps; stages of shared memory; blocks that a multiprocessor is to have room for; with how many
 * products of factors. A warp that has 64 x 64 outputs reads shared memory as fast as it multiplies; three products
 * need less of it, and more registers. */
static const struct product_tile {
    int rows, columns, down, right, stages, beside, products;
} tiles[] = {
    {128, 128, 2, 2, 4, 2, 1}, {64, 64, 2, 2, 7, 4, 1},  {128, 32, 4, 1, 6, 4, 1}, {128, 16, 4, 1, 6, 4, 1},
    {32, 64, 1, 2, 8, 4, 1},   {64, 32, 2, 1, 8, 4, 1},  {32, 32, 1, 1, 8, 8, 1},  {192, 64, 4, 2, 5, 1, 3},
    {64, 64, 2, 2, 7, 3, 3},   {128, 32, 4, 1, 6, 3, 3}, {128, 16, 4, 1, 6, 3, 3}, {32, 64, 1, 2, 8, 4, 3},
    {64, 32, 2, 1, 8, 4, 3},   {32, 32, 1, 1, 8, 8, 3},
};
enum { TILES = sizeof tiles / sizeof *tiles };

/* An element type: the instruction's shape and types, and how a word's element becomes a float where it is emulated. */
static const struct product_type {
    enum dtype type;
    const char *instruction, *emulated;
} types[] = {
    {DT_f32, "m16n8k8.row.col.f32.tf32.tf32.f32", "mf_bits_f32(0xffffe000u & (x))"},
    {DT_f16, "m16n8k16.row.col.f32.f16.f16.f32", "mf_load_f16(x)"},
    {DT_bf16, "m16n8k16.row.col.f32.bf16.bf16.f32", "mf_load_bf16(x)"},
};

struct product {
    const struct product_type *type;
    struct gpu_contraction contraction;
    int operand[FACTORS], vectors[FACTORS];
    int64_t rows, columns;
};

/* ---- which folds ---- */

static const struct product_type *find_type(enum dtype type)
{
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        if (types[t].type == type)
            return &types[t];
    return NULL;
}

/* Whether pieces of 16 bytes along the factor's fast loop are whole and, where the operand begins so, aligned. */
static int has_pieces(const struct problem *problem, const struct product *product, int f)
{
    const struct nest *nest = &problem->memory;
    const int64_t *stride = nest->in[product->operand[f]];
    const int loop = product->contraction.fast_loop[f];
    const int elements = PIECE_BYTES / mf_dtypes[product->type->type].size;
    if (stride[loop] != 1 || nest->size[loop] % elements)
        return 0;
    for (int l = 0; l < nest->kept + nest->reduced; l++)
        if (l != loop && nest->size[l] > 1 && stride[l] % elements)
            return 0;
    return 1;
}

/* Whether the sum is of the factors' product itself, not of something made of it. */
static int multiplies_factors(const struct program *program, const struct gpu_contraction *contraction)
{
    const int *arg = program->map.node[program->reducer[0].arg[0]].arg, *node = contraction->node;
    return (arg[0] == node[0] && arg[1] == node[1]) || (arg[0] == node[1] && arg[1] == node[0]);
}

/* Whether blocks of the smallest tiles, in most parts, can be counted in a launch. */
static int has_few_blocks(const struct problem *problem, const struct product *p)
{
    const int64_t batch = problem->kept_total / p->rows / p->columns, most = INT32_MAX / MOST_PARTS;
    const int64_t down = (p->rows + 31) / 32, right = (p->columns + 15) / 16;
    return batch <= most && down <= most / batch && right <= most / batch / down;
}

static int find_product(const struct mf_plan *plan, struct product *product)
{
    const struct problem *problem = &plan->problem;
    const struct program *program = &problem->program;
    const struct reducer *reducer = &program->reducer[0];
    const struct node *nodes = program->map.node;
    const int architecture = MF_GPU_LIMITS(plan->device->gpu)->architecture;
    if ((architecture && architecture < LEAST_ARCHITECTURE) || program->reducer_count != 1 ||
        reducer->kind != RED_FOLD || reducer->fold != FOLD_SUM || nodes[reducer->arg[0]].op != OP_mul ||
        !mf_gpu_contraction_fits(plan, &product->contraction) || !multiplies_factors(program, &product->contraction))
        return 0;
    for (int f = 0; f < FACTORS; f++) {
        const struct node *node = &nodes[product->contraction.node[f]];
        if (node->op != OP_OPERAND)
            return 0;
        product->operand[f] = node->index;
    }
    product->type = find_type(problem->in_type[product->operand[0]]);
    if (!product->type || mf_cls_size(reducer->cls) != 4 || !mf_cls_is_float(reducer->cls) ||
        problem->in_type[product->operand[1]] != product->type->type)
        return 0;
    for (int f = 0; f < FACTORS; f++)
        product->vectors[f] = has_pieces(problem, product, f);
    product->rows = mf_factors_positions(problem, &product->contraction.loops, 0);
    product->columns = mf_factors_positions(problem, &product->contraction.loops, 1);
    return has_few_blocks(problem, product);
}

static int applicable(const struct mf_plan *plan)
{
    struct product product;
    return find_product(plan, &product);
}

int mf_gpu_product_pays(const struct mf_plan *plan)
{
    enum { FEW = 8, SHORT = 16 };
    struct product product;
    return MF_GPU_LIMITS(plan->device->gpu)->architecture && find_product(plan, &product) && product.rows >= FEW &&
           product.columns >= FEW && plan->problem.reduced_total >= SHORT;
}

/* ---- forms ---- */

struct product_form {
    int products, stages, cluster;
    const struct product_tile *tile;
    int64_t parts;
};

static int threads_of(const struct product_tile *tile)
{
    return tile->down * tile->right * GPU_WARP;
}

/* Parts that are a cluster add their sums in shared memory. */
static int joins_in_cluster(int64_t parts, const struct gpu_limits *limits)
{
    enum { MOST = 4, CLUSTERS_FROM = 90 }; /* 8 do not fill a device whose groups of multiprocessors are uneven */
    return limits->dlpack == 2 && limits->architecture >= CLUSTERS_FROM && parts > 1 && parts <= MOST;
}

static int64_t blocks_of(const struct problem *problem, const struct product *p, const struct product_tile *tile)
{
    const int64_t batch = problem->kept_total / p->rows / p->columns;
    return batch * ((p->rows + tile->rows - 1) / tile->rows) * ((p->columns + tile->columns - 1) / tile->columns);
}

/* Terms of a tile. */
static int64_t step_terms(const struct product *p)
{
    return TILE_TERM_BYTES / mf_dtypes[p->type->type].size;
}

static int64_t steps_of(const struct problem *problem, const struct product *p)
{
    const int64_t step = step_terms(p);
    return (problem->reduced_total + step - 1) / step;
}

/* Of shared memory, for the block's sums. */
static int64_t sums_bytes(const struct product_tile *tile)
{
    return (int64_t)tile->rows * (tile->columns + 8) * (int64_t)sizeof(float);
}

/* As many stages as the tile has, or there is shared memory for; what an emulated instruction takes is left. */
static int stages_of(const struct product_tile *tile, const struct gpu_limits *limits)
{
    const int64_t bytes = (int64_t)(tile->rows + tile->columns) * TILE_TERM_BYTES;
    return mf_clamp((limits->shared_most - LEFT) / bytes, 2, tile->stages);
}

/* Blocks of a tile that run on a multiprocessor at once. */
static int64_t room_for(const struct product_tile *tile)
{
    enum { SHARED_BYTES = 224 << 10 };
    return mf_clamp(SHARED_BYTES / ((tile->rows + tile->columns) * TILE_TERM_BYTES * tile->stages), 1, tile->beside);
}

static double greatest(double a, double b)
{
    return a > b ? a : b;
}

/* Nanoseconds that a tile in so many parts takes on an H200, about: a step by its products, by what warps read from
 * shared memory and copies bring there, or by what the cache brings to all; one block's steps after each other; then
 * joining the parts. (Fitted to 45 times of tiles and parts, which it gives within 13 %.) */
static double cost_of(const struct problem *problem, const struct product *p, const struct product_tile *tile,
                      int64_t parts, const struct gpu_limits *limits)
{
    const double products = 1294, shared_bytes = 198, cache_bytes = 11539, memory_bytes = 4000; /* a nanosecond */
    const double fill = 3617, in_cluster = 447, in_workspace = 6012;
    const int cluster = joins_in_cluster(parts, limits);
    const int64_t blocks = blocks_of(problem, p, tile) * parts, steps = (steps_of(problem, p) + parts - 1) / parts;
    const int64_t used = cluster ? limits->multiprocessors * 7 / 8 : limits->multiprocessors; /* clusters leave gaps */
    const int64_t each = (blocks + used - 1) / used, room = room_for(tile) * used, waves = (blocks + room - 1) / room;
    const double outputs = (double)tile->rows * tile->columns, bytes = (double)(tile->rows + tile->columns);
    const double multiply = outputs * TILE_TERM_BYTES / 2 * tile->products / products;
    const double read =
        TILE_TERM_BYTES * (double)(tile->rows * (tile->right + 1) + tile->columns * (tile->down + 1)) / shared_bytes;
    const double bring = bytes * TILE_TERM_BYTES * limits->multiprocessors / cache_bytes;
    const double busy = (double)each * (double)steps * (greatest(multiply, greatest(read, bring)) + 15) + fill;
    const double waits = (double)waves * ((double)steps * (85 + 1.05 * multiply) + fill);
    const double sums = (double)blocks * outputs * 8 / memory_bytes + outputs * 4 * (double)parts / 100;
    return greatest(busy, waits) + (parts == 1 ? 0 : cluster ? in_cluster : in_workspace + sums);
}

/* Whether a tile is not worth a look: a thread has outputs for all its registers, and needs some to read elements one
 * by one; or two of these lie beside each other where a wide one reads less (which the costs above do not see). */
static int is_out_of_question(const struct product *p, const struct product_tile *tile)
{
    enum { MANY = 64, WIDE = 64 };
    return (!(p->vectors[0] && p->vectors[1]) && tile->rows * tile->columns / threads_of(tile) > MANY) ||
           (tile->columns < WIDE && p->columns >= 2 * tile->columns);
}

static void choose_form(const struct problem *problem, const struct product *p, const struct gpu_limits *limits,
                        struct product_form *form)
{
    const int64_t steps = steps_of(problem, p);
    double least = 0;
    const struct product_tile *given = form->tile;
    const int64_t parts_given = form->parts;
    form->tile = NULL;
    for (int t = 0; t < TILES; t++)
        for (int64_t parts = parts_given ? parts_given : 1;
             parts <= (parts_given ? parts_given : MOST_PARTS) && (parts == 1 || parts_given || parts * 4 <= steps);
             parts++) {
            const double cost = cost_of(problem, p, &tiles[t], parts, limits);
            if (tiles[t].products != form->products || (!given && is_out_of_question(p, &tiles[t])) ||
                sums_bytes(&tiles[t]) > limits->shared_most - LEFT || (given && given != &tiles[t]) ||
                (form->tile && cost >= least))
                continue;
            form->tile = &tiles[t];
            form->parts = parts;
            least = cost;
        }
}

/* FORM[:ROWS[:COLUMNS[:PARTS]]] */
static mf_status read_form(const char *text, const struct product *product, struct product_form *form)
{
    char name[16] = "full";
    int number[3] = {0, 0, 0};
    const int is_f32 = product->type->type == DT_f32;
    int known = !text || mf_gpu_read_form(text, name, number);
    const int tf32 = !strcmp(name, "tf32");
    *form = (struct product_form){.products = is_f32 && !tf32 ? 3 : 1, .parts = number[2]};
    for (int t = 0; t < TILES && number[0]; t++)
        if (tiles[t].rows == number[0] && tiles[t].columns == number[1] && tiles[t].products == form->products)
            form->tile = &tiles[t];
    known &= tf32 ? is_f32 : !strcmp(name, "full");
    if (known && (form->tile || !number[0]) && number[2] <= MOST_PARTS)
        return MF_OK;
    return mf_fail(MF_ERROR_ARGUMENT,
                   "solver product has no form \"%.40s\" for %s; a form is full, or tf32 for f32, then perhaps "
                   ":ROWS:COLUMNS:PARTS, of blocks that are 128 x 128 (not f32), 192 (f32) x 64, 64 or "
                   "32 x 64, 128, 64 or 32 x 32, or 128 x 16, and at most %d parts",
                   text ? text : "", mf_dtypes[product->type->type].name, MOST_PARTS);
}

/* ---- plans ---- */

static void write_sides(const struct gpu_slots *slots, const struct product *p, const struct product_tile *tile,
                        struct gpu_text *to)
{
    for (int f = 0; f < FACTORS; f++) {
        const int slot = slots->of[p->operand[f]];
        mf_text_add(
            to,
            "#define SIDE %c\n#define LIST %d\n#define POSITIONS %d\n#define ALONG_TERMS %d\n#define VECTORS %d\n"
            "#define ELEMENTS in%d\n#define PLACE i%d\n",
            f ? 'y' : 'x', f, f ? tile->columns : tile->rows, p->contraction.along_terms[f], p->vectors[f], slot, slot);
        mf_text_append(to, mf_text_product_side_cl);
    }
}

/* Whether every tile of terms lies in one run of the innermost reduced loop. */
static int has_even_steps(const struct problem *problem, const struct product *p)
{
    const struct nest *nest = &problem->memory;
    return nest->size[nest->kept + nest->reduced - 1] % step_terms(p) == 0;
}

static int last_column_loop(const struct product *p)
{
    const struct factor_loops *loops = &p->contraction.loops;
    return loops->loop[COLUMN_FACTOR][loops->count[COLUMN_FACTOR] - 1];
}

/* Whether outputs come in whole groups along the innermost loop of the columns. */
static int has_even_columns(const struct problem *problem, const struct product *p)
{
    return problem->memory.size[last_column_loop(p)] % (PIECE_BYTES / mf_dtypes[p->type->type].size) == 0;
}

static void write_texts(const struct mf_plan *plan, const struct product *p, const struct product_form *form,
                        struct gpu_choice *choice)
{
    const int is_cuda = MF_GPU_LIMITS(plan->device->gpu)->dlpack == 2, item = mf_dtypes[p->type->type].size;
    const struct product_tile *tile = form->tile;
    struct gpu_slots slots;
    mf_emit_slots(&plan->problem, &slots);
    const int x = slots.of[p->operand[0]], y = slots.of[p->operand[1]];
    mf_text_add(&choice->macros,
                "#define ROWS %d\n#define COLUMNS %d\n#define WARPS_DOWN %d\n#define WARPS_RIGHT %d\n"
                "#define CLUSTER %d\n#define PARTED %d\n#define STAGES %d\n#define ITEM %d\n#define PRODUCTS %d\n"
                "#define IN_TREE 0\n#define EVEN_STEPS %d\n#define EVEN_COLUMNS %d\n#define COLUMN_LOOP %d\n"
                "#define SLOT_X %d\n#define SLOT_Y %d\n#define PLACE_X i%d\n#define PLACE_Y i%d\n"
                "#define MMA_NAME \"%s\"\n#define MMA_SUM(x) \"+f\"(x)\n#define LOAD(x) %s\n"
                "typedef float sum_t;\ntypedef uint%d_t bits_t;\n",
                tile->rows, tile->columns, tile->down, tile->right, form->cluster,
                form->cluster == 1 && form->parts > 1, form->stages, item, form->products,
                has_even_steps(&plan->problem, p), has_even_columns(&plan->problem, p), last_column_loop(p), x, y, x, y,
                p->type->instruction, p->type->emulated, 8 * item);
    mf_emit_loops(&p->contraction.loops, &choice->functions);
    mf_text_append(&choice->functions, mf_text_terms_cl);
    mf_text_append(&choice->functions, is_cuda ? mf_text_tensor_mma_cu : mf_text_tensor_mma_cl);
    mf_text_append(&choice->functions, is_cuda ? mf_text_product_mma_cu : mf_text_product_mma_cl);
    mf_text_append(&choice->functions, mf_text_product_sizes_cl);
    write_sides(&slots, p, tile, &choice->functions);
}

/* The form's parts become as many as have terms. */
static void place_parts(const struct problem *problem, const struct product *p, const struct gpu_limits *limits,
                        struct product_form *form, struct gpu_choice *choice)
{
    const struct product_tile *tile = form->tile;
    const int64_t step = step_terms(p), steps = steps_of(problem, p);
    const int64_t each = (steps + form->parts - 1) / form->parts, parts = (steps + each - 1) / each;
    const int64_t blocks = blocks_of(problem, p, tile), floats = (int64_t)sizeof(float);
    const int64_t sums = blocks * parts * tile->rows * tile->columns * floats;
    const int64_t stages = (int64_t)(tile->rows + tile->columns) * TILE_TERM_BYTES * form->stages;
    form->parts = parts;
    form->cluster = joins_in_cluster(parts, limits) ? (int)parts : 1;
    choice->shared = sums_bytes(tile) > stages ? sums_bytes(tile) : stages;
    choice->own[0] = (p->rows + tile->rows - 1) / tile->rows;
    choice->own[1] = (p->columns + tile->columns - 1) / tile->columns;
    choice->own[2] = parts;
    choice->own[3] = each * step;
    choice->own[4] = sums;
    choice->own[7] = p->rows * ((int64_t)1 << 32) + p->columns;
    choice->blocks = blocks * parts;
    if (parts > 1 && form->cluster == 1)
        choice->workspace_bytes = sums + blocks * (int64_t)sizeof(uint32_t);
}

static mf_status make(struct mf_plan *plan)
{
    struct product product = {0};
    struct product_form form;
    const struct gpu_limits *limits = MF_GPU_LIMITS(plan->device->gpu);
    find_product(plan, &product);
    MF_TRY(read_form(plan->form, &product, &form));
    plan->form = NULL;
    choose_form(&plan->problem, &product, limits, &form);
    if (!form.tile)
        return mf_fail(MF_ERROR_UNSUPPORTED, "%s has %lld bytes of shared memory, too few for these blocks",
                       limits->name, (long long)limits->shared_most);
    form.stages = stages_of(form.tile, limits);
    struct gpu_choice choice = {.kernel = mf_text_product_cl,
                                .threads = threads_of(form.tile),
                                .vector = PIECE_BYTES / mf_dtypes[product.type->type].size,
                                .flat = 1,
                                .beside = form.tile->beside};
    place_parts(&plan->problem, &product, limits, &form, &choice);
    write_texts(plan, &product, &form, &choice);
    snprintf(choice.text, sizeof choice.text, "%lld x %lld outputs, %d x %d a block, %lld part%s of the terms%s, %s",
             (long long)product.rows, (long long)product.columns, form.tile->rows, form.tile->columns,
             (long long)choice.own[2], choice.own[2] == 1 ? "" : "s", form.cluster > 1 ? " in a cluster" : "",
             product.type->type != DT_f32 ? mf_dtypes[product.type->type].name
             : form.products == 3         ? "f32 as three products of 11 bits"
                                          : "f32 rounded to 11 bits");
    return mf_gpu_make(plan, &choice);
}

const struct solver mf_gpu_product = {
    "product",      "sums of products of two operands on tensor cores, in any order",
    applicable,     make,
    mf_gpu_execute, mf_gpu_print,
    mf_gpu_forget,
};
