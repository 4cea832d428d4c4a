/* The halving tree over the lanes of rows (or tiles) that warps read element by element: thread t of a warp has lanes
 * t, t + 32, t + 64 and t + 96, or all of them as one. Moments merge by weights.cl's weights. */
/* What is known of sums of logsumexp: nothing, that none is far, or that they are plain in the unit 1. */
enum { SURE, NEAR_SUMS, PLAIN_SUMS };
#define COMBINE(left, right, known)                     \
    ((known) == PLAIN_SUMS  ? combine_plain(left, right) \
     : (known) == NEAR_SUMS ? combine_near(left, right)  \
                            : combine(left, right))
#if MERGE_WEIGHTS
#define MERGE(left, right, w, known)                               \
    ((known) == PLAIN_SUMS  ? combine_weighted_plain(left, right, w) \
     : (known) == NEAR_SUMS ? combine_weighted_near(left, right, w)  \
                            : combine_weighted(left, right, w))
#else
#define MERGE(left, right, w, known) COMBINE(left, right, known)
#endif

/* The lane of a thread's slot j, where the warp's accesses begin `shift` elements before the row does. The tree's pairs
 * are a power of two apart on the circle of lanes too, but left and right may change places. */
static inline int slot_lane(int t, int j, int shift)
{
    return (j * WARP + t - shift) & (LANES - 1);
}

/* The upper levels, of `lanes` lanes of one thread (4, or all as 1); the result is s[0]. Of n elements that are here
 * `slots` slots have one at most, and `full` of them at least. */
static inline void own_levels(weights_type weights_, int t, int n, int shift, const int lanes, const int full,
                              const int slots, const int known, struct state s[4])
{
    UNROLL
    for (int reach = 2; reach; reach /= 2)
        UNROLL
        for (int j = 0; j < 2; j++)
            if (lanes > reach && j < reach && j + reach < slots) {
                const int lane = slot_lane(t, j, shift) & (2 * reach * WARP - 1), low = lane & (reach * WARP - 1);
                const int swapped = j == 0 && (uint32_t)t < (uint32_t)shift;
                const struct state left = choose(swapped, s[j + reach], s[j]);
                const struct state c = COMMUTES
                                           ? COMBINE(s[j], s[j + reach], known)
                                           : MERGE(left, choose(swapped, s[j], s[j + reach]),
                                                   level_weights(weights_, reach + 4, low, n), known); /* 6 and 5 */
                s[j] = choose(j + reach < full || low + reach * WARP < n, c, left);
            }
}

/* The merge of this thread's state and the one of the thread whose number differs in a bit: of lanes t and t + 2^level,
 * or the other way round; all: both are there, of any n elements. */
static inline struct state across_level(weights_type weights_, struct state mine, struct state other, int level, int t,
                                        int n, const int all, const int known)
{
    const int distance = 1 << level, lane = t & (distance - 1), upper = (t & distance) != 0;
    if (!COMMUTES && EVEN_ELEMENTS) /* few fields have to change places */
        return MERGE(choose_ordered(upper, other, mine), choose_ordered(upper, mine, other),
                     level_weights(weights_, level, lane, n), known);
    const struct state left = choose(upper, other, mine);
    const struct state c = COMMUTES ? COMBINE(mine, other, known)
                                    : MERGE(left, choose(upper, mine, other),
                                            level_weights(weights_, level, lane, n), known);
    return all ? c : choose(lane + distance < n, c, left);
}
