/* Files of lists from one reading to the next: what is told of a change, and which one is taken for
 * a file that was cut or is being written. */
#include "compose.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>

static void
tell(void *context, const struct config_change *change)
{
	char *told = context;

	if (change->what == CONFIG_ITEMS_CHANGED)
		(void)snprintf(told, 100, "%s: %u -> %u", strrchr(change->name, '/') + 1,
			(unsigned)change->items_before, (unsigned)change->items_after);
	else
		(void)snprintf(told, 100, "%d", change->what);
}

static struct config *
load_with(const char *ini, const char *text)
{
	struct config *config;

	write_file("list", slice_of(text));
	assert_int_equal(chmod("list", 0600), 0);
	write_file("weir.ini", slice_of(ini));
	free(said_of_file("weir.ini", &config));
	assert_non_null(config);
	return config;
}

/* A text and the one that takes its place. */
struct row {
	const char *before, *after;
	const char *told; /* "": they are the same */
	const char *refused; /* NULL: it is taken */
};

#define EMPTY "the file is empty now, and had 2 items"
#define CUT "the last line has no line end any more"

static const struct row rows[] = {
	{ "192.0.2.1\n192.0.2.2\n", "192.0.2.1\n192.0.2.2\n", "", NULL },
	{ "192.0.2.1\n192.0.2.2\n", "192.0.2.1\n", "list: 2 -> 1", NULL },
	{ "192.0.2.1\n", "192.0.2.1\n192.0.2.2\n", "list: 1 -> 2", NULL },
	{ "192.0.2.1\n192.0.2.2\n", "192.0.2.1\n192.0.2.3\n", "list: 2 -> 2", NULL },
	{ "192.0.2.1\n192.0.2.2\n", "", "list: 2 -> 0", EMPTY },
	{ "192.0.2.1\n192.0.2.2\n", "\n \n\n", "list: 2 -> 0", EMPTY },
	{ "192.0.2.1\n192.0.2.2", "", "list: 2 -> 0", EMPTY },
	{ "192.0.2.1\n192.0.2.2\n", "# nobody\n", "list: 2 -> 0", NULL },
	{ "", "", "", NULL },
	{ "", "\n", "list: 0 -> 0", NULL },
	{ "# nobody\n", "", "list: 0 -> 0", NULL },
	{ "", "192.0.2.1\n", "list: 0 -> 1", NULL },
	{ "192.0.2.11\n192.0.2.22\n", "192.0.2.11\n192.0.2.2", "list: 2 -> 2", CUT },
	{ "192.0.2.11\n192.0.2.22\n", "192.0.2.1", "list: 2 -> 1", CUT },
	{ "192.0.2.11\n192.0.2.22\n", "192.0.2.11", "list: 2 -> 1", CUT },
	/* As whoever writes it without always does. */
	{ "192.0.2.11\n192.0.2.22", "192.0.2.11\n192.0.2.2", "list: 2 -> 2", NULL },
	{ "192.0.2.11\n192.0.2.22", "192.0.2.11\n", "list: 2 -> 1", NULL },
};

static void
check_row(const char *ini, const struct row *row)
{
	struct config *before = load_with(ini, row->before), *after = load_with(ini, row->after);
	struct diagnostics diagnostics;
	char told[100] = "";

	diagnostics_init(&diagnostics);
	config_compare(before, after, tell, told);
	assert_string_equal(told, row->told);
	assert_int_equal(
		config_check_lists(before, after, &diagnostics), row->refused == NULL ? 0 : -1);
	assert_int_equal(diagnostics.errors, row->refused == NULL ? 0 : 1);
	if (row->refused != NULL) {
		assert_row(strstr(diagnostics.list[0].text, row->refused) != NULL, "%s",
			diagnostics.list[0].text);
		assert_string_equal(strrchr(diagnostics.list[0].place.file, '/'), "/list");
	}
	diagnostics_release(&diagnostics);
	config_free(before);
	config_free(after);
}

