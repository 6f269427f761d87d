/* weir check: everything that is wrong with a configuration, and what it means in words. */
#include "check.h"
#include "command.h"
#include "connect.h"
#include "surroundings.h"

#include "weir/counter.h"
#include "weir/hash.h"
#include "weir/snapshot.h"

#include <stdio.h>
#include <string.h>

static void
print_words(const struct snapshot *snapshot, bool has_connected)
{
	const struct config *config = snapshot->config;

	check_words(config);
	for (unsigned i = 0; i < config->limit_count; i++)
		config_limit_words(config, config->limits[i], stdout);
	for (unsigned i = 0; i < config->route_count; i++)
		config_route_words(config, config->routes[i], stdout);
	if (!has_connected)
		check_words_unseen(config);
}

/* Prints all that was found, and the words if that is no error. */
static int
conclude(const char *file, const struct snapshot *snapshot, const struct diagnostics *diagnostics,
	bool has_connected)
{
	diagnostics_print(diagnostics, stderr);
	if (snapshot == NULL || diagnostics->errors > 0) {
		(void)fprintf(stderr, "%s: %u error%s\n", file, diagnostics->errors,
			diagnostics->errors == 1 ? "" : "s");
		return EXIT_FAILED;
	}
	print_words(snapshot, has_connected);
	(void)printf("%s: good%s\n", file, diagnostics->warnings > 0 ? ", with warnings" : "");
	return EXIT_OK;
}

/* Takes --connect out of the arguments, wherever it stands. */
static bool
take_connect(int *argc, char **argv)
{
	for (int i = 1; i < *argc; i++) {
		if (strcmp(argv[i], "--connect") != 0)
			continue;
		for (; i + 1 < *argc; i++)
			argv[i] = argv[i + 1];
		(*argc)--;
		return true;
	}
	return false;
}

int
command_check(int argc, char **argv)
{
	const bool connects = take_connect(&argc, argv);
	const char *file = config_argument(argc, argv);
	struct diagnostics diagnostics;
	struct err err;

	if (file == NULL)
		return usage_error("check",
			"takes one file (also as --config FILE), or none for %s, and --connect",
			DEFAULT_CONFIG);
	if (hash_start(&err) != 0 || counter_thread_start(&err) != 0) {
		(void)fprintf(stderr, "weir check: %s\n", err.text);
		return EXIT_FAILED;
	}
	diagnostics_init(&diagnostics);
	struct snapshot *snapshot = snapshot_load(file, &diagnostics);

	if (snapshot != NULL)
		surroundings_check(snapshot->config, &diagnostics);
	if (snapshot != NULL && connects) {
		connect_check(snapshot, &diagnostics);
		check_backends(snapshot->config, &diagnostics);
	}
	const int status = conclude(file, snapshot, &diagnostics, connects);

	snapshot_release(snapshot);
	diagnostics_release(&diagnostics);
	return status;
}
