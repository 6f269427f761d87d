/*
 * The file of a unix socket: whose it is, who may connect, and that nobody takes another's away.
 *
 * Rights are set between bind and listen, when nobody can connect yet, so neither the umask nor a
 * moment of wider rights matters. But in that moment a second weir finds a socket that nobody
 * listens on, and would take its place. So whoever makes or removes such a file holds a lock on its
 * directory. Anybody who may read a directory can lock it, and must not keep weir from starting
 * with that: the wait is short, and then it goes on without.
 */
#include "loop_private.h"
#include "weir/socket.h"
#include "weir/units.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <libgen.h>
#include <poll.h>
#include <pwd.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { DEFAULT_MODE = 0660, LOCK_TRIES = 100, LOCK_PAUSE_MS = 10 };

/* ---- the lock ---- */

/* The descriptor that holds it; -1: it cannot be had. */
static int
lock_directory(const struct address *address)
{
	struct address copy = *address;
	const int fd = open(dirname(copy.host), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (unsigned i = 0; fd >= 0 && i < LOCK_TRIES; i++) {
		if (flock(fd, LOCK_EX | LOCK_NB) == 0)
			return fd;
		(void)poll(NULL, 0, LOCK_PAUSE_MS);
	}
	if (fd >= 0)
		(void)close(fd);
	return -1;
}

static void
unlock_directory(int fd)
{
	if (fd >= 0)
		(void)close(fd);
}

/* ---- who may connect ---- */

struct rights {
	mode_t mode;
	uid_t uid; /* -1: as the process */
	gid_t gid;
};

static int
find_user(const char *name, uid_t *uid, struct err *err)
{
	uint64_t number;
	const struct passwd *entry = getpwnam(name);

	if (entry != NULL)
		*uid = entry->pw_uid;
	else if (parse_uint(slice_of(name), UINT32_MAX - 1, &number) == 0)
		*uid = (uid_t)number;
	else
		return err_set(err, "there is no user \"%s\" on this system", name);
	return 0;
}

static int
find_group(const char *name, gid_t *gid, struct err *err)
{
	uint64_t number;
	const struct group *entry = getgrnam(name);

	if (entry != NULL)
		*gid = entry->gr_gid;
	else if (parse_uint(slice_of(name), UINT32_MAX - 1, &number) == 0)
		*gid = (gid_t)number;
	else
		return err_set(err, "there is no group \"%s\" on this system", name);
	return 0;
}

static int
find_rights(const struct socket_owner *owner, struct rights *rights, struct err *err)
{
	*rights = (struct rights){ .mode = (mode_t)(owner->mode == 0 ? DEFAULT_MODE : owner->mode),
		.uid = (uid_t)-1,
		.gid = (gid_t)-1 };
	if (owner->owner != NULL && find_user(owner->owner, &rights->uid, err) != 0)
		return -1;
	return owner->group == NULL ? 0 : find_group(owner->group, &rights->gid, err);
}

static int
set_rights(const char *path, const struct socket_owner *owner, const struct rights *rights,
	struct err *err)
{
	if ((rights->uid != (uid_t)-1 || rights->gid != (gid_t)-1) &&
		chown(path, rights->uid, rights->gid) != 0)
		return err_set(err,
			"it cannot be given to %s:%s: %s; the user that runs weir must be a member "
			"of the group",
			owner->owner == NULL ? "" : owner->owner,
			owner->group == NULL ? "" : owner->group, strerror(errno));
	if (chmod(path, rights->mode) != 0)
		return err_set(err, "chmod: %s", strerror(errno));
	return 0;
}

/* ---- the file ---- */

/* 0: the path is free; -1: it is not, and err says by whom it is held. */
static int
clear_path(const char *path, const struct sockaddr *address, socklen_t len, struct err *err)
{
	struct stat st;

	if (lstat(path, &st) != 0)
		return errno == ENOENT ? 0 : err_set(err, "%s", strerror(errno));
	if (!S_ISSOCK(st.st_mode))
		return err_set(err,
			"something is there already that is no socket; remove it or choose "
			"another path");
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return err_set(err, "socket: %s", strerror(errno));
	const int error = connect(fd, address, len) == 0 ? 0 : errno;

	(void)close(fd);
	/* Only ECONNREFUSED says that nobody listens; EACCES, say, does not. */
	if (error == 0 || error == EAGAIN)
		return err_set(err, "another process listens there already");
	if (error != ECONNREFUSED)
		return err_set(err, "whether another process listens there cannot be told: %s",
			strerror(error));
	if (unlink(path) != 0 && errno != ENOENT)
		return err_set(err, "the old socket cannot be removed: %s", strerror(errno));
	return 0;
}

static int
listen_locked(int fd, const struct address *address, const struct socket_owner *owner,
	const struct rights *rights, struct err *err)
{
	const char *path = address->host;
	struct sockaddr_storage name;
	socklen_t len;
	int result;

	if (socket_address(address, &name, &len) != 0)
		return err_set(err, "the path is too long");
	if (clear_path(path, (struct sockaddr *)&name, len, err) != 0)
		return -1;
	if (bind(fd, (struct sockaddr *)&name, len) != 0)
		return err_set(err, "%s", strerror(errno));
	result = set_rights(path, owner, rights, err);
	if (result == 0 && listen(fd, SOCKET_BACKLOG) != 0)
		result = err_set(err, "listen: %s", strerror(errno));
	if (result != 0)
		(void)unlink(path);
	return result;
}

int
socket_file_listen(int fd, const struct address *address, const struct socket_owner *owner,
	struct socket_file *file, struct err *err)
{
	struct rights rights;
	struct stat st;

	/* Users and groups may be those of a directory service that takes its time: not under the
	 * lock. */
	if (find_rights(owner, &rights, err) != 0)
		return -1;
	const int lock = lock_directory(address);
	const int result = listen_locked(fd, address, owner, &rights, err);

	if (result == 0 && file != NULL && lstat(address->host, &st) == 0)
		*file = (struct socket_file){ st.st_dev, st.st_ino };
	unlock_directory(lock);
	return result;
}

void
socket_unlink(const struct address *address, const struct socket_file *file)
{
	struct stat st;

	if (address->kind != ADDRESS_UNIX || file->inode == 0)
		return;
	const int lock = lock_directory(address);

	if (lstat(address->host, &st) == 0 && st.st_dev == file->device && st.st_ino == file->inode)
		(void)unlink(address->host);
	unlock_directory(lock);
}
