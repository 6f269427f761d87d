/*
 * The files that weir writes: logs and the memory store. `serve` would find the same by opening
 * them; here they are only looked at, since a check that root makes must not leave files of root's.
 */
#include "surroundings.h"

#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { PATH_SIZE = 512, TEXT_SIZE = 1024 };

void
surroundings_say(const struct surroundings *look, enum severity severity,
	const struct named_key *key, const char *format, ...)
{
	char text[TEXT_SIZE], where[160];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof text, format, args);
	va_end(args);
	(void)snprintf(where, sizeof where, "[%s%s%s] %s", key->kind,
		key->name[0] == '\0' ? "" : " ", key->name, key->key);
	diagnostics_add(look->diagnostics, severity,
		config_place(look->config, key->kind, key->name, key->key, key->nth), where, "%s",
		text);
}

static const char *
directory_of(const char *path, char out[PATH_SIZE])
{
	(void)snprintf(out, PATH_SIZE, "%s", path);
	return dirname(out);
}

/* It is gone after each boot. */
static const char remedy[] =
	"; weir.service makes it, and systemd-tmpfiles at the boot; by hand: install -d -o "
	"USER " WEIR_RUNDIR " as root, for the user that weir runs as";

int
surroundings_can_make(const char *path, struct err *err)
{
	char room[PATH_SIZE];
	const char *directory = directory_of(path, room);
	struct stat st;

	if (stat(directory, &st) != 0)
		return err_set(err, "the directory %s: %s%s", directory, strerror(errno),
			errno == ENOENT && strcmp(directory, WEIR_RUNDIR) == 0 ? remedy : "");
	if (!S_ISDIR(st.st_mode))
		return err_set(err, "%s is no directory", directory);
	if (faccessat(AT_FDCWD, directory, W_OK | X_OK, AT_EACCESS) == 0)
		return 0;
	(void)err_set_open(err, directory, errno);
	return err_prefix(err, "the directory %s cannot be written to", directory);
}

/* ---- logs ---- */

static void
check_log_file(const struct surroundings *look, const struct named_key *key, const char *path)
{
	const int fd = open(path, O_WRONLY | O_APPEND | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	const int error = fd < 0 ? errno : 0;
	struct stat st;
	struct err err;

	if (fd >= 0) {
		(void)close(fd);
	} else if (error == ENXIO && stat(path, &st) == 0 && S_ISFIFO(st.st_mode)) {
		surroundings_say(look, SEVERITY_WARNING, key,
			"nobody reads the FIFO %s now, and weir does not start before somebody "
			"does",
			path);
	} else if (error != ENOENT) {
		(void)err_set_open(&err, path, error);
		surroundings_say(
			look, SEVERITY_ERROR, key, "%s cannot be opened: %s", path, err.text);
	} else if (surroundings_can_make(path, &err) != 0) {
		surroundings_say(look, SEVERITY_ERROR, key, "%s", err.text);
	}
}

static void
check_logs(const struct surroundings *look)
{
	const struct config *config = look->config;
	const struct named_key log = { "weir", "", "log", 0 };

	if (config->log_to == LOG_TO_FILE)
		check_log_file(look, &log, config->log_file);
	else if (config->log_to == LOG_TO_SYSLOG && access("/dev/log", F_OK) != 0)
		surroundings_say(look, SEVERITY_WARNING, &log,
			"there is no /dev/log now; until a syslog daemon runs, lines are dropped");
	if (config->reject_log != NULL)
		check_log_file(look, &(const struct named_key){ "weir", "", "reject_log", 0 },
			config->reject_log);
}

/* ---- the memory store ---- */

static int
check_room(const char *path, uint64_t size, struct err *err)
{
	char room[PATH_SIZE];
	const char *directory = directory_of(path, room);
	struct statvfs fs;

	if (statvfs(directory, &fs) != 0 || fs.f_bavail >= size / fs.f_frsize)
		return 0;
	return err_set(err, "%s has room for %llu MiB, and [memory] size is %llu MiB", directory,
		(unsigned long long)fs.f_bavail * fs.f_frsize >> 20,
		(unsigned long long)size >> 20);
}

static void
check_state(const struct surroundings *look)
{
	const struct named_key key = { "memory", "", "state", 0 };
	char room[STATE_PATH_SIZE];
	const char *path = process_state_path(look->config, room);
	struct stat st;
	struct err err;
	const bool is_there = lstat(path, &st) == 0;

	/* Root checks what another user will serve with. */
	if (is_there && geteuid() == 0 && st.st_uid != 0 && S_ISREG(st.st_mode)) {
		surroundings_say(look, SEVERITY_WARNING, &key,
			"%s belongs to user id %u, so weir starts as that user only, and this "
			"check "
			"was made by root; systemctl reload weir makes it as weir's user",
			path, (unsigned)st.st_uid);
		return;
	}
	if (memory_check(path, &err) != 0 ||
		(!is_there &&
			(surroundings_can_make(path, &err) != 0 ||
				check_room(path, look->config->memory_size, &err) != 0)))
		surroundings_say(look, SEVERITY_ERROR, &key, "%s", err.text);
}

/* ---- what uploads without their length are stored in ---- */

/* A warning: all other requests are served. Its files have no name, so one of any would do. */
static void
check_spool(const struct surroundings *look)
{
	const struct named_key key = { "weir", "", "spool_directory", 0 };
	const struct config *config = look->config;
	bool is_needed = false;
	char path[PATH_SIZE];
	struct err err;

	for (unsigned i = 0; i < config->backend_count; i++)
		is_needed = is_needed ||
			(config->backends[i]->type != BACKEND_NONE &&
				config->backends[i]->spool > 0);
	(void)snprintf(path, sizeof path, "%s/spool", config->spool_directory);
	if (is_needed && surroundings_can_make(path, &err) != 0)
		surroundings_say(look, SEVERITY_WARNING, &key,
			"%s; uploads that come without their length are answered 503", err.text);
}

void
surroundings_check(const struct config *config, struct diagnostics *diagnostics)
{
	const struct surroundings look = { config, diagnostics };

	check_logs(&look);
	check_state(&look);
	check_spool(&look);
	surroundings_check_sockets(&look);
	surroundings_check_programs(&look);
	surroundings_check_same(&look);
}
