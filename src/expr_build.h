/* Typed nodes: what the parser builds with. Every function gives a node of the pool, or -1 after mf_fail. */
#ifndef MF_EXPR_BUILD_H
#define MF_EXPR_BUILD_H

#include "expr.h"

/* A node without arguments, all else zero. */
struct node mf_node_blank(enum op op, enum cls cls, enum dtype type);
/* The node's place in the pool: an equal one's where there is one. */
int mf_node_add(struct pool *pool, struct node node);
int mf_node_operand(struct pool *pool, int index, enum dtype type);
int mf_node_integer(struct pool *pool, int64_t value);
int mf_node_real(struct pool *pool, double value);
/* The node's value in a class, without a change of its type. */
int mf_node_convert(struct pool *pool, int node, enum cls cls);
/* The node's value rounded to a type. */
int mf_node_cast(struct pool *pool, int node, enum dtype type);
/* 1 where the value is not 0 (NaN too), in the value's class. */
int mf_node_truth(struct pool *pool, int node);
int mf_map_arity(enum op op);
/* A map with its operands converted as NumPy does. Errors: MF_ERROR_TYPE. */
int mf_node_map(struct pool *pool, enum op op, const int *args, int arg_count);

/* expr.c */

/* Names that stand for nodes of a pool, in one step of an operation's text. */
enum { MAX_NAMES = 64, NAME_SIZE = 64 };
struct scope {
    struct pool *pool;
    const char *operation, *step; /* for errors */
    int count;
    struct {
        char name[NAME_SIZE];
        int node;
    } entry[MAX_NAMES];
};

/* The expression of these names at *at, a place in text, which moves behind it. */
int mf_expr_parse_in(const char *text, const char **at, const struct scope *scope);

/* expr_reduce.c */

/* A call of reducer `name` on map nodes: adds what it needs to program->reducer and gives the finish node. -2: no such
 * reducer. */
int mf_node_reduce(struct program *program, const char *name, const int *args, int arg_count);
int mf_node_reduce_user(struct program *program, const struct operation *operation, int part, const int *args,
                        int arg_count);

#endif
