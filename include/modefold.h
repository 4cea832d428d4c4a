/* modefold: fold tensors.
 *
 *     out[o] = finish( reduce over r of map(a[o,r], b[o,r], ...), c[o], ... )
 *
 * One primitive over labelled modes of strided views: reductions, broadcasts, contractions over any semiring,
 * windows (pooling, convolution). The same bits on every instruction set, thread count, compiler and layout, of larger
 * log-space products where MF_ORDER_CONTRACT asks for them (docs/numerics.md). This header is the whole
 * interface of folds, from simple to advanced; modefold_match.h and modefold_net.h are the others.
 *
 *     #include <modefold.h>
 *
 *     float x[6] = {1, 2, 3, 4, 5, 6}, y[2];
 *     int64_t xs[2] = {2, 3}, ys[1] = {2};
 *     DLTensor a = mf_tensor(x, MF_F32, 2, xs), out = mf_tensor(y, MF_F32, 1, ys);
 *     mf_device *cpu;
 *     mf_device_open("cpu", &cpu);
 *     mf_fold(cpu, "ij->i", "sum(a)", &a, &out);         // y = {6, 15}
 *     mf_device_close(cpu);
 *
 * Every function that can fail returns a status; mf_error() gives one sentence about the calling thread's last
 * failure. When a call fails, nothing has been written to its outputs. The library never prints and never aborts.
 */
#ifndef MODEFOLD_H
#define MODEFOLD_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <dlpack/dlpack.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define MF_API __attribute__((visibility("default")))
#else
#define MF_API
#endif

#define MF_VERSION_MAJOR 0 /* for incompatible changes */
#define MF_VERSION_MINOR 1 /* for new capabilities that break nothing */
#define MF_VERSION_PATCH 0 /* for corrections */

/* The version of the library that is linked: major * 10000 + minor * 100 + patch. */
MF_API int mf_version(void);

/* ---- 1. Statuses ---------------------------------------------------------------------------------------------- */

typedef enum mf_status {
    MF_OK = 0,
    MF_ERROR_ARGUMENT = 1,   /* a null pointer, an unknown name, an option out of range */
    MF_ERROR_MODES = 2,      /* the modes string does not parse or contradicts itself */
    MF_ERROR_EXPRESSION = 3, /* the expression does not parse or does not fit the modes */
    MF_ERROR_SHAPE = 4,      /* sizes that disagree, a rank that does not fit, a window that leaves its tensor */
    MF_ERROR_TYPE = 5,       /* an element type that is unknown or does not fit the operation */
    MF_ERROR_OVERLAP = 6,    /* an output overlaps an input, another output or itself */
    MF_ERROR_EMPTY = 7,      /* empty reduced modes and no identity (mean, argmax, min of integers ...) */
    MF_ERROR_OVERFLOW = 8,   /* sizes or strides whose product does not fit in 63 bits; a fold of over 2^50 elements */
    MF_ERROR_MEMORY = 9,     /* an allocation failed */
    MF_ERROR_UNSUPPORTED = 10, /* right, but not on this device, solver or build */
    MF_ERROR_DEVICE = 11,      /* a GPU, its driver or its compiler is not there, or failed */
    MF_ERROR_FILE = 12         /* a file of a network (modefold_net.h) cannot be read, or is not what it should be */
} mf_status;

/* The status's name, "MF_ERROR_SHAPE" for instance; never null. */
MF_API const char *mf_status_name(mf_status status);

/* One sentence with the facts of both sides, such as "mode k is 5 in operand a and 7 in operand b", about the last
 * call that failed in this thread; "" when none did. Valid until the thread's next failing call. */
MF_API const char *mf_error(void);

/* ---- 2. Tensors ----------------------------------------------------------------------------------------------- */

/* Tensors are DLPack's DLTensor: data, byte_offset, dtype, ndim, shape and strides, both counted in elements;
 * strides may be null (row-major), positive, zero, negative, overlapping (inputs only). On the CPU their device must
 * be one whose memory it reads, as mf_tensor sets it; on a GPU it is mf_device_kind's. */

enum {
    MF_MAX_RANK = 32,    /* modes of one tensor, and of one output */
    MF_MAX_MODES = 52,   /* different modes in one call: a to z and A to Z */
    MF_MAX_INPUTS = 16,  /* operands a, b, ... p */
    MF_MAX_OUTPUTS = 16, /* results of one pass */
    MF_MAX_WINDOW = 4    /* modes in one window, (h+i+...) */
};

