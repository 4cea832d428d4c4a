/* What sums on tensor cores share (Navarro et al., GPU Tensor Cores for fast Arithmetic Reductions, sections 4.1 and
 * 4.3). A warp reads 16 bytes a thread, two matrices of 8 columns, and multiplies both by a matrix of ones: every row
 * of the product is the matrix's column sums, to which the next product in a chain adds. Which element lies where in
 * a matrix does not matter to a sum, so a thread's 16 bytes are its parts of both as they come.
 *
 * The text before this one has ITEM, the bytes of an element, bits_t of as many, LOAD from those, ONES, a word of
 * elements that are 1, the type sum_t of the products' sums, and MMA (tensor_mma.cu, tensor_mma.cl). */
enum {
    PER_WORD = 4 / ITEM,
    PIECE = 16 / ITEM,   /* elements that a thread reads at once */
    STEP = WARP * PIECE, /* and a warp */
    WARPS = THREADS / WARP
};

struct ALIGNED(16) four_words {
    uint32_t w[4];
};

/* The sums of both matrices' columns: of thread 4 g + p columns 2 p and 2 p + 1, twice. */
struct column_sums {
    sum_t c[2][4];
};

static inline struct column_sums no_sums(void)
{
    struct column_sums s;
    UNROLL
    for (int i = 0; i < 4; i++)
        s.c[0][i] = s.c[1][i] = 0;
    return s;
}

/* Output o's elements. */
static inline GLOBAL const bits_t *elements_of(struct tensors T, shape_ptr S, int64_t o)
{
    GLOBAL const bits_t *from;
    const struct place p = kept_place(S, o);
#define X(s) from = (GLOBAL const bits_t *)(T.in##s + p.i##s);
    FOR_MAP_INPUTS(X)
#undef X
    return from;
}

/* Elements at ... at + PIECE - 1 of n; those that do not exist are 0. whole, a constant: the piece is aligned, and
 * there or not. */
static inline struct four_words piece_at(GLOBAL const bits_t *from, int64_t at, int64_t n, int whole)
{
    struct four_words f;
    UNROLL
    for (int i = 0; i < 4; i++)
        f.w[i] = 0;
    if (whole) {
        if (at < n)
            f = *(GLOBAL const struct four_words *)(from + at);
    } else {
        UNROLL
        for (int i = 0; i < PIECE; i++)
            f.w[i / PER_WORD] |= at + i < n ? (uint32_t)from[at + i] << 8 * ITEM * (i % PER_WORD) : 0u;
    }
    return f;
}

/* The pieces of a chain that begins there, all in flight together. */
struct chain_pieces {
    struct four_words f[CHAIN];
};

static inline struct chain_pieces pieces_from(GLOBAL const bits_t *from, int64_t at, int64_t n, int vectors)
{
    struct chain_pieces p;
    const int whole = vectors && at + CHAIN * STEP <= n; /* all but the last one */
    at += THREAD % WARP * PIECE;
    if (whole) {
        UNROLL
        for (int r = 0; r < CHAIN; r++)
            p.f[r] = *(GLOBAL const struct four_words *)(from + at + r * STEP);
    } else {
        UNROLL
        for (int r = 0; r < CHAIN; r++)
            p.f[r] = piece_at(from, at + r * STEP, n, 0);
    }
    LOADED();
    return p;
}

/* s + ones times the piece's two matrices. */
static inline void add_piece(MMA_TYPE mma_, struct column_sums *s, struct four_words f)
{
    UNROLL
    for (int m = 0; m < 2; m++)
        MMA(mma_, s->c[m], ONES, ONES, ONES, ONES, f.w[2 * m], f.w[2 * m + 1]);
}
