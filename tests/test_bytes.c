/* var, std, norm and summaries of bytes: the kernels of every instruction set against plain sums, values by hand
 * (numerics.md: of bytes), and that no accumulator overflows in long rows of extremes. */
#define _GNU_SOURCE
#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernel_tables.h"
#include "modefold.h"

enum { PARTS = 4, MOST = 1 << 20, COLUMNS = 9000 }; /* parts: sum, least, greatest, sum of squares */

static uint8_t *bytes_end; /* behind it no byte may be read */
static int64_t found[PARTS][COLUMNS], want[PARTS][COLUMNS];
static uint64_t seed = 1;
static mf_device *device;

static int64_t random_to(int64_t least, int64_t most)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return least + (int64_t)((seed * UINT64_C(0x2545f4914f6cdd1d) >> 16) % (uint64_t)(most - least + 1));
}

/* Any bytes, or only one kind of extremes, whose squares are the greatest of their type. */
static uint8_t *random_bytes(int64_t n, int64_t trial)
{
    static const uint8_t extremes[] = {0x80, 0xff, 0x7f, 0};
    uint8_t *x = bytes_end - n;
    for (int64_t i = 0; i < n; i++)
        x[i] = trial % 3 ? (uint8_t)random_to(0, 255) : extremes[trial / 3 % 4];
    return x;
}

static void add_to(int64_t *const part[PARTS], int64_t at, int is_signed, uint8_t byte)
{
    const int64_t x = is_signed ? (int8_t)byte : byte;
    part[0][at] += x;
    part[1][at] = x < part[1][at] ? x : part[1][at];
    part[2][at] = x > part[2][at] ? x : part[2][at];
    part[3][at] += x * x;
}

static void start(int64_t at)
{
    want[0][at] = want[3][at] = 0;
    want[1][at] = INT64_MAX;
    want[2][at] = INT64_MIN;
}

static int is_same(int64_t count, unsigned parts)
{
    for (int p = 0; p < PARTS; p++)
        for (int64_t i = 0; i < count && (parts >> p & 1); i++)
            if (found[p][i] != want[p][i])
                return 0;
    return 1;
}

static struct summary places(unsigned parts)
{
    return (struct summary){.sum = parts & 1 ? found[0] : NULL,
                            .low = parts & 2 ? found[1] : NULL,
                            .high = parts & 4 ? found[2] : NULL,
                            .squares = parts & 8 ? found[3] : NULL};
}

static void test_rows(const struct kernels *k, enum dtype type)
{
    static const int64_t lengths[] = {1, 2, 15, 16, 17, 31, 33, 63, 64, 65, 127, 128, 130, 255, 256, 300, 4095, 4096};
    for (int64_t trial = 0; trial < 300; trial++) {
        const int64_t n = trial < 36 ? lengths[trial / 2] : random_to(1, trial % 4 ? 400 : 4096);
        const int64_t rows = random_to(1, n > 400 ? 40 : 100), pitch = trial % 5 ? n : n + random_to(0, 70);
        const unsigned parts = trial % 2 ? 15 : (unsigned)random_to(0, 15);
        const uint8_t *x = random_bytes((rows - 1) * pitch + n, trial);
        for (int64_t r = 0; r < rows; r++) {
            start(r);
            for (int64_t i = 0; i < n; i++)
                add_to((int64_t *const[]){want[0], want[1], want[2], want[3]}, r, type == DT_i8, x[r * pitch + i]);
        }
        const struct summary out = places(parts);
        k->summary[type](&out, x, rows, n, pitch);
        if (!CHECK_MSG(is_same(rows, parts), "%s rows: type %d, parts %u, %ld rows, n %ld, pitch %ld", k->name,
                       (int)type, parts, (long)rows, (long)n, (long)pitch))
            return;
        k->squares[type](found[3], x, rows, n, pitch);
        CHECK_MSG(is_same(rows, 8), "%s squares: type %d, %ld rows, n %ld", k->name, (int)type, (long)rows, (long)n);
    }
}

