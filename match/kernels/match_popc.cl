/* A thread a query: CHUNK words of it in registers, TILE rows of train in shared memory, where all threads of a warp
 * read the same word together. Nothing goes from thread to thread. Bound: one count of bits a word, 16 a cycle and
 * multiprocessor of CUDA's.
 *
 * COLUMNS: the least key of each row of train, distance before query, goes to memory by atomics. A row's least key so
 * far is read with the row, so that few threads have anything better.
 *
 * ONE_CHUNK: rows have at most CHUNK words. */
enum { TILE = ONE_CHUNK ? 16 : 8 };

struct ALIGNED(16) chunk {
    uint32_t word[CHUNK];
};

static inline void read_chunk(GLOBAL const char *rows, int64_t at, int32_t from, int32_t words, struct chunk *to)
{
    GLOBAL const uint32_t *row = (GLOBAL const uint32_t *)(rows + at) + from;
    UNROLL
    for (int w = 0; w < CHUNK; w++)
        to->word[w] = from + w < words ? row[w] : 0u;
}

KERNEL void modefold(MATCH_PARAMETERS)
{
    SHARED struct chunk tile[TILE];
    SHARED uint32_t least[TILE], before[TILE];
    SHARED int32_t valid[TILE];
    const int set = set_of(&s, (int32_t)BLOCK);
    const int32_t inside = (int32_t)BLOCK - s.block[set], split = inside % s.splits;
    const int32_t each = rows_of_split(&s, set, TILE), begin = split * each;
    const int32_t end = begin + each < s.row_count[set] ? begin + each : s.row_count[set];
    const int32_t number = inside / s.splits * THREADS + THREAD, is_query = number < s.query_count[set];
    const int64_t query = (int64_t)s.query[set] + (is_query ? number : 0);
    const int64_t query_at = s.queries + query * s.query_stride;
    const int takes_part = is_query && QUERY_TAKES_PART(query);
    GLOBAL uint32_t *columns = (GLOBAL uint32_t *)(workspace + s.columns) + s.row[set];
    struct chunk q;
    struct nearest best;
    forget(&best);
    if (ONE_CHUNK)
        read_chunk(queries, is_query ? query_at : s.queries, 0, is_query ? s.words : 0, &q);
    for (int32_t t = begin; t < end; t += TILE) {
        uint32_t sum[TILE];
        UNROLL
        for (int r = 0; r < TILE; r++)
            sum[r] = 0;
        for (int32_t w = 0; w < s.words; w += CHUNK) {
            BARRIER();
            for (int i = THREAD; i < TILE * CHUNK; i += THREADS) {
                const int32_t row = t + i / CHUNK, word = w + i % CHUNK;
                GLOBAL const uint32_t *from =
                    (GLOBAL const uint32_t *)(train + s.train + (int64_t)(s.row[set] + row) * s.train_stride);
                tile[i / CHUNK].word[i % CHUNK] = row < end && word < s.words ? from[word] : 0u;
            }
            for (int r = THREAD; r < TILE && w == 0; r += THREADS) {
                valid[r] = t + r < end && ROW_TAKES_PART(s.row[set] + t + r);
                if (COLUMNS) {
                    if (t > begin && least[r] < before[r])
                        ATOMIC_LEAST(columns + t - TILE + r, least[r]);
                    least[r] = before[r] = t + r < end ? FRESH(columns[t + r]) : 0u;
                }
            }
            BARRIER();
            if (!ONE_CHUNK)
                read_chunk(queries, query_at, w, s.words, &q);
            UNROLL
            for (int r = 0; r < TILE; r++) {
                const struct chunk row = tile[r];
                UNROLL
                for (int i = 0; i < CHUNK; i++)
                    sum[r] += POPCOUNT(q.word[i] ^ row.word[i]);
            }
        }
        UNROLL
        for (int r = 0; r < TILE; r++) {
            if (!valid[r] || !takes_part || !PAIR_TAKES_PART(number, t + r))
                continue;
            consider(&best, sum[r], t + r);
            if (COLUMNS) {
                const uint32_t key = sum[r] << s.column_shift | (uint32_t)number;
                if (key < least[r])
                    ATOMIC_LEAST_SHARED(least + r, key);
            }
        }
    }
    BARRIER();
    if (COLUMNS && begin < end) {
        const int32_t last = (end - begin - 1) / TILE * TILE + begin;
        for (int r = THREAD; r < TILE; r += THREADS)
            if (last + r < end && least[r] < before[r])
                ATOMIC_LEAST(columns + last + r, least[r]);
    }
    if (is_query)
        store_keys(workspace, &s, query, split, &best);
}
