/* Command lines: options may stand anywhere, "--" ends them, --name=value and --name value are the same. */
#ifndef MF_CLI_OPTIONS_H
#define MF_CLI_OPTIONS_H

#include <stdint.h>

enum { OPTION_LIST = 1024 };

enum option_kind {
    OPTION_FLAG,   /* to: int, becomes 1 */
    OPTION_TEXT,   /* to: const char * */
    OPTION_NUMBER, /* to: int64_t, from 0 on; 2^25 is understood */
    OPTION_REAL,   /* to: double, from 0 on */
    OPTION_MANY    /* to: struct option_list, one more */
};

struct option_list {
    int count;
    const char *item[OPTION_LIST];
};

struct option_spec {
    const char *name; /* without the dashes; one letter is -o or --o, more are --name */
    enum option_kind kind;
    void *to;
};

/* Reads argv[1] ... into the options and the rest (argv[0] is the subcommand's name). specs ends with a null name.
 * Returns 0, or 2 after a message. */
int options_parse(int argc, char **argv, const struct option_spec *specs, struct option_list *rest);

/* --tier: the flag of mf_options, 0 for null. Returns 0, or 2 after a message. */
int tier_parse(const char *name, uint32_t *flag);

/* "modefold: " and the message, on the standard error; returns status. */
int complain(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The library's sentence as a complaint; returns 1. */
int complain_library(void);

#endif
