/*
 * Lists and the files that they name. Such a file is written by a panel or a cron job rather than
 * by hand, so a fault in it is told with the file's own line, and a few faults stand for all.
 */
#include "list.h"
#include "values.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum { FILE_SIZE_MAX = 128 * 1024 * 1024, FAULTS_SAID = 10, NETS_MAX = 10000 };

/* Cuts `NAME, NAME` off the front, up to the first file; there is one item at least. */
static struct slice
cut_items(struct slice *rest, size_t *count)
{
	const struct slice whole = *rest;
	struct slice end = whole, part;

	while (slice_split(&end, ',', &part) && (part.len == 0 || part.ptr[0] != '@')) {
		*rest = end;
		++*count;
	}
	/* Without the comma in front of the file, behind which an item would be expected. */
	return rest->ptr == NULL ? whole
				 : slice_make(whole.ptr, (size_t)(rest->ptr - whole.ptr) - 1);
}

static size_t
count_lines(struct slice text)
{
	size_t count = 1;

	for (size_t at = slice_find(text, '\n'); at < text.len; at = slice_find(text, '\n')) {
		text = slice_skip(text, at + 1);
		count++;
	}
	return count;
}

static int
open_file(struct list_piece *piece, const struct value *value, struct slice path, struct err *err)
{
	if (path.len == 0 || path.ptr[0] != '/')
		return err_set(err, "\"@%.*s\" names no absolute path; write @/path", SHOWN(path));
	piece->file = value_copy(value, path, err);
	if (piece->file == NULL)
		return -1;
	if (config_file_load(piece->file, FILE_SIZE_MAX, &piece->content, err) != 0)
		return err_prefix(
			err, "%s cannot be read by user id %u", piece->file, (unsigned)geteuid());
	piece->rest = slice_make(piece->content.bytes, piece->content.len);
	piece->count = count_lines(piece->rest);
	if (piece->count > LIST_FILE_LINES_MAX + 1)
		return err_set(err, "%s has more than %d lines", piece->file, LIST_FILE_LINES_MAX);
	return 0;
}

int
list_open(struct list *list, const struct value *value, struct slice text, struct err *err)
{
	struct slice rest = text, part;

	list->count = 0;
	while (rest.ptr != NULL) {
		struct list_piece *piece = &list->pieces[list->count];

		if (list->count == LIST_PIECES_MAX)
			return err_set(err, "the list names too many files");
		*piece = (struct list_piece){ 0 };
		list->count++;
		if (!slice_has_prefix(slice_trim(rest), SLICE("@"))) {
			piece->rest = cut_items(&rest, &piece->count);
			continue;
		}
		(void)slice_split(&rest, ',', &part);
		if (open_file(piece, value, slice_skip(part, 1), err) != 0)
			return -1;
	}
	return 0;
}

void
list_close(struct list *list)
{
	for (unsigned i = 0; i < list->count; i++) {
		struct file_content *content = &list->pieces[i].content;

		if (content->bytes == NULL)
			continue;
		explicit_bzero(content->bytes, content->len);
		free(content->bytes);
	}
	list->count = 0;
}

/* The line without comment, which begins it or stands behind a blank. */
static struct slice
without_comment(struct slice line)
{
	for (size_t at = slice_find(line, '#'); at < line.len;) {
		if (at == 0 || line.ptr[at - 1] == ' ' || line.ptr[at - 1] == '\t')
			return slice_trim(slice_first(line, at));
		at += 1 + slice_find(slice_skip(line, at + 1), '#');
	}
	return slice_trim(line);
}

static int
check_item(const char *file, struct slice item, struct err *err)
{
	if (item.len > LIST_ITEM_MAX)
		return err_set(err, "the line has more than %d bytes", LIST_ITEM_MAX);
	for (size_t i = 0; i < item.len; i++) {
		const unsigned char c = (unsigned char)item.ptr[i];

		if (c == '\r' && i + 1 == item.len)
			return err_set(err,
				"the line ends with CR LF; convert the file with: sed -i "
				"'s/\\r$//' %s",
				file);
		if ((c < ' ' && c != '\t') || c == 0x7f)
			return err_set(err, "the line holds a control character (0x%02x)", c);
	}
	if (slice_has_prefix(item, SLICE("\xef\xbb\xbf")))
		return err_set(
			err, "the line begins with a byte order mark; save the file without");
	return 0;
}

