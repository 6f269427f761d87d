/* What a route wants besides a path, and what a client gets by claiming it. */
#include "compose.h"

static void
conditions_have_a_source_and_a_pattern(void **state)
{
	static const struct {
		const char *value, *name, *param, *text;
		enum identity_source source;
		enum pattern_kind kind;
		bool is_not, nocase;
	} rows[] = {
		{ "header User-Agent ~ (bot|crawl) nocase", "User-Agent", "HTTP_USER_AGENT",
			"(bot|crawl)", IDENTITY_HEADER, PATTERN_REGEX, false, true },
		{ "param REQUEST GetMap nocase", "REQUEST", NULL, "GetMap", IDENTITY_PARAM,
			PATTERN_EXACT, false, true },
		{ "param WIDTH ~ ^[0-9]{4,}$", "WIDTH", NULL, "^[0-9]{4,}$", IDENTITY_PARAM,
			PATTERN_REGEX, false, false },
		{ "not cookie session", "session", NULL, NULL, IDENTITY_COOKIE, PATTERN_EXACT, true,
			false },
		{ "cookie SESSION nocase", "SESSION", NULL, NULL, IDENTITY_COOKIE, PATTERN_EXACT,
			false, true },
		{ "header Accept nocase nocase", "Accept", "HTTP_ACCEPT", NULL, IDENTITY_HEADER,
			PATTERN_EXACT, false, true },
		{ "env GEOIP_COUNTRY = DE", "GEOIP_COUNTRY", "GEOIP_COUNTRY", "DE", IDENTITY_ENV,
			PATTERN_EXACT, false, false },
		{ "env HTTPS = ~on", "HTTPS", "HTTPS", "~on", IDENTITY_ENV, PATTERN_EXACT, false,
			false },
		{ "header User-Agent curl/*", "User-Agent", "HTTP_USER_AGENT", "curl/*",
			IDENTITY_HEADER, PATTERN_GLOB, false, false },
		{ "header User-Agent = a* b", "User-Agent", "HTTP_USER_AGENT", "a* b",
			IDENTITY_HEADER, PATTERN_EXACT, false, false },
		{ "header User-Agent Mozilla/5.0 (X11)", "User-Agent", "HTTP_USER_AGENT",
			"Mozilla/5.0 (X11)", IDENTITY_HEADER, PATTERN_EXACT, false, false },
		{ "not\tuser", NULL, NULL, NULL, IDENTITY_USER, PATTERN_EXACT, true, false },
		{ "user alice", NULL, NULL, "alice", IDENTITY_USER, PATTERN_EXACT, false, false },
	};
	char ini[512];

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		(void)snprintf(ini, sizeof ini,
			"[route r]\nmatch = *\nwhen = %s\n[route d]\nmatch = *\n"
			"[backend b]\nserver = unix:/b\n",
			rows[i].value);
		struct config *config = loaded(ini);
		const struct config_when *when = &config->routes[0]->whens[0];

		assert_int_equal(when->source, rows[i].source);
		assert_int_equal(when->is_not, rows[i].is_not);
		assert_int_equal(when->pattern.kind, rows[i].kind);
		assert_row(when->pattern.nocase == rows[i].nocase, "%s", rows[i].value);
		assert_slice(slice_of(when->name), slice_of(rows[i].name));
		assert_slice(slice_of(when->param), slice_of(rows[i].param));
		assert_row((when->pattern.text == NULL) == (rows[i].text == NULL), "%s",
			rows[i].value);
		assert_slice(slice_of(when->pattern.text), slice_of(rows[i].text));
		assert_int_equal(when->place.line, 3);
		config_free(config);
	}
}

