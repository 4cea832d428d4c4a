/* Solver "quads" of a GPU: extremes and means of bytes over windows of neighbours, four outputs a word
 * (kernels/quads.cl): what pictures are eroded, dilated and blurred by. A thread reads the lines of its outputs once;
 * each element of a line costs two operations of 32 bits for four outputs, of a mean four. */
#include <stdio.h>

#include "form.h"
#include "texts.h"

enum { THREADS = 128, CHUNK = 16, MOST_OUTS = 4, LEAST_THREADS = 1 << 15 };

/* See kernels/quads.cl. column: the kept loop of a line's columns; channel: that of their channels, or the same one. */
struct quads_form {
    int means, rows, along, gap, outs, apart, batch, row_kept, row_reduced, column, channel, of_columns;
    int64_t across, high, low, lines;
};

/* Whether a result is a mean, sum / count as it is. */
static int is_mean(const struct problem *problem)
{
    const struct pool *finish = &problem->program.finish;
    const struct node *node = &finish->node[problem->program.output[0]];
    if (node->op != OP_div || node->cls != CLS_F64 || finish->node[node->arg[1]].op != OP_COUNT)
        return 0;
    node = &finish->node[node->arg[0]];
    while (node->op == OP_CONVERT && (node->cls == CLS_F64 || (node->cls == CLS_U64 && problem->out_type[0] == DT_u8)))
        node = &finish->node[node->arg[0]];
    return node->op == OP_STATE;
}

/* Whether all that is asked for is the least or the greatest one of bytes as they are, or their mean as a byte. */
static int is_of_bytes(const struct problem *problem, struct quads_form *form)
{
    const struct program *program = &problem->program;
    const struct reducer *reducer = &program->reducer[0];
    const int operand = mf_gpu_only_operand(problem);
    if (operand < 0 || program->reducer_count != 1 || problem->output_count != 1 || reducer->kind != RED_FOLD ||
        program->map.node[reducer->arg[0]].op != OP_OPERAND)
        return 0;
    const enum dtype type = problem->in_type[operand];
    form->means = reducer->fold == FOLD_SUM && is_mean(problem);
    return (type == DT_u8 || type == DT_i8) && problem->out_type[0] == type &&
           (form->means || ((reducer->fold == FOLD_MIN || reducer->fold == FOLD_MAX) &&
                            program->finish.node[program->output[0]].op == OP_STATE));
}

/* Which loops are a line, and which one goes from line to line. */
static int find_lines(const struct problem *problem, struct quads_form *form)
{
    enum { MOST_BEHIND = 48, MOST_ROWS = 12, LEAST_ACROSS = 32, MOST_ACROSS = 1 << 30, MOST_READ = 128 };
    const struct nest *nest = &problem->memory;
    const int64_t *in = nest->in[mf_gpu_only_operand(problem)], *out = nest->out[0];
    const int last = nest->kept - 1, two = nest->reduced == 2, along = nest->kept + nest->reduced - 1;
    if (!nest->kept || nest->reduced < 1 || nest->reduced > 2 || in[last] != 1 || out[last] != 1)
        return 0;
    form->column = form->channel = last;
    form->across = nest->size[last];
    const int is_row = !two && (in[along] < 1 || in[along] > MOST_BEHIND || nest->size[along] > MOST_BEHIND ||
                                in[along] * (nest->size[along] - 1) > MOST_BEHIND);
    if (last > 0 && !is_row && in[last - 1] == form->across && out[last - 1] == form->across &&
        in[along] % form->across == 0 && mf_mul(form->across, nest->size[last - 1], &form->across))
        form->column = last - 1; /* channels */
    const int64_t elements = is_row ? 1 : nest->size[along], gap = is_row ? 1 : in[along];
    form->row_reduced = two ? nest->kept : is_row ? along : -1;
    form->row_kept = form->row_reduced < 0 ? -1 : form->column - 1;
    form->lines = form->row_kept < 0 ? 1 : nest->size[form->row_kept];
    const int64_t rows = form->row_reduced < 0 ? 1 : nest->size[form->row_reduced];
    form->apart = gap >= CHUNK;
    if (gap < 1 || gap > MOST_ACROSS || elements > (form->apart ? MOST_ROWS : MOST_BEHIND) || rows > MOST_ROWS ||
        (!form->apart && (elements - 1) * gap > MOST_BEHIND) || form->across < LEAST_ACROSS ||
        form->across > MOST_ACROSS || form->across + (elements - 1) * gap > INT32_MAX - MOST_READ)
        return 0;
    form->rows = (int)rows;
    form->along = (int)elements;
    form->gap = (int)gap;
    return 1;
}

/* Whether window w moves along these loops only, by `kept` and 1, so that each output has an element inside. */
static int moves_so(const struct nest *nest, int w, int kept, int reduced, int64_t *step)
{
    const struct window *window = &nest->window[w];
    *step = kept < 0 ? 0 : window->step[kept];
    for (int l = 0; l < nest->kept + nest->reduced; l++)
        if (window->step[l] && l != kept && l != reduced)
            return 0;
    if (window->step[reduced] != 1 || *step < 0 || *step > INT32_MAX || window->offset < -INT32_MAX ||
        window->offset > INT32_MAX)
        return 0;
    const int64_t farthest = kept < 0 ? 0 : *step * (nest->size[kept] - 1);
    return window->offset + nest->size[reduced] > 0 && window->offset + farthest < window->extent;
}

