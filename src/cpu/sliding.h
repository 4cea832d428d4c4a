/* What the files of solver "sliding" share. */
#ifndef MF_CPU_SLIDING_H
#define MF_CPU_SLIDING_H

#include "finish.h"

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

/* Trees whose parts outputs share, of strips of columns (sliding_strips.c). Part 0 is the elements, the last one the
 * outputs. */
enum { MOST_PARTS = 192, MOST_INPUTS = 1312 }; /* of a tile there are 191 and 1279 at most */
/* row, column: at first from the part's first element; then rows back from the input's newest one, and columns from
 * its first one. */
struct input {
    short part, row, column;
};
/* row: the newest one, from the output's; first_row: the first one that any output needs, from that output's; oldest:
 * that is still read, and rows: as many are kept; low, high: columns more than there are outputs. */
struct part {
    short first, count; /* inputs */
    short row, first_row, oldest, rows, low, high;
};
struct strips {
    int parts, inputs, rows, before, reach; /* rows: of all parts; before: rows until the first output; reach: most
                                             * columns of a part more than there are outputs */
    struct part part[MOST_PARTS];
    struct input input[MOST_INPUTS];
};

struct sliding_plan {
    struct shape shape;
    chain_fn *first, *then;    /* of memory's type, of what it makes of it */
    map_fn *pair;              /* then, of two */
    enum dtype between, value; /* what that is; and what a fold of these is */
    int input, is_tree;
    int doubles;                                /* extremes across many columns */
    int shares;                                 /* a tree along rows alone, whose parts outputs share */
    int is_strip;                               /* a tree along rows and columns, whose parts outputs share */
    int copies;                                 /* rows of memory's type; else they are folds down, from memory */
    int is_output;                              /* the fold is the output, of its type */
    int asks;                                   /* the operand is large, */
    int64_t ahead;                              /* and asked for so many bytes after a window's first row */
    int64_t positions, together, rows, columns; /* all; of a block: positions, rows, columns */
    int64_t group;                              /* outputs of a block */
    int64_t rows_most;                          /* that there is room for */
    int64_t halo, pitch; /* rows that a position has more of if they are copied; of a row of a whole block */
    int64_t blocks[3];   /* of positions, rows, columns */
    int64_t batch;       /* blocks of one task */
    struct walk walk;    /* of positions */
    struct finish_plan finish;
    union value outside; /* what changes no value, in the rows' type */
    size_t finish_bytes, offset_bytes, rows_bytes, value_bytes, spare_bytes, count_bytes, worker_bytes;
    struct strips strips;
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

/* sliding_fold.c: the outputs of the worker's block. Where row number `row` of its position p has its first element
 * inside; and what to do with the outputs of its row h, which are in w->result. */
void mf_sliding_block(struct sliding_worker *w);
uintptr_t mf_sliding_row_at(const struct sliding_worker *w, int64_t p, int64_t row);
void mf_sliding_store(struct sliding_worker *w, int64_t h);

/* sliding_strips.c: the parts of windows' trees, if they are not too many; and the outputs of a worker's strip. */
int mf_sliding_strips(const struct shape *shape, struct strips *strips);
void mf_sliding_strip(struct sliding_worker *w);
/* Of rows whose windows are along them alone: n outputs beside each other. */
void mf_sliding_shared(struct sliding_worker *w, int64_t n);

#endif
