/* Whose word about an address is believed, and which addresses are not counted: where both meet, a
 * proxy that forgets a header lets everybody through. */
#include "nets.h"
#include "sections.h"
#include "validate.h"

/* A proxy is one host, or a few in one rack. */
enum { PROXIES_4_MIN = 24, PROXIES_6_MIN = 48 };

/* RFC 1918 and RFC 4193, of which the half fd00::/8 is in use. */
static const struct ip_net private_nets[] = {
	{ { 4, { 10 } }, 8 },
	{ { 4, { 172, 16 } }, 12 },
	{ { 4, { 192, 168 } }, 16 },
	{ { 6, { 0xfd } }, 8 },
};

static void
check_proxies(const struct build *build)
{
	const struct config *config = build->config;
	char text[NET_TEXT_SIZE];

	for (unsigned i = 0; i < config->trusted_proxy_count; i++) {
		const struct ip_net *net = &config->trusted_proxies[i];

		if (net->bits < (net->ip.family == 4 ? PROXIES_4_MIN : PROXIES_6_MIN))
			complain(build, SEVERITY_WARNING, build->unnamed[SECTION_WEIR],
				"trusted_proxies", NULL,
				"%s is wide: each host in it can claim to be any client; name the "
				"proxies one by one",
				net_text(net, text));
	}
}

static void
check_private(const struct build *build, const struct section *section, const char *key,
	const struct ip_net *nets, size_t net_count)
{
	const size_t count = sizeof private_nets / sizeof private_nets[0];
	char text[NET_TEXT_SIZE], held[NET_TEXT_SIZE];

	for (size_t i = 0; i < net_count; i++) {
		size_t which = 0;

		while (which < count && !net_holds(&nets[i], &private_nets[which]))
			which++;
		if (which < count)
			complain(build, SEVERITY_WARNING, section, key, NULL,
				"%s holds all of the private network %s: whoever is in it, or is "
				"seen by the address of a proxy in it, is not counted; name "
				"single addresses",
				net_text(&nets[i], text), net_text(&private_nets[which], held));
	}
}

static void
check_overlap(const struct build *build, const struct section *section, const char *key,
	const struct ip_net *nets, size_t count)
{
	const struct config *config = build->config;
	char text[NET_TEXT_SIZE];
	struct ip_net found;

	if (nets_overlap(config->trusted_proxies, config->trusted_proxy_count, nets, count, &found))
		complain(build, SEVERITY_WARNING, section, key, NULL,
			"%s is trusted as a proxy too: should it forget X-Forwarded-For, all its "
			"clients have its address and none of them is counted",
			net_text(&found, text));
}

static void
check_exempt(const struct build *build, const struct section *section, const char *key,
	const struct ip_net *nets, size_t count)
{
	check_private(build, section, key, nets, count);
	check_overlap(build, section, key, nets, count);
}

void
validate_exempt(const struct build *build)
{
	check_proxies(build);
	for (const struct section *section = section_first(build, SECTION_ROUTE); section != NULL;
		section = section_next(section)) {
		const struct config_route *route = section->object;

		check_exempt(
			build, section, "exempt_ip", route->exempt_nets, route->exempt_net_count);
	}
	for (const struct section *section = section_first(build, SECTION_OVERRIDE);
		section != NULL; section = section_next(section)) {
		const struct config_override *override = section->object;

		for (unsigned i = 0; override->exempt && i < override->for_count; i++)
			check_exempt(build, section, "for", override->fors[i].nets,
				override->fors[i].net_count);
	}
}
