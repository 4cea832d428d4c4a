/* The lanes of a tile in TURNS turns (fold.cl): in each a thread has VECTOR neighbours with all their elements (lanes.cl),
 * and a warp reads whole lines of memory. No element is loaded twice, and nothing waits in shared memory. */
enum { OF_TURN = TEAM * OWN, TURN_LEVELS = TURNS > 2 ? 2 : 1 };

/* As fold.cl's. The turns come in the order in which the tree joins them. */
static inline void team_lanes(kept_type kept_, struct tensors T, shape_ptr S, struct place start, int64_t first, int n,
                              int vectors, struct state s[OWN])
{
    struct state waiting[TURN_LEVELS][OWN];
    const struct place step = step_of_lane(S);
    UNROLL
    for (int j = 0; j < OWN; j++)
        s[j] = state_identity();
    NO_UNROLL
    for (int i = 0; i < TURNS && n > 0; i++) {
        const int turn = TURNS > 2 ? (i & 1) * 2 + i / 2 : i, lane = turn * OF_TURN + THREAD % TEAM * OWN;
        const struct place from = element_place(S, start, first + lane);
        struct lane l[OWN];
        UNROLL
        for (int j = 0; j < OWN; j++)
            l[j] = empty_lane();
        if (n == TILE && (VECTOR == 1 || LIKELY(vectors)))
            whole_lanes(T, S, from, step, LOOPS - 1, first + lane, 1, lane, n, 1, l);
        else
            part_lanes(T, S, from, LOOPS - 1, first + lane, 1, lane, n, vectors, l);
        UNROLL
        for (int j = 0; j < OWN; j++)
            s[j] = lane_state(S, l[j], first + lane + j, lane_count(n, lane + j));
        int joined = 1;
        UNROLL
        for (int b = 0; b < TURN_LEVELS; b++) {
            const int second = i >> b & 1;
            UNROLL
            for (int j = 0; j < OWN; j++) {
                if (joined && second)
                    s[j] = combine(waiting[b][j], s[j]);
                else if (joined)
                    waiting[b][j] = s[j];
            }
            joined = joined && second;
        }
    }
    (void)kept_;
}
