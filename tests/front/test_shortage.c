/*
 * Memory and descriptors that run out, which is never told as the peer's fault: the answer is 503,
 * or none where there is not even the memory for that.
 */
#include "ask.h"

#include "weir/counter.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* In the place of the system's (the linker's --wrap), on the loop's thread only. */
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
int __real_memfd_create(const char *name, unsigned flags);
int __wrap_memfd_create(const char *name, unsigned flags);

struct shortage {
	size_t size; /* pieces of so much, or more, are not to be had; 0: all are */
	unsigned number; /* nor is the piece of this number, counted from 1; 0: all are */
	bool files;
	unsigned seen; /* pieces asked for */
};

static _Thread_local struct shortage shortage;

void *
__wrap_malloc(size_t size)
{
	shortage.seen++;
	if ((shortage.size == 0 || size < shortage.size) &&
		(shortage.number == 0 || shortage.seen != shortage.number))
		return __real_malloc(size);
	errno = ENOMEM;
	return NULL;
}

int
__wrap_memfd_create(const char *name, unsigned flags)
{
	if (!shortage.files)
		return __real_memfd_create(name, flags);
	errno = EMFILE;
	return -1;
}

static void
set(void *context)
{
	shortage = *(const struct shortage *)context;
}

static void
get(void *context)
{
	*(struct shortage *)context = shortage;
}

static void
run_short(struct shortage of)
{
	loop_thread_call(&rig.thread, set, &of);
}

static int64_t
blamed(void)
{
	static const char *const reasons[] = { "not_fastcgi", "order", "length", "bad_params",
		"head_too_large", "short_body" };
	int64_t sum = 0;

	for (size_t i = 0; i < LENGTH_OF(reasons); i++)
		sum += rig_faults(reasons[i]);
	return sum;
}

/* Nobody is blamed, and the next one is served again. */
static void
assert_503(const struct shortage *of, const char *large)
{
	const int64_t faults = blamed(), shortages = counter_sum(COUNT_SHORTAGES);
	struct answer answer;

	const int fd = rig_connect(&rig);

	assert_soon(rig_connections() == 1);
	run_short(*of);
	answer_to(&answer, fd,
		&(const struct request_spec){
			.params = (const char *const[]){ "MODE", "body", "LARGE", large, NULL } });
	run_short((struct shortage){ .size = 0 });
	assert_true(answer_is_whole(&answer));
	assert_int_equal(answer_status(&answer), 503);
	assert_non_null(answer_field(&answer, "Retry-After").ptr);
	answer_release(&answer);
	(void)close(fd);
	assert_int_equal(blamed(), faults);
	assert_int_equal(counter_sum(COUNT_SHORTAGES), shortages + 1);
	assert_rig_serves(&rig);
	assert_soon(rig_connections() == 0);
}

static void
head_without_a_memory_file_is_503(void **state)
{
	(void)state;
	assert_503(&(const struct shortage){ .files = true }, "");
}

static void
head_that_no_buffer_can_be_had_for_is_503(void **state)
{
	static char large[50001];

	(void)state;
	memset(large, 'x', sizeof large - 1);
	assert_503(&(const struct shortage){ .size = 50000 }, large);
}

/* It would end the process. */
static void
libfcgi_is_not_called_without_the_memory_that_it_needs(void **state)
{
	(void)state;
	assert_503(&(const struct shortage){ .size = 65536 }, "");
}

/* Whatever allocation it is: served, 503, or closed. */
static void
any_allocation_may_fail(void **state)
{
	static char large[60001];
	unsigned served = 0, refused = 0, closed = 0;
	const int64_t faults = blamed();
	struct shortage after;

	(void)state;
	memset(large, 'x', sizeof large - 1);
	for (unsigned number = 1;; number++) {
		const int64_t shortages = counter_sum(COUNT_SHORTAGES);
		const int fd = rig_connect(&rig);
		struct answer answer;
		struct buf bytes;

		assert_soon(rig_connections() == 1);
		run_short((struct shortage){ .number = number });
		bytes_init(&bytes);
		put_record(&bytes, FCGI_GET_VALUES, 0, SLICE("\16\0FCGI_MAX_CONNS"), 0);
		put_request(&bytes,
			&(const struct request_spec){
				.params = (const char *const[]){ "LARGE", large, "MODE", "wait",
					"CONTENT_LENGTH", "60000", NULL },
				.body = slice_make(large, 60000) });
		(void)socket_send(fd, buf_slice(&bytes));
		buf_release(&bytes);
		assert_soon(rig_look(&rig).open == 1 || counter_sum(COUNT_SHORTAGES) > shortages);
		rig_want_body(&rig);
		answer_read(&answer, fd, 1);
		loop_thread_call(&rig.thread, get, &after);
		run_short((struct shortage){ .size = 0 });
		if (answer.got != GOT_RECORD)
			closed++;
		else if (answer_status(&answer) == 503)
			refused++;
		else if (answer_status(&answer) == 200)
			served++;
		else
			fail();
		assert_int_equal(counter_sum(COUNT_SHORTAGES) - shortages,
			answer.got != GOT_RECORD || answer_status(&answer) == 503 ? 1 : 0);
		answer_release(&answer);
		(void)close(fd);
		assert_rig_serves(&rig);
		assert_soon(rig_connections() == 0);
		if (after.seen < number)
			break;
	}
	assert_int_equal(blamed(), faults);
	assert_int_equal(rig_look(&rig).open, 0);
	assert_true(served > 0 && refused > 0 && closed > 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(head_without_a_memory_file_is_503),
		TEST(head_that_no_buffer_can_be_had_for_is_503),
		TEST(libfcgi_is_not_called_without_the_memory_that_it_needs),
		TEST(any_allocation_may_fail),
	};
	struct err err;

	return front_start(&err) != 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
