/* D = A and B, bits counted, + C, for 16 rows of A and 8 of B of 256 bits: mma.m16n8k256 of one bit. Inline PTX, for
 * sm_80 and later; sm_90 has it in hardware, with "and", not with "xor". Fragments as in the PTX manual, "Matrix
 * Fragments for mma.m16n8k256": a thread has group = lane / 4 and place = lane % 4; a[0] is row group, bits 32 place
 * ... of the first 128, a[1] row group + 8, a[2] and a[3] the same of the second 128; b[0] and b[1] row group of B; c[0]
 * and c[1] row group of A, rows 2 place and 2 place + 1 of B, c[2] and c[3] row group + 8. */
#define MMA_MEMORY
/* Whether it holds for some thread of the warp. */
#define WARP_ANY(condition) __any_sync(0xffffffffu, condition)
#define MMA(d, a0, a1, a2, a3, b0, b1, c0, c1, c2, c3)                                                       \
    asm volatile("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, " \
                 "{%10,%11,%12,%13};"                                                                         \
                 : "=r"((d)[0]), "=r"((d)[1]), "=r"((d)[2]), "=r"((d)[3])                                     \
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1), "r"(c0), "r"(c1), "r"(c2), "r"(c3))