/* The element types. The value is DLPack's code * 256 + bits. */
/* clang-format off */
typedef enum mf_type {
    MF_I8 = 0x008, MF_I16 = 0x010, MF_I32 = 0x020, MF_I64 = 0x040,
    MF_U8 = 0x108, MF_U16 = 0x110, MF_U32 = 0x120, MF_U64 = 0x140,
    MF_F16 = 0x210, MF_F32 = 0x220, MF_F64 = 0x240, MF_BF16 = 0x410,
    MF_BOOL = 0x608,                      /* one byte, 0 or 1 (any other byte reads as true) */
    MF_F8_E4M3 = 0xa08, MF_F8_E5M2 = 0xc08 /* DLPack 1.1's float8_e4m3fn and float8_e5m2 */
} mf_type;
/* clang-format on */

/* "f32", "i8", "bool", "bf16", "f8e4m3" ...; null for a type that modefold does not have. */
MF_API const char *mf_type_name(DLDataType type);

/* DLPack's form of a type. */
static inline DLDataType mf_dtype(mf_type type)
{
    DLDataType t;
    t.code = (uint8_t)((int)type >> 8);
    t.bits = (uint8_t)((int)type & 0xff);
    t.lanes = 1;
    return t;
}

/* A row-major tensor of CPU memory over data (not copied); shape is kept by pointer and must outlive the tensor. */
#if defined(__GNUC__)
__attribute__((always_inline)) /* so that no compiler takes data, which is not read, for something uninitialised */
#endif
static inline DLTensor
mf_tensor(const void *data, mf_type type, int ndim, const int64_t *shape)
{
    DLTensor t;
    memset(&t, 0, sizeof t);
    memcpy(&t.data, &data, sizeof t.data);
    memcpy(&t.shape, &shape, sizeof t.shape);
#if defined(DLPACK_VERSION) && DLPACK_VERSION < 60
    t.ctx.device_type = kDLCPU;
#else
    t.device.device_type = kDLCPU;
#endif
    t.dtype = mf_dtype(type);
    t.ndim = ndim;
    return t;
}

/* ---- 3. Devices ----------------------------------------------------------------------------------------------- */

typedef struct mf_device mf_device;

/* Opens a device by name: "cpu" (all cores this process may use), "cpu:N" (N threads, 1 <= N <= 256); "cuda:N" and
 * "opencl:N", GPU number N from 0 on (MF_ERROR_DEVICE where there is none, or no driver); "auto", cuda:0 or else cpu;
 * "sm:90", an architecture of CUDA to compile for, without a GPU.
 * The handle may be used by several threads at once. MODEFOLD_THREADS sets the count for "cpu", whose threads belong to
 * the handle; they look out for the next call for some microseconds, then sleep. CUDA works in the
 * calling thread's current context if there is one, else in the device's primary one, which CUDA's runtime, PyTorch and
 * CuPy use too. Kernels are compiled when a plan is made, by NVRTC or the OpenCL driver, and kept on disk: see
 * MODEFOLD_CACHE in modefold(1). */
MF_API mf_status mf_device_open(const char *name, mf_device **device);

/* Closes a device; its plans must have been destroyed. Null is fine. */
MF_API void mf_device_close(mf_device *device);

/* What the device is, in one line: "cpu: 2 threads, avx512". Valid as long as the device. */
MF_API const char *mf_device_describe(const mf_device *device);

/* DLPack's type of the device's memory: 1 the CPU, 2 CUDA, 4 OpenCL. */
MF_API int mf_device_kind(const mf_device *device);

/* Memory for programs without an allocator of their own: zeroed; a device pointer on CUDA, a cl_mem on OpenCL. write
 * and read copy from and to the CPU's memory, `offset` bytes into it, after the work of the device's own stream, and
 * have finished when they return. */
MF_API mf_status mf_memory_create(mf_device *device, int64_t bytes, void **memory);
MF_API void mf_memory_destroy(mf_device *device, void *memory);
MF_API mf_status mf_memory_write(mf_device *device, void *memory, int64_t offset, const void *from, int64_t bytes);
MF_API mf_status mf_memory_read(mf_device *device, const void *memory, int64_t offset, void *to, int64_t bytes);

/* Waits until all folds put into the stream are done (null: the device's own), and says what went wrong in them.
 * Nothing to do on the CPU. */
MF_API mf_status mf_device_wait(mf_device *device, void *stream);

/* ---- 4. One call ---------------------------------------------------------------------------------------------- */

