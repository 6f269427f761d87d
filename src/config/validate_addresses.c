/*
 * Addresses: whom what weir opens lets in, and whether two of them are one place, however they are
 * written. What only the file system can tell, such as a symbolic link, is not asked here.
 */
#include "sections.h"
#include "validate.h"

static bool
is_loopback_ip(const struct ip *ip)
{
	static const uint8_t loopback_6[16] = { [15] = 1 };

	return ip->family == 4 ? ip->bytes[0] == 127
			       : memcmp(ip->bytes, loopback_6, sizeof loopback_6) == 0;
}

static bool
is_loopback(const struct address *address)
{
	struct ip ip;

	if (address->kind == ADDRESS_UNIX || strcmp(address->host, "localhost") == 0)
		return true;
	return ip_parse(slice_of(address->host), &ip) == 0 && is_loopback_ip(&ip);
}

static bool
is_same(const struct address *a, const struct address *b)
{
	struct ip ip_a, ip_b;

	if (a->kind == ADDRESS_UNIX || b->kind == ADDRESS_UNIX || a->port != b->port)
		return address_is(a, b);
	if (ip_parse(slice_of(a->host), &ip_a) == 0 && ip_parse(slice_of(b->host), &ip_b) == 0)
		return ip_is(ip_a, ip_b);
	return slice_is_nocase(slice_of(a->host), slice_of(b->host));
}

/* Where one who connects to localhost may come out. */
static bool
is_localhost(const char *host)
{
	static const char *const names[] = { "localhost", "127.0.0.1", "::1" };

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		if (strcmp(host, names[i]) == 0)
			return true;
	}
	return false;
}

/* Whether one who connects to `to` may come out at `at`. */
static bool
leads_to(const struct address *to, const struct address *at)
{
	if (is_same(to, at))
		return true;
	return to->kind != ADDRESS_UNIX && at->kind != ADDRESS_UNIX && to->port == at->port &&
		(strcmp(to->host, "localhost") == 0 || strcmp(at->host, "localhost") == 0) &&
		is_localhost(to->host) && is_localhost(at->host);
}

/* The nth address that was taken of a key that may be repeated, in the section or its defaults. */
static const struct place *
place_of(const struct build *build, const struct section *section, const char *key, unsigned nth)
{
	const struct section *source =
		section_own_setting(section, key) != NULL ? section : build->unnamed[section->rule];
	const struct setting *setting = source == NULL ? NULL : source->settings;

	for (; setting != NULL; setting = setting->next) {
		if (setting->option == NULL || strcmp(setting->key, key) != 0 ||
			setting->value[0] == '\0')
			continue;
		if (nth-- == 0)
			return &setting->place;
	}
	return NULL;
}

/* ---- what weir opens ---- */

#define DANGER "runs code as the application's user (SCRIPT_FILENAME, PHP_ADMIN_VALUE)"

/* It runs nothing: the web servers only ask. */
static bool
has_no_application(const struct config *config)
{
	for (unsigned i = 0; i < config->backend_count; i++) {
		if (config->backends[i]->type != BACKEND_NONE)
			return false;
	}
	return config->backend_count > 0;
}

static void
check_listen(const struct build *build, const struct section *section,
	const struct config_listen *listen)
{
	if (listen->address.kind == ADDRESS_UNIX && (listen->mode & 02) != 0)
		complain(build, SEVERITY_WARNING, section, "listen", &listen->place,
			"mode %04o: who reaches this socket " DANGER
			", and every user of this host does; write mode 0660 and the web server's "
			"group",
			(unsigned)listen->mode);
	else if (listen->address.kind == ADDRESS_UNIX)
		return;
	else if (is_loopback(&listen->address) && has_no_application(build->config))
		return;
	else if (is_loopback(&listen->address))
		complain(build, SEVERITY_WARNING, section, "listen", &listen->place,
			"who reaches this port " DANGER
			", and every user of this host does; prefer unix:" WEIR_RUNDIR
			"/weir.sock");
	else
		complain(build, SEVERITY_ERROR, section, "listen", &listen->place,
			"who reaches this port " DANGER "; listen on unix:" WEIR_RUNDIR
			"/weir.sock or on a loopback address");
}

/* One that is listened on before; NULL: none is the same. */
static const struct config_listen *
find_same(const struct config *config, const struct config_listen *listen)
{
	const struct config_backend *backend;
	const struct config_listen *other;

	for (unsigned i = 0; (other = config_listen_at(config, i, &backend)) != listen; i++) {
		if (is_same(&other->address, &listen->address))
			return other;
	}
	return NULL;
}

