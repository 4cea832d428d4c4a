/* Plain loops that read, copy and fill. Eight accumulators, so that no addition waits for another; integers, so that
 * rounding keeps the compiler from nothing. */
#include "limit_loops.h"

#include <string.h>

#ifdef MF_HAVE_X86
#include <immintrin.h>
#endif

enum { AHEAD = 2048 };

/* ---- any processor ---- */

typedef uint64_t vec16 __attribute__((vector_size(16), may_alias));

static uint64_t read_plain(const void *from, size_t bytes)
{
    const vec16 *at = from;
    vec16 s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0}, s4 = {0}, s5 = {0}, s6 = {0}, s7 = {0};
    for (const vec16 *end = at + bytes / 16; at < end; at += 8) {
        s0 += at[0], s1 += at[1], s2 += at[2], s3 += at[3];
        s4 += at[4], s5 += at[5], s6 += at[6], s7 += at[7];
    }
    vec16 s = ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7));
    return s[0] + s[1];
}

static uint64_t read_plain_ahead(const void *from, size_t bytes)
{
    const vec16 *at = from;
    vec16 s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0}, s4 = {0}, s5 = {0}, s6 = {0}, s7 = {0};
    for (const vec16 *end = at + bytes / 16; at < end; at += 8) {
        __builtin_prefetch((const char *)at + AHEAD);
        __builtin_prefetch((const char *)at + AHEAD + 64);
        s0 += at[0], s1 += at[1], s2 += at[2], s3 += at[3];
        s4 += at[4], s5 += at[5], s6 += at[6], s7 += at[7];
    }
    vec16 s = ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7));
    return s[0] + s[1];
}

#ifndef MF_HAVE_X86

static void copy_plain(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
}

static void fill_plain(void *to, size_t bytes)
{
    memset(to, 1, bytes);
}

static const struct limit_loops loops_plain = {"plain", read_plain, read_plain_ahead, copy_plain, fill_plain};

const struct limit_loops *limit_loops_best(void)
{
    return &loops_plain;
}

#else

static void copy_sse2(void *to, const void *from, size_t bytes)
{
    __m128i *t = to;
    const __m128i *f = from;
    for (size_t i = 0; i < bytes / 16; i += 4) {
        __m128i a = _mm_load_si128(f + i), b = _mm_load_si128(f + i + 1);
        __m128i c = _mm_load_si128(f + i + 2), d = _mm_load_si128(f + i + 3);
        _mm_stream_si128(t + i, a);
        _mm_stream_si128(t + i + 1, b);
        _mm_stream_si128(t + i + 2, c);
        _mm_stream_si128(t + i + 3, d);
    }
    _mm_sfence();
}

static void fill_sse2(void *to, size_t bytes)
{
    __m128i *t = to, one = _mm_set1_epi32(1);
    for (size_t i = 0; i < bytes / 16; i += 4) {
        _mm_stream_si128(t + i, one);
        _mm_stream_si128(t + i + 1, one);
        _mm_stream_si128(t + i + 2, one);
        _mm_stream_si128(t + i + 3, one);
    }
    _mm_sfence();
}

/* ---- AVX2 ---- */

#define AVX2 __attribute__((target("avx2")))

AVX2 static uint64_t sum_avx2(__m256i v)
{
    uint64_t x[4];
    memcpy(x, &v, sizeof x);
    return x[0] + x[1] + x[2] + x[3];
}

AVX2 static uint64_t read_avx2(const void *from, size_t bytes)
{
    const __m256i *at = from;
    __m256i s[8];
    for (int i = 0; i < 8; i++)
        s[i] = _mm256_setzero_si256();
    for (const __m256i *end = at + bytes / 32; at < end; at += 8) {
        s[0] = _mm256_add_epi64(s[0], at[0]), s[1] = _mm256_add_epi64(s[1], at[1]);
        s[2] = _mm256_add_epi64(s[2], at[2]), s[3] = _mm256_add_epi64(s[3], at[3]);
        s[4] = _mm256_add_epi64(s[4], at[4]), s[5] = _mm256_add_epi64(s[5], at[5]);
        s[6] = _mm256_add_epi64(s[6], at[6]), s[7] = _mm256_add_epi64(s[7], at[7]);
    }
    uint64_t sum = 0;
    for (int i = 0; i < 8; i++)
        sum += sum_avx2(s[i]);
    return sum;
}

AVX2 static uint64_t read_ahead_avx2(const void *from, size_t bytes)
{
    const __m256i *at = from;
    __m256i s[8];
    for (int i = 0; i < 8; i++)
        s[i] = _mm256_setzero_si256();
    for (const __m256i *end = at + bytes / 32; at < end; at += 8) {
        for (int line = 0; line < 4; line++)
            _mm_prefetch((const char *)at + AHEAD + 64 * line, _MM_HINT_T0);
        s[0] = _mm256_add_epi64(s[0], at[0]), s[1] = _mm256_add_epi64(s[1], at[1]);
        s[2] = _mm256_add_epi64(s[2], at[2]), s[3] = _mm256_add_epi64(s[3], at[3]);
        s[4] = _mm256_add_epi64(s[4], at[4]), s[5] = _mm256_add_epi64(s[5], at[5]);
        s[6] = _mm256_add_epi64(s[6], at[6]), s[7] = _mm256_add_epi64(s[7], at[7]);
    }
    uint64_t sum = 0;
    for (int i = 0; i < 8; i++)
        sum += sum_avx2(s[i]);
    return sum;
}

