/* out[n, h, w, p] = sum over i, j, c of f(x[n, h + i - before, w + j - before, c]) y[p, i, j, c] on tensor cores, in the
 * order of their instruction: convolutions of few channels, as of pictures. x is read as it lies in the caller's memory,
 * mapped by f, and is zero outside.
 *
 * Pixels lie in shared memory as 4 channels beside each other. A row of the instruction is two positions of x beside
 * each other, which read the same 4 pixels of a row of x: the first of them with weights for pixels 0 ... TAPS_ACROSS-1,
 * the second with the same weights for pixels 1 ... TAPS_ACROSS, zeros for what is left. A
 * warp has 16 such pairs in two rows of positions below each other: a thread has the sums of 2 x 2 positions, of which
 * POOL stores the greatest. The finish part must then not fall where the sum rises.
 *
 * A block computes TILE_DOWN x TILE_ACROSS squares of 2 x 2 positions, and goes on to another such tile, whose pixels
 * come meanwhile. p[0], p[1]: tiles across and down, p[2], p[3]: these as divisors; p[4]: all tiles; p[5]: how many a
 * block goes on by; p[6]: columns; p[7]: blocks along the columns. */
enum {
    PIECE = 16,                                      /* bytes */
    PIXEL = 4 * ITEM,                                /* bytes */
    SPAN = 2 * TILE_ACROSS + 2,                      /* pixels of a row */
    SPANS = 2 * TILE_DOWN + TAPS_DOWN - 1,           /* rows */
    PLACE_BYTES = (SPANS * SPAN * PIXEL + 15) / 16 * 16,
    OWN = (SPANS * SPAN + THREADS - 1) / THREADS,    /* pixels that a thread brings */
    DEPTHS = ITEM / 2,                               /* steps of the instruction in 4 pixels */
    WARPS_ACROSS = TILE_ACROSS / 16,
    AT_ONCE = THREADS / WARP / WARPS_ACROSS,         /* rows of squares that the warps have together, */
    TURNS = TILE_DOWN / AT_ONCE,                     /* so many times */
    WARP_COLUMNS = 16
};

/* A tile's first position, and where its picture begins. */
struct corner {
    struct place picture;
    struct target stored;
    int down, across;
};

static inline struct corner corner_of(shape_ptr S, uint32_t tile)
{
    const uint32_t line = divide_by(S->p[2], tile), picture = divide_by(S->p[3], line);
    struct corner at;
    at.across = (int)(tile - line * (uint32_t)S->p[0]) * (2 * TILE_ACROSS);
    at.down = (int)(line - picture * (uint32_t)S->p[1]) * (2 * TILE_DOWN);
    at.picture = move_place(S, no_place(), picture, 0);
    at.stored = move_target(S, no_target(), picture, 0);
    return at;
}

/* A thread's pixels of every tile: where they lie from its first one on, in rows * 2^16 + columns and in elements. */
struct own {
    int place[OWN], element[OWN];
};

static inline void own_pixels(shape_ptr S, struct own *own)
{
    UNROLL
    for (int i = 0; i < OWN; i++) {
        const int p = THREAD + i * THREADS;
        own->place[i] = p / SPAN << 16 | p % SPAN;
        own->element[i] =
            (int)(p / SPAN * in_stride(S, SLOT_X, LOOP_DOWN) + p % SPAN * in_stride(S, SLOT_X, LOOP_ACROSS));
    }
}

/* Elements of a thread's pixels, as they lie in memory; a bit for each that is one of the picture's. */
struct pixels {
    ELEMENT_X v[OWN][CHANNELS];
    int there;
};

