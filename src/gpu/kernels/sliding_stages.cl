/* Windows whose folds are made by stages: cells become the folds of ever more of their neighbours, in place. In a stage a
 * unit takes a few cells that are some distance apart, and those behind them, and combines them in registers. What is at
 * a window's first position is then its output. Beyond the positions that there are cells hold anything: no output has
 * them. The stages, RUN_STAGES, are made by sliding_stages.c: of SLOTS arrays of SLOT cells. */
static inline void write_outputs(struct tensors T, shape_ptr S, struct tile t, SHARED_POINTER const cell *cells)
{
    enum { HERE = PLANES * OUT_ROWS * OUT_COLUMNS * INSIDE };
    NO_UNROLL
    for (int from = THREAD; from < HERE; from += AT_ONCE * THREADS) {
        cell c[AT_ONCE];
        UNROLL
        for (int i = 0; i < AT_ONCE; i++)
            if (from + i * THREADS < HERE)
                c[i] = cells[first_cell(spot_of(from + i * THREADS, OUT_ROWS, OUT_COLUMNS))];
        UNROLL
        for (int i = 0; i < AT_ONCE; i++)
            if (from + i * THREADS < HERE)
                finish_spot(T, S, t, spot_of(from + i * THREADS, OUT_ROWS, OUT_COLUMNS), c[i]);
    }
}

/* What a stage's text is made of: a unit makes COUNT cells that are APART from each other, of those and `more` behind
 * them. of_each: how many elements these fold. */
#define FIRST_CELL(APART, COUNT) (unit / (APART) * ((APART) * (COUNT)) + unit % (APART))
#define READ_CELLS(name, slot, more, APART, COUNT)                          \
    cell name[(COUNT) + (more)];                                            \
    UNROLL                                                                  \
    for (int i = 0; i < (COUNT) + (more); i++)                              \
        name[i] = cells[(slot) * SLOT + FIRST_CELL(APART, COUNT) + i * (APART)];
#define JOIN_CELLS(name, more, a, of_a, of_each_a, b, of_b, of_each_b, COUNT) \
    cell name[(COUNT) + (more)];                                            \
    UNROLL                                                                  \
    for (int i = 0; i < (COUNT) + (more); i++)                              \
        name[i] = joined(a[i + (of_a)], of_each_a, b[i + (of_b)], of_each_b);
#define WRITE_CELLS(slot, name, APART, COUNT)                               \
    UNROLL                                                                  \
    for (int i = 0; i < (COUNT); i++)                                       \
        cells[(slot) * SLOT + FIRST_CELL(APART, COUNT) + i * (APART)] = name[i];

KERNEL void modefold(POINTERS const struct bases b, SHAPE_PARAMETER, GLOBAL char *workspace)
{
    LAUNCH_SHARED(cell, cells, SLOTS * SLOT);
    shape_ptr S = SHAPE;
    struct tensors T = TENSORS(b);
    const struct tile t = find_tile(S, (uint32_t)BLOCK);
    read_cells(T, S, t, cells);
    RUN_STAGES
    write_outputs(T, S, t, cells);
}
