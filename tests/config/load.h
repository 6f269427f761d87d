/*
 * Files in a directory of the test's own, which is the current one, so that "weir.ini:3" is what
 * diagnostics say of them.
 */
#ifndef WEIR_TESTS_CONFIG_LOAD_H
#define WEIR_TESTS_CONFIG_LOAD_H

#include "../unit.h"
#include "weir/config.h"

#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static char load_directory[PATH_MAX];

static inline int
load_setup(void **state)
{
	const char *temporary = getenv("TMPDIR");

	(void)state;
	(void)snprintf(load_directory, sizeof load_directory, "%s/weir-config-XXXXXX",
		temporary == NULL ? "/tmp" : temporary);
	return mkdtemp(load_directory) == NULL || chdir(load_directory) != 0 ? -1 : 0;
}

static inline int
load_remove(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
	(void)status, (void)kind, (void)walk;
	return remove(path);
}

static inline int
load_teardown(void **state)
{
	(void)state;
	return chdir("/") != 0 || nftw(load_directory, load_remove, 8, FTW_DEPTH | FTW_PHYS) != 0;
}

static inline void
write_file(const char *name, struct slice text)
{
	FILE *file = fopen(name, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(text.ptr, 1, text.len, file), text.len);
	assert_int_equal(fclose(file), 0);
}

/* What `weir check` says of a file, for free(). *config is NULL if it was refused; a caller that
 * wants none passes NULL. */
static inline char *
said_of_file(const char *name, struct config **config)
{
	struct diagnostics diagnostics;
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	diagnostics_init(&diagnostics);
	struct config *loaded = config_load(name, &diagnostics);

	diagnostics_print(&diagnostics, out);
	assert_int_equal(fclose(out), 0);
	assert_true((loaded == NULL) == (diagnostics.errors > 0));
	diagnostics_release(&diagnostics);
	if (config == NULL)
		config_free(loaded);
	else
		*config = loaded;
	/* A copy, since gcc 12 takes the stream's buffer for a pointer to the variable. */
	char *copy = strdup(text);

	assert_non_null(copy);
	free(text);
	return copy;
}

static inline char *
said_of(const char *ini, struct config **config)
{
	write_file("weir.ini", slice_of(ini));
	return said_of_file("weir.ini", config);
}

/* `ini` is all of weir.ini. */
static inline void
assert_said(const char *ini, const char *expected)
{
	char *said = said_of(ini, NULL);

	assert_row(strcmp(said, expected) == 0, "of:\n%s\nwas said:\n%s\nand not:\n%s", ini, said,
		expected);
	free(said);
}

/* The same with what every configuration needs behind it. */
static inline void
assert_said_with_rest(const char *ini, const char *expected)
{
	static const char rest[] = "\n[backend rest]\nserver = unix:/run/rest.sock\n"
				   "[route rest]\nmatch = *\n";
	char *whole = NULL;

	assert_true(asprintf(&whole, "%s%s", ini, rest) > 0);
	assert_said(whole, expected);
	free(whole);
}

static inline struct config *
loaded(const char *ini)
{
	struct config *config;
	char *said = said_of(ini, &config);

	assert_row(config != NULL, "%s\nwas refused:\n%s", ini, said);
	free(said);
	return config;
}

/* ---- damage ---- */

/* A file that is written over and over, which some file systems make write_file wait for. */
static inline int
open_damaged(const char *name)
{
	const int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	return fd;
}

static inline void
rewrite_file(int fd, struct slice text)
{
	assert_int_equal(ftruncate(fd, (off_t)text.len), 0);
	assert_int_equal(pwrite(fd, text.ptr, text.len, 0), (ssize_t)text.len);
}

/* NULL, and that is no failure, if it is refused. */
static inline struct config *
load_damaged(const char *name)
{
	struct diagnostics diagnostics;

	diagnostics_init(&diagnostics);
	struct config *config = config_load(name, &diagnostics);

	assert_true((config == NULL) == (diagnostics.errors > 0));
	diagnostics_release(&diagnostics);
	return config;
}

/* Bytes that mean something somewhere, and some that mean nothing anywhere. A long text has some of
 * them at each place, in turns. WEIR_TEST_ALL_BYTES in the environment tries all everywhere. */
static const char telling[] = "\0\t\n\r ;#=:[]/\\*~|,+\"'^$()@%?.-_019aAmsz\x7f\x80\xa0\xc3\xff";

/* Calls back for every beginning of `s`, and for every text that lacks one of its bytes or has
 * another one there. */
static inline void
each_damage(struct slice s, void (*each)(void *context, struct slice mutant), void *context)
{
	const bool is_thorough = getenv("WEIR_TEST_ALL_BYTES") != NULL;
	const size_t bytes = is_thorough ? 256 : sizeof telling - 1;
	const size_t stride = is_thorough || s.len < 1000 ? 1 : 7;
	char *mutant = malloc(s.len + 1);

	assert_non_null(mutant);
	for (size_t at = 0; at <= s.len; at++) {
		each(context, slice_first(s, at));
		memcpy(mutant, s.ptr, at);
		if (at < s.len) {
			memcpy(mutant + at, s.ptr + at + 1, s.len - at - 1);
			each(context, slice_make(mutant, s.len - 1));
			memcpy(mutant, s.ptr, s.len);
		}
		for (size_t i = at % stride; i < bytes && at < s.len; i += stride) {
			mutant[at] = is_thorough ? (char)i : telling[i];
			each(context, slice_make(mutant, s.len));
		}
	}
	free(mutant);
}

#endif
