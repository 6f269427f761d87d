/*
 * The memory's file. Whoever comes first makes it, under a lock, and the others find it ready. A
 * file of another layout is unlinked and made anew: processes of the old version keep the old one
 * until they end.
 *
 * A second lock is shared and held for as long as the file is used, so whoever comes knows whether
 * he is alone. Both belong to the open file, which its mapping holds: the kernel lets go of them
 * when a process dies, and other users, who may not open the file, cannot take them.
 */
#include "memory_private.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
	MAGIC_COMMON = 5, /* bytes that all versions begin with */
	ATTEMPTS_MAX = 10,
	LOCK_RETRY_MS = 10,
};

/* How long somebody may take to make a file of this size. */
static int
wait_s(uint64_t size)
{
	return (int)(5 + size / (64 * 1024 * 1024));
}

/* The byte of the file that each lock is on. */
enum { LOCK_OPENING, LOCK_IN_USE };

static int
set_lock(int fd, int which, short type)
{
	struct flock lock = { .l_type = type, .l_whence = SEEK_SET, .l_start = which, .l_len = 1 };

	return fcntl(fd, F_OFD_SETLK, &lock);
}

static int
lock_opening(int fd, uint64_t size, struct err *err)
{
	static const struct timespec pause = { .tv_nsec = LOCK_RETRY_MS * 1000000L };

	for (int i = 0; i < wait_s(size) * 1000 / LOCK_RETRY_MS; i++) {
		if (set_lock(fd, LOCK_OPENING, F_WRLCK) == 0)
			return 0;
		if (errno != EAGAIN && errno != EACCES)
			return err_set(err, "it cannot be locked: %s", strerror(errno));
		(void)nanosleep(&pause, NULL);
	}
	return err_set(err, "another process has kept it locked for %d s", wait_s(size));
}

/* With the file locked: so nobody else comes meanwhile. */
static int
lock_in_use(int fd, bool *is_alone, struct err *err)
{
	*is_alone = set_lock(fd, LOCK_IN_USE, F_WRLCK) == 0;
	return set_lock(fd, LOCK_IN_USE, F_RDLCK) == 0
		? 0
		: err_set(err, "it cannot be locked: %s", strerror(errno));
}

static int
check_owner(int fd, struct stat *st, struct err *err)
{
	if (fstat(fd, st) != 0)
		return err_set(err, "%s", strerror(errno));
	if (!S_ISREG(st->st_mode))
		return err_set(err, "it is no regular file");
	if (st->st_uid != geteuid())
		return err_set(err,
			"it belongs to user %u, but weir runs as user %u; choose another [memory] "
			"state",
			(unsigned)st->st_uid, (unsigned)geteuid());
	if ((st->st_mode & (S_IWGRP | S_IWOTH)) != 0)
		return err_set(err, "others may write to it (mode %03o); remove it",
			(unsigned)st->st_mode & 0777);
	return 0;
}

/* Half made or of another version; and not something of the user's own under a wrong path. */
static bool
may_be_replaced(int fd)
{
	static const char nothing[MAGIC_SIZE];
	char start[MAGIC_SIZE];
	const ssize_t n = pread(fd, start, sizeof start, 0);

	/* Of one that was cut there may be less. */
	return n > 0 &&
		(memcmp(start, memory_magic, n < MAGIC_COMMON ? (size_t)n : MAGIC_COMMON) == 0 ||
			memcmp(start, nothing, (size_t)n) == 0);
}

static int
not_ours(struct err *err)
{
	return err_set(err, "it is there already and is not weir's; choose another [memory] state");
}

enum file_state {
	FILE_READY,
	FILE_FAILED, /* err says why */
	FILE_SPOILT, /* likewise, and what we began shall not stay */
	FILE_FOREIGN, /* to be replaced */
	FILE_GONE, /* the path is another file's by now */
};

static enum file_state
make_file(struct memory *memory, int fd, uint64_t size, struct err *err)
{
	/* Taken from the file system now: later a full one would kill the process at a store. */
	const int error = posix_fallocate(fd, 0, (off_t)size);
	bool is_alone;

	if (error != 0)
		(void)err_set(err, "no room for %llu bytes: %s", (unsigned long long)size,
			strerror(error));
	else if (lock_in_use(fd, &is_alone, err) == 0 && memory_map(memory, fd, size, err) == 0 &&
		memory_format(memory, size, err) == 0)
		return FILE_READY;
	return FILE_SPOILT;
}

