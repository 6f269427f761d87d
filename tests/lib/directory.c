/* Temporary directories. What goes wrong here is no test's fault, so it ends the program. */
#include "directory.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static void
require(bool condition, const char *what)
{
	if (condition)
		return;
	perror(what);
	abort();
}

void
directory_make(struct directory *directory)
{
	const char *temporary = getenv("TMPDIR");
	const bool is_short = temporary != NULL && strlen(temporary) < 40;

	(void)snprintf(directory->path, sizeof directory->path, "%s/weir-XXXXXX",
		is_short ? temporary : "/tmp");
	require(mkdtemp(directory->path) != NULL, "mkdtemp");
}

static int
remove_one(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
	(void)status, (void)kind, (void)walk;
	return remove(path);
}

void
directory_remove(const struct directory *directory)
{
	require(nftw(directory->path, remove_one, 8, FTW_DEPTH | FTW_PHYS) == 0, "nftw");
}

struct directory_path
directory_path(const struct directory *directory, const char *name)
{
	struct directory_path path;
	const int n = snprintf(path.text, sizeof path.text, "%s/%s", directory->path, name);

	require(n > 0 && (size_t)n < sizeof path.text, "a path in the temporary directory");
	return path;
}

struct address
directory_socket(const struct directory *directory, const char *name)
{
	struct address address = { .kind = ADDRESS_UNIX };

	(void)snprintf(
		address.host, sizeof address.host, "%s", directory_path(directory, name).text);
	return address;
}

void
directory_write(const struct directory *directory, const char *name, struct slice text)
{
	FILE *file = fopen(directory_path(directory, name).text, "w");

	require(file != NULL, name);
	require(fwrite(text.ptr, 1, text.len, file) == text.len, name);
	require(fclose(file) == 0, name);
}

char *
directory_read(const struct directory *directory, const char *name)
{
	FILE *file = fopen(directory_path(directory, name).text, "r");
	size_t len = 0, size = 4096;
	char *text = malloc(size);

	require(text != NULL, "malloc");
	while (file != NULL) {
		len += fread(text + len, 1, size - len - 1, file);
		if (len < size - 1)
			break;
		size *= 2;
		text = realloc(text, size);
		require(text != NULL, "realloc");
	}
	if (file != NULL)
		(void)fclose(file);
	text[len] = '\0';
	return text;
}
