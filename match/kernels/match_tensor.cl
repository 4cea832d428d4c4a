/* Distances from a product of bits: |q ^ t| = |q| + |t| - 2 |q & t|. A warp has M_TILES times 16 queries in registers
 * and goes through the rows of train eight at a time. The order of the bits in a row is the same for both factors and so
 * does not matter: a thread reads a quarter of a row at once, 2 STEPS words.
 *
 * |q| does not change the order of a query's rows. The product begins at -floor(|t| / 2), so that its result d is the
 * greater the nearer the row is, and a row can be among the nearest only if d > floor(-v / 2), where v is the worst
 * kept |t| - 2 |q & t|: one comparison for each, and only where a thread of the warp finds one the exact values are
 * made and kept. Each thread keeps lists of its own, for the two columns of eight that it sees, but asks for what is
 * nearer than the worst kept by any of the four that share a query, as nothing else can be among the nearest; their
 * lists are joined at the end. Blocks that share a query tell each other as well; among rows that are as far away as
 * the worst kept the other block's may come later, so those are kept. Bound: 2 STEPS M_TILES / 2 products for M_TILES *
 * 128 comparisons. The next eight rows are on their way while these are multiplied.
 *
 * Rows have 8 * STEPS words; counts: |t| of every row, before (match_count.cl). */
enum { WARP = 32, WARPS = THREADS / WARP, OWN = 2 * M_TILES /* rows of A that a thread has */, TILE = 8, ASK = 8 };

/* The list of one row: keys |t| - 2 |q & t|, signed, and indices. */
struct own {
    int32_t value[KEEP], index[KEEP];
};

static inline void consider_own(struct own *n, int32_t value, int32_t index)
{
    int moving = 0;
    UNROLL
    for (int i = 0; i < KEEP; i++) {
        const int32_t v = n->value[i], t = n->index[i];
        moving = moving || value < v || (value == v && index < t);
        n->value[i] = moving ? value : v;
        n->index[i] = moving ? index : t;
        value = moving ? v : value;
        index = moving ? t : index;
    }
}

#define FAR_AWAY 0x3fffffff

/* The greatest product of a row that is not nearer than one at this value. */
static inline int32_t limit_of(int32_t value)
{
    return -value >> 1;
}

/* What a thread reads of eight rows of train: its part of one, and the counts of two that it sees the products of; a row
 * that takes no part has a count of 2 FAR_AWAY and is farther away than any. */
struct eight_rows {
    uint32_t word[2 * STEPS], count[2];
};

static inline struct eight_rows read_rows(GLOBAL const char *train, GLOBAL const char *train_mask,
                                          GLOBAL const int32_t *counts, const struct match_sets *s, int set, int32_t t,
                                          int32_t end)
{
    struct eight_rows r;
    const int group = THREAD % WARP / 4, place = THREAD % 4;
    const int32_t row = t + group < end ? t + group : end - 1;
    GLOBAL const uint32_t *from =
        (GLOBAL const uint32_t *)(train + s->train + (int64_t)(s->row[set] + row) * s->train_stride);
    UNROLL
    for (int w = 0; w < 2 * STEPS; w++)
        r.word[w] = from[2 * STEPS * place + w];
    UNROLL
    for (int c = 0; c < 2; c++) {
        const int32_t column = t + 2 * place + c;
        const int takes_part =
            column < end && (!HAS_TRAIN_MASK || train_mask[s->train_mask + (s->row[set] + column)]);
        r.count[c] = takes_part ? (uint32_t)counts[column] : 2u * FAR_AWAY;
    }
    return r;
}

