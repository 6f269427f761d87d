/*
 * The sample that is installed: it is sound, it shows every key with the default that is applied,
 * and no damage to it does more than make it refused.
 */
#include "load.h"

/* The sample as a text; from the source tree. */
static char *
sample(size_t *len)
{
	const char *top = getenv("TOP_SRCDIR");
	char path[PATH_MAX];

	(void)snprintf(path, sizeof path, "%s/etc/weir.ini", top == NULL ? "." : top);
	FILE *file = fopen(path, "r");

	assert_row(file != NULL, "%s cannot be read; set TOP_SRCDIR", path);
	char *text = calloc(1, 65536);

	assert_non_null(text);
	*len = fread(text, 1, 65535, file);
	assert_int_equal(fclose(file), 0);
	return text;
}

static void
the_sample_is_sound(void **state)
{
	size_t len;
	char *text = sample(&len), *said;

	(void)state;
	write_file("weir.ini", slice_make(text, len));
	struct config *config;

	said = said_of_file("weir.ini", &config);
	assert_string_equal(said, "");
	assert_false(config->enforce);
	assert_int_equal(config->route_count, 2);
	assert_int_equal(config->limit_count, 2);
	assert_int_equal(config->backend_count, 1);
	free(said);
	config_free(config);
	free(text);
}

/* A key that is commented out: ";key = value ; comment". */
struct shown {
	struct slice section, key, value;
	bool is_default; /* in a comment, and not in the example of a whole section */
};

static char
first_of(struct slice text)
{
	return text.len > 0 && text.ptr != NULL ? text.ptr[0] : '\0';
}

/* Calls back for each key of the sample, whether it is commented out or not. */
static void
each_shown(struct slice text, void (*each)(void *context, const struct shown *shown), void *context)
{
	struct slice line, section = { NULL, 0 };
	bool is_example = false;

	while (slice_split(&text, '\n', &line)) {
		const bool is_in_comment = first_of(line) == ';';
		const struct slice bare = is_in_comment ? slice_skip(line, 1) : line;
		const size_t equal = slice_find(bare, '=');
		struct slice value = slice_skip(bare, equal < bare.len ? equal + 1 : equal);

		if (first_of(bare) == '[') {
			section = slice_first(slice_skip(bare, 1), slice_find(bare, ']') - 1);
			is_example = is_in_comment && slice_find(section, ' ') < section.len;
			section = slice_first(section, slice_find(section, ' '));
			continue;
		}
		if (bare.len == 0 || first_of(bare) == '#' || first_of(bare) == ' ' ||
			equal == bare.len)
			continue;
		for (size_t i = 0; i + 1 < value.len; i++) {
			if (value.ptr[i] == ' ' && value.ptr[i + 1] == ';')
				value = slice_first(value, i);
		}
		const struct shown shown = { section, slice_trim(slice_first(bare, equal)),
			slice_trim(value), is_in_comment && !is_example };

		each(context, &shown);
	}
}

enum { OPTIONS_MAX = 128 };

static void
check_shown(void *context, const struct shown *shown)
{
	bool *seen = context;
	const struct config_option_help *help;

	for (unsigned i = 0; (help = config_option_help(i)) != NULL; i++) {
		assert_true(i < OPTIONS_MAX);
		if (!slice_is(shown->section, slice_of(help->section)) ||
			!slice_is(shown->key, slice_of(help->key)))
			continue;
		seen[i] = true;
		if (shown->is_default && help->default_text[0] != '\0')
			assert_slice(shown->value, slice_of(help->default_text));
		return;
	}
	assert_row(slice_is(shown->key, SLICE("include")), "\"%.*s\" is no key of [%.*s]",
		(int)shown->key.len, shown->key.ptr, (int)shown->section.len, shown->section.ptr);
}

static void
the_sample_shows_every_key_with_its_default(void **state)
{
	bool seen[OPTIONS_MAX] = { false };
	const struct config_option_help *help;
	size_t len;
	char *text = sample(&len);

	(void)state;
	each_shown(slice_make(text, len), check_shown, seen);
	for (unsigned i = 0; (help = config_option_help(i)) != NULL; i++)
		assert_row(seen[i], "[%s] %s is not shown", help->section, help->key);
	free(text);
}

static void
write_secret(const char *name, const char *text)
{
	write_file(name, slice_of(text));
	assert_int_equal(chmod(name, 0600), 0);
}

static bool
is_one_of(struct slice line, const char *const *keys)
{
	for (size_t i = 0; keys[i] != NULL; i++) {
		const size_t len = strlen(keys[i]);

		if (slice_has_prefix(line, slice_of(keys[i])) &&
			(line.len == len || line.ptr[len] == ' '))
			return true;
	}
	return false;
}

/* Writes the sample with what is commented out put in, but for these keys. Its files are in the
 * test's directory. */
