/* modefold's networks: darknet's .cfg and .weights files, run as folds.
 *
 * A layer is a fold, leaky(sum(a*b)+c) over windows for instance, and a network is a list of plans (modefold.h). This
 * header is all of it, from simple to advanced.
 *
 *     mf_device *cpu;
 *     mf_net *net;
 *     mf_net_plan *plan;
 *     mf_net_box box[100];
 *     int64_t count;
 *     mf_device_open("cpu", &cpu);
 *     mf_net_load("yolov2-tiny-voc.cfg", "yolov2-tiny-voc.weights", 0, &net);
 *     mf_net_plan_create(net, cpu, NULL, &plan);
 *     mf_net_plan_run(plan, &picture);                         // u8 or float, 416 x 416 x 3
 *     mf_net_plan_detect(plan, 0, NULL, box, 100, &count);
 *     mf_net_plan_destroy(plan), mf_net_destroy(net), mf_device_close(cpu);
 *
 * Statuses and mf_error() are modefold.h's. What a file says wrongly is MF_ERROR_FILE with its name, section and line.
 */
#ifndef MODEFOLD_NET_H
#define MODEFOLD_NET_H

#include <modefold.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- 1. Networks ---------------------------------------------------------------------------------------------- */

/* Layers and weights. It does not change after loading: any number of threads may make plans of it. */
typedef struct mf_net mf_net;

enum {
    MF_NET_UNFUSED = 1 /* batch norm, bias and activation stay steps of their own, for comparisons. Else batch norm is
                          multiplied into the weights, and bias and activation are the end of the convolution's fold */
};

/* Loads a network. Sections: [net] (or [network]), [convolutional] (any size, stride, padding, groups; activations
 * linear, leaky, relu, logistic, tanh), [maxpool], [route], [shortcut], [upsample], [dropout] (does nothing), [region],
 * [yolo]; others are an error. The weights file must have the network's numbers, no fewer and no more.
 * The weights are kept once, as the plans of the CPU read them: about the file's size. */
MF_API mf_status mf_net_load(const char *cfg_path, const char *weights_path, uint32_t flags, mf_net **net);

/* The same from memory, which is not kept. */
MF_API mf_status mf_net_parse(const char *cfg, size_t cfg_bytes, const void *weights, size_t weights_bytes,
                              uint32_t flags, mf_net **net);

/* Frees a network; its plans must have been destroyed. Null is fine. */
MF_API void mf_net_destroy(mf_net *net);

/* A layer: one section of the .cfg. */
typedef struct mf_net_layer {
    const char *kind; /* "convolutional" ...: the section; "input" for layer -1; valid as long as the program */
    int line;         /* of the .cfg, where the section begins */
    int64_t height, width, channels; /* of its output */
    int64_t parameters;              /* numbers in the weights file */
    int64_t operations;              /* multiplications and additions of a convolution, for one picture */
} mf_net_layer;

/* How many layers there are, numbered from 0 as darknet does; 0 for null. */
MF_API int mf_net_layer_count(const mf_net *net);
/* What layer number `layer` is; -1: the input. */
MF_API mf_status mf_net_layer_get(const mf_net *net, int layer, mf_net_layer *info);

/* ---- 2. Plans ------------------------------------------------------------------------------------------------- */

/* A network on a device, for a batch: its folds' plans, and memory for all outputs. One thread at a time may run it. */
typedef struct mf_net_plan mf_net_plan;

typedef enum mf_net_way {
    MF_NET_FOLDS = 0, /* every layer is a fold: SIMD and threads on the CPU, our kernels on GPUs. Convolutions of 3 x 3
                         are Winograd's algorithm on the CPU, where that is less work and any order will do */
    MF_NET_BLAS = 1,  /* convolutions by a product of matrices over copied windows: OpenBLAS on the CPU, cuBLAS on CUDA
                         (opened at run time); the rest as folds */
    MF_NET_SCALAR = 2 /* plain loops on one thread of the CPU: what the others are compared with */
} mf_net_way;

