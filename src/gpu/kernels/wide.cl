/* Many columns of few elements: a thread folds VECTOR neighbouring columns alone, so nothing is exchanged.
 *
 * Where order counts, the tree is walked depth first: its leaves are the elements j, j + PARTS ... of a column, Q or Q + 1
 * of them, which are OF_LEAF of the tile's lanes or, of up to LANES elements, a lane each. So a leaf is straight-line code
 * of constants. Leaves come in the order in which the tree joins them (the numbers' bits reversed), BATCH in a turn, and
 * those of the next turn are loaded meanwhile. Two subtrees of equal height become one as soon as both are there: how many
 * elements they have is one of two numbers at each height, so the weights of moments are found once a block. Else a column
 * is one chain, BATCH elements at once.
 *
 * Sums of logsumexp are first taken to be plain together (sums.cl): what is to be known of elements for that, and their
 * greatest, is kept of a whole column, not of each lane. Where they are not, the column is read again.
 *
 * LEVELS: of the tree above the leaves, at most. p[0]: leaves of a column, a power of two from BATCH on; p[1]: how many of
 * them have Q + 1 elements. */

#if ORDERED
enum { BATCH_LEVELS = BATCH > 2 ? 2 : BATCH > 1 ? 1 : 0 };

/* The places of the leaves of one batch: the first is number j; the others are half of all leaves away, then a quarter. */
static inline int64_t leaf_of_batch(int parts, int j, int g)
{
    return j + (g & 1) * (parts / 2) + (g / 2) * (parts / 4);
}

/* The elements of a leaf. */
static inline void load_leaf(struct tensors T, shape_ptr S, struct place start, int64_t leaf, int vectors,
                             struct taken r[Q + 1])
{
    const int parts = (int)S->p[0];
    struct place p = element_place(S, start, leaf);
    UNROLL
    for (int k = 0; k <= Q; k++) {
        r[k] = no_taken();
        if (k < Q || leaf < S->p[1])
            r[k] = take(T, S, p, vectors);
#define X(s) p.i##s += parts * in_stride(S, s, KEPT);
        FOR_MAP_INPUTS(X)
#undef X
    }
    (void)parts;
}

static inline void load_either(struct tensors T, shape_ptr S, struct place start, int64_t leaf, int vectors,
                               struct taken r[Q + 1])
{
    if (VECTOR == 1 || LIKELY(vectors))
        load_leaf(T, S, start, leaf, 1, r);
    else
        load_leaf(T, S, start, leaf, 0, r);
}

/* How many of n elements have the number i, counted round a circle of `round`. */
static inline int count_of(int n, int i, int round)
{
    return n > i ? (n - i + round - 1) / round : 0;
}

static inline void sums_from(struct lane *to, struct lane from)
{
#define X(T, cls, i) to->r##i##_s = from.r##i##_s;
    FOR_SUMS(X)
#undef X
}

static inline void greatest_from(struct state *to, struct lane from)
{
#define X(T, cls, i) to->r##i##_m = from.r##i##_m;
    FOR_SUMS(X)
#undef X
}

/* Plain sums of both, whose greatest is kept elsewhere. */
static inline struct state sums_added(struct state a, struct state b)
{
#define X(T, cls, i) a.r##i##_s = a.r##i##_s + b.r##i##_s;
    FOR_SUMS(X)
#undef X
    return a;
}

/* Whether a column has only such sums. */
#define PLAIN_ONLY(plain) (LOGSUMS && SUMS_ALONE && (plain))

/* The elements of a leaf's lanes of such columns; all: what is known of all elements. */
static inline void chain_plain(shape_ptr S, const struct taken r[Q + 1], int n, struct lane all[VECTOR],
                               struct lane l[OF_LEAF][VECTOR])
{
    UNROLL
    for (int k = 0; k < n; k++) {
        UNROLL
        for (int c = 0; c < VECTOR; c++)
            sums_from(&all[c], l[k % OF_LEAF][c]);
#if PAIRED_FOLDS
        chain_pair(all, r[k].v[0], 1);
#else
        UNROLL
        for (int c = 0; c < VECTOR; c++)
            chain(S, &all[c], map_element(one_taken(r[k], c)), k / OF_LEAF, 0, weights_of(k / OF_LEAF), 1);
#endif
        UNROLL
        for (int c = 0; c < VECTOR; c++)
            sums_from(&l[k % OF_LEAF][c], all[c]);
    }
}

