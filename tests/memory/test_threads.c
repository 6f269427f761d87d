/* memory.h: the threads of one process on one store. Made for ThreadSanitizer, too. */
#include "store.h"
#include "weir/hash.h"

#include <pthread.h>
#include <stdatomic.h>

enum { THREADS = 4, DECISIONS = 20000, KEYS = 50, TOKENS = 1000 };

struct together {
	struct memory *memory;
	struct made_limit made[2];
	char keys[KEYS][8];
	_Atomic uint64_t admitted[KEYS], failed;
};

struct thread {
	pthread_t id;
	struct together *together;
	uint64_t random;
};

/* Two buckets at a time, in any order: threads must not wait for each other. */
static void *
run(void *context)
{
	struct thread *thread = context;
	struct together *together = thread->together;
	struct err err;

	memory_require(counter_thread_start(&err) == 0, err.text);
	for (unsigned i = 0; i < DECISIONS; i++) {
		const size_t a = random_below(&thread->random, KEYS);
		const size_t b = (a + 1 + random_below(&thread->random, KEYS - 1)) % KEYS;
		struct memory_asked asked =
			memory_question(&together->made[a % 2], together->keys[a], 1, IN_2026_US);

		asked.check.items[1] = (struct check_item){ .limit = &together->made[b % 2].limit,
			.key = slice_of(together->keys[b]) };
		asked.check.count = 2;
		switch (memory_ask(together->memory, &asked).verdict) {
		case VERDICT_ADMITTED:
			(void)atomic_fetch_add(&together->admitted[a], 1);
			(void)atomic_fetch_add(&together->admitted[b], 1);
			break;
		case VERDICT_REJECTED:
			break;
		case VERDICT_UNAVAILABLE:
			(void)atomic_fetch_add(&together->failed, 1);
			break;
		}
	}
	return NULL;
}

static void
all_threads_together_are_admitted_exactly_the_limit(void **state)
{
	static struct together together;
	struct thread threads[THREADS];
	uint64_t admitted = 0;
	struct err err;

	(void)state;
	together.memory = memory_open_private(MEMORY_SIZE_MIN, &err);
	assert_non_null(together.memory);
	make_limit(&together.made[0], "l", "1000/1d");
	make_limit(&together.made[1], "l", "1000/1d", "5000/1d name a", "4000/1d name b");
	for (unsigned i = 0; i < KEYS; i++)
		(void)snprintf(together.keys[i], sizeof together.keys[i], "%u", i);
	for (unsigned i = 0; i < THREADS; i++) {
		threads[i] = (struct thread){ .together = &together, .random = i + 1 };
		assert_int_equal(pthread_create(&threads[i].id, NULL, run, &threads[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i].id, NULL), 0);
	for (unsigned i = 0; i < KEYS; i++) {
		const uint64_t mine = atomic_load(&together.admitted[i]);

		assert_in_range(mine, 0, TOKENS);
		assert_int_equal(memory_remaining(together.memory, &together.made[i % 2],
					 together.keys[i], IN_2026_US),
			TOKENS - mine);
		admitted += mine;
	}
	/* A thread that is kept from running inside a stripe may make others give up. */
	assert_in_range(admitted, KEYS * TOKENS * 9 / 10 * (atomic_load(&together.failed) == 0),
		KEYS * TOKENS);
	memory_close(together.memory);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_threads_together_are_admitted_exactly_the_limit),
	};
	struct err err;

	if (hash_start(&err) != 0 || counter_thread_start(&err) != 0)
		return 1;
	return cmocka_run_group_tests_name("memory/threads", tests, NULL, NULL);
}
