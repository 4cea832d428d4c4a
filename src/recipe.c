/* Reads operations given as text: names, and an expression for every number of a state.
 *
 *   text     = {'ordered' | 'f32' | 'f64' | 'i64' | 'u64'} name '(' name {',' name} ')' ':'
 *              'identity' settings ';' 'lift' settings ';' 'combine' settings [';' 'finish' results] [';']
 *   settings = name '=' expression {',' name '=' expression}
 *   results  = [name '='] expression {',' [name '='] expression}
 *
 * identity sets the numbers of a state and names them by that. lift and combine set the same numbers; any other name
 * that a step sets is its own, and keeps the type that its expression has. */
#include "expr_build.h"

#include <stdio.h>

#include "scalar.h"
#include "text.h"

enum { PARTS = MAX_REDUCER_ARGS };

struct reader {
    const char *text, *at, *name;
    struct recipe *recipe;
    struct scope scope;
    char arg[PARTS][NAME_SIZE], part[PARTS][NAME_SIZE];
    int first[PARTS]; /* nodes that this step has set the state's numbers to, or -1 */
};

static void skip_blanks(struct reader *r)
{
    while (*r->at == ' ' || *r->at == '\t' || *r->at == '\n')
        r->at++;
}

static mf_status expected(const struct reader *r, const char *wanted)
{
    char found[16] = "the end";
    if (mf_is_printable(*r->at))
        snprintf(found, sizeof found, "'%c'", *r->at);
    else if (*r->at)
        snprintf(found, sizeof found, "byte 0x%02x", (unsigned char)*r->at);
    return mf_fail(MF_ERROR_EXPRESSION, "operation \"%.100s\": expected %s at character %ld, found %s", r->text, wanted,
                   (long)(r->at - r->text) + 1, found);
}

static int take(struct reader *r, char symbol)
{
    skip_blanks(r);
    if (*r->at != symbol)
        return 0;
    r->at++;
    return 1;
}

/* The word that stands next, cut to NAME_SIZE, "" where none does; returns what follows it. */
static const char *word_at(struct reader *r, char *word)
{
    int n = 0;
    skip_blanks(r);
    const char *c = r->at;
    for (; mf_is_word(*c) && (n || !mf_is_digit(*c)); c++)
        if (n < NAME_SIZE - 1)
            word[n++] = *c;
    word[n] = 0;
    return c;
}

static mf_status read_name(struct reader *r, const char *what, char *name)
{
    const char *end = word_at(r, name);
    if (!*name)
        return expected(r, what);
    if (end - r->at >= NAME_SIZE - 1)
        return mf_fail(MF_ERROR_EXPRESSION, "operation \"%.100s\": the name \"%s\" has more than %d characters",
                       r->text, name, NAME_SIZE - 2);
    r->at = end;
    return MF_OK;
}

static mf_status read_word(struct reader *r, const char *wanted)
{
    char word[NAME_SIZE], what[NAME_SIZE];
    const char *end = word_at(r, word);
    snprintf(what, sizeof what, "\"%s\"", wanted);
    if (strcmp(word, wanted) != 0)
        return expected(r, what);
    r->at = end;
    return MF_OK;
}

/* A name that is new here and means nothing yet. */
static mf_status check_name(const struct reader *r, const char *name, char (*others)[NAME_SIZE], int count)
{
    if (mf_expr_name_taken(name))
        return mf_fail(MF_ERROR_EXPRESSION, "operation %s: \"%s\" is the name of something built in", r->name, name);
    for (int i = 0; i < count; i++)
        if (!strcmp(others[i], name))
            return mf_fail(MF_ERROR_EXPRESSION, "operation %s has two \"%s\"", r->name, name);
    return MF_OK;
}

