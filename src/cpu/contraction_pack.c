/* Packing: the values of one factor of a contraction for some positions and terms, panel by panel, so that a kernel
 * reads them one after the other. Strides, types and maps are dealt with here and nowhere else. */
#include "contraction.h"
#include "panel.h"

/* The windows of the factor's operands. */
static void plan_windows(struct factor *factor, const struct nest *nest, int own_count, const int *own, int batch_count,
                         const int *batch)
{
    factor->window_count = 0;
    for (int w = 0; w < nest->window_count; w++) {
        const struct window *from = &nest->window[w];
        int mine = 0;
        for (int q = 0; q < factor->operand_count; q++)
            mine |= factor->operand[q] == from->input;
        if (!mine || factor->window_count == FACTOR_WINDOWS)
            continue;
        struct factor_window *window = &factor->window[factor->window_count++];
        window->offset = from->offset;
        window->extent = from->extent;
        mf_walk_choose(&window->kept, nest->size, from->step, own_count, own);
        mf_walk_choose(&window->batch, nest->size, from->step, batch_count, batch);
        mf_walk_make(&window->reduced, nest->reduced, nest->size + nest->kept, from->step + nest->kept);
    }
}

void mf_factor_plan(struct factor *factor, const struct problem *problem, const struct nest *order, int own_count,
                    const int *own, int batch_count, const int *batch)
{
    const struct pool *pool = &problem->program.map;
    const struct nest *nest = &problem->memory;
    const struct node *root = &pool->node[factor->node];
    mf_block_plan(&factor->block, pool, &factor->node, 1, problem->in_type);
    factor->operand_count = 0;
    for (int i = 0; i < problem->input_count; i++) {
        int used = 0;
        for (int k = 0; k < pool->count; k++)
            used |= factor->block.used[k] && pool->node[k].op == OP_OPERAND && pool->node[k].index == i;
        if (!used)
            continue;
        factor->operand[factor->operand_count++] = i;
        mf_walk_choose(&factor->kept[i], nest->size, nest->in[i], own_count, own);
        mf_walk_choose(&factor->batch[i], nest->size, nest->in[i], batch_count, batch);
        mf_walk_make(&factor->reduced[i], order->reduced, order->size + order->kept, order->in[i] + order->kept);
        const int64_t panel = PANEL_TERMS * factor->width, together = 1; /* a panel of raw elements is one run */
        mf_walk_make(&factor->block.walk[i], 1, &panel, &together);
    }
    plan_windows(factor, nest, own_count, own, batch_count, batch);
    factor->direct = root->op == OP_OPERAND && mf_is_class_type(problem->in_type[root->index]);
    factor->total = 1;
    for (int l = 0; l < own_count; l++)
        factor->total *= nest->size[own[l]];
}

