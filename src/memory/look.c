/* What others did to the file. */
#include "memory_private.h"

#include <sys/stat.h>

enum memory_file
memory_look(const struct memory *memory)
{
	struct stat st;

	if (memory->path == NULL)
		return MEMORY_FILE_SAME;
	if (lstat(memory->path, &st) != 0)
		return MEMORY_FILE_GONE;
	if (st.st_dev != memory->device || st.st_ino != memory->inode)
		return MEMORY_FILE_REPLACED;
	return (uint64_t)st.st_size < memory->mapped ? MEMORY_FILE_CUT : MEMORY_FILE_SAME;
}

const char *
memory_path(const struct memory *memory)
{
	return memory->path;
}

struct slice
memory_bytes(const struct memory *memory)
{
	return slice_make(memory->header, memory->mapped);
}
