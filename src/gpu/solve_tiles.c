/* Solver "tiles" of a GPU: outputs of several tiles (kernels/tiles.cl). */
#include <stdio.h>

#include "emit_reducers.h"
#include "form.h"
#include "texts.h"

enum { AWAITED = 0x7fe0dead /* kernels/tiles.cl */, MOST_THREADS = 256 /* of outputs beside each other */ };

static int applicable(const struct mf_plan *plan)
{
    return mf_gpu_any_order(plan) && plan->problem.reduced_total > TILE;
}

/* How threads read an output's tiles: elements at once, steps before they compute; how many threads a block has at
 * most, and a multiprocessor room for (0: whatever the compiler makes of it); how many warps that has at most, or 0. */
struct tiles_form {
    int vector, batch, threads, room, warps;
};

/* Whether the first reducer is a sum of values that have to be computed. */
static int sums_values(const struct program *program)
{
    return program->reducer_count && program->reducer[0].fold == FOLD_SUM &&
           program->map.node[program->reducer[0].arg[0]].op != OP_OPERAND;
}

/* Whether there are moments, of full tiles: then the numbers of elements, and so the weights, are known. */
static int has_full_moments(const struct problem *problem)
{
    return mf_emit_has_kind(problem, RED_MOMENTS) && problem->reduced_total % TILE == 0 &&
           !problem->memory.window_count && !mf_gpu_has_logsums(problem);
}

/* Whether a tile's steps may all stand in a kernel's text: moments, and little beside them, of elements as they are, of
 * one operand, one run to an output. */
static int has_short_steps(const struct problem *problem)
{
    enum { MOST_WORDS = 4 };
    const struct program *program = &problem->program;
    const int item = mf_gpu_widest_item(problem);
    for (int r = 0; r < program->reducer_count; r++)
        if (program->map.node[program->reducer[r].arg[0]].op != OP_OPERAND)
            return 0;
    return item > 1 && mf_emit_lane_words(problem) <= (item == 8 ? 2 * MOST_WORDS : MOST_WORDS) &&
           problem->memory.reduced == 1 && mf_gpu_only_operand(problem) >= 0 && !problem->memory.window_count;
}

/* Elements that take as long as reading them, or longer: few loads at once, and few registers, so that there are many
 * warps. (H100: sum(exp(a)) of bf16[1024,50304] 960 and 1,390 GB/s, of f32[2048,32768] 2,200 and 2,870, of all of
 * f32[16384,4096] 2,010 and 2,750.) */
static const struct tiles_form slow_steps = {4, 8, 256, 0, 0};

static int has_slow_steps(const struct problem *problem, int vector, int shifted)
{
    return mf_gpu_has_long_maps(problem) && vector >= 4 && !shifted && mf_gpu_widest_item(problem) <= 4 &&
           mf_emit_lane_words(problem) <= 2 && problem->memory.reduced == 1 && !problem->memory.window_count;
}

/* Room for batches of 32 steps; folds of 16-bit floats but any would spill registers then. */
static int room_of_batches(const struct problem *problem)
{
    return mf_gpu_folds_halves(problem) && problem->program.reducer[0].fold != FOLD_ANY ? GPU_ONE_BLOCK : 512;
}

/* Outputs of their own: of 16 bits a warp takes a whole tile, in vectors of 4, so that what it reads together lies side
 * by side. Of states of one number it reads all of it before it computes, or half, where tiles are more or computed
 * values are summed (1 to 6 % on an H200). Fewer warps than there is room for leave more in the cache (solve_rows.c),
 * and of states of several numbers they are faster as they are (1 to 4 % on an H100). Full tiles of moments are one
 * text (IN_A_ROW), of which the compiler keeps as many loads in flight as there is room for. (Measured on an H200.) */
