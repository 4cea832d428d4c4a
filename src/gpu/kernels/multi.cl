/* Outputs of few elements by multi-reduction (Parker and MacKinnon, Multi-Reduction: an Efficient Pattern for
 * Simultaneous Independent Reductions on the GPU), all of its forms. SPAN neighbouring threads fold VALUES outputs at
 * once, of each of which a thread has HELD lanes of the contract, or as many neighbours. A butterfly over the span for
 * every output alone makes each thread compute what all others compute; where two outputs are merged into one register
 * after a level, threads with the level's bit keeping the second, the further levels serve both.
 *
 *   NAIVE     every output by itself, LEVELS exchanges (section 1: what is compared with)
 *   MERGED    two butterflies' level, then the predicated merge (section 2): 62 exchanges for 32 outputs, not 160
 *   SWAPPED   a predicated swap, then one exchange for both (section 4): 31
 *   SHARING   both outputs into shared memory, each thread reads the one it keeps (section 6): 31 reads, for devices
 *             that cannot shuffle
 *
 * SETS 0: all VALUES are there first, and are merged level by level. Else they come one after the other and are merged
 * as soon as two are there (section 3, iterative): 1 + log2 VALUES registers. SETS 2: two independent sets of these,
 * instruction by instruction (section 3, "doubling up").
 *
 * The contract's tree begins with the lanes farthest apart, that of operations that keep their elements' order
 * (NEIGHBOURS) with the nearest. Left and right are the paper's section 5: a first output is kept by threads without
 * the level's bit, to which the exchange brings what is right of theirs, a second one by threads to which it brings
 * what is left.
 *
 * p[0]: how often a block does this. Bound: exchanges; 1 + 1/2 + 1/4 ... for a merged output, 1/2 + 1/4 ... for a
 * swapped one, LEVELS for a naive one. */
#define NAIVE 0
#define MERGED 1
#define SWAPPED 2
#define SHARING 3
enum {
    GROUPS = WARP / SPAN,
    AT_ONCE = SETS > 1 ? SETS : 1,
    WARP_ROWS = GROUPS * VALUES * AT_ONCE, /* outputs that a warp folds together */
    EVEN = EXACT && !WINDOWS
};

/* Two of the exchange's areas, where states go through shared memory. */
#if KIND == SHARING
#define MEETING_MEMORY SHARED ALIGNED(16) struct state meeting_[2 * THREADS];
typedef SHARED_POINTER struct state *meeting;
#else
#define MEETING_MEMORY EXCHANGE_MEMORY
#define meeting_ exchange_
typedef EXCHANGE_TYPE meeting;
#endif

/* In which bit threads differ that meet at this level. */
static inline int distance_of(int level)
{
    return NEIGHBOURS ? 1 << level : SPAN >> (level + 1);
}

static inline struct state join(struct state left, struct state right)
{
#if NEIGHBOURS
    return combine_ordered(left, right);
#else
    return combine(left, right);
#endif
}

/* mine and the other thread's, in their order whatever thread this is. */
static inline struct state join_across(struct state mine, struct state other, int distance)
{
    if (COMMUTES)
        return join(mine, other);
    return join(choose(THREAD & distance, other, mine), choose(THREAD & distance, mine, other));
}

static inline struct state other_of(meeting at, struct state s, int distance)
{
#if KIND == SHARING
    at[THREAD] = s;
    WARP_BARRIER();
    s = at[THREAD ^ distance];
    WARP_BARRIER();
    return s;
#else
    return exchange_state(at, s, distance, EVEN);
#endif
}

/* One level of the butterfly. second: only threads with the bit need the result, else those without. */
static inline struct state level_of(meeting at, struct state s, int distance, int second)
{
    struct state other = other_of(at, s, distance);
    return second ? join(other, s) : join(s, other);
}

/* One level of two outputs, of which a thread keeps one. */
static inline struct state merge(meeting at, struct state a, struct state b, int distance)
{
    const int upper = (THREAD & distance) != 0;
#if KIND == SWAPPED
    struct state keep = choose(upper, b, a), give = choose(upper, a, b);
    return join_across(keep, other_of(at, give, distance), distance);
#elif KIND == SHARING
    struct state other;
    at[THREAD] = a;
    at[THREAD + THREADS] = b;
    WARP_BARRIER();
    other = at[(THREAD ^ distance) + (upper ? THREADS : 0)];
    WARP_BARRIER();
    return join_across(choose(upper, b, a), other, distance);
#else
    a = level_of(at, a, distance, 0);
    b = level_of(at, b, distance, 1);
    return choose(upper, b, a);
#endif
}

