/*
 * A request out of words, as a web server would send it: each source of an identity becomes the
 * FastCGI parameter that it is found in.
 */
#include "identity.h"

#include "weir/ip.h"

#include <stdio.h>

enum { VALUE_MAX = 4096 };

/* ---- a request, as a web server would send it ---- */

static int
add(struct question *question, const char *name, const char *value)
{
	char *entry = question->count == QUESTION_ENV_MAX
		? NULL
		: arena_printf(&question->arena, "%s=%s", name, value);

	if (entry == NULL)
		return -1;
	question->env[question->count++] = entry;
	return 0;
}

static int
add_ip(struct question *question, const char *name, const char *value)
{
	struct ip ip;

	(void)name;
	return ip_parse(slice_of(value), &ip) == 0 ? add(question, "REMOTE_ADDR", value) : -1;
}

static int
add_user(struct question *question, const char *name, const char *value)
{
	(void)name;
	return add(question, "REMOTE_USER", value) == 0 ? add(question, "AUTH_TYPE", "said") : -1;
}

static int
add_header(struct question *question, const char *name, const char *value)
{
	char *variable = arena_printf(&question->arena, "HTTP_%s", name);

	if (variable == NULL)
		return -1;
	for (char *at = variable; *at != '\0'; at++)
		*at = *at == '-' ? '_' : *at >= 'a' && *at <= 'z' ? (char)(*at - 32) : *at;
	/* These two have no HTTP_ in front (RFC 3875 section 4.1.18). */
	if (strcmp(variable, "HTTP_CONTENT_TYPE") == 0 ||
		strcmp(variable, "HTTP_CONTENT_LENGTH") == 0)
		variable += strlen("HTTP_");
	return add(question, variable, value);
}

static int
add_cookie(struct question *question, const char *name, const char *value)
{
	question->cookies = arena_printf(&question->arena, "%s; %s=%s",
		question->cookies == NULL ? "" : question->cookies, name, value);
	return question->cookies == NULL ? -1 : add(question, "HTTP_COOKIE", question->cookies);
}

/* Every byte, so that none means anything. NULL: no memory. */
static const char *
escaped(struct arena *arena, const char *text)
{
	const size_t size = 3 * strlen(text) + 1;
	char *out = arena_alloc(arena, size);

	for (size_t i = 0; out != NULL && text[i] != '\0'; i++)
		(void)snprintf(out + 3 * i, 4, "%%%02X", (unsigned char)text[i]);
	if (out != NULL)
		out[size - 1] = '\0';
	return out;
}

static int
add_param(struct question *question, const char *name, const char *value)
{
	const char *left = escaped(&question->arena, name);
	const char *right = escaped(&question->arena, value);

	if (left == NULL || right == NULL)
		return -1;
	question->query = arena_printf(&question->arena, "%s&%s=%s",
		question->query == NULL ? "" : question->query, left, right);
	return question->query == NULL ? -1 : add(question, "QUERY_STRING", question->query);
}

static int
add_host(struct question *question, const char *name, const char *value)
{
	(void)name;
	return add(question, "HTTP_HOST", value);
}

static int
add_path(struct question *question, const char *name, const char *value)
{
	(void)name;
	return add(question, "REQUEST_URI", value);
}

static int
add_route(struct question *question, const char *name, const char *value)
{
	(void)name;
	question->route = value;
	return 0;
}

/* ---- the arguments ---- */

static const struct source {
	const char *word;
	bool has_name;
	int (*add)(struct question *question, const char *name, const char *value);
} sources[] = {
	{ "ip", false, add_ip },
	{ "user", false, add_user },
	{ "header", true, add_header },
	{ "cookie", true, add_cookie },
	{ "param", true, add_param },
	{ "env", true, add },
	{ "host", false, add_host },
	{ "path", false, add_path },
	{ "route", false, add_route },
};

/* NULL: it is none. */
static const struct source *
source_of(const char *word)
{
	for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++) {
		if (strcmp(sources[i].word, word) == 0)
			return &sources[i];
	}
	return NULL;
}

/* `-` is a line of standard input: what stands in a command line, others can see. */
static const char *
value_of(struct question *question, const char *argument)
{
	char line[VALUE_MAX + 2];

	if (strcmp(argument, "-") != 0)
		return argument;
	if (fgets(line, sizeof line, stdin) == NULL || strlen(line) > VALUE_MAX)
		return NULL;
	line[strcspn(line, "\r\n")] = '\0';
	return arena_text(&question->arena, slice_of(line));
}

int
question_read(struct question *question, int argc, char **argv, const char **wrong)
{
	for (int i = 0; i < argc;) {
		const struct source *source = source_of(argv[i]);
		const int words = source != NULL && source->has_name ? 2 : 1;

		if (source == NULL || argc - i <= words)
			return -1;
		const char *value = value_of(question, argv[i + words]);

		if (value == NULL || value[0] == '\0' || strchr(argv[i + words - 1], '=') != NULL ||
			source->add(question, argv[i + 1], value) != 0) {
			*wrong = argv[i];
			return -1;
		}
		i += words + 1;
	}
	return 0;
}
