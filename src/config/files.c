/*
 * Files on the disk. Whatever the path points at, reading it ends: no device, no FIFO, and no more
 * than the maximum. The order of files is the order of the bytes of their names and not the
 * locale's, since the order of routes depends on it.
 */
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <grp.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

/* Whether the file stayed as it was found, as far as its status tells. */
static int
check_unchanged(int fd, const struct file_content *content, struct err *err)
{
	const struct stat *before = &content->status;
	struct stat now;

	if (fstat(fd, &now) != 0)
		return err_set(err, "%s", strerror(errno));
	if ((uint64_t)now.st_size != content->len || now.st_mtim.tv_sec != before->st_mtim.tv_sec ||
		now.st_mtim.tv_nsec != before->st_mtim.tv_nsec)
		return err_set(err, "it is being written just now");
	return 0;
}

static int
read_all(int fd, size_t max, struct file_content *content, struct err *err)
{
	struct stat *status = &content->status;

	if (fstat(fd, status) != 0)
		return err_set(err, "%s", strerror(errno));
	if (!S_ISREG(status->st_mode))
		return err_set(err, "it is no regular file");
	if (status->st_size < 0 || (uint64_t)status->st_size > max)
		return err_set(err, "it is larger than %zu bytes", max);
	const size_t size = (size_t)status->st_size;

	content->bytes = malloc(size + 1);
	if (content->bytes == NULL)
		return err_set(err, "%s", strerror(errno));
	while (content->len < size) {
		const ssize_t n = read(fd, content->bytes + content->len, size - content->len);

		if (n < 0 && errno != EINTR)
			return err_set(err, "%s", strerror(errno));
		if (n == 0)
			break;
		content->len += n > 0 ? (size_t)n : 0;
	}
	return check_unchanged(fd, content, err);
}

int
config_file_load(const char *name, size_t max, struct file_content *content, struct err *err)
{
	const int fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	*content = (struct file_content){ 0 };
	if (fd < 0)
		return err_set(err, "%s", strerror(errno));
	const int result = read_all(fd, max, content, err);

	(void)close(fd);
	if (result != 0) {
		free(content->bytes);
		*content = (struct file_content){ 0 };
	}
	return result;
}

/* A group that is ours is harmless, and so is the one of a package (0640 root:weir) when root
 * checks. The web server's group is never: its applications are who the secret is kept from. */
static bool
is_group_trusted(gid_t gid)
{
	const struct group *web = getgrnam(WEIR_WEB_GROUP);

	if (gid == getegid())
		return true;
	return geteuid() == 0 && (web == NULL || web->gr_gid != gid);
}

int
config_file_check_secret(const char *name, const struct stat *status, struct err *err)
{
	if ((status->st_mode & S_IRWXO) != 0)
		return err_set(err, "every user of this host can read %s; chmod o= %s", name, name);
	if ((status->st_mode & S_IRWXG) != 0 && !is_group_trusted(status->st_gid))
		return err_set(err,
			"the members of group id %u can read %s; chmod g= %s, or give it a group "
			"of weir's own",
			(unsigned)status->st_gid, name, name);
	return 0;
}

/* The pattern behind the directory of `beside`. That directory may be called "a[1]". */
static char *
absolute(const char *beside, const char *pattern, bool is_glob, struct arena *arena)
{
	const char *slash = strrchr(beside, '/');
	const size_t len = slash == NULL || pattern[0] == '/' ? 0 : (size_t)(slash + 1 - beside);
	char *out = arena_alloc(arena, 2 * len + strlen(pattern) + 1), *to = out;

	if (out == NULL)
		return NULL;
	for (size_t i = 0; i < len; i++) {
		if (is_glob && strchr("*?[\\", beside[i]) != NULL)
			*to++ = '\\';
		*to++ = beside[i];
	}
	memcpy(to, pattern, strlen(pattern) + 1);
	return out;
}

static int
by_name(const void *left, const void *right)
{
	const char *const *a = left, *const *b = right;

	return strcmp(*a, *b);
}

/* A missing directory is no match, and no match is no error; one that may not be searched would
 * leave out limits without a word. */
static int
is_search_error(const char *path, int error)
{
	(void)path;
	return error != ENOENT;
}

int
config_files_match(const char *beside, const char *pattern, struct arena *arena,
	config_files_each_fn *each, void *context, struct err *err)
{
	const bool is_glob = strpbrk(pattern, "*?[") != NULL;
	const char *whole = absolute(beside, pattern, is_glob, arena);
	glob_t found = { 0 };

	if (whole == NULL)
		return err_set(err, "%s", strerror(ENOMEM));
	if (!is_glob) {
		each(context, whole);
		return 0;
	}
	errno = 0;
	int result = glob(whole, GLOB_NOSORT, is_search_error, &found);

	if (result == 0) {
		qsort(found.gl_pathv, found.gl_pathc, sizeof found.gl_pathv[0], by_name);
		for (size_t i = 0; i < found.gl_pathc; i++)
			each(context, found.gl_pathv[i]);
	} else if (result == GLOB_NOMATCH) {
		result = 0;
	} else {
		result = err_set(err, "%s cannot be searched: %s", whole,
			strerror(result == GLOB_NOSPACE ? ENOMEM : errno));
	}
	globfree(&found);
	return result;
}
