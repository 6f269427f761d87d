/*
 * Lists: items separated by commas, of which `@/path` stands for the lines of a file. A list is
 * taken piece by piece, so that each item is known by its file and line.
 */
#ifndef WEIR_CONFIG_LIST_H
#define WEIR_CONFIG_LIST_H

#include "files.h"
#include "options.h"

/* Items that stand in the line itself, one behind the other, or those of one file. */
struct list_piece {
	const char *file; /* in the configuration's arena; NULL: the line itself */
	struct file_content content; /* of that file */
	struct slice rest; /* what was not taken yet */
	unsigned line; /* of the item that was taken last; 0 in the line itself */
	size_t count; /* how many items there can be */
};

/* A line of 200 bytes has no more. */
enum { LIST_PIECES_MAX = 128, LIST_ITEM_MAX = 4096, LIST_FILE_LINES_MAX = 1000000 };

struct list {
	struct list_piece pieces[LIST_PIECES_MAX];
	unsigned count;
};

/* Reads the files that `text` names. */
int list_open(struct list *list, const struct value *value, struct slice text,
	struct err *err) WEIR_MUST_CHECK;

/* What was read may have been secret, and is wiped. */
void list_close(struct list *list);

/* Takes one item, trimmed and never empty; `line` is as of struct list_piece. */
typedef int list_item_fn(void *context, struct slice item, unsigned line, struct err *err);

/*
 * Takes all items of a piece. The first of the line itself that is refused ends it. Of a file all
 * are tried, what is wrong is said with its line, and err is left empty.
 */
int list_each(const struct value *value, struct list_piece *piece, list_item_fn *take,
	void *context, struct err *err) WEIR_MUST_CHECK;

/* A list of networks, none of which is a secret. */
int list_nets(const struct value *value, struct slice text, struct ip_net **nets, unsigned *count,
	struct err *err) WEIR_MUST_CHECK;

/* Says it if others than weir's administrator can change the file, or, if it is secret, read it. */
void list_check_file(const struct value *value, const struct list_piece *piece, bool is_secret);

#endif
