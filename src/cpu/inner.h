/* What the files of solver "inner" share: its plan and one worker's state. */
#ifndef MF_CPU_INNER_H
#define MF_CPU_INNER_H

#include "../scalar.h"
#include "finish.h"

/* One numbering of the reduced elements and the reducers that use it. Flat positions count outputs times elements. */
struct pass {
    const struct nest *nest;
    int reducer_count, reducer[MAX_REDUCERS];
    int evaluates; /* some reducer's argument is not read straight from memory */
    struct block_plan block;
    int root_count, root[MAX_REDUCERS * MAX_REDUCER_ARGS]; /* map nodes that are evaluated into rows */
    int row_size[MAX_REDUCERS * MAX_REDUCER_ARGS];         /* bytes of their elements there */
    int64_t limit;                                         /* positions that are evaluated at once */
};

struct inner_plan {
    struct finish_plan finish;
    int pass_count;
    struct pass pass[2];
    int straight[MAX_REDUCERS];        /* the argument is an operand that the fold kernels read from memory */
    int squares[MAX_REDUCERS];         /* and its squares are added, of bytes */
    int factor[MAX_REDUCERS];          /* and its terms with this operand are added; else -1 */
    enum term_kind term[MAX_REDUCERS]; /* which terms they are */
    int row_type[MAX_REDUCERS]; /* the evaluated argument's type where it is not the class but shorter; else -1 */
    int64_t elements;           /* of one row: the reduced elements */
    int64_t tiles;              /* of one row */
    int64_t unit_rows;          /* rows that are evaluated at once (1 when a row has several tiles) */
    int64_t group;              /* outputs that are finished together, at most BLOCK */
    int64_t batch;              /* groups of one task */
    int split;                  /* few long rows: their tiles are the tasks, */
    int64_t split_tiles;        /* so many at a time */
    int64_t beside, run_tiles;  /* outputs whose runs, of so many tiles, lie together and are read together; or 0 */
    int rows_beside;            /* the runs are whole rows */
    int gathers;                /* their runs are no tiles, and are copied to rows */
    int summary;                /* moments (of bytes: sum of squares) and sum, min or max of one operand, read once */
    enum answers answers;       /* rows of one fold that touch, whose kernel stores the outputs, which touch as well */
    int past_cache;             /* them: past the cache */
    int fetches;                /* evaluated operands are large: fetched ahead */
    int by_value;               /* of an argument reducer's tiles only the best values are kept */
    int windows;                /* some window may leave its tensor */
    size_t worker_bytes, finish_bytes, user_bytes, row_bytes, states_bytes;
};

/* Tile states of one row (or, when split, of all): values in the class for RED_FOLD and by_value, struct state, or a
 * user's bytes. */
struct tile_states {
    char *of[MAX_REDUCERS];
};

struct worker {
    const struct mf_plan *plan;
    const struct inner_plan *inner;
    const struct kernels *kernels;
    const struct pointers *pointers;
    struct block block[2];
    struct finish finish;
    char *rows[MAX_NODES]; /* a map node's evaluated rows */
    char *gathered;        /* rows of neighbouring outputs */
    char *user;            /* states of a user's operation, one row or tile */
    char *masked;          /* a reducer's rows with its identity where a window is outside */
    uint8_t *valid;        /* which of the evaluated positions take part */
    int64_t counts[BLOCK]; /* with windows: elements that took part, of each output of the group */
    struct tile_states states;
};

/* Where rows lie: values of the class, or of memory's type when `from` is set; and a product's other factor's. */
struct source {
    const char *x;
    int64_t pitch;
    int item;
    const char *y;
    int64_t y_pitch;
};

/* Of 4 or 8 bytes, without a call: a tile of bytes is read in the time of a few. */
static inline void mf_copy_value(void *to, const void *from, size_t size)
{
    if (size == 4)
        memcpy(to, from, 4);
    else
        memcpy(to, from, 8);
}

