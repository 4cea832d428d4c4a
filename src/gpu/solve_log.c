/* Solvers "log-certified", "log-fast", "log-exact" (also "log-running") and "log-two-pass" of a GPU:
 * out[m, n] = logsumexp over k of x[m, k] + y[k, n], as src/cpu/contraction_log.c has it. They run only when they are
 * asked for by name.
 *
 * log-exact is kernels/contract_near.cl where terms are few (not as "log-exact:tiles"), contract.cl, or
 * contract_copied.cl for floats as they are: in every tile the greatest term so far (or one not much less), then one
 * exponential a term. log-two-pass finds the greatest of all terms first, by contract.cl. The others have three
 * stages: log_pack.cl makes matrices of exponentials in the workspace, log_product.cl multiplies them (of large ones it
 * takes the products that cuBLAS has made, where there is one), and log-exact computes those blocks of outputs again
 * that log_product.cl refused. */
#include <stdio.h>

#include "cublas.h"
#include "form.h"
#include "solve_contract.h"
#include "texts.h"

enum { PACKED = 8, PACK_THREADS = 256, PACK_STEP = PACK_THREADS };

/* Terms of great products of float32 in one call of cuBLAS: tensor cores cut sums off, calls' sums are rounded. */
enum { AT_ONCE = 1024 };

/* Of the device's memory for cuBLAS itself: products of halves took as long with 8 MB (seen on an H200). */
enum { CUBLAS_BYTES = 256 << 10 };

/* ---- which folds ---- */

static int find(const struct mf_plan *plan, struct gpu_contraction *c)
{
    const struct program *program = &plan->problem.program;
    if (program->reducer_count != 1 || program->reducer[0].kind != RED_LSE || !mf_gpu_contraction_fits(plan, c))
        return 0;
    const struct node *term = &program->map.node[program->reducer[0].arg[0]];
    for (int f = 0; f < FACTORS; f++) {
        if (c->node[f] != term->arg[0] && c->node[f] != term->arg[1])
            return 0;
        c->negate[f] = term->op == OP_sub && c->node[f] == term->arg[1];
    }
    return term->op == OP_add || term->op == OP_sub;
}

static int applicable(const struct mf_plan *plan)
{
    struct gpu_contraction c = {.kind = CONTRACT_LOG};
    return find(plan, &c);
}

/* ---- stages ---- */

/* Where everything lies in the workspace. */
struct log_room {
    int64_t most[FACTORS], powers[FACTORS], sums, refusals, bytes;
};

/* A plan that is being made. */
struct log_plan {
    struct gpu_contraction contraction;
    const struct contract_tile *tile;
    int by_cublas, certified, copies; /* float32 is split in halves for cuBLAS's tensor cores: kernels/log_store.cl */
    struct cublas *cublas;            /* null where the kernel multiplies, or the device is only compiled for */
    /* Its sums lie where the outputs will be, or in the workspace; elements from row to row, from batch to batch. */
    int sums_in_output;
    int64_t sums_pitch, sums_step;
    struct log_room room;
};

static int64_t take(struct log_room *room, int64_t bytes)
{
    int64_t at = room->bytes;
    room->bytes += (bytes + 255) / 256 * 256;
    return at;
}

static int64_t positions_of(const struct mf_plan *plan, const struct log_plan *log, int f)
{
    return mf_factors_positions(&plan->problem, &log->contraction.loops, f);
}

static int64_t batch_of(const struct mf_plan *plan, const struct log_plan *log)
{
    return plan->problem.kept_total / positions_of(plan, log, 0) / positions_of(plan, log, 1);
}

/* PITCHED of kernels/log_store.cl. */
static int64_t pitched(int64_t total)
{
    return (total + 3) / 4 * 4;
}

/* Numbers from one position's exponentials for cuBLAS to the next one's: POWER_PITCH of kernels/log_store.cl. */
static int64_t power_pitch(const struct mf_plan *plan, const struct log_plan *log)
{
    return pitched(plan->problem.reduced_total) * log->copies;
}

