/*
 * What is true of all requests, in words: where they are counted, and what else decides who is who.
 * The default of a path or an address shows here and nowhere else.
 */
#include "check.h"
#include "process.h"

#include <stdio.h>

/* What is beyond is counted. */
enum { SHOWN_ITEMS = 6 };

static void
print_addresses(const struct address *list, unsigned count)
{
	char text[ADDRESS_TEXT_SIZE];

	for (unsigned i = 0; i < count && i < SHOWN_ITEMS; i++)
		(void)printf("%s%s", i == 0 ? "" : ", ", address_text(&list[i], text));
	if (count > SHOWN_ITEMS)
		(void)printf(" and %u more", count - SHOWN_ITEMS);
}

static void
print_redis(const struct config *config)
{
	if (config->redis_sentinel_count > 0) {
		(void)printf("the Redis that sentinels know as %s (", config->redis_master);
		print_addresses(config->redis_sentinels, config->redis_sentinel_count);
		(void)fputs(")", stdout);
	} else if (config->redis_cluster_count > 0) {
		(void)fputs("the Redis Cluster of ", stdout);
		print_addresses(config->redis_cluster, config->redis_cluster_count);
	} else {
		(void)fputs("Redis ", stdout);
		print_addresses(&config->redis_server, 1);
	}
}

static void
print_counters(const struct config *config)
{
	char room[STATE_PATH_SIZE], deadline[DURATION_TEXT_SIZE];
	const char *state = process_state_path(config, room);

	(void)fputs("counters: ", stdout);
	if (!config->has_redis) {
		(void)printf("memory of this host, in %s\n", state);
		return;
	}
	print_redis(config);
	(void)printf(", keys %s*, %s for a decision; while it is away memory of this host, in %s\n",
		config->redis_prefix, duration_text(config->redis_deadline_us, deadline), state);
}

static void
print_clients(const struct config *config)
{
	char text[IP_TEXT_SIZE];

	if (config->trusted_proxy_count == 0) {
		(void)printf("clients: the address that the web server tells\n");
		return;
	}
	(void)fputs("clients: the address that the web server tells, or X-Forwarded-For if that is "
		    "the address of a proxy in ",
		stdout);
	for (unsigned i = 0; i < config->trusted_proxy_count && i < SHOWN_ITEMS; i++) {
		const struct ip_net *net = &config->trusted_proxies[i];

		(void)printf("%s%s", i == 0 ? "" : ", ", ip_text(net->ip, text));
		if (net->bits < (net->ip.family == 4 ? 32 : 128))
			(void)printf("/%u", net->bits);
	}
	if (config->trusted_proxy_count > SHOWN_ITEMS)
		(void)printf(" and %u more", config->trusted_proxy_count - SHOWN_ITEMS);
	(void)fputc('\n', stdout);
}

void
check_words(const struct config *config)
{
	char text[ADDRESS_TEXT_SIZE];

	if (config->enforce)
		(void)printf("enforce = yes: what a limit rejects is answered 429\n");
	else
		(void)printf("enforce = no: every limit decides, counts and logs, and lets pass\n");
	print_counters(config);
	print_clients(config);
	(void)printf("hashes of identities: %s%s\n",
		config->hash_key_file == NULL ? "without a secret" : "with the secret of ",
		config->hash_key_file == NULL ? "" : config->hash_key_file);
	(void)printf("time zone of calendars: %s\n", config->timezone);
	(void)printf("metrics: %s\n",
		config->has_metrics ? address_text(&config->metrics, text) : "none");
}

void
check_words_unseen(const struct config *config)
{
	unsigned count = 0;
	char text[ADDRESS_TEXT_SIZE];

	if (config->has_redis) {
		(void)fputs("not connected to: ", stdout);
		print_redis(config);
		count++;
	}
	for (unsigned i = 0; i < config->backend_count; i++) {
		const struct config_backend *backend = config->backends[i];

		for (unsigned j = 0; j < backend->server_count; j++, count++) {
			if (count >= SHOWN_ITEMS)
				continue;
			(void)printf("%sbackend %s %s", count == 0 ? "not connected to: " : ", ",
				backend->name, address_text(&backend->servers[j], text));
		}
	}
	if (count > SHOWN_ITEMS)
		(void)printf(" and %u more", count - SHOWN_ITEMS);
	if (count > 0)
		(void)printf("; weir check --connect does\n");
}
