/* Problems against the reference, with every instruction set that is here, on one and on two threads: those of
 * problems.txt, and random ones, each as a processor of another kind would read its memory. The reference takes most of
 * the time, and is the same for all instruction sets: it runs once for a problem.
 *
 * MODEFOLD_VERIFY_COUNT says how many random ones (2000), MODEFOLD_VERIFY_SEED which (1). MODEFOLD_ISA takes that
 * instruction set alone. MODEFOLD_VERIFY_SHARE=1/2 takes the first of every 2 problems and 2/2 the second, so that two
 * processes do all. */
#include <stdlib.h>

#include "check.h"
#include "cpu/habits.h"
#include "random.h"
#include "verify.h"

enum { DEVICES = 2 }; /* of an instruction set */

static struct verifier verifier;
static const char *isa_name[VERIFY_DEVICES / DEVICES];
static long part = 1, parts = 1;

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
    for (int isa = 0; isa < verifier.device_count / DEVICES; isa++)
        CHECK_MSG(same || finding.device / DEVICES != isa, "a difference with %s:", isa_name[isa]);
    if (same || check_failed > 5)
        return;
    verify_report(stderr, line, &finding);
    verify_shrink(&verifier, line, &finding, 3);
    fprintf(stderr, "  made smaller:\n");
    verify_report(stderr, line, &finding);
}

/* Whether this process takes problem number i. */
static int is_ours(long i)
{
    return i % parts == part - 1;
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
        if (!is_ours(i))
            continue;
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

/* Devices with one thread and with two, of an instruction set that is here. */
static void open_devices(const char *isa)
{
    static const char *const names[DEVICES] = {"cpu:1", "cpu:2"};
    isa_name[verifier.device_count / DEVICES] = isa;
    setenv("MODEFOLD_ISA", isa, 1);
    for (int i = 0; i < DEVICES; i++)
        CHECK_MSG(mf_device_open(names[i], &verifier.device[verifier.device_count++]) == MF_OK, "%s", mf_error());
}

/* Whether every build has it and this processor must. */
static int is_expected(const char *isa)
{
#ifdef __x86_64__
    if (!strcmp(isa, "sse2") || (!strcmp(isa, "avx2") && __builtin_cpu_supports("avx2")))
        return 1;
#endif
    return !strcmp(isa, "scalar");
}

/* Those of MODEFOLD_ISA, or of every instruction set; best first. */
static void open_all(void)
{
    static const char *const isas[] = {"avx512", "avx2", "sse2", "neon", "scalar"};
    const char *only = getenv("MODEFOLD_ISA");
    if (only && *only) {
        open_devices(only);
        return;
    }
    for (size_t i = 0; i < sizeof isas / sizeof isas[0]; i++) {
        mf_device *here;
        setenv("MODEFOLD_ISA", isas[i], 1);
        if (mf_device_open("cpu:1", &here) != MF_OK) {
            CHECK_MSG(!is_expected(isas[i]), "%s", mf_error());
            continue;
        }
        mf_device_close(here);
        open_devices(isas[i]);
    }
    unsetenv("MODEFOLD_ISA");
}

int main(void)
{
    const char *share = getenv("MODEFOLD_VERIFY_SHARE");
    struct problem_line line;
    if (share && *share)
        CHECK(sscanf(share, "%ld/%ld", &part, &parts) == 2 && part >= 1 && part <= parts);
    open_all();
    CHECK(verifier.device_count >= DEVICES);
    verifier.reference = verifier.device[0];
    if (check_failed)
        return check_done("test_verify");
    const long cached = mf_cached_bytes;
    check_refusals();
    check_file(MODEFOLD_SOURCE_DIR "/tests/problems.txt");
    long count = environment_number("MODEFOLD_VERIFY_COUNT", 2000);
    uint64_t seed = (uint64_t)environment_number("MODEFOLD_VERIFY_SEED", 1);
    for (long i = 0; i < count; i++) {
        if (!is_ours(i))
            continue;
        random_problem(seed, (uint64_t)i, &line);
        mf_habits = mf_habits_known[i % HABITS_COUNT];
        mf_cached_bytes = i / HABITS_COUNT % 2 ? 0 : cached; /* 0: as what is far larger than all caches */
        check_problem(&line);
    }
    verify_summary(stdout, &verifier);
    for (int i = 0; i < verifier.device_count; i++)
        mf_device_close(verifier.device[i]);
    return check_done("test_verify");
}
