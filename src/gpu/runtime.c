/* Libraries opened at run time, and small text work for both backends. */
#include "runtime.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* All symbols of an open library, those after a '?' if it has them; null, or the first one that it lacks. */
static const char *missing_symbol(void *library, const char *const *symbols, void *functions)
{
    for (int i = 0; symbols[i]; i++) {
        const int optional = *symbols[i] == '?';
        void *address = dlsym(library, symbols[i] + optional);
        if (!address && !optional)
            return symbols[i];
        memcpy((char *)functions + (size_t)i * sizeof address, &address, sizeof address);
    }
    return NULL;
}

void mf_library_load(const char *name, const char *const *files, const char *const *symbols, void *functions, char *why,
                     size_t why_size)
{
    snprintf(why, why_size, "%s was not found", name);
    for (int i = 0; files[i]; i++) {
        void *library = dlopen(files[i], RTLD_NOW | RTLD_LOCAL);
        if (!library)
            continue;
        const char *missing = missing_symbol(library, symbols, functions);
        if (!missing) {
            *why = 0;
            return;
        }
        snprintf(why, why_size, "%s is too old: it has no %s", files[i], missing);
        dlclose(library);
    }
}

void mf_log_error(const char *log, char *line, size_t size)
{
    const char *found = log + strspn(log, "\r\n ");
    for (const char *next = found; *next; next += strspn(next, "\r\n")) {
        const char *start = next;
        next += strcspn(next, "\r\n");
        for (const char *c = start; c + 5 <= next; c++)
            if (!strncasecmp(c, "error", 5)) {
                snprintf(line, size, "%.*s", (int)(next - start), start);
                return;
            }
    }
    snprintf(line, size, "%.*s", (int)strcspn(found, "\r\n"), found);
}

char *mf_text_join(const char *first, const char *second)
{
    size_t head = strlen(first), tail = strlen(second);
    char *text = mf_alloc(head + tail + 1);
    if (!text)
        return NULL;
    memcpy(text, first, head);
    memcpy(text + head, second, tail + 1);
    return text;
}

mf_status mf_fail_tensor(const char *what, int number, const char *fact)
{
    if (!strcmp(what, "operand"))
        return mf_fail(MF_ERROR_ARGUMENT, "operand %c %s", 'a' + number, fact);
    return mf_fail(MF_ERROR_ARGUMENT, "%s %d %s", what, number, fact);
}
