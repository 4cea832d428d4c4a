/* The state of one element, number e; of none, if it is not present. */
static inline struct state one_element(shape_ptr S, struct raw r, int e, int present)
{
    struct lane l = empty_lane();
    chain(S, &l, map_element(r), 0, e, weights_of(0), present);
    if (LOGSUMS)
        settle_one(&l, present);
    return lane_state(S, l, e, present);
}

/* The same, with sums of logsumexp in the unit 1, of an element that is near 0 (extents_are_small). */
static inline struct state one_near_0(shape_ptr S, struct raw r, int e, int present)
{
    struct lane l = empty_lane();
    l.may_be_low = 0;
    chain(S, &l, map_element(r), 0, e, weights_of(0), present);
    only_element(&l, map_element(r), present);
    return lane_state(S, l, e, present);
}

/* Whether a place lies inside the windows whose bits of `windows` are `bit`. */
static inline int inside_some(shape_ptr S, struct place p, const int windows, const int bit)
{
    int yes = 1;
#if WINDOWS
    UNROLL
    for (int w = 0; w < WINDOWS; w++)
        if ((windows >> w & 1) == bit)
            yes &= is_within(S, p, w);
#endif
    return yes;
}

/* a and b, of so many elements, where they are whole: constants, which the compiler divides. plain: with sums in the
 * unit 1. */
static inline struct state merged(struct state a, int of_a, struct state b, int of_b, const int whole, const int plain)
{
    if (LOGSUMS && plain)
        return combine_plain(a, b);
#if MERGE_WEIGHTS
    if (whole)
        return combine_weighted(a, b, joining(of_a, of_b));
#endif
    return combine(a, b);
}
