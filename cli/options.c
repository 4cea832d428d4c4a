/* Command lines and complaints. */
#include "options.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <modefold.h>

int complain(int status, const char *format, ...)
{
    va_list args;
    fflush(stdout);
    fprintf(stderr, "modefold: ");
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    return status;
}

int complain_library(void)
{
    return complain(1, "%s", mf_error());
}

/* The option that an argument names, and where its value stands behind '='. */
static const struct option_spec *find_option(const struct option_spec *specs, const char *argument, const char **value)
{
    int dashes = argument[1] == '-' ? 2 : 1;
    const char *name = argument + dashes, *equals = strchr(name, '=');
    size_t length = equals ? (size_t)(equals - name) : strlen(name);
    *value = equals ? equals + 1 : NULL;
    for (const struct option_spec *s = specs; s->name; s++)
        if (strlen(s->name) == length && !memcmp(s->name, name, length) && (length == 1 || dashes == 2))
            return s;
    return NULL;
}

static int set_number(const struct option_spec *spec, const char *argument, const char *value)
{
    char *end;
    errno = 0;
    if (spec->kind == OPTION_NUMBER) {
        int is_power = !strncmp(value, "2^", 2);
        long long number = strtoll(is_power ? value + 2 : value, &end, 10);
        if (end == value || *end || errno || number < 0 || (is_power && number > 62))
            return complain(2, "%s takes a whole number from 0 on, not \"%s\"", argument, value);
        if (is_power)
            number = 1ll << number;
        *(int64_t *)spec->to = number;
        return 0;
    }
    double real = strtod(value, &end);
    if (end == value || *end || !(real >= 0) || real > 1e300)
        return complain(2, "%s takes a number from 0 on, not \"%s\"", argument, value);
    *(double *)spec->to = real;
    return 0;
}

static int set_option(const struct option_spec *spec, const char *argument, const char *value)
{
    if (spec->kind == OPTION_TEXT) {
        *(const char **)spec->to = value;
        return 0;
    }
    if (spec->kind != OPTION_MANY)
        return set_number(spec, argument, value);
    struct option_list *list = spec->to;
    if (list->count == OPTION_LIST)
        return complain(2, "%s stands more than %d times", argument, OPTION_LIST);
    list->item[list->count++] = value;
    return 0;
}

int options_parse(int argc, char **argv, const struct option_spec *specs, struct option_list *rest)
{
    int ended = 0;
    for (int i = 1; i < argc; i++) {
        const char *argument = argv[i], *value;
        if (!ended && !strcmp(argument, "--")) {
            ended = 1;
            continue;
        }
        if (ended || argument[0] != '-' || !argument[1] || argument[1] == '>') { /* "->" are modes */
            if (rest->count == OPTION_LIST)
                return complain(2, "more than %d arguments", OPTION_LIST);
            rest->item[rest->count++] = argument;
            continue;
        }
        const struct option_spec *spec = find_option(specs, argument, &value);
        if (!spec)
            return complain(2, "there is no option %s; 'modefold %s --help' lists them%s", argument, argv[0],
                            argument[1] == '-' ? "" : ", and an expression like it stands after \"--\"");
        if (spec->kind == OPTION_FLAG) {
            if (value)
                return complain(2, "--%s takes no value", spec->name);
            *(int *)spec->to = 1;
            continue;
        }
        if (!value && i + 1 == argc)
            return complain(2, "%s needs a value", argument);
        if (set_option(spec, argument, value ? value : argv[++i]))
            return 2;
    }
    return 0;
}

int tier_parse(const char *name, uint32_t *flag)
{
    static const struct {
        const char *name;
        uint32_t flag;
    } tiers[] = {{"exact", MF_LOG_EXACT}, {"certified", MF_LOG_CERTIFIED}, {"fast", MF_LOG_FAST}};
    *flag = 0;
    for (int t = 0; name && t < 3; t++)
        if (!strcmp(name, tiers[t].name))
            *flag = tiers[t].flag;
    return name && !*flag ? complain(2, "there is no tier \"%s\"; there are exact, certified and fast", name) : 0;
}
