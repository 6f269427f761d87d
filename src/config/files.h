/* The files that a configuration consists of: what is in one, and which ones a pattern names. */
#ifndef WEIR_CONFIG_FILES_H
#define WEIR_CONFIG_FILES_H

#include "weir/arena.h"
#include "weir/err.h"

#include <sys/stat.h>

struct file_content {
	char *bytes; /* for free(); not terminated */
	size_t len;
	struct stat status;
};

/* A regular file of `max` bytes at the most. Never waits, as opening a FIFO would. */
int config_file_load(const char *name, size_t max, struct file_content *content,
	struct err *err) WEIR_MUST_CHECK;

/* -1 if others than weir and root can read the file; err says who, and what to do. */
int config_file_check_secret(
	const char *name, const struct stat *status, struct err *err) WEIR_MUST_CHECK;

typedef void config_files_each_fn(void *context, const char *name);

/*
 * Calls back for each file that `pattern` names, in the order of their bytes. A relative pattern
 * starts in the directory of the file `beside`. A pattern with a wildcard may name none; one
 * without names one file, whether it exists or not.
 */
int config_files_match(const char *beside, const char *pattern, struct arena *arena,
	config_files_each_fn *each, void *context, struct err *err) WEIR_MUST_CHECK;

#endif
