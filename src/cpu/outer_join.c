/* Solver "outer", tiles of tiles: the contract's tree over the states of an output's tiles. */
#include "outer.h"

/* Rows of tiles' states: row t stands for `unit` elements, the last one for what is left. */
struct sequence {
    struct columns *c;
    int r;
    char *const *states;
    int64_t first, n, unit;
};

static int64_t elements_of(const struct sequence *s, int64_t t)
{
    int64_t left = s->c->outer->elements - (s->first + t) * s->unit;
    return left < s->unit ? left : s->unit;
}

/* Left to right along lane l. */
static int64_t chain_states(const struct sequence *s, int64_t l, int level)
{
    struct columns *c = s->c;
    size_t row = (size_t)c->width * mf_outer_value_size(c, s->r);
    char **to = c->buffer[s->r][level];
    int64_t count = 0;
    for (int64_t t = l; t < s->n; t += LANES) {
        char *from[2] = {s->states[0] + (size_t)(s->first + t) * row, s->states[1] + (size_t)(s->first + t) * row};
        if (t == l) {
            memcpy(to[0], from[0], row);
            if (s->states[1] != s->states[0])
                memcpy(to[1], from[1], row);
        } else {
            mf_outer_merge(c, to, from, s->r, count, elements_of(s, t), c->width);
        }
        count += elements_of(s, t);
    }
    return count;
}

static int64_t tree_states(const struct sequence *s, int64_t l, int64_t step, int level)
{
    struct columns *c = s->c;
    if (step == LANES)
        return chain_states(s, l, level);
    int64_t left = tree_states(s, l, 2 * step, level);
    if (l + step >= s->n)
        return left;
    int64_t right = tree_states(s, l + step, 2 * step, level + 1);
    mf_outer_merge(c, c->buffer[s->r][level], c->buffer[s->r][level + 1], s->r, left, right, c->width);
    return left + right;
}

static void join_lanes(struct columns *c, int r, char *const *states, int64_t tiles)
{
    size_t row = (size_t)c->width * mf_outer_value_size(c, r);
    for (int64_t n = tiles, unit = TILE; n > 1; unit *= TILE) {
        int64_t next = (n + TILE - 1) / TILE;
        for (int64_t t = 0; t < next; t++) {
            struct sequence s = {c, r, states, t * TILE, n - t * TILE < TILE ? n - t * TILE : TILE, unit};
            tree_states(&s, 0, 1, 0);
            memcpy(states[0] + (size_t)t * row, c->buffer[r][0][0], row);
            if (states[1] != states[0])
                memcpy(states[1] + (size_t)t * row, c->buffer[r][0][1], row);
        }
        n = next;
    }
    memcpy(c->buffer[r][0][0], states[0], row);
    if (states[1] != states[0])
        memcpy(c->buffer[r][0][1], states[1], row);
}

/* The first tile whose best is best; its index, now an i64 over all elements, replaces states[1]'s first row of W
 * i64. */
static void join_arg(struct columns *c, int r, char *const *states, int64_t tiles)
{
    const struct reducer *reducer = &c->plan->problem.program.reducer[r];
    size_t row = (size_t)c->width * mf_outer_value_size(c, r);
    int32_t *tile = (int32_t *)(void *)c->buffer[r][1][1];
    char *best = c->buffer[r][0][0];
    memcpy(best, states[0], row);
    memset(tile, 0, (size_t)c->width * 4);
    for (int64_t done = 0; done < tiles; done += MAX_CHAIN) {
        const void *x[MAX_CHAIN];
        int64_t count = tiles - done < MAX_CHAIN ? tiles - done : MAX_CHAIN;
        for (int64_t k = 0; k < count; k++)
            x[k] = states[0] + (size_t)(done + k) * row;
        c->kernels->arg[reducer->fold == FOLD_MAX][reducer->cls].chain(best, tile, x, count, c->width, (int32_t)done);
    }
    int64_t *index = (int64_t *)(void *)c->buffer[r][0][1];
    for (int64_t i = 0; i < c->width; i++) {
        int32_t in_tile;
        memcpy(&in_tile, states[1] + ((size_t)tile[i] * (size_t)c->width + (size_t)i) * 4, 4);
        index[i] = (int64_t)tile[i] * c->outer->tile + in_tile;
    }
}

void mf_outer_join(struct columns *c, char *states[MAX_REDUCERS][2], int64_t tiles)
{
    for (int q = 0; q < c->outer->lane_count; q++)
        join_lanes(c, c->outer->lane[q], states[c->outer->lane[q]], tiles);
    for (int q = 0; q < c->outer->arg_count; q++)
        join_arg(c, c->outer->arg[q], states[c->outer->arg[q]], tiles);
}
