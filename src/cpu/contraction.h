/* Contractions on the CPU: what planning, ordering, packing and running share. */
#ifndef MF_CPU_CONTRACTION_H
#define MF_CPU_CONTRACTION_H

#include <stdatomic.h>

#include "../factors.h"
#include "contraction_kernels.h"
#include "finish.h"

/* The most outputs of a task: with PANEL_TERMS, panels and values of blocks stay in the second cache. */
enum { BLOCK_ROWS = 288, BLOCK_COLUMN_BYTES = 2048 };

/* ---- contraction_pack.c: panels ---- */

/* A window of one of a factor's operands: its index is the sum of three parts, and must lie in 0 ... extent-1. */
struct factor_window {
    int64_t offset, extent;
    struct walk kept, reduced, batch;
};
enum { FACTOR_WINDOWS = 8 };

/* The left (x) or right (y) argument of the product. */
struct factor {
    int node;           /* of the map's pool */
    int negate;         /* the kernels' x + y is x - y */
    int looks_for_nans; /* packing tells whether some value is no finite number */
    int direct;         /* the node is an operand of its class's own type: it is copied as it is */
    int operand_count, operand[MF_MAX_INPUTS];
    int64_t width;                      /* positions of a panel: the kernel's rows or columns */
    int64_t total;                      /* positions of its own kept loops */
    struct walk kept[MF_MAX_INPUTS];    /* by operand: the factor's own kept loops, */
    struct walk reduced[MF_MAX_INPUTS]; /* the reduced loops, */
    struct walk batch[MF_MAX_INPUTS];   /* the loops that both factors have */
    struct block_plan block;
    int window_count;
    struct factor_window window[FACTOR_WINDOWS];
    union value outside; /* packed where a window leaves its tensor: such terms change nothing */
};

/* Fills all but node, negate, looks_for_nans, outside and width. order: the nest whose
 * reduced loops number the terms; own, batch: the kept loops that are the factor's own, and both's. */
void mf_factor_plan(struct factor *factor, const struct problem *problem, const struct nest *order, int own_count,
                    const int *own, int batch_count, const int *batch);

/* One thread's packing. */
struct packer {
    const struct factor *factor;
    const struct problem *problem;
    const struct kernels *kernels;
    struct block block;
    int64_t *position[MF_MAX_INPUTS]; /* offsets of the positions at hand, in elements, */
    int64_t *term[MF_MAX_INPUTS];     /* and of the terms */
    char *raw[MF_MAX_INPUTS];         /* a panel of the operand's own elements */
    int64_t *window_position[FACTOR_WINDOWS], *window_term[FACTOR_WINDOWS]; /* parts of the windows' indices */
    uint8_t *inside;                                                        /* by value of a panel */
};

/* Bytes for up to `most` positions. */
size_t mf_packer_memory(const struct factor *factor, int64_t most);
void mf_packer_start(struct packer *packer, const struct factor *factor, const struct problem *problem,
                     const struct kernels *kernels, char *memory, int64_t most);
/* Chooses positions first ... first+n-1 of batch b. */
void mf_packer_place(struct packer *packer, int64_t b, int64_t first, int64_t n);
/* Packs their panels for one block of terms to `to`: (n + width - 1) / width panels of terms x width values; positions
 * past n are 0. Returns whether some value inside the windows is no finite number, if the factor looks for them. */
int mf_pack(struct packer *packer, const char *const *in, const struct term_order *order,
            const struct term_block *block, int64_t n, char *to);

/* ---- contraction_blocks.c: what the solvers share ---- */

/* A reducer's argument as a product of two nodes. */
struct product_form {
    enum product product;
    int node[FACTORS], negate[FACTORS];
};

/* Whether the node is a product that the kernels know; fills form. */
int mf_product_find(const struct pool *pool, int root, struct product_form *form);
/* Whether the argument of reducer r is a product of two factors that each have a kept loop of their own, and tiles are
 * worth while. */
int mf_contraction_fits(const struct mf_plan *plan, int r, struct product_form *form);