/* Bytes of a factor's exponentials. */
static int64_t power_bytes(const struct mf_plan *plan, const struct log_plan *log, int f)
{
    const int64_t positions = positions_of(plan, log, f), terms = plan->problem.reduced_total;
    const int64_t values = log->by_cublas ? positions * power_pitch(plan, log) : pitched(positions) * terms;
    return batch_of(plan, log) * values * (int64_t)mf_cls_size(plan->problem.program.reducer[0].cls);
}

static void plan_room(const struct mf_plan *plan, struct log_plan *log)
{
    const struct problem *problem = &plan->problem;
    const int64_t size = (int64_t)mf_cls_size(problem->program.reducer[0].cls);
    struct log_room *room = &log->room;
    const int64_t blocks = mf_gpu_tile_blocks(problem, &log->contraction, log->tile);
    *room = (struct log_room){.bytes = 0};
    take(room, blocks * (int64_t)sizeof(int32_t));
    room->refusals = take(room, blocks * (int64_t)sizeof(int64_t));
    for (int f = 0; f < FACTORS; f++)
        room->most[f] = take(room, batch_of(plan, log) * positions_of(plan, log, f) * size);
    for (int f = 0; f < FACTORS; f++)
        room->powers[f] = take(room, power_bytes(plan, log, f));
    if (log->by_cublas && !log->sums_in_output)
        room->sums = take(room, problem->kept_total * size);
}

static void place_room(const struct log_plan *log, struct gpu_choice *choice)
{
    const struct log_room *room = &log->room;
    for (int f = 0; f < FACTORS; f++) {
        choice->own[2 + f] = room->most[f];
        choice->own[4 + f] = room->powers[f];
    }
    choice->own[6] = log->sums_in_output ? log->sums_step : room->sums;
    choice->own[8] = room->refusals;
    choice->own[9] = log->sums_pitch;
}

static mf_status make_pack(struct mf_plan *plan, const struct log_plan *log)
{
    static const struct contract_tile tile = {PACKED, PACKED, 1, 1, PACK_STEP, 1, PACK_THREADS};
    const struct problem *problem = &plan->problem;
    struct gpu_choice choice = {.kernel = mf_text_log_pack_cl,
                                .threads = PACK_THREADS,
                                .beside = 4,
                                .vector = MF_GPU_CONTRACT_VECTOR,
                                .flat = 1};
    struct gpu_slots slots;
    mf_gpu_place_tiles(problem, &log->contraction, &tile, &choice);
    place_room(log, &choice);
    choice.own[6] = batch_of(plan, log) * choice.own[0];
    choice.blocks = choice.own[6] + batch_of(plan, log) * choice.own[1];
    choice.workspace_bytes = log->room.bytes;
    mf_emit_slots(problem, &slots);
    mf_text_add(&choice.macros,
                "#define STEP %d\n#define HELD_TILES %d\n#define PACKED %d\n#define COPIES %d\n"
                "#define BY_TERMS %d\n#define CERTIFIED 0\n#define IN_TREE 0\n",
                PACK_STEP, problem->program.reducer[0].cls == CLS_F64 ? 2 : 4, PACKED, log->copies, log->by_cublas);
    mf_emit_contraction(problem, &slots, &log->contraction, &choice.functions);
    mf_emit_factors(problem, &slots, &log->contraction, &tile, &choice.functions);
    mf_text_append(&choice.functions, mf_text_log_store_cl);
    for (int f = 0; f < FACTORS; f++) {
        mf_text_add(&choice.functions, "#define SIDE %c\n#define SIDE_NUMBER %d\n", "xy"[f], f);
        mf_text_append(&choice.functions, mf_text_log_factor_cl);
    }
    snprintf(choice.text, sizeof choice.text, "exponentials in %lld bytes", (long long)log->room.bytes);
    return mf_gpu_make(plan, &choice);
}

