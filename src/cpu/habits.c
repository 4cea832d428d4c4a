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
 * Other Xeons with such a cache, Sapphire and Emerald Rapids (measured on the latter), want to be asked earlier: rows
 * 8 KB (sum of bf16 .90 to .96, var .79 to .86, var of i8 .80 to .92), and 16-bit columns as a stream (.78 to .88; few
 * columns of bf16 .77 to .82, of f32 .86 to .92). Eight rows at once spare extremes much of their states: argmax of f32
 * columns .80 to .95, of f64 .75 to .95. Columns that sums are taken down are eight rows then as well, asked for
 * once, unless they are in the last cache and do not widen (2 M elements there: f32 .84 to .91, f64 .80 to .88, bf16
 * .75 to .84, f16 .76 to .82; of more memory than caches hold f32 .87 to .89, f64 .90 to .92).
 *
 * A Zen 4 follows rows and streams by itself, and whoever asks disturbs it, most at 2 to 4 KB: without, var of rows .67
 * to .97, argmax .73 to .94, rows of two .70 to 1, sum of f16 rows .74 to 1, of i8 .69 to 1, columns of i8 .52 to .72,
 * max of bf16 columns .49 to .95; four columns of f32 .41 to .83 as streams, of f64 .61 to .87. But rows beside each
 * other end before it follows them, so that a row's beginning is worth to be asked for, into the second cache (into the
 * nearest one is no better than nothing): four of f32 in strips .74 to .85. Sums that are joined take eight rows, half
 * the traffic of what they are added to: of f64 .82 to .89, of bf16 .71 to .83; and so does all that widens, sums of i8
 * .68 to .88. Short streams that end, and a stream whose sums fill the nearest cache, are better as such rows: 32
 * columns of i8, in pieces of 32 KB, .59 to .86, 64 columns of bf16 .38 to .86. Moments down eight rows, whose next
 * kilobytes are asked for into the second cache: f32 columns .65 to .81, of i8 .53 to .70. */
#include "habits.h"

#include "caches.h"

#ifdef MF_HAVE_X86
#include <cpuid.h>
#endif

const struct habits mf_habits_known[HABITS_COUNT] = {
    [LIKES_TO_BE_ASKED] =
        {
            .row = 8192,
            .row_busy = 8192,
            .stream = 2048,
            .stream_soon = 256,
            .narrow = 8192,
            .narrow_soon = 2048,
            .several = 2048,
            .several_soon = 1,
            .eight = 2,
            .moments = 2048,
            .columns = -1,
            .copy = 1024,
            .arg = 16384,
            .touching = {0, 16384},
            .touching_bytes = 8192,
            .touching_soon = 1,
        },
    [HAS_LARGE_CACHE] =
        {
            .large_cache = 1,
            .row = 3072,
            .row_busy = 3072,
            .row_soon = 2048,
            .stream = 3072,
            .stream_soon = 2048,
            .narrow = 4096,
            .narrow_soon = 2048,
            .several = 2048,
            .several_soon = 1,
            .eight = 4,
            .moments = 512,
            .columns = 512,
            .copy = 3072,
            .copy_soon = 512,
            .arg = 16384,
            .touching = {2048, 512},
            .touching_bytes = 512,
        },
    [ASKS_EARLY] =
        {
            .large_cache = 1,
            .row = 8192,
            .row_busy = 8192,
            .row_soon = 2048,
            .stream = 3072,
            .stream_soon = 2048,
            .narrow = 4096,
            .narrow_soon = 2048,
            .several = 1024,
            .several_soon = 1,
            .several_wide = 1024,
            .joined_eight = 1,
            .eight = 4,
            .moments = 512,
            .columns = -1,
            .copy = 3072,
            .copy_soon = 512,
            .touching = {8192, 8192},
            .touching_bytes = 512,
        },
    [FOLLOWS_ALONE] =
        {
            .row_busy = 8192,
            .several = 2048,
            .eight = 1,
            .beside = 1024,
            .several_wide = 1024,
            .joined_eight = 1,
            .columns = -1,
            .copy = 1024,
            .touching = {4096, 8192},
            .touching_bytes = 8192,
            .touching_least = 262144,
        },
};

struct habits mf_habits;
long mf_cached_bytes;

#ifdef MF_HAVE_X86
/* The processor's family, those of different vendors are different numbers, and its model in 12 bits; 0: not known. */
static unsigned family_and_model(void)
{
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d))
        return 0;
    const unsigned family = (a >> 8 & 0xf) + (a >> 20 & 0xff), model = (a >> 4 & 0xf) + (a >> 12 & 0xf0);
    return family << 12 | model;
}
#else
static unsigned family_and_model(void)
{
    return 0;
}
#endif

/* Half of the last cache, which may be shared, and not too much of it: what a call touches is likely to stay there. */
static long cached_bytes(void)
{
    enum { MOST = 16 << 20 };
    const long half = LAST_CACHE_BYTES / 2;
    return half < 0 ? 0 : half > MOST ? MOST : half;
}

void mf_habits_choose(void)
{
    enum { LARGE_CACHE_BYTES = 2 << 20, ZEN_3_AND_4 = 25, SAPPHIRE_RAPIDS = 0x608f, EMERALD_RAPIDS = 0x60cf };
    const long second = SECOND_CACHE_BYTES;
    const int is_large = second < 1 || second >= LARGE_CACHE_BYTES;
    const unsigned processor = family_and_model();
    const int asks_early = processor == SAPPHIRE_RAPIDS || processor == EMERALD_RAPIDS;
    mf_habits = mf_habits_known[processor >> 12 == ZEN_3_AND_4 ? FOLLOWS_ALONE
                                : asks_early                   ? ASKS_EARLY
                                : is_large                     ? HAS_LARGE_CACHE
                                                               : LIKES_TO_BE_ASKED];
    mf_cached_bytes = cached_bytes();
}
