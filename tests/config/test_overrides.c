/* Overrides: whom they are for, the files of values, and what two of them must not both say. */
#include "compose.h"

#define BASE                                                                                       \
	"[redis]\n[backend b]\nserver = unix:/b\n[route r]\nmatch = *\nlimit = l\n[limit l]\n"     \
	"identity = header X-API-Key known, user, ip\npolicy = 5/1s burst 10\n"                    \
	"policy = 1000/day calendar name daily\n"

/* BASE, and behind it lines in which DIR stands for the test's directory, from line 11 on. */
static void
put_together(char *out, size_t size, const char *lines)
{
	size_t len = (size_t)snprintf(out, size, "%s", BASE);

	while (*lines != '\0') {
		const size_t n = strncmp(lines, "DIR", 3) == 0 ? 3 : 1;

		len += n == 3 ? (size_t)snprintf(out + len, size - len, "%s", load_directory)
			      : (size_t)snprintf(out + len, size - len, "%c", *lines);
		lines += n;
	}
}

static void
assert_said_of(const char *lines, const char *expected)
{
	char ini[4 * PATH_MAX], whole[4 * PATH_MAX];

	put_together(ini, sizeof ini, lines);
	put_together(whole, sizeof whole, expected);
	assert_said(ini, whole + strlen(BASE));
}

static void
write_list(const char *name, const char *text, mode_t mode)
{
	write_file(name, slice_of(text));
	assert_int_equal(chmod(name, mode), 0);
}

static void
assert_value(const struct config_for *list, uint32_t n, const char *text)
{
	assert_in_range(n + 1, 1, list->value_count);
	assert_false(list->values[n].is_sha256);
	assert_slice(slice_make(list->values[n].text, list->values[n].len), slice_of(text));
}

static void
values_come_from_lines_and_files(void **state)
{
	char ini[3 * PATH_MAX];

	(void)state;
	write_list("gold",
		"# the plan\nkey-1\n  key 2\t# a customer\n\nkey#3\n"
		"sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015AD\n"
		"last, without an end",
		0600);
	write_list("nets", "10.1.0.0/16\n2001:db8::/32 # six\n", 0644);
	put_together(ini, sizeof ini,
		"[override gold]\nlimit = l\nfor = header X-API-Key a , @DIR/gold, Bearer b\n"
		"for = user alice,bob\nfor = ip 192.0.2.1, @DIR/nets\nfor = env GEO x\n"
		"policy = 100/1s burst 200\n"
		"[override office]\nlimit = l\nfor = cookie sid x\nexempt = yes\n"
		"[override]\nfor = param k v\n"
		"[override bad]\nlimit = l\nblock = yes\n");
	struct config *config = loaded(ini);
	const struct config_limit *limit = config->limits[0];
	const struct config_override *gold = limit->overrides[0];

	assert_int_equal(config->override_count, 3);
	assert_int_equal(limit->override_count, 3);
	assert_ptr_equal(config->overrides[0], gold);
	assert_ptr_equal(gold->limit, limit);
	assert_string_equal(gold->name, "gold");
	assert_int_equal(gold->for_count, 7);
	assert_int_equal(gold->policy_count, 1);
	assert_false(gold->exempt || gold->block);
	/* each run of items by itself */
	assert_value(&gold->fors[0], 0, "a");
	assert_string_equal(gold->fors[0].param, "HTTP_X_API_KEY");
	assert_null(gold->fors[0].lines);
	assert_int_equal(gold->fors[0].place.line, 13);
	const struct config_for *file = &gold->fors[1];

	assert_int_equal(file->value_count, 5);
	assert_value(file, 0, "key-1");
	assert_value(file, 1, "key 2");
	assert_value(file, 2, "key#3");
	assert_true(file->values[3].is_sha256);
	assert_int_equal(file->values[3].len, 32);
	assert_memory_equal(file->values[3].text, "\xba\x78\x16\xbf", 4);
	assert_memory_equal(file->values[3].text + 28, "\xf2\x00\x15\xad", 4);
	assert_value(file, 4, "last, without an end");
	assert_int_equal(file->lines[0], 2);
	assert_int_equal(file->lines[4], 7);
	assert_non_null(strstr(file->place.file, "/gold"));
	assert_value(&gold->fors[2], 0, "Bearer b");
	assert_int_equal(gold->fors[3].source, IDENTITY_USER);
	assert_value(&gold->fors[3], 1, "bob");
	assert_int_equal(gold->fors[4].net_count, 1);
	assert_int_equal(gold->fors[4].value_count, 0);
	assert_int_equal(gold->fors[5].net_count, 2);
	assert_int_equal(gold->fors[5].nets[1].ip.family, 6);
	assert_int_equal(gold->fors[5].lines[1], 2);
	assert_int_equal(gold->fors[6].source, IDENTITY_ENV);
	assert_true(limit->overrides[1]->exempt);
	assert_int_equal(limit->overrides[2]->fors[0].source, IDENTITY_PARAM);
	assert_true(limit->overrides[2]->block);
	config_free(config);
}

