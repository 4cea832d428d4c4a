/* What the files of solver "sliding" share. */
#ifndef MF_CPU_SLIDING_H
#define MF_CPU_SLIDING_H

#include "finish.h"

/* SHARED_ROWS: rows of values of trees whose parts are shared: of two kinds of lanes, now and at the next level, and of
 * elements in their class. */
enum { SHARED_ROWS = 5 };

/* Bytes that are asked for before they are read. */
enum { SLIDING_AHEAD = 16 << 10 };

/* MOST: elements of a window, and rows from its first to its last one; TREE_ELEMENTS: of a tree's. TREE_PIECE: columns
 * of a tree at a time. */
enum { MOST_ACROSS = 1024, MOST_DOWN = 128, TREE_ELEMENTS = 1024, TREE_PIECE = 1024 };

/* One dimension: outputs, each `step` after the one before; elements, `gap` apart; and where the tensor is. */
struct side {
    int64_t outputs, step, elements, gap;
    int checked;
    int64_t offset, extent; /* inside: 0 <= offset + place < extent */
};

struct shape {
    struct side down, across;
    int64_t row;    /* elements from one to the next */
    int64_t inside; /* C */
    int around;     /* kept loops that are positions */
};

struct sliding_plan {
    struct shape shape;
    chain_fn *first, *then;    /* of memory's type, of what it makes of it */
    enum dtype between, value; /* what that is; and what a fold of these is */
    int input, is_tree;
    int doubles;                                /* extremes across many columns */
    int shares;                                 /* a tree along rows alone, whose parts outputs share */
    int copies;                                 /* rows of memory's type; else they are folds down, from memory */
    int is_output;                              /* the fold is the output, of its type */
    int asks;                                   /* the operand is large, */
    int64_t ahead;                              /* and asked for so many bytes after a window's first row */
    int64_t positions, together, rows, columns; /* all; of a block: positions, rows, columns */
    int64_t group;                              /* outputs of a block */
    int64_t rows_most;                          /* that there is room for */
    int64_t halo, pitch; /* rows that a position has more of if they are copied; of a row of a whole block */
    int64_t blocks[3];   /* of positions, rows, columns */
    struct walk walk;    /* of positions */
    struct finish_plan finish;
    union value outside; /* what changes no value, in the rows' type */
    size_t finish_bytes, offset_bytes, rows_bytes, value_bytes, spare_bytes, count_bytes, worker_bytes;
};

/* Outputs whose elements are counted: row and column are -1 where all elements are inside. */
struct counted {
    int64_t positions, rows, width, row, column;
};

/* A worker's memory, and its block. */
struct sliding_worker {
    const struct sliding_plan *data;
    const struct pointers *pointers;
    int64_t *offset, *counts;
    char *rows, *value, *result, *outside; /* sliding_fold.c; outside: a row of data->outside */
    int64_t item, size;                    /* bytes of an element; of what is in rows */
    int64_t position, row, column;         /* the first ones */
    int64_t positions, height, width;      /* how many; rows and columns of outputs */
    int64_t pitch, stride;                 /* elements of a row, rows of a position */
    int64_t low, high, filled[3]; /* elements of a row outside of these are filled; pitch, low, high that are */
    struct counted counted;       /* what finish has */
    struct finish finish;
};

/* Elements of a row of so many outputs. */
static inline int64_t mf_sliding_row(const struct shape *shape, int64_t outputs)
{
    const struct side *a = &shape->across;
    return (a->step * (outputs - 1) + (a->elements - 1) * a->gap + 1) * shape->inside;
}

/* sliding_fold.c: the outputs of the worker's block. */
void mf_sliding_block(struct sliding_worker *w);

/* sliding_shared.c: trees of n columns along rows. */
void mf_sliding_shared(struct sliding_worker *w, const char *rows, int64_t n);

#endif
