/* Solver "sliding" of a GPU: windows that overlap, along one loop or two, which share what becomes of their elements
 * (kernels/sliding.cl): by stages (sliding_stages.cl), along two down first, then across; or, along two in the
 * contract's order, each output by its own tree (sliding_tree.cl).
 *
 * Bytes: each position is read once from memory, but for those where blocks meet. A stage reads a cell of shared memory
 * (count + behind) / count times and writes it once; of windows up to 16 there is one for each loop, of longer ones
 * two or more. */
#include <math.h>
#include <stdio.h>

#include "../cpu/sliding.h"
#include "emit_reducers.h"
#include "sliding_stages.h"
#include "texts.h"

enum {
    REGISTERS = 1 << 16 /* of a multiprocessor */,
    MOST_STEP = 8,
    MOST_GAP = 8,
    MOST_SIZE = 1 << 27,
    STATE_WORDS = 4,
    LEAST_OF_TREE = 16
};

struct sliding_form {
    struct sliding_side down, across;
    int has_rows, has_planes, channel; /* the kept loop of channels, or -1 */
    int64_t depth, planes_in_all;
    /* narrow: the only reducer's value is an int; simple: or another of 32 bits; keeps: arrays of cells that a stage
     * has besides those that it reads; is_long: to combine two cells takes a division, or exponents; together: outputs
     * that a thread makes at once */
    int narrow, simple, words, cell, keeps, is_long, is_tree, together;
    struct sliding_stages stages;
    int behind[SLIDING_STAGES]; /* mf_sliding_behind */
    /* the tile */
    int threads, planes, rows, out_rows, columns, out_columns, inside, slot, slots, held /* words of a thread */;
    int64_t elements; /* of a window */
    int64_t shared;
    int count[SLIDING_STAGES], units[SLIDING_STAGES];
    int64_t blocks, of[3];
    double time; /* time_of */
};

/* ---- the windows ---- */

/* Whether these moves along a kept and a reduced loop are as step to gap, one of which is 1. */
static int moves_so(int64_t kept, int64_t reduced, int64_t step, int64_t gap)
{
    return kept % step == 0 && reduced % gap == 0 && kept / step == reduced / gap;
}

/* Whether all operands and windows move as far along both loops as the first that moves says. */
static int find_side(const struct problem *problem, int kept, int reduced, struct sliding_side *side)
{
    const struct nest *nest = &problem->memory;
    int64_t step = 0, gap = 0;
    for (int i = 0; i < problem->input_count && !step; i++)
        if (problem->map_uses[i] && nest->in[i][kept] && nest->in[i][reduced]) {
            const int64_t a = nest->in[i][kept], b = nest->in[i][reduced];
            const int64_t unit = mf_gcd(a < 0 ? -a : a, b < 0 ? -b : b) * (b < 0 ? -1 : 1);
            step = a / unit;
            gap = b / unit;
        }
    if (step < 1 || step > MOST_STEP || gap > MOST_SIZE || (step > 1 && gap > 1) || nest->size[kept] > MOST_SIZE ||
        nest->size[reduced] > TILE)
        return 0;
    for (int i = 0; i < problem->input_count; i++)
        if (problem->map_uses[i] && !moves_so(nest->in[i][kept], nest->in[i][reduced], step, gap))
            return 0;
    for (int w = 0; w < nest->window_count; w++) {
        const int64_t *moves = nest->window[w].step;
        if (!moves_so(moves[kept], moves[reduced], step, gap))
            return 0;
    }
    *side = (struct sliding_side){kept, reduced, (int)step, (int)gap, nest->size[kept], nest->size[reduced]};
    return side->elements > 1 && side->step < side->elements * side->gap;
}

/* Columns and channels that are one loop: windows' elements are as far apart as there are channels. */
static void part_channels(struct sliding_form *form)
{
    struct sliding_side *across = &form->across;
    if (across->gap <= MOST_GAP || across->outputs % across->gap)
        return;
    form->channel = across->kept;
    form->depth = across->gap;
    across->outputs /= across->gap;
    across->gap = 1;
}

