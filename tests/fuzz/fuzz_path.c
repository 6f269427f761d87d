/* Paths and addresses: a normal form is its own normal form and never longer. */
#include "weir/ip.h"
#include "weir/url_path.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool
needs_escape(const char *path, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (path[i] == '%' || path[i] == '?' || path[i] == '#')
			return true;
	}
	return false;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *once = malloc(size + 1), *twice = malloc(size + 2);
	size_t once_len, twice_len;
	struct ip ip, again;
	char text[IP_TEXT_SIZE];
	struct err err;

	if (once == NULL || twice == NULL)
		abort();
	if (url_path_normal(slice_make(data, size), once, &once_len, &err) == 0) {
		assert(once_len <= size + 1);
		/* What was decoded could be decoded again; only the rest must stay as it is. */
		if (!needs_escape(once, once_len)) {
			assert(url_path_normal(
				       slice_make(once, once_len), twice, &twice_len, &err) == 0);
			assert(twice_len == once_len && memcmp(once, twice, once_len) == 0);
		}
	}
	if (ip_parse(slice_make(data, size), &ip) == 0)
		assert(ip_parse(slice_of(ip_text(ip, text)), &again) == 0 && ip_is(ip, again));
	free(once);
	free(twice);
	return 0;
}
