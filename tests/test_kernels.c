/* Every fold kernel of every instruction set this machine has, by bits, against a plain program written from the
 * comments in kernels.h. Inputs end at a page that may not be read, outputs at one that may not be written. */
#define _GNU_SOURCE
#include "kernel_args.h"
#include "kernel_moments.h"
#include "kernel_summary.h"
#include "kernel_terms.h"
#include "kernel_tables.h"
#include "kernel_products.h"

/* ---- the tests ---- */

static void test_fold_rows(const char *isa, const struct fold_kernels *fold, enum fold op, struct type t)
{
    for (int64_t trial = 0; trial < TRIALS; trial++) {
        const struct rows r = random_rows(t, trial);
        void *out = guard_last(out_pages, r.rows, cls_bytes[t.cls]);
        fold->rows(out, r.x, r.rows, r.n, r.pitch);
        int64_t row = 0;
        while (row < r.rows &&
               same(t.cls, load_cls(t.cls, (char *)out + row * cls_bytes[t.cls]),
                    fold_tile(op, t.cls, loaded + row * r.pitch, r.n), op == FOLD_MIN || op == FOLD_MAX))
            row++;
        if (!CHECK_MSG(row == r.rows, "%s rows %s %s: row %ld of %ld, n %ld, pitch %ld", isa, fold_name[op], name_of(t),
                       (long)row, (long)r.rows, (long)r.n, (long)r.pitch))
            return;
    }
}

static void test_fold_chain(const char *isa, const struct fold_kernels *fold, enum fold op, struct type t)
{
    const struct type plain = {.cls = t.cls};
    static union value want[MAX_COLUMNS];
    for (int64_t trial = 0; trial < TRIALS; trial++) {
        const struct chain c = random_chain(t, trial, t.cls == CLS_I64 || t.cls == CLS_U64 ? LONG_CHAIN : 32);
        void *acc = guard_last(out_pages, c.n, cls_bytes[t.cls]);
        fill_random(plain, acc, c.n);
        for (int64_t i = 0; i < c.n; i++) {
            want[i] = load(plain, acc, i);
            if (op == FOLD_ANY) { /* its states are 0 and 1 */
                want[i] = truth(t.cls, want[i]);
                memcpy((char *)acc + i * cls_bytes[t.cls], &want[i], (size_t)cls_bytes[t.cls]);
            }
            for (int64_t k = 0; k < c.count; k++)
                want[i] = combine(op, t.cls, want[i], loaded[k * c.n + i]);
        }
        fold->chain(acc, acc, c.x, c.count, c.n, c.count >= 8 ? c.x : NULL);
        int64_t i = 0;
        while (i < c.n && same(t.cls, load(plain, acc, i), want[i], op == FOLD_MIN || op == FOLD_MAX))
            i++;
        if (!CHECK_MSG(i == c.n, "%s chain %s %s: column %ld of %ld, count %ld", isa, fold_name[op], name_of(t),
                       (long)i, (long)c.n, (long)c.count))
            return;
    }
}

