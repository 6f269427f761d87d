/*
 * Which program. A path is looked up beneath the root by the kernel (openat2(2) with
 * RESOLVE_BENEATH), or what it leads to is held against the root, where there is an absolute link
 * on the way or no openat2, so neither `..` nor a symbolic link leads out of it, whatever the web
 * server made of the URL. Where a part of the
 * path is a file and not a directory, what is behind it is PATH_INFO.
 */
#include "cgi_private.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct asked {
	struct slice script_filename, document_root, script_name, path_info;
};

/* Where a name is repeated the last counts. */
static void
find_params(struct slice params, struct asked *asked)
{
	const struct {
		struct slice name, *value;
	} rows[] = {
		{ SLICE("SCRIPT_FILENAME"), &asked->script_filename },
		{ SLICE("DOCUMENT_ROOT"), &asked->document_root },
		{ SLICE("SCRIPT_NAME"), &asked->script_name },
		{ SLICE("PATH_INFO"), &asked->path_info },
	};
	struct slice name, value;

	*asked = (struct asked){ .path_info = { NULL, 0 } };
	while (fcgi_pair_next(&params, &name, &value) > 0) {
		for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
			if (slice_is(name, rows[i].name))
				*rows[i].value = value;
		}
	}
}

static int
open_beneath(int root, const char *path)
{
	const struct open_how how = { .flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS };

	return (int)syscall(SYS_openat2, root, path, &how, sizeof how);
}

