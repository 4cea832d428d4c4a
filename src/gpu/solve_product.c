/* Solver "product" of a GPU: sums of products of two operands on tensor cores (kernels/product.cl), convolutions
 * without a copied window among them. Its order of adding is the instruction's own, so it runs with MF_ORDER_FREE, or
 * asked for by name: "product:FORM:ROWS:COLUMNS:PARTS".
 *
 *   full   f32 as sums of two numbers of 11 bits: about f32's precision (docs/numerics.md, section 15); the form of
 *          16-bit floats too, whose products are exact
 *   tf32   f32 rounded to 11 bits
 *   rounded  f32 that has 11 bits: others are ignored, and a NaN that has only those is taken as an infinity
 *
 * ROWS x COLUMNS of a block and PARTS of the terms: 0 for the solver's own choice. */
#include <math.h>
#include <stdio.h>

#include "product.h"
#include "texts.h"

static int applicable(const struct mf_plan *plan)
{
    struct product product;
    return mf_gpu_products_find(plan, &product);
}

int mf_gpu_product_pays(const struct mf_plan *plan)
{
    enum { FEW = 8, SHORT = 16 };
    struct product product;
    return MF_GPU_LIMITS(plan->device->gpu)->architecture && mf_gpu_products_find(plan, &product) &&
           product.rows >= FEW && product.columns >= FEW && plan->problem.reduced_total >= SHORT;
}

/* ---- forms ---- */

static int64_t blocks_of(const struct problem *problem, const struct product *p, const struct product_tile *tile)
{
    const int64_t batch = problem->kept_total / p->rows / p->columns;
    return batch * ((p->rows + tile->rows - 1) / tile->rows) * ((p->columns + tile->columns - 1) / tile->columns);
}

/* As many stages as the tile has, or there is shared memory for; what an emulated instruction takes is left. */
static int stages_of(const struct problem *problem, const struct product *p, const struct product_form *form,
                     const struct gpu_limits *limits)
{
    const struct product_tile *tile = form->tile;
    const int64_t bytes = (int64_t)(tile->rows + tile->columns) * TILE_TERM_BYTES;
    return mf_clamp((limits->shared_most - LEFT) / bytes, mf_gpu_products_least_stages(tile),
                    mf_gpu_products_stages(tile, blocks_of(problem, p, tile) * form->number, limits));
}

/* Blocks of a tile that run on a multiprocessor at once. */
static int64_t room_for(const struct product_tile *tile)
{
    enum { SHARED_BYTES = 224 << 10 };
    return mf_clamp(SHARED_BYTES / ((tile->rows + tile->columns) * TILE_TERM_BYTES * tile->stages), 1, tile->beside);
}

/* What an H200 does in a nanosecond, and nanoseconds: of a block's beginning and end, of a step, of joining parts. Of
 * one product of factors fitted to 255 times of tiles and parts; what clusters use and bring, and what many warps hide,
 * was then set so that what was fastest is chosen. Of tiles for four warps set by hand, by times of a network's layers.
 * Of three products fitted to 45, which it gives within 13 %. */
static const struct product_rates {
    double products, shared_bytes, cache_bytes, read_again, cluster_bytes, begin, latency, in_cluster, in_workspace;
    double step, used_by_4, used_by_8; /* the part of the multiprocessors that get a block: clusters leave gaps */
    double many;                       /* blocks after each other, of which those that are done early make room */
} single = {1312, 170, 8780, 200, 3300, 4600, 155, 0, 8400, 0, 0.905, 0.78, 4},
  grouped = {2440, 110, 8780, 200, 3300, 6000, 190, 0, 8400, 0, 0.905, 0.78, 4},
  triple = {1294, 198, 11539, 100, HUGE_VAL, 3617, 85, 447, 6012, 15, 0.875, 0.6, HUGE_VAL};

static double rounds(const struct product_rates *rates, double blocks)
{
    return blocks <= rates->many ? ceil(blocks) : blocks + 0.25;
}

static double used_part(const struct product_rates *rates, const struct product_tile *tile, int64_t parts,
                        const struct gpu_limits *limits)
{
    if (!mf_gpu_products_in_cluster(parts, tile->products, limits))
        return 1;
    if (tile->grouped && room_for(tile) > 1) /* its blocks fill the gaps */
        return rates->used_by_4;
    return parts <= 4 ? rates->used_by_4
                      : rates->used_by_4 + (rates->used_by_8 - rates->used_by_4) * (double)(parts - 4) / 4;
}