static void
networks_and_hosts_are_lists(void **state)
{
	write_file("office.nets",
		SLICE("# ours\n192.0.2.0/24\n\n  2001:db8::/32 # and this\n198.51.100.7"));
	char ini[4 * PATH_MAX];

	(void)state;
	(void)snprintf(ini, sizeof ini,
		"[route r]\nmatch = *\nwhen = not ip 203.0.113.0/24, @%s/office.nets, 10.1.2.3\n"
		"host = EXAMPLE.org., *.Example.org\nhost = [2001:db8::1], under_score.example\n"
		"exempt_ip = @%s/office.nets\n[route d]\nmatch = *\n"
		"[backend b]\nserver = unix:/b\n[weir]\ntrusted_proxies = "
		"192.0.3.1,2001:db9::/48\n",
		load_directory, load_directory);
	struct config *config = loaded(ini);
	const struct config_route *route = config->routes[0];
	const struct config_when *when = &route->whens[0];

	assert_true(when->is_not);
	assert_null(when->pattern.text);
	assert_int_equal(when->net_count, 5);
	assert_int_equal(when->nets[0].bits, 24);
	assert_int_equal(when->nets[2].ip.family, 6);
	assert_int_equal(when->nets[3].bits, 32);
	assert_int_equal(when->nets[4].ip.bytes[3], 3);
	assert_int_equal(route->host_count, 4);
	assert_string_equal(route->hosts[0].name, "example.org");
	assert_false(route->hosts[0].is_below);
	assert_string_equal(route->hosts[1].name, "example.org");
	assert_true(route->hosts[1].is_below);
	assert_string_equal(route->hosts[2].name, "[2001:db8::1]");
	assert_string_equal(route->hosts[3].name, "under_score.example");
	assert_int_equal(route->exempt_net_count, 3);
	assert_int_equal(config->trusted_proxy_count, 2);
	config_free(config);
}

static void
conditions_say_what_is_wrong(void **state)
{
	static const struct {
		const char *key, *value, *said;
	} wrong[] = {
		{ "when", "not", "nothing follows not; write not cookie session" },
		{ "when", "not not user",
			"\"not\" is none of ip, user, header, cookie, param, env" },
		{ "when", "agent x", "\"agent\" is none of ip, user, header, cookie, param, env" },
		{ "when", "host example.org", "host has a key of its own: host = example.org" },
		{ "when", "not path /x", "path has a key of its own: match = /path" },
		{ "when", "method POST", "method has a key of its own: match = POST /path" },
		{ "when", "ip",
			"ip wants networks, such as ip 192.0.2.0/24, 2001:db8::/32 or ip @/path" },
		{ "when", "192.0.2.0/24", "\"192.0.2.0/24\" is an address; write ip 192.0.2.0/24" },
		{ "when", "not ::1, ip 192.0.2.1", "\"::1\" is an address; write ip ::1" },
		{ "when", "ip ::1, ip 192.0.2.1",
			"\"ip 192.0.2.1\": the items of such a list are networks alone; write "
			"192.0.2.1" },
		{ "when", "User-Agent curl",
			"\"User-Agent\" says not where it is found; did you mean \"header "
			"User-Agent\"?" },
		{ "when", "ip 192.0.2.0/24,", "an item of the list is empty" },
		{ "when", "ip 192.0.2.1/24",
			"\"192.0.2.1/24\" has bits set behind its prefix; write 192.0.2.0/24" },
		{ "when", "ip @office.nets",
			"\"@office.nets\" names no absolute path; write @/path" },
		{ "when", "header X ~", "no expression follows the ~" },
		{ "when", "header X =", "no value follows the =" },
		{ "when", "cookie a=b", "cookie wants the name of one, such as cookie session" },
		{ "host", "", NULL },
		{ "host", "a,,b", "an item of the list is empty" },
		{ "host", "*",
			"\"*\": a * stands only in front, as in *.example.org; without any host "
			"the route takes all of them" },
		{ "host", "www.*.org",
			"\"www.*.org\": a * stands only in front, as in *.example.org; without any "
			"host the route takes all of them" },
		{ "host", "*.example.org:80",
			"\"*.example.org:80\" has a port, which is not compared; leave it out" },
		{ "host", "a..b",
			"\"a..b\" is no host; write example.org or *.example.org (other letters in "
			"their form xn--...)" },
		{ "host",
			"b\xc3\xbc"
			"cher.example",
			"\"b\\xc3\\xbc"
			"cher.example\" is no host; write example.org or *.example.org (other "
			"letters in their form xn--...)" },
		{ "host", "https://example.org",
			"\"https://example.org\" has a port, which is not compared; leave it "
			"out" },
		{ "exempt_ip", "10.0.0.0/8 192.168.0.0/16",
			"\"10.0.0.0/8 192.168.0.0/16\": an IPv4 prefix has 0 to 32 bits" },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(wrong); i++) {
		if (wrong[i].said != NULL)
			assert_refused("route", wrong[i].key, wrong[i].value, wrong[i].said);
	}
}

