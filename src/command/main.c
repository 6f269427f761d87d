/* weir COMMAND [ARGUMENT...]: finds the command and runs it. */
#include "cgi.h"
#include "command.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct command commands[] = {
	{ "serve", "[FILE]", "serve FastCGI requests", command_serve },
	{ "check", "[--connect] [FILE]", "check a configuration and say in words what it limits",
		command_check },
	{ "identity", "LIMIT WHO...", "say what somebody is called in log and Redis",
		command_identity },
};

/* What other daemons have. */
static const struct {
	const char *theirs, *ours;
} options_elsewhere[] = {
	{ "-t", "weir check [FILE]" },
	{ "-T", "weir check [FILE]" },
	{ "--test", "weir check [FILE]" },
	{ "configtest", "weir check [FILE]" },
	{ "-v", "weir --version" },
	{ "version", "weir --version" },
	{ "-c", "weir serve --config FILE" },
	{ "--config", "weir serve --config FILE" },
	{ "start", "weir serve" },
	{ "reload", "systemctl reload weir, or send SIGHUP" },
};

enum { COMMANDS = sizeof commands / sizeof commands[0] };

static void
print_help(FILE *out)
{
	(void)fputs("weir: a FastCGI rate-limiting gateway\n\nUsage:\n", out);
	for (size_t i = 0; i < COMMANDS; i++) {
		char call[80];

		(void)snprintf(
			call, sizeof call, "weir %s %s", commands[i].name, commands[i].arguments);
		(void)fprintf(out, "  %-30s %s\n", call, commands[i].summary);
	}
	(void)fprintf(out, "  %-30s %s\n  %-30s %s\n\n", "weir --version", "print the version",
		"weir --help", "print this");
	(void)fprintf(out,
		"FILE, also as --config FILE, is %s if it is left out.\nSee weir(8) and "
		"weir.ini(5).\n",
		DEFAULT_CONFIG);
}

int
usage_error(const char *command, const char *format, ...)
{
	va_list args;

	(void)fprintf(stderr, "weir%s%s: ", command[0] == '\0' ? "" : " ", command);
	va_start(args, format);
	(void)vfprintf(stderr, format, args);
	va_end(args);
	(void)fputs("\nTry: weir --help\n", stderr);
	return EXIT_USAGE;
}

const char *
config_argument(int argc, char **argv)
{
	if (argc == 1)
		return DEFAULT_CONFIG;
	if (argc == 2 && argv[1][0] != '-')
		return argv[1];
	if (argc == 3 && strcmp(argv[1], "--config") == 0)
		return argv[2];
	if (argc == 2 && strncmp(argv[1], "--config=", 9) == 0)
		return argv[1] + 9;
	return NULL;
}

/* A web server may start us with descriptor 0 alone (FastCGI 1.0 section 2.2), and others with
 * less. What we open must not become standard output or standard error. */
static int
open_standard_descriptors(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd < 0)
		return -1;
	(void)close(fd);
	return 0;
}

/* Without arguments of an operator's. A client that writes such as he would is not heard: he could
 * name the file of another site. */
static int
serve_as_cgi(int argc, char **argv)
{
	static char name[] = "serve";
	char *arguments[] = { name, NULL };

	if (argc < 2 || strcmp(argv[1], name) != 0)
		return command_serve(1, arguments);
	cgi_answer_error(400, "Bad Request");
	return EXIT_USAGE;
}

int
main(int argc, char **argv)
{
	if (open_standard_descriptors() != 0)
		return EXIT_FAILED;
	/* Several processes of a web server may say the same at the same time. */
	(void)setvbuf(stderr, NULL, _IOLBF, BUFSIZ);
	if (cgi_is_asked() && (argc < 2 || cgi_arguments_are_foreign(argc, argv)))
		return serve_as_cgi(argc, argv);
	if (argc < 2) {
		print_help(stderr);
		return EXIT_USAGE;
	}
	const char *name = argv[1];

	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
		print_help(stdout);
		return EXIT_OK;
	}
	if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
		(void)printf("weir %s\n", PACKAGE_VERSION);
		return EXIT_OK;
	}
	for (size_t i = 0; i < COMMANDS; i++) {
		if (strcmp(name, commands[i].name) == 0)
			return commands[i].run(argc - 1, argv + 1);
	}
	for (size_t i = 0; i < sizeof options_elsewhere / sizeof options_elsewhere[0]; i++) {
		if (strcmp(name, options_elsewhere[i].theirs) == 0)
			return usage_error(
				"", "\"%s\" is written %s", name, options_elsewhere[i].ours);
	}
	return usage_error("", "there is no command \"%s\"", name);
}
