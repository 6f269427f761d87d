/* A directory of the test's own, for its sockets and files. */
#ifndef WEIR_TESTS_LIB_DIRECTORY_H
#define WEIR_TESTS_LIB_DIRECTORY_H

#include "weir/address.h"
#include "weir/slice.h"

struct directory {
	char path[64];
};

/* Short enough for the name of a unix socket in it (107 bytes). */
struct directory_path {
	char text[108];
};

/* Ends the test program if there is no place for it. */
void directory_make(struct directory *directory);

/* With all that is in it. */
void directory_remove(const struct directory *directory);

/* Used in place: directory_path(&directory, "x.sock").text */
struct directory_path directory_path(const struct directory *directory, const char *name);

/* unix:DIRECTORY/NAME */
struct address directory_socket(const struct directory *directory, const char *name);

void directory_write(const struct directory *directory, const char *name, struct slice text);

/* What a file holds, for free(); "" if it is not there. */
char *directory_read(const struct directory *directory, const char *name);

#endif
