/* Outputs of several tiles. Each team of a block folds a tile at a time; the tiles of an output belong to p[1] blocks,
 * p[2] tiles to each; whoever finishes last folds the tiles' states.
 *
 * p[0]: tiles of an output; p[2] divides TILE, so that a block's tiles are of one group of TILE. workspace: p[3] states
 * for every output, then for every output a counter for each group, and one. */
KERNEL void modefold(POINTERS const struct bases b, SHAPE_PARAMETER, GLOBAL char *workspace)
{
    EXCHANGE_MEMORY
    SHARED int flag;
    shape_ptr S = SHAPE;
    struct tensors T = TENSORS(b);
    const int t = THREAD % TEAM, team = THREAD / TEAM;
    const int64_t parts = S->p[1], o = BLOCK / parts, tiles = S->p[0];
    const int64_t first = BLOCK % parts * S->p[2], end = first + S->p[2] < tiles ? first + S->p[2] : tiles;
    GLOBAL struct state *states = (GLOBAL struct state *)workspace + o * S->p[3];
    const struct place start = kept_place(S, o);
    for (int64_t tile = first; tile < end; tile += TEAMS) {
        const int64_t mine = tile + team, left = S->reduced_total - mine * TILE;
        struct state s[OWN];
        team_lanes(T, S, start, mine * TILE, mine >= end ? 0 : left < TILE ? (int)left : TILE, b.vectors != 0, s);
        struct state a = team_tree(exchange_, s);
        if (t == 0 && mine < end)
            states[mine] = a;
    }
    if (parts == 1) {
        FENCE();
        BARRIER();
        states = block_fold(exchange_, states, 1, tiles, 0, 1);
    } else {
        /* the last block of each TILE tiles folds them, the last of these blocks what they made */
        const int64_t groups = (tiles + TILE - 1) / TILE, group = first / TILE, from = group * TILE;
        const int64_t count = tiles - from < TILE ? tiles - from : TILE;
        GLOBAL uint32_t *counters =
            (GLOBAL uint32_t *)((GLOBAL struct state *)workspace + S->kept_total * S->p[3]) + o * (groups + 1);
        if (!last_to_arrive(counters + group, (count + S->p[2] - 1) / S->p[2], &flag))
            return;
        struct state a = warp_fold(exchange_, states + from, 1, THREAD < WARP ? (int)count : 0);
        if (THREAD == 0)
            states[tiles + group] = a;
        states += tiles;
        if (groups > 1) {
            if (!last_to_arrive(counters + groups, groups, &flag))
                return;
            states = block_fold(exchange_, states, 1, groups, 0, 1);
        }
    }
    if (THREAD == 0)
        finish_output(T, S, o, load_state(states), S->reduced_total);
}
