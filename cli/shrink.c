/* Makes a failing problem small: every step tries something simpler and keeps it if the finding stays. */
#include "verify.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "modes.h" /* src/ */

struct shrinker {
    struct verifier verifier; /* the one device and solver of the finding */
    struct problem_line *best, trial;
    struct finding *finding;
    struct timespec end;
};

static int out_of_time(const struct shrinker *s)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec > s->end.tv_sec || (now.tv_sec == s->end.tv_sec && now.tv_nsec > s->end.tv_nsec);
}

/* Keeps the trial if it is another problem that shows the same kind of finding. */
static int keep_if_failing(struct shrinker *s)
{
    struct finding finding;
    struct problem_line *again;
    char before[PROBLEM_TEXT], after[PROBLEM_TEXT], error[256];
    problem_print(s->best, before, sizeof before);
    problem_print(&s->trial, after, sizeof after);
    if (!strcmp(before, after) || out_of_time(s) || !(again = malloc(sizeof *again)))
        return 0;
    int fails = !problem_parse(after, again, error, sizeof error) &&
                verify_problem(&s->verifier, again, &finding) == s->finding->kind;
    if (fails) {
        *s->best = *again;
        *s->finding = finding;
    }
    free(again);
    return fails;
}

/* ---- the expression ---- */

static int is_operator(char c)
{
    return c && strchr("+-*/%<>=!&|^", c) != NULL;
}

static const char *closing(const char *open)
{
    int depth = 0;
    for (const char *c = open; *c; c++) {
        depth += (*c == '(') - (*c == ')');
        if (!depth)
            return c;
    }
    return NULL;
}

/* Part number `part` between open and close: parts are separated by commas or operators outside of inner parentheses.
 * 0 when there are fewer. */
static int find_part(const char *open, const char *close, int part, const char **from, const char **to)
{
    int depth = 0, number = 0;
    *from = open + 1;
    for (const char *c = open + 1; c <= close; c++) {
        int at_separator = !depth && (c == close || *c == ',' || (is_operator(*c) && c > *from));
        if (at_separator && number++ == part) {
            *to = c;
            while (*from < *to && (is_operator(**from) || **from == '~'))
                ++*from;
            return *to > *from;
        }
        if (at_separator) {
            while (c + 1 < close && is_operator(c[1]))
                c++;
            *from = c + 1;
        }
        depth += (*c == '(') - (*c == ')');
    }
    return 0;
}

/* Replaces a call or a pair of parentheses by one of its parts. */
static int shrink_expression(struct shrinker *s)
{
    int changed = 0;
    for (int i = 0; s->best->expression[i]; i++)
        for (int part = 0; part < 3 && s->best->expression[i] == '('; part++) {
            const char *text = s->best->expression, *open = text + i, *close = closing(open), *name = open, *from, *to;
            if (!close || !find_part(open, close, part, &from, &to))
                break;
            while (name > text && (isalnum((unsigned char)name[-1]) || name[-1] == '.'))
                name--;
            s->trial = *s->best;
            snprintf(s->trial.expression, sizeof s->trial.expression, "%.*s%.*s%s", (int)(name - text), text,
                     (int)(to - from), from, close + 1);
            if (keep_if_failing(s)) {
                changed = 1;
                i = -1;
                break;
            }
        }
    return changed;
}

/* Only result number k. */
static int keep_output(struct shrinker *s, int k)
{
    const char *from = s->best->expression;
    s->trial = *s->best;
    for (int i = 0; i < k; i++)
        from = strchr(from, ';') + 1;
    snprintf(s->trial.expression, sizeof s->trial.expression, "%.*s", (int)strcspn(from, ";"), from);
    s->trial.output_count = 1;
    struct problem_tensor *o = &s->trial.tensor[MF_MAX_INPUTS];
    *o = s->best->tensor[MF_MAX_INPUTS + k];
    if (o->memory >= MF_MAX_INPUTS)
        o->memory = MF_MAX_INPUTS;
    return keep_if_failing(s);
}

static int shrink_outputs(struct shrinker *s)
{
    for (int k = 0; s->best->output_count > 1 && k < s->best->output_count; k++)
        if (keep_output(s, k))
            return 1;
    return 0;
}

/* ---- sizes ---- */

static void set_size(struct problem_tensor *t, int d, int64_t size)
{
    int least = t->row_major;
    t->shape[d] = size;
    if (least)
        problem_set_row_major(t);
}

/* Gives a mode another size wherever it stands alone. */
static void set_mode(struct shrinker *s, const struct modes *modes, int mode, int64_t size)
{
    for (int i = 0; i < modes->input_count; i++)
        for (int d = 0; d < modes->input[i].rank; d++) {
            const struct mode_term *t = &modes->input[i].term[d];
            if (t->parts == 1 && t->coefficient[0] == 1 && !t->offset && t->mode[0] == mode)
                set_size(&s->trial.tensor[i], d, size);
        }
    for (int k = 0; k < s->trial.output_count; k++)
        for (int d = 0; d < modes->output_rank; d++)
            if (modes->output_mode[d] == mode)
                set_size(&s->trial.tensor[MF_MAX_INPUTS + k], d, size);
    char key[8], *at;
    snprintf(key, sizeof key, "%c=", modes->letter[mode]);
    if (!(at = strstr(s->trial.modes, key)))
        return;
    char rest[sizeof s->trial.modes];
    snprintf(rest, sizeof rest, "%s", at + 2 + strspn(at + 2, "0123456789"));
    snprintf(at + 2, sizeof s->trial.modes - (size_t)(at + 2 - s->trial.modes), "%lld%s", (long long)size, rest);
}