/* ---- what a client claims ---- */

#define BACKEND "[backend b]\nserver = unix:/b\n"
#define LIMITS                                                                                     \
	"[limit p]\npolicy = 20/1s\n[limit s]\npolicy = 5/1s\n[limit a]\nidentity = all\n"         \
	"policy = 5/1s\n"

/* Takes out the lines with that text. */
static void
drop_lines(char *said, const char *text)
{
	for (char *line = said; *line != '\0';) {
		char *next = strchr(line, '\n') + 1;
		const struct slice whole = slice_make(line, (size_t)(next - line));

		if (memmem(whole.ptr, whole.len, text, strlen(text)) != NULL)
			memmove(line, next, strlen(next) + 1);
		else
			line = next;
	}
}

/* LIMITS and BACKEND stand in front. What is said of a limit by itself is no matter here. */
static void
assert_claims(const char *routes, const char *expected)
{
	char *ini = NULL;

	assert_true(asprintf(&ini, LIMITS BACKEND "%s", routes) > 0);
	char *said = said_of(ini, NULL);

	drop_lines(said, "no route uses this limit");
	drop_lines(said, "all: one bucket for all clients");
	assert_row(strcmp(said, expected) == 0, "of:\n%s\nwas said:\n%s\nand not:\n%s", ini, said,
		expected);
	free(said);
	free(ini);
}

