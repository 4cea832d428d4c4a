/* Products of matrices by columns: c[i + j p] (+)= sum over k of a[i, k] b[k, j].
 *
 * Up to 2048 rows of a (f64: 1024) are packed for up to 768 terms (384), in panels as wide as two vectors, and stay in
 * the last cache; columns of b, in panels as high as a tile, in the second one, a block for each task. A tile's sums
 * are in registers. (Goto and van de Geijn, "Anatomy of high-performance matrix multiplication", 2008, sections 4, 5.)
 * Cost: beside M N K fused multiply-adds, a is packed once, b M / 2048 times (f64: M / 1024), and c is read and written
 * K / 768 times (K / 384). */
#include "fused_gemm.h"

#include "contraction_kernels.h"
#include "cpu.h"
#include "panel.h"

enum {
    TERM_BYTES = 3072,   /* of a row's terms in a block, at most */
    LINE_BYTES = 8192,   /* of a's rows in a block */
    COLUMNS = 192,       /* of b in a block, about */
    PANELS_TOGETHER = 4, /* that a task packs */
    AHEAD = 8,           /* terms that are fetched before they are copied */
    CACHE_LINE = 64,
};

/* One call. */
struct multiplication {
    const struct strided_block *block;
    const struct contraction_kernels *kernels;
    struct threads *threads;
    int thread_count, item, cls;
    int64_t width, height;                               /* of a tile: rows of a, columns of b */
    char *wide, *high;                                   /* panels of a; of b, by worker */
    size_t high_bytes;                                   /* of a worker */
    int64_t first_row, rows, first_term, terms, columns; /* at hand; columns of b in a task */
};

static int64_t least(int64_t x, int64_t y)
{
    return x < y ? x : y;
}

static int64_t divide_up(int64_t n, int64_t by)
{
    return (n + by - 1) / by;
}

/* ---- packing: panel[k * width + p] = from[p * across + k * along] for p < n, 0 for n <= p < width ---- */

/* Panels side by side, `panel` elements apart. */
struct panels {
    int64_t n, width, panel, terms;
};

/* across == 1: term by term, so that memory is read in runs as long as all panels are wide. */
static void pack_runs(char *to, const char *from, int item, int64_t along, const struct panels *p)
{
    const int64_t row = p->width * item, whole = p->n / p->width, rest = p->n % p->width * item;
    for (int64_t k = 0; k < p->terms; k++, to += row, from += along * item) {
        const char *fetch = (const char *)((uintptr_t)from + (uintptr_t)(AHEAD * along * item));
        for (int64_t b = 0; b < p->n * item; b += CACHE_LINE)
            __builtin_prefetch((const void *)((uintptr_t)fetch + (uintptr_t)b));
        for (int64_t b = 0; b < row; b += CACHE_LINE)
            for (int64_t q = 0; q < whole; q++)
                __builtin_prefetch((const void *)((uintptr_t)to + (uintptr_t)(q * p->panel * item + AHEAD * row + b)),
                                   1);
        for (int64_t q = 0; q < whole; q++)
            panel_copy(to + q * p->panel * item, from + q * row, row);
        if (rest) {
            char *last = to + whole * p->panel * item;
            memcpy(last, from + whole * row, (size_t)rest);
            memset(last + rest, 0, (size_t)(row - rest));
        }
    }
}

/* along == 1. */
#define DEFINE_PACK_ROWS(bits)                                                                              \
    static void pack_rows_##bits(uint##bits##_t *to, const uint##bits##_t *from, int64_t across, int64_t n, \
                                 int64_t width, int64_t terms)                                              \
    {                                                                                                       \
        int64_t p = 0;                                                                                      \
        for (; p + 4 <= n; p += 4)                                                                          \
            panel_four_rows_##bits(to + p, width, from + p * across, across, terms);                        \
        for (; p < width; p++)                                                                              \
            for (int64_t k = 0; k < terms; k++)                                                             \
                to[k * width + p] = p < n ? from[p * across + k] : 0;                                       \
    }
DEFINE_PACK_ROWS(32)
DEFINE_PACK_ROWS(64)

/* Panels of n positions from `position` on, of a (which 0) or b. */
static void pack(const struct multiplication *p, int which, int64_t position, int64_t n, char *to)
{
    const struct strided_block *block = p->block;
    const int64_t width = which ? p->height : p->width, pitch = block->pitch[which], panel = width * p->terms;
    const int by_rows = which ? !block->transposed[1] : block->transposed[0];
    const int64_t offset = by_rows ? position * pitch + p->first_term : p->first_term * pitch + position;
    const char *from = (which ? block->b : block->a) + offset * p->item;
    const struct panels panels = {n, width, panel, p->terms};
    if (!by_rows)
        pack_runs(to, from, p->item, pitch, &panels);
    for (int64_t at = 0; by_rows && at < n; at += width, to += panel * p->item, from += width * pitch * p->item) {
        if (p->item == 4)
            pack_rows_32((void *)to, (const void *)from, pitch, least(width, n - at), width, p->terms);
        else
            pack_rows_64((void *)to, (const void *)from, pitch, least(width, n - at), width, p->terms);
    }
}