/* Folds inputs into outputs.
 *
 * modes       which mode each dimension of each operand is, and which are kept:
 *               "ij->i"            reduce j                    "zyx->y"       reduce two modes
 *               "ij,j->ij"         broadcast b over i          "ik,kj->ij"    contract k
 *               "(i+j)->i with j=32"                           all runs of 32
 *               "(2h+i)(2w+j)c->hwc with i=2,j=2"              2 x 2 windows, stride 2
 *               "(h+i-1)(w+j-1)c,ijco->hwo"                    3 x 3 convolution, one element of padding
 *             A window's index may leave the tensor; such elements take no part in the reduction. An output all of
 *             whose elements are outside is the identity (sum 0, max of floats -inf, of i8 -128), NaN for mean, var
 *             and std, -1 for argmin and argmax. A mode that occurs only in windows and not in the output gets its
 *             size after "with". The same mode twice in an operand walks its diagonal. The output's modes are single
 *             letters, each once; all outputs share them.
 * expression  one or more results over operands a, b, c ... in their order, separated by ';':
 *               "sum(a)"   "mean(a); var(a,1); max(a)"   "sum(a*b)"   "logsumexp(a+b)"   "leaky(sum(a*b)*c+d)"
 *             reducers  sum prod min max mean var std norm any all and or xor count argmin argmax logsumexp
 *                       var(x, ddof) and std(x, ddof) take the degrees of freedom to subtract, 0 by default; and
 *                       operations of your own (section 6)
 *             maps      + - * / // % ** ^  < <= > >= == !=  & | ~ << >>  where(c,x,y) min(x,y) max(x,y) abs sqrt exp
 *                       log pow tanh sigmoid relu leaky(x, slope 0.1) popcount isnan isfinite floor ceil trunc round
 *                       sign fma, and casts: f16(x) f32(x) ... bool(x)
 *             x^y is exclusive or of integers and a power of floats. Inside a reducer operands may have any mode;
 *             outside (the finish part) they may have kept modes only. An expression without a reducer is a map.
 * inputs      as many tensors as modes has operands; outputs as many as the expression has results.
 *
 * Aliasing: an output may be exactly an input (same memory, type and layout of every mode) in a fold that reduces
 * nothing, or where that operand is used in the finish part only; any other overlap is MF_ERROR_OVERLAP. An operand
 * that the expression does not use is not read, so it may overlap anything.
 * On a GPU all tensors are in its memory (on OpenCL data is a cl_mem), and the call puts the work into the device's own
 * stream, CUDA's default stream, without waiting for it: mf_device_wait does.
 * The result's type is the output tensor's. Recent plans are kept in the device, so repeating a call is cheap. */
MF_API mf_status mf_fold(mf_device *device, const char *modes, const char *expression, const DLTensor *inputs,
                         const DLTensor *outputs);

/* The shape that outputs of this fold have: *ndim and shape[0 ... *ndim-1] (room for MF_MAX_RANK). An output mode that
 * occurs only in a window, (2h+i), gets the largest size whose windows start inside the tensor, padded at its end by
 * as much as the window's offset pads it at its start. */
MF_API mf_status mf_fold_shape(const char *modes, int input_count, const DLTensor *inputs, int *ndim, int64_t *shape);

/* How many operands the modes string has and how many results the expression has (negative: a mistake). */
MF_API int mf_modes_inputs(const char *modes);
MF_API int mf_expression_outputs(const char *expression);

/* The type NumPy gives result number k of the expression for inputs of these types. */
MF_API mf_status mf_fold_type(mf_device *device, const char *expression, int input_count, const DLTensor *inputs, int k,
                              DLDataType *type);

/* ---- 5. Plans ------------------------------------------------------------------------------------------------- */

typedef struct mf_plan mf_plan;

enum {
    MF_ORDER_AS_WRITTEN = 1, /* number the reduced elements in the order of the modes string, not of memory */
    MF_ORDER_CONTRACT = 2,   /* the bits of docs/numerics.md, section 3, for log-space products too. Else solver
                                log-certified computes logsumexp(a+b) over larger products: faster, as good (section
                                10), the same from run to run, but not on every instruction set and device */
    MF_ORDER_FREE = 4,       /* any order and fused multiply-adds will do: for sums of products solvers direct and
                                fused on the CPU (section 13), tensor cores on CUDA (section 15), there also for great
                                sums of short types (section 14); the same from run to run. Not with
                                MF_ORDER_CONTRACT */
    /* Of a logsumexp that is a product in log space (section 10) one of these tiers; other folds are not changed.
       Without one it is certified where there are outputs enough, and exact else. */
    MF_LOG_EXACT = 8,      /* one exp a term */
    MF_LOG_CERTIFIED = 16, /* a product of exponentials with a certificate; what fails it exactly. Not with orders */
    MF_LOG_FAST = 32       /* without it: wrong without a word where factors do not line up. Not with orders */
};

