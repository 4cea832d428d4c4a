/* Products of two operands on tensor cores: which folds they are, blocks' tiles, what they cost, their texts. Solvers
 * product and window. */
#ifndef MF_GPU_PRODUCT_H
#define MF_GPU_PRODUCT_H

#include "form.h"
#include "solve_contract.h"

enum {
    PIECE_BYTES = 16,
    TILE_TERM_BYTES = 64,
    LEFT = 10 << 10 /* bytes of shared memory for others */,
    LEAST_ARCHITECTURE = 80,
    MOST_PARTS = 64 /* of the terms */
};

/* A block's outputs and warps; stages of shared memory; blocks that a multiprocessor is to have room for; with how many
 * products of factors; whether four warps multiply together (kernels/product_group.cu). A warp that has 64 x 64 outputs
 * reads shared memory as fast as it multiplies; three products need less of it, and more registers. */
struct product_tile {
    int rows, columns, down, right, stages, beside, products, grouped;
};
enum { PRODUCT_TILES = 23 };
extern const struct product_tile mf_gpu_products_tiles[PRODUCT_TILES];

/* An element type: the instruction's shape and types, those of the one for four warps, and how a word's element becomes
 * a float where it is emulated. */
struct product_type {
    enum dtype type;
    const char *instruction, *grouped, *emulated;
};

struct product {
    const struct product_type *type;
    struct gpu_contraction contraction;
    int operand[FACTORS], vectors[FACTORS];
    int warpgroups; /* of the device */
    int64_t rows, columns;
};

/* Whether the plan's fold is such a sum of products. */
int mf_gpu_products_find(const struct mf_plan *plan, struct product *product);

/* The type's; null where tensor cores do not take it. */
const struct product_type *mf_gpu_products_type(enum dtype type);
/* Whether the sum is of the factors' product itself, not of something made of it. */
int mf_gpu_multiplies_factors(const struct program *program, const struct gpu_contraction *contraction);

/* What a solver is asked for: FORM[:ROWS[:COLUMNS[:NUMBER[:PARTS]]]]. tile: null for the solver's own choice. */
struct product_form {
    int products, stages, cluster;
    int grouped; /* as of tiles: the device has that for these types */
    int rounds;  /* f32 to 11 bits; else it comes so */
    const struct product_tile *tile;
    int64_t number, parts;
};
/* 0 where the text is no such form for the product's type. */
int mf_gpu_products_read_form(const char *text, const struct product *product, struct product_form *form);

/* Whether the form's tile may be this one: where two have the same rows and columns, the better one. */
int mf_gpu_products_may_be(const struct product_form *form, const struct product_tile *tile);

/* Whether a thread has outputs for all its registers, and needs some to read elements one by one. */
int mf_gpu_products_is_crowded(const struct product *product, const struct product_tile *tile);

int mf_gpu_products_threads(const struct product_tile *tile);
/* Warps, or groups of them, that read each column of a tile. */
int mf_gpu_products_readers(const struct product_tile *tile);
/* Whether blocks that have parts of the terms are a cluster, which adds their sums in shared memory. */
int mf_gpu_products_in_cluster(int64_t parts, int products, const struct gpu_limits *limits);
/* The fewest stages that the kernels run with. */
int mf_gpu_products_least_stages(const struct product_tile *tile);
/* The most stages: a multiprocessor that has one block may have more on its way for it. */
int mf_gpu_products_stages(const struct product_tile *tile, int64_t blocks, const struct gpu_limits *limits);
/* Terms of a tile; tiles of all terms. */
int64_t mf_gpu_products_step(const struct product *product);
int64_t mf_gpu_products_steps(const struct problem *problem, const struct product *product);
/* Bytes of shared memory for a block's sums. */
int64_t mf_gpu_products_sums(const struct product_tile *tile);

/* Nanoseconds that solver product's best form takes on an H200, about, with products of factors like that one's. */
double mf_gpu_product_cost(const struct mf_plan *plan, const struct product *product, const struct product_form *like);

/* Adds what both kernels have: #define lines, and the texts up to struct rows_from. sides: of which factors tiles are
 * staged, 1 for y, 3 for both. */
void mf_gpu_products_texts(const struct mf_plan *plan, const struct product *product, const struct product_form *form,
                           int sides, struct gpu_choice *choice);
/* After those, and struct rows_from: what multiplies and stores. */
void mf_gpu_products_multiply(const struct product *product, const struct product_form *form,
                              struct gpu_choice *choice);
/* "f32 as three products of 11 bits" */
const char *mf_gpu_products_precision(const struct product *product, const struct product_form *form);

#endif
