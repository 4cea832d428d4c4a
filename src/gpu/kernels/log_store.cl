/* Where the exponentials of a logsumexp lie in the workspace: by positions and then terms, as cuBLAS multiplies them
 * fastest (BY_TERMS), or by terms and then positions. PITCHED: neighbours, with room for vectors.
 *
 * HALVES: float32 = high + low, where high has the 11 bits that a tensor core multiplies. A product of two is then
 * low high + high low + high high, with 2^-22 of it lost; so low and high of x lie one after the other, and high and low
 * of y: the small products are one product of twice as many terms. */
#define PITCHED(total) (((total) + 3) / 4 * 4)
#define POWER_PITCH(copy) (COPIES * (copy)) /* of one position's, where those are neighbours */

/* to: the place in the first copy; side 0 is x. */
static inline void store_power(GLOBAL acc_t *to, int64_t copy, int side, acc_t power)
{
#if COPIES > 1
    const float high = mf_bits_f32(mf_f32_bits(power) & 0xffffe000u), low = power - high;
    to[0] = side ? high : low;
    to[copy] = side ? low : high;
#else
    to[0] = power;
#endif
}

/* Vectors of a tile in shared memory. */
struct ALIGNED(16) piece {
    acc_t v[16 / sizeof(acc_t)];
};
