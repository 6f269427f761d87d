/* Keys and certificates. What goes wrong here is no test's fault, so it ends the program. */
#include "certificates.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define NEW_KEY "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"

static int
run(const struct directory *directory, const char *const *arguments)
{
	const pid_t pid = fork();
	int status;

	if (pid == 0) {
		const int null = open("/dev/null", O_RDWR);

		(void)dup2(null, 1);
		(void)dup2(null, 2);
		if (directory == NULL || chdir(directory->path) == 0)
			(void)execvp("openssl", (char *const *)(uintptr_t)arguments);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		abort();
	return WEXITSTATUS(status);
}

static void
require(const struct directory *directory, const char *const *arguments)
{
	if (run(directory, arguments) == 0)
		return;
	(void)fprintf(stderr, "openssl %s failed\n", arguments[1]);
	abort();
}

bool
certificates_can_be_made(void)
{
	if (run(NULL, (const char *const[]){ "openssl", "version", NULL }) == 0)
		return true;
	(void)printf("openssl is not installed: skipped\n");
	return false;
}

struct names {
	char key[64], request[64], certificate[64], subject[64];
};

static struct names
names_of(const char *name)
{
	struct names names;

	(void)snprintf(names.key, sizeof names.key, "%s.key", name);
	(void)snprintf(names.request, sizeof names.request, "%s.csr", name);
	(void)snprintf(names.certificate, sizeof names.certificate, "%s.pem", name);
	(void)snprintf(names.subject, sizeof names.subject, "/CN=weir test %s", name);
	return names;
}

void
certificate_authority(const struct directory *directory, const char *name)
{
	const struct names names = names_of(name);

	require(directory,
		(const char *const[]){ "openssl", "req", "-x509", NEW_KEY, "-keyout", names.key,
			"-out", names.certificate, "-subj", names.subject, "-days", "2", NULL });
}

void
certificate_make(const struct directory *directory, const char *ca, const char *name,
	const char *names_text, int days)
{
	const struct names names = names_of(name), by = names_of(ca);
	char extension[256], count[16];

	(void)snprintf(extension, sizeof extension, "subjectAltName=%s\n", names_text);
	(void)snprintf(count, sizeof count, "%d", days);
	directory_write(directory, "extension", slice_of(extension));
	require(directory,
		(const char *const[]){ "openssl", "req", "-new", NEW_KEY, "-keyout", names.key,
			"-out", names.request, "-subj", names.subject, NULL });
	require(directory,
		(const char *const[]){ "openssl", "x509", "-req", "-in", names.request, "-CA",
			by.certificate, "-CAkey", by.key, "-set_serial", "7", "-days", count,
			"-extfile", "extension", "-out", names.certificate, NULL });
}

void
certificate_encrypt_key(const struct directory *directory, const char *name, const char *encrypted)
{
	const struct names from = names_of(name), to = names_of(encrypted);

	require(directory,
		(const char *const[]){ "openssl", "ec", "-in", from.key, "-aes128", "-passout",
			"pass:secret", "-out", to.key, NULL });
}
