/* Addresses of peers as text. */
#include "weir/address.h"
#include "weir/units.h"

#include <stdio.h>
#include <sys/un.h>

static const struct {
	struct slice scheme;
	enum address_kind kind;
} schemes[] = {
	{ { "unix:", 5 }, ADDRESS_UNIX },
	{ { "tcp:", 4 }, ADDRESS_TCP },
	{ { "tls:", 4 }, ADDRESS_TLS },
};

static int
copy_host(struct slice host, size_t max, struct address *address, struct err *err)
{
	if (host.len == 0)
		return err_set(
			err, "the host is missing; write tcp:127.0.0.1:9000 or tcp:[::1]:9000");
	if (memchr(host.ptr, '\0', host.len) != NULL)
		return err_set(err, "the address has a NUL");
	if (host.len > max)
		return err_set(
			err, "\"%.*s\" is longer than %zu bytes", (int)host.len, host.ptr, max);
	memcpy(address->host, host.ptr, host.len);
	address->host[host.len] = '\0';
	return 0;
}

static int
parse_unix(struct slice path, struct address *address, struct err *err)
{
	if (path.len == 0 || path.ptr[0] != '/')
		return err_set(err, "\"unix:%.*s\" is no absolute path; write unix:/directory/%.*s",
			(int)path.len, path.ptr, (int)path.len, path.ptr);
	return copy_host(path, sizeof((struct sockaddr_un *)NULL)->sun_path - 1, address, err);
}

/* host:port or [v6]:port. The port is what follows the last colon. */
static int
parse_inet(struct slice text, struct address *address, struct err *err)
{
	size_t colon = text.len;
	uint64_t port = 0;

	while (colon > 0 && text.ptr[colon - 1] != ':')
		colon--;
	struct slice host = slice_first(text, colon > 0 ? colon - 1 : 0);

	if (colon == 0 || parse_uint(slice_skip(text, colon), UINT16_MAX, &port) != 0 || port == 0)
		return err_set(err,
			"\"%.*s\" has no port from 1 to 65535; write tcp:127.0.0.1:9000 or "
			"tcp:[::1]:9000",
			(int)text.len, text.ptr);
	if (host.len >= 2 && host.ptr[0] == '[' && host.ptr[host.len - 1] == ']')
		host = slice_make(host.ptr + 1, host.len - 2);
	else if (slice_find(host, ':') != host.len)
		return err_set(err, "an IPv6 address stands in brackets: tcp:[%.*s]:%u",
			(int)host.len, host.ptr, (unsigned)port);
	address->port = (uint16_t)port;
	return copy_host(host, sizeof address->host - 1, address, err);
}

int
address_parse(struct slice text, struct address *out, struct err *err)
{
	for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
		if (!slice_has_prefix(text, schemes[i].scheme))
			continue;
		struct slice rest = slice_skip(text, schemes[i].scheme.len);
		struct address address = { .kind = schemes[i].kind };
		int result = address.kind == ADDRESS_UNIX ? parse_unix(rest, &address, err)
							  : parse_inet(rest, &address, err);

		if (result == 0)
			*out = address;
		return result;
	}
	return err_set(err, "\"%.*s\" is no address; write unix:/path or tcp:host:port",
		(int)text.len, text.ptr);
}

const char *
address_text(const struct address *address, char out[ADDRESS_TEXT_SIZE])
{
	const char *scheme = address->kind == ADDRESS_TLS ? "tls" : "tcp";

	if (address->kind == ADDRESS_UNIX)
		(void)snprintf(out, ADDRESS_TEXT_SIZE, "unix:%s", address->host);
	else if (strchr(address->host, ':') != NULL)
		(void)snprintf(
			out, ADDRESS_TEXT_SIZE, "%s:[%s]:%u", scheme, address->host, address->port);
	else
		(void)snprintf(
			out, ADDRESS_TEXT_SIZE, "%s:%s:%u", scheme, address->host, address->port);
	return out;
}

bool
address_is(const struct address *a, const struct address *b)
{
	return a->kind == b->kind && a->port == b->port && strcmp(a->host, b->host) == 0;
}
