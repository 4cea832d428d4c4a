/* In which order a contraction folds its terms: the contract's tiles, lanes and halving tree (docs/numerics.md, section
 * 2) in postfix form, so that few values wait at a time.
 *
 * Lanes come in the order of their reversed bits: lane l and lane l + 64 are neighbours, then pairs of pairs. A block
 * is a subtree small enough for one panel; above it the values of blocks are joined. Tiles are the lanes and chains of
 * the next level, computed in the same way. */
#include "term_order.h"

#include "types.h"

/* Counts first (no arrays), then fills. */
struct writer {
    struct term_order *order;
    int64_t blocks, leaves;
    int waiting, levels;
};

static void add_leaf(struct writer *w, int64_t first, int64_t count)
{
    if (w->order->leaf)
        w->order->leaf[w->leaves] = (struct leaf){first, (int32_t)count, 0};
    w->leaves++;
}

static void add_block(struct writer *w, int64_t first_leaf, int64_t terms)
{
    if (w->order->block)
        w->order->block[w->blocks] =
            (struct term_block){first_leaf, (int32_t)(w->leaves - first_leaf), (int32_t)terms, 0};
    w->blocks++;
    if (++w->waiting > w->levels)
        w->levels = w->waiting;
}

static void join_blocks(struct writer *w)
{
    if (w->order->block)
        w->order->block[w->blocks - 1].joins++;
    w->waiting--;
}

static void join_leaves(struct writer *w)
{
    if (w->order->leaf)
        w->order->leaf[w->leaves - 1].joins++;
}

/* The lanes that are `lane` modulo 2^level, of a tile of n terms at `first`, as leaves. Returns their terms. */
static int64_t add_lanes(struct writer *w, int64_t first, int64_t n, int64_t lane, int level)
{
    int64_t lanes = n < LANES ? n : LANES, half = (int64_t)1 << level;
    if (half == LANES) {
        int64_t count = (n - lane + LANES - 1) / LANES;
        add_leaf(w, first + lane, count);
        return count;
    }
    int64_t terms = add_lanes(w, first, n, lane, level + 1);
    if (lane + half < lanes) {
        terms += add_lanes(w, first, n, lane + half, level + 1);
        join_leaves(w);
    }
    return terms;
}

/* The same lanes as blocks; from level `cut` on, all lanes of a residue are one block. */
static void add_tile(struct writer *w, int64_t first, int64_t n, int64_t lane, int level, int cut)
{
    int64_t lanes = n < LANES ? n : LANES, half = (int64_t)1 << level;
    if (level == cut) {
        int64_t leaf = w->leaves;
        add_block(w, leaf, add_lanes(w, first, n, lane, level));
        return;
    }
    add_tile(w, first, n, lane, level + 1, cut);
    if (lane + half < lanes) {
        add_tile(w, first, n, lane + half, level + 1, cut);
        join_blocks(w);
    }
}

static void add_tile_number(struct writer *w, int64_t terms, int64_t t)
{
    int64_t first = t * TILE, n = terms - first < TILE ? terms - first : TILE;
    int cut = 0;
    for (int64_t rest = n; rest > PANEL_TERMS; rest = (rest + 1) / 2)
        cut++;
    add_tile(w, first, n, 0, 0, cut);
}

/* The tiles `lane`, lane + 128 ... modulo 2^level of all tiles: their values are the elements of the next level. */
static void add_tiles(struct writer *w, int64_t terms, int64_t tiles, int64_t lane, int level)
{
    int64_t lanes = tiles < LANES ? tiles : LANES, half = (int64_t)1 << level;
    if (half == LANES) {
        for (int64_t t = lane; t < tiles; t += LANES) {
            add_tile_number(w, terms, t);
            if (t > lane)
                join_blocks(w);
        }
        return;
    }
    add_tiles(w, terms, tiles, lane, level + 1);
    if (lane + half < lanes) {
        add_tiles(w, terms, tiles, lane + half, level + 1);
        join_blocks(w);
    }
}

static void add_run(struct writer *w, int64_t terms)
{
    for (int64_t first = 0; first < terms; first += PANEL_TERMS) {
        int64_t n = terms - first < PANEL_TERMS ? terms - first : PANEL_TERMS, leaf = w->leaves;
        add_leaf(w, first, n);
        add_block(w, leaf, n);
        if (first)
            join_blocks(w);
    }
}

static void write_order(struct writer *w, int64_t terms, int in_any_order)
{
    w->blocks = w->leaves = w->waiting = w->levels = 0;
    if (in_any_order)
        add_run(w, terms);
    else
        add_tiles(w, terms, (terms + TILE - 1) / TILE, 0, 0);
}

mf_status mf_term_order_make(struct term_order *order, int64_t terms, int in_any_order)
{
    struct writer w = {order, 0, 0, 0, 0};
    order->block = NULL;
    order->leaf = NULL;
    order->step = in_any_order ? 1 : LANES;
    write_order(&w, terms, in_any_order);
    order->block_count = w.blocks;
    order->levels = w.levels;
    order->block = mf_alloc((size_t)w.blocks * sizeof *order->block + (size_t)w.leaves * sizeof *order->leaf);
    if (!order->block)
        return MF_ERROR_MEMORY;
    order->leaf = (struct leaf *)(void *)(order->block + w.blocks);
    write_order(&w, terms, in_any_order);
    return MF_OK;
}
