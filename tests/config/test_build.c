/* Sections become objects: defaults, doubles, names that refer to each other, unknown words. */
#include "load.h"

static void
defaults_reach_what_stands_before_and_behind_them(void **state)
{
	struct config *config =
		loaded("[limit a]\npolicy = 3/1s\npolicy = 9/1m\nenforce = yes\n"
		       "[route s]\nmatch = /s\nbackend = x\nlimit =\nreject_header =\n"
		       "[limit b]\n"
		       "[backend x]\n[backend y]\nserver = tcp:y:1\nserver = tcp:y:2\n"
		       "[limit]\npolicy = 5/1m\n[limit]\npolicy = 20/1h burst 30\nenforce = no\n"
		       "[backend]\nserver = unix:/run/default\nmax_in_flight = 7\n"
		       "[route]\nbackend = y\ncost = 2\nreject_header = A: 1\nlimit = a, b\n"
		       "[route]\nreject_header = B: 2\n"
		       "[route r]\nmatch = *\ncost = 3\n");

	(void)state;
	assert_int_equal(config->limit_count, 2);
	assert_string_equal(config->limits[0]->name, "a");
	assert_int_equal(config->limits[0]->policy_count, 2);
	assert_int_equal(config->limits[0]->policies[0].rate.count, 3);
	assert_true(config->limits[0]->enforce);
	assert_int_equal(config->limits[1]->policy_count, 2);
	assert_int_equal(config->limits[1]->policies[1].burst, 30);
	assert_false(config->limits[1]->enforce);

	assert_int_equal(config->backend_count, 2);
	assert_int_equal(config->backends[0]->server_count, 1);
	assert_string_equal(config->backends[0]->servers[0].host, "/run/default");
	assert_int_equal(config->backends[0]->max_in_flight, 7);
	assert_int_equal(config->backends[1]->server_count, 2);
	assert_int_equal(config->backends[1]->servers[1].port, 2);

	const struct config_route *s = config->routes[0], *r = config->routes[1];

	assert_ptr_equal(s->backend, config->backends[0]);
	assert_int_equal(s->limit_count, 0);
	assert_int_equal(s->reject_header_count, 0);
	assert_int_equal(s->cost.fixed, 2);
	assert_ptr_equal(r->backend, config->backends[1]);
	assert_int_equal(r->limit_count, 2);
	assert_ptr_equal(r->limits[0], config->limits[0]);
	assert_ptr_equal(r->limits[1], config->limits[1]);
	assert_int_equal(r->reject_header_count, 2);
	assert_string_equal(r->reject_headers[1], "B: 2");
	assert_int_equal(r->cost.fixed, 3);
	assert_string_equal(config->file, "weir.ini");
	assert_int_equal(r->place.line, 30);
	config_free(config);
}

static void
the_only_backend_needs_no_mention(void **state)
{
	struct config *config = loaded("[route r]\nmatch = *\n[backend b]\ntype = none\n");

	(void)state;
	assert_ptr_equal(config->routes[0]->backend, config->backends[0]);
	assert_int_equal(config->backends[0]->type, BACKEND_NONE);
	config_free(config);
}

static void
sections_of_the_process_can_be_spread(void **state)
{
	struct config *config =
		loaded("[weir]\nenforce = no\n[backend b]\nserver = unix:/run/b\n"
		       "[weir]\nthreads = 3\nlisten = unix:/a\n[route r]\nmatch = *\n"
		       "[weir]\nlisten = unix:/b\nhash_key_file =\n");

	(void)state;
	assert_false(config->enforce);
	assert_int_equal(config->threads, 3);
	assert_int_equal(config->listen_count, 2);
	assert_null(config->hash_key_file);
	config_free(config);
}