static mf_status add_product(struct mf_plan *plan, const struct log_plan *log)
{
    const struct problem *problem = &plan->problem;
    const struct contract_tile *tile = log->tile;
    struct gpu_choice choice = {.kernel = mf_text_log_product_cl,
                                .beside = log->by_cublas ? 1024 / mf_gpu_tile_threads(tile) : 1,
                                .threads = mf_gpu_tile_threads(tile),
                                .vector = MF_GPU_CONTRACT_VECTOR,
                                .flat = 1};
    struct gpu_contraction powers = log->contraction;
    struct gpu_slots slots;
    const int f32 = problem->program.reducer[0].cls == CLS_F32;
    powers.along_terms[0] = powers.along_terms[1] = 0;
    mf_gpu_place_tiles(problem, &powers, tile, &choice);
    place_room(log, &choice);
    choice.blocks = mf_gpu_tile_blocks(problem, &powers, tile);
    mf_emit_slots(problem, &slots);
    mf_gpu_tile_macros(problem, &powers, tile, tile, &choice.macros);
    mf_text_add(&choice.macros,
                "#define IN_TREE 0\n#define COPIES %d\n#define FROM_SUMS %d\n"
                "#define SUMS_IN_OUTPUT %d\n#define CERTIFIED %d\n#define LEAST %s\n",
                log->copies, log->by_cublas, log->sums_in_output, log->certified,
                f32 ? "mf_bits_f32(0x0d000000u)" /* 2^-101 */ : "mf_bits_f64(0x0380000000000000ul)" /* 2^-967 */);
    mf_emit_contraction(problem, &slots, &powers, &choice.functions);
    mf_emit_factors(problem, &slots, &powers, tile, &choice.functions);
    mf_text_append(&choice.functions, mf_text_tile_cl);
    mf_text_append(&choice.functions, mf_text_log_store_cl);
    snprintf(choice.text, sizeof choice.text, "%s, %d x %d a block, %d x %d a thread",
             log->by_cublas ? "logarithms" : "products", tile->rows, tile->columns, tile->row_own, tile->column_own);
    return mf_gpu_make(plan, &choice);
}

/* ---- the product by cuBLAS ---- */

struct log_gemm {
    struct cublas *cublas;
    struct gemm small, great; /* of floats in halves: the products with a low half; those without, or all */
    int copies, sums_in_output;
    int64_t terms;               /* of great, which has at most AT_ONCE of them at a time */
    int64_t x, great_x, y, sums; /* bytes of the workspace before them */
};

static mf_status run_gemm(const struct mf_plan *plan, const void *context, void *workspace,
                          const struct pointers *pointers)
{
    const struct log_gemm *g = context;
    const int64_t item = mf_dtypes[g->great.in].size;
    char *room = workspace, *sums = room + g->sums;
    (void)plan;
    if (g->sums_in_output)
        sums = pointers->out[0] + pointers->out_offset[0] * item;
    if (g->copies == 2)
        MF_TRY(mf_cublas_multiply(g->cublas, &g->small, room + g->y, room + g->x, sums, 0, pointers->stream));
    for (int64_t first = 0; first < g->terms; first += g->great.k) {
        struct gemm some = g->great;
        some.k = g->terms - first < some.k ? g->terms - first : some.k;
        MF_TRY(mf_cublas_multiply(g->cublas, &some, room + g->y + first * item, room + g->great_x + first * item, sums,
                                  g->copies == 2 || first, pointers->stream));
    }
    return MF_OK;
}

static void forget_gemm(void *context)
{
    struct log_gemm *g = context;
    mf_cublas_close(g->cublas);
    mf_free(g);
}