/* The same of other columns, whose lanes know of their own elements. */
static inline void chain_apart(shape_ptr S, const struct taken r[Q + 1], int n, int64_t j,
                               struct lane l[OF_LEAF][VECTOR])
{
#if PAIRED_FOLDS
    UNROLL
    for (int i = 0; i < OF_LEAF; i++)
        start_pair(l[i]);
    UNROLL
    for (int k = 0; k < n; k++)
        chain_pair(l[k % OF_LEAF], r[k].v[0], 1);
    UNROLL
    for (int i = 0; i < OF_LEAF; i++)
        end_pair(l[i]);
#endif
    UNROLL
    for (int k = 0; k < n; k++)
        UNROLL
        for (int c = 0; c < VECTOR; c++)
            chain(S, &l[k % OF_LEAF][c], map_element(one_taken(r[k], c)), k / OF_LEAF, j + S->p[0] * (k % OF_LEAF),
                  weights_of(k / OF_LEAF), 1);
}

static inline struct state join_states(struct state a, struct state b, struct merge_weights w, const int plain)
{
    return PLAIN_ONLY(plain) ? sums_added(a, b) : plain ? combine_weighted_plain(a, b, w) : combine_weighted(a, b, w);
}

/* A leaf of n elements, a constant; j: its number. */
static inline void leaf_states(struct tensors T, shape_ptr S, struct place start, const struct taken r[Q + 1], int n,
                               int64_t j, const int plain, struct lane all[VECTOR], struct state s[VECTOR])
{
    struct lane l[OF_LEAF][VECTOR];
    struct state own[OF_LEAF][VECTOR];
    UNROLL
    for (int i = 0; i < OF_LEAF; i++)
        UNROLL
        for (int c = 0; c < VECTOR; c++)
            l[i][c] = empty_lane();
    if (PLAIN_ONLY(plain))
        chain_plain(S, r, n, all, l);
    else
        chain_apart(S, r, n, j, l);
    UNROLL
    for (int i = 0; i < OF_LEAF; i++)
        UNROLL
        for (int c = 0; c < VECTOR; c++) {
            const int count = count_of(n, i, OF_LEAF);
            if (LOGSUMS && plain && !SUMS_ALONE)
                gather(&all[c], l[i][c]);
            if (LOGSUMS && !plain && count > 1)
                settle(T, S, place_beside(S, start, KEPT - 1, c), &l[i][c], j + S->p[0] * i, count);
            else if (LOGSUMS && !plain)
                settle_one(&l[i][c], count);
            own[i][c] = lane_state(S, l[i][c], j + S->p[0] * i, count);
        }
    UNROLL
    for (int reach = OF_LEAF / 2; reach; reach /= 2)
        UNROLL
        for (int i = 0; i < OF_LEAF / 2; i++)
            if (i < reach && i + reach < n) {
                const struct merge_weights w = joining(count_of(n, i, 2 * reach), count_of(n, i + reach, 2 * reach));
                UNROLL
                for (int c = 0; c < VECTOR; c++)
                    own[i][c] = join_states(own[i][c], own[i + reach][c], w, plain);
            }
    UNROLL
    for (int c = 0; c < VECTOR; c++)
        s[c] = own[0][c];
}

/* The weights of joining the subtrees of height b, the first of which has leaf j. What is joined lies as in a heap: where
 * `apart` subtrees remain, the one of leaf i < apart has number apart + i. */
