/* One factor of a logsumexp as exponentials. This text comes twice, after factor.cl's: SIDE is x, then y. A block takes
 * PACKED positions and all terms, twice: the maximum is stored, then e^(value - maximum). Up to HELD_TILES tiles of terms stay in
 * shared memory; more are read twice. */
#define F__(name, side) name##_##side
#define F_(name, side) F__(name, side)
#define F(name) F_(name, SIDE)

/* Exponentials of a tile of terms from t on; maxima: what is taken off. `to` is the place of the block's first position
 * and first term. */
#if BY_TERMS
static inline void F(store_tile)(SHARED_POINTER const F(value_t) *tile, SHARED_POINTER const value_t_x *maxima, int t,
                                 int terms, int positions, int64_t pitch, GLOBAL value_t_x *to)
{
    const int64_t copy = PITCHED((int64_t)terms);
    const int k = t + THREAD, each = sizeof(struct piece) / sizeof(value_t_x);
    value_t_x v[PACKED];
    if (F(PITCH) % each == 0) {
        UNROLL
        for (int p = 0; p < PACKED; p += each) {
            const struct piece piece = *(SHARED_POINTER const struct piece *)(tile + THREAD * F(PITCH) + p);
            UNROLL
            for (int j = 0; j < each; j++)
                v[p + j] = piece.v[j];
        }
    } else {
        UNROLL
        for (int p = 0; p < PACKED; p++)
            v[p] = tile[THREAD * F(PITCH) + p];
    }
    if (k >= copy)
        return;
    to += k;
    if (positions == PACKED) {
        UNROLL
        for (int p = 0; p < PACKED; p++) {
            store_power(to, copy, SIDE_NUMBER, k < terms ? exponential(v[p] - maxima[p]) : 0);
            to += POWER_PITCH(copy);
        }
    } else {
        NO_UNROLL
        for (int p = 0; p < positions; p++)
            store_power(to + p * POWER_PITCH(copy), copy, SIDE_NUMBER,
                        k < terms ? exponential(tile[THREAD * F(PITCH) + p] - maxima[p]) : 0);
    }
}
#else
static inline void F(store_tile)(SHARED_POINTER const F(value_t) *tile, SHARED_POINTER const value_t_x *maxima, int t,
                                 int terms, int positions, int64_t pitch, GLOBAL value_t_x *to)
{
    const int position = THREAD % PACKED, n = terms - t < STEP ? terms - t : STEP;
    if (position < positions) {
        NO_UNROLL
        for (int k = THREAD / PACKED; k < n; k += THREADS / PACKED)
            store_power(to + (t + k) * pitch + position, terms * pitch, SIDE_NUMBER,
                        exponential(tile[k * F(PITCH) + position] - maxima[position]));
    }
}
#endif

static inline void F(pack)(struct tensors T, shape_ptr S, uint32_t block, int64_t total, int vectors,
                           GLOBAL value_t_x *most, GLOBAL value_t_x *powers, SHARED_POINTER struct F(spot) *spots,
                           SHARED_POINTER F(value_t) *tile, SHARED_POINTER value_t_x *maxima)
{
    const uint32_t blocks = (uint32_t)((total + PACKED - 1) / PACKED);
    const int64_t batch = block / blocks, first = (int64_t)(block % blocks) * PACKED;
    const int64_t pitch = PITCHED(total);
    const int terms = (int)S->reduced_total, position = THREAD % PACKED;
    const int positions = total - first < PACKED ? (int)(total - first) : PACKED;
    value_t_x best = LOWEST;
    struct raw r[F(SLOTS)];
    F(find_spots)(S, move_place(S, no_place(), batch, 2), first, total, spots);
    BARRIER();
    most += batch * total + first;
#if BY_TERMS
    powers += (batch * total + first) * POWER_PITCH(PITCHED((int64_t)terms));
#else
    powers += batch * terms * pitch + first;
#endif
    NO_UNROLL
    for (int pass = 0; pass < 2; pass++) {
        const int keeps = terms <= HELD_TILES * STEP, reads = pass == 0 || !keeps;
        if (reads)
            F(load)(T, S, 0, spots, 0, terms, vectors, r);
        NO_UNROLL
        for (int t = 0; t < terms; t += STEP) {
            SHARED_POINTER F(value_t) *const here = tile + (keeps ? t * F(PITCH) : 0);
            if (reads) {
                BARRIER();
                F(put)(r, here);
                BARRIER();
                if (t + STEP < terms)
                    F(load)(T, S, 0, spots, t + STEP, terms, vectors, r);
            }
            if (pass) {
                F(store_tile)(here, maxima, t, terms, positions, pitch, powers);
            } else {
                const int n = terms - t < STEP ? terms - t : STEP;
                NO_UNROLL
                for (int k = THREAD / PACKED; k < n; k += THREADS / PACKED)
                    best = greater(best, here[k * F(PITCH) + position]);
            }
        }
        if (!pass) {
            maxima[THREAD] = best;
            BARRIER();
            best = maxima[position];
            for (int i = 1; i < THREADS / PACKED; i++)
                best = greater(best, maxima[i * PACKED + position]);
            BARRIER();
            if (THREAD < PACKED) {
                maxima[position] = best - best == 0 ? best : 0;
                if (position < positions)
                    most[position] = best;
            }
            BARRIER();
        }
    }
}

#undef F
#undef F_
#undef F__
#undef SIDE
#undef SIDE_NUMBER
