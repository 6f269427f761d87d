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
	bool is_refused; /* the file cannot be used, which was said */
};

/* A line of 200 bytes has no more. */
enum { LIST_PIECES_MAX = 128, LIST_ITEM_MAX = 4096, LIST_FILE_LINES_MAX = 1000000 };

struct list {
	struct list_piece pieces[LIST_PIECES_MAX];
	unsigned count;
	bool is_broken; /* a piece is refused */
};

/* Reads the files that `text` names. One that cannot be used is told, and has no items. */
int list_open(struct list *list, const struct value *value, struct slice text,
	struct err *err) WEIR_MUST_CHECK;

/* What was read may have been secret, and is wiped. */
void list_close(struct list *list);

/* Takes one item, trimmed and never empty; `line` is as of struct list_piece. */
typedef int list_item_fn(void *context, struct slice item, unsigned line, struct err *err);

/*
 * Takes all items of a piece. What is wrong with any of them is said, in a file with its own line,
 * and err is left empty.
 */
int list_each(const struct value *value, struct list_piece *piece, list_item_fn *take,
	void *context, struct err *err) WEIR_MUST_CHECK;

/* The same for a list that names no files. */
int list_line(const struct value *value, struct slice text, list_item_fn *take, void *context,
	struct err *err) WEIR_MUST_CHECK;

/* An item of a list of networks. */
int list_net(struct slice item, struct ip_net *net, struct err *err) WEIR_MUST_CHECK;

/* A list of networks, none of which is a secret. */
int list_nets(const struct value *value, struct slice text, struct ip_net **nets, unsigned *count,
	struct err *err) WEIR_MUST_CHECK;

/* When all of it is taken: keeps what it was for config_compare, and says it if the file had no
 * `items`, or if others than weir's administrator can change it, or, if
 * it is secret, read it. */
void list_check_file(
	const struct value *value, const struct list_piece *piece, bool is_secret, size_t items);

#endif
