/* Folds without a reducer: UNITS units of VECTOR consecutive outputs a thread. Where the host found that all rows are
 * whole units and aligned (b.vectors; HAS_VECTORS: as far as strides say), a unit is one access of each tensor: of a
 * vector, or of one element that is repeated. A thread's units are the positions of loop ACROSS (-1: it has one), so it
 * finds out once where it is, and what stands still along that loop (STILL_s) is read once. An operand whose elements
 * for neighbouring outputs lie PITCH_s > 1 apart, those of the units APART_s between them, is read whole: colours of
 * pixels. SPARE: what follows its last element may not be read; p[4]: where that is, from its first element on.
 * WRITES_PIXELS: so outputs lie, a unit's UNITS apart.
 *
 * OVER_ROWS: rows are no whole units, but outputs are flat. A thread's units then lie a block's units apart, and an
 * operand is read as one vector at the output's own number (MODE_s 1), element by element (2), as one element for all
 * (0), or from shared memory (3): an operand of the last loop only, which is short, is written out there as often as it
 * takes for a row to begin where a unit does: TABLE units at most.
 *
 * p[0], p[1]: the last loop's size, and its divisor; p[2], p[3]: units that are written out, and their divisor. */
enum { UNIT_OUTPUTS = THREADS * VECTOR };

/* Places in the tensors, from their first element on. */
#if NEAR
typedef int32_t spot;
#else
typedef int64_t spot;
#endif

#if HAS_VECTORS
#if PACKED
/* Words of 4 / PACKED elements, on which packed_output computes. */
enum { UNIT_WORDS = VECTOR * PACKED / 4 };
struct ALIGNED(VECTOR * PACKED) unit_words {
    uint32_t v[UNIT_WORDS];
};
#define UNIT(s) struct unit_words
#define WORD(x) ((uint32_t)(x) & (PACKED == 1 ? 0xffu : 0xffffu))
#define ALL_ELEMENTS(u, x) \
    UNROLL for (int i = 0; i < UNIT_WORDS; i++) (u).v[i] = WORD(x) * (PACKED == 1 ? 0x01010101u : 0x00010001u)
#define EACH_ELEMENT(u, x) \
    UNROLL for (int i = 0; i < VECTOR; i++) \
        (u).v[i * PACKED / 4] = (i * PACKED % 4 ? (u).v[i * PACKED / 4] : 0) | WORD(x) << 8 * (i * PACKED % 4)
#else
#define UNIT(s) struct in##s##_vector
#define ALL_ELEMENTS(u, x) UNROLL for (int i = 0; i < VECTOR; i++) (u).v[i] = x
#define EACH_ELEMENT(u, x) ALL_ELEMENTS(u, x)
#endif

struct units {
#define X(s) UNIT(s) x##s;
    FOR_FINISH_INPUTS(X)
#undef X
    int none;
};

struct places {
#define X(s) spot f##s;
    FOR_FINISH_INPUTS(X)
#undef X
#define X(k) spot o##k;
    FOR_OUTPUTS(X)
#undef X
};

static inline spot in_step(shape_ptr S, int s)
{
    return ACROSS < 0 ? 0 : (spot)in_stride(S, s, ACROSS);
}

static inline spot out_step(shape_ptr S, int k)
{
    return ACROSS < 0 ? 0 : (spot)out_stride(S, k, ACROSS);
}

