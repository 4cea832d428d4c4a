/* The loops of a problem. struct shape is filled by launch.c in this order; every field is an int64_t. */
enum { TILE = 4096, LANES = 128, WARP = 32 };

struct shape {
    int64_t kept_total, reduced_total;
    int64_t size[ROOM(LOOPS)], magic[ROOM(LOOPS)], shift[ROOM(LOOPS)]; /* v / size = v * magic >> 32 >> shift */
    int64_t in[ROOM(INPUTS)][ROOM(LOOPS)], out[OUTPUTS][ROOM(KEPT)], index[ROOM(LOOPS)];
    int64_t window_offset[ROOM(WINDOWS)], window_extent[ROOM(WINDOWS)], window_step[ROOM(WINDOWS)][ROOM(LOOPS)];
    int64_t p[10]; /* the solver's own */
    int64_t condition, blocks; /* conditional.cu */
};

/* Of one execution: elements from the pointers to position 0; whether vectors may be used. */
struct bases {
    int64_t in[ROOM(INPUTS)], out[OUTPUTS], vectors;
};

/* A kernel begins by asking for its shape, and touches no memory before that: kernels whose launch says so (gpu_launch)
 * may be there already when the one before them ends. One that has much to find out before it touches memory may take
 * its EARLY_SHAPE, and wait (FOLLOW_STREAM) then. */
#if SHAPE_IN_MEMORY
typedef GLOBAL const struct shape *shape_ptr;
#define SHAPE_PARAMETER GLOBAL const struct shape *shape_
#define SHAPE (FOLLOW_STREAM(), shape_)
#define EARLY_SHAPE SHAPE
#else
typedef const struct shape *shape_ptr;
#define SHAPE_PARAMETER const struct shape shape_
#define SHAPE (FOLLOW_STREAM(), &shape_)
#define EARLY_SHAPE (&shape_)
#endif