static size_t round64(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

size_t mf_packer_memory(const struct factor *factor, int64_t most)
{
    size_t each =
        round64((size_t)most * 8) + round64(PANEL_TERMS * 8) + round64((size_t)(PANEL_TERMS * factor->width) * 8);
    size_t window = round64((size_t)most * 8) + round64(PANEL_TERMS * 8);
    return (size_t)factor->operand_count * each + (size_t)factor->window_count * window +
           round64((size_t)(PANEL_TERMS * factor->width)) + mf_block_memory(&factor->block, BLOCK);
}

void mf_packer_start(struct packer *packer, const struct factor *factor, const struct problem *problem,
                     const struct kernels *kernels, char *memory, int64_t most)
{
    packer->factor = factor;
    packer->problem = problem;
    packer->kernels = kernels;
    for (int q = 0; q < factor->operand_count; q++) {
        int i = factor->operand[q];
        packer->position[i] = (int64_t *)(void *)memory;
        memory += round64((size_t)most * 8);
        packer->term[i] = (int64_t *)(void *)memory;
        memory += round64(PANEL_TERMS * 8);
        packer->raw[i] = memory;
        memory += round64((size_t)(PANEL_TERMS * factor->width) * 8);
    }
    for (int w = 0; w < factor->window_count; w++) {
        packer->window_position[w] = (int64_t *)(void *)memory;
        memory += round64((size_t)most * 8);
        packer->window_term[w] = (int64_t *)(void *)memory;
        memory += round64(PANEL_TERMS * 8);
    }
    packer->inside = (uint8_t *)memory;
    memory += round64((size_t)(PANEL_TERMS * factor->width));
    mf_block_start(&packer->block, &factor->block, kernels, memory, BLOCK);
}

/* The walk's offsets of positions first ... first+n-1, each plus base. They may wrap: sums of parts fit, not parts. */
static void place(const struct walk *walk, int64_t base, int64_t first, int64_t n, int64_t *to)
{
    mf_walk_offsets(walk, first, 1, n, to);
    for (int64_t p = 0; p < n; p++)
        to[p] = (int64_t)((uint64_t)to[p] + (uint64_t)base);
}

void mf_packer_place(struct packer *packer, int64_t b, int64_t first, int64_t n)
{
    const struct factor *factor = packer->factor;
    for (int q = 0; q < factor->operand_count; q++) {
        int i = factor->operand[q];
        place(&factor->kept[i], mf_walk_offset(&factor->batch[i], b), first, n, packer->position[i]);
    }
    for (int w = 0; w < factor->window_count; w++) {
        const struct factor_window *window = &factor->window[w];
        int64_t base = (int64_t)((uint64_t)mf_walk_offset(&window->batch, b) + (uint64_t)window->offset);
        place(&window->kept, base, first, n, packer->window_position[w]);
    }
}

/* The offsets of a block's terms in a walk over the reduced loops. */
static void place_terms(const struct walk *walk, const struct term_order *order, const struct term_block *block,
                        int64_t *to)
{
    for (int64_t l = block->leaf; l < block->leaf + block->leaves; l++) {
        mf_walk_offsets(walk, order->leaf[l].first, order->step, order->leaf[l].count, to);
        to += order->leaf[l].count;
    }
}

static void place_all_terms(struct packer *packer, const struct term_order *order, const struct term_block *block)
{
    const struct factor *factor = packer->factor;
    for (int q = 0; q < factor->operand_count; q++)
        place_terms(&factor->reduced[factor->operand[q]], order, block, packer->term[factor->operand[q]]);
    for (int w = 0; w < factor->window_count; w++)
        place_terms(&factor->window[w].reduced, order, block, packer->window_term[w]);
}

/* ---- windows ---- */

static void find_ends(const int64_t *x, int64_t n, int64_t *low, int64_t *high)
{
    *low = *high = x[0];
    for (int64_t p = 1; p < n; p++) {
        *low = x[p] < *low ? x[p] : *low;
        *high = x[p] > *high ? x[p] : *high;
    }
}

/* Whether every window of positions first ... first+n-1 is inside for every term. */
static int all_inside(const struct packer *packer, int64_t first, int64_t n, int64_t terms)
{
    for (int w = 0; w < packer->factor->window_count; w++) {
        int64_t low, high, term_low, term_high;
        find_ends(packer->window_position[w] + first, n, &low, &high);
        find_ends(packer->window_term[w], terms, &term_low, &term_high);
        if ((__int128)low + term_low < 0 || (__int128)high + term_high >= packer->factor->window[w].extent)
            return 0;
    }
    return 1;
}

static void mark_inside(struct packer *packer, int64_t first, int64_t n, int64_t terms)
{
    const int64_t width = packer->factor->width;
    memset(packer->inside, 1, (size_t)(terms * width));
    for (int w = 0; w < packer->factor->window_count; w++) {
        const uint64_t extent = (uint64_t)packer->factor->window[w].extent;
        const int64_t *position = packer->window_position[w] + first, *term = packer->window_term[w];
        for (int64_t k = 0; k < terms; k++)
            for (int64_t p = 0; p < n; p++)
                packer->inside[k * width + p] &= (uint64_t)term[k] + (uint64_t)position[p] < extent;
    }
}

/* Elements inside only; 0 elsewhere. */
static void gather_inside(const struct packer *packer, char *to, int item, const char *base, const int64_t *position,
                          int64_t n, const int64_t *term, int64_t terms)
{
    const int64_t width = packer->factor->width;
    memset(to, 0, (size_t)(terms * width * item));
    for (int64_t k = 0; k < terms; k++)
        for (int64_t p = 0; p < n; p++)
            if (packer->inside[k * width + p])
                memcpy(to + (k * width + p) * item,
                       (const char *)((uintptr_t)base + (uintptr_t)((position[p] + term[k]) * item)), (size_t)item);
}

static void set_outside(const struct packer *packer, char *to, int64_t size, int64_t count)
{
    for (int64_t e = 0; e < count; e++)
        if (!packer->inside[e])
            memcpy(to + e * size, &packer->factor->outside, (size_t)size);
}

/* ---- panels ---- */

/* Whether offsets follow each other. */
static int is_run(const int64_t *offset, int64_t n)
{
    for (int64_t p = 1; p < n; p++)
        if (offset[p] != offset[0] + p)
            return 0;
    return 1;
}

/* Whether four positions are equally far apart. */
static int are_lines(const int64_t *position)
{
    const int64_t step = position[1] - position[0];
    return position[2] - position[1] == step && position[3] - position[2] == step;
}

/* to[k * width + p] = base[position[p] + term[k]] for p < n, 0 for the other p. Where positions lie beside each other a
 * term is one copy; else FEW positions are read at once, so that what is written together lies together. */
#define DEFINE_GATHER(bits)                                                                                    \
    static void gather_##bits(void *out, const char *base, const int64_t *position, int64_t n, int64_t width,  \
                              const int64_t *term, int64_t terms)                                              \
    {                                                                                                          \
        enum { FEW = 6 };                                                                                      \
        uint##bits##_t *to = out;                                                                              \
        const int64_t size = bits / 8;                                                                         \
        const uintptr_t from = (uintptr_t)base;                                                                \
        int64_t p = 0;                                                                                         \
        if (is_run(position, n)) {                                                                             \
            for (int64_t k = 0; k < terms; k++)                                                                \
                memcpy(to + k * width, (const char *)(from + (uintptr_t)((position[0] + term[k]) * size)),     \
                       (size_t)(n * size));                                                                    \
            p = n;                                                                                             \
        }                                                                                                      \
        const int64_t first = terms ? term[0] : 0, neighbours = is_run(term, terms);                           \
        for (; bits >= 32 && neighbours && p + 4 <= n && are_lines(position + p); p += 4) {                    \
            const uint##bits##_t *rows = (const void *)(from + (uintptr_t)((position[p] + first) * size));     \
            panel_four_rows_##bits(to + p, width, rows, position[p + 1] - position[p], terms);                 \
        }                                                                                                      \
        for (; p + FEW <= n; p += FEW) {                                                                       \
            const uint##bits##_t *row[FEW];                                                                    \
            for (int r = 0; r < FEW; r++)                                                                      \
                row[r] = (const void *)(from + (uintptr_t)((position[p + r] + first) * size));                 \
            for (int64_t k = 0; k < terms && neighbours; k++)                                                  \
                for (int r = 0; r < FEW; r++)                                                                  \
                    to[k * width + p + r] = row[r][k];                                                         \
            for (int64_t k = 0; k < terms && !neighbours; k++)                                                 \
                for (int r = 0; r < FEW; r++)                                                                  \
                    to[k * width + p + r] = row[r][term[k] - first];                                           \
        }                                                                                                      \
        for (; p < n; p++)                                                                                     \
            for (int64_t k = 0; k < terms; k++)                                                                \
                memcpy(to + k * width + p, (const char *)(from + (uintptr_t)((position[p] + term[k]) * size)), \
                       sizeof *to);                                                                            \
        for (int64_t k = 0; n < width && k < terms; k++)                                                       \
            memset(to + k * width + n, 0, (size_t)((width - n) * size));                                       \
    }
