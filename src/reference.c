/* The naive solver: any rank, any operation, one element after the other. It is the specification of every other
 * solver, and what they are tested against with ==.
 *
 * For every output: for every reducer, its elements in the contract's order, one tile at a time, then the tiles'
 * states. A non-commutative operation walks the nest as written and combines neighbours in pairs (docs/numerics.md).
 * */
#include "plan.h"
#include "scalar.h"
#include "user.h"

static int applicable(const struct mf_plan *plan)
{
    (void)plan;
    return 1;
}

/* Where one position of a nest lies. */
struct place {
    int64_t in[MF_MAX_INPUTS]; /* elements from the base */
    int64_t index;             /* in the order as written */
    int64_t window[MAX_WINDOWS];
    int64_t at[MAX_LOOPS];
};

/* Moves loops first ... last-1 to the next position, the last one fastest; 0 after the last position. */
static int advance(const struct problem *problem, const struct nest *nest, int first, int last, struct place *place)
{
    for (int l = last - 1; l >= first; l--) {
        int64_t step = 1;
        if (++place->at[l] == nest->size[l]) {
            step = 1 - nest->size[l];
            place->at[l] = 0;
        }
        for (int i = 0; i < problem->input_count; i++)
            place->in[i] += step * nest->in[i][l];
        for (int w = 0; w < nest->window_count; w++)
            place->window[w] += step * nest->window[w].step[l];
        place->index += step * nest->index[l];
        if (step == 1)
            return 1;
    }
    return 0;
}

static int inside(const struct nest *nest, const struct place *place)
{
    for (int w = 0; w < nest->window_count; w++)
        if (place->window[w] < 0 || place->window[w] >= nest->window[w].extent)
            return 0;
    return 1;
}

static void set_leaves(const struct problem *problem, const struct pointers *pointers, const struct place *place,
                       struct leaves *leaves)
{
    leaves->types = problem->in_type;
    for (int i = 0; i < problem->input_count; i++)
        leaves->operand[i] = (const void *)((uintptr_t)pointers->in[i] +
                                            (uintptr_t)(place->in[i] * mf_dtypes[problem->in_type[i]].size));
}

/* Room for one output's work. */
struct scratch {
    union value map[MAX_NODES], finish[MAX_NODES];
    struct leaves leaves;
    struct state tile[TILE];
    struct state *tiles;          /* one for each tile of the reduction */
    char *user_tile, *user_tiles; /* the same for users' operations, whose states have any size */
};

/* One built-in reducer over the reduced loops, from the kept position `start`. */
static struct state reduce(const struct mf_plan *plan, const struct pointers *pointers, const struct reducer *reducer,
                           const struct place *start, struct scratch *scratch)
{
    const struct problem *problem = &plan->problem;
    const struct nest *nest = &problem->memory;
    struct place place = *start;
    int64_t tiles = 0, count = 0;
    scratch->leaves.count = 0;
    for (int64_t e = 0; e < problem->reduced_total; e++) {
        if (!inside(nest, &place)) {
            scratch->tile[count] = mf_state_identity(reducer);
        } else {
            set_leaves(problem, pointers, &place, &scratch->leaves);
            mf_pool_evaluate(&problem->program.map, &scratch->leaves, scratch->map);
            mf_state_lift(reducer, scratch->map[reducer->arg[0]], place.index, &scratch->tile[count]);
            scratch->leaves.count++;
        }
        if (++count == TILE || e + 1 == problem->reduced_total) {
            scratch->tiles[tiles++] = mf_state_fold_tile(reducer, scratch->tile, count);
            count = 0;
        }
        advance(problem, nest, nest->kept, nest->kept + nest->reduced, &place);
    }
    return mf_state_fold(reducer, scratch->tiles, tiles);
}

/* What advance has to be told to read a user's operation element by element. */
struct walk {
    const struct mf_plan *plan;
    const struct pointers *pointers;
    const struct reducer *reducer;
    const struct nest *nest;
    struct place place;
    struct scratch *scratch;
    int64_t count;
};

/* The next element's arguments; 0 where the element takes no part. */
static int next_element(void *context, union value *values)
{
    struct walk *walk = context;
    const struct problem *problem = &walk->plan->problem;
    int here = inside(walk->nest, &walk->place);
    if (here) {
        set_leaves(problem, walk->pointers, &walk->place, &walk->scratch->leaves);
        mf_pool_evaluate(&problem->program.map, &walk->scratch->leaves, walk->scratch->map);
        for (int a = 0; a < walk->reducer->arg_count; a++)
            values[a] = walk->scratch->map[walk->reducer->arg[a]];
        walk->count++;
    }
    advance(problem, walk->nest, walk->nest->kept, walk->nest->kept + walk->nest->reduced, &walk->place);
    return here;
}