/* [ordered] [type] name(arguments): */
static mf_status read_head(struct reader *r, char *name)
{
    struct recipe *recipe = r->recipe;
    recipe->type = DT_f32;
    for (int type;;) {
        MF_TRY(read_name(r, "the operation's name", name));
        type = mf_dtype_named(name, strlen(name));
        if (!strcmp(name, "ordered"))
            recipe->ordered = 1;
        else if (type < 0)
            break;
        else if (type != DT_f32 && type != DT_f64 && type != DT_i64 && type != DT_u64)
            return mf_fail(MF_ERROR_TYPE, "operation \"%.100s\": its type is %s and must be f32, f64, i64 or u64",
                           r->text, name);
        else
            recipe->type = (enum dtype)type;
    }
    if (!take(r, '('))
        return expected(r, "'('");
    do {
        char *arg = r->arg[recipe->arg_count];
        if (recipe->arg_count == PARTS)
            return mf_fail(MF_ERROR_EXPRESSION, "operation %s has more than %d arguments", name, PARTS);
        MF_TRY(read_name(r, "an argument's name", arg));
        MF_TRY(check_name(r, arg, r->arg, recipe->arg_count));
        recipe->arg_count++;
    } while (take(r, ','));
    if (!take(r, ')'))
        return expected(r, "',' or ')'");
    return take(r, ':') ? MF_OK : expected(r, "':'");
}

/* ---- steps ---- */

/* Adds a name, or gives a known one another meaning. */
static mf_status set_name(struct reader *r, const char *name, int node)
{
    struct scope *scope = &r->scope;
    int i = 0;
    while (i < scope->count && strcmp(scope->entry[i].name, name) != 0)
        i++;
    if (i == MAX_NAMES)
        return mf_fail(MF_ERROR_EXPRESSION, "operation %s: %s has more than %d names", r->name, scope->step, MAX_NAMES);
    snprintf(scope->entry[i].name, NAME_SIZE, "%s", name);
    scope->entry[i].node = node;
    scope->count += i == scope->count;
    return MF_OK;
}

/* Number `part` of the left (0) or right (1) state, or argument `part`, by a name with something behind it. */
static mf_status add_leaf(struct reader *r, const char *name, const char *behind, int side, int part)
{
    char full[NAME_SIZE];
    enum dtype type = r->recipe->type;
    struct node leaf = mf_node_blank(OP_STATE, mf_dtypes[type].cls, type);
    leaf.index = side;
    leaf.part = part;
    snprintf(full, sizeof full, "%.*s%.1s", NAME_SIZE - 2, name, behind); /* as long as read_name lets it be */
    return set_name(r, full, mf_node_add(r->scope.pool, leaf));
}

static void begin_step(struct reader *r, const char *step, struct stage *stage)
{
    r->scope.pool = &stage->pool;
    r->scope.operation = r->name;
    r->scope.step = step;
    r->scope.count = 0;
    for (int k = 0; k < PARTS; k++)
        r->first[k] = -1;
}

/* A node in the operation's type; -1 after a failure. */
static int in_type(struct reader *r, int node)
{
    struct pool *pool = r->scope.pool;
    enum dtype type = r->recipe->type;
    int is_real = mf_cls_is_float(mf_dtypes[type].cls);
    if (node >= 0 && pool->node[node].weak && (is_real || pool->node[node].dtype == DT_i64))
        node = mf_node_convert(pool, node, mf_dtypes[type].cls); /* a literal becomes one of this class */
    return node < 0 ? -1 : mf_node_cast(pool, node, type);
}

/* name = expression: a number of the state, or a name for what follows. */
static mf_status read_setting(struct reader *r, int names_parts)
{
    struct recipe *recipe = r->recipe;
    char name[NAME_SIZE];
    MF_TRY(read_name(r, "a name", name));
    if (!take(r, '='))
        return expected(r, "'='");
    int part = 0;
    while (part < recipe->part_count && strcmp(r->part[part], name) != 0)
        part++;
    if (names_parts || part == recipe->part_count)
        MF_TRY(check_name(r, name, r->part, recipe->part_count));
    if (names_parts && part == PARTS)
        return mf_fail(MF_ERROR_EXPRESSION, "operation %s has states of more than %d numbers", r->name, PARTS);
    int node = mf_expr_parse_in(r->text, &r->at, &r->scope);
    if (names_parts && node >= 0)
        snprintf(r->part[recipe->part_count++], NAME_SIZE, "%s", name);
    if (part < recipe->part_count)
        node = in_type(r, node);
    if (node < 0)
        return mf_fail_again();
    if (part < recipe->part_count) {
        if (r->first[part] >= 0)
            return mf_fail(MF_ERROR_EXPRESSION, "operation %s: %s sets \"%s\" twice", r->name, r->scope.step, name);
        r->first[part] = node;
    }
    return names_parts ? MF_OK : set_name(r, name, node);
}