static inline void bring(struct tensors T, shape_ptr S, struct corner at, const struct own *own, struct pixels *to)
{
    const int down = at.down + (int)S->window_offset[WINDOW_DOWN],
              across = at.across + (int)S->window_offset[WINDOW_ACROSS];
    const uint32_t height = (uint32_t)S->window_extent[WINDOW_DOWN], width = (uint32_t)S->window_extent[WINDOW_ACROSS];
    GLOBAL const ELEMENT_X *const first = T.ELEMENTS_X + at.picture.PLACE_X +
                                          at.down * in_stride(S, SLOT_X, LOOP_DOWN) +
                                          at.across * in_stride(S, SLOT_X, LOOP_ACROSS);
    to->there = 0;
    UNROLL
    for (int i = 0; i < OWN; i++) {
        const int there = (uint32_t)(down + (own->place[i] >> 16)) < height &&
                          (uint32_t)(across + (own->place[i] & 0xffff)) < width;
        to->there |= there << i;
        if (there)
            UNROLL for (int c = 0; c < CHANNELS; c++) to->v[i][c] = first[own->element[i] + c * CHANNEL_STRIDE];
        else
            UNROLL for (int c = 0; c < CHANNELS; c++) to->v[i][c] = 0;
    }
}

/* Bytes from the first piece to piece number p: 8 pairs that are read together lie in different banks. */
static inline int piece_at(int p)
{
#if ITEM == 4
    return (p ^ (p >> 3 & 1)) * PIECE;
#else
    return p * PIECE;
#endif
}

struct ALIGNED(8) eight {
    uint32_t v[2];
};

/* Puts a thread's pixels into shared memory, as the factor's values. */
static inline void put(const struct pixels *own, SHARED_POINTER char *to)
{
    UNROLL
    for (int i = 0; i < OWN; i++) {
        const int p = THREAD + i * THREADS, there = own->there >> i & 1;
        float v[4];
        UNROLL
        for (int c = 0; c < 4; c++) {
            struct raw r;
            v[c] = 0;
            if (c >= CHANNELS)
                continue;
            r.RAW_X = own->v[i][c < CHANNELS ? c : 0];
            v[c] = there ? factor_x(r) : 0;
        }
        if (p >= SPANS * SPAN)
            continue;
#if ITEM == 4
        struct sixteen words;
        UNROLL for (int c = 0; c < 4; c++) words.v[c] = (int)mf_f32_bits(v[c]);
        *(SHARED_POINTER struct sixteen *)(to + piece_at(p)) = words;
#else
        struct eight words;
        words.v[0] = STORE_PAIR(v[0], v[1]);
        words.v[1] = STORE_PAIR(v[2], v[3]);
        *(SHARED_POINTER struct eight *)(to + p * PIXEL) = words;
#endif
    }
}

/* A thread's words of the weights: of each row, of both positions of a pair, of the instruction's two eights of columns,
 * of each of its steps two. Columns are dealt so that a thread's four sums of a position are neighbours. They lie in
 * shared memory by lane: more warps have room so. */
enum { WORD_PAIRS = TAPS_DOWN * 2 * 2 * DEPTHS };
typedef SHARED_POINTER struct eight *weights_t;

static inline int column_of(int eight, int place) { return place / 2 * 4 + eight * 2 + place % 2; }

static inline uint32_t weight_bits(struct tensors T, shape_ptr S, int64_t first, int i, int j, int c, int column)
{
    const int there = j >= 0 && j < TAPS_ACROSS && c < CHANNELS && first + column < S->p[6];
    GLOBAL const bits_t *const weights = (GLOBAL const bits_t *)T.ELEMENTS_Y;
    return there ? weights[(first + column) * in_stride(S, SLOT_Y, LOOP_COLUMNS) + i * in_stride(S, SLOT_Y, LOOP_I) +
                           j * in_stride(S, SLOT_Y, LOOP_J) + c * CHANNEL_STRIDE_Y]
                 : 0;
}