/* Sums are stored by rows: for cuBLAS that is the transposed product, of columns and rows. Takes over log->cublas. */
static mf_status add_gemm(struct mf_plan *plan, struct log_plan *log)
{
    const int64_t terms = pitched(plan->problem.reduced_total), rows = positions_of(plan, log, 0),
                  columns = positions_of(plan, log, 1);
    const int64_t pitch = power_pitch(plan, log);
    const enum dtype type = plan->problem.program.reducer[0].cls == CLS_F32 ? DT_f32 : DT_f64;
    struct log_gemm *g = mf_calloc(sizeof *g);
    if (!g) {
        mf_cublas_close(log->cublas);
        return MF_ERROR_MEMORY;
    }
    g->cublas = log->cublas;
    g->copies = log->copies;
    g->sums_in_output = log->sums_in_output;
    g->great = (struct gemm){.in = type,
                             .out = type,
                             .tensor_floats = type == DT_f32,
                             .m = columns,
                             .n = rows,
                             .k = terms,
                             .batch = batch_of(plan, log),
                             .a_transposed = 1,
                             .a_pitch = pitch,
                             .b_pitch = pitch,
                             .c_pitch = log->sums_pitch,
                             .a_step = columns * pitch,
                             .b_step = rows * pitch,
                             .c_step = log->sums_step};
    g->small = g->great;
    g->small.k = 2 * terms;
    g->terms = g->great.k;
    if (log->copies == 2 && g->great.k > AT_ONCE)
        g->great.k = AT_ONCE;
    g->x = log->room.powers[0];
    g->great_x = g->x + (log->copies == 2 ? terms * mf_dtypes[type].size : 0);
    g->y = log->room.powers[1];
    g->sums = log->room.sums;
    const struct gpu_call call = {log->copies > 1 ? "products by cuBLAS, floats in two halves" : "products by cuBLAS",
                                  run_gemm, forget_gemm, g};
    return mf_gpu_add_call(plan, &call);
}

/* Whether cuBLAS is to multiply: large matrices, sizes that fit in its ints. For a device that is only compiled for,
 * plans are as if there was one. */
static int wants_cublas(const struct mf_plan *plan, const struct log_plan *log)
{
    enum { LEAST_POSITIONS = 32, LEAST_TERMS = 64 };
    const struct gpu_api *api = plan->device->api;
    const int64_t rows = positions_of(plan, log, 0), columns = positions_of(plan, log, 1);
    int64_t terms;
    return (api == &mf_gpu_cuda || api == &mf_gpu_arch) && rows >= LEAST_POSITIONS && columns >= LEAST_POSITIONS &&
           plan->problem.reduced_total >= LEAST_TERMS && plan->problem.reduced_total < INT32_MAX / 8 &&
           batch_of(plan, log) < INT32_MAX && mf_mul(plan->problem.kept_total, plan->problem.reduced_total, &terms);
}

/* Whether the first output's elements along a list of loops have one distance, of their number. */
static int is_straight(const struct mf_plan *plan, const struct log_plan *log, int list, int64_t *distance)
{
    const struct factor_loops *loops = &log->contraction.loops;
    const struct nest *nest = &plan->problem.memory;
    const int count = loops->count[list], *loop = loops->loop[list];
    *distance = count ? nest->out[0][loop[count - 1]] : 0;
    for (int i = count - 1; i > 0; i--)
        if (nest->out[0][loop[i - 1]] != nest->out[0][loop[i]] * nest->size[loop[i]])
            return 0;
    return 1;
}

/* Sums lie where outputs will be if those are numbers like them, row after row, one for each sum, and matrix after
 * matrix. Each block of outputs reads its own sums, all of them, before it stores its outputs, and nobody else's. An
 * operand of the finish part may lie in the same place, so there is to be none. */
static void place_sums(const struct mf_plan *plan, struct log_plan *log)
{
    const struct problem *problem = &plan->problem;
    const int64_t rows = positions_of(plan, log, 0), columns = positions_of(plan, log, 1);
    int64_t right;
    log->sums_in_output = problem->output_count == 1 &&
                          problem->out_type[0] == (problem->program.reducer[0].cls == CLS_F32 ? DT_f32 : DT_f64) &&
                          is_straight(plan, log, 0, &log->sums_pitch) && is_straight(plan, log, 1, &right) &&
                          is_straight(plan, log, 2, &log->sums_step) && right == 1 && log->sums_pitch >= columns &&
                          log->sums_pitch <= INT32_MAX &&
                          (batch_of(plan, log) == 1 || log->sums_step >= (rows - 1) * log->sums_pitch + columns);
    for (int i = 0; i < problem->input_count; i++)
        log->sums_in_output &= !problem->finish_uses[i];
    if (!log->sums_in_output) {
        log->sums_pitch = columns;
        log->sums_step = rows * columns;
    }
}

