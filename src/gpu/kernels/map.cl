/* Folds without a reducer: UNITS units of VECTOR consecutive outputs a thread. Where the host found that all rows are
 * whole units and aligned (b.vectors), a unit is one access of each tensor: of a vector, or of one element that is repeated. */
enum { UNIT_OUTPUTS = THREADS * VECTOR };

struct units {
#define X(s) struct in##s##_vector x##s;
    FOR_FINISH_INPUTS(X)
#undef X
    int none;
};

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

/* Operand s is read as one vector at the output's own number (1), element by element (2), or where the unit's first
 * output has it, as a vector or one element for all (0). */
static inline void load_units(struct tensors T, shape_ptr S, struct target at, int64_t o, struct units *u)
{
#define X(s)                                                                                                 \
    if (MODE_##s == 1 || (MODE_##s == 0 && in_stride(S, s, KEPT - 1) == 1))                                  \
        u->x##s = *(GLOBAL const struct in##s##_vector *)(T.in##s + (MODE_##s == 1 ? o : at.f##s));          \
    else                                                                                                     \
        UNROLL for (int i = 0; i < VECTOR; i++) u->x##s.v[i] =                                               \
            T.in##s[MODE_##s == 2 ? kept_target(S, o + i).f##s : at.f##s];
    FOR_FINISH_INPUTS(X)
#undef X
}

static inline void map_vectors(struct tensors T, shape_ptr S, int64_t first)
{
    struct units u[UNITS];
    struct target at[UNITS];
    UNROLL
    for (int k = 0; k < UNITS; k++) {
        /* units past the end read the last whole one, and are not stored: conditions would keep the loads apart */
        const int64_t own = first + (int64_t)(k * THREADS + THREAD) * VECTOR;
        const int64_t last = S->kept_total / VECTOR * VECTOR - VECTOR;
        const int64_t o = own < last ? own : last;
        at[k] = kept_target(S, o);
        load_units(T, S, at[k], o, &u[k]);
    }
    LOADED();
    UNROLL
    for (int k = 0; k < UNITS; k++) {
        const int64_t o = first + (int64_t)(k * THREADS + THREAD) * VECTOR;
        struct values y[VECTOR];
        UNROLL
        for (int i = 0; i < VECTOR; i++)
            y[i] = map_one(u[k], i);
        if (o + VECTOR <= S->kept_total) {
#define X(n) *(GLOBAL struct out##n##_vector *)(T.out##n + at[k].o##n) = stored_vector##n(y);
            FOR_OUTPUTS(X)
#undef X
        } else {
            for (int i = 0; o + i < S->kept_total; i++)
                finish_output(T, S, o + i, state_identity(), 1);
        }
    }
}

KERNEL void modefold(POINTERS const struct bases b, SHAPE_PARAMETER, GLOBAL char *workspace)
{
    shape_ptr S = SHAPE;
    struct tensors T = TENSORS(b);
    const int64_t first = BLOCK * (UNIT_OUTPUTS * UNITS);
#if VECTOR > 1
    if (b.vectors && S->kept_total >= VECTOR) {
        map_vectors(T, S, first);
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
