/* The tests of sums of products and other terms, against the plain sum of terms that are computed first. Included by
 * test_kernels.c after kernel_args.h. */
#ifndef MF_KERNEL_PRODUCTS_H
#define MF_KERNEL_PRODUCTS_H

static union value term_of(enum term_kind kind, enum cls cls, union value a, union value b)
{
    const int single = cls == CLS_F32;
    const union value less = single ? (union value){.f32 = a.f32 - b.f32} : (union value){.f64 = a.f64 - b.f64};
    const union value size = kind == TERM_MAGNITUDE ? a : less;
    if (kind == TERM_DISTANCE || kind == TERM_MAGNITUDE)
        return single ? (union value){.f32 = fabsf(size.f32)} : (union value){.f64 = fabs(size.f64)};
    const union value x = kind == TERM_PRODUCT ? a : less, y = kind == TERM_PRODUCT ? b : less;
    return single ? (union value){.f32 = x.f32 * y.f32} : (union value){.f64 = x.f64 * y.f64};
}

static enum term_kind random_term(void)
{
    return (enum term_kind)random_to(TERM_PRODUCT, TERM_MAGNITUDE);
}

/* y: other rows, one row for all, or x itself. */
static void test_product_rows(const char *isa, product_rows_fn *kernel, struct type t)
{
    static union value terms[TILE];
    const struct type out = {.cls = t.cls};
    for (int64_t trial = 0; trial < TRIALS; trial++) {
        const struct rows r = random_rows(t, trial);
        const enum term_kind kind = random_term();
        const int64_t y_pitch = trial % 4 == 0 ? r.pitch : trial % 4 == 1 ? 0 : r.n + random_to(0, 9);
        const int64_t elements = (r.rows - 1) * y_pitch + r.n;
        const void *y = r.x;
        if (trial % 4) {
            void *const other = guard_last(in2_pages, elements, bytes_of(t));
            fill_random(t, other, elements);
            y = other;
        }
        void *results = guard_last(out_pages, r.rows, cls_bytes[t.cls]);
        kernel(results, r.x, y, r.rows, r.n, r.pitch, y_pitch, kind);
        int64_t row = 0, good = 1;
        for (; good && row < r.rows; row += good) {
            for (int64_t i = 0; i < r.n; i++)
                terms[i] = term_of(kind, t.cls, loaded[row * r.pitch + i], load(t, y, row * y_pitch + i));
            good = same(t.cls, load(out, results, row), fold_tile(FOLD_SUM, t.cls, terms, r.n), 0);
        }
        if (!CHECK_MSG(good, "%s terms %d of %s: row %ld of %ld, n %ld, pitches %ld %ld", isa, (int)kind, name_of(t),
                       (long)row, (long)r.rows, (long)r.n, (long)r.pitch, (long)y_pitch))
            return;
    }
}

/* y: a row each, or a number each. */
static void test_product_chain(const char *isa, product_chain_fn *kernel, struct type t)
{
    const struct type plain = {.cls = t.cls};
    for (int64_t trial = 0; trial < TRIALS; trial++) {
        const struct chain c = random_chain(t, trial, STEPS);
        const enum term_kind kind = random_term();
        const int unit = (int)(trial % 2), goes_on = trial % 3 == 0;
        const int64_t pitch = unit ? c.n + random_to(0, 9) : random_to(0, 3),
                      all = (c.count - 1) * pitch + (unit ? c.n : 1);
        char *const y = guard_last(in2_pages, all, bytes_of(t));
        fill_random(t, y, all);
        const void *rows[STEPS];
        for (int64_t k = 0; k < c.count; k++)
            rows[k] = y + k * pitch * bytes_of(t);
        char *const out = guard_last(out_pages, c.n, cls_bytes[t.cls]);
        union value *const before = malloc((size_t)c.n * sizeof *before);
        fill_random(plain, out, c.n);
        for (int64_t i = 0; i < c.n; i++)
            before[i] = load(plain, out, i);
        kernel(out, goes_on ? out : NULL, c.x, rows, unit, c.count, c.n, trial % 5 && c.count >= 8 ? c.x : NULL, kind);
        int64_t i = 0;
        for (; i < c.n; i++) {
            union value v = before[i];
            for (int64_t k = 0; k < c.count; k++) {
                const union value p = term_of(kind, t.cls, loaded[k * c.n + i], load(t, rows[k], unit ? i : 0));
                v = k || goes_on ? combine(FOLD_SUM, t.cls, v, p) : p;
            }
            if (!same(t.cls, load(plain, out, i), v, 0))
                break;
        }
        free(before);
        if (!CHECK_MSG(i == c.n, "%s terms %d down %s: column %ld of %ld, %ld rows, unit %d, goes on %d", isa,
                       (int)kind, name_of(t), (long)i, (long)c.n, (long)c.count, unit, goes_on))
            return;
    }
}

static void test_products(const struct kernels *k)
{
    for (int d = 0; d < DT_COUNT; d++) {
        const enum cls cls = dtype_cls[d];
        const struct type t = {.cls = cls, .is_dtype = dtype_bytes[d] < cls_bytes[cls], .dtype = (enum dtype)d};
        if (k->products[d].rows == NULL)
            continue;
        test_product_rows(k->name, k->products[d].rows, t);
        test_product_chain(k->name, k->products[d].chain, t);
    }
}

#endif
