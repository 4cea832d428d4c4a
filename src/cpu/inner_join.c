/* Solver "inner", the states of a row's tiles: joined in the contract's order. */
#include "../user.h"
#include "inner.h"

/* Tiles of tiles with the row kernel, in place. */
static void join_values(struct worker *w, const struct reducer *reducer, char *values, int64_t n)
{
    size_t size = mf_cls_size(reducer->cls);
    while (n > 1) {
        int64_t tiles = (n + TILE - 1) / TILE;
        for (int64_t t = 0; t < tiles; t++) {
            char value[8];
            int64_t here = n - t * TILE < TILE ? n - t * TILE : TILE;
            w->kernels->fold[reducer->fold][reducer->cls].rows(value, values + (size_t)(t * TILE) * size, 1, here,
                                                               here);
            memcpy(values + (size_t)t * size, value, size);
        }
        n = tiles;
    }
}

/* Lanes of moments: mean, m2 and count of each. */
struct moments_lanes {
    char mean[LANES * 8], m2[LANES * 8];
    int64_t n[LANES];
};

/* Lanes 0 ... of a with those of b from `first` on, lanes of them, whose neighbours' counts mostly agree. */
static void merge_lanes(const struct kernels *k, enum cls cls, struct moments_lanes *a, const struct moments_lanes *b,
                        int64_t first, int64_t lanes)
{
    const size_t size = mf_cls_size(cls);
    for (int64_t l = 0, run; l < lanes; l += run) {
        const int64_t na = a->n[l], nb = b->n[first + l];
        for (run = 0; l + run < lanes && a->n[l + run] == na && b->n[first + l + run] == nb; run++)
            ;
        k->moments[cls].merge(a->mean + (size_t)l * size, a->m2 + (size_t)l * size, na,
                              b->mean + (size_t)(first + l) * size, b->m2 + (size_t)(first + l) * size, nb, run);
        for (int64_t i = l; i < l + run; i++)
            a->n[i] = na + nb;
    }
}

/* n states as lanes. */
static void take_lanes(struct moments_lanes *to, const struct state *states, int64_t n, size_t size)
{
    for (int64_t l = 0; l < n; l++) {
        mf_copy_value(to->mean + (size_t)l * size, &states[l].v[0], size);
        mf_copy_value(to->m2 + (size_t)l * size, &states[l].v[1], size);
        to->n[l] = states[l].n;
    }
}

/* n tiles' moments, at most TILE, in the contract's order: mf_state_fold_tile, with all lanes at once. */
static struct state fold_moments(const struct kernels *k, enum cls cls, const struct state *states, int64_t n)
{
    const size_t size = mf_cls_size(cls);
    const int64_t lanes = n < LANES ? n : LANES;
    struct moments_lanes lane, next;
    struct state all = states[0];
    take_lanes(&lane, states, lanes, size);
    for (int64_t e = LANES; e < n; e += LANES) {
        const int64_t here = n - e < LANES ? n - e : LANES;
        take_lanes(&next, states + e, here, size);
        merge_lanes(k, cls, &lane, &next, 0, here);
    }
    for (int64_t half = LANES / 2; half; half /= 2)
        if (half < lanes)
            merge_lanes(k, cls, &lane, &lane, half, lanes - half < half ? lanes - half : half);
    mf_copy_value(&all.v[0], lane.mean, size);
    mf_copy_value(&all.v[1], lane.m2, size);
    all.n = lane.n[0];
    return all;
}

/* Tiles of tiles, in place. */
static struct state join_moments(const struct kernels *k, enum cls cls, struct state *states, int64_t n)
{
    while (n > 1) {
        const int64_t tiles = (n + TILE - 1) / TILE;
        for (int64_t t = 0; t < tiles; t++)
            states[t] = fold_moments(k, cls, states + t * TILE, n - t * TILE < TILE ? n - t * TILE : TILE);
        n = tiles;
    }
    return states[0];
}

