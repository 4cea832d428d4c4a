/* Outputs of several tiles. Each team of a block folds a tile at a time; the tiles of an output belong to p[1] blocks,
 * p[2] tiles to each, and the last of them to finish folds the tiles' states.
 *
 * workspace: p[3] states for every output, then a counter for every output. p[0]: tiles of an output. */
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
    GLOBAL uint32_t *counters = (GLOBAL uint32_t *)((GLOBAL struct state *)workspace + S->kept_total * S->p[3]);
    if (parts == 1)
        BARRIER();
    else if (!last_to_arrive(counters + o, parts, &flag))
        return;
    states = block_fold(exchange_, states, 1, tiles, 0, 1);
    if (THREAD == 0)
        finish_output(T, S, o, load_state(states), S->reduced_total);
}
