/* Test data: the same on every machine, from a seed, adapted to the element type. */
#ifndef MF_CLI_VALUES_H
#define MF_CLI_VALUES_H

#include <dlpack/dlpack.h>
#include <stdint.h>

/* VALUES(name, what): the kinds of data. */
#define VALUES_KINDS                                                                       \
    VALUES(normal, "bell-shaped around 0; integers: every bit pattern")                    \
    VALUES(uniform, "0 to 1; integers: 0 to 100")                                          \
    VALUES(integers, "-8 to 8; unsigned: 0 to 16")                                         \
    VALUES(wide, "magnitudes from 2^-20 to 2^20 (8-bit floats: 2^-6 to 2^6)")              \
    VALUES(special, "now and then NaN, infinities, -0, denormals, the greatest and least") \
    VALUES(ones, "1")                                                                      \
    VALUES(ties, "-1, 0, -0 and 1")

enum values_kind {
#define VALUES(name, what) VALUES_##name,
    VALUES_KINDS
#undef VALUES
        VALUES_COUNT
};

extern const char *const values_kind_names[VALUES_COUNT], *const values_kind_whats[VALUES_COUNT];

/* A counter-based generator: element number n of stream `seed`. (Steele, Lea, Flood: Fast splittable pseudorandom
 * number generators, 2014; the finaliser is Stafford's.) */
static inline uint64_t values_bits(uint64_t seed, uint64_t n)
{
    uint64_t z = seed + (n + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* memory[0 ... count-1] = data of this kind. */
void values_fill(void *memory, DLDataType dtype, int64_t count, enum values_kind kind, uint64_t seed);

/* The element as "0x3f800000 (1)"; text has room for 64. */
char *values_print(const void *element, DLDataType dtype, char *text);
/* The element in decimal, as short as reads back to the same. */
char *values_decimal(const void *element, DLDataType dtype, char *text);

#endif