static void
lists_say_what_is_wrong(void **state)
{
	static const struct {
		const char *value, *said;
	} wrong[] = {
		{ "header X-API-Key", "the values are missing, such as VALUE, VALUE or @/path" },
		{ "header X-API-Key a,,b", "an item of the list is empty" },
		{ "header X-API-Key a,", "an item of the list is empty" },
		{ "header", "header wants the name of one, such as header X-API-Key" },
		{ "ip", "ip wants networks, such as ip 192.0.2.0/24, 2001:db8::/32 or ip @/path" },
		{ "ip example.org",
			"\"example.org\" is no network; write 192.0.2.0/24, 2001:db8::/32 or an "
			"address" },
		{ "192.0.2.1", "\"192.0.2.1\" is an address; write ip 192.0.2.1" },
		{ "2001:db8::/32, ip ::1",
			"\"2001:db8::/32\" is an address; write ip 2001:db8::/32" },
		{ "ip 192.0.2.1, ip ::1",
			"\"ip ::1\": the items of such a list are networks alone; write ::1" },
		{ "X-API-Key a",
			"\"X-API-Key\" says not where it is found; did you mean \"header "
			"X-API-Key\"?" },
		{ "header X-API-Key a, header X-API-Key b",
			"header X-API-Key stands once, in front of the list; leave it out behind "
			"a comma" },
		{ "user a, user b",
			"user stands once, in front of the list; leave it out behind a comma" },
		{ "host a", "\"host\" is none of ip, user, header, cookie, param, env" },
		{ "user alice bob",
			"\"alice bob\" has a blank; a list is separated by commas, and a name with "
			"a blank can stand in a file" },
		{ "user @users", "\"@users\" names no absolute path; write @/path" },
		{ "user a, @", "\"@\" names no absolute path; write @/path" },
		{ "cookie c sha256:12",
			"sha256: wants 64 hexadecimal digits; they are made by: printf %s VALUE | "
			"sha256sum" },
		{ "cookie c sha256:"
		  "ga7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
			"sha256: wants 64 hexadecimal digits; they are made by: printf %s VALUE | "
			"sha256sum" },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(wrong); i++)
		assert_refused("override", "for", wrong[i].value, wrong[i].said);
}

#define OVERRIDE "[override o]\nlimit = l\nexempt = yes\nfor = header X-API-Key @DIR/keys\n"

