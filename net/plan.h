/* A network's plan inside: planes of memory between layers, and steps that fold one into another. */
#ifndef MF_NET_PLAN_H
#define MF_NET_PLAN_H

#include "net.h"

/* A layer's output: batch x (h + 2 border) x (w + 2 border) x pitch elements of device memory, of which channels
 * 0 ... c-1 inside the border count. The border is zero, so convolutions need not look where a window leaves; the pitch
 * keeps filters that fill up a panel, and keeps pixels from all falling into the same lines of a cache; on GPUs pixels
 * begin where 16 bytes do. Channels that steps do not write (filled ... pitch-1) are zero there. */
struct plane {
    int64_t h, w, c, border, pitch, filled;
    mf_type type;   /* f32, or f16 */
    int64_t first;  /* elements to channel 0 of the first pixel inside the border */
    int64_t row;    /* elements from row to row, */
    int64_t image;  /* from picture to picture */
    void *memory;   /* null where the output is not in memory */
    int owns;       /* 0: it is another layer's */
    int result;     /* detections are made of it, or only the caller reads it */
    int used_again; /* others have the memory when nobody reads it any more */
    mf_plan *zeros; /* on a GPU, where others had the memory: makes all of it zero; else null */
};

enum {
    VIEW_RANK = 7,
    STEP_INPUTS = 3,
    GPU_PIECE = 16, /* bytes that a GPU's kernels read at once: pixels begin there */
    GPU_FILTERS = 8 /* their weights and outputs are so many, of any type whole pieces */
};

static inline int64_t mf_item_bytes(mf_type type)
{
    return ((int)type & 0xff) / 8;
}

/* The next multiple of piece. */
static inline int64_t mf_up_to(int64_t count, int64_t piece)
{
    return (count + piece - 1) / piece * piece;
}

/* A tensor with its shape. */
struct view {
    DLTensor tensor;
    int64_t shape[VIEW_RANK], stride[VIEW_RANK];
};

enum step_kind {
    STEP_CONV,
    STEP_BATCH_NORM,
    STEP_BIAS,
    STEP_ACTIVATION,
    STEP_MAXPOOL,
    STEP_ROUTE,
    STEP_SHORTCUT,
    STEP_UPSAMPLE
};

struct step;
typedef mf_status step_fn(const mf_net_plan *plan, const struct step *step, void *stream);

struct step {
    int layer, source; /* of a route: which of its sources */
    enum step_kind kind;
    step_fn *run; /* null: execute the fold; on the CPU it has no stream */
    mf_plan *fold;
    int input_count;
    struct view in[STEP_INPUTS], out;
    int64_t pool[3];            /* of mf_plan_create_pooled, where the fold makes the pool too */
    const char *pool_solver;    /* with it */
    const struct plane *begins; /* the plane that this step is the first to write, or null */
    const mf_plan *described;   /* where there is no fold of its own: tells what the step is; or null */
    struct blas_step *blas;
    struct winograd_step *winograd;
    struct band_step *bands;
    double seconds;
    char text[80]; /* where there is no fold */
};

/* A layer's numbers in the device's memory. */
struct numbers {
    void *weights, *bias, *scale, *mean;
};

struct mf_net_plan {
    const mf_net *net;
    mf_device *device;
    mf_net_way way;
    int64_t batch;
    mf_options options;
    mf_net_precision precision;
    const char *solver;       /* what convolutions are asked for by, or null; only while the plan is made */
    int rounds;               /* planes and weights, f32, are of 11 bits, but for results */
    int direct, keep, shares; /* shares: planes have memory that is others' too, before and after; */
    int refills;              /* and borders are made zero for each run */
    char *winograd, *pooled;  /* by layer: whether it is by Winograd's algorithm; is only in memory as its pool */
    struct plane *planes;     /* of layer l at l + 1 */
    void *arena, *zero;       /* the memory of all of them, unless they are kept; a zero, for refills */
    struct numbers *numbers;
    struct step *step;
    int step_count, step_room;
    void *scratch; /* for one step while it runs */
    int64_t scratch_bytes;
    void *upload;   /* pictures that came from the CPU, on a GPU */
    void *channels; /* their numbers, where whole pixels are written, on a GPU */
    int64_t upload_bytes, bytes;
    int reads_pictures;   /* the first convolution takes them as they come: no plane has them */
    struct view picture;  /* then: what it takes, */
    const mf_plan *taken; /* and by which fold */
    struct input_form *form;
    int next_form; /* the next of them that is made anew */
    int measure;
};

static inline struct plane *mf_plane(const mf_net_plan *plan, int layer)
{
    return &plan->planes[layer + 1];
}

/* Device memory that counts in plan->bytes; zero. */
mf_status mf_net_memory(mf_net_plan *plan, int64_t bytes, void **memory);
/* Adds what a fold has of the device's memory to plan->bytes, times -1 where it is about to go; null is fine. */
void mf_net_count(mf_net_plan *plan, const mf_plan *fold, int times);
/* A step wants so much of plan->scratch, which is there when it runs. */
void mf_net_scratch(mf_net_plan *plan, int64_t floats);
/* The outputs of a layer for `count` pictures, as mf_net_plan_read gives them. */
mf_status mf_net_read(mf_net_plan *plan, int layer, int64_t first, int64_t count, float *values);
/* How many may work on a step. */
int mf_net_threads(const mf_net_plan *plan);