#if PITCHED
#define X(s)                                                                                                        \
    struct pixels##s {                                                                                              \
        struct in##s##_vector v[PITCH_##s];                                                                         \
    };                                                                                                              \
    static inline struct pixels##s pixels_of##s(struct tensors T, shape_ptr S, spot at)                             \
    {                                                                                                               \
        struct pixels##s p;                                                                                         \
        UNROLL for (int j = 0; j < PITCH_##s; j++, at += VECTOR)                                                    \
            if (!SPARE || at + VECTOR <= S->p[4])                                                                   \
                p.v[j] = *(GLOBAL const struct in##s##_vector *)(T.in##s + at);                                     \
            else                                                                                                    \
                UNROLL for (int i = 0; i < VECTOR; i++) if (at + i < S->p[4]) p.v[j].v[i] = T.in##s[at + i];        \
        return p;                                                                                                   \
    }
FOR_FINISH_INPUTS(X)
#undef X
#define PITCH(s) PITCH_##s
#define AT(s, i, k) ((i)*PITCH_##s + (k)*APART_##s)
#define PIXEL(s, i, k) from##s.v[AT(s, i, k) / VECTOR].v[AT(s, i, k) % VECTOR]
#else
#define PITCH(s) 1
#define PIXEL(s, i, k) 0
#endif

/* Where a thread's first unit lies in every tensor; first: the number of its first output, if there were no loop
 * ACROSS. */
static inline struct places first_places(shape_ptr S, number first)
{
    struct places p;
    number v = first, above = 0;
#define X(s) p.f##s = 0;
    FOR_FINISH_INPUTS(X)
#undef X
#define X(k) p.o##k = 0;
    FOR_OUTPUTS(X)
#undef X
    UNROLL
    for (int l = KEPT - 1; l >= 0; l--) {
        if (l == ACROSS) {
            above = v * (UNITS - 1);
        } else {
            const number q = l > (ACROSS == 0) ? divide(S, v, l) : 0, d = v - q * (number)S->size[l];
            v = q;
#define X(s) p.f##s += FLAT_IN_##s ? 0 : (spot)d * (spot)in_stride(S, s, l);
            FOR_FINISH_INPUTS(X)
#undef X
#define X(k) p.o##k += FLAT_OUT_##k ? 0 : (spot)d * (spot)out_stride(S, k, l);
            FOR_OUTPUTS(X)
#undef X
        }
    }
#define X(s) if (FLAT_IN_##s) p.f##s = (spot)first + (spot)above * in_step(S, s);
    FOR_FINISH_INPUTS(X)
#undef X
#define X(k) if (FLAT_OUT_##k) p.o##k = (spot)first + (spot)above * out_step(S, k);
    FOR_OUTPUTS(X)
#undef X
    return p;
}

static inline struct values map_one(struct units u, int i)
{
    struct raw_finish r;
    struct state none = state_identity();
#define X(s) r.x##s = u.x##s.v[i];
    FOR_FINISH_INPUTS(X)
#undef X
    r.none = 0;
    return values_of(none, 1, r);
}

static inline void store_unit(struct tensors T, struct places p, struct units u)
{
#if PACKED
    struct unit_words y;
    UNROLL
    for (int i = 0; i < UNIT_WORDS; i++) {
        struct packed r;
#define X(s) r.x##s = u.x##s.v[i];
        FOR_FINISH_INPUTS(X)
#undef X
        y.v[i] = packed_output(r);
    }
    *(GLOBAL struct unit_words *)(T.out0 + p.o0) = y;
#else
    struct values y[VECTOR];
    UNROLL
    for (int i = 0; i < VECTOR; i++)
        y[i] = map_one(u, i);
#define X(k) *(GLOBAL struct out##k##_vector *)(T.out##k + p.o##k) = stored_vector##k(y);
    FOR_OUTPUTS(X)
#undef X
#endif
}

#if OVER_ROWS
/* A unit that begins at output o, but for what is in shared memory. */
static inline void load_unit(struct tensors T, shape_ptr S, int64_t o, struct units *u)
{
#define X(s)                                                        \
    if (MODE_##s == 1)                                              \
        u->x##s = *(GLOBAL const UNIT(s) *)(T.in##s + o);           \
    else if (MODE_##s == 2)                                         \
        EACH_ELEMENT(u->x##s, T.in##s[kept_target(S, o + i).f##s]); \
    else if (MODE_##s == 0)                                         \
        ALL_ELEMENTS(u->x##s, T.in##s[0]);
    FOR_FINISH_INPUTS(X)
#undef X
}
#else
static inline void map_units(struct tensors T, shape_ptr S)
{
    const number own = (number)(BLOCK * THREADS + THREAD);
    if (own >= (number)S->kept_total / (VECTOR * UNITS))
        return;
    const struct places p = first_places(S, own * VECTOR);
    struct units u[UNITS];
#if PITCHED
#define X(s)                  \
    struct pixels##s from##s; \
    if (PITCH_##s > 1)        \
        from##s = pixels_of##s(T, S, p.f##s);
    FOR_FINISH_INPUTS(X)
#undef X
#endif
    UNROLL
    for (int k = 0; k < UNITS; k++) {
#define X(s)                                                                             \
    if (k && STILL_##s)                                                                  \
        u[k].x##s = u[0].x##s;                                                           \
    else if (PITCH(s) > 1)                                                               \
        EACH_ELEMENT(u[k].x##s, PIXEL(s, i, k));                                         \
    else if (in_stride(S, s, KEPT - 1) == 1)                                             \
        u[k].x##s = *(GLOBAL const UNIT(s) *)(T.in##s + p.f##s + k * in_step(S, s));         \
    else                                                                                 \
        ALL_ELEMENTS(u[k].x##s, T.in##s[p.f##s + k * in_step(S, s)]);
        FOR_FINISH_INPUTS(X)
#undef X
    }
    LOADED();
#if WRITES_PIXELS
    struct values y[UNITS][VECTOR];
    UNROLL
    for (int k = 0; k < UNITS; k++)
        UNROLL
        for (int i = 0; i < VECTOR; i++)
            y[k][i] = map_one(u[k], i);
    UNROLL
    for (int j = 0; j < UNITS; j++) {
        struct values z[VECTOR];
        UNROLL
        for (int i = 0; i < VECTOR; i++)
            z[i] = y[(j * VECTOR + i) % UNITS][(j * VECTOR + i) / UNITS];
#define X(n) *(GLOBAL struct out##n##_vector *)(T.out##n + p.o##n + j * VECTOR) = stored_vector##n(z);
        FOR_OUTPUTS(X)
#undef X
    }
    return;
#endif
    UNROLL
    for (int k = 0; k < UNITS; k++) {
        struct places at = p;
#define X(n) at.o##n += k * out_step(S, n);
        FOR_OUTPUTS(X)
#undef X
        store_unit(T, at, u[k]);
    }
}
#endif
#endif

KERNEL void modefold(POINTERS const struct bases b, SHAPE_PARAMETER, GLOBAL char *workspace)
{
    shape_ptr S = SHAPE;
    struct tensors T = TENSORS(b);
    const int64_t first = BLOCK * (UNIT_OUTPUTS * UNITS);
#if OVER_ROWS
    const int64_t units = S->kept_total / VECTOR;
    const int vectors = b.vectors && units;
    struct units u[UNITS];
    if (vectors) {
        UNROLL
        for (int k = 0; k < UNITS; k++) {
            /* units past the end read the last whole one, and are not stored: conditions would keep the loads apart */
            const int64_t o = first + (k * THREADS + THREAD) * VECTOR, last = units * VECTOR - VECTOR;
            load_unit(T, S, o < last ? o : last, &u[k]);
        }
        LOADED();
    }
#if TABLE
#define X(s)                                                                                                         \
    SHARED UNIT(s) table##s[MODE_##s == 3 ? TABLE : 1];                                                              \
    if (MODE_##s == 3)                                                                                               \
        for (int e = THREAD; e < (int)S->p[2] * VECTOR; e += THREADS)                                                \
            ((SHARED_POINTER in##s##_t *)table##s)[e] =                                                              \
                T.in##s[(e - divide_by(S->p[1], e) * (int)S->p[0]) * in_stride(S, s, KEPT - 1)];
    FOR_FINISH_INPUTS(X)
#undef X
    BARRIER();
#endif
    if (vectors) {
        UNROLL
        for (int k = 0; k < UNITS; k++) {
            const int64_t o = first + (k * THREADS + THREAD) * VECTOR;
#if TABLE
            const uint32_t own = (uint32_t)(o / VECTOR);
            const uint32_t turn =
                WIDE ? (uint32_t)(o / VECTOR % S->p[2]) : own - divide_by(S->p[3], own) * (uint32_t)S->p[2];
#define X(s) if (MODE_##s == 3) u[k].x##s = table##s[turn];
            FOR_FINISH_INPUTS(X)
#undef X
#endif
            struct places at;
#define X(n) at.o##n = (spot)o;
            FOR_OUTPUTS(X)
#undef X
            if (o + VECTOR <= S->kept_total)
                store_unit(T, at, u[k]);
            else
                NO_UNROLL for (int i = 0; o + i < S->kept_total; i++)
                    finish_output(T, S, o + i, state_identity(), 1);
        }
        return;
    }
#elif HAS_VECTORS
    if (b.vectors) {
        map_units(T, S);
        return;
    }
#endif
    NO_UNROLL
    for (int k = 0; k < UNITS * VECTOR; k++) {
        const int64_t o = first + k * THREADS + THREAD;
        if (o < S->kept_total)
            finish_output(T, S, o, state_identity(), 1);
    }
}
