/* The solvers of a GPU, in the order of preference. Behind solvers that take the same folds, "slide",
 * "slide-shared" and "multi" run only when they are asked for by name. */
#include "form.h"

const struct solver *const mf_gpu_solvers[] = {
    &mf_gpu_map,           &mf_gpu_ordered,
    &mf_gpu_contract_near, &mf_gpu_contract,
    &mf_gpu_contract_arg,  &mf_gpu_contract_several,
    &mf_gpu_bytes,         &mf_gpu_wide,
    &mf_gpu_slanted,       &mf_gpu_columns,
    &mf_gpu_straddle,      &mf_gpu_interleaved,
    &mf_gpu_abreast,       &mf_gpu_staged,
    &mf_gpu_runs,          &mf_gpu_rows,
    &mf_gpu_small,         &mf_gpu_tiles,
    &mf_gpu_slide,         &mf_gpu_slide_shared,
    &mf_gpu_multi,         NULL,
};
/* Those whose results are not the reference's bits (plan.h). */
const struct solver *const mf_gpu_solvers_by_name[] = {&mf_gpu_log_certified,
                                                       &mf_gpu_log_fast,
                                                       &mf_gpu_log_exact,
                                                       &mf_gpu_log_running,
                                                       &mf_gpu_log_two_pass,
                                                       &mf_gpu_cublas,
                                                       &mf_gpu_tensor_sum,
                                                       &mf_gpu_product,
                                                       &mf_gpu_window,
                                                       &mf_gpu_pixels,
                                                       NULL};
