/* Solver "outer", arguments that are not read straight from memory: evaluated row by row, or strip by strip, into the
 * memory of a worker. */
#include "outer.h"

/* Where the columns of element e are in operand i. */
static const char *row_at(const struct columns *c, int i, int64_t e)
{
    const int64_t offset = mf_walk_offset(&c->outer->row[i], e) * mf_dtypes[c->plan->problem.in_type[i]].size;
    return (const char *)((uintptr_t)c->base[i] + (uintptr_t)offset);
}

/* What is asked for while a row is evaluated: one that is soon, as rows are pieces of the operands' rows, which
 * processors do not see coming. */
static void fetch_row(struct columns *c, int64_t e)
{
    const struct problem *problem = &c->plan->problem;
    for (int i = 0; i < problem->input_count; i++) {
        if (!problem->map_uses[i] || c->outer->block.walk[i].stride[0] != 1)
            continue;
        const int64_t all = c->width * c->strip, size = c->outer->block.walk[i].size[0];
        mf_block_ahead(&c->block, row_at(c, i, e), (all < size ? all : size) * mf_dtypes[problem->in_type[i]].size);
    }
}

void mf_outer_evaluate(struct columns *c, int64_t e, int64_t count, int64_t gap, int64_t then, int64_t end)
{
    enum { AHEAD = 4 };
    const struct problem *problem = &c->plan->problem;
    const struct outer_plan *outer = c->outer;
    const int64_t width = c->width * c->strip;
    for (int64_t k = 0; k < count; k++) {
        const int64_t soon = k + AHEAD < count ? e + (k + AHEAD) * gap : then + (k + AHEAD - count) * gap;
        const char *base[MF_MAX_INPUTS];
        if (outer->fetches && soon < end)
            fetch_row(c, soon);
        for (int i = 0; i < problem->input_count; i++)
            if (problem->map_uses[i])
                base[i] = row_at(c, i, e + k * gap);
        for (int q = 0; q < outer->root_count; q++)
            c->block.redirect[outer->root[q]] = c->rows[outer->root[q]] + (size_t)k * outer->rows_bytes;
        mf_block_evaluate(&c->block, base, 0, width);
        for (int q = 0; q < outer->root_count; q++) {
            int node = outer->root[q];
            if (c->block.reg[node] != c->block.redirect[node])
                memcpy(c->block.redirect[node], c->block.reg[node],
                       (size_t)width * (outer->row_size < 8 ? (size_t)outer->row_size
                                                            : mf_cls_size(outer->block.pool->node[node].cls)));
        }
    }
}
