/* The tables of kernels of the instruction sets that this machine has. */
#ifndef MF_TESTS_KERNEL_TABLES_H
#define MF_TESTS_KERNEL_TABLES_H

#include "../src/cpu/kernels.h"
#include "check.h"

void mf_kernels_scalar(struct kernels *k);
void mf_kernels_sse2(struct kernels *k);
void mf_kernels_avx2(struct kernels *k);
void mf_kernels_avx512(struct kernels *k);
void mf_kernels_neon(struct kernels *k);

/* Calls test with what fills each table, and whether that is full: those of scalar and sse2 are sparse. */
static void test_tables(void (*test)(void (*fill)(struct kernels *), int full))
{
    test(mf_kernels_scalar, 0);
#ifdef MF_HAVE_X86
    test(mf_kernels_sse2, 0);
    if (__builtin_cpu_supports("avx2")) /* such a processor has F16C too */
        test(mf_kernels_avx2, 1);
    else
        check_skip("avx2", "this processor has no AVX2");
    if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        test(mf_kernels_avx512, 1);
    else
        check_skip("avx512", "this processor has no AVX-512");
#endif
#ifdef MF_HAVE_NEON
    test(mf_kernels_neon, 1);
#endif
}

#endif