/* Which loops are rows, columns and channels: the last two or three, or one or two where windows move one way. */
static int find_sides(const struct problem *problem, struct sliding_form *form)
{
    const struct nest *nest = &problem->memory;
    const int first = nest->kept, second = nest->kept + nest->reduced - 1;
    form->has_rows = nest->reduced == 2;
    for (int across = nest->kept - 1; across >= form->has_rows && across >= nest->kept - 2; across--) {
        const int down = across - 1;
        int found = find_side(problem, across, second, &form->across);
        if (form->has_rows && found)
            found = find_side(problem, down, first, &form->down);
        else if (form->has_rows)
            found = find_side(problem, across, first, &form->across) && find_side(problem, down, second, &form->down);
        if (!found)
            continue;
        form->channel = across < nest->kept - 1 ? nest->kept - 1 : -1;
        form->has_planes = across - form->has_rows == 1; /* one loop, the first */
        form->depth = form->channel < 0 ? 1 : nest->size[form->channel];
        if (!form->has_rows)
            form->down = (struct sliding_side){0, 0, 1, 1, 1, 1};
        if (form->channel < 0)
            part_channels(form);
        if (form->across.gap > MOST_GAP || form->down.gap > MOST_GAP)
            return 0;
        form->planes_in_all = problem->kept_total / (form->depth * form->across.outputs * form->down.outputs);
        return form->depth <= MOST_SIZE && form->planes_in_all <= MOST_SIZE;
    }
    return 0;
}

/* ---- the stages ---- */

static enum sliding_order order_of(const struct problem *problem)
{
    if (mf_emit_is_ordered(problem))
        return SLIDING_TREE;
    for (int r = 0; r < problem->program.reducer_count; r++) {
        const enum fold fold = problem->program.reducer[r].fold;
        if (fold == FOLD_SUM || fold == FOLD_PROD || fold == FOLD_XOR)
            return SLIDING_ANY;
    }
    return mf_emit_has_count(problem) ? SLIDING_ANY : SLIDING_AGAIN;
}

/* Whether the only reducer's folds of all elements fit in an int. */
static int is_narrow(const struct problem *problem)
{
    enum { MOST_TERMS = INT32_MAX >> 16 };
    const struct reducer *reducer = &problem->program.reducer[0];
    return problem->program.reducer_count == 1 && mf_emit_is_narrow(problem, 0) &&
           (reducer->fold != FOLD_SUM || problem->reduced_total <= MOST_TERMS);
}

static int find_stages(const struct problem *problem, int at_once, struct sliding_form *form)
{
    const enum sliding_order order = order_of(problem);
    form->narrow = is_narrow(problem);
    const struct reducer *reducer = &problem->program.reducer[0];
    form->simple =
        form->narrow || (problem->program.reducer_count == 1 && reducer->kind == RED_FOLD && reducer->cls == CLS_F32);
    form->is_tree = form->has_rows && order == SLIDING_TREE;
    form->words = form->simple ? 1 + mf_emit_has_count(problem) : mf_emit_state_words(problem);
    form->cell = form->simple ? 4 * form->words : mf_emit_state_bytes(problem);
    form->keeps = order == SLIDING_ANY;
    form->is_long =
        mf_gpu_has_logsums(problem) || (mf_emit_has_kind(problem, RED_MOMENTS) && problem->memory.window_count);
    form->stages.count = 0;
    form->slots = 1;
    form->together = !form->is_tree ? 1 : form->words == 1 ? 8 : form->words == 2 ? 4 : 2;
    if (form->is_tree)
        return problem->reduced_total >= LEAST_OF_TREE && problem->reduced_total <= TILE;
    if (form->has_rows && !mf_sliding_add(&form->stages, 1, form->down.elements, form->down.gap, order, at_once))
        return 0;
    if (!mf_sliding_add(&form->stages, 0, form->across.elements, form->across.gap, order, at_once))
        return 0;
    for (int s = 0; s < form->stages.count; s++) {
        const struct sliding_stage *stage = &form->stages.stage[s];
        form->slots = stage->outputs > form->slots ? stage->outputs : form->slots;
        form->behind[s] = mf_sliding_behind(stage);
    }
    return form->words <= STATE_WORDS;
}

/* ---- the tile ---- */

/* From a cell of a unit to its next one, in cells of the array. */
static int64_t apart_of(const struct sliding_form *form, const struct sliding_stage *stage)
{
    return stage->apart * (stage->is_down ? form->columns : 1) * form->inside;
}