static void
uncomment_without(const char *const *keys)
{
	const struct slice etc = SLICE("/etc/weir");
	size_t len;
	char *text = sample(&len);
	struct slice rest = slice_make(text, len), line;
	FILE *out = fopen("weir.ini", "w");

	assert_non_null(out);
	while (slice_split(&rest, '\n', &line)) {
		if (line.len > 1 && line.ptr[0] == ';' && line.ptr[1] != ' ')
			line = slice_skip(line, 1);
		if (is_one_of(line, keys))
			continue;
		const char *path = memmem(line.ptr, line.len, etc.ptr, etc.len);
		const size_t before = path == NULL ? line.len : (size_t)(path - line.ptr);

		(void)fprintf(out, "%.*s", (int)before, line.ptr);
		if (path != NULL)
			(void)fprintf(out, "%s%.*s", load_directory,
				(int)(line.len - before - etc.len), path + etc.len);
		(void)fputc('\n', out);
	}
	assert_int_equal(fclose(out), 0);
	free(text);
}

/* All at once, but for keys of which one excludes the other: nothing is said of it. */
static void
the_sample_can_be_uncommented(void **state)
{
	static const char *const sentinel[] = { "sentinel", "master", "sentinel_username",
		"sentinel_password_file", "cluster", "tls_ca", "tls_cert", "tls_key", "tls_name",
		NULL };
	/* A backend has the key too. */
	static const char *const server[] = { "server          = tcp:127.0.0.1:6379", "cluster",
		NULL };
	static const char *const cluster[] = { "server          = tcp:127.0.0.1:6379", "sentinel",
		"master", "sentinel_username", "sentinel_password_file", NULL };

	(void)state;
	assert_int_equal(mkdir("keys", 0700), 0);
	write_secret("keys/gold", "key\n");
	write_secret("redis.pass", "geheim\n");
	write_secret("sentinel.pass", "geheim\n");
	write_secret("redis-client.key", "geheim\n");
	write_secret("hash.key", "0123456789abcdef\n");
	write_file("busy.html", SLICE("<p>Later.\n"));
	uncomment_without(sentinel);
	char *said = said_of_file("weir.ini", NULL);

	assert_string_equal(said, "");
	free(said);
	uncomment_without(server);
	said = said_of_file("weir.ini", NULL);
	assert_string_equal(said, "");
	free(said);
	uncomment_without(cluster);
	said = said_of_file("weir.ini", NULL);
	assert_string_equal(said, "");
	free(said);
}

/* ---- damage ---- */

/* The settings of the sample, and those that it has in comments, without the prose: a byte that is
 * changed there is one in a comment. */
static struct slice
sample_core(char *text, size_t len)
{
	struct slice rest = slice_make(text, len), line;
	size_t at = 0;

	while (slice_split(&rest, '\n', &line)) {
		if (line.len > 1 && line.ptr[0] == ';' && line.ptr[1] != ' ')
			line = slice_skip(line, 1);
		if (line.len == 0 || line.ptr[0] == '#' || line.ptr[0] == ';')
			continue;
		for (size_t i = 0; i + 1 < line.len; i++) {
			if (line.ptr[i] == ' ' && line.ptr[i + 1] == ';')
				line = slice_trim(slice_first(line, i));
		}
		memmove(text + at, line.ptr, line.len);
		at += line.len;
		text[at++] = '\n';
	}
	return slice_make(text, at);
}

static void
load_mutant(void *context, struct slice mutant)
{
	rewrite_file(*(const int *)context, mutant);
	config_free(load_damaged("mutant.ini"));
}

static void
no_damage_does_more_than_be_refused(void **state)
{
	int fd = open_damaged("mutant.ini");
	size_t len;
	char *text = sample(&len);

	(void)state;
	each_damage(sample_core(text, len), load_mutant, &fd);
	assert_int_equal(close(fd), 0);
	free(text);
}

/* Settings in any order, several bytes wrong at once. */
static void
no_heap_of_lines_does_more_than_be_refused(void **state)
{
	int fd = open_damaged("mutant.ini");
	uint64_t random = 99;
	size_t len;
	char *text = sample(&len), heap[4096];
	const struct slice core = sample_core(text, len);

	(void)state;
	for (int round = 0; round < 2000; round++) {
		size_t at = 0;

		while (at < sizeof heap / 2) {
			const size_t from = random_below(&random, core.len);
			struct slice piece = slice_skip(core, from);

			piece = slice_first(piece, slice_find(piece, '\n'));
			memcpy(heap + at, piece.ptr, piece.len);
			at += piece.len;
			heap[at++] = random_below(&random, 4) == 0 ? ' ' : '\n';
		}
		for (size_t i = random_below(&random, 8); i > 0; i--)
			heap[random_below(&random, at)] =
				telling[random_below(&random, sizeof telling - 1)];
		load_mutant(&fd, slice_make(heap, at));
	}
	assert_int_equal(close(fd), 0);
	free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_sample_is_sound),
		cmocka_unit_test(the_sample_shows_every_key_with_its_default),
		cmocka_unit_test(the_sample_can_be_uncommented),
		cmocka_unit_test(no_damage_does_more_than_be_refused),
		cmocka_unit_test(no_heap_of_lines_does_more_than_be_refused),
	};

	return cmocka_run_group_tests(tests, load_setup, load_teardown);
}