/* ---- the lanes of one output ---- */

/* The element that thread t's number j is, of a step. */
static inline int held_element(int t, int j)
{
    return NEIGHBOURS ? t * HELD + j : t + SPAN * j;
}

/* What is read of an output at one step, and where it lies. */
struct fetched {
    struct raws r[HELD];
    struct place p[HELD];
};

/* FEW: there are fewer outputs than a warp folds, and those past the end read the last one. */
static inline void fetch_step(struct tensors T, shape_ptr S, int64_t o, int k, struct fetched *f)
{
    const struct place start = kept_place(S, FEW && o >= S->kept_total ? S->kept_total - 1 : o);
    const int t = THREAD % SPAN, count = (int)S->reduced_total;
    UNROLL
    for (int j = 0; j < HELD; j++) {
        const int e = k * LANES + held_element(t, j);
        f->r[j] = no_elements();
        f->p[j] = element_place(S, start, EXACT || e < count ? e : count - 1);
        if ((EXACT || count > 0) && inside(S, f->p[j]))
            f->r[j] = fetch_vector(T, S, f->p[j], LOOPS - 1, 0);
    }
}

/* The tree among the thread's own, the first or last levels of all. */
static inline struct state own_levels(struct state s[HELD])
{
#if NEIGHBOURS
    UNROLL
    for (int gap = 1; gap < HELD; gap *= 2)
        UNROLL
        for (int j = 0; j + gap < HELD; j += 2 * gap)
            s[j] = join(s[j], s[j + gap]);
#else
    UNROLL
    for (int reach = HELD / 2; reach; reach /= 2)
        UNROLL
        for (int j = 0; j < HELD / 2; j++)
            if (j < reach)
                s[j] = join(s[j], s[j + reach]);
#endif
    return s[0];
}

/* Output o, of which f is the first step, the only one unless LONG. */
static inline struct state state_of(struct tensors T, shape_ptr S, int64_t o, struct fetched f)
{
    const int t = THREAD % SPAN, count = (int)S->reduced_total;
    struct state s[HELD];
#if NEIGHBOURS
    UNROLL
    for (int j = 0; j < HELD; j++)
        s[j] = ordered_state(map_element(one_of_vector(f.r[j], 0)),
                             PRESENCE(EXACT || held_element(t, j) < count, inside(S, f.p[j])));
#else
    struct lane l[HELD];
    UNROLL
    for (int j = 0; j < HELD; j++)
        l[j] = empty_lane();
    for (int k = 0; k < (LONG ? (count + LANES - 1) / LANES : 1); k++) {
        struct fetched g = f;
        if (LONG && k > 0)
            fetch_step(T, S, o, k, &g);
        UNROLL
        for (int j = 0; j < HELD; j++) {
            const int e = k * LANES + held_element(t, j), present = PRESENCE(EXACT || e < count, inside(S, g.p[j]));
            chain(S, &l[j], map_element(one_of_vector(g.r[j], 0)), k, held_element(t, j), weights_of(k), present);
        }
    }
    UNROLL
    for (int j = 0; j < HELD; j++) {
        const int lane = held_element(t, j), left = count - lane;
        if (LOGSUMS)
            settle(T, S, kept_place(S, o), &l[j], lane, lane_count(count, lane));
        s[j] = lane_state(S, l[j], lane, EXACT ? 1 : left > 0 ? (left + LANES - 1) / LANES : 0);
    }
#endif
    return own_levels(s);
}

/* ---- VALUES outputs of a span, number i of which is first + i * GROUPS ---- */

/* The output that a thread has when all levels of merges are done. */
static inline int kept_value(void)
{
    int mine = 0;
    UNROLL
    for (int l = 0; l < VALUE_LEVELS; l++)
        mine += THREAD & distance_of(l) ? VALUES >> (l + 1) : 0;
    return mine;
}

/* Whether it is the one of those that have the same which stores it: the leftmost. */
static inline int is_storing(void)
{
    int others = 0;
    UNROLL
    for (int l = VALUE_LEVELS; l < LEVELS; l++)
        others |= THREAD & distance_of(l);
    return !others;
}

/* The levels that are left when all outputs are merged. */
static inline struct state last_levels(meeting at, struct state s)
{
    UNROLL
    for (int l = VALUE_LEVELS; l < LEVELS; l++)
        s = level_of(at, s, distance_of(l), 0);
    return s;
}

struct sets {
    struct state s[AT_ONCE];
};

