/* Solver "sliding", long trees along rows: lane l of the window at p is lane 0 of the one at p + l, so that windows
 * share their lanes' chains, and what becomes of those at each level of the tree (docs/numerics.md, section 2). Lanes
 * before some one have an element more than those from it on, or have one at all: there are two kinds of them at
 * most, at every level, each a row of values. Of 1001 elements that is a chain of 7, one more and 2 * 7 passes over
 * rows in the near caches. */
#include "cpu.h"
#include "sliding.h"

enum { KINDS = 2, ROWS = SHARED_ROWS - 1, NO_LANE = -1 };

/* The rows' values, and to where they are those of whole lanes. */
struct kind {
    const char *row;
    int64_t n;
};

/* A row that neither these kinds nor those have. */
static char *free_row(const struct sliding_worker *w, const struct kind *a, const struct kind *b)
{
    for (int r = 0; r < ROWS; r++) {
        char *const row = w->value + (size_t)r * w->data->value_bytes;
        if (a[0].row != row && a[1].row != row && b[0].row != row && b[1].row != row)
            return row;
    }
    return NULL; /* of as many rows as kinds one is free */
}

/* a o b, the latter's lanes `apart` further on. */
static struct kind join(const struct sliding_worker *w, struct kind a, struct kind b, int64_t apart, char *to)
{
    const int64_t size = mf_dtypes[w->data->value].size, n = b.n - apart < a.n ? b.n - apart : a.n;
    w->data->then(to, NULL, (const void *[]){a.row, b.row + apart * size}, 2, n, NULL);
    return (struct kind){to, n};
}

/* The lanes' chains. */
static void chain_lanes(const struct sliding_worker *w, struct kind x, int64_t step, struct kind *kind, int *lane)
{
    const struct kind none[KINDS] = {{NULL, 0}, {NULL, 0}};
    const int64_t elements = w->data->shape.across.elements, size = mf_dtypes[w->data->value].size;
    const int64_t whole = elements / LANES, rest = elements % LANES, apart = LANES * step;
    const void *rows[STEPS];
    kind[0] = x;
    kind[1] = none[1];
    for (int l = 0; l < LANES; l++)
        lane[l] = l < elements ? 0 : NO_LANE;
    if (!whole)
        return;
    if (whole > 1) {
        char *const to = free_row(w, kind, none);
        for (int64_t k = 0; k < whole; k++)
            rows[k] = x.row + k * apart * size;
        kind[0].n = x.n - (whole - 1) * apart;
        w->data->then(to, NULL, rows, whole, kind[0].n, NULL);
        kind[0].row = to;
    }
    if (!rest)
        return;
    kind[1] = kind[0];
    kind[0] = join(w, kind[1], x, whole * apart, free_row(w, kind, none));
    for (int64_t l = rest; l < LANES; l++)
        lane[l] = 1;
}

/* The tree's level that joins lanes `apart` from each other. */
static void join_level(const struct sliding_worker *w, int apart, int64_t step, struct kind *kind, int *lane)
{
    struct kind next[KINDS] = {{NULL, 0}, {NULL, 0}};
    int of[KINDS][2], count = 0;
    for (int l = 0; l < apart && lane[l] != NO_LANE; l++) {
        int k = 0;
        while (k < count && (of[k][0] != lane[l] || of[k][1] != lane[l + apart]))
            k++;
        if (k == count) {
            of[k][0] = lane[l];
            of[k][1] = lane[l + apart];
            next[k] = lane[l + apart] == NO_LANE
                          ? kind[lane[l]]
                          : join(w, kind[lane[l]], kind[lane[l + apart]], apart * step, free_row(w, kind, next));
            count++;
        }
        lane[l] = k;
    }
    kind[0] = next[0];
    kind[1] = next[1];
}

void mf_sliding_shared(struct sliding_worker *w, const char *rows, int64_t n)
{
    const struct sliding_plan *data = w->data;
    const int64_t step = data->shape.across.gap * data->shape.inside;
    const int64_t all = n + (data->shape.across.elements - 1) * step;
    struct kind kind[KINDS], x = {rows, all};
    int lane[LANES];
    if (data->first != data->then) { /* shorter elements */
        char *const to = w->value + ROWS * data->value_bytes;
        data->first(to, NULL, (const void *[]){rows}, 1, all, NULL);
        x.row = to;
    }
    chain_lanes(w, x, step, kind, lane);
    for (int apart = LANES / 2; apart; apart /= 2)
        join_level(w, apart, step, kind, lane);
    w->result = (char *)(uintptr_t)kind[0].row;
}
