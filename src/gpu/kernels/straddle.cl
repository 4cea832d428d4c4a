/* Sums of bytes down many columns whose rows begin anywhere: a thread has VECTOR neighbouring columns alone, reads the
 * whole words in which a row's bytes of them lie, one more than they are, and shifts the bytes together. Rows four apart
 * have the same shift. Sums pass through shared memory, so that neighbouring threads store neighbouring outputs.
 *
 * p[0]: threads of a row of columns, p[1]: that as a divisor, p[2]: threads in all; p[6], p[7]: where the operand's memory
 * begins and ends. */
enum { WORDS_READ = VECTOR / 4 + 1, SHIFTS = 4 };

#define X(s)                \
    typedef in##s##_t item; \
    enum { SLOT = s };
FOR_MAP_INPUTS(X)
#undef X

/* The first output of thread number t, which may be the one after the last. */
static inline number output_of(shape_ptr S, uint32_t t)
{
    const uint32_t row = divide_by(S->p[1], t);
    return row * (number)S->size[KEPT - 1] + (t - row * (uint32_t)S->p[0]) * VECTOR;
}

struct straddled {
    uint32_t v[WORDS_READ];
};

static inline struct straddled whole_words(GLOBAL const item *at)
{
    struct straddled w;
    UNROLL
    for (int i = 0; i < WORDS_READ; i++)
        w.v[i] = READ_VECTOR((GLOBAL const uint32_t *)at + i);
    return w;
}

static inline void add_row(int sum[VECTOR], struct straddled w, uint32_t shift)
{
    UNROLL
    for (int c = 0; c < VECTOR; c++) {
        const uint32_t bytes = (uint32_t)(((uint64_t)w.v[c / 4 + 1] << 32 | w.v[c / 4]) >> shift);
        sum[c] = FOLD_BYTES(sum[c], bytes, 1u << 8 * (c % 4));
    }
}

/* Rows first ... end - 1 of the columns at `from`. */
static inline void add_rows(GLOBAL const item *from, int64_t stride, int first, int end, int sum[VECTOR])
{
    int64_t at[SHIFTS]; /* from there */
    uint32_t shift[SHIFTS];
    struct straddled w[BATCH];
    UNROLL
    for (int u = 0; u < SHIFTS; u++) {
        at[u] = (first + u) * stride;
        const int past = (int)((size_t)(from + at[u]) & 3);
        shift[u] = 8 * (uint32_t)past;
        at[u] -= past;
    }
    NO_UNROLL
    for (; first + BATCH <= end; first += BATCH) {
        UNROLL
        for (int r = 0; r < BATCH; r++)
            w[r] = whole_words(from + at[r % SHIFTS] + r / SHIFTS * SHIFTS * stride);
        LOADED();
        UNROLL
        for (int r = 0; r < BATCH; r++)
            add_row(sum, w[r], shift[r % SHIFTS]);
        UNROLL
        for (int u = 0; u < SHIFTS; u++)
            at[u] += BATCH * stride;
    }
    UNROLL
    for (int r = 0; r < BATCH - 1; r++) {
        UNROLL
        for (int i = 0; i < WORDS_READ; i++)
            w[r].v[i] = 0;
        if (first + r < end)
            w[r] = whole_words(from + at[r % SHIFTS] + r / SHIFTS * SHIFTS * stride);
    }
    LOADED();
    UNROLL
    for (int r = 0; r < BATCH - 1; r++)
        add_row(sum, w[r], shift[r % SHIFTS]);
}

/* The thread's sums of `count` columns at `from`. Words of the first and the last row may lie partly outside of the
 * operand's memory; those of other rows do not, whose distance from these is more. */
static inline void add_columns(shape_ptr S, GLOBAL const item *from, GLOBAL const item *begin, GLOBAL const item *end,
                               int count, int sum[VECTOR])
{
    const int64_t stride = in_stride(S, SLOT, KEPT), all = (S->reduced_total - 1) * stride;
    const int edge = from + (all < 0 ? all : 0) < begin + 4 || from + (all > 0 ? all : 0) + VECTOR + 4 > end;
    UNROLL
    for (int c = 0; c < VECTOR; c++) {
        sum[c] = 0;
        if (edge && c < count)
            sum[c] = (int)from[c] + (int)from[all + c];
    }
    add_rows(from, stride, edge, (int)S->reduced_total - edge, sum);
}

KERNEL void modefold(POINTERS const struct bases b, SHAPE_PARAMETER, GLOBAL char *workspace)
{
    SHARED int part[THREADS * VECTOR * 33 / 32];
    shape_ptr S = SHAPE;
    struct tensors T = TENSORS(b);
    const uint32_t all = (uint32_t)S->p[2], begin = (uint32_t)BLOCK * THREADS, t = begin + THREAD;
    const uint32_t end = all - begin < THREADS ? all : begin + THREADS;
    const number first = output_of(S, begin);
    const int outputs = (int)(output_of(S, end) - first);
    (void)workspace;
    if (t < end) {
        int sum[VECTOR];
        const number o = output_of(S, t);
        const int place = (int)(o - first), left = (int)(output_of(S, t + 1) - o);
#define X(s) add_columns(S, T.in##s + kept_place(S, o).i##s, T.in##s + S->p[6], T.in##s + S->p[7], left, sum);
        FOR_MAP_INPUTS(X)
#undef X
        UNROLL
        for (int c = 0; c < VECTOR; c++)
            if (c < left)
                part[place + c + (place + c) / 32] = sum[c];
    }
    BARRIER();
    NO_UNROLL
    for (int f = THREAD; f < outputs; f += THREADS) {
        struct state s = state_identity();
        s.r0 += part[f + f / 32];
        finish_output(T, S, first + f, s, S->reduced_total);
    }
}