static void
nobody_gets_around_a_limit_by_writing_something(void **state)
{
	static const struct {
		const char *routes, *said;
	} rows[] = {
		/* adding limits is what it is for */
		{ "[route r]\nmatch = /x\nwhen = header User-Agent bot\nlimit = p, s\n"
		  "[route d]\nmatch = *\nlimit = p\n",
			"" },
		{ "[route r]\nmatch = /x\nwhen = header User-Agent bot\nlimit = s\n"
		  "[route d]\nmatch = *\nlimit = p\n",
			"" },
		{ "[route r]\nmatch = /x\nwhen = header User-Agent bot\nlimit = a\n"
		  "[route d]\nmatch = *\nlimit = p\n",
			"" },
		/* taking them away is not */
		{ "[route r]\nmatch = /x\nwhen = header X-Internal\n"
		  "[route d]\nmatch = *\nlimit = p\n",
			"weir.ini:12: [route r] when: warning: a client can write that: with the "
			"right header X-Internal it gets from route d to route r and so around "
			"limit p; give that route a limit as strict\n" },
		{ "[route r]\nmatch = /x\nwhen = cookie sid\nlimit = p\n"
		  "[route d]\nmatch = *\nlimit = s\n",
			"weir.ini:12: [route r] when: warning: a client can write that: with the "
			"right cookie sid it gets from route d to route r and so around limit s; "
			"give that route a limit as strict\n" },
		{ "[route r]\nmatch = /x\nwhen = not cookie sid\nlimit = s\n"
		  "[route d]\nmatch = *\nlimit = p\n",
			"weir.ini:12: [route r] when: warning: a client can write that: with the "
			"right cookie sid it gets from route r to route d and so around limit s; "
			"give that route a limit as strict\n" },
		{ "[route r]\nmatch = /x\nwhen = not cookie sid\nlimit = s\n"
		  "[route d]\nmatch = *\nlimit = s\n",
			"" },
		/* what the web server knows is no claim */
		{ "[route r]\nmatch = /x\nwhen = user\n[route d]\nmatch = *\nlimit = p\n", "" },
		{ "[route r]\nmatch = /x\nwhen = ip 192.0.2.0/24\nwhen = param debug\n"
		  "[route d]\nmatch = *\nlimit = p\n",
			"" },
		{ "[route r]\nmatch = /x\nwhen = env SSL_CLIENT_S_DN\n"
		  "[route d]\nmatch = *\nlimit = p\n",
			"" },
		{ "[route r]\nmatch = /x\nwhen = env HTTP_X_INTERNAL\n"
		  "[route d]\nmatch = *\nlimit = p\n",
			"weir.ini:12: [route r] when: warning: a client can write that: with the "
			"right env HTTP_X_INTERNAL it gets from route d to route r and so around "
			"limit p; give that route a limit as strict\n" },
		/* hosts, both ways */
		{ "[route r]\nmatch = /x\nhost = a.example\nlimit = s\n"
		  "[route d]\nmatch = *\nlimit = p\n",
			"weir.ini:12: [route r] host: warning: the same path under another host "
			"goes to route d, without limit s; a client can write any host\n" },
		{ "[route r]\nmatch = /x\nhost = a.example\nlimit = p\n"
		  "[route d]\nmatch = *\nlimit = s\n",
			"weir.ini:12: [route r] host: warning: a client can write that: with this "
			"host it gets from route d to this one and so around limit s; give this "
			"route a limit as strict\n" },
		{ "[route r]\nmatch = /x\nhost = a.example\nlimit = p\n"
		  "[route d]\nmatch = *\nlimit = p\n",
			"" },
		/* what only counts is not lost */
		{ "[limit n]\npolicy = 1/1s shadow\n[route r]\nmatch = /x\nwhen = header X\n"
		  "[route d]\nmatch = *\nlimit = n\n",
			"" },
		/* an exception makes a limit less strict for somebody */
		{ "[override o]\nlimit = s\nfor = ip 192.0.2.0/24\nexempt = yes\n"
		  "[route r]\nmatch = /x\nwhen = header X\nlimit = s\n"
		  "[route d]\nmatch = *\nlimit = p\n",
			"weir.ini:16: [route r] when: warning: a client can write that: with the "
			"right header X it gets from route d to route r and so around limit p; "
			"give that route a limit as strict\n" },
		/* each of two places that it could come from */
		{ "[route r]\nmatch = /x\nmatch = /y\nwhen = header X\n"
		  "[route y]\nmatch = /y\nlimit = s\n[route d]\nmatch = *\nlimit = p\n",
			"weir.ini:13: [route r] when: warning: a client can write that: with the "
			"right header X it gets from route d to route r and so around limit p; "
			"give that route a limit as strict\n"
			"weir.ini:13: [route r] when: warning: a client can write that: with the "
			"right header X it gets from route y to route r and so around limit s; "
			"give that route a limit as strict\n" },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++)
		assert_claims(rows[i].routes, rows[i].said);
}

static void
a_host_chooses_no_backend(void **state)
{
	(void)state;
	assert_claims("[backend c]\nserver = unix:/c\n[route r]\nmatch = *\nhost = c.example\n"
		      "backend = c\n[route d]\nmatch = *\nbackend = b\n",
		"weir.ini:14: [route r] host: a client can write any host, so it may choose a "
		"limit, never a backend: elsewhere the same request goes to route d with backend "
		"b\n");
}

