/* What one instruction set gives: tables of block kernels over arrays of one class.
 *
 * Every instruction set computes the same bits (docs/numerics.md). The order of a fold is
 *   tile  = 4096 consecutive elements = 32 steps x 128 lanes; element e has lane e % 128
 *   lane  = left-to-right chain over its up to 32 elements (the first one starts the chain)
 *   join  = halving tree: p[l] = p[l] o p[l+64], then +32, +16 ... +1; a lane that has no element is skipped
 * Integer folds, min, max and the arg folds give the same value in any order, so kernels may reorder those.
 * Strides and pitches count elements. Pointers need no alignment beyond their element's. Outputs never overlap inputs.
 */
#ifndef MF_CPU_KERNELS_H
#define MF_CPU_KERNELS_H

#include "../types.h"

/* The folds whose state is one value of the class. min and max: a NaN sticks; which zero wins does not matter.
 * any: 1 when some element is not 0 (a NaN is not), else 0; its states are such 0 and 1. */
enum fold { FOLD_SUM, FOLD_PROD, FOLD_MIN, FOLD_MAX, FOLD_AND, FOLD_OR, FOLD_XOR, FOLD_ANY, FOLD_COUNT };

/* As many rows as a chain of integers may have: a multiple of eight, and the sum of so many bytes fits 16 bits. */
enum { LONG_CHAIN = 248 };
/* out[i] = ((acc[i] o x[0][i]) o x[1][i]) o ... x[count-1][i], for i < n; 1 <= count <= 32, of integers LONG_CHAIN.
 * acc may be out; null: the chain starts with x[0]. next: null, or the 8 rows that the caller reads afterwards: their
 * beginnings are fetched. */
typedef void chain_fn(void *out, const void *acc, const void *const *x, int64_t count, int64_t n,
                      const void *const *next);
/* out[r] = the fold, in the order above, of x[r*pitch] ... x[r*pitch + n-1], for r < rows; 1 <= n <= 4096. */
typedef void rows_fn(void *out, const void *x, int64_t rows, int64_t n, int64_t pitch);

/* out[i] = left[lefts-1][i] o (... o (left[0][i] o lane[i])), for i < n; lane is the chain of x[0] ... x[count-1], at
 * most 32 of them; with 2 or 4 lanes, the chains of x[0] ..., of x[count] ... and so on, each combined with its
 * neighbour, then neighbouring pairs, and so on.
 * lanes * count is at most 4 where there are several lanes; lanes is at most 4.
 * spare: n elements, read by nobody else. out may be one of left. next: null, or the rows that the caller reads
 * afterwards, 8 where lanes is 1, else as many as now: their beginnings are fetched.
 * fetches: whether the rows come from memory, not from a cache. */
struct joined {
    const void *const *x, *const *left;
    int64_t lanes, count, lefts;
    void *spare;
    const void *const *next;
    int fetches;
};
typedef void joined_fn(const struct joined *j, void *out, int64_t n);

/* What a kernel stores: a fold's states, or the answers themselves, with one canonical NaN: as they are or + 0, which
 * makes a zero +0. */
enum answers { NO_ANSWERS, ANSWERS_AS_THEY_ARE, ANSWERS_PLUS_ZERO };
/* out[i] = the fold, in the order above, of x[i] ... x[i + run-1], for i < n; run is 2, 4, 8 ... 128. Answers are
 * stored past the cache. Of f16 and bf16 there are answers only, in that type. */
typedef void runs_fn(void *out, const void *x, int64_t n, int64_t run, enum answers answers);
/* out[r] = the answer of x[r*n] ... x[r*n + n-1], for r < rows; 1 <= n <= 4096. */
typedef void answers_fn(void *out, const void *x, int64_t rows, int64_t n, enum answers answers, int past_cache);

struct fold_kernels {
    chain_fn *chain;
    rows_fn *rows;
    joined_fn *joined;   /* sums of floats; others: null */
    runs_fn *runs;       /* sum, prod, min and max of CLS_F32 and CLS_F64; sums of f16, bf16, i8, u8; others: null */
    answers_fn *answers; /* where runs are */
};

/* min and max of integers shorter than their class, which stay what they are: chain, with out and acc of the type in
 * memory; halves, out[i] = x[2i] o x[2i+1] for i < n, where out may be x. */
struct narrow_kernels {
    chain_fn *chain;
    void (*halves)(void *out, const void *x, int64_t n);
};

/* A state of two numbers, of row r at index r of both arrays: x[r*pitch] ... x[r*pitch + n-1], 1 <= n <= 4096. */
typedef void states_fn(void *first, void *second, const void *x, int64_t rows, int64_t n, int64_t pitch);

