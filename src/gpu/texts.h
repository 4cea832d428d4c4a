/* The texts that GPU compilers get: files of this tree, embedded by cmake/embed.cmake without their #include lines. The
 * name is the file's, with _ for the dot. They are empty until mf_unpack_texts has been called, as opening a device
 * does. */
#ifndef MF_GPU_TEXTS_H
#define MF_GPU_TEXTS_H

#include <stddef.h>

void mf_unpack_texts(void);

extern char mf_text_prelude_cu[], mf_text_prelude_cl[]; /* src/gpu */
extern char mf_text_reducers_cl[], mf_text_shape_cl[], mf_text_common_cl[], mf_text_fold_cl[],
    mf_text_conditional_cu[]; /* src/gpu/kernels */
extern char mf_text_quads_cl[], mf_text_patches_cl[], mf_text_pools_cl[], mf_text_single_cl[], mf_text_sliding_cl[],
    mf_text_sliding_stages_cl[], mf_text_sliding_tree_cl[], mf_text_sliding_strips_cl[], mf_text_turned_cl[],
    mf_text_map_cl[], mf_text_packed_cl[], mf_text_staged_cl[], mf_text_abreast_cl[], mf_text_lengthwise_cl[],
    mf_text_merges_cl[], mf_text_weights_cl[], mf_text_tile_lanes_cl[], mf_text_rows_cl[], mf_text_tiles_cl[],
    mf_text_columns_cl[], mf_text_slanted_cl[], mf_text_wide_cl[], mf_text_taken_cl[], mf_text_bytes_cl[],
    mf_text_straddle_cl[], mf_text_byte_folds_cl[], mf_text_parts_cl[], mf_text_sums_cl[], mf_text_sum_lanes_cl[],
    mf_text_lanes_cl[], mf_text_small_cu[], mf_text_interleaved_cl[], mf_text_ordered_cl[], mf_text_runs_cl[],
    mf_text_multi_cl[], mf_text_tensor_cl[], mf_text_tensor_mma_cu[], mf_text_tensor_mma_cl[], mf_text_tensor_sum_cl[],
    mf_text_tensor_level_cl[], mf_text_tensor_rows_cl[], mf_text_slide_cl[], mf_text_terms_cl[], mf_text_factor_cl[],
    mf_text_contract_cl[], mf_text_contract_copied_cl[], mf_text_contract_near_cl[], mf_text_gradient_near_cl[],
    mf_text_contract_parts_cl[], mf_text_copied_side_cl[], mf_text_tile_cl[], mf_text_log_factor_cl[],
    mf_text_log_store_cl[], mf_text_log_pack_cl[], mf_text_log_product_cl[], mf_text_product_cl[],
    mf_text_product_side_cl[], mf_text_product_sizes_cl[], mf_text_product_mma_cu[], mf_text_product_mma_cl[],
    mf_text_product_group_cu[], mf_text_product_multiply_cl[], mf_text_product_store_cl[], mf_text_product_rows_cl[],
    mf_text_window_cl[], mf_text_window_rows_cl[], mf_text_pixels_cl[], mf_text_winners_cl[];
extern char mf_text_match_cl[], mf_text_match_popc_cl[], mf_text_match_multi_cl[], mf_text_match_tensor_cl[],
    mf_text_match_mma_cu[], mf_text_match_mma_cl[], mf_text_match_count_cl[], mf_text_match_fill_cl[],
    mf_text_match_columns_cl[], mf_text_match_join_cl[];                                      /* match/kernels */
extern char mf_text_elementary_h[], mf_text_convert_h[], mf_text_memory_h[], mf_text_ops_h[]; /* src/vocab */
extern char mf_text_ops_float_inc[], mf_text_ops_int_inc[];

/* All of them, in the order in which mf_packed, a stream of deflate, holds them; last one without a text. */
struct packed_text {
    char *to;
    size_t size;
};
extern const struct packed_text mf_packed_texts[];
extern const unsigned char mf_packed[];

#endif