#if SETS
static inline struct sets sets_1(meeting at, struct tensors T, shape_ptr S, int64_t first, int i, int step)
{
    struct sets a;
    struct fetched f[AT_ONCE];
    UNROLL
    for (int q = 0; q < AT_ONCE; q++)
        fetch_step(T, S, first + (i + q * VALUES) * GROUPS, 0, &f[q]);
    UNROLL
    for (int q = 0; q < AT_ONCE; q++)
        a.s[q] = state_of(T, S, first + (i + q * VALUES) * GROUPS, f[q]);
    return a;
}

/* Outputs i, i + step, i + 2 step ...: those at even places, those at odd ones, merged at this level. */
#define SETS_OF(all, half, level)                                                                                    \
    static inline struct sets sets_##all(meeting at, struct tensors T, shape_ptr S, int64_t first, int i, int step)  \
    {                                                                                                                \
        struct sets a = sets_##half(at, T, S, first, i, 2 * step), b;                                                \
        b = sets_##half(at, T, S, first, i + step, 2 * step);                                                        \
        UNROLL for (int q = 0; q < AT_ONCE; q++) a.s[q] = merge(at, a.s[q], b.s[q], distance_of(level));             \
        return a;                                                                                                    \
    }
SETS_OF(2, 1, 0)
SETS_OF(4, 2, 1)
SETS_OF(8, 4, 2)
SETS_OF(16, 8, 3)
SETS_OF(32, 16, 4)
#define SETS_OF_VALUES_(values) sets_##values
#define SETS_OF_VALUES(values) SETS_OF_VALUES_(values)

static inline struct sets outputs_of(meeting at, struct tensors T, shape_ptr S, int64_t first)
{
    struct sets all = SETS_OF_VALUES(VALUES)(at, T, S, first, 0, 1);
    UNROLL
    for (int q = 0; q < AT_ONCE; q++)
        all.s[q] = last_levels(at, all.s[q]);
    return all;
}
#else
static inline struct sets outputs_of(meeting at, struct tensors T, shape_ptr S, int64_t first)
{
    struct fetched f[VALUES];
    struct state s[VALUES];
    struct sets all;
    UNROLL
    for (int i = 0; i < VALUES; i++)
        fetch_step(T, S, first + i * GROUPS, 0, &f[i]);
    LOADED();
    UNROLL
    for (int i = 0; i < VALUES; i++)
        s[i] = state_of(T, S, first + i * GROUPS, f[i]);
#if KIND == NAIVE
    const int mine = kept_value();
    UNROLL
    for (int l = 0; l < LEVELS; l++)
        UNROLL
        for (int i = 0; i < VALUES; i++)
            s[i] = join_across(s[i], other_of(at, s[i], distance_of(l)), distance_of(l));
    all.s[0] = s[0];
    UNROLL
    for (int i = 1; i < VALUES; i++)
        all.s[0] = choose(mine == i, s[i], all.s[0]);
#else
    UNROLL
    for (int l = 0; l < VALUE_LEVELS; l++)
        UNROLL
        for (int i = 0; i < BOUND(VALUES >> (l + 1), VALUES / 2); i++)
            if (GUARD(i < VALUES >> (l + 1)))
                s[i] = merge(at, s[i], s[i + (VALUES >> (l + 1))], distance_of(l));
    all.s[0] = last_levels(at, s[0]);
#endif
    return all;
}
#endif

KERNEL void modefold(POINTERS const struct bases b, SHAPE_PARAMETER, GLOBAL char *workspace)
{
    MEETING_MEMORY
    shape_ptr S = SHAPE;
    struct tensors T = TENSORS(b);
    NO_UNROLL
    for (int64_t pass = 0; pass < S->p[0]; pass++) {
        /* The last warps move up, so that all their outputs exist, and store only what is behind where they were: then
         * outputs lie at constant distances from the first. */
        const int64_t warp = (BLOCK * S->p[0] + pass) * (THREADS / WARP) + THREAD / WARP, from = warp * WARP_ROWS;
        const int64_t moved = FEW || from + WARP_ROWS <= S->kept_total ? from : S->kept_total - WARP_ROWS;
        const int64_t first = moved + THREAD % WARP / SPAN;
        struct sets all = outputs_of(meeting_, T, S, first);
        UNROLL
        for (int q = 0; q < AT_ONCE; q++) {
            const int64_t o = first + (kept_value() + q * VALUES) * GROUPS;
            if (is_storing() && o >= from && o < S->kept_total)
                finish_output(T, S, o, all.s[q], S->reduced_total);
        }
    }
}
