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

/* Threads for the rows of a step. */
static int team_of(const struct problem *problem)
{
    return (int)problem->kept_total * LANES / vector_of(problem);
}

/* Whether every operand inside the reducers is rows of a few elements, one after the other. */
static int lies_in_rows(const struct problem *problem)
{
    const struct nest *nest = &problem->memory;
    int used = 0;
    if (nest->kept != 1 || nest->reduced != 1 || nest->window_count || nest->size[0] < 2 ||
        nest->size[0] > MOST_COLUMNS)
        return 0;
    for (int i = 0; i < problem->input_count; i++) {
        if (!problem->map_uses[i])
            continue;
        used = 1;
        if (nest->in[i][0] != 1 || nest->in[i][1] != nest->size[0])
            return 0;
    }
    return used;
}

/* Of more tiles the groups are too many for one step. (Sums of bytes are solver bytes'.) */
static int applicable(const struct mf_plan *plan)
{
    const struct problem *problem = &plan->problem;
    return mf_gpu_any_order(plan) && lies_in_rows(problem) && !mf_gpu_two_phases(problem) &&
           mf_emit_bytes_operand(problem) < 0 && problem->reduced_total <= (int64_t)TILE * TILE * LANES &&
           team_of(problem) <= mf_gpu_most_threads(plan, MOST_THREADS) &&
           2 * LANES * problem->kept_total * mf_emit_state_bytes(problem) <= SHARED_BYTES;
}

/* Columns of fewer tiles are read as fast without. (Measured on an H200.) */
int mf_gpu_interleaved_pays(const struct mf_plan *plan)
{
    const int64_t columns = plan->problem.kept_total, tiles = plan->problem.reduced_total / TILE;
    return applicable(plan) && tiles >= (columns & (columns - 1) ? 512 : 2048);
}

/* Blocks: a lane of a group of tiles each. */
static int64_t blocks_of(int64_t tiles)
{
    const int64_t groups = (tiles + TILE - 1) / TILE;
    return (groups - 1) * LANES + mf_clamp(tiles - (groups - 1) * TILE, 1, LANES);
}

/* Tiles of a block at a time: as many threads as a multiprocessor has room for if all blocks run together (`room` for
 * one's threads), whose tiles then take as many rounds as fewer threads would. */
static int teams_of(const struct mf_plan *plan, int64_t tiles, int64_t blocks, int room)
{
    const struct problem *problem = &plan->problem;
    const int64_t all = (int64_t)room * MF_GPU_LIMITS(plan->device->gpu)->multiprocessors;
    const int64_t step_bytes = LANES * problem->kept_total * mf_emit_state_bytes(problem);
    const int of_lane = (int)(((tiles < TILE ? tiles : TILE) + LANES - 1) / LANES);
    const int most = mf_gpu_most_threads(plan, MOST_THREADS);
    int teams = mf_clamp(all / blocks, most / 4, most) / team_of(problem);
    teams = mf_clamp(teams, 1, (int)(SHARED_BYTES / step_bytes) - 1);
    const int rounds = (of_lane + teams - 1) / teams;
    return (of_lane + rounds - 1) / rounds;
}

static mf_status make(struct mf_plan *plan)
{
    enum { SHORT_ROOM = 640 }; /* short elements become more lanes, which take registers (measured on an H200) */
    const struct problem *problem = &plan->problem;
    const int vector = vector_of(problem), words = mf_emit_lane_words(problem) * vector;
    const int room = mf_gpu_widest_item(problem) < 4 ? SHORT_ROOM : GPU_ROOM;
    const int64_t tiles = (problem->reduced_total + TILE - 1) / TILE;
    const int64_t blocks = blocks_of(tiles);
    int inputs = 0;
    for (int i = 0; i < problem->input_count; i++)
        inputs += problem->map_uses[i];
    const int batch = inputs > 1 || words > 16 ? 4 : 8;
    const int teams = teams_of(plan, tiles, blocks, room);
    struct gpu_choice choice = {.kernel = mf_text_interleaved_cl,
                                .threads = teams * team_of(problem),
                                .vector = vector,
                                .vector_loop = 0,
                                .flat = 1,
                                .reads_once = mf_gpu_widest_item(problem) == 1 &&
                                              mf_gpu_reads_once(problem, vector, READ_BY_COLUMNS),
                                .blocks = blocks,
                                .own = {tiles, blocks}};
    if (room == GPU_ROOM && inputs == 1 && words <= 16)
        choice.beside = GPU_ROOM / choice.threads;
    choice.workspace_bytes = blocks * problem->kept_total * mf_emit_state_bytes(problem) + (int64_t)sizeof(uint32_t);
    mf_text_add(&choice.macros, "#define COLUMNS %d\n#define BATCH %d\n", (int)problem->kept_total, batch);
    snprintf(choice.text, sizeof choice.text, "%d columns, vectors of %d, %lld blocks of %d tiles at a time",
             (int)problem->kept_total, vector, (long long)blocks, teams);
    return mf_gpu_make(plan, &choice);
}

const struct solver mf_gpu_interleaved = {
    "interleaved",  "few columns beside each other, whatever a vector's elements belong to",
    applicable,     make,
    mf_gpu_execute, mf_gpu_print,
    mf_gpu_forget,
};
