/* One factor of a logsumexp as exponentials. This text comes twice, after factor.cl's: SIDE is x, then y. A block takes
 * PACKED positions and all terms, twice: the maximum is stored, then e^(value - maximum), by terms and then positions. */
#define F__(name, side) name##_##side
#define F_(name, side) F__(name, side)
#define F(name) F_(name, SIDE)

static inline void F(pack)(struct tensors T, shape_ptr S, int64_t block, int64_t total, int vectors,
                           GLOBAL value_t_x *most, GLOBAL value_t_x *powers, SHARED_POINTER struct F(spot) *spots,
                           SHARED_POINTER F(value_t) *tile, SHARED_POINTER value_t_x *maxima)
{
    const int64_t blocks = (total + PACKED - 1) / PACKED, batch = block / blocks, first = block % blocks * PACKED;
    const int64_t terms = S->reduced_total, pitch = PITCHED(total);
    const int position = THREAD % PACKED, mine = first + position < total;
    value_t_x best = LOWEST, shift = 0;
    struct raw r[F(SLOTS)];
    F(find_spots)(S, move_place(S, no_place(), batch, 2), first, total, spots);
    BARRIER();
    most += batch * total + first;
    powers += batch * terms * COPIES * pitch + first;
    NO_UNROLL
    for (int pass = 0; pass < 2; pass++) {
        const int reads = pass == 0 || terms > STEP; /* else all of them are there still */
        if (reads)
            F(load)(T, S, 0, spots, 0, (int)terms, vectors, r);
        NO_UNROLL
        for (int t = 0; t < terms; t += STEP) {
            const int n = terms - t < STEP ? (int)(terms - t) : STEP;
            GLOBAL value_t_x *to = powers + (t + THREAD / PACKED) * pitch + position;
            if (reads) {
                BARRIER();
                F(put)(r, tile);
                BARRIER();
                if (t + STEP < terms)
                    F(load)(T, S, 0, spots, t + STEP, (int)terms, vectors, r);
            }
            NO_UNROLL
            for (int k = THREAD / PACKED; k < n; k += THREADS / PACKED) {
                const value_t_x v = tile[k * F(PITCH) + position];
                if (pass)
                    store_power(to, terms * pitch, mine, SIDE_NUMBER, exponential(v - shift));
                else
                    best = greater(best, v);
                to += THREADS / PACKED * pitch;
            }
        }
        if (!pass) {
            maxima[THREAD] = best;
            BARRIER();
            best = maxima[position];
            for (int i = 1; i < THREADS / PACKED; i++)
                best = greater(best, maxima[i * PACKED + position]);
            shift = best - best == 0 ? best : 0;
            if (THREAD < PACKED && mine)
                most[position] = best;
        }
    }
}

#undef F
#undef F_
#undef F__
#undef SIDE
#undef SIDE_NUMBER
