/* Solver "window" of a GPU: convolutions as sums of products on tensor cores (kernels/window.cl), like solver product,
 * but what a block's positions need of the operand with windows is read once. By name:
 * "window:STAYS:FORM:ROWS:COLUMNS:ACROSS:PARTS", a form as of solver product, then a block's rows x columns, the
 * positions across of a tile, and parts of the terms, by channels; 0: its choice. STAYS: what is in shared memory for
 * all of a block's tiles (Tandon and Kim, "CS492 Project 3", 2020, section 2.3.1, call it weight- and input-
 * stationary),
 *
 *   weights  all of the other operand: a block goes on from tile to tile of positions
 *   inputs   what a tile of positions reads: the block goes over all columns
 *
 * or left out: what costs least, of these two and a block for every tile of both.
 *
 * With plan->pool, the greatest of 2 x 2 positions are the outputs: mf_plan_create_pooled. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "product.h"
#include "texts.h"

/* Rows of positions, places in them, and the loop over a window's rows; in the memory of x: elements between such rows,
 * which are so many for the next row of positions, elements to the next position, and that a position reads of a row;
 * elements that a position has, of which terms may have a part, or 0. */
struct windows {
    int down, across, taps;
    int64_t pitch, row_step, position, reach, channels;
};

/* How positions lie in a block, and what that takes of shared memory. */
enum stays { STAYS_ANY, STAYS_WEIGHTS, STAYS_INPUTS };
struct window_tile {
    struct product_form form;
    enum stays wanted;
    int64_t parts, down, across, span_bytes, offset_bytes, before, shared; /* before: the stages */
    int64_t position_pieces, last_pieces;                                  /* in a span: to the next one; of the last */
    int pools_early;                                                       /* a thread has what is pooled */
    int resident, room; /* all of the other operand stays there; blocks that a multiprocessor has room for */
    int inputs;         /* the block has all columns */
};

/* ---- which folds ---- */

/* The reduced loop that steps from row to row of x as the loop down does, and what the other ones reach. */
static int find_taps(const struct nest *nest, const int64_t *stride, struct windows *w, int64_t *reach)
{
    enum { MOST_STEP = 4 };
    w->taps = -1;
    for (int l = nest->kept; l < nest->kept + nest->reduced; l++) {
        if (stride[l] <= 0)
            return 0;
        if (w->taps < 0 && stride[w->down] % stride[l] == 0 && stride[w->down] / stride[l] <= MOST_STEP)
            w->taps = l;
    }
    *reach = 1;
    for (int l = nest->kept; l < nest->kept + nest->reduced; l++)
        *reach += l == w->taps ? 0 : (nest->size[l] - 1) * stride[l];
    return w->taps >= 0 && *reach <= stride[w->taps] && stride[w->taps] <= INT_MAX / nest->size[w->taps];
}

/* Whether terms are channels beside each other, all that a position has, of one position and others. */
static int has_channels(const struct nest *nest, const int64_t *stride, const struct windows *w)
{
    const int last = nest->kept + nest->reduced - 1;
    for (int l = nest->kept; l < last; l++)
        if (l != w->taps && stride[l] % w->position)
            return 0;
    return last != w->taps && nest->size[last] % w->position == 0;
}

static int find_windows(const struct mf_plan *plan, struct product *product, struct windows *w)
{
    const struct nest *nest = &plan->problem.memory;
    int64_t reach;
    if (!mf_gpu_products_find(plan, product) || !product->vectors[0] || nest->window_count ||
        product->contraction.loops.count[0] < 2 || product->contraction.fast_loop[0] != nest->kept + nest->reduced - 1)
        return 0;
    const int64_t *stride = nest->in[product->operand[0]];
    const int *rows = product->contraction.loops.loop[0], count = product->contraction.loops.count[0];
    const int elements = PIECE_BYTES / mf_dtypes[product->type->type].size;
    w->across = rows[count - 1];
    w->down = rows[count - 2];
    if (stride[w->across] < elements || stride[w->down] <= 0 || !find_taps(nest, stride, w, &reach) ||
        stride[w->across] > 2 * reach)
        return 0;
    w->pitch = stride[w->taps];
    w->row_step = stride[w->down] / w->pitch;
    w->position = stride[w->across];
    w->reach = reach;
    w->channels = has_channels(nest, stride, w) ? w->position : 0;
    return nest->size[w->down] <= INT_MAX / 2 && nest->size[w->across] <= INT_MAX / 2;
}

