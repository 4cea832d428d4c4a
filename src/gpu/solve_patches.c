/* Solver "patches" of a GPU: outputs of few elements that lie among their neighbours' (kernels/patches.cl), or, where
 * those are rows of one operand, share them with their neighbours' (kernels/pools.cl). */
#include <stdio.h>

#include "emit_reducers.h"
#include "form.h"
#include "texts.h"

/* MOST_APART: elements from an output's first to its neighbour's. */
enum { THREADS = 128, MOST_ELEMENTS = 36, MOST_APART = 4, STATE_WORDS = 4, LEAST_OUTPUTS = 4096, LEAST_BESIDE = 32 };
enum { MOST_CHANNELS = 16, MOST_GAP = 32 /* bytes, of pixels that pools.cl reads as lines */ };

/* The sum in tree order of lanes `lane`, lane + apart, lane + 2 apart ... as s0, s1 ... (number): depth first, so
 * that few states wait. */
static void add_sum(struct gpu_text *to, int count, int lane, int apart, int number)
{
    const int right = lane + apart;
    if (right >= count) {
        mf_text_add(to, "    struct state s%d = s[%d];\n", number, lane);
        return;
    }
    add_sum(to, count, lane, 2 * apart, number);
    add_sum(to, count, right, 2 * apart, number + apart);
    mf_text_add(to, "    s%d = merged(s%d, %d, s%d, %d, whole, plain);\n", number, number,
                (count - lane - 1) / (2 * apart) + 1, number + apart, (count - right - 1) / (2 * apart) + 1);
}

/* Outputs of few elements, a lane each: the tree over them as straight-line code. */
static void add_tree(const struct problem *problem, struct gpu_choice *choice)
{
    mf_text_add(&choice->macros, "#define MERGE_WEIGHTS %d\n", mf_emit_has_kind(problem, RED_MOMENTS));
    mf_text_append(&choice->functions, mf_text_single_cl);
    mf_text_append(&choice->functions,
                   "static inline struct state tree(const struct state s[ELEMENTS], const int whole, const int "
                   "plain)\n{\n");
    add_sum(&choice->functions, (int)problem->reduced_total, 0, 1, 0);
    mf_text_append(&choice->functions, "    return s0;\n}\n");
}

/* Whether operand i's elements for neighbouring outputs lie close to each other, and are not a row of each alone. */
static int are_near(const struct problem *problem, int i)
{
    const struct nest *nest = &problem->memory;
    const int64_t beside = nest->in[i][nest->kept - 1], apart = beside < 0 ? -beside : beside;
    const int64_t along = nest->in[i][nest->kept + nest->reduced - 1];
    return apart <= MOST_APART && (nest->reduced > 1 || !along || apart < problem->reduced_total);
}

/* ---- pools: rows of one operand ---- */

/* What the threads of pools.cl share: see there. */
struct pool_form {
    int rows, along, gap, apart, pixel, groups, below, outs, vector, chunk, lead, of_columns;
};

/* The loop along which a line's outputs follow each other. */
static int columns_loop(const struct nest *nest, const struct pool_form *pool)
{
    return nest->kept - 1 - (pool->pixel > 1);
}

int mf_gpu_shares_exponentials(const struct problem *problem)
{
    enum { MOST_OF_TWO = 25 /* elements; of more the kernels take all registers */ };
    const struct program *program = &problem->program;
    for (int r = 0; r < program->reducer_count; r++)
        if ((program->reducer[r].kind != RED_LSE && program->reducer[r].kind != RED_FOLD) ||
            program->reducer[r].cls != CLS_F32)
            return 0;
    return mf_gpu_has_logsums(problem) &&
           (program->reducer_count == 1 || (program->reducer_count == 2 && problem->reduced_total <= MOST_OF_TWO));
}

/* Elements that an output may have whose lines neighbours share: more of one result in order than of others, of which
 * they took seconds to compile, or spilled registers. */
static int most_of_pool(const struct problem *problem)
{
    enum { OF_SUMS = 100, OF_LONG = 49 };
    const int is_long = problem->program.reducer[0].cls == CLS_F64, moments = mf_emit_has_kind(problem, RED_MOMENTS);
    if (!mf_emit_is_ordered(problem) || problem->program.reducer_count > 1 || mf_gpu_has_logsums(problem) ||
        mf_gpu_has_long_maps(problem) || (is_long && moments))
        return MOST_ELEMENTS;
    return is_long || moments ? OF_LONG : OF_SUMS;
}

