/* Outputs of several tiles. Each team of a block folds a tile at a time; the tiles of an output belong to p[1] blocks,
 * p[2] tiles to each; whoever finishes last folds the tiles' states.
 *
 * FEW: at least how many tiles an output has, where that is LANES or less and they belong to one block: their states stay
 * in shared memory. Else 0.
 *
 * p[0]: tiles of an output; p[2] divides TILE, so that a block's tiles are of one group of TILE. workspace: p[3] states
 * for every output, then for every output a counter for each group, and one. */
KERNEL void modefold(POINTERS const struct bases b, SHAPE_PARAMETER, GLOBAL char *workspace)
{
    EXCHANGE_MEMORY
    KEPT_MEMORY
    SHARED int flag;
    shape_ptr S = SHAPE;
    struct tensors T = TENSORS(b);
    const int t = THREAD % TEAM, team = THREAD / TEAM;
    const int64_t parts = S->p[1], o = BLOCK / parts, tiles = S->p[0];
    const int64_t first = BLOCK % parts * S->p[2], end = first + S->p[2] < tiles ? first + S->p[2] : tiles;
    GLOBAL struct state *states = (GLOBAL struct state *)workspace + o * S->p[3];
    const struct place start = kept_place(S, o);
    SHARED struct state shared[FEW ? FEW : FOLD_THREADS];
    for (int64_t tile = first; tile < end; tile += TEAMS) {
        const int64_t mine = tile + team, left = S->reduced_total - mine * TILE;
        const int n = mine >= end ? 0 : left < TILE ? (int)left : TILE;
        struct state s[OWN], a;
        if (MOMENTS && !WINDOWS && tile + TEAMS <= end && (tile + TEAMS) * TILE <= S->reduced_total) {
            /* all teams have whole tiles: merging means then needs no division */
            team_lanes(kept_, T, S, start, mine * TILE, TILE, b.vectors != 0, s);
            a = team_tree(exchange_, s, 1);
        } else {
            team_lanes(kept_, T, S, start, mine * TILE, n, b.vectors != 0, s);
            a = team_tree(exchange_, s, 0);
        }
        if (t == 0 && mine < end) {
#if FEW
            shared[mine] = a;
#else
            states[mine] = a;
#endif
        }
    }
#if FEW
    struct state s[ON_WARP];
    BARRIER();
    UNROLL
    for (int j = 0; j < ON_WARP; j++) {
        const int i = THREAD % WARP + j * WARP;
        s[j] = state_identity();
        if (i < FEW && i < tiles)
            s[j] = shared[i];
    }
    struct state a = warp_tree(exchange_, s, (int)tiles, FEW);
    if (THREAD == 0)
        finish_output(T, S, o, a, S->reduced_total);
#else
    int64_t count = tiles;
    if (parts > 1) {
        /* the last block of each TILE tiles folds them, the last of these blocks what they made */
        const int64_t groups = (tiles + TILE - 1) / TILE, group = first / TILE, from = group * TILE;
        const int64_t mine = tiles - from < TILE ? tiles - from : TILE;
        GLOBAL uint32_t *counters =
            (GLOBAL uint32_t *)((GLOBAL struct state *)workspace + S->kept_total * S->p[3]) + o * (groups + 1);
        if (!last_to_arrive(counters + group, (mine + S->p[2] - 1) / S->p[2], &flag))
            return;
        struct state a = group_fold(shared, states + from, (int)mine);
        if (THREAD == 0)
            states[tiles + group] = a;
        if (groups > 1 && !last_to_arrive(counters + groups, groups, &flag))
            return;
        states += tiles;
        count = groups;
    }
    for (int64_t groups; count > 1; count = groups) {
        groups = (count + TILE - 1) / TILE;
        FENCE();
        BARRIER();
        for (int64_t g = 0; g < groups; g++) {
            const int64_t mine = count - g * TILE < TILE ? count - g * TILE : TILE;
            struct state a = group_fold(shared, states + g * TILE, (int)mine);
            if (THREAD == 0)
                states[count + g] = a;
        }
        states += count;
    }
    if (THREAD == 0)
        finish_output(T, S, o, load_state(states), S->reduced_total);
#endif
}