/* What a plan knows: plan->data begins with it. */
struct contraction {
    struct factor factor[FACTORS];
    struct term_order order;
    struct finish_plan finish;
    struct walk flat[FACTORS], flat_batch; /* flat kept positions of the outputs */
    int64_t batch, block[FACTORS], blocks[FACTORS], tasks;
    int64_t size; /* bytes of a value */
    size_t panel_bytes[FACTORS], value_bytes, flat_bytes[FACTORS], packer_bytes[FACTORS], finish_bytes, worker_bytes;
};

/* Terms fold in the contract's order, in any order, or one after the other as written. */
enum term_numbers { CONTRACT_ORDER, ANY_ORDER, WRITTEN_ORDER };

/* Plans blocks, order and memory, for reducers of the first one's class; factor[].looks_for_nans is set by the caller.
 * arrays: of values, at least those of the order's levels. */
mf_status mf_contraction_plan(struct mf_plan *plan, struct contraction *contraction, const struct product_form *form,
                              enum term_numbers numbers, int arrays);
/* A solver's print and forget. */
void mf_contraction_print(const struct mf_plan *plan, char *text, size_t size);
void mf_contraction_forget(struct mf_plan *plan);

/* One thread at one block of outputs. Arrays of values are block[ROW_FACTOR] rows of block[COLUMN_FACTOR] values. */
struct contraction_worker {
    const struct contraction *contraction;
    const struct mf_plan *plan;
    const struct pointers *pointers;
    struct packer packer[FACTORS];
    char *panel[FACTORS], *values;
    int64_t *flat[FACTORS], count[FACTORS]; /* the outputs' rows and columns */
    struct finish finish;
    atomic_int *refused;
};
/* Computes and stores; or sets *refused, and the outputs are undefined. Passes have a worker each. */
typedef void contraction_task(struct contraction_worker *worker);
enum { CONTRACTION_PASSES = 4 };

/* Runs the task for every block of outputs, until one refuses (refused: null where none can). */
mf_status mf_contraction_run(const struct mf_plan *plan, const struct pointers *pointers, contraction_task *task,
                             int *refused);

/* The same of several contractions whose blocks of outputs are the same. */
mf_status mf_contraction_run_passes(const struct mf_plan *plan, const struct contraction *pass, int passes,
                                    const struct pointers *pointers, contraction_task *task, int *refused);

/* Packs both factors for a block of terms; bit f: some value of factor f is no finite number (if looked for). */
int mf_contraction_pack(struct contraction_worker *worker, const struct term_block *block);
/* The kernel over all tiles, to an array of values. */
void mf_contraction_tiles(struct contraction_worker *worker, const struct term_block *block, contraction_fn *tile,
                          char *values);
/* Array number `array`. */
char *mf_contraction_values(const struct contraction_worker *worker, int64_t array);
/* left = left o right, arrays of values. */
void mf_contraction_join(const struct contraction_worker *worker, enum fold fold, char *left, const char *right);
/* The block's values, joined with those before it: those are `top` arrays, and so many there are then is returned. */
int64_t mf_contraction_fold(struct contraction_worker *worker, const struct term_block *block, contraction_fn *tile,
                            enum fold fold, int64_t top);

/* ---- contraction_arg.c: the best and its number ---- */

enum { CONTRACTION_BEST, CONTRACTION_NUMBERS, CONTRACTION_WIDE, CONTRACTION_ARG_ARRAYS };
/* The tile of an argmin or argmax; any: of any values. Null where there is none. */
contraction_arg_fn *mf_contraction_arg_tile(const struct mf_plan *plan, int r, const struct product_form *form,
                                            int any);
/* All terms, into arrays of values; tile[0]: where no term is a NaN (may be null). */
void mf_contraction_find_best(struct contraction_worker *worker, contraction_arg_fn *const tile[2]);
/* Numbers of outputs from value number `at` on, as wide as the finish part takes them. */
int64_t *mf_contraction_numbers(struct contraction_worker *worker, int64_t at, int64_t n);

/* Lets worker->finish.block.state point to the reducers' states from value number `at` on, for n outputs. */
typedef void contraction_states(struct contraction_worker *worker, int64_t at, int64_t n);
/* Finishes and stores the outputs. */
void mf_contraction_store(struct contraction_worker *worker, contraction_states *states);

#endif
