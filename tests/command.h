/* Running the built command, whose path is in MODEFOLD_COMMAND. */
#ifndef MF_TESTS_COMMAND_H
#define MF_TESTS_COMMAND_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

enum { TEXT = 1 << 16 };

static char out_text[TEXT], err_text[TEXT];

static void read_text(const char *path, char *text)
{
    FILE *file = fopen(path, "rb");
    size_t n = file ? fread(text, 1, TEXT - 1, file) : 0;
    text[n] = 0;
    if (file)
        fclose(file);
}

/* Runs the command with these arguments, as a shell reads them; its outputs go to out_text and err_text. */
static int run(const char *arguments)
{
    char line[4096];
    snprintf(line, sizeof line, "{ \"$MODEFOLD_COMMAND\" %s\n} >out.txt 2>err.txt </dev/null", arguments);
    int status = system(line);
    read_text("out.txt", out_text);
    read_text("err.txt", err_text);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#endif
