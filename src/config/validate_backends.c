/* Backends: where admitted requests go, if anywhere. */
#include "sections.h"
#include "validate.h"

static void
check_servers(const struct build *build, const struct section *section,
	const struct config_backend *backend)
{
	const struct config *config = build->config;

	if (backend->type == BACKEND_NONE && backend->server_count > 0)
		complain(build, SEVERITY_ERROR, section, "server", NULL,
			"a backend of type none has no server: the web server serves the request");
	if (backend->type != BACKEND_NONE && backend->server_count == 0 &&
		!section_is_doubtful(build, section))
		complain(build, SEVERITY_ERROR, section, "server", NULL,
			"is missing: where do admitted requests go? Write server = "
			"unix:/run/php/php-fpm.sock or tcp:HOST:PORT");
	for (unsigned i = 0; i < backend->server_count; i++) {
		for (unsigned j = 0; j < config->listen_count; j++) {
			if (address_is(&backend->servers[i], &config->listens[j].address))
				complain(build, SEVERITY_ERROR, section, "server", NULL,
					"is where weir itself listens, so requests would go round");
		}
	}
}

void
validate_backends(const struct build *build)
{
	const struct config *config = build->config;

	for (const struct section *s = section_first(build, SECTION_BACKEND); s != NULL;
		s = section_next(s)) {
		bool is_used = section_kind_is_doubtful(build, SECTION_ROUTE);

		check_servers(build, s, s->object);
		for (unsigned i = 0; i < config->route_count; i++)
			is_used = is_used || config->routes[i]->backend == s->object;
		if (!is_used)
			complain(
				build, SEVERITY_WARNING, s, "", NULL, "no route uses this backend");
	}
	if (config->backend_count == 0 && !section_kind_is_doubtful(build, SECTION_BACKEND))
		complain_whole(build,
			"there is no backend, where admitted requests go; add:\n"
			"[backend php]\n"
			"server = unix:/run/php/php-fpm.sock");
}
