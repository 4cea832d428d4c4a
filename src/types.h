/* Element types and arithmetic classes, as data. Every table in the library is indexed by these. */
#ifndef MF_TYPES_H
#define MF_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* DLPack's type codes. Debian's header (0.6) lacks the later ones, so all are written here. */
enum {
    MF_DL_INT = 0,
    MF_DL_UINT = 1,
    MF_DL_FLOAT = 2,
    MF_DL_BFLOAT = 4,
    MF_DL_BOOL = 6,
    MF_DL_F8_E4M3 = 10, /* kDLFloat8_e4m3fn */
    MF_DL_F8_E5M2 = 12  /* kDLFloat8_e5m2 */
};

enum dtype {
#define DTYPE(name, bytes, code, bits, cls, storage) DT_##name,
#include "dtypes.def"
#undef DTYPE
    DT_COUNT
};

/* The class a value is computed in. F32 and F64 are IEEE binary32 and binary64; I64 and U64 wrap modulo 2^64. */
enum cls { CLS_F32, CLS_F64, CLS_I64, CLS_U64, CLS_COUNT };

/* The contract's constants (docs/numerics.md): a tile is STEPS x LANES consecutive elements. */
enum { LANES = 128, STEPS = 32, TILE = LANES * STEPS };

#endif