static int applicable(const struct mf_plan *plan)
{
    struct product product;
    struct windows w;
    const int64_t *size = plan->problem.memory.size;
    return find_windows(plan, &product, &w) &&
           (!plan->pool[0] ||
            (size[w.down] % 2 == 0 && size[w.across] % 2 == 0 && plan->problem.output_count == 1 &&
             size[w.down] == plan->pool_of[0] && size[w.across] == plan->pool_of[1] && /* not merged */
             /* one of each for a pooled output */
             !mf_gpu_finish_varies(&plan->problem, w.down) && !mf_gpu_finish_varies(&plan->problem, w.across)));
}

/* ---- tiles ---- */

static int64_t over(int64_t n, int64_t by)
{
    return (n + by - 1) / by;
}

/* Blocks that have so much shared memory and that a multiprocessor takes at once. */
static int room_for(const struct product_tile *tile, int64_t shared)
{
    enum { SHARED_BYTES = 224 << 10, OWN = 1024, FEW_COLUMNS = 16, MANY = 6 };
    const int beside = tile->columns <= FEW_COLUMNS && tile->products == 1 ? MANY : tile->beside;
    return mf_clamp(SHARED_BYTES / (shared + OWN), 1, beside);
}

/* Bytes of so many places for spans, and of the offsets. An instruction that reads tiles in shared memory itself wants
 * them to begin at multiples of 1024. */
static int64_t before_stages(const struct window_tile *t, int places)
{
    enum { ALIGNED = 1024 };
    const int64_t bytes = places * t->span_bytes + t->offset_bytes;
    return t->form.tile->grouped ? over(bytes, ALIGNED) * ALIGNED : bytes;
}

/* What a span has of positions: all elements, or a part's channels. */
static void set_pieces(const struct product *p, const struct windows *w, struct window_tile *t)
{
    const int64_t elements = PIECE_BYTES / mf_dtypes[p->type->type].size;
    t->position_pieces = w->position / t->parts / elements;
    t->last_pieces = t->parts == 1 ? over(w->reach, elements) : over(w->reach, w->position) * t->position_pieces;
}

/* Whether whole tiles of terms are in a part's channels. */
static int has_parts(const struct product *p, const struct windows *w, int64_t parts)
{
    return parts == 1 || (w->channels && w->channels % (parts * mf_gpu_products_step(p)) == 0);
}

/* Whether all positions have the same other operand. */
static int has_one_other(const struct problem *problem, const struct product *p)
{
    return p->rows * p->columns == problem->kept_total;
}

/* Tiles of columns that are blocks of their own. */
static int64_t blocks_right(const struct product *p, const struct window_tile *t)
{
    return t->inputs ? 1 : over(p->columns, t->form.tile->columns);
}

/* Tiles of positions, times the blocks along the columns, without parts. */
static int64_t blocks_of(const struct problem *problem, const struct product *p, const struct windows *w,
                         const struct window_tile *t)
{
    const int64_t *size = problem->memory.size, positions = size[w->down] * size[w->across];
    return problem->kept_total / positions / p->columns * blocks_right(p, t) * over(size[w->down], t->down) *
           over(size[w->across], t->across);
}

/* Shared memory: with all of y where two blocks have room for that, or it is to stay; else as many stages of it as the
 * tile has or there is room for. Returns 0 where there is none. */