/* How many cells a thread makes in each stage, all of the tile's; whether they fit in registers and shared memory. */
static int fit_stages(struct sliding_form *form, int64_t room)
{
    enum { MOST = 255, OTHERS = 44, OF_LONG = 76, ODD = 32 };
    const int registers = mf_clamp(REGISTERS / form->threads, 0, MOST) - OTHERS - (form->is_long ? OF_LONG : 0);
    const int64_t positions = (int64_t)form->planes * form->rows * form->columns * form->inside;
    int64_t slot = positions, spare = 0;
    form->held = form->is_tree ? 8 * form->together * form->words : 0; /* its states that wait */
    for (int s = 0; s < form->stages.count; s++) {
        const struct sliding_stage *stage = &form->stages.stage[s];
        const int64_t apart = apart_of(form, stage);
        const int64_t groups = apart < form->threads ? form->threads / apart : 1, behind = form->behind[s];
        int64_t count = (positions - 1) / (apart * groups) + 1;
        if (apart < ODD) /* threads are then to meet different banks */
            count |= 1;
        const int64_t held = (stage->inputs + form->keeps) * (count + behind) * form->words;
        if (held > registers)
            return 0;
        form->held = held > form->held ? (int)held : form->held;
        form->count[s] = (int)count;
        form->units[s] = (int)(apart * groups);
        slot = form->units[s] * count > slot ? form->units[s] * count : slot;
        spare = apart * behind > spare ? apart * behind : spare;
    }
    form->shared = form->slots * (slot + spare) * form->cell;
    form->slot = (int)(slot + spare); /* what is read past one array's end nobody writes */
    return form->shared <= room;
}

static int64_t reach(const struct sliding_side *side, int64_t outputs)
{
    return (outputs - 1) * side->step + (side->elements - 1) * side->gap + 1;
}

/* The most outputs along a side that so many positions have, in blocks as large as each other. */
static int64_t outputs_in(const struct sliding_side *side, int64_t positions)
{
    const int64_t rest = positions - (side->elements - 1) * side->gap - 1;
    if (rest < 0)
        return 0;
    const int64_t most = rest / side->step + 1, blocks = (side->outputs - 1) / most + 1;
    return (side->outputs - 1) / blocks + 1;
}

/* The same of rows, which threads have some of together. */
static int64_t rows_in(const struct sliding_form *form, int64_t lines)
{
    const int64_t rest = lines - (form->down.elements - 1) * form->down.gap - 1, together = form->together;
    if (together == 1)
        return outputs_in(&form->down, lines);
    const int64_t most = rest < 0 ? 0 : (rest / form->down.step + 1) / together * together;
    if (!most)
        return 0;
    const int64_t blocks = (form->down.outputs - 1) / most + 1;
    return ((form->down.outputs - 1) / blocks / together + 1) * together;
}

/* A tile of these columns and channels, with as many rows and planes as have room. Returns 0 if it has none. */
static int fit_tile(struct sliding_form *form, int64_t out_columns, int64_t inside, int64_t most, int64_t room)
{
    const int64_t columns = reach(&form->across, out_columns), lines = most / (columns * inside);
    const int64_t out_rows = rows_in(form, lines);
    if (!out_rows)
        return 0;
    const int64_t rows = reach(&form->down, out_rows);
    int64_t planes = 1;
    if (form->has_planes && out_columns == form->across.outputs && out_rows >= form->down.outputs &&
        inside == form->depth)
        planes = lines / rows < form->planes_in_all ? lines / rows : form->planes_in_all;
    form->out_columns = (int)out_columns;
    form->columns = (int)columns;
    form->inside = (int)inside;
    form->out_rows = (int)out_rows;
    form->rows = (int)rows;
    form->planes = (int)planes;
    form->of[0] = (form->depth - 1) / inside + 1;
    form->of[1] = (form->across.outputs - 1) / out_columns + 1;
    form->of[2] = (form->down.outputs - 1) / out_rows + 1;
    const int64_t of_planes = (form->planes_in_all - 1) / planes + 1;
    return mf_mul(form->of[0] * form->of[1], form->of[2], &form->blocks) &&
           mf_mul(form->blocks, of_planes, &form->blocks) && form->blocks <= INT32_MAX && fit_stages(form, room);
}

