/* snapshot.h: what is refused only when everything is put together, and secrets that are used. */
#include "../lib/certificates.h"
#include "serve.h"

#include <stdio.h>

static struct directory directory;

static int
set_up(void **state)
{
	(void)state;
	directory_make(&directory);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	directory_remove(&directory);
	return 0;
}

/* NULL if it is loaded; else the first thing that is said against it. */
static const char *
fault_of(const char *ini)
{
	static char said[1000];
	struct diagnostics diagnostics;

	directory_write(&directory, "weir.ini", slice_of(ini));
	diagnostics_init(&diagnostics);
	struct snapshot *snapshot =
		snapshot_load(directory_path(&directory, "weir.ini").text, &diagnostics);

	said[0] = '\0';
	for (unsigned i = 0; i < diagnostics.count && said[0] == '\0'; i++) {
		if (diagnostics.list[i].severity == SEVERITY_ERROR)
			(void)snprintf(said, sizeof said, "%s", diagnostics.list[i].text);
	}
	diagnostics_release(&diagnostics);
	assert_true((snapshot == NULL) == (said[0] != '\0'));
	snapshot_release(snapshot);
	return said[0] == '\0' ? NULL : said;
}

/* ---- how much a route may ask ---- */

/* Limits of so many policies each, 0 behind the last, and a route with all of them. */
static const char *
route_of(const unsigned *policies)
{
	static char ini[8000];
	char list[200] = "";
	int len = snprintf(ini, sizeof ini, "[backend none]\ntype = none\n");

	for (unsigned i = 0; policies[i] != 0; i++) {
		len += snprintf(ini + len, sizeof ini - (size_t)len, "[limit l%u]\n", i);
		for (unsigned j = 1; j <= policies[i]; j++)
			len += snprintf(ini + len, sizeof ini - (size_t)len, "policy = 1/%uh\n", j);
		(void)snprintf(list + strlen(list), sizeof list - strlen(list), "%sl%u",
			i == 0 ? "" : ", ", i);
	}
	(void)snprintf(ini + len, sizeof ini - (size_t)len, ALL "limit = %s\n", list);
	return ini;
}

static void
route_with_more_policies_than_a_decision_holds_is_refused(void **state)
{
	const char *fault;

	(void)state;
	assert_null(fault_of(route_of((const unsigned[]){ 8, 8, 0 })));
	assert_null(fault_of(route_of((const unsigned[]){ 2, 2, 2, 2, 2, 2, 2, 2, 0 })));
	fault = fault_of(route_of((const unsigned[]){ 8, 8, 1, 0 }));
	assert_non_null(fault);
	assert_row(strstr(fault, "at most 8 limits with 16 policies") != NULL, "%s", fault);
	fault = fault_of(route_of((const unsigned[]){ 1, 1, 1, 1, 1, 1, 1, 1, 1, 0 }));
	assert_non_null(fault);
}

/* ---- secrets ---- */

#define KEYED                                                                                      \
	"[limit keyed]\nidentity = header X-Key\non_missing = skip\npolicy = 1/1h\n" ALL           \
	"limit = keyed\n"

static void
secret_is_neither_too_short_nor_cut(void **state)
{
	static const struct {
		size_t len;
		const char *fault;
	} rows[] = {
		{ 0, "no secret" },
		{ 15, "a secret has at least 16" },
		{ 16, NULL },
		{ 4096, NULL },
		{ 4097, "more than 4096 bytes" },
		{ 100000, "more than 4096 bytes" },
	};
	static char bytes[100000], ini[1000];

	(void)state;
	memset(bytes, 'x', sizeof bytes);
	(void)snprintf(ini, sizeof ini,
		"[weir]\nhash_key_file = %s\n[backend none]\ntype = none\n" KEYED,
		directory_path(&directory, "secret").text);
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		directory_write(&directory, "secret", slice_make(bytes, rows[i].len));
		const char *fault = fault_of(ini);

		assert_row((fault == NULL) == (rows[i].fault == NULL), "%zu bytes: %s", rows[i].len,
			fault == NULL ? "taken" : fault);
		if (fault != NULL)
			assert_row(strstr(fault, rows[i].fault) != NULL, "%s", fault);
	}
}

/* What is said, and where. */
static void
assert_fault_at(const char *ini, unsigned line, const char *where, const char *text)
{
	struct diagnostics diagnostics;

	directory_write(&directory, "weir.ini", slice_of(ini));
	diagnostics_init(&diagnostics);
	struct snapshot *snapshot =
		snapshot_load(directory_path(&directory, "weir.ini").text, &diagnostics);

	assert_row(snapshot == NULL && diagnostics.errors == 1, "%s", ini);
	size_t at = 0;

	while (diagnostics.list[at].severity != SEVERITY_ERROR)
		at++;
	assert_int_equal(diagnostics.list[at].place.line, line);
	assert_string_equal(diagnostics.list[at].where, where);
	assert_row(
		strstr(diagnostics.list[at].text, text) != NULL, "%s", diagnostics.list[at].text);
	diagnostics_release(&diagnostics);
}