static bool
next_item(struct list_piece *piece, struct slice *item)
{
	if (piece->file == NULL)
		return slice_split(&piece->rest, ',', item);
	while (piece->rest.len > 0) {
		const size_t end = slice_find(piece->rest, '\n');

		*item = without_comment(slice_first(piece->rest, end));
		piece->rest = slice_skip(piece->rest, end < piece->rest.len ? end + 1 : end);
		piece->line++;
		if (item->len > 0)
			return true;
	}
	return false;
}

static int
take_item(struct list_piece *piece, struct slice item, list_item_fn *take, void *context,
	struct err *err)
{
	if (item.len == 0)
		return err_set(err, "an item of the list is empty");
	if (piece->file != NULL && check_item(piece->file, item, err) != 0)
		return -1;
	return take(context, item, piece->line, err);
}

int
list_each(const struct value *value, struct list_piece *piece, list_item_fn *take, void *context,
	struct err *err)
{
	unsigned faults = 0;
	struct slice item;

	while (next_item(piece, &item)) {
		const struct place place = { piece->file, piece->line };

		if (take_item(piece, item, take, context, err) == 0)
			continue;
		if (piece->file == NULL)
			return -1;
		if (++faults <= FAULTS_SAID)
			value_complain(value, SEVERITY_ERROR, place, "%s", err->text);
	}
	if (faults == 0)
		return 0;
	if (faults > FAULTS_SAID)
		value_complain(value, SEVERITY_ERROR, (struct place){ piece->file, piece->line },
			"%u more lines are refused", faults - FAULTS_SAID);
	err->text[0] = '\0';
	return -1;
}

void
list_check_file(const struct value *value, const struct list_piece *piece, bool is_secret)
{
	const struct stat *status = &piece->content.status;
	struct err err;

	if (piece->file == NULL)
		return;
	if ((status->st_mode & S_IWOTH) != 0)
		value_complain(value, SEVERITY_WARNING, value->place,
			"every user of this host can change %s; chmod o= %s", piece->file,
			piece->file);
	else if (is_secret && config_file_check_secret(piece->file, status, &err) != 0)
		value_complain(value, SEVERITY_WARNING, value->place,
			"%s; or keep only sha256: of the values in it", err.text);
}

/* ---- networks ---- */

struct nets {
	struct ip_net *list;
	unsigned count;
};

static int
take_net(void *context, struct slice item, unsigned line, struct err *err)
{
	struct nets *nets = context;

	(void)line;
	if (ip_net_parse(item, &nets->list[nets->count], err) != 0)
		return -1;
	nets->count++;
	return 0;
}

static int
take_nets(struct list *list, const struct value *value, struct nets *nets, struct err *err)
{
	size_t count = 0;
	int result = 0;

	for (unsigned i = 0; i < list->count; i++)
		count += list->pieces[i].count;
	if (count > NETS_MAX)
		return err_set(err, "the list has more than %d lines", NETS_MAX);
	nets->list = value_alloc(value, count * sizeof nets->list[0], err);
	if (nets->list == NULL)
		return -1;
	for (unsigned i = 0; i < list->count && result == 0; i++) {
		result = list_each(value, &list->pieces[i], take_net, nets, err);
		list_check_file(value, &list->pieces[i], false);
	}
	return result;
}

int
list_nets(const struct value *value, struct slice text, struct ip_net **nets, unsigned *count,
	struct err *err)
{
	struct nets taken = { NULL, 0 };
	struct list list;
	int result = list_open(&list, value, text, err);

	if (result == 0)
		result = take_nets(&list, value, &taken, err);
	list_close(&list);
	*nets = taken.list;
	*count = taken.count;
	return result;
}
