/*
 * The sentence that says what went wrong, filled by the one who knows. Callers may put a prefix in
 * front of it; whoever decides what happens next logs it, once.
 */
#ifndef WEIR_ERR_H
#define WEIR_ERR_H

#define WEIR_MUST_CHECK __attribute__((warn_unused_result))
#define WEIR_PRINTF(nth, first) __attribute__((format(printf, nth, first)))

struct err {
	char text[512]; /* always terminated; a longer sentence is cut */
};

/* Returns -1, so that a guard is one line: `return err_set(err, "...")`. */
int err_set(struct err *err, const char *format, ...) WEIR_PRINTF(2, 3);

/* "prefix: what was there". Returns -1. */
int err_prefix(struct err *err, const char *format, ...) WEIR_PRINTF(2, 3);

/* Why the file could not be opened: what the errno says and, where a right is missing, whose the
 * file is and who we are. Without the path. Returns -1. */
int err_set_open(struct err *err, const char *path, int error);

#endif
