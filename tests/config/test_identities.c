/* Who is counted: lists of identities, and parts that are joined. */
#include "compose.h"

static void
identities_are_a_list_of_joined_parts(void **state)
{
	struct config *config =
		loaded("[limit l]\npolicy = 5/1m\n"
		       "identity = header X-Api-Key_2 known ,\theader content-type,user+ backend , "
		       "cookie sid + param filter[x],env SSL_CLIENT_S_DN, ip/24/48+path+route\n"
		       "[override o]\nlimit = l\nfor = header x-api-key-2 a\n"
		       "[backend b]\nserver = unix:/run/x\n"
		       "[route r]\nmatch = *\nlimit = l, m\n[limit m]\npolicy = 5/1m\n");
	const struct config_identity *list = config->limits[0]->identities;

	(void)state;
	assert_int_equal(config->limits[0]->identity_count, 6);
	assert_int_equal(list[0].part_count, 1);
	assert_int_equal(list[0].parts[0].source, IDENTITY_HEADER);
	assert_string_equal(list[0].parts[0].name, "X-Api-Key_2");
	assert_string_equal(list[0].parts[0].param, "HTTP_X_API_KEY_2");
	assert_true(list[0].parts[0].known);
	assert_string_equal(list[1].parts[0].param, "CONTENT_TYPE");
	assert_false(list[1].parts[0].known);
	assert_int_equal(list[2].part_count, 2);
	assert_int_equal(list[2].parts[0].source, IDENTITY_USER);
	assert_null(list[2].parts[0].name);
	assert_int_equal(list[2].parts[1].source, IDENTITY_BACKEND);
	assert_int_equal(list[3].parts[0].source, IDENTITY_COOKIE);
	assert_string_equal(list[3].parts[0].name, "sid");
	assert_null(list[3].parts[0].param);
	assert_int_equal(list[3].parts[1].source, IDENTITY_PARAM);
	assert_string_equal(list[3].parts[1].name, "filter[x]");
	assert_string_equal(list[4].parts[0].param, "SSL_CLIENT_S_DN");
	assert_int_equal(list[5].part_count, 3);
	assert_int_equal(list[5].parts[0].source, IDENTITY_IP);
	assert_int_equal(list[5].parts[0].prefix_4, 24);
	assert_int_equal(list[5].parts[0].prefix_6, 48);
	assert_int_equal(list[5].parts[1].source, IDENTITY_PATH);
	assert_int_equal(list[5].parts[2].source, IDENTITY_ROUTE);
	config_free(config);
}

static void
identities_say_what_is_wrong(void **state)
{
	static const char bits[] =
		"wants the bits for IPv4, 1 to 32, and for IPv6, 1 to 128, such as ip/24/48";
	static const char *const wrong_bits[] = { "ip/", "ip/24/", "ip//48", "ip/33/64",
		"ip/24/129", "ip/0/64", "ip/24/48/2", "ip/a/b", "ip/129", "ip/a" };
	static const struct {
		const char *value, *said;
	} wrong[] = {
		/* what is written elsewhere, or forgotten */
		{ "X-API-Key, ip",
			"\"X-API-Key\" says not where it is found; did you mean \"header "
			"X-API-Key\"?" },
		{ "HEADER X, ip",
			"\"HEADER\" is none of ip, user, header, cookie, param, env, host, path, "
			"backend, route, all; did you mean \"header\"?" },
		{ "192.0.2.1",
			"\"192.0.2.1\" is an address; write ip, and name addresses in an "
			"[override] of this limit" },
		{ "ip/48",
			"\"ip/48\" wants the bits for IPv4 and for IPv6; write ip/32/48 for IPv6 "
			"alone, an IPv4 address being all of its 32 bits" },
		{ "ipv6/48",
			"\"ipv6/48\" wants the bits for IPv4 and for IPv6; write ip/32/48 for "
			"IPv6 alone, an IPv4 address being all of its 32 bits" },
		{ "ip6/24",
			"\"ip6/24\" wants the bits for IPv4 and for IPv6; write ip/32/24 for IPv6 "
			"alone, an IPv4 address being all of its 32 bits" },
		{ "ipv6/x",
			"\"ipv6/x\" wants the bits for IPv4 and for IPv6; write ip/32/48 for IPv6 "
			"alone, an IPv4 address being all of its 32 bits" },
		{ "ip/24",
			"\"ip/24\" wants the bits for IPv4 and for IPv6; write ip/24/64, 64 being "
			"those of IPv6 if nothing is said" },
		{ "ipv4/48",
			"\"ipv4/48\" wants the bits for IPv4 and for IPv6; write ip/24/64, 64 "
			"being those of IPv6 if nothing is said" },
		{ "ip, user",
			"\"user\" is never asked for, since what stands before it is always "
			"there" },
		{ "backend+path, user",
			"\"user\" is never asked for, since what stands before it is always "
			"there" },
		{ "user, user", "\"user\" is named twice" },
		{ "header X-A+ip, header x_a+ip", "\"header x_a+ip\" is named twice" },
		{ "user,, ip", "an item of the list is empty" },
		{ "user,", "an item of the list is empty" },
		{ "header", "header wants the name of one, such as header X-API-Key" },
		{ "header X:Y", "header wants the name of one, such as header X-API-Key" },
		{ "cookie", "cookie wants the name of one, such as cookie session" },
		{ "param a=b", "param wants the name of one, such as param key" },
		{ "env X-Y", "env wants the name of one, such as env SSL_CLIENT_S_DN" },
		{ "header X-API-Key ip",
			"\"ip\" follows \"header X-API-Key\"; a list is separated by commas, and + "
			"joins what is counted together" },
		{ "user ip",
			"\"ip\" follows \"user\"; a list is separated by commas, and + joins what "
			"is counted together" },
		{ "user known known",
			"\"known\" follows \"user known\"; a list is separated by commas, and + "
			"joins what is counted together" },
		{ "user known ip",
			"\"ip\" follows \"user known\"; a list is separated by commas, and + joins "
			"what is counted together" },
		{ "ip known",
			"known goes with header, cookie, param, env and user: an override lists "
			"their values" },
		{ "ip/24/48 known",
			"known goes with header, cookie, param, env and user: an override lists "
			"their values" },
		{ "host known",
			"known goes with header, cookie, param, env and user: an override lists "
			"their values" },
		{ "header X-A nocase", "the name of a header fits in any case; leave out nocase" },
		{ "cookie a nocase", "nocase goes with param alone" },
		{ "user nocase", "nocase goes with param alone" },
		{ "param a known nocase",
			"\"nocase\" follows \"param a known\"; a list is separated by commas, and "
			"+ joins what is counted together" },
		{ "param a nocase nocase",
			"\"nocase\" follows \"param a nocase\"; a list is separated by commas, and "
			"+ joins what is counted together" },
		{ "param a nocase+param A nocase", "\"param A nocase\" is joined with itself" },
		{ "param a nocase, param A nocase", "\"param A nocase\" is named twice" },
		{ "ip+all", "all tells nobody apart, so it is not joined by +" },
		{ "all+ip", "all tells nobody apart, so it is not joined by +" },
		{ "ip+ip/24/48", "\"ip/24/48\" is joined with itself" },
		{ "header X-A+header x-a", "\"header x-a\" is joined with itself" },
		{ "ip+", "\"ip+\" joins nothing by one +" },
		{ "+ip", "\"+ip\" joins nothing by one +" },
		{ "ip++path", "\"ip++path\" joins nothing by one +" },
		{ "ip+path+host+user+route+backend+cookie a+cookie b+cookie c",
			"\"ip+path+host+user+route+backend+cookie a+cookie b+cookie c\" joins more "
			"than 8 parts" },
		{ "usr",
			"\"usr\" is none of ip, user, header, cookie, param, env, host, path, "
			"backend, route, all; did you mean \"user\"?" },
	};
	char said[200];

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(wrong); i++)
		assert_refused("limit", "identity", wrong[i].value, wrong[i].said);
	for (size_t i = 0; i < LENGTH_OF(wrong_bits); i++) {
		(void)snprintf(said, sizeof said, "\"%s\" %s", wrong_bits[i], bits);
		assert_refused("limit", "identity", wrong_bits[i], said);
	}
}

