/* Extremes and (MEANS) means of bytes over windows of neighbours, as they are. A word whose lowest byte is number n of
 * a line is two numbers of 16 bits, whose order is that of the bytes n + 1 and n + 3, their upper halves: four
 * neighbouring outputs are two such words, for the odd ones and (a byte before) the even ones. Sums are of 16 bits too,
 * of the even and the odd bytes of a word. Bytes with a sign are numbers without one, their highest bit the other way
 * round, so that a sum is greater by 128 for each element. A quotient in F64 that becomes a byte is that of integers
 * towards zero: where it is none itself it is further from one than rounding reaches.
 *
 * Windows of ROWS x ALONG, whose elements in a row are GAP bytes apart, those of neighbouring outputs 1. A thread takes
 * CHUNK neighbours of OUTS rows of outputs (as many rows apart as a window's), and reads what they need of each line
 * once, BATCH lines together: aligned words, from which it shifts its own. Where elements lie so far apart (APART) that
 * it reads each by itself, there is a line for each.
 *
 * ROW_KEPT, ROW_REDUCED: the loops of rows, or -1. OF_COLUMNS: a bit for each window that moves along the lines.
 * p[0], p[1]: threads of a row of outputs, and the divisor. p[2], p[3]: of those of OUTS rows. p[4]: bytes of a row.
 * p[5], p[6]: which bytes of a line are there, from the first output's first one on. */
enum {
    CHUNK = 16,
    WORDS_OUT = CHUNK / 4,
    TAPS = APART ? 1 : ALONG,
    READ = (CHUNK + (TAPS - 1) * GAP + 3) / 4,
    LINES = (OUTS + ROWS - 1) * (APART ? ALONG : 1),
    SIGN = IS_SIGNED ? 0x80 : 0,
    NOTHING = IS_MIN ? 0xff : 0
};

#define OF_FOUR(byte) ((byte) * 0x01010101u)

#define X(s)                                                                   \
    typedef in##s##_t item;                                                    \
    static inline GLOBAL const item *address(struct tensors T, struct place p) \
    {                                                                          \
        return T.in##s + p.i##s;                                               \
    }                                                                          \
    static inline int64_t stride_along(shape_ptr S, int loop)                  \
    {                                                                          \
        return in_stride(S, s, loop);                                          \
    }
FOR_MAP_INPUTS(X)
#undef X

struct pairs {
    uint32_t even, odd;
};

static inline uint32_t joined_pairs(uint32_t a, uint32_t b)
{
#if MEANS
    return a + b;
#else
    return IS_MIN ? LESSER_OF_PAIRS(a, b) : GREATER_OF_PAIRS(a, b);
#endif
}

/* The word that begins so many bytes, 0 to 3, after the first of `low`. */
static inline uint32_t between(uint32_t low, uint32_t high, int bytes)
{
    return (uint32_t)(((uint64_t)high << 32 | low) >> 8 * bytes);
}

/* The word that begins with byte `at`, a constant, of a line; before byte 0 there may be anything. */
static inline uint32_t word_at(const uint32_t line[READ + 1], int at)
{
    return at < 0 ? line[0] << 8 : at % 4 ? between(line[at / 4], line[at / 4 + 1], at % 4) : line[at / 4];
}

static inline struct pairs joined(struct pairs a, struct pairs b)
{
    a.even = joined_pairs(a.even, b.even);
    a.odd = joined_pairs(a.odd, b.odd);
    return a;
}

#if MEANS
/* A line's even and odd bytes, as numbers of 16 bits. */
struct split {
    uint32_t even[READ + 1], odd[READ + 1];
};

/* Two of them, of which number `at` is the first. */
static inline uint32_t two_at(const uint32_t number[READ + 1], int at)
{
    return at % 2 ? between(number[at / 2], number[at / 2 + 1], 2) : number[at / 2];
}