/* Mean and sum of squared deviations (numerics.md: moments). A state is (count, mean, m2); counts are the caller's.
 *   merge (na, a), (nb, b): n = na + nb; d = mean_b - mean_a; mean = mean_a + d * (nb / n);
 *                           m2 = (m2_a + m2_b) + (d * d) * ((na * nb) / n)     all in the class, na = 0 or nb = 0
 * gives the other
 *   one element x is the state (1, x, 0). */
/* One whole chain of count elements a column: x[0][i] ... x[count-1][i], 1 <= count <= 32; or 2, 4 or MOMENTS_LANES of
 * `lanes` chains, each of one element or two, x[first[l]][i] ... x[first[l+1]-1][i], merged with its neighbour, then
 * neighbouring pairs, and so on. Then left[0] merges with it, left[1] with that, and so on. The result is where the
 * last left neighbour was; mean and m2 are it where there is none. Lanes and left neighbours: see moments_lanes. next:
 * as for joined_fn, with several lanes 2 * MOMENTS_LANES rows. A chain may come in several calls, each but the last one
 * of 8 rows, and all with the same columns: `before` of its elements are in mean and m2, `after` come later. */
enum { MOMENTS_LANES = 8, MOMENTS_LEFTS = 7 };
struct moments_left {
    void *mean, *m2;
    int64_t count; /* elements of a state */
};
struct moments_chain {
    const void *const *x;
    int64_t lanes, count, before, after, lefts;
    int64_t first[MOMENTS_LANES + 1];
    struct moments_left left[MOMENTS_LEFTS];
    const void *const *next;
};
typedef void moments_chain_fn(const struct moments_chain *j, void *mean, void *m2, int64_t n);
struct moments_kernels {
    moments_chain_fn *chain;
    /* (na, mean, m2)[i] = merge with (nb, mean_b, m2_b)[i] */
    void (*merge)(void *mean, void *m2, int64_t na, const void *mean_b, const void *m2_b, int64_t nb, int64_t n);
    states_fn *rows;
};

/* Sum, least, greatest, mean and m2 of row r, at index r of the arrays that are not null: the bits that fold's and
 * moments' rows give, from one reading. n is a multiple of 128. Of bytes, and then any n: sum, least, greatest and the
 * sum of squares. */
struct summary {
    void *sum, *low, *high, *mean, *m2, *squares;
};
typedef void summary_fn(const struct summary *out, const void *x, int64_t rows, int64_t n, int64_t pitch);
/* A chain of each column's, as chain_fn; append: out has their chains so far, with moments of so many elements. Of
 * bytes sum, greatest value and sum of squares. Of floats all but squares; mean and m2 both or none, others may be
 * null. */
typedef void summary_chain_fn(const struct summary *out, int append, const void *const *x, int64_t count, int64_t n,
                              const void *const *next);

/* x * y, |x - y|, (x - y) * (x - y), |x|. */
enum term_kind { NO_TERM, TERM_PRODUCT, TERM_DISTANCE, TERM_SQUARED_DISTANCE, TERM_MAGNITUDE };
/* Sums of such terms: as rows_fn, and as chain_fn, where column i of y[k] is y[k][i], or with y_unit 0 always y[k][0];
 * next: of x. x and y may be the same, and are of a magnitude. */
typedef void product_rows_fn(void *out, const void *x, const void *y, int64_t rows, int64_t n, int64_t x_pitch,
                             int64_t y_pitch, enum term_kind term);
typedef void product_chain_fn(void *out, const void *acc, const void *const *x, const void *const *y, int y_unit,
                              int64_t count, int64_t n, const void *const *next, enum term_kind term);
struct product_kernels {
    product_rows_fn *rows;
    product_chain_fn *chain;
};

/* Log of a sum of exponentials (numerics.md: logsumexp). A state is (m, s) for log = logsum(m, s), s in units of the
 * power of two that is m's (exp_unit, exp_step: vocab/ops_float.inc).
 *   an element x: (x, exp_unit(x)); a lane's chain: its elements merged from left to right
 *   merge a, b: m = max; s = s_a * exp_step(m_a, m) + s_b * exp_step(m_b, m)
 * s says nothing where m is infinite or NaN, but is finite and not negative where m is -inf: the state may be merged
 * with another one. */
/* one whole chain of count elements a column: x[0][i] ... x[count-1][i], 1 <= count <= 32; next: null, or `count` rows
 * that the caller reads afterwards: their beginnings are fetched */
typedef void lse_chain_fn(void *m, void *s, const void *const *x, int64_t count, int64_t n, const void *const *next);
/* to[k * pitch + i] = exp(x[k][i]), the sum of one term in units of 1; pitch is at least n and a multiple of
 * LSE_COLUMNS. Returns whether all x are so high that sums of such terms, in their order, are those of states. If not,
 * or where lse_plain_fn says so, other kernels are to form them. */
