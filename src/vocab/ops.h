/* The maps of ops.def as scalar functions, mf_NAME_CLASS(x, y, z): their one definition, for the reference and for
 * every instruction set. */
#ifndef MF_VOCAB_OPS_H
#define MF_VOCAB_OPS_H

#include <math.h>
#include <stdint.h>

#include "convert.h"
#include "elementary.h"

#define MF_NAME_(name, suffix) mf_##name##_##suffix
#define MF_NAME(name, suffix) MF_NAME_(name, suffix)

#define T float
#define S f32
#define SQRT sqrtf
#define FMA fmaf
#define FLOOR floorf
#define CEIL ceilf
#define TRUNC truncf
#define RINT rintf
#define FMOD fmodf
#define FABS fabsf
#include "ops_float.inc"

#define T double
#define S f64
#define SQRT sqrt
#define FMA fma
#define FLOOR floor
#define CEIL ceil
#define TRUNC trunc
#define RINT rint
#define FMOD fmod
#define FABS fabs
#include "ops_float.inc"

#define T int64_t
#define S i64
#define SIGNED 1
#define NEGATIVE(x) ((x) < 0)
#include "ops_int.inc"

#define T uint64_t
#define S u64
#define SIGNED 0
#define NEGATIVE(x) 0
#include "ops_int.inc"

#endif
