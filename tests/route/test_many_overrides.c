/*
 * A hundred thousand exceptions. How long a look-up takes is compared with one among ten in the
 * same run; the numbers are printed.
 */
#include "overriding.h"
#include "weir/clock.h"

#include <malloc.h>

enum { MANY = 100000, FEW = 10 };

/* MANY or FEW values in a file, and an override for each tenth of them. */
static void
use_values(unsigned count)
{
	char name[32], sections[2048];
	size_t len = 0;

	for (unsigned i = 0; i < 10; i++) {
		char *text = NULL;
		size_t size;
		FILE *file = open_memstream(&text, &size);

		assert_non_null(file);
		for (unsigned j = i; j < count; j += 10)
			(void)fprintf(file, "key-%u\n", j);
		assert_int_equal(fclose(file), 0);
		(void)snprintf(name, sizeof name, "keys%u", i);
		write_file(name, slice_make(text, size));
		free(text);
		len += (size_t)snprintf(sections + len, sizeof sections - len,
			"[override o%u]\nlimit = l\nfor = header K @%s/keys%u\nexempt = yes\n", i,
			load_directory, i);
	}
	use("ip", sections);
}

static void
use_nets(unsigned count)
{
	char *text = NULL, sections[PATH_MAX + 128];
	size_t size;
	FILE *file = open_memstream(&text, &size);

	assert_non_null(file);
	for (unsigned i = 0; i < count; i++)
		(void)fprintf(file, "%u.%u.%u.%u/%u\n", 1 + i / 65536, i / 256 % 256, i % 256,
			i % 2 * 128, 25 + i % 2);
	assert_int_equal(fclose(file), 0);
	write_file("nets", slice_make(text, size));
	free(text);
	(void)snprintf(sections, sizeof sections,
		"[override nets]\nlimit = m\nfor = ip @%s/nets\nexempt = yes\n", load_directory);
	use("ip", sections);
}

/* Requests that one of them fits, and that none does. */
typedef void request_fn(unsigned i, char param[64]);

static void
key_there(unsigned i, char param[64])
{
	(void)snprintf(param, 64, "HTTP_K=key-%u", i);
}

static void
key_missing(unsigned i, char param[64])
{
	(void)snprintf(param, 64, "HTTP_K=kex-%u", i);
}

static void
put_address(unsigned first, unsigned i, char param[64])
{
	(void)snprintf(param, 64, "%u.%u.%u.%u", first, i / 256 % 256, i % 256, i % 2 * 128);
}

static void
address_there(unsigned i, char param[64])
{
	put_address(1 + i / 65536, i, param);
}

static void
address_missing(unsigned i, char param[64])
{
	put_address(200, i, param);
}

/* Nanoseconds. */
static int64_t
time_of_lookups(request_fn *put_request, unsigned limit, bool is_there, unsigned count)
{
	enum { LOOKUPS = 20000, TRIES = 7 };
	struct asker asker = asking((const char *const[]){ NULL });
	struct view view = *asker.view;
	char param[64];
	char *const env[] = { param, NULL };
	int64_t best = INT64_MAX;

	asker.view = &view;
	view.env = env;
	for (unsigned try = 0; try < TRIES; try++) {
		const int64_t start_us = clock_monotonic_us();

		for (unsigned i = 0; i < LOOKUPS; i++) {
			put_request(i * 7919 % count, param);
			view.has_ip = ip_parse(slice_of(param), &view.ip) == 0;
			asker.digest_count = 0;
			assert_true(
				(overrides_find(&asker, config->limits[limit]) >= 0) == is_there);
		}
		const int64_t took_us = clock_monotonic_us() - start_us;

		best = took_us < best ? took_us : best;
	}
	return best * 1000 / LOOKUPS;
}

static size_t
memory_in_use(void)
{
	const struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

/* How long it takes to make them, and what they take. */
static void
assert_made_soon(const char *what)
{
	overrides_free(overrides);
	overrides = NULL;
	const size_t before = memory_in_use();
	const int64_t start_us = clock_monotonic_us();

	overrides = overrides_new(config);
	const int64_t took_us = clock_monotonic_us() - start_us;

	assert_non_null(overrides);
	print_message("%d %s: made in %lld ms, %zu bytes each\n", MANY, what,
		(long long)took_us / 1000, (memory_in_use() - before) / MANY);
	/* 50 ms; a quadratic step would take minutes. */
	assert_in_range(took_us, 0, 10 * US_PER_S);
}

static void
assert_as_fast_as_few(const char *what, void use_them(unsigned), unsigned limit, request_fn *there,
	request_fn *missing)
{
	use_them(FEW);
	const int64_t few = time_of_lookups(there, limit, true, FEW);
	const int64_t few_missed = time_of_lookups(missing, limit, false, FEW);

	use_them(MANY);
	assert_made_soon(what);
	const int64_t many = time_of_lookups(there, limit, true, MANY);
	const int64_t many_missed = time_of_lookups(missing, limit, false, MANY);

	print_message("%s of %d: %lld ns found, %lld ns not; of %d: %lld ns, %lld ns\n", what, FEW,
		(long long)few, (long long)few_missed, MANY, (long long)many,
		(long long)many_missed);
	assert_in_range(many, 0, 10 * few);
	assert_in_range(many_missed, 0, 10 * few_missed);
}

static void
a_hundred_thousand_values_are_looked_up_as_fast_as_ten(void **state)
{
	char param[32];

	(void)state;
	assert_as_fast_as_few("values", use_values, 0, key_there, key_missing);
	for (unsigned i = 0; i < MANY; i += 97) {
		(void)snprintf(param, sizeof param, "HTTP_K=key-%u", i);
		const char name[] = { 'o', (char)('0' + i % 10), '\0' };

		assert_found(name, param);
	}
	assert_found("", "HTTP_K=key-100000");
}

static void
a_hundred_thousand_networks_are_looked_up_as_fast_as_ten(void **state)
{
	(void)state;
	assert_as_fast_as_few("networks", use_nets, 1, address_there, address_missing);
}

/* An administrator may list any SHA-256: here they differ in one word of 32 bits alone, the first
 * to the last in turn. */
static void
use_hashes_alike(void)
{
	char *text = NULL, sections[PATH_MAX + 128];
	size_t size;
	FILE *file = open_memstream(&text, &size);

	assert_non_null(file);
	for (unsigned i = 0; i < MANY; i++) {
		uint32_t words[8] = { 0 };

		words[i % 8] = 1 + i;
		(void)fprintf(file, "sha256:%08x%08x%08x%08x%08x%08x%08x%08x\n", words[0], words[1],
			words[2], words[3], words[4], words[5], words[6], words[7]);
	}
	assert_int_equal(fclose(file), 0);
	write_file("hashes", slice_make(text, size));
	free(text);
	(void)snprintf(sections, sizeof sections,
		"[override hashes]\nlimit = l\nfor = header K @%s/hashes\nexempt = yes\n",
		load_directory);
	use("ip", sections);
}

static void
hashes_that_share_most_of_their_bytes_do_not_meet(void **state)
{
	(void)state;
	use_hashes_alike();
	assert_made_soon("hashes");
	assert_found("", "HTTP_K=x");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		override_test(a_hundred_thousand_values_are_looked_up_as_fast_as_ten),
		override_test(hashes_that_share_most_of_their_bytes_do_not_meet),
		override_test(a_hundred_thousand_networks_are_looked_up_as_fast_as_ten),
	};

	return cmocka_run_group_tests_name("route/many_overrides", tests, NULL, NULL);
}