/* A user's states lie padded to 16 bytes; the fold wants them close together. */
static void join_user(struct worker *w, int r, char *states, int64_t n, int64_t i)
{
    const mf_operation *op = &w->plan->problem.program.reducer[r].user->is;
    size_t padded = mf_inner_state_size(&w->plan->problem.program.reducer[r]);
    if (padded != op->state_size)
        for (int64_t t = 1; t < n; t++)
            memmove(states + (size_t)t * op->state_size, states + (size_t)t * padded, op->state_size);
    mf_user_fold(op, states, n);
    mf_inner_user_finish(w, r, states, 1, i);
}

/* The first tile of output o that has the best of the tiles' values, and where it is there. */
static struct state join_arg(struct worker *w, const struct reducer *reducer, const char *values, int64_t o)
{
    const struct inner_plan *data = w->inner;
    const int is_max = reducer->fold == FOLD_MAX;
    arg_rows_fn *rows = w->kernels->arg[is_max][reducer->cls].rows;
    struct state best = mf_state_identity(reducer);
    for (int64_t t = 0; t < data->tiles; t += TILE) {
        struct state of_tiles = best;
        const int64_t n = data->tiles - t < TILE ? data->tiles - t : TILE;
        rows(&of_tiles.v[0], &of_tiles.n, values + (size_t)t * mf_cls_size(reducer->cls), 1, n, n);
        of_tiles.n += t;
        best = t ? mf_state_combine(reducer, best, of_tiles) : of_tiles;
    }
    struct source source;
    const int from = mf_inner_memory_type(w, 0);
    const int64_t e = best.n * TILE, n = data->elements - e < TILE ? data->elements - e : TILE;
    mf_inner_find_rows(w, 0, 0, o * data->elements + e, 1, n, &source);
    (from >= 0 ? w->kernels->arg_from[is_max][from] : rows)(&best.v[0], &best.n, source.x, 1, n, n);
    best.n += e;
    return best;
}

/* Reducer r's states of output o, to results at index i. */
static void join_states(struct worker *w, int r, char *of, int64_t o, int64_t i)
{
    const struct reducer *reducer = &w->plan->problem.program.reducer[r];
    const size_t value = mf_cls_size(reducer->cls);
    const int64_t tiles = w->inner->tiles;
    struct state *const x = (struct state *)(void *)of;
    const struct state state = w->inner->by_value             ? join_arg(w, reducer, of, o)
                               : reducer->kind == RED_MOMENTS ? join_moments(w->kernels, reducer->cls, x, tiles)
                                                              : mf_state_fold(reducer, x, tiles);
    memcpy(mf_inner_part(w, r, 0, i, value), &state.v[0], value);
    if (reducer->kind == RED_ARG)
        memcpy(mf_inner_part(w, r, 1, i, 8), &state.n, 8);
    else
        memcpy(mf_inner_part(w, r, 1, i, value), &state.v[1], value);
}

void mf_inner_join(struct worker *w, const struct tile_states *states, int64_t o, int64_t n, int64_t i)
{
    const struct program *program = &w->plan->problem.program;
    const int64_t tiles = w->inner->tiles;
    for (int r = 0; r < program->reducer_count; r++) {
        const struct reducer *reducer = &program->reducer[r];
        const size_t value = mf_cls_size(reducer->cls);
        const size_t size = mf_inner_keeps_value(w, reducer) ? value : mf_inner_state_size(reducer);
        char *of = states->of[r];
        if (reducer->kind == RED_FOLD && tiles <= TILE) {
            w->kernels->fold[reducer->fold][reducer->cls].rows(mf_inner_part(w, r, 0, i, value), of, n, tiles, tiles);
            continue;
        }
        for (int64_t k = 0; k < n; k++, of += (size_t)tiles * size) {
            if (reducer->kind == RED_USER) {
                join_user(w, r, of, tiles, i + k);
            } else if (reducer->kind == RED_FOLD) {
                join_values(w, reducer, of, tiles);
                memcpy(mf_inner_part(w, r, 0, i + k, value), of, value);
            } else {
                join_states(w, r, of, o + k, i + k);
            }
        }
    }
}
