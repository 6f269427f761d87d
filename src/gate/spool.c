/*
 * The file is written and read on the loop. It is as good as memory for that: the kernel writes it
 * to the disk when it likes, and what was just written is read from its cache. A disk that cannot
 * follow slows the process down, as it does any web server that stores uploads.
 */
#include "spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* For file systems that make no file without a name (NFS). */
static int
open_named(const char *directory)
{
	char path[4096];
	const int n = snprintf(path, sizeof path, "%s/weir-XXXXXX", directory);

	if (n < 0 || (size_t)n >= sizeof path) {
		errno = ENAMETOOLONG;
		return -1;
	}
	const int fd = mkostemp(path, O_CLOEXEC);

	if (fd >= 0)
		(void)unlink(path);
	return fd;
}

int
spool_open(struct spool *spool, const char *directory, struct err *err)
{
	*spool = (struct spool){ .fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600) };
	/* EISDIR is what a file system says that knows nothing of O_TMPFILE. */
	if (spool->fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR))
		spool->fd = open_named(directory);
	return spool->fd < 0 ? err_set(err, "%s: %s", directory, strerror(errno)) : 0;
}

int
spool_put(struct spool *spool, struct slice bytes, struct err *err)
{
	while (bytes.len > 0) {
		const ssize_t n = pwrite(spool->fd, bytes.ptr, bytes.len, (off_t)spool->len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return err_set(err, "%s", strerror(n == 0 ? ENOSPC : errno));
		spool->len += (uint64_t)n;
		bytes = slice_skip(bytes, (size_t)n);
	}
	return 0;
}

int
spool_next(struct spool *spool, char *room, size_t size, struct slice *bytes, struct err *err)
{
	const uint64_t left = spool->len - spool->given;
	ssize_t n = 0;

	if (left < size)
		size = (size_t)left;
	while (size > 0 && (n = pread(spool->fd, room, size, (off_t)spool->given)) < 0 &&
		errno == EINTR)
		;
	if (n < 0 || (n == 0 && size > 0))
		return err_set(err, "%s", strerror(n == 0 ? EIO : errno));
	spool->given += (uint64_t)n;
	*bytes = slice_make(room, (size_t)n);
	return 0;
}

void
spool_close(struct spool *spool)
{
	(void)close(spool->fd);
	spool->fd = -1;
}
