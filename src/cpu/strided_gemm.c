/* Products of strided matrices by a BLAS, or by our own tiles (fused_gemm.c). Matrices that they can read or write stay
 * where they are. Of the others blocks are copied and multiplied: of a 2048 rows, of b 2048 columns, both of 320 terms,
 * or 512 where that are all, which a BLAS multiplies as fast as whole matrices (our own tiles: 512 always). Where c is
 * copied, the sums of 1024 x 1024 outputs wait there for all of their terms. Where matrices of the batch are neighbours
 * in memory, up to four are copied together, so that a cache line is read once for them.
 *
 * Cost: beside the product, b is read once (M / 1024 times where c is copied), a N / 2048 times (N / 1024). With R
 * elements copied and F terms multiplied a nanosecond, that takes F / R (1 / M + 1 / 2048) of the product's time.
 * Scratch memory: up to 18 MB, 26 MB where c is copied (our own tiles need larger blocks, and panels:
 * mf_fused_memory). */
#include "strided_gemm.h"

#include <stdio.h>

#include "../gemm.h"
#include "cpu.h"

enum {
    WHOLE = 1 << 30,       /* no block: a BLAS counts in int */
    ROWS = 2048,           /* of a block, or columns: memory is read fastest in long runs */
    SUM_ROWS = 1024,       /* where c is copied, */
    SUM_COLUMNS = 1024,    /* there too */
    TERM_BYTES = 1280,     /* of a row's terms in a block, */
    ALL_TERM_BYTES = 2048, /* where these are all, and c is not copied, and for our own tiles */
    ROW_BYTES = 4096,      /* of rows that are copied together, */
    LONE_ROW_BYTES = 8192, /* where one operand is, or for our own tiles */
    TOGETHER_BYTES = 16,   /* neighbours that are copied together, */
    SUM_BYTES = 16 << 20,  /* where c is copied as far as so much of it goes */
    LINE_BYTES = 64,
    UNIT = 16,         /* blocks' sizes are multiples */
    APART = 17 * UNIT, /* elements between blocks: copied side by side, they are not to meet in a cache's sets */
    STRIP = 256,       /* elements that are copied for one matrix after the other */
    TASK_RUNS = 64,    /* runs that a thread copies */
    AHEAD = 2,         /* runs from the one that is copied to the one that is fetched: */
    LINES_AHEAD = 16,  /* so much of it that the processor knows how it goes on */
};

static int64_t least(int64_t x, int64_t y)
{
    return x < y ? x : y;
}

/* ---- planning ---- */

struct loop_list {
    int count, loop[MAX_LOOPS];
};

static int64_t last_stride(const struct walk *walk)
{
    const int64_t stride = walk->stride[walk->loops - 1];
    return stride < 0 ? -stride : stride;
}

static void find_matrix(struct strided_matrix *matrix, const struct nest *nest, const int64_t *stride,
                        const struct loop_list *rows, const struct loop_list *columns)
{
    struct walk along, across;
    mf_walk_choose(&along, nest->size, stride, rows->count, rows->loop);
    mf_walk_choose(&across, nest->size, stride, columns->count, columns->loop);
    matrix->packed = along.loops != 1 || across.loops != 1 ||
                     !mf_gemm_pitch(along.stride[0], across.stride[0], along.size[0], across.size[0],
                                    &matrix->transposed, &matrix->pitch);
    if (matrix->packed)
        matrix->transposed = last_stride(&across) < last_stride(&along);
    matrix->inner = matrix->transposed ? across : along;
    matrix->outer = matrix->transposed ? along : across;
}

static const int64_t *strides(const struct nest *nest, const struct strided_gemm *g, int i)
{
    return i == STRIDED_C ? nest->out[0] : nest->in[g->operand[i]];
}

