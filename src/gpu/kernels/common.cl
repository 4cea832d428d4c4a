/* What all kernels share: places of elements in the tensors. The text before this one (emit.c) has the program: struct
 * raw, struct element, struct state and their functions, and the counts INPUTS, OUTPUTS, KEPT, REDUCED, LOOPS, WINDOWS. */
/* What is loaded at once; half as much where registers were spilled even with all of them (ONE_BLOCK 2, nvrtc.c), or at
 * once when they were. */
#define HALVED(n) ((n) > 1 ? (n) / 2 : 1)
#define BATCH_OF(n) (ONE_BLOCK > 1 ? HALVED(n) : (n))
#define BATCH_OR_HALF(n) (ONE_BLOCK ? HALVED(n) : (n))

/* READS_ONCE: mf_gpu_reads_once. */
#if READS_ONCE && defined(READ_ONCE)
#define READ_VECTOR(place) READ_ONCE(place)
#else
#define READ_VECTOR(place) (*(place))
#endif

/* Where an element lies in every operand inside the reducers, and its number in the order as written. */
struct place {
#define X(s) int64_t i##s;
    FOR_MAP_INPUTS(X)
#undef X
#if WINDOWS
    WINDOW window[WINDOWS];
#endif
    int none;
};

/* Where an output lies, and the operands of the finish part. */
struct target {
#define X(s) int64_t f##s;
    FOR_FINISH_INPUTS(X)
#undef X
#define X(k) int64_t o##k;
    FOR_OUTPUTS(X)
#undef X
};

/* Numbers of outputs or elements: 32 bits where both fit. */
#if WIDE
typedef int64_t number;
#else
typedef uint32_t number;
#endif

/* v / size of loop l, by multiplication (Granlund and Montgomery, Division by invariant integers, 1994) for v < 2^31. */
static inline number divide(shape_ptr S, number v, int l)
{
#if WIDE
    return v / S->size[l];
#else
    return MULHI(v, (uint32_t)S->magic[l]) >> (uint32_t)S->shift[l];
#endif
}

/* v / size for v < 2^31; divisor: what the host makes of the size (mf_gpu_divisor). */
static inline uint32_t divide_by(int64_t divisor, uint32_t v)
{
    const uint32_t magic = (uint32_t)divisor;
    return magic ? MULHI(v, magic) >> (uint32_t)(divisor >> 32) : v;
}

#if WINDOWS
/* How far window w moves in a step of loop l; a constant where it does not, for most do in two loops of all. */
static inline WINDOW window_step(shape_ptr S, int w, int l)
{
    return WINDOWS * LOOPS > 64 || (WINDOW_MOVES >> (w * LOOPS + l) & 1) ? (WINDOW)S->window_step[w][l] : 0;
}
#endif

static inline struct place kept_place(shape_ptr S, int64_t o)
{
    struct place p;
    number v = (number)o;
#define X(s) p.i##s = 0;
    FOR_MAP_INPUTS(X)
#undef X
#if WINDOWS
    for (int w = 0; w < WINDOWS; w++)
        p.window[w] = (WINDOW)S->window_offset[w];
#endif
    p.none = 0;
#if KEPT == 1 && !WINDOWS
#define X(s) p.i##s = o * in_stride(S, s, 0);
    FOR_MAP_INPUTS(X)
#undef X
    return p;
#endif
    UNROLL
    for (int l = KEPT - 1; l >= 0; l--) {
        number q = l ? divide(S, v, l) : 0, d = v - q * (number)S->size[l];
        v = q;
#define X(s) p.i##s += (int64_t)d * in_stride(S, s, l);
        FOR_MAP_INPUTS(X)
#undef X
#if WINDOWS
        for (int w = 0; w < WINDOWS; w++)
            p.window[w] += (WINDOW)d * window_step(S, w, l);
#endif
    }
    return p;
}