/* One lane or up to four, and up to four left neighbours, the last of which may be where the result goes. */
static void test_fold_joined(const char *isa, const struct fold_kernels *fold, enum fold op, struct type t)
{
    enum { LEFTS = 4, MOST = 4 };
    const struct type plain = {.cls = t.cls};
    for (int64_t trial = 0; trial < TRIALS; trial++) {
        struct chain c = random_chain(t, trial, 32);
        const int64_t lanes = trial % 2 && c.count >= MOST ? (int64_t)1 << random_to(0, 2) : 1;
        const int64_t lefts = random_to(0, LEFTS), count = lanes == 1 ? c.count : lanes == 2 ? random_to(1, 2) : 1;
        void *out = guard_last(out_pages, c.n, cls_bytes[t.cls]), *spare = malloc((size_t)c.n * 8);
        void *first = malloc((size_t)(c.n * LEFTS) * 8);
        const void *left[LEFTS];
        for (int64_t q = 0; q < LEFTS; q++) {
            left[q] = q == lefts - 1 && trial % 3 ? out : (char *)first + q * c.n * 8;
            fill_random(plain, (void *)(uintptr_t)left[q], c.n);
            for (int64_t i = 0; i < c.n; i++)
                waiting[q * c.n + i] = load(plain, left[q], i);
        }
        const int fetches = trial % 5 > 1;
        const struct joined j = {c.x, left, lanes, count, lefts, spare, c.count >= MOST ? c.x : NULL, fetches};
        fold->joined(&j, out, c.n);
        int64_t i = 0;
        for (; i < c.n; i++) {
            union value lane[MOST], v;
            for (int64_t l = 0; l < lanes; l++) {
                lane[l] = loaded[l * count * c.n + i];
                for (int64_t k = 1; k < count; k++)
                    lane[l] = combine(op, t.cls, lane[l], loaded[(l * count + k) * c.n + i]);
            }
            for (int64_t apart = 1; apart < lanes; apart *= 2)
                for (int64_t l = 0; l < lanes; l += 2 * apart)
                    lane[l] = combine(op, t.cls, lane[l], lane[l + apart]);
            v = lane[0];
            for (int64_t q = 0; q < lefts; q++)
                v = combine(op, t.cls, waiting[q * c.n + i], v);
            if (!same(t.cls, load(plain, out, i), v, 0))
                break;
        }
        free(spare);
        free(first);
        if (!CHECK_MSG(i == c.n, "%s joined %s %s: column %ld of %ld, %ld lanes of %ld, %ld to the left", isa,
                       fold_name[op], name_of(t), (long)i, (long)c.n, (long)lanes, (long)count, (long)lefts))
            return;
    }
}

static int is_canonical(enum cls cls, union value v)
{
    if (cls == CLS_F32)
        return !isnan(v.f32) || v.u64 << 32 == (uint64_t)0x7fc00000 << 32;
    return !isnan(v.f64) || v.u64 == UINT64_C(0x7ff8000000000000);
}

/* An answer's value: a state's, + 0 where that is asked for, and of NaNs the canonical one. */
static int is_answer(struct type t, enum fold op, enum answers answers, union value got, union value state)
{
    if (answers == ANSWERS_PLUS_ZERO && t.cls == CLS_F32)
        state.f32 += 0;
    else if (answers == ANSWERS_PLUS_ZERO)
        state.f64 += 0;
    return same(t.cls, got, state, op == FOLD_MIN || op == FOLD_MAX) &&
           (!answers || t.cls > CLS_F64 || is_canonical(t.cls, got));
}

/* v as an element of type t holds it: rounded, or its last bits. */
static union value kept_by(struct type t, union value v)
{
    const uint64_t element = t.dtype == DT_f16    ? mf_f32_to_f16(v.f32)
                             : t.dtype == DT_bf16 ? mf_f32_to_bf16(v.f32)
                                                  : v.u64;
    return load(t, (const char *)&element, 0);
}

static void test_fold_runs(const char *isa, const struct fold_kernels *fold, enum fold op, struct type t)
{
    for (int64_t trial = 0; trial < TRIALS; trial++) {
        const int64_t n = random_length(trial), run = (int64_t)2 << random_to(0, 6);
        const int stays = t.is_dtype && t.cls <= CLS_F64; /* answers in the type in memory */
        const struct type to = stays ? t : (struct type){.cls = t.cls};
        const enum answers answers = (enum answers)random_to(stays ? 1 : NO_ANSWERS, stays || !t.is_dtype ? 2 : 1);
        void *x = guard_last(in_pages, n + run - 1, bytes_of(t)), *out = guard_last(out_pages, n, bytes_of(to));
        fill_random(t, x, n + run - 1);
        for (int64_t i = 0; i < n + run - 1; i++)
            loaded[i] = load(t, x, i);
        fold->runs(out, x, n, run, answers);
        int64_t i = 0;
        for (; i < n; i++) {
            union value state = fold_tile(op, t.cls, loaded + i, run);
            if (stays) {
                state.f32 += answers == ANSWERS_PLUS_ZERO ? 0.0f : -0.0f;
                state = kept_by(t, state);
            }
            if (!is_answer(to, op, answers, load(to, out, i), state))
                break;
        }
        if (!CHECK_MSG(i == n, "%s runs of %ld, %s %s: %ld of %ld, answers %d", isa, (long)run, fold_name[op],
                       name_of(t), (long)i, (long)n, answers))
            return;
    }
}

