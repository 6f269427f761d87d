/* What a backend of programs has: their directory, and variables of their environment. */
#include "values.h"

#include <string.h>

int
value_root(const struct value *value, void *field, struct err *err)
{
	struct value path = *value;

	while (path.text.len > 1 && path.text.ptr[path.text.len - 1] == '/')
		path.text.len--;
	if (value_path(&path, field, err) != 0)
		return -1;
	/* What a request asks for is held against it as it stands. */
	struct slice rest = slice_skip(path.text, 1), segment;

	while (path.text.len > 1 && slice_split(&rest, '/', &segment)) {
		if (segment.len == 0 || slice_is(segment, SLICE(".")) ||
			slice_is(segment, SLICE("..")))
			return err_set(err,
				"\"%.*s\" has //, . or .. in it; write the plain path of that "
				"directory",
				SHOWN(path.text));
	}
	if (path.text.len == 1)
		return err_set(err,
			"/ holds every program there is; write the directory of those "
			"that are meant, such as /usr/lib/cgi-bin");
	return 0;
}

int
value_env(const struct value *value, void *field, struct err *err)
{
	const size_t equals = slice_find(value->text, '=');
	const struct slice name = slice_first(value->text, equals);
	bool is_name = name.len > 0 && equals < value->text.len;

	for (size_t i = 0; i < name.len; i++) {
		const char c = name.ptr[i];

		is_name = is_name &&
			((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' ||
				(i > 0 && c >= '0' && c <= '9'));
	}
	if (!is_name)
		return err_set(err,
			"\"%.*s\" is no variable; write NAME=VALUE, such as "
			"GIT_PROJECT_ROOT=/srv/git",
			SHOWN(value->text));
	char *line = value_alloc(value, value->text.len + 1, err);

	if (line == NULL)
		return -1;
	memcpy(line, value->text.ptr, value->text.len);
	line[value->text.len] = '\0';
	*(const char **)field = line;
	return 0;
}
