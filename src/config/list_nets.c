/* Lists of networks: of proxies, of clients that are not counted, of those that a condition names.
 */
#include "list.h"
#include "values.h"

enum { NETS_MAX = 10000 };

struct nets {
	struct ip_net *list;
	unsigned count;
};

int
list_net(struct slice item, struct ip_net *net, struct err *err)
{
	const struct slice prefix = SLICE("ip ");

	if (slice_has_prefix(item, prefix))
		return err_set(err,
			"\"%.*s\": the items of such a list are networks alone; write %.*s",
			SHOWN(item), SHOWN(slice_trim(slice_skip(item, prefix.len))));
	return ip_net_parse(item, net, err);
}

static int
take_net(void *context, struct slice item, unsigned line, struct err *err)
{
	struct nets *nets = context;

	(void)line;
	if (list_net(item, &nets->list[nets->count], err) != 0)
		return -1;
	nets->count++;
	return 0;
}

static int
take_nets(struct list *list, const struct value *value, struct nets *nets, struct err *err)
{
	size_t count = 0;
	int result = 0;

	for (unsigned i = 0; i < list->count; i++)
		count += list->pieces[i].count;
	if (count > NETS_MAX)
		return err_set(err, "the list has more than %d lines", NETS_MAX);
	nets->list = value_alloc(value, count * sizeof nets->list[0], err);
	if (nets->list == NULL)
		return -1;
	for (unsigned i = 0; i < list->count; i++) {
		const unsigned before = nets->count;

		if (list_each(value, &list->pieces[i], take_net, nets, err) != 0)
			result = -1;
		else
			list_check_file(value, &list->pieces[i], false, nets->count - before);
	}
	return list->is_broken ? -1 : result;
}

int
list_nets(const struct value *value, struct slice text, struct ip_net **nets, unsigned *count,
	struct err *err)
{
	struct nets taken = { NULL, 0 };
	struct list list;
	int result = list_open(&list, value, text, err);

	if (result == 0)
		result = take_nets(&list, value, &taken, err);
	list_close(&list);
	*nets = taken.list;
	*count = taken.count;
	return result;
}