static struct tiles_form own_form(const struct problem *problem, int64_t tiles, int vector, int shifted)
{
    enum { FEW_TILES = 4 };
    const int item = mf_gpu_widest_item(problem), narrow = item == 2 && vector == 8;
    const int many = tiles > FEW_TILES, once = mf_gpu_reads_once(problem, 4, READ_BY_ROWS);
    const int half = narrow && ((many && !once) || sums_values(&problem->program));
    struct tiles_form form = {vector, mf_gpu_steps_at_once(problem, vector), 256,
                              mf_emit_lane_words(problem) > 2 ? 0 : GPU_ROOM, 0};
    if (mf_gpu_has_logsums(problem))
        return (struct tiles_form){vector, item == 4 ? 16 : form.batch, item == 8 ? 128 : 256,
                                   item == 8 ? 512 : GPU_ROOM, 0};
    if (has_slow_steps(problem, vector, shifted))
        return slow_steps;
    if (shifted && mf_emit_has_kind(problem, RED_ARG))
        form.batch = 4; /* two words for each of 8 lanes */
    if (vector < 4 || shifted || mf_gpu_only_operand(problem) < 0 || problem->memory.reduced > 1 ||
        problem->memory.window_count)
        return form;
    else if (mf_emit_state_words(problem) > 2)
        return !has_full_moments(problem) || !has_short_steps(problem)
                   ? narrow ? (struct tiles_form){4, 16, tiles > 2 * FEW_TILES ? 256 : 128, GPU_ROOM, 28} : form
               : narrow    ? (struct tiles_form){4, 32, 128, 512, 0}
               : item == 4 ? (struct tiles_form){vector, 16, 128, 512, 24}
               : item == 8 ? (struct tiles_form){vector, 8, 128, 512, 0}
                           : form;
    else if (item == 8)
        return (struct tiles_form){vector, 8, 256, 512, 0};
    else if (item == 4 || narrow)
        return (struct tiles_form){4, half ? 16 : 32, half || item == 4 ? 256 : 128,
                                   half ? 512 : room_of_batches(problem), narrow && many && !half ? 16 : 0};
    return form;
}

/* How many neighbouring outputs share a line of memory, where one's runs are shorter; each has a team of threads. (No
 * outputs: no loops.) */
static int outputs_beside(const struct problem *problem, int vector, int team)
{
    const struct nest *nest = &problem->memory;
    if (!nest->reduced)
        return 1;
    int64_t run = nest->size[nest->kept + nest->reduced - 1], bytes = run * mf_gpu_widest_item(problem);
    for (int i = 0; i < problem->input_count; i++)
        if (problem->map_uses[i] && (!nest->kept || nest->in[i][nest->kept - 1] != run))
            return 1;
    const int beside = vector > 1 && nest->reduced > 1 && bytes < 128 ? mf_power_below(256 / bytes) : 1;
    return beside < MOST_THREADS / team ? beside : MOST_THREADS / team;
}

/* How many lanes the sequence of an output's tiles has, if they are to be a block each: where these are enough and not
 * too many. Else 0. (Several states of bytes take so long that small blocks are better.) */
static int64_t lanes_as_blocks(const struct problem *problem, int64_t tiles, int multiprocessors)
{
    int64_t lanes = tiles / TILE * LANES + (tiles % TILE < LANES ? tiles % TILE : LANES);
    int64_t blocks = lanes * problem->kept_total;
    return tiles >= TILE && tiles <= (int64_t)TILE * LANES && blocks >= 7 * (int64_t)multiprocessors &&
                   blocks <= 64 * (int64_t)multiprocessors &&
                   (mf_emit_lane_words(problem) <= 2 || mf_gpu_widest_item(problem) > 1)
               ? lanes
               : 0;
}

/* Whether the last loop is whole tiles. */
static int has_whole_runs(const struct problem *problem)
{
    const struct nest *nest = &problem->memory;
    return nest->reduced && nest->size[nest->kept + nest->reduced - 1] % TILE == 0;
}

/* Blocks that share an output come in few waves, of which the last should not be long: they are small, smallest where
 * elements' places take divisions. (Measured on an H200.) Where there is much to read and states are one number, few
 * warps read all of a tile before they compute, or half of 16-bit floats (1 to 4 % on an H100); of these a quarter by
 * twice as many warps where a block has a lane, which leaves less to do behind the last load (2 to 3 % on an H200,
 * behind a cache that was read, and no less else). Where an operand crosses, warps enough share its lines: a . b^T of
 * f32, 8192 by 8192, 690 GB/s with two, 1,740 with eight. lanes: lanes_as_blocks. */
