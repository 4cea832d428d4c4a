/* Long sums on tensor cores in a single pass (Navarro et al., section 5.2): each warp a chain of CHAIN products,
 * whose column sums are added in 32 bits to what the warp has, as often as p[2] says; then shuffles over the columns,
 * over the warps of the block, and one result a block. The block that comes last adds those, always in the same
 * order, where the paper has atomic additions.
 *
 * SPLIT tenths of the chains are products, the others additions of the same elements by the threads that read them
 * (section 5.3, split); 10: single pass; 0: the plain reduction by shuffles that the paper compares with. A chain's
 * loads are in flight together. Bound: bytes.
 *
 * p[0]: elements of an output, p[1]: its blocks, p[2]: chains of a warp. workspace: states, then counters. */

static inline total_t word_sum(uint32_t word)
{
    total_t x = (total_t)LOAD((bits_t)word);
    UNROLL
    for (int i = 1; i < PER_WORD; i++)
        x += (total_t)LOAD((bits_t)(word >> 8 * ITEM * i));
    return x;
}

static inline total_t piece_sum(struct four_words f)
{
    return (word_sum(f.w[0]) + word_sum(f.w[1])) + (word_sum(f.w[2]) + word_sum(f.w[3]));
}

/* What this warp's chains add up to, the same in all of its threads. */
static inline struct state warp_sum(EXCHANGE_TYPE exchange_, MMA_TYPE mma_, GLOBAL const bits_t *from, shape_ptr S,
                                    int64_t part, int vectors)
{
    struct state products = state_identity(), plain = state_identity();
    NO_UNROLL
    for (int64_t round = 0; round < S->p[2]; round++) {
        const int64_t chain = (round * S->p[1] + part) * WARPS + THREAD / WARP;
        const int by_products = SPLIT == 10 || (SPLIT > 0 && (int)(chain % 10) < SPLIT);
        const struct chain_pieces pieces = pieces_from(from, chain * CHAIN * STEP, S->p[0], vectors);
#if SPLIT > 0
        ONLY_WARPS(by_products)
        {
            struct column_sums s = no_sums();
            UNROLL
            for (int r = 0; r < CHAIN; r++)
                add_piece(mma_, &s, pieces.f[r]);
            if (by_products)
                products.r0 += (total_t)((s.c[0][0] + s.c[0][1]) + (s.c[1][0] + s.c[1][1]));
        }
#endif
        if (!by_products)
            UNROLL for (int r = 0; r < CHAIN; r++) plain.r0 += piece_sum(pieces.f[r]);
    }
    UNROLL
    for (int distance = 2; distance; distance /= 2) /* the columns; groups of four threads have the same */
        products = combine(products, exchange_state(exchange_, products, distance, 0));
#if SPLIT < 10
    UNROLL
    for (int distance = WARP / 2; distance; distance /= 2)
        plain = combine(plain, exchange_state(exchange_, plain, distance, 0));
#endif
    return combine(products, plain);
}

/* The sum over the block's warps, in all threads. */
static inline struct state block_sum(EXCHANGE_TYPE exchange_, SHARED_POINTER struct state *shared, struct state s)
{
    const int t = THREAD % WARP;
    BARRIER();
    if (t == 0)
        shared[THREAD / WARP] = s;
    BARRIER();
    s = state_identity();
    if (t < WARPS)
        s = shared[t];
    UNROLL
    for (int distance = WARP / 2; distance; distance /= 2)
        s = combine(s, exchange_state(exchange_, s, distance, 0));
    return s;
}

KERNEL void modefold(POINTERS const struct bases b, SHAPE_PARAMETER, GLOBAL char *workspace)
{
    EXCHANGE_MEMORY
    MMA_MEMORY
    SHARED ALIGNED(16) struct state shared[WARPS];
    SHARED int flag;
    shape_ptr S = SHAPE;
    struct tensors T = TENSORS(b);
    const int64_t o = block_over(S->p[1]), part = block_past(S->p[1]);
    GLOBAL struct state *states = (GLOBAL struct state *)workspace;
    struct state s = warp_sum(exchange_, mma_, elements_of(T, S, o), S, part, b.vectors != 0);
    s = block_sum(exchange_, shared, s);
    if (S->p[1] > 1) {
        if (THREAD == 0)
            states[BLOCK] = s;
        if (!last_to_arrive((GLOBAL uint32_t *)(states + S->kept_total * S->p[1]) + o, S->p[1], &flag))
            return;
        s = state_identity();
        for (int64_t i = THREAD; i < S->p[1]; i += THREADS)
            s = combine(s, load_state(states + o * S->p[1] + i));
        UNROLL
        for (int distance = WARP / 2; distance; distance /= 2)
            s = combine(s, exchange_state(exchange_, s, distance, 0));
        s = block_sum(exchange_, shared, s);
    }
    if (THREAD == 0)
        finish_output(T, S, o, s, S->reduced_total);
}