/* What is mapped and ours. */
static enum file_state
join(struct memory *memory, int fd, struct err *err)
{
	bool is_alone;

	if (lock_in_use(fd, &is_alone, err) != 0)
		return FILE_FAILED;
	return !is_alone || memory_revive(memory, err) == 0 ? FILE_READY : FILE_FAILED;
}

static enum file_state
use_file(struct memory *memory, int fd, uint64_t *size, struct err *err)
{
	struct stat st;

	if (check_owner(fd, &st, err) != 0)
		return FILE_FAILED;
	memory->device = st.st_dev;
	memory->inode = st.st_ino;
	if (st.st_size == 0)
		return make_file(memory, fd, *size, err);
	if (st.st_size >= MEMORY_SIZE_MIN) {
		if (memory_map(memory, fd, (uint64_t)st.st_size, err) != 0)
			return FILE_FAILED;
		if (memory_adopt(memory)) {
			*size = (uint64_t)st.st_size;
			return join(memory, fd, err);
		}
		memory_unmap(memory);
	}
	if (may_be_replaced(fd))
		return FILE_FOREIGN;
	(void)not_ours(err);
	return FILE_FAILED;
}

/* Whether the path still means this file: another process may have replaced it before we had the
 * lock. */
static bool
is_at(int fd, const char *path)
{
	struct stat here, there;

	return fstat(fd, &here) == 0 && lstat(path, &there) == 0 && here.st_dev == there.st_dev &&
		here.st_ino == there.st_ino;
}

/* Often weir was run by root once, to try it. */
static void
cannot_open(const char *path, int error, struct err *err)
{
	struct err why;

	(void)err_set_open(&why, path, error);
	(void)err_set(err, "%s%s", why.text,
		error == EACCES
			? "; remove it while weir is stopped, or choose another [memory] state"
			: "");
}

static enum file_state
open_once(struct memory *memory, const char *path, uint64_t *size, struct err *err)
{
	const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, 0600);
	enum file_state state = FILE_FAILED;
	struct stat st;

	if (fd < 0) {
		cannot_open(path, errno, err);
		return FILE_FAILED;
	}
	/* What is another's is not waited for. */
	if (check_owner(fd, &st, err) == 0 && lock_opening(fd, *size, err) == 0)
		state = is_at(fd, path) ? use_file(memory, fd, size, err) : FILE_GONE;
	/* Only while it is locked, and the path is its own. */
	if (state == FILE_FOREIGN || state == FILE_SPOILT)
		(void)unlink(path);
	if (state == FILE_READY)
		(void)set_lock(fd, LOCK_OPENING, F_UNLCK);
	else
		memory_unmap(memory);
	(void)close(fd);
	return state;
}

static int
open_file(struct memory *memory, const char *path, uint64_t *size, struct err *err)
{
	for (int attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
		switch (open_once(memory, path, size, err)) {
		case FILE_READY:
			return 0;
		case FILE_FAILED:
		case FILE_SPOILT:
			return -1;
		case FILE_FOREIGN:
		case FILE_GONE:
			break;
		}
	}
	return err_set(err, "it holds something else, and comes back when it is removed");
}

struct memory *
memory_open(const char *path, uint64_t *size, struct err *err)
{
	struct memory *memory = memory_new(err);

	if (memory == NULL)
		return NULL;
	memory->path = strdup(path);
	if (memory->path == NULL || open_file(memory, path, size, err) != 0) {
		if (memory->path == NULL)
			(void)err_set(err, "%s", strerror(errno));
		(void)err_prefix(err, "the memory store's file %s", path);
		memory_close(memory);
		return NULL;
	}
	return memory;
}

static int
check_file(struct memory *memory, int fd, struct err *err)
{
	struct stat st;

	if (check_owner(fd, &st, err) != 0)
		return -1;
	if (st.st_size == 0)
		return 0;
	if (st.st_size >= MEMORY_SIZE_MIN) {
		if (memory_map(memory, fd, (uint64_t)st.st_size, err) != 0)
			return -1;
		if (memory_adopt(memory))
			return 0;
	}
	return may_be_replaced(fd) ? 0 : not_ours(err);
}

int
memory_check(const char *path, struct err *err)
{
	const int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK);
	struct memory *memory = memory_new(err);
	int result = -1;

	if (fd < 0 && errno == ENOENT)
		result = 0;
	else if (fd < 0)
		cannot_open(path, errno, err);
	else if (memory != NULL)
		result = check_file(memory, fd, err);
	if (fd >= 0)
		(void)close(fd);
	memory_close(memory);
	return result == 0 ? 0 : err_prefix(err, "the memory store's file %s", path);
}
