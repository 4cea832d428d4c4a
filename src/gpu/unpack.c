/* The embedded texts, from the stream that cmake/embed.cmake makes of them: deflate (Deutsch, RFC 1951, 1996).
 *
 * The stream is part of the library, so it is not doubted; its end, and its size, are asserted. Symbols of up to
 * FAST_BITS bits are looked up, longer ones are found length by length. */
#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "texts.h"

enum { MOST_BITS = 15, FAST_BITS = 10, SYMBOLS = 288, DISTANCES = 30, WINDOW = 1 << 15 };
enum { STORED, FIXED, OWN, LITERALS = 256, END = 256, LENGTH_BASE = 257 };

struct code {
    uint16_t count[MOST_BITS + 1]; /* of symbols, by bits */
    uint16_t symbol[SYMBOLS];      /* in the order of their codes */
    uint16_t fast[1 << FAST_BITS]; /* by the bits that come next: symbol * 16 + its bits, or 0 */
};

struct stream {
    const unsigned char *from;
    uint64_t bits;
    int count;
    const struct packed_text *text; /* which is being filled, and how far */
    size_t filled, written;
    unsigned char window[WINDOW];
};

static unsigned take(struct stream *s, int n)
{
    while (s->count < n) {
        s->bits |= (uint64_t)*s->from++ << s->count;
        s->count += 8;
    }
    const unsigned bits = (unsigned)(s->bits & ((1u << n) - 1));
    s->bits >>= n;
    s->count -= n;
    return bits;
}

/* A code is written from its highest bit on, in a stream that is read from the lowest. */
static unsigned reversed(unsigned code, int bits)
{
    unsigned back = 0;
    for (int i = 0; i < bits; i++)
        back |= (code >> i & 1) << (bits - 1 - i);
    return back;
}

static void make_code(struct code *c, const unsigned char *bits, int symbols)
{
    int first[MOST_BITS + 2] = {0};
    unsigned code = 0;
    memset(c, 0, sizeof *c);
    for (int i = 0; i < symbols; i++)
        c->count[bits[i]]++;
    c->count[0] = 0;
    for (int n = 1; n <= MOST_BITS; n++)
        first[n + 1] = first[n] + c->count[n];
    for (int i = 0; i < symbols; i++)
        if (bits[i])
            c->symbol[first[bits[i]]++] = (uint16_t)i;
    for (int n = 1, next = 0; n <= FAST_BITS; n++, code <<= 1)
        for (int i = 0; i < c->count[n]; i++, code++, next++)
            for (unsigned at = reversed(code, n); at < 1u << FAST_BITS; at += 1u << n)
                c->fast[at] = (uint16_t)(c->symbol[next] << 4 | n);
}

static int take_symbol(struct stream *s, const struct code *c)
{
    while (s->count < FAST_BITS) {
        s->bits |= (uint64_t)*s->from++ << s->count;
        s->count += 8;
    }
    const int fast = c->fast[s->bits & ((1u << FAST_BITS) - 1)];
    if (fast) {
        s->bits >>= fast & 15;
        s->count -= fast & 15;
        return fast >> 4;
    }
    int code = 0, first = 0, before = 0;
    for (int n = 1; n <= MOST_BITS; n++) {
        code |= (int)take(s, 1);
        if (code - first < c->count[n])
            return c->symbol[before + code - first];
        before += c->count[n];
        first = (first + c->count[n]) << 1;
        code <<= 1;
    }
    assert(0);
    return END;
}

/* A text's end is a 1 in the stream. */
static void put(struct stream *s, unsigned char byte)
{
    s->window[s->written++ % WINDOW] = byte;
    s->text->to[s->filled++] = byte == 1 ? 0 : (char)byte;
    if (byte == 1) {
        assert(s->filled == s->text->size);
        s->text++;
        s->filled = 0;
    }
}

static void fixed_codes(struct code *literals, struct code *distances)
{
    unsigned char bits[SYMBOLS];
    for (int i = 0; i < SYMBOLS; i++)
        bits[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    make_code(literals, bits, SYMBOLS);
    memset(bits, 5, DISTANCES);
    make_code(distances, bits, DISTANCES);
}

/* The bits of both codes' symbols are written in a code too, whose symbols 16 to 18 are repetitions. */
static void own_codes(struct stream *s, struct code *literals, struct code *distances)
{
    static const unsigned char order[19] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    const int n = (int)take(s, 5) + 257, m = (int)take(s, 5) + 1, given = (int)take(s, 4) + 4;
    unsigned char bits[SYMBOLS + 32] = {0};
    for (int i = 0; i < given; i++)
        bits[order[i]] = (unsigned char)take(s, 3);
    make_code(literals, bits, 19);
    for (int i = 0; i < n + m;) {
        const int symbol = take_symbol(s, literals);
        const int value = symbol < 16 ? symbol : symbol == 16 ? bits[i - 1] : 0;
        int times = symbol < 16    ? 1
                    : symbol == 16 ? 3 + (int)take(s, 2)
                    : symbol == 17 ? 3 + (int)take(s, 3)
                                   : 11 + (int)take(s, 7);
        assert(i + times <= n + m);
        for (; times > 0; times--)
            bits[i++] = (unsigned char)value;
    }
    make_code(literals, bits, n);
    make_code(distances, bits + n, m);
}

/* Lengths from 3, distances from 1 on: after the first few, 4 of the former and 2 of the latter for each bit more. */
static void take_block(struct stream *s, const struct code *literals, const struct code *distances)
{
    for (int symbol; (symbol = take_symbol(s, literals)) != END;) {
        if (symbol < LITERALS) {
            put(s, (unsigned char)symbol);
            continue;
        }
        symbol -= LENGTH_BASE;
        const int more = symbol < 8 || symbol == 28 ? 0 : symbol / 4 - 1;
        const int base = symbol < 8 ? symbol : (4 + symbol % 4) << more;
        int length = symbol == 28 ? 258 : 3 + base + (int)take(s, more);
        const int far = take_symbol(s, distances), bits = far < 4 ? 0 : far / 2 - 1;
        const size_t distance = (size_t)(1 + (far < 4 ? far : ((2 + far % 2) << bits) + (int)take(s, bits)));
        assert(distance <= s->written && distance <= WINDOW);
        for (; length > 0; length--)
            put(s, s->window[(s->written - distance) % WINDOW]);
    }
}

static void take_stored(struct stream *s)
{
    take(s, s->count % 8);
    const unsigned size = take(s, 16);
    take(s, 16);
    for (unsigned i = 0; i < size; i++)
        put(s, (unsigned char)take(s, 8));
}

static void unpack(void)
{
    static struct stream s;
    static struct code literals, distances;
    s.from = mf_packed;
    s.text = mf_packed_texts;
    for (int is_last = 0; !is_last;) {
        is_last = (int)take(&s, 1);
        const unsigned kind = take(&s, 2);
        if (kind == STORED) {
            take_stored(&s);
            continue;
        }
        if (kind == FIXED)
            fixed_codes(&literals, &distances);
        else
            own_codes(&s, &literals, &distances);
        take_block(&s, &literals, &distances);
    }
    assert(!s.text->to);
}

void mf_unpack_texts(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, unpack);
}
