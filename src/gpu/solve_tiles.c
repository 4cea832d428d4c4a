/* Solver "tiles" of a GPU: outputs of several tiles (kernels/tiles.cl). */
#include <stdio.h>

#include "form.h"
#include "texts.h"

static int applicable(const struct mf_plan *plan)
{
    return plan->problem.reduced_total > TILE && mf_gpu_any_order(plan);
}

static mf_status make(struct mf_plan *plan)
{
    const struct problem *problem = &plan->problem;
    const struct gpu_limits *limits = MF_GPU_LIMITS(plan->device->gpu);
    struct gpu_choice choice = {.kernel = mf_text_tiles_cl,
                                .fold = mf_text_fold_cl,
                                .vector = mf_gpu_row_vector(problem),
                                .vector_loop = problem->memory.kept + problem->memory.reduced - 1};
    int64_t tiles = (problem->reduced_total + TILE - 1) / TILE;
    int batch = mf_gpu_steps_at_once(problem, choice.vector), team = LANES / (choice.vector > 1 ? choice.vector : 4);
    choice.threads = mf_clamp(mf_power_above(tiles) * team, GPU_WARP, batch > 16 ? 128 : 256);
    int teams = choice.threads / team;
    int64_t wanted = 16 * (int64_t)limits->multiprocessors,
            parts = wanted / (problem->kept_total ? problem->kept_total : 1);
    int64_t most = (tiles + teams - 1) / teams;
    parts = parts < 1 ? 1 : parts > most ? most : parts;
    int64_t share = parts == 1 ? tiles : mf_power_above(((tiles + parts - 1) / parts + teams - 1) / teams * teams);
    if (share > TILE && parts > 1)
        share = TILE;
    parts = (tiles + share - 1) / share;
    choice.blocks = problem->kept_total * parts;
    choice.own[0] = tiles;
    choice.own[1] = parts;
    choice.own[2] = share;
    choice.own[3] = mf_levels(tiles);
    choice.workspace_bytes = problem->kept_total * (mf_levels(tiles) * mf_emit_state_bytes(problem) +
                                                    ((tiles + TILE - 1) / TILE + 1) * (int64_t)sizeof(uint32_t));
    mf_text_add(&choice.macros, "#define BATCH %d\n#define MOST %d\n#define TEAM_VECTOR %d\n", batch, TILE,
                choice.vector);
    snprintf(choice.text, sizeof choice.text, "%lld tiles, %lld a block, vectors of %d", (long long)tiles,
             (long long)share, choice.vector);
    return mf_gpu_make(plan, &choice);
}

const struct solver mf_gpu_tiles = {
    "tiles",        "outputs of several tiles, a warp each, by as many blocks as the device wants",
    applicable,     make,
    mf_gpu_execute, mf_gpu_print,
    mf_gpu_forget,
};
