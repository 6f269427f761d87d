/*
 * What is sent: an HTTP/1.1 request, or BEGIN_REQUEST, PARAMS and an empty STDIN (FastCGI 1.0,
 * appendix B) with the parameters that a web server would send.
 */
#include "load.h"

#include <string.h>

enum { FCGI_BEGIN = 1, FCGI_PARAMS = 4, FCGI_STDIN = 5, REQUEST_ID = 1, RESPONDER = 1 };

struct cursor {
	char *at;
	size_t left;
	bool overflow;
};

static void
put(struct cursor *cursor, const void *bytes, size_t len)
{
	if (len > cursor->left) {
		cursor->overflow = true;
		return;
	}
	memcpy(cursor->at, bytes, len);
	cursor->at += len;
	cursor->left -= len;
}

static void
put_length(struct cursor *cursor, size_t len)
{
	const unsigned char bytes[] = { (unsigned char)(len >> 24 | 0x80),
		(unsigned char)(len >> 16), (unsigned char)(len >> 8), (unsigned char)len };

	if (len < 128)
		put(cursor, bytes + 3, 1);
	else
		put(cursor, bytes, sizeof bytes);
}

static void
put_pair(struct cursor *cursor, const char *name, const char *value)
{
	put_length(cursor, strlen(name));
	put_length(cursor, strlen(value));
	put(cursor, name, strlen(name));
	put(cursor, value, strlen(value));
}

static void
put_head(struct cursor *cursor, int type, size_t len)
{
	const unsigned char head[] = { 1, (unsigned char)type, 0, REQUEST_ID,
		(unsigned char)(len >> 8), (unsigned char)len, 0, 0 };

	put(cursor, head, sizeof head);
}

static void
put_params(struct cursor *cursor, const struct plan *plan, const char *path, const char *address)
{
	put_pair(cursor, "GATEWAY_INTERFACE", "CGI/1.1");
	put_pair(cursor, "REQUEST_METHOD", "GET");
	put_pair(cursor, "REQUEST_URI", path);
	put_pair(cursor, "SCRIPT_NAME", path);
	if (plan->script != NULL)
		put_pair(cursor, "SCRIPT_FILENAME", plan->script);
	put_pair(cursor, "QUERY_STRING", "");
	put_pair(cursor, "CONTENT_LENGTH", "");
	put_pair(cursor, "SERVER_PROTOCOL", "HTTP/1.1");
	put_pair(cursor, "SERVER_SOFTWARE", "fcgi_load");
	put_pair(cursor, "REMOTE_ADDR", address);
	put_pair(cursor, "HTTP_HOST", plan->host);
	for (unsigned i = 0; i < plan->name_count; i++)
		put_pair(cursor, plan->names[i].name, plan->names[i].value);
}

static size_t
write_fastcgi(const struct plan *plan, const char *path, const char *address, char *out)
{
	const unsigned char begin[] = { 0, RESPONDER, plan->keep ? 1 : 0, 0, 0, 0, 0, 0 };
	struct cursor cursor = { .at = out, .left = REQUEST_SIZE };

	put_head(&cursor, FCGI_BEGIN, sizeof begin);
	put(&cursor, begin, sizeof begin);
	char *head = cursor.at;

	put_head(&cursor, FCGI_PARAMS, 0);
	char *params = cursor.at;

	put_params(&cursor, plan, path, address);
	const size_t len = (size_t)(cursor.at - params);

	head[4] = (char)(len >> 8);
	head[5] = (char)len;
	put_head(&cursor, FCGI_PARAMS, 0);
	put_head(&cursor, FCGI_STDIN, 0);
	return cursor.overflow || len > UINT16_MAX ? 0 : (size_t)(cursor.at - out);
}

static size_t
write_http(const struct plan *plan, const char *path, const char *address, char *out)
{
	int n = snprintf(out, REQUEST_SIZE, "GET %s HTTP/1.1\r\nHost: %s\r\n", path, plan->host);

	if (plan->vary > 0)
		n += snprintf(
			out + n, REQUEST_SIZE - (size_t)n, "X-Forwarded-For: %s\r\n", address);
	for (unsigned i = 0; i < plan->name_count && n < REQUEST_SIZE; i++)
		n += snprintf(out + n, REQUEST_SIZE - (size_t)n, "%s: %s\r\n", plan->names[i].name,
			plan->names[i].value);
	if (n < REQUEST_SIZE)
		n += snprintf(out + n, REQUEST_SIZE - (size_t)n, "\r\n");
	return n < REQUEST_SIZE ? (size_t)n : 0;
}

size_t
request_write(const struct plan *plan, uint64_t n, char out[REQUEST_SIZE])
{
	const uint64_t which = plan->vary > 0 ? n % plan->vary : 0;
	char path[4096], address[32];

	if (plan->vary > 0)
		(void)snprintf(path, sizeof path, "%s/%llu", plan->path, (unsigned long long)which);
	else
		(void)snprintf(path, sizeof path, "%s", plan->path);
	(void)snprintf(address, sizeof address, "10.%u.%u.%u", (unsigned)(which >> 16 & 255),
		(unsigned)(which >> 8 & 255), (unsigned)(which & 255));
	return plan->is_http ? write_http(plan, path, address, out)
			     : write_fastcgi(plan, path, address, out);
}
