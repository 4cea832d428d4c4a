/* Contractions on a GPU: which folds they are. */
#ifndef MF_GPU_SOLVE_CONTRACT_H
#define MF_GPU_SOLVE_CONTRACT_H

#include "emit_contract.h"
#include "form.h"

/* Whether the first reducer's argument is a product of two factors that have kept loops of their own; fills all but
 * argument and in_tree. */
int mf_gpu_contraction_fits(const struct mf_plan *plan, struct gpu_contraction *contraction);

#endif
