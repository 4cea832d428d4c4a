/* What kernels/product.cl moves and multiplies with: inline PTX, for sm_80 and later. Copies of 16 bytes into shared
 * memory that pass no registers, or zeros there; groups of them, of which the oldest are waited for; and the words of
 * four 8 x 8 matrices of 16-bit elements (PTX manual, ldmatrix): thread t of a warp gives the address of row t % 8 of
 * matrix t / 8, and gets of each matrix word t % 4 of row t / 4, or TRANSPOSED the elements 2 (t % 4) and the next of
 * column t / 4. MMA_NEW is tensor_mma.cu's MMA where c is 0 before.
 * CLUSTER > 1, for sm_90 and later: so many blocks beside each other run together, wait for each other, and read each
 * other's shared memory. */
#define MMA_NEW(mma_, c, a0, a1, a2, a3, b0, b1) multiply_new(c, a0, a1, a2, a3, b0, b1)
#define COPY_PIECE(to, from, inside) copy_piece((uint32_t)__cvta_generic_to_shared(to), from, inside)
#define COMMIT() asm volatile("cp.async.commit_group;" ::: "memory")
#define AWAIT(groups) asm volatile("cp.async.wait_group %0;" ::"n"(groups) : "memory")
#define LOAD_MATRICES(r, tile, ADDRESS) \
    load_matrices(r, (uint32_t)__cvta_generic_to_shared((tile) + ADDRESS(THREAD % 32 / 8, THREAD % 8)))
#define LOAD_TRANSPOSED(r, tile, ADDRESS) \
    load_transposed(r, (uint32_t)__cvta_generic_to_shared((tile) + ADDRESS(THREAD % 32 / 8, THREAD % 8)))

static inline void copy_piece(uint32_t to, const void *from, int inside)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(inside ? 16 : 0) : "memory");
}

static inline void load_matrices(uint32_t r[4], uint32_t at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at)
                 : "memory");
}

static inline void load_transposed(uint32_t r[4], uint32_t at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at)
                 : "memory");
}

static inline void multiply_new(sum_t c[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0,
                                uint32_t b1)
{
    asm volatile("mma.sync.aligned." MMA_NAME " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%10,%10,%10};"
                 : "=f"(c[0]), "=f"(c[1]), "=f"(c[2]), "=f"(c[3])
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1), "f"(0.0f));
}

/* Four floats from global memory, not from this multiprocessor's own cache. */
static inline void read_fresh(const float *place, float v[4])
{
    asm volatile("ld.global.cg.v4.f32 {%0,%1,%2,%3}, [%4];"
                 : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3])
                 : "l"(place)
                 : "memory");
}

#if CLUSTER > 1
#define TOGETHER __cluster_dims__(CLUSTER, 1, 1)
#define WAIT_FOR_ALL() wait_for_all()
static inline void wait_for_all(void)
{
    asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

/* Four floats where block number `block` of the cluster has them at this place of its shared memory. */
static inline void read_from(int block, const float *place, float v[4])
{
    uint32_t at;
    asm("mapa.shared::cluster.u32 %0, %1, %2;"
        : "=r"(at)
        : "r"((uint32_t)__cvta_generic_to_shared(place)), "r"(block));
    asm volatile("ld.shared::cluster.v4.f32 {%0,%1,%2,%3}, [%4];"
                 : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3])
                 : "r"(at)
                 : "memory");
}
#else
#define TOGETHER
#define WAIT_FOR_ALL() BARRIER()
#endif