/* Nanoseconds that a tile in so many parts takes, about: a step by its products, by what warps read from shared memory
 * and copies bring there, or by what the cache brings to all; one block's steps after each other; joining the parts. */
static double cost_of(const struct problem *problem, const struct product *p, const struct product_tile *tile,
                      int64_t parts, const struct gpu_limits *limits)
{
    const struct product_rates *rates = tile->grouped ? &grouped : tile->products == 1 ? &single : &triple;
    const int many_warps = tile->down * tile->right > 4 && p->type->type == DT_f32 && tile->products == 1;
    const double memory_bytes = 4000, latency = tile->grouped ? rates->latency - tile->columns * 0.5
                                                : many_warps  ? rates->latency / 2
                                                              : rates->latency;
    const double used = used_part(rates, tile, parts, limits) * limits->multiprocessors;
    const int64_t blocks = blocks_of(problem, p, tile) * parts;
    const double steps = (double)((mf_gpu_products_steps(problem, p) + parts - 1) / parts);
    const double waves = rounds(rates, (double)blocks / (used * (double)room_for(tile))),
                 each = tile->grouped ? waves * (double)room_for(tile) : rounds(rates, (double)blocks / used);
    const double outputs = (double)tile->rows * tile->columns, bytes = (tile->rows + tile->columns) * TILE_TERM_BYTES;
    const double multiply = outputs * TILE_TERM_BYTES / 2 * tile->products / rates->products;
    const double reads =
        TILE_TERM_BYTES * (double)(tile->rows * tile->right + tile->columns * mf_gpu_products_readers(tile));
    const double wider = tile->grouped ? 0.16 * tile->columns : 0; /* a wide instruction reads faster */
    const double step = fmax(multiply, fmax((reads + bytes) / (rates->shared_bytes + wider),
                                            bytes * (double)limits->multiprocessors / rates->cache_bytes));
    const double busy = each * steps * (step + rates->step),
                 waits = waves * (steps * (latency + 1.05 * multiply) + rates->begin);
    const double sums = (double)blocks * outputs * 8 / memory_bytes + outputs * 4 * (double)parts / rates->read_again;
    return fmax(busy + rates->begin, waits) +
           (parts == 1 ? 0
            : mf_gpu_products_in_cluster(parts, tile->products, limits)
                ? rates->in_cluster + (double)blocks * outputs * 4 / rates->cluster_bytes
                : rates->in_workspace + sums);
}

/* Whether a tile is not worth a look: it is crowded; or two of these lie beside each other where a wide one reads less
 * (which the costs above do not see). */
static int is_out_of_question(const struct product *p, const struct product_tile *tile)
{
    enum { WIDE = 64 };
    return mf_gpu_products_is_crowded(p, tile) || (tile->columns < WIDE && p->columns >= 2 * tile->columns);
}

/* The tile and parts that cost least, of those that are given; returns what they cost. */
static double choose_form(const struct problem *problem, const struct product *p, const struct gpu_limits *limits,
                          struct product_form *form)
{
    const struct product_form given = *form;
    const int64_t steps = mf_gpu_products_steps(problem, p);
    double least = 0;
    form->tile = NULL;
    for (int t = 0; t < PRODUCT_TILES; t++) {
        const struct product_tile *tile = &mf_gpu_products_tiles[t];
        if (!mf_gpu_products_may_be(&given, tile) || mf_gpu_products_sums(tile) > limits->shared_most - LEFT ||
            (given.tile ? tile != given.tile : is_out_of_question(p, tile)))
            continue;
        for (int64_t parts = given.number ? given.number : 1;
             parts <= (given.number ? given.number : MOST_PARTS) && (parts == 1 || given.number || parts * 4 <= steps);
             parts++) {
            const double cost = cost_of(problem, p, tile, parts, limits);
            if (form->tile && cost >= least)
                continue;
            form->tile = tile;
            form->number = parts;
            least = cost;
        }
    }
    return least;
}