static void test_fold_answers(const char *isa, const struct fold_kernels *fold, enum fold op, struct type t)
{
    for (int64_t trial = 0; trial < TRIALS; trial++) {
        const enum answers answers = (enum answers)random_to(NO_ANSWERS, ANSWERS_PLUS_ZERO);
        const int past_cache = (int)random_to(0, 1);
        const int64_t n = random_to(1, trial % 2 ? 9 : 70), rows = random_to(1, trial % 3 ? 30 : 700);
        void *x = guard_last(in_pages, rows * n, bytes_of(t)), *out = guard_last(out_pages, rows, bytes_of(t));
        fill_random(t, x, rows * n);
        for (int64_t i = 0; i < rows * n; i++)
            loaded[i] = load(t, x, i);
        fold->answers(out, x, rows, n, answers, past_cache);
        int64_t r = 0;
        while (r < rows && is_answer(t, op, answers, load(t, out, r), fold_tile(op, t.cls, loaded + r * n, n)))
            r++;
        if (!CHECK_MSG(r == rows, "%s answers %s %s: row %ld of %ld, n %ld, answers %d, past the cache %d", isa,
                       fold_name[op], name_of(t), (long)r, (long)rows, (long)n, answers, past_cache))
            return;
    }
}

static union value pair_of(enum pair pair, enum cls cls, union value a, union value b)
{
    switch (pair) {
    case PAIR_ADD:
        return combine(FOLD_SUM, cls, a, b);
    case PAIR_MUL:
        return combine(FOLD_PROD, cls, a, b);
    case PAIR_MIN:
    case PAIR_MAX:
        return combine(pair == PAIR_MIN ? FOLD_MIN : FOLD_MAX, cls, a, b);
    default:
        break;
    }
    if (cls == CLS_I64 || cls == CLS_U64)
        a.u64 -= b.u64;
    else if (cls == CLS_F32)
        a.f32 = pair == PAIR_SUB ? a.f32 - b.f32 : a.f32 / b.f32;
    else
        a.f64 = pair == PAIR_SUB ? a.f64 - b.f64 : a.f64 / b.f64;
    return a;
}

static void test_pair(const char *isa, pair_fn *kernel, enum pair pair, enum dtype dtype, int64_t most_bytes)
{
    const enum cls cls = dtype_cls[dtype];
    const struct type t = {.cls = cls, .is_dtype = dtype_bytes[dtype] < cls_bytes[cls], .dtype = dtype};
    const int bytes = bytes_of(t);
    for (int64_t trial = 0; trial < TRIALS; trial++) {
        struct pair_rows r = {.n = random_length(trial), .past_cache = (int)random_to(0, 1)};
        const int64_t units = random_to(1, 3);
        r.rows = random_to(1, r.n > 300 ? 3 : 20);
        r.x_unit = (int)(units & 1), r.y_unit = (int)(units >> 1);
        r.x_once = (int)random_to(0, 1), r.y_once = (int)random_to(0, 1);
        r.period = 1;
        while (2 * r.period * bytes <= most_bytes && random_to(0, 3))
            r.period *= 2;
        r.x_pitch = random_to(0, 1) ? (r.x_unit ? r.n + random_to(0, 3) : 1) : 0;
        r.y_pitch = random_to(0, 1) ? (r.y_unit ? r.n : 1) : 0;
        r.out_pitch = r.n + (random_to(0, 1) ? 0 : random_to(0, 20));
        const int64_t all_x = (r.rows - 1) * r.x_pitch + (r.x_unit ? r.n : r.period);
        const int64_t all_y = (r.rows - 1) * r.y_pitch + (r.y_unit ? r.n : r.period);
        char *x = guard_last(in_pages, all_x, bytes), *y = guard_last(in2_pages, all_y, bytes);
        char *out = guard_last(out_pages, (r.rows - 1) * r.out_pitch + r.n, bytes);
        fill_random(t, x, all_x);
        fill_random(t, y, all_y);
        kernel(out, x, y, &r);
        int64_t i = 0;
        for (; i < r.rows * r.n; i++) {
            const int64_t row = i / r.n, e = i % r.n;
            const union value a = load(t, x, row * r.x_pitch + (r.x_unit ? e : e % r.period));
            const union value b = load(t, y, row * r.y_pitch + (r.y_unit ? e : e % r.period));
            const union value got = load(t, out, row * r.out_pitch + e);
            const int canonical = bytes < 4 || cls > CLS_F64 || is_canonical(cls, got);
            if (!same(cls, got, kept_by(t, pair_of(pair, cls, a, b)), pair >= PAIR_MIN) || !canonical)
                break;
        }
        if (!CHECK_MSG(i == r.rows * r.n, "%s pair %d %s: %ld of %ld rows of %ld, units %d %d, period %ld", isa, pair,
                       name_of(t), (long)i, (long)r.rows, (long)r.n, r.x_unit, r.y_unit, (long)r.period))
            return;
    }
}

