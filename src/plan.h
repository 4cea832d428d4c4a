/* Devices, plans and solvers: problem -> first solver that applies -> plan -> execute (FFTW's spine). */
#ifndef MF_PLAN_H
#define MF_PLAN_H

#include <pthread.h>

#include "layout.h"

struct kernels;
struct threads;
struct fold_cache;

struct mf_device {
    char name[32], description[96];
    int thread_count;
    const struct kernels *kernels;
    struct threads *threads;
    pthread_mutex_t lock; /* for operations and cache */
    struct operation *operations;
    struct fold_cache *cache; /* recent plans of mf_fold */
};

struct mf_plan {
    mf_device *device;
    const struct solver *solver;
    int threads;
    void *data; /* the solver's own; one block from mf_alloc */
    char *text; /* for mf_plan_describe */
    struct problem problem;
};

/* What a plan works on: pointers to position 0 of every loop. */
struct pointers {
    const char *in[MF_MAX_INPUTS];
    char *out[MF_MAX_OUTPUTS];
};

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
};

/* In the order of preference; ends with null. */
extern const struct solver *const mf_solvers[];

extern const struct solver mf_solver_pair, mf_solver_map, mf_solver_outer, mf_solver_inner, mf_solver_reference;

#endif
