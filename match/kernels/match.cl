/* What the kernels of matching share: the sets of a launch, and lists of the nearest rows.
 *
 * KEEP: neighbours of a list. HAS_QUERY_MASK, HAS_TRAIN_MASK, HAS_PAIR_MASK, COLUMNS: 0 or 1. struct match_sets is also
 * written by match/gpu.c. */
enum { GROUP = 32 }; /* pairs of sets in one launch */

struct match_sets {
    int64_t queries, train, query_mask, train_mask;   /* bytes behind the beginning of their memory */
    int64_t query_stride, train_stride;               /* bytes */
    int64_t keys, columns, counts, limits;            /* bytes in the workspace */
    int64_t pair_at[GROUP], pair_stride, pair_step;   /* bytes of the pairs' mask: to each set, query and row */
    int32_t count, words, splits, column_shift;
    int32_t block[GROUP + 1]; /* blocks before each set's */
    int32_t query[GROUP], query_count[GROUP], row[GROUP], row_count[GROUP];
};

struct match_rows { /* of match_count.cl and match_fill.cl */
    int64_t rows, words, train, stride, place, limits, limit_place;
};

struct match_results { /* of match_columns.cl and match_join.cl: what is wanted, and where */
    int64_t rows, columns, back, indices, distances, matches, difference, max_distance, ratio;
    int32_t has_indices, has_distances, has_matches, writes_back, k, tests, column_shift, unused;
};

#define NO_DISTANCE 0x7fffffffu
#define NO_KEY 0xffffffffffffffffUL

/* The k nearest so far, the nearest first. */
struct nearest {
    uint32_t distance[KEEP];
    int32_t index[KEEP];
};

/* A row behind all that are in the list: of equal distances the earlier ones stay before it. */
static inline void consider(struct nearest *n, uint32_t distance, int32_t index)
{
    if (distance >= n->distance[KEEP - 1])
        return;
    int moving = 0;
    UNROLL
    for (int i = 0; i < KEEP; i++) {
        const uint32_t d = n->distance[i];
        const int32_t t = n->index[i];
        moving = moving || distance < d;
        n->distance[i] = moving ? distance : d;
        n->index[i] = moving ? index : t;
        distance = moving ? d : distance;
        index = moving ? t : index;
    }
}

static inline void forget(struct nearest *n)
{
    UNROLL
    for (int i = 0; i < KEEP; i++) {
        n->distance[i] = NO_DISTANCE;
        n->index[i] = -1;
    }
}

static inline uint64_t key_of(uint32_t distance, int32_t index)
{
    return distance == NO_DISTANCE ? (uint64_t)NO_KEY : (uint64_t)distance << 32 | (uint32_t)index;
}

/* The set of a block, by the blocks before it. */
static inline int set_of(const struct match_sets *s, int32_t block)
{
    int set = 0;
    while (set + 1 < s->count && s->block[set + 1] <= block)
        set++;
    return set;
}

/* Rows of one split: whole tiles. */
static inline int32_t rows_of_split(const struct match_sets *s, int set, int32_t tile)
{
    const int32_t each = (s->row_count[set] + s->splits - 1) / s->splits;
    return (each + tile - 1) / tile * tile;
}

static inline void store_keys(GLOBAL char *workspace, const struct match_sets *s, int64_t query, int32_t split,
                              const struct nearest *n)
{
    GLOBAL uint64_t *keys = (GLOBAL uint64_t *)(workspace + s->keys) + (query * s->splits + split) * KEEP;
    UNROLL
    for (int i = 0; i < KEEP; i++)
        keys[i] = key_of(n->distance[i], n->index[i]);
}

#define MATCH_PARAMETERS                                                                                             \
    GLOBAL const char *queries, GLOBAL const char *train, GLOBAL const char *query_mask, GLOBAL const char *train_mask, \
        GLOBAL const char *pair_mask, GLOBAL char *workspace, const struct match_sets s

/* Whether these take part. query and row count through all sets; number and set_row within their set. */
#define QUERY_TAKES_PART(query) (!HAS_QUERY_MASK || query_mask[s.query_mask + (query)])
#define ROW_TAKES_PART(row) (!HAS_TRAIN_MASK || train_mask[s.train_mask + (row)])
#define PAIR_TAKES_PART(number, set_row) \
    (!HAS_PAIR_MASK || pair_mask[s.pair_at[set] + (number) * s.pair_stride + (set_row) * s.pair_step])