/* Wishes for a plan. Start from {0}: every zero means "the library chooses". */
typedef struct mf_options {
    const char *solver; /* "map", "inner", "multi:swap" (a form of one) ...; null: the first that fits, or
                           MODEFOLD_SOLVER's. "openblas": sum(a*b) of f32 or f64, of any strides, in OpenBLAS's order */
    uint32_t flags;     /* MF_ORDER_AS_WRITTEN, MF_ORDER_CONTRACT or MF_ORDER_FREE, and a tier; others are
                           MF_ERROR_ARGUMENT */
    int threads;        /* at most this many threads; 0: the device's */
} mf_options;

/* Plans a fold of tensors with these shapes, strides and types; their data pointers are not looked at, and none of
 * the arguments is kept. options may be null. */
MF_API mf_status mf_plan_create(mf_device *device, const char *modes, const char *expression, const DLTensor *inputs,
                                const DLTensor *outputs, const mf_options *options, mf_plan **plan);

/* Runs a plan on any memory of the planned layout: inputs[i] points to element [0,0,...] of operand i (DLTensor's
 * data + byte_offset), outputs likewise. Several threads may execute one plan at once (on outputs of their own).
 * stream is null on the CPU; on a GPU it is a CUstream (cudaStream_t) or a cl_command_queue, null the device's own.
 * There nothing is allocated and nobody waits, as CUDA graphs want it; executions of one plan
 * follow each other in one stream, because they share the plan's workspace. On OpenCL the pointers are cl_mem.
 * Element pointers must be aligned to their type. */
MF_API mf_status mf_plan_execute(const mf_plan *plan, const void *const *inputs, void *const *outputs, void *stream);

/* The same for tensors of the planned layout, of which data and byte_offset are looked at: the way to run a plan on
 * part of a cl_mem. */
MF_API mf_status mf_plan_execute_tensors(const mf_plan *plan, const DLTensor *inputs, const DLTensor *outputs,
                                         void *stream);

/* Plans the gradients of a fold: from the gradient d of some number L by the fold's output, those of L by its inputs.
 * Everything up to output is as in mf_plan_create; the expression is one reducer,
 *     sum  mean  logsumexp  max  min        of  x   x+y   x-y   x*y        where x and y are two of the operands,
 * of floats. Modes that an operand has not are summed in its gradient.
 *
 * output_gradient  d: the output's shape, any float type and strides.
 * gradients        one tensor for every operand, of the operand's shape, with a float type and strides of its own; one
 *                  with dtype.bits = 0 (a zeroed DLTensor) is not wanted. At least one is.
 * options          solver: "gradient" (the same as null); "gradient-exact", which takes one exp for every term of a
 *                  logsumexp, as the flag MF_LOG_EXACT does; "gradient-products", which on a GPU makes products of
 *                  matrices of few terms, too. There is no unchecked way.
 *
 * The plan is executed as every plan: inputs are the fold's operands in order, then its output as it was computed (read
 * for logsumexp only, else it may be null), then d; outputs are the wanted gradients, in the operands' order.
 *
 * An output of -inf under logsumexp and max, or of inf under min, gives zero, whatever d is; so does an output none of
 * whose elements takes part. max and min send d to the winner with the smallest index in the order as written. Nothing
 * of the size of all terms is made; on the CPU a call allocates once at most about five times the bytes of operands and
 * output (of short types more: it computes in f32 and f64), and what its folds need. On a GPU the plan of a max or min
 * has 12 bytes of the device's memory for each output (f64: 16) and 8 for each element of a wanted gradient. Bits and
 * errors: docs/numerics.md, section 11.
 * Errors: those of mf_plan_create; MF_ERROR_UNSUPPORTED for other expressions, for windows and diagonals under sum,
 * mean and logsumexp, and for more than 12 operands; MF_ERROR_TYPE where it is not of floats.
 * Aliasing: a gradient overlaps nothing else. */
MF_API mf_status mf_plan_gradient(mf_device *device, const char *modes, const char *expression, const DLTensor *inputs,
                                  const DLTensor *output, const DLTensor *output_gradient, const DLTensor *gradients,
                                  const mf_options *options, mf_plan **plan);

