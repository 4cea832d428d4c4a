/* Summaries of floats, against the kernels that give their parts one by one; test_bytes.c has those of bytes. */
#ifndef MF_TESTS_KERNEL_SUMMARY_H
#define MF_TESTS_KERNEL_SUMMARY_H

#include "../src/cpu/habits.h"
#include "kernel_data.h"

static void test_summary(const char *isa, const struct kernels *k, struct type t)
{
    enum { ROWS = 40, PARTS = 5 };
    static double parts[PARTS][ROWS], want[PARTS][ROWS];
    const enum cls cls = t.cls;
    const int is_class = dtype_bytes[t.dtype] == cls_bytes[cls];
    const struct type value = {.cls = cls};
    for (int64_t trial = 0; trial < TRIALS; trial++) {
        const struct rows r = random_rows(t, trial);
        const int64_t n = r.n / LANES * LANES, rows = r.rows < ROWS ? r.rows : ROWS;
        const int skip = trial % 4 ? -1 : (int)(trial / 4 % PARTS);
        void *out[PARTS];
        if (n == 0)
            continue;
        for (int p = 0; p < PARTS; p++)
            out[p] = p == skip ? NULL : parts[p];
        k->summary[t.dtype](&(struct summary){out[0], out[1], out[2], out[3], out[4], NULL}, r.x, rows, n, r.pitch);
        for (int p = 0; p < 3; p++) {
            const enum fold op = p == 0 ? FOLD_SUM : p == 1 ? FOLD_MIN : FOLD_MAX;
            (is_class ? k->fold[op][cls] : k->fold_from[op][t.dtype]).rows(want[p], r.x, rows, n, r.pitch);
        }
        (is_class ? k->moments[cls].rows : k->moments_from[t.dtype])(want[3], want[4], r.x, rows, n, r.pitch);
        int good = 1;
        for (int p = 0; p < PARTS; p++)
            for (int64_t row = 0; row < rows && p != skip; row++)
                good &= same(cls, load(value, parts[p], row), load(value, want[p], row), p == 1 || p == 2);
        if (!CHECK_MSG(good, "%s summary %s: %ld rows, n %ld, pitch %ld", isa, name_of(t), (long)rows, (long)n,
                       (long)r.pitch))
            return;
    }
}

/* Columns of chains, begun or continued; moments are whole chains. */
static void test_summary_chain(const char *isa, const struct kernels *k, struct type t)
{
    enum { PARTS = 5 };
    static double parts[PARTS][MAX_COLUMNS], want[PARTS][MAX_COLUMNS];
    const enum cls cls = t.cls;
    const int is_class = dtype_bytes[t.dtype] == cls_bytes[cls];
    const struct type value = {.cls = cls};
    const struct habits habits = mf_habits;
    for (int64_t trial = 0; trial < TRIALS; trial++) {
        mf_habits = mf_habits_known[trial % HABITS_COUNT];
        const struct chain c = random_chain(t, trial, 32);
        const void *const *const next = c.count >= 8 && trial % 3 ? c.x : NULL;
        const unsigned wants = trial % 2 ? (unsigned)random_to(1, 15) : 15; /* sum, low, high, moments */
        const int append = !(wants & 8) && trial % 4 == 1;
        void *out[PARTS];
        for (int p = 0; p < PARTS; p++) {
            out[p] = wants >> (p < 3 ? p : 3) & 1 ? parts[p] : NULL;
            fill_random(value, parts[p], c.n);
            memcpy(want[p], parts[p], (size_t)(c.n * cls_bytes[cls]));
        }
        k->summary_chain[t.dtype](&(struct summary){out[0], out[1], out[2], out[3], out[4], NULL}, append, c.x, c.count,
                                  c.n, next);
        for (int p = 0; p < 3; p++) {
            const enum fold op = p == 0 ? FOLD_SUM : p == 1 ? FOLD_MIN : FOLD_MAX;
            (is_class ? k->fold[op][cls] : k->fold_from[op][t.dtype])
                .chain(want[p], append ? want[p] : NULL, c.x, c.count, c.n, NULL);
        }
        (is_class ? k->moments[cls].chain : k->moments_chain_from[t.dtype])(
            &(struct moments_chain){.x = c.x, .lanes = 1, .count = c.count}, want[3], want[4], c.n);
        int good = 1;
        for (int p = 0; p < PARTS; p++)
            for (int64_t i = 0; i < c.n && out[p]; i++)
                good &= same(cls, load(value, parts[p], i), load(value, want[p], i), p == 1 || p == 2);
        if (!CHECK_MSG(good, "%s chain summary %s: %ld columns, count %ld, parts %u, append %d", isa, name_of(t),
                       (long)c.n, (long)c.count, wants, append))
            break;
    }
    mf_habits = habits;
}

#endif
