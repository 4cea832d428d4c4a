/* Contractions on a GPU: which folds they are. */
#ifndef MF_GPU_SOLVE_CONTRACT_H
#define MF_GPU_SOLVE_CONTRACT_H

#include "emit_contract.h"
#include "form.h"

enum { MF_GPU_CONTRACT_VECTOR = 4 }; /* elements of an operand that are read as one */

/* Whether the first reducer's argument is a product of two factors that have kept loops of their own; fills all but
 * kind, in_tree and negate. */
int mf_gpu_contraction_fits(const struct mf_plan *plan, struct gpu_contraction *contraction);
/* Its rows become columns. */
void mf_gpu_contraction_turn(const struct problem *problem, struct gpu_contraction *contraction);

/* The tile that suits a contraction best (and divides the tile within, or null), its threads, and the blocks that
 * outputs have in such tiles. */
const struct contract_tile *mf_gpu_choose_tile(const struct problem *problem, const struct gpu_contraction *contraction,
                                               const struct contract_tile *within, int multiprocessors);
int mf_gpu_tile_threads(const struct contract_tile *tile);
int64_t mf_gpu_tile_blocks(const struct problem *problem, const struct gpu_contraction *contraction,
                           const struct contract_tile *tile);
/* #define lines for kernels/tile.cl; flags: a block of outputs of this size has a flag, or null. */
void mf_gpu_tile_macros(const struct problem *problem, const struct gpu_contraction *contraction,
                        const struct contract_tile *tile, const struct contract_tile *flags, struct gpu_text *to);
/* p[0], p[1] and p[7]. */
void mf_gpu_place_tiles(const struct problem *problem, const struct gpu_contraction *contraction,
                        const struct contract_tile *tile, struct gpu_choice *choice);

/* Plans kernels/contract.cl; with flags, as a further stage that computes blocks whose flag is set. */
mf_status mf_gpu_make_contraction(struct mf_plan *plan, const struct gpu_contraction *contraction,
                                  const struct contract_tile *flags);

/* Whether solve_near.c's kernel is faster, of these kinds; plans it. Reads plan->form. */
int mf_gpu_near_pays(const struct mf_plan *plan, const struct gpu_contraction *contraction);
mf_status mf_gpu_make_near(struct mf_plan *plan, const struct gpu_contraction *contraction);

#endif
