/* What the files of solver "outer" share. */
#ifndef MF_CPU_OUTER_H
#define MF_CPU_OUTER_H

#include "finish.h"

/* MAX_CHAIN: rows of a lane. MAX_ROWS: of a call of an integer kernel. FEW_ROWS: what they read at once; MAX_LEAVES,
 * ROWS_TOGETHER: of outer_joined.c, the latter of several reducers, or of terms. PIECE_BYTES: of FEW_ROWS that several
 * reducers take one after the other. */
enum { LEVELS = 9, MAX_CHAIN = STEPS, MAX_ROWS = LONG_CHAIN, PIECE_BYTES = 8 << 10, FEW_ROWS = 8, MAX_LEAVES = 4 };
enum { ROWS_TOGETHER = 16 };

/* WIDTH_BYTES: of a row of a block. SHARED_WIDTH: the least columns that a thread is given of one. */
enum { WIDTH_BYTES = 65536, STRIP_ELEMENTS = 16384, SHARED_WIDTH = 256 };

/* How a strip lies in memory: P consecutive elements of each of W columns; or I of each, then the next I, P in all. */
enum strip { STRIP_ROWS /* [P][W] */, STRIP_COLUMNS /* [P/I][W][I] */ };

struct outer_plan {
    struct finish_plan finish;
    struct block_plan block;         /* arguments that are not read straight from memory, over the columns */
    struct walk row[MF_MAX_INPUTS];  /* from an element's number to its row's place */
    struct walk kept[MF_MAX_INPUTS]; /* the kept loops but the columns' */
    int root_count, root[MAX_REDUCERS];
    int fetches;       /* what they are evaluated from is large */
    int64_t evaluated; /* so many rows of them fit the nearest cache, and folds go on from those before */
    int straight[MAX_REDUCERS];
    int operand[MAX_REDUCERS];          /* whose rows they read then */
    int factor[MAX_REDUCERS];           /* whose terms with those are added; else -1 */
    enum term_kind term[MAX_REDUCERS];  /* which terms they are */
    int row_size;                       /* bytes of an element of the rows that are evaluated */
    int from[MAX_REDUCERS];             /* memory type that the kernels convert themselves, or -1 */
    int lane_count, lane[MAX_REDUCERS]; /* reducers folded lane by lane */
    int arg_count, arg[MAX_REDUCERS];   /* argmin, argmax: row by row */
    int together;                       /* so many of them, the first ones, are a summary: one kernel's */
    int gathers;                        /* they go over the same rows more than once */
    int any_order;                      /* their folds give the same in any order */
    int narrow;                         /* STRIP_COLUMNS of one min or max of short integers, which stay short */
    int byte_sums;                      /* one sum of bytes, so few a chain that 16 bits are enough until strips join */
    int64_t runs;                       /* element e of column c is column c+e: how many elements, else 0 */
    enum answers answers;               /* whether these folds are the output itself, in neighbouring columns */
    struct walk answer;                 /* the kept loops but the columns' of that output */
    int pairs;                          /* a chain of two rows is their combination: folds only, strips of one row */
    int joins;                          /* all are read from memory, and the tree is outer_joined.c's */
    int terms;                          /* among them are logs of sums of few terms */
    int64_t elements, tiles;            /* of one output */
    int64_t tile;                       /* elements of one: TILE, or any number where order is free */
    int64_t columns, width, blocks;     /* of the column loop, of one block, blocks of a column loop */
    int64_t beside;                     /* so many neighbouring column loops are one: [beside][P][W] in memory */
    int64_t batch;                      /* blocks of one task, neighbours */
    int64_t strip;                      /* P, a power of two up to 128 */
    int64_t inside;                     /* I, of STRIP_COLUMNS */
    enum strip layout;
    int split;                                                        /* few outputs: tiles are the tasks */
    int64_t split_tiles;                                              /* so many of them at a time */
    int levels;                                                       /* of partial states */
    size_t part_bytes[MAX_REDUCERS][2], tiles_bytes[MAX_REDUCERS][2]; /* a level's; all tiles' */
    size_t rows_bytes, worker_bytes, states_bytes, finish_bytes, terms_bytes;
};

/* One worker on one block of columns. */
struct columns {
    const struct mf_plan *plan;
    const struct outer_plan *outer;
    const struct kernels *kernels;
    const char *base[MF_MAX_INPUTS];  /* element 0, first column of this block */
    const char *after[MF_MAX_INPUTS]; /* the same of the block that is read afterwards, or null */
    int64_t width;                    /* columns of this block */
    int64_t strip;                    /* the plan's, or 1 for elements that end inside a strip */
    char *answer;                     /* where folds go when they are the output; else null */
    char *terms;                      /* ROWS_TOGETHER rows of exponentials */
    struct block block;
    char *buffer[MAX_REDUCERS][LEVELS][2]; /* partial states, a set for each level of the tree */
    char *rows[MAX_NODES];                 /* evaluated rows of each root, MAX_CHAIN of them */
};