static int fits(const struct problem *problem, const struct product *p, const struct windows *w,
                const struct gpu_limits *limits, struct window_tile *t)
{
    const struct product_tile *tile = t->form.tile;
    const int64_t spans = (t->down - 1) * w->row_step + problem->memory.size[w->taps];
    set_pieces(p, w, t);
    const int64_t span = (t->across - 1) * t->position_pieces + t->last_pieces;
    const int64_t stage = (int64_t)tile->columns * TILE_TERM_BYTES, most = limits->shared_most - LEFT;
    const int64_t steps = mf_gpu_products_steps(problem, p) / t->parts,
                  sums = mf_gpu_products_sums(tile) / (t->pools_early ? 4 : 1);
    if (span > most || spans > most)
        return 0;
    t->span_bytes = (over(spans * span, 8) * 8 + 8) * PIECE_BYTES;
    t->offset_bytes = steps * TILE_TERM_BYTES / PIECE_BYTES * (int64_t)sizeof(int);
    t->before = before_stages(t, 2);
    t->shared = t->before + steps * stage + sums;
    t->resident = t->parts == 1 && t->shared <= most && !t->inputs && has_one_other(problem, p) &&
                  (t->wanted == STAYS_WEIGHTS || room_for(tile, t->shared) > 1);
    t->form.stages = (int)steps;
    if (!t->resident) {
        const int least = mf_gpu_products_least_stages(tile);
        t->before = before_stages(t, 1);
        const int64_t sums_end = sums + (t->inputs ? t->before : 0);
        if (t->wanted == STAYS_WEIGHTS || t->before + least * stage > most || sums_end > most)
            return 0;
        t->form.stages = mf_clamp((most - t->before) / stage, least,
                                  mf_gpu_products_stages(tile, blocks_of(problem, p, w, t) * t->parts, limits));
        t->shared = t->before + t->form.stages * stage > sums_end ? t->before + t->form.stages * stage : sums_end;
    }
    t->room = room_for(tile, t->shared);
    return 1;
}

/* Nanoseconds on an H200, about: a step by its products, by what warps read from shared memory and copies bring there,
 * or by what the cache brings to all, and the instructions around a tile; or one block's tiles after each other.
 * (Fitted to 88 times, without the copies of a resident operand, which were added so that what was fastest is
 * chosen. Tiles for four warps as in solve_product.c. `again`, what the pipeline of a block with all columns takes to
 * begin once more, is a guess, and such blocks are slower than this says: bench/results/gpu-h200-net-kinds-f32.md.) */
static double cost_of(const struct problem *problem, const struct product *p, const struct windows *w,
                      const struct window_tile *t, int multiprocessors)
{
    const double products = t->form.tile->grouped ? 2440 : 989, cache_bytes = 11539,
                 shared_bytes = t->form.tile->grouped ? 110 + 0.16 * t->form.tile->columns : 501,
                 cluster_bytes = 3300; /* a nanosecond */
    const double copies = 60 /* a multiprocessor */, around = t->resident ? 502 : 938, latency = t->resident ? 7 : 113;
    const struct product_tile *tile = t->form.tile;
    const double used = t->parts == 1 ? 1 : t->parts <= 4 ? 0.905 : 0.78; /* clusters leave gaps */
    const int64_t blocks = blocks_of(problem, p, w, t) * t->parts,
                  room = (int64_t)((double)(t->room * (int64_t)multiprocessors) * used);
    const double steps = (double)mf_gpu_products_steps(problem, p) / (double)t->parts,
                 waves = (double)over(blocks, room);
    const double begin =
        (t->parts > 1 ? 6300 : 4575) +
        (t->resident ? (double)tile->columns * TILE_TERM_BYTES * steps : (double)t->span_bytes) / copies;
    const double again = 700,
                 tiles = t->inputs ? (double)over(p->columns, tile->columns) : 1; /* of a block's columns */
    const double copied = (t->resident ? 0 : tile->columns * TILE_TERM_BYTES) + (double)t->span_bytes / steps / tiles;
    const double multiply = (double)tile->rows * tile->columns * TILE_TERM_BYTES / 2 * tile->products / products;
    const double read =
        (TILE_TERM_BYTES * (tile->rows * tile->right + tile->columns * mf_gpu_products_readers(tile)) + copied) /
        shared_bytes;
    const double step = fmax(multiply, fmax(read, copied * multiprocessors / cache_bytes));
    const double issue = around * mf_gpu_products_threads(tile) / 128;
    const double joining = t->parts == 1 ? 0 : (double)blocks * tile->rows * tile->columns * 4 / cluster_bytes;
    const double busy =
        (double)over(blocks, (int64_t)(multiprocessors * used)) * tiles * (steps * step + issue) + begin + joining;
    const double one = steps * (latency + 1.05 * multiply);
    return fmax(busy, t->resident ? begin + waves * (one + 206)
                                  : waves * (tiles * one + (tiles - 1) * again + begin) + joining);
}