static void test_stretch(const char *isa, stretch_fn *kernel)
{
    const struct type t = {.cls = CLS_U64, .is_dtype = 1, .dtype = DT_u8};
    for (int64_t trial = 0; trial < TRIALS; trial++) {
        const int64_t size = INT64_C(1) << random_to(0, 3), each = random_to(1, 70), count = random_to(1, 20);
        const int64_t step = size * random_to(0, 3), all = (count - 1) * step + size, n = count * each * size;
        char *x = guard_last(in_pages, all, 1), *out = guard_last(out_pages, n + STRETCH_ROOM, 1);
        fill_random(t, x, all);
        kernel(out, x, count, step, size, each * size);
        int64_t i = 0;
        while (i < n && out[i] == x[i / (each * size) * step + i % size])
            i++;
        if (!CHECK_MSG(i == n, "%s stretch: byte %ld of %ld elements of %ld, %ld times each", isa, (long)i, (long)count,
                       (long)size, (long)each))
            return;
    }
}

/* The second part of a state. logsumexp's sum says nothing where its maximum is not finite (kernels.h). */
static int same_second(enum cls cls, int is_lse, struct state want, union value got)
{
    const double m = cls == CLS_F32 ? (double)want.a.f32 : want.a.f64;
    return (is_lse && !isfinite(m)) || same(cls, got, want.b, 0);
}

static void test_state_rows(const char *isa, states_fn *kernel, struct type t, int is_lse)
{
    const int bytes = cls_bytes[t.cls];
    const struct type out = {.cls = t.cls};
    for (int64_t round = 0; round < (is_lse ? 2 : 1) * TRIALS; round++) {
        const int64_t trial = round % TRIALS;
        rising = round >= TRIALS;
        const struct rows r = random_rows(t, trial);
        rising = 0;
        void *a = guard_last(out_pages, r.rows, bytes), *b = guard_last(out2_pages, r.rows, bytes);
        kernel(a, b, r.x, r.rows, r.n, r.pitch);
        int64_t row = 0, good = 1;
        for (; good && row < r.rows; row += good) {
            const struct state want = state_tile(t.cls, is_lse, loaded + row * r.pitch, r.n);
            good =
                same(t.cls, load(out, a, row), want.a, is_lse) && same_second(t.cls, is_lse, want, load(out, b, row));
        }
        if (!CHECK_MSG(good, "%s rows %s %s: row %ld of %ld, n %ld, pitch %ld", isa, is_lse ? "lse" : "moments",
                       name_of(t), (long)row, (long)r.rows, (long)r.n, (long)r.pitch))
            return;
    }
}