static void
whoever_is_counted_by_its_claims_is_new_each_time(void **state)
{
#define CLAIM(identity, route)                                                                     \
	"[limit c]\npolicy = 5/1m\non_missing = share\nidentity = " identity "\n[route r]\n" route \
	"\nlimit = c\n[route d]\nmatch = *\n"
#define FRESH(what, more)                                                                          \
	"weir.ini:16: [route r] limit: warning: limit c counts by " what ", which a client "       \
	"writes: anyone gets a fresh bucket for each request; add a limit by ip" more "\n"
#define KNOWN ", or write known behind it"
	static const struct {
		const char *routes, *said;
	} rows[] = {
		{ CLAIM("header X", "match = /x"), FRESH("header X", KNOWN) },
		{ CLAIM("cookie sid, ip", "match = /x"), FRESH("cookie sid", KNOWN) },
		{ CLAIM("param k+ip", "match = /x"), FRESH("param k", KNOWN) },
		{ CLAIM("env HTTP_X, ip", "match = /x"), FRESH("env HTTP_X", KNOWN) },
		{ CLAIM("env REMOTE_PORT, ip", "match = /x"), FRESH("env REMOTE_PORT", KNOWN) },
		{ CLAIM("env SSL_CLIENT_S_DN, ip", "match = /x"), "" },
		{ CLAIM("host+ip", "match = /x"), FRESH("host", "") },
		{ CLAIM("ip+path", "match = /x"), FRESH("path", "") },
		{ CLAIM("ip+path", "match = = /x"), "" },
		{ CLAIM("ip+path", "match = = /x nocase"), FRESH("path", "") },
		{ CLAIM("ip+path", "script = */x.php"), FRESH("path", "") },
		{ CLAIM("user, ip", "match = /x"), "" },
		{ CLAIM("user+backend+route", "match = /x"), "" },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++)
		assert_claims(rows[i].routes, rows[i].said);
	assert_claims("[limit c]\npolicy = 5/1m\nidentity = header X, ip\n[limit k]\n"
		      "policy = 5/1m\nidentity = header X known, route+ip\n[override o]\n"
		      "limit = k\nfor = header X a\n[route d]\nmatch = *\nlimit = c, k\n",
		"");
	assert_claims("[limit c]\npolicy = 5/1m\nidentity = header X, ip\n[limit n]\n"
		      "policy = 5/1m shadow\n[route d]\nmatch = *\nlimit = c, n\n",
		"weir.ini:17: [route d] limit: warning: limit c counts by header X, which a client "
		"writes: anyone gets a fresh bucket for each request; add a limit by ip" KNOWN
		"\n");
}

/* ---- order ---- */

static void
a_condition_leaves_something_to_others(void **state)
{
	static const struct {
		const char *routes, *said;
	} rows[] = {
		{ "[route r]\nmatch = *\nwhen = user\n[route s]\nmatch = /x\n"
		  "[route d]\nmatch = *\n",
			"" },
		{ "[route r]\nmatch = *\nhost = a.example\n[route s]\nmatch = /x\n"
		  "host = b.example\n[route d]\nmatch = *\n",
			"" },
		{ "[route r]\nmatch = *\nwhen = user\n[route s]\nmatch = /x\nwhen = not user\n"
		  "[route d]\nmatch = *\n",
			"" },
		{ "[route r]\nmatch = *\nwhen = user\n[route s]\nmatch = /x\n"
		  "when = ip 192.0.2.1\nwhen = user\n[route d]\nmatch = *\n",
			"weir.ini:13: [route s]: can never match, since route r at weir.ini:10 "
			"takes everything that it would; put it before that one\n" },
		{ "[route r]\nmatch = *\nhost = *.a.example, c.example\n[route s]\nmatch = /x\n"
		  "host = x.A.example, *.y.a.example\n[route d]\nmatch = *\n",
			"weir.ini:13: [route s]: can never match, since route r at weir.ini:10 "
			"takes everything that it would; put it before that one\n" },
		{ "[route r]\nmatch = *\nhost = *.a.example\n[route s]\nmatch = /x\n"
		  "host = a.example\n[route t]\nmatch = /x\nhost = xa.example\n"
		  "[route u]\nmatch = /x\nhost = *.b.a.example, *.example\n"
		  "[route d]\nmatch = *\n",
			"" },
		{ "[route r]\nmatch = *\nwhen = ip 192.0.2.0/24\n[route s]\nmatch = *\n"
		  "when = ip 192.0.2.0/24\n[route t]\nmatch = *\nwhen = ip 192.0.3.0/24\n"
		  "[route d]\nmatch = *\n",
			"weir.ini:13: [route s]: can never match, since route r at weir.ini:10 "
			"takes everything that it would; put it before that one\n" },
		{ "[route r]\nmatch = *\nwhen = user\n",
			"weir.ini:10: [route r]: no route takes what the others leave; add behind "
			"the last one:\n"
			"    [route default]\n"
			"    match = *\n"
			"    limit = p\n"
			"weir.ini:11: [route r] match: warning: takes only what its `when` holds "
			"of, and not what is left\n" },
		{ "[route r]\nmatch = *\nhost = a.example\n",
			"weir.ini:10: [route r]: no route takes what the others leave; add behind "
			"the last one:\n"
			"    [route default]\n"
			"    match = *\n"
			"    limit = p\n"
			"weir.ini:11: [route r] match: warning: takes only its hosts, and not what "
			"is left\n" },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++)
		assert_claims(rows[i].routes, rows[i].said);
}