static const struct {
	const char *ini, *said;
} wrong[] = {
	/* doubles */
	{ "[weir]\nthreads = 1\n[weir]\nenforce = no\nthreads = 2\nthreads = 3\n",
		"weir.ini:5: [weir] threads: is given twice; the first is at weir.ini:2\n"
		"weir.ini:6: [weir] threads: is given twice; the first is at weir.ini:2\n" },
	{ "[limit a]\npolicy = 1/1s\nidentity = ip\nidentity = all\n[route x]\nmatch = /\n"
	  "limit = a\n",
		"weir.ini:4: [limit a] identity: is given twice; the first is at weir.ini:3\n" },
	{ "[limit a]\npolicy = 1/1s\n[limit a]\npolicy = 1/hour\n[route x]\nmatch = /\nlimit = a\n"
	  "[backend rest]\nserver = unix:/x\n",
		"weir.ini:3: [limit a]: is defined twice; the first is at weir.ini:1\n"
		"weir.ini:4: [limit a] policy: this rate is written 1/1h\n"
		"weir.ini:11: [backend rest]: is defined twice; the first is at weir.ini:8\n" },
	/* unknown words */
	{ "[weir]\nthread = 1\nTHREADS = 1\nfoo = 1\npolicy = 1/1s\ntimeout = 3s\n",
		"weir.ini:2: [weir] thread: [weir] has no such key; did you mean \"threads\"?\n"
		"weir.ini:3: [weir] THREADS: [weir] has no such key; did you mean \"threads\"?\n"
		"weir.ini:4: [weir] foo: [weir] has no such key\n"
		"weir.ini:5: [weir] policy: [weir] has no such key; it belongs into [limit]\n"
		"weir.ini:6: [weir] timeout: [weir] has no such key; did you mean "
		"\"head_timeout\"?\n" },
	{ "[limits a]\npolicy = nonsense\n[Weir]\n[server]\n[overide gold]\nx = y\n",
		"weir.ini:1: [limits a]: there is no section of this kind; did you mean "
		"\"limit\"?\n"
		"weir.ini:3: [Weir]: there is no section of this kind; did you mean \"weir\"?\n"
		"weir.ini:4: [server]: there is no section of this kind\n"
		"weir.ini:5: [overide gold]: there is no section of this kind; did you mean "
		"\"override\"?\n" },
	{ "[weir main]\nthreads = 0\n[redis]\nsentinel = tcp:a:1\ntls_ca = x\n",
		"weir.ini:1: [weir main]: has no name; write [weir]\n"
		"weir.ini:2: [weir] threads: \"0\" is neither a number from 1 to 64 nor auto\n"
		"weir.ini:5: [redis] tls_ca: \"x\" is no absolute path; begin with /\n" },
	/* what belongs together */
	{ "[redis]\nserver = tls:h:1\nsentinel = tcp:a:1\ntls_cert = /x\n"
	  "sentinel_username = u\n",
		"weir.ini:3: [redis] sentinel: needs master; the sentinels are asked for a master "
		"by its name\n"
		"weir.ini:3: [redis] sentinel: server is given too; leave out the one or the "
		"other\n"
		"weir.ini:4: [redis] tls_cert: needs tls_key; a certificate is of no use without "
		"its key\n"
		"weir.ini:4: [redis] tls_cert: warning: has no effect: no address is "
		"tls:HOST:PORT\n"
		"weir.ini:5: [redis] sentinel_username: needs sentinel_password_file; a sentinel "
		"takes a name only together with a password\n" },
	{ "[redis]\ncluster = tcp:a:1, tcp:b:1\nserver = tcp:a:1\ndatabase = 1\n",
		"weir.ini:2: [redis] cluster: server is given too; leave out the one or the "
		"other\n"
		"weir.ini:4: [redis] database: a cluster has only database 0; leave it out\n" },
	{ "[redis]\ncluster = tcp:a:1\ntls_ca = /x\ntls_name = n\n",
		"weir.ini:3: [redis] tls_ca: warning: has no effect: no address is "
		"tls:HOST:PORT\n"
		"weir.ini:4: [redis] tls_name: warning: has no effect: no address is "
		"tls:HOST:PORT\n" },
	{ "[redis]\ncluster = tls:a:1, tls:b:1\ntls_ca = /x\ntls_name = n\n", "" },
	{ "[redis]\nsentinel = tls:a:1\nmaster = m\ntls_ca = /x\ntls_name = n\n", "" },
	{ "[redis]\nmaster = m\ntls_name = n\n",
		"weir.ini:2: [redis] master: needs sentinel; only sentinels know a master by its "
		"name\n"
		"weir.ini:3: [redis] tls_name: warning: has no effect: no address is "
		"tls:HOST:PORT\n" },
	{ "[backend rest2]\nserver = unix:/x\n[route x]\nmatch = /x\n"
	  "allow_ip = ::1\nbackend = rest\nhandler = status\n",
		"weir.ini:5: [route x] allow_ip: this key is not supported by this version\n"
		"weir.ini:7: [route x] handler: this key is not supported by this version\n"
		"weir.ini:11: [route rest] backend: is missing: there are 2 backends; say which, "
		"such as backend = rest2\n" },
	/* no value */
	{ "[weir]\nthreads =\nlisten =\nreject_log =\n",
		"weir.ini:2: [weir] threads: has no value; the default, which needs no line, is "
		"1\n" },
	/* what is wrong with defaults is said once, there, also if nobody inherits them */
	{ "[limit]\npolicy = 1/hour\nidentity = me\n[limit a]\n[limit b]\n[route x]\nmatch = /x\n"
	  "limit = a, b\n",
		"weir.ini:2: [limit] policy: this rate is written 1/1h\n"
		"weir.ini:3: [limit] identity: \"me\" is none of ip, user, header, cookie, param, "
		"env, host, path, backend, route, all\n" },
	{ "[limit]\npolicy = 1/hour\n", "weir.ini:2: [limit] policy: this rate is written 1/1h\n" },
	/* references */
	{ "[limit page]\npolicy = 1/1s\n[limit login]\npolicy = 1/1s\n[route x]\nmatch = /x\n"
	  "limit = pgae, login\nbackend = rets\n",
		"weir.ini:7: [route x] limit: there is no [limit pgae]; did you mean \"page\"?\n"
		"weir.ini:8: [route x] backend: there is no [backend rets]; did you mean "
		"\"rest\"?\n" },
	{ "[route x]\nmatch = /x\nlimit = page\n",
		"weir.ini:3: [route x] limit: there is no [limit page]\n" },
	/* too many of one */
	{ "[limit "
	  "a]\npolicy=1/1s\npolicy=1/2s\npolicy=1/3s\npolicy=1/4s\npolicy=1/5s\npolicy=1/6s\n"
	  "policy=1/7s\npolicy=1/8s\npolicy=1/9s\npolicy=1/10s\npolicy=1/11s\npolicy=1/12s\n"
	  "policy=1/13s\npolicy=1/14s\npolicy=1/15s\npolicy=1/16s\npolicy=1/17s\n"
	  "[route x]\nmatch = /x\nlimit = a\n",
		"weir.ini:2: [limit a] policy: is given 17 times; 16 is the most\n" },
};

