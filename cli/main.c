/* modefold: the command. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <modefold.h>

#include "commands.h"
#include "options.h"

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} commands[] = {
    {"run", command_run},     {"plan", command_plan},   {"verify", command_verify},
    {"bench", command_bench}, {"demo", command_demo},   {"info", command_info},
    {"warm", command_warm},   {"match", command_match}, {"detect", command_detect},
};

static int is_help(const char *argument)
{
    return !strcmp(argument, "--help") || !strcmp(argument, "-h");
}

/* Whether --help stands among the options. */
static int asks_for_help(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (is_help(argv[i]))
            return 1;
    return 0;
}

static int run_command(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        if (strcmp(argv[0], commands[i].name) != 0)
            continue;
        if (!asks_for_help(argc, argv))
            return commands[i].run(argc, argv);
        fputs(help_text(argv[0]), stdout);
        return 0;
    }
    return complain(2, "there is no subcommand \"%s\"; 'modefold --help' lists them", argv[0]);
}

static int run(int argc, char **argv)
{
    if (argc < 2) {
        fputs(help_text(NULL), stderr);
        return 2;
    }
    if (!strcmp(argv[1], "--version")) {
        int version = mf_version();
        printf("modefold %d.%d.%d\n", version / 10000, version / 100 % 100, version % 100);
        return 0;
    }
    if (is_help(argv[1]) || !strcmp(argv[1], "help")) {
        const char *text = help_text(argc > 2 ? argv[2] : NULL);
        if (!text)
            return complain(2, "there is no subcommand \"%s\"; 'modefold --help' lists them", argv[2]);
        fputs(text, stdout);
        return 0;
    }
    return run_command(argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
    int status = run(argc, argv);
    if (fflush(stdout) || ferror(stdout))
        return complain(status ? status : 1, "cannot write the standard output: %s", strerror(errno));
    return status;
}
