/* hiredis's reader with bounds: it makes room for as many elements as a reply says that it will
 * have, and since hiredis 1 for any depth, which it then goes through by recursion. */
#include "redis_private.h"

enum { DEPTH_MAX = 7 };

static bool
is_too_deep(const redisReadTask *task)
{
	unsigned depth = 1;

	while ((task = task->parent) != NULL)
		depth++;
	return depth > DEPTH_MAX;
}

#if HIREDIS_MAJOR >= 1
static void *
make_array(const redisReadTask *task, size_t count)
#else
static void *
make_array(const redisReadTask *task, int count)
#endif
{
	struct reader_bound *bound = task->privdata;
	const size_t elements = (size_t)count;

	if (elements > bound->elements_max || is_too_deep(task))
		return NULL;
	if (bound->sum_max > 0) {
		if (elements > bound->sum_max - bound->sum)
			return NULL;
		bound->sum += elements;
	}
	return bound->make_any_array(task, count);
}

redisReader *
reader_new(struct reader_bound *bound, size_t elements_max)
{
	redisReader *reader = redisReaderCreate();

	if (reader == NULL)
		return NULL;
	bound->elements_max = elements_max;
	bound->sum = 0;
	bound->functions = *reader->fn;
	bound->make_any_array = reader->fn->createArray;
	bound->functions.createArray = make_array;
	reader->fn = &bound->functions;
	reader->privdata = bound;
	return reader;
}
