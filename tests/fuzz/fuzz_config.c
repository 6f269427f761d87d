/* A configuration of any bytes is taken or refused, and never more. */
#include "weir/config.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const int fd = memfd_create("weir.ini", MFD_CLOEXEC);
	struct diagnostics diagnostics;
	char path[64];

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	(void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	diagnostics_init(&diagnostics);
	config_free(config_load(path, &diagnostics));
	diagnostics_release(&diagnostics);
	(void)close(fd);
	return 0;
}