/* ---- addresses that are believed, or not counted ---- */

static void
proxies_are_few_and_counted(void **state)
{
#define PROXIES BACKEND "[limit l]\npolicy = 5/1m\n[route r]\nmatch = *\nlimit = l\n"
#define WIDE " is wide: each host in it can claim to be any client; name the proxies one by one\n"
#define PRIVATE(net, held)                                                                         \
	"weir.ini:8: [route r] exempt_ip: warning: " net " holds all of the private network " held \
	": whoever is in it, or is seen by the address of a proxy in it, is not counted; name "    \
	"single addresses\n"
#define TRUSTED                                                                                    \
	" is trusted as a proxy too: should it forget X-Forwarded-For, all its clients have its "  \
	"address and none of them is counted\n"
	static const struct {
		const char *ini, *said;
	} rows[] = {
		{ PROXIES "[weir]\ntrusted_proxies = 192.0.2.0/24, 2001:db8::/48, 127.0.0.1\n",
			"" },
		{ PROXIES "[weir]\ntrusted_proxies = 10.0.0.0/23, ::/0\n",
			"weir.ini:9: [weir] trusted_proxies: warning: 10.0.0.0/23" WIDE
			"weir.ini:9: [weir] trusted_proxies: warning: ::/0" WIDE },
		{ PROXIES "exempt_ip = 192.168.1.0/24, 10.0.0.0/9, 172.16.0.0/13, fd00::/9\n", "" },
		{ PROXIES "exempt_ip = 10.0.0.0/8\n", PRIVATE("10.0.0.0/8", "10.0.0.0/8") },
		{ PROXIES "exempt_ip = 172.0.0.0/8\n", PRIVATE("172.0.0.0/8", "172.16.0.0/12") },
		{ PROXIES "exempt_ip = fc00::/7\n", PRIVATE("fc00::/7", "fd00::/8") },
		{ PROXIES "exempt_ip = 0.0.0.0/0\n", PRIVATE("0.0.0.0/0", "10.0.0.0/8") },
		{ PROXIES "exempt_ip = 192.0.2.7, 198.51.100.0/24\n"
			  "[weir]\ntrusted_proxies = 198.51.101.1, 198.51.100.9\n",
			"weir.ini:8: [route r] exempt_ip: warning: 198.51.100.9" TRUSTED },
		{ PROXIES "exempt_ip = 198.51.100.9\n[weir]\ntrusted_proxies = 2001:db8::1, "
			  "198.51.100.0/24, 192.0.2.1\n",
			"weir.ini:8: [route r] exempt_ip: warning: 198.51.100.0/24" TRUSTED },
		{ PROXIES "exempt_ip = 198.51.100.9\n[weir]\ntrusted_proxies = 198.51.100.8\n",
			"" },
		{ PROXIES "[override o]\nlimit = l\n"
			  "for = ip 192.0.0.0/8\nexempt = yes\n",
			"weir.ini:10: [override o] for: warning: 192.0.0.0/8 holds all of the "
			"private network 192.168.0.0/16: whoever is in it, or is seen by the "
			"address of a proxy in it, is not counted; name single addresses\n" },
		{ PROXIES "[override o]\nlimit = l\n"
			  "for = ip 198.51.100.9\nfor = user x\nexempt = yes\n"
			  "[weir]\ntrusted_proxies = 198.51.100.9\n",
			"weir.ini:10: [override o] for: warning: 198.51.100.9" TRUSTED },
		{ PROXIES "[override o]\nlimit = l\n"
			  "for = ip 198.51.100.9, 10.0.0.0/8\nblock = yes\n"
			  "[weir]\ntrusted_proxies = 198.51.100.9\n",
			"" },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++)
		assert_said(rows[i].ini, rows[i].said);
}

/* ---- cost ---- */

