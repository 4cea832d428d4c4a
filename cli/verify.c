/* Compares every solver with the reference. */
#include "verify.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lists.h"

enum { AUTOMATIC = VERIFY_SOLVERS - 1 };

/* One problem under way. */
struct run {
    struct verifier *verifier;
    const struct problem_line *line;
    struct problem_memory memory;
    struct finding *finding;
    mf_status expected;
};

static enum finding_kind found(struct run *run, enum finding_kind kind, int device, const char *solver,
                               mf_status status)
{
    struct finding *f = run->finding;
    f->kind = kind;
    f->device = device;
    f->status = status;
    f->reference_status = run->expected;
    snprintf(f->solver, sizeof f->solver, "%s", solver);
    if (kind == FINDING_STATUS && status != MF_OK)
        snprintf(f->sentence, sizeof f->sentence, "%s", mf_error());
    return kind;
}

static int has_solver(int kind, const char *name)
{
    int found = 0;
    for (int s = 0; list_solver(kind, s); s++)
        found |= list_is_solver(list_solver(kind, s), name);
    return found;
}

/* The name, maybe with a form, by which this solver is to run, or null: the one asked for (by a problem: if this kind
 * of device has it), or all; on a GPU, where each is compiled, the automatic choice. */
static const char *wanted_name(const struct run *run, int device, const char *name)
{
    int kind = mf_device_kind(run->verifier->device[device]);
    const char *only = run->verifier->solver;
    if (!only && (has_solver(kind, run->line->solver) || verify_is_by_name(kind, run->line->solver)))
        only = run->line->solver;
    if (!only)
        return kind == kDLCPU || !strcmp(name, "automatic") ? name : NULL;
    return list_is_solver(name, only) ? only : NULL;
}

/* How one solver is run. */
struct way {
    const char *solver; /* null: the automatic choice */
    int use_fold;       /* by mf_fold */
    int near;           /* compared with the bound instead of bits */
};

/* Runs and compares; *ran says whether the solver applied. */
static enum finding_kind compare_way(struct run *run, int device, const struct problem_line *line,
                                     const struct way *way, int *ran)
{
    mf_device *handle = run->verifier->device[device];
    const char *name = way->solver ? way->solver : way->near ? "log-certified" : "automatic";
    problem_memory_reset(&run->memory);
    mf_status status = mf_device_kind(handle) == kDLCPU
                           ? problem_run(handle, line, &run->memory, way->solver, 0, way->use_fold)
                           : problem_run_on_device(handle, line, &run->memory, way->solver, way->use_fold);
    *ran = !(way->solver && status == MF_ERROR_UNSUPPORTED && run->expected != status);
    if (!*ran)
        return FINDING_NONE;
    if (status != run->expected)
        return found(run, FINDING_STATUS, device, name, status);
    if (way->near && status == MF_OK)
        verify_forgive(run->verifier->reference, line, &run->memory);
    if (problem_compare(run->line, &run->memory, &run->finding->difference))
        return found(run, status == MF_OK ? FINDING_VALUE : FINDING_REFUSAL, device, name, status);
    return FINDING_NONE;
}

/* A solver (null: the automatic choice). A choice whose bits are its own is run in the contract's order too. */
static enum finding_kind compare_solver(struct run *run, int device, const char *solver, int *ran)
{
    const struct problem_line *line = run->line;
    struct way way = {solver, !solver && !line->order && !line->threads, 0};
    if (solver || !verify_is_free(run->verifier->device[device], line))
        return compare_way(run, device, line, &way, ran);
    way.near = 1;
    if (verify_has_bound(line)) {
        enum finding_kind kind = compare_way(run, device, line, &way, ran);
        if (kind)
            return kind;
    }
    struct problem_line *strict = malloc(sizeof *strict);
    if (!strict)
        abort();
    *strict = *line;
    strict->order = MF_ORDER_CONTRACT;
    way = (struct way){NULL, 0, 0};
    enum finding_kind kind = compare_way(run, device, strict, &way, ran);
    free(strict);
    return kind;
}

/* The solver that is asked for, if its order is its own and the line's errors by it are known. */
static enum finding_kind compare_by_name(struct run *run, int device)
{
    const int kind = mf_device_kind(run->verifier->device[device]);
    const char *asked = run->verifier->solver ? run->verifier->solver : run->line->solver;
    const struct way way = {asked, 0, 1};
    int ran;
    if (!verify_is_by_name(kind, asked) || !verify_knows_errors(asked, run->line))
        return FINDING_NONE;
    enum finding_kind found = compare_way(run, device, run->line, &way, &ran);
    run->verifier->ran_by_name += device == 0 && ran && !found;
    return found;
}

static enum finding_kind compare_all(struct run *run)
{
    for (int d = 0; d < run->verifier->device_count; d++) {
        int ran, device_kind = mf_device_kind(run->verifier->device[d]);
        for (int s = 0; list_solver(device_kind, s); s++) {
            const char *name = wanted_name(run, d, list_solver(device_kind, s));
            if (!name || (!strcmp(name, "reference") && !run->verifier->solver))
                continue;
            enum finding_kind here = compare_solver(run, d, name, &ran);
            if (here)
                return here;
            if (s < AUTOMATIC && d == 0)
                run->verifier->ran[s] += ran;
        }
        enum finding_kind kind = compare_by_name(run, d);
        if (kind)
            return kind;
        if (!wanted_name(run, d, "automatic"))
            continue;
        kind = compare_solver(run, d, NULL, &ran);
        if (kind)
            return kind;
        run->verifier->ran[AUTOMATIC] += d == 0;
    }
    return FINDING_NONE;
}