/* Which loop of the batch has neighbours that are copied together goes last; g->together of them. */
static void find_together(struct strided_gemm *g, const struct nest *nest, struct loop_list *batch)
{
    const int64_t item = mf_dtypes[g->type].size;
    int64_t nearest = LINE_BYTES / item;
    int found = -1;
    for (int i = 0; i < STRIDED_MATRICES; i++)
        for (int l = 0; g->matrix[i].packed && l < batch->count; l++) {
            const int64_t stride = strides(nest, g, i)[batch->loop[l]], step = stride < 0 ? -stride : stride;
            if (step && step < nearest && step < last_stride(&g->matrix[i].inner)) {
                nearest = step;
                found = l;
            }
        }
    g->together = 1;
    if (found < 0)
        return;
    const int loop = batch->loop[found];
    int64_t most = TOGETHER_BYTES / item;
    if (g->matrix[STRIDED_C].packed)
        most = least(most, SUM_BYTES / item / (least(g->m, SUM_ROWS) * least(g->n, SUM_COLUMNS)));
    batch->loop[found] = batch->loop[batch->count - 1];
    batch->loop[batch->count - 1] = loop;
    const int64_t groups = (nest->size[loop] + most - 1) / most;
    g->together = (nest->size[loop] + groups - 1) / groups;
}

/* total in the fewest blocks of at most `most`, all about as large. */
static int64_t even(int64_t total, int64_t most)
{
    const int64_t whole = most / UNIT * UNIT, blocks = (total + whole - 1) / whole;
    return ((total + blocks - 1) / blocks + UNIT - 1) / UNIT * UNIT;
}

static void plan_blocks(struct strided_gemm *g, int own)
{
    const int64_t item = mf_dtypes[g->type].size;
    const int a = g->matrix[STRIDED_A].packed, b = g->matrix[STRIDED_B].packed, c = g->matrix[STRIDED_C].packed;
    const int64_t row = own || (!c && g->k * item <= ALL_TERM_BYTES) ? ALL_TERM_BYTES : TERM_BYTES;
    const int64_t together = (!own && ((a && b) || c) ? ROW_BYTES : LONE_ROW_BYTES) / g->together;
    g->terms = even(g->k, a || b ? least(row, together) / item : WHOLE);
    g->rows = even(g->m, c ? SUM_ROWS : a ? ROWS : WHOLE);
    g->columns = even(g->n, c ? SUM_COLUMNS : b ? ROWS : WHOLE);
    g->lines = b && !c ? even(g->m, WHOLE) : g->rows;
    const int64_t size[STRIDED_MATRICES][2] = {{g->rows, g->terms}, {g->terms, g->columns}, {g->rows, g->columns}};
    for (int i = 0; i < STRIDED_MATRICES; i++) {
        struct strided_matrix *matrix = &g->matrix[i];
        if (!matrix->packed)
            continue;
        matrix->pitch = size[i][matrix->transposed] + UNIT; /* no power of two */
        matrix->elements = matrix->pitch * size[i][!matrix->transposed] + APART;
        matrix->at = g->bytes;
        g->bytes += (size_t)(g->together * matrix->elements * item);
    }
}

