/* weir identity: whom a limit counts, said from the words of the configuration. */
#include "../lib/directory.h"
#include "../lib/process.h"
#include "../lib/soon.h"

#include <stdio.h>
#include <unistd.h>

static struct directory directory;
static struct process process;

static const char ini[] =
	"[backend none]\ntype = none\n"
	"[redis]\nserver = unix:/nonexistent/redis.sock\nprefix = w:\n"
	"[limit page]\npolicy = 10/1s\n"
	"[limit hot]\nidentity = host\non_missing = skip\npolicy = 10/1h shards 3\n"
	"[limit api]\nidentity = header X-API-Key known, user\non_missing = reject\npolicy = 9/1h\n"
	"[limit form]\nidentity = cookie s+param q, env TEAM, path+route\npolicy = 9/1h\n"
	"[limit shared]\nidentity = user\non_missing = share\npolicy = 9/1h\n"
	"[override gold]\nlimit = api\nfor = header X-API-Key k1\npolicy = 99/1h name 1h\n"
	"[override office]\nlimit = page\nfor = ip 198.51.100.0/24\nexempt = yes\n"
	"[override bad]\nlimit = page\nfor = ip 192.0.2.66\nblock = yes\n"
	"[route first]\nmatch = /first\nlimit = page, hot, api, shared\n"
	"[route second]\nmatch = *\nlimit = page, form\n";

static void
write_config(const char *more)
{
	char whole[3000];

	(void)snprintf(whole, sizeof whole, "[weir]\nlisten = unix:%s/weir.sock\n%s%s",
		directory.path, more, ini);
	directory_write(&directory, "weir.ini", slice_of(whole));
}

static int
set_up(void **state)
{
	(void)state;
	directory_make(&directory);
	write_config("");
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	process_release(&process);
	directory_remove(&directory);
	return 0;
}

enum { WORDS_MAX = 12 };

/* Its status; what it says is the process's output. `input` 0: nothing. */
static int
ask(const char *const words[WORDS_MAX], int input)
{
	const struct directory_path file = directory_path(&directory, "weir.ini");
	const char *arguments[WORDS_MAX + 4] = { "identity", "--config", file.text };

	for (unsigned i = 0; words[i] != NULL; i++)
		arguments[3 + i] = words[i];
	process_release(&process);
	return process_run(&process,
		&(const struct process_setup){ .arguments = arguments, .standard_input = input });
}

static void
who_is_counted_is_said(void **state)
{
	static const struct {
		const char *words[WORDS_MAX], *output;
	} rows[] = {
		{ { "page", "ip", "192.0.2.1" },
			"identity=page:192.0.2.1\nkey=w:page:192.0.2.1\n" },
		{ { "page", "ip", "2001:db8:1:2::9" },
			"identity=page:2001:db8:1:2::/64\nkey=w:page:2001:db8:1:2::/64\n" },
		{ { "page", "ip", "198.51.100.7" }, "override=office\nexempt=yes\n" },
		{ { "page", "ip", "192.0.2.66" }, "override=bad\nblock=yes\n" },
		{ { "hot", "host", "Example.ORG:80" },
			"identity=hot:host=example.org\nkey=w:hot:host=example.org+0\n"
			"key=w:hot:host=example.org+1\nkey=w:hot:host=example.org+2\n" },
		{ { "hot" }, "on_missing=skip\n" },
		{ { "api" }, "on_missing=reject\n" },
		{ { "api", "header", "X-API-Key", "k2" }, "on_missing=reject\n" },
		{ { "api", "header", "X-API-Key", "k2", "user", "al" },
			"identity=api:user=al\nkey=w:api:user=al\n" },
		{ { "shared" }, "identity=shared:none\nkey=w:shared:none\n" },
		{ { "form", "env", "TEAM", "red" },
			"identity=form:env:TEAM=red\nkey=w:form:env:TEAM=red\n" },
		{ { "form", "path", "/a/../b" },
			"identity=form:path=/b+route=second\nkey=w:form:path=/b+route=second\n" },
		{ { "form", "path", "/b", "route", "first" },
			"identity=form:path=/b+route=first\nkey=w:form:path=/b+route=first\n" },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		assert_row(ask(rows[i].words, 0) == 0, "row %zu: %s", i, process_error(&process));
		assert_string_equal(process_output(&process), rows[i].output);
		assert_string_equal(process_error(&process), "");
	}
}

