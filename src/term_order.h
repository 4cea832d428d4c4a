/* The sequence of a contraction's terms: in which order they are folded, and where values are joined. */
#ifndef MF_TERM_ORDER_H
#define MF_TERM_ORDER_H

#include "error.h"

/* The most terms of one block. */
enum { PANEL_TERMS = 256 };

/* count terms, the first of which is number `first` of the sequence (the others follow at the order's step); after
 * them, `joins` joins of the two youngest values of leaves in the block. */
struct leaf {
    int64_t first;
    int32_t count, joins;
};

/* Consecutive leaves whose terms are packed together and give one value; after it, `joins` joins of the two youngest
 * values of blocks. */
struct term_block {
    int64_t leaf;
    int32_t leaves, terms, joins;
};

/* Blocks in the order in which they are computed. A leaf's terms follow each other at `step`. */
struct term_order {
    int64_t block_count, step;
    int levels; /* the most block values that are kept at once, the last one included */
    struct term_block *block;
    struct leaf *leaf;
};

/* The order of `terms` terms: the contract's tree, or (in_any_order) just one after the other. MF_ERROR_MEMORY.
 * The arrays are one piece of memory, order->block. */
mf_status mf_term_order_make(struct term_order *order, int64_t terms, int in_any_order);

#endif