/* What a form takes: the cells that its stages make, of a few blocks as if all multiprocessors had as many. Few threads
 * and few blocks beside each other leave a multiprocessor waiting. (Runs of 100 of f32 on an H200, parts of a copy: 128
 * threads with 15 cells each .78, with 39 .62; 256 .75 and .47; 512 .53 and .38.) */
static double time_of(const struct sliding_form *form, int multiprocessors)
{
    enum { FEW_ROUNDS = 4, OF_OTHERS = 4 /* reading and writing memory, in stages */, OF_BLOCK = 1000 };
    enum { SHARED = 227 << 10, OTHERS = 24, THREADS = 2048 };
    int beside = REGISTERS / ((form->held + OTHERS) * form->threads);
    beside = beside * form->shared > SHARED ? (int)(SHARED / form->shared) : beside;
    beside = beside * form->threads > THREADS ? THREADS / form->threads : beside < 1 ? 1 : beside;
    const double waiting = (1 + 1024.0 / (beside * form->threads)) * (1 + 0.4 / beside);
    int64_t blocks = form->blocks, cells = (int64_t)form->planes * form->rows * form->columns * form->inside;
    const int64_t units = (int64_t)form->planes * form->out_rows / form->together * form->out_columns * form->inside;
    cells = cells * OF_OTHERS + OF_BLOCK;
    if (blocks < FEW_ROUNDS * multiprocessors)
        blocks = ((blocks - 1) / multiprocessors + 1) * multiprocessors;
    for (int s = 0; s < form->stages.count; s++)
        cells += (int64_t)form->stages.stage[s].inputs * form->units[s] * (form->count[s] + form->behind[s] / 2);
    if (form->is_tree)
        cells += ((units - 1) / form->threads + 1) * form->threads * form->together * form->elements;
    return (double)blocks * (double)cells * waiting;
}

static int choose_tile(const struct mf_plan *plan, struct sliding_form *form)
{
    enum { WHOLE = 64, PART = 32, LEAST_CELLS = 9, MOST_CELLS = 39 /* of a thread */, CELLS_STEP = 6 };
    const struct gpu_limits *limits = MF_GPU_LIMITS(plan->device->gpu);
    const int most_threads = mf_gpu_most_threads(plan, 512),
              sms = limits->multiprocessors > 0 ? limits->multiprocessors : 1;
    const int64_t inside = form->depth <= WHOLE ? form->depth : PART;
    struct sliding_form best = *form;
    best.blocks = 0;
    for (int threads = 128, cells = LEAST_CELLS; threads <= most_threads;
         cells += CELLS_STEP, threads *= cells > MOST_CELLS ? 2 : 1, cells = cells > MOST_CELLS ? LEAST_CELLS : cells) {
        const int64_t most = (int64_t)threads * cells;
        form->threads = threads;
        for (int64_t columns = outputs_in(&form->across, most / inside); columns; columns -= (columns + 7) / 8)
            if (fit_tile(form, columns, inside, most, limits->shared_most)) {
                form->time = time_of(form, sms);
                best = !best.blocks || form->time < best.time ? *form : best;
            }
    }
    *form = best;
    return best.blocks > 0;
}

/* ---- the solver ---- */

/* Whether windows have so many elements that reading each for every output takes longer. */
static int pays(const struct problem *problem, const struct sliding_form *form)
{
    enum { READS_OF_CELL = 5, OF_MOMENTS = 12, OF_LONG = 60, MOST_WASTE = 4 };
    const int reads = form->is_long ? OF_LONG : mf_emit_has_kind(problem, RED_MOMENTS) ? OF_MOMENTS : READS_OF_CELL;
    const double cells = (double)form->blocks * form->planes * form->rows * form->columns * form->inside;
    if (form->is_tree)
        return (double)form->blocks * form->planes * form->out_rows * form->out_columns * form->inside <
               MOST_WASTE * (double)problem->kept_total;
    return cells * reads < (double)problem->kept_total * (double)problem->reduced_total;
}