static inline struct split taps_of(const uint32_t line[READ + 1])
{
    struct split s;
    UNROLL
    for (int k = 0; k <= READ; k++) {
        s.even[k] = line[k] & 0x00ff00ffu;
        s.odd[k] = line[k] >> 8 & 0x00ff00ffu;
    }
    return s;
}

/* The elements there of four outputs beside each other. */
static inline struct pairs pairs_at(struct split s, int at)
{
    struct pairs p;
    p.even = two_at(at % 2 ? s.odd : s.even, at / 2);
    p.odd = two_at(at % 2 ? s.even : s.odd, at / 2 + at % 2);
    return p;
}
#else
struct split {
    uint32_t word[READ + 1];
};

static inline struct split taps_of(const uint32_t line[READ + 1])
{
    struct split s;
    s.word[READ] = line[READ];
    UNROLL
    for (int k = 0; k < READ; k++)
        s.word[k] = line[k];
    return s;
}

static inline struct pairs pairs_at(struct split s, int at)
{
    struct pairs p;
    p.even = word_at(s.word, at - 1);
    p.odd = word_at(s.word, at);
    return p;
}
#endif

/* Bytes at ... at+3 of the line x, an aligned word, of which low ... high-1 are there. */
static inline uint32_t some_of_word(GLOBAL const item *x, int at, int low, int high)
{
    uint32_t word = 0;
    if (at >= low && at + 4 <= high)
        return *(GLOBAL const uint32_t *)(x + at);
    if (at + 4 <= low || at >= high)
        return OF_FOUR(NOTHING ^ SIGN);
    NO_UNROLL
    for (int i = 3; i >= 0; i--)
        word = word << 8 | (at + i >= low && at + i < high ? (uint8_t)x[at + i] : NOTHING ^ SIGN);
    return word;
}

struct ALIGNED(CHUNK) chunk {
    uint32_t v[WORDS_OUT];
};

/* Words from the aligned one on that has byte `from` of the line at x, as many bytes past its first as it returns. */
static inline int read_line(GLOBAL const item *x, int from, int low, int high, uint32_t word[READ + 1])
{
    const int past = (int)((size_t)(x + from) % 4), begin = from - past;
    word[READ] = 0;
    if (APART && begin >= low && begin + CHUNK <= high && (size_t)(x + from) % CHUNK == 0) {
        const struct chunk c = *(GLOBAL const struct chunk *)(x + from);
        UNROLL
        for (int k = 0; k < WORDS_OUT; k++)
            word[k] = c.v[k];
    } else if (begin >= low && begin + 4 * (READ + 1) <= high) {
        UNROLL
        for (int k = 0; k <= READ; k++)
            word[k] = ((GLOBAL const uint32_t *)(x + begin))[k];
    } else {
        UNROLL
        for (int k = 0; k <= READ; k++)
            word[k] = some_of_word(x, begin + 4 * k, low, high);
    }
    return past;
}

/* A line's part in its outputs. */
static inline void fold_line(const uint32_t word[READ + 1], int past, struct pairs best[WORDS_OUT])
{
    uint32_t line[READ + 1];
    line[READ] = 0;
    UNROLL
    for (int k = 0; k < READ; k++)
        line[k] = between(word[k], word[k + 1], past) ^ OF_FOUR(SIGN);
    const struct split taps = taps_of(line);
    UNROLL
    for (int k = 0; k < WORDS_OUT; k++) {
        best[k] = pairs_at(taps, 4 * k);
        UNROLL
        for (int j = 1; j < TAPS; j++)
            best[k] = joined(best[k], pairs_at(taps, 4 * k + j * GAP));
    }
}

static inline void write_bytes(GLOBAL out0_t *out, const struct chunk *c, int begin, int end)
{
    UNROLL
    for (int i = 0; i < CHUNK; i++)
        if (i >= begin && i < end)
            out[i] = (out0_t)(c->v[i / 4] >> 8 * (i % 4));
}

