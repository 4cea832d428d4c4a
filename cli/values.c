/* Test data and single elements as text. */
#include "values.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scalar.h" /* src/: loads and stores of every element type */

const char *const values_kind_names[VALUES_COUNT] = {
#define VALUES(name, what) #name,
    VALUES_KINDS
#undef VALUES
};
const char *const values_kind_whats[VALUES_COUNT] = {
#define VALUES(name, what) what,
    VALUES_KINDS
#undef VALUES
};

/* Bits of the significand without the leading one; -1 for integers and bool. */
static int mantissa_bits(enum dtype type)
{
    switch (type) {
    case DT_f16:
        return 10;
    case DT_bf16:
        return 7;
    case DT_f32:
        return 23;
    case DT_f64:
        return 52;
    case DT_f8e4m3:
        return 3;
    case DT_f8e5m2:
        return 2;
    default:
        return -1;
    }
}

/* ---- floats ---- */

/* Sum of four 16-bit numbers, scaled to a standard deviation near 1; the scale fills the whole significand. */
static double normal(uint64_t bits)
{
    int64_t sum = -131070;
    for (int i = 0; i < 4; i++)
        sum += (int64_t)(bits >> 16 * i & 0xffff);
    return (double)sum * 2.6431902341e-5;
}

static double uniform(uint64_t bits)
{
    return (double)(bits >> 11) * 0x1p-53;
}

/* normal() times 2^-reach ... 2^reach. */
static double wide(uint64_t bits, int reach)
{
    double value = normal(bits * 0x2545f4914f6cdd1du);
    int shift = (int)(bits >> 40) % (2 * reach + 1) - reach;
    for (; shift > 0; shift--)
        value *= 2;
    for (; shift < 0; shift++)
        value *= 0.5;
    return value;
}

/* A float's special bit pattern number 0 ... 15. */
static uint64_t special_float(enum dtype type, unsigned number)
{
    int m = mantissa_bits(type), bits = mf_dtypes[type].bits;
    uint64_t one = 1, sign = number & 1 ? one << (bits - 1) : 0;
    uint64_t unit = one << m, top = (one << (bits - 1)) - unit; /* all exponent bits: infinity, in f8e4m3 256 */
    switch (number >> 1) {
    case 0:
        return sign; /* 0, -0 */
    case 1:
        return sign | 1; /* the least denormal */
    case 2:
        return sign | (unit - 1); /* the greatest denormal */
    case 3:
        return sign | unit; /* the least normal number */
    case 4:
        return sign | (type == DT_f8e4m3 ? 0x7e : top - 1); /* the greatest */
    case 5:
        return sign | (type == DT_f8e4m3 ? 0x7d : top); /* infinity */
    case 6:
        return sign | (type == DT_f8e4m3 ? 0x7f : top + unit / 2); /* NaN */
    default:
        return sign | (type == DT_f8e4m3 ? 0x7f : top + 1); /* a NaN with another payload */
    }
}

static uint64_t special_integer(enum dtype type, unsigned number)
{
    int bits = mf_dtypes[type].bits;
    uint64_t one = 1, top = one << (bits - 1);
    static const uint64_t bytes[4] = {0, 2, 128, 255};
    if (type == DT_bool)
        return bytes[number & 3];
    switch (number & 7) {
    case 0:
        return 0;
    case 1:
        return ~(uint64_t)0;
    case 2:
        return top;
    case 3:
        return top - 1;
    case 4:
        return top + 1;
    case 5:
        return ~(uint64_t)0 - 1;
    case 6:
        return one << (number % (unsigned)bits);
    default:
        return 1;
    }
}

static int64_t integer_value(enum dtype type, enum values_kind kind, uint64_t bits)
{
    int is_unsigned = type >= DT_u8 && type <= DT_u64;
    if (type == DT_bool)
        return kind == VALUES_ones ? 1 : (int64_t)(bits >> 60 & 1);
    switch (kind) {
    case VALUES_uniform:
        return (int64_t)(bits % 101);
    case VALUES_integers:
        return (int64_t)(bits % 17) - (is_unsigned ? 0 : 8);
    case VALUES_ones:
        return 1;
    case VALUES_ties:
        return (int64_t)(bits % 3) - (is_unsigned ? 0 : 1);
    case VALUES_wide:
        return (int64_t)(bits << 8) >> (8 + bits % 56);
    default:
        return (int64_t)bits;
    }
}

static double float_value(enum dtype type, enum values_kind kind, uint64_t bits)
{
    int is_tiny = type == DT_f8e4m3 || type == DT_f8e5m2;
    switch (kind) {
    case VALUES_uniform:
        return uniform(bits);
    case VALUES_integers:
        return (double)((int64_t)(bits % 17) - 8);
    case VALUES_wide:
        return wide(bits, is_tiny ? 6 : type == DT_f16 ? 10 : 20);
    case VALUES_ones:
        return 1;
    case VALUES_ties:
        return bits % 4 == 3 ? -0.0 : (double)((int64_t)(bits % 4) - 1);
    default:
        return normal(bits);
    }
}