static struct tiles_form shared_form(const struct problem *problem, int64_t lanes, int vector, int shifted)
{
    enum { MUCH = 1 << 26 /* bytes */, ROOM_FOR_FOUR = 1280 };
    const int item = mf_gpu_widest_item(problem), several = mf_emit_lane_words(problem) > 2;
    const int bytes = mf_emit_bytes_operand(problem) >= 0, one = bytes || mf_emit_state_words(problem) == 1;
    const int sums = mf_gpu_has_logsums(problem), room = item == 4 ? 1280 : 0; /* of logsumexp, 48 registers */
    struct tiles_form form = {vector, mf_gpu_steps_at_once(problem, vector), 128,
                              several ? 0
                              : sums  ? room
                                      : GPU_ROOM,
                              0};
    if (has_slow_steps(problem, vector, shifted) && !sums)
        return slow_steps;
    const int number = item == 8 ? mf_emit_state_words(problem) == 2 : one;
    if (number && item > 1 && vector > 1 && !shifted && (problem->memory.reduced == 1 || has_whole_runs(problem)) &&
        mf_gpu_only_operand(problem) >= 0 && problem->kept_total && !(item == 2 && sums_values(&problem->program)) &&
        problem->reduced_total >= MUCH / item / problem->kept_total)
        return item == 2 ? lanes ? (struct tiles_form){4, 8, 128, 512, 0} : (struct tiles_form){vector, 16, 128, 128, 0}
               : item == 4 ? (struct tiles_form){vector, 32, 256, 256, 0}
                           : (struct tiles_form){4, 16, 256, 256, 0};
    if (lanes && vector > 1 && has_full_moments(problem) && has_short_steps(problem))
        return item == 2   ? (struct tiles_form){vector, 4, 128, 0, 0}
               : item == 4 ? (struct tiles_form){vector, 16, 256, GPU_ROOM, 0}
                           : (struct tiles_form){vector, 8, 256, 512, 0};
    if (item > 4)
        form.threads = 256;
    else if (one && (problem->memory.reduced > 1 || (item == 4 && !lanes) || (item == 2 && shifted)))
        form.threads = mf_gpu_crosses(problem) && problem->reduced_total >= MUCH / item ? 256 : 64;
    else if (bytes) {
        form.batch = 16;
        form.room = GPU_ONE_BLOCK;
    }
    if (item == 2 && several && problem->memory.reduced > 1 && !lanes && !shifted && vector >= 4) {
        /* mean and var of 128 pictures of 256 channels, bf16: 56 by 56, 2,370 GB/s with batches of 4 and now 3,170;
         * 14 by 14, 2,130 and 2,290 */
        form.batch = 8;
        form.room = vector >= 8 ? 0 : ROOM_FOR_FOUR;
    } else if (item == 2 && several && form.batch > 4)
        form.batch = 4;
    if (item == 2 && several && lanes) {
        form.vector = form.vector > 4 ? 4 : form.vector;
        form.room = GPU_ROOM;
    }
    return form;
}

/* Sums of logsumexp of 16-bit floats as they are: a warp takes a tile, in vectors of 4. With 48 registers instead of 40
 * the assembler finds an order in which they are 2 to 5 % faster, 2048 rows of 50,000 a sixth. (Measured on an
 * H200.) */
static struct tiles_form sums_form(void)
{
    return (struct tiles_form){4, 8, 128, 1280, 0};
}

/* Whether all loads of a batch are to come before their use: where states take so many registers that the compiler
 * would keep few in flight. parts: of an output. (Measured on an H200.) */
static int wants_loads_together(const struct problem *problem, int64_t parts)
{
    const int least = parts > 1 ? 8 : has_full_moments(problem) && has_short_steps(problem) ? 2 : 4;
    return mf_gpu_widest_item(problem) >= least && mf_emit_state_words(problem) > 3 && !mf_gpu_has_logsums(problem);
}

/* Sums of logsumexp of rows that begin anywhere: a warp takes a tile element by element, its accesses
 * begin where lines do (kernels/tile_lanes.cl). */
static int is_along(const struct problem *problem, int vector)
{
    const struct nest *nest = &problem->memory;
    const int operand = mf_gpu_only_operand(problem);
    return vector == 1 && mf_gpu_has_logsums(problem) && operand >= 0 && !nest->window_count && nest->reduced == 1 &&
           nest->in[operand][nest->kept] == 1 && mf_gpu_widest_item(problem) <= 4 &&
           !mf_emit_has_kind(problem, RED_USER);
}

static void add_along(const struct problem *problem, struct gpu_choice *choice)
{
    mf_text_append(&choice->functions, mf_text_weights_cl);
    mf_text_append(&choice->functions, mf_text_merges_cl);
    mf_text_append(&choice->functions, mf_text_tile_lanes_cl);
    mf_text_add(&choice->macros,
                "#define ALONG 1\n#define MERGE_WEIGHTS %d\n#define WEIGHT_SETS 2\n#define ROWS_SHIFT 1\n",
                mf_emit_has_kind(problem, RED_MOMENTS));
}

/* Sums, products and extremes of 16-bit floats, and sums of bytes, of much memory: blocks of as many tiles as they have
 * warps, which may go as soon as these are read, without counting how many have. (3 to 6 % faster than larger ones that
 * count, on an H200; bytes of short runs are not.) */
