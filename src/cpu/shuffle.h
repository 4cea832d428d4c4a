/* Vectors whose elements are picked from two others by constant numbers, as many as they have, for which the integer is
 * as wide as they are: what clang, and gcc from 12 on, call __builtin_shufflevector. */
#ifndef MF_CPU_SHUFFLE_H
#define MF_CPU_SHUFFLE_H

#if defined __GNUC__ && !defined __clang__ && __GNUC__ < 12
#define MF_SHUFFLE(integer, a, b, ...) \
    __builtin_shuffle(a, b, (integer __attribute__((vector_size(sizeof(a))))){__VA_ARGS__})
#else
#define MF_SHUFFLE(integer, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#endif

#endif
