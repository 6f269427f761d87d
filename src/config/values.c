/* Values of the simple kinds. */
#include "values.h"

#include <unistd.h>

enum { PREFIX_MAX = 64 };

int
value_bool(const struct value *value, void *field, struct err *err)
{
	static const struct word words[] = { { "yes", 1 }, { "no", 0 }, { NULL, 0 } };
	const int number = word_find(words, value->text, err);

	if (number < 0)
		return -1;
	*(bool *)field = number == 1;
	return 0;
}

int
value_uint(const struct value *value, void *field, struct err *err)
{
	const struct option *option = value->option;
	uint64_t n;

	if (parse_uint(value->text, option->max, &n) != 0 || n < option->min)
		return err_set(err, "\"%.*s\" is no whole number from %llu to %llu",
			SHOWN(value->text), (unsigned long long)option->min,
			(unsigned long long)option->max);
	*(uint64_t *)field = n;
	return 0;
}

/* In the largest unit that leaves nothing over, as a size is written. */
static const char *
size_text(uint64_t bytes, char out[24])
{
	static const char units[] = { '\0', 'k', 'm', 'g' };
	size_t unit = 0;

	while (unit + 1 < sizeof units && bytes > 0 && bytes % 1024 == 0) {
		bytes /= 1024;
		unit++;
	}
	(void)snprintf(out, 24, "%llu%.1s", (unsigned long long)bytes, &units[unit]);
	return out;
}

int
value_size(const struct value *value, void *field, struct err *err)
{
	const struct option *option = value->option;
	char min[24], max[24];
	uint64_t bytes;

	if (parse_size(value->text, &bytes, err) != 0)
		return -1;
	if (bytes < option->min || bytes > option->max)
		return err_set(err, "\"%.*s\" is no size from %s to %s", SHOWN(value->text),
			size_text(option->min, min), size_text(option->max, max));
	*(uint64_t *)field = bytes;
	return 0;
}

int
value_duration(const struct value *value, void *field, struct err *err)
{
	const struct option *option = value->option;
	char min[DURATION_TEXT_SIZE], max[DURATION_TEXT_SIZE];
	int64_t us;

	if (parse_duration(value->text, &us, err) != 0)
		return -1;
	if ((uint64_t)us < option->min || (uint64_t)us > option->max)
		return err_set(err, "\"%.*s\" is no duration from %s to %s", SHOWN(value->text),
			duration_text((int64_t)option->min, min),
			duration_text((int64_t)option->max, max));
	if (option->usual_max > 0 && (uint64_t)us > option->usual_max)
		value_complain(value, SEVERITY_WARNING, value->place, "\"%.*s\" is long: %s",
			SHOWN(value->text), option->unusual);
	*(int64_t *)field = us;
	return 0;
}

int
value_word(const struct value *value, void *field, struct err *err)
{
	const int number = word_find(value->option->words, value->text, err);

	_Static_assert(
		sizeof(enum on_missing) == sizeof number && sizeof(enum log_level) == sizeof number,
		"a word's field is an enum of the size of int");
	if (number == WORD_LATER)
		return word_later(err, value->text);
	if (number < 0)
		return -1;
	memcpy(field, &number, sizeof number);
	return 0;
}

void
path_tidy(char *path)
{
	const char *from = path;
	char *to = path;

	while (*from != '\0') {
		if (from[0] == '/' && from[1] == '/')
			from++;
		else if (from[0] == '/' && from[1] == '.' && from[2] == '/')
			from += 2;
		else
			*to++ = *from++;
	}
	*to = '\0';
}

static int
check_path(struct slice path, struct err *err)
{
	if (path.len == 0 || path.ptr[0] != '/')
		return err_set(err, "\"%.*s\" is no absolute path; begin with /", SHOWN(path));
	return 0;
}

static int
copy_to(const struct value *value, struct slice text, void *field, struct err *err)
{
	const char *copy = value_copy(value, text, err);

	if (copy == NULL)
		return -1;
	*(const char **)field = copy;
	return 0;
}

static int
copy_path(const struct value *value, struct slice path, void *field, struct err *err)
{
	if (check_path(path, err) != 0)
		return -1;
	char *copy = value_copy(value, path, err);

	if (copy == NULL)
		return -1;
	path_tidy(copy);
	*(const char **)field = copy;
	return 0;
}

int
value_path(const struct value *value, void *field, struct err *err)
{
	return copy_path(value, value->text, field, err);
}

int
value_threads(const struct value *value, void *field, struct err *err)
{
	const uint64_t max = value->option->max;
	uint64_t n;

	if (slice_is(value->text, SLICE("auto"))) {
		const long processors = sysconf(_SC_NPROCESSORS_ONLN);

		n = processors < 1 ? 1 : (uint64_t)processors;
		n = n > max ? max : n;
	} else if (parse_uint(value->text, max, &n) != 0 || n == 0) {
		return err_set(err, "\"%.*s\" is neither a number from 1 to %llu nor auto",
			SHOWN(value->text), (unsigned long long)max);
	}
	*(uint64_t *)field = n;
	return 0;
}

int
value_log(const struct value *value, void *field, struct err *err)
{
	struct config *config = field;
	const struct slice scheme = SLICE("file:");

	config->log_file = NULL;
	if (slice_is(value->text, SLICE("stderr"))) {
		config->log_to = LOG_TO_STDERR;
		return 0;
	}
	if (slice_is(value->text, SLICE("syslog"))) {
		config->log_to = LOG_TO_SYSLOG;
		return 0;
	}
	if (!slice_has_prefix(value->text, scheme))
		return err_set(err, "\"%.*s\" is none of stderr, syslog and file:/PATH",
			SHOWN(value->text));
	const struct slice path = slice_skip(value->text, scheme.len);

	config->log_to = LOG_TO_FILE;
	return copy_path(value, path, &config->log_file, err);
}

static bool
has_blank(struct slice text)
{
	return slice_find(text, ' ') != text.len || slice_find(text, '\t') != text.len;
}

int
value_username(const struct value *value, void *field, struct err *err)
{
	if (has_blank(value->text))
		return err_set(err, "\"%.*s\" is more than one word", SHOWN(value->text));
	return copy_to(value, value->text, field, err);
}

int
value_prefix(const struct value *value, void *field, struct err *err)
{
	const struct slice text = value->text;

	if (has_blank(text) || text.len > PREFIX_MAX)
		return err_set(
			err, "\"%.*s\" is not one word of 1 to %d bytes", SHOWN(text), PREFIX_MAX);
	/* A Redis Cluster hashes what stands in braces only (cluster specification, "hash tags").
	 */
	if (slice_find(text, '{') != text.len || slice_find(text, '}') != text.len)
		return err_set(err,
			"braces in \"%.*s\" would put all keys on one node of a cluster",
			SHOWN(text));
	return copy_to(value, text, field, err);
}
