/* The halving tree over the lanes of rows (or tiles) that warps read element by element: thread t of a warp has lanes
 * t, t + 32, t + 64 and t + 96, or all of them as one.
 *
 * Moments are merged by weights that are the same for all rows: of n elements the first n % (2 d) of the 2 d states at
 * the level that joins l and l + d have one more than the others. So there are two kinds of merges at that level, the
 * first n % d and the others: in the one kind both sides have as many, in the other the left one has one more. */
/* What is known of sums of logsumexp: nothing, that none is far, or that they are plain in the unit 1. */
enum { SURE, NEAR_SUMS, PLAIN_SUMS };
#define COMBINE(left, right, known)                     \
    ((known) == PLAIN_SUMS  ? combine_plain(left, right) \
     : (known) == NEAR_SUMS ? combine_near(left, right)  \
                            : combine(left, right))
enum { LEVELS = 7, SETS = WEIGHT_SETS * 2 * LEVELS };

#if MERGE_WEIGHTS
#define MERGE(left, right, w, known)                               \
    ((known) == PLAIN_SUMS  ? combine_weighted_plain(left, right, w) \
     : (known) == NEAR_SUMS ? combine_weighted_near(left, right, w)  \
                            : combine_weighted(left, right, w))
#define WEIGHTS_MEMORY SHARED struct merge_weights weights_[SETS];
typedef SHARED_POINTER struct merge_weights *weights_type;

/* Both kinds of every level, of n elements: 2 i and 2 i + 1 are of the one that joins l and l + 2^i. All threads of a
 * block are to meet before they are used. */
static inline void make_weights(weights_type weights_, int n)
{
    if (THREAD < LEVELS) {
        const int reach = 1 << THREAD, least = n / (2 * reach), more = n % (2 * reach) >= reach;
        weights_[2 * THREAD] = merge_weights_of(least + 1, least + more);
        weights_[2 * THREAD + 1] = merge_weights_of(least + more, least);
    }
}

/* Of the merge of `lane` and the one 2^level behind it. */
static inline struct merge_weights level_weights(weights_type weights_, int level, int lane, int n)
{
    return weights_[2 * level + (lane < (n & ((1 << level) - 1)) ? 0 : 1)];
}
#else
#define MERGE(left, right, w, known) COMBINE(left, right, known)
#define WEIGHTS_MEMORY const int weights_ = 0;
typedef int weights_type;
struct merge_weights {
    int none;
};

static inline void make_weights(weights_type weights_, int n)
{
}

static inline struct merge_weights level_weights(weights_type weights_, int level, int lane, int n)
{
    const struct merge_weights w = {0};
    return w;
}
#endif

static inline struct raw no_raw(void)
{
    struct raw r;
#define X(s) r.x##s = 0;
    FOR_MAP_INPUTS(X)
#undef X
    r.none = 0;
    return r;
}

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
    const struct state left = choose(upper, other, mine);
    const struct state c = COMMUTES ? COMBINE(mine, other, known)
                                    : MERGE(left, choose(upper, mine, other),
                                            level_weights(weights_, level, lane, n), known);
    return all ? c : choose(lane + distance < n, c, left);
}