#define panel_four_rows_8(to, width, rows, across, terms) ((void)(rows))
#define panel_four_rows_16 panel_four_rows_8
DEFINE_GATHER(8)
DEFINE_GATHER(16)
DEFINE_GATHER(32)
DEFINE_GATHER(64)

static void gather(void *to, int item, const char *base, const int64_t *position, int64_t n, int64_t width,
                   const int64_t *term, int64_t terms)
{
    if (item == 4)
        gather_32(to, base, position, n, width, term, terms);
    else if (item == 8)
        gather_64(to, base, position, n, width, term, terms);
    else if (item == 2)
        gather_16(to, base, position, n, width, term, terms);
    else
        gather_8(to, base, position, n, width, term, terms);
}

/* One panel of positions first ... first+n-1: the operands' own elements, then the node's values. */
static void pack_panel(struct packer *packer, const char *const *in, int64_t first, int64_t n, int64_t terms, int whole,
                       char *to)
{
    const struct factor *factor = packer->factor;
    const struct node *root = &packer->problem->program.map.node[factor->node];
    const int64_t width = factor->width, size = (int64_t)mf_cls_size(root->cls);
    const char *raw[MF_MAX_INPUTS] = {NULL};
    for (int q = 0; q < factor->operand_count; q++) {
        int i = factor->operand[q];
        raw[i] = factor->direct ? to : packer->raw[i];
        char *into = (char *)(uintptr_t)raw[i];
        int item = mf_dtypes[packer->problem->in_type[i]].size;
        if (whole)
            gather(into, item, in[i], packer->position[i] + first, n, width, packer->term[i], terms);
        else
            gather_inside(packer, into, item, in[i], packer->position[i] + first, n, packer->term[i], terms);
    }
    for (int64_t f = 0; !factor->direct && f < terms * width; f += BLOCK) {
        int64_t here = terms * width - f < BLOCK ? terms * width - f : BLOCK;
        memset(packer->block.cached, 0, sizeof packer->block.cached); /* the buffers have other elements now */
        mf_block_evaluate(&packer->block, raw, f, here);
        memcpy(to + f * size, packer->block.reg[factor->node], (size_t)(here * size));
    }
}