/* What the plan does and why, as text; valid as long as the plan. */
MF_API const char *mf_plan_describe(const mf_plan *plan);

/* The name of the plan's solver. */
MF_API const char *mf_plan_solver(const mf_plan *plan);

/* How the outputs of a log-space product were computed, or their gradients (docs/numerics.md, sections 10 and 11). */
typedef enum mf_tier {
    MF_TIER_CERTIFIED = 0, /* from a product of exponentials that was found good */
    MF_TIER_WIDE = 1,      /* gradients of f32: the same in f64, where f32 was not good */
    MF_TIER_EXACT = 2,     /* with one exp a term */
    MF_TIER_UNCHECKED = 3  /* by solver log-fast, which does not look */
} mf_tier;

/* How many outputs all executions of the plan have computed in this way so far; 0 for plans that do not count: those of
 * other solvers. On a GPU it waits for the device's own stream (executions in others have to be over), and is -1 where
 * that fails. */
MF_API int64_t mf_plan_tier_count(const mf_plan *plan, mf_tier tier);

/* Frees a plan. Null is fine. */
MF_API void mf_plan_destroy(mf_plan *plan);

/* ---- 6. Your own operation ------------------------------------------------------------------------------------ */

/* A monoid on states of state_size bytes, given as callbacks on blocks of n, which run on the CPU only; use it in an
 * expression as name(x, y, ...) for result 0, name.1(x, y, ...) for result 1 and so on. combine must be associative.
 *   identity  states[0 ... n-1] = the neutral element
 *   lift      state i = the state of the one element values[0][i], values[1][i] ... (input_count arrays of input type)
 *   combine   left i = left i combined with right i; state i of an array lies at base + i * stride bytes; left and
 *             right elements never overlap
 *   finish    results[k][i] = result k of state i (output_count arrays of output type)
 * Order: with commutative = 1 as every reduction (docs/numerics.md). With commutative = 0 the elements are combined
 * strictly in the order of the modes string (the last reduced mode fastest), neighbours in pairs: the brackets of a
 * balanced tree over each tile of 4096, then over the tiles.
 * Callbacks are called from several threads at once and must not fail; context is passed through. */
typedef struct mf_operation {
    const char *name;   /* letters, digits, '_'; not a built-in name */
    int input_count;    /* 1 ... 8 */
    int output_count;   /* 1 ... 8 */
    mf_type input_type; /* MF_F32, MF_F64, MF_I64 or MF_U64 */
    mf_type output_type;
    size_t state_size; /* bytes, 1 ... 4096; states are aligned to 16 bytes when this is a multiple of 16 */
    int commutative;
    void (*identity)(void *context, int64_t n, void *states);
    void (*lift)(void *context, int64_t n, const void *const *values, void *states);
    void (*combine)(void *context, int64_t n, void *left, int64_t left_stride, const void *right, int64_t right_stride);
    void (*finish)(void *context, int64_t n, const void *states, void *const *results);
    void *context;
} mf_operation;

/* Makes the operation known to the device (copied; the name too). Define it before the plans that use it. */
MF_API mf_status mf_operation_define(mf_device *device, const mf_operation *operation);

/* The same as text, which runs on every device, with the same bits:
 *
 *     mf_operation_define_text(device, "ordered affine(s, t): identity p = 1, q = 0; lift p = s, q = t; "
 *                                      "combine p = p1*p2, q = q1*p2 + q2; finish q");
 *     mf_fold(device, "ij,ij->i", "affine(a,b)", inputs, &out);      // x = s x + t for all (s, t) of a row, from x = 0
 *
 * A state is 1 to 8 numbers, which identity names and sets to the neutral element. lift makes them of the 1 to 8
 * arguments; combine makes p of p1 and p2, the left and the right state's; finish gives the results (1 to 8), which
 * without it are the numbers themselves. Numbers are of one type: f32, or f64, i64 or u64 where that stands before the
 * name. "ordered", before the name too, stands for commutative = 0. The expressions are those of mf_fold without
 * reducers, with names instead of operands; what they give is converted to the type. A step may set further names for
 * what follows in it, which keep their expressions' types: "combine d = m2 - m1, n = n1 + n2, m = m1 + d*(n2/n)" (n is
 * here the new one).
 * The same text again is no mistake. */
MF_API mf_status mf_operation_define_text(mf_device *device, const char *text);

#ifdef __cplusplus
}
#endif

#endif