/* Which special values occur in one array, and how often: drawn from its seed, so that not all results are NaN. */
struct special_choice {
    uint64_t mask; /* of 16 patterns */
    unsigned rate; /* one in so many elements */
};

static struct special_choice choose_special(uint64_t seed)
{
    static const unsigned rates[4] = {3, 40, 500, 5000};
    uint64_t bits = values_bits(seed, 0x5bec1a1);
    struct special_choice choice = {bits & (bits >> 16) & 0xffff, rates[bits >> 62]};
    if (!choice.mask)
        choice.mask = 1;
    return choice;
}

/* The pattern for this element, or -1 where it is an ordinary one. */
static int special_number(const struct special_choice *choice, uint64_t bits)
{
    unsigned number = (unsigned)(bits >> 8 & 15);
    if ((bits >> 32) % choice->rate)
        return -1;
    while (!(choice->mask >> number & 1))
        number = (number + 1) & 15;
    return (int)number;
}

static void store_bits(void *to, uint64_t bits, int size)
{
    uint8_t u8 = (uint8_t)bits;
    uint16_t u16 = (uint16_t)bits;
    uint32_t u32 = (uint32_t)bits;
    memcpy(to,
           size == 1   ? (void *)&u8
           : size == 2 ? (void *)&u16
           : size == 4 ? (void *)&u32
                       : (void *)&bits,
           (size_t)size);
}

static uint64_t load_bits(const void *from, int size)
{
    uint8_t u8 = 0;
    uint16_t u16 = 0;
    uint32_t u32 = 0;
    uint64_t u64 = 0;
    memcpy(size == 1   ? (void *)&u8
           : size == 2 ? (void *)&u16
           : size == 4 ? (void *)&u32
                       : (void *)&u64,
           from, (size_t)size);
    return size == 1 ? u8 : size == 2 ? u16 : size == 4 ? u32 : u64;
}

void values_fill(void *memory, DLDataType dtype, int64_t count, enum values_kind kind, uint64_t seed)
{
    int found = mf_dtype_find(dtype);
    if (found < 0)
        return;
    enum dtype type = (enum dtype)found;
    int size = mf_dtypes[type].size, is_float = mf_cls_is_float(mf_dtypes[type].cls);
    struct special_choice choice = choose_special(seed);
    char *to = memory;
    for (int64_t i = 0; i < count; i++, to += size) {
        uint64_t bits = values_bits(seed, (uint64_t)i);
        int number = kind == VALUES_special ? special_number(&choice, values_bits(bits, 1)) : -1;
        union value value = {.u64 = 0};
        if (number >= 0) {
            store_bits(to, is_float ? special_float(type, (unsigned)number) : special_integer(type, (unsigned)number),
                       size);
        } else if (is_float) {
            value.f64 = float_value(type, kind, bits);
            mf_value_store(type, CLS_F64, value, to);
        } else {
            value.i64 = integer_value(type, kind, bits);
            mf_value_store(type, CLS_I64, value, to);
        }
    }
}

/* ---- text ---- */

/* The shortest decimal that, rounded to the type, gives the same bits. */
static void shortest(enum dtype type, double value, const void *element, char *text)
{
    int size = mf_dtypes[type].size;
    for (int digits = 1; digits <= 17; digits++) {
        union value back = {.u64 = 0};
        char stored[8];
        snprintf(text, 64, "%.*g", digits, value);
        back.f64 = strtod(text, NULL);
        mf_value_store(type, CLS_F64, back, stored);
        if (memcmp(stored, element, (size_t)size) != 0)
            continue;
        const char *exponent = strchr(text, 'e');
        if (exponent && exponent[1] == '+' && strtol(exponent + 1, NULL, 10) < 16)
            snprintf(text, 64, "%.0f", value); /* 2048, not 2.05e+03 */
        return;
    }
}

char *values_decimal(const void *element, DLDataType dtype, char *text)
{
    int found = mf_dtype_find(dtype);
    strcpy(text, "?");
    if (found < 0)
        return text;
    enum dtype type = (enum dtype)found;
    union value value = mf_value_load(type, element);
    if (type == DT_bool)
        strcpy(text, value.i64 ? "True" : "False");
    else if (mf_dtypes[type].cls == CLS_I64)
        snprintf(text, 64, "%" PRId64, value.i64);
    else if (mf_dtypes[type].cls == CLS_U64)
        snprintf(text, 64, "%" PRIu64, value.u64);
    else {
        double real = mf_dtypes[type].cls == CLS_F64 ? value.f64 : (double)value.f32;
        if (real != real)
            strcpy(text, "nan");
        else
            shortest(type, real, element, text);
    }
    return text;
}

char *values_print(const void *element, DLDataType dtype, char *text)
{
    char decimal[64];
    int size = (dtype.bits + 7) / 8;
    snprintf(text, 64, "0x%0*" PRIx64 " (%.40s)", size * 2, load_bits(element, size),
             values_decimal(element, dtype, decimal));
    return text;
}
