/* Short rows that lie one after the other: a block copies its rows into shared memory, in vectors, and each thread folds
 * EACH rows of ROW elements there, PART elements an access. (Threads that read such rows from memory themselves would ask
 * for every cache line several times, and share trees across threads.) The rows lie there as they are, or, whole vectors,
 * APART elements from each other, a PART. */
enum {
    PITCH = ROW + APART,
    SPAN_ELEMENTS = THREADS * EACH * ROW,
    SPAN_VECTORS = SPAN_ELEMENTS / VECTOR,
    COPIES = (SPAN_VECTORS + THREADS - 1) / THREADS,
    PARTS = HELD / PART,
    LEVELS = PARTS > 64  ? 7
             : PARTS > 32 ? 6
             : PARTS > 16 ? 5
             : PARTS > 8  ? 4
             : PARTS > 4  ? 3
             : PARTS > 2  ? 2
             : PARTS > 1  ? 1
                          : 0
};

#define X(s)                           \
    struct ALIGNED(PART_BYTES) part##s \
    {                                  \
        in##s##_t v[PART];             \
    };
FOR_MAP_INPUTS(X)
#undef X

/* A vector, as it is copied. */
#if APART
struct ALIGNED(8) half_vector {
    uint32_t word[2];
};

struct ALIGNED(16) sixteen_bytes {
    struct half_vector part[2];
};

#define STAGED_VECTOR(k) struct sixteen_bytes
static inline void store_vector(SHARED_POINTER struct raws *span, int v, struct sixteen_bytes r)
{
    enum { OF_ROW = 2 * ROW / VECTOR };
    const int at = 2 * v + 2 * v / OF_ROW;
    ((SHARED_POINTER struct half_vector *)span)[at] = r.part[0];
    ((SHARED_POINTER struct half_vector *)span)[at + 1] = r.part[1];
}
#define STORE_VECTOR(k, span, v, r) store_vector(span, v, r)
#else
#define STAGED_VECTOR(k) struct in##k##_vector
#define STORE_VECTOR(k, span, v, r) ((SHARED_POINTER struct in##k##_vector *)(span))[v] = r
#endif

