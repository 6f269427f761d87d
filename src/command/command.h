/* The commands, one file each. Private to the room. Each returns the process's exit status. */
#ifndef WEIR_COMMAND_H
#define WEIR_COMMAND_H

#include "weir/config.h"

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

/* What is read when no file is named. */
#define DEFAULT_CONFIG WEIR_SYSCONFDIR "/weir.ini"

struct command {
	const char *name, *arguments, *summary;
	int (*run)(int argc, char **argv); /* argv[0] is the command's name */
};

int command_serve(int argc, char **argv);
int command_check(int argc, char **argv);
int command_identity(int argc, char **argv);

/* The file of `FILE`, `--config FILE` or `--config=FILE`, or the default if there are no arguments;
 * NULL: they are others. */
const char *config_argument(int argc, char **argv);

/* "weir NAME: text" and where to read on, to standard error. Returns EXIT_USAGE. */
int usage_error(const char *command, const char *format, ...) WEIR_PRINTF(2, 3);

#endif
