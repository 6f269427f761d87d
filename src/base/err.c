/* Error sentences of bounded length. */
#include "weir/err.h"

#include <stdarg.h>
#include <stdio.h>

int
err_set(struct err *err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(err->text, sizeof err->text, format, args);
	va_end(args);
	return -1;
}

int
err_prefix(struct err *err, const char *format, ...)
{
	struct err old = *err;
	va_list args;

	va_start(args, format);
	int n = vsnprintf(err->text, sizeof err->text, format, args);
	va_end(args);
	/* What does not fit is cut; the result is asked for only so that compilers see that we
	 * know. */
	if (n >= 0 && (size_t)n < sizeof err->text &&
		snprintf(err->text + n, sizeof err->text - (size_t)n, ": %s", old.text) < 0)
		err->text[n] = '\0';
	return -1;
}
