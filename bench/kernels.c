/* Speed of the CPU's fold kernels, in GB/s of input read, on data that stays in the L2 cache.
 *
 *   bench_kernels [isa [kernel]] [--dram]     e.g. bench_kernels avx512 rows.sum
 *
 * Each line is a kernel and a type, then size:GB/s (rows: elements a row; chains: count x columns), the median of 7.
 * DRAM gives 10 to 20 GB/s a core, so a kernel well above that is never what the caller waits for. A last argument
 * --dram reads 256 MB instead. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../src/cpu/kernels.h"
#include "measure.h"

void mf_kernels_scalar(struct kernels *k);
void mf_kernels_sse2(struct kernels *k);
void mf_kernels_avx2(struct kernels *k);
void mf_kernels_avx512(struct kernels *k);
void mf_kernels_neon(struct kernels *k);

static int always(void)
{
    return 1;
}
#ifdef MF_HAVE_X86
static int has_avx2(void)
{
    return __builtin_cpu_supports("avx2");
}
static int has_avx512(void)
{
    return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}
#endif

static const struct {
    const char *name;
    void (*fill)(struct kernels *);
    int (*here)(void);
} isas[] = {
    {"scalar", mf_kernels_scalar, always},
#ifdef MF_HAVE_X86
    {"sse2", mf_kernels_sse2, always},         {"avx2", mf_kernels_avx2, has_avx2},
    {"avx512", mf_kernels_avx512, has_avx512},
#endif
#ifdef MF_HAVE_NEON
    {"neon", mf_kernels_neon, always},
#endif
};

static const char *const fold_name[FOLD_COUNT] = {"sum", "prod", "min", "max", "and", "or", "xor", "any"};
static const char *const cls_name[CLS_COUNT] = {"f32", "f64", "i64", "u64"};
static const int cls_bytes[CLS_COUNT] = {4, 8, 8, 8};
static const char *const dtype_name[DT_COUNT] = {
#define DTYPE(name, bytes, code, bits, cls, storage) [DT_##name] = #name,
#include "../src/dtypes.def"
#undef DTYPE
};
static const int dtype_bytes[DT_COUNT] = {
#define DTYPE(name, bytes, code, bits, cls, storage) [DT_##name] = (bytes),
#include "../src/dtypes.def"
#undef DTYPE
};

static const int64_t row_lengths[] = {2, 3, 4, 5, 7, 8, 16, 31, 32, 33, 64, 100, 127, 128, 1000, 4096};
static const int64_t chain_lengths[] = {64, 256, 1024, 4096};

enum { L2_BYTES = 512 << 10, RUNS = 7 };
static size_t data_bytes = L2_BYTES;
static char *data, *out1, *out2;
static const char *only;

/* What to time: one pass over the data. */
struct job {
    enum { ROWS, CHAIN, MOMENTS_ROWS, MOMENTS_CHAIN, LSE_ROWS, LSE_CHAIN, ARG_ROWS, ARG_CHAIN } what;
    const struct kernels *k;
    const struct fold_kernels *fold;
    int which; /* of moments, lse: the class; of arg: 0, 1 */
    int cls;
    int bytes; /* of an element */
    int64_t n, count;
};

/* A thousand rows a call, as the solvers do: results stay in the nearest cache. */
static void pass_rows(const struct job *j, int64_t rows)
{
    for (int64_t r = 0; r < rows; r += 1024) {
        const int64_t here = rows - r < 1024 ? rows - r : 1024;
        const char *const x = data + r * j->n * j->bytes;
        if (j->what == ROWS)
            j->fold->rows(out1, x, here, j->n, j->n);
        else if (j->what == MOMENTS_ROWS)
            j->k->moments[j->which].rows(out1, out2, x, here, j->n, j->n);
        else if (j->what == LSE_ROWS)
            j->k->lse[j->which].rows(out1, out2, x, here, j->n, j->n);
        else
            j->k->arg[j->which][j->cls].rows(out1, (int64_t *)(void *)out2, x, here, j->n, j->n);
    }
}

/* The data as count rows of length elements, taken n columns at a time. */
static int64_t pass_chain(const struct job *j)
{
    const int64_t length = (int64_t)data_bytes / j->bytes / j->count / j->n * j->n;
    for (int64_t i = 0; i < length; i += j->n) {
        const void *x[32];
        for (int64_t k = 0; k < j->count; k++)
            x[k] = data + (k * length + i) * j->bytes;
        if (j->what == CHAIN)
            j->fold->chain(out1, out1, x, j->count, j->n, NULL);
        else if (j->what == MOMENTS_CHAIN)
            j->k->moments[j->which].chain(&(struct moments_chain){.x = x, .lanes = 1, .count = j->count}, out1, out2,
                                          j->n);
        else if (j->what == LSE_CHAIN)
            j->k->lse[j->which].chain(out1, out2, x, j->count, j->n, NULL);
        else
            j->k->arg[j->which][j->cls].chain(out1, (int32_t *)(void *)out2, x, j->count, j->n, 1);
    }
    return length * j->count * j->bytes;
}