static void
a_fault_in_a_file_is_told_with_its_line(void **state)
{
	char *long_line = calloc(1, 5002), said[PATH_MAX + 200];

	(void)state;
	write_list("keys", "ok\nsha256:0\nok 2\r\n\nb\001d\n# b\001d\nsha256:zz\n", 0600);
	assert_said_of(OVERRIDE,
		"DIR/keys:2: [override o] for: sha256: wants 64 hexadecimal digits; they are made "
		"by: printf %s VALUE | sha256sum\n"
		"DIR/keys:3: [override o] for: the line ends with CR LF; convert the file with: "
		"sed -i 's/\\r$//' DIR/keys\n"
		"DIR/keys:5: [override o] for: the line holds a control character (0x01)\n"
		"DIR/keys:7: [override o] for: sha256: wants 64 hexadecimal digits; they are made "
		"by: printf %s VALUE | sha256sum\n");
	write_list("keys", "\xef\xbb\xbfkey\n", 0600);
	assert_said_of(OVERRIDE,
		"DIR/keys:1: [override o] for: the line begins with a byte order mark; save the "
		"file without\n");
	assert_non_null(long_line);
	memset(long_line, 'x', 4096);
	long_line[4096] = '\n';
	memset(long_line + 4097, 'y', 900);
	write_list("keys", long_line, 0600);
	assert_said_of(OVERRIDE, "");
	long_line[4096] = 'x';
	write_list("keys", long_line, 0600);
	assert_said_of(
		OVERRIDE, "DIR/keys:1: [override o] for: the line has more than 4096 bytes\n");
	free(long_line);
	write_list("keys",
		"a/1\na/2\na/3\na/4\na/5\na/6\na/7\na/8\na/9\na/10\na/11\n192.0.2.0/24\na/13\n",
		0644);
	char ini[3 * PATH_MAX];

	put_together(
		ini, sizeof ini, "[override o]\nlimit = l\nexempt = yes\nfor = ip @DIR/keys\n");
	char *text = said_of(ini, NULL);

	(void)snprintf(said, sizeof said,
		"%s/keys:13: [override o] for: 2 more lines are refused\n", load_directory);
	assert_row(strstr(text, said) != NULL, "%s", text);
	assert_null(strstr(text, "weir.ini"));
	free(text);
}

#define USERS                                                                                      \
	"[override o]\nlimit = l\nexempt = yes\nfor = user @DIR/keys\n"                            \
	"[override known]\nlimit = l\nfor = header X-API-Key zz\n"

static void
files_are_kept_from_others(void **state)
{
	char missing[200];

	(void)state;
	write_list("keys", "secret\n", 0640);
	assert_said_of(OVERRIDE, "");
	write_list("keys", "secret\n", 0644);
	assert_said_of(OVERRIDE,
		"weir.ini:14: [override o] for: warning: every user of this host can read "
		"DIR/keys; chmod o= DIR/keys; or keep only sha256: of the values in it\n");
	write_list("keys",
		"sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\n", 0644);
	assert_said_of(OVERRIDE, "");
	write_list("keys", "alice\n", 0644);
	assert_said_of(USERS, "");
	write_list("keys", "alice\n", 0666);
	assert_said_of(USERS,
		"weir.ini:14: [override o] for: warning: every user of this host can change "
		"DIR/keys; chmod o= DIR/keys\n");
	assert_int_equal(unlink("keys"), 0);
	(void)snprintf(missing, sizeof missing,
		"weir.ini:14: [override o] for: DIR/keys cannot be read by user id %u: No such "
		"file or directory\n",
		(unsigned)geteuid());
	assert_said_of(OVERRIDE, missing);
	assert_int_equal(mkdir("keys", 0700), 0);
	(void)snprintf(missing, sizeof missing,
		"weir.ini:14: [override o] for: DIR/keys cannot be read by user id %u: it is no "
		"regular file\n",
		(unsigned)geteuid());
	assert_said_of(OVERRIDE, missing);
	assert_int_equal(rmdir("keys"), 0);
	/* An empty plan is one that nobody has bought yet, or a file that was not written. */
	write_list("keys", "# none\n", 0600);
	assert_said_of(OVERRIDE,
		"weir.ini:14: [override o] for: warning: DIR/keys holds no item, so it names "
		"nobody\n");
}