/* Greatest power of two up to `most` that divides n. */
static int power_of(int64_t n, int most)
{
    int p = 1;
    while (p < most && n % (2 * p) == 0)
        p *= 2;
    return p;
}

/* Which windows move along the lines; 0 if one moves both ways, or not as the operand does. */
static int find_windows(const struct nest *nest, struct pool_form *pool)
{
    const int last = nest->kept + nest->reduced - 1, two = nest->reduced > 1, columns = columns_loop(nest, pool);
    const int gap = pool->gap / pool->pixel;
    for (int w = 0; w < nest->window_count; w++) {
        const int64_t *step = nest->window[w].step;
        const int across = step[last] || step[columns];
        if (across && ((two && step[nest->kept]) || step[last] % gap ||
                       !mf_stride_continues(step[columns], step[last] / gap, pool->apart / pool->pixel)))
            return 0;
        if ((pool->pixel > 1 && step[columns + 1]) ||
            (pool->outs > 1 && step[columns - 1] != pool->below * step[nest->kept]))
            return 0;
        pool->of_columns |= across << w;
    }
    return 1;
}

enum { LARGE = 25, MORE = 49 /* elements */ };

/* Whether an output's tree is work enough for many elements a thread. */
static int is_large(const struct pool_form *pool)
{
    return pool->rows * pool->along > LARGE;
}

/* Rows of outputs of a thread, where they share lines: more cost registers. (An H200: 3 x 3 by 2 of bf16, 85 elements,
 * 3,726 GB/s, 51 elements 3,312; of u8 1,297 and 1,564.) */
static void choose_outs(const struct nest *nest, const int64_t *stride, int columns, int item, struct pool_form *pool)
{
    enum {
        MOST_OUTS = 4,
        MOST_SHARED = 64,
        MOST_OF_TWO = 96,
        MANY = 170,
        OF_MORE = 130,
        MANY_APART = 120,
        MANY_HALVES = 96
    };
    const int lines = columns_loop(nest, pool) - 1;
    const int64_t row = nest->reduced > 1 ? stride[nest->kept] : 0, down = lines >= 0 ? stride[lines] : 0;
    if (!row || down % row || down / row < 1 || down / row >= pool->rows)
        return;
    pool->below = (int)(down / row);
    const int64_t height = nest->size[lines];
    pool->outs = power_of(height, MOST_OUTS);
    if (pool->outs == 1)
        pool->outs = mf_power_below(mf_clamp(height, 1, MOST_OUTS));
    while ((height - 1) / pool->outs * pool->outs + pool->outs > height + height / 4)
        pool->outs /= 2;
    const int words = item > 4 ? item / 4 : 1, halves = item == 2 && pool->gap == 1;
    const int full = pool->rows * pool->along > MORE ? OF_MORE : MANY;
    const int many = (halves ? MANY_HALVES : pool->below > 1 ? MANY_APART : full) / words;
    while (pool->outs > 1) {
        const int shared = ((pool->outs - 1) * pool->below + pool->rows) * columns;
        if (shared <= (is_large(pool) ? many : pool->outs == 2 && item > 1 ? MOST_OF_TWO : MOST_SHARED))
            return;
        pool->outs /= 2;
    }
}

static int columns_of(const struct pool_form *pool)
{
    const int last = pool->groups * pool->vector - 1;
    return last / pool->pixel * pool->apart + last % pool->pixel + (pool->along - 1) * pool->gap + 1;
}

/* Elements that a thread reads together: as many as all lines and steps from thread to thread allow. */
static int find_chunk(const struct nest *nest, const int64_t *stride, const struct pool_form *pool, int most)
{
    int chunk = power_of(pool->groups * pool->vector / pool->pixel * pool->apart, most);
    for (int l = 0; l < nest->kept + nest->reduced - 1; l++)
        if (l < columns_loop(nest, pool) || l >= nest->kept)
            chunk = power_of(stride[l], chunk);
    return chunk;
}

