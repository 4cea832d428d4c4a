/* Both gradients of out[i, j] = logsumexp over k of a[i, k] + b[k, j], of few terms, in one launch; d is out's gradient:
 *
 *     da[i, k] = sum over j of d[i, j] e^(a[i, k] + b[k, j] - out[i, j]), db[k, j] the same over i
 *
 * A side is one of them: g[p, k] over q, with u the operand that has p and v the other one. A thread has OWN of the k, so
 * that it reads d and out once for all. Where outputs and what they read are neighbours along q, a warp's threads take
 * the q of one p; else (across) they take neighbouring p, and the block's warps the q in turn.
 *
 * OWN; HELD_ALONG, HELD_ACROSS: q that are read at once; THREADS; SIGN: of b. struct near_side is also written by
 * gradient_near.c. */
enum { WARP = 32, WARPS = THREADS / WARP, HELD = HELD_ALONG > HELD_ACROSS ? HELD_ALONG : HELD_ACROSS };

/* Sizes and strides. groups: of OWN k; blocks: of the side, one after the other in the launch. */
struct near_side {
    int p_size, k_size, q_size, groups, chunks, across;
    int u_p, u_k, v_k, v_q, out_p, out_q, d_p, d_q, g_p, g_k;
    int64_t batch, blocks, u_b, v_b, out_b, d_b, g_b; /* b: the batch's */
};

struct near {
    struct near_side side[2];
    int64_t a, b, out, d, da, db; /* where they begin, in elements */
};

/* What a thread reads along q, its own u, and v's sign. */
struct near_thread {
    GLOBAL const float *v[OWN], *out, *d;
    float u[OWN], sign;
    int v_q, out_q, d_q, q_size; /* sizes are at most 2^10, strides 2^20 */
};

/* Adds the terms first, first + step, ..., `held` at once (of k and q that there are not, others' again, which count for
 * nothing). An output of -inf has no gradient. u + v - out comes before it is made a power of two: where both are large
 * and near each other nothing else is exact. */
static inline void add_terms(struct near_thread t, int first, int step, int held, float sum[OWN])
{
    NO_UNROLL
    for (int from = first; from < t.q_size; from += held * step) {
        float out[HELD], d[HELD], v[HELD][OWN];
        UNROLL
        for (int h = 0; h < BOUND(held, HELD); h++) {
            const int q = from + h * step < t.q_size ? from + h * step : from;
            out[h] = t.out[q * t.out_q];
            d[h] = t.d[q * t.d_q];
            UNROLL
            for (int r = 0; r < OWN; r++)
                v[h][r] = t.v[r][q * t.v_q];
        }
        LOADED();
        UNROLL
        for (int h = 0; h < BOUND(held, HELD); h++) {
            const int counts = out[h] >= -3.40282347e38f || out[h] != out[h];
            UNROLL
            for (int r = 0; r < OWN; r++) {
                const float p = EXP_BELOW_f32(fmaf(v[h][r], t.sign, t.u[r]) - out[h]);
                sum[r] = counts && from + h * step < t.q_size ? fmaf(d[h], p, sum[r]) : sum[r];
            }
        }
    }
}

KERNEL void modefold(GLOBAL const float *a, GLOBAL const float *b, GLOBAL const float *out, GLOBAL const float *d,
                     GLOBAL float *da, GLOBAL float *db, const struct near S)
{
    SHARED float joined[WARPS * OWN * WARP];
    EXCHANGE_MEMORY
    FOLLOW_STREAM();
    const int s = BLOCK >= S.side[0].blocks, warp = THREAD / WARP, lane = THREAD % WARP;
#define SIDE(field) (s ? S.side[1].field : S.side[0].field)
    const uint32_t block = (uint32_t)(s ? BLOCK - S.side[0].blocks : BLOCK), groups = (uint32_t)SIDE(groups),
                   chunks = (uint32_t)SIDE(chunks), most = (uint32_t)SIDE(batch) * chunks * groups - 1;
    const int across = SIDE(across), p_size = SIDE(p_size), k_size = SIDE(k_size);
    const int g_k = SIDE(g_k), u_k = SIDE(u_k), v_k = SIDE(v_k);
    const float sign = s ? SIGN : 1;
    /* (batch, group, p or chunk of them): of a block or a warp; warps beside each other read the same v */
    const uint32_t mine = across ? block : block * WARPS + warp, here = mine < most ? mine : most;
    const uint32_t above = here / chunks, batch = above < groups ? 0 : above / groups, chunk = here - above * chunks;
    const int p = (int)(across ? chunk * WARP + lane : chunk), k = (int)(above - batch * groups) * OWN;
    const int64_t own = p < p_size ? p : p_size - 1;
    const int exists = mine <= most && p < p_size;
    struct near_thread t;
    GLOBAL const float *const v = (s ? a + S.a : b + S.b) + (int64_t)batch * SIDE(v_b);
    t.out = out + S.out + (int64_t)batch * SIDE(out_b) + own * SIDE(out_p);
    t.d = d + S.d + (int64_t)batch * SIDE(d_b) + own * SIDE(d_p);
    t.v_q = SIDE(v_q);
    t.out_q = SIDE(out_q);
    t.d_q = SIDE(d_q);
    t.q_size = SIDE(q_size);
    t.sign = s ? 1 : SIGN;
    GLOBAL const float *const u = (s ? b + S.b : a + S.a) + (int64_t)batch * SIDE(u_b) + own * SIDE(u_p);
    GLOBAL float *const g = (s ? db + S.db : da + S.da) + (int64_t)batch * SIDE(g_b) + own * SIDE(g_p);
    float sum[OWN];
    UNROLL
    for (int r = 0; r < OWN; r++) {
        sum[r] = 0;
        t.v[r] = v + (k + r < k_size ? k + r : k) * v_k;
        t.u[r] = sign * u[(k + r < k_size ? k + r : k) * u_k];
    }
    if (across) {
        add_terms(t, warp, WARPS, HELD_ACROSS, sum);
        UNROLL
        for (int r = 0; r < OWN; r++)
            joined[(warp * OWN + r) * WARP + lane] = sum[r];
        BARRIER();
        NO_UNROLL
        for (int r = warp; r < OWN; r += WARPS) {
            float all = 0;
            UNROLL
            for (int w = 0; w < WARPS; w++)
                all += joined[(w * OWN + r) * WARP + lane];
            if (exists && k + r < k_size)
                g[(k + r) * g_k] = sign * all;
        }
    } else {
        add_terms(t, lane, WARP, HELD_ALONG, sum);
        UNROLL
        for (int r = 0; r < OWN; r++)
            UNROLL
            for (int distance = WARP / 2; distance; distance /= 2) {
                float other;
                EXCHANGE(float, other, sum[r], distance);
                sum[r] += other;
            }
        UNROLL
        for (int r = 0; r < OWN; r++)
            if (lane == r && exists && k + r < k_size)
                g[(k + r) * g_k] = sign * sum[r];
    }
}