static inline void take_weights(struct tensors T, shape_ptr S, int64_t first, weights_t weights)
{
    const int lane = THREAD % WARP;
    for (int n = THREAD / WARP; n < WORD_PAIRS; n += THREADS / WARP) {
        const int d = n % DEPTHS, eight = n / DEPTHS % 2, right = n / DEPTHS / 2 % 2, i = n / DEPTHS / 4;
        const int column = column_of(eight, lane / 4);
        struct eight pair;
        UNROLL
        for (int k = 0; k < 2; k++) {
#if ITEM == 4
            pair.v[k] = weight_bits(T, S, first, i, 2 * d + k - right, lane % 4, column);
#else
            const int j = 2 * k + lane % 4 / 2 - right, c = lane % 2 * 2;
            pair.v[k] = weight_bits(T, S, first, i, j, c, column) | weight_bits(T, S, first, i, j, c + 1, column) << 16;
#endif
        }
        weights[n * WARP + lane] = pair;
    }
}

/* Sums of 2 x 2 positions. */
typedef sum_t squares_t[2][2][2][4];

static inline void multiply(MMA_TYPE mma, SHARED_POINTER const char *pixels, weights_t weights, int turn, squares_t sum)
{
    const int warp = THREAD / WARP;
    const int first = (turn * AT_ONCE + warp / WARPS_ACROSS) * 2 * SPAN + warp % WARPS_ACROSS * 32;
    UNROLL
    for (int r = 0; r < TAPS_DOWN + 1; r++)
        UNROLL
        for (int d = 0; d < DEPTHS; d++) {
            uint32_t x[4];
#define PAIR_PIECE(m, row) \
    piece_at((first + r * SPAN + 2 * (8 * ((m) % 2) + (row))) / (PIECE / PIXEL) + 2 * d + (m) / 2)
            LOAD_MATRICES(x, pixels, PAIR_PIECE)
            ;
#undef PAIR_PIECE
            UNROLL
            for (int e = 0; e < 8; e++) {
                const int below = e / 4, right = e / 2 % 2, eight = e % 2, i = r - below;
                if (i >= 0 && i < TAPS_DOWN) {
                    const struct eight y =
                        weights[(((i * 2 + right) * 2 + eight) * DEPTHS + d) * WARP + THREAD % WARP];
                    if (i || d)
                        MMA(mma, sum[below][right][eight], x[0], x[1], x[2], x[3], y.v[0], y.v[1]);
                    else
                        MMA_NEW(mma, sum[below][right][eight], x[0], x[1], x[2], x[3], y.v[0], y.v[1]);
                }
            }
        }
}

/* What the finish part takes for a thread's four columns. */
struct finishing {
    struct raw_finish r[4];
};

static inline struct finishing take_finishing(struct tensors T, shape_ptr S, int64_t column)
{
    struct finishing f;
    UNROLL
    for (int j = 0; j < 4; j++) {
        const int64_t there = column + j < S->p[6] ? column + j : S->p[6] - 1;
        f.r[j] = fetch_finish(T, move_target(S, no_target(), there, 1));
    }
    return f;
}

/* Finishes and stores four columns of a position. */
static inline void store_columns(struct tensors T, shape_ptr S, GLOBAL out0_t *to, const struct finishing *f,
                                 int64_t column, const float v[4])
{
    struct values y[4];
    UNROLL
    for (int j = 0; j < 4; j++) {
        struct state s;
        s.r0 = v[j];
#if HAS_COUNT
        s.n = S->reduced_total;
#endif
        y[j] = values_of(s, S->reduced_total, f->r[j]);
    }
    if (out_stride(S, 0, LOOP_COLUMNS) == 1 && column + 4 <= S->p[6] && (uint64_t)to % sizeof(struct out0_vector) == 0)
        store_vector0(to, y);
    else
        UNROLL for (int j = 0; j < 4; j++)
            if (column + j < S->p[6])
                to[j * out_stride(S, 0, LOOP_COLUMNS)] = stored(y[j]).y0;
}