/* The first `count` of 16 bytes, in words as far as they are aligned ones. */
static inline void write_chunk(GLOBAL out0_t *out, struct chunk c, int count)
{
    const int ahead = (int)(-(size_t)out % 4), words = (count - ahead) / 4;
    if (count >= CHUNK && (size_t)out % CHUNK == 0)
        *(GLOBAL struct chunk *)out = c;
    else if (count < 4)
        write_bytes(out, &c, 0, count);
    else {
        UNROLL
        for (int k = 0; k < WORDS_OUT; k++)
            if (k < words)
                ((GLOBAL uint32_t *)(out + ahead))[k] = between(c.v[k], k + 1 < WORDS_OUT ? c.v[k + 1] : 0, ahead);
        write_bytes(out, &c, 0, ahead);
        write_bytes(out, &c, ahead + 4 * words, count);
    }
}

#if MEANS
/* Sum number i of a line's part, a constant. */
static inline int sum_at(const struct pairs y[WORDS_OUT], int i, int elements)
{
    const uint32_t two = i % 2 ? y[i / 4].odd : y[i / 4].even;
    return (int)(i / 2 % 2 ? two >> 16 : two & 0xffff) - SIGN * elements;
}

/* How many elements of a line output number `at` has. */
static inline int elements_across(int at, int low, int high)
{
    int n = 0;
    UNROLL
    for (int j = 0; j < ALONG; j++)
        n += at + j * GAP >= low && at + j * GAP < high;
    return n;
}

/* sum / elements, towards zero, of at most 128 elements: of their part less than one in 2^24 is too much. */
static inline uint32_t mean_of(int sum, uint32_t part)
{
    const uint32_t size = (uint32_t)(sum < 0 ? -sum : sum), mean = size * part >> 24;
    return sum < 0 ? -mean : mean;
}

/* Means of a row from output number `from` on, whose windows have so many rows. parts: of each number of elements. */
static inline struct chunk finished(const struct pairs y[WORDS_OUT], int from, int rows, int low, int high,
                                    SHARED_POINTER const uint32_t *parts)
{
    const int whole = from >= low && from + CHUNK + (ALONG - 1) * GAP <= high;
    const uint32_t part = parts[rows * ALONG];
    struct chunk c;
    UNROLL
    for (int k = 0; k < WORDS_OUT; k++)
        c.v[k] = 0;
    if (whole)
        UNROLL
    for (int i = 0; i < CHUNK; i++)
        c.v[i / 4] |= (mean_of(sum_at(y, i, rows * ALONG), part) & 0xff) << 8 * (i % 4);
    else
        UNROLL
    for (int i = 0; i < CHUNK; i++) {
        const int n = rows * elements_across(from + i, low, high);
        c.v[i / 4] |= (mean_of(sum_at(y, i, n), parts[n]) & 0xff) << 8 * (i % 4);
    }
    return c;
}
#else
static inline struct chunk finished(const struct pairs y[WORDS_OUT], int from, int rows, int low, int high,
                                    SHARED_POINTER const uint32_t *parts)
{
    struct chunk c;
    UNROLL
    for (int k = 0; k < WORDS_OUT; k++)
        c.v[k] = ((y[k].even >> 8 & 0x00ff00ffu) | (y[k].odd & 0xff00ff00u)) ^ OF_FOUR(SIGN);
    return c;
}
#endif

/* Whether row number l of windows is there. */
static inline int has_row(shape_ptr S, struct place p, int l)
{
    int yes = 1;
#if WINDOWS
    UNROLL
    for (int w = 0; w < WINDOWS; w++)
        if (!(OF_COLUMNS >> w & 1)) {
            struct place moved = p;
            moved.window[w] += (WINDOW)l * window_step(S, w, ROW_REDUCED < 0 ? 0 : ROW_REDUCED);
            yes &= is_within(S, moved, w);
        }
#endif
    return yes;
}

