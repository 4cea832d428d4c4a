/* Distances from a product of bits: |q ^ t| = |q| + |t| - 2 |q & t|. A warp has M_TILES times 16 queries in registers
 * and goes through the rows of train eight at a time, N_TILES eights together. The order of the bits in a row is the
 * same for both factors and so does not matter: a thread reads a quarter of a row at once, 2 STEPS words.
 *
 * |q| does not change the order of a query's rows: what is compared is v = |t| - 2 |q & t|. The product begins at
 * -floor(|t| / 2), so that its result d is the greater the nearer the row is: v = (1 if |t| is odd) - 2 d. A row can be
 * among the nearest only if d > floor(-v / 2) for the worst kept v: a comparison or less for each, and only where a
 * thread of the warp finds one the eights are kept. Every split begins with rows that all have to be, so where queries
 * are few that happens for most of them: keeping has no branches and exchanges nothing. A row becomes a number, its key,
 * -v in front and its place in the split, backwards, behind; greater and lesser of keys make a list of two.
 *
 * Each thread has lists of its own, for the two columns of eight that it sees. After 1, 2, 4, 8 ... turns the four that
 * share a query look what is kept by all of them and by the blocks that have other splits, as nothing else can be among
 * the nearest; among rows that are as far away as the worst kept the other block's may come later, so those are. At the
 * end the four lists are joined. Bound: STEPS M_TILES products for M_TILES * 128 comparisons. What is multiplied next is
 * on its way before.
 *
 * Rows have 8 * STEPS words, at most 2^ROW_BITS bits, and begin at multiples of ALIGNMENT bytes, as do quarters of them;
 * a split has at most 2^PLACE_BITS rows; two neighbours; counts: |t| of every row, before (match_count.cl). */
enum { WARP = 32, WARPS = THREADS / WARP, OWN = 2 * M_TILES /* rows of A that a thread has */, TILE = 8 * N_TILES };

/* -v is at least -2^ROW_BITS, so keys are at least LEAST_KEY. Products of rows that take no part stay below LEAST_LIMIT
 * and their keys below LEAST_KEY. */
enum {
    PLACE_BITS = 29 - ROW_BITS,
    LAST_PLACE = (1 << PLACE_BITS) - 1,
    LEAST_KEY = -(1 << 29),
    NO_KEY_YET = -2147483647 - 1,
    LEAST_LIMIT = -(1 << (ROW_BITS - 1)) - 1,
    NO_ROWS_COUNT = 1 << (ROW_BITS + 2),
    OFFSET = 1 << ROW_BITS /* what other blocks are told is v + OFFSET */
};

