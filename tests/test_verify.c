/* Problems against the reference, on one and on two threads: those of problems.txt, and random ones, each as a
 * processor of another kind would read its memory.
 * MODEFOLD_VERIFY_COUNT says how many random ones (2000), MODEFOLD_VERIFY_SEED which (1). */
#include <stdlib.h>

#include "check.h"
#include "cpu/habits.h"
#include "random.h"
#include "verify.h"

static struct verifier verifier;

static long environment_number(const char *name, long otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtol(text, NULL, 10) : otherwise;
}

/* What problem_print writes, problem_parse reads back to the same. */
static void check_round_trip(const struct problem_line *line)
{
    struct problem_line *again = malloc(sizeof *again);
    char text[PROBLEM_TEXT], text_again[PROBLEM_TEXT], error[512];
    if (!again)
        abort();
    problem_print(line, text, sizeof text);
    int failed = problem_parse(text, again, error, sizeof error);
    CHECK_MSG(!failed, "%s: %s", text, failed ? error : "");
    CHECK_MSG(failed || !strcmp(text, problem_print(again, text_again, sizeof text_again)), "%s is read as %s", text,
              text_again);
    free(again);
}

static void check_problem(struct problem_line *line)
{
    struct finding finding;
    check_round_trip(line);
    int same = verify_problem(&verifier, line, &finding) == FINDING_NONE;
    CHECK_MSG(same, "a difference:");
    if (same || check_failed > 5)
        return;
    verify_report(stderr, line, &finding);
    verify_shrink(&verifier, line, &finding, 3);
    fprintf(stderr, "  made smaller:\n");
    verify_report(stderr, line, &finding);
}

static void check_file(const char *path)
{
    struct problem_file file;
    struct problem_line line;
    char error[512];
    int failed = problem_file_read(path, &file, error, sizeof error);
    if (!CHECK_MSG(!failed, "%s", failed ? error : ""))
        return;
    for (int i = 0; i < file.count; i++) {
        failed = problem_parse(file.lines[i], &line, error, sizeof error) ||
                 problem_complete(verifier.reference, &line, error, sizeof error);
        if (CHECK_MSG(!failed, "%s: %s", file.lines[i], failed ? error : ""))
            check_problem(&line);
    }
    CHECK(file.count > 50);
    problem_file_free(&file);
}

static void check_refusals(void)
{
    static const char *const bad[] = {
        "",
        "ij->i | sum(a)",
        "ij->i | sum(a) | b=f32[2,3] o=f32[2]",
        "ij->i | sum(a) | a=f33[2,3] o=f32[2]",
        "ij->i | sum(a) | a=f32[2,3]:(1) o=f32[2]",
        "ij->i | sum(a) | a=f32[2,3]:(-3,-1)+4 o=f32[2]",
        "ij->i | sum(a) | a=f32[2,3 o=f32[2]",
        "ij->i | sum(a) | a=f32[2,-3] o=f32[2]",
        "ij->i | sum(a) | a=f32[2,9223372036854775808] o=f32[2]",
        "ij->i | sum(a) | a=f32[4294967296,4294967296] o=f32[2]",
        "ij->i | sum(a) | a=f32[2,3] o=f32[2]@b",
        "ij->i | sum(a) | a=f32[2,3] o=f32[2] o1=f32[2]",
        "ij->i | sum(a) | a=f32[2,3] o=f32[2] | speed=3",
        "ij->i | sum(a) | a=f32[2,3] o=f32[2] | data=odd",
        "ij->i | sum(a) | a=f32[2,3] o=f32[2]; | seed=1",
    };
    struct problem_line line;
    char error[512];
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        error[0] = 0;
        CHECK_MSG(problem_parse(bad[i], &line, error, sizeof error) == 1 && error[0], "accepted: %s", bad[i]);
    }
}

int main(void)
{
    struct problem_line line;
    CHECK(mf_device_open("cpu:1", &verifier.device[0]) == MF_OK);
    CHECK(mf_device_open("cpu:2", &verifier.device[1]) == MF_OK);
    verifier.device_count = 2;
    verifier.reference = verifier.device[0];
    if (check_failed)
        return check_done("test_verify");
    check_refusals();
    check_file(MODEFOLD_SOURCE_DIR "/tests/problems.txt");
    long count = environment_number("MODEFOLD_VERIFY_COUNT", 2000);
    uint64_t seed = (uint64_t)environment_number("MODEFOLD_VERIFY_SEED", 1);
    for (long i = 0; i < count; i++) {
        random_problem(seed, (uint64_t)i, &line);
        mf_habits = mf_habits_known[i % HABITS_COUNT];
        check_problem(&line);
    }
    verify_summary(stdout, &verifier);
    mf_device_close(verifier.device[0]);
    mf_device_close(verifier.device[1]);
    return check_done("test_verify");
}