static inline struct merge_weights weights_at(int parts, SHARED_POINTER const struct merge_weights *joins, int b, int64_t j)
{
    struct merge_weights w;
#if MOMENTS
    const int apart = parts >> (b + 1);
    w = joins[apart | ((int)j & (apart - 1))];
#else
    w.none = 0;
#endif
    return w;
}

static inline void find_weights(shape_ptr S, SHARED_POINTER struct merge_weights *joins)
{
#if MOMENTS
    const int n = (int)S->reduced_total, parts = (int)S->p[0];
    NO_UNROLL
    for (int t = THREAD; t < parts; t += THREADS) {
        int b = 0;
        NO_UNROLL
        for (; t >> (b + 1); b++)
            ;
        const int apart = 1 << b, i = t - apart;
        if (t)
            joins[t] = joining((n - i + 2 * apart - 1) >> (b + 1), (n - i + apart - 1) >> (b + 1));
    }
    BARRIER();
#endif
}

/* The leaf number after j, in the order of reversed bits, of every BATCH-th. */
static inline int next_leaf(int parts, int j)
{
    int bit = parts / 2 / BATCH;
    for (; j & bit; bit /= 2)
        j ^= bit;
    return j | bit;
}

/* Of plain sums, what ends a column's; 0: they were not plain. */
static inline int settle_plain(struct lane all[VECTOR], struct state s[VECTOR])
{
    int yes = 1;
    struct origins of = no_origins();
#if PAIRED_FOLDS
    if (SUMS_ALONE)
        end_pair(all);
#endif
    keep_origins(&of, all[0]);
    UNROLL
    for (int c = 0; c < VECTOR; c++) {
        greatest_from(&s[c], all[c]);
        yes &= lane_is_clear(all[c]) && settle_at(&s[c], &of);
    }
    return yes;
}

/* plain: whether sums are taken to be plain; the result: whether they were. */
static inline int fold_columns(struct tensors T, shape_ptr S, struct place start, int vectors, const int plain,
                               SHARED_POINTER const struct merge_weights *joins, struct state s[VECTOR])
{
    struct lane all[VECTOR];
    UNROLL
    for (int c = 0; c < VECTOR; c++)
        all[c] = empty_lane();
#if LOGSUMS && PAIRED_FOLDS
    if (SUMS_ALONE)
        start_pair(all);
#elif LOGSUMS
    if (SUMS_ALONE && plain) {
        const struct element x = map_element(fetch(T, element_place(S, start, 0)));
        UNROLL
        for (int c = 0; c < VECTOR; c++)
            set_origin(&all[c], x);
    }
#endif
    struct state pending[LEVELS][VECTOR];
    struct taken r[BATCH][Q + 1];
    const int parts = (int)S->p[0];
    int j = 0;
    UNROLL
    for (int g = 0; g < BATCH; g++)
        load_either(T, S, start, leaf_of_batch(parts, j, g), vectors, r[g]);
    LOADED();
    NO_UNROLL
    for (int i = 0; i < parts; i += BATCH) {
        struct state leaf[BATCH][VECTOR];
        const int next = next_leaf(parts, j);
        UNROLL
        for (int g = 0; g < BATCH; g++) {
            const int64_t at = leaf_of_batch(parts, j, g);
            if (at < S->p[1])
                leaf_states(T, S, start, r[g], Q + 1, at, plain, all, leaf[g]);
            else
                leaf_states(T, S, start, r[g], Q, at, plain, all, leaf[g]);
            if (i + BATCH < parts)
                load_either(T, S, start, leaf_of_batch(parts, next, g), vectors, r[g]);
            LOADED();
        }
        UNROLL
        for (int b = 0; b < BATCH_LEVELS; b++)
            UNROLL
            for (int g = 0; g < BATCH; g += 2 << b) {
                const struct merge_weights w = weights_at(parts, joins, b, leaf_of_batch(parts, j, g));
                UNROLL
                for (int c = 0; c < VECTOR; c++)
                    leaf[g][c] = join_states(leaf[g][c], leaf[g + (1 << b)][c], w, plain);
            }
        UNROLL
        for (int c = 0; c < VECTOR; c++)
            s[c] = leaf[0][c];
        int waits = 0;
        UNROLL
        for (int b = BATCH_LEVELS; b < LEVELS; b++) {
            if (!waits && (i >> b & 1)) {
                const struct merge_weights w = weights_at(parts, joins, b, j);
                UNROLL
                for (int c = 0; c < VECTOR; c++)
                    s[c] = join_states(pending[b][c], s[c], w, plain);
            } else if (!waits) {
                UNROLL
                for (int c = 0; c < VECTOR; c++)
                    pending[b][c] = s[c];
                waits = 1;
            }
        }
        j = next;
    }
    return LOGSUMS && plain ? settle_plain(all, s) : 1;
}
#else
static inline struct place next_row(shape_ptr S, struct place p)
{
#define X(s) p.i##s += in_stride(S, s, KEPT);
    FOR_MAP_INPUTS(X)
#undef X
    return p;
}

