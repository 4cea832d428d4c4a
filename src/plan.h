/* Devices, plans and solvers: problem -> first solver that applies -> plan -> execute (FFTW's spine). */
#ifndef MF_PLAN_H
#define MF_PLAN_H

#include <pthread.h>
#include <stdatomic.h>

#include "layout.h"

struct kernels;
struct threads;
struct fold_cache;
struct gpu;
struct gpu_api;
struct gpu_program;

struct mf_device {
    char name[32], description[192];
    int thread_count;
    const struct kernels *kernels;
    struct threads *threads;
    const struct gpu_api *api;    /* null: the CPU */
    struct gpu *gpu;              /* the open device behind api */
    struct gpu_program *programs; /* kernels compiled for it */
    pthread_mutex_t lock;         /* for operations and cache */
    struct operation *operations;
    struct fold_cache *cache; /* recent plans of mf_fold */
};

/* Whether the device reads memory of this DLPack device type. */
int mf_device_reads(const struct mf_device *device, int memory);

/* Frees the operations that were defined. */
void mf_operations_forget(mf_device *device);

struct mf_plan {
    mf_device *device;
    const struct solver *solver;
    int threads;
    const char *form;   /* what was asked for behind the solver's name and a colon; null once the solver has read it */
    void *data;         /* the solver's own; one block from mf_alloc */
    char *text;         /* for mf_plan_describe */
    int64_t pool[3];    /* mf_plan_create_pooled: elements between pictures, rows and columns; else zeros; */
    int64_t pool_of[2]; /* the convolution's rows and columns */
    const void *condition; /* on CUDA: kernels do nothing where this int64_t of the device is 0; or null */
    atomic_llong *tiers;   /* outputs by mf_tier, the one thing that executing changes; null where none are counted */
    /* Of the certified or unchecked ones those that the device found to be done exactly, -1 where it cannot be asked;
     * null where they are counted as such. */
    int64_t (*refused)(const struct mf_plan *plan);
    struct refusals {
        int64_t at, batch, rows, columns, tile_rows, tile_columns; /* bytes of the workspace; outputs */
    } refusals;
    struct problem problem;
};

/* What a plan works on. On the CPU in[] and out[] point to position 0 of every loop. On a GPU they are memory, position
 * 0 lies that many elements behind, at an address that is good for comparisons only. */
struct pointers {
    const char *in[MF_MAX_INPUTS];
    char *out[MF_MAX_OUTPUTS];
    int64_t in_offset[MF_MAX_INPUTS], out_offset[MF_MAX_OUTPUTS];
    uintptr_t in_place[MF_MAX_INPUTS], out_place[MF_MAX_OUTPUTS];
    void *stream;
};

/* What the caller gives: memory, and bytes behind its beginning (null: 0 for all) where position [0,0,...] lies. */
struct given {
    const void *const *in;
    void *const *out;
    const uint64_t *in_bytes, *out_bytes;
    void *stream;
};
/* A plan whose output is the greatest of 2 x 2 neighbours of a convolution's: modes and output as of the convolution,
 * the output dense, of shape n, h, w and more. pool: elements from one picture, row and place of the pooled output,
 * which is what the plan writes, to the next. The finish part must not fall where the sum rises. solver: window or
 * pixels, in a form; MF_ERROR_UNSUPPORTED where it does not apply, and where window's tile is its own choice and two
 * plans are faster. */
mf_status mf_plan_create_pooled(mf_device *device, const char *modes, const char *expression, const DLTensor *inputs,
                                const DLTensor *output, const int64_t pool[3], const char *solver, mf_plan **result);
/* As mf_plan_create, of pointers that are not null, with a condition (struct mf_plan). */
mf_status mf_plan_create_if(mf_device *device, const char *modes, const char *expression, const DLTensor *inputs,
                            const DLTensor *outputs, const mf_options *options, const void *condition,
                            mf_plan **result);
mf_status mf_plan_run(const struct mf_plan *plan, const struct given *given);

/* Gives the plan its counts; adds to one. */
mf_status mf_plan_start_tiers(struct mf_plan *plan);
void mf_plan_count_tier(const struct mf_plan *plan, mf_tier tier, int64_t outputs);

/* ---- what makes a plan, for gradients too ---- */

mf_status mf_options_check(const mf_options *options);
/* Type and memory of one tensor; what, number: for errors. */
mf_status mf_tensor_type(const struct mf_device *device, const DLTensor *tensor, const char *what, int number,
                         enum dtype *found);
/* The problem (zeroed by the caller), with everything checked that does not depend on pointers. */
mf_status mf_plan_parse(mf_device *device, const struct modes *modes, const char *expression, const DLTensor *inputs,
                        const DLTensor *outputs, uint32_t flags, struct problem *problem);
/* The text for mf_plan_describe. */
mf_status mf_plan_write(struct mf_plan *plan, const char *modes, const char *expression);

/* One algorithm. */
struct solver {
    const char *name;
    const char *what; /* one line for people */
    /* The algorithm's hypothesis. */
    int (*applicable)(const struct mf_plan *plan);
    /* Fills plan->data; may be null. */
    mf_status (*plan)(struct mf_plan *plan);
    mf_status (*execute)(const struct mf_plan *plan, const struct pointers *pointers);
    /* Adds its choices to the description; may be null. */
    void (*print)(const struct mf_plan *plan, char *text, size_t size);
    /* Frees what plan->data refers to; may be null. Also called after plan() failed. */
    void (*forget)(struct mf_plan *plan);
};

/* Whether the name that was asked for is this solver's, maybe with a form: "multi" and "multi:swap". */
int mf_solver_is_named(const char *solver, const char *asked);

/* In the order of preference; ends with null. */
extern const struct solver *const mf_solvers[];
/* Those whose results are not the reference's bits: they run when they are asked for by name, and log-certified where
 * it pays and nobody asks for the contract's order. */
extern const struct solver *const mf_solvers_by_name[];
/* Whether log-certified is worth while, where it applies. */
int mf_log_products_pay(const struct mf_plan *plan);
/* Solver reference in parts, for one that must not fail after it has written: its memory, which serves every plan of
 * these reducers and as many elements (null: there is none), and its fold. */
struct scratch *mf_reference_open(const struct mf_plan *plan);
void mf_reference_run(const struct mf_plan *plan, const struct pointers *pointers, struct scratch *scratch);
void mf_reference_close(struct scratch *scratch);

/* Whether solver fused applies and is the fastest one for sums in any order. */
int mf_fused_pays(const struct mf_plan *plan);

extern const struct solver mf_solver_pair, mf_solver_turned, mf_solver_map, mf_solver_contract, mf_solver_contract_arg,
    mf_solver_contract_several, mf_solver_outer, mf_solver_inner, mf_solver_reference, mf_solver_log_certified,
    mf_solver_log_fast, mf_solver_log_exact, mf_solver_log_running, mf_solver_log_two_pass, mf_solver_direct,
    mf_solver_few, mf_solver_pool, mf_solver_sliding, mf_solver_framed, mf_solver_openblas, mf_solver_fused;

#endif
