/* The expression, parsed and typed: a map, reducers over it, and a finish. */
#ifndef MF_EXPR_H
#define MF_EXPR_H

#include "cpu/kernels.h" /* enum fold */
#include "error.h"

enum op {
    OP_OPERAND, /* node.index: which input */
    OP_CONST,   /* node.value */
    OP_CONVERT, /* arg[0] in another class */
    OP_CAST,    /* arg[0] rounded to node.dtype, in that type's class */
    OP_STATE,   /* finish only: part node.part of reducer node.index */
    OP_COUNT,   /* finish only: how many elements took part */
    OP_FIRST_MAP,
    OP_BEFORE_MAPS = OP_FIRST_MAP - 1,
#define MAP(name, arity, domain, result) OP_##name,
#include "ops.def"
#undef MAP
    OP_END
};

enum { MAX_NODES = 256, MAX_REDUCERS = 32, MAX_REDUCER_ARGS = 8 };

union value {
    float f32;
    double f64;
    int64_t i64;
    uint64_t u64;
};

struct node {
    enum op op;
    enum cls cls;
    enum dtype dtype; /* NumPy's type of the value; bool in any class is 0 or 1 */
    int weak;         /* a literal: takes the other operand's type */
    int arg[3];       /* earlier nodes of the same pool, -1 where none */
    int index, part;
    union value value;
};

/* Nodes in an order in which arguments come first; equal nodes are one node. */
struct pool {
    int count;
    struct node node[MAX_NODES];
};

enum reducer_kind { RED_FOLD, RED_MOMENTS, RED_LSE, RED_ARG, RED_USER };

struct reducer {
    enum reducer_kind kind;
    enum fold fold;                       /* RED_FOLD; RED_ARG: FOLD_MIN or FOLD_MAX */
    enum cls cls;                         /* of the arguments */
    int arg_count, arg[MAX_REDUCER_ARGS]; /* map nodes */
    const struct operation *user;
};

/* One step of an operation given as text: numbers in, numbers out. Its leaves are OP_STATE nodes: part k of the left
 * state, or argument k (index 0), part k of the right state (index 1). */
struct stage {
    struct pool pool;
    int count, root[MAX_REDUCER_ARGS]; /* what comes out, in the operation's type */
};

/* An operation given as text: a state is part_count numbers of one type, which is f32, f64, i64 or u64. */
struct recipe {
    enum dtype type;
    int ordered, arg_count, part_count;
    union value identity[MAX_REDUCER_ARGS];
    struct stage lift, combine, finish;
};

/* A user's operation as the device keeps it. */
struct operation {
    mf_operation is;       /* for all solvers of the CPU but the reference */
    mf_operation plain;    /* for the reference */
    struct recipe *recipe; /* null: given as callbacks, which run on the CPU only */
    void *blocks;          /* context of a recipe's callbacks */
    struct operation *next;
    char name[64], text[];
};

struct program {
    struct pool map;    /* evaluated for every reduced element */
    struct pool finish; /* evaluated for every output element */
    int reducer_count, output_count;
    struct reducer reducer[MAX_REDUCERS];
    int output[MF_MAX_OUTPUTS]; /* finish nodes */
    int uses_count;             /* some finish node is OP_COUNT */
    const char *needs_element;  /* a reducer without an identity ("mean", "argmax" ...), or null */
};

/* Parses text for operands of these types. Errors: MF_ERROR_EXPRESSION, MF_ERROR_TYPE, with the position. */
mf_status mf_expr_parse(const char *text, int input_count, const enum dtype *types, const struct operation *operations,
                        struct program *program);

/* The text of an operation. Errors: MF_ERROR_EXPRESSION, MF_ERROR_TYPE, with the position; name is its name then too,
 * as far as it was read. */
mf_status mf_recipe_parse(const char *text, char name[64], struct recipe *recipe);

/* Whether an expression already has a meaning for this name. */
int mf_expr_name_taken(const char *name);

/* ---- types.c ---- */

struct dtype_info {
    const char *name;
    int size;
    uint8_t code, bits;
    enum cls cls;
};
extern const struct dtype_info mf_dtypes[DT_COUNT];
extern const char *const mf_class_names[CLS_COUNT];

/* The dtype of a DLPack type; -1 when modefold does not have it. */
int mf_dtype_find(DLDataType type);
/* DLPack's number of the device whose memory this is. */
int mf_tensor_memory(const DLTensor *tensor);
/* By name; -1 when there is none. */
int mf_dtype_named(const char *name, size_t length);
/* NumPy's result type of two types; bf16 and the 8-bit floats by the same idea (numerics.md). */
enum dtype mf_dtype_promote(enum dtype a, enum dtype b);
/* The float type NumPy computes functions of this type in (sqrt of i16 is f32). */
enum dtype mf_dtype_float(enum dtype type);

static inline int mf_cls_is_float(enum cls cls)
{
    return cls == CLS_F32 || cls == CLS_F64;
}

/* A type whose stored form is its class's value. */
static inline int mf_is_class_type(enum dtype type)
{
    return type == DT_f32 || type == DT_f64 || type == DT_i64 || type == DT_u64;
}

/* Bytes of one value of a class. */
static inline size_t mf_cls_size(enum cls cls)
{
    return cls == CLS_F32 ? 4 : 8;
}

#endif
