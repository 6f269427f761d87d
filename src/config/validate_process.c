/* [weir], [memory] and [redis]: what they open to whom, and who can read their secrets. */
#include "files.h"
#include "sections.h"
#include "validate.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static bool
is_loopback(const struct address *address)
{
	static const uint8_t loopback_6[16] = { [15] = 1 };
	struct ip ip;

	if (address->kind == ADDRESS_UNIX || strcmp(address->host, "localhost") == 0)
		return true;
	if (ip_parse(slice_of(address->host), &ip) != 0)
		return false;
	return ip.family == 4 ? ip.bytes[0] == 127
			      : memcmp(ip.bytes, loopback_6, sizeof loopback_6) == 0;
}

static void
check_listen(const struct build *build, const struct config_listen *listen)
{
	static const char danger[] = "who reaches this port runs code as the application's user "
				     "(SCRIPT_FILENAME, PHP_ADMIN_VALUE)";
	const struct section *section = build->unnamed[SECTION_WEIR];

	if (listen->address.kind == ADDRESS_UNIX)
		return;
	if (is_loopback(&listen->address))
		complain(build, SEVERITY_WARNING, section, "listen", &listen->place,
			"%s, and every user of this host does; prefer unix:" WEIR_RUNDIR
			"/weir.sock",
			danger);
	else
		complain(build, SEVERITY_ERROR, section, "listen", &listen->place,
			"%s; listen on unix:" WEIR_RUNDIR "/weir.sock or on a loopback address",
			danger);
}

static void
check_listens(const struct build *build)
{
	const struct config *config = build->config;
	char place[PLACE_TEXT_SIZE];

	for (unsigned i = 0; i < config->listen_count; i++) {
		const struct config_listen *listen = &config->listens[i];

		check_listen(build, listen);
		for (unsigned j = 0; j < i; j++) {
			if (!address_is(&config->listens[j].address, &listen->address))
				continue;
			complain(build, SEVERITY_ERROR, build->unnamed[SECTION_WEIR], "listen",
				&listen->place, "is listened on twice; the first is at %s",
				complain_place(config->listens[j].place, place));
			break;
		}
	}
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
	for (unsigned i = 0; i < config->listen_count; i++) {
		if (address_is(&config->listens[i].address, &config->metrics))
			complain(build, SEVERITY_ERROR, section, "metrics", NULL,
				"listen has the same address; give each its own");
	}
}

static void
check_secret(const struct build *build, enum section_kind kind, const char *key)
{
	const struct section *section = build->unnamed[kind];
	const struct setting *setting = section == NULL ? NULL : section_own_setting(section, key);
	struct stat status;
	struct err err;

	if (setting == NULL || setting->value[0] == '\0')
		return;
	const int fd = open(setting->value, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0 || fstat(fd, &status) != 0) {
		complain_setting(build, setting, "%s cannot be read by user id %u: %s",
			setting->value, (unsigned)geteuid(), strerror(errno));
	} else if (!S_ISREG(status.st_mode) || status.st_size == 0) {
		complain_setting(build, setting, "%s holds no secret: it is %s", setting->value,
			S_ISREG(status.st_mode) ? "empty" : "no regular file");
	} else if (config_file_check_secret(setting->value, &status, &err) != 0) {
		complain(build, SEVERITY_WARNING, section, key, NULL, "%s", err.text);
	}
	if (fd >= 0)
		(void)close(fd);
}

static void
check_redis(const struct build *build)
{
	const struct config *config = build->config;

	if (!config->has_redis)
		return;
	if (config->redis_username != NULL && config->redis_password == NULL &&
		!section_is_doubtful(build, build->unnamed[SECTION_REDIS]))
		complain(build, SEVERITY_ERROR, build->unnamed[SECTION_REDIS], "username", NULL,
			"needs password_file; Redis takes a name only together with a password");
}

void
validate_process(const struct build *build)
{
	check_listens(build);
	check_metrics(build);
	check_redis(build);
	check_secret(build, SECTION_WEIR, "hash_key_file");
	check_secret(build, SECTION_REDIS, "password_file");
}