enum { LSE_COLUMNS = 128 };
typedef int lse_terms_fn(void *to, int64_t pitch, const void *const *x, int64_t count, int64_t n);
/* Sums of such terms become states (m, s), whose m are there. Returns whether they all fit. */
typedef int lse_plain_fn(const void *m, void *s, int64_t n);
struct lse_kernels {
    lse_chain_fn *chain;
    void (*merge)(void *m, void *s, const void *m_b, const void *s_b, int64_t n);
    states_fn *rows;
    lse_plain_fn *plain;
};

/* argmin and argmax: the first index of the best value; a NaN is better than every number. */
/* best[r], index[r] (0-based within the row) */
typedef void arg_rows_fn(void *best, int64_t *index, const void *x, int64_t rows, int64_t n, int64_t pitch);
/* element number k = first, first+1, ... of each chain: x[0][i], x[1][i] ...: where one is strictly better than
 * best[i], best[i] = it and index[i] = its number; first = 0 starts the chain. At most LONG_CHAIN elements */
typedef void arg_chain_fn(void *best, int32_t *index, const void *const *x, int64_t count, int64_t n, int32_t first);
struct arg_kernels {
    arg_rows_fn *rows;
    arg_chain_fn *chain;
};

/* rows rows of n elements; elements of out follow each other in a row, an operand's do where its unit is 1, and where
 * it is 0 its first `period` elements (a power of two; pair_bytes says how many) serve the whole row, again and again.
 * Pitches: elements from one row to the next. */
struct pair_rows {
    int64_t rows, n, out_pitch, x_pitch, y_pitch, period;
    int x_unit, y_unit;
    int x_once, y_once; /* the operand is large and read once: fetch it ahead */
    int past_cache;     /* store past the cache */
};
/* out = x o y, one canonical NaN, straight from memory to memory; out may be exactly x or y. Not both units are 0. */
typedef void pair_fn(void *out, const void *x, const void *y, const struct pair_rows *rows);
/* Writes count elements of `size` bytes, `step` bytes apart, each one `length` bytes long, which is whole elements.
 * What lies behind the last one, STRETCH_ROOM bytes, may be overwritten. */
enum { STRETCH_ROOM = 64 };
typedef void stretch_fn(void *to, const void *from, int64_t count, int64_t step, int64_t size, int64_t length);
/* Pieces of 16 bytes: `units` times, piece k at to + k * to_apart is of byte j of piece i at from + i * from_apart what
 * mask[k][i] says, which is 128 where it is of another piece; k, i < parts. Steps: bytes to the next unit. */
enum { WEAVE_PARTS = 4, WEAVE_PIECE = 16 };
struct weave {
    const char *from;
    char *to;
    int64_t from_apart, from_step, to_apart, to_step, units;
    int parts; /* 2 ... WEAVE_PARTS */
    uint8_t mask[WEAVE_PARTS][WEAVE_PARTS][WEAVE_PIECE];
};
typedef void weave_fn(const struct weave *w);
/* A patch that lies the other way round: rows side by side in memory, columns `stride` bytes apart. Whole units of it
 * to rows `pitch` bytes apart (turn_item.inc); returns the rows and columns of a unit. */
struct patch {
    const char *from;
    int64_t stride, rows, columns;
};
typedef int turn_fn(char *to, int64_t pitch, const struct patch *p);
enum pair { PAIR_ADD, PAIR_SUB, PAIR_MUL, PAIR_DIV, PAIR_MIN, PAIR_MAX, PAIR_COUNT };

/* out[i] = map(x[i], y[i], z[i]); out may be exactly x, y or z. */
typedef void map_fn(void *out, const void *x, const void *y, const void *z, int64_t n);
/* to[i] = from[i] + 0, of floats, in a 16-bit type; past_cache: stored past the cache. */
typedef void sums_fn(void *to, const void *from, int64_t n, int past_cache);
/* As map_fn, of integers of 8, 16 or 32 bits as they are in memory. a: of shifts the count, below the bits; of lt and
 * eq 1 for the opposite. sign: of shr and lt the highest bit where they are signed, else 0. where: x is not 0. */
typedef void narrow_map_fn(void *out, const void *x, const void *y, const void *z, int64_t n, uint32_t a,
                           uint32_t sign);