static void
overrides_are_judged_by_themselves(void **state)
{
	static const struct {
		const char *lines, *said;
	} rows[] = {
		{ "[override o]\nfor = user a\nexempt = yes\n",
			"weir.ini:11: [override o] limit: is missing: what is this an exception "
			"from? Write limit = NAME\n" },
		{ "[override o]\nlimit = l\nexempt = yes\n",
			"weir.ini:11: [override o] for: is missing: whom is this for? Write for = "
			"ip 192.0.2.0/24, or user NAME, or header NAME @/path\n" },
		{ "[override o]\nlimit = l, l\nfor = user a\nexempt = yes\n",
			"weir.ini:12: [override o] limit: an override is of one limit; write "
			"another [override] for a second one\n" },
		{ "[override o]\nlimit = k\nfor = user a\nexempt = yes\n",
			"weir.ini:12: [override o] limit: there is no [limit k]; did you mean "
			"\"l\"?\n" },
		{ "[override o]\nlimit = l\nfor = user a\nexempt = yes\nblock = yes\n",
			"weir.ini:15: [override o] block: exempt and block say the opposite of "
			"each other; choose one\n" },
		{ "[override o]\nlimit = l\nfor = user a\nexempt = yes\npolicy = 9/1s\n",
			"weir.ini:15: [override o] policy: says nothing of requests that are "
			"exempt anyway; leave out one of them\n" },
		{ "[override o]\nlimit = l\nfor = user a\nblock = yes\npolicy = 9/1s\n",
			"weir.ini:15: [override o] policy: says nothing of requests that are "
			"blocked anyway; leave out one of them\n" },
		/* policies replace by name */
		{ "[override o]\nlimit = l\nfor = user a\npolicy = 9/1s\n"
		  "policy = 50000/day calendar name daily\n",
			"" },
		{ "[override o]\nlimit = l\nfor = user a\npolicy = 50000/day calendar name "
		  "dayly\n",
			"weir.ini:14: [override o] policy: limit l has no policy \"dayly\" that "
			"this could replace; did you mean \"daily\"?\n" },
		{ "[override o]\nlimit = l\nfor = user a\npolicy = 100/10m\n",
			"weir.ini:14: [override o] policy: limit l has no policy \"10m\" that this "
			"could replace; write policy = 100/10m name 1s\n" },
		{ "[override o]\nlimit = l\nfor = user a\npolicy = 100/2s burst 9\n",
			"weir.ini:14: [override o] policy: limit l has no policy \"2s\" that this "
			"could replace; write policy = 100/2s burst 9 name 1s\n" },
		{ "[override o]\nlimit = l\nfor = user a\npolicy = 9/1s\n"
		  "policy = 50000/month calendar\n",
			"weir.ini:15: [override o] policy: limit l has no policy \"month\" that "
			"this could replace; write policy = 50000/month calendar name daily\n" },
		{ "[override o]\nlimit = l\nfor = user a\npolicy = 9/1m name other\n",
			"weir.ini:14: [override o] policy: limit l has no policy \"other\" that "
			"this could replace; write name 1s to replace that one\n" },
		{ "[override o]\nlimit = l\nfor = user a\npolicy = 9/1s\npolicy = 8/2s name 1s\n",
			"weir.ini:15: [override o] policy: \"1s\" names a policy already at "
			"weir.ini:14; give one of them another name, such as: 8/2s name second\n" },
		{ "[override o]\nlimit = l\nfor = user a\npolicy = 999999/1s\n",
			"weir.ini:14: [override o] policy: the time between two requests is kept "
			"in whole microseconds, so this rate would become 500000/1s; write "
			"that\n" },
		/* somebody in a bucket of several */
		{ "[override o]\nlimit = l\nfor = ip 192.0.2.1, 2001:db8::/64\npolicy = 9/1s\n",
			"" },
		{ "[override o]\nlimit = l\nfor = ip 192.0.2.1, 2001:db8::1\npolicy = 9/1s\n",
			"weir.ini:13: [override o] for: 2001:db8::1 is part of a bucket that limit "
			"l keeps for all of its /64, and cannot have policies of its own; write a "
			"/64, or exempt or block\n" },
		{ "[override o]\nlimit = l\nfor = ip 2001:db8::1\nexempt = yes\n", "" },
		{ "[override o]\nlimit = l\nfor = ip 2001:db8::1\nblock = yes\n", "" },
		{ "[override o]\nlimit = l\nfor = cookie sid a\npolicy = 9/1s\n",
			"weir.ini:13: [override o] for: warning: limit l does not count by cookie "
			"sid, so requests with and without these values spend from one bucket, by "
			"different policies\n" },
		{ "[override o]\nlimit = l\nfor = cookie sid a\nexempt = yes\n", "" },
		/* a list of known values is something */
		{ "[override o]\nlimit = l\nfor = header X-API-Key a\n", "" },
		{ "[override o]\nlimit = l\nfor = user a\n",
			"weir.ini:11: [override o]: warning: changes nothing; write policy, exempt "
			"= yes or block = yes\n" },
		/* an error elsewhere is not said twice */
		{ "[override o]\nlimit = l\nfor = usr a\n",
			"weir.ini:13: [override o] for: \"usr\" is none of ip, user, header, "
			"cookie, param, env; did you mean \"user\"?\n" },
		{ "[override]\nlimit = k\n[override o]\nfor = user a\nexempt = yes\n",
			"weir.ini:12: [override] limit: there is no [limit k]; did you mean "
			"\"l\"?\n" },
	};
	static const char known[] = "[override known]\nlimit = l\nfor = header X-API-Key zz\n";
	char lines[2048];

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		(void)snprintf(lines, sizeof lines, "%s%s", rows[i].lines, known);
		assert_said_of(lines, rows[i].said);
	}
}

