/*
 * What a program is told. Nothing of our own environment is passed on but what any program needs:
 * it may hold secrets, and a name such as LD_PRELOAD is not for a request to set.
 */
#include "cgi_private.h"

#include <stdlib.h>
#include <string.h>

extern char **environ;

struct environment {
	struct buf *out;
	size_t start; /* where it begins in `out` */
	size_t distinct; /* what is behind this has other names than what is being put; 0: has not
			  */
	unsigned count;
	enum exchange_result result;
	struct err *why;
};

/* [A-Za-z_][A-Za-z0-9_]*: what a shell can name. */
static bool
is_name(struct slice name)
{
	for (size_t i = 0; i < name.len; i++) {
		const char c = name.ptr[i];
		const bool is_digit = c >= '0' && c <= '9';
		const bool is_letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';

		if (!is_letter && !(is_digit && i > 0))
			return false;
	}
	return name.len > 0;
}

/* What makes the program itself another one (ld.so(8)), and what a client could set by a header of
 * that name (httpoxy): not for a request to set, though `env` may. */
static bool
is_barred(struct slice name)
{
	return slice_is(name, SLICE("HTTP_PROXY")) ||
		(name.len >= 3 && memcmp(name.ptr, "LD_", 3) == 0);
}

static bool
is_there(const struct environment *environment, struct slice name)
{
	struct slice rest = buf_slice(environment->out);

	if (environment->distinct > 0)
		rest = slice_first(rest, environment->distinct);
	rest = slice_skip(rest, environment->start);
	while (rest.len > 0) {
		const size_t len = strlen(rest.ptr);

		if (len > name.len && rest.ptr[name.len] == '=' &&
			memcmp(rest.ptr, name.ptr, name.len) == 0)
			return true;
		rest = slice_skip(rest, len + 1);
	}
	return false;
}

/* False: there is no room; the result says so. */
static bool
put(struct environment *environment, struct slice name, struct slice value)
{
	struct buf *out = environment->out;

	if (!is_name(name) || is_there(environment, name))
		return true;
	if (value.len > 0 && memchr(value.ptr, 0, value.len) != NULL) {
		environment->result = EXCHANGE_FORBIDDEN;
		(void)err_set(environment->why,
			"%.*s has a zero byte, which no program can be told", (int)name.len,
			name.ptr);
		return false;
	}
	environment->count++;
	if (environment->count > CGI_VARIABLES_MAX || name.len + value.len + 2 > CGI_STRING_MAX ||
		out->len + name.len + value.len + 2 + environment->count * sizeof(char *) >
			CGI_ENVIRONMENT_MAX) {
		environment->result = EXCHANGE_TOO_LARGE;
		(void)err_set(environment->why,
			"%.*s makes the program's environment larger than the system allows",
			(int)name.len, name.ptr);
		return false;
	}
	if (buf_append_slice(out, name) == 0 && buf_append(out, "=", 1) == 0 &&
		buf_append_slice(out, value) == 0 && buf_append(out, "", 1) == 0)
		return true;
	environment->result = EXCHANGE_BUSY;
	(void)err_set(environment->why, "no memory for the program's environment");
	return false;
}

/* "NAME=VALUE" */
static bool
put_line(struct environment *environment, const char *line)
{
	const char *equals = strchr(line, '=');

	return equals == NULL ||
		put(environment, slice_make(line, (size_t)(equals - line)), slice_of(equals + 1));
}

static bool
put_own(struct environment *environment)
{
	static const char *const prefixes[] = { "PATH=", "TZ=", "LANG=", "LC_" };

	for (char **line = environ; *line != NULL; line++) {
		for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
			if (strncmp(*line, prefixes[i], strlen(prefixes[i])) == 0 &&
				!put_line(environment, *line))
				return false;
		}
	}
	return put_line(environment, "PATH=/usr/local/bin:/usr/bin:/bin");
}

static bool
put_program(struct environment *environment, const struct cgi_program *program)
{
	return put(environment, SLICE("GATEWAY_INTERFACE"), SLICE("CGI/1.1")) &&
		put(environment, SLICE("SCRIPT_FILENAME"),
			slice_of(program->script[0] != '\0' ? program->script : program->path)) &&
		(program->script_name.ptr == NULL ||
			(put(environment, SLICE("SCRIPT_NAME"), program->script_name) &&
				put(environment, SLICE("PATH_INFO"), program->path_info)));
}

static bool
put_params(struct environment *environment, struct slice params)
{
	struct buf single;
	struct slice rest, name, value;
	bool done = true;

	buf_init(&single, EARLY_MAX);
	if (params_put_last(&single, params) != 0) {
		environment->result = EXCHANGE_BUSY;
		(void)err_set(environment->why, "no memory for the program's environment");
		done = false;
	}
	environment->distinct = environment->out->len;
	rest = buf_slice(&single);
	while (done && fcgi_pair_next(&rest, &name, &value) > 0)
		done = is_barred(name) || put(environment, name, value);
	environment->distinct = 0;
	buf_release(&single);
	return done;
}

static bool
put_configured(struct environment *environment, const struct config_backend *config)
{
	for (unsigned i = 0; i < config->env_count; i++) {
		if (!put_line(environment, config->env[i]))
			return false;
	}
	return true;
}

enum exchange_result
cgi_environment_put(struct buf *out, const struct config_backend *config,
	const struct cgi_program *program, struct slice params, struct err *why)
{
	struct environment environment = {
		.out = out, .start = out->len, .result = EXCHANGE_COMPLETE, .why = why
	};

	if (put_configured(&environment, config) && put_program(&environment, program) &&
		put_params(&environment, params))
		(void)put_own(&environment);
	return environment.result;
}