KERNEL void modefold(POINTERS const struct bases b, SHAPE_PARAMETER, GLOBAL char *workspace)
{
    SHARED uint32_t parts[MEANS ? ROWS * ALONG + 1 : 1]; /* 2^24 / n, rounded up */
    shape_ptr S = SHAPE;
    struct tensors T = TENSORS(b);
    const uint32_t own = (uint32_t)BLOCK * THREADS + THREAD, block = divide_by(S->p[1], own);
    const uint32_t plane = divide_by(S->p[3], block);
    const uint32_t rows = ROW_KEPT < 0 ? 1 : (uint32_t)S->size[ROW_KEPT < 0 ? 0 : ROW_KEPT];
    const uint32_t row = (block - plane * (uint32_t)S->p[2]) * OUTS;
    const int from = (int)(own - block * (uint32_t)S->p[0]) * CHUNK, across = (int)S->p[4];
    const int64_t first = ((int64_t)plane * rows + row) * across;
#if MEANS
    for (uint32_t n = THREAD; n <= ROWS * ALONG; n += THREADS)
        parts[n] = n ? ((1u << 24) - 1) / n + 1 : 0;
    BARRIER();
#endif
    if (first >= S->kept_total)
        return;
    const int left = (int)(rows - row), low = (int)S->p[5], high = (int)S->p[6];
    const struct place p = kept_place(S, first);
    GLOBAL out0_t *out = T.out0 + kept_target(S, first).o0 + from;
    struct pairs y[OUTS][WORDS_OUT];
    int rows_there[OUTS];
    UNROLL
    for (int r = 0; r < OUTS; r++) {
        rows_there[r] = 0;
        UNROLL
        for (int k = 0; k < WORDS_OUT; k++)
            y[r][k].even = y[r][k].odd = OF_FOUR(NOTHING);
    }
    UNROLL
    for (int first_line = 0; first_line < LINES; first_line += BATCH) {
        uint32_t word[BATCH][READ + 1];
        int past[BATCH];
        UNROLL
        for (int b = 0; b < BATCH; b++) {
            const int line = first_line + b, l = APART ? line / ALONG : line, j = APART ? line % ALONG : 0;
            const int64_t down = ROW_REDUCED < 0 ? 0 : l * stride_along(S, ROW_REDUCED < 0 ? 0 : ROW_REDUCED);
            past[b] = 0;
            UNROLL
            for (int k = 0; k <= READ; k++)
                word[b][k] = OF_FOUR(NOTHING ^ SIGN);
            if (line < LINES && l < left + ROWS - 1 && has_row(S, p, l)) {
                UNROLL
                for (int r = 0; r < OUTS; r++)
                    rows_there[r] += j == 0 && l >= r && l < r + ROWS;
                const int end = APART && high > j * GAP + across ? j * GAP + across : high;
                past[b] = read_line(address(T, p) + down, from + j * GAP, low > j * GAP ? low : j * GAP, end, word[b]);
            }
        }
        LOADED();
        UNROLL
        for (int b = 0; b < BATCH; b++) {
            const int line = first_line + b, l = APART ? line / ALONG : line;
            struct pairs best[WORDS_OUT];
            fold_line(word[b], past[b], best);
            UNROLL
            for (int r = 0; r < OUTS; r++)
                UNROLL
                for (int k = 0; k < WORDS_OUT; k++)
                    if (line < LINES && l >= r && l < r + ROWS)
                        y[r][k] = joined(y[r][k], best[k]);
        }
    }
    UNROLL
    for (int r = 0; r < OUTS; r++)
        if (r < left) {
            const int count = across - from < CHUNK ? across - from : CHUNK;
            write_chunk(out, finished(y[r], from, rows_there[r], low, high, parts), count);
            out += ROW_KEPT < 0 ? 0 : out_stride(S, 0, ROW_KEPT < 0 ? 0 : ROW_KEPT);
        }
}