/* pixel: channels of neighbours that are pixels apart, or 1. */
static int find_pool(const struct problem *problem, const struct nest *nest, int pixel, struct pool_form *pool)
{
    enum {
        CHUNK_BYTES = 16,
        MOST_VECTOR = 8,
        MOST_OF_LONG = 2,
        MOST_OF_PIXELS = 4,
        OF_SOME = 2,
        SOME = 10,
        MOST_WINDOWS = 30
    };
    enum { MOST_READ = 128, OF_MANY = 140, OF_MANY_HALVES = 198, MOST_BYTES = 640, MANY = 140, MANY_HALVES = 200 };
    const int last = nest->kept - 1, input = mf_gpu_only_operand(problem);
    *pool = (struct pool_form){.rows = 1, .outs = 1, .pixel = pixel, .groups = 1};
    const int line = columns_loop(nest, pool);
    if (input < 0 || nest->reduced > 2 || nest->window_count > MOST_WINDOWS || problem->kept_total > INT32_MAX)
        return 0;
    const int64_t *stride = nest->in[input], gap = stride[nest->kept + nest->reduced - 1], apart = stride[line];
    const int item = mf_dtypes[problem->in_type[input]].size, outside = mf_gpu_widest_outside(problem, last);
    if (gap < 1 || gap > MOST_CHANNELS || (gap > 1 && gap * item > MOST_GAP) || apart < 1 || apart > MOST_CHANNELS ||
        gap % pixel || apart % pixel || stride[last] < 1)
        return 0;
    pool->gap = (int)gap;
    pool->along = (int)nest->size[nest->kept + nest->reduced - 1];
    pool->apart = (int)apart;
    /* of which more outputs take seconds to compile, or spill registers */
    const int is_long =
        mf_emit_has_kind(problem, RED_MOMENTS) || (mf_gpu_has_logsums(problem) && !mf_gpu_shares_exponentials(problem));
    if (is_long && pixel > 1)
        return 0;
    const int most = mf_clamp(CHUNK_BYTES / (item < outside ? item : outside), 1, is_long ? MOST_OF_LONG : MOST_VECTOR);
    pool->vector = pixel == 1 ? power_of(nest->size[last], most)
                              : mf_clamp(most, 1, problem->reduced_total < SOME ? MOST_OF_PIXELS : OF_SOME);
    if (nest->reduced > 1)
        pool->rows = (int)nest->size[nest->kept];
    while (problem->reduced_total > MOST_ELEMENTS && pool->vector > 2 &&
           (pool->rows + 3) * columns_of(pool) > (item == 2 ? MANY_HALVES : MANY))
        pool->vector /= 2;
    pool->groups = pixel / (int)mf_gcd(pixel, pool->vector);
    pool->chunk = find_chunk(nest, stride, pool, CHUNK_BYTES / item);
    if (pool->chunk == 1) /* threads read apart from each other */
        pool->vector = pixel == 1 ? 2 : 1;
    const int columns = columns_of(pool);
    pool->lead = mf_clamp((int64_t)(-(uint64_t)problem->in_base[input] & (uint64_t)(pool->chunk - 1)), 0, columns);
    if (!is_long)
        choose_outs(nest, stride, columns, item, pool);
    const int is_many = problem->reduced_total > MOST_ELEMENTS, read = pool->rows * columns;
    const int few = read <= (!is_many ? MOST_READ : item == 2 ? OF_MANY_HALVES : OF_MANY) && read * item <= MOST_BYTES;
    return pool->vector > 1 && ((gap == 1 && pixel == 1 && !is_many) || few) && find_windows(nest, pool);
}

/* Whether threads to which nothing is outside have a tree of their own: where most warps are such, and it is work. (An
 * H200: var of 3 x 3 f32[8192,8192] 376 us instead of 793, means of 5 x 5 123 and 133; of 3 x 3 135 and 137.) */
static int tells_whole(const struct problem *problem, const struct pool_form *pool, int64_t columns)
{
    enum { LEAST_COLUMNS = 512, MANY = 16 };
    return problem->memory.window_count && columns >= LEAST_COLUMNS &&
           (mf_emit_has_kind(problem, RED_MOMENTS) || pool->rows * pool->along > MANY);
}

/* Pixels of a few channels whose windows are more than one pixel apart. */
static int find_pixels(const struct problem *problem, struct pool_form *pool)
{
    enum { MOST_PIXEL = 4 };
    const struct nest *nest = &problem->memory;
    const int last = nest->kept - 1, input = mf_gpu_only_operand(problem);
    if (last < 1 || input < 0 || nest->in[input][last] != 1 || nest->size[last] > MOST_PIXEL)
        return 0;
    for (int i = 0; i < problem->input_count; i++)
        if (problem->finish_uses[i])
            return 0;
    for (int k = 0; k < problem->output_count; k++)
        if (!mf_stride_continues(nest->out[k][last - 1], nest->out[k][last], nest->size[last]))
            return 0;
    return find_pool(problem, nest, (int)nest->size[last], pool);
}

