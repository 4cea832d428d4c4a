/* Broadcasts by thread sliding (Dikbayir et al., Fast multidimensional reduction and broadcast operations on GPU for
 * machine learning, section 3.2.2): threads of a block lie COLUMN_THREADS beside each other, a vector of columns to
 * each, in several rows; every thread slides, SLIDE times, along the rows (SLIDE_ROWS) or along its row. Operands that
 * do not change on the way (STILL_s) are read once: into a thread's registers, or (IN_SHARED) by the block's first row
 * or column of threads into shared memory.
 *
 * p[0], p[1]: blocks along a row, and along the rows. */
enum {
    ROW_THREADS = THREADS / COLUMN_THREADS,
    BLOCK_COLUMNS = COLUMN_THREADS * VECTOR * (SLIDE_ROWS ? 1 : SLIDE),
    BLOCK_ROWS = ROW_THREADS * (SLIDE_ROWS ? SLIDE : 1),
    SHARED_UNITS = SLIDE_ROWS ? COLUMN_THREADS : ROW_THREADS
};

struct unit {
#define X(s) in##s##_t x##s[VECTOR];
    FOR_FINISH_INPUTS(X)
#undef X
    int none;
};

struct unit_results {
#define X(k) out##k##_t y##k[VECTOR];
    FOR_OUTPUTS(X)
#undef X
};

/* Vectors exist from two elements on. */
#if VECTOR > 1
#define LOAD_VECTOR(s)                                                                                     \
    if (vectors && in_stride(S, s, KEPT - 1) == 1) {                                                       \
        const struct in##s##_vector v = *(GLOBAL const struct in##s##_vector *)(T.in##s + at.f##s);        \
        UNROLL for (int i = 0; i < VECTOR; i++) u->x##s[i] = v.v[i];                                       \
    } else
#define STORE_VECTOR(k)                                                                                    \
    if (vectors) {                                                                                         \
        struct out##k##_vector v;                                                                          \
        UNROLL for (int i = 0; i < VECTOR; i++) v.v[i] = y.y##k[i];                                        \
        *(GLOBAL struct out##k##_vector *)(T.out##k + at.o##k) = v;                                        \
    } else
#else
#define LOAD_VECTOR(s)
#define STORE_VECTOR(k)
#endif

/* The operands that stand still, or the others, of VECTOR outputs at most: `left` of them are there. */
static inline void load_unit(struct tensors T, shape_ptr S, struct target at, int64_t left, int vectors, int still,
                             struct unit *u)
{
#define X(s)                                                                                               \
    if (STILL_##s == still)                                                                                \
        LOAD_VECTOR(s)                                                                                     \
            UNROLL for (int i = 0; i < VECTOR; i++) if (i < left) u->x##s[i] =                             \
                T.in##s[at.f##s + (int64_t)i * in_stride(S, s, KEPT - 1)];
    FOR_FINISH_INPUTS(X)
#undef X
}

static inline void store_unit(struct tensors T, shape_ptr S, struct target at, int64_t left, int vectors, struct unit u)
{
    struct unit_results y;
    UNROLL
    for (int i = 0; i < VECTOR; i++) {
        struct raw_finish r;
        struct state none = state_identity();
#define X(s) r.x##s = u.x##s[i];
        FOR_FINISH_INPUTS(X)
#undef X
        r.none = 0;
        struct results one = finish(none, 1, r);
#define X(k) y.y##k[i] = one.y##k;
        FOR_OUTPUTS(X)
#undef X
    }
#define X(k)                                                                                               \
    STORE_VECTOR(k)                                                                                        \
        UNROLL for (int i = 0; i < VECTOR; i++) if (i < left)                                              \
            T.out##k[at.o##k + (int64_t)i * out_stride(S, k, KEPT - 1)] = y.y##k[i];
    FOR_OUTPUTS(X)
#undef X
}

KERNEL void modefold(POINTERS const struct bases b, SHAPE_PARAMETER, GLOBAL char *workspace)
{
    shape_ptr S = SHAPE;
    struct tensors T = TENSORS(b);
    const int beside = THREAD % COLUMN_THREADS, below = THREAD / COLUMN_THREADS;
    const int64_t columns = S->size[KEPT - 1], rows = KEPT > 1 ? S->size[KEPT > 1 ? KEPT - 2 : 0] : 1;
    const int64_t along = block_past(S->p[0]), others = block_over(S->p[0]);
    const int64_t column = along * BLOCK_COLUMNS + beside * VECTOR;
    const int64_t row = others % S->p[1] * BLOCK_ROWS + below, first = others / S->p[1] * rows;
    const int vectors = b.vectors != 0;
    struct unit held;
    int there = column < columns && row < rows;
    if (there)
        load_unit(T, S, kept_target(S, (first + row) * columns + column), columns - column, vectors, 1, &held);
#if IN_SHARED
    SHARED struct unit shared[SHARED_UNITS];
    if (SLIDE_ROWS ? below == 0 : beside == 0)
        shared[SLIDE_ROWS ? beside : below] = held;
    BARRIER();
    held = shared[SLIDE_ROWS ? beside : below];
#endif
    UNROLL
    for (int k = 0; k < SLIDE; k++) {
        const int64_t c = column + (SLIDE_ROWS ? 0 : k * COLUMN_THREADS * VECTOR);
        const int64_t r = row + (SLIDE_ROWS ? k * ROW_THREADS : 0);
        if (c < columns && r < rows) {
            const struct target at = kept_target(S, (first + r) * columns + c);
            load_unit(T, S, at, columns - c, vectors, 0, &held);
            store_unit(T, S, at, columns - c, vectors, held);
        }
    }
}
