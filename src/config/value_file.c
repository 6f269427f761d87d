/* Values that name a file, which is read or looked for at once. */
#include "files.h"
#include "line.h"
#include "nearest.h"
#include "values.h"

#include <stdlib.h>
#include <unistd.h>

enum { PASSWORD_MAX = 4096, PAGE_MAX = 64 * 1024, ZONES_MAX = 256 * 1024 };

/* ---- a secret ---- */

/* The one line of a password file, without its end. */
static int
check_password(struct slice *text, struct err *err)
{
	if (text->len > 0 && text->ptr[text->len - 1] == '\n')
		text->len--;
	if (text->len > 0 && text->ptr[text->len - 1] == '\r')
		text->len--;
	if (text->len == 0)
		return err_set(err, "it is empty");
	if (slice_find(*text, '\n') != text->len)
		return err_set(err, "it has more than one line");
	if (slice_find(*text, '\0') != text->len)
		return err_set(err, "it holds a NUL byte");
	return 0;
}

/* Checks the path and reads what it names. */
static int
load(const struct value *value, size_t max, const char **path, struct file_content *content,
	struct err *err)
{
	if (value_path(value, path, err) != 0)
		return -1;
	if (config_file_load(*path, max, content, err) != 0)
		return err_prefix(
			err, "%s cannot be read by user id %u", *path, (unsigned)geteuid());
	return 0;
}

int
value_password_file(const struct value *value, void *field, struct err *err)
{
	struct file_content content;
	const char *path;

	if (load(value, PASSWORD_MAX, &path, &content, err) != 0)
		return -1;
	struct slice password = slice_make(content.bytes, content.len);
	int result = check_password(&password, err);

	if (result != 0) {
		(void)err_prefix(err, "%s holds no password", path);
	} else {
		*(const char **)field = value_copy(value, password, err);
		result = *(const char **)field == NULL ? -1 : 0;
	}
	explicit_bzero(content.bytes, content.len);
	free(content.bytes);
	return result;
}

/* ---- a page ---- */

static const struct {
	const char *suffix, *type;
} page_types[] = {
	{ ".html", "text/html; charset=utf-8" },
	{ ".json", "application/json" },
	{ ".txt", "text/plain; charset=utf-8" },
};

static const char *
page_type_of(struct slice path)
{
	for (size_t i = 0; i < sizeof page_types / sizeof page_types[0]; i++) {
		const struct slice suffix = slice_of(page_types[i].suffix);

		if (path.len > suffix.len &&
			slice_is(slice_skip(path, path.len - suffix.len), suffix))
			return page_types[i].type;
	}
	return NULL;
}

static int
check_page(struct slice page, struct err *err)
{
	unsigned line = 1;

	if (page.len == 0)
		return err_set(err, "it is empty");
	for (size_t len; page.len > 0; page = slice_skip(page, len)) {
		len = utf8_len(page);
		if (len == 0)
			return err_set(err, "its line %u is no UTF-8", line);
		line += page.ptr[0] == '\n';
	}
	return 0;
}

int
value_reject_page(const struct value *value, void *field, struct err *err)
{
	struct config_route *route = field;
	struct file_content content;
	const char *path;

	if (load(value, PAGE_MAX, &path, &content, err) != 0)
		return -1;
	const struct slice page = slice_make(content.bytes, content.len);
	int result = check_page(page, err);

	route->reject_page_type = page_type_of(value->text);
	if (result == 0 && route->reject_page_type == NULL)
		result = err_set(err, "its name ends in none of .html, .json and .txt");
	if (result != 0) {
		(void)err_prefix(err, "%s cannot be sent", path);
	} else {
		route->reject_page = slice_make(value_copy(value, page, err), page.len);
		result = route->reject_page.ptr == NULL ? -1 : 0;
	}
	free(content.bytes);
	return result;
}

/* ---- a time zone ---- */

static const char zone_directory[] = "/usr/share/zoneinfo";

/* A name can go nowhere but below the directory. */
static bool
is_zone_name(struct slice name)
{
	struct slice rest = name, part;

	for (size_t i = 0; i < name.len; i++) {
		const char c = name.ptr[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
			strchr("/_+-", c) == NULL)
			return false;
	}
	while (slice_split(&rest, '/', &part)) {
		if (part.len == 0)
			return false;
	}
	return name.len < 64;
}

/* RFC 8536 section 3.1: a zone's file begins with TZif. */
static bool
zone_exists(struct slice name)
{
	struct file_content content;
	char path[128];
	struct err err;

	(void)snprintf(path, sizeof path, "%s/%.*s", zone_directory, SHOWN(name));
	if (config_file_load(path, ZONES_MAX, &content, &err) != 0)
		return false;
	const bool is_zone =
		slice_has_prefix(slice_make(content.bytes, content.len), SLICE("TZif"));

	free(content.bytes);
	return is_zone;
}

/* Offers the third column of each line of zone.tab, which is ended for it. */
static void
offer_zones(struct nearest *nearest, char *text, size_t len)
{
	struct slice rest = slice_make(text, len), line, column;

	while (slice_split(&rest, '\n', &line)) {
		if (line.len == 0 || line.ptr[0] == '#')
			continue;
		(void)slice_split(&line, '\t', &column);
		(void)slice_split(&line, '\t', &column);
		if (!slice_split(&line, '\t', &column) || column.len == 0)
			continue;
		text[column.ptr + column.len - text] = '\0';
		nearest_offer(nearest, column.ptr);
	}
}

static int
err_no_zone(struct slice name, struct err *err)
{
	struct file_content content;
	struct nearest nearest;
	char hint[NEAREST_HINT_SIZE], path[128];

	(void)snprintf(path, sizeof path, "%s/zone.tab", zone_directory);
	const bool is_read = config_file_load(path, ZONES_MAX, &content, err) == 0;

	nearest_init(&nearest, name);
	nearest_offer(&nearest, "UTC");
	if (is_read)
		offer_zones(&nearest, content.bytes, content.len);
	(void)err_set(err, "there is no time zone \"%.*s\" below %s%s", SHOWN(name), zone_directory,
		nearest_hint(&nearest, hint));
	if (is_read)
		free(content.bytes);
	return -1;
}

int
value_timezone(const struct value *value, void *field, struct err *err)
{
	/* UTC needs no file, which a container may not have. */
	if (!slice_is(value->text, SLICE("UTC")) &&
		(!is_zone_name(value->text) || !zone_exists(value->text)))
		return err_no_zone(value->text, err);
	*(const char **)field = value_copy(value, value->text, err);
	return *(const char **)field == NULL ? -1 : 0;
}
