/* Contractions of so few terms that tiles would leave most of the device idle: out[m, n] = fold over k of x[m, k] o
 * y[k, n], in any order. A thread has ROW_OWN outputs, below each other; a warp's threads take columns beside each other,
 * and its WARPS warps the terms in turn, HELD of them at a time, all read at once and from the caches, where tiles would
 * go through shared memory step by step. What the warps have is joined in shared memory.
 *
 * WHOLE: each warp reads its share of the terms at once, so there is no loop. EARLY: then all addresses are known before
 * the thread waits for earlier kernels, and the next kernel may come at once: of so little work that is most of the time.
 *
 * p[0]: positions, (batch, ROW_OWN rows, column); p[1]: groups of rows; p[2], p[3]: divisors, of columns and of groups of
 * rows; p[7]: rows * 2^32 + columns.
 * Cost of a term: one product, one fold, 1 + 1/ROW_OWN values from the L1 cache. */

/* Where term number t lies from where the sequence begins; past the last one it is the last one again, which is not
 * folded. */
static inline struct place term_place(shape_ptr S, int t, int terms)
{
    return element_place(S, no_place(), EXACT || t < terms ? t : terms - 1);
}

#if EARLY
/* Where a thread's HELD terms from t on lie. */
struct held {
    struct place x[ROW_OWN][HELD], y[HELD];
};

static inline void find_held(shape_ptr S, const struct place start[ROW_OWN], int t, int terms, struct held *at)
{
    UNROLL
    for (int h = 0; h < HELD; h++) {
        const struct place k = term_place(S, t + h, terms);
        at->y[h] = k;
#define X(s) at->y[h].i##s += start[0].i##s;
        FOR_INPUTS_y(X)
#undef X
        UNROLL
        for (int i = 0; i < ROW_OWN; i++) {
            at->x[i][h] = k;
#define X(s) at->x[i][h].i##s += start[i].i##s;
            FOR_INPUTS_x(X)
#undef X
        }
    }
}

