/* Where a warp's rows of x lie for product_multiply.cl in convolutions: neighbouring outputs share what they read, so
 * all of x that a block's TILE_DOWN x TILE_ACROSS positions need is copied to shared memory once. That is SPANS spans
 * of memory, SPAN pieces of 16 bytes each: ROW_STEP of them further for the next row of positions, POSITION_PIECES
 * pieces for the next position of it; TAPS spans and LAST_PIECES pieces are a position's own. A term is a distance
 * from its position's first piece. Pieces are exchanged within groups of 8, so that the 8 positions that are read
 * together lie in different banks. */
enum {
    POSITIONS = TILE_DOWN * TILE_ACROSS,
    SPANS = (TILE_DOWN - 1) * ROW_STEP + TAPS,
    SPAN = (TILE_ACROSS - 1) * POSITION_PIECES + LAST_PIECES,
    ZEROS = (SPANS * SPAN + 7) / 8 * 8, /* here terms lie that do not exist: a group of zeros */
    SPAN_BYTES = (ZEROS + 8) * PIECE
};

/* Bytes from the first piece to piece number p. */
static inline int span_piece(int p)
{
    return (p ^ (p >> EXCHANGE_SHIFT & EXCHANGE_MASK)) * PIECE;
}

/* A block's terms: all, or if there are PARTS of them those of some channels, PART_CHANNELS of the CHANNELS that a
 * position has. The spans have these channels alone. Term number t of a part: */
static inline int term_of(int t, int part)
{
#if PARTS > 1
    return t / PART_CHANNELS * CHANNELS + part * PART_CHANNELS + t % PART_CHANNELS;
#else
    return t;
#endif
}

static inline int part_terms(shape_ptr S)
{
    return (int)(S->reduced_total / PARTS);
}

/* Elements from a span's first to those of its piece number q. */
static inline int piece_elements(int q)
{
#if PARTS > 1
    return q / POSITION_PIECES * CHANNELS + q % POSITION_PIECES * PER;
#else
    return q * PER;
#endif
}

/* The piece of a span that has the element so many behind its first. */
static inline int element_piece(int elements)
{
#if PARTS > 1
    return elements / CHANNELS * POSITION_PIECES + elements % CHANNELS / PER;
#else
    return elements / PER;
#endif
}

#if ((TILE_DOWN - 1) * ROW_STEP + TAPS) * ((TILE_ACROSS - 1) * POSITION_PIECES + LAST_PIECES) <= 4 * THREADS
#define SPAN_UNROLL UNROLL /* what does not change from tile to tile is then computed once */
#else
#define SPAN_UNROLL NO_UNROLL
#endif
/* Begins to copy the spans. across, down: positions that exist. vectors is a constant. */
static inline void copy_spans(GLOBAL const bits_t *from, int64_t pitch, int down, int across, int vectors,
                              SHARED_POINTER char *to)
{
    const int spans = (down - 1) * ROW_STEP + TAPS, pieces = (across - 1) * POSITION_PIECES + LAST_PIECES;
    SPAN_UNROLL
    for (int i = 0; i < (SPANS * SPAN + THREADS - 1) / THREADS; i++) {
        const int p = THREAD + i * THREADS, r = p / SPAN, q = p % SPAN, inside = r < spans && q < pieces;
        if (p >= SPANS * SPAN)
            continue;
        GLOBAL const bits_t *const piece = from + (inside ? r * pitch + piece_elements(q) : 0);
        if (vectors)
            COPY_PIECE(to + span_piece(p), piece, inside);
        else
            for (int j = 0; j < PER; j++)
                ((SHARED_POINTER bits_t *)(to + span_piece(p)))[j] = inside ? piece[j] : 0;
    }
    if (THREAD < 8 * PIECE / 4)
        ((SHARED_POINTER int *)(to + ZEROS * PIECE))[THREAD] = 0;
}

/* Pieces from a position's first one to each of its terms; -1: there is none. */
static inline void write_offsets(shape_ptr S, int part, int pitch, SHARED_POINTER int *offsets)
{
    for (int q = THREAD; q < TERM_PIECES; q += THREADS) {
        const int there = q * PER < part_terms(S);
        const int at = (int)element_place(S, no_place(), term_of(there ? q * PER : 0, part)).PLACE_X;
        offsets[q] = there ? at / pitch * SPAN + element_piece(at % pitch - part * PART_CHANNELS) : -1;
    }
}

/* first: of the warp's positions; offsets: of the tile's terms. */
struct rows_from {
    SHARED_POINTER const char *spans;
    SHARED_POINTER const int *offsets;
    int first;
};

/* POOLS_EARLY: rows of the instruction are such positions that one thread has the sums of four to pool: 16 rows are
 * eight and the ones to their right, the next 16 those below. */
#if POOLS_EARLY
static inline int position_of(int row)
{
    const int pooled = row / 32 * 8 + row % 8, y = pooled / (TILE_ACROSS / 2), x = pooled % (TILE_ACROSS / 2);
    return (2 * y + row / 16 % 2) * TILE_ACROSS + 2 * x + row / 8 % 2;
}
#else
static inline int position_of(int row) { return row; }
#endif

/* Where a position's piece of terms lies: bytes from the spans' first. */
static inline int piece_of(int row, int offset)
{
    const int position = position_of(row);
    const int first = position / TILE_ACROSS * (ROW_STEP * SPAN) + position % TILE_ACROSS * POSITION_PIECES;
    return span_piece(offset < 0 ? ZEROS : (position < POSITIONS ? first : 0) + offset);
}

/* Positions 16 i and the next of the warp, step `depth` of the tile's terms. */
static inline void take_rows(struct rows_from rows, int i, int depth, uint32_t words[4])
{
#define ROW_PIECE(m, row) piece_of(rows.first + 16 * i + 8 * ((m) % 2) + (row), rows.offsets[2 * depth + (m) / 2])
    LOAD_MATRICES(words, rows.spans, ROW_PIECE)
    ;
#undef ROW_PIECE
}