static void test_state_chain(const char *isa, const struct kernels *k, struct type t, int is_lse)
{
    const enum cls cls = t.cls;
    const struct type plain = {.cls = cls};
    moments_chain_fn *const moments = t.is_dtype ? k->moments_chain_from[t.dtype] : k->moments[cls].chain;
    lse_chain_fn *const lse = t.is_dtype ? k->lse_chain_from[t.dtype] : k->lse[cls].chain;
    static struct state want[MAX_COLUMNS];
    for (int64_t round = 0; round < (is_lse ? 2 : 1) * TRIALS; round++) {
        const int64_t trial = round % TRIALS;
        rising = round >= TRIALS;
        const struct chain c = random_chain(t, trial, 32);
        rising = 0;
        void *a = guard_last(out_pages, c.n, cls_bytes[cls]), *b = guard_last(out2_pages, c.n, cls_bytes[cls]);
        fill_random(plain, a, c.n);
        fill_random(plain, b, c.n);
        for (int64_t i = 0; i < c.n; i++) {
            want[i] = (struct state){.a = load(plain, a, i), .b = load(plain, b, i)};
            want[i] = is_lse ? chain_lse(cls, loaded + i, c.count, c.n)
                             : chain_moments(cls, want[i], loaded + i, c.count, c.n);
        }
        if (is_lse)
            lse(a, b, c.x, c.count, c.n, trial % 3 == 0 ? c.x : NULL);
        else
            moments(
                &(struct moments_chain){.x = c.x, .lanes = 1, .count = c.count, .next = trial % 3 == 0 ? c.x : NULL}, a,
                b, c.n);
        int64_t i = 0;
        while (i < c.n && same(cls, load(plain, a, i), want[i].a, is_lse) &&
               same_second(cls, is_lse, want[i], load(plain, b, i)))
            i++;
        if (!CHECK_MSG(i == c.n, "%s chain %s %s: column %ld of %ld, count %ld", isa, is_lse ? "lse" : "moments",
                       name_of(t), (long)i, (long)c.n, (long)c.count))
            return;
    }
}

/* Two rows of random data serve as b's state, at the end of the input pages. For lse, s must not be negative. */
static void test_state_merge(const char *isa, const struct kernels *k, enum cls cls, int is_lse)
{
    const struct type t = {.cls = cls};
    const int bytes = cls_bytes[cls];
    static struct state want[MAX_COLUMNS];
    for (int64_t trial = 0; trial < TRIALS; trial++) {
        const int64_t n = random_length(trial), na = random_to(!is_lse && trial % 5 == 0 ? 0 : 1, 5000);
        const int64_t nb = random_to(!is_lse && trial % 6 == 0 ? 0 : 1, 5000);
        char *b = guard_last(in_pages, 2 * n, bytes), *b2 = b + n * bytes;
        void *a = guard_last(out_pages, n, bytes), *a2 = guard_last(out2_pages, n, bytes);
        fill_random(t, a, n);
        fill_random(t, b, n);
        fill_random(t, a2, n);
        fill_random(t, b2, n);
        for (int64_t i = 0; i < n && is_lse; i++) {
            const union value sum = {.u64 = cls == CLS_F32 ? 0x3f800000u + (uint64_t)i : UINT64_C(0x3ff0000000000000)};
            memcpy((char *)a2 + i * bytes, &sum, (size_t)bytes);
            memcpy(b2 + i * bytes, &sum, (size_t)bytes);
        }
        for (int64_t i = 0; i < n; i++) {
            const struct state sa = {.a = load(t, a, i), .b = load(t, a2, i), .n = na};
            const struct state sb = {.a = load(t, b, i), .b = load(t, b2, i), .n = nb};
            want[i] = is_lse ? merge_lse(cls, sa, sb) : merge_moments(cls, sa, sb);
        }
        if (is_lse)
            k->lse[cls].merge(a, a2, b, b2, n);
        else
            k->moments[cls].merge(a, a2, na, b, b2, nb, n);
        int64_t i = 0;
        while ((na > 0 || nb > 0) && i < n && same(cls, load(t, a, i), want[i].a, is_lse) &&
               same_second(cls, is_lse, want[i], load(t, a2, i)))
            i++;
        if (!CHECK_MSG(i == n || na + nb == 0, "%s merge %s %s: %ld of %ld", isa, is_lse ? "lse" : "moments",
                       cls_name[cls], (long)i, (long)n))
            return;
    }
}