/* 8 positions are read together, every second where they are pooled: they should be beside each other. */
static int64_t least_across(int64_t size, int64_t even)
{
    return size < 8 * even ? over(size, even) * even : 8 * even;
}

/* Each has two rows where they are pooled, and not more than there are. */
static int64_t most_across(int64_t size, int64_t even, int64_t rows)
{
    const int64_t all = over(size, even) * even;
    return rows / even < all ? rows / even : all;
}

/* Whether a tile is what was asked for; without that, one with few warps is not worth a look, nor a crowded one, nor
 * one with few columns of many, unless nothing wider may fit. */
static int is_in_question(const struct product_tile *tile, const struct product *p, const struct window_tile *asked)
{
    enum { FEW_WARPS = 4, FEW_COLUMNS = 16 };
    if (asked->form.tile)
        return tile == asked->form.tile;
    return mf_gpu_products_may_be(&asked->form, tile) && tile->down * tile->right >= FEW_WARPS &&
           !mf_gpu_products_is_crowded(p, tile) &&
           (tile->columns > FEW_COLUMNS || p->columns <= FEW_COLUMNS || asked->wanted == STAYS_WEIGHTS);
}

/* Fills in what follows from a tile's rows, columns, positions across and parts. Returns 0 where it does not fit, or is
 * not worth a look: parts that nobody asked for join in clusters alone. */
static int may_try(const struct mf_plan *plan, const struct product *p, const struct windows *w, int asked_parts,
                   struct window_tile *t)
{
    const struct product_tile *tile = t->form.tile;
    const struct gpu_limits *limits = MF_GPU_LIMITS(plan->device->gpu);
    const int64_t size = plan->problem.memory.size[w->down], even = plan->pool[0] ? 2 : 1;
    t->down = tile->rows / t->across / even * even;
    t->down = t->down < size ? t->down : size;
    if (!t->down)
        return 0;
    t->pools_early = even == 2 && t->parts == 1 && tile->rows / tile->down % 32 == 0;
    t->form.cluster = mf_gpu_products_in_cluster(t->parts, t->form.products, limits) ? (int)t->parts : 1;
    return has_parts(p, w, t->parts) && (t->parts == 1 || t->form.cluster > 1 || asked_parts) &&
           fits(&plan->problem, p, w, limits, t);
}

/* The tile that costs least, of those that are given; returns what it costs; form.tile is null where none fits. */
static double choose_tile(const struct mf_plan *plan, const struct product *p, const struct windows *w,
                          struct window_tile *best)
{
    const struct problem *problem = &plan->problem;
    const struct gpu_limits *limits = MF_GPU_LIMITS(plan->device->gpu);
    const struct window_tile given = *best;
    const int64_t *size = problem->memory.size, even = plan->pool[0] ? 2 : 1;
    const int asked = (int)given.form.parts;
    enum { MOST_TRIED = 8 };
    double least = 0;
    best->form.tile = NULL;
    for (int i = 0; i < 2 * PRODUCT_TILES; i++) { /* each in blocks of its own, and with all columns in a block */
        struct window_tile t = given;
        t.form.tile = &mf_gpu_products_tiles[i / 2];
        t.inputs = i % 2;
        if (!is_in_question(t.form.tile, p, &given) || given.wanted == (t.inputs ? STAYS_WEIGHTS : STAYS_INPUTS) ||
            (t.inputs && (asked > 1 || (given.wanted == STAYS_ANY && p->columns <= t.form.tile->columns))))
            continue;
        const int64_t all = most_across(size[w->across], even, t.form.tile->rows), across = given.form.number;
        for (t.across = across ? across : least_across(size[w->across], even);
             t.across <= (across && across < all ? across : all) && t.across % even == 0; t.across += even)
            for (t.parts = asked ? asked : 1; t.parts <= (asked ? asked : t.inputs ? 1 : MOST_TRIED); t.parts *= 2) {
                if (!may_try(plan, p, w, asked, &t))
                    continue;
                const double cost = cost_of(problem, p, w, &t, limits->multiprocessors);
                if (best->form.tile && cost >= least)
                    continue;
                *best = t;
                least = cost;
            }
    }
    return least;
}