static int is_awaited(const struct mf_plan *plan, int64_t tiles, int vector)
{
    enum { ARCHITECTURE = 80, LEAST = 8, MUCH = 1 << 26 /* bytes */ };
    const struct problem *problem = &plan->problem;
    const int bytes = mf_emit_bytes_operand(problem) >= 0;
    return tiles >= LEAST && tiles < TILE && vector >= 8 &&
           MF_GPU_LIMITS(plan->device->gpu)->architecture >= ARCHITECTURE && !plan->condition &&
           (bytes || (mf_gpu_folds_halves(problem) && mf_emit_state_words(problem) == 1)) &&
           (problem->memory.reduced == 1 || (has_whole_runs(problem) && !bytes)) && !problem->memory.window_count &&
           problem->kept_total && problem->reduced_total >= MUCH / mf_gpu_widest_item(problem) / problem->kept_total;
}

/* The plan of that, whose workspace begins with states that are not there yet. */
static mf_status make_awaited(struct mf_plan *plan, struct gpu_choice *choice)
{
    uint32_t *states = mf_alloc((size_t)choice->workspace_bytes);
    mf_status status = MF_ERROR_MEMORY;
    for (int64_t i = 0; states && i < choice->workspace_bytes / (int64_t)sizeof *states; i++)
        states[i] = AWAITED;
    choice->table = states;
    choice->table_bytes = choice->workspace_bytes;
    if (states) {
        status = mf_gpu_make(plan, choice);
    } else {
        mf_free(choice->macros.text);
        mf_free(choice->functions.text);
    }
    mf_free(states);
    return status;
}

/* Tiles of a block, where an output has so many parts: whole turns of its teams. exact: any number, if the tiles are of
 * one group; else one that divides a group's. */
static int64_t tiles_of_block(int64_t tiles, int64_t parts, int teams, int exact)
{
    const int64_t share = ((tiles + parts - 1) / parts + teams - 1) / teams * teams;
    if (parts == 1)
        return tiles;
    if (exact && tiles <= TILE)
        return share;
    return share > TILE / 2 ? TILE : mf_power_above(share);
}

/* What kernels of moments know of full tiles, kernels/tiles.cl. in_a_row: whether these tiles' batches are one text,
 * which takes less time than a loop, but longer to compile, and so do others' 16-bit elements where there are many. */
static void define_moments(const struct problem *problem, const struct tiles_form *form, int64_t lanes, int exact,
                           struct gpu_text *macros)
{
    const int full = has_full_moments(problem), in_a_row = full || (lanes && mf_gpu_widest_item(problem) == 2);
    const int plain = form->vector > 1 && has_short_steps(problem);
    mf_text_add(macros,
                "#define MERGE_WEIGHTS 1\n#define WHOLE_TILES %d\n#define FEW_EXACT %d\n#define IN_A_ROW %d\n"
                "#define PAIRED_FOLDS (%d && HAS_PAIRS)\n",
                full, full && exact, plain && in_a_row, full && plain && mf_emit_has_pairs(problem));
}

/* How many blocks may share an output where so many are wanted. A block to each takes as long as halves of which one is
 * longer: bf16[1024,50304], argmax and logsumexp, 2,370 and 2,130 GB/s, then 2,560 both (H100). */
static int64_t parts_of_output(const struct problem *problem, int64_t tiles, int64_t wanted, int vector)
{
    enum { MOST_ALONE = 32 };
    const int64_t kept = problem->kept_total ? problem->kept_total : 1, parts = wanted / kept;
    return parts < 1 || (parts == 2 && tiles <= MOST_ALONE && vector > 1 && 2 * kept >= wanted * 7 / 8) ? 1 : parts;
}

/* Blocks that a multiprocessor is to have room for. Sums of bytes have registers enough in smaller ones. */
static int beside_of(const struct problem *problem, const struct tiles_form *form, int threads)
{
    enum { MOST = 32 /* that there are */ };
    const int fits = mf_emit_bytes_operand(problem) >= 0 && threads < form->threads;
    const int room = fits && form->room == GPU_ONE_BLOCK ? GPU_ROOM : form->room;
    return mf_clamp(room / threads, room > 0, MOST);
}

