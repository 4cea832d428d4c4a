/* Solvers "log-certified", "log-fast" and "log-exact" of a GPU: out[m, n] = logsumexp over k of x[m, k] + y[k, n], as
 * src/cpu/contraction_log.c has it. They run only when they are asked for by name.
 *
 * log-exact is kernels/contract.cl in two passes: the greatest term, then one exponential a term. The others have three
 * stages: log_pack.cl makes matrices of exponentials in the workspace, log_product.cl multiplies them, and contract.cl
 * computes those blocks of outputs again that log_product.cl refused. */
#include <stdio.h>

#include "form.h"
#include "solve_contract.h"
#include "texts.h"

enum { PACKED = 8, PACK_THREADS = 256, PACK_STEP = 256, FEW_TERMS = 1 << 17 /* of a multiprocessor */ };

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
    int64_t most[FACTORS], powers[FACTORS], bytes;
};

static int64_t take(struct log_room *room, int64_t bytes)
{
    int64_t at = room->bytes;
    room->bytes += (bytes + 255) / 256 * 256;
    return at;
}

static struct log_room plan_room(const struct problem *problem, const struct gpu_contraction *c, int64_t flags)
{
    const int64_t size = (int64_t)mf_cls_size(problem->program.reducer[0].cls);
    const int64_t positions[FACTORS] = {mf_factors_positions(problem, &c->loops, 0),
                                        mf_factors_positions(problem, &c->loops, 1)};
    const int64_t batch = problem->kept_total / positions[0] / positions[1];
    struct log_room room = {.bytes = 0};
    take(&room, flags * (int64_t)sizeof(int32_t));
    for (int f = 0; f < FACTORS; f++)
        room.most[f] = take(&room, batch * positions[f] * size);
    for (int f = 0; f < FACTORS; f++)
        room.powers[f] = take(&room, batch * problem->reduced_total * ((positions[f] + 3) / 4 * 4) * size);
    return room;
}

static void place_room(const struct log_room *room, struct gpu_choice *choice)
{
    for (int f = 0; f < FACTORS; f++) {
        choice->own[2 + f] = room->most[f];
        choice->own[4 + f] = room->powers[f];
    }
}

static mf_status make_pack(struct mf_plan *plan, const struct gpu_contraction *c, const struct log_room *room)
{
    static const struct contract_tile tile = {PACKED, PACKED, 1, 1, PACK_STEP, 1};
    const struct problem *problem = &plan->problem;
    struct gpu_choice choice = {.kernel = mf_text_log_pack_cl, .threads = PACK_THREADS, .vector = 1};
    struct gpu_slots slots;
    int64_t blocks[FACTORS];
    mf_gpu_place_tiles(problem, c, &tile, &choice);
    place_room(room, &choice);
    const int64_t batch = problem->kept_total / (choice.own[7] >> 32) / (choice.own[7] & UINT32_MAX);
    for (int f = 0; f < FACTORS; f++)
        blocks[f] = batch * choice.own[f];
    choice.own[6] = blocks[0];
    choice.blocks = blocks[0] + blocks[1];
    choice.workspace_bytes = room->bytes;
    mf_emit_slots(problem, &slots);
    mf_text_add(&choice.macros, "#define STEP %d\n#define PACKED %d\n#define HALVES 0\n#define IN_TREE 0\n", PACK_STEP,
                PACKED);
    mf_emit_contraction(problem, &slots, c, &choice.functions);
    mf_emit_factors(problem, c, &tile, &choice.functions);
    mf_text_append(&choice.functions, mf_text_log_store_cl);
    for (int f = 0; f < FACTORS; f++) {
        mf_text_add(&choice.functions, "#define SIDE %c\n#define SIDE_NUMBER %d\n", "xy"[f], f);
        mf_text_append(&choice.functions, mf_text_log_factor_cl);
    }
    snprintf(choice.text, sizeof choice.text, "exponentials in %lld bytes", (long long)room->bytes);
    return mf_gpu_make(plan, &choice);
}