/* Whether a plan keeps to three times its operands' bytes (were they of the sums' type), with what cuBLAS has. */
static int has_room(const struct mf_plan *plan, struct log_plan *log)
{
    const struct problem *problem = &plan->problem;
    const int64_t positions = positions_of(plan, log, 0) + positions_of(plan, log, 1);
    plan_room(plan, log);
    return log->room.bytes + CUBLAS_BYTES <= 3 * batch_of(plan, log) * positions * problem->reduced_total *
                                                 (int64_t)mf_cls_size(problem->program.reducer[0].cls);
}

/* How cuBLAS multiplies, if it does; and the tiles of logarithms. */
static int plan_cublas(const struct mf_plan *plan, struct log_plan *log)
{
    static const struct contract_tile tile = {64, 64, 4, 4, 16, 1, 0}, few_tile = {32, 32, 2, 4, 16, 1, 0};
    const int few = mf_gpu_tile_blocks(&plan->problem, &log->contraction, &tile) <=
                    2 * MF_GPU_LIMITS(plan->device->gpu)->multiprocessors;
    if (!wants_cublas(plan, log))
        return 0;
    log->by_cublas = 1;
    log->tile = few ? &few_tile : &tile;
    log->copies = plan->problem.program.reducer[0].cls == CLS_F32 ? 2 : 1;
    place_sums(plan, log);
    return has_room(plan, log);
}

/* ---- which way outputs took ---- */

/* Outputs in blocks that were refused, in all executions. */
static int64_t count_refused(const struct mf_plan *plan)
{
    const struct refusals *r = &plan->refusals;
    const int64_t down = (r->rows + r->tile_rows - 1) / r->tile_rows,
                  right = (r->columns + r->tile_columns - 1) / r->tile_columns, blocks = r->batch * down * right;
    if (!atomic_load(&plan->tiers[MF_TIER_CERTIFIED]) && !atomic_load(&plan->tiers[MF_TIER_UNCHECKED]))
        return 0;
    int64_t *times = mf_alloc((size_t)blocks * sizeof *times), outputs = times ? 0 : -1;
    if (times && mf_gpu_read_workspace(plan, r->at, times, blocks * (int64_t)sizeof *times) != MF_OK)
        outputs = -1;
    for (int64_t b = 0; b < blocks && outputs >= 0; b++) {
        const int64_t row = b / right % down * r->tile_rows, column = b % right * r->tile_columns;
        outputs += times[b] * (r->rows - row < r->tile_rows ? r->rows - row : r->tile_rows) *
                   (r->columns - column < r->tile_columns ? r->columns - column : r->tile_columns);
    }
    mf_free(times);
    return outputs;
}

static void count_refusals(struct mf_plan *plan, const struct log_plan *log)
{
    plan->refused = count_refused;
    plan->refusals = (struct refusals){.at = log->room.refusals,
                                       .batch = batch_of(plan, log),
                                       .rows = positions_of(plan, log, 0),
                                       .columns = positions_of(plan, log, 1),
                                       .tile_rows = log->tile->rows,
                                       .tile_columns = log->tile->columns};
}

static mf_status execute_counting(const struct mf_plan *plan, const struct pointers *pointers, mf_tier tier)
{
    MF_TRY(mf_gpu_execute(plan, pointers));
    mf_plan_count_tier(plan, plan->refused ? tier : MF_TIER_EXACT, plan->problem.kept_total);
    return MF_OK;
}

static mf_status execute_checked(const struct mf_plan *plan, const struct pointers *pointers)
{
    return execute_counting(plan, pointers, MF_TIER_CERTIFIED);
}

static mf_status execute_unchecked(const struct mf_plan *plan, const struct pointers *pointers)
{
    return execute_counting(plan, pointers, MF_TIER_UNCHECKED);
}