static void
narrow_is_what_the_widest_bucket_holds(void **state)
{
	(void)state;
	assert_said("[redis]\n[backend b]\nserver = unix:/b\n[route r]\nmatch = *\nlimit = l\n"
		    "[limit l]\nidentity = user+ip, ip/24/48\npolicy = 5/1s\n[override o]\n"
		    "limit = l\nfor = ip 192.0.2.0/25, 192.0.3.0/24\npolicy = 9/1s\n",
		"weir.ini:12: [override o] for: 192.0.2.0/25 is part of a bucket that limit l "
		"keeps "
		"for all of its /24, and cannot have policies of its own; write a /24, or exempt "
		"or block\n");
}

/* ---- two for one ---- */

#define TWO(first, second)                                                                         \
	"[override a]\nlimit = l\nexempt = yes\nfor = " first "\n[override b]\nlimit = l\n"        \
	"block = yes\nfor = " second "\n[override known]\nlimit = l\nfor = header X-API-Key zz\n"

static void
no_value_has_two_overrides(void **state)
{
	static const struct {
		const char *lines, *said;
	} rows[] = {
		{ TWO("user x", "user y"), "" },
		{ TWO("user x, x", "user y, y"), "" },
		{ TWO("user x", "cookie x x"), "" },
		{ TWO("param a x", "param A x"), "" },
		{ TWO("user x", "user y, x"),
			"weir.ini:18: [override b] for: names a value that override a names "
			"already, at weir.ini:14; leave out one of them\n" },
		{ TWO("header X-API-Key x", "header x-api-key x"),
			"weir.ini:18: [override b] for: names a value that override a names "
			"already, at weir.ini:14; leave out one of them\n" },
		{ TWO("cookie a @DIR/keys", "cookie a @DIR/more"),
			"DIR/more:4: [override b] for: names a value that override a names "
			"already, at DIR/keys:2; leave out one of them\n" },
		/* a value is its hash */
		{ TWO("user abc",
			  "user sha256:"
			  "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
			"weir.ini:18: [override b] for: names a value that override a names "
			"already, at weir.ini:14; leave out one of them\n" },
		{ TWO("user sha256:"
		      "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
			  "user abd, abc"),
			"weir.ini:18: [override b] for: names a value that override a names "
			"already, at weir.ini:14; leave out one of them\n" },
		/* networks */
		{ TWO("ip 192.0.2.1, 192.0.2.1", "ip 192.0.2.2"), "" },
		{ TWO("ip 192.0.2.1", "ip ::ffff:192.0.2.1"),
			"weir.ini:18: [override b] for: 192.0.2.1 is named by override a already, "
			"at weir.ini:14; leave out one of them\n" },
		{ TWO("ip 192.0.2.1", "ip 192.0.2.0/24"), "" },
		{ TWO("ip 192.0.2.0/24, 10.0.0.0/9", "ip 192.0.2.128/25, 192.0.3.0/24, 11.0.0.1"),
			"weir.ini:18: [override b] for: warning: 192.0.2.128/25 is never reached, "
			"since "
			"override a at weir.ini:14 takes all of 192.0.2.0/24 first; put it before "
			"that one\n" },
	};

	(void)state;
	write_list("keys", "# a\nsame\n", 0600);
	write_list("more", "other\n#\n\n same\n", 0600);
	for (size_t i = 0; i < LENGTH_OF(rows); i++)
		assert_said_of(rows[i].lines, rows[i].said);
}

/* The innermost network that came before is the one that is told of. */
static void
networks_are_nested_in_any_depth(void **state)
{
	(void)state;
	assert_said_of("[override a]\nlimit = l\nexempt = yes\nfor = ip 10.1.1.0/24\n"
		       "[override b]\nlimit = l\nblock = yes\nfor = ip 10.0.0.0/8, ::/0\n"
		       "[override c]\nlimit = l\nblock = yes\nfor = ip 10.1.1.7, 10.1.0.0/16, "
		       "10.1.1.0/24, 2001:db8::1\n"
		       "[override known]\nlimit = l\nfor = header X-API-Key zz\n",
		"weir.ini:22: [override c] for: warning: 10.1.0.0/16 is never reached, since "
		"override b at weir.ini:18 takes all of 10.0.0.0/8 first; put it before that one\n"
		"weir.ini:22: [override c] for: 10.1.1.0/24 is named by override a already, at "
		"weir.ini:14; leave out one of them\n"
		"weir.ini:22: [override c] for: warning: 10.1.1.7 is never reached, since override "
		"a at weir.ini:14 takes all of 10.1.1.0/24 first; put it before that one\n"
		"weir.ini:22: [override c] for: warning: 2001:db8::1 is never reached, since "
		"override b at weir.ini:18 takes all of ::/0 first; put it before that one\n");
}

/* ---- many ---- */

enum { MANY = 100000 };

static void
write_many(const char *name, unsigned from, unsigned count)
{
	FILE *file = fopen(name, "w");

	assert_non_null(file);
	for (unsigned i = from; i < from + count; i++)
		(void)fprintf(file, "customer-key-%08u # %u\n", i * 7919U, i);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(chmod(name, 0600), 0);
}

#define PLANS                                                                                      \
	"[override gold]\nlimit = l\nfor = header X-API-Key @DIR/gold\npolicy = 9/1s\n"            \
	"[override silver]\nlimit = l\nfor = header X-API-Key @DIR/silver\npolicy = 8/1s\n"

static void
a_hundred_thousand_values_are_no_matter(void **state)
{
	char ini[3 * PATH_MAX];

	(void)state;
	write_many("gold", 0, MANY);
	write_many("silver", MANY, MANY);
	put_together(ini, sizeof ini, PLANS);
	struct config *config = loaded(ini);
	const struct config_for *silver = &config->overrides[1]->fors[0];

	assert_int_equal(silver->value_count, MANY);
	assert_value(silver, 0, "customer-key-791900000");
	assert_int_equal(silver->lines[MANY - 1], MANY);
	config_free(config);

	write_many("silver", MANY - 12, MANY);
	char *said = said_of(ini, NULL), last[2 * PATH_MAX + 200];

	(void)snprintf(last, sizeof last,
		"%s/silver:10: [override silver] for: names a value that override gold names "
		"already, at %s/gold:99998; leave out one of them\n",
		load_directory, load_directory);
	assert_row(strstr(said, last) != NULL, "%s", said);
	assert_non_null(strstr(said, "2 more values are named by two overrides of limit l\n"));
	assert_null(strstr(said, "customer"));
	free(said);
}

static void
a_file_has_a_million_lines_at_the_most(void **state)
{
	FILE *file = fopen("keys", "w");
	char said[2 * PATH_MAX];

	(void)state;
	assert_non_null(file);
	for (unsigned i = 0; i < 1000001; i++)
		(void)fputs("#\n", file);
	assert_int_equal(fclose(file), 0);
	(void)snprintf(said, sizeof said, "%s/keys has more than 1000000 lines", load_directory);
	assert_refused("override", "for", "user @DIR/keys", said);
	assert_int_equal(truncate("keys", 2000000), 0);
	char ini[3 * PATH_MAX];

	compose(ini, sizeof ini, "override", "for", "user @DIR/keys");
	config_free(loaded(ini));
	(void)snprintf(said, sizeof said, "the list has more than 10000 lines");
	assert_refused("weir", "trusted_proxies", "@DIR/keys", said);
}

/* ---- damage ---- */

static void
load_list(void *context, struct slice mutant)
{
	rewrite_file(*(const int *)context, mutant);
	struct config *config = load_damaged("lists.ini");

	if (config != NULL) {
		const struct config_for *list = &config->overrides[0]->fors[0];

		for (uint32_t i = 0; i < list->value_count; i++)
			assert_in_range(list->values[i].len, 1, 4096);
	}
	config_free(config);
}

static void
no_damage_of_a_file_does_more_than_be_refused(void **state)
{
	static const struct {
		const char *source, *text;
	} files[] = {
		{ "user",
			"a b #c\n\nsha256:"
			"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\nd" },
		{ "ip", "10.0.0.0/8\n ::1 # x\n192.0.2.1" },
	};
	char ini[4 * PATH_MAX], lines[256];
	int fd = open_damaged("keys");

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(files); i++) {
		(void)snprintf(lines, sizeof lines,
			"[override o]\nlimit = l\nexempt = yes\nfor = %s @DIR/keys\n",
			files[i].source);
		put_together(ini, sizeof ini, lines);
		write_file("lists.ini", slice_of(ini));
		each_damage(slice_of(files[i].text), load_list, &fd);
	}
	assert_int_equal(close(fd), 0);
}

