/* Reading one factor of a contraction. This text comes twice: SIDE is x, then y. A block's tile has POSITIONS positions
 * (its rows or columns of outputs) and STEP terms; a thread has OWN of the positions. ALONG_TERMS: threads beside each
 * other read terms beside each other, else positions. Where the elements of a position begin is found once (spots).
 * Emitted: value_t_SIDE, factor_SIDE and FOR_INPUTS_SIDE, the operands of the factor; WINDOWED_SIDE and FOR_WINDOWS_SIDE,
 * their checked windows, with outside_SIDE, what stands for a value outside of them; shows_SIDE: whether a value of this
 * factor is one beside which the contraction has to look closer. */
#define F__(name, side) name##_##side
#define F_(name, side) F__(name, side)
#define F(name) F_(name, SIDE)

struct F(spot) {
#define X(s) int64_t i##s;
    F(FOR_INPUTS)(X)
#undef X
#define X(n) int64_t w##n;
    F(FOR_WINDOWS)(X)
#undef X
};

/* Whether a term of a position lies inside the factor's windows. */
static inline int F(is_inside)(shape_ptr S, SHARED_POINTER const struct F(spot) *spot, struct place term)
{
    int yes = 1;
#define X(n)                                               \
    {                                                      \
        const int64_t index = spot->w##n + term.window[n]; \
        yes &= index >= 0 && index < S->window_extent[n];  \
    }
    F(FOR_WINDOWS)(X)
#undef X
    return yes;
}

/* Values are read from shared memory up to 16 bytes at a time, TOGETHER of them; from the operands AT_A_TIME: as one
 * vector if their pointers are aligned. */
enum {
    F(SLOTS) = POSITIONS * STEP / THREADS,
    F(TOGETHER) = VALUES_TOGETHER,
    F(PITCH) = POSITIONS + (ALONG_TERMS ? VALUES_TOGETHER : 0)
};

struct ALIGNED(BYTES_TOGETHER) F(together) {
    F(value_t) v[VALUES_TOGETHER];
};

struct ALIGNED(AT_A_TIME > 1 ? 16 : 1) F(at_a_time) {
    F(value_t) v[AT_A_TIME];
};

/* Positions first ..., of `total`; what lies past the end is read like the last one (or vector). */
static inline void F(find_spots)(shape_ptr S, struct place batch, int64_t first, int64_t total,
                                 SHARED_POINTER struct F(spot) *spots)
{
    const int group = ALONG_TERMS ? 1 : AT_A_TIME; /* past the end too, vectors are whole and aligned */
    for (int i = THREAD; i < POSITIONS; i += THREADS) {
        const struct place p = move_place(S, batch, first + i < total ? first + i : total - group + i % group, LIST);
#define X(s) spots[i].i##s = p.i##s;
        F(FOR_INPUTS)(X)
#undef X
#define X(n) spots[i].w##n = p.window[n] + S->window_offset[n];
        F(FOR_WINDOWS)(X)
#undef X
    }
}

static inline int F(slot_position)(int i)
{
    const int e = (THREAD + i / AT_A_TIME * THREADS) * AT_A_TIME + i % AT_A_TIME;
    return ALONG_TERMS ? e / STEP : e % POSITIONS;
}

static inline int F(slot_term)(int i)
{
    const int e = (THREAD + i / AT_A_TIME * THREADS) * AT_A_TIME + i % AT_A_TIME;
    return ALONG_TERMS ? e % STEP : e / POSITIONS;
}

/* Reads terms t ... t+STEP-1 of the sequence, before `end`; past it the last one (or vector) again. full: there are so
 * many. */