int mf_strided_gemm_find(const struct problem *problem, int own, struct strided_gemm *g)
{
    const struct nest *nest = &problem->memory;
    struct factor_loops loops;
    int factor[FACTORS];
    const enum dtype type = problem->out_type[0];
    if ((type != DT_f32 && type != DT_f64) || !mf_gemm_factors(problem, factor, &loops))
        return 0;
    struct loop_list list[FACTORS + 1], terms = {.count = nest->reduced};
    for (int l = 0; l < nest->reduced; l++)
        terms.loop[l] = nest->kept + l;
    for (int f = 0; f <= FACTORS; f++) {
        list[f].count = loops.count[f];
        memcpy(list[f].loop, loops.loop[f], sizeof list[f].loop);
    }
    *g = (struct strided_gemm){.type = type, .k = problem->reduced_total};
    find_matrix(&g->matrix[STRIDED_C], nest, nest->out[0], &list[0], &list[1]);
    const int f = g->matrix[STRIDED_C].transposed; /* c is stored by columns */
    if (f)
        find_matrix(&g->matrix[STRIDED_C], nest, nest->out[0], &list[1], &list[0]);
    for (int i = 0; i < FACTORS; i++) {
        g->operand[i] = problem->program.map.node[factor[i ? !f : f]].index;
        if (problem->in_type[g->operand[i]] != type)
            return 0;
    }
    find_matrix(&g->matrix[STRIDED_A], nest, strides(nest, g, STRIDED_A), &list[f], &terms);
    find_matrix(&g->matrix[STRIDED_B], nest, strides(nest, g, STRIDED_B), &terms, &list[!f]);
    g->m = mf_factors_positions(problem, &loops, f);
    g->n = mf_factors_positions(problem, &loops, !f);
    g->batch = mf_factors_positions(problem, &loops, FACTORS);
    find_together(g, nest, &list[FACTORS]);
    for (int i = 0; i < STRIDED_MATRICES; i++)
        mf_walk_choose(&g->matrix[i].batch, nest->size, strides(nest, g, i), list[FACTORS].count, list[FACTORS].loop);
    plan_blocks(g, own);
    return 1;
}

void mf_strided_gemm_print(const struct strided_gemm *g, char *text, size_t size)
{
    static const char *const blocks[] = {"",
                                         "; copied: a",
                                         "; copied: b",
                                         "; copied: a, b",
                                         "; copied: c",
                                         "; copied: a, c",
                                         "; copied: b, c",
                                         "; copied: a, b, c"};
    int copied = 0;
    for (int i = 0; i < STRIDED_MATRICES; i++)
        copied |= g->matrix[i].packed << i;
    const int used = snprintf(text, size, "%lld product%s of %lld x %lld and %lld x %lld%s", (long long)g->batch,
                              g->batch == 1 ? "" : "s", (long long)g->m, (long long)g->k, (long long)g->k,
                              (long long)g->n, blocks[copied]);
    if (copied && used >= 0 && (size_t)used < size)
        snprintf(text + used, size - (size_t)used, ", in blocks of %lld x %lld and %lld x %lld, %lld at once",
                 (long long)g->rows, (long long)g->terms, (long long)g->terms, (long long)g->columns,
                 (long long)g->together);
}

/* ---- one execution ---- */

struct strided_run {
    const struct mf_plan *plan;
    const struct strided_gemm *gemm;
    char *tensor[STRIDED_MATRICES], *memory;
    int64_t count, offset[STRIDED_MATRICES][TOGETHER_BYTES / 4]; /* the matrices at hand */
};

/* A block of a matrix: its first row and column, and how many. */
struct part {
    int64_t row, rows, column, columns;
};

static char *element(char *base, int64_t index, int64_t item)
{
    return base + index * item;
}

#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)
#define T uint32_t
#define BITS 32
#include "interleave.inc"
#define T uint64_t
#define BITS 64
#include "interleave.inc"

/* The same block of all matrices at hand, from or to scratch memory. */
struct copy {
    const struct strided_run *run;
    int which;
    int64_t inner, inners, outer, outers;
};

/* Its first lines, so that they and their page's address are on their way. */
static void fetch_run(const struct walk *walk, const char *from, int64_t item)
{
    const int64_t step = walk->stride[walk->loops - 1] * item;
    const int64_t apart = step >= 0 && step < LINE_BYTES   ? LINE_BYTES
                          : step < 0 && step > -LINE_BYTES ? -LINE_BYTES
                                                           : step;
    for (int64_t l = 0; l < LINES_AHEAD; l++)
        __builtin_prefetch((const void *)((uintptr_t)from + (uintptr_t)l * (uintptr_t)apart));
}