static mf_status add_product(struct mf_plan *plan, const struct gpu_contraction *c, const struct contract_tile *tile,
                             const struct log_room *room, int certified)
{
    const struct problem *problem = &plan->problem;
    struct gpu_choice choice = {.kernel = mf_text_log_product_cl, .threads = mf_gpu_tile_threads(tile), .vector = 1};
    struct gpu_contraction powers = *c;
    struct gpu_slots slots;
    powers.along_terms[0] = powers.along_terms[1] = 0;
    mf_gpu_place_tiles(problem, c, tile, &choice);
    place_room(room, &choice);
    choice.blocks = mf_gpu_tile_blocks(problem, c, tile);
    mf_emit_slots(problem, &slots);
    mf_gpu_tile_macros(problem, c, tile, tile, &choice.macros);
    mf_text_add(&choice.macros,
                "#define IN_TREE 0\n#define HALVES 0\n#define FROM_SUMS 0\n#define CERTIFIED %d\n#define LEAST %s\n",
                certified,
                problem->program.reducer[0].cls == CLS_F32 ? "mf_bits_f32(0x0d000000u)" /* 2^-101 */
                                                           : "mf_bits_f64(0x0380000000000000ul)" /* 2^-967 */);
    mf_emit_contraction(problem, &slots, c, &choice.functions);
    mf_emit_factors(problem, &powers, tile, &choice.functions);
    mf_text_append(&choice.functions, mf_text_tile_cl);
    mf_text_append(&choice.functions, mf_text_log_store_cl);
    snprintf(choice.text, sizeof choice.text, "products, %d x %d a block, %d x %d a thread", tile->rows, tile->columns,
             tile->row_own, tile->column_own);
    return mf_gpu_add(plan, &choice);
}

/* ---- solvers ---- */

static mf_status make_exact(struct mf_plan *plan)
{
    struct gpu_contraction c = {.kind = CONTRACT_LOG};
    find(plan, &c);
    return mf_gpu_make_contraction(plan, &c, NULL);
}

static mf_status make_product(struct mf_plan *plan, int certified)
{
    struct gpu_contraction exact = {.kind = CONTRACT_LOG}, c = {.kind = CONTRACT_LOG_PRODUCT};
    const struct problem *problem = &plan->problem;
    find(plan, &exact);
    find(plan, &c);
    const struct contract_tile *tile =
        mf_gpu_choose_tile(problem, &c, NULL, MF_GPU_LIMITS(plan->device->gpu)->multiprocessors);
    const struct log_room room = plan_room(problem, &c, mf_gpu_tile_blocks(problem, &c, tile));
    MF_TRY(make_pack(plan, &c, &room));
    MF_TRY(add_product(plan, &c, tile, &room, certified));
    return mf_gpu_make_contraction(plan, &exact, tile);
}

/* Few terms take less time exactly than three launches do. */
static mf_status make_certified(struct mf_plan *plan)
{
    const struct problem *problem = &plan->problem;
    const int64_t few = (int64_t)FEW_TERMS * MF_GPU_LIMITS(plan->device->gpu)->multiprocessors;
    int64_t terms;
    if (mf_mul(problem->kept_total, problem->reduced_total, &terms) && terms <= few)
        return make_exact(plan);
    return make_product(plan, 1);
}

static mf_status make_fast(struct mf_plan *plan)
{
    return make_product(plan, 0);
}

const struct solver mf_gpu_log_exact = {
    "log-exact",    "logarithms of sums of products of exponentials, one exponential a term; in an order of its own",
    applicable,     make_exact,
    mf_gpu_execute, mf_gpu_print,
    mf_gpu_forget,
};

const struct solver mf_gpu_log_certified = {
    "log-certified", "logsumexp as a product of matrices of exponentials, with a certificate; in an order of its own",
    applicable,      make_certified,
    mf_gpu_execute,  mf_gpu_print,
    mf_gpu_forget,
};

const struct solver mf_gpu_log_fast = {
    "log-fast",     "log-certified without the certificate: wrong where the greatest terms do not lie on each other",
    applicable,     make_fast,
    mf_gpu_execute, mf_gpu_print,
    mf_gpu_forget,
};
