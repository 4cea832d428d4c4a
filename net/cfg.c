/* Darknet's .cfg: sections in brackets, key=value lines, comments from # or ; on. Blanks mean nothing. */
#include "net.h"

#include <ctype.h>
#include <errno.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *mf_file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

/* Reads until the file's end: it may be a pipe. */
static mf_status read_all(FILE *file, const char *path, size_t most, char **text, size_t *bytes)
{
    size_t room = 0;
    for (*bytes = 0;; *bytes += fread(*text + *bytes, 1, room - *bytes, file)) {
        if (*bytes < room)
            break;
        if (room >= most)
            return mf_fail(MF_ERROR_FILE, "%.200s has more than %zu bytes", path, most);
        size_t wanted = room ? room * 2 : 1 << 14;
        room = wanted < most ? wanted : most;
        char *larger = mf_alloc(room);
        if (!larger)
            return MF_ERROR_MEMORY;
        if (*text)
            memcpy(larger, *text, *bytes);
        mf_free(*text);
        *text = larger;
    }
    return ferror(file) ? mf_fail(MF_ERROR_FILE, "%.200s cannot be read: %s", path, strerror(errno)) : MF_OK;
}

mf_status mf_file_read(const char *path, size_t most, char **text, size_t *bytes)
{
    *text = NULL;
    FILE *file = fopen(path, "rb");
    if (!file)
        return mf_fail(MF_ERROR_FILE, "%.200s cannot be opened: %s", path, strerror(errno));
    mf_status status = read_all(file, path, most, text, bytes);
    fclose(file);
    if (status != MF_OK) {
        mf_free(*text);
        *text = NULL;
    }
    return status;
}

mf_status mf_cfg_fail(const struct cfg *cfg, const struct cfg_section *section, int line, const char *format, ...)
{
    char what[320];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    if (!section)
        return mf_fail(MF_ERROR_FILE, "%.100s:%d: %s", cfg->file, line, what);
    return mf_fail(MF_ERROR_FILE, "%.100s:%d: [%.40s] %s", cfg->file, line, section->name, what);
}

/* Takes blanks and comments out of a line, in place. */
static void squeeze(char *line)
{
    char *to = line;
    for (const char *c = line; *c && *c != '#' && *c != ';'; c++)
        if (!isspace((unsigned char)*c))
            *to++ = *c;
    *to = 0;
}

/* One line without blanks: a section's beginning or an option. */
static mf_status add_line(struct cfg *cfg, char *line, int number)
{
    struct cfg_section *section = cfg->section_count ? &cfg->section[cfg->section_count - 1] : NULL;
    if (line[0] == '[') {
        size_t length = strlen(line);
        if (length < 3 || line[length - 1] != ']')
            return mf_cfg_fail(cfg, NULL, number, "\"%.40s\" is no section, which is [name]", line);
        line[length - 1] = 0;
        cfg->section[cfg->section_count++] = (struct cfg_section){line + 1, number, cfg->option_count, 0};
        return MF_OK;
    }
    char *equals = strchr(line, '=');
    if (!section)
        return mf_cfg_fail(cfg, NULL, number, "\"%.40s\" stands before the first section", line);
    if (!equals || equals == line)
        return mf_cfg_fail(cfg, section, number, "\"%.40s\" is neither key=value nor a section", line);
    *equals = 0;
    cfg->option[cfg->option_count++] = (struct cfg_option){line, equals + 1, number};
    section->count++;
    return MF_OK;
}

mf_status mf_cfg_read(const char *file, const char *text, size_t bytes, struct cfg *cfg)
{
    *cfg = (struct cfg){.file = file, .text = mf_alloc(bytes + 1)};
    if (!cfg->text)
        return MF_ERROR_MEMORY;
    int lines = 1;
    for (size_t i = 0; i < bytes; i++) {
        cfg->text[i] = text[i];
        lines += text[i] == '\n';
        if (!text[i])
            return mf_cfg_fail(cfg, NULL, lines, "there is a zero byte, so this is no text");
    }
    cfg->text[bytes] = 0;
    cfg->section = mf_alloc(sizeof *cfg->section * (size_t)lines);
    cfg->option = mf_alloc(sizeof *cfg->option * (size_t)lines);
    if (!cfg->section || !cfg->option)
        return MF_ERROR_MEMORY;
    int number = 0;
    for (char *line = cfg->text, *next; line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = 0;
        squeeze(line);
        number++;
        if (*line)
            MF_TRY(add_line(cfg, line, number));
    }
    return cfg->section_count ? MF_OK : mf_fail(MF_ERROR_FILE, "%.100s: there is no section", file);
}

void mf_cfg_forget(struct cfg *cfg)
{
    mf_free(cfg->text);
    mf_free(cfg->section);
    mf_free(cfg->option);
}

const struct cfg_option *mf_cfg_find(const struct cfg *cfg, const struct cfg_section *section, const char *key)
{
    for (int i = section->first + section->count - 1; i >= section->first; i--)
        if (!strcmp(cfg->option[i].key, key))
            return &cfg->option[i];
    return NULL;
}

mf_status mf_cfg_int(const struct cfg *cfg, const struct cfg_section *section, const char *key, int64_t missing,
                     int64_t least, int64_t most, int64_t *value)
{
    const struct cfg_option *option = mf_cfg_find(cfg, section, key);
    char *end;
    *value = missing;
    if (!option)
        return MF_OK;
    errno = 0;
    *value = strtoll(option->value, &end, 10);
    if (end == option->value || *end || errno)
        return mf_cfg_fail(cfg, section, option->line, "%.40s=%.40s is no whole number", key, option->value);
    if (*value < least || *value > most)
        return mf_cfg_fail(cfg, section, option->line, "%.40s=%lld is not from %lld to %lld", key, (long long)*value,
                           (long long)least, (long long)most);
    return MF_OK;
}

/* strtod with a decimal point, whatever the decimal sign of the program's locale. 0 where there is no number. */
static int parse_real(const char *text, const char **end, double *value)
{
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0), before;
    char *after;
    if (plain == (locale_t)0)
        return 0;
    before = uselocale(plain);
    *value = strtod(text, &after);
    uselocale(before);
    freelocale(plain);
    *end = after;
    return after != text;
}

mf_status mf_cfg_reals(const struct cfg *cfg, const struct cfg_section *section, const char *key, int most,
                       float *values, int *count)
{
    const struct cfg_option *option = mf_cfg_find(cfg, section, key);
    *count = 0;
    if (!option)
        return MF_OK;
    for (const char *c = option->value, *end = c; *c; c = end) {
        double value = 0;
        if (*count == most)
            return mf_cfg_fail(cfg, section, option->line, "%.40s has more than %d numbers", key, most);
        if (!parse_real(c, &end, &value) || (*end && *end != ',') || !(value > -1e30 && value < 1e30))
            return mf_cfg_fail(cfg, section, option->line, "%.40s: \"%.20s\" is no number", key, c);
        values[(*count)++] = (float)value;
        end += *end == ',';
    }
    return MF_OK;
}