/* Whatever is in a value, it is not mixed up with what stands around it. */
static void
values_are_taken_as_they_are(void **state)
{
	static const char *const values[] = { "a", "a&b=c", "a b", "100%25", "+", "\xc3\xa9" };
	char seen[LENGTH_OF(values)][200];

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(values); i++) {
		const char *const words[WORDS_MAX] = { "form", "cookie", "other", "1", "cookie",
			"s", "c", "param", "q", values[i] };

		assert_int_equal(ask(words, 0), 0);
		(void)snprintf(seen[i], sizeof seen[i], "%s", process_output(&process));
		assert_row(strncmp(seen[i], "identity=form:cookie#", 21) == 0, "%s", seen[i]);
		assert_non_null(strstr(seen[i], "+param#"));
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(seen[j], seen[i]);
	}
}

/* A key in a command line is everybody's. */
static void
secret_is_read_from_standard_input(void **state)
{
	char said[300];
	int ends[2];

	(void)state;
	assert_int_equal(
		ask((const char *const[WORDS_MAX]){ "api", "header", "x-api-key", "k1" }, 0), 0);
	(void)snprintf(said, sizeof said, "%s", process_output(&process));
	assert_int_equal(strncmp(said, "override=gold\nidentity=api:header#", 34), 0);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], "k1\nmore\n", 8), 8);
	(void)close(ends[1]);
	assert_int_equal(
		ask((const char *const[WORDS_MAX]){ "api", "header", "X-API-Key", "-" }, ends[0]),
		0);
	(void)close(ends[0]);
	assert_string_equal(process_output(&process), said);
}

/* The same key has another name then, here as where it is counted. */
static void
hash_key_is_heeded(void **state)
{
	static const char *const words[WORDS_MAX] = { "api", "header", "X-API-Key", "k1" };
	char said[300], more[300];

	(void)state;
	assert_int_equal(ask(words, 0), 0);
	(void)snprintf(said, sizeof said, "%s", process_output(&process));
	directory_write(&directory, "secret", SLICE("a secret of many bytes"));
	(void)snprintf(more, sizeof more, "hash_key_file = %s/secret\n", directory.path);
	write_config(more);
	assert_int_equal(ask(words, 0), 0);
	assert_string_not_equal(process_output(&process), said);
}

static void
what_cannot_be_said_is_told(void **state)
{
	static const struct {
		const char *words[WORDS_MAX], *error;
	} rows[] = {
		{ { "none" }, "there is no [limit none]" },
		{ { "page" }, "limit page counts addresses: add ip ADDRESS" },
		{ { "page", "ip", "192.0.2.1", "route", "none" }, "there is no [route none]" },
		{ { "page", "ip", "192.0.2.1", "path", "/%zz" }, "weir identity: " },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		assert_int_equal(ask(rows[i].words, 0), 2);
		assert_row(process_said(&process, rows[i].error), "row %zu: %s", i,
			process_error(&process));
		assert_string_equal(process_output(&process), "");
	}
	directory_write(&directory, "weir.ini", SLICE("[weir]\nlistn = x\n"));
	assert_int_equal(ask(rows[0].words, 0), 1);
	assert_true(process_said(&process, "weir.ini:2: "));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(who_is_counted_is_said),
		TEST(values_are_taken_as_they_are),
		TEST(secret_is_read_from_standard_input),
		TEST(hash_key_is_heeded),
		TEST(what_cannot_be_said_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