static double gigabytes_per_second(const struct job *j)
{
    const int is_rows = j->what == ROWS || j->what == MOMENTS_ROWS || j->what == LSE_ROWS || j->what == ARG_ROWS;
    const int64_t rows = (int64_t)data_bytes / j->bytes / j->n;
    double time[RUNS];
    int64_t bytes = rows * j->n * j->bytes;
    for (int i = -1; i < RUNS; i++) {
        int passes = 0;
        const double start = seconds();
        double now = start;
        for (; now - start < 2e-3; now = seconds(), passes++) {
            if (is_rows)
                pass_rows(j, rows);
            else
                bytes = pass_chain(j);
        }
        if (i >= 0)
            time[i] = (now - start) / passes;
    }
    return 1e-9 * (double)bytes / median(time, RUNS);
}

static void print_line(const char *isa, const char *name, const char *type, struct job j)
{
    if (only != NULL && strstr(name, only) == NULL)
        return;
    printf("%-7s %-14s %-5s", isa, name, type);
    if (strstr(name, "rows") != NULL) {
        for (size_t i = 0; i < sizeof row_lengths / sizeof *row_lengths; i++) {
            j.n = row_lengths[i];
            printf(" %" PRId64 ":%.0f", j.n, gigabytes_per_second(&j));
            fflush(stdout);
        }
    } else {
        for (j.count = 4; j.count <= 32; j.count *= 8)
            for (size_t i = 0; i < sizeof chain_lengths / sizeof *chain_lengths; i++) {
                j.n = chain_lengths[i];
                printf(" %" PRId64 "x%" PRId64 ":%.0f", j.count, j.n, gigabytes_per_second(&j));
            }
    }
    printf("\n");
    fflush(stdout);
}

static void bench_isa(void (*fill)(struct kernels *))
{
    static struct kernels k;
    char name[32];
    memset(&k, 0, sizeof k);
    fill(&k);
    for (int f = 0; f < FOLD_COUNT; f++) {
        for (int from = 0; from < CLS_COUNT + DT_COUNT; from++) {
            const int c = from, d = from - CLS_COUNT;
            const struct fold_kernels *fold = d < 0 ? &k.fold[f][c] : &k.fold_from[f][d];
            struct job j = {.k = &k, .fold = fold, .bytes = d < 0 ? cls_bytes[c] : dtype_bytes[d]};
            const char *type = d < 0 ? cls_name[c] : dtype_name[d];
            snprintf(name, sizeof name, "rows.%s%s", fold_name[f], d < 0 ? "" : ".from");
            j.what = ROWS;
            if (fold->rows != NULL)
                print_line(k.name, name, type, j);
            snprintf(name, sizeof name, "chain.%s%s", fold_name[f], d < 0 ? "" : ".from");
            j.what = CHAIN;
            if (fold->chain != NULL)
                print_line(k.name, name, type, j);
        }
    }
    for (int c = 0; c < 2; c++) {
        struct job j = {.k = &k, .which = c, .bytes = cls_bytes[c]};
        if (k.moments[c].rows != NULL) {
            j.what = MOMENTS_ROWS;
            print_line(k.name, "rows.moments", cls_name[c], j);
            j.what = MOMENTS_CHAIN;
            print_line(k.name, "chain.moments", cls_name[c], j);
        }
        if (k.lse[c].rows != NULL) {
            j.what = LSE_ROWS;
            print_line(k.name, "rows.lse", cls_name[c], j);
            j.what = LSE_CHAIN;
            print_line(k.name, "chain.lse", cls_name[c], j);
        }
    }
    for (int c = 0; c < CLS_COUNT; c++) {
        struct job j = {.k = &k, .which = 1, .cls = c, .bytes = cls_bytes[c]};
        if (k.arg[1][c].rows != NULL) {
            j.what = ARG_ROWS;
            print_line(k.name, "rows.arg", cls_name[c], j);
            j.what = ARG_CHAIN;
            print_line(k.name, "chain.arg", cls_name[c], j);
        }
    }
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[argc - 1], "--dram") == 0) {
        data_bytes = (size_t)256 << 20;
        argc--;
    }
    only = argc > 2 ? argv[2] : NULL;
    data = malloc(data_bytes);
    out1 = calloc(data_bytes, 4);
    out2 = calloc(data_bytes, 4);
    if (data == NULL || out1 == NULL || out2 == NULL)
        return 1;
    for (size_t i = 0; i < data_bytes; i++) /* every type's values stay small and normal */
        data[i] = (char)(i % 4 == 3 ? 0x3f : (i * 7) & 0x3f);
    for (size_t i = 0; i < sizeof isas / sizeof *isas; i++)
        if (isas[i].here() && (argc < 2 || strcmp(argv[1], isas[i].name) == 0))
            bench_isa(isas[i].fill);
    free(data);
    free(out1);
    free(out2);
    return 0;
}