/* x times the channels; 0 where it is so much that sums of such products may not fit. */
static int scale(int64_t *x, int64_t channels)
{
    enum { MOST = 1 << 24 };
    const int fits = *x >= -MOST && *x <= MOST;
    *x *= fits ? channels : 1;
    return fits;
}

/* Columns of pixels and their channels as one loop along a line, which windows then leave by so many channels together.
 * Returns 0 where they are not that. */
static int merge_channels(const struct problem *problem, struct nest *line)
{
    const struct nest *nest = &problem->memory;
    const int last = nest->kept - 1, loops = nest->kept + nest->reduced;
    const int64_t channels = nest->size[last];
    if (last < 1 || channels > MOST_CHANNELS)
        return 0;
    for (int i = 0; i < problem->input_count; i++)
        if (!mf_stride_continues(nest->in[i][last - 1], nest->in[i][last], channels))
            return 0;
    for (int k = 0; k < problem->output_count; k++)
        if (!mf_stride_continues(nest->out[k][last - 1], nest->out[k][last], channels))
            return 0;
    *line = *nest;
    for (int l = last; l < loops; l++)
        mf_nest_copy_loop(line, l - 1, nest, l);
    line->size[last - 1] *= nest->size[last - 1];
    line->kept--;
    for (int w = 0; w < nest->window_count; w++) {
        struct window *window = &line->window[w];
        const int64_t step = nest->window[w].step[last - 1];
        if (nest->window[w].step[last] || step > 1 || step < 0)
            return 0;
        if (!step)
            continue;
        int fits = scale(&window->offset, channels) && scale(&window->extent, channels);
        for (int l = 0; l < loops - 1; l++)
            fits = fits && scale(&window->step[l], channels);
        if (!fits)
            return 0;
        window->step[last - 1] = 1;
    }
    return 1;
}

static mf_status make_pool(struct mf_plan *plan, const struct pool_form *pool)
{
    const struct problem *problem = &plan->problem;
    const int last = problem->memory.kept - 1, count = pool->rows * pool->along;
    const int any_order = !mf_emit_is_ordered(problem);
    const int line = columns_loop(&problem->memory, pool), span = pool->groups * pool->vector;
    const int64_t columns = problem->memory.size[line] * pool->pixel, across = (columns - 1) / span + 1;
    const int64_t height = pool->outs > 1 ? problem->memory.size[line - 1] : 1, rows = (height - 1) / pool->outs + 1;
    const int64_t units = problem->kept_total / columns / height * rows * across;
    const int item = mf_dtypes[problem->in_type[mf_gpu_only_operand(problem)]].size;
    /* halves of words cost registers then (an H200: 3 x 3 by 2 of bf16 39.8 us instead of 33.8; of f32 136 and 173) */
    const int by_elements = pool->chunk > 1 && item != 2;
    struct gpu_choice choice = {
        .kernel = mf_text_pools_cl, .threads = THREADS, .vector = pool->vector, .vector_loop = last};
    choice.blocks = (units + THREADS - 1) / THREADS;
    choice.own[0] = across;
    choice.own[1] = mf_gpu_divisor(choice.own[0]);
    choice.own[2] = rows;
    choice.own[3] = mf_gpu_divisor(rows);
    add_tree(problem, &choice);
    mf_text_add(
        &choice.macros,
        "#define ROWS %d\n#define ALONG %d\n#define GAP %d\n#define APART %d\n#define BELOW %d\n#define OUTS %d\n"
        "#define ELEMENTS %d\n#define CHUNK %d\n#define LEAD %d\n#define OF_COLUMNS %d\n"
        "#define STORES_VECTORS 1\n#define ANY_ORDER %d\n#define SHARES_COLUMNS %d\n#define SOME_COLUMNS %d\n"
        "#define SOME_ROWS %d\n#define PIXEL %d\n#define GROUPS %d\n#define BY_ELEMENTS %d\n#define IN_WORD %d\n"
        "#define TELLS_WHOLE %d\n#define LANE_PITCH 1\n",
        pool->rows, pool->along, pool->gap, pool->apart, pool->below, pool->outs, count, pool->chunk, pool->lead,
        pool->of_columns, any_order,
        any_order && columns_of(pool) < span * pool->along && !mf_emit_is_narrow(problem, 0) &&
            !mf_emit_has_kind(problem, RED_ARG),
        columns % span != 0, height % pool->outs != 0, pool->pixel, pool->groups, by_elements,
        by_elements && item == 1 && pool->chunk >= (int)sizeof(int32_t) ? (int)sizeof(int32_t) : 1,
        tells_whole(problem, pool, columns));
    snprintf(choice.text, sizeof choice.text, "%d by %d outputs of %d by %d elements a thread, %d read together",
             pool->outs, span, pool->rows, pool->along, pool->chunk);
    return mf_gpu_make(plan, &choice);
}