static void
files_of_tls_are_read_and_what_is_wrong_is_said_at_their_line(void **state)
{
	static const char *const servers[][2] = { { "server = tls:localhost:1", "" },
		{ "cluster = tls:localhost:1, tls:localhost:2", "" },
		{ "sentinel = tls:localhost:1", "master = m\n" } };
	char ini[1000];

	(void)state;
	if (!certificates_can_be_made())
		skip();
	certificate_authority(&directory, "ca");
	certificate_make(&directory, "ca", "client", "DNS:client", 1);
	certificate_make(&directory, "ca", "other", "DNS:client", 1);
#define TLS_FILES(ca, certificate, key)                                                            \
	(void)snprintf(ini, sizeof ini,                                                            \
		"[backend none]\ntype = none\n[redis]\n%s\ntls_ca = "                              \
		"%s\ntls_cert = %s\ntls_key = %s\n%s" KEYED,                                       \
		servers[i][0], directory_path(&directory, ca).text,                                \
		directory_path(&directory, certificate).text,                                      \
		directory_path(&directory, key).text, servers[i][1])
	for (size_t i = 0; i < LENGTH_OF(servers); i++) {
		TLS_FILES("ca.pem", "client.pem", "client.key");
		assert_null(fault_of(ini));
		TLS_FILES("nowhere.pem", "client.pem", "client.key");
		assert_fault_at(ini, 5, "[redis] tls_ca", "No such file");
		TLS_FILES("ca.pem", "client.key", "client.key");
		assert_fault_at(ini, 6, "[redis] tls_cert", "holds no certificate in PEM");
		TLS_FILES("ca.pem", "client.pem", "other.key");
		assert_fault_at(ini, 7, "[redis] tls_key", "is the key of another certificate");
	}
}

/* The name of the bucket that the last rejection was told with. */
static struct slice
last_identity(void)
{
	const struct slice word = SLICE(" identity=");
	struct slice found = { NULL, 0 };

	(void)pthread_mutex_lock(&rig.lock);
	for (const char *at = rig.log; (at = strstr(at, word.ptr)) != NULL;) {
		at += word.len;
		found = slice_make(at, strcspn(at, " \n"));
	}
	(void)pthread_mutex_unlock(&rig.lock);
	assert_true(found.len > 16);
	return found;
}

static void
use_secret(const char *secret)
{
	if (secret == NULL) {
		rig_reload(&rig, "[backend none]\ntype = none\n" KEYED);
		return;
	}
	directory_write(&rig.directory, "secret", slice_of(secret));
	rig_reload(&rig, "[weir]\nhash_key_file = DIR/secret\n[backend none]\ntype = none\n" KEYED);
}

static void
identities_are_hashed_with_the_secret(void **state)
{
	static const char *const secrets[] = { NULL, "correct horse battery staple",
		"correct horse battery stable", "correct horse battery staple", NULL };
	static const char *const more[] = { "HTTP_X_KEY", "k-1234", NULL };
	struct slice names[LENGTH_OF(secrets)];

	(void)state;
	rig_open(&rig, "[backend none]\ntype = none\n" KEYED);
	for (size_t i = 0; i < LENGTH_OF(secrets); i++) {
		use_secret(secrets[i]);
		/* Who comes under another name has another bucket. */
		assert_int_equal(rig_status(&rig, "GET", "/", more), i < 3 ? 200 : 429);
		if (i < 3)
			assert_int_equal(rig_status(&rig, "GET", "/", more), 429);
		names[i] = last_identity();
	}
	assert_false(slice_is(names[0], names[1]));
	assert_false(slice_is(names[1], names[2]));
	assert_false(slice_is(names[0], names[2]));
	assert_slice(names[3], names[1]);
	assert_slice(names[4], names[0]);
	assert_int_equal(rig_logged(&rig, "k-1234"), 0);
	rig_close(&rig);
}

#define FILE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		FILE_TEST(route_with_more_policies_than_a_decision_holds_is_refused),
		FILE_TEST(secret_is_neither_too_short_nor_cut),
		FILE_TEST(files_of_tls_are_read_and_what_is_wrong_is_said_at_their_line),
		cmocka_unit_test(identities_are_hashed_with_the_secret),
	};

	return rig_start() != 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
