/* Sums of bytes down columns whose rows follow each other in memory, so that all of them are one run of vectors, wherever
 * rows begin. Any order will do: CIRCLE threads read whole rows, and come to vectors of the same columns again as many
 * vectors later; a block has GROUPS such circles, whose sums meet in shared memory, by their places in the circle first.
 *
 * p[0]: blocks; p[1]: threads of a circle, p[2]: circles of a block; p[3]: the thread of all whose turn the last vector is,
 * which is not whole; p[4]: threads of a column in the last block. AT_A_TIME: sums that a thread adds up in the end. A
 * column's sum in a block stays below 2^31. workspace: the blocks' sums, then a counter. */
enum { WORDS_READ = 4 };

/* The first n bytes of a vector. */
static inline struct words some_bytes(GLOBAL const char *from, int n)
{
    struct words v;
    UNROLL
    for (int i = 0; i < WORDS_READ; i++)
        v.v[i] = 0;
    UNROLL
    for (int i = 0; i < VECTOR; i++)
        if (i < n)
            v.v[i / 4] |= (uint32_t)(uint8_t)from[i] << 8 * (i % 4);
    return v;
}

static inline struct words whole_or_none(GLOBAL const char *from, int64_t v, int64_t end)
{
    struct words r;
    UNROLL
    for (int i = 0; i < WORDS_READ; i++)
        r.v[i] = 0;
    if (v < end)
        r = READ_VECTOR((GLOBAL const struct words *)from + v);
    return r;
}

static inline void add_bytes(int sum[VECTOR], struct words v)
{
    UNROLL
    for (int c = 0; c < VECTOR; c++)
        sum[c] = FOLD_BYTES(sum[c], v.v[c / 4], 1u << 8 * (c % 4));
}

/* The thread's vectors: its first is number v of all, and the others are `distance` away from each other. */
static inline void own_vectors(shape_ptr S, GLOBAL const char *from, int64_t v, int64_t distance, int vectors,
                               int sum[VECTOR])
{
    const int64_t bytes = S->reduced_total * S->kept_total, whole = bytes / VECTOR;
    if (vectors) {
        struct words r[BATCH];
        if (v == S->p[3])
            add_bytes(sum, some_bytes(from + whole * VECTOR, (int)(bytes - whole * VECTOR)));
        UNROLL
        for (int u = 0; u < BATCH; u++)
            r[u] = whole_or_none(from, v + u * distance, whole);
        NO_UNROLL
        for (; v < whole; v += BATCH * distance)
            UNROLL
            for (int u = 0; u < BATCH; u++) {
                add_bytes(sum, r[u]);
                r[u] = whole_or_none(from, v + (BATCH + u) * distance, whole);
                LOADED();
            }
    } else {
        NO_UNROLL
        for (; v * VECTOR < bytes; v += distance) {
            const int64_t left = bytes - v * VECTOR;
            add_bytes(sum, some_bytes(from + v * VECTOR, left < VECTOR ? (int)left : VECTOR));
        }
    }
}

/* n sums, of which those of a column are a multiple of the columns apart, become the first `width`, another multiple. */
static inline void narrow(SHARED_POINTER int *part, int n, int width)
{
    NO_UNROLL
    for (int f = THREAD; f < width; f += THREADS) {
        int sum = 0;
        for (int g = f; g < n; g += width)
            sum += part[g];
        part[f] = sum;
    }
    BARRIER();
}

/* The sums of a block's threads become those of its columns, in the workspace. */
static inline void block_sums(shape_ptr S, SHARED_POINTER int *part, GLOBAL int *to)
{
    const int columns = (int)S->kept_total, each = columns < THREADS ? THREADS / columns : 1;
    const int few = each < AT_A_TIME ? each : AT_A_TIME;
    BARRIER();
    narrow(part, (int)(S->p[1] * S->p[2]) * VECTOR, each * columns);
    narrow(part, each * columns, few * columns);
    NO_UNROLL
    for (int c = THREAD; c < columns; c += THREADS) {
        int sum = 0;
        for (int f = c; f < few * columns; f += columns)
            sum += part[f];
        to[c] = sum;
    }
}

/* The blocks' sums become the outputs, by one block: p[4] threads to a column. */
static inline void all_sums(struct tensors T, shape_ptr S, GLOBAL const int *sums, SHARED_POINTER int64_t *part)
{
    const int columns = (int)S->kept_total, blocks = (int)S->p[0];
    const int each = (int)S->p[4];
    NO_UNROLL
    for (int f = THREAD; f < each * columns; f += THREADS) {
        const int first = f / columns, c = f - first * columns;
        int64_t sum = 0;
        NO_UNROLL
        for (int b = first; b < blocks; b += AT_A_TIME * each) {
            int next[AT_A_TIME];
            UNROLL
            for (int u = 0; u < AT_A_TIME; u++) {
                next[u] = 0;
                if (b + u * each < blocks)
                    next[u] = FRESH(sums[(int64_t)(b + u * each) * columns + c]);
            }
            UNROLL
            for (int u = 0; u < AT_A_TIME; u++)
                sum += next[u];
        }
        part[f] = sum;
    }
    BARRIER();
    NO_UNROLL
    for (int c = THREAD; c < columns; c += THREADS) {
        struct state s = state_identity();
        for (int i = 0; i < each; i++)
            s.r0 += part[c + i * columns];
        finish_output(T, S, c, s, S->reduced_total);
    }
}

KERNEL void modefold(POINTERS const struct bases b, SHAPE_PARAMETER, GLOBAL char *workspace)
{
    SHARED ALIGNED(16) int part[THREADS * VECTOR];
    SHARED int flag;
    shape_ptr S = SHAPE;
    struct tensors T = TENSORS(b);
    const int used = (int)(S->p[1] * S->p[2]);
    GLOBAL int *sums = (GLOBAL int *)workspace;
    GLOBAL const char *from = 0;
#define X(s) from = (GLOBAL const char *)T.in##s;
    FOR_MAP_INPUTS(X)
#undef X
    if (THREAD < used) {
        int sum[VECTOR];
        UNROLL
        for (int c = 0; c < VECTOR; c++)
            sum[c] = 0;
        own_vectors(S, from, BLOCK * used + THREAD, used * S->p[0], b.vectors != 0, sum);
        UNROLL
        for (int c = 0; c < VECTOR; c++)
            part[THREAD * VECTOR + c] = sum[c];
    }
    block_sums(S, part, sums + BLOCK * S->kept_total);
    if (last_to_arrive((GLOBAL uint32_t *)sums + S->p[0] * S->kept_total, S->p[0], &flag))
        all_sums(T, S, sums, (SHARED_POINTER int64_t *)part);
}
