/* Evaluates a pool of nodes on blocks of positions: one kernel call a node and block, everything in the nearest
 * cache. */
#ifndef MF_CPU_BLOCK_H
#define MF_CPU_BLOCK_H

#include "cpu.h"
#include "walk.h"
#include "window.h"

/* Elements of a block: a few of its buffers fit the nearest cache. */
enum { BLOCK = 1024 };

/* Bytes of an array of n values of any class, in whole cache lines. */
static inline size_t mf_array_bytes(int64_t n)
{
    return ((size_t)n * 8 + 63) / 64 * 64;
}

/* What a plan knows: one walk an operand over the loops whose flat position blocks count. */
struct block_plan {
    const struct pool *pool;
    int used[MAX_NODES], direct[MAX_NODES]; /* node is needed; operand can be read in place when contiguous */
    int buffer[MAX_NODES];                  /* number of its buffer, -1 for none */
    int buffers;
    int calls, pieces;       /* kernel calls a block, and the pieces of each while the next block is fetched */
    int narrow;              /* bytes of the integers that it computes in, as they are in memory; 0: in classes */
    uint8_t fits[MAX_NODES]; /* narrow.c: what is known of such a node */
    int floats[MAX_NODES];   /* the node is an operand's short integers as floats, from memory */
    int truths[MAX_NODES];   /* the node, an integer that is a comparison of floats, is a bool in memory */
    struct turning {
        int64_t rows, pitch; /* rows of the last loop that are turned together, bytes apart; 0: none are */
        size_t at;           /* where they are in the evaluator's memory, behind the buffers */
    } turning[MF_MAX_INPUTS];
    size_t turned_bytes;
    struct walk walk[MF_MAX_INPUTS];
    const enum dtype *types;
    const struct nest *windows; /* operands are read through this nest's windows; null where none leaves its tensor */
};

/* roots: the nodes wanted. */
void mf_block_plan(struct block_plan *plan, const struct pool *pool, const int *roots, int root_count,
                   const enum dtype *types);

/* For blocks that follow each other through large operands: those that lie the other way round are turned, some rows
 * of the last loop at a time. After the walks are made. Returns the most positions of such rows; 0: none are turned. */
int64_t mf_block_plan_turned(struct block_plan *plan);

/* Bytes of memory that one evaluator of up to `limit` positions at a time needs (64-byte aligned). */
size_t mf_block_memory(const struct block_plan *plan, int64_t limit);

/* One thread's evaluator. */
struct block {
    const struct block_plan *plan;
    const struct kernels *kernels;
    char *memory;
    size_t stride;      /* bytes from one buffer to the next */
    int fetch_ahead;    /* operands are large: fetch the next block while this one computes */
    int aheads, shares; /* entries of ahead, and in how many shares it is asked for */
    struct ahead {
        uintptr_t from;
        int64_t bytes;
    } ahead[MF_MAX_INPUTS];           /* what is still to be asked for of the next block */
    int skip;                         /* a node that is evaluated as it is stored; -1 for none */
    int copy_operands;                /* never read operands in place */
    char *redirect[MAX_NODES];        /* where a node's result is to go instead of its buffer; null: its buffer */
    int64_t turned[MF_MAX_INPUTS];    /* the first row of those that are turned; -1: none */
    int64_t cached[MF_MAX_INPUTS][3]; /* what an operand's buffer holds: offset, phase, length; length 0: nothing */
    const void *reg[MAX_NODES];       /* results of the last evaluation */
    const void *state[MAX_REDUCERS][MAX_REDUCER_ARGS]; /* leaves OP_STATE: arrays over the block */
    const void *count[CLS_COUNT];                      /* leaves OP_COUNT */
};

/* limit: the most positions one evaluation will have. */
void mf_block_start(struct block *block, const struct block_plan *plan, const struct kernels *kernels, char *memory,
                    int64_t limit);
/* Memory to be asked for while the next evaluation computes; of each operand once. */
static inline void mf_block_ahead(struct block *block, const void *from, int64_t bytes)
{
    block->ahead[block->aheads++] = (struct ahead){(uintptr_t)from, bytes};
}
/* Evaluates positions f ... f+n-1, n <= limit; base[i] is operand i at position 0. Results: block->reg. */
void mf_block_evaluate(struct block *block, const char *const *base, int64_t f, int64_t n);

/* Where a plan's outputs go. */
struct block_outputs {
    int count;
    int node[MF_MAX_OUTPUTS];
    enum dtype type[MF_MAX_OUTPUTS];
    struct walk walk[MF_MAX_OUTPUTS];
    pair_fn *last;   /* the only output's last operation can be done on the way to memory; else null */
    int raw;         /* it takes operands of the output's short type as they are: nothing is computed in a class */
    sums_fn *sums;   /* the same for sums of a 16-bit type; else null */
    int copy;        /* the only output is an operand of its own integer type: bytes are copied */
    sums_fn *copies; /* or of its own 16-bit float type: so are they, but NaNs; else null */
    int stream;      /* outputs are written past the cache */
};

/* All but the walks, which the caller makes; block is the plan of what they are computed from. */
void mf_block_plan_outputs(struct block_outputs *outputs, struct block_plan *block, const struct problem *problem,
                           const struct kernels *kernels);
/* Whether storing one output could change an operand that another output still reads in place (copy_operands). */
int mf_outputs_touch_inputs(const struct problem *problem, const struct pointers *pointers);
/* Evaluates positions f ... f+n-1 and stores the outputs: to[k] is output k at position 0. spare: room for n values. */
void mf_block_run(struct block *block, const struct block_outputs *outputs, const char *const *base, char *const *to,
                  int64_t f, int64_t n, void *spare);

#endif