/* Whether an entry is there exactly where kernels.h says so. */
static void expect_entry(const char *isa, const char *table, int row, int column, int expected, int is_there)
{
    CHECK_MSG(expected == is_there, "%s %s[%d][%d] is %s", isa, table, row, column, is_there ? "there" : "null");
}

/* No table loses an entry unnoticed. */
static void test_entries(const struct kernels *k, int full)
{
    for (int op = 0; op < FOLD_COUNT; op++) {
        const int bitwise = op == FOLD_AND || op == FOLD_OR || op == FOLD_XOR;
        for (int c = 0; c < CLS_COUNT; c++) {
            const struct fold_kernels *fold = &k->fold[op][c];
            const int is_float = c <= CLS_F64, here = !bitwise || !is_float;
            expect_entry(k->name, "fold.chain", op, c, here, fold->chain != NULL);
            expect_entry(k->name, "fold.rows", op, c, here, fold->rows != NULL);
            expect_entry(k->name, "fold.joined", op, c, full && is_float && op == FOLD_SUM, fold->joined != NULL);
            expect_entry(k->name, "fold.runs", op, c, full && is_float && op <= FOLD_MAX, fold->runs != NULL);
            expect_entry(k->name, "fold.answers", op, c, full && is_float && op <= FOLD_MAX, fold->answers != NULL);
        }
        for (int d = 0; d < DT_COUNT; d++) {
            const struct fold_kernels *from = &k->fold_from[op][d];
            const int is_short = dtype_bytes[d] < cls_bytes[dtype_cls[d]] && d != DT_f8e4m3 && d != DT_f8e5m2;
            const int here = full && is_short && op != FOLD_PROD && !bitwise;
            expect_entry(k->name, "fold_from.chain", op, d, here, from->chain != NULL);
            expect_entry(k->name, "fold_from.rows", op, d, here, from->rows != NULL);
            expect_entry(k->name, "fold_from.runs", op, d,
                         full && op == FOLD_SUM && (d == DT_f16 || d == DT_bf16 || d == DT_i8 || d == DT_u8),
                         from->runs != NULL);
            expect_entry(k->name, "fold_from.joined", op, d, here && op == FOLD_SUM && dtype_cls[d] == CLS_F32,
                         from->joined != NULL);
        }
    }
    for (int d = 0; d < DT_COUNT; d++) {
        const int is_f8 = d == DT_f8e4m3 || d == DT_f8e5m2, is_float = dtype_cls[d] <= CLS_F64;
        const int is_short = dtype_bytes[d] < cls_bytes[dtype_cls[d]] && !is_f8 && d != DT_bool;
        for (int which = 0; which < 2; which++) {
            const int stays = full && is_short && !is_float;
            expect_entry(k->name, "narrow", which, d, stays, k->narrow[which][d].chain && k->narrow[which][d].halves);
            expect_entry(k->name, "arg_from", which, d, full && is_short, k->arg_from[which][d] != NULL);
            expect_entry(k->name, "arg_chain_from", which, d, full && is_short, k->arg_chain_from[which][d] != NULL);
        }
        for (int pair = 0; pair < PAIR_COUNT; pair++)
            expect_entry(k->name, "pair", pair, d, full && !is_f8 && d != DT_bool && (pair != PAIR_DIV || is_float),
                         k->pair[pair][d] != NULL);
        const int is_byte = d == DT_i8 || d == DT_u8;
        expect_entry(k->name, "summary", 0, d, full && ((is_float && !is_f8) || is_byte), k->summary[d] != NULL);
        expect_entry(k->name, "summary_chain", 0, d,
                     full && (d == DT_f32 || d == DT_f64 || is_byte || (is_float && !is_f8 && k->moments_lanes)),
                     k->summary_chain[d] != NULL);
        expect_entry(k->name, "squares", 0, d, full && is_byte, k->squares[d] != NULL);
        expect_entry(k->name, "products", 0, d, full && is_float && !is_f8,
                     k->products[d].rows != NULL && k->products[d].chain != NULL);
        expect_entry(k->name, "byte_sums", 0, d, full && dtype_bytes[d] == 1 && is_short, k->byte_sums[d] != NULL);
        expect_entry(k->name, "moments_from", 0, d, full && is_float && is_short, k->moments_from[d] != NULL);
        expect_entry(k->name, "lse_from", 0, d, full && is_short && (is_float || is_byte), k->lse_from[d] != NULL);
        const int chains = full && (d == DT_f16 || d == DT_bf16);
        expect_entry(k->name, "moments_chain_from", 0, d, chains, k->moments_chain_from[d] != NULL);
        expect_entry(k->name, "lse_chain_from", 0, d, chains || (full && is_byte), k->lse_chain_from[d] != NULL);
        expect_entry(k->name, "lse_terms", 0, d, full && is_float && !is_f8, k->lse_terms[d] != NULL);
        expect_entry(k->name, "pair_bytes", 0, d, k->pair[PAIR_ADD][d] != NULL, k->pair_bytes[d] > 0);
        expect_entry(k->name, "sums", 0, d, full && (d == DT_f16 || d == DT_bf16), k->sums[d] != NULL);
    }
    for (int c = 0; c < CLS_COUNT; c++) {
        for (int which = 0; which < 2; which++)
            expect_entry(k->name, "arg", which, c, 1, k->arg[which][c].rows != NULL && k->arg[which][c].chain != NULL);
        if (c <= CLS_F64) {
            expect_entry(k->name, "moments", 0, c, 1, k->moments[c].rows != NULL && k->moments[c].chain != NULL);
            expect_entry(k->name, "lse", 0, c, 1, k->lse[c].rows != NULL && k->lse[c].chain != NULL);
        }
    }
}

