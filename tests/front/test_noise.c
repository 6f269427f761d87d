/* Whatever a peer sends, it ends no more than its own connection. */
#include "ask.h"

#include <unistd.h>

/* ---- whatever comes ---- */

enum { BATCH = 50 };

struct mutation {
	int fds[BATCH];
	unsigned count;
};

static void
end_batch(struct mutation *mutation)
{
	for (unsigned i = 0; i < mutation->count; i++) {
		(void)socket_read_to_end(mutation->fds[i]);
		(void)close(mutation->fds[i]);
	}
	mutation->count = 0;
}

static void
send_mutant(void *context, struct slice mutant)
{
	struct mutation *mutation = context;
	const int fd = rig_connect(&rig);

	(void)socket_send(fd, mutant);
	(void)shutdown(fd, SHUT_WR);
	mutation->fds[mutation->count++] = fd;
	if (mutation->count == BATCH)
		end_batch(mutation);
}

/* Every connection comes to an end once its peer has ended, and others are served as before. */
static void
any_mutation_of_a_request_is_survived(void **state)
{
	struct mutation mutation = { .count = 0 };
	struct buf bytes;

	(void)state;
	bytes_init(&bytes);
	put_request(&bytes,
		&(const struct request_spec){
			.params = (const char *const[]){ "MODE", "body", NULL },
			.body = SLICE("x") });
	each_mutation(buf_slice(&bytes), send_mutant, &mutation);
	end_batch(&mutation);
	assert_soon(rig_connections() == 0);
	assert_rig_serves(&rig);
	buf_release(&bytes);
}

static void
random_records_are_survived(void **state)
{
	struct mutation mutation = { .count = 0 };
	uint64_t random = 41;

	(void)state;
	for (unsigned round = 0; round < 1500; round++) {
		struct buf bytes;
		char content[300];

		bytes_init(&bytes);
		for (size_t i = random_below(&random, 12); i > 0; i--) {
			const size_t len = random_below(&random, 4) == 0
				? random_below(&random, sizeof content)
				: 0;

			for (size_t j = 0; j < len; j++)
				content[j] = (char)random_below(&random, 8);
			if (random_below(&random, 4) == 0)
				put_begin(&bytes, (uint16_t)random_below(&random, 3),
					(uint16_t)random_below(&random, 4),
					(uint8_t)random_below(&random, 2));
			else
				put_record(&bytes, (uint8_t)random_below(&random, 12),
					(uint16_t)random_below(&random, 3),
					slice_make(content, len),
					(uint8_t)random_below(&random, 9));
		}
		send_mutant(&mutation, buf_slice(&bytes));
		buf_release(&bytes);
	}
	end_batch(&mutation);
	assert_soon(rig_connections() == 0);
	assert_rig_serves(&rig);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(any_mutation_of_a_request_is_survived),
		TEST(random_records_are_survived),
	};
	struct err err;

	return front_start(&err) != 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
