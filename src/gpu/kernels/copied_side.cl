/* One factor of a contraction, an operand of floats as it is, copied into shared memory past the registers. This text
 * comes twice: SIDE is x, then y. A tile has POSITIONS positions and STEP terms: where neighbouring terms are neighbours
 * in memory (ALONG_TERMS) a row of terms a position, else a row of positions a term, so that what is copied is 16 bytes
 * there and here. A thread has OWN of the positions. Emitted: ELEMENTS, the operand's pointer in struct tensors; PLACE,
 * its field of struct place; RAW, of struct raw; factor_SIDE. */
#define F__(name, side) name##_##side
#define F_(name, side) F__(name, side)
#define F(name) F_(name, SIDE)

enum {
    F(PIECES) = POSITIONS * STEP / 4 / THREADS, /* of a thread, 16 bytes each */
    F(PITCH) = ALONG_TERMS ? STEP + 4 : POSITIONS,
    F(STAGE) = (ALONG_TERMS ? POSITIONS : STEP) * F(PITCH) /* floats of a tile */
};

/* Where the positions of a thread's pieces begin. */
struct F(pieces) {
    GLOBAL const float *from[F(PIECES)];
};

static inline int F(first_position)(int i)
{
    const int e = THREAD + i * THREADS;
    return ALONG_TERMS ? e / (STEP / 4) : e % (POSITIONS / 4) * 4;
}

static inline int F(first_term)(int i)
{
    const int e = THREAD + i * THREADS;
    return ALONG_TERMS ? e % (STEP / 4) * 4 : e / (POSITIONS / 4);
}

/* What lies past the end is read like the last one, or vector. */
static inline void F(find_pieces)(struct tensors T, shape_ptr S, int64_t batch, int64_t first, int64_t total,
                                  struct F(pieces) *pieces)
{
    const struct place origin = move_place(S, no_place(), batch, 2);
    UNROLL
    for (int i = 0; i < F(PIECES); i++) {
        const int64_t position = first + F(first_position)(i), last = total - (ALONG_TERMS ? 1 : 4);
        pieces->from[i] = T.ELEMENTS + move_place(S, origin, position < total ? position : last, LIST).PLACE;
    }
}

/* Where a piece of the thread lies in a tile. */
static inline int F(place_of_piece)(int i)
{
    return ALONG_TERMS ? F(first_position)(i) * F(PITCH) + F(first_term)(i)
                       : F(first_term)(i) * F(PITCH) + F(first_position)(i);
}

/* Begins to copy terms t ... t+STEP-1, of those before `end`. */
static inline void F(copy)(shape_ptr S, const struct F(pieces) *pieces, int t, int end, int vectors,
                           SHARED_POINTER float *tile)
{
    UNROLL
    for (int i = 0; i < F(PIECES); i++) {
        const int mine = t + F(first_term)(i), term = mine < end ? mine : end - (ALONG_TERMS ? 4 : 1);
        GLOBAL const float *const from = pieces->from[i] + element_place(S, no_place(), term).PLACE;
        SHARED_POINTER float *const to = tile + F(place_of_piece)(i);
        if (vectors) {
            COPY_FLOATS(16, to, from);
        } else {
            UNROLL
            for (int j = 0; j < 4; j++)
                COPY_FLOATS(4, to + j, from + j);
        }
    }
}

#if BY_BITS
struct ALIGNED(16) F(four) {
    float v[4];
};

/* Whether no number of the thread's pieces is positive, as it is added, and all are numbers. */
static inline int F(fall)(SHARED_POINTER const float *tile)
{
    int all = 1;
    NO_UNROLL
    for (int i = 0; i < F(PIECES); i++) {
        const struct F(four) four = *(SHARED_POINTER const struct F(four) *)(tile + F(place_of_piece)(i));
        UNROLL
        for (int j = 0; j < 4; j++)
            all &= F(signed)(four.v[j]) <= 0;
    }
    return all;
}
#endif

static inline F(value_t) F(value)(float element)
{
    struct raw r;
    r.RAW = element;
    return F(factor)(r);
}

/* A thread's position number i, of those of the thread with this number along the side. */
static inline int F(own_position)(int thread, int i)
{
    return ALONG_TERMS ? i * (POSITIONS / OWN) + thread
                       : (i / TOGETHER * (POSITIONS / OWN) + thread) * TOGETHER + i % TOGETHER;
}

struct ALIGNED(ALONG_TERMS ? TAKEN * 4 : TOGETHER * 4) F(together) {
    float v[ALONG_TERMS ? TAKEN : TOGETHER];
};

/* A thread's values of TAKEN terms from t on. */
static inline void F(take)(SHARED_POINTER const float *tile, int t, int thread, F(value_t) to[TAKEN][OWN])
{
#if ALONG_TERMS
    UNROLL
    for (int i = 0; i < OWN; i++) {
        const struct F(together) v =
            *(SHARED_POINTER const struct F(together) *)(tile + F(own_position)(thread, i) * F(PITCH) + t);
        UNROLL
        for (int u = 0; u < TAKEN; u++)
            to[u][i] = F(value)(v.v[u]);
    }
#else
    UNROLL
    for (int u = 0; u < TAKEN; u++)
        UNROLL
        for (int i = 0; i < OWN; i += TOGETHER) {
            const struct F(together) v =
                *(SHARED_POINTER const struct F(together) *)(tile + (t + u) * F(PITCH) + F(own_position)(thread, i));
            UNROLL
            for (int j = 0; j < TOGETHER; j++)
                to[u][i + j] = F(value)(v.v[j]);
        }
#endif
}

static inline F(value_t) F(value_at)(SHARED_POINTER const float *tile, int t, int position)
{
    return F(value)(tile[ALONG_TERMS ? position * F(PITCH) + t : t * F(PITCH) + position]);
}

static inline void F(take_one)(SHARED_POINTER const float *tile, int t, int thread, F(value_t) to[OWN])
{
    UNROLL
    for (int i = 0; i < OWN; i++)
        to[i] = F(value_at)(tile, t, F(own_position)(thread, i));
}

#undef F
#undef F_
#undef F__
#undef SIDE
#undef LIST
#undef POSITIONS
#undef ALONG_TERMS
#undef OWN
#undef TOGETHER
#undef ELEMENTS
#undef PLACE
#undef RAW