static void
load_line(void *context, struct slice mutant)
{
	char ini[1024];
	const int len = snprintf(ini, sizeof ini,
		BASE "[override o]\nlimit = l\nexempt = yes\n%.*s\n", (int)mutant.len, mutant.ptr);

	assert_in_range(len, 0, sizeof ini - 1);
	rewrite_file(*(const int *)context, slice_make(ini, (size_t)len));
	config_free(load_damaged("mutant.ini"));
}

static void
no_damage_of_a_line_does_more_than_be_refused(void **state)
{
	static const char *const lines[] = { "for = header X-API-Key a, @/nowhere, sha256:00, b",
		"for = ip 10.0.0.0/8, ::1", "for = user a,b" };
	int fd = open_damaged("mutant.ini");

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(lines); i++)
		each_damage(slice_of(lines[i]), load_line, &fd);
	assert_int_equal(close(fd), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_come_from_lines_and_files),
		cmocka_unit_test(lists_say_what_is_wrong),
		cmocka_unit_test(a_fault_in_a_file_is_told_with_its_line),
		cmocka_unit_test(files_are_kept_from_others),
		cmocka_unit_test(overrides_are_judged_by_themselves),
		cmocka_unit_test(narrow_is_what_the_widest_bucket_holds),
		cmocka_unit_test(no_value_has_two_overrides),
		cmocka_unit_test(networks_are_nested_in_any_depth),
		cmocka_unit_test(a_hundred_thousand_values_are_no_matter),
		cmocka_unit_test(a_file_has_a_million_lines_at_the_most),
		cmocka_unit_test(no_damage_of_a_file_does_more_than_be_refused),
		cmocka_unit_test(no_damage_of_a_line_does_more_than_be_refused),
	};

	return cmocka_run_group_tests(tests, load_setup, load_teardown);
}
