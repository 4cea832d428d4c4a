/* Terms of logs of sums, added from left to right, against lanes' states. */
#ifndef MF_TESTS_KERNEL_TERMS_H
#define MF_TESTS_KERNEL_TERMS_H

#include "kernel_data.h"

/* m and s of column i from its terms. */
static void sum_terms(enum cls cls, const struct chain *c, const char *terms, int64_t pitch, int64_t i, char *m,
                      char *s)
{
    const int bytes = cls_bytes[cls];
    double high = -INFINITY;
    float sum_f32 = 0;
    double sum_f64 = 0;
    for (int64_t k = 0; k < c->count; k++) {
        const union value x = loaded[k * c->n + i], term = load((struct type){.cls = cls}, terms, k * pitch + i);
        const double here = cls == CLS_F32 ? (double)x.f32 : x.f64;
        high = here > high ? here : high;
        sum_f32 += term.f32;
        sum_f64 += term.f64;
    }
    const float high_f32 = (float)high;
    memcpy(m + i * bytes, cls == CLS_F32 ? (const void *)&high_f32 : &high, (size_t)bytes);
    memcpy(s + i * bytes, cls == CLS_F32 ? (const void *)&sum_f32 : &sum_f64, (size_t)bytes);
}

static void test_terms(const char *isa, const struct kernels *k, struct type t)
{
    const enum cls cls = t.cls;
    const struct type plain = {.cls = cls};
    const enum dtype type = t.is_dtype ? t.dtype : cls == CLS_F32 ? DT_f32 : DT_f64;
    int64_t compared = 0;
    for (int64_t trial = 0; trial < TRIALS; trial++) {
        const struct chain c = random_chain(t, trial, 32);
        const int64_t pitch = (c.n + LSE_COLUMNS - 1) / LSE_COLUMNS * LSE_COLUMNS;
        char *const terms = malloc((size_t)(c.count * pitch) * 8);
        char *const m = guard_last(out_pages, c.n, cls_bytes[cls]);
        char *const s = guard_last(out2_pages, c.n, cls_bytes[cls]);
        int64_t i = 0;
        int fits = k->lse_terms[type](terms, pitch, c.x, c.count, c.n);
        for (; fits && i < c.n; i++)
            sum_terms(cls, &c, terms, pitch, i, m, s);
        free(terms);
        fits = fits && k->lse[cls].plain(m, s, c.n);
        for (i = 0; fits && i < c.n; i++) {
            const struct state want = chain_lse(cls, loaded + i, c.count, c.n);
            if (!same(cls, load(plain, m, i), want.a, 1) || !same(cls, load(plain, s, i), want.b, 0))
                break;
        }
        compared += fits;
        if (!CHECK_MSG(!fits || i == c.n, "%s terms %s: column %ld of %ld, count %ld", isa, name_of(t), (long)i,
                       (long)c.n, (long)c.count))
            return;
    }
    CHECK_MSG(compared > TRIALS / 16, "%s terms %s: %ld of %ld were sums", isa, name_of(t), (long)compared,
              (long)TRIALS);
}

static void test_all_terms(const struct kernels *k)
{
    for (int d = 0; d < DT_COUNT; d++)
        if (k->lse_terms[d] != NULL)
            test_terms(
                k->name, k,
                (struct type){.cls = dtype_cls[d], .is_dtype = d != DT_f32 && d != DT_f64, .dtype = (enum dtype)d});
}

#endif