AVX2 static void copy_avx2(void *to, const void *from, size_t bytes)
{
    __m256i *t = to;
    const __m256i *f = from;
    for (size_t i = 0; i < bytes / 32; i += 4) {
        __m256i a = f[i], b = f[i + 1], c = f[i + 2], d = f[i + 3];
        _mm256_stream_si256(t + i, a);
        _mm256_stream_si256(t + i + 1, b);
        _mm256_stream_si256(t + i + 2, c);
        _mm256_stream_si256(t + i + 3, d);
    }
    _mm_sfence();
}

AVX2 static void fill_avx2(void *to, size_t bytes)
{
    __m256i *t = to, one = _mm256_set1_epi32(1);
    for (size_t i = 0; i < bytes / 32; i += 2) {
        _mm256_stream_si256(t + i, one);
        _mm256_stream_si256(t + i + 1, one);
    }
    _mm_sfence();
}

/* ---- AVX-512 ---- */

#define AVX512 __attribute__((target("avx512f")))

AVX512 static uint64_t read_avx512(const void *from, size_t bytes)
{
    const __m512i *at = from;
    __m512i s[8];
    for (int i = 0; i < 8; i++)
        s[i] = _mm512_setzero_si512();
    for (const __m512i *end = at + bytes / 64; at < end; at += 8) {
        s[0] = _mm512_add_epi64(s[0], at[0]), s[1] = _mm512_add_epi64(s[1], at[1]);
        s[2] = _mm512_add_epi64(s[2], at[2]), s[3] = _mm512_add_epi64(s[3], at[3]);
        s[4] = _mm512_add_epi64(s[4], at[4]), s[5] = _mm512_add_epi64(s[5], at[5]);
        s[6] = _mm512_add_epi64(s[6], at[6]), s[7] = _mm512_add_epi64(s[7], at[7]);
    }
    uint64_t sum = 0;
    for (int i = 0; i < 8; i++)
        sum += (uint64_t)_mm512_reduce_add_epi64(s[i]);
    return sum;
}

AVX512 static uint64_t read_ahead_avx512(const void *from, size_t bytes)
{
    const __m512i *at = from;
    __m512i s[8];
    for (int i = 0; i < 8; i++)
        s[i] = _mm512_setzero_si512();
    for (const __m512i *end = at + bytes / 64; at < end; at += 8) {
        for (int line = 0; line < 8; line++)
            _mm_prefetch((const char *)(at + line) + AHEAD, _MM_HINT_T0);
        s[0] = _mm512_add_epi64(s[0], at[0]), s[1] = _mm512_add_epi64(s[1], at[1]);
        s[2] = _mm512_add_epi64(s[2], at[2]), s[3] = _mm512_add_epi64(s[3], at[3]);
        s[4] = _mm512_add_epi64(s[4], at[4]), s[5] = _mm512_add_epi64(s[5], at[5]);
        s[6] = _mm512_add_epi64(s[6], at[6]), s[7] = _mm512_add_epi64(s[7], at[7]);
    }
    uint64_t sum = 0;
    for (int i = 0; i < 8; i++)
        sum += (uint64_t)_mm512_reduce_add_epi64(s[i]);
    return sum;
}

AVX512 static void copy_avx512(void *to, const void *from, size_t bytes)
{
    __m512i *t = to;
    const __m512i *f = from;
    for (size_t i = 0; i < bytes / 64; i += 4) {
        __m512i a = f[i], b = f[i + 1], c = f[i + 2], d = f[i + 3];
        _mm512_stream_si512(t + i, a);
        _mm512_stream_si512(t + i + 1, b);
        _mm512_stream_si512(t + i + 2, c);
        _mm512_stream_si512(t + i + 3, d);
    }
    _mm_sfence();
}

AVX512 static void fill_avx512(void *to, size_t bytes)
{
    __m512i *t = to, one = _mm512_set1_epi32(1);
    for (size_t i = 0; i < bytes / 64; i++)
        _mm512_stream_si512(t + i, one);
    _mm_sfence();
}

static const struct limit_loops loops_avx512 = {"avx512", read_avx512, read_ahead_avx512, copy_avx512, fill_avx512};
static const struct limit_loops loops_avx2 = {"avx2", read_avx2, read_ahead_avx2, copy_avx2, fill_avx2};
static const struct limit_loops loops_sse2 = {"sse2", read_plain, read_plain_ahead, copy_sse2, fill_sse2};

const struct limit_loops *limit_loops_best(void)
{
    return __builtin_cpu_supports("avx512f") ? &loops_avx512
           : __builtin_cpu_supports("avx2")  ? &loops_avx2
                                             : &loops_sse2;
}

#endif