/* Outputs beside each other, as far as one of them follows the other in all operands. */
static int64_t outputs_beside(const struct problem *problem)
{
    const struct nest *nest = &problem->memory;
    const int last = nest->kept - 1;
    int64_t beside = nest->size[last];
    for (int i = 0; i < problem->input_count && last > 0; i++)
        if (problem->map_uses[i] && !mf_stride_continues(nest->in[i][last - 1], nest->in[i][last], beside))
            return beside;
    return last > 0 ? beside * nest->size[last - 1] : beside;
}

/* Whether what waits in a tree fits in registers; of arguments in any order no states do. */
static int has_small_states(const struct problem *problem)
{
    enum { MOST_WORDS = 128, MOST_OF_LONG = 225 /* of which a thread makes fewer at once */, WORDS_OF_ARGS = 6 };
    const int words = mf_emit_state_words(problem);
    const int most = mf_emit_has_kind(problem, RED_MOMENTS) ? MOST_OF_LONG : MOST_WORDS;
    const int args = mf_emit_has_kind(problem, RED_ARG) && !mf_emit_is_ordered(problem);
    if (words <= (args ? WORDS_OF_ARGS : STATE_WORDS))
        return 1;
    return !mf_gpu_has_logsums(problem) && words * problem->reduced_total <= most;
}

static int can_fold(const struct mf_plan *plan)
{
    const struct problem *problem = &plan->problem;
    if (!problem->program.reducer_count || problem->reduced_total < 2 ||
        problem->reduced_total > most_of_pool(problem) || problem->kept_total < LEAST_OUTPUTS ||
        !problem->memory.kept || !mf_gpu_any_order(plan) || !has_small_states(problem))
        return 0;
    for (int r = 0; r < problem->program.reducer_count; r++)
        if (problem->program.reducer[r].kind == RED_USER ||
            (problem->program.reducer[r].kind == RED_ARG && !mf_nest_is_as_written(&problem->memory)))
            return 0;
    for (int i = 0; i < problem->input_count; i++)
        if (problem->map_uses[i] && !are_near(problem, i))
            return 0;
    return 1;
}

/* Whether outputs are columns, of one operand, that read what others beside them read: channels of pixels, few of them
 * where that is along the last loop. */
static int are_pixels(const struct problem *problem)
{
    const struct nest *nest = &problem->memory;
    const int operand = mf_gpu_only_operand(problem);
    if (operand < 0 || !mf_gpu_is_columns(problem) || mf_emit_bytes_operand(problem) >= 0)
        return 0;
    const int64_t *in = nest->in[operand];
    for (int l = 0; l < nest->kept; l++)
        for (int r = nest->kept; r < nest->kept + nest->reduced; r++)
            if (in[l] > 0 && in[r] > 0 && in[l] / in[r] < nest->size[r] && in[r] / in[l] < nest->size[l] &&
                (l < nest->kept - 1 || in[r] <= MOST_CHANNELS))
                return 1;
    return 0;
}

/* Channels of a thread. */
static int choose_vector(const struct problem *problem)
{
    enum { MOST_BYTES = 16, MOST_VECTOR = 8, MOST_LOADED = 400, MOST_OF_LONG = 2, LEAST_THREADS = 1 << 15 };
    enum { MOST_OF_ARGS = 100 /* elements, of which more spilled registers */ };
    const int item = mf_gpu_widest_item(problem), count = (int)problem->reduced_total;
    const int is_long = mf_emit_has_kind(problem, RED_MOMENTS) || mf_gpu_has_logsums(problem);
    const int most = is_long ? MOST_OF_LONG : mf_clamp(MOST_BYTES / item, 1, MOST_VECTOR);
    int vector = mf_gpu_vector_along(problem, problem->memory.kept - 1, most);
    const int loaded = mf_emit_has_kind(problem, RED_ARG) ? MOST_OF_ARGS : MOST_LOADED / item;
    while (vector > 1 && (vector * count > loaded || problem->kept_total / vector < LEAST_THREADS))
        vector /= 2;
    return vector;
}