/* What numbers are rounded to between the picture and the results; sums are f32 always (docs/networks.md).
 *   MF_NET_F32   nothing shorter
 *   MF_NET_TF32  GPUs: weights and layers' outputs, but for results, to TF32, for tensor cores; a convolution that
 *                solvers product and window do not take is as for MF_NET_F32
 *   MF_NET_F16   weights and layers' outputs are f16. Biases are f32, and so are outputs that [region] and [yolo] read,
 *                or no layer. GPUs, and on the CPU, where it is slow, for comparisons */
typedef enum mf_net_precision { MF_NET_F32 = 0, MF_NET_TF32 = 1, MF_NET_F16 = 2 } mf_net_precision;

/* Start from {0}. */
typedef struct mf_net_options {
    mf_net_way way;
    int64_t batch;      /* pictures at once; 0: 1 */
    int order_contract; /* the bits of docs/numerics.md, which every device gives, instead of the fastest order */
    int threads;        /* as mf_options has it */
    int direct;         /* no Winograd: every convolution as it stands (docs/networks.md has both errors) */
    int keep;           /* every layer's output stays, to be read; else memory is used again by later layers, and on
                           the CPU and CUDA a 2 x 2 pool may be the end of the convolution before it */
    mf_net_precision precision; /* with MF_NET_FOLDS; others than MF_NET_F32 are MF_ERROR_UNSUPPORTED elsewhere */
    const char *solver; /* for comparisons: convolutions are by this solver of the device, "window:inputs" for instance,
                           where it applies, the others as ever (a step's description says which); without Winograd,
                           and pools are steps of their own. Null: the library's choice. With MF_NET_FOLDS, without
                           order_contract; read while the plan is made */
} mf_net_options;

/* Plans the network; options may be null. On a device "sm:N" this compiles every kernel, and nothing can be run. */
MF_API mf_status mf_net_plan_create(const mf_net *net, mf_device *device, const mf_net_options *options,
                                    mf_net_plan **plan);

/* Runs it and waits. input: the batch's pictures, [batch,] height x width x channels (the batch may be left out where
 * it is 1), of floats as they are or of u8, which are divided by 255; any strides on the device itself, row-major where
 * a GPU gets a tensor of the CPU. Pictures of other sizes: mf_net_fit. */
MF_API mf_status mf_net_plan_run(mf_net_plan *plan, const DLTensor *input);

/* The same without waiting: puts all work into the stream of the plan's device (null: the device's own; the CPU has no
 * other), and neither allocates nor copies from the CPU, so a CUDA graph can capture it. The input has to be where the
 * device reads. Pictures that are row-major u8 or f32 need nothing more; the first of another type or other strides
 * make a plan, so run them once before they are captured. Runs of one plan follow each other in one stream: they share
 * the plan's memory. mf_device_wait on the stream comes before mf_net_plan_read and mf_net_plan_detect. Nothing is
 * measured. */
MF_API mf_status mf_net_plan_enqueue(mf_net_plan *plan, const DLTensor *input, void *stream);

/* Copies the output of a layer (-1: the input) to the CPU as batch x height x width x channels floats, row-major;
 * capacity: how many fit. Only what no layer reads is there, and what [region] and [yolo] read, unless the plan was
 * made with keep; other layers are MF_ERROR_ARGUMENT.
 * [region] and [yolo] have their input's, as it is before sigmoid and softmax. */
MF_API mf_status mf_net_plan_read(mf_net_plan *plan, int layer, float *values, int64_t capacity);

/* A step of a plan: one fold, or one product of matrices with what belongs to it. */
typedef struct mf_net_step {
    int layer;
    const char *kind;        /* "Conv2D", "BatchNorm", "BiasAdd", "Activation", "MaxPool2D", "Route", "Shortcut",
                                "Upsample" */
    double seconds;          /* in all runs so far */
    const char *description; /* mf_plan_describe's text, or a line; valid as long as the plan */
} mf_net_step;

