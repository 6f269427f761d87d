/* weir check: everything that is wrong with a configuration, and what it means in words. */
#include "command.h"

#include "weir/counter.h"
#include "weir/hash.h"
#include "weir/snapshot.h"

#include <stdio.h>

static void
print_words(const struct snapshot *snapshot)
{
	const struct config *config = snapshot->config;

	if (!config->enforce)
		(void)printf("enforce = no: every limit decides, counts and logs, and lets pass\n");
	for (unsigned i = 0; i < config->limit_count; i++)
		config_limit_words(config, config->limits[i], stdout);
}

int
command_check(int argc, char **argv)
{
	const char *file = argc > 1 ? argv[1] : DEFAULT_CONFIG;
	struct diagnostics diagnostics;
	struct err err;

	if (argc > 2 || (argc == 2 && argv[1][0] == '-'))
		return usage_error("check", "takes one file, or none for %s", DEFAULT_CONFIG);
	if (hash_start(&err) != 0 || counter_thread_start(&err) != 0) {
		(void)fprintf(stderr, "weir check: %s\n", err.text);
		return EXIT_FAILED;
	}
	diagnostics_init(&diagnostics);
	struct snapshot *snapshot = snapshot_load(file, &diagnostics);

	diagnostics_print(&diagnostics, stderr);
	if (snapshot != NULL) {
		print_words(snapshot);
		(void)printf(
			"%s: good%s\n", file, diagnostics.warnings > 0 ? ", with warnings" : "");
	} else {
		(void)fprintf(stderr, "%s: %u error%s\n", file, diagnostics.errors,
			diagnostics.errors == 1 ? "" : "s");
	}
	const int status = snapshot != NULL ? EXIT_OK : EXIT_FAILED;

	snapshot_release(snapshot);
	diagnostics_release(&diagnostics);
	return status;
}