/* The strip of the problem; returns 0 if it has none. */
static int find_strip(const struct mf_plan *plan, const struct sliding_form *form, struct strips *strips,
                      struct sliding_strip *strip)
{
    *strip = (struct sliding_strip){
        .strips = strips, .down = &form->down, .across = &form->across, .inside = (int)form->depth};
    return form->is_tree && mf_sliding_find_strip(plan, form->planes_in_all, strip);
}

static int find_form(const struct mf_plan *plan, struct sliding_form *form)
{
    const struct problem *problem = &plan->problem;
    *form = (struct sliding_form){.channel = -1, .elements = problem->reduced_total};
    if (!problem->program.reducer_count || !problem->kept_total || !problem->memory.kept ||
        problem->memory.reduced < 1 || problem->memory.reduced > 2 || !mf_gpu_any_order(plan))
        return 0;
    for (int r = 0; r < problem->program.reducer_count; r++)
        if (problem->program.reducer[r].kind == RED_USER || problem->program.reducer[r].kind == RED_ARG)
            return 0;
    if (!find_sides(problem, form))
        return 0;
    struct sliding_form best = *form;
    for (int at_once = 16; at_once <= 32; at_once *= 2)
        if (find_stages(problem, at_once, form) && choose_tile(plan, form) && (!best.blocks || form->time < best.time))
            best = *form;
    *form = best;
    struct sliding_strip strip;
    struct strips strips;
    return form->blocks && pays(problem, form) &&
           (form->words <= STATE_WORDS || find_strip(plan, form, &strips, &strip));
}

/* Whether strips are faster than solver patches too. (On an H200, us of both: means of 5 x 5 of f32 227 and 203, of f64
 * 367 and 436, of RGB pixels 102 and 140; 7 x 7 of f32 308 and 312, of 1080 x 1920 16.5 and 13.7, where 9 x 9 take 20
 * and 47; variances of 4 x 4 249 and 436, of 5 x 5 of 1080 x 1920 29 and 32, of 14 x 14 356 and 252; logsumexp of 4 x 4
 * 355 and 445, of 5 x 5 477 and 673, of 1080 x 1920 23 and 30.) Where more than a tenth of the threads has no outputs,
 * of as many more elements. */
static int is_for_strips(const struct mf_plan *plan, const struct sliding_form *form)
{
    enum { LEAST = 49, LEAST_OF_FEW = 64, LEAST_OF_LARGE = 24, LEAST_OF_STATES = 15 };
    enum { FEW = 1 << 23, LEAST_BUSY = 9, MOST_BUSY = 10 };
    const struct problem *problem = &plan->problem;
    struct sliding_strip strip;
    struct strips strips;
    if (!find_strip(plan, form, &strips, &strip) || (problem->program.reducer_count > 1 && !strip.states))
        return 0;
    const int is_large = form->depth > 1 || problem->program.reducer[0].cls == CLS_F64;
    const int64_t least = strip.states                ? LEAST_OF_STATES
                          : is_large                  ? LEAST_OF_LARGE
                          : problem->kept_total < FEW ? LEAST_OF_FEW
                                                      : LEAST;
    return problem->reduced_total >= least &&
           problem->reduced_total * strip.columns * strip.inside * MOST_BUSY >= least * strip.threads * LEAST_BUSY;
}

/* Whether solver patches, which reads all elements of an output, is faster where it goes: of trees whose outputs share
 * lines there (and exponentials of a logsumexp), of few elements (fewer for pixels, fewest where it does not read them
 * as lines), or where windows have few of each other's. Short rows of an odd number of outputs are for it only where
 * this solver cannot go. */