static int64_t mode_size(const struct problem_line *line, const struct modes *modes, int mode)
{
    DLTensor inputs[MF_MAX_INPUTS], output = problem_dltensor(&line->tensor[MF_MAX_INPUTS]);
    int64_t size[MF_MAX_MODES];
    for (int i = 0; i < line->input_count; i++)
        inputs[i] = problem_dltensor(&line->tensor[i]);
    return mf_modes_sizes(modes, inputs, &output, size) == MF_OK ? size[mode] : -1;
}

/* 1, half, one less. */
static int64_t smaller(int64_t size, int choice)
{
    return choice == 0 ? (size > 1) : choice == 1 ? size / 2 : size - 1;
}

static int shrink_sizes(struct shrinker *s)
{
    int changed = 0;
    struct modes *modes = malloc(sizeof *modes);
    if (!modes || mf_modes_parse(s->best->modes, modes) != MF_OK) {
        free(modes);
        return 0;
    }
    for (int m = 0; m < modes->mode_count; m++)
        for (int choice = 0; choice < 3; choice++) {
            int64_t size = mode_size(s->best, modes, m);
            if (size < 1)
                break;
            s->trial = *s->best;
            set_mode(s, modes, m, smaller(size, choice));
            if (keep_if_failing(s)) {
                changed = 1;
                choice = choice == 2 ? 1 : choice - 1;
            }
        }
    for (int i = 0; i < modes->input_count; i++)
        for (int d = 0; d < modes->input[i].rank; d++)
            for (int choice = 0; choice < 3 && modes->input[i].term[d].parts > 1; choice++) {
                s->trial = *s->best;
                set_size(&s->trial.tensor[i], d, smaller(s->best->tensor[i].shape[d], choice));
                changed |= keep_if_failing(s);
            }
    free(modes);
    return changed;
}

/* ---- the rest ---- */

static int shrink_layout(struct shrinker *s)
{
    int changed = 0;
    for (int t = 0; t < PROBLEM_TENSORS; t++) {
        if (!s->best->tensor[t].item)
            continue;
        s->trial = *s->best;
        s->trial.tensor[t].memory = t;
        problem_set_row_major(&s->trial.tensor[t]);
        changed |= keep_if_failing(s);
        s->trial = *s->best;
        problem_least_offset(&s->trial.tensor[t], &s->trial.tensor[t].offset);
        changed |= keep_if_failing(s);
    }
    return changed;
}

static int shrink_options(struct shrinker *s)
{
    int changed = 0;
    static const enum values_kind kinds[] = {VALUES_ones, VALUES_integers, VALUES_ties, VALUES_normal};
    for (int i = 0; i < 4 && kinds[i] != s->best->data; i++) {
        s->trial = *s->best;
        s->trial.data = kinds[i];
        s->trial.seed = 1;
        changed |= keep_if_failing(s);
    }
    s->trial = *s->best;
    s->trial.order = 0;
    changed |= keep_if_failing(s);
    s->trial = *s->best;
    s->trial.threads = 0;
    return changed | keep_if_failing(s);
}

/* The last operand goes when the expression does not name it. */
static int shrink_operands(struct shrinker *s)
{
    int last = s->best->input_count - 1;
    const char *arrow = strstr(s->best->modes, "->"), *comma = arrow;
    for (const char *c = s->best->expression; *c; c++)
        if (*c == 'a' + last && !isalnum((unsigned char)c[1]) &&
            (c == s->best->expression || !isalnum((unsigned char)c[-1])))
            return 0;
    if (last < 1 || !arrow)
        return 0;
    while (comma > s->best->modes && *comma != ',')
        comma--;
    s->trial = *s->best;
    s->trial.input_count--;
    snprintf(s->trial.modes, sizeof s->trial.modes, "%.*s%s", (int)(comma - s->best->modes), s->best->modes, arrow);
    return keep_if_failing(s);
}

void verify_shrink(const struct verifier *verifier, struct problem_line *line, struct finding *finding, double seconds)
{
    struct shrinker *s = calloc(1, sizeof *s);
    char solver[sizeof finding->solver];
    if (!s)
        return;
    memcpy(solver, finding->solver, sizeof solver);
    s->verifier.device[0] = verifier->device[finding->device];
    s->verifier.device_count = 1;
    s->verifier.reference = verifier->reference;
    s->verifier.solver = finding->kind == FINDING_INPUT ? NULL : solver;
    s->best = line;
    s->finding = finding;
    clock_gettime(CLOCK_MONOTONIC, &s->end);
    s->end.tv_sec += (time_t)seconds;
    for (int changed = 1; changed && !out_of_time(s);) {
        changed = shrink_outputs(s);
        changed |= shrink_sizes(s);
        changed |= shrink_expression(s);
        changed |= shrink_operands(s);
        changed |= shrink_layout(s);
        changed |= shrink_options(s);
    }
    finding->device = 0;
    free(s);
}