static void
no_request_costs_more_than_a_bucket_holds(void **state)
{
#define COST BACKEND "[route r]\nmatch = *\nlimit = l\n[limit l]\n"
#define DEAR(cost, what, holds)                                                                    \
	"weir.ini:8: [route r] cost: " cost " is more than policy " what                           \
	" ever holds (burst " holds "), so no request would be admitted\n"
#define MAY(what, holds, max)                                                                      \
	"weir.ini:8: [route r] cost: warning: a request may cost more than policy " what           \
	" ever holds (burst " holds "), and would never be admitted; write max " max "\n"
#define BEHIND                                                                                     \
	BACKEND "[limit l]\npolicy = 8/1m burst 8 shards 2\n[route r]\nmatch = *\nlimit = l\n"
	static const struct {
		const char *ini, *said;
	} rows[] = {
		{ BEHIND "cost = 4\n", "" },
		{ BEHIND "cost = 5\n", DEAR("5", "\"1m\" of limit l", "4 in each shard") },
		{ BEHIND "cost = param n max 4\n", "" },
		{ BEHIND "cost = header N max 5\n",
			MAY("\"1m\" of limit l", "4 in each shard", "4") },
		{ BEHIND "cost = param n\n", MAY("\"1m\" of limit l", "4 in each shard", "4") },
		{ BACKEND "[limit l]\npolicy = concurrent 2\n[redis]\n[route r]\nmatch = *\n"
			  "limit = l\ncost = 3\n",
			"" },
		{ BACKEND "[limit l]\npolicy = 2/1m sliding-log\n[redis]\n[route r]\n"
			  "limit = l\ncost = 3\nmatch = *\n",
			DEAR("3", "\"1m\" of limit l", "2") },
		{ BACKEND "[limit l]\npolicy = 9/1m\n[route r]\nlimit = l\nmatch = *\ncost = 3\n"
			  "[override o]\nlimit = l\nfor = ip 192.0.2.1\npolicy = 2/1m\n",
			DEAR("3", "\"1m\" of override o", "2") },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++)
		assert_said(rows[i].ini, rows[i].said);
}

/* ---- damage ---- */

struct damage {
	int fd;
	const char *key;
};

static void
load_route(void *context, struct slice mutant)
{
	const struct damage *damage = context;
	char ini[512];
	const int len = snprintf(ini, sizeof ini,
		BACKEND "[route r]\nmatch = *\n%s = %.*s\n[route d]\nmatch = *\n", damage->key,
		(int)mutant.len, mutant.ptr);

	assert_in_range(len, 0, sizeof ini - 1);
	rewrite_file(damage->fd, slice_make(ini, (size_t)len));
	config_free(load_damaged("mutant.ini"));
}

static void
no_damage_does_more_than_be_refused(void **state)
{
	static const char *const values[][2] = {
		{ "when", "not header X-A ~ a|b nocase" },
		{ "when", "ip 10.0.0.1, @/nowhere, ::/9" },
		{ "host", "*.a.example, [::1], b." },
		{ "cost", "param n max 9" },
		{ "retry_jitter", "10%" },
		{ "exempt_ip", "192.0.2.0/24" },
		{ "headers", "ratelimit, x-ratelimit" },
	};
	struct damage damage = { .fd = open_damaged("mutant.ini") };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(values); i++) {
		damage.key = values[i][0];
		each_damage(slice_of(values[i][1]), load_route, &damage);
	}
	assert_int_equal(close(damage.fd), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(conditions_have_a_source_and_a_pattern),
		cmocka_unit_test(networks_and_hosts_are_lists),
		cmocka_unit_test(conditions_say_what_is_wrong),
		cmocka_unit_test(nobody_gets_around_a_limit_by_writing_something),
		cmocka_unit_test(a_host_chooses_no_backend),
		cmocka_unit_test(whoever_is_counted_by_its_claims_is_new_each_time),
		cmocka_unit_test(a_condition_leaves_something_to_others),
		cmocka_unit_test(proxies_are_few_and_counted),
		cmocka_unit_test(no_request_costs_more_than_a_bucket_holds),
		cmocka_unit_test(no_damage_does_more_than_be_refused),
	};

	return cmocka_run_group_tests(tests, load_setup, load_teardown);
}
