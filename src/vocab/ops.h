/* The maps of ops.def as scalar functions, mf_NAME_CLASS(x, y, z): their one definition, for the reference and for
 * every instruction set. GPU compilers get the same text, piece by piece (gpu/launch.c). */
#ifndef MF_VOCAB_OPS_H
#define MF_VOCAB_OPS_H

#if !defined(__OPENCL_VERSION__) && !defined(__CUDACC_RTC__)
#include <math.h>
#include <stdint.h>
#endif

#include "convert.h"
#include "elementary.h"

#define MF_NAME_(name, suffix) mf_##name##_##suffix
#define MF_NAME(name, suffix) MF_NAME_(name, suffix)
/* for names that OpenCL has as macros, such as max: start is pasted before it could be expanded */
#define MF_PASTE_(start, suffix) start##suffix
#define MF_PASTE(start, suffix) MF_PASTE_(start, suffix)

/* A value chosen from two. A prelude may keep its compiler from looking into the choice. */
#ifndef MF_CHOSEN
#define MF_CHOSEN(value) (value)
#endif

#define BITS 32
#include "ops_float.inc"
#define BITS 64
#include "ops_float.inc"
#define SIGNED 1
#include "ops_int.inc"
#define SIGNED 0
#include "ops_int.inc"

#endif
