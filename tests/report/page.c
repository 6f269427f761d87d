/* Line by line, with a cursor. */
#include "page.h"

#include <math.h>

/* The length of a name at the start; 0 if there is none. */
static size_t
name_len(const char *at, bool is_label)
{
	static const char first[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
	size_t len = 0;

	while (at[len] != '\0' &&
		(strchr(first, at[len]) != NULL || (at[len] == ':' && !is_label) ||
			(len > 0 && at[len] >= '0' && at[len] <= '9')))
		len++;
	return len;
}

/* Behind `name="value"`, or NULL. */
static const char *
skip_label(const char *at, struct sample *sample)
{
	const size_t len = name_len(at, true);
	const char *value = at + len + 2;

	if (len == 0 || at[len] != '=' || at[len + 1] != '"')
		return NULL;
	for (at = value; *at != '"'; at++) {
		if (*at == '\0' || *at == '\n')
			return NULL;
		if (*at == '\\' && strchr("\\\"n", *++at) == NULL)
			return NULL;
	}
	if (len == 2 && memcmp(value - 4, "le", 2) == 0)
		sample->le =
			strncmp(value, "+Inf", 4) == 0 ? (double)INFINITY : strtod(value, NULL);
	return at + 1;
}

static const char *
read_sample(const char *at, struct sample *sample)
{
	const size_t len = name_len(at, false);

	*sample = (struct sample){ .le = (double)NAN };
	if (len == 0 || len >= sizeof sample->name)
		return NULL;
	memcpy(sample->name, at, len);
	at += len;
	if (*at == '{') {
		const char *start = at;

		do {
			at = skip_label(at + 1, sample);
		} while (at != NULL && *at == ',');
		if (at == NULL || *at != '}' || (size_t)(at - start) >= sizeof sample->labels)
			return NULL;
		memcpy(sample->labels, start, (size_t)(++at - start));
	}
	char *end;

	if (*at++ != ' ' || strspn(at, "-+.0123456789e") == 0)
		return NULL;
	sample->value = strtod(at, &end);
	return *end == '\n' ? end + 1 : NULL;
}

static struct parsed_family *
family_of(struct parsed *parsed, const char *name, size_t len)
{
	for (unsigned i = 0; i < parsed->family_count; i++) {
		if (strlen(parsed->families[i].name) == len &&
			memcmp(parsed->families[i].name, name, len) == 0)
			return &parsed->families[i];
	}
	assert_true(parsed->family_count < FAMILIES_MAX && len < 100);
	struct parsed_family *family = &parsed->families[parsed->family_count++];

	memcpy(family->name, name, len);
	return family;
}

/* Behind a "# HELP name text" or "# TYPE name type". */
static const char *
read_comment(struct parsed *parsed, const char *at)
{
	const bool is_type = strncmp(at, "# TYPE ", 7) == 0;
	const char *end = strchr(at, '\n');
	const size_t len = name_len(at + 7, false);
	struct parsed_family *family = family_of(parsed, at + 7, len);

	assert_row(is_type || strncmp(at, "# HELP ", 7) == 0, "%.100s", at);
	assert_row(end != NULL && len > 0 && at[7 + len] == ' ', "%.100s", at);
	/* Once each, HELP first, both before any sample, and as the newest family. */
	assert_true(family == &parsed->families[parsed->family_count - 1]);
	assert_row(
		is_type ? family->has_help && !family->has_type : !family->has_help, "%.100s", at);
	assert_int_equal(family->samples, 0);
	if (!is_type) {
		family->has_help = true;
		return end + 1;
	}
	family->has_type = true;
	const char *type = at + 7 + len + 1;

	assert_true((size_t)(end - type) < sizeof family->type);
	memcpy(family->type, type, (size_t)(end - type));
	assert_row(strcmp(family->type, "counter") == 0 || strcmp(family->type, "gauge") == 0 ||
			strcmp(family->type, "histogram") == 0,
		"%s", family->type);
	return end + 1;
}

/* The family's own name, without a histogram's suffix. */
static size_t
base_len(const struct parsed_family *family, const char *name)
{
	static const char *const suffixes[] = { "_bucket", "_sum", "_count" };
	const size_t len = strlen(name);

	for (size_t i = 0; strcmp(family->type, "histogram") == 0 && i < LENGTH_OF(suffixes); i++) {
		const size_t suffix = strlen(suffixes[i]);

		if (len > suffix && strcmp(name + len - suffix, suffixes[i]) == 0)
			return len - suffix;
	}
	return len;
}

struct parsed *
page_parse(const char *page)
{
	struct parsed *parsed = calloc(1, sizeof *parsed);

	assert_non_null(parsed);
	while (*page != '\0') {
		if (*page == '#') {
			page = read_comment(parsed, page);
			continue;
		}
		assert_true(parsed->sample_count < SAMPLES_MAX && parsed->family_count > 0);
		struct sample *sample = &parsed->samples[parsed->sample_count];
		struct parsed_family *family = &parsed->families[parsed->family_count - 1];
		const char *next = read_sample(page, sample);

		assert_row(next != NULL, "%.200s", page);
		const size_t len = base_len(family, sample->name);

		/* Of the family that was opened last. */
		assert_row(family->has_type && strlen(family->name) == len &&
				memcmp(family->name, sample->name, len) == 0,
			"%.200s", page);
		for (unsigned i = 0; i < parsed->sample_count; i++)
			assert_row(strcmp(parsed->samples[i].name, sample->name) != 0 ||
					strcmp(parsed->samples[i].labels, sample->labels) != 0,
				"twice: %.200s", page);
		assert_row(
			strcmp(family->type, "gauge") == 0 || sample->value >= 0, "%.200s", page);
		family->samples++;
		parsed->sample_count++;
		page = next;
	}
	return parsed;
}

const struct sample *
page_find(const struct parsed *parsed, const char *name, const char *labels)
{
	for (unsigned i = 0; i < parsed->sample_count; i++) {
		if (strcmp(parsed->samples[i].name, name) == 0 &&
			strcmp(parsed->samples[i].labels, labels) == 0)
			return &parsed->samples[i];
	}
	return NULL;
}

double
page_value(const struct parsed *parsed, const char *name, const char *labels)
{
	const struct sample *sample = page_find(parsed, name, labels);

	assert_row(sample != NULL, "%s%s is not there", name, labels);
	return sample == NULL ? (double)NAN : sample->value;
}
