/*
 * A slice is a view of bytes that somebody else owns: a pointer and a length, no terminator. What a
 * peer sent is handled as slices into the request; a slice is valid as long as its owner is.
 */
#ifndef WEIR_SLICE_H
#define WEIR_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct slice {
	const char *ptr;
	size_t len;
};

/* For a literal, so that the length is known when compiling. */
#define SLICE(literal) ((struct slice){ "" literal, sizeof(literal) - 1 })

static inline struct slice
slice_make(const void *ptr, size_t len)
{
	return (struct slice){ ptr, len };
}

/* NULL gives the empty slice. */
static inline struct slice
slice_of(const char *text)
{
	return (struct slice){ text, text == NULL ? 0 : strlen(text) };
}

static inline bool
slice_is(struct slice a, struct slice b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static inline bool
slice_has_prefix(struct slice s, struct slice prefix)
{
	return s.len >= prefix.len && slice_is(slice_make(s.ptr, prefix.len), prefix);
}

/* The rest behind the first n bytes; n is at most s.len. */
static inline struct slice
slice_skip(struct slice s, size_t n)
{
	return (struct slice){ s.ptr == NULL ? NULL : s.ptr + n, s.len - n };
}

static inline struct slice
slice_first(struct slice s, size_t n)
{
	return (struct slice){ s.ptr, n < s.len ? n : s.len };
}

/* ASCII only, whatever the locale. */
bool slice_is_nocase(struct slice a, struct slice b);

/* Without blanks and tabs at both ends. */
struct slice slice_trim(struct slice s);

/*
 * Cuts the part before the first `separator` off *rest and stores it, trimmed, in *part. A text of
 * n separators has n + 1 parts. Returns false when nothing is left: `while (slice_split(&rest, ',',
 * &part))`. The end is told by rest->ptr == NULL, so a list that ends in a separator has an empty
 * last part.
 */
bool slice_split(struct slice *rest, char separator, struct slice *part);

/* The index of the first `c`, or s.len. */
size_t slice_find(struct slice s, char c);

#endif
