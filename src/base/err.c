/* Error sentences of bounded length. */
#include "weir/err.h"

#include <errno.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { USER_TEXT_SIZE = 64 };

int
err_set(struct err *err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(err->text, sizeof err->text, format, args);
	va_end(args);
	return -1;
}

int
err_prefix(struct err *err, const char *format, ...)
{
	struct err old = *err;
	va_list args;

	va_start(args, format);
	int n = vsnprintf(err->text, sizeof err->text, format, args);
	va_end(args);
	/* What does not fit is cut; the result is asked for only so that compilers see that we
	 * know. */
	if (n >= 0 && (size_t)n < sizeof err->text &&
		snprintf(err->text + n, sizeof err->text - (size_t)n, ": %s", old.text) < 0)
		err->text[n] = '\0';
	return -1;
}

static const char *
user_text(uid_t uid, char out[USER_TEXT_SIZE])
{
	struct passwd entry, *found = NULL;
	char room[2048];

	if (getpwuid_r(uid, &entry, room, sizeof room, &found) == 0 && found != NULL)
		(void)snprintf(out, USER_TEXT_SIZE, "%s", found->pw_name);
	else
		(void)snprintf(out, USER_TEXT_SIZE, "%u", (unsigned)uid);
	return out;
}

int
err_set_open(struct err *err, const char *path, int error)
{
	char owner[USER_TEXT_SIZE], user[USER_TEXT_SIZE];
	struct stat st;

	if ((error != EACCES && error != EPERM) || stat(path, &st) != 0)
		return err_set(err, "%s", strerror(error));
	return err_set(err, "%s; it belongs to %s, and weir runs as %s", strerror(error),
		user_text(st.st_uid, owner), user_text(geteuid(), user));
}
