/* Solver "ordered" of a GPU: some reducer is a user's that keeps its elements' order (kernels/ordered.cl). */
#include <stdio.h>

#include "emit_reducers.h"
#include "form.h"
#include "texts.h"

/* Some of the reducers are ordered, and none is given as callbacks. */
static int applicable(const struct mf_plan *plan)
{
    const struct program *program = &plan->problem.program;
    int ordered = 0;
    for (int r = 0; r < program->reducer_count; r++) {
        if (program->reducer[r].kind == RED_USER && !program->reducer[r].user->recipe)
            return 0;
        ordered |= mf_emit_keeps_order(&program->reducer[r]);
    }
    return ordered;
}

static int has_others(const struct program *program)
{
    for (int r = 0; r < program->reducer_count; r++)
        if (!mf_emit_keeps_order(&program->reducer[r]))
            return 1;
    return 0;
}

/* Threads of a tile, consecutive elements of a thread, and outputs next to each other in a block. */
struct ordered_form {
    int width, chunk, beside, vector, threads, levels;
};

static struct ordered_form ordered_form(const struct problem *problem, int others, int64_t tiles,
                                        const struct gpu_limits *limits)
{
    enum { MOST_CHUNK = 16, THREADS = 128 };
    const struct nest *nest = &problem->memory;
    const int64_t most = problem->reduced_total < TILE ? problem->reduced_total : TILE;
    const int words = mf_emit_state_words(problem), last = nest->kept + nest->reduced - 1;
    struct ordered_form form = {.threads = THREADS, .vector = 1, .width = 1};
    form.chunk = mf_clamp(mf_power_below(64 / words), 4, MOST_CHUNK);
    form.chunk = mf_clamp(mf_power_above(most ? most : 1), 1, form.chunk);
    if (nest->reduced && mf_gpu_vector_along(problem, last, 4) == 4 && form.chunk >= 4)
        form.vector = 4;
    /* a column is one thread's, so that neighbours read neighbours, as long as there are enough of them */
    int64_t enough = 512 * (int64_t)limits->multiprocessors;
    int columns = mf_gpu_is_columns(problem);
    while (form.width < GPU_WARP && (int64_t)form.width * form.chunk < most &&
           !(columns && form.width * problem->kept_total * tiles >= enough))
        form.width *= 2;
    if (others)
        form.width = GPU_WARP;
    form.beside = mf_clamp(mf_power_above(problem->kept_total ? problem->kept_total : 1), 1, THREADS / form.width);
    for (int64_t spans = (most + form.width * form.chunk - 1) / (form.width * form.chunk); spans > 1;
         spans = (spans + 1) / 2)
        form.levels++;
    return form;
}

/* Where other reducers number the elements otherwise, places in the order as written are made of constants. */
static void choose_order(const struct problem *problem, int others, struct ordered_form *form, struct gpu_text *macros)
{
    struct gpu_slots slots;
    if (others && !mf_nest_is_as_written(&problem->memory)) {
        mf_emit_slots(problem, &slots);
        mf_emit_written_order(problem, &slots, macros);
        form->vector = 1;
    }
}

static mf_status make(struct mf_plan *plan)
{
    struct problem *problem = &plan->problem;
    const struct gpu_limits *limits = MF_GPU_LIMITS(plan->device->gpu);
    const int others = has_others(&problem->program);
    const int64_t tiles = problem->reduced_total ? (problem->reduced_total + TILE - 1) / TILE : 1;
    struct gpu_choice choice = {.kernel = mf_text_ordered_cl, .fold = mf_text_fold_cl};
    if (!others) /* nobody wants the elements in memory's order */
        problem->memory = problem->written;
    struct ordered_form form = ordered_form(problem, others, tiles, limits);
    choose_order(problem, others, &form, &choice.macros);
    const int64_t at_once = form.threads / form.width / form.beside;
    const int64_t sides = (problem->kept_total + form.beside - 1) / form.beside,
                  rounds = (tiles + at_once - 1) / at_once;
    int64_t parts = 16 * (int64_t)limits->multiprocessors / (sides ? sides : 1);
    parts = parts < 1 ? 1 : parts > rounds ? rounds : parts;
    const int64_t share = (rounds + parts - 1) / parts * at_once;
    parts = (tiles + share - 1) / share;
    choice.threads = form.threads;
    choice.vector = form.vector;
    choice.vector_loop = problem->memory.kept + problem->memory.reduced - 1;
    choice.blocks = sides * parts;
    choice.own[0] = tiles;
    choice.own[1] = parts;
    choice.own[2] = share;
    choice.own[3] = mf_levels(tiles);
    choice.own[4] = sides;
    if (tiles > 1)
        choice.workspace_bytes = problem->kept_total * mf_levels(tiles) * mf_emit_state_bytes(problem) + 4 * sides;
    mf_text_add(&choice.macros,
                "#define WIDTH %d\n#define CHUNK %d\n#define BESIDE %d\n#define SPAN_LEVELS %d\n#define OTHERS %d\n"
                "#define TEAM_VECTOR %d\n#define BATCH %d\n",
                form.width, form.chunk, form.beside, form.levels, others, form.vector, others ? 4 : 1);
    snprintf(choice.text, sizeof choice.text,
             "%d threads a tile, %d elements of each at a time, vectors of %d, %d outputs "
             "a block, %lld parts of %lld tiles",
             form.width, form.chunk, form.vector, form.beside, (long long)parts, (long long)share);
    return mf_gpu_make(plan, &choice);
}

const struct solver mf_gpu_ordered = {
    "ordered",      "reducers whose elements keep their order, neighbours in pairs",
    applicable,     make,
    mf_gpu_execute, mf_gpu_print,
    mf_gpu_forget,
};