static void
everything_wrong_is_said_in_one_run(void **state)
{
	(void)state;
	for (size_t i = 0; i < LENGTH_OF(wrong); i++)
		assert_said_with_rest(wrong[i].ini, wrong[i].said);
}

static void
a_later_error_does_not_hide_in_an_earlier_one(void **state)
{
	struct diagnostics diagnostics;

	(void)state;
	write_file("weir.ini", SLICE("[backend b]\nserver = unix:/b\n[route r]\nmatch = *\n"));
	diagnostics_init(&diagnostics);
	diagnostics_add(&diagnostics, SEVERITY_ERROR, (struct place){ NULL, 0 }, NULL, "before");
	struct config *config = config_load("weir.ini", &diagnostics);

	assert_non_null(config);
	assert_int_equal(diagnostics.errors, 1);
	config_free(config);
	config_free(NULL);
	diagnostics_release(&diagnostics);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults_reach_what_stands_before_and_behind_them),
		cmocka_unit_test(the_only_backend_needs_no_mention),
		cmocka_unit_test(sections_of_the_process_can_be_spread),
		cmocka_unit_test(everything_wrong_is_said_in_one_run),
		cmocka_unit_test(a_later_error_does_not_hide_in_an_earlier_one),
	};

	return cmocka_run_group_tests(tests, load_setup, load_teardown);
}