/* ---- numbers.c: weights and what else a layer has ---- */

/* How a plan has a convolution's weights: [groups][panels][size][size][channels][panel], or, by_filter, the panel
 * before the size. */
struct weight_shape {
    int64_t panels, panel, channels;
    mf_type type;
    int by_filter;
};
struct weight_shape mf_weight_shape(const mf_net_plan *plan, int layer);
/* After the planes. */
mf_status mf_numbers_make(mf_net_plan *plan);
/* The bytes of a convolution's weights in that shape; 0 for other layers. */
int64_t mf_weight_bytes(const mf_net_plan *plan, int layer);
void mf_numbers_forget(mf_net_plan *plan);

/* ---- run.c: pictures and steps ---- */

/* Runs the first convolution where it takes pictures. */
step_fn mf_step_run_pictures;
/* The fold that takes row-major ones of f32. */
const mf_plan *mf_net_picture_fold(const mf_net_plan *plan);
/* Whether the first convolution is to take the pictures, which is tried. */
mf_status mf_net_try_pictures(mf_net_plan *plan);
/* The folds that take pictures of u8 and f32. */
mf_status mf_net_plan_inputs(mf_net_plan *plan);
void mf_net_forget_inputs(mf_net_plan *plan);

/* ---- planes.c: what is computed how, and what outputs look like ---- */

mf_status mf_planes_make(mf_net_plan *plan);
/* The layer whose memory a layer's output is: most layers' own. */
int mf_plane_owner(const mf_net *net, int layer);

/* ---- arena.c: where outputs lie ---- */

mf_status mf_arena_make(mf_net_plan *plan);
void mf_arena_forget(mf_net_plan *plan);
/* Before anything is written into a plane: its border is zero again, where others had the memory. */
mf_status mf_plane_begin(const mf_net_plan *plan, const struct plane *plane, void *stream);

/* ---- views.c ---- */

/* Elements at `memory`, `first` of them behind its beginning. */
void mf_view_make(struct view *view, const mf_net_plan *plan, mf_type type, void *memory, int64_t first, int rank,
                  const int64_t *shape, const int64_t *stride);
/* batch x h x w x c without the border, or with `pad` rows and columns of it on each side. */
void mf_view_plane(struct view *view, const mf_net_plan *plan, const struct plane *plane, int64_t pad);
/* The same with channels split into groups: batch x h x w x groups x c / groups. */
void mf_view_groups(struct view *view, const mf_net_plan *plan, const struct plane *plane, int64_t pad, int64_t groups,
                    int64_t channels);

/* ---- steps.c: the steps of each layer ---- */

mf_status mf_net_plan_steps(mf_net_plan *plan);
/* Whether the convolution's step makes the pool behind it too. Planes need not have memory yet. */
mf_status mf_step_try_pooled(mf_net_plan *plan, int layer, char *pooled);
/* One more step. */
struct step *mf_step_add(mf_net_plan *plan, int layer, enum step_kind kind);
/* Its fold of step->in to step->out. */
mf_status mf_step_fold(mf_net_plan *plan, struct step *step, const char *modes, const char *expression);
/* The step's convolution, or pool, as a fold from one plane to another. */
mf_status mf_step_conv_fold(mf_net_plan *plan, struct step *step, const struct plane *from, const struct plane *to);
mf_status mf_step_pool_fold(mf_net_plan *plan, struct step *step, const struct plane *from, const struct plane *to);
/* The first convolution, as a fold of pictures in the caller's memory, with the pool behind it where the plan wants
 * that: on tensor cores that take few channels, MF_ERROR_UNSUPPORTED elsewhere. */
mf_status mf_step_picture_fold(mf_net_plan *plan, struct step *step, const struct view *picture);
/* The expression of an activation of `inner`. */
/* Room for an expression. */
enum { MF_STEP_TEXT = 96 };
/* Makes of an expression whose values go to the plane one whose values have as many bits as the plan wants there; size:
 * 4 MF_STEP_TEXT at least. */
void mf_rounded_text(const mf_net_plan *plan, const struct plane *plane, char *text, size_t size);
void mf_activation_text(enum activation activation, const char *inner, char *text, size_t size);

/* ---- blas.c: convolutions as products of matrices ---- */

mf_status mf_blas_add_conv(mf_net_plan *plan, int layer);
void mf_blas_forget(mf_net_plan *plan, struct step *step);

/* ---- winograd.c: convolutions of 3 x 3 with fewer multiplications ---- */

int mf_winograd_fits(const mf_net_plan *plan, int layer);
mf_status mf_winograd_add_conv(mf_net_plan *plan, int layer);
void mf_winograd_forget(struct step *step);

/* ---- bands.c: a convolution and the pool behind it ---- */

int mf_bands_fit(const mf_net_plan *plan, int layer);
mf_status mf_bands_add_conv(mf_net_plan *plan, int layer);
void mf_bands_forget(struct step *step);

/* ---- scalar.c: plain loops ---- */

/* The step as loops; null where there is none. */
step_fn *mf_scalar_step(enum step_kind kind);

#endif