/* With the pool, or solver product and a fold for the pool: whose launch, and writing and reading what it reads. */
static int pooling_pays(const struct mf_plan *plan, const struct product *p, const struct window_tile *t, double cost)
{
    const double fewer_stores = 0.8, launch = 2000, memory_bytes = 2500; /* nanoseconds; a nanosecond */
    const double bytes = 2 * (double)plan->problem.kept_total * mf_dtypes[plan->problem.out_type[0]].size;
    return fewer_stores * cost < mf_gpu_product_cost(plan, p, &t->form) + launch + bytes / memory_bytes;
}

int mf_gpu_window_pays(const struct mf_plan *plan)
{
    struct product product;
    struct windows w;
    struct window_tile t = {0};
    if (!mf_gpu_product_pays(plan) || !find_windows(plan, &product, &w))
        return 0;
    mf_gpu_products_read_form(NULL, &product, &t.form);
    const double cost = choose_tile(plan, &product, &w, &t);
    return t.form.tile && cost < mf_gpu_product_cost(plan, &product, &t.form);
}

/* ---- plans ---- */

static void write_macros(const struct mf_plan *plan, const struct product *p, const struct windows *w,
                         const struct window_tile *t, struct gpu_choice *choice)
{
    struct gpu_slots slots;
    int shift = 3, mask = 0;
    mf_emit_slots(&plan->problem, &slots);
    const int64_t apart = t->position_pieces * (t->pools_early ? 2 : 1); /* what is read together */
    if ((apart & (apart - 1)) == 0) {
        mask = (apart < 8 ? (int)apart : 8) - 1;
        while ((int64_t)1 << shift < apart)
            shift++;
    }
    mf_text_add(&choice->macros,
                "#define PARTED %d\n#define PARTS %d\n#define CHANNELS %d\n#define PART_CHANNELS %d\n#define X_STAGED "
                "0\n#define RESIDENT %d\n#define BEFORE_STAGES %lld\n#define TILE_DOWN %d\n"
                "#define TILE_ACROSS %d\n#define ROW_STEP %d\n#define TAPS %d\n#define POSITION_PIECES %d\n"
                "#define LAST_PIECES %d\n#define TERM_PIECES %d\n#define EXCHANGE_SHIFT %d\n#define EXCHANGE_MASK %d\n"
                "#define LOOP_DOWN %d\n#define LOOP_ACROSS %d\n#define LOOP_TAPS %d\n#define POOL %d\n"
                "#define POOLS_EARLY %d\n#define ELEMENTS_X in%d\n#define INPUTS_STAY %d\n#define SUMS_AT %lld\n",
                t->parts > 1 && t->form.cluster == 1, (int)t->parts, (int)w->position,
                t->parts > 1 ? (int)(w->position / t->parts) : 0, t->resident, (long long)t->before, (int)t->down,
                (int)t->across, (int)w->row_step, (int)plan->problem.memory.size[w->taps], (int)t->position_pieces,
                (int)t->last_pieces, (int)(t->offset_bytes / (int64_t)sizeof(int)), shift, mask, w->down, w->across,
                w->taps, plan->pool[0] ? 2 : 1, t->pools_early, slots.of[p->operand[0]], t->inputs,
                t->inputs ? (long long)t->before : 0);
    mf_gpu_products_texts(plan, p, &t->form, 1, choice);
    mf_text_append(&choice->functions, mf_text_window_rows_cl);
    mf_gpu_products_multiply(p, &t->form, choice);
}

