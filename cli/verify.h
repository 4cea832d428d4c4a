/* Problems against the reference, bit for bit; log-space products that the library adds in an order of its own are
 * compared with their bound too, and solvers that run by name only with theirs. */
#ifndef MF_CLI_VERIFY_H
#define MF_CLI_VERIFY_H

#include <stdio.h>

#include "problem.h"

enum { VERIFY_DEVICES = 8, VERIFY_SOLVERS = 32 };

enum finding_kind {
    FINDING_NONE,
    FINDING_VALUE,   /* another value than the reference's, or a byte that is no output's was written */
    FINDING_STATUS,  /* one of the two refuses the problem, or for another reason */
    FINDING_INPUT,   /* an operand or a guard of the reference's output was written */
    FINDING_REFUSAL, /* refused, but something had been written */
    FINDING_PROBLEM  /* not compared: the problem cannot be set up here */
};

struct finding {
    enum finding_kind kind;
    int device;
    char solver[32]; /* "automatic" is the library's choice through mf_fold */
    mf_status status, reference_status;
    struct problem_difference difference;
    char sentence[512];
};

struct verifier {
    mf_device *device[VERIFY_DEVICES]; /* every problem runs on all of them */
    int device_count;
    mf_device *reference; /* the CPU */
    const char *solver;   /* only this one; null: all that apply, and the automatic choice */
    long ran
        [VERIFY_SOLVERS]; /* problems compared on device 0, by list_solver's number; the last is the automatic choice */
    long ran_by_name;     /* the same of a solver with an order of its own */
    long problems, refused; /* refused: by the library, and all solvers agree */
    double terms;           /* products of all mode sizes, summed over the problems */
};

/* Runs the problem everywhere; returns the kind of the first finding. */
enum finding_kind verify_problem(struct verifier *verifier, const struct problem_line *line, struct finding *finding);
/* ---- verify_near.c ---- */

/* Whether the library's choice for this line adds in an order of its own, so that its bits are not the reference's. */
int verify_is_free(mf_device *device, const struct problem_line *line);
/* Whether the line is one whose errors are known: of log-space products, and of solvers by name. */
int verify_has_bound(const struct problem_line *line);
/* Whether a device of this kind has a solver of this name (maybe with a form) that runs by name only, since it adds in
 * an order of its own; and whether the line's errors by it are known (null: any line's). */
int verify_is_by_name(int kind, const char *solver);
int verify_knows_errors(const char *solver, const struct problem_line *line);
/* Outputs within the bound of what is expected become that. */
void verify_forgive(mf_device *device, const struct problem_line *line, const struct problem_memory *memory);

/* ---- verify.c ---- */

/* The problem, the element, both values. */
void verify_report(FILE *out, const struct problem_line *line, const struct finding *finding);
/* Makes the problem smaller and simpler as long as it shows a finding of the same kind; line and finding become the
 * smallest one's. */
void verify_shrink(const struct verifier *verifier, struct problem_line *line, struct finding *finding, double seconds);
/* "100,000 problems: map 20,113, inner ..." */
void verify_summary(FILE *out, const struct verifier *verifier);

#endif