/* outer_strip.c. Whether a reducer adds the squares of an operand, and a chain kernel does; whether its kernels read
 * its argument's rows from memory; whether all reducers are folds whose order does not matter. */
int mf_outer_adds_squares(const struct mf_plan *plan, const struct reducer *reducer);
int mf_outer_reads_memory(const struct mf_plan *plan, const struct reducer *reducer);
int mf_outer_in_any_order(const struct problem *problem);
/* The terms of two operands that a reducer adds, if a chain kernel does: operand[0] has neighbouring columns,
 * operand[1] as well, or one element for all of them. */
enum term_kind mf_outer_term(const struct mf_plan *plan, const struct reducer *reducer, int operand[2]);
/* The operand whose rows a reducer's kernels read. */
int mf_outer_operand(const struct mf_plan *plan, const struct reducer *reducer);
/* Whether the order counts in which a reducer combines. */
int mf_outer_is_ordered(const struct reducer *reducer);
/* Whether a logsumexp of few rows is summed as terms (outer_joined.c). */
int mf_outer_takes_terms(const struct mf_plan *plan, const struct reducer *reducer);
/* Whether several reducers, or one and its terms, may take the same leaves of outer_joined.c's tree one after the
 * other: what they read is to stay in the second cache meanwhile. */
int mf_outer_may_join_several(const struct mf_plan *plan);
/* The lanes' order: the first ones are those that one kernel finds in one reading of an operand; how many. Of bytes the
 * sum of squares, if it is among them with the sum and the greatest value; of floats two or more of sum, extremes and
 * moments. */
int mf_outer_plan_together(const struct mf_plan *plan, struct outer_plan *data);
/* Whether the only reducer is a min or max of short integers whose kernels leave them short. */
int mf_outer_stays_narrow(const struct mf_plan *plan);
/* Chooses strip and layout; 0 where rows would be too short to be worth it. */
int mf_outer_choose_strip(const struct mf_plan *plan, int64_t *strip, int64_t *inside, enum strip *layout);
int64_t mf_outer_strip_elements(const struct mf_plan *plan);
/* Neighbouring blocks whose strips, which hold all elements of the last reduced loop, touch: how many are folded as
 * one, a power of two. */
int64_t mf_outer_blocks_beside(const struct mf_plan *plan, const struct outer_plan *data);

/* outer_evaluate.c: all roots of rows e, e+gap ... into c->rows; rows then, then+gap ... below end are wanted next. */
void mf_outer_evaluate(struct columns *c, int64_t e, int64_t count, int64_t gap, int64_t then, int64_t end);
/* outer_lanes.c: folds elements e ... e+n-1 (n <= 4096) of every column; the states are in buffer[r][0] afterwards. */
void mf_outer_tile(struct columns *c, int64_t e, int64_t n);
/* Bytes of a value of reducer r's class; a = a o b for n states of reducer r, of na and nb elements each. */
size_t mf_outer_value_size(const struct columns *c, int r);
void mf_outer_merge(struct columns *c, char *const *a, char *const *b, int r, int64_t na, int64_t nb, int64_t n);
/* The rows of elements e, e+gap ... of reducer r's argument; evaluated where they are not read straight. */
void mf_outer_find_rows(struct columns *c, int r, int64_t e, int64_t count, int64_t gap, const void **x);
/* The first rows of what is read after this: elements e, e+gap ... below end; behind the tile's end those of the next
 * tile, or of the block that follows. Null if there are none. They are only fetched: the block may be another
 * worker's. */
const void *const *mf_outer_rows_ahead(struct columns *c, int r, int64_t e, int64_t end, int64_t gap, int64_t count,
                                       const void **rows);
/* Reducer r's chain of the rows x of all columns into buffer 0; append: its state there is continued. */
void mf_outer_chain(struct columns *c, int r, const void *const *x, int64_t count, int append);
/* The group that the tree reads `steps` groups after this one: it takes them in the order of their numbers' bits read
 * backwards. `groups` after the last one. */
int64_t mf_outer_next_group(int64_t group, int64_t groups, int64_t steps);
/* outer_joined.c: whether it has kernels for all lanes; the lanes of elements e ... e+n-1, whole strips, into buffer 0:
 * returns how many elements each state has; 0 where terms of a logsumexp will not do, and the lanes are to be found
 * anew. */
int mf_outer_joins(const struct mf_plan *plan);
int64_t mf_outer_joined_tree(struct columns *c, int64_t e, int64_t n);
/* outer_join.c: folds tiles' states: states[r][p] holds rows of `width` columns; the result is in buffer[r][0].
 * Overwrites states. */
void mf_outer_join(struct columns *c, char *states[MAX_REDUCERS][2], int64_t tiles);

#endif
