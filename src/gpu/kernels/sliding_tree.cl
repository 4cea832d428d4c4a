/* Windows along two loops in the contract's order, whose elements of a lane are no row of a tile's: the tree of each output
 * (docs/numerics.md, section 2), over its elements in shared memory. A unit makes HELD outputs, in rows that are some
 * distance apart, together: an element of theirs is one place and HELD constant distances.
 *
 * The tree is walked from its leaves on, so that few states wait: below a node are the elements that are `residue` past
 * a multiple of `modulus`, below its children those that are that of twice the modulus; a lane has 128. */
enum {
    HELD_ROWS = OUT_ROWS / HELD,
    UNITS = PLANES * HELD_ROWS * OUT_COLUMNS * INSIDE,
    HELD_APART = HELD_ROWS * DOWN_STEP * PITCH,
    IS_ACROSS = ACROSS_REDUCED == LOOPS - 1, /* elements are numbered along rows, else down */
    COLUMN_APART = IS_ACROSS ? ACROSS_GAP * INSIDE : DOWN_GAP * PITCH,
    ROW_APART = IS_ACROSS ? DOWN_GAP * PITCH : ACROSS_GAP * INSIDE,
    LOOSE = 8, /* lanes of a walk's step, and how many steps */
    STEPS_OF_WALK = LANES / LOOSE
};

/* Lowest bits first become highest first, of 3 and 4 bits. */
#define TURNED_3(u) (((u) & 1) << 2 | ((u) & 2) | (u) >> 2)
#define TURNED_4(t) (((t) & 1) << 3 | ((t) & 2) << 1 | ((t) >> 1 & 2) | (t) >> 3)

static inline int elements_of(int residue, int modulus)
{
    return (ELEMENTS_OF_WINDOW - residue + modulus - 1) / modulus;
}

static inline void chain_of_lane(SHARED_POINTER const cell *first, int lane, cell v[HELD])
{
    const int n = elements_of(lane, LANES);
    int row = lane / ALONG, column = lane - row * ALONG, at = row * ROW_APART + column * COLUMN_APART;
    UNROLL
    for (int c = 0; c < HELD; c++)
        v[c] = first[at + c * HELD_APART];
    NO_UNROLL
    for (int k = 1; k < n; k++) {
        at += LANES / ALONG * ROW_APART + LANES % ALONG * COLUMN_APART;
        column += LANES % ALONG;
        if (column >= ALONG) {
            column -= ALONG;
            at += ROW_APART - ALONG * COLUMN_APART;
        }
        UNROLL
        for (int c = 0; c < HELD; c++)
            v[c] = joined(v[c], k, first[at + c * HELD_APART], 1);
    }
}

/* v = left o v of the node (residue, modulus), where there is something on the right. */
static inline void join_node(int residue, int modulus, const cell left[HELD], cell v[HELD])
{
    const int right = residue + modulus, some = right < ELEMENTS_OF_WINDOW;
    UNROLL
    for (int c = 0; c < HELD; c++)
        if (some)
            v[c] = joined(left[c], elements_of(residue, 2 * modulus), v[c], elements_of(right, 2 * modulus));
        else
            v[c] = left[c];
}

/* The lanes that are `residue` past a multiple of 16. */
static inline void fold_loose(SHARED_POINTER const cell *first, int residue, cell v[HELD])
{
    cell waiting[3][HELD];
    UNROLL
    for (int u = 0; u < LOOSE; u++) {
        const int lane = residue + STEPS_OF_WALK * TURNED_3(u);
        if (lane < ELEMENTS_OF_WINDOW)
            chain_of_lane(first, lane, v);
        int open = 1;
        UNROLL
        for (int q = 0; q < 3; q++) {
            if (open && (u >> q & 1))
                join_node(residue + STEPS_OF_WALK * TURNED_3(u >> (q + 1) << (q + 1)), LANES / 2 >> q, waiting[q], v);
            else if (open) {
                UNROLL
                for (int c = 0; c < HELD; c++)
                    waiting[q][c] = v[c];
                open = 0;
            }
        }
    }
}

static inline void fold_windows(SHARED_POINTER const cell *first, cell v[HELD])
{
    cell waiting[4][HELD];
    NO_UNROLL
    for (int t = 0; t < STEPS_OF_WALK; t++) {
        int open = 1;
        fold_loose(first, TURNED_4(t), v);
        UNROLL
        for (int q = 0; q < 4; q++) {
            if (open && (t >> q & 1))
                join_node(TURNED_4(t >> (q + 1) << (q + 1)), STEPS_OF_WALK / 2 >> q, waiting[q], v);
            else if (open) {
                UNROLL
                for (int c = 0; c < HELD; c++)
                    waiting[q][c] = v[c];
                open = 0;
            }
        }
    }
}

KERNEL void modefold(POINTERS const struct bases b, SHAPE_PARAMETER, GLOBAL char *workspace)
{
    LAUNCH_SHARED(cell, cells, POSITIONS);
    shape_ptr S = SHAPE;
    struct tensors T = TENSORS(b);
    const struct tile t = find_tile(S, (uint32_t)BLOCK);
    read_cells(T, S, t, cells);
    NO_UNROLL
    for (int unit = THREAD; unit < UNITS; unit += THREADS) {
        struct spot at = spot_of(unit, HELD_ROWS, OUT_COLUMNS);
        cell v[HELD];
        fold_windows(cells + first_cell(at), v);
        UNROLL
        for (int c = 0; c < HELD; c++) {
            finish_spot(T, S, t, at, v[c]);
            at.row += HELD_ROWS;
        }
    }
}
