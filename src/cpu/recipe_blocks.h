/* Operations given as text on blocks of elements, with an instruction set's kernels. */
#ifndef MF_CPU_RECIPE_BLOCKS_H
#define MF_CPU_RECIPE_BLOCKS_H

#include "block.h"

/* Gives the operation callbacks and their context, which the caller frees with mf_free. */
mf_status mf_recipe_blocks(const struct recipe *recipe, const struct kernels *kernels, mf_operation *is,
                           void **context);

#endif
