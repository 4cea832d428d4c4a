/* Floats to every element type: the stores of every instruction set against the definition on one element, for values
 * at and beside everything that they round, clamp and truncate at. */
#include "kernel_tables.h"
#include "scalar.h"
#include "vocab/convert.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

enum { MOST = 1 << 20, GUARD = 64 };
static double *values;
static float *floats;
static int count;

/* v, and what is a rounding away in either class, with both signs. */
static void add(double v)
{
    const double near[] = {v, nextafter(v, INFINITY), nextafter(v, -INFINITY), (double)nextafterf((float)v, INFINITY),
                           (double)nextafterf((float)v, -INFINITY)};
    for (int i = 0; i < 10 && count < MOST; i++)
        values[count++] = i < 5 ? near[i] : -near[i - 5];
}

static void make_values(void)
{
    const double wholes[] = {0, 1, 127, 128, 255, 256, 32767, 32768, 65535, 65536, 2147483647, 2147483648, 4294967295};
    const double others[] = {NAN, INFINITY, DBL_MAX, DBL_MIN, 5e-324, FLT_MAX, FLT_MIN, 1e-45, 0x1p63, 0x1p64, 0x1p128};
    for (size_t i = 0; i < sizeof wholes / sizeof wholes[0]; i++)
        for (double part = -1; part <= 1; part += .25)
            add(wholes[i] + part);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        add(others[i]);
    /* every number of the short floats, and half way to the next one */
    for (int h = 0; h < 0x7f80; h++) {
        const double bf16 = mf_bf16_to_f64((uint16_t)h), half = mf_f16_to_f64((uint16_t)(h % 0x7c00));
        add(bf16 + (mf_bf16_to_f64((uint16_t)(h + 1)) - bf16) / 2);
        add(half + (mf_f16_to_f64((uint16_t)(h % 0x7c00 + 1)) - half) / 2);
        add(h % 2 ? bf16 : half);
    }
    for (int h = 0; h < 0x7e; h++) {
        const double e4 = mf_f8e4m3_to_f64((uint8_t)h), e5 = mf_f8e5m2_to_f64((uint8_t)(h % 0x7b));
        add(e4 + (mf_f8e4m3_to_f64((uint8_t)(h + 1)) - e4) / 2);
        add(e5 + (mf_f8e5m2_to_f64((uint8_t)(h % 0x7b + 1)) - e5) / 2);
    }
    for (int i = 0; i < count; i++)
        floats[i] = (float)values[i];
}

/* n values from the one at `first` on; nothing behind the last one may be written. */
static int stores_as_defined(const struct kernels *k, enum dtype type, enum cls cls, int first, int n)
{
    static unsigned char got[MOST * 8 + GUARD], one[8];
    const size_t size = (size_t)mf_dtypes[type].size;
    memset(got + (size_t)n * size, 0xa5, GUARD);
    k->store[type][cls](got, cls == CLS_F32 ? (const void *)(floats + first) : (const void *)(values + first), n);
    for (int i = 0; i < n; i++) {
        union value v = {.f64 = values[first + i]};
        if (cls == CLS_F32)
            v.f32 = floats[first + i];
        mf_value_store(type, cls, v, one);
        if (memcmp(one, got + (size_t)i * size, size) != 0)
            return CHECK_MSG(0, "%s: %a as %s", k->name, values[first + i], mf_dtypes[type].name);
    }
    for (int i = 0; i < GUARD; i++)
        if (got[(size_t)n * size + (size_t)i] != 0xa5)
            return CHECK_MSG(0, "%s: %d values as %s, and more", k->name, n, mf_dtypes[type].name);
    return 1;
}

static void test_isa(void (*fill)(struct kernels *), int full)
{
    static struct kernels k;
    memset(&k, 0, sizeof k);
    fill(&k);
    (void)full; /* every table has all stores */
    for (int type = 0; type < DT_COUNT; type++)
        for (enum cls cls = CLS_F32; cls <= CLS_F64; cls++) {
            int good = stores_as_defined(&k, (enum dtype)type, cls, 0, count);
            for (int n = 0; n < 700 && good; n += 1 + n / 70)
                good = stores_as_defined(&k, (enum dtype)type, cls, n, n);
            CHECK(good);
        }
}

int main(void)
{
    values = malloc(MOST * sizeof *values);
    floats = malloc(MOST * sizeof *floats);
    if (!values || !floats)
        return 1;
    make_values();
    CHECK(count > 900000 && count < MOST);
    test_tables(test_isa);
    free(values);
    free(floats);
    return check_done("test_stores");
}