static int is_for_patches(const struct mf_plan *plan, const struct sliding_form *form)
{
    enum { FEW = 25, FEW_OF_LINES = 16, FEW_OF_PIXELS = 9, FEW_OF_ODD = 4, TOGETHER = 4, MANY = 1 << 19 };
    enum { WIDE_STEPS = 4, WIDE_STEPS_OF_PIXELS = 2, SHORT_ROW = 32 };
    const struct nest *nest = &plan->problem.memory;
    const int steps = form->down.step * form->across.step, pixels = mf_gpu_is_columns(&plan->problem);
    const int64_t row = nest->size[nest->kept - 1];
    const int is_odd = row % TOGETHER && plan->problem.kept_total >= MANY;
    const int read = mf_gpu_patches_reads_lines(plan), logsums = mf_gpu_has_logsums(&plan->problem);
    const int states = logsums || mf_emit_has_kind(&plan->problem, RED_MOMENTS);
    int few = FEW;
    if (!pixels && row < SHORT_ROW && row % 2)
        return 0;
    if (form->is_tree && (read || states) && is_for_strips(plan, form))
        return 0;
    if (read && form->is_tree && (!logsums || mf_gpu_shares_exponentials(&plan->problem)))
        return mf_gpu_patches.applicable(plan);
    if (read && pixels && !form->is_tree)
        few = read > 1 ? FEW_OF_LINES : FEW_OF_PIXELS;
    else if (!read && pixels && (!form->is_tree || row % TOGETHER))
        few = is_odd && !form->is_tree ? FEW_OF_ODD : FEW_OF_PIXELS;
    return (plan->problem.reduced_total <= few || steps >= (pixels ? WIDE_STEPS_OF_PIXELS : WIDE_STEPS)) &&
           mf_gpu_patches.applicable(plan);
}

static int applicable(const struct mf_plan *plan)
{
    struct sliding_form form;
    return !mf_gpu_runs.applicable(plan) && find_form(plan, &form) && !is_for_patches(plan, &form);
}

/* The greatest distance by such moves along four loops. */
static double distance(const int64_t *moves, const int loop[4], const int steps[4])
{
    double all = 0;
    for (int l = 0; l < 4; l++)
        if (steps[l] > 0)
            all += (double)steps[l] * fabs((double)moves[loop[l]]);
    return all;
}

/* Whether distances within a tile, of elements, of windows' places and of outputs, fit in an int; also where threads
 * that have no position left compute one: behind the last plane, row or column. */
static int has_short_offsets(const struct problem *problem, const struct sliding_form *form)
{
    enum { AT_ONCE = 8 /* of kernels/sliding.cl */ };
    const struct nest *nest = &problem->memory;
    const struct sliding_side *down = &form->down, *across = &form->across;
    const int loop[4] = {0, down->gap > 1 ? down->kept : down->reduced,
                         across->gap > 1 ? across->kept : across->reduced, form->channel};
    const int across_threads = form->threads / form->inside; /* a strip's, with columns or not */
    int steps[4] = {form->planes - 1, form->rows - 1,
                    (form->columns > across_threads ? form->columns : across_threads) - 1, form->inside - 1};
    const int outer = form->planes > 1 ? 0 : form->has_rows ? 1 : 2;
    const int row = form->columns * form->inside, cells = outer == 0   ? form->rows * row
                                                          : outer == 1 ? row
                                                                       : form->inside;
    steps[outer] += AT_ONCE * form->threads / cells + 1;
    double most = (double)across->outputs * (double)form->depth * (double)(form->planes * down->outputs);
    for (int i = 0; i < problem->input_count; i++)
        most = problem->map_uses[i] ? fmax(most, distance(nest->in[i], loop, steps)) : most;
    for (int w = 0; w < nest->window_count; w++)
        most = fmax(most, distance(nest->window[w].step, loop, steps));
    return most <= INT32_MAX;
}

static void define_side(const char *name, const struct sliding_side *side, struct gpu_text *macros)
{
    mf_text_add(macros, "#define %s_LOOP %d\n#define %s_REDUCED %d\n#define %s_STEP %d\n#define %s_GAP %d\n", name,
                side->kept, name, side->reduced, name, side->step, name, side->gap);
}

/* The form of a strip, whose cells are numbers. */
static void take_strip(const struct sliding_strip *strip, struct sliding_form *form)
{
    form->planes = 1;
    form->threads = strip->threads;
    form->inside = strip->inside;
    form->out_columns = strip->columns;
    form->columns = (int)reach(&form->across, strip->columns);
    form->out_rows = strip->rows;
    form->rows = (int)reach(&form->down, strip->rows);
    form->of[0] = 1;
    form->of[1] = (form->across.outputs - 1) / strip->columns + 1;
    form->of[2] = (form->down.outputs - 1) / strip->rows + 1;
    form->blocks = form->of[1] * form->of[2] * form->planes_in_all;
    form->shared = strip->shared;
    form->together = strip->at_once;
}

