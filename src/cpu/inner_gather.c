/* Solver "inner", outputs whose runs are short and lie beside their neighbours' (sums of nchw over n, h and w): memory
 * is read in its order, run by run of many outputs, into rows in the second cache, a tile of each; the kernels fold
 * those. Read one output after the other, a run of 49 f32 is four lines of which a quarter is its neighbours', in a
 * page of its own. Cost: each element once from memory, a store and a load in the cache. */
#include "inner.h"

/* FEWEST: outputs that are worth it. LONG_RUN: bytes of a run, from which on evaluated blocks are as fast; where
 * elements widen, LONG_WIDENED, and for several reducers always gathered. NEAR_BYTES: what the nearer caches have. */
enum { FEWEST = 4, LINE = 64, LONG_RUN = 512, LONG_WIDENED = 4096, NEAR_BYTES = 1 << 20 };
/* Of all rows; what is between them, so that they do not share a cache's sets. */
enum { ROWS_BYTES = 256 << 10, TOGETHER_BYTES = 8 << 10, APART_BYTES = 3 * LINE };

static int64_t row_elements(const struct inner_plan *data)
{
    return data->elements < TILE ? data->elements : TILE;
}

/* Bytes from a row to the next. */
static int64_t row_pitch(const struct inner_plan *data, int item)
{
    return (row_elements(data) * item + LINE - 1) / LINE * LINE + APART_BYTES;
}

int64_t mf_inner_gathers(const struct mf_plan *plan, const struct pass *pass)
{
    const struct inner_plan *data = plan->data;
    const struct problem *problem = &plan->problem;
    const struct nest *nest = pass->nest;
    if (data->pass_count > 1 || nest->window_count || !nest->kept || problem->kept_total < 4 * plan->threads)
        return 0;
    const int operand = mf_reducer_operand(problem, &problem->program.reducer[0]);
    for (int r = 0; r < problem->program.reducer_count; r++) {
        const struct reducer *reducer = &problem->program.reducer[r];
        if (reducer->kind == RED_USER || problem->program.map.node[reducer->arg[0]].op != OP_OPERAND ||
            mf_reducer_operand(problem, reducer) != operand ||
            !mf_inner_kernels_read(plan, reducer, problem->in_type[operand]))
            return 0;
    }
    const struct walk *walk = &pass->block.walk[operand];
    const int64_t run = walk->size[walk->loops - 1], size = nest->size[nest->kept - 1];
    if (walk->stride[walk->loops - 1] != 1 || nest->in[operand][nest->kept - 1] != run || run >= data->elements ||
        data->elements % run || (run % TILE == 0 && data->elements > TILE) || size < FEWEST)
        return 0;
    const int item = mf_dtypes[problem->in_type[operand]].size;
    const int widens = !mf_is_class_type(problem->in_type[operand]), several = problem->program.reducer_count > 1;
    const int64_t longest = !widens ? LONG_RUN : several ? INT64_MAX : LONG_WIDENED;
    const double all = (double)problem->kept_total * (double)data->elements * item;
    if (all < NEAR_BYTES || run * item < LINE || run * item >= longest)
        return 0;
    int64_t outputs = ROWS_BYTES / row_pitch(data, item), share = problem->kept_total / plan->threads;
    const int64_t together = FEWEST + TOGETHER_BYTES / (run * item);
    outputs = outputs < together ? outputs : together;
    outputs = outputs < MOST_TILES ? outputs : MOST_TILES;
    outputs = outputs < share ? outputs : share;
    return outputs < size ? outputs : size;
}

size_t mf_inner_gather_bytes(const struct mf_plan *plan, int64_t outputs)
{
    const int operand = mf_reducer_operand(&plan->problem, &plan->problem.program.reducer[0]);
    return (size_t)(outputs * row_pitch(plan->data, mf_dtypes[plan->problem.in_type[operand]].size));
}

/* Elements e ... e+n-1 of the outputs from o on, into rows. */
static void gather(const struct worker *w, int64_t o, int64_t outputs, int64_t e, int64_t n)
{
    const struct problem *problem = &w->plan->problem;
    const int operand = mf_reducer_operand(problem, &problem->program.reducer[0]);
    const struct walk *walk = &w->inner->pass[0].block.walk[operand];
    const int64_t item = mf_dtypes[problem->in_type[operand]].size, pitch = row_pitch(w->inner, (int)item);
    const int64_t run = walk->size[walk->loops - 1], first = o * w->inner->elements;
    int64_t offset = mf_walk_offset(walk, first + e);
    for (int64_t done = 0, here; done < n; done += here) {
        const int64_t left = run - (e + done) % run, then = e + done + left;
        here = n - done < left ? n - done : left;
        const int64_t next = mf_walk_offset(walk, first + (then < w->inner->elements ? then : 0));
        const char *const from = (const char *)((uintptr_t)w->pointers->in[operand] + (uintptr_t)(offset * item));
        /* whole lines, whose end is the next output's run */
        const int64_t bytes = here * item, lines = (bytes + LINE - 1) / LINE * LINE;
        for (int64_t k = 0; k < outputs; k++)
            mf_copy_run(w->gathered + k * pitch + done * item, from + k * run * item, k + 1 < outputs ? lines : bytes,
                        (next - offset) * item);
        offset = next;
    }
}

/* Tile t, of n elements, of the outputs that are in rows. */
static void fold(struct worker *w, int64_t t, int64_t n, int64_t outputs, int64_t i)
{
    const struct inner_plan *data = w->inner;
    const struct program *program = &w->plan->problem.program;
    const int item = mf_dtypes[w->plan->problem.in_type[mf_reducer_operand(&w->plan->problem, program->reducer)]].size;
    const struct source source = {w->gathered, row_pitch(data, item) / item, item, w->gathered, 0};
    for (int r = 0, end; r < program->reducer_count; r = end) {
        const struct reducer *reducer = &program->reducer[r];
        const size_t value = mf_cls_size(reducer->cls), second = reducer->kind == RED_ARG ? 8 : value;
        end = data->summary && data->tiles > 1 && n >= LANES ? program->reducer_count : r + 1;
        if (data->tiles > 1)
            mf_inner_fold_tiles(w, r, end, &source, n, outputs, t, 1, i);
        else
            mf_inner_fold_rows(mf_inner_part(w, r, 0, i, value), mf_inner_part(w, r, 1, i, second), w, r, &source,
                               mf_inner_memory_type(w, r), outputs, n);
    }
}

void mf_inner_gathered(struct worker *w, int64_t o, int64_t outputs, int64_t i)
{
    const struct inner_plan *data = w->inner;
    for (int64_t t = 0; t < data->tiles; t++) {
        const int64_t e = t * TILE, n = data->elements - e < TILE ? data->elements - e : TILE;
        gather(w, o, outputs, e, n);
        fold(w, t, n, outputs, i);
    }
}
