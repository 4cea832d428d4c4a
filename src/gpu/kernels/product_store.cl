/* How a product on tensor cores stores its outputs, and how its tiles of terms follow each other. */
/* Gives the block's sums to the one that joins all parts. Returns whether it is this one; in a cluster every block
 * joins some of them. */
static inline int hand_in(SHARED_POINTER sum_t *sums, GLOBAL sum_t *parts, int64_t part, int64_t count,
                          GLOBAL uint32_t *counter)
{
#if PARTED
    const int column = THREAD % GROUPS * VECTOR;
    for (int r = THREAD / GROUPS; r < ROWS; r += THREADS / GROUPS)
        UNROLL for (int j = 0; j < VECTOR; j += 4)
            *(GLOBAL struct sixteen *)(parts + (part * ROWS + r) * COLUMNS + column + j) =
                *(SHARED_POINTER const struct sixteen *)(sums + r * PITCH + column + j);
    BARRIER(); /* nobody reads shared memory any more: the flag may lie there */
    return last_to_arrive(counter, count, (SHARED_POINTER int *)sums);
#else
    return 1;
#endif
}

/* Adds the parts' sums of a group in their order: each from its block's shared memory in a cluster, from the workspace
 * if PARTED, else there is one. */
static inline void join_group(SHARED_POINTER const sum_t *sums, GLOBAL const sum_t *parts, int64_t count,
                              float all[VECTOR])
{
#if CLUSTER > 1
    float v[CLUSTER][VECTOR];
    UNROLL for (int q = 0; q < CLUSTER; q++)
        UNROLL for (int j = 0; j < VECTOR; j += 4) read_from(q, sums + j, v[q] + j);
    UNROLL
    for (int j = 0; j < VECTOR; j++) {
        all[j] = v[0][j];
        UNROLL for (int q = 1; q < CLUSTER; q++) all[j] += v[q][j];
    }
#elif PARTED
    enum { AT_ONCE = 4 };
    UNROLL for (int j = 0; j < VECTOR; j++) all[j] = 0;
    for (int64_t p = 0; p < count; p += AT_ONCE) {
        float v[AT_ONCE][VECTOR];
        UNROLL for (int q = 0; q < AT_ONCE; q++)
            UNROLL for (int j = 0; j < VECTOR; j += 4)
                read_fresh(parts + (p + q < count ? p + q : p) * (ROWS * COLUMNS) + j, v[q] + j);
        UNROLL for (int q = 0; q < AT_ONCE; q++)
            UNROLL for (int j = 0; j < VECTOR; j++) all[j] += p + q < count ? v[q][j] : 0;
    }
#else
    UNROLL for (int j = 0; j < VECTOR; j++) all[j] = sums[j];
#endif
}

/* What the finish part takes of its operands for a thread's group of columns. FINISH_ALIKE: columns alone tell, so that
 * it is read once. */
struct taken {
    struct raw_finish r[VECTOR];
};

static inline struct taken take_once(struct tensors T, shape_ptr S, int64_t column, int64_t columns)
{
    struct taken taken;
#if FINISH_ALIKE
    UNROLL
    for (int j = 0; j < VECTOR; j++)
        taken.r[j] = fetch_finish(T, move_target(S, no_target(), column + j < columns ? column + j : 0, 1));
#else
    taken.r[0].none = 0;
#endif
    return taken;
}

/* A group of outputs beside each other, `count` of which exist, finished and not stored yet. */
struct group {
    struct values y[VECTOR];
    struct target left, first;
    int64_t column, count;
};

static inline struct group finish_group(struct tensors T, shape_ptr S, struct target left, int64_t column, int64_t count,
                                        const struct taken *taken, const float sums[VECTOR])
{
    struct group g;
    g.left = left;
    g.first = sum_of_targets(left, move_target(S, no_target(), column, 1));
    g.column = column;
    g.count = count;
    UNROLL
    for (int j = 0; j < VECTOR; j++) {
        struct state s;
        struct target at = g.first;
        if (j >= count)
            continue;
        s.r0 = sums[j];
#if FINISH_ALIKE
        (void)at;
        g.y[j] = values_of(s, S->reduced_total, taken->r[j]);
#else
#if EVEN_COLUMNS
#define X(s) at.f##s += j * in_stride(S, s, COLUMN_LOOP);
        FOR_FINISH_INPUTS(X)
#undef X
#else
        at = sum_of_targets(left, move_target(S, no_target(), column + j, 1));
#endif
        g.y[j] = values_of(s, S->reduced_total, fetch_finish(T, at));
#endif
    }
    return g;
}

/* In one store where they are neighbours in memory. */
static inline void store_group(struct tensors T, shape_ptr S, const struct group *g)
{
#if EVEN_COLUMNS
#define X(k)                                                                                                   \
    if (out_stride(S, k, COLUMN_LOOP) == 1 &&                                                                  \
        (uint64_t)(T.out##k + g->first.o##k) % (sizeof(struct out##k##_vector) < 16 ? sizeof(struct out##k##_vector) : 16) == 0) \
        store_vector##k(T.out##k + g->first.o##k, g->y);                                                       \
    else                                                                                                       \
        UNROLL for (int j = 0; j < VECTOR; j++)                                                                \
            T.out##k[g->first.o##k + j * out_stride(S, k, COLUMN_LOOP)] = stored(g->y[j]).y##k;
    FOR_OUTPUTS(X)
#undef X
#else
    UNROLL
    for (int j = 0; j < VECTOR; j++) {
        const struct target at = sum_of_targets(g->left, move_target(S, no_target(), g->column + j, 1));
        if (j >= g->count)
            continue;
        const struct results y = stored(g->y[j]);
#define X(k) T.out##k[at.o##k] = y.y##k;
        FOR_OUTPUTS(X)
#undef X
    }
#endif
}

/* Groups that a thread finishes before it stores them: what they read may come from memory, and a store that may go to
 * the same place would wait for each. (One by one they take more registers.) */
enum {
    ALL_TURNS = SUM_BYTES / 4 / PITCH * GROUPS / THREADS / CLUSTER,
    TURNS = ALL_TURNS < 2 || !EVEN_COLUMNS ? 1 : ALL_TURNS < 4 ? 2 : 4
};

/* How far the factors' elements of the tile after the one at t are from its own. fast: t's place in the innermost
 * reduced loop. */
struct step {
    int64_t x, y;
};

static inline struct step step_from(shape_ptr S, int t, int end, int *fast)
{
    struct step step;
    *fast += STEP;
    if (*fast < S->size[LOOPS - 1] || t + STEP >= end) {
        step.x = STEP * in_stride(S, SLOT_X, LOOPS - 1);
        step.y = STEP * in_stride(S, SLOT_Y, LOOPS - 1);
    } else {
        const struct place here = element_place(S, no_place(), t), next = element_place(S, no_place(), t + STEP);
        step.x = next.PLACE_X - here.PLACE_X;
        step.y = next.PLACE_Y - here.PLACE_Y;
        *fast = 0;
    }
    return step;
}
