/*
 * Slots: which one a key is in, and what servers say of who has them. Nothing that a server says is
 * believed before all of it has been looked at: a host is a name or an address, a port is a port,
 * and ranges lie within the slots. Where a server leaves the host out, it means its own.
 *
 * https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/
 */
#include "cluster_private.h"

#include "weir/units.h"

/* ---- keys ---- */

/* CRC16 of XMODEM (polynomial 0x1021), four bits at a time. */
static unsigned
crc16(struct slice data)
{
	static const uint16_t table[16] = { 0x0000, 0x1021, 0x2042, 0x3063, 0x4084, 0x50a5, 0x60c6,
		0x70e7, 0x8108, 0x9129, 0xa14a, 0xb16b, 0xc18c, 0xd1ad, 0xe1ce, 0xf1ef };
	unsigned crc = 0;

	for (size_t i = 0; i < data.len; i++) {
		const unsigned byte = (unsigned char)data.ptr[i];

		crc = (crc << 4 & 0xffff) ^ table[crc >> 12 ^ byte >> 4];
		crc = (crc << 4 & 0xffff) ^ table[crc >> 12 ^ (byte & 15)];
	}
	return crc;
}

unsigned
slot_of(struct slice key)
{
	const size_t open = slice_find(key, '{');

	if (open < key.len) {
		const struct slice behind = slice_skip(key, open + 1);
		const size_t tag = slice_find(behind, '}');

		if (tag > 0 && tag < behind.len)
			key = slice_first(behind, tag);
	}
	return crc16(key) % SLOTS;
}

/* What two bytes alone must be to have this CRC. */
static unsigned
undo_crc16(unsigned crc)
{
	for (unsigned i = 0; i < 16; i++)
		crc = (crc & 1) != 0 ? (crc ^ 0x1021) >> 1 | 0x8000 : crc >> 1;
	return crc;
}