/* Whether pixels are read as lines of numbers. (An H200: 3 x 3 of f32 with 3 channels 117 us instead of 329, with 8 74
 * and 95; of few f16 with 4 channels 4.1 and 3.2.) */
static int find_lines(const struct problem *problem, struct nest *nest, struct pool_form *pool)
{
    enum { MANY = 1 << 19 };
    if (are_pixels(problem) && choose_vector(problem) > 1 && problem->kept_total < MANY)
        return 0;
    if (merge_channels(problem, nest))
        return find_pool(problem, nest, 1, pool);
    *nest = problem->memory;
    if (nest->size[nest->kept - 1] < LEAST_BESIDE)
        return find_pixels(problem, pool);
    return find_pool(problem, nest, 1, pool);
}

/* Whether outputs share lines of elements, of so many loops, in such a pool. */
static int find_shared(const struct problem *problem, struct nest *nest, struct pool_form *pool)
{
    *nest = problem->memory;
    if (problem->reduced_total > most_of_pool(problem))
        return 0;
    return mf_gpu_is_columns(problem) ? find_lines(problem, nest, pool) : find_pool(problem, nest, 1, pool);
}

int mf_gpu_patches_pay(const struct mf_plan *plan)
{
    const struct problem *problem = &plan->problem;
    struct nest nest;
    struct pool_form pool;
    if (!mf_gpu_is_columns(problem) || !can_fold(plan))
        return 0;
    if (problem->reduced_total > MOST_ELEMENTS)
        return are_pixels(problem) && find_shared(problem, &nest, &pool);
    return (are_pixels(problem) && outputs_beside(problem) >= LEAST_BESIDE) || find_pixels(problem, &pool);
}

int mf_gpu_patches_reads_lines(const struct mf_plan *plan)
{
    const struct problem *problem = &plan->problem;
    struct nest nest;
    struct pool_form pool;
    const int may = !mf_gpu_is_columns(problem) || are_pixels(problem);
    return may && find_shared(problem, &nest, &pool) ? pool.chunk : 0;
}

static int applicable(const struct mf_plan *plan)
{
    const struct problem *problem = &plan->problem;
    struct nest nest;
    struct pool_form pool;
    if (mf_gpu_is_columns(problem))
        return mf_gpu_patches_pay(plan);
    return can_fold(plan) && ((problem->memory.size[problem->memory.kept - 1] >= LEAST_BESIDE &&
                               problem->reduced_total <= MOST_ELEMENTS) ||
                              find_shared(problem, &nest, &pool));
}

static mf_status make(struct mf_plan *plan)
{
    enum { MOST_LOADED = 40, MOST_OUTS = 4 };
    const struct problem *problem = &plan->problem;
    const int count = (int)problem->reduced_total, is_pixels = are_pixels(problem);
    int inputs = 0;
    struct nest nest;
    struct pool_form pool;
    if (find_shared(problem, &nest, &pool)) {
        plan->problem.memory = nest;
        return make_pool(plan, &pool);
    }
    for (int i = 0; i < problem->input_count; i++)
        inputs += problem->map_uses[i];
    const int vector = is_pixels ? choose_vector(problem) : 1;
    const int several = mf_power_below(mf_clamp(MOST_LOADED / (count * (inputs > 1 ? inputs : 1)), 1, MOST_OUTS));
    const int outs = vector > 1 ? vector : several;
    struct gpu_choice choice = {.kernel = mf_text_patches_cl,
                                .threads = THREADS,
                                .vector = vector,
                                .vector_loop = vector > 1 ? problem->memory.kept - 1 : -1};
    choice.blocks = (problem->kept_total + THREADS * outs - 1) / (THREADS * outs);
    add_tree(problem, &choice);
    mf_text_add(
        &choice.macros,
        "#define ELEMENTS %d\n#define OUTS %d\n#define STORES_VECTORS %d\n#define ANY_ORDER %d\n#define LANE_PITCH 1\n",
        count, outs, vector > 1, !mf_emit_is_ordered(problem));
    snprintf(choice.text, sizeof choice.text, "%d outputs of %d elements a thread%s", outs, count,
             vector > 1 ? ", read together" : "");
    return mf_gpu_make(plan, &choice);
}

const struct solver mf_gpu_patches = {
    "patches",      "few elements each, which lie among their neighbours'",
    applicable,     make,
    mf_gpu_execute, mf_gpu_print,
    mf_gpu_forget,
};