static inline struct target kept_target(shape_ptr S, int64_t o)
{
    struct target t;
    number v = (number)o;
#define X(s) t.f##s = FLAT_IN_##s ? o : 0;
    FOR_FINISH_INPUTS(X)
#undef X
#define X(k) t.o##k = FLAT_OUT_##k ? o : 0;
    FOR_OUTPUTS(X)
#undef X
    UNROLL
    for (int l = KEPT - 1; l >= 0; l--) {
        number q = l ? divide(S, v, l) : 0, d = v - q * (number)S->size[l];
        v = q;
#define X(s) t.f##s += FLAT_IN_##s ? 0 : (int64_t)d * in_stride(S, s, l);
        FOR_FINISH_INPUTS(X)
#undef X
#define X(k) t.o##k += FLAT_OUT_##k ? 0 : (int64_t)d * out_stride(S, k, l);
        FOR_OUTPUTS(X)
#undef X
    }
    return t;
}

/* The block's number over n, and what is left. A launch has fewer than 2^31 blocks: these are short divisions, which
 * take a tenth of a long one's time. */
static inline int64_t block_over(int64_t n)
{
    return (uint32_t)BLOCK / (uint32_t)n;
}

static inline int64_t block_past(int64_t n)
{
    return (uint32_t)BLOCK % (uint32_t)n;
}

/* p moved to reduced element e. With one loop that is a product, which the compiler takes apart: elements at constant
 * distances then cost an addition, or nothing. */
static inline struct place element_place(shape_ptr S, struct place p, int64_t e)
{
#if REDUCED == 1 && !WINDOWS
#define X(s) p.i##s += e * in_stride(S, s, KEPT);
    FOR_MAP_INPUTS(X)
#undef X
    return p;
#else
    number v = (number)e;
    UNROLL
    for (int l = LOOPS - 1; l >= KEPT; l--) {
        number q = l > KEPT ? divide(S, v, l) : 0, d = v - q * (number)S->size[l];
        v = q;
#define X(s) p.i##s += (int64_t)d * in_stride(S, s, l);
        FOR_MAP_INPUTS(X)
#undef X
#if WINDOWS
        for (int w = 0; w < WINDOWS; w++)
            p.window[w] += (WINDOW)d * window_step(S, w, l);
#endif
    }
    return p;
#endif
}

/* The c-th neighbour along a loop on which no window depends. */
static inline struct place place_beside(shape_ptr S, struct place p, int loop, int c)
{
#define X(s) p.i##s += c * in_stride(S, s, loop);
    FOR_MAP_INPUTS(X)
#undef X
    return p;
}

#if WINDOWS
/* Whether the element lies inside window w: one comparison, for a number below 0 is a large one without its sign. */
static inline int is_within(shape_ptr S, struct place p, int w)
{
    return (WINDOW_NUMBER)p.window[w] < (WINDOW_NUMBER)S->window_extent[w];
}
#endif

/* Whether the element lies inside all windows. */
static inline int inside(shape_ptr S, struct place p)
{
    int yes = 1;
#if WINDOWS
    for (int w = 0; w < WINDOWS; w++)
        yes &= is_within(S, p, w);
#endif
    return yes;
}