static mf_status make(struct mf_plan *plan)
{
    enum { FEW_BYTES = 8 << 10, MOST_FEW = 8 };
    const struct problem *problem = &plan->problem;
    const struct gpu_limits *limits = MF_GPU_LIMITS(plan->device->gpu);
    struct gpu_choice choice = {.kernel = mf_text_tiles_cl,
                                .fold = mf_text_fold_cl,
                                .packed = 1,
                                .vector = mf_gpu_row_vector(problem),
                                .vector_loop = problem->memory.kept + problem->memory.reduced - 1};
    int64_t tiles = (problem->reduced_total + TILE - 1) / TILE;
    if (choice.vector == 1) {
        choice.vector = mf_gpu_shifted_vector(problem, choice.own + 6);
        choice.shifted = choice.vector > 1;
    }
    const int64_t wanted = 16 * (int64_t)limits->multiprocessors;
    int64_t parts = parts_of_output(problem, tiles, wanted, choice.vector);
    const int64_t lanes = lanes_as_blocks(problem, tiles, limits->multiprocessors);
    const int along = is_along(problem, choice.vector);
    const int sums = choice.vector >= 4 && !choice.shifted && mf_gpu_has_paired_sums(problem);
    const int awaits = parts > 1 && !choice.shifted && is_awaited(plan, tiles, choice.vector);
    const struct tiles_form form = awaits      ? (struct tiles_form){4, 32, 128, room_of_batches(problem), 0}
                                   : along     ? (struct tiles_form){1, 1, 64, GPU_ROOM, 0}
                                   : sums      ? sums_form()
                                   : parts > 1 ? shared_form(problem, lanes, choice.vector, choice.shifted)
                                               : own_form(problem, tiles, choice.vector, choice.shifted);
    choice.vector = form.vector;
    choice.reads_once = mf_gpu_reads_once(problem, form.vector, READ_BY_ROWS);
    const int team = LANES / (choice.vector > 1 ? choice.vector : 4);
    choice.threads = mf_clamp(mf_power_above(tiles) * team, GPU_WARP, form.threads);
    if (along)
        add_along(problem, &choice);
    if (sums)
        mf_text_append(&choice.macros, "#define PAIRED_FOLDS HAS_PAIRS\n");
    int teams = choice.threads / team;
    int64_t most = (tiles + teams - 1) / teams;
    parts = parts < 1 ? 1 : parts > most ? most : parts;
    const int64_t share = awaits ? teams : lanes ? TILE / LANES : tiles_of_block(tiles, parts, teams, along);
    parts = lanes ? lanes : (tiles + share - 1) / share;
    choice.blocks = problem->kept_total * parts;
    choice.own[0] = tiles;
    choice.own[1] = parts;
    choice.own[2] = share;
    choice.own[3] = mf_levels(tiles);
    choice.own[4] = wanted / parts + 1; /* blocks before have then long finished */
    const int is_few = parts == 1 && tiles <= LANES && tiles * mf_emit_state_bytes(problem) <= FEW_BYTES;
    const int few = is_few ? (int)mf_power_above(tiles) : 0;
    if (!few)
        choice.workspace_bytes = problem->kept_total * (mf_levels(tiles) * mf_emit_state_bytes(problem) +
                                                        ((tiles + TILE - 1) / TILE + 1) * (int64_t)sizeof(uint32_t));
    int beside =
        few && few <= MOST_FEW && !mf_gpu_has_logsums(problem) ? outputs_beside(problem, choice.vector, team) : 1;
    if (beside > 1) {
        choice.threads = mf_clamp(few * beside * team, GPU_WARP, MOST_THREADS);
        choice.blocks = (problem->kept_total + beside - 1) / beside;
    }
    if (mf_emit_has_kind(problem, RED_MOMENTS) && !mf_gpu_has_logsums(problem) && !along)
        define_moments(problem, &form, lanes, few == tiles, &choice.macros);
    choice.beside = beside_of(problem, &form, choice.threads);
    choice.most_beside = form.warps * GPU_WARP / choice.threads;
    mf_text_add(&choice.macros,
                "#define BATCH BATCH_OF(%d)\n#define TEAM_VECTOR %d\n#define FEW %d\n"
                "#define OUTPUTS_BESIDE %d\n#define BY_LANE %d\n#define TOGETHER %d\n#define AWAITED %d\n"
                "#define WHOLE_RUNS %d\n",
                form.batch, choice.vector, few, beside, lanes > 0,
                choice.vector > 1 && wants_loads_together(problem, parts), awaits ? AWAITED : 0,
                has_whole_runs(problem));
    snprintf(choice.text, sizeof choice.text, "%lld tiles, %lld a block, vectors of %d", (long long)tiles,
             (long long)share, choice.vector);
    return awaits ? make_awaited(plan, &choice) : mf_gpu_make(plan, &choice);
}

const struct solver mf_gpu_tiles = {
    "tiles",        "outputs of several tiles, a warp each, by as many blocks as the device wants",
    applicable,     make,
    mf_gpu_execute, mf_gpu_print,
    mf_gpu_forget,
};
