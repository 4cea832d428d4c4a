/* Files of problems. */
#include "problem.h"

#include <stdlib.h>
#include <string.h>

#include "array.h"

static int add_line(struct problem_file *file, char *line)
{
    char **lines = file->lines;
    if (!(file->count & (file->count - 1))) { /* room doubles at every power of two */
        lines = realloc(lines, sizeof *lines * (file->count ? 2 * (size_t)file->count : 1));
        if (!lines)
            return 1;
        file->lines = lines;
    }
    lines[file->count++] = line;
    return 0;
}

int problem_file_read(const char *path, struct problem_file *file, char *error, size_t error_size)
{
    struct file_bytes bytes;
    memset(file, 0, sizeof *file);
    if (file_read(path, &bytes, error, error_size))
        return 1;
    file->text = malloc(bytes.size + 1);
    int failed = !file->text;
    if (!failed) {
        memcpy(file->text, bytes.data ? (const void *)bytes.data : "", bytes.size);
        file->text[bytes.size] = 0;
    }
    file_release(&bytes);
    char *next = file->text;
    while (!failed && next) {
        char *line = next + strspn(next, " \t\r");
        next = strchr(line, '\n');
        if (next)
            *next++ = 0;
        line[strcspn(line, "\r")] = 0;
        if (*line && *line != '#')
            failed = add_line(file, line);
    }
    if (!failed)
        return 0;
    problem_file_free(file);
    return file_fail(error, error_size, "%s: out of memory", file_in_name(path));
}

void problem_file_free(struct problem_file *file)
{
    free(file->text);
    free(file->lines);
    memset(file, 0, sizeof *file);
}
