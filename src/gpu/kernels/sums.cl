/* The sums of logsumexp, of the class that REAL and NAMED are of (emit_sums.c): vocab/ops_float.inc says what they are.
 *
 * A lane is summed in a unit that is known before its greatest is: a power of two, 2^C of an element that is at hand, or
 * 1; origin: MF_MAGIC - C. Let an element's n be its power less C. As long as no term over- or underflows the sum only
 * has to be multiplied by a power of two at the end to have the contract's bits. Elements of n <= -LOWEST count as if
 * they were that: half a unit in the last place of a sum that has an element of n >= GRAY - LOWEST + 1 (or of TOP at
 * most) is more than a tile of them. So a lane (and many together, by additions) is plain if it has such an element, or
 * is all -inf, and none in the gray zone between. Else it is read again. Of an infinite one or a NaN the sum says
 * nothing; it must be finite beside -inf. */

/* exp(x) in an origin's unit, where that is plain; else anything. */
static inline REAL NAMED(plain_exp)(REAL x, REAL origin)
{
    const REAL t = FMA_OF(x, REAL_CONSTANT(LOG2E), origin);
    const REAL p = EXP2_OF(FMA_OF(x, REAL_CONSTANT(LOG2E), origin - t));
    return FROM_BITS_OF(TO_BITS_OF(p) + (TO_BITS_OF(t) << EXPONENT_OF));
}

/* The x of the lowest n. */
static inline REAL NAMED(lowest_at)(REAL origin)
{
    return (REAL_CONSTANT(MAGIC) - origin - LOWEST) * (REAL)0.6931471805599453;
}

/* gray, or how far an element that is not less than the lowest is above the gray zone's lower end, whichever is less; of
 * the lowest that is much. */
static inline uint32_t NAMED(grayer)(uint32_t gray, REAL x, REAL origin)
{
    return LESSER_OF_SUM((uint32_t)TO_BITS_OF(FMA_OF(x, REAL_CONSTANT(LOG2E), origin)),
                         (uint32_t)(LOWEST - 1) - (uint32_t)TO_BITS_OF(REAL_CONSTANT(MAGIC)), gray);
}

static inline int NAMED(is_clear)(uint32_t gray) { return gray >= GRAY; }

/* Whether m, the greatest element of what has no gray one, is neither too low nor too high. */
static inline int NAMED(is_plain)(REAL m, REAL origin)
{
    const REAL t = FMA_OF(m, REAL_CONSTANT(LOG2E), origin);
    return t <= REAL_CONSTANT(MAGIC) + TOP && (t > REAL_CONSTANT(MAGIC) + (GRAY - LOWEST) || m == -INFINITE);
}

/* Elements in the unit 1: their bits, or the upper word, say how far above that zone they are, so that it is known
 * before exponentials are begun. FIRST_GRAY: of GRAYS. */
static inline uint32_t NAMED(grayer_in_1)(uint32_t gray, REAL x)
{
    return LESSER_OF_SUM((uint32_t)(TO_BITS_OF(x) >> UPPER_AT), 0u - FIRST_GRAY, gray);
}
static inline int NAMED(is_clear_in_1)(uint32_t gray) { return gray >= GRAYS; }

static inline REAL NAMED(extent_of)(REAL x) { return FABS_OF(x); }
/* present: as PRESENCE says it, negative outside of a window. */
static inline REAL NAMED(if_present)(int present, REAL x) { return present > 0 ? x : -INFINITE; }

/* A plain sum in units of m's power. */
static inline REAL NAMED(from_plain)(REAL s, REAL m, REAL origin)
{
    const REAL t = FMA_OF(m, REAL_CONSTANT(LOG2E), origin);
    return s * FROM_BITS_OF(TO_BITS_OF((REAL)1) - (TO_BITS_OF(t) << EXPONENT_OF));
}

/* The origin of x's own unit, or of 1: of what is likely a mask too. */
static inline REAL NAMED(origin_at)(REAL x)
{
    const REAL mask = -9000, t = FMA_OF(x, REAL_CONSTANT(LOG2E), REAL_CONSTANT(MAGIC));
    return x > mask && x < REAL_CONSTANT(NEAR) / 2 ? REAL_CONSTANT(MAGIC) + (REAL_CONSTANT(MAGIC) - t)
                                                   : REAL_CONSTANT(MAGIC);
}

