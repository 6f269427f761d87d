/* The good server is a Valkey whose clock has just begun. */
#include "said.h"

#include <poll.h>

const struct said *said_list;
int said_delay_ms;

static const struct said good[] = {
	{ "HELLO",
		"*10\r\n$6\r\nserver\r\n$6\r\nvalkey\r\n$7\r\nversion\r\n$5\r\n8.1.1\r\n"
		"$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n"
		"$7\r\nmodules\r\n*0\r\n" },
	{ "INFO", "$56\r\n# Memory\r\nused_memory:7\r\nmaxmemory:0\r\nmaxmemory_policy:x\r\n" },
	{ "TIME", "*2\r\n$1\r\n1\r\n$1\r\n0\r\n" },
	{ "ROLE", "*1\r\n$6\r\nmaster\r\n" },
	{ "EVAL", "*2\r\n:1\r\n:5\r\n" },
	{ "EVALSHA", "*2\r\n:1\r\n:5\r\n" },
	{ NULL, "+OK\r\n" },
};

static const struct said *
find(const struct said *list, const redisReply *command)
{
	while (list->command != NULL && !fake_is(command, list->command))
		list++;
	return list;
}

void
answers_as_said(struct fake_peer *peer)
{
	redisReply *command;

	while ((command = fake_read(peer)) != NULL) {
		const struct said *found = find(said_list, command);
		const char *answer =
			found->answer != NULL ? found->answer : find(good, command)->answer;

		freeReplyObject(command);
		(void)poll(NULL, 0, said_delay_ms);
		if (!fake_send(peer, slice_of(answer)))
			return;
	}
}
