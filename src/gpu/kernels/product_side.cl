/* One factor of a product on tensor cores. This text comes twice: SIDE is x, then y. A tile has POSITIONS positions
 * and STEP terms, in pieces of 16 bytes: of a position's terms (ALONG_TERMS; a row of 64 bytes a position), or of a
 * term's positions (a row a term). Pieces are exchanged inside their row by its number, so that the 8 rows, or the
 * 4 terms of 8 positions, that a warp reads together lie in different banks. Emitted: ELEMENTS, the operand's pointer
 * in struct tensors; PLACE, its field of struct place. */
#define F__(name, side) name##_##side
#define F_(name, side) F__(name, side)
#define F(name) F_(name, SIDE)

#if VECTORS /* seldom used */
#define GATHER_UNROLL NO_UNROLL
#else
#define GATHER_UNROLL UNROLL
#endif

enum {
    F(BESIDE) = ALONG_TERMS ? STEP / PER : POSITIONS / PER, /* pieces of a row */
    F(PIECES) = POSITIONS * STEP / PER,
    F(OWN) = (F(PIECES) + THREADS - 1) / THREADS /* of a thread */
};

/* Where the piece begins that has this element: bytes from the tile's first. GROUPED: rows of more than 128
 * bytes are parts of 128, all terms of one before the next. */
static inline int F(piece)(int position, int term)
{
    const int row = ALONG_TERMS ? position : term, piece = ALONG_TERMS ? term / PER : position / PER;
    const int beside = F(BESIDE) < 8 || !GROUPED ? F(BESIDE) : 8;
    const int by = ALONG_TERMS         ? row >> 1 & 3
                   : F(BESIDE) >= 8 ? (ITEM == 2 ? row & 7 : (row & 3) << 1)
                   : F(BESIDE) == 4 ? (ITEM == 2 ? row >> 1 & 3 : (row >> 1 & 1) << 1)
                                    : (ITEM == 2 ? row >> 2 & 1 : 0);
    return (piece / beside * STEP + row) * (beside * PIECE) + (piece % beside ^ by) * PIECE;
}

/* Copies the elements of a piece one by one; beyond the ends zeros. */
static inline void F(gather)(struct tensors T, shape_ptr S, int64_t batch, int64_t position, int64_t total, int term,
                             int end, SHARED_POINTER bits_t *to)
{
    const struct place origin = move_place(S, no_place(), batch, 2);
    GATHER_UNROLL
    for (int j = 0; j < PER; j++) {
        const int64_t p = position + (ALONG_TERMS ? 0 : j);
        const int t = term + (ALONG_TERMS ? j : 0);
        const int inside = p < total && t < end;
        const int64_t at = move_place(S, origin, inside ? p : 0, LIST).PLACE +
                           element_place(S, no_place(), inside ? t : 0).PLACE;
        to[j] = inside ? ((GLOBAL const bits_t *)T.ELEMENTS)[at] : 0;
    }
}

/* Of a thread's pieces: where their positions' elements begin, moved to the next tile's terms if EVEN_STEPS; whether
 * the positions are there; where they go in a tile. */
struct F(pieces) {
    GLOBAL const bits_t *from[F(OWN)];
    int inside[F(OWN)], to[F(OWN)];
};

static inline int F(first_position)(int i)
{
    return ALONG_TERMS ? (THREAD + i * THREADS) / F(BESIDE) : (THREAD + i * THREADS) % F(BESIDE) * PER;
}

static inline int F(first_term)(int i)
{
    return ALONG_TERMS ? (THREAD + i * THREADS) % F(BESIDE) * PER : (THREAD + i * THREADS) / F(BESIDE);
}

static inline void F(find_pieces)(struct tensors T, shape_ptr S, int64_t batch, int64_t first, int64_t total, int term,
                                  struct F(pieces) *pieces)
{
    const struct place origin = move_place(S, no_place(), batch, 2);
    UNROLL
    for (int i = 0; i < F(OWN); i++) {
        const int64_t position = first + F(first_position)(i);
        pieces->inside[i] = position < total && (F(PIECES) % THREADS == 0 || THREAD + i * THREADS < F(PIECES));
        pieces->to[i] = F(piece)(F(first_position)(i), F(first_term)(i));
        const int64_t at = move_place(S, origin, pieces->inside[i] ? position : 0, LIST).PLACE +
                           (EVEN_STEPS ? element_place(S, no_place(), term + F(first_term)(i)).PLACE : 0);
        pieces->from[i] = (GLOBAL const bits_t *)T.ELEMENTS + (pieces->inside[i] ? at : 0);
    }
}

/* Begins to copy terms term ... of the positions into a tile. move: elements from these terms to the next tile's. */
static inline void F(copy)(struct tensors T, shape_ptr S, struct F(pieces) *pieces, int64_t batch, int64_t first,
                           int64_t total, int term, int end, int vectors, int64_t move, SHARED_POINTER char *tile)
{
    UNROLL
    for (int i = 0; i < F(OWN); i++) {
        if (F(PIECES) % THREADS && THREAD + i * THREADS >= F(PIECES))
            continue;
        if (VECTORS && vectors && EVEN_STEPS) {
            COPY_PIECE(tile + pieces->to[i], pieces->from[i], pieces->inside[i]);
            pieces->from[i] += pieces->inside[i] ? move : 0;
        } else if (VECTORS && vectors) {
            const int mine = term + F(first_term)(i), inside = pieces->inside[i] && mine < end;
            COPY_PIECE(tile + pieces->to[i],
                       pieces->from[i] + (inside ? element_place(S, no_place(), mine).PLACE : 0), inside);
        } else {
            F(gather)(T, S, batch, first + F(first_position)(i), total, term + F(first_term)(i), end,
                      (SHARED_POINTER bits_t *)(tile + pieces->to[i]));
        }
    }
}

/* The words of 16 positions from `first` on and of 32 bytes of terms, number `depth` of the tile's: of four matrices of
 * 8 positions and 16 bytes; by_positions: the second is of the next positions, else of the next terms. */
static inline void F(take)(SHARED_POINTER const char *tile, int first, int depth, int by_positions, uint32_t r[4])
{
#define MATRIX_POSITION(m) (first + 8 * (by_positions ? (m) % 2 : (m) / 2))
#define MATRIX_TERM(m) ((2 * depth + (by_positions ? (m) / 2 : (m) % 2)) * PER)
#define ROW_OF_POSITION(m, row) F(piece)(MATRIX_POSITION(m) + (row), MATRIX_TERM(m))
#define ROW_OF_TERM(m, row) F(piece)(MATRIX_POSITION(m), MATRIX_TERM(m) + (row))
#if ALONG_TERMS
    LOAD_MATRICES(r, tile, ROW_OF_POSITION)
#elif ITEM == 2
    LOAD_TRANSPOSED(r, tile, ROW_OF_TERM)
#else
    const int lane = THREAD % WARP;
    UNROLL
    for (int m = 0; m < 4; m++) {
        const int position = MATRIX_POSITION(m) + lane / 4;
        r[m] = *(SHARED_POINTER const uint32_t *)(tile + F(piece)(position, MATRIX_TERM(m) + lane % 4) +
                                                  position % PER * ITEM);
    }
#endif
    ;
#undef MATRIX_POSITION
#undef MATRIX_TERM
#undef ROW_OF_POSITION
#undef ROW_OF_TERM
}

#undef F
#undef F_
#undef F__
#undef SIDE
#undef LIST
#undef POSITIONS
#undef ALONG_TERMS
#undef VECTORS
#undef GATHER_UNROLL
#undef ELEMENTS
#undef PLACE