#define AROUND                                                                                     \
	"[backend b]\nserver = unix:/b\n[route r]\nmatch = = /a\nlimit = l, p\n"                   \
	"[route d]\nmatch = *\n[limit p]\npolicy = 5/1m\n[limit l]\npolicy = 5/1m\nidentity = "

/* A list without an end that every request has wants on_missing. */
static void
what_may_be_missing_has_an_answer(void **state)
{
	static const char *const always[] = { "ip", "user, path", "backend", "user+ip, route+ip",
		"header X, ip/24/48+path" };
	static const char *const missing[] = { "user", "host", "header X, cookie Y", "ip+user",
		"ip+host", "env X", "param x" };
	char ini[512];

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(always); i++) {
		(void)snprintf(ini, sizeof ini, AROUND "%s\n", always[i]);
		assert_said(ini, "");
	}
	for (size_t i = 0; i < LENGTH_OF(missing); i++) {
		(void)snprintf(ini, sizeof ini, AROUND "%s\n", missing[i]);
		assert_said(ini,
			"weir.ini:10: [limit l] on_missing: is missing: what of a request that has "
			"none of the identities? Write skip, reject or share, or end the list of "
			"identities with ip\n");
		(void)snprintf(ini, sizeof ini, AROUND "%s\non_missing = skip\n", missing[i]);
		assert_said(ini, "");
	}
}

static void
what_is_known_is_named_by_an_override(void **state)
{
	(void)state;
	assert_said(AROUND "header X known, ip\n",
		"weir.ini:12: [limit l] identity: warning: no [override] of this limit names a "
		"value of header X, so none is known and this is never present\n");
	assert_said(AROUND "header X known, ip\n[override o]\nlimit = l\nfor = header x a\n", "");
	assert_said(AROUND "header X known, ip\n[override o]\nlimit = l\nfor = cookie X a\n"
			   "exempt = yes\n",
		"weir.ini:12: [limit l] identity: warning: no [override] of this limit names a "
		"value of header X, so none is known and this is never present\n");
	assert_said(AROUND "user known+ip, ip\n[override o]\nlimit = p\nfor = user a\n"
			   "exempt = yes\n",
		"weir.ini:12: [limit l] identity: warning: no [override] of this limit names a "
		"value of user, so none is known and this is never present\n");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(identities_are_a_list_of_joined_parts),
		cmocka_unit_test(identities_say_what_is_wrong),
		cmocka_unit_test(what_may_be_missing_has_an_answer),
		cmocka_unit_test(what_is_known_is_named_by_an_override),
	};

	return cmocka_run_group_tests(tests, load_setup, load_teardown);
}
