/* A test program's few words: CHECK counts, prints the failing line and goes on; DONE prints the count and returns.
 * The last line of every test program is "NAME: P passed, F failed, S skipped", which the runner adds up. */
#ifndef MF_TESTS_CHECK_H
#define MF_TESTS_CHECK_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long check_passed, check_failed, check_skipped;

/* Counts one check; on failure prints where and what (printf arguments follow the condition). */
__attribute__((format(printf, 4, 5), unused)) static int check_at(int ok, const char *file, int line,
                                                                  const char *format, ...)
{
    if (ok) {
        check_passed++;
        return 1;
    }
    check_failed++;
    if (check_failed <= 50) {
        va_list args;
        va_start(args, format);
        fprintf(stderr, "%s:%d: ", file, line);
        vfprintf(stderr, format, args);
        fputc('\n', stderr);
        va_end(args);
    }
    return 0;
}

#define CHECK(condition) check_at(!!(condition), __FILE__, __LINE__, "%s", #condition)
#define CHECK_MSG(condition, ...) check_at(!!(condition), __FILE__, __LINE__, __VA_ARGS__)

/* Says that a part cannot run here, and why. */
__attribute__((unused)) static void check_skip(const char *what, const char *why)
{
    check_skipped++;
    printf("skipped: %s (%s)\n", what, why);
}

__attribute__((unused)) static int check_done(const char *name)
{
    printf("%s: %ld passed, %ld failed, %ld skipped\n", name, check_passed, check_failed, check_skipped);
    return check_failed != 0;
}

#endif