/* ---- solvers ---- */

static mf_status make_terms(struct mf_plan *plan, int two_passes)
{
    struct gpu_contraction c = {.kind = CONTRACT_LOG, .two_passes = two_passes};
    MF_TRY(mf_plan_start_tiers(plan));
    find(plan, &c);
    if (plan->form && !strcmp(plan->form, "tiles"))
        plan->form = NULL;
    else if (mf_gpu_near_pays(plan, &c))
        return mf_gpu_make_near(plan, &c);
    return mf_gpu_make_contraction(plan, &c, NULL);
}

static mf_status make_exact(struct mf_plan *plan)
{
    return make_terms(plan, 0);
}

static mf_status make_two_passes(struct mf_plan *plan)
{
    return make_terms(plan, 1);
}

/* Where everything lies, and who multiplies. */
static void choose_product(const struct mf_plan *plan, struct log_plan *log)
{
    const struct gpu_api *api = plan->device->api;
    find(plan, &log->contraction);
    if (plan_cublas(plan, log) &&
        (api != &mf_gpu_cuda || mf_cublas_open(plan->device->gpu, CUBLAS_BYTES, &log->cublas) == MF_OK))
        return;
    log->by_cublas = log->sums_in_output = 0;
    log->copies = 1;
    log->tile =
        mf_gpu_choose_tile(&plan->problem, &log->contraction, NULL, MF_GPU_LIMITS(plan->device->gpu)->multiprocessors);
    plan_room(plan, log);
}

static mf_status make_product(struct mf_plan *plan, int certified)
{
    struct gpu_contraction exact = {.kind = CONTRACT_LOG};
    struct log_plan log = {.contraction = {.kind = CONTRACT_LOG_PRODUCT}, .certified = certified};
    MF_TRY(mf_plan_start_tiers(plan));
    find(plan, &exact);
    choose_product(plan, &log);
    count_refusals(plan, &log);
    mf_status status = make_pack(plan, &log);
    if (status != MF_OK) {
        mf_cublas_close(log.cublas);
        return status;
    }
    if (log.by_cublas)
        MF_TRY(add_gemm(plan, &log));
    MF_TRY(add_product(plan, &log));
    return mf_gpu_make_contraction(plan, &exact, log.tile);
}

/* Few terms take less time exactly than three launches do. */
static mf_status make_certified(struct mf_plan *plan)
{
    const int few = mf_gpu_has_few_terms(plan->device, plan->problem.kept_total, plan->problem.reduced_total);
    return few ? make_exact(plan) : make_product(plan, 1);
}

static mf_status make_fast(struct mf_plan *plan)
{
    return make_product(plan, 0);
}

const struct solver mf_gpu_log_exact = {
    "log-exact",     "logarithms of sums of products of exponentials, one exponential a term; in an order of its own",
    applicable,      make_exact,
    execute_checked, mf_gpu_print,
    mf_gpu_forget,
};

const struct solver mf_gpu_log_certified = {
    "log-certified", "logsumexp as a product of matrices of exponentials, with a certificate; in an order of its own",
    applicable,      make_certified,
    execute_checked, mf_gpu_print,
    mf_gpu_forget,
};

const struct solver mf_gpu_log_fast = {
    "log-fast",        "log-certified without the certificate: wrong where the greatest terms do not lie on each other",
    applicable,        make_fast,
    execute_unchecked, mf_gpu_print,
    mf_gpu_forget,
};

const struct solver mf_gpu_log_running = {
    "log-running",
    "log-exact by another name: the terms are read once, a sum is rescaled where its greatest term grows",
    applicable,
    make_exact,
    execute_checked,
    mf_gpu_print,
    mf_gpu_forget,
};

const struct solver mf_gpu_log_two_pass = {
    "log-two-pass",  "the greatest of all terms first, then one exponential a term: the terms are read twice",
    applicable,      make_two_passes,
    execute_checked, mf_gpu_print,
    mf_gpu_forget,
};
