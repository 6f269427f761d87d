/*
 * Lists and the files that they name. Such a file is written by a panel or a cron job rather than
 * by hand, so a fault in it is told with the file's own line, and a few faults stand for all.
 */
#include "list.h"
#include "values.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum { FILE_SIZE_MAX = 128 * 1024 * 1024, FAULTS_SAID = 10 };

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

static void
wipe(struct file_content *content)
{
	if (content->bytes == NULL)
		return;
	explicit_bzero(content->bytes, content->len);
	free(content->bytes);
	content->bytes = NULL;
}

/* What else is wrong with the list is told too, so it goes on without the file. */
static void
refuse(struct list *list, const struct value *value, struct list_piece *piece, struct err *err)
{
	wipe(&piece->content);
	*piece = (struct list_piece){ .is_refused = true };
	list->is_broken = true;
	value_complain(value, SEVERITY_ERROR, value->place, "%s", err->text);
	err->text[0] = '\0';
}

int
list_open(struct list *list, const struct value *value, struct slice text, struct err *err)
{
	struct slice rest = text, part;

	list->count = 0;
	list->is_broken = false;
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
			refuse(list, value, piece, err);
	}
	return 0;
}

void
list_close(struct list *list)
{
	for (unsigned i = 0; i < list->count; i++)
		wipe(&list->pieces[i].content);
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
	if (piece->is_refused)
		return false;
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

/* As a comment begins in the configuration, and not here. */
static bool
has_semicolon(struct slice item)
{
	for (size_t at = slice_find(item, ';'); at < item.len;) {
		if (at == 0 || item.ptr[at - 1] == ' ' || item.ptr[at - 1] == '\t')
			return true;
		at += 1 + slice_find(slice_skip(item, at + 1), ';');
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

/* What was said of the items of a piece. */
struct remarks {
	unsigned faults, semicolons;
};

/* The item itself may be a secret. */
static void
remark(const struct value *value, const struct list_piece *piece, struct remarks *remarks,
	struct slice item, bool is_taken, const struct err *err)
{
	const bool is_commented = piece->file != NULL && has_semicolon(item);
	const struct place place =
		piece->file == NULL ? value->place : (struct place){ piece->file, piece->line };
	unsigned *said = is_taken ? &remarks->semicolons : &remarks->faults;

	if (++*said > FAULTS_SAID)
		return;
	if (is_taken)
		value_complain(value, SEVERITY_WARNING, place,
			"\";\" begins no comment in such a file, so what is behind it belongs to "
			"the value; write #");
	else
		value_complain(value, SEVERITY_ERROR, place, "%s%s", err->text,
			is_commented ? "; a comment begins with # in such a file" : "");
}

static void
remark_rest(const struct value *value, const struct list_piece *piece, unsigned said,
	enum severity severity, const char *what)
{
	if (said > FAULTS_SAID)
		value_complain(value, severity, (struct place){ piece->file, piece->line },
			"%u more lines %s", said - FAULTS_SAID, what);
}

int
list_each(const struct value *value, struct list_piece *piece, list_item_fn *take, void *context,
	struct err *err)
{
	struct remarks remarks = { 0, 0 };
	struct slice item;

	while (next_item(piece, &item)) {
		const bool is_taken = take_item(piece, item, take, context, err) == 0;

		if (!is_taken || (piece->file != NULL && has_semicolon(item)))
			remark(value, piece, &remarks, item, is_taken, err);
	}
	err->text[0] = '\0';
	if (piece->file == NULL)
		return remarks.faults == 0 ? 0 : -1;
	remark_rest(value, piece, remarks.faults, SEVERITY_ERROR, "are refused");
	remark_rest(value, piece, remarks.semicolons, SEVERITY_WARNING, "have a \";\" too");
	return remarks.faults == 0 ? 0 : -1;
}

int
list_line(const struct value *value, struct slice text, list_item_fn *take, void *context,
	struct err *err)
{
	struct list_piece piece = { .rest = text };

	return list_each(value, &piece, take, context, err);
}

/* For config_compare. Without memory it is not compared. */
static void
note_file(const struct value *value, const struct list_piece *piece, size_t items)
{
	const struct slice all = slice_make(piece->content.bytes, piece->content.len);
	struct err err;
	struct config_list_file *file = value_alloc(value, sizeof *file, &err);

	if (file == NULL)
		return;
	*file = (struct config_list_file){ .next = value->config->list_files,
		.name = piece->file,
		.items = (uint32_t)items,
		.content = hash_wide(NULL, all),
		.is_blank = items == 0 && slice_find(all, '#') == all.len,
		.is_ended = all.len == 0 || all.ptr[all.len - 1] == '\n' };
	value->config->list_files = file;
}

void
list_check_file(
	const struct value *value, const struct list_piece *piece, bool is_secret, size_t items)
{
	const struct stat *status = &piece->content.status;
	struct err err;

	if (piece->file == NULL)
		return;
	note_file(value, piece, items);
	if (items == 0)
		value_complain(value, SEVERITY_WARNING, value->place,
			"%s holds no item, so it names nobody", piece->file);
	if ((status->st_mode & S_IWOTH) != 0)
		value_complain(value, SEVERITY_WARNING, value->place,
			"every user of this host can change %s; chmod o= %s", piece->file,
			piece->file);
	else if (is_secret && config_file_check_secret(piece->file, status, &err) != 0)
		value_complain(value, SEVERITY_WARNING, value->place,
			"%s; or keep only sha256: of the values in it", err.text);
}
