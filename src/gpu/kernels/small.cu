/* Outputs of several tiles, when all that there is is little: one launch's latency is what they cost. An output has a
 * cluster of CLUSTER blocks (sm_90); LANES threads take a tile, each a lane with all its elements in flight (lanes.cl).
 * The tiles' states meet in the shared memory of the cluster's first block, for which one barrier is enough: through the
 * device's memory there are a fence, a counter and a reading, one after the other. Inline PTX: that barrier, and
 * addresses in another block's shared memory.
 *
 * p[0]: tiles of an output, at most CLUSTER * THREADS / LANES. */
enum { TILES_OF_BLOCK = THREADS / LANES, ALL_TILES = CLUSTER * TILES_OF_BLOCK };

/* Puts a state where the cluster's first block has this place of its shared memory. */
static inline void give_to_first(struct state *place, struct state s)
{
    uint32_t at;
    asm("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(at) : "r"((uint32_t)__cvta_generic_to_shared(place)));
    union {
        struct state s;
        uint32_t word[sizeof(struct state) / 4];
    } u;
    u.s = s;
    for (int i = 0; i < (int)sizeof u / 4; i++)
        asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(at + 4 * i), "r"(u.word[i]) : "memory");
}

extern "C" __global__ __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS, 1)
void modefold(POINTERS const struct bases b, SHAPE_PARAMETER, char *workspace)
{
    EXCHANGE_MEMORY
    SHARED struct state lanes[THREADS], tiles[ALL_TILES];
    shape_ptr S = SHAPE;
    struct tensors T = TENSORS(b);
    const int rank = (int)BLOCK % CLUSTER, in_block = THREAD / LANES, lane = THREAD % LANES;
    const int tile = rank * TILES_OF_BLOCK + in_block, count = (int)S->p[0];
    const int64_t o = BLOCK / CLUSTER, first = (int64_t)tile * TILE, left = S->reduced_total - first;
    const int n = left < 0 ? 0 : left < TILE ? (int)left : TILE;
    const struct place from = element_place(S, kept_place(S, o), first + lane);
    struct lane l[1];
    /* the first block has begun when something is written to it */
    asm volatile("barrier.cluster.arrive.relaxed.aligned;");
    l[0] = empty_lane();
    if (n == TILE)
        whole_lanes(T, S, from, step_of_lane(S), LOOPS - 1, first + lane, 1, lane, n, 1, l);
    else if (lane < n)
        whole_lanes(T, S, from, step_of_lane(S), LOOPS - 1, first + lane, 1, lane, n, 0, l);
    lanes[THREAD] = lane_state(S, l[0], first + lane, n == TILE ? TILE / LANES : lane_count(n, lane));
    BARRIER();
    struct state s[ON_WARP];
    if (lane < WARP) {
        for (int j = 0; j < ON_WARP; j++)
            s[j] = lanes[in_block * LANES + lane + j * WARP];
        s[0] = warp_tree(exchange_, s, n < LANES ? n : LANES, LANES);
    }
    asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
    if (lane == 0 && n)
        give_to_first(tiles + tile, s[0]);
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    if (rank)
        return;
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
    if (THREAD >= WARP)
        return;
    for (int j = 0; j < ON_WARP; j++) {
        s[j] = state_identity();
        if (THREAD + j * WARP < count)
            s[j] = tiles[(THREAD + j * WARP) % ALL_TILES];
    }
    const struct state all = warp_tree(exchange_, s, count, ALL_TILES);
    if (THREAD == 0)
        finish_output(T, S, o, all, S->reduced_total);
}
