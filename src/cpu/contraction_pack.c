/* Packing: the values of one factor of a contraction for some positions and terms, panel by panel, so that a kernel
 * reads them one after the other. Strides, types and maps are dealt with here and nowhere else. */
#include "contraction.h"

static int is_class_type(enum dtype type)
{
    return type == DT_f32 || type == DT_f64 || type == DT_i64 || type == DT_u64;
}

void mf_factor_plan(struct factor *factor, const struct problem *problem, int own_count, const int *own,
                    int batch_count, const int *batch)
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
        mf_walk_make(&factor->reduced[i], nest->reduced, nest->size + nest->kept, nest->in[i] + nest->kept);
        const int64_t panel = PANEL_TERMS * factor->width, together = 1; /* a panel of raw elements is one run */
        mf_walk_make(&factor->block.walk[i], 1, &panel, &together);
    }
    factor->direct = root->op == OP_OPERAND && is_class_type(problem->in_type[root->index]);
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
    return (size_t)factor->operand_count * each + mf_block_memory(&factor->block, BLOCK);
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
    mf_block_start(&packer->block, &factor->block, kernels, memory, BLOCK);
}

void mf_packer_place(struct packer *packer, int64_t b, int64_t first, int64_t n)
{
    const struct factor *factor = packer->factor;
    for (int q = 0; q < factor->operand_count; q++) {
        int i = factor->operand[q];
        int64_t base = mf_walk_offset(&factor->batch[i], b);
        mf_walk_offsets(&factor->kept[i], first, 1, n, packer->position[i]);
        for (int64_t p = 0; p < n; p++)
            packer->position[i][p] += base;
    }
}

static void place_terms(struct packer *packer, const struct term_order *order, const struct term_block *block)
{
    for (int q = 0; q < packer->factor->operand_count; q++) {
        int i = packer->factor->operand[q];
        int64_t *term = packer->term[i];
        for (int64_t l = block->leaf; l < block->leaf + block->leaves; l++) {
            const struct leaf *leaf = &order->leaf[l];
            mf_walk_offsets(&packer->factor->reduced[i], leaf->first, order->step, leaf->count, term);
            term += leaf->count;
        }
    }
}

/* Whether offsets follow each other. */
static int is_run(const int64_t *offset, int64_t n)
{
    for (int64_t p = 1; p < n; p++)
        if (offset[p] != offset[0] + p)
            return 0;
    return 1;
}

/* to[k * width + p] = base[position[p] + term[k]] for p < n, 0 for the other p. Where positions lie beside each other a
 * term is one copy; else one position is read at a time, or, where terms lie beside each other, FEW positions at once,
 * so that what is written together lies together. */
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
        for (; p + FEW <= n && is_run(term, terms); p += FEW) {                                                \
            const uint##bits##_t *row[FEW];                                                                    \
            for (int r = 0; r < FEW; r++)                                                                      \
                row[r] = (const void *)(from + (uintptr_t)((position[p + r] + term[0]) * size));               \
            for (int64_t k = 0; k < terms; k++)                                                                \
                for (int r = 0; r < FEW; r++)                                                                  \
                    to[k * width + p + r] = row[r][k];                                                         \
        }                                                                                                      \
        for (; p < n; p++)                                                                                     \
            for (int64_t k = 0; k < terms; k++)                                                                \
                memcpy(to + k * width + p, (const char *)(from + (uintptr_t)((position[p] + term[k]) * size)), \
                       sizeof *to);                                                                            \
        for (int64_t k = 0; n < width && k < terms; k++)                                                       \
            memset(to + k * width + n, 0, (size_t)((width - n) * size));                                       \
    }
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
static void pack_panel(struct packer *packer, const char *const *in, int64_t first, int64_t n, int64_t terms, char *to)
{
    const struct factor *factor = packer->factor;
    const struct node *root = &packer->problem->program.map.node[factor->node];
    const int64_t width = factor->width, size = (int64_t)mf_cls_size(root->cls);
    const char *raw[MF_MAX_INPUTS] = {NULL};
    for (int q = 0; q < factor->operand_count; q++) {
        int i = factor->operand[q];
        raw[i] = factor->direct ? to : packer->raw[i];
        gather((char *)(uintptr_t)raw[i], mf_dtypes[packer->problem->in_type[i]].size, in[i],
               packer->position[i] + first, n, width, packer->term[i], terms);
    }
    for (int64_t f = 0; !factor->direct && f < terms * width; f += BLOCK) {
        int64_t here = terms * width - f < BLOCK ? terms * width - f : BLOCK;
        memset(packer->block.cached, 0, sizeof packer->block.cached); /* the buffers have other elements now */
        mf_block_evaluate(&packer->block, raw, f, here);
        memcpy(to + f * size, packer->block.reg[factor->node], (size_t)(here * size));
    }
    if (factor->negate)
        packer->kernels->map[MAP_neg][root->cls](to, to, NULL, NULL, terms * width);
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

int mf_pack(struct packer *packer, const char *const *in, const struct term_order *order,
            const struct term_block *block, int64_t n, char *to)
{
    const struct factor *factor = packer->factor;
    const enum cls cls = packer->problem->program.map.node[factor->node].cls;
    const int64_t panel = block->terms * factor->width * (int64_t)mf_cls_size(cls);
    int found = 0;
    place_terms(packer, order, block);
    for (int64_t first = 0; first < n; first += factor->width, to += panel) {
        pack_panel(packer, in, first, n - first < factor->width ? n - first : factor->width, block->terms, to);
        if (factor->looks_for_nans)
            found |= some_not_finite(cls, to, block->terms * factor->width);
    }
    return found;
}
