/*
 * Whether we are a CGI program, and with whose arguments. A host without FastCGI starts us for each
 * request; what comes of it is one request to the gateway in this very process (cgi_pump.c).
 */
#include "cgi.h"

#include "cgi_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool
cgi_is_asked(void)
{
	return getenv("GATEWAY_INTERFACE") != NULL && getenv("REQUEST_METHOD") != NULL;
}

static int
hex_value(char c)
{
	static const char digits[] = "0123456789abcdef0123456789ABCDEF";
	const char *at = c == '\0' ? NULL : strchr(digits, c);

	return at == NULL ? -1 : (int)((at - digits) % 16);
}

/* The next byte of a query, decoded; what no escape is stands for itself. */
static char
cut_byte(struct slice *query)
{
	char c = query->ptr[0];
	size_t len = 1;

	if (c == '%' && query->len >= 3 && hex_value(query->ptr[1]) >= 0 &&
		hex_value(query->ptr[2]) >= 0) {
		c = (char)(hex_value(query->ptr[1]) * 16 + hex_value(query->ptr[2]));
		len = 3;
	}
	*query = slice_skip(*query, len);
	return c;
}

/* Whether a word ends there; at an escaped zero byte too, where the argument does. */
static bool
ends_word(struct slice query)
{
	if (query.len == 0 || query.ptr[0] == '+')
		return true;
	const char c = cut_byte(&query);

	return c == '\0' || c == '+' || c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Whether `argument` may have been made of the query's first word. Apache writes a backslash before
 * what a shell would take for its own (`is_escaped`), others do not. */
static bool
begins_with(struct slice query, const char *argument, bool is_escaped)
{
	while (*argument != '\0' && query.len > 0 && query.ptr[0] == '+')
		query = slice_skip(query, 1);
	for (; *argument != '\0'; argument++) {
		if (query.len == 0 || query.ptr[0] == '+')
			return false;
		const char c = cut_byte(&query);

		if (*argument == '\\' && is_escaped)
			argument++;
		if (*argument != c)
			return false;
	}
	return ends_word(query);
}

/* The first word tells, and that there are no more than the query can have: web servers cut words,
 * and lists of them, each in its own way. */
static bool
are_the_query(int argc, char **argv)
{
	const char *text = getenv("QUERY_STRING");
	const struct slice query = slice_of(text == NULL ? "" : text);
	int words = 1;

	if (argc < 2 || query.len == 0 || slice_find(query, '=') < query.len)
		return false;
	for (size_t i = 0; i < query.len; i++)
		words += query.ptr[i] == '+' || query.ptr[i] == '%';
	return argc - 1 <= words &&
		(begins_with(query, argv[1], true) || begins_with(query, argv[1], false));
}

bool
cgi_arguments_are_foreign(int argc, char **argv)
{
	const char *script = getenv("SCRIPT_FILENAME");

	return are_the_query(argc, argv) ||
		(argc == 2 && script != NULL && strcmp(argv[1], script) == 0);
}

void
cgi_answer_error(unsigned status, const char *reason)
{
	(void)printf("Status: %u %s\r\nContent-Type: text/plain; charset=utf-8\r\nCache-Control: "
		     "no-store\r\n\r\n%s.\n",
		status, reason, reason);
	(void)fflush(stdout);
}

/* ---- the request as parameters ---- */

/* What a shell between the web server and us adds. */
static bool
is_of_a_shell(struct slice name)
{
	return slice_is(name, SLICE("PWD")) || slice_is(name, SLICE("OLDPWD")) ||
		slice_is(name, SLICE("SHLVL")) || slice_is(name, SLICE("_"));
}

int
cgi_put_request(struct buf *out, char *const *environment)
{
	struct buf pairs;
	uint8_t begin[16];
	int result = 0;

	buf_init(&pairs, CGI_REQUEST_MAX);
	for (char *const *entry = environment; result == 0 && *entry != NULL; entry++) {
		const struct slice all = slice_of(*entry);
		const struct slice name = slice_first(all, slice_find(all, '='));

		if (name.len > 0 && name.len < all.len && !is_of_a_shell(name))
			result = fcgi_pair_put(&pairs, name, slice_skip(all, name.len + 1));
	}
	fcgi_put_begin(begin, CGI_REQUEST_ID, FCGI_RESPONDER, 0);
	if (result == 0)
		result = buf_append(out, begin, sizeof begin);
	if (result == 0)
		result = fcgi_params_put(out, CGI_REQUEST_ID, buf_slice(&pairs));
	buf_release(&pairs);
	return result;
}

uint64_t
cgi_body_length(void)
{
	const char *length = getenv("CONTENT_LENGTH");
	uint64_t number;

	/* What is no number is refused by the front, which sees it too. */
	if (length != NULL && length[0] != '\0')
		return parse_uint(slice_of(length), INT64_MAX, &number) == 0 ? number : 0;
	/* RFC 3875 knows no body without a length, but Apache passes on what came in chunks. */
	return getenv("HTTP_TRANSFER_ENCODING") == NULL ? 0 : UINT64_MAX;
}
