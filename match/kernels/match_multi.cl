/* Eight threads share eight queries, each an eighth of all of them: PART words of each in registers (Parker and
 * MacKinnon, Multi-Reduction, sections 2, 4 and 8). A row of train is read once by the eight. Each thread has eight
 * partial distances then, two to a word; three steps in which it gives away what it does not keep and adds what it gets
 * leave it with one query's whole distance, after four exchanges instead of 24.
 *
 * Rows have 8 * PART words. */
enum { SHARERS = 8, TILE = 4 };

KERNEL void modefold(MATCH_PARAMETERS)
{
    EXCHANGE_MEMORY
    const int set = set_of(&s, (int32_t)BLOCK);
    const int32_t inside = (int32_t)BLOCK - s.block[set], split = inside % s.splits;
    const int32_t each = rows_of_split(&s, set, TILE), begin = split * each;
    const int32_t end = begin + each < s.row_count[set] ? begin + each : s.row_count[set];
    const int32_t number = inside / s.splits * THREADS + THREAD, first = number - THREAD % SHARERS;
    const int64_t query = (int64_t)s.query[set] + number;
    const int is_query = number < s.query_count[set], takes_part = is_query && QUERY_TAKES_PART(query);
    const int part = THREAD % SHARERS * PART;
    uint32_t q[SHARERS][PART];
    struct nearest best;
    forget(&best);
    UNROLL
    for (int i = 0; i < SHARERS; i++) {
        const int is_one = first + i < s.query_count[set];
        GLOBAL const uint32_t *from =
            (GLOBAL const uint32_t *)(queries + s.queries + (s.query[set] + (is_one ? first + i : 0)) * s.query_stride);
        UNROLL
        for (int w = 0; w < PART; w++)
            q[i][w] = is_one ? from[part + w] : 0u;
    }
    for (int32_t t = begin; t < end; t += TILE) {
        uint32_t sum[TILE];
        UNROLL
        for (int r = 0; r < TILE; r++) {
            uint32_t row[PART], two[SHARERS / 2], give, got;
            GLOBAL const uint32_t *from =
                (GLOBAL const uint32_t *)(train + s.train + (s.row[set] + (t + r < end ? t + r : t)) * s.train_stride);
            UNROLL
            for (int w = 0; w < PART; w++)
                row[w] = from[part + w];
            UNROLL
            for (int i = 0; i < SHARERS / 2; i++) {
                uint32_t low = 0, high = 0;
                UNROLL
                for (int w = 0; w < PART; w++) {
                    low += POPCOUNT(q[i][w] ^ row[w]);
                    high += POPCOUNT(q[i + 4][w] ^ row[w]);
                }
                two[i] = low | high << 16;
            }
            UNROLL
            for (int i = 0; i < 2; i++) { /* queries 2i and 2i + 4, or 2i + 1 and 2i + 5 */
                give = THREAD & 1 ? two[2 * i] : two[2 * i + 1];
                EXCHANGE(uint32_t, got, give, 1);
                two[i] = (THREAD & 1 ? two[2 * i + 1] : two[2 * i]) + got;
            }
            give = THREAD & 2 ? two[0] : two[1];
            EXCHANGE(uint32_t, got, give, 2);
            two[0] = (THREAD & 2 ? two[1] : two[0]) + got;
            EXCHANGE(uint32_t, got, two[0], 4);
            sum[r] = THREAD & 4 ? (two[0] + got) >> 16 : (two[0] + got) & 0xffffu;
        }
        UNROLL
        for (int r = 0; r < TILE; r++)
            if (t + r < end && takes_part && ROW_TAKES_PART(s.row[set] + t + r) && PAIR_TAKES_PART(number, t + r))
                consider(&best, sum[r], t + r);
    }
    if (is_query)
        store_keys(workspace, &s, query, split, &best);
}