static void
check_listens(const struct build *build, const struct section *section,
	const struct config_listen *listens, unsigned count)
{
	char place[PLACE_TEXT_SIZE];

	for (unsigned i = 0; i < count; i++) {
		const struct config_listen *same = find_same(build->config, &listens[i]);

		check_listen(build, section, &listens[i]);
		if (same != NULL)
			complain(build, SEVERITY_ERROR, section, "listen", &listens[i].place,
				"is listened on twice; the first is at %s",
				complain_place(same->place, place));
	}
}

/* Whether weir itself listens there for requests. */
static bool
is_own(const struct config *config, const struct address *address)
{
	const struct config_backend *backend;
	const struct config_listen *listen;

	for (unsigned i = 0; (listen = config_listen_at(config, i, &backend)) != NULL; i++) {
		if (leads_to(address, &listen->address))
			return true;
	}
	return false;
}

static bool
is_metrics(const struct config *config, const struct address *address)
{
	return config->has_metrics && leads_to(address, &config->metrics);
}

static void
check_metrics(const struct build *build)
{
	const struct config *config = build->config;
	const struct section *section = build->unnamed[SECTION_WEIR];

	if (!config->has_metrics)
		return;
	if (!is_loopback(&config->metrics))
		complain(build, SEVERITY_WARNING, section, "metrics", NULL,
			"others than this host can read the counters; listen on tcp:127.0.0.1:PORT "
			"or a unix: socket unless a firewall decides who");
	if (is_own(config, &config->metrics))
		complain(build, SEVERITY_ERROR, section, "metrics", NULL,
			"listen has the same address; give each its own");
}

/* ---- where weir connects ---- */

static bool
has_redis_server(const struct config *config)
{
	return config->has_redis && config->redis_sentinel_count == 0 &&
		config->redis_cluster_count == 0;
}

static bool
is_redis(const struct config *config, const struct address *address)
{
	for (unsigned i = 0; i < config->redis_sentinel_count; i++) {
		if (leads_to(address, &config->redis_sentinels[i]))
			return true;
	}
	for (unsigned i = 0; i < config->redis_cluster_count; i++) {
		if (leads_to(address, &config->redis_cluster[i]))
			return true;
	}
	return has_redis_server(config) && leads_to(address, &config->redis_server);
}

static void
check_servers(const struct build *build, const struct section *section)
{
	const struct config_backend *backend = section->object;
	const struct config *config = build->config;

	for (unsigned i = 0; i < backend->server_count; i++) {
		const struct address *server = &backend->servers[i];
		const struct place *place = place_of(build, section, "server", i);

		if (is_own(config, server))
			complain(build, SEVERITY_ERROR, section, "server", place,
				"is where weir itself listens, so requests would go round");
		if (is_metrics(config, server))
			complain(build, SEVERITY_ERROR, section, "server", place,
				"is where weir itself serves its metrics");
		if (is_redis(config, server))
			complain(build, SEVERITY_ERROR, section, "server", place,
				"is where Redis is, which speaks no FastCGI");
		for (unsigned j = 0; j < i; j++) {
			if (!is_same(server, &backend->servers[j]))
				continue;
			complain(build, SEVERITY_WARNING, section, "server", place,
				"is given twice, so it is set aside as two and gets two parts of "
				"the requests; leave one out");
			break;
		}
	}
}

static void
check_redis_at(const struct build *build, const char *key, const struct address *address)
{
	if (is_own(build->config, address) || is_metrics(build->config, address))
		complain(build, SEVERITY_ERROR, build->unnamed[SECTION_REDIS], key, NULL,
			"is where weir itself listens");
}

static void
check_redis(const struct build *build)
{
	const struct config *config = build->config;

	if (has_redis_server(config))
		check_redis_at(build, "server", &config->redis_server);
	for (unsigned i = 0; i < config->redis_sentinel_count; i++)
		check_redis_at(build, "sentinel", &config->redis_sentinels[i]);
	for (unsigned i = 0; i < config->redis_cluster_count; i++)
		check_redis_at(build, "cluster", &config->redis_cluster[i]);
}

void
validate_addresses(const struct build *build)
{
	const struct config *config = build->config;

	check_listens(build, build->unnamed[SECTION_WEIR], config->listens, config->listen_count);
	check_metrics(build);
	check_redis(build);
	for (const struct section *s = section_first(build, SECTION_BACKEND); s != NULL;
		s = section_next(s)) {
		const struct config_backend *backend = s->object;

		check_listens(build, s, backend->listens, backend->listen_count);
		check_servers(build, s);
	}
}
