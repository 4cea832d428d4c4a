/* Folds without a reducer whose operands are turned: what lies side by side there does not in the outputs. A block takes
 * ROWS rows of COLUMNS outputs, rows along loop KEPT - 2, along which turned operands (TURNED_s) have stride 1. A warp
 * reads them along the rows, 32 units of VECTOR elements side by side, for VECTOR columns at a time, whose units then
 * are turned in registers and kept in shared memory as units of outputs; rows k, k + VECTOR, ... follow each other there,
 * so that neither writing nor reading meets a bank twice. Other operands are read where outputs are written.
 *
 * p[0], p[1]: blocks along the rows, along the columns. Vectors where all strides and sizes are whole units, and bases
 * are aligned (b.vectors); the host has made VECTOR 1 otherwise, or the block takes its outputs one by one. */
enum {
    ROWS = WARP * VECTOR,
    ROW_UNITS = COLUMNS / VECTOR,
    PITCH = ROW_UNITS + 1,
    WARPS = THREADS / WARP,
    GROUPS = ROW_UNITS / WARPS
};

#if VECTOR == 1
#define X(s)              \
    struct in##s##_vector { \
        in##s##_t v[1];   \
    };
FOR_FINISH_INPUTS(X)
#undef X
#endif

/* Where a block's outputs are: its first row and column, and the tensors' places at row 0 and column 0. */
struct patch {
    int64_t row, column;
    struct target at;
};

static inline struct patch patch_of_block(shape_ptr S)
{
    const int64_t v = block_over(S->p[0]), other = (uint32_t)v / (uint32_t)S->p[1];
    struct patch p;
    p.row = block_past(S->p[0]) * ROWS;
    p.column = (v - other * S->p[1]) * COLUMNS;
    p.at = kept_target(S, other * S->size[KEPT - 2] * S->size[KEPT - 1]);
    return p;
}

#define IN_PLACE(s, row, column) \
    (p.at.f##s + (row)*in_stride(S, s, KEPT - 2) + (column)*in_stride(S, s, KEPT - 1))
#define OUT_PLACE(k, row, column) \
    (p.at.o##k + (row)*out_stride(S, k, KEPT - 2) + (column)*out_stride(S, k, KEPT - 1))

/* One output by itself. */
static inline void turn_one(struct tensors T, shape_ptr S, struct patch p, int64_t row, int64_t column)
{
    struct target at;
#define X(s) at.f##s = IN_PLACE(s, row, column);
    FOR_FINISH_INPUTS(X)
#undef X
#define X(k) at.o##k = OUT_PLACE(k, row, column);
    FOR_OUTPUTS(X)
#undef X
    finish_at(T, at, state_identity(), 1);
}

KERNEL void modefold(POINTERS const struct bases b, SHAPE_PARAMETER, GLOBAL char *workspace)
{
    shape_ptr S = SHAPE;
    struct tensors T = TENSORS(b);
    const struct patch p = patch_of_block(S);
    const int64_t rows = S->size[KEPT - 2], columns = S->size[KEPT - 1];
    if (VECTOR > 1 && !b.vectors) {
        NO_UNROLL
        for (int e = THREAD; e < ROWS * COLUMNS; e += THREADS) {
            const int64_t row = p.row + e / COLUMNS, column = p.column + e % COLUMNS;
            if (row < rows && column < columns)
                turn_one(T, S, p, row, column);
        }
        return;
    }
    const int lane = THREAD % WARP, warp = THREAD / WARP;
#define X(s)                                                            \
    SHARED struct in##s##_vector kept##s[TURNED_##s ? ROWS * PITCH : 1]; \
    struct in##s##_vector read##s[TURNED_##s ? GROUPS : 1][VECTOR];
    FOR_FINISH_INPUTS(X)
#undef X
    UNROLL
    for (int g = 0; g < GROUPS; g++)
        UNROLL
        for (int j = 0; j < VECTOR; j++) {
            const int64_t row = p.row + lane * VECTOR, column = p.column + (warp + g * WARPS) * VECTOR + j;
#define X(s)                                          \
    if (TURNED_##s && row < rows && column < columns) \
        read##s[TURNED_##s ? g : 0][j] = *(GLOBAL const struct in##s##_vector *)(T.in##s + IN_PLACE(s, row, column));
            FOR_FINISH_INPUTS(X)
#undef X
        }
    LOADED();
    UNROLL
    for (int g = 0; g < GROUPS; g++)
        UNROLL
        for (int k = 0; k < VECTOR; k++) {
#define X(s)                                                                     \
    if (TURNED_##s) {                                                            \
        struct in##s##_vector unit;                                              \
        UNROLL for (int j = 0; j < VECTOR; j++) unit.v[j] = read##s[TURNED_##s ? g : 0][j].v[k]; \
        kept##s[TURNED_##s ? (k * WARP + lane) * PITCH + warp + g * WARPS : 0] = unit; \
    }
            FOR_FINISH_INPUTS(X)
#undef X
        }
    BARRIER();
    UNROLL
    for (int e = THREAD; e < ROWS * ROW_UNITS; e += THREADS) {
        const int slot = e / ROW_UNITS, unit = e % ROW_UNITS;
        const int64_t row = p.row + slot % WARP * VECTOR + slot / WARP, column = p.column + unit * VECTOR;
        if (row >= rows || column >= columns)
            continue;
        struct values y[VECTOR];
        UNROLL
        for (int i = 0; i < VECTOR; i++) {
            struct raw_finish r;
            const struct state none = state_identity();
#define X(s)                                                                     \
    r.x##s = TURNED_##s ? kept##s[TURNED_##s ? slot * PITCH + unit : 0].v[i] \
                        : T.in##s[IN_PLACE(s, row, column + i)];
            FOR_FINISH_INPUTS(X)
#undef X
            r.none = 0;
            y[i] = values_of(none, 1, r);
        }
#if VECTOR > 1
#define X(k) store_vector##k(T.out##k + OUT_PLACE(k, row, column), y);
#else
#define X(k) T.out##k[OUT_PLACE(k, row, column)] = stored(y[0]).y##k;
#endif
        FOR_OUTPUTS(X)
#undef X
    }
}
