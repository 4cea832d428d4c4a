/* Chains of moments with left neighbours, against a plain program; test_kernels.c has their other tests. */
#ifndef MF_TESTS_KERNEL_MOMENTS_H
#define MF_TESTS_KERNEL_MOMENTS_H

#include "kernel_data.h"

/* One lane or several, and left neighbours of other counts. */
static void test_moments_joined(const char *isa, moments_chain_fn *kernel, int least, struct type t)
{
    static struct state lefts[MOMENTS_LEFTS][MAX_COLUMNS];
    const enum cls cls = t.cls;
    const struct type plain = {.cls = cls};
    for (int64_t trial = 0; trial < TRIALS; trial++) {
        const struct chain c = random_chain(t, trial, 32);
        int64_t lanes = trial % 2 && least && c.n >= least ? MOMENTS_LANES >> random_to(0, 2) : 1;
        lanes = c.count >= 2 * lanes ? lanes : 1;
        void *out[2] = {guard_last(out_pages, c.n, cls_bytes[cls]), guard_last(out2_pages, c.n, cls_bytes[cls])};
        char *const memory = malloc((size_t)(c.n * MOMENTS_LEFTS) * 16);
        struct moments_chain j = {.x = c.x,
                                  .lanes = lanes,
                                  .count = c.count,
                                  .lefts = least ? random_to(0, MOMENTS_LEFTS) : 0,
                                  .next = c.count >= 2 * MOMENTS_LANES ? c.x : NULL};
        for (int64_t l = 0; l < lanes; l++)
            j.first[l + 1] = j.first[l] + (lanes > 1 ? random_to(1, 2) : c.count);
        for (int64_t q = 0; q < j.lefts; q++) {
            char *const left = memory + q * c.n * 16, *const left_m2 = left + c.n * 8;
            fill_random(plain, left, c.n);
            fill_random(plain, left_m2, c.n);
            j.left[q] = (struct moments_left){left, left_m2, random_to(1, 2100)};
            for (int64_t i = 0; i < c.n; i++)
                lefts[q][i] =
                    (struct state){.a = load(plain, left, i), .b = load(plain, left_m2, i), .n = j.left[q].count};
        }
        const void *const mean = j.lefts ? j.left[j.lefts - 1].mean : out[0];
        const void *const m2 = j.lefts ? j.left[j.lefts - 1].m2 : out[1];
        kernel(&j, out[0], out[1], c.n);
        int64_t i = 0;
        for (; i < c.n; i++) {
            struct state lane[MOMENTS_LANES] = {{.n = 0}};
            for (int64_t l = 0; l < lanes; l++)
                lane[l] = chain_moments(cls, lane[l], loaded + j.first[l] * c.n + i, j.first[l + 1] - j.first[l], c.n);
            for (int64_t apart = 1; apart < lanes; apart *= 2)
                for (int64_t l = 0; l < lanes; l += 2 * apart)
                    lane[l] = merge_moments(cls, lane[l], lane[l + apart]);
            for (int64_t q = 0; q < j.lefts; q++)
                lane[0] = merge_moments(cls, lefts[q][i], lane[0]);
            if (!same(cls, load(plain, mean, i), lane[0].a, 0) || !same(cls, load(plain, m2, i), lane[0].b, 0))
                break;
        }
        free(memory);
        if (!CHECK_MSG(i == c.n, "%s joined moments %s: column %ld of %ld, %ld lanes of %ld rows, %ld to the left", isa,
                       name_of(t), (long)i, (long)c.n, (long)lanes, (long)j.first[lanes], (long)j.lefts))
            return;
    }
}

static void test_all_moments_joined(const struct kernels *k)
{
    for (int c = CLS_F32; c <= CLS_F64; c++)
        test_moments_joined(k->name, k->moments[c].chain, k->moments_lanes, (struct type){.cls = (enum cls)c});
    for (int d = 0; d < DT_COUNT; d++)
        if (k->moments_chain_from[d] != NULL)
            test_moments_joined(k->name, k->moments_chain_from[d], k->moments_lanes,
                                (struct type){.cls = dtype_cls[d], .is_dtype = 1, .dtype = (enum dtype)d});
}

#endif
