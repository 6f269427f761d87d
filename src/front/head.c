/*
 * Heads of requests. A head is judged here before libfcgi sees it (libfcgi.c), pair by pair, with
 * how long the body is; who asks and which web server it is, is judged afterwards.
 */
#include "conn.h"

#include "weir/units.h"

#include <string.h>

/* What envp cannot carry, and no web server sends. */
static int
check_pair(struct slice name, struct slice value, struct err *err)
{
	if (slice_find(name, '\0') != name.len || slice_find(value, '\0') != value.len)
		return err_set(err, "a parameter holds a NUL byte");
	if (slice_find(name, '=') != name.len)
		return err_set(err, "a parameter's name holds an equals sign");
	return 0;
}

static enum head_result
check_pairs(struct slice pairs, uint64_t max_params, uint64_t *count, struct err *err)
{
	struct slice name, value;
	int result;

	*count = 0;
	while ((result = fcgi_pair_next(&pairs, &name, &value)) > 0) {
		if (check_pair(name, value, err) != 0)
			return HEAD_BAD;
		if (++*count > max_params) {
			(void)err_set(err, "there are more than %llu parameters (max_params)",
				(unsigned long long)max_params);
			return HEAD_TOO_LARGE;
		}
	}
	if (result < 0) {
		(void)err_set(err, "a parameter's length reaches beyond the end of the parameters");
		return HEAD_BAD;
	}
	return HEAD_SOUND;
}

/* nginx's way to say that there is none, and Caddy's that it does not know. */
static bool
says_none(struct slice value)
{
	return value.len == 0 || slice_is(value, SLICE("-1"));
}

/* What CONTENT_LENGTH says, however often it is there. */
struct length {
	unsigned count;
	struct slice said; /* a number, if one of them is */
	uint64_t bytes; /* UINT64_MAX: no number */
};

static int
read_length(struct slice pairs, struct length *length, struct err *err)
{
	struct slice name, value;
	uint64_t bytes;

	*length = (struct length){ .bytes = UINT64_MAX };
	while (fcgi_pair_next(&pairs, &name, &value) > 0) {
		if (!slice_is(name, SLICE("CONTENT_LENGTH")))
			continue;
		length->count++;
		if (says_none(value)) {
			if (length->said.len == 0)
				length->said = value;
			continue;
		}
		if (parse_uint(value, INT64_MAX, &bytes) != 0)
			return err_set(err, "CONTENT_LENGTH is no number");
		if (length->bytes != UINT64_MAX && length->bytes != bytes)
			return err_set(err, "CONTENT_LENGTH comes twice, with different values");
		length->said = value;
		length->bytes = bytes;
	}
	return 0;
}

/* The application gets one: of two it might take the other. No pair becomes longer. */
static int
unite_lengths(struct front_request *request, struct slice said)
{
	struct slice pairs = buf_slice(&request->params), name, value;
	bool has_one = false;
	struct buf united;

	buf_init(&united, request->params.max);
	while (fcgi_pair_next(&pairs, &name, &value) > 0) {
		if (slice_is(name, SLICE("CONTENT_LENGTH"))) {
			if (has_one)
				continue;
			has_one = true;
			value = said;
		}
		if (fcgi_pair_put(&united, name, value) != 0) {
			buf_release(&united);
			return -1;
		}
	}
	buf_release(&request->params);
	request->params = united;
	return 0;
}

/* An authorizer has no body (6.3), whatever its CONTENT_LENGTH says. */
static enum head_result
settle_length(struct front_request *request, struct err *err)
{
	struct length length;

	if (request->role == FRONT_AUTHORIZER)
		return HEAD_SOUND;
	if (read_length(buf_slice(&request->params), &length, err) != 0)
		return HEAD_BAD;
	if (length.count > 1 && unite_lengths(request, length.said) != 0) {
		(void)err_set(err, "no memory for the head");
		return HEAD_SHORTAGE;
	}
	request->body_length = length.bytes;
	return HEAD_SOUND;
}

enum head_result
head_parse(struct head_parser *parser, struct front_request *request, uint64_t max_params,
	struct err *err)
{
	uint64_t count;
	enum head_result result = check_pairs(buf_slice(&request->params), max_params, &count, err);

	if (result == HEAD_SOUND)
		result = settle_length(request, err);
	return result == HEAD_SOUND ? libfcgi_parse(parser, request, count, err) : result;
}

/* The last of that name, as in an environment that was filled in this order. */
static struct slice
env_value(const struct front_request *request, struct slice name)
{
	struct slice value = { NULL, 0 };

	for (size_t i = 0; request->env[i] != NULL; i++) {
		const char *entry = request->env[i];

		if (strncmp(entry, name.ptr, name.len) == 0 && entry[name.len] == '=')
			value = slice_of(entry + name.len + 1);
	}
	return value;
}

int
head_check_address(const struct front_request *request, struct err *err)
{
	const struct slice name = SLICE("REMOTE_ADDR=");
	const char *first = NULL;

	for (size_t i = 0; request->env[i] != NULL; i++) {
		const char *entry = request->env[i];

		if (!slice_has_prefix(slice_of(entry), name))
			continue;
		if (first != NULL && strcmp(first, entry) != 0)
			return err_set(err, "REMOTE_ADDR comes twice, with different values");
		first = entry;
	}
	return 0;
}

bool
front_is_head(const struct front_request *request)
{
	struct slice pairs = buf_slice(&request->params), name, value;
	bool is_head = false;

	while (fcgi_pair_next(&pairs, &name, &value) > 0) {
		if (slice_is(name, SLICE("REQUEST_METHOD")))
			is_head = slice_is(value, SLICE("HEAD"));
	}
	return is_head;
}

static bool
is_from_apache(const struct front_request *request)
{
	return slice_has_prefix(env_value(request, SLICE("SERVER_SOFTWARE")), SLICE("Apache"));
}

/* It hands its processes the socket as descriptor 0; Apache's other modules connect. */
bool
head_is_from_mod_fcgid(const struct front_request *request)
{
	return conn_of(request)->front->settings.by_mod_fcgid && is_from_apache(request);
}

bool
head_is_from_mod_proxy_fcgi(const struct front_request *request)
{
	return !conn_of(request)->front->settings.by_mod_fcgid && is_from_apache(request);
}
