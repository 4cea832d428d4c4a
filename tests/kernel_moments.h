/* Chains of moments with left neighbours, against a plain program; test_kernels.c has their other tests. */
#ifndef MF_TESTS_KERNEL_MOMENTS_H
#define MF_TESTS_KERNEL_MOMENTS_H

#include "kernel_data.h"

/* One lane or MOMENTS_LANES, and left neighbours of other counts, the last of which may be where the result goes. */
static void test_moments_joined(const char *isa, moments_chain_fn *kernel, struct type t)
{
    static struct state lefts[MOMENTS_LEFTS][MAX_COLUMNS];
    const enum cls cls = t.cls;
    const struct type plain = {.cls = cls};
    for (int64_t trial = 0; trial < TRIALS; trial++) {
        const struct chain c = random_chain(t, trial, 32);
        const int64_t lanes = trial % 2 && c.count >= MOMENTS_LANES ? MOMENTS_LANES : 1;
        void *out[2] = {guard_last(out_pages, c.n, cls_bytes[cls]), guard_last(out2_pages, c.n, cls_bytes[cls])};
        char *const memory = malloc((size_t)(c.n * (MOMENTS_LEFTS + 1)) * 16), *left[2] = {memory, memory + c.n * 8};
        struct moments_chain j = {.x = c.x,
                                  .lanes = lanes,
                                  .count = lanes > 1 ? 1 : c.count,
                                  .lefts = random_to(0, MOMENTS_LEFTS),
                                  .spare_mean = memory,
                                  .spare_m2 = memory + c.n * 8,
                                  .next = c.count >= MOMENTS_LANES ? c.x : NULL};
        for (int64_t q = 0; q < j.lefts; q++) {
            const int here = q == j.lefts - 1 && trial % 3;
            for (int p = 0; p < 2; p++) {
                left[p] = here ? out[p] : left[p] + c.n * 16;
                fill_random(plain, left[p], c.n);
            }
            j.left[q] = (struct moments_left){left[0], left[1], random_to(1, 2100)};
            for (int64_t i = 0; i < c.n; i++)
                lefts[q][i] =
                    (struct state){.a = load(plain, left[0], i), .b = load(plain, left[1], i), .n = j.left[q].count};
        }
        kernel(&j, out[0], out[1], c.n);
        int64_t i = 0;
        for (; i < c.n; i++) {
            struct state lane[MOMENTS_LANES] = {{.n = 0}};
            for (int64_t l = 0; l < lanes; l++)
                lane[l] = chain_moments(cls, lane[l], loaded + l * c.n + i, j.count, c.n);
            for (int64_t apart = 1; apart < lanes; apart *= 2)
                for (int64_t l = 0; l < lanes; l += 2 * apart)
                    lane[l] = merge_moments(cls, lane[l], lane[l + apart]);
            for (int64_t q = 0; q < j.lefts; q++)
                lane[0] = merge_moments(cls, lefts[q][i], lane[0]);
            if (!same(cls, load(plain, out[0], i), lane[0].a, 0) || !same(cls, load(plain, out[1], i), lane[0].b, 0))
                break;
        }
        free(memory);
        if (!CHECK_MSG(i == c.n, "%s joined moments %s: column %ld of %ld, %ld lanes of %ld, %ld to the left", isa,
                       name_of(t), (long)i, (long)c.n, (long)lanes, (long)j.count, (long)j.lefts))
            return;
    }
}

#endif