/* The product of all mode sizes is not at hand: the largest tensor stands for it. */
static double largest_tensor(const struct problem_line *line)
{
    double most = 0;
    for (int i = 0; i < line->input_count; i++) {
        double count = (double)problem_elements(&line->tensor[i]);
        most = count > most ? count : most;
    }
    return most;
}

enum finding_kind verify_problem(struct verifier *verifier, const struct problem_line *line, struct finding *finding)
{
    struct run run = {verifier, line, {{{0}}}, finding, MF_OK};
    memset(finding, 0, sizeof *finding);
    if (problem_memory_make(line, 1, &run.memory, finding->sentence, sizeof finding->sentence))
        return finding->kind = FINDING_PROBLEM;
    run.expected = problem_run(verifier->reference, line, &run.memory, "reference", 0, 0);
    problem_memory_expect(&run.memory);
    if (run.expected != MF_OK) { /* nothing may have been written */
        problem_memory_reset(&run.memory);
        if (problem_compare(line, &run.memory, &finding->difference))
            found(&run, FINDING_REFUSAL, 0, "reference", run.expected);
    }
    if (!finding->kind)
        compare_all(&run);
    if (!finding->kind && problem_inputs_changed(&run.memory))
        found(&run, FINDING_INPUT, 0, "some solver", MF_OK);
    verifier->problems++;
    verifier->refused += run.expected != MF_OK;
    verifier->terms += largest_tensor(line);
    problem_memory_free(&run.memory);
    return finding->kind;
}

/* ---- text ---- */

static void report_value(FILE *out, const struct problem_line *line, const struct problem_difference *d)
{
    char name[8];
    if (d->output < 0) {
        fprintf(out,
                "    byte %" PRId64 " of the memory of %s, which is no output's, became %s and was %s"
                " (%" PRId64 " such bytes)\n",
                d->byte, problem_tensor_name(d->tensor, name), d->got, d->expected, d->count);
        return;
    }
    const struct problem_tensor *t = &line->tensor[MF_MAX_INPUTS + d->output];
    fprintf(out, "    %s[", problem_tensor_name(MF_MAX_INPUTS + d->output, name));
    for (int i = 0; i < t->ndim; i++)
        fprintf(out, "%s%" PRId64, i ? "," : "", d->at[i]);
    fprintf(out, "] is %s and should be %s; %" PRId64 " of %" PRId64 " elements differ\n", d->got, d->expected,
            d->count, problem_elements(t));
}

void verify_report(FILE *out, const struct problem_line *line, const struct finding *finding)
{
    char text[PROBLEM_TEXT];
    fprintf(out, "%s\n", problem_print(line, text, sizeof text));
    if (finding->kind == FINDING_PROBLEM) {
        fprintf(out, "    cannot be set up: %s\n", finding->sentence);
        return;
    }
    fprintf(out, "    solver %s differs from the reference\n", finding->solver);
    if (finding->kind == FINDING_VALUE) {
        report_value(out, line, &finding->difference);
    } else if (finding->kind == FINDING_STATUS) {
        fprintf(out, "    it answers %s%s%s; the reference answers %s\n", mf_status_name(finding->status),
                finding->sentence[0] ? ": " : "", finding->sentence, mf_status_name(finding->reference_status));
    } else if (finding->kind == FINDING_REFUSAL) {
        fprintf(out, "    it answers %s, but wrote something before\n", mf_status_name(finding->status));
        report_value(out, line, &finding->difference);
    } else {
        fprintf(out, "    an operand, or memory around an output, was changed\n");
    }
}

static void grouped(FILE *out, long count)
{
    if (count >= 1000) {
        grouped(out, count / 1000);
        fprintf(out, ",%03ld", count % 1000);
    } else {
        fprintf(out, "%ld", count);
    }
}

void verify_summary(FILE *out, const struct verifier *verifier)
{
    const char *before = "; compared with the reference: ";
    grouped(out, verifier->problems);
    fprintf(out, " problem%s", verifier->problems == 1 ? "" : "s");
    int kind = mf_device_kind(verifier->device[0]);
    for (int s = 0; list_solver(kind, s) && s < AUTOMATIC; s++) {
        if (!verifier->ran[s])
            continue;
        fprintf(out, "%s%s ", before, list_solver(kind, s));
        grouped(out, verifier->ran[s]);
        before = ", ";
    }
    if (verifier->ran[AUTOMATIC]) {
        fprintf(out, "%sautomatic choice ", before);
        grouped(out, verifier->ran[AUTOMATIC]);
    }
    if (verifier->ran_by_name) {
        if (verifier->solver)
            fprintf(out, "%s%s, by its bound, ", before, verifier->solver);
        else
            fprintf(out, "%ssolvers by name, by their bounds, ", before);
        grouped(out, verifier->ran_by_name);
    } else if (verifier->solver && verify_is_by_name(kind, verifier->solver)) {
        fprintf(out, "; solver %s was compared with the reference in none of them", verifier->solver);
    }
    if (verifier->refused) {
        fprintf(out, "; rightly refused ");
        grouped(out, verifier->refused);
    }
    fputc('\n', out);
}