static void
a_file_of_any_list_that_was_cut_is_told(void **state)
{
	static const struct {
		const char *section, *key, *value;
	} lists[] = {
		{ "override", "for", "ip @DIR/list" },
		{ "override", "for", "user @DIR/list" },
		{ "override", "for", "header X-Key @DIR/list, x" },
		{ "route", "exempt_ip", "@DIR/list" },
		{ "route", "when", "ip 203.0.113.1, @DIR/list" },
		{ "weir", "trusted_proxies", "203.0.113.1, @DIR/list" },
	};
	char ini[2 * PATH_MAX];

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(lists); i++) {
		compose(ini, sizeof ini, lists[i].section, lists[i].key, lists[i].value);
		for (size_t j = 0; j < LENGTH_OF(rows); j++)
			check_row(ini, &rows[j]);
	}
}

/* Wherever it is cut, but between two lines: that only the number of items tells. */
static void
every_cut_inside_a_line_is_told(void **state)
{
	static const char whole[] = "192.0.2.11\n# two\n192.0.2.22\n192.0.2.33\n";
	char ini[2 * PATH_MAX], cut[sizeof whole];

	(void)state;
	compose(ini, sizeof ini, "override", "for", "user @DIR/list");
	for (size_t len = 0; len < sizeof whole; len++) {
		const bool is_between = len > 0 && whole[len - 1] == '\n';
		struct diagnostics diagnostics;

		memcpy(cut, whole, len);
		cut[len] = '\0';
		struct config *before = load_with(ini, whole), *after = load_with(ini, cut);

		diagnostics_init(&diagnostics);
		assert_row(config_check_lists(before, after, &diagnostics) == (is_between ? 0 : -1),
			"cut to %zu", len);
		diagnostics_release(&diagnostics);
		config_free(before);
		config_free(after);
	}
}

static void
a_file_that_is_named_no_more_may_be_empty(void **state)
{
	char with[2 * PATH_MAX], without[2 * PATH_MAX];
	struct diagnostics diagnostics;

	(void)state;
	compose(with, sizeof with, "override", "for", "user @DIR/list");
	compose(without, sizeof without, "override", "for", "user alice");
	struct config *before = load_with(with, "x\n"), *after = load_with(without, "");

	diagnostics_init(&diagnostics);
	assert_int_equal(config_check_lists(before, after, &diagnostics), 0);
	assert_int_equal(config_check_lists(after, before, &diagnostics), 0);
	diagnostics_release(&diagnostics);
	config_free(before);
	config_free(after);
}

/* ---- a file that is written while it is read ---- */

static _Atomic bool is_over;

static void *
write_again_and_again(void *context)
{
	static char text[200000];
	const int fd = open("list", O_WRONLY | O_CLOEXEC);

	(void)context;
	for (char c = 'a'; !atomic_load(&is_over); c = c == 'a' ? 'b' : 'a') {
		for (size_t i = 0; i < sizeof text; i++)
			text[i] = i % 10 == 9 ? '\n' : c;
		for (size_t i = 0; i < sizeof text; i += 20000)
			(void)!pwrite(fd, text + i, 20000, (off_t)i);
	}
	(void)close(fd);
	return NULL;
}

static void
a_file_that_is_being_written_is_refused(void **state)
{
	char ini[2 * PATH_MAX];
	unsigned refused = 0;
	pthread_t writer;

	(void)state;
	compose(ini, sizeof ini, "override", "for", "user @DIR/list");
	config_free(load_with(ini, "x\n"));
	atomic_store(&is_over, false);
	assert_int_equal(pthread_create(&writer, NULL, write_again_and_again, NULL), 0);
	for (unsigned i = 0; i < 20000 && refused == 0; i++) {
		struct config *config;
		char *said = said_of_file("weir.ini", &config);

		refused += strstr(said, "it is being written just now") != NULL;
		free(said);
		config_free(config);
	}
	atomic_store(&is_over, true);
	assert_int_equal(pthread_join(writer, NULL), 0);
	assert_int_equal(refused, 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_of_any_list_that_was_cut_is_told),
		cmocka_unit_test(every_cut_inside_a_line_is_told),
		cmocka_unit_test(a_file_that_is_named_no_more_may_be_empty),
		cmocka_unit_test(a_file_that_is_being_written_is_refused),
	};

	return cmocka_run_group_tests_name("config/list_files", tests, load_setup, load_teardown);
}
