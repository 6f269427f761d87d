/* [weir] and [redis]: who can read their secrets. */
#include "files.h"
#include "sections.h"
#include "validate.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HASH_KEY_MIN = 16 };

static void
check_secret(const struct build *build, enum section_kind kind, const char *key, off_t min)
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
	} else if (status.st_size < min) {
		complain_setting(build, setting,
			"%s has %lld bytes; a secret has at least %lld: head -c 32 /dev/urandom | "
			"base64 > %s",
			setting->value, (long long)status.st_size, (long long)min, setting->value);
	} else if (config_file_check_secret(setting->value, &status, &err) != 0) {
		complain(build, SEVERITY_WARNING, section, key, NULL, "%s", err.text);
	}
	if (fd >= 0)
		(void)close(fd);
}

void
validate_process(const struct build *build)
{
	check_secret(build, SECTION_WEIR, "hash_key_file", HASH_KEY_MIN);
	check_secret(build, SECTION_REDIS, "password_file", 1);
	check_secret(build, SECTION_REDIS, "sentinel_password_file", 1);
	check_secret(build, SECTION_REDIS, "tls_key", 1);
}
