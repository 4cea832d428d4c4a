/* Folds the states of a user's operation with as few calls of its callbacks as the order allows. */
#include "user.h"

/* Rows of n states that are folded at once: short ones would make many calls with few states. */
struct rows {
    const mf_operation *op;
    char *states;
    int64_t rows, n;
};

/* In every row: `count` states, `step` from each other, with those `distance` behind. The calls run along the
 * rows or across them, whichever are fewer. */
static void combine(const struct rows *r, int64_t count, int64_t step, int64_t distance)
{
    const int64_t size = (int64_t)r->op->state_size, row = r->n * size;
    const int across = r->rows > count;
    for (int64_t i = 0; i < (across ? count : r->rows); i++) {
        char *left = r->states + i * (across ? step * size : row), *right = left + distance * size;
        const int64_t stride = across ? row : step * size;
        r->op->combine(r->op->context, across ? r->rows : count, left, stride, right, stride);
    }
}

/* Left to right along each lane, then the halving tree (as every reduction; docs/numerics.md). */
static void fold_lanes(const struct rows *r)
{
    int64_t lanes = r->n < LANES ? r->n : LANES;
    for (int64_t from = LANES; from < r->n; from += LANES)
        combine(r, r->n - from < LANES ? r->n - from : LANES, 1, from);
    for (int64_t half = LANES / 2; half; half /= 2)
        if (lanes > half) {
            combine(r, lanes - half, 1, half);
            lanes = half;
        }
}

/* ((0 1) (2 3)) ((4 5) ...: the order of the elements is kept; a last one without a neighbour waits. */
static void fold_pairs(const struct rows *r)
{
    for (int64_t gap = 1; gap < r->n; gap *= 2)
        combine(r, (r->n - gap + 2 * gap - 1) / (2 * gap), 2 * gap, gap);
}

void mf_user_fold_rows(const mf_operation *op, char *states, int64_t rows, int64_t n)
{
    const struct rows r = {op, states, rows, n};
    const size_t size = op->state_size;
    if (op->commutative)
        fold_lanes(&r);
    else
        fold_pairs(&r);
    for (int64_t row = 1; row < rows; row++)
        memmove(states + (size_t)row * size, states + (size_t)(row * n) * size, size);
}

void mf_user_fold_tile(const mf_operation *op, char *states, int64_t n)
{
    mf_user_fold_rows(op, states, 1, n);
}

void mf_user_fold(const mf_operation *op, char *states, int64_t n)
{
    size_t size = op->state_size;
    while (n > 1) {
        int64_t tiles = (n + TILE - 1) / TILE;
        for (int64_t t = 0; t < tiles; t++) {
            char *tile = states + (size_t)t * TILE * size;
            mf_user_fold_tile(op, tile, n - t * TILE < TILE ? n - t * TILE : TILE);
            if (t)
                memcpy(states + (size_t)t * size, tile, size);
        }
        n = tiles;
    }
}

void mf_user_finish(const mf_operation *op, const char *state, union value *result)
{
    void *to[MAX_REDUCER_ARGS];
    for (int k = 0; k < op->output_count; k++) {
        result[k].u64 = 0;
        to[k] = &result[k];
    }
    op->finish(op->context, 1, state, to);
}

/* One tile of at most 4096 elements, element by element. */
static int64_t read_tile(const mf_operation *op, int64_t left, mf_next_element next, void *context, char *states)
{
    int64_t n = left < TILE ? left : TILE;
    for (int64_t e = 0; e < n; e++) {
        union value values[MAX_REDUCER_ARGS];
        const void *args[MAX_REDUCER_ARGS];
        char *state = states + (size_t)e * op->state_size;
        for (int a = 0; a < MAX_REDUCER_ARGS; a++)
            args[a] = &values[a];
        if (next(context, values))
            op->lift(op->context, 1, args, state);
        else
            op->identity(op->context, 1, state);
    }
    return n;
}

void mf_user_reduce(const struct reducer *reducer, int64_t total, mf_next_element next, void *context, char *tile,
                    char *tiles, union value *result)
{
    const mf_operation *op = &reducer->user->plain;
    int64_t n = 0;
    for (int64_t done = 0; done < total; n++) {
        int64_t here = read_tile(op, total - done, next, context, tile);
        mf_user_fold_tile(op, tile, here);
        memcpy(tiles + (size_t)n * op->state_size, tile, op->state_size);
        done += here;
    }
    if (!n)
        op->identity(op->context, 1, tiles);
    mf_user_fold(op, tiles, n);
    mf_user_finish(op, tiles, result);
}