/* Whether an exponent is all ones. */
static int some_not_finite(enum cls cls, const char *values, int64_t n)
{
    uint32_t found32 = 0;
    uint64_t found64 = 0;
    const uint32_t *v32 = (const uint32_t *)(const void *)values;
    const uint64_t *v64 = (const uint64_t *)(const void *)values;
    for (int64_t i = 0; cls == CLS_F32 && i < n; i++)
        found32 |= (uint32_t)((v32[i] & 0x7f800000u) == 0x7f800000u);
    for (int64_t i = 0; cls == CLS_F64 && i < n; i++)
        found64 |= (uint64_t)((v64[i] & 0x7ff0000000000000u) == 0x7ff0000000000000u);
    return found32 || found64;
}

/* Panels of an operand whose positions lie beside each other: term by term, FEW panels at once, so that memory is read
 * in longer runs. (All at once would write to lines that push each other out: panels are a power of two apart.) */
static void pack_runs(const struct packer *packer, int i, const char *base, int64_t n, int64_t terms, char *to)
{
    enum { FEW = 4, AHEAD = 4, CACHE_LINE = 64 };
    const int64_t size = mf_dtypes[packer->problem->in_type[i]].size, width = packer->factor->width;
    const int64_t row = width * size, panel = terms * row;
    for (int64_t first = 0; first < n; first += FEW * width, to += FEW * panel) {
        const int64_t here = n - first < FEW * width ? n - first : FEW * width, whole = here / width,
                      rest = here % width;
        for (int64_t k = 0; k < terms; k++) {
            const int64_t offset = packer->position[i][first] + packer->term[i][k];
            const char *from = (const char *)((uintptr_t)base + (uintptr_t)(offset * size));
            char *into = to + k * row;
            const int64_t soon = packer->term[i][k + AHEAD < terms ? k + AHEAD : terms - 1] - packer->term[i][k];
            for (int64_t b = 0; b < here * size; b += CACHE_LINE)
                __builtin_prefetch((const void *)((uintptr_t)from + (uintptr_t)(soon * size + b)));
            for (int64_t p = 0; p < whole; p++, into += panel, from += row)
                panel_copy(into, from, row);
            if (rest) {
                memcpy(into, from, (size_t)(rest * size));
                memset(into + rest * size, 0, (size_t)(row - rest * size));
            }
        }
    }
}

int mf_pack(struct packer *packer, const char *const *in, const struct term_order *order,
            const struct term_block *block, int64_t n, char *to)
{
    const struct factor *factor = packer->factor;
    const enum cls cls = packer->problem->program.map.node[factor->node].cls;
    const int64_t panel = block->terms * factor->width * (int64_t)mf_cls_size(cls);
    const int64_t width = factor->width, size = (int64_t)mf_cls_size(cls);
    int found = 0;
    place_all_terms(packer, order, block);
    const int input = factor->operand[0];
    const int runs = factor->direct && !factor->window_count && is_run(packer->position[input], n);
    if (runs)
        pack_runs(packer, input, in[input], n, block->terms, to);
    for (int64_t first = 0; first < n; first += width, to += panel) {
        const int64_t here = n - first < width ? n - first : width;
        const int whole = all_inside(packer, first, here, block->terms);
        if (!whole)
            mark_inside(packer, first, here, block->terms);
        if (!runs)
            pack_panel(packer, in, first, here, block->terms, whole, to);
        if (factor->negate)
            packer->kernels->map[MAP_neg][cls](to, to, NULL, NULL, block->terms * width);
        if (factor->looks_for_nans)
            found |= some_not_finite(cls, to, block->terms * width);
        if (!whole)
            set_outside(packer, to, size, block->terms * width);
    }
    return found;
}