/* Neighbours' runs together; 0 where they are none. */
static int copy_neighbours(const struct copy *copy, int64_t offset, int64_t number)
{
    const struct strided_run *run = copy->run;
    const struct strided_matrix *matrix = &run->gemm->matrix[copy->which];
    const int item = mf_dtypes[run->gemm->type].size;
    const int64_t *at = run->offset[copy->which], stride = matrix->inner.stride[0];
    const int64_t inner = mf_walk_offset(&matrix->inner, copy->inner);
    for (int64_t g = 1; g < run->count; g++)
        if (at[g] != at[0] + g)
            return 0;
    if (run->count == 1 || matrix->inner.loops > 1)
        return 0;
    char *memory = element(run->tensor[copy->which], at[0] + offset + inner, item);
    char *block = element(run->memory + matrix->at, number * matrix->pitch, item);
    const int64_t apart = matrix->elements, n = copy->inners, count = run->count;
    if (copy->which == STRIDED_C)
        return item == 4 ? join_32((void *)memory, apart, (void *)block, n, stride, count)
                         : join_64((void *)memory, apart, (void *)block, n, stride, count);
    return item == 4 ? split_32((void *)block, apart, (void *)memory, n, stride, count)
                     : split_64((void *)block, apart, (void *)memory, n, stride, count);
}

/* offset: of the run in the tensor; number: of the run in the block. */
static void copy_run(const struct copy *copy, int64_t offset, int64_t number)
{
    const struct strided_run *run = copy->run;
    const struct strided_matrix *matrix = &run->gemm->matrix[copy->which];
    const int item = mf_dtypes[run->gemm->type].size;
    const int64_t strip = run->count > 1 ? STRIP : copy->inners;
    for (int64_t at = 0; at < copy->inners; at += strip)
        for (int64_t g = 0; g < run->count; g++) {
            const int64_t n = least(strip, copy->inners - at);
            char *memory = element(run->tensor[copy->which], run->offset[copy->which][g] + offset, item);
            char *block = element(run->memory + matrix->at, g * matrix->elements + number * matrix->pitch + at, item);
            if (copy->which == STRIDED_C)
                mf_walk_scatter(&matrix->inner, item, memory, copy->inner + at, n, block);
            else
                mf_walk_gather(&matrix->inner, item, memory, copy->inner + at, n, block);
        }
}

static void copy_runs(void *context, int64_t task, int worker)
{
    const struct copy *copy = context;
    const struct strided_run *run = copy->run;
    const struct strided_matrix *matrix = &run->gemm->matrix[copy->which];
    const int item = mf_dtypes[run->gemm->type].size;
    const int64_t first = task * TASK_RUNS, runs = least(TASK_RUNS, copy->outers - first);
    const int64_t inner = run->offset[copy->which][0] + mf_walk_offset(&matrix->inner, copy->inner);
    int64_t outer[TASK_RUNS];
    (void)worker;
    mf_walk_offsets(&matrix->outer, copy->outer + first, 1, runs, outer);
    for (int64_t r = 0; r < runs; r++) {
        if (r + AHEAD < runs && copy->which != STRIDED_C)
            fetch_run(&matrix->inner, element(run->tensor[copy->which], inner + outer[r + AHEAD], item), item);
        if (!copy_neighbours(copy, outer[r], first + r))
            copy_run(copy, outer[r], first + r);
    }
}

/* Nothing where the BLAS uses the matrix as it is. */
static void copy_part(const struct strided_run *run, int which, const struct part *p)
{
    const struct strided_matrix *matrix = &run->gemm->matrix[which];
    struct copy copy = {run, which, p->row, p->rows, p->column, p->columns};
    if (matrix->transposed)
        copy = (struct copy){run, which, p->column, p->columns, p->row, p->rows};
    if (matrix->packed)
        mf_parallel(run->plan->device->threads, run->plan->threads, (copy.outers + TASK_RUNS - 1) / TASK_RUNS,
                    copy_runs, &copy);
}

