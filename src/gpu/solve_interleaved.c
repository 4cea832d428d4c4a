/* Solver "interleaved" of a GPU: few columns beside each other (kernels/interleaved.cl). */
#include <stdio.h>

#include "form.h"
#include "texts.h"

enum { MOST_COLUMNS = 16, MOST_WORDS = 32, MOST_THREADS = 512, SHARED_BYTES = 40 << 10 };

/* Elements that a thread reads together: 16 bytes, unless its lanes are then too many words. */
static int vector_of(const struct problem *problem)
{
    int vector = 16 / mf_gpu_widest_item(problem), words = mf_emit_lane_words(problem);
    while (vector > 1 && vector * words > MOST_WORDS)
        vector /= 2;
    return vector;
}

static int64_t columns_of(const struct problem *problem)
{
    return problem->memory.size[problem->memory.kept - 1];
}

static int64_t pictures_of(const struct problem *problem)
{
    return problem->memory.kept > 1 ? problem->memory.size[0] : 1;
}

/* Threads for the rows of a step. */
static int team_of(const struct problem *problem)
{
    return (int)columns_of(problem) * LANES / vector_of(problem);
}

/* Whether every operand inside the reducers is rows of a few elements, one after the other, or a batch of such at equal
 * distances, of 16 bytes. */
static int lies_in_rows(const struct problem *problem)
{
    const struct nest *nest = &problem->memory;
    const int last = nest->kept - 1;
    int used = 0;
    if (nest->kept < 1 || nest->kept > 2 || nest->reduced != 1 || nest->window_count || nest->size[last] < 2 ||
        nest->size[last] > MOST_COLUMNS)
        return 0;
    for (int i = 0; i < problem->input_count; i++) {
        if (!problem->map_uses[i])
            continue;
        used = 1;
        if (nest->in[i][last] != 1 || nest->in[i][last + 1] != nest->size[last] ||
            (last && nest->in[i][0] % (16 / mf_dtypes[problem->in_type[i]].size)))
            return 0;
    }
    return used;
}

/* Of more tiles the groups are too many for one step. (Sums of bytes of one picture are solver bytes'.) */
static int applicable(const struct mf_plan *plan)
{
    const struct problem *problem = &plan->problem;
    return mf_gpu_any_order(plan) && lies_in_rows(problem) && !mf_gpu_has_logsums(problem) &&
           (problem->memory.kept > 1 || mf_emit_bytes_operand(problem) < 0) &&
           problem->reduced_total <= (int64_t)TILE * TILE * LANES &&
           team_of(problem) <= mf_gpu_most_threads(plan, MOST_THREADS) &&
           2 * LANES * columns_of(problem) * mf_emit_state_bytes(problem) <= SHARED_BYTES;
}

/* Whether pictures of a batch are read faster by blocks of their own than as columns, which read odd numbers of
 * channels one by one, and parts of tiles slowly where they are bytes. (Measured on an H200.) */
static int batch_pays(const struct problem *problem)
{
    enum { FEW = 256, MORE = 2048, MANY = 4096, /* blocks */ MOST_BYTES = 12 /* of a row */ };
    const int64_t columns = columns_of(problem), tiles = problem->reduced_total / TILE;
    const int item = mf_gpu_widest_item(problem), even = columns % 2 == 0, whole = problem->reduced_total % TILE == 0;
    int64_t least = FEW;
    if (mf_emit_lane_words(problem) > 1) {
        const int as_fast = item == 1 ? whole : item == 2 ? columns > 6 : columns != 4;
        if (item > 4 || (even && as_fast))
            return 0;
        least = MORE;
    } else if (item == 1 && even) {
        if (mf_emit_bytes_operand(problem) >= 0)
            least = MANY;
        else if (whole && columns > MOST_BYTES)
            return 0;
    }
    return tiles >= 2 && tiles * pictures_of(problem) >= least;
}

/* Columns of fewer tiles are read as fast without. (Measured on an H200.) */
int mf_gpu_interleaved_pays(const struct mf_plan *plan)
{
    const struct problem *problem = &plan->problem;
    if (!applicable(plan))
        return 0;
    if (problem->memory.kept > 1)
        return batch_pays(problem);
    const int64_t columns = columns_of(problem), tiles = problem->reduced_total / TILE;
    return tiles >= (columns & (columns - 1) ? 512 : 2048);
}

/* How tiles are shared out: to `blocks` blocks, `teams` at a time; beside: gpu_choice's. */
struct interleaved_form {
    int whole_lanes, teams, beside;
    int64_t blocks;
};

/* A lane of a group of tiles to each block; as many threads as a multiprocessor has room for if all blocks run together
 * (`room` for one's threads), whose tiles then take as many rounds as fewer threads would. */
static struct interleaved_form whole_lanes(const struct mf_plan *plan, int64_t tiles, int room, int most_teams)
{
    const int64_t groups = (tiles + TILE - 1) / TILE, left = tiles - (groups - 1) * TILE;
    const int64_t blocks = (groups - 1) * LANES + mf_clamp(left, 1, LANES);
    const int64_t all = (int64_t)room * MF_GPU_LIMITS(plan->device->gpu)->multiprocessors;
    const int of_lane = (int)(((tiles < TILE ? tiles : TILE) + LANES - 1) / LANES);
    const int most = mf_gpu_most_threads(plan, MOST_THREADS);
    const int teams = mf_clamp(mf_clamp(all / blocks, most / 4, most) / team_of(&plan->problem), 1, most_teams);
    const int rounds = (of_lane + teams - 1) / teams;
    return (struct interleaved_form){.whole_lanes = 1, .teams = (of_lane + rounds - 1) / rounds, .blocks = blocks};
}