/* inner_feed.c: `rows` rows of n elements from flat position f of pass p, into results at index i. */
void mf_inner_rows(struct worker *w, int p, int64_t f, int64_t rows, int64_t n, int64_t i);
/* One tile, which begins with element e of its row, into tile state t; i is the output's place in its group. */
void mf_inner_tile(struct worker *w, int p, int64_t f, int64_t n, int64_t e, int64_t t, int64_t i);
/* As many whole tiles from flat position f on as the kernels can read from memory in one go, or the last one, at most
 * `most`, into tile states t ...; returns their number, 0 where mf_inner_tile has to do it. */
int64_t mf_inner_tiles(struct worker *w, int64_t f, int64_t most, int64_t t);
/* Outputs o ... o+n-1, whose answers the kernel stores. */
void mf_inner_answers(struct worker *w, int64_t o, int64_t n);
/* All tiles of `outputs` outputs from o on, whose runs lie together: run after run, in all of them. Their states are
 * those of places i ... in the group. */
void mf_inner_beside(struct worker *w, int64_t o, int64_t outputs, int64_t i);
/* How many of `rows` rows of n elements from flat position f of pass p, of the operand, or operands, that reducer r
 * reads straight from memory, lie at one pitch, and where. */
int64_t mf_inner_find_rows(const struct worker *w, int p, int r, int64_t f, int64_t rows, int64_t n,
                           struct source *source);
/* Built-in reducer r over `rows` rows of n elements, of memory's type `from` or, where it is -1, of the class, to the
 * two arrays of its results. */
void mf_inner_fold_rows(void *first, void *second, const struct worker *w, int r, const struct source *source, int from,
                        int64_t rows, int64_t n);
/* Tiles of n elements, MOST_TILES at most, of reducer r, or of all of a summary: up to `end`. Tile k is tile
 * t + k % run of the output `first` + k / run in the group. */
void mf_inner_fold_tiles(struct worker *w, int r, int end, const struct source *source, int64_t n, int64_t tiles,
                         int64_t t, int64_t run, int64_t first);
/* Reducer r's results for the n elements from e on as tile t's state; part p of its results at index i; whether its
 * state of a tile is one value; the type in memory that its kernels read, or -1: the class. */
void mf_inner_keep_state(struct worker *w, int r, int64_t n, int64_t e, int64_t t, const void *first,
                         const void *second);
char *mf_inner_part(struct worker *w, int r, int p, int64_t i, size_t size);
int mf_inner_keeps_value(const struct worker *w, const struct reducer *reducer);
int mf_inner_memory_type(const struct worker *w, int r);
/* The results of n states of a user's operation, to index i of the worker's results. */
void mf_inner_user_finish(struct worker *w, int r, const char *states, int64_t n, int64_t i);

/* inner.c: whether a reducer has kernels that read this type's memory. */
int mf_inner_kernels_read(const struct mf_plan *plan, const struct reducer *reducer, enum dtype type);
/* The same of rows, n of them. */
void mf_inner_rows_beside(struct worker *w, int64_t o, int64_t n);

/* inner_gather.c: how many neighbouring outputs' short runs are copied to rows together; 0: none. What that takes, and
 * all tiles of `outputs` outputs from o on: as mf_inner_beside, but of one tile the results are at index i. */
int64_t mf_inner_gathers(const struct mf_plan *plan, const struct pass *pass);
size_t mf_inner_gather_bytes(const struct mf_plan *plan, int64_t outputs);
void mf_inner_gathered(struct worker *w, int64_t o, int64_t outputs, int64_t i);
/* inner_join.c: folds the tile states of n outputs from o on into results at index i ... */
void mf_inner_join(struct worker *w, const struct tile_states *states, int64_t o, int64_t n, int64_t i);

/* Tiles that are folded at once. Runs that are read beside each other are a megabyte, for after each one there is a
 * page of memory that nothing asked for yet: sums of nchw over n, h and w .86 of a plain read with a quarter of it, .92
 * so. */
enum { MOST_TILES = 256, SEVERAL_TILES = 16 }; /* of several reducers: they stay in the second cache */

/* Bytes of one tile's state. */
size_t mf_inner_state_size(const struct reducer *reducer);

#endif