/* Where a descriptor leads, without links; its length, or 0. */
static size_t
real_path(int fd, char path[PATH_MAX])
{
	char link[64];

	(void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	const ssize_t len = readlink(link, path, PATH_MAX);

	return len > 0 && len < PATH_MAX ? (size_t)len : 0;
}

static int
open_and_compare(int root, const char *path)
{
	char top[PATH_MAX], place[PATH_MAX];
	const int fd = open(path, O_PATH | O_CLOEXEC);

	if (fd < 0)
		return -1;
	const size_t top_len = real_path(root, top), len = real_path(fd, place);

	if (top_len > 0 && len > top_len && memcmp(place, top, top_len) == 0 &&
		place[top_len] == '/')
		return fd;
	(void)close(fd);
	errno = EXDEV;
	return -1;
}

/*
 * An absolute link leads out for openat2, though it may lead to a place below the root. And there
 * may be no openat2: before Linux 5.6, where a container forbids what it does not know, and under
 * systemd's RestrictSUIDSGID=.
 */
static int
open_program(int root, const char *path, const char *below)
{
	if (below[0] == '\0') {
		errno = ENOENT; /* the root itself */
		return -1;
	}
	const int fd = open_beneath(root, below);

	if (fd >= 0 || (errno != EXDEV && errno != ENOSYS && errno != EPERM))
		return fd;
	return open_and_compare(root, path);
}

/* A program that takes on another user's rights is nobody's to start from the network. */
static enum exchange_result
judge(const char *path, const struct stat *status, struct err *why)
{
	const char *fault = NULL;

	if (S_ISDIR(status->st_mode))
		fault = "a directory";
	else if (!S_ISREG(status->st_mode))
		fault = "no regular file";
	else if ((status->st_mode & (S_ISUID | S_ISGID)) != 0)
		fault = "set to run with other rights (setuid or setgid)";
	else if ((status->st_mode & (S_IXUSR | S_IXGRP | S_IXOTH)) == 0)
		fault = "not executable";
	if (fault == NULL)
		return EXCHANGE_COMPLETE;
	(void)err_set(why, "%s is %s", path, fault);
	return EXCHANGE_FORBIDDEN;
}

static enum exchange_result
refused(const char *path, int error, struct err *why)
{
	(void)err_set(why, "%s: %s", path,
		error == EXDEV ? "leads out of the backend's root" : strerror(error));
	switch (error) {
	case EXDEV:
	case EACCES:
	case ELOOP:
		return EXCHANGE_FORBIDDEN;
	case ENOENT:
	case ENOTDIR:
	case ENAMETOOLONG:
		return EXCHANGE_NOT_FOUND;
	default: /* descriptors or memory are short, or the disk is ill: it may be there */
		return EXCHANGE_BUSY;
	}
}

/* Cuts at the last slash of what is beneath the root; false: there is none left. */
static bool
cut(char *below)
{
	char *slash = strrchr(below, '/');

	if (slash == NULL)
		return false;
	*slash = '\0';
	return true;
}

/* `path` holds a path whose first `root_len` bytes are the root's; it is cut to the program's. */
static enum exchange_result
walk(char *path, size_t root_len, int root, struct err *why)
{
	/* Some web servers put two slashes there; openat2 takes a path that begins with one for
	 * absolute. */
	char *below = path + root_len + strspn(path + root_len, "/");
	const size_t len = strlen(below);
	struct stat status;
	int fd;

	while ((fd = open_program(root, path, below)) < 0) {
		const int error = errno;

		/* Something before it is a file, or not there. */
		if ((error != ENOTDIR && error != ENOENT) || !cut(below))
			return refused(path, error, why);
	}
	const int failed = fstat(fd, &status);

	(void)close(fd);
	if (failed != 0)
		return refused(path, errno, why);
	if (S_ISDIR(status.st_mode) && strlen(below) < len) {
		(void)err_set(why, "%s is a directory without such a program", path);
		return EXCHANGE_NOT_FOUND;
	}
	return judge(path, &status, why);
}

static bool
put_path(char *out, struct slice a, struct slice b)
{
	if (a.len + b.len + 1 > PATH_MAX || (a.len > 0 && memchr(a.ptr, 0, a.len) != NULL) ||
		(b.len > 0 && memchr(b.ptr, 0, b.len) != NULL))
		return false;
	if (a.len > 0)
		memcpy(out, a.ptr, a.len);
	if (b.len > 0)
		memcpy(out + a.len, b.ptr, b.len);
	out[a.len + b.len] = '\0';
	return true;
}

/* What the walk has cut off belongs to PATH_INFO, if SCRIPT_NAME ends in it. */
static void
split(struct cgi_program *program, struct slice name, struct slice cut_off)
{
	const size_t len = name.len - cut_off.len;

	if (cut_off.len == 0 || cut_off.len > name.len || !slice_is(slice_skip(name, len), cut_off))
		return;
	program->script_name = slice_first(name, len);
	program->path_info = slice_skip(name, len);
}

static enum exchange_result
find_below(const struct config_backend *config, const struct asked *asked,
	struct cgi_program *program, struct err *why)
{
	const struct slice root_path = slice_of(config->root);
	const bool by_name = asked->script_filename.len == 0;
	char room[PATH_MAX];
	const struct slice filename = cgi_proxied_path(
		asked->script_filename, asked->script_name, asked->path_info, room);

	if (by_name ? !put_path(program->path, asked->document_root, asked->script_name)
		    : !put_path(program->path, filename, SLICE(""))) {
		(void)err_set(why, "a path that is too long, or has a zero byte");
		return EXCHANGE_NOT_FOUND;
	}
	const size_t len = strlen(program->path);

	if (len <= root_path.len || memcmp(program->path, root_path.ptr, root_path.len) != 0 ||
		program->path[root_path.len] != '/') {
		(void)err_set(why, "%s is not below the backend's root, %s",
			len == 0 ? "a request without SCRIPT_FILENAME" : program->path,
			config->root);
		return EXCHANGE_FORBIDDEN;
	}
	const int root = open(config->root, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (root < 0)
		return refused(config->root, errno, why);
	const enum exchange_result result = walk(program->path, root_path.len, root, why);

	(void)close(root);
	const size_t cut_off = len - strlen(program->path);
	const struct slice whole = by_name ? asked->script_name : filename;

	/* lighttpd's broken-scriptfilename joins the two in SCRIPT_FILENAME, and tells both right.
	 */
	if (cut_off <= whole.len && (by_name || asked->path_info.len == 0))
		split(program, asked->script_name, slice_skip(whole, whole.len - cut_off));
	return result;
}

/* Whether it is one, or has one in it, with PATH_INFO behind. */
static bool
names_file(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 ? S_ISREG(status.st_mode) : errno == ENOTDIR;
}

/* php-cgi, php-cgi8.2: told its own path it runs itself, whatever else is not there. */
static bool
is_php(const char *program)
{
	return slice_has_prefix(slice_of(strrchr(program, '/') + 1), SLICE("php"));
}

/*
 * One program for all requests is what they are for, or an interpreter of what they are for, as
 * php-cgi is. For the former, web servers make up a SCRIPT_FILENAME out of their document root and
 * the URL, which is no file.
 */
static enum exchange_result
take_program(
	const struct config_backend *config, const struct asked *asked, struct cgi_program *program)
{
	char room[PATH_MAX];
	const struct slice filename = cgi_proxied_path(
		asked->script_filename, asked->script_name, asked->path_info, room);

	(void)snprintf(program->path, sizeof program->path, "%s", config->program);
	if (!put_path(program->script, filename, SLICE("")) || program->script[0] != '/' ||
		(!is_php(config->program) && !names_file(program->script)))
		program->script[0] = '\0';
	return EXCHANGE_COMPLETE;
}

enum exchange_result
cgi_program_find(const struct config_backend *config, struct slice params,
	struct cgi_program *program, struct err *why)
{
	struct asked asked;

	*program = (struct cgi_program){ .path = "" };
	find_params(params, &asked);
	return config->program != NULL ? take_program(config, &asked, program)
				       : find_below(config, &asked, program, why);
}
