/* Where the exponentials of a logsumexp lie in the workspace. PITCHED: positions of a term, with room for vectors.
 *
 * HALVES: float32 = high + low, where high has the 11 bits that a tensor core multiplies. A product of two is then
 * low high + high low + high high, the first two terms' third lost (2^-22); so each factor is there in COPIES 3, whose
 * products are summed as if there were three times as many terms. */
#define PITCHED(total) (((total) + 3) / 4 * 4)
enum { COPIES = HALVES ? 3 : 1 };

/* to: the first copy's place; side 0 is x. */
static inline void store_power(GLOBAL acc_t *to, int64_t copy, int exists, int side, acc_t power)
{
    if (!exists)
        return;
#if HALVES
    const float high = mf_bits_f32(mf_f32_bits(power) & 0xffffe000u), low = power - high;
    to[0] = side ? high : low;
    to[copy] = side ? low : high;
    to[2 * copy] = high;
#else
    to[0] = power;
#endif
}