/* Values beyond what the short formulas are for; these are then functions of their own, which nobody waits for. */
static inline int NAMED(is_far)(REAL x)
{
    return FABS_OF(x) >= REAL_CONSTANT(NEAR) / 2 && FABS_OF(x) < INFINITE;
}

static NOT_INLINE REAL NAMED(far_unit)(REAL x) { return EXP_UNIT_OF(x); }
static NOT_INLINE REAL NAMED(far_step)(REAL x, REAL m) { return EXP_STEP_OF(x, m); }

static inline REAL NAMED(far_joined)(REAL x, REAL s, REAL y, REAL of_y, REAL m)
{
    return s * NAMED(far_step)(x, m) + of_y * NAMED(far_step)(y, m);
}

/* mf_exp_unit, where x is not far; of -inf finite. */
static inline REAL NAMED(near_unit)(REAL x)
{
    const REAL z = NAMED(fold_max)(x, -REAL_CONSTANT(NEAR));
    const REAL t = FMA_OF(z, REAL_CONSTANT(LOG2E), REAL_CONSTANT(MAGIC));
    return EXP2_OF(FMA_OF(z, REAL_CONSTANT(LOG2E), REAL_CONSTANT(MAGIC) - t));
}

static inline REAL NAMED(sum_unit)(REAL x) { return NAMED(is_far)(x) ? NAMED(far_unit)(x) : NAMED(near_unit)(x); }

/* The sum of two, whose greatest are x and y; m: the greater one, which is not far. */
static inline REAL NAMED(near_joined)(REAL x, REAL s, REAL y, REAL of_y, REAL m)
{
    const REAL low = m - REAL_CONSTANT(REACH);
    const UNSIGNED_OF from =
        TO_BITS_OF((REAL)1) - (TO_BITS_OF(FMA_OF(m, REAL_CONSTANT(LOG2E), REAL_CONSTANT(MAGIC))) << EXPONENT_OF);
    const REAL t = FMA_OF(NAMED(fold_max)(x, low), REAL_CONSTANT(LOG2E), REAL_CONSTANT(MAGIC));
    const REAL u = FMA_OF(NAMED(fold_max)(y, low), REAL_CONSTANT(LOG2E), REAL_CONSTANT(MAGIC));
    return FMA_OF(s, FROM_BITS_OF(from + (TO_BITS_OF(t) << EXPONENT_OF)),
                  of_y * FROM_BITS_OF(from + (TO_BITS_OF(u) << EXPONENT_OF)));
}

static inline REAL NAMED(sure_joined)(REAL x, REAL s, REAL y, REAL of_y, REAL m)
{
    return NAMED(is_far)(m) ? NAMED(far_joined)(x, s, y, of_y, m) : NAMED(near_joined)(x, s, y, of_y, m);
}

/* The sum of a lane's first elements, m the greatest of them, and the next one, x. greatest: of all, which is finite.
 * Where that is not far, nothing is noticed of elements further out than all formulas for such reach. */
#if IN_TURN /* solver "columns", whose turns have no registers for it */
static NOT_INLINE
#else
static inline
#endif
REAL NAMED(merged)(REAL m, REAL s, REAL x, REAL greatest)
{
    const REAL least = -REAL_CONSTANT(NEAR), y = NAMED(fold_max)(x, least), z = NAMED(fold_max)(m, least);
    if (NAMED(is_far)(greatest))
        return NAMED(far_joined)(m, s, x, NAMED(far_unit)(x), NAMED(fold_max)(m, x));
    return NAMED(near_joined)(z, s, y, NAMED(near_unit)(y), NAMED(fold_max)(z, y));
}

/* mf_logsum. A sum of 0 adds nothing: m is the logarithm. */
static inline REAL NAMED(log_of)(REAL m, REAL s)
{
    const REAL of_m = MF_QUOTIENT(s, NAMED(sum_unit)(m));
    return s == 0 ? m : LOG_OF(of_m > 1 ? of_m : (REAL)1) + m;
}