static mf_status make(struct mf_plan *plan)
{
    const struct problem *problem = &plan->problem;
    struct sliding_form form;
    struct sliding_strip strip;
    struct strips parts;
    find_form(plan, &form);
    const int is_strip = find_strip(plan, &form, &parts, &strip);
    if (is_strip)
        take_strip(&strip, &form);
    struct gpu_choice choice = {.kernel = is_strip       ? mf_text_sliding_strips_cl
                                          : form.is_tree ? mf_text_sliding_tree_cl
                                                         : mf_text_sliding_stages_cl,
                                .threads = form.threads,
                                .vector = 1,
                                .vector_loop = -1,
                                .blocks = form.blocks,
                                .shared = form.shared};
    for (int i = 0; i < 3; i++)
        choice.own[i] = form.of[i];
    choice.own[3] = form.planes_in_all;
    choice.own[4] = form.down.outputs;
    choice.own[5] = form.across.outputs;
    choice.own[6] = form.depth;
    choice.own[7] = form.across.outputs * form.depth;
    choice.own[8] = form.down.outputs * form.across.outputs * form.depth;
    choice.own[9] = is_strip ? form.planes_in_all * strip.cut_blocks : 0;
    choice.blocks += choice.own[9];
    define_side("DOWN", &form.down, &choice.macros);
    define_side("ACROSS", &form.across, &choice.macros);
    mf_text_add(&choice.macros,
                "#define SHORT_OFFSETS %d\n#define HAS_ROWS %d\n#define HAS_CHANNELS %d\n#define CHANNEL_LOOP "
                "%d\n#define NARROW %d\n"
                "#define SIMPLE %d\n#define VALUE %s\n#define JOINED %s_%s\n#define PLANES %d\n#define ROWS "
                "%d\n#define OUT_ROWS %d\n#define COLUMNS %d\n"
                "#define OUT_COLUMNS %d\n#define INSIDE %d\n#define SLOT %d\n#define SLOTS %d\n"
                "#define RUN_STAGES ",
                has_short_offsets(problem, &form), form.has_rows, form.channel >= 0,
                form.channel < 0 ? 0 : form.channel, form.narrow, form.simple && !is_strip,
                form.narrow                                  ? "int"
                : problem->program.reducer[0].cls == CLS_F64 ? "double"
                                                             : "float",
                mf_emit_fold_function(problem->program.reducer[0].fold), form.narrow ? "i32" : "f32", form.planes,
                form.rows, form.out_rows, form.columns, form.out_columns, form.inside, form.slot, form.slots);
    for (int s = 0; s < form.stages.count; s++) {
        const struct sliding_stage *stage = &form.stages.stage[s];
        mf_sliding_emit(stage, (int)apart_of(&form, stage), form.count[s], form.units[s], &choice.macros);
    }
    mf_text_add(&choice.macros, "\n#define HELD %d\n#define ELEMENTS_OF_WINDOW %d\n#define ALONG %d\n", form.together,
                (int)problem->reduced_total,
                (int)problem->memory.size[problem->memory.kept + problem->memory.reduced - 1]);
    if (mf_emit_has_kind(problem, RED_MOMENTS) && (is_strip || !problem->memory.window_count))
        mf_text_append(&choice.macros, "#define MERGE_WEIGHTS 1\n");
    mf_text_append(&choice.functions, mf_text_single_cl);
    mf_text_append(&choice.functions, mf_text_sliding_cl);
    if (is_strip)
        mf_sliding_define_parts(plan, &strip, &choice.macros);
    const int n =
        snprintf(choice.text, sizeof choice.text, "%d x %d x %d x %d outputs of %d x %d x %d x %d cells", form.planes,
                 form.out_rows, form.out_columns, form.inside, form.planes, form.rows, form.columns, form.inside);
    snprintf(choice.text + n, sizeof choice.text - (size_t)n,
             is_strip       ? ", a strip, %d rows at once"
             : form.is_tree ? ", %d at once"
                            : ", %d stages",
             form.is_tree ? form.together : form.stages.count);
    return mf_gpu_make(plan, &choice);
}

const struct solver mf_gpu_sliding = {
    "sliding",     "windows that overlap, with shared partial results", applicable, make, mf_gpu_execute, mf_gpu_print,
    mf_gpu_forget,
};