/* From a tile's first output to a thread's first one; rows and columns of positions that it has. */
struct stores {
    int down, across;
    int64_t element;
};

static inline struct stores own_stores(shape_ptr S, int64_t column)
{
    const int warp = THREAD / WARP, by = POOL ? 2 : 1;
    struct stores own;
    own.down = warp / WARPS_ACROSS * 2;
    own.across = 2 * (warp % WARPS_ACROSS * 16 + THREAD % WARP / 4);
    own.element = own.down / by * out_stride(S, 0, LOOP_DOWN) + own.across / by * out_stride(S, 0, LOOP_ACROSS) +
                  column * out_stride(S, 0, LOOP_COLUMNS);
    return own;
}

static inline void store(struct tensors T, shape_ptr S, struct corner at, const struct stores *own,
                         const struct finishing *f, int64_t column, int turn, squares_t sum)
{
    const int by = POOL ? 2 : 1;
    at.down += turn * (2 * AT_ONCE);
    const int down = (int)S->size[LOOP_DOWN] - at.down - own->down,
              across = (int)S->size[LOOP_ACROSS] - at.across - own->across;
    GLOBAL out0_t *const first = T.out0 + at.stored.o0 + at.down / by * out_stride(S, 0, LOOP_DOWN) +
                                 at.across / by * out_stride(S, 0, LOOP_ACROSS) + own->element;
    UNROLL
    for (int part = 0; part < 2; part++) {
        float greatest[4];
        UNROLL
        for (int e = 0; e < 4; e++) {
            const int h = e / 2, w = 16 * part + e % 2;
            float v[4];
            UNROLL for (int j = 0; j < 4; j++) v[j] = sum[e / 2][e % 2][j / 2][2 * part + j % 2];
            UNROLL for (int j = 0; j < 4; j++) greatest[j] = e ? fold_max_f32(greatest[j], v[j]) : v[j];
            if (h >= down || w >= across || (POOL && e < 3))
                continue;
            store_columns(T, S, first + h / by * out_stride(S, 0, LOOP_DOWN) + w / by * out_stride(S, 0, LOOP_ACROSS), f,
                          column, POOL ? greatest : v);
        }
    }
}

KERNEL void modefold(POINTERS const struct bases b, SHAPE_PARAMETER, GLOBAL char *workspace)
{
    SHARED struct sixteen places[2][PLACE_BYTES / PIECE];
    SHARED struct eight weights[WORD_PAIRS * WARP];
    MMA_MEMORY
    shape_ptr S = SHAPE;
    struct tensors T = TENSORS(b);
    const uint32_t columns = (uint32_t)S->p[7], tiles = (uint32_t)S->p[4], by = (uint32_t)S->p[5];
    const int64_t first = (uint32_t)BLOCK % columns * (int64_t)WARP_COLUMNS, column = first + THREAD % 4 * 4;
    uint32_t tile = (uint32_t)BLOCK / columns;
    struct corner at = corner_of(S, tile);
    struct own own;
    struct pixels mine;
    int place = 0;
    own_pixels(S, &own);
    bring(T, S, at, &own, &mine);
    take_weights(T, S, first, weights);
    const struct finishing finishing = take_finishing(T, S, column);
    const struct stores stores = own_stores(S, column);
    NO_UNROLL
    for (; tile < tiles; tile += by) {
        SHARED_POINTER char *const pixels = (SHARED_POINTER char *)places[place];
        const struct corner here = at;
        put(&mine, pixels);
        BARRIER(); /* pixels are there; nobody reads the other place any more */
        if (tile + by < tiles) {
            at = corner_of(S, tile + by);
            bring(T, S, at, &own, &mine);
        }
        NO_UNROLL
        for (int turn = 0; turn < TURNS; turn++) {
            squares_t sum;
            multiply(mma_, pixels, weights, turn, sum);
            store(T, S, here, &stores, &finishing, column, turn, sum);
        }
        place = 1 - place;
    }
}
