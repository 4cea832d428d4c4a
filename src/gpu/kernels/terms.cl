/* What both factors of a contraction need: lists of kept loops (of the rows, of the columns, of both: list_loops and
 * list_loop, which are emitted), and the sequence in which terms are computed. */
static inline struct place move_place(shape_ptr S, struct place p, int64_t position, int list)
{
    number v = (number)position;
    UNROLL
    for (int i = KEPT - 1; i >= 0; i--)
        if (i < list_loops(list)) {
            const int l = list_loop(list, i);
            number q = i ? divide(S, v, l) : 0, d = v - q * (number)S->size[l];
            v = q;
#define X(s) p.i##s += (int64_t)d * in_stride(S, s, l);
            FOR_MAP_INPUTS(X)
#undef X
#if WINDOWS
            UNROLL
            for (int w = 0; w < WINDOWS; w++)
                p.window[w] += (WINDOW)d * window_step(S, w, l);
#endif
        }
    return p;
}

static inline struct target move_target(shape_ptr S, struct target t, int64_t position, int list)
{
    number v = (number)position;
    UNROLL
    for (int i = KEPT - 1; i >= 0; i--)
        if (i < list_loops(list)) {
            const int l = list_loop(list, i);
            number q = i ? divide(S, v, l) : 0, d = v - q * (number)S->size[l];
            v = q;
#define X(s) t.f##s += (int64_t)d * in_stride(S, s, l);
            FOR_FINISH_INPUTS(X)
#undef X
#define X(k) t.o##k += (int64_t)d * out_stride(S, k, l);
            FOR_OUTPUTS(X)
#undef X
        }
    return t;
}

static inline struct place no_place(void)
{
    struct place p;
#define X(s) p.i##s = 0;
    FOR_MAP_INPUTS(X)
#undef X
#if WINDOWS
    for (int w = 0; w < WINDOWS; w++)
        p.window[w] = 0;
#endif
    p.none = 0;
    return p;
}

static inline struct target no_target(void)
{
    struct target t;
#define X(s) t.f##s = 0;
    FOR_FINISH_INPUTS(X)
#undef X
#define X(k) t.o##k = 0;
    FOR_OUTPUTS(X)
#undef X
    return t;
}

static inline struct target sum_of_targets(struct target a, struct target b)
{
#define X(s) a.f##s += b.f##s;
    FOR_FINISH_INPUTS(X)
#undef X
#define X(k) a.o##k += b.o##k;
    FOR_OUTPUTS(X)
#undef X
    return a;
}

/* IN_TREE: a term's number, and where a run begins its length * 16 + 1 + the joins after it (0: it goes on in the next
 * STEP terms). */
struct term {
    int number, run;
};

/* Consecutive terms that give one value, and the joins of such values after it. */
struct part {
    int first, end, joins;
};

#if IN_TREE
typedef GLOBAL const struct term *terms_t;
static inline int64_t term_number(terms_t terms, int64_t t) { return terms[t].number; }
#else
typedef int terms_t; /* one after the other */
static inline int64_t term_number(terms_t terms, int64_t t) { return t; }
#endif

/* EXP_BELOW_f64: e^x for x <= 0, nothing below e^-708; else x, as an infinity or a NaN goes through. */
static inline double exp_of_logarithm(double x)
{
    return x < -708 ? 0 : x <= 0 ? mf_exp_below_f64(x) : x;
}

/* log x of sums that the certificate leaves, which are normal numbers: vocab's, with products fused with the sums behind
 * them and without its special cases. */
static inline float log_of_sum_f32(float x)
{
    const uint32_t u = mf_f32_bits(x) - 0x3f3504f3u;
    const float k = mf_bits_f32(((u + 0x40000000u) >> 23) | 0x4b000000u) - 8388736.0f;
    const float f = mf_bits_f32((u & 0x007fffffu) + 0x3f3504f3u) - 1.0f, z = f * f;
    float q = fmaf(-0.0763448328f, f, 0.127619594f);
    q = fmaf(q, z, fmaf(-0.131603643f, f, 0.142017201f));
    q = fmaf(q, z, fmaf(-0.166233361f, f, 0.200012282f));
    q = fmaf(q, z, fmaf(-0.250008225f, f, 0.333333313f));
    return fmaf(k, 0.693145752f, fmaf(-0.5f, z, fmaf(q, f * z, k * 1.42860677e-06f)) + f);
}

static inline double log_of_sum_f64(double x)
{
    return mf_log_f64(x);
}

/* Where the prelude has no copies that go by themselves. */
#ifndef COPY_FLOATS
#define COPY_FLOATS(bytes, to, from)              \
    do {                                          \
        UNROLL                                    \
        for (int c_ = 0; c_ < (bytes) / 4; c_++)  \
            (to)[c_] = (from)[c_];                \
    } while (0)
#define END_COPIES()
#define AWAIT_COPIES(groups)
#endif

/* Shared memory for vectors: enough of these for so many bytes. */
struct ALIGNED(16) sixteen {
    int v[4];
};
#define SIXTEENS(bytes) (((bytes) + 15) / 16)
