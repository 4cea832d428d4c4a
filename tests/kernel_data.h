/* Random rows and chains of elements for the tests of kernels, in memory whose next page may not be touched. */
#ifndef KERNEL_DATA_H
#define KERNEL_DATA_H

#include <float.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"
#include "kernel_oracle.h"

static uint64_t seed = 1;

static uint64_t random_bits(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed * UINT64_C(0x2545f4914f6cdd1d);
}

static int64_t random_to(int64_t least, int64_t most)
{
    return least + (int64_t)((random_bits() >> 16) % (uint64_t)(most - least + 1));
}

/* Bits of the float types' NaN, infinities, zeros, denormals, least and greatest values. */
static const uint64_t special_f64[] = {
    0x7ff8000000000000, 0x7ff0000000000000, 0xfff0000000000000, 0x8000000000000000, 0, 1,
    0x8000000000000123, 0x000fffffffffffff, 0x7fefffffffffffff};
static const uint64_t special_f32[] = {0x7fc00000, 0x7f800000, 0xff800000, 0x80000000, 0,
                                       1,          0x80000123, 0x007fffff, 0x7f7fffff};
static const uint64_t special_f16[] = {0x7e00, 0x7c00, 0xfc00, 0x8000, 0, 1, 0x8123, 0x03ff, 0x7bff};
static const uint64_t special_bf16[] = {0x7fc0, 0x7f80, 0xff80, 0x8000, 0, 1, 0x8012, 0x007f, 0x7f7f};
enum { SPECIALS = sizeof special_f64 / sizeof special_f64[0] };

static uint64_t bits_of(struct type t, double x)
{
    const union value v = {.f64 = x};
    const float f = (float)x;
    uint32_t bits;
    memcpy(&bits, &f, 4);
    return t.cls == CLS_F64 ? v.u64 : !t.is_dtype ? bits : t.dtype == DT_bf16 ? bits >> 16 : mf_f32_to_f16(f);
}

/* mode 0: numbers of moderate size; 1: a special one now and then; 2: specials but NaN and infinities;
 * 3: -0.0 and 0.0 (integers: 0 and all ones); 4: any bits; 5 and more: around a power of two.
 * Integers get any bits in the modes that say nothing. */
static uint64_t random_element(struct type t, int mode)
{
    const int is_float = (t.cls == CLS_F32 || t.cls == CLS_F64) && bytes_of(t) > 1;
    const uint64_t *special = t.is_dtype && t.dtype == DT_f16    ? special_f16
                              : t.is_dtype && t.dtype == DT_bf16 ? special_bf16
                              : t.cls == CLS_F32                 ? special_f32
                                                                 : special_f64;
    if (!is_float)
        return mode == 0   ? (uint64_t)random_to(-3, 3)
               : mode == 3 ? UINT64_MAX * (uint64_t)random_to(0, 1)
                           : random_bits();
    if (mode == 4 || (mode == 1 && random_to(0, 40) == 0))
        return mode == 4 ? random_bits() : special[random_to(0, SPECIALS - 1)];
    if (mode == 2)
        return special[random_to(3, SPECIALS - 2)];
    if (mode == 3)
        return special[random_to(0, 9) == 0 ? 4 : 3];
    const double x = (double)random_to(-1000000, 1000000) * 1e-6;
    const double v = copysign(fabs(x) < 0.9 ? 1 + x / 16 : 8 * x, x);
    return bits_of(t, mode >= 5 ? v + ldexp(mode % 2 ? -1 : 1, mode - 5) : v);
}

/* Whether arrays of floats are filled with numbers whose exponentials tip one sum's rounding after the other: they rise
 * through a float's range, once or several times, with masks between. */
static int rising;

static void fill_rising(struct type t, void *array, int64_t elements)
{
    static const double masks[] = {-INFINITY, -1e9, -FLT_MAX};
    const double scale = t.cls == CLS_F64 ? 8 : 1, low = scale * (double)random_to(-180, -60);
    const double high = scale * (double)random_to(-70, 70), mask = masks[random_to(0, 2)];
    const int64_t period = random_to(0, 1) ? elements : INT64_C(32) << random_to(0, 7), often = random_to(0, 3);
    for (int64_t i = 0; i < elements; i++) {
        const double at = low + (high - low) * (double)(i % period) / (double)period;
        const double x = at + scale * 1e-3 * (double)random_to(-6000, 6000);
        const uint64_t bits = bits_of(t, often && random_to(0, 1 << often) == 0 ? mask : x);
        memcpy((char *)array + i * bytes_of(t), &bits, (size_t)bytes_of(t));
    }
}

