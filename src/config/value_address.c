/* Addresses: where weir listens, where backends and Redis are. */
#include "values.h"

#include <stdio.h>

enum { MODE_DEFAULT = 0660, MODE_MAX = 0777 };

static bool
is_port(struct slice text)
{
	uint64_t n;

	return parse_uint(text, UINT16_MAX, &n) == 0;
}

/* An address without its scheme, as most other programs take it. */
static int
check_scheme(struct slice text, struct err *err)
{
	const size_t colon = slice_find(text, text.ptr[0] == '[' ? ']' : ':');
	const struct slice behind = slice_skip(text, colon < text.len ? colon + 1 : colon);
	const struct slice port =
		text.ptr[0] == '[' && behind.len > 0 ? slice_skip(behind, 1) : behind;

	if (text.ptr[0] == '/')
		return err_set(err, "\"%.*s\" is written unix:%.*s", SHOWN(text), SHOWN(text));
	if (is_port(text))
		return err_set(
			err, "\"%.*s\" is written tcp:127.0.0.1:%.*s", SHOWN(text), SHOWN(text));
	if (colon > 0 && is_port(port) && !slice_is(slice_first(text, colon), SLICE("tcp")) &&
		!slice_is(slice_first(text, colon), SLICE("tls")))
		return err_set(err, "\"%.*s\" is written tcp:%.*s", SHOWN(text), SHOWN(text));
	return 0;
}

int
address_read(struct slice text, struct address *address, struct err *err)
{
	if (slice_find(text, ' ') != text.len || slice_find(text, '\t') != text.len)
		return err_set(err,
			"\"%.*s\" has a blank, and an address has none; a second address is a "
			"second "
			"line",
			SHOWN(text));
	if (check_scheme(text, err) != 0 || address_parse(text, address, err) != 0)
		return -1;
	if (address->kind == ADDRESS_UNIX)
		path_tidy(address->host);
	return 0;
}

/* Where there is no TLS. */
static int
parse_address(struct slice text, struct address *address, struct err *err)
{
	if (address_read(text, address, err) != 0)
		return -1;
	if (address->kind == ADDRESS_TLS)
		return err_set(err, "tls: is for Redis only; write tcp:HOST:PORT or unix:/PATH");
	return 0;
}

int
value_address(const struct value *value, void *field, struct err *err)
{
	return parse_address(value->text, field, err);
}

int
value_metrics(const struct value *value, void *field, struct err *err)
{
	struct config *config = field;

	config->has_metrics = true;
	return parse_address(value->text, &config->metrics, err);
}

static int
parse_mode(struct slice text, int *mode, struct err *err)
{
	int n = 0;

	for (size_t i = 0; i < text.len; i++) {
		if (text.ptr[i] < '0' || text.ptr[i] > '7' || n > MODE_MAX)
			return err_set(err, "\"%.*s\" is no mode; write it as chmod takes it: 0660",
				SHOWN(text));
		n = 8 * n + (text.ptr[i] - '0');
	}
	if (n == 0 || n > MODE_MAX)
		return err_set(err, "\"%.*s\" is no mode from 0001 to 0777", SHOWN(text));
	*mode = n;
	return 0;
}

int
value_listen(const struct value *value, void *field, struct err *err)
{
	enum { MODE, OWNER, GROUP };
	struct config_listen *listen = field;
	struct trailer trailers[] = {
		[MODE] = { "mode", .has_argument = true },
		[OWNER] = { "owner", .has_argument = true },
		[GROUP] = { "group", .has_argument = true },
		{ NULL, .has_argument = false },
	};
	struct slice rest = value->text, address;

	*listen = (struct config_listen){ .place = value->place, .mode = MODE_DEFAULT };
	if (!word_next(&rest, &address) || parse_address(address, &listen->address, err) != 0 ||
		trailers_parse(rest, trailers, err) != 0)
		return -1;
	if (rest.len > 0 && listen->address.kind != ADDRESS_UNIX)
		return err_set(err, "mode, owner and group are of unix: sockets only");
	if (trailers[MODE].is_given && parse_mode(trailers[MODE].argument, &listen->mode, err) != 0)
		return -1;
	if (trailers[OWNER].is_given &&
		(listen->owner = value_copy(value, trailers[OWNER].argument, err)) == NULL)
		return -1;
	if (trailers[GROUP].is_given &&
		(listen->group = value_copy(value, trailers[GROUP].argument, err)) == NULL)
		return -1;
	return 0;
}
