/* modefold: the command. */
#include <stdio.h>
#include <string.h>

#include <modefold.h>

#include "commands.h"
#include "options.h"

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} commands[] = {
    {"verify", command_verify},
};

static int wants_help(const char *argument)
{
    return !strcmp(argument, "--help") || !strcmp(argument, "-h");
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return complain(2, "which subcommand? 'modefold --help' lists them");
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        if (!strcmp(argv[1], commands[i].name)) {
            return commands[i].run(argc - 1, argv + 1);
        }
    (void)wants_help;
    return complain(2, "there is no subcommand \"%s\"; 'modefold --help' lists them", argv[1]);
}