/* Bits of all addresses, which are to be known before it is waited. */
static inline uint64_t know_addresses(struct tensors T, struct held *at, struct target to[ROW_OWN])
{
    uint64_t all = 0;
    UNROLL
    for (int i = 0; i < ROW_OWN; i++) {
#define X(k)            \
    KNOWN(to[i].o##k);  \
    all |= ADDRESS(T.out##k + to[i].o##k);
        FOR_OUTPUTS(X)
#undef X
    }
    UNROLL
    for (int h = 0; h < HELD; h++) {
#define X(s)               \
    KNOWN(at->y[h].i##s);  \
    all |= ADDRESS(T.in##s + at->y[h].i##s);
        FOR_INPUTS_y(X)
#undef X
        UNROLL
        for (int i = 0; i < ROW_OWN; i++) {
#define X(s)                  \
    KNOWN(at->x[i][h].i##s);  \
    all |= ADDRESS(T.in##s + at->x[i][h].i##s);
            FOR_INPUTS_x(X)
#undef X
        }
    }
    return all;
}

/* The terms; each address is known before the first one is read. */
static inline void load_held(struct tensors T, shape_ptr S, const struct place start[ROW_OWN], struct target to[ROW_OWN],
                             int t, int terms, value_t_x x[ROW_OWN][HELD], value_t_y y[HELD])
{
    struct held at;
    find_held(S, start, t, terms, &at);
    FOLLOW_STREAM_KNOWING(know_addresses(T, &at, to));
    UNROLL
    for (int h = 0; h < HELD; h++) {
        struct raw r;
#define X(s) r.x##s = T.in##s[at.y[h].i##s];
        FOR_INPUTS_y(X)
#undef X
        y[h] = factor_y(r);
        UNROLL
        for (int i = 0; i < ROW_OWN; i++) {
#define X(s) r.x##s = T.in##s[at.x[i][h].i##s];
            FOR_INPUTS_x(X)
#undef X
            x[i][h] = factor_x(r);
        }
    }
    LOADED();
}
#else
static inline void load_held(struct tensors T, shape_ptr S, const struct place start[ROW_OWN], struct target to[ROW_OWN],
                             int t, int terms, value_t_x x[ROW_OWN][HELD], value_t_y y[HELD])
{
    UNROLL
    for (int h = 0; h < HELD; h++) {
        const struct place k = term_place(S, t + h, terms);
        struct raw r;
#define X(s) r.x##s = T.in##s[start[0].i##s + k.i##s];
        FOR_INPUTS_y(X)
#undef X
        y[h] = factor_y(r);
        UNROLL
        for (int i = 0; i < ROW_OWN; i++) {
#define X(s) r.x##s = T.in##s[start[i].i##s + k.i##s];
            FOR_INPUTS_x(X)
#undef X
            x[i][h] = factor_x(r);
        }
    }
    LOADED();
}
#endif

#if WHOLE
/* All terms of one output at hand: in a tree, whose ways are short. */
static inline acc_t fold_whole(const value_t_x x[HELD], const value_t_y y[HELD])
{
    acc_t part[HELD];
    UNROLL
    for (int h = 0; h < HELD; h++) {
        part[h] = acc_empty(h);
        accumulate(&part[h], x[h], y[h], h, 0);
    }
    UNROLL
    for (int n = HELD; n > 1; n = (n + 1) / 2)
        UNROLL
        for (int h = 0; h < n / 2; h++)
#if TWICE
            acc_join_greatest(&part[h], part[n - 1 - h]);
    const acc_t greatest = part[0];
    UNROLL
    for (int h = 0; h < HELD; h++) {
        part[h] = greatest;
        accumulate(&part[h], x[h], y[h], h, 2);
    }
    UNROLL
    for (int n = HELD; n > 1; n = (n + 1) / 2)
        UNROLL
        for (int h = 0; h < n / 2; h++)
            part[h].s += part[n - 1 - h].s;
#else
            part[h] = acc_join(part[h], part[n - 1 - h]);
#endif
    return part[0];
}
#else
static inline void add_held(const value_t_x x[ROW_OWN][HELD], const value_t_y y[HELD], int t, int terms,
                            acc_t acc[ROW_OWN])
{
    UNROLL
    for (int i = 0; i < ROW_OWN; i++) {
        int pass = 0;
#if TWICE
        acc_before(&acc[i]);
        UNROLL
        for (int h = 0; h < HELD; h++)
            if (EXACT || t + h < terms)
                accumulate(&acc[i], x[i][h], y[h], t + h, 0);
        pass = acc_between(&acc[i]) ? 2 : 1;
#endif
        UNROLL
        for (int h = 0; h < HELD; h++)
            if (EXACT || t + h < terms)
                accumulate(&acc[i], x[i][h], y[h], t + h, pass);
    }
}
#endif

/* Of what the warps have of an output. */
static inline acc_t join_warps(SHARED_POINTER const acc_t *values)
{
    acc_t all = values[0];
#if TWICE
    UNROLL
    for (int l = 1; l < WARPS; l++)
        acc_join_greatest(&all, values[l * ROW_OWN * WARP]);
    all.s = 0;
    UNROLL
    for (int l = 0; l < WARPS; l++)
        acc_join_sum(&all, values[l * ROW_OWN * WARP]);
#else
    UNROLL
    for (int l = 1; l < WARPS; l++)
        all = acc_join(all, values[l * ROW_OWN * WARP]);
#endif
    return all;
}

/* Of a logsumexp the sum is at least 1 where m is a number, so that its logarithm has no special cases. */
static inline struct state near_state(shape_ptr S, acc_t a)
{
#if TWICE
    a.m = a.m - a.m == 0 ? a.m + logarithm(a.s) : a.m;
    a.s = 1;
#endif
    return acc_state(S, a);
}

KERNEL void modefold(POINTERS const struct bases b, SHAPE_PARAMETER, GLOBAL char *workspace)
{
#if WARPS > 1
    SHARED acc_t joined[WARPS * ROW_OWN * WARP];
#endif
#if EARLY
    shape_ptr S = EARLY_SHAPE;
    LET_FOLLOW();
#else
    shape_ptr S = SHAPE;
#endif
    struct tensors T = TENSORS(b);
    const uint32_t rows = (uint32_t)(S->p[7] >> 32), columns = (uint32_t)S->p[7], groups = (uint32_t)S->p[1];
    const int terms = (int)S->reduced_total, warp = WARPS > 1 ? THREAD / WARP : 0, across = THREAD % WARP;
    const uint32_t all = (uint32_t)S->p[0], mine = (uint32_t)BLOCK * WARP + across, here = mine < all ? mine : all - 1;
    const uint32_t above = divide_by(S->p[2], here), column = here - above * columns, batch = divide_by(S->p[3], above),
                   row = (above - batch * groups) * ROW_OWN;
    const struct place right = move_place(S, move_place(S, no_place(), batch, 2), column, 1);
    const struct target below = move_target(S, move_target(S, no_target(), batch, 2), column, 1);
    struct place start[ROW_OWN];
    struct target to[ROW_OWN];
    acc_t acc[ROW_OWN];
    UNROLL
    for (int i = 0; i < ROW_OWN; i++) {
        start[i] = move_place(S, right, row + i < rows ? row + i : rows - 1, 0);
        to[i] = move_target(S, below, row + i, 0);
        acc[i] = acc_empty(0);
    }
    value_t_x x[ROW_OWN][HELD];
    value_t_y y[HELD];
#if WHOLE
    load_held(T, S, start, to, warp * HELD, terms, x, y);
    UNROLL
    for (int i = 0; i < ROW_OWN; i++)
        acc[i] = fold_whole(x[i], y);
#else
    NO_UNROLL
    for (int t = warp * HELD; t < terms; t += WARPS * HELD) {
        load_held(T, S, start, to, t, terms, x, y);
        add_held(x, y, t, terms, acc);
    }
#endif
#if WARPS > 1
    UNROLL
    for (int i = 0; i < ROW_OWN; i++)
        joined[(warp * ROW_OWN + i) * WARP + across] = acc[i];
    BARRIER();
#endif
    UNROLL
    for (int i = 0; i < ROW_OWN; i++)
        if (i % WARPS == warp && mine < all && row + i < rows) {
#if WARPS > 1
            acc[i] = join_warps(joined + i * WARP + across);
#endif
            finish_at(T, to[i], near_state(S, acc[i]), S->reduced_total);
        }
}
