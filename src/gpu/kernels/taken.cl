/* VECTOR elements of one row. ITEM: bytes of an element where they are short, and of the only operand; else 0. Such
 * elements stay in words while others are computed with: of themselves they get a register each where a loop's turns
 * meet, or two ways of reading. */
#if ITEM
enum { WORDS_TAKEN = VECTOR * ITEM / 4 };
struct ALIGNED(VECTOR * ITEM) taken {
    uint32_t v[WORDS_TAKEN];
};

static inline struct taken no_taken(void)
{
    struct taken r;
    UNROLL
    for (int i = 0; i < WORDS_TAKEN; i++)
        r.v[i] = 0;
    return r;
}

/* Element i of a vector, where it is in its word. */
static inline uint32_t word_of_element(uint32_t x, int i)
{
    return (x & (0xffffffffu >> (32 - 8 * ITEM))) << 8 * ITEM * i % 32;
}

static inline struct taken take(struct tensors T, shape_ptr S, struct place p, int vectors)
{
    struct taken r = no_taken();
    if (vectors) {
#define X(s) r = READ_VECTOR((GLOBAL const struct taken *)(T.in##s + p.i##s));
        FOR_MAP_INPUTS(X)
#undef X
    } else {
        UNROLL
        for (int i = 0; i < VECTOR; i++) {
#define X(s) r.v[i * ITEM / 4] |= word_of_element(T.in##s[p.i##s + i], i);
            FOR_MAP_INPUTS(X)
#undef X
        }
    }
    return r;
}

static inline struct raw one_taken(struct taken v, int i)
{
    struct raw r;
#define X(s) r.x##s = (in##s##_t)(v.v[i * ITEM / 4] >> 8 * ITEM * i % 32);
    FOR_MAP_INPUTS(X)
#undef X
    r.none = 0;
    return r;
}
#else
#define taken raws
#define no_taken no_elements
#define take(T, S, p, vectors) fetch_vector(T, S, p, KEPT - 1, vectors)
#define one_taken one_of_vector
#endif
