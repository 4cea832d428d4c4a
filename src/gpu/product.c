/* Products of two operands on tensor cores: which folds they are, blocks' tiles, and what they cost. */
#include "product.h"

#include <string.h>

#include "texts.h"

const struct product_tile mf_gpu_products_tiles[PRODUCT_TILES] = {
    {128, 128, 2, 2, 4, 2, 1, 0},  {192, 64, 4, 2, 6, 2, 1, 0},  {64, 64, 2, 2, 7, 4, 1, 0},
    {128, 32, 4, 1, 6, 4, 1, 0},   {128, 16, 4, 1, 6, 4, 1, 0},  {32, 64, 1, 2, 8, 4, 1, 0},
    {64, 32, 2, 1, 8, 4, 1, 0},    {32, 32, 1, 1, 8, 8, 1, 0},   {192, 64, 4, 2, 5, 1, 3, 0},
    {64, 64, 2, 2, 7, 3, 3, 0},    {128, 32, 4, 1, 6, 3, 3, 0},  {128, 16, 4, 1, 6, 3, 3, 0},
    {32, 64, 1, 2, 8, 4, 3, 0},    {64, 32, 2, 1, 8, 4, 3, 0},   {32, 32, 1, 1, 8, 8, 3, 0},
    {256, 128, 8, 1, 8, 1, 1, 1},  {128, 256, 8, 1, 8, 1, 1, 1}, {128, 128, 4, 1, 6, 2, 1, 1},
    {192, 128, 12, 1, 8, 1, 1, 1}, {192, 64, 12, 1, 8, 1, 1, 1}, {128, 64, 4, 1, 6, 3, 1, 1},
    {256, 16, 4, 1, 5, 4, 1, 0},   {256, 32, 4, 1, 5, 3, 1, 0},
};

static const struct product_type types[] = {
    {DT_f32, "m16n8k8.row.col.f32.tf32.tf32.f32", "k8.f32.tf32.tf32", "mf_bits_f32(0xffffe000u & (x))"},
    {DT_f16, "m16n8k16.row.col.f32.f16.f16.f32", "k16.f32.f16.f16", "mf_load_f16(x)"},
    {DT_bf16, "m16n8k16.row.col.f32.bf16.bf16.f32", "k16.f32.bf16.bf16", "mf_load_bf16(x)"},
};

/* ---- which folds ---- */

const struct product_type *mf_gpu_products_type(enum dtype type)
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

int mf_gpu_multiplies_factors(const struct program *program, const struct gpu_contraction *contraction)
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

/* Whether the first output's neighbours lie along the rows. */
static int lies_along_rows(const struct problem *problem, const struct gpu_contraction *c)
{
    const int64_t *stride = problem->memory.out[0];
    const int *count = c->loops.count;
    return stride[c->loops.loop[0][count[0] - 1]] == 1 && stride[c->loops.loop[1][count[1] - 1]] != 1;
}

int mf_gpu_products_find(const struct mf_plan *plan, struct product *product)
{
    const struct problem *problem = &plan->problem;
    const struct program *program = &problem->program;
    const struct reducer *reducer = &program->reducer[0];
    const struct node *nodes = program->map.node;
    const int architecture = MF_GPU_LIMITS(plan->device->gpu)->architecture;
    product->warpgroups = MF_GPU_LIMITS(plan->device->gpu)->warpgroups;
    if ((architecture && architecture < LEAST_ARCHITECTURE) || program->reducer_count != 1 ||
        reducer->kind != RED_FOLD || reducer->fold != FOLD_SUM || nodes[reducer->arg[0]].op != OP_mul ||
        !mf_gpu_contraction_fits(plan, &product->contraction) ||
        !mf_gpu_multiplies_factors(program, &product->contraction))
        return 0;
    if (lies_along_rows(problem, &product->contraction))
        mf_gpu_contraction_turn(problem, &product->contraction);
    for (int f = 0; f < FACTORS; f++) {
        const struct node *node = &nodes[product->contraction.node[f]];
        if (node->op != OP_OPERAND)
            return 0;
        product->operand[f] = node->index;
    }
    product->type = mf_gpu_products_type(problem->in_type[product->operand[0]]);
    if (!product->type || mf_cls_size(reducer->cls) != 4 || !mf_cls_is_float(reducer->cls) ||
        problem->in_type[product->operand[1]] != product->type->type)
        return 0;
    for (int f = 0; f < FACTORS; f++)
        product->vectors[f] = has_pieces(problem, product, f);
    product->rows = mf_factors_positions(problem, &product->contraction.loops, 0);
    product->columns = mf_factors_positions(problem, &product->contraction.loops, 1);
    return has_few_blocks(problem, product);
}

/* ---- forms ---- */