/* The settings of a step, each number of a state once. */
static mf_status read_step(struct reader *r, struct stage *stage)
{
    MF_TRY(read_word(r, r->scope.step));
    do {
        MF_TRY(read_setting(r, 0));
    } while (take(r, ','));
    stage->count = r->recipe->part_count;
    for (int k = 0; k < stage->count; k++) {
        if (r->first[k] < 0)
            return mf_fail(MF_ERROR_EXPRESSION, "operation %s: identity sets \"%s\" and %s does not", r->name,
                           r->part[k], r->scope.step);
        stage->root[k] = r->first[k];
    }
    return MF_OK;
}

/* identity: the names of the state's numbers, and their values. stage: room for it. */
static mf_status read_identity(struct reader *r, struct stage *stage)
{
    union value values[MAX_NODES];
    begin_step(r, "identity", stage);
    MF_TRY(read_word(r, "identity"));
    do {
        MF_TRY(read_setting(r, 1));
    } while (take(r, ','));
    mf_pool_evaluate(&stage->pool, NULL, values);
    for (int k = 0; k < r->recipe->part_count; k++)
        r->recipe->identity[k] = values[r->first[k]];
    memset(stage, 0, sizeof *stage);
    return take(r, ';') ? MF_OK : expected(r, "',' or ';'");
}

static mf_status read_finish(struct reader *r, struct stage *stage)
{
    char name[NAME_SIZE];
    MF_TRY(read_word(r, "finish"));
    do {
        const char *behind = word_at(r, name);
        while (*behind == ' ')
            behind++;
        if (*name && behind[0] == '=' && behind[1] != '=') {
            MF_TRY(read_setting(r, 0));
            continue;
        }
        if (stage->count == PARTS)
            return mf_fail(MF_ERROR_EXPRESSION, "operation %s has more than %d results", r->name, PARTS);
        if ((stage->root[stage->count] = in_type(r, mf_expr_parse_in(r->text, &r->at, &r->scope))) < 0)
            return mf_fail_again();
        stage->count++;
    } while (take(r, ','));
    return stage->count ? MF_OK : mf_fail(MF_ERROR_EXPRESSION, "operation %s: finish has no result", r->name);
}

/* The steps behind identity. Without finish, the numbers of the state are the results. */
static mf_status read_steps(struct reader *r)
{
    struct recipe *recipe = r->recipe;
    begin_step(r, "lift", &recipe->lift);
    for (int k = 0; k < recipe->arg_count; k++)
        MF_TRY(add_leaf(r, r->arg[k], "", 0, k));
    MF_TRY(read_step(r, &recipe->lift));
    if (!take(r, ';'))
        return expected(r, "',' or ';'");
    begin_step(r, "combine", &recipe->combine);
    for (int k = 0; k < recipe->part_count; k++) {
        MF_TRY(add_leaf(r, r->part[k], "1", 0, k));
        MF_TRY(add_leaf(r, r->part[k], "2", 1, k));
    }
    MF_TRY(read_step(r, &recipe->combine));
    int more = take(r, ';');
    begin_step(r, "finish", &recipe->finish);
    for (int k = 0; k < recipe->part_count; k++)
        MF_TRY(add_leaf(r, r->part[k], "", 0, k));
    skip_blanks(r);
    if (more && *r->at) {
        MF_TRY(read_finish(r, &recipe->finish));
        take(r, ';');
    } else {
        for (int k = 0; k < recipe->part_count; k++)
            recipe->finish.root[recipe->finish.count++] = r->scope.entry[k].node;
    }
    skip_blanks(r);
    return *r->at ? expected(r, more ? "',' or the end" : "',' or ';'") : MF_OK;
}

mf_status mf_recipe_parse(const char *text, char name[64], struct recipe *recipe)
{
    struct reader *r = mf_calloc(sizeof *r);
    if (!r)
        return MF_ERROR_MEMORY;
    memset(recipe, 0, sizeof *recipe);
    *name = 0;
    r->text = r->at = text;
    r->name = name;
    r->recipe = recipe;
    mf_status status = read_head(r, name);
    if (status == MF_OK)
        status = read_identity(r, &recipe->lift);
    if (status == MF_OK)
        status = read_steps(r);
    mf_free(r);
    return status;
}