static inline void chain_row(shape_ptr S, struct taken r, int e, struct lane l[VECTOR])
{
    UNROLL
    for (int c = 0; c < VECTOR; c++)
        chain(S, &l[c], map_element(one_taken(r, c)), e, 0, weights_of(0), 1);
}

static inline void fold_columns(struct tensors T, shape_ptr S, struct place start, int vectors, struct state s[VECTOR])
{
    const int n = (int)S->reduced_total;
    struct lane l[VECTOR];
    struct place p = start;
    struct taken r[BATCH];
    int e = 0;
    UNROLL
    for (int c = 0; c < VECTOR; c++)
        l[c] = empty_lane();
    if (VECTOR > 1 && !LIKELY(vectors)) { /* rare, so it is short */
        NO_UNROLL
        for (; e < n; e++)
            chain_row(S, take(T, S, element_place(S, start, e), 0), e, l);
    } else {
        UNROLL
        for (int u = 0; u < BATCH; u++) {
            r[u] = no_taken();
            if (u < n)
                r[u] = take(T, S, p, 1);
            p = next_row(S, p);
        }
        LOADED();
        NO_UNROLL
        for (; e + BATCH <= n; e += BATCH)
            UNROLL
            for (int u = 0; u < BATCH; u++) {
                chain_row(S, r[u], e + u, l);
                if (e + BATCH + u < n)
                    r[u] = take(T, S, p, 1);
                p = next_row(S, p);
                LOADED();
            }
        UNROLL
        for (int u = 0; u < BATCH; u++)
            if (e + u < n)
                chain_row(S, r[u], e + u, l);
    }
    UNROLL
    for (int c = 0; c < VECTOR; c++)
        s[c] = lane_state(S, l[c], 0, n);
}
#endif

KERNEL void modefold(POINTERS const struct bases b, SHAPE_PARAMETER, GLOBAL char *workspace)
{
    shape_ptr S = SHAPE;
    struct tensors T = TENSORS(b);
    const int64_t o = (BLOCK * THREADS + THREAD) * VECTOR;
    struct state s[VECTOR];
#if ORDERED
    SHARED struct merge_weights joins[MOMENTS ? 1 << LEVELS : 1];
    find_weights(S, joins);
#endif
    if (o >= S->kept_total)
        return;
#if ORDERED
    const int done = LOGSUMS && fold_columns(T, S, kept_place(S, o), b.vectors != 0, 1, joins, s);
    if (!LIKELY(done))
        fold_columns(T, S, kept_place(S, o), b.vectors != 0, 0, joins, s);
#else
    fold_columns(T, S, kept_place(S, o), b.vectors != 0, s);
#endif
#if HAS_COUNT
    UNROLL
    for (int c = 0; c < VECTOR; c++)
        s[c].n = S->reduced_total;
#endif
#if VECTOR > 1
    finish_vector(T, S, o, s);
#else
    finish_output(T, S, o, s[0], S->reduced_total);
#endif
}