static mf_status make_choice(struct mf_plan *plan, const struct product *p, const struct windows *w,
                             const struct window_tile *t)
{
    const struct product_tile *tile = t->form.tile;
    const int64_t *size = plan->problem.memory.size;
    struct gpu_choice choice = {.kernel = mf_text_window_cl,
                                .threads = mf_gpu_products_threads(tile),
                                .vector = PIECE_BYTES / mf_dtypes[p->type->type].size,
                                .flat = 1,
                                .beside = t->resident ? t->room : tile->beside,
                                .shared = t->shared,
                                .blocks = blocks_of(&plan->problem, p, w, t)};
    const int64_t right = blocks_right(p, t);
    choice.own[0] = right;
    choice.own[4] = choice.own[5] = choice.blocks / right;
    const int64_t room = over(t->room * MF_GPU_LIMITS(plan->device->gpu)->multiprocessors, right);
    if (t->resident && choice.own[4] > room) {
        choice.own[5] = over(choice.own[4], over(choice.own[4], room)); /* as many tiles for each */
        choice.blocks = choice.own[5] * right;
    }
    choice.own[1] = over(size[w->across], t->across);
    choice.own[2] = over(size[w->down], t->down);
    choice.own[6] = mf_gpu_divisor(choice.own[1]);
    choice.own[8] = mf_gpu_divisor(choice.own[2]);
    choice.own[3] = p->rows / size[w->down] / size[w->across];
    choice.own[7] = p->columns;
    if (!t->resident) {
        choice.own[4] = choice.blocks * t->parts * tile->rows * tile->columns * (int64_t)sizeof(float);
        if (t->parts > 1 && t->form.cluster == 1)
            choice.workspace_bytes = choice.own[4] + choice.blocks * (int64_t)sizeof(uint32_t);
        choice.blocks *= t->parts;
    }
    write_macros(plan, p, w, t, &choice);
    snprintf(choice.text, sizeof choice.text,
             "%lld x %lld outputs, %lld x %lld positions x %d a block, %lld bytes of what they read%s, %lld part%s of "
             "the terms%s, %s%s",
             (long long)p->rows, (long long)p->columns, (long long)t->down, (long long)t->across, tile->columns,
             (long long)t->span_bytes,
             t->resident ? " at a time, weights stay"
             : t->inputs ? " for all columns"
                         : "",
             (long long)t->parts, t->parts == 1 ? "" : "s", t->form.cluster > 1 ? " in a cluster" : "",
             mf_gpu_products_precision(p, &t->form), plan->pool[0] ? ", the greatest of 2 x 2" : "");
    return mf_gpu_make(plan, &choice);
}

/* STAYS and what stands behind it; null: nothing. */
static const char *read_stays(const char *form, enum stays *stays)
{
    static const char *const names[] = {[STAYS_WEIGHTS] = "weights", [STAYS_INPUTS] = "inputs"};
    *stays = STAYS_ANY;
    for (int s = STAYS_WEIGHTS; form && s <= STAYS_INPUTS; s++) {
        const size_t length = strlen(names[s]);
        if (strncmp(form, names[s], length) != 0 || (form[length] && form[length] != ':'))
            continue;
        *stays = (enum stays)s;
        return form[length] ? form + length + 1 : NULL;
    }
    return form;
}