/* Copies the block's elements, from number start on; all is their end in memory. */
static inline void copy_span(struct tensors T, int64_t start, int64_t all, int vectors, SHARED_POINTER struct raws *span)
{
    if (vectors && start + SPAN_ELEMENTS <= all) {
#define X(s)                                                                                                     \
    STAGED_VECTOR(s) r##s[COPIES];                                                                               \
    UNROLL for (int i = 0; i < COPIES; i++)                                                                      \
    {                                                                                                            \
        const int v = i * THREADS + THREAD < SPAN_VECTORS ? i * THREADS + THREAD : SPAN_VECTORS - 1;             \
        r##s[i] = READ_VECTOR((GLOBAL const STAGED_VECTOR(s) *)(T.in##s + start) + v);                           \
    }                                                                                                            \
    LOADED_TOGETHER();                                                                                           \
    UNROLL for (int i = 0; i < COPIES; i++)                                                                      \
    {                                                                                                            \
        if (SPAN_VECTORS % THREADS == 0 || i * THREADS + THREAD < SPAN_VECTORS)                                  \
            STORE_VECTOR(s, span, i * THREADS + THREAD, r##s[i]);                                                \
    }
        FOR_MAP_INPUTS(X)
#undef X
    } else {
        NO_UNROLL
        for (int e = THREAD; e < SPAN_ELEMENTS && start + e < all; e += THREADS) {
#define X(s) ((SHARED_POINTER in##s##_t *)span)[e + e / ROW * APART] = T.in##s[start + e];
            FOR_MAP_INPUTS(X)
#undef X
        }
    }
}

/* The states of PART lanes of a row, from its element e on; where any order does, lane `all` gets them instead. */
static inline void fold_part(shape_ptr S, SHARED_POINTER const struct raws *span, int row, int e, struct state s[PART],
                             struct lane *all)
{
    struct raw r;
    const int from = row * PITCH + e;
#define X(k)                                                                                              \
    const struct part##k v##k =                                                                           \
        *(SHARED_POINTER const struct part##k *)((SHARED_POINTER const in##k##_t *)span + from);
    FOR_MAP_INPUTS(X)
#undef X
#if BYTES && PART >= 4
    UNROLL
    for (int j = 0; j < PART; j += 4) {
        uint32_t word = 0;
        UNROLL
        for (int b = 0; b < 4; b++) {
#define X(k) word |= (uint32_t)(uint8_t)v##k.v[j + b] << 8 * b;
            FOR_MAP_INPUTS(X)
#undef X
        }
        all->r0 = FOLD_BYTES(all->r0, word, 0x01010101u);
    }
    return;
#endif
    UNROLL
    for (int j = 0; j < PART; j++) {
        struct lane l = empty_lane();
#define X(k) r.x##k = v##k.v[j];
        FOR_MAP_INPUTS(X)
#undef X
        struct element x = map_element(r);
        if (ANY_ORDER) {
            chain(S, all, x, e + j, 0, weights_of(0), 1);
            continue;
        }
        chain(S, &l, x, 0, e + j, weights_of(0), 1);
        if (LOGSUMS)
            settle_one(&l, 1);
        s[j] = lane_state(S, l, e + j, 1);
    }
}

/* A row: the tree over its parts depth first, which are met by the bits of their numbers reversed; then the tree inside a
 * part. Where any order does, one lane has all elements, as they lie. */
static inline struct state fold_row(shape_ptr S, SHARED_POINTER const struct raws *span, int row)
{
    struct state s[PART], pending[LEVELS + 1][PART];
    struct lane all = empty_lane();
    int held[LEVELS + 1];
    UNROLL
    for (int i = 0; i < PARTS; i++) {
        int part = 0, there, waits = 0;
        UNROLL
        for (int b = 0; b < LEVELS; b++)
            part += (i >> b & 1) << (LEVELS - 1 - b);
        if (ANY_ORDER)
            part = i;
        there = part * PART < ROW;
        if (there)
            fold_part(S, span, row, part * PART, s, &all);
        UNROLL
        for (int b = 0; b < LEVELS && !ANY_ORDER; b++) {
            if (!waits && (i >> b & 1)) {
                UNROLL
                for (int j = 0; j < PART; j++)
                    if (held[b])
                        s[j] = there ? combine(pending[b][j], s[j]) : pending[b][j];
                there |= held[b];
            } else if (!waits) {
                UNROLL
                for (int j = 0; j < PART; j++)
                    if (there)
                        pending[b][j] = s[j];
                held[b] = there;
                waits = 1;
            }
        }
    }
    if (ANY_ORDER)
        return lane_state(S, all, 0, ROW);
    UNROLL
    for (int reach = PART / 2; reach; reach /= 2)
        UNROLL
        for (int j = 0; j < PART / 2; j++)
            if (j < reach)
                s[j] = combine(s[j], s[j + reach]);
    return s[0];
}

KERNEL void modefold(POINTERS const struct bases b, SHAPE_PARAMETER, GLOBAL char *workspace)
{
    SHARED ALIGNED(16) struct raws span[SPAN_VECTORS + THREADS * EACH * APART / VECTOR];
    shape_ptr S = SHAPE;
    struct tensors T = TENSORS(b);
    copy_span(T, BLOCK * SPAN_ELEMENTS, S->kept_total * ROW, b.vectors != 0, span);
    BARRIER();
    UNROLL
    for (int i = 0; i < EACH; i++) {
        const int64_t o = (BLOCK * EACH + i) * THREADS + THREAD;
        if (o < S->kept_total)
            finish_output(T, S, o, fold_row(S, span, i * THREADS + THREAD), ROW);
    }
}