static void test_columns(const struct kernels *k, enum dtype type)
{
    static const int64_t lengths[] = {1, 16, 17, 63, 64, 65, 100, 127, 128, 500, 4095, 4096, 4097, COLUMNS};
    for (int64_t trial = 0; trial < 200; trial++) {
        const int64_t n = trial < 28 ? lengths[trial / 2] : random_to(1, 600), gap = trial % 4 ? 0 : random_to(0, 9);
        const int64_t fit = MOST / (n + gap), most = fit < LONG_CHAIN ? fit : LONG_CHAIN;
        const int64_t count = trial % 3 ? random_to(1, most) : most;
        const unsigned parts = trial % 2 ? 13 : (unsigned)random_to(0, 15) & 13;
        const uint8_t *x = random_bytes(count * n + (count - 1) * gap, trial);
        const void *row[LONG_CHAIN];
        const int append = trial % 4 < 2;
        for (int64_t i = 0; i < n; i++) {
            start(i);
            for (int p = 0; p < PARTS && append; p++)
                want[p][i] = found[p][i] = random_to(-300, 300);
            for (int64_t r = 0; r < count; r++)
                add_to((int64_t *const[]){want[0], want[1], want[2], want[3]}, i, type == DT_i8, x[r * (n + gap) + i]);
        }
        for (int64_t r = 0; r < count; r++)
            row[r] = x + r * (n + gap);
        const struct summary out = places(parts);
        k->summary_chain[type](&out, append, row, count, n, count >= 8 ? row : NULL);
        if (!CHECK_MSG(is_same(n, parts), "%s columns: type %d, parts %u, %ld rows, n %ld, append %d", k->name,
                       (int)type, parts, (long)count, (long)n, append))
            return;
    }
}

static void test_isa(void (*fill)(struct kernels *), int full)
{
    static struct kernels k;
    if (!full) /* bytes have kernels of their own in full tables only */
        return;
    memset(&k, 0, sizeof k);
    fill(&k);
    test_rows(&k, DT_i8);
    test_rows(&k, DT_u8);
    test_columns(&k, DT_i8);
    test_columns(&k, DT_u8);
}

/* ---- values ---- */

/* Folds one byte operand to doubles with a solver, or the library's choice. */
static mf_status fold_with(const char *solver, const char *modes, const char *expression, const DLTensor *in,
                           const DLTensor *out)
{
    const mf_options options = {.solver = solver};
    mf_plan *plan;
    mf_status status = mf_plan_create(device, modes, expression, in, out, &options, &plan);
    if (status != MF_OK)
        return status;
    status = mf_plan_execute_tensors(plan, in, out, NULL);
    mf_plan_destroy(plan);
    return status;
}

/* The expression of n bytes by each solver, along the bytes, and down 17 columns that all have them. */
static void expect(const char *expression, mf_type type, const uint8_t *x, int64_t n, double value)
{
    static const char *const solvers[] = {NULL, "reference", "inner", "outer"};
    enum { WIDTH = 17 };
    uint8_t *wide = malloc((size_t)(n * WIDTH));
    if (wide == NULL)
        return;
    for (int64_t i = 0; i < n; i++)
        memset(wide + i * WIDTH, x[i], WIDTH);
    const int64_t shape[2] = {n, WIDTH};
    for (int down = 0; down < 2; down++)
        for (size_t s = 0; s < sizeof solvers / sizeof solvers[0]; s++) {
            double y[WIDTH] = {-77};
            const DLTensor in = mf_tensor(down ? wide : x, type, down ? 2 : 1, shape);
            const DLTensor out = mf_tensor(y, MF_F64, down, shape + 1);
            const mf_status status = fold_with(solvers[s], down ? "ij->j" : "i->", expression, &in, &out);
            if (status == MF_ERROR_UNSUPPORTED && solvers[s])
                continue; /* outer has columns */
            CHECK_MSG(status == MF_OK && (y[0] == value || (isnan(value) && isnan(y[0]))) &&
                          (!down || !memcmp(&y[0], &y[WIDTH - 1], 8)),
                      "%s of %ld bytes, %s, %s: %.17g, not %.17g %s", expression, (long)n, down ? "down" : "along",
                      solvers[s] ? solvers[s] : "any", y[0], value, status == MF_OK ? "" : mf_error());
        }
    free(wide);
}

