/* Lanes and states of sums of logsumexp (sums.cl). FOR_SUMS(X): X(REAL, its suffix, the reducer's number). */
#define X(T, cls, i) T r##i;
/* The origins that many lanes have, if their sums are plain together. */
struct origins {
    FOR_SUMS(X)
    int plain;
};
#undef X

/* That of the unit 1. */
static inline struct origins no_origins(void)
{
    struct origins of;
#define X(T, cls, i) of.r##i = MF_MAGIC_##cls;
    FOR_SUMS(X)
#undef X
    of.plain = 0;
    return of;
}

static inline void keep_origins(struct origins *to, struct lane s)
{
#define X(T, cls, i) to->r##i = s.r##i##_origin;
    FOR_SUMS(X)
#undef X
}

/* What ends a state of such lanes; whether it is plain as far as its greatest says. */
static inline int settle_at(struct state *s, const struct origins *of)
{
    int yes = 1;
#define X(T, cls, i)                                     \
    yes &= is_plain_##cls(s->r##i##_m, of->r##i);        \
    s->r##i##_s = from_plain_##cls(s->r##i##_s, s->r##i##_m, of->r##i);
    FOR_SUMS(X)
#undef X
    return yes;
}

static inline void set_origin(struct lane *s, struct element x)
{
#define X(T, cls, i)                                \
    s->r##i##_origin = origin_at_##cls(x.a##i);     \
    s->r##i##_lowest = lowest_at_##cls(s->r##i##_origin);
    FOR_SUMS(X)
#undef X
}

/* The greatest of many lanes, and how far above the gray zone they are. */
static inline void gather(struct lane *all, struct lane s)
{
#define X(T, cls, i)                                                       \
    all->r##i##_m = fold_max_##cls(all->r##i##_m, s.r##i##_m);             \
    all->r##i##_gray = LESSER_OF_SUM(s.r##i##_gray, 0, all->r##i##_gray);  \
    all->r##i##_origin = s.r##i##_origin;
    FOR_SUMS(X)
#undef X
}

/* The same of elements that are summed in the unit 1, before they are; and how far from 0 they are. */
static inline void gather_in_1(struct lane *all, struct element x, int present, int greatest)
{
#define X(T, cls, i)                                                                               \
    all->r##i##_gray = grayer_in_1_##cls(all->r##i##_gray, if_present_##cls(present, x.a##i));     \
    if (greatest)                                                                                  \
        all->r##i##_m = fold_max_##cls(all->r##i##_m, if_present_##cls(present, x.a##i));
    FOR_SUMS(X)
#undef X
}

static inline void gather_extent(struct lane *all, struct element x, int present)
{
#define X(T, cls, i) all->r##i##_m = fold_max_##cls(all->r##i##_m, present > 0 ? extent_of_##cls(x.a##i) : 0);
    FOR_SUMS(X)
#undef X
}

/* Whether what was gathered will do. */
#define X(T, cls, i) yes &= is_clear_##cls(s.r##i##_gray);
static inline int lane_is_clear(struct lane s)
{
    int yes = 1;
    FOR_SUMS(X)
    return yes;
}
#undef X
#define X(T, cls, i) yes &= is_clear_in_1_##cls(s.r##i##_gray);
static inline int all_are_clear(struct lane s)
{
    int yes = 1;
    FOR_SUMS(X)
    return yes;
}
#undef X
#define X(T, cls, i) yes &= is_plain_##cls(s.r##i##_m, s.r##i##_origin);
static inline int all_are_notable(struct lane s)
{
    int yes = 1;
    FOR_SUMS(X)
    return yes;
}
#undef X
#define X(T, cls, i) yes &= s.r##i##_m <= 60;
static inline int extents_are_small(struct lane s)
{
    int yes = 1;
    FOR_SUMS(X)
    return yes;
}
#undef X

/* A lane of one element, in the unit 1; may_be_low: not where all are near 0. */
static inline void only_element(struct lane *s, struct element x, int present)
{
#define X(T, cls, i)                                                                                       \
    {                                                                                                      \
        const T y = if_present_##cls(present, x.a##i);                                                     \
        const T e = plain_exp_##cls(s->may_be_low ? AT_LEAST_##cls(y, s->r##i##_lowest) : y, MF_MAGIC_##cls); \
        s->r##i##_m = y;                                                                                   \
        s->r##i##_s = present > 0 || s->may_be_low ? e : 0;                                                    \
    }
    FOR_SUMS(X)
#undef X
}

/* What is rare is done to l[0], so that where SETTLING does not unroll the program has it once: in `count` turns all
 * lanes come by. (An index that is not known would put them into memory.) */
static inline void turn_lanes(struct lane *l, const int count)
{
    const struct lane first = l[0];
    UNROLL
    for (int j = 1; j < count; j++)
        l[j - 1] = l[j];
    l[count - 1] = first;
}

/* What ends such a lane of any element, if it is there. */
static inline void settle_one(struct lane *s, int present)
{
#define X(T, cls, i) s->r##i##_s = present > 0 ? sum_unit_##cls(s->r##i##_m) : 0;
    FOR_SUMS(X)
#undef X
}

/* Whether a state's greatest is too far from 0 for the short formulas; the state of one element that is not. */
static inline int state_is_far(struct state s)
{
    int far = 0;
#define X(T, cls, i) far |= is_far_##cls(s.r##i##_m);
    FOR_SUMS(X)
#undef X
    return far;
}

static inline void settle_near(struct state *s)
{
#define X(T, cls, i) s->r##i##_s = near_unit_##cls(s->r##i##_m);
    FOR_SUMS(X)
#undef X
}