enum narrow_map { NARROW_SHL, NARROW_SHR, NARROW_LT, NARROW_EQ, NARROW_WHERE, NARROW_COUNT };
/* And, or and exclusive or of bytes. */
typedef void bits_fn(void *out, const void *x, const void *y, int64_t bytes);
enum bits { BITS_AND, BITS_OR, BITS_XOR, BITS_COUNT };
/* Contiguous conversions; to and from never overlap. */
typedef void convert_fn(void *to, const void *from, int64_t n);

enum {
#define MAP(name, arity, domain, result) MAP_##name,
#include "../ops.def"
#undef MAP
    MAP_COUNT
};

struct contraction_kernels;

/* sse2 and scalar are sparse: a better set is nearly always there. They have no joined, runs, answers, summary,
 * squares, products, *_from, lse_terms, narrow, byte_sums, pair, stretch, weave, narrow_map, bits, sums and copies (all
 * null); callers then do the same in more steps. */
struct kernels {
    const char *name;                                       /* "scalar", "sse2", "avx2", "avx512", "neon" */
    struct fold_kernels fold[FOLD_COUNT][CLS_COUNT];        /* AND, OR, XOR: integer classes only (else null) */
    struct moments_kernels moments[2];                      /* CLS_F32, CLS_F64 */
    summary_fn *summary[DT_COUNT];                          /* f16, bf16, f32, f64, i8, u8; x is of this type */
    summary_chain_fn *summary_chain[DT_COUNT];              /* the same; f16, bf16: AVX-512 only */
    struct lse_kernels lse[2];                              /* CLS_F32, CLS_F64 */
    struct arg_kernels arg[2][CLS_COUNT];                   /* [0] argmin, [1] argmax */
    rows_fn *squares[DT_COUNT];                             /* sums of squares, of i8 and u8 */
    struct product_kernels products[DT_COUNT];              /* f16, bf16, f32, f64; x and y are of this type */
    states_fn *moments_from[DT_COUNT], *lse_from[DT_COUNT]; /* their rows straight from f16 and bf16; lse, to CLS_F64,
                                                             * from i8 and u8 too */
    moments_chain_fn *moments_chain_from[DT_COUNT];         /* chains straight from f16 and bf16 */
    int moments_lanes;                         /* least n of lanes of these and the others; 0: no lanes, no lefts */
    lse_chain_fn *lse_chain_from[DT_COUNT];    /* the same, and from i8 and u8 */
    lse_terms_fn *lse_terms[DT_COUNT];         /* f16, bf16, f32, f64, to their class */
    arg_chain_fn *arg_chain_from[2][DT_COUNT]; /* [0] argmin, [1] argmax */
    arg_rows_fn *arg_from[2][DT_COUNT];        /* straight from memory types, as fold_from; best in the class */
    /* The folds straight from memory types: chain's x and rows' x are of the dtype, acc and out of the dtype's class.
     * Null where there is none (then: load, and fold the class). min and max of bool are those of its bytes: 0, or not,
     * as the finish part asks. */
    struct fold_kernels fold_from[FOLD_COUNT][DT_COUNT];
    struct narrow_kernels narrow[2][DT_COUNT]; /* [0] min, [1] max */
    chain_fn *byte_sums[DT_COUNT];             /* sums of i8 in i16, of u8 in u16, which are acc and out */
    pair_fn *pair[PAIR_COUNT][DT_COUNT];       /* both operands and the result of one memory type; null: bool, the 8-bit
                                          * floats, and PAIR_DIV of integers */
    int pair_bytes[DT_COUNT];                  /* most bytes of what repeats itself in pair's rows */
    stretch_fn *stretch;
    weave_fn *weave;  /* where the processor looks bytes up; else null */
    turn_fn *turn[4]; /* of 1, 2, 4, 8 bytes; null where units of 16 bytes (turn.c) are as good */
    narrow_map_fn *narrow_map[NARROW_COUNT][3];
    bits_fn *bits[BITS_COUNT];
    map_fn *map[MAP_COUNT][4];       /* [MAP_name][class], CLS_F32 ... CLS_U64; null outside the map's domain */
    convert_fn *load[DT_COUNT];      /* memory type to its class */
    convert_fn *store[DT_COUNT][4];  /* class to memory type */
    convert_fn *convert[4][4];       /* from class, to class */
    convert_fn *floats[DT_COUNT][2]; /* i8 ... u32 to CLS_F32, CLS_F64; others: null */
    sums_fn *sums[DT_COUNT];         /* f16 and bf16; others: null */
    sums_fn *copies[DT_COUNT];       /* the same, to[i] = from[i] of this type, with one canonical NaN */
    const struct contraction_kernels *contractions;
    void (*stream)(void *to, const void *from, int64_t bytes); /* a copy past the cache */
    convert_fn *stream_f32, *stream_f64; /* store[f32][CLS_F32], store[f64][CLS_F64] past the cache */
};

#endif
