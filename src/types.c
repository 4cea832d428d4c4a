/* Element types: names, DLPack codes, NumPy's promotion rules. */
#include "expr.h"

#if defined(DLPACK_VERSION) && DLPACK_VERSION < 60
#define DEVICE_TYPE(tensor) ((int)(tensor)->ctx.device_type)
#else
#define DEVICE_TYPE(tensor) ((int)(tensor)->device.device_type)
#endif

const struct dtype_info mf_dtypes[DT_COUNT] = {
#define DTYPE(name, bytes, code, bits, cls, storage) {#name, bytes, code, bits, CLS_##cls},
#include "dtypes.def"
#undef DTYPE
};

const char *const mf_class_names[CLS_COUNT] = {"f32", "f64", "i64", "u64"};

int mf_dtype_find(DLDataType type)
{
    if (type.lanes != 1)
        return -1;
    for (int t = 0; t < DT_COUNT; t++)
        if (mf_dtypes[t].code == type.code && mf_dtypes[t].bits == type.bits)
            return t;
    return -1;
}

int mf_tensor_memory(const DLTensor *tensor)
{
    return DEVICE_TYPE(tensor);
}

int mf_dtype_named(const char *name, size_t length)
{
    for (int t = 0; t < DT_COUNT; t++)
        if (strlen(mf_dtypes[t].name) == length && !memcmp(mf_dtypes[t].name, name, length))
            return t;
    return -1;
}

const char *mf_type_name(DLDataType type)
{
    int t = mf_dtype_find(type);
    return t < 0 ? NULL : mf_dtypes[t].name;
}

static int is_float(enum dtype t)
{
    return t <= DT_f8e5m2;
}

static int is_unsigned(enum dtype t)
{
    return t >= DT_u8 && t <= DT_u64;
}

/* Bits of an integer; bool counts as 1. */
static int integer_bits(enum dtype t)
{
    return t == DT_bool ? 1 : mf_dtypes[t].bits;
}

static enum dtype promote_integers(enum dtype a, enum dtype b)
{
    if (a == DT_bool)
        return b;
    if (b == DT_bool)
        return a;
    if (is_unsigned(a) == is_unsigned(b))
        return integer_bits(a) >= integer_bits(b) ? a : b;
    enum dtype u = is_unsigned(a) ? a : b, s = is_unsigned(a) ? b : a;
    if (u == DT_u64)
        return DT_f64;
    enum dtype wider = u == DT_u8 ? DT_i16 : u == DT_u16 ? DT_i32 : DT_i64;
    return integer_bits(s) > integer_bits(wider) ? s : wider;
}

/* A float with an integer: the narrowest float that NumPy takes for both. */
static enum dtype promote_float_integer(enum dtype f, enum dtype i)
{
    int bits = integer_bits(i);
    if (bits <= 8 || f == DT_f64)
        return f;
    return bits <= 16 ? DT_f32 : DT_f64;
}

enum dtype mf_dtype_promote(enum dtype a, enum dtype b)
{
    if (a == b)
        return a;
    if (!is_float(a) && !is_float(b))
        return promote_integers(a, b);
    if (!is_float(b))
        return promote_float_integer(a, b);
    if (!is_float(a))
        return promote_float_integer(b, a);
    if (a == DT_f64 || b == DT_f64)
        return DT_f64;
    if (mf_dtypes[a].bits == mf_dtypes[b].bits) /* f16 with bf16, e4m3 with e5m2: neither holds the other */
        return DT_f32;
    return mf_dtypes[a].bits > mf_dtypes[b].bits ? a : b;
}

enum dtype mf_dtype_float(enum dtype type)
{
    if (is_float(type))
        return type;
    int bits = integer_bits(type);
    return bits <= 8 ? DT_f16 : bits <= 16 ? DT_f32 : DT_f64;
}