/* Of numbers that no tile has; MF_OK where there is some with these. */
static mf_status check_numbers(const struct mf_plan *plan, const struct product *p, const struct windows *w,
                               const struct window_tile *asked)
{
    enum { MOST_ROWS = 256 };
    const int64_t size = plan->problem.memory.size[w->across], even = plan->pool[0] ? 2 : 1;
    const int64_t rows = asked->form.tile ? asked->form.tile->rows : MOST_ROWS, across = asked->form.number;
    const int64_t least = even, most = most_across(size, even, rows);
    if (across && (across > most || across % even))
        return mf_fail(MF_ERROR_UNSUPPORTED,
                       "%lld positions beside each other in a block were asked for, and here there are %lld to %lld%s",
                       (long long)across, (long long)least, (long long)most, even == 2 ? ", an even number" : "");
    if (asked->form.parts && !has_parts(p, w, asked->form.parts))
        return mf_fail(MF_ERROR_UNSUPPORTED,
                       "%lld parts of the channels were asked for, and %lld channels are not so many times %lld, or "
                       "not beside each other for all terms",
                       (long long)asked->form.parts, (long long)w->position, (long long)mf_gpu_products_step(p));
    return MF_OK;
}

static mf_status fail_without_tile(const struct mf_plan *plan, const struct product *p, const struct windows *w,
                                   const struct window_tile *asked)
{
    enum { LEAST_COLUMNS = 16 };
    MF_TRY(check_numbers(plan, p, w, asked));
    const struct gpu_limits *limits = MF_GPU_LIMITS(plan->device->gpu);
    const long long room = limits->shared_most, columns = asked->form.tile ? asked->form.tile->columns : LEAST_COLUMNS;
    if (asked->wanted != STAYS_WEIGHTS)
        return mf_fail(MF_ERROR_UNSUPPORTED, "%s has %lld bytes of shared memory, too few for what a block would read",
                       limits->name, room);
    if (!has_one_other(&plan->problem, p))
        return mf_fail(MF_ERROR_UNSUPPORTED,
                       "window:weights keeps one operand for all %lld positions, and here every %lld of them have "
                       "their own",
                       (long long)plan->problem.kept_total / p->columns, (long long)p->rows);
    return mf_fail(MF_ERROR_UNSUPPORTED,
                   "%s has %lld bytes of shared memory, too few for weights that stay there, %lld terms of %lld "
                   "columns%s (%lld bytes), and for what positions read",
                   limits->name, room, (long long)plan->problem.reduced_total, columns,
                   asked->form.tile ? "" : " or more",
                   (long long)mf_gpu_products_steps(&plan->problem, p) * TILE_TERM_BYTES * columns);
}

static mf_status make(struct mf_plan *plan)
{
    struct product product = {0};
    struct windows w;
    struct window_tile t = {0};
    find_windows(plan, &product, &w);
    if (!mf_gpu_products_read_form(read_stays(plan->form, &t.wanted), &product, &t.form))
        return mf_fail(MF_ERROR_ARGUMENT,
                       "solver window has no form \"%.40s\" for %s; a form is weights or inputs, for what stays, or "
                       "neither, then one of solver product's, and perhaps :ACROSS:PARTS, the positions beside each "
                       "other in a block and parts of the channels",
                       plan->form ? plan->form : "", mf_dtypes[product.type->type].name);
    if (t.wanted && t.form.parts > 1)
        return mf_fail(MF_ERROR_ARGUMENT, "%lld parts of the channels were asked for, and what stays is not cut",
                       (long long)t.form.parts);
    const struct window_tile asked = t;
    const double cost = choose_tile(plan, &product, &w, &t);
    if (t.form.tile && plan->pool[0] && !asked.form.tile && !asked.wanted && !pooling_pays(plan, &product, &t, cost))
        return mf_fail(MF_ERROR_UNSUPPORTED, "solver product and a pool are faster");
    if (!t.form.tile)
        return fail_without_tile(plan, &product, &w, &asked);
    plan->form = NULL;
    if (plan->pool[0])
        mf_gpu_pool_output(plan, w.down, w.across);
    return make_choice(plan, &product, &w, &t);
}

const struct solver mf_gpu_window = {
    "window",       "convolutions on tensor cores, windows read once, in any order",
    applicable,     make,
    mf_gpu_execute, mf_gpu_print,
    mf_gpu_forget,
};