static void fill_random(struct type t, void *array, int64_t elements)
{
    const int any = (int)random_to(0, 5), mode = any < 5 ? any : (int)random_to(5, 65), bytes = bytes_of(t);
    if (rising && bytes > 1) {
        fill_rising(t, array, elements);
        return;
    }
    for (int64_t i = 0; i < elements; i++) {
        const uint64_t bits = random_element(t, mode);
        memcpy((char *)array + i * bytes, &bits, (size_t)bytes); /* the low bytes: little-endian, as the rest here */
    }
}

/* Pages with a forbidden one behind them. */
struct guarded {
    char *start;
    size_t bytes, page;
};

static struct guarded guard_create(size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), size = (bytes + page - 1) / page * page;
    char *start = mmap(NULL, size + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED || mprotect(start + size, page, PROT_NONE) != 0) {
        perror("mmap");
        exit(1);
    }
    return (struct guarded){start, size, page};
}

/* The last elements of it. */
static void *guard_last(struct guarded g, int64_t elements, int bytes)
{
    return g.start + g.bytes - (size_t)(elements * bytes);
}

static struct guarded in_pages, in2_pages, out_pages, out2_pages;
static union value *loaded, *waiting; /* MAX_ELEMENTS */

enum { MAX_ELEMENTS = 32 * 4608, TRIALS = 60 };

static int64_t random_length(int64_t trial)
{
    static const int64_t lengths[] = {1,  2,  3,  4,  5,   6,   7,   8,   9,   12,  15,  16,   17,   24,   31,
                                      32, 33, 48, 63, 64,  65,  96,  100, 127, 128, 129, 200,  256,  300,  1000,
                                      13, 14, 11, 10, 120, 500, 511, 513, 384, 640, 777, 4095, 4096, 3968, 2000};
    const int64_t count = sizeof lengths / sizeof lengths[0];
    return trial < count ? lengths[trial] : random_to(1, trial % 3 == 0 ? 4096 : 300);
}

/* A random block of rows, filled; its elements are in loaded[] too. */
struct rows {
    int64_t rows, n, pitch;
    const void *x;
};

static struct rows random_rows(struct type t, int64_t trial)
{
    struct rows r = {.n = random_length(trial)};
    r.rows = random_to(1, r.n > 300 ? 5 : 70);
    r.pitch = trial % 3 == 0 ? r.n + random_to(0, 9) : trial % 7 == 1 ? random_to(0, r.n) : r.n;
    const int64_t elements = (r.rows - 1) * r.pitch + r.n;
    void *x = guard_last(in_pages, elements, bytes_of(t));
    fill_random(t, x, elements);
    r.x = x;
    for (int64_t i = 0; i < elements; i++)
        loaded[i] = load(t, x, i);
    return r;
}

/* A random chain of at most `most` rows; element (k, i) is in loaded[k * n + i]. */
struct chain {
    int64_t count, n;
    const void *x[LONG_CHAIN];
};

enum { MAX_COLUMNS = 9000 };

static struct chain random_chain(struct type t, int64_t trial, int64_t most)
{
    struct chain c = {.n = trial == TRIALS - 1 ? random_to(4097, MAX_COLUMNS) : random_length(trial)};
    const int64_t fit = MAX_ELEMENTS / (c.n + 9);
    c.count = random_to(1, most < fit ? most : fit);
    const int64_t gap = random_to(0, 3) * random_to(0, 3), bytes = bytes_of(t);
    const int upwards = trial % 3 == 0; /* and with no gap touching */
    char *x = guard_last(in_pages, c.count * c.n + (c.count - 1) * gap, bytes_of(t));
    fill_random(t, x, c.count * c.n + (c.count - 1) * gap);
    for (int64_t k = 0; k < c.count; k++) {
        const int64_t row = upwards ? k : c.count - 1 - k;
        c.x[row] = x + k * (c.n + gap) * bytes;
        for (int64_t i = 0; i < c.n; i++)
            loaded[row * c.n + i] = load(t, c.x[row], i);
    }
    return c;
}

#endif
