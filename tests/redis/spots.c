/* Servers in threads of this process, so that a test may look into them. */
#include "spots.h"

#include <stdio.h>
#include <unistd.h>

static struct spot spots[SPOTS];
_Atomic bool spots_are_mute;

static void
serve_spot(void *context, struct fake_peer *peer)
{
	struct spot *spot = context;

	spot->serve(spot, peer);
}

static void *
accept_all(void *context)
{
	struct spot *spot = context;

	fake_accept_all(spot->listener, &spot->seen, serve_spot, spot);
	return NULL;
}

void
serve_as_sentinel(struct spot *spot, struct fake_peer *peer)
{
	redisReply *command;

	while ((command = fake_read(peer)) != NULL) {
		const char *answer = spot->answer;

		if (spot->is_gone) {
			freeReplyObject(command);
			return;
		}
		if (fake_is(command, "AUTH")) {
			const redisReply *password = command->element[command->elements - 1];
			const bool good = strcmp(password->str, "secret") == 0;

			spot->logins++;
			(void)fake_send(
				peer, good ? SLICE("+OK\r\n") : SLICE("-WRONGPASS invalid\r\n"));
		} else {
			spot->asked++;
			if (answer != NULL)
				(void)fake_send(peer, slice_of(answer));
		}
		freeReplyObject(command);
	}
}

void
serve_as_redis(struct spot *spot, struct fake_peer *peer)
{
	redisReply *command;

	while ((command = fake_read(peer)) != NULL) {
		char role[80];
		const char *refusal = spot->refusal;

		if (refusal != NULL && fake_is_check(command)) {
			(void)fake_send(peer, slice_of(refusal));
			if (refusal[0] == '\0') {
				freeReplyObject(command);
				break;
			}
		} else if (fake_is(command, "ROLE") && spot->answer == NULL) {
			/* Not what comes behind it, either. */
			spot->asked++;
			fake_read_on(peer);
		} else if (fake_is(command, "ROLE")) {
			(void)snprintf(role, sizeof role, "*3\r\n$%zu\r\n%s\r\n:0\r\n*0\r\n",
				strlen(spot->answer), spot->answer);
			(void)fake_send(peer, slice_of(role));
		} else if (!spots_are_mute || spot != &spots[0]) {
			(void)fake_answer(peer, command);
		}
		freeReplyObject(command);
	}
}

struct spot *
spot_open(unsigned at, void (*serve)(struct spot *spot, struct fake_peer *peer), const char *answer)
{
	struct spot *spot = &spots[at];

	memset(spot, 0, sizeof *spot);
	spot->serve = serve;
	spot->answer = answer;
	spot->listener = tcp_listen(20, &spot->port);
	assert_int_equal(pthread_create(&spot->thread, NULL, accept_all, spot), 0);
	return spot;
}

void
spot_close(struct spot *spot)
{
	if (spot->listener == 0)
		return;
	(void)shutdown(spot->listener, SHUT_RDWR);
	(void)pthread_join(spot->thread, NULL);
	(void)close(spot->listener);
	spot->listener = 0;
}

struct address
address_of(const struct spot *spot)
{
	return (struct address){ .kind = ADDRESS_TCP, .host = "127.0.0.1", .port = spot->port };
}

const char *
named(const struct spot *spot, const char *host)
{
	static char texts[SPOTS][80];
	char *text = texts[spot - spots], port[8];

	const int len = snprintf(port, sizeof port, "%u", spot->port);

	(void)snprintf(text, sizeof texts[0], "*2\r\n$%zu\r\n%s\r\n$%d\r\n%s\r\n", strlen(host),
		host, len, port);
	return text;
}

int
spots_tear_down(void **state)
{
	(void)state;
	for (unsigned i = 0; i < SPOTS; i++)
		spot_close(&spots[i]);
	return 0;
}

struct redis_settings
settings_of(const struct address *sentinels, unsigned count, int64_t deadline_us)
{
	return (struct redis_settings){
		.sentinels = { .addresses = sentinels, .count = count, .master = "main" },
		.deadline_us = deadline_us
	};
}