static inline int32_t greater(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

static inline int32_t lesser(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

/* Keys of a query's nearest rows, the nearest first. */
struct own {
    int32_t first, second;
};

static inline struct own join(struct own a, struct own b)
{
    const struct own both = {greater(a.first, b.first),
                             greater(lesser(a.first, b.first), greater(a.second, b.second))};
    return both;
}

/* The greatest product of a row that is not nearer than this one. */
static inline int32_t limit_of(int32_t key)
{
    return key >> (PLACE_BITS + 1);
}

/* What a thread reads of eight rows of train: its part of one, and the counts of two that it sees the products of. */
struct ALIGNED(ALIGNMENT) quarter {
    uint32_t word[2 * STEPS];
};
struct eight_rows {
    struct quarter of;
    int32_t count[2];
};

static inline struct quarter read_quarter(GLOBAL const char *set, int64_t row, int64_t stride)
{
    return ((GLOBAL const struct quarter *)(set + row * stride))[THREAD % 4];
}

static inline struct eight_rows read_rows(GLOBAL const char *train, GLOBAL const char *train_mask,
                                          GLOBAL const int32_t *counts, const struct match_sets *s, int set, int32_t t,
                                          int32_t end)
{
    struct eight_rows r;
    const int32_t row = t + THREAD % WARP / 4;
    r.of = read_quarter(train + s->train, (int64_t)s->row[set] + (row < end ? row : end - 1), s->train_stride);
    UNROLL
    for (int c = 0; c < 2; c++) {
        const int32_t column = t + 2 * (THREAD % 4) + c;
        const int takes_part =
            column < end && (!HAS_TRAIN_MASK || train_mask[s->train_mask + (s->row[set] + column)]);
        r.count[c] = takes_part ? counts[column] : NO_ROWS_COUNT;
    }
    return r;
}

/* The products of two columns, of which the first has this place in its split. */
static inline void keep(struct own best[OWN], int32_t limit[OWN], int32_t product[M_TILES][4],
                        const struct eight_rows *b, int32_t place)
{
    int32_t behind[2];
    UNROLL
    for (int c = 0; c < 2; c++)
        behind[c] = LAST_PLACE - (place + c) - ((b->count[c] & 1) << PLACE_BITS);
    UNROLL
    for (int o = 0; o < OWN; o++) {
        const int32_t first = product[o / 2][o % 2 * 2] * (2 << PLACE_BITS) + behind[0],
                      second = product[o / 2][o % 2 * 2 + 1] * (2 << PLACE_BITS) + behind[1];
        const struct own two = {greater(first, second), lesser(first, second)};
        best[o] = join(best[o], two);
        limit[o] = greater(limit[o], limit_of(best[o].second));
    }
}

/* The list of the four threads that share a query, for each of them. */
static inline struct own join_four(EXCHANGE_TYPE exchange_, struct own mine)
{
    UNROLL
    for (int distance = 1; distance < 4; distance *= 2) {
        struct own other;
        EXCHANGE(int32_t, other.first, mine.first, distance);
        EXCHANGE(int32_t, other.second, mine.second, distance);
        mine = join(mine, other);
    }
    (void)exchange_;
    return mine;
}

/* Limits by what the four threads have kept, and other blocks, if there are. number: of the first query. */
static inline void ask(EXCHANGE_TYPE exchange_, const struct own best[OWN], int32_t limit[OWN],
                       GLOBAL uint32_t *limits, int others, int32_t number, int32_t count)
{
    uint32_t known[OWN];
    UNROLL
    for (int o = 0; o < OWN; o++) {
        const int32_t query = number + o / 2 * 16 + o % 2 * 8;
        known[o] = others && query < count ? FRESH(limits[query]) : NO_DISTANCE;
    }
    UNROLL
    for (int o = 0; o < OWN; o++) {
        const int32_t query = number + o / 2 * 16 + o % 2 * 8, key = join_four(exchange_, best[o]).second;
        const uint32_t ours = (uint32_t)(OFFSET - (key >> PLACE_BITS));
        if (others && THREAD % 4 == 0 && query < count && ours < known[o])
            ATOMIC_LEAST(limits + query, ours);
        limit[o] = greater(limit[o], limit_of(key));
        limit[o] = greater(limit[o], (OFFSET - 1 - (int32_t)known[o]) >> 1); /* behind those with the same v */
    }
}

KERNEL void modefold(MATCH_PARAMETERS)
{
    EXCHANGE_MEMORY
    MMA_MEMORY
    const int set = set_of(&s, (int32_t)BLOCK);
    const int32_t inside = (int32_t)BLOCK - s.block[set], split = inside % s.splits;
    const int32_t each = rows_of_split(&s, set, TILE), begin = split * each;
    const int32_t end = begin + each < s.row_count[set] ? begin + each : s.row_count[set];
    const int32_t first = (inside / s.splits * WARPS + THREAD / WARP) * 16 * M_TILES + THREAD % WARP / 4;
    GLOBAL const int32_t *counts = (GLOBAL const int32_t *)(workspace + s.counts) + s.row[set];
    GLOBAL uint32_t *limits = (GLOBAL uint32_t *)(workspace + s.limits) + s.query[set];
    struct quarter a[OWN];
    int32_t limit[OWN];
    struct own best[OWN];
    UNROLL
    for (int o = 0; o < OWN; o++) {
        const int32_t number = first + o / 2 * 16 + o % 2 * 8, last = s.query_count[set] - 1;
        a[o] = read_quarter(queries + s.queries, (int64_t)s.query[set] + (number < last ? number : last),
                            s.query_stride);
        best[o].first = best[o].second = NO_KEY_YET;
        limit[o] = LEAST_LIMIT;
    }
    struct eight_rows next[N_TILES];
    UNROLL
    for (int n = 0; n < N_TILES; n++)
        if (begin < end)
            next[n] = read_rows(train, train_mask, counts, &s, set, begin + 8 * n, end);
    for (int32_t t = begin, turn = 1; t < end; t += TILE, turn++) {
        int32_t product[N_TILES][M_TILES][4];
        struct eight_rows b[N_TILES];
        UNROLL
        for (int n = 0; n < N_TILES; n++) {
            b[n] = next[n];
            next[n] = read_rows(train, train_mask, counts, &s, set, (t + TILE < end ? t + TILE : t) + 8 * n, end);
        }
        UNROLL
        for (int n = 0; n < N_TILES * M_TILES; n++) {
            const int m = n % M_TILES;
            int32_t *p = product[n / M_TILES][m];
            const struct eight_rows *rows = &b[n / M_TILES];
            p[0] = p[2] = -(rows->count[0] >> 1);
            p[1] = p[3] = -(rows->count[1] >> 1);
            UNROLL
            for (int k = 0; k < STEPS; k++) {
                int32_t d[4];
                MMA(d, a[2 * m].word[2 * k], a[2 * m + 1].word[2 * k], a[2 * m].word[2 * k + 1],
                    a[2 * m + 1].word[2 * k + 1], rows->of.word[2 * k], rows->of.word[2 * k + 1], p[0], p[1], p[2],
                    p[3]);
                UNROLL
                for (int i = 0; i < 4; i++)
                    p[i] = d[i];
            }
        }
        int any = 0;
        UNROLL
        for (int o = 0; o < OWN; o++) {
            int32_t nearest = product[0][o / 2][o % 2 * 2];
            UNROLL
            for (int n = 0; n < N_TILES; n++)
                nearest = greater(nearest, greater(product[n][o / 2][o % 2 * 2], product[n][o / 2][o % 2 * 2 + 1]));
            any |= nearest > limit[o];
        }
        if (WARP_ANY(any)) {
            UNROLL
            for (int n = 0; n < N_TILES; n++)
                keep(best, limit, product[n], &b[n], t - begin + 8 * n + 2 * (THREAD % 4));
        }
        if (!(turn & (turn - 1)))
            ask(exchange_, best, limit, limits, s.splits > 1, first, s.query_count[set]);
    }
    UNROLL
    for (int o = 0; o < OWN; o++) {
        const int32_t number = first + o / 2 * 16 + o % 2 * 8;
        const struct own all = join_four(exchange_, best[o]);
        const int32_t key[2] = {all.first, all.second};
        uint32_t bits = 0, got;
        UNROLL
        for (int w = 0; w < 2 * STEPS; w++)
            bits += POPCOUNT(a[o].word[w]);
        UNROLL
        for (int distance = 1; distance < 4; distance *= 2) {
            EXCHANGE(uint32_t, got, bits, distance);
            bits += got;
        }
        if (THREAD % 4 == 0 && number < s.query_count[set]) {
            struct nearest n;
            const int takes_part = QUERY_TAKES_PART((int64_t)s.query[set] + number);
            UNROLL
            for (int i = 0; i < KEEP; i++) {
                const int is_row = takes_part && key[i] >= LEAST_KEY;
                n.distance[i] = is_row ? bits - (uint32_t)(key[i] >> PLACE_BITS) : NO_DISTANCE;
                n.index[i] = is_row ? begin + LAST_PLACE - (key[i] & LAST_PLACE) : -1;
            }
            store_keys(workspace, &s, (int64_t)s.query[set] + number, split, &n);
        }
    }
}