/* Every reducer at one kept position; the results go to leaves.state. */
static void reduce_all(const struct mf_plan *plan, const struct pointers *pointers, const struct place *start,
                       struct scratch *scratch)
{
    const struct program *program = &plan->problem.program;
    for (int r = 0; r < program->reducer_count; r++) {
        const struct reducer *reducer = &program->reducer[r];
        union value *result = scratch->leaves.state[r];
        if (reducer->kind == RED_USER) {
            const struct nest *nest = reducer->user->is.commutative ? &plan->problem.memory : &plan->problem.written;
            struct walk walk = {plan, pointers, reducer, nest, *start, scratch, 0};
            mf_user_reduce(reducer, plan->problem.reduced_total, next_element, &walk, scratch->user_tile,
                           scratch->user_tiles, result);
            scratch->leaves.count = walk.count;
            continue;
        }
        struct state state = reduce(plan, pointers, reducer, start, scratch);
        result[0] = state.v[0];
        result[1] = state.v[1];
        if (reducer->kind == RED_ARG)
            result[1].i64 = state.n;
        int64_t from, to;
        if ((plan->problem.memory.window_count || plan->problem.framed) &&
            mf_reducer_of_nothing(program, reducer, &from, &to) && result[0].i64 == from)
            result[0].i64 = to;
    }
}

void mf_reference_run(const struct mf_plan *plan, const struct pointers *pointers, struct scratch *scratch)
{
    const struct problem *problem = &plan->problem;
    const struct nest *nest = &problem->memory;
    struct place place;
    memset(&place, 0, sizeof place);
    for (int w = 0; w < nest->window_count; w++)
        place.window[w] = nest->window[w].offset;
    for (int64_t o = 0; o < problem->kept_total; o++) {
        reduce_all(plan, pointers, &place, scratch);
        set_leaves(problem, pointers, &place, &scratch->leaves);
        mf_pool_evaluate(&problem->program.finish, &scratch->leaves, scratch->finish);
        for (int k = 0; k < problem->output_count; k++) {
            int64_t at = 0;
            for (int l = 0; l < nest->kept; l++)
                at += place.at[l] * nest->out[k][l];
            int node = problem->program.output[k];
            mf_value_store(problem->out_type[k], problem->program.finish.node[node].cls, scratch->finish[node],
                           pointers->out[k] + at * mf_dtypes[problem->out_type[k]].size);
        }
        advance(problem, nest, 0, nest->kept, &place);
    }
}

struct scratch *mf_reference_open(const struct mf_plan *plan)
{
    const struct program *program = &plan->problem.program;
    struct scratch *scratch = mf_calloc(sizeof *scratch);
    size_t tiles = (size_t)(plan->problem.reduced_total / TILE + 1), state = 1;
    if (!scratch)
        return NULL;
    for (int r = 0; r < program->reducer_count; r++)
        if (program->reducer[r].kind == RED_USER && program->reducer[r].user->is.state_size > state)
            state = program->reducer[r].user->is.state_size;
    scratch->tiles = mf_alloc(sizeof *scratch->tiles * tiles);
    scratch->user_tile = mf_alloc_aligned(TILE * state);
    scratch->user_tiles = mf_alloc_aligned(tiles * state);
    if (scratch->tiles && scratch->user_tile && scratch->user_tiles)
        return scratch;
    mf_reference_close(scratch);
    return NULL;
}

void mf_reference_close(struct scratch *scratch)
{
    mf_free(scratch->tiles);
    mf_free(scratch->user_tile);
    mf_free(scratch->user_tiles);
    mf_free(scratch);
}

/* Everything is allocated before anything is written. */
static mf_status execute(const struct mf_plan *plan, const struct pointers *pointers)
{
    struct scratch *scratch = mf_reference_open(plan);
    if (!scratch)
        return MF_ERROR_MEMORY;
    mf_reference_run(plan, pointers, scratch);
    mf_reference_close(scratch);
    return MF_OK;
}

const struct solver mf_solver_reference = {
    "reference", "one element after the other, the specification", applicable, NULL, execute, NULL, NULL,
};