/* Where the BLAS finds a block of matrix g of those at hand. */
static char *find_part(const struct strided_run *run, int which, int64_t row, int64_t column, int64_t g)
{
    const struct strided_matrix *matrix = &run->gemm->matrix[which];
    const int item = mf_dtypes[run->gemm->type].size;
    if (matrix->packed)
        return element(run->memory + matrix->at, g * matrix->elements, item);
    const int64_t inner = matrix->transposed ? column : row, outer = matrix->transposed ? row : column;
    return element(
        run->tensor[which],
        run->offset[which][g] + mf_walk_offset(&matrix->inner, inner) + mf_walk_offset(&matrix->outer, outer), item);
}

static void multiply_blocks(const struct strided_run *run, const struct part *a, const struct part *b,
                            strided_multiply *multiply, void *context)
{
    const struct strided_gemm *g = run->gemm;
    struct strided_block block = {
        .m = (int)a->rows, .n = (int)b->columns, .k = (int)a->columns, .accumulate = a->column > 0};
    for (int i = 0; i < STRIDED_MATRICES; i++)
        block.pitch[i] = (int)g->matrix[i].pitch;
    for (int i = 0; i < FACTORS; i++)
        block.transposed[i] = g->matrix[i].transposed;
    for (int64_t t = 0; t < run->count; t++) {
        block.a = find_part(run, STRIDED_A, a->row, a->column, t);
        block.b = find_part(run, STRIDED_B, b->row, b->column, t);
        block.c = find_part(run, STRIDED_C, a->row, b->column, t);
        multiply(context, g->type, &block);
    }
}

/* All terms of some rows and columns of c. */
static void multiply_lines(const struct strided_run *run, const struct part *c, strided_multiply *multiply,
                           void *context)
{
    const struct strided_gemm *g = run->gemm;
    for (int64_t k = 0; k < g->k; k += g->terms) {
        const int64_t terms = least(g->terms, g->k - k);
        const struct part b = {k, terms, c->column, c->columns};
        copy_part(run, STRIDED_B, &b);
        for (int64_t row = 0; row < c->rows; row += g->rows) {
            const struct part a = {c->row + row, least(g->rows, c->rows - row), k, terms};
            copy_part(run, STRIDED_A, &a);
            multiply_blocks(run, &a, &b, multiply, context);
        }
    }
    copy_part(run, STRIDED_C, c);
}

void mf_strided_gemm_run(const struct mf_plan *plan, const struct strided_gemm *g, const struct pointers *pointers,
                         char *memory, strided_multiply *multiply, void *context)
{
    struct strided_run run = {.plan = plan, .gemm = g, .memory = memory};
    run.tensor[STRIDED_A] = (char *)(uintptr_t)pointers->in[g->operand[0]];
    run.tensor[STRIDED_B] = (char *)(uintptr_t)pointers->in[g->operand[1]];
    run.tensor[STRIDED_C] = pointers->out[0];
    for (int64_t first = 0; first < g->batch; first += run.count) {
        run.count = least(g->together, g->batch - first);
        for (int i = 0; i < STRIDED_MATRICES; i++)
            mf_walk_offsets(&g->matrix[i].batch, first, 1, run.count, run.offset[i]);
        for (int64_t column = 0; column < g->n; column += g->columns)
            for (int64_t row = 0; row < g->m; row += g->lines) {
                const struct part c = {row, least(g->lines, g->m - row), column, least(g->columns, g->n - column)};
                multiply_lines(&run, &c, multiply, context);
            }
    }
}

/* ---- scratch memory ---- */

char *mf_strided_scratch_take(strided_scratch *scratch, size_t bytes)
{
    char *memory = atomic_exchange(scratch, NULL);
    return memory ? memory : mf_alloc_aligned(bytes);
}

void mf_strided_scratch_keep(strided_scratch *scratch, char *memory)
{
    char *none = NULL;
    if (!atomic_compare_exchange_strong(scratch, &none, memory))
        mf_free(memory);
}
