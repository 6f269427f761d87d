/*
 * Programs that weir starts itself (CGI): whether they are there, and whether anybody else could
 * put others in their place. They may come later than weir, so nothing here keeps it from starting.
 */
#include "surroundings.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Whoever may write there runs programs as weir's user. */
static void
check_writers(
	const struct surroundings *look, const struct named_key *key, const struct stat *status)
{
	if ((status->st_mode & S_IWOTH) != 0)
		surroundings_say(look, SEVERITY_WARNING, key,
			"every user of this system may write there, and so have weir start what he "
			"likes, as weir's user; take the right away: chmod o-w");
}

static void
say_closed(const struct surroundings *look, const struct named_key *key, const char *path,
	const char *what)
{
	struct err err;

	(void)err_set_open(&err, path, errno);
	surroundings_say(look, SEVERITY_WARNING, key, "%s: %s", what, err.text);
}

static void
check_program(const struct surroundings *look, const struct named_key *key, const char *path)
{
	struct stat status;

	if (stat(path, &status) != 0) {
		say_closed(look, key, path, "nothing is there that could be started now");
		return;
	}
	if (!S_ISREG(status.st_mode))
		surroundings_say(look, SEVERITY_WARNING, key, "what is there now is %s",
			S_ISDIR(status.st_mode) ? "a directory, and no program; for all "
						  "programs below it write root ="
						: "no program");
	else if (faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) != 0)
		say_closed(look, key, path, "it is not executable");
	else
		check_writers(look, key, &status);
}

static void
check_root(const struct surroundings *look, const struct named_key *key, const char *path)
{
	struct stat status;

	if (stat(path, &status) != 0)
		say_closed(look, key, path, "there are no programs now");
	else if (!S_ISDIR(status.st_mode))
		surroundings_say(look, SEVERITY_WARNING, key, "what is there now is no directory%s",
			S_ISREG(status.st_mode) ? "; for one program write program =" : "");
	else if (faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) != 0)
		say_closed(look, key, path, "its programs cannot be reached");
	else
		check_writers(look, key, &status);
}

void
surroundings_check_programs(const struct surroundings *look)
{
	const struct config *config = look->config;

	for (unsigned i = 0; i < config->backend_count; i++) {
		const struct config_backend *backend = config->backends[i];

		if (backend->program != NULL)
			check_program(look,
				&(const struct named_key){ "backend", backend->name, "program", 0 },
				backend->program);
		if (backend->root != NULL)
			check_root(look,
				&(const struct named_key){ "backend", backend->name, "root", 0 },
				backend->root);
	}
}
