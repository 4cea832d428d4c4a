/* How this processor wants memory to be read. Figures are parts of a plain read of more memory than all caches hold, by
 * one thread.
 *
 * A first kind has a second cache of 1 MB and likes to be asked (Zen 5): var of rows .86 to .95 with 8 KB. About 2 KB
 * are under way while memory answers (20 to 30 GB/s for 70 to 100 ns); where columns were asked for much earlier, lines
 * came slower. A kernel with more to compute than one operation an element has no time to wait for the second cache
 * either; what is not in the second cache yet would block the nearest one's few places for lines under way.
 *
 * With a second cache of 2 MB (a Xeon with AVX-512 for 16-bit floats): sum of rows .89 to .97, var .75 to .89 with 3 KB
 * instead of 8, and streams of short elements .74 to .78 with 4. Beside stores past the cache: what is added to bf16
 * 1.15 times as fast with 3 KB and 512 bytes as with 1 KB alone, f16 1.09, f32 1.02.
 *
 * A Zen 4 follows rows and streams by itself, and whoever asks disturbs it, most at 2 to 4 KB: without, var of rows .67
 * to .97, argmax .73 to .94, rows of two .70 to 1, sum of f16 rows .74 to 1, of i8 .69 to 1, columns of i8 .52 to .72,
 * max of bf16 columns .49 to .95; four columns of f32 .41 to .83 as streams. Only sums of floats down four rows gain
 * where the next line or two are asked for (.80 to .89). What is read kilobytes later may be asked for where eight rows
 * are read at once, but only into the second cache: moments down f32 columns .65 to .81, i8 .53 to .70; asked for into
 * the nearest one they were slower than unasked. */
#include "habits.h"

#include "caches.h"

#ifdef MF_HAVE_X86
#include <cpuid.h>
#endif

static const struct habits likes_to_be_asked = {
    .row = 8192,
    .row_busy = 8192,
    .stream = 2048,
    .stream_soon = 256,
    .narrow = 8192,
    .narrow_soon = 2048,
    .several = 2048,
    .moments = 2048,
    .columns = -1,
    .copy = 1024,
    .arg = 16384,
    .touching = {0, 16384},
    .touching_bytes = 8192,
};

static const struct habits has_large_cache = {
    .large_cache = 1,
    .row = 3072,
    .row_busy = 3072,
    .row_soon = 2048,
    .stream = 3072,
    .stream_soon = 2048,
    .narrow = 4096,
    .narrow_soon = 2048,
    .several = 2048,
    .moments = 512,
    .columns = 512,
    .copy = 3072,
    .copy_soon = 512,
    .arg = 16384,
    .touching = {2048, 512},
    .touching_bytes = 512,
};

static const struct habits follows_alone = {
    .row_busy = 8192,
    .beside = 4096,
    .columns = 64,
    .copy = 1024,
    .touching = {2048, 16384},
    .touching_bytes = 8192,
};

struct habits mf_habits;

/* An x86 processor's family; those of different vendors are different numbers. 0: not known. */
static unsigned family(void)
{
    unsigned a = 0;
#ifdef MF_HAVE_X86
    unsigned b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d))
        return 0;
    a = (a >> 8 & 0xf) + (a >> 20 & 0xff);
#endif
    return a;
}

void mf_habits_choose(void)
{
    enum { LARGE_CACHE_BYTES = 2 << 20, ZEN_3_AND_4 = 25 };
    const long second = SECOND_CACHE_BYTES;
    if (family() == ZEN_3_AND_4)
        mf_habits = follows_alone;
    else
        mf_habits = second < 1 || second >= LARGE_CACHE_BYTES ? has_large_cache : likes_to_be_asked;
}