/* Tiles dealt out one by one. Small teams: in blocks that all run together, the size that lets most teams do so where a
 * multiprocessor has room for so many warps. Larger ones: in several times as many blocks of one, which start as others
 * end. */
static struct interleaved_form dealt(const struct mf_plan *plan, int64_t tiles, int words, int most_teams)
{
    enum { WARPS = 24, WARPS_OF_MANY = 16, FEW_WORDS = 8, LARGE_TEAM = 128, ROOM = 680, WAVES = 5 };
    const int team = team_of(&plan->problem), most = mf_gpu_most_threads(plan, MOST_THREADS);
    const int multiprocessors = MF_GPU_LIMITS(plan->device->gpu)->multiprocessors;
    struct interleaved_form form = {.teams = 1};
    int64_t beside = 1;
    if (team > LARGE_TEAM) {
        form.beside = words > FEW_WORDS ? 0 : ROOM / team;
        form.blocks = mf_clamp(tiles, 1, WAVES * (ROOM / team) * multiprocessors);
        return form;
    }
    for (int n = 1; n <= most_teams && n * team <= most; n++) {
        const int fit = (words > FEW_WORDS ? WARPS_OF_MANY : WARPS) / ((n * team + GPU_WARP - 1) / GPU_WARP);
        if (fit * n >= beside * form.teams) {
            beside = fit;
            form.teams = n;
        }
    }
    form.blocks = mf_clamp((tiles + form.teams - 1) / form.teams, 1, (int)beside * multiprocessors);
    return form;
}

/* Whole lanes of 16-bit elements leave multiprocessors idle where they are few; less so where the columns are a power
 * of two. (Measured on an H200.) */
static struct interleaved_form form_of(const struct mf_plan *plan, int64_t tiles, int words)
{
    enum { SHORT_ROOM = 640, LEAST_COLUMNS = 6, MOST_GROUPS = 3 };
    const struct problem *problem = &plan->problem;
    const int64_t columns = columns_of(problem);
    const int item = mf_gpu_widest_item(problem);
    const int most = (int)(SHARED_BYTES / (LANES * columns * mf_emit_state_bytes(problem))) - 1;
    if (problem->memory.kept == 1 && item == 2 && columns >= LEAST_COLUMNS && columns & (columns - 1) &&
        tiles <= MOST_GROUPS * TILE)
        return dealt(plan, tiles, words, most);
    return whole_lanes(plan, tiles, item < 4 ? SHORT_ROOM : GPU_ROOM, most);
}

/* Whether elements are read past what the caches hold. (Measured on an H200.) */
static int reads_once(const struct problem *problem, int vector)
{
    enum { LEAST_COLUMNS = 5 };
    const int64_t columns = columns_of(problem);
    const int item = mf_gpu_widest_item(problem);
    return (item == 1 || (item == 2 && columns >= LEAST_COLUMNS && columns & (columns - 1))) &&
           mf_gpu_reads_once(problem, vector, READ_BY_COLUMNS);
}

static mf_status make(struct mf_plan *plan)
{
    enum { FOUR_STEPS = 4 * LANES };
    const struct problem *problem = &plan->problem;
    const int vector = vector_of(problem), words = mf_emit_lane_words(problem) * vector;
    const int64_t tiles = (problem->reduced_total + TILE - 1) / TILE, columns = columns_of(problem);
    const int64_t pictures = pictures_of(problem);
    int inputs = 0;
    for (int i = 0; i < problem->input_count; i++)
        inputs += problem->map_uses[i];
    const int batch = inputs > 1 || words > 16 ? 4 : 8;
    const struct interleaved_form form = form_of(plan, tiles, words);
    const int64_t places = form.whole_lanes ? form.blocks : (tiles + FOUR_STEPS - 1) / FOUR_STEPS * FOUR_STEPS;
    struct gpu_choice choice = {.kernel = mf_text_interleaved_cl,
                                .threads = form.teams * team_of(problem),
                                .beside = form.beside,
                                .vector = vector,
                                .vector_loop = 0,
                                .flat = 1,
                                .reads_once = reads_once(problem, vector),
                                .blocks = pictures * form.blocks,
                                .own = {tiles, form.blocks, places * columns, pictures}};
    if (mf_gpu_widest_item(problem) >= 4 && inputs == 1 && words <= 16)
        choice.beside = GPU_ROOM / choice.threads;
    choice.workspace_bytes = pictures * (places * columns * mf_emit_state_bytes(problem) + (int64_t)sizeof(uint32_t));
    const int item = inputs == 1 ? mf_gpu_widest_item(problem) : 4;
    mf_text_append(&choice.functions, mf_text_taken_cl);
    mf_text_add(&choice.macros,
                "#define COLUMNS %d\n#define BATCH %d\n#define WHOLE_LANES %d\n#define PICTURES %d\n#define ITEM %d\n",
                (int)columns, batch, form.whole_lanes, problem->memory.kept > 1,
                item < 4 && item * vector % 4 == 0 ? item : 0);
    snprintf(choice.text, sizeof choice.text, "%d columns, vectors of %d, %lld blocks of %d tiles at a time",
             (int)columns, vector, (long long)form.blocks, form.teams);
    return mf_gpu_make(plan, &choice);
}

const struct solver mf_gpu_interleaved = {
    "interleaved",  "few columns beside each other, whatever a vector's elements belong to",
    applicable,     make,
    mf_gpu_execute, mf_gpu_print,
    mf_gpu_forget,
};
