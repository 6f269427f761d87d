/* Views of bytes that somebody else owns. Nothing here allocates or knows an encoding. */
#include "weir/slice.h"

static unsigned char
lower(unsigned char c)
{
	return c >= 'A' && c <= 'Z' ? (unsigned char)(c + 32) : c;
}

bool
slice_is_nocase(struct slice a, struct slice b)
{
	if (a.len != b.len)
		return false;
	for (size_t i = 0; i < a.len; i++) {
		if (lower((unsigned char)a.ptr[i]) != lower((unsigned char)b.ptr[i]))
			return false;
	}
	return true;
}

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t';
}

struct slice
slice_trim(struct slice s)
{
	while (s.len > 0 && is_blank(s.ptr[0]))
		s = slice_skip(s, 1);
	while (s.len > 0 && is_blank(s.ptr[s.len - 1]))
		s.len--;
	return s;
}

size_t
slice_find(struct slice s, char c)
{
	const char *at = s.len == 0 ? NULL : memchr(s.ptr, c, s.len);

	return at == NULL ? s.len : (size_t)(at - s.ptr);
}

bool
slice_split(struct slice *rest, char separator, struct slice *part)
{
	if (rest->ptr == NULL)
		return false;
	size_t at = slice_find(*rest, separator);

	*part = slice_trim(slice_first(*rest, at));
	*rest = at == rest->len ? (struct slice){ NULL, 0 } : slice_skip(*rest, at + 1);
	return true;
}