/* The instruction reads 16-bit columns however they lie, others along terms, and does not round. */
static int may_group(const struct product *product, const struct product_form *form)
{
    return product->warpgroups && form->products == 1 &&
           (product->type->type != DT_f32 || (product->contraction.along_terms[COLUMN_FACTOR] && !form->rounds));
}

int mf_gpu_products_may_be(const struct product_form *form, const struct product_tile *tile)
{
    if (tile->products != form->products || (tile->grouped && !form->grouped))
        return 0;
    for (int t = 0; t < PRODUCT_TILES && form->grouped && !tile->grouped; t++) {
        const struct product_tile *other = &mf_gpu_products_tiles[t];
        if (other->grouped && other->rows == tile->rows && other->columns == tile->columns)
            return 0;
    }
    return 1;
}

int mf_gpu_products_read_form(const char *text, const struct product *product, struct product_form *form)
{
    char name[16] = "full";
    int number[4] = {0, 0, 0, 0};
    const int is_f32 = product->type->type == DT_f32;
    int known = !text || mf_gpu_read_form(text, name, 4, number);
    const int rounded = !strcmp(name, "rounded"), tf32 = rounded || !strcmp(name, "tf32");
    *form = (struct product_form){
        .products = is_f32 && !tf32 ? 3 : 1, .cluster = 1, .rounds = !rounded, .number = number[2], .parts = number[3]};
    form->grouped = may_group(product, form);
    for (int t = 0; t < PRODUCT_TILES && number[0]; t++) {
        const struct product_tile *tile = &mf_gpu_products_tiles[t];
        if (tile->rows == number[0] && tile->columns == number[1] && mf_gpu_products_may_be(form, tile))
            form->tile = tile;
    }
    known &= tf32 ? is_f32 : !strcmp(name, "full");
    return known && (form->tile || !number[0]);
}

int mf_gpu_products_is_crowded(const struct product *product, const struct product_tile *tile)
{
    enum { MANY = 64 };
    return !(product->vectors[0] && product->vectors[1]) &&
           tile->rows * tile->columns / mf_gpu_products_threads(tile) > MANY;
}

int mf_gpu_products_threads(const struct product_tile *tile)
{
    return tile->down * tile->right * GPU_WARP;
}

int mf_gpu_products_readers(const struct product_tile *tile)
{
    enum { ROWS_OF_GROUP = 64 };
    return tile->grouped ? tile->rows / ROWS_OF_GROUP : tile->down;
}

int mf_gpu_products_in_cluster(int64_t parts, int products, const struct gpu_limits *limits)
{
    enum { MOST = 8, CLUSTERS_FROM = 90 };
    return limits->dlpack == 2 && limits->architecture >= CLUSTERS_FROM && parts > 1 &&
           parts <= (products == 1 ? MOST : MOST / 2);
}

int mf_gpu_products_least_stages(const struct product_tile *tile)
{
    return tile->grouped ? 5 : 2;
}

int mf_gpu_products_stages(const struct product_tile *tile, int64_t blocks, const struct gpu_limits *limits)
{
    enum { DEEP = 24 };
    return limits->dlpack == 2 && blocks <= limits->multiprocessors ? DEEP : tile->stages;
}

int64_t mf_gpu_products_step(const struct product *p)
{
    return TILE_TERM_BYTES / mf_dtypes[p->type->type].size;
}

int64_t mf_gpu_products_steps(const struct problem *problem, const struct product *p)
{
    const int64_t step = mf_gpu_products_step(p);
    return (problem->reduced_total + step - 1) / step;
}

int64_t mf_gpu_products_sums(const struct product_tile *tile)
{
    return (int64_t)tile->rows * (tile->columns + 8) * (int64_t)sizeof(float);
}

/* ---- texts ---- */