static bool
is_letter(unsigned c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/* Each first letter leads to one pair behind it, which is of letters now and then; and a slot is
 * the remainder of four CRCs. */
struct slice
slot_tag(unsigned slot, char out[SLOT_TAG_LEN])
{
	for (unsigned first = '0'; first <= 'z'; first++) {
		out[0] = (char)first;
		for (unsigned crc = slot; is_letter(first) && crc <= 0xffff; crc += SLOTS) {
			const unsigned pair = crc16(slice_make(out, 1)) ^ undo_crc16(crc);

			out[1] = (char)(pair >> 8);
			out[2] = (char)(pair & 0xff);
			if (is_letter(pair >> 8) && is_letter(pair & 0xff))
				return slice_make(out, SLOT_TAG_LEN);
		}
	}
	return slice_make(out, 0);
}

/* ---- addresses ---- */

static bool
is_host(struct slice host)
{
	const struct slice marks = SLICE(".-_:%");

	for (size_t i = 0; i < host.len; i++) {
		const char c = host.ptr[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
			slice_find(marks, c) == marks.len)
			return false;
	}
	return host.len > 0;
}

/* The others are reached as this one was: with TLS or without. */
static int
make_address(struct slice host, long long port, const struct address *from, struct address *out)
{
	*out = (struct address){ .kind = from->kind };
	if (host.len == 0)
		host = slice_of(from->host);
	if (port < 1 || port > UINT16_MAX || host.len >= sizeof out->host || !is_host(host))
		return -1;
	memcpy(out->host, host.ptr, host.len);
	out->port = (uint16_t)port;
	return 0;
}

/* ---- CLUSTER SLOTS ---- */

struct range {
	unsigned first, last;
	bool has_master; /* it is said who it is */
	struct address master;
};

static bool
is_slot(const redisReply *reply)
{
	return reply->type == REDIS_REPLY_INTEGER && reply->integer >= 0 && reply->integer < SLOTS;
}

/* Of a server that has no host name yet where names are to be told (cluster-preferred-endpoint-type
 * hostname), or whose port is not known, it is said so; then nobody is known to have these slots.
 */
static bool
is_unknown(const redisReply *host, const redisReply *port)
{
	return port->integer == 0 ||
		(host->type == REDIS_REPLY_STRING && host->len == 1 && host->str[0] == '?');
}

/* {host, port, ...} */
static int
read_server(
	const redisReply *reply, const struct address *from, bool *is_known, struct address *server)
{
	if (reply->type != REDIS_REPLY_ARRAY || reply->elements < 2)
		return -1;
	const redisReply *host = reply->element[0], *port = reply->element[1];

	if ((host->type != REDIS_REPLY_STRING && host->type != REDIS_REPLY_NIL) ||
		port->type != REDIS_REPLY_INTEGER)
		return -1;
	*is_known = !is_unknown(host, port);
	if (!*is_known)
		return 0;
	return make_address(host->type == REDIS_REPLY_NIL
			? SLICE("")
			: slice_make(host->str, (size_t)host->len),
		port->integer, from, server);
}

/* {first, last, master, replicas...} */
static int
read_range(const redisReply *reply, const struct address *from, struct range *range)
{
	if (reply->type != REDIS_REPLY_ARRAY || reply->elements < 3)
		return -1;
	const redisReply *first = reply->element[0], *last = reply->element[1];

	if (!is_slot(first) || !is_slot(last) || first->integer > last->integer)
		return -1;
	range->first = (unsigned)first->integer;
	range->last = (unsigned)last->integer;
	return read_server(reply->element[2], from, &range->has_master, &range->master);
}

int
slots_read(const redisReply *reply, const struct address *from, slots_fn *each, void *context,
	struct err *err)
{
	struct range range;
	size_t slots = 0;

	if (reply->type == REDIS_REPLY_ERROR)
		return err_set(err, "%.*s", (int)(reply->len < 300 ? reply->len : 300), reply->str);
	if (reply->type != REDIS_REPLY_ARRAY || reply->elements > SLOTS)
		return err_set(err, "its answer to CLUSTER SLOTS has the wrong shape");
	for (size_t i = 0; i < (size_t)reply->elements; i++) {
		if (read_range(reply->element[i], from, &range) != 0)
			return err_set(err, "its answer to CLUSTER SLOTS has the wrong shape");
		slots += range.last - range.first + 1;
	}
	if (slots > SLOTS)
		return err_set(err, "its answer to CLUSTER SLOTS names slots more than once");
	for (size_t i = 0; i < (size_t)reply->elements; i++) {
		if (read_range(reply->element[i], from, &range) == 0 && range.has_master)
			each(context, range.first, range.last, &range.master);
	}
	return 0;
}

void
slots_read_replicas(
	const redisReply *reply, const struct address *from, replica_fn *each, void *context)
{
	struct address replica;
	bool is_known;

	for (size_t i = 0; i < (size_t)reply->elements; i++) {
		const redisReply *range = reply->element[i];

		for (size_t j = 3; j < (size_t)range->elements; j++) {
			if (read_server(range->element[j], from, &is_known, &replica) == 0 &&
				is_known)
				each(context, &replica);
		}
	}
}

/* ---- errors ---- */

/* "SLOT HOST:PORT". An IPv6 address has no brackets here. */
static int
read_target(struct slice text, const struct address *from, struct redirect *redirect)
{
	const size_t blank = slice_find(text, ' ');
	const struct slice to = slice_skip(text, blank < text.len ? blank + 1 : blank);
	size_t colon = to.len;
	uint64_t slot, port;

	while (colon > 0 && to.ptr[colon - 1] != ':')
		colon--;
	if (colon == 0 || parse_uint(slice_first(text, blank), SLOTS - 1, &slot) != 0 ||
		parse_uint(slice_skip(to, colon), UINT16_MAX, &port) != 0)
		return -1;
	redirect->slot = (unsigned)slot;
	return make_address(slice_first(to, colon - 1), (long long)port, from, &redirect->to);
}

struct redirect
redirect_read(const redisReply *reply, const struct address *from)
{
	static const struct {
		struct slice word;
		enum redirect_kind kind;
	} words[] = {
		{ { "MOVED ", 6 }, REDIRECT_MOVED },
		{ { "ASK ", 4 }, REDIRECT_ASK },
		{ { "TRYAGAIN", 8 }, REDIRECT_TRYAGAIN },
		{ { "CLUSTERDOWN", 11 }, REDIRECT_DOWN },
	};
	struct redirect redirect = { .kind = REDIRECT_NONE };

	if (reply->type != REDIS_REPLY_ERROR)
		return redirect;
	const struct slice text = slice_make(reply->str, (size_t)reply->len);

	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
		if (!slice_has_prefix(text, words[i].word))
			continue;
		const bool has_target =
			words[i].kind == REDIRECT_MOVED || words[i].kind == REDIRECT_ASK;

		if (!has_target ||
			read_target(slice_skip(text, words[i].word.len), from, &redirect) == 0)
			redirect.kind = words[i].kind;
	}
	return redirect;
}
