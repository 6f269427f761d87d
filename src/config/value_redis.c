/* Where Redis is: its own address, those of sentinels and the name that they know it by, or those
 * of servers of a cluster. */
#include "list.h"
#include "values.h"

enum { ADDRESSES_MAX = 16, MASTER_MAX = 128, NAME_MAX_LEN = 253 };

int
value_redis_server(const struct value *value, void *field, struct err *err)
{
	return address_read(value->text, field, err);
}

struct addresses {
	struct address *list;
	unsigned count;
	const char *who; /* is in the network */
	const char *why; /* they are of one kind */
};

static int
take_address(void *context, struct slice text, unsigned line, struct err *err)
{
	struct addresses *taken = context;
	struct address *list = taken->list, address;

	(void)line;
	if (taken->count == ADDRESSES_MAX)
		return err_set(err, "more than %d are named", ADDRESSES_MAX);
	if (address_read(text, &address, err) != 0)
		return -1;
	if (address.kind == ADDRESS_UNIX)
		return err_set(err, "\"%.*s\" is no tcp: or tls: address; %s is in the network",
			SHOWN(text), taken->who);
	if (taken->count > 0 && address.kind != list[0].kind)
		return err_set(err,
			"some of them are tcp: and some tls:; %s connected to as they are, so "
			"write all of them alike",
			taken->why);
	for (unsigned i = 0; i < taken->count; i++) {
		if (address_is(&list[i], &address))
			return err_set(err, "\"%.*s\" is named twice", SHOWN(text));
	}
	list[taken->count++] = address;
	return 0;
}

static int
parse_addresses(const struct value *value, struct address **list, unsigned *count, const char *who,
	const char *why, struct err *err)
{
	struct addresses taken = { .who = who, .why = why };

	*count = 0;
	*list = taken.list = value_alloc(value, ADDRESSES_MAX * sizeof **list, err);
	if (taken.list == NULL)
		return -1;
	const int result = list_line(value, value->text, take_address, &taken, err);

	*count = taken.count;
	return result;
}

int
value_sentinel(const struct value *value, void *field, struct err *err)
{
	struct config *config = field;

	return parse_addresses(value, &config->redis_sentinels, &config->redis_sentinel_count,
		"the master that sentinels name", "the master is", err);
}

int
value_cluster(const struct value *value, void *field, struct err *err)
{
	struct config *config = field;

	return parse_addresses(value, &config->redis_cluster, &config->redis_cluster_count,
		"a cluster", "the other servers are", err);
}

static bool
has_only(struct slice text, const char *marks)
{
	for (size_t i = 0; i < text.len; i++) {
		const char c = text.ptr[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
			(c == '\0' || strchr(marks, c) == NULL))
			return false;
	}
	return true;
}

/* Sentinel takes no other names (sentinelSetConfiguration of Redis). */
int
value_master(const struct value *value, void *field, struct err *err)
{
	if (value->text.len > MASTER_MAX || !has_only(value->text, ".-_"))
		return err_set(err,
			"\"%.*s\" is no name that a sentinel takes: letters, digits, \".\", \"-\" "
			"and \"_\"",
			SHOWN(value->text));
	*(const char **)field = value_copy(value, value->text, err);
	return *(const char **)field == NULL ? -1 : 0;
}

int
value_tls_name(const struct value *value, void *field, struct err *err)
{
	/* Names, and IPv4 and IPv6 addresses. */
	if (value->text.len > NAME_MAX_LEN || !has_only(value->text, ".-_:"))
		return err_set(err,
			"\"%.*s\" is no host name and no IP address, such as redis.example.org",
			SHOWN(value->text));
	*(const char **)field = value_copy(value, value->text, err);
	return *(const char **)field == NULL ? -1 : 0;
}