static void test_values(void)
{
    enum { LONG = 100001 };
    static uint8_t x[LONG];
    for (int i = 0; i < LONG; i++)
        x[i] = i % 2 ? 1 : 0;
    static const mf_type types[] = {MF_I8, MF_U8};
    for (int t = 0; t < 2; t++) {
        const mf_type type = types[t];
        expect("var(a)", type, x, 10000, 0.25);
        expect("var(a,1)", type, x, 4, 1.0 / 3);
        expect("std(a)", type, x, 6, 0.5);
        expect("norm(a)", type, x, 100000, sqrt(50000));
        expect("var(a,1)", type, x, 1, NAN);
        expect("var(a,2)", type, x, 2, INFINITY);
        expect("var(a)", type, x, 1, 0);
        expect("var(a*a)", type, x, 100, 0.25); /* a map: as other types */
    }
    expect("var(a)", MF_BOOL, x, 10000, 0.25);
    expect("norm(a)", MF_BOOL, x, 32, 4);
    for (int i = 0; i < LONG; i++)
        x[i] = i % 2 ? (uint8_t)(1 + i % 255) : 0;
    expect("var(a)", MF_BOOL, x, LONG - 1, 0.25); /* any byte but 0 is true */
    expect("sum(a)", MF_BOOL, x, LONG, (LONG - 1) / 2);
    expect("f64(all(a))+2*f64(any(a))", MF_BOOL, x + 1, 1, 3);
    expect("f64(all(a))+2*f64(any(a))", MF_BOOL, x, LONG, 2);
    expect("f64(min(a))+2*f64(max(a))", MF_BOOL, x + 1, 257, 2);
    for (int i = 0; i < LONG; i++)
        x[i] = i % 2 ? 1 : 0;
    expect("var(bool(a))", MF_I8, x, 100, 0.25);
    expect("var(a>0)", MF_I8, x, 100, 0.25);
    expect("var(i8(a*2))", MF_U8, x, 100, 1);
    /* -128 and 127 in turns, 127 once more: n^2 var is (n^2 - 1) / 4 of 255^2 */
    for (int i = 0; i < LONG; i++)
        x[i] = i % 2 ? 0x80 : 0x7f;
    expect("var(a)", MF_I8, x, LONG - 1, 127.5 * 127.5);
    expect("var(a)", MF_U8, x, LONG - 1, 0.25);
    expect("norm(a)", MF_I8, x, LONG, sqrt(50001.0 * 127 * 127 + 50000.0 * 128 * 128));
    expect("var(a)*300", MF_I8, x, 3, 127.5 * 127.5 * 800.0 / 3);
    memset(x, 0x80, LONG);
    expect("norm(a)", MF_I8, x, 1 << 16, 256.0 * 128);
    expect("var(a)", MF_I8, x, LONG, 0);
    memset(x, 0xff, LONG);
    expect("sum(a*a)", MF_U8, x, LONG, (double)LONG * 255 * 255);
    expect("var(a)", MF_U8, x, LONG, 0);
    expect("std(a)", MF_I8, x, LONG, 0);
    x[0] = 0; /* 255^2 (n - 1) / n^2 */
    expect("var(a)", MF_U8, x, 1 << 16, 65025.0 * ((1 << 16) - 1) / (65536.0 * 65536));
}

/* Of windows that leave their tensor, what is inside counts; of nothing the variance is NaN, and the norm 0. */
static void test_windows(void)
{
    static const int8_t x[6] = {-128, 127, 5, 5, 9, 1};
    static const char *const solvers[] = {NULL, "reference", "inner"};
    const int64_t in_shape = 6, out_shape = 8;
    const double var[8] = {NAN, NAN, 0, 127.5 * 127.5, 3721, 0, 4, 16}, norm[3] = {0, 0, 128};
    double y[2][8];
    const DLTensor in = mf_tensor(x, MF_I8, 1, &in_shape);
    const DLTensor out[2] = {mf_tensor(y[0], MF_F64, 1, &out_shape), mf_tensor(y[1], MF_F64, 1, &out_shape)};
    for (size_t s = 0; s < sizeof solvers / sizeof solvers[0]; s++) {
        CHECK(fold_with(solvers[s], "(i+j-3)->i with j=2", "var(a); norm(a)", &in, out) == MF_OK);
        for (int i = 0; i < 8; i++)
            CHECK_MSG(y[0][i] == var[i] || (isnan(y[0][i]) && isnan(var[i])), "window %d: %.17g", i, y[0][i]);
        for (int i = 0; i < 3; i++)
            CHECK(y[1][i] == norm[i]);
    }
}

int main(void)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), size = MOST + 70 * 4200;
    const size_t whole = (size + page - 1) / page * page;
    uint8_t *memory = mmap(NULL, whole + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory + whole, page, PROT_NONE) != 0)
        return 1;
    bytes_end = memory + whole;
    test_tables(test_isa);
    if (mf_device_open("cpu", &device) != MF_OK)
        return 1;
    test_values();
    test_windows();
    mf_device_close(device);
    return check_done("test_bytes");
}
