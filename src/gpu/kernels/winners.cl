/* Gradients of max and min: every output's d, times the argument's slope at its winner, is added at the winner's place,
 * the outputs in their order, in float64: as gradient_winners.c does it, to the bit.
 *
 * Outputs are cut into parts that share no place: by the modes that are an operand's own dimension. A part's places are
 * dealt to the threads of SPLITS blocks in turn; all threads go over all of the part's outputs, THREADS at a time from
 * shared memory, and each adds what belongs to its places. So nothing is locked, sorted, or added in another order, and
 * an output costs THREADS comparisons a block, however many terms it has. The places' sums lie in the workspace.
 *
 * Emitted before: the types given_t, other_t, extreme_t and gradient_t; load_given, load_other, store_gradient; USES_OTHER (a
 * product), SIGN, NOTHING (the extreme of nothing). struct winner_loops is also written by winners.c. */
enum { RANK = 33, REDUCED_MOST = 52 };

/* What one position of a loop is in outputs' numbers, in the places of a part, and in elements. */
struct winner_loop {
    int64_t size, output, place, given, other, gradient;
};

struct winner_loops {
    int64_t part_rank, own_rank, reduced_rank, place_rank;
    int64_t outputs, places, splits; /* of a part */
    int64_t cut_size;                /* loop 0 of the parts is cut: each has own[0].size positions, the last one fewer */
    int64_t first_place, first_other;
    int64_t winner_at, extreme_at, sum_at; /* bytes of the workspace */
    struct winner_loop part[RANK], own[RANK], reduced[REDUCED_MOST], of_place[RANK];
};

struct winner_bases {
    int64_t given, other, gradient;
};

typedef GLOBAL const struct winner_loops *loops_ptr;

/* What is left of v, whose remainder by n is the position in a loop. */
static inline int64_t take_position(int64_t *v, int64_t n)
{
    const int64_t all = *v, q = (all | n) >> 32 ? all / n : (int64_t)((uint32_t)all / (uint32_t)n);
    *v = q;
    return all - q * n;
}

/* Where a part begins, in elements. */
struct part_start {
    int64_t cut, output, given, other, gradient;
};

static inline struct part_start start_of(loops_ptr L, int64_t part)
{
    struct part_start s;
    s.cut = s.output = s.given = s.gradient = 0;
    s.other = L->first_other;
    for (int l = (int)L->part_rank - 1; l >= 0; l--) {
        const int64_t i = take_position(&part, L->part[l].size);
        s.cut = i * L->own[0].size; /* of loop 0 in the end */
        s.output += i * L->part[l].output;
        s.given += i * L->part[l].given;
        s.other += i * L->part[l].other;
        s.gradient += i * L->part[l].gradient;
    }
    return s;
}

/* The place to which output number o of the part sends, and what; -1 where it sends nothing. */
static inline int64_t send(loops_ptr L, struct part_start at, int64_t o, GLOBAL const given_t *given,
                           GLOBAL const other_t *other, GLOBAL const char *workspace, double *value)
{
    int64_t place = L->first_place, i = 0;
    for (int l = (int)L->own_rank - 1; l >= 0; l--) {
        i = take_position(&o, L->own[l].size);
        at.output += i * L->own[l].output;
        at.given += i * L->own[l].given;
        at.other += i * L->own[l].other;
        place += i * L->own[l].place;
    }
    if (at.cut + i >= L->cut_size)
        return -1;
    int64_t winner = ((GLOBAL const int64_t *)(workspace + L->winner_at))[at.output];
    if (winner < 0 || ((GLOBAL const extreme_t *)(workspace + L->extreme_at))[at.output] == NOTHING)
        return -1;
    for (int r = (int)L->reduced_rank - 1; r >= 0; r--) {
        i = take_position(&winner, L->reduced[r].size);
        at.other += i * L->reduced[r].other;
        place += i * L->reduced[r].place;
    }
#if USES_OTHER
    *value = load_given(given[at.given]) * load_other(other[at.other]);
#else
    *value = SIGN load_given(given[at.given]);
#endif
    return place;
}

/* The part's sums become elements of the gradient. */
static inline void deliver(loops_ptr L, struct part_start at, int64_t first, int64_t step, GLOBAL const double *sums,
                           GLOBAL gradient_t *gradient)
{
    for (int64_t p = first; p < L->places; p += step) {
        int64_t v = p, to = at.gradient, i = 0;
        for (int l = (int)L->place_rank - 1; l >= 0; l--) {
            i = take_position(&v, L->of_place[l].size);
            to += i * L->of_place[l].gradient;
        }
        if (at.cut + i < L->cut_size)
            gradient[to] = store_gradient(sums[p]);
    }
}

KERNEL void modefold(GLOBAL const given_t *given, GLOBAL const other_t *other, GLOBAL gradient_t *gradient,
                     const struct winner_bases b, GLOBAL char *workspace, const int64_t loops_at)
{
    SHARED int owners[THREADS];
    SHARED int64_t places[THREADS];
    SHARED double values[THREADS];
    FOLLOW_STREAM();
    const loops_ptr L = (loops_ptr)(workspace + loops_at);
    const int64_t splits = L->splits, part = BLOCK / splits, split = BLOCK - part * splits;
    const int64_t mine = split * THREADS + THREAD, step = splits * THREADS;
    const struct part_start at = start_of(L, part);
    GLOBAL double *sums = (GLOBAL double *)(workspace + L->sum_at) + part * L->places;
    for (int64_t p = mine; p < L->places; p += step)
        sums[p] = 0;
    for (int64_t first = 0; first < L->outputs; first += THREADS) {
        const int n = L->outputs - first < THREADS ? (int)(L->outputs - first) : THREADS;
        int64_t place = -1;
        double value = 0;
        if (THREAD < n)
            place = send(L, at, first + THREAD, given + b.given, other + b.other, workspace, &value);
        int64_t rest = place;
        const int64_t owner = place < 0 ? -1 : take_position(&rest, step) - split * THREADS;
        BARRIER();
        owners[THREAD] = owner < THREADS ? (int)(owner < 0 ? -1 : owner) : -1;
        places[THREAD] = place;
        values[THREAD] = value;
        BARRIER();
        for (int s = 0; s < n; s++)
            if (owners[s] == THREAD)
                sums[places[s]] += values[s];
    }
    deliver(L, at, mine, step, sums, gradient + b.gradient);
}