#if HAS_INDEX
/* The number that reduced element e has in the order as written. */
static inline int64_t index_of(shape_ptr S, int64_t e)
{
    int64_t index = 0;
    number v = (number)e;
    UNROLL
    for (int l = LOOPS - 1; l >= KEPT; l--) {
        number q = l > KEPT ? divide(S, v, l) : 0, d = v - q * (number)S->size[l];
        v = q;
        index += (int64_t)d * S->index[l];
    }
    return index;
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

static inline struct raw fetch(struct tensors t, struct place p)
{
    struct raw r;
#define X(s) r.x##s = t.in##s[p.i##s];
    FOR_MAP_INPUTS(X)
#undef X
    r.none = 0;
    return r;
}

#if BYTES
/* VECTOR elements of a program that only sums bytes, or of PACKED_BYTES: words of four, lowest first. */
#if PACKED_BYTES
#define FOLD_WORD(l, word, factors) fold_word(l, word, factors)
#else
#define FOLD_WORD(l, word, factors) (l)->r0 = FOLD_BYTES((l)->r0, word, factors)
#endif
enum { WORDS = VECTOR / 4 };

struct raws {
    uint32_t words[WORDS];
};

struct ALIGNED(WORDS > 3 ? 16 : 4 * WORDS) words {
    uint32_t v[WORDS];
};

static inline struct raws no_elements(void)
{
    struct raws r;
    UNROLL
    for (int i = 0; i < WORDS; i++)
        r.words[i] = 0;
    return r;
}

static inline struct raws fetch_vector(struct tensors t, shape_ptr S, struct place p, int loop, int vectors)
{
    struct raws r = no_elements();
#define X(s)                                                                                                          \
    if (vectors && in_stride(S, s, loop) == 1) {                                                                      \
        const struct words v = READ_VECTOR((GLOBAL const struct words *)(t.in##s + p.i##s));                          \
        UNROLL for (int i = 0; i < WORDS; i++) r.words[i] = v.v[i];                                                   \
    } else                                                                                                            \
        UNROLL for (int i = 0; i < VECTOR; i++) r.words[i / 4] |=                                                     \
            (uint32_t)(uint8_t)t.in##s[p.i##s + i * in_stride(S, s, loop)] << 8 * (i % 4);
    FOR_MAP_INPUTS(X)
#undef X
    return r;
}

static inline struct raw one_of_vector(struct raws v, int i)
{
    struct raw r;
#define X(s) r.x##s = (in##s##_t)(v.words[i / 4] >> 8 * (i % 4));
    FOR_MAP_INPUTS(X)
#undef X
    r.none = 0;
    return r;
}

/* Folds those of the vector's elements that are numbers 0 ... n-1, where its first is number e; all: it is all of them. */
static inline void add_vector(struct lane *l, struct raws v, int all, int e, int n)
{
    if (all || (e >= 0 && e + VECTOR <= n)) {
        UNROLL
        for (int i = 0; i < WORDS; i++)
            FOLD_WORD(l, v.words[i], 0x01010101u);
    } else if (e + VECTOR > 0 && e < n) {
        UNROLL
        for (int i = 0; i < WORDS; i++) {
            const int low = e + 4 * i < 0 ? -(e + 4 * i) : 0, high = n - e - 4 * i;
            if (low < 4 && high > 0)
                FOLD_WORD(l, v.words[i], 0x01010101u << 8 * low & 0x01010101u >> 8 * (high < 4 ? 4 - high : 0));
        }
    }
}
#else
/* VECTOR elements one after the other along a loop. */
struct raws {
#define X(s) in##s##_t x##s[VECTOR];
    FOR_MAP_INPUTS(X)
#undef X
#if !MAP_INPUTS
    int none;
#endif
};

/* The elements from place p on; vectors: operands with stride 1 are aligned to what they are read in. */
static inline struct raws fetch_vector(struct tensors t, shape_ptr S, struct place p, int loop, int vectors)
{
    struct raws r;
#if VECTOR > 1
#define X(s)                                                                                          \
    if (vectors && in_stride(S, s, loop) == 1) {                                                      \
        const struct in##s##_vector v = READ_VECTOR((GLOBAL const struct in##s##_vector *)(t.in##s + p.i##s)); \
        UNROLL for (int i = 0; i < VECTOR; i++) r.x##s[i] = v.v[i];                                   \
    } else                                                                                            \
        UNROLL for (int i = 0; i < VECTOR; i++) r.x##s[i] = t.in##s[p.i##s + i * in_stride(S, s, loop)];
#else
#define X(s) r.x##s[0] = t.in##s[p.i##s];
#endif
    FOR_MAP_INPUTS(X)
#undef X
#if !MAP_INPUTS
    r.none = 0;
#endif
    return r;
}

static inline struct raws no_elements(void)
{
    struct raws r;
    UNROLL
    for (int i = 0; i < VECTOR; i++) {
#define X(s) r.x##s[i] = 0;
        FOR_MAP_INPUTS(X)
#undef X
    }
#if !MAP_INPUTS
    r.none = 0;
#endif
    return r;
}

static inline struct raw one_of_vector(struct raws v, int i)
{
    struct raw r;
#define X(s) r.x##s = v.x##s[i];
    FOR_MAP_INPUTS(X)
#undef X
    r.none = 0;
    return r;
}
#endif

/* What the finish part takes of its operands there. */
static inline struct raw_finish fetch_finish(struct tensors t, struct target at)
{
    struct raw_finish r;
#define X(s) r.x##s = t.in##s[at.f##s];
    FOR_FINISH_INPUTS(X)
#undef X
    r.none = 0;
    return r;
}

/* How many elements an output has; a kernel that is compiled for a number of them may say it. */
#ifndef ELEMENTS
#define ELEMENTS S->reduced_total
#endif

/* How many elements took part in a state, where its tensor has so many. */
#if HAS_COUNT
#define STATE_COUNT(s, all) ((s).n)
#else
#define STATE_COUNT(s, all) (all)
#endif

/* The outputs there of these states; count elements took part, unless the state says how many. */
static inline struct results results_at(struct tensors t, struct target at, struct state s, int64_t count)
{
    return finish(s, STATE_COUNT(s, count), fetch_finish(t, at));
}

/* Computes and stores them. */
static inline void finish_at(struct tensors t, struct target at, struct state s, int64_t count)
{
    struct results y = results_at(t, at, s, count);
#define X(k) t.out##k[at.o##k] = y.y##k;
    FOR_OUTPUTS(X)
#undef X
}

/* The same of output number o. */
static inline void finish_output(struct tensors t, shape_ptr S, int64_t o, struct state s, int64_t count)
{
    finish_at(t, kept_target(S, o), s, count);
}

#if STORES_VECTORS
/* Finishes VECTOR columns beside each other, the first of which is output o; stores them as one where that goes. */
static inline void finish_vector(struct tensors T, shape_ptr S, int64_t o, const struct state s[VECTOR])
{
    const struct target first = kept_target(S, o);
    struct values y[VECTOR];
    UNROLL
    for (int c = 0; c < VECTOR; c++) {
        struct raw_finish r;
#define X(s) r.x##s = T.in##s[first.f##s + c * in_stride(S, s, KEPT - 1)];
        FOR_FINISH_INPUTS(X)
#undef X
        r.none = 0;
        y[c] = values_of(s[c], STATE_COUNT(s[c], ELEMENTS), r);
    }
#define X(k)                                                                                                       \
    {                                                                                                              \
        enum { BYTES_##k = sizeof(struct out##k##_vector) < 16 ? sizeof(struct out##k##_vector) : 16 };            \
        GLOBAL out##k##_t *const to = T.out##k + first.o##k;                                                       \
        if (out_stride(S, k, KEPT - 1) == 1 && (uint64_t)to % BYTES_##k == 0)                                      \
            store_vector##k(to, y);                                                                                \
        else                                                                                                       \
            UNROLL for (int c = 0; c < VECTOR; c++) to[c * out_stride(S, k, KEPT - 1)] = stored(y[c]).y##k;        \
    }
    FOR_OUTPUTS(X)
#undef X
}
#endif

/* How many of n elements of a tile a lane has. */
static inline int lane_count(int n, int lane)
{
    return n > lane ? (n - lane + LANES - 1) / LANES : 0;
}

/* Whether this block is the last of `blocks` to arrive at the counter, which is then 0 again. What any of them wrote
 * before is then there for it to read. flag: one int of shared memory. */
static inline int last_to_arrive(GLOBAL uint32_t *counter, int64_t blocks, SHARED_POINTER int *flag)
{
    FENCE_OF_EACH();
    BARRIER();
    if (THREAD == 0) {
        FENCE();
        *flag = COUNT_UP(counter) == (uint32_t)(blocks - 1);
        if (*flag)
            *counter = 0;
    }
    BARRIER();
    if (*flag)
        FENCE();
    return *flag;
}