static void write_sides(const struct gpu_slots *slots, const struct product *p, const struct product_tile *tile,
                        int sides, struct gpu_text *to)
{
    for (int f = 0; f < FACTORS; f++) {
        const int slot = slots->of[p->operand[f]];
        if (sides == 1 && !f)
            continue;
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
    return nest->size[nest->kept + nest->reduced - 1] % mf_gpu_products_step(p) == 0;
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

/* Whether the finish part's operands differ along columns alone. */
static int finishes_alike(const struct problem *problem, const struct product *p)
{
    const struct factor_loops *loops = &p->contraction.loops;
    for (int list = 0; list <= FACTORS; list++)
        for (int l = 0; l < loops->count[list]; l++)
            if (list != COLUMN_FACTOR && mf_gpu_finish_varies(problem, loops->loop[list][l]))
                return 0;
    return 1;
}

void mf_gpu_products_texts(const struct mf_plan *plan, const struct product *p, const struct product_form *form,
                           int sides, struct gpu_choice *choice)
{
    const int is_cuda = MF_GPU_LIMITS(plan->device->gpu)->dlpack == 2, item = mf_dtypes[p->type->type].size;
    const struct product_tile *tile = form->tile;
    struct gpu_slots slots;
    mf_emit_slots(&plan->problem, &slots);
    const int x = slots.of[p->operand[0]], y = slots.of[p->operand[1]];
    mf_text_add(&choice->macros,
                "#define ROWS %d\n#define COLUMNS %d\n#define WARPS_DOWN %d\n#define WARPS_RIGHT %d\n"
                "#define CLUSTER %d\n#define STAGES %d\n#define ITEM %d\n#define PRODUCTS %d\n#define ROUNDS %d\n"
                "#define IN_TREE 0\n#define FINISH_ALIKE %d\n#define EVEN_STEPS %d\n#define EVEN_COLUMNS %d\n#define "
                "COLUMN_LOOP %d\n"
                "#define SLOT_X %d\n#define SLOT_Y %d\n#define PLACE_X i%d\n#define PLACE_Y i%d\n"
                "#define GROUPED %d\n#define Y_ALONG_TERMS %d\n#define MMA_NAME \"%s\"\n#define MMA_SUM(x) "
                "\"+f\"(x)\n#define LOAD(x) %s\n"
                "typedef float sum_t;\ntypedef uint%d_t bits_t;\n",
                tile->rows, tile->columns, tile->down, tile->right, form->cluster, form->stages, item, form->products,
                form->rounds, finishes_alike(&plan->problem, p), has_even_steps(&plan->problem, p),
                has_even_columns(&plan->problem, p), last_column_loop(p), x, y, x, y, form->grouped && tile->grouped,
                p->contraction.along_terms[COLUMN_FACTOR], p->type->instruction, p->type->emulated, 8 * item);
    mf_emit_loops(&p->contraction.loops, &choice->functions);
    mf_text_append(&choice->functions, mf_text_terms_cl);
    mf_text_append(&choice->functions, is_cuda ? mf_text_tensor_mma_cu : mf_text_tensor_mma_cl);
    mf_text_append(&choice->functions, is_cuda ? mf_text_product_mma_cu : mf_text_product_mma_cl);
    mf_text_append(&choice->functions, mf_text_product_sizes_cl);
    write_sides(&slots, p, tile, sides, &choice->functions);
}

/* multiply_columns, of kernels/product_group.cu: sums of 16 rows a warp, with as many columns as a block has. 16-bit
 * columns may lie beside each other. */
static void write_group_instruction(const struct product *p, int columns, struct gpu_text *to)
{
    const int halves = p->type->type != DT_f32, sums = columns / 2;
    mf_text_add(to,
                "static inline void multiply_columns(sum_t c[RIGHT][4], const uint32_t x[4], uint64_t columns)\n{\n"
                "    asm volatile(\"{.reg .b32 one; .reg .pred add; mov.b32 one, 1; setp.ne.b32 add, one, 0;\\n\\t\"\n"
                "        \"wgmma.mma_async.sync.aligned.m64n%d%s {",
                columns, p->type->grouped);
    for (int i = 0; i < sums; i++)
        mf_text_add(to, "%s%%%d", i ? "," : "", i);
    mf_text_add(to, "}, {%%%d,%%%d,%%%d,%%%d}, %%%d, add, 1, 1%s;}\"\n        : ", sums, sums + 1, sums + 2, sums + 3,
                sums + 4,
                !halves                                     ? ""
                : p->contraction.along_terms[COLUMN_FACTOR] ? ", 0"
                                                            : ", 1");
    for (int i = 0; i < sums; i++)
        mf_text_add(to, "%s\"+f\"(c[%d][%d])", i ? ", " : "", i / 4, i % 4);
    mf_text_append(
        to, "\n        : \"r\"(x[0]), \"r\"(x[1]), \"r\"(x[2]), \"r\"(x[3]), \"l\"(columns) : \"memory\");\n}\n");
}

void mf_gpu_products_multiply(const struct product *p, const struct product_form *form, struct gpu_choice *choice)
{
    const int grouped = form->grouped && form->tile->grouped;
    if (grouped)
        write_group_instruction(p, form->tile->columns, &choice->functions);
    mf_text_append(&choice->functions, grouped ? mf_text_product_group_cu : mf_text_product_multiply_cl);
    mf_text_append(&choice->functions, mf_text_product_store_cl);
}

const char *mf_gpu_products_precision(const struct product *p, const struct product_form *form)
{
    return p->type->type != DT_f32 ? mf_dtypes[p->type->type].name
           : form->products == 3   ? "f32 as three products of 11 bits"
           : form->rounds          ? "f32 rounded to 11 bits"
                                   : "f32 of 11 bits";
}