static inline void F(load_any)(struct tensors T, shape_ptr S, terms_t terms, SHARED_POINTER const struct F(spot) *spots,
                               int t, int end, int full, int vectors, struct raw r[F(SLOTS)])
{
    const int group = ALONG_TERMS ? AT_A_TIME : 1, last = end - group;
    UNROLL
    for (int i = 0; i < F(SLOTS); i += vectors ? AT_A_TIME : 1) {
        const int mine = t + F(slot_term)(i);
        const int term = full || mine < end ? mine : last + mine % group;
        const struct place p = element_place(S, no_place(), term_number(terms, term));
        const int at = F(slot_position)(i);
#if WINDOWS
        r[i].none = F(WINDOWED) && !F(is_inside)(S, &spots[at], p);
        if (r[i].none)
            continue;
#endif
#define X(s)                                                                                                      \
    if (AT_A_TIME > 1 && vectors && in_stride(S, s, FAST_LOOP) == 1) {                                            \
        const struct in##s##_vector v = *(GLOBAL const struct in##s##_vector *)(T.in##s + spots[at].i##s + p.i##s); \
        UNROLL for (int j = 0; j < AT_A_TIME; j++) r[i + j].x##s = v.v[j];                                        \
    } else if (AT_A_TIME > 1 && vectors) {                                                                        \
        UNROLL for (int j = 0; j < AT_A_TIME; j++) r[i + j].x##s = T.in##s[spots[at].i##s + p.i##s];              \
    } else                                                                                                        \
        r[i].x##s = T.in##s[spots[at].i##s + p.i##s];
        F(FOR_INPUTS)(X)
#undef X
    }
}

/* What is read at a time lies before the end, or behind it, as a whole. */
static inline void F(load)(struct tensors T, shape_ptr S, terms_t terms, SHARED_POINTER const struct F(spot) *spots,
                           int t, int end, int vectors, struct raw r[F(SLOTS)])
{
    if (AT_A_TIME == 1 || vectors) {
        if (t + STEP <= end)
            F(load_any)(T, S, terms, spots, t, end, 1, 1, r);
        else
            F(load_any)(T, S, terms, spots, t, end, 0, 1, r);
    } else {
        F(load_any)(T, S, terms, spots, t, end, 0, 0, r);
    }
}

/* Puts what was read into shared memory, as the factor's values. Whether one of them shows. */
static inline int F(put)(const struct raw r[F(SLOTS)], SHARED_POINTER F(value_t) *tile)
{
    int odd = 0;
    UNROLL
    for (int i = 0; i < F(SLOTS); i += AT_A_TIME) {
        struct F(at_a_time) v;
        UNROLL
        for (int j = 0; j < AT_A_TIME; j++) {
#if WINDOWS
            v.v[j] = F(WINDOWED) && r[i + j].none ? F(outside) : F(factor)(r[i + j]);
            odd |= !(F(WINDOWED) && r[i + j].none) && F(shows)(v.v[j]);
#else
            v.v[j] = F(factor)(r[i + j]);
            odd |= F(shows)(v.v[j]);
#endif
            if (ALONG_TERMS)
                tile[F(slot_term)(i + j) * F(PITCH) + F(slot_position)(i)] = v.v[j];
        }
        if (!ALONG_TERMS)
            *(SHARED_POINTER struct F(at_a_time) *)(tile + F(slot_term)(i) * F(PITCH) + F(slot_position)(i)) = v;
    }
    return odd;
}

/* A thread's position number i, of those of the thread with this number along the side. */
static inline int F(own_position)(int thread, int i)
{
    return (i / VALUES_TOGETHER * (POSITIONS / OWN) + thread) * VALUES_TOGETHER + i % VALUES_TOGETHER;
}

/* A thread's values of one term. */
static inline void F(get)(SHARED_POINTER const F(value_t) *term, int thread, F(value_t) to[OWN])
{
    UNROLL
    for (int i = 0; i < OWN; i += VALUES_TOGETHER) {
        const struct F(together) v =
            *(SHARED_POINTER const struct F(together) *)(term + F(own_position)(thread, i));
        UNROLL
        for (int j = 0; j < VALUES_TOGETHER; j++)
            to[i + j] = v.v[j];
    }
}

#undef F
#undef F_
#undef F__
#undef SIDE
#undef LIST
#undef POSITIONS
#undef ALONG_TERMS
#undef OWN
#undef VALUES_TOGETHER
#undef BYTES_TOGETHER
#undef AT_A_TIME
#undef FAST_LOOP
