/*
 * The memory store's file when none is named: one for each configuration, whoever else makes files
 * where it should be.
 */
#include "serving.h"

#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAMES = 4 };

static char names[2 * NAMES][256]; /* of what the tests have made, to be removed */
static unsigned name_count;

static int
tear_down(void **state)
{
	while (name_count > 0)
		(void)unlink(names[--name_count]);
	return weir_tear_down(state);
}

#define STATE_TEST(name) cmocka_unit_test_setup_teardown(name, weir_set_up, tear_down)

static const char *
keep_name(const char *path)
{
	assert_in_range(name_count, 0, LENGTH_OF(names) - 1);
	(void)snprintf(names[name_count], sizeof names[0], "%s", path);
	return names[name_count++];
}

/* The file that the process has mapped and that lies where such files are; NULL: none. */
static const char *
mapped_state(void)
{
	char path[64], line[1000], name[256] = "";

	(void)snprintf(path, sizeof path, "/proc/%d/maps", (int)process.pid);
	FILE *maps = fopen(path, "r");

	assert_non_null(maps);
	while (fgets(line, sizeof line, maps) != NULL) {
		char *at = strchr(line, '/');

		if (at == NULL)
			continue;
		at[strcspn(at, "\n")] = '\0';
		if (strncmp(at, "/dev/shm/weir-", 14) == 0 ||
			strncmp(at, WEIR_RUNDIR "/state", sizeof WEIR_RUNDIR "/state" - 1) == 0)
			(void)snprintf(name, sizeof name, "%s", at);
	}
	(void)fclose(maps);
	return name[0] == '\0' ? NULL : keep_name(name);
}

/* Starts with this file of the directory; returns what it has mapped. */
static const char *
state_with(const char *file)
{
	const struct directory_path path = directory_path(&directory, file);
	const char *const arguments[] = { "serve", "--config", path.text, NULL };

	process_release(&process);
	process_start(&process, &(const struct process_setup){ .arguments = arguments });
	assert_serving();
	return mapped_state();
}

#define CONFIG LISTEN "[memory]\nsize = 1m\n" NONE ALL

/* Never a memory of its own: a web server that starts several of us expects one limit. */
static void
one_configuration_has_one_file_by_whatever_path(void **state)
{
	(void)state;
	write_config(CONFIG);
	assert_int_equal(symlink(directory_path(&directory, "weir.ini").text,
				 directory_path(&directory, "link.ini").text),
		0);
	const char *first = state_with("weir.ini");

	assert_non_null(first);
	assert_string_equal(state_with("weir.ini"), first);
	assert_string_equal(state_with("./weir.ini"), first);
	assert_string_equal(state_with("link.ini"), first);
	weir_stop();
}

static void
another_configuration_of_the_same_user_has_another_file(void **state)
{
	(void)state;
	write_config(CONFIG);
	assert_int_equal(rename(directory_path(&directory, "weir.ini").text,
				 directory_path(&directory, "other.ini").text),
		0);
	write_config(CONFIG);
	const char *first = state_with("weir.ini");
	const char *other = state_with("other.ini");

	assert_non_null(first);
	assert_non_null(other);
	assert_string_not_equal(first, other);
	weir_stop();
}

static void
give_away(const char *path)
{
	assert_int_equal(chown(path, 65534, 65534), 0);
}

static void
names_that_others_have_taken_do_not_keep_it_from_serving(void **state)
{
	const char *taken[NAMES] = { NULL };

	(void)state;
	if (geteuid() != 0)
		skip();
	write_config(CONFIG);
	for (unsigned i = 0; i < NAMES; i++) {
		taken[i] = state_with("weir.ini");
		assert_non_null(taken[i]);
		for (unsigned j = 0; j < i; j++) {
			assert_string_not_equal(taken[i], taken[j]);
			assert_row(process_said(&process, taken[j]), "%s", process_error(&process));
		}
		weir_stop();
		give_away(taken[i]);
	}
	/* With the counters of each process apart, and an error in the log. */
	assert_null(state_with("weir.ini"));
	assert_true(process_said(&process, "each weir process counts for itself"));
	assert_int_equal(status_at("weir.sock"), 200);
	weir_stop();
	for (unsigned i = 0; i < NAMES; i++)
		assert_int_equal(unlink(taken[i]), 0);
	assert_string_equal(state_with("weir.ini"), taken[0]);
	weir_stop();
}

static void
what_it_does_is_in_the_metrics(void **state)
{
	(void)state;
	weir_start(LISTEN "metrics = unix:DIR/status.sock\n" STATE NONE
			  "[limit one]\npolicy = 1/1h\n" ALL "limit = one\n");
	assert_int_equal(status_at("weir.sock"), 200);
	assert_int_equal(status_at("weir.sock"), 429);
	assert_non_null(strstr(
		page("/metrics"), "\nweir_store_latency_seconds_count{store=\"memory\"} 2\n"));
	assert_non_null(strstr(page("/metrics"),
		"\nweir_store_failures_total{store=\"memory\",reason=\"lock\"} 0\n"));
	weir_stop();
}

static void
a_file_that_may_not_be_so_large_is_told(void **state)
{
	struct process_setup setup = { 0 };
	struct rlimit before, small;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	small = (struct rlimit){ .rlim_cur = 400000, .rlim_max = before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	const int status = weir_run(LISTEN STATE NONE ALL, &setup);

	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(status, 1);
	assert_row(process_said(&process, "File too large"), "%s", process_error(&process));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		STATE_TEST(one_configuration_has_one_file_by_whatever_path),
		STATE_TEST(another_configuration_of_the_same_user_has_another_file),
		STATE_TEST(what_it_does_is_in_the_metrics),
		STATE_TEST(names_that_others_have_taken_do_not_keep_it_from_serving),
		TEST(a_file_that_may_not_be_so_large_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