/* argmin, argmax, and min and max that stay short. */
static void test_args(const struct kernels *k)
{
    for (int which = 0; which < 2; which++) {
        for (int c = 0; c < CLS_COUNT; c++)
            if (k->arg[which][c].rows != NULL) {
                test_arg_rows(k->name, k->arg[which][c].rows, (struct type){.cls = (enum cls)c}, which);
                test_arg_chain(k->name, k, (struct type){.cls = (enum cls)c}, which);
            }
        for (int d = 0; d < DT_COUNT; d++)
            if (k->narrow[which][d].chain != NULL)
                test_narrow(k->name, &k->narrow[which][d],
                            (struct type){.cls = dtype_cls[d], .is_dtype = 1, .dtype = (enum dtype)d}, which);
        for (int d = 0; d < DT_COUNT; d++)
            if (k->arg_from[which][d] != NULL)
                test_arg_rows(k->name, k->arg_from[which][d],
                              (struct type){.cls = dtype_cls[d], .is_dtype = 1, .dtype = (enum dtype)d}, which);
    }
}

static void test_isa(void (*fill)(struct kernels *), int full)
{
    static struct kernels k;
    memset(&k, 0, sizeof k);
    fill(&k);
    test_entries(&k, full);
    for (int op = 0; op < FOLD_COUNT; op++) {
        for (int c = 0; c < CLS_COUNT; c++)
            if (k.fold[op][c].rows != NULL) {
                const struct type t = {.cls = (enum cls)c};
                test_fold_rows(k.name, &k.fold[op][c], (enum fold)op, t);
                test_fold_chain(k.name, &k.fold[op][c], (enum fold)op, t);
                if (k.fold[op][c].joined != NULL)
                    test_fold_joined(k.name, &k.fold[op][c], (enum fold)op, t);
                if (k.fold[op][c].runs != NULL)
                    test_fold_runs(k.name, &k.fold[op][c], (enum fold)op, t);
                if (k.fold[op][c].answers != NULL)
                    test_fold_answers(k.name, &k.fold[op][c], (enum fold)op, t);
            }
        for (int d = 0; d < DT_COUNT; d++)
            if (k.fold_from[op][d].rows != NULL) {
                const enum dtype type = d == DT_bool && op != FOLD_SUM ? DT_u8 : (enum dtype)d; /* kernels.h */
                const struct type t = {.cls = dtype_cls[d], .is_dtype = 1, .dtype = type};
                test_fold_rows(k.name, &k.fold_from[op][d], (enum fold)op, t);
                test_fold_chain(k.name, &k.fold_from[op][d], (enum fold)op, t);
                if (k.fold_from[op][d].joined != NULL)
                    test_fold_joined(k.name, &k.fold_from[op][d], (enum fold)op, t);
                if (k.fold_from[op][d].runs != NULL)
                    test_fold_runs(k.name, &k.fold_from[op][d], (enum fold)op, t);
            }
    }
    for (int c = CLS_F32; c <= CLS_F64; c++)
        for (int is_lse = 0; is_lse < 2; is_lse++)
            if (is_lse ? k.lse[c].rows != NULL : k.moments[c].rows != NULL) {
                test_state_rows(k.name, is_lse ? k.lse[c].rows : k.moments[c].rows, (struct type){.cls = (enum cls)c},
                                is_lse);
                test_state_chain(k.name, &k, (struct type){.cls = (enum cls)c}, is_lse);
                test_state_merge(k.name, &k, (enum cls)c, is_lse);
            }
    test_all_moments_joined(&k);
    test_all_terms(&k);
    test_products(&k);
    for (int pair = 0; pair < PAIR_COUNT; pair++)
        for (int d = 0; d < DT_COUNT; d++)
            if (k.pair[pair][d] != NULL)
                test_pair(k.name, k.pair[pair][d], (enum pair)pair, (enum dtype)d, k.pair_bytes[d]);
    for (int d = 0; d < DT_COUNT; d++) {
        const struct type t = {.cls = dtype_cls[d], .is_dtype = 1, .dtype = (enum dtype)d};
        if (k.byte_sums[d] != NULL)
            test_byte_sums(k.name, k.byte_sums[d], t);
        if (k.summary[d] != NULL && t.cls <= CLS_F64) /* bytes: test_bytes.c */
            test_summary(k.name, &k, t);
        if (k.summary_chain[d] != NULL && t.cls <= CLS_F64)
            test_summary_chain(k.name, &k, t);
        if (k.moments_from[d] != NULL)
            test_state_rows(k.name, k.moments_from[d], t, 0);
        const struct type as_float = {t.cls <= CLS_F64 ? t.cls : CLS_F64, 1, t.dtype};
        if (k.lse_from[d] != NULL)
            test_state_rows(k.name, k.lse_from[d], as_float, 1);
        if (k.moments_chain_from[d] != NULL)
            test_state_chain(k.name, &k, t, 0);
        if (k.lse_chain_from[d] != NULL)
            test_state_chain(k.name, &k, as_float, 1);
        for (int which = 0; which < 2; which++)
            if (k.arg_chain_from[which][d] != NULL)
                test_arg_chain(k.name, &k, t, which);
    }
    test_args(&k);
    if (k.stretch != NULL)
        test_stretch(k.name, k.stretch);
}

int main(void)
{
    in_pages = guard_create(MAX_ELEMENTS * 8);
    in2_pages = guard_create(MAX_ELEMENTS * 8);
    out_pages = guard_create(3 * 4608 * 8);
    out2_pages = guard_create(MAX_COLUMNS * 8);
    loaded = malloc(MAX_ELEMENTS * sizeof *loaded);
    waiting = malloc(MAX_ELEMENTS * sizeof *waiting);
    if (loaded == NULL || waiting == NULL)
        return 1;
    test_tables(test_isa);
    free(loaded);
    free(waiting);
    return check_done("test_kernels");
}
