/* Folds the states of a user's operation with as few calls of its callbacks as the order allows. */
#include "user.h"

/* Left to right along each lane, then the halving tree (as every reduction; docs/numerics.md). */
static void fold_lanes(const mf_operation *op, char *states, int64_t n)
{
    int64_t size = (int64_t)op->state_size, lanes = n < LANES ? n : LANES;
    for (int64_t row = LANES; row < n; row += LANES)
        op->combine(op->context, n - row < LANES ? n - row : LANES, states, size, states + row * size, size);
    for (int64_t half = LANES / 2; half; half /= 2)
        if (lanes > half) {
            op->combine(op->context, lanes - half, states, size, states + half * size, size);
            lanes = half;
        }
}

/* ((0 1) (2 3)) ((4 5) ...: the order of the elements is kept; a last one without a neighbour waits. */
static void fold_pairs(const mf_operation *op, char *states, int64_t n)
{
    int64_t size = (int64_t)op->state_size;
    for (int64_t gap = 1; gap < n; gap *= 2) {
        int64_t pairs = (n - gap + 2 * gap - 1) / (2 * gap);
        op->combine(op->context, pairs, states, 2 * gap * size, states + gap * size, 2 * gap * size);
    }
}

void mf_user_fold_tile(const mf_operation *op, char *states, int64_t n)
{
    if (op->commutative)
        fold_lanes(op, states, n);
    else
        fold_pairs(op, states, n);
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
