/* The tests of test_kernels.c for argmin and argmax, and for folds that leave short integers short. */
#ifndef MF_TESTS_KERNEL_ARGS_H
#define MF_TESTS_KERNEL_ARGS_H

#include "kernel_data.h"

static void test_arg_rows(const char *isa, arg_rows_fn *rows, struct type t, int which)
{
    const enum cls cls = t.cls;
    for (int64_t trial = 0; trial < TRIALS; trial++) {
        const struct rows r = random_rows(t, trial);
        void *best = guard_last(out_pages, r.rows, cls_bytes[cls]);
        int64_t *index = guard_last(out2_pages, r.rows, 8), row = 0, good = 1;
        rows(best, index, r.x, r.rows, r.n, r.pitch);
        for (; good && row < r.rows; row += good) {
            const union value *x = loaded + row * r.pitch;
            int64_t want = 0;
            for (int64_t i = 1; i < r.n; i++)
                want = better(cls, which, x[i], x[want]) ? i : want;
            good = index[row] == want && same(cls, load((struct type){.cls = cls}, best, row), x[want], 0);
        }
        if (!CHECK_MSG(good, "%s rows arg%s %s: row %ld of %ld, n %ld, pitch %ld", isa, which ? "max" : "min",
                       name_of(t), (long)row, (long)r.rows, (long)r.n, (long)r.pitch))
            return;
    }
}

static void test_arg_chain(const char *isa, const struct kernels *k, struct type t, int which)
{
    const enum cls cls = t.cls;
    const struct type plain = {.cls = cls};
    arg_chain_fn *const chain = t.is_dtype ? k->arg_chain_from[which][t.dtype] : k->arg[which][cls].chain;
    static union value best_want[MAX_COLUMNS];
    static int32_t index_want[MAX_COLUMNS];
    for (int64_t trial = 0; trial < TRIALS; trial++) {
        const struct chain c = random_chain(t, trial, LONG_CHAIN);
        const int32_t first = trial % 3 == 0 ? 0 : (int32_t)random_to(1, 1000000);
        void *best = guard_last(out_pages, c.n, cls_bytes[cls]);
        int32_t *index = guard_last(out2_pages, c.n, 4);
        fill_random(plain, best, c.n);
        for (int64_t i = 0; i < c.n; i++) {
            best_want[i] = first == 0 ? loaded[i] : load(plain, best, i);
            index_want[i] = first == 0 ? 0 : (index[i] = (int32_t)i);
            for (int64_t j = 0; j < c.count; j++)
                if (better(cls, which, loaded[j * c.n + i], best_want[i])) {
                    best_want[i] = loaded[j * c.n + i];
                    index_want[i] = first + (int32_t)j;
                }
        }
        chain(best, index, c.x, c.count, c.n, first);
        int64_t i = 0;
        while (i < c.n && index[i] == index_want[i] && same(cls, load(plain, best, i), best_want[i], 0))
            i++;
        if (!CHECK_MSG(i == c.n, "%s chain arg%s %s: column %ld of %ld, count %ld", isa, which ? "max" : "min",
                       name_of(t), (long)i, (long)c.n, (long)c.count))
            return;
    }
}

/* min and max that leave short integers short: chains, and halves over their own input. */
static void test_narrow(const char *isa, const struct narrow_kernels *narrow, struct type t, int which)
{
    const enum fold op = which ? FOLD_MAX : FOLD_MIN;
    const int bytes = (int)bytes_of(t);
    static union value want[MAX_COLUMNS];
    for (int64_t trial = 0; trial < TRIALS; trial++) {
        const struct chain c = random_chain(t, trial, LONG_CHAIN);
        void *out = guard_last(out_pages, c.n, bytes);
        const int64_t starts = trial % 2;
        fill_random(t, out, c.n);
        for (int64_t i = 0; i < c.n; i++) {
            want[i] = starts ? loaded[i] : load(t, out, i);
            for (int64_t k = starts; k < c.count; k++)
                want[i] = combine(op, t.cls, want[i], loaded[k * c.n + i]);
        }
        narrow->chain(out, starts ? NULL : out, c.x, c.count, c.n, c.count >= 8 ? c.x : NULL);
        int64_t i = 0, k = 0;
        while (i < c.n && same(t.cls, load(t, out, i), want[i], 0))
            i++;
        narrow->halves(out, out, c.n / 2);
        while (k < c.n / 2 && same(t.cls, load(t, out, k), combine(op, t.cls, want[2 * k], want[2 * k + 1]), 0))
            k++;
        if (!CHECK_MSG(i == c.n && k == c.n / 2, "%s narrow %s %s: %ld, %ld of %ld, count %ld", isa, fold_name[op],
                       name_of(t), (long)i, (long)k, (long)c.n, (long)c.count))
            return;
    }
}

/* Sums of bytes in 16 bits. */
static void test_byte_sums(const char *isa, chain_fn *chain, struct type t)
{
    static int32_t want[MAX_COLUMNS];
    for (int64_t trial = 0; trial < TRIALS; trial++) {
        const struct chain c = random_chain(t, trial, LONG_CHAIN);
        int16_t *out = guard_last(out_pages, c.n, 2);
        const int64_t starts = trial % 2, first = starts ? c.count : c.count / 2;
        for (int64_t i = 0; i < c.n; i++) {
            want[i] = 0;
            for (int64_t k = 0; k < c.count; k++)
                want[i] += (int32_t)loaded[k * c.n + i].i64;
        }
        if (first > 0)
            chain(out, NULL, c.x, first, c.n, first >= 8 ? c.x : NULL);
        if (first < c.count)
            chain(out, first > 0 ? out : NULL, c.x + first, c.count - first, c.n, NULL);
        int64_t i = 0;
        while (i < c.n && (t.dtype == DT_i8 ? out[i] : (uint16_t)out[i]) == want[i])
            i++;
        if (!CHECK_MSG(i == c.n, "%s byte sums %s: %ld of %ld, count %ld", isa, name_of(t), (long)i, (long)c.n,
                       (long)c.count))
            return;
    }
}

#endif