/* How many steps a plan has; and what step number `step` is, with its time. */
MF_API int mf_net_plan_step_count(const mf_net_plan *plan);
MF_API mf_status mf_net_plan_step(const mf_net_plan *plan, int step, mf_net_step *info);

/* Measures each step from now on (measure = 1; the device is waited for after each), or not. Times start at 0. */
MF_API void mf_net_plan_measure(mf_net_plan *plan, int measure);

/* The bytes of memory the plan has on its device: outputs, on a GPU or with MF_NET_BLAS the weights again, and on a GPU
 * what its folds have for themselves. */
MF_API int64_t mf_net_plan_bytes(const mf_net_plan *plan);
/* The bytes of a loaded network. */
MF_API int64_t mf_net_bytes(const mf_net *net);

/* Frees a plan. Null is fine. */
MF_API void mf_net_plan_destroy(mf_net_plan *plan);

/* ---- 3. Detections -------------------------------------------------------------------------------------------- */

typedef struct mf_net_box {
    int label;                      /* number of the class */
    float score;                    /* probability that there is an object, times that of the class */
    float left, top, right, bottom; /* pixels of the picture; may lie outside of it by darknet's rules */
} mf_net_box;

typedef enum mf_net_rules {
    MF_NET_DARKNET = 0, /* every class whose score is above the threshold; of one class' boxes those that overlap a
                           better one by more than 0.45 are left out (intersection over union) */
    MF_NET_COURSE = 1   /* the best class only; corners cut to whole pixels of the network's input; boxes of any class
                           that overlap a better one by more than 0.3 are left out, pixels counted with both ends (the
                           rules of the course behind the report of Tandon and Kim, 2020) */
} mf_net_rules;

/* Start from {0}. */
typedef struct mf_net_detecting {
    mf_net_rules rules;
    float threshold;       /* scores above it; 0: 0.3 */
    float overlap;         /* boxes that overlap by more are one; 0: 0.45 by darknet's rules, 0.3 by the course's */
    int64_t height, width; /* the picture's size; 0: the network's */
    int letterbox;         /* how mf_net_fit put it into the network's input */
} mf_net_detecting;

/* The detections in picture number `item` of the batch, by the network's [region] and [yolo] layers, best first.
 * *count: how many there are; the first `capacity` of them are written. options may be null. */
MF_API mf_status mf_net_plan_detect(mf_net_plan *plan, int64_t item, const mf_net_detecting *options, mf_net_box *boxes,
                                    int64_t capacity, int64_t *count);

/* Puts a picture of any size (u8, height x width x 1, 3 or 4 channels, any strides, CPU) into one of the network's
 * input: floats from 0 to 1, height x width x 3, row-major. Bilinear, pixels counted at their centres. letterbox: the
 * picture keeps its proportions, and what it does not cover is 0.5; else it is stretched. Grey becomes three equal
 * channels, an alpha channel is left out. */
MF_API mf_status mf_net_fit(const DLTensor *picture, int letterbox, int64_t height, int64_t width, float *to);

/* ---- 4. Names ------------------------------------------------------------------------------------------------- */

/* The names of classes, one a line. */
typedef struct mf_net_names mf_net_names;
MF_API mf_status mf_net_names_load(const char *path, mf_net_names **names);
MF_API mf_status mf_net_names_parse(const char *text, size_t bytes, mf_net_names **names);
/* How many there are; name number k, null where there is none. */
MF_API int mf_net_names_count(const mf_net_names *names);
MF_API const char *mf_net_names_get(const mf_net_names *names, int k);
MF_API void mf_net_names_destroy(mf_net_names *names);

#ifdef __cplusplus
}
#endif

#endif