/* The limits with what other blocks know. */
static inline void ask_others(GLOBAL const uint32_t *limits, int32_t count, int32_t number, int32_t limit[OWN])
{
    uint32_t known[OWN];
    UNROLL
    for (int o = 0; o < OWN; o++) {
        const int32_t query = number + o / 2 * 16 + o % 2 * 8;
        known[o] = query < count ? FRESH(limits[query]) : 0xffffffffu;
    }
    UNROLL
    for (int o = 0; o < OWN; o++)
        if (known[o] < 2u * FAR_AWAY) {
            const int32_t theirs = limit_of((int32_t)known[o] - FAR_AWAY + 1);
            limit[o] = theirs > limit[o] ? theirs : limit[o];
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
    const int group = THREAD % WARP / 4, place = THREAD % 4;
    const int32_t first = (inside / s.splits * WARPS + THREAD / WARP) * 16 * M_TILES;
    GLOBAL const int32_t *counts = (GLOBAL const int32_t *)(workspace + s.counts) + s.row[set];
    GLOBAL uint32_t *limits = (GLOBAL uint32_t *)(workspace + s.limits) + s.query[set];
    uint32_t a[OWN][2 * STEPS];
    int32_t limit[OWN];
    struct own best[OWN];
    UNROLL
    for (int o = 0; o < OWN; o++) {
        const int32_t number = first + o / 2 * 16 + o % 2 * 8 + group, is_query = number < s.query_count[set];
        GLOBAL const uint32_t *from =
            (GLOBAL const uint32_t *)(queries + s.queries + (s.query[set] + (is_query ? number : 0)) * s.query_stride);
        UNROLL
        for (int w = 0; w < 2 * STEPS; w++)
            a[o][w] = is_query ? from[2 * STEPS * place + w] : 0u;
        UNROLL
        for (int i = 0; i < KEEP; i++) {
            best[o].value[i] = FAR_AWAY;
            best[o].index[i] = 0x7fffffff;
        }
        limit[o] = limit_of(FAR_AWAY);
    }
    struct eight_rows next;
    if (begin < end)
        next = read_rows(train, train_mask, counts, &s, set, begin, end);
    for (int32_t t = begin; t < end; t += TILE) {
        int32_t start[2], product[M_TILES][4];
        const struct eight_rows b = next;
        if (s.splits > 1 && (t - begin) / TILE % ASK == ASK - 1)
            ask_others(limits, s.query_count[set], first + group, limit);
        next = read_rows(train, train_mask, counts, &s, set, t + TILE < end ? t + TILE : t, end);
        UNROLL
        for (int c = 0; c < 2; c++)
            start[c] = -(int32_t)(b.count[c] >> 1);
        int any = 0;
        UNROLL
        for (int m = 0; m < M_TILES; m++) {
            product[m][0] = product[m][2] = start[0];
            product[m][1] = product[m][3] = start[1];
            UNROLL
            for (int k = 0; k < STEPS; k++) {
                int32_t d[4];
                MMA(d, a[2 * m][2 * k], a[2 * m + 1][2 * k], a[2 * m][2 * k + 1], a[2 * m + 1][2 * k + 1],
                    b.word[2 * k], b.word[2 * k + 1], product[m][0], product[m][1], product[m][2], product[m][3]);
                UNROLL
                for (int i = 0; i < 4; i++)
                    product[m][i] = d[i];
            }
            UNROLL
            for (int i = 0; i < 4; i++)
                any |= product[m][i] > limit[2 * m + i / 2];
        }
        if (WARP_ANY(any)) {
            UNROLL
            for (int o = 0; o < OWN; o++) {
                const int32_t number = first + o / 2 * 16 + o % 2 * 8 + group;
                const int32_t nearest = product[o / 2][o % 2 * 2] > product[o / 2][o % 2 * 2 + 1]
                                            ? product[o / 2][o % 2 * 2]
                                            : product[o / 2][o % 2 * 2 + 1];
                if (!WARP_ANY(nearest > limit[o]))
                    continue;
                UNROLL
                for (int c = 0; c < 2; c++) {
                    const int32_t d = product[o / 2][o % 2 * 2 + c], column = t + 2 * place + c;
                    if (d > limit[o] && start[c] != -FAR_AWAY)
                        consider_own(&best[o], (int32_t)(b.count[c] & 1) - 2 * d, column);
                }
                int32_t value = best[o].value[KEEP - 1], other;
                UNROLL
                for (int distance = 1; distance < 4; distance *= 2) {
                    EXCHANGE(int32_t, other, value, distance);
                    value = other < value ? other : value;
                }
                const int32_t mine = limit_of(value);
                if (s.splits > 1 && place == 0 && mine > limit[o] && number < s.query_count[set])
                    ATOMIC_LEAST(limits + number, value + FAR_AWAY);
                limit[o] = mine > limit[o] ? mine : limit[o];
            }
        }
    }
    UNROLL
    for (int o = 0; o < OWN; o++) {
        const int32_t number = first + o / 2 * 16 + o % 2 * 8 + group;
        uint32_t bits = 0, got;
        UNROLL
        for (int w = 0; w < 2 * STEPS; w++)
            bits += POPCOUNT(a[o][w]);
        UNROLL
        for (int distance = 1; distance < 4; distance *= 2) {
            const struct own mine = best[o];
            EXCHANGE(uint32_t, got, bits, distance);
            bits += got;
            UNROLL
            for (int i = 0; i < KEEP; i++) {
                int32_t value, index;
                EXCHANGE(int32_t, value, mine.value[i], distance);
                EXCHANGE(int32_t, index, mine.index[i], distance);
                consider_own(&best[o], value, index);
            }
        }
        if (place == 0 && number < s.query_count[set]) {
            struct nearest n;
            const int takes_part = QUERY_TAKES_PART((int64_t)s.query[set] + number);
            UNROLL
            for (int i = 0; i < KEEP; i++) {
                const int is_row = takes_part && best[o].value[i] < FAR_AWAY;
                n.distance[i] = is_row ? (uint32_t)(best[o].value[i] + (int32_t)bits) : NO_DISTANCE;
                n.index[i] = is_row ? best[o].index[i] : -1;
            }
            store_keys(workspace, &s, (int64_t)s.query[set] + number, split, &n);
        }
    }
}