double mf_gpu_product_cost(const struct mf_plan *plan, const struct product *product, const struct product_form *like)
{
    struct product_form form = *like;
    form.tile = NULL;
    form.number = 0;
    return choose_form(&plan->problem, product, MF_GPU_LIMITS(plan->device->gpu), &form);
}

/* FORM[:ROWS[:COLUMNS[:PARTS]]] */
static mf_status read_form(const char *text, const struct product *product, struct product_form *form)
{
    if (mf_gpu_products_read_form(text, product, form) && form->number <= MOST_PARTS && !form->parts)
        return MF_OK;
    return mf_fail(MF_ERROR_ARGUMENT,
                   "solver product has no form \"%.40s\" for %s; a form is full, or tf32 or rounded for f32, then "
                   "perhaps :ROWS:COLUMNS:PARTS, of blocks that are 192, 64 or 32 x 64, 128, 64 or 32 x 32, "
                   "128 x 16, or if not full f32 128 x 128 or 256 x 32 or 16%s, and at most %d parts",
                   text ? text : "", mf_dtypes[product->type->type].name,
                   form->grouped ? ", or 128 x 256, 256 or 192 x 128, or 128 x 64" : "", MOST_PARTS);
}

/* ---- plans ---- */

static void write_texts(const struct mf_plan *plan, const struct product *p, const struct product_form *form,
                        struct gpu_choice *choice)
{
    mf_text_add(&choice->macros,
                "#define PARTED %d\n#define X_STAGED 1\n#define BEFORE_STAGES 0\n"
                "#define RESIDENT 0\n#define POOLS_EARLY 0\n",
                form->cluster == 1 && form->number > 1);
    mf_gpu_products_texts(plan, p, form, 3, choice);
    mf_text_append(&choice->functions, mf_text_product_rows_cl);
    mf_gpu_products_multiply(p, form, choice);
}

/* The form's parts become as many as have terms. */
static void place_parts(const struct problem *problem, const struct product *p, const struct gpu_limits *limits,
                        struct product_form *form, struct gpu_choice *choice)
{
    const struct product_tile *tile = form->tile;
    const int64_t step = mf_gpu_products_step(p), steps = mf_gpu_products_steps(problem, p);
    const int64_t each = (steps + form->number - 1) / form->number, parts = (steps + each - 1) / each;
    const int64_t blocks = blocks_of(problem, p, tile), floats = (int64_t)sizeof(float);
    const int64_t sums = blocks * parts * tile->rows * tile->columns * floats;
    const int64_t stages = (int64_t)(tile->rows + tile->columns) * TILE_TERM_BYTES * form->stages;
    form->number = parts;
    form->cluster = mf_gpu_products_in_cluster(parts, tile->products, limits) ? (int)parts : 1;
    choice->shared = mf_gpu_products_sums(tile) > stages ? mf_gpu_products_sums(tile) : stages;
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
    mf_gpu_products_find(plan, &product);
    MF_TRY(read_form(plan->form, &product, &form));
    plan->form = NULL;
    choose_form(&plan->problem, &product, limits, &form);
    if (!form.tile)
        return mf_fail(MF_ERROR_UNSUPPORTED, "%s has %lld bytes of shared memory, too few for these blocks",
                       limits->name, (long long)limits->shared_most);
    form.stages = stages_of(&plan->problem, &product, &form, limits);
    struct gpu_choice choice = {.kernel = mf_text_product_cl,
                                .threads = mf_gpu_products_threads(form.tile),
                                .vector = PIECE_BYTES / mf_dtypes[product.type->type].size,
                                .flat = 1,
                                .beside = form.tile->beside};
    place_parts(&plan->problem, &product, limits, &form, &choice);
    write_texts(plan, &product, &form, &choice);
    snprintf(choice.text, sizeof choice.text, "%lld x %lld outputs, %d x %d a block, %lld part%s of the terms%s, %s",
             (long long)product.rows, (long long)product.columns, form.tile->rows, form.tile->columns,
             (long long)choice.own[2], choice.own[2] == 1 ? "" : "s", form.cluster > 1 ? " in a cluster" : "",
             mf_gpu_products_precision(&product, &form));
    return mf_gpu_make(plan, &choice);
}

const struct solver mf_gpu_product = {
    "product",      "sums of products of two operands on tensor cores, in any order",
    applicable,     make,
    mf_gpu_execute, mf_gpu_print,
    mf_gpu_forget,
};