/* What of a line is there, and how windows move: at most one of them along it, one from line to line. */
static int find_windows(const struct problem *problem, struct quads_form *form, int64_t *row_step)
{
    const struct nest *nest = &problem->memory;
    const int along = nest->kept + nest->reduced - 1;
    const int64_t channels = form->column < form->channel ? nest->size[form->channel] : 1;
    int rows = 0;
    form->low = 0;
    form->high = form->across + (int64_t)(form->along - 1) * form->gap;
    for (int w = 0; w < nest->window_count; w++) {
        const struct window *window = &nest->window[w];
        int64_t step;
        if (form->row_reduced != along && window->step[along]) {
            if (form->of_columns || !moves_so(nest, w, form->column, along, &step) || step != 1 ||
                form->gap != channels)
                return 0;
            form->of_columns = 1 << w;
            form->low = window->offset < 0 ? -window->offset * channels : 0;
            if (window->extent < form->high / channels + window->offset)
                form->high = (window->extent - window->offset) * channels;
        } else if (rows++ || form->row_reduced < 0 || !moves_so(nest, w, form->row_kept, form->row_reduced, row_step))
            return 0;
    }
    return 1;
}

static int find_form(const struct mf_plan *plan, struct quads_form *form)
{
    const struct problem *problem = &plan->problem;
    const struct nest *nest = &problem->memory;
    enum { MOST_WORDS = 56 /* that a thread reads together */, FEW = 9 };
    enum { MOST = 81, MOST_APART = 25 /* more are for others, or take seconds to compile */ };
    int64_t row_step = 1;
    *form = (struct quads_form){.outs = 1};
    if (problem->kept_total < 1 || !is_of_bytes(problem, form) || problem->reduced_total < 2 ||
        problem->kept_total > INT32_MAX || !find_lines(problem, form) ||
        problem->reduced_total > (form->apart ? MOST_APART : MOST) || !find_windows(problem, form, &row_step))
        return 0;
    const int64_t *in = nest->in[mf_gpu_only_operand(problem)];
    const int has_rows = form->row_kept >= 0, few = problem->reduced_total <= FEW && !form->apart;
    if (has_rows && in[form->row_kept] == in[form->row_reduced] && row_step == 1)
        while (form->outs < MOST_OUTS && form->outs < form->lines &&
               problem->kept_total / (2 * form->outs * CHUNK) >= LEAST_THREADS)
            form->outs *= 2;
    else if (few && has_rows && form->gap == 1 && in[form->row_kept] > in[form->row_reduced] && form->along > 1)
        return 0; /* patches reads them together */
    const int words = (CHUNK + (form->apart ? 0 : (form->along - 1) * form->gap) + 3) / 4 + 1;
    form->batch = mf_clamp(few ? MOST_WORDS / words : 1, 1, form->outs + form->rows - 1);
    return 1;
}

static int applicable(const struct mf_plan *plan)
{
    struct quads_form form;
    return find_form(plan, &form);
}

static mf_status make(struct mf_plan *plan)
{
    const struct problem *problem = &plan->problem;
    struct quads_form form;
    find_form(plan, &form);
    struct gpu_choice choice = {.kernel = mf_text_quads_cl, .threads = THREADS, .vector = 1, .vector_loop = -1};
    const int64_t chunks = (form.across - 1) / CHUNK + 1, blocks = (form.lines - 1) / form.outs + 1;
    const int64_t planes = problem->kept_total / (form.across * form.lines);
    choice.blocks = (chunks * blocks * planes - 1) / THREADS + 1;
    const int64_t own[] = {chunks,   mf_gpu_divisor(chunks), blocks, mf_gpu_divisor(blocks), form.across, form.low,
                           form.high};
    for (int i = 0; i < (int)(sizeof own / sizeof *own); i++)
        choice.own[i] = own[i];
    const enum dtype type = problem->in_type[mf_gpu_only_operand(problem)];
    mf_text_add(&choice.macros,
                "#define ROWS %d\n#define ALONG %d\n#define GAP %d\n#define APART %d\n#define OUTS %d\n"
                "#define BATCH %d\n#define ROW_KEPT %d\n"
                "#define ROW_REDUCED %d\n#define OF_COLUMNS %d\n#define IS_SIGNED %d\n#define IS_MIN %d\n"
                "#define MEANS %d\n",
                form.rows, form.along, form.gap, form.apart, form.outs, form.batch, form.row_kept, form.row_reduced,
                form.of_columns, type == DT_i8, problem->program.reducer[0].fold == FOLD_MIN, form.means);
    snprintf(choice.text, sizeof choice.text, "%d by %d outputs of %d by %d bytes a thread", form.outs, CHUNK,
             form.rows, form.along);
    return mf_gpu_make(plan, &choice);
}

const struct solver mf_gpu_quads = {
    "quads",        "extremes and means of bytes over windows, four outputs a word",
    applicable,     make,
    mf_gpu_execute, mf_gpu_print,
    mf_gpu_forget,
};
