/* How a product on tensor cores stores its outputs, and how its tiles of terms follow each other. */
/* A group of outputs beside each other, in one store where they are neighbours in memory; `count` of them exist. */
static inline void store_group(struct tensors T, shape_ptr S, struct target left, int64_t column, int64_t count,
                               const float sums[VECTOR])
{
    struct results y[VECTOR];
    struct target first = sum_of_targets(left, move_target(S, no_target(), column, 1));
    UNROLL
    for (int j = 0; j < VECTOR; j++) {
        struct state s;
        struct target at = first;
        if (j >= count)
            continue;
        s.r0 = sums[j];
#if EVEN_COLUMNS
#define X(s) at.f##s += j * in_stride(S, s, COLUMN_LOOP);
        FOR_FINISH_INPUTS(X)
#undef X
#else
        at = sum_of_targets(left, move_target(S, no_target(), column + j, 1));
#endif
        y[j] = results_at(T, at, s, S->reduced_total);
#if !EVEN_COLUMNS
#define X(k) T.out##k[at.o##k] = y[j].y##k;
        FOR_OUTPUTS(X)
#undef X
#endif
    }
#if EVEN_COLUMNS
#define X(k)                                                                                                   \
    if (out_stride(S, k, COLUMN_LOOP) == 1 &&                                                                  \
        (uint64_t)(T.out##k + first.o##k) % (sizeof(struct out##k##_vector) < 16 ? sizeof(struct out##k##_vector) : 16) == 0) { \
        struct out##k##_vector v;                                                                              \
        UNROLL for (int j = 0; j < VECTOR; j++) v.v[j] = y[j].y##k;                                            \
        *(GLOBAL struct out##k##_vector *)(T.out##k + first.o##k) = v;                                         \
    } else                                                                                                     \
        UNROLL for (int j = 0; j < VECTOR; j++)                                                                \
            T.out##k[first.o##k + j * out_stride(S, k, COLUMN_LOOP)] = y[j].y##k;
    FOR_OUTPUTS(X)
#undef X
#endif
}

/* How far the factors' elements of the tile after the one at t are from its own. fast: t's place in the innermost
 * reduced loop. */
struct step {
    int64_t x, y;
};

static inline struct step step_from(shape_ptr S, int t, int end, int *fast)
{
    struct step step;
    *fast += STEP;
    if (*fast < S->size[LOOPS - 1] || t + STEP >= end) {
        step.x = STEP * in_stride(S, SLOT_X, LOOPS - 1);
        step.y = STEP * in_stride(S, SLOT_Y, LOOPS - 1);
    } else {
        const struct place here = element_place(S, no_place(), t), next = element_place(S, no_place(), t + STEP);
        step.x = next.PLACE_X - here.PLACE_X;
        step.y = next.PLACE_Y - here.PLACE_Y;
        *fast = 0;
    }
    return step;
}
