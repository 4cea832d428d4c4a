/* The subcommands. Each gets its own name as argv[0] and returns the exit status: 0 fine, 1 failed, 2 wrong usage. */
#ifndef MF_CLI_COMMANDS_H
#define MF_CLI_COMMANDS_H

int command_run(int argc, char **argv);
int command_plan(int argc, char **argv);
int command_verify(int argc, char **argv);
int command_bench(int argc, char **argv);
int command_demo(int argc, char **argv);
int command_info(int argc, char **argv);
int command_warm(int argc, char **argv);
int command_match(int argc, char **argv);
int command_detect(int argc, char **argv);

/* What --help prints; name null: the command's own. Null when there is no such subcommand. */
const char *help_text(const char *name);

#endif