static void pack_wide(void *context, int64_t task, int worker)
{
    const struct multiplication *p = context;
    const int64_t positions = PANELS_TOGETHER * p->width, first = task * positions;
    (void)worker;
    pack(p, 0, p->first_row + first, least(positions, p->rows - first), p->wide + first * p->terms * p->item);
}

/* ---- tiles ---- */

/* A tile that is not whole, by way of `sums`. */
static void put_part(const struct multiplication *p, const char *sums, char *out, int64_t rows, int64_t columns)
{
    const int64_t pitch = p->block->pitch[STRIDED_C];
    const int more = p->block->accumulate || p->first_term;
    for (int64_t j = 0; j < columns; j++)
        for (int64_t i = 0; i < rows; i++) {
            if (p->item == 4) {
                const float *from = (const float *)(const void *)sums + j * p->width + i;
                float *to = (float *)(void *)out + j * pitch + i;
                *to = more ? *to + *from : *from;
            } else {
                const double *from = (const double *)(const void *)sums + j * p->width + i;
                double *to = (double *)(void *)out + j * pitch + i;
                *to = more ? *to + *from : *from;
            }
        }
}

static void multiply_columns(void *context, int64_t task, int worker)
{
    const struct multiplication *p = context;
    const struct strided_block *block = p->block;
    const int64_t first = task * p->columns, columns = least(p->columns, block->n - first);
    const int more = block->accumulate || p->first_term;
    const struct leaf leaf = {0, (int32_t)p->terms, 0};
    contraction_fn *tile = p->kernels->fused[p->cls], *whole = more ? p->kernels->fused_more[p->cls] : tile;
    char *high = p->high + (size_t)worker * p->high_bytes;
    const int64_t pitch = block->pitch[STRIDED_C], panel = p->terms * p->item;
    pack(p, 1, first, columns, high);
    for (int64_t i = 0; i < p->rows; i += p->width)
        for (int64_t j = 0; j < columns; j += p->height) {
            char *out = block->c + ((first + j) * pitch + p->first_row + i) * p->item;
            const char *x = high + j * panel, *y = p->wide + i * panel;
            double sums[1024] __attribute__((aligned(64)));
            if (i + p->width <= p->rows && j + p->height <= columns) {
                whole(out, pitch, x, y, &leaf, 1);
                continue;
            }
            tile(sums, p->width, x, y, &leaf, 1);
            put_part(p, (const char *)sums, out, least(p->width, p->rows - i), least(p->height, columns - j));
        }
}

/* ---- blocks ---- */

static int64_t most_rows(int item, int64_t width)
{
    return LINE_BYTES / item / width * width;
}

static void start(struct multiplication *p, const struct mf_plan *plan, enum dtype type)
{
    p->kernels = plan->device->kernels->contractions;
    p->threads = plan->device->threads;
    p->thread_count = plan->threads;
    p->item = mf_dtypes[type].size;
    p->cls = type == DT_f32 ? CLS_F32 : CLS_F64;
    p->width = p->kernels->columns[p->cls];
    p->height = p->kernels->rows;
    p->high_bytes = (size_t)(divide_up(COLUMNS, p->height) * p->height * TERM_BYTES);
}

size_t mf_fused_memory(const struct mf_plan *plan, enum dtype type)
{
    struct multiplication p;
    start(&p, plan, type);
    return (size_t)(most_rows(p.item, p.width) * TERM_BYTES) + (size_t)plan->threads * p.high_bytes;
}

/* Columns of b in a task: about as many in each, and no thread waits long for another. */
static int64_t share_columns(const struct multiplication *p)
{
    const int64_t panels = divide_up(p->block->n, p->height), most = COLUMNS / p->height;
    int64_t tasks = divide_up(panels, most);
    if (p->thread_count > 1)
        tasks = divide_up(tasks, p->thread_count) * p->thread_count;
    return divide_up(panels, tasks) * p->height;
}

void mf_fused_multiply(void *context, enum dtype type, const struct strided_block *block)
{
    const struct fused_gemm *gemm = context;
    struct multiplication p = {.block = block};
    start(&p, gemm->plan, type);
    p.wide = gemm->memory;
    p.high = gemm->memory + most_rows(p.item, p.width) * TERM_BYTES;
    p.columns = share_columns(&p);
    const int64_t row_blocks = divide_up(block->m, most_rows(p.item, p.width)),
                  row_step = divide_up(divide_up(block->m, row_blocks), p.width) * p.width,
                  term_step = divide_up(block->k, divide_up(block->k, TERM_BYTES / p.item));
    for (p.first_row = 0; p.first_row < block->m; p.first_row += row_step) {
        p.rows = least(row_step, block->m - p.first_row);
        for (p.first_term = 0; p.first_term < block->k; p.first_term += term_step) {
            p.terms = least(term_step, block->k - p.first_term);
            mf_parallel(p.threads, p.thread_count, divide_up(p.rows, PANELS_TOGETHER * p.width), pack_wide, &p);
            mf_parallel(p.threads, p.thread_count, divide_up(block->n, p.columns), multiply_columns, &p);
        }
    }
}
