/* memory.h: the file, what it must be, and what becomes of one that is something else. */
#include "../../src/memory/locks.h"
#include "../lib/directory.h"
#include "store.h"
#include "stripe.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIZE = 2 * 1024 * 1024 };

static struct directory directory;
static struct directory_path path;
static struct made_limit made;

static int
setup(void **state)
{
	(void)state;
	directory_make(&directory);
	path = directory_path(&directory, "state");
	make_limit(&made, "l", "10/1d");
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	directory_remove(&directory);
	return 0;
}

static struct stat
status_of(const char *file)
{
	struct stat status;

	assert_int_equal(lstat(file, &status), 0);
	return status;
}

static void
assert_refused(const char *file, const char *why)
{
	uint64_t size = SIZE;
	struct err err = { "" };

	assert_null(memory_open(file, &size, &err));
	assert_row(strstr(err.text, file) != NULL, "no path in: %s", err.text);
	assert_row(strstr(err.text, why) != NULL, "\"%s\" is not in: %s", why, err.text);
}

static void
spend(struct memory *memory, uint64_t cost)
{
	assert_int_equal(
		memory_decide(memory, &made, "k", cost, IN_2026_US).verdict, VERDICT_ADMITTED);
}

static uint64_t
left_in(struct memory *memory)
{
	return memory_remaining(memory, &made, "k", IN_2026_US);
}

/* A file in which three tokens are spent. */
static void
make_file(uint64_t size)
{
	struct memory *memory = memory_open_size(path.text, size);

	spend(memory, 3);
	memory_close(memory);
}

/* ---- what is ours ---- */

static void
a_new_file_is_whole_and_private(void **state)
{
	(void)state;
	const mode_t old = umask(0);

	make_file(SIZE);
	(void)umask(old);
	const struct stat status = status_of(path.text);

	assert_int_equal(status.st_size, SIZE);
	assert_int_equal(status.st_mode, S_IFREG | 0600);
	/* Nothing is left to be taken from the file system later. */
	assert_in_range(status.st_blocks * 512, SIZE, SIZE * 2);
}

static void
an_empty_file_is_filled(void **state)
{
	(void)state;
	directory_write(&directory, "state", SLICE(""));
	assert_int_equal(chmod(path.text, 0640), 0);
	make_file(SIZE);
	assert_int_equal(status_of(path.text).st_size, SIZE);
}

static void
what_was_spent_is_spent_after_a_restart(void **state)
{
	(void)state;
	make_file(SIZE);
	struct memory *memory = memory_open_size(path.text, SIZE);

	assert_int_equal(left_in(memory), 7);
	memory_close(memory);
}

static void
a_file_keeps_its_size(void **state)
{
	uint64_t size = 2 * SIZE;
	struct err err;

	(void)state;
	make_file(SIZE);
	struct memory *memory = memory_open(path.text, &size, &err);

	assert_non_null(memory);
	assert_int_equal(size, SIZE);
	assert_int_equal(left_in(memory), 7);
	memory_close(memory);
	assert_int_equal(status_of(path.text).st_size, SIZE);
}

static void
every_size_works(void **state)
{
	static const uint64_t sizes[] = { MEMORY_SIZE_MIN, MEMORY_SIZE_MIN + 1, 3000000,
		4 * 1024 * 1024 - 1, 4 * 1024 * 1024, 4 * 1024 * 1024 + 4097, 33 * 1024 * 1024 };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(sizes); i++) {
		make_file(sizes[i]);
		struct memory *memory = memory_open_size(path.text, sizes[i]);
		char key[16];

		for (unsigned k = 0; k < 20000; k++) {
			(void)snprintf(key, sizeof key, "%u", k);
			assert_int_equal(memory_decide(memory, &made, key, 1, IN_2026_US).verdict,
				VERDICT_ADMITTED);
		}
		memory_close(memory);
		assert_int_equal(unlink(path.text), 0);
	}
}

static void
the_area_is_shared(void **state)
{
	struct memory *a = memory_open_size(path.text, SIZE),
		      *b = memory_open_size(path.text, SIZE);

	(void)state;
	memcpy(memory_area(a), "hello", 6);
	assert_string_equal(memory_area(b), "hello");
	memory_close(a);
	memory_close(b);
}

/* ---- what is ours no more ---- */

static void
change_file(off_t at, const void *bytes, size_t len)
{
	const int fd = open(path.text, O_RDWR | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, bytes, len, at), len);
	assert_int_equal(close(fd), 0);
}

static void
assert_replaced(void)
{
	const int old = open(path.text, O_RDONLY | O_CLOEXEC);
	struct memory *memory = memory_open_size(path.text, SIZE);
	struct stat status;

	assert_int_equal(fstat(old, &status), 0);
	assert_int_equal(status.st_nlink, 0);
	assert_int_equal(close(old), 0);
	assert_int_equal(status_of(path.text).st_size, SIZE);
	assert_int_equal(left_in(memory), 10);
	memory_close(memory);
}

static void
a_file_of_another_version_is_replaced_and_its_processes_keep_theirs(void **state)
{
	(void)state;
	make_file(SIZE);
	struct memory *old = memory_open_size(path.text, SIZE);

	change_file(0, "weirm99", 8);
	assert_replaced();
	spend(old, 1);
	assert_int_equal(left_in(old), 6);
	memory_close(old);
}

static void
a_file_of_another_layout_is_replaced(void **state)
{
	static const size_t numbers[] = { offsetof(struct memory_header, layout.size),
		offsetof(struct memory_header, layout.stripe_count),
		offsetof(struct memory_header, layout.chain_count),
		offsetof(struct memory_header, layout.cell_count),
		offsetof(struct memory_header, layout.stripe_size) };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(numbers); i++) {
		static const uint8_t wrong[] = { 0x11, 0x22, 0x33, 0x44 };

		make_file(SIZE);
		change_file((off_t)numbers[i], wrong, sizeof wrong);
		assert_replaced();
		assert_int_equal(unlink(path.text), 0);
	}
}

static void
a_file_that_was_cut_or_only_begun_is_replaced(void **state)
{
	static const off_t sizes[] = { 8, 100, 4096, MEMORY_SIZE_MIN - 1, MEMORY_SIZE_MIN, SIZE - 1,
		SIZE + 1 };
	static const uint8_t zeros[8];

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(sizes); i++) {
		make_file(SIZE);
		assert_int_equal(truncate(path.text, sizes[i]), 0);
		assert_replaced();
		assert_int_equal(truncate(path.text, sizes[i]), 0);
		change_file(0, zeros, sizeof zeros); /* the magic is written last */
		assert_replaced();
	}
}

/* As when somebody names a file of their own by mistake. */
static void
a_file_that_never_was_ours_is_refused_and_left_alone(void **state)
{
	static const char *const texts[] = { "x", "[weir]\nlisten = unix:/x\n", "weirdly short" };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(texts); i++) {
		directory_write(&directory, "state", slice_of(texts[i]));
		if (i + 1 == LENGTH_OF(texts))
			assert_int_equal(truncate(path.text, SIZE), 0);
		if (i == 2)
			change_file(0, "WEIRM02", 8);
		assert_refused(path.text, "is not weir's");
		char *text = directory_read(&directory, "state");

		assert_int_equal(text[0], i == 2 ? 'W' : texts[i][0]);
		free(text);
	}
}

static void
what_is_no_regular_file_is_refused(void **state)
{
	struct directory_path other = directory_path(&directory, "other");

	(void)state;
	assert_int_equal(mkdir(path.text, 0700), 0);
	assert_refused(path.text, "directory");
	assert_int_equal(rmdir(path.text), 0);
	assert_int_equal(mkfifo(path.text, 0600), 0);
	assert_refused(path.text, "no regular file");
	assert_int_equal(unlink(path.text), 0);
	directory_write(&directory, "other", SLICE(""));
	assert_int_equal(symlink(other.text, path.text), 0);
	assert_refused(path.text, "symbolic links");
	assert_int_equal(status_of(other.text).st_size, 0);
	assert_refused("/dev/null", "no regular file");
	assert_refused(directory_path(&directory, "not/there").text, "No such file");
}

static void
a_file_that_others_may_write_is_refused(void **state)
{
	static const mode_t modes[] = { 0620, 0602, 0666, 0660 };

	(void)state;
	make_file(SIZE);
	for (size_t i = 0; i < LENGTH_OF(modes); i++) {
		assert_int_equal(chmod(path.text, modes[i]), 0);
		assert_refused(path.text, "others may write to it");
	}
	assert_int_equal(chmod(path.text, 0644), 0);
	struct memory *memory = memory_open_size(path.text, SIZE);

	assert_int_equal(left_in(memory), 7);
	memory_close(memory);
}

static void
a_file_of_another_user_is_refused(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	make_file(SIZE);
	assert_int_equal(chown(path.text, 65534, 65534), 0);
	assert_refused(path.text, "it belongs to user 65534, but weir runs as user 0");
	assert_int_equal(status_of(path.text).st_size, SIZE);
}

/* ---- no room ---- */

/* In a mount namespace of its own, so that nothing is left behind. 2: it may not mount. */
static int
open_on_a_full_disk(void)
{
	uint64_t size = SIZE;
	struct err err;
	struct stat status;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", "none", MS_REC | MS_PRIVATE, "") != 0 ||
		mount("tmpfs", directory.path, "tmpfs", 0, "size=1536k") != 0)
		return 2;
	if (memory_open(path.text, &size, &err) != NULL)
		return 3;
	if (strstr(err.text, "no room for 2097152 bytes") == NULL)
		return 4;
	/* And what there is of it is given back. */
	if (lstat(path.text, &status) == 0)
		return 5;
	size = MEMORY_SIZE_MIN;
	struct memory *memory = memory_open(path.text, &size, &err);

	if (memory == NULL)
		return 6;
	memory_close(memory);
	return 0;
}

static void
a_full_disk_is_told_at_the_start(void **state)
{
	int status;
	const pid_t pid = fork();

	(void)state;
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(open_on_a_full_disk());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 2)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- what others left ---- */

/* As if power failed, or the file was copied, while somebody who never will come back was inside
 * each stripe. */
static void
leave_torn(struct memory *memory)
{
	memset(memory_area(memory), 'x', MEMORY_AREA_SIZE);
	for (uint32_t i = 0; i < memory->layout.stripe_count; i++) {
		const struct stripe_view view = memory_stripe_at(memory, i);

		memset(&view.stripe->lock, 0x5a, sizeof view.stripe->lock);
		view.stripe->free = CELL_NONE;
		memset(view.chains, 0, view.chain_count * sizeof view.chains[0]);
	}
}

static void
whoever_is_alone_finds_the_buckets_and_no_locks(void **state)
{
	static const uint8_t zero[MEMORY_AREA_SIZE];

	(void)state;
	make_file(SIZE);
	struct memory *memory = memory_open_size(path.text, SIZE);

	leave_torn(memory);
	memory_close(memory);
	memory = memory_open_size(path.text, SIZE);
	assert_int_equal(left_in(memory), 7);
	spend(memory, 1);
	assert_int_equal(left_in(memory), 6);
	assert_memory_equal(memory_area(memory), zero, sizeof zero);
	for (uint32_t i = 0; i < memory->layout.stripe_count; i++) {
		const struct stripe_view view = memory_stripe_at(memory, i);

		assert_true(lock_stripes(memory, &view, 1, 0));
		(void)check_stripe(&view);
		unlock_stripes(&view, 1);
	}
	memory_close(memory);
}

/* While others use the file nothing of it is made anew, whoever comes and goes. */
static void
whoever_is_not_alone_changes_nothing(void **state)
{
	uint8_t before[sizeof(struct memory_header)];

	(void)state;
	make_file(SIZE);
	struct memory *memory = memory_open_size(path.text, SIZE);
	const struct hash_wide key = hash_wide(memory->layout.hash_key, SLICE("k"));
	const struct stripe_view view = memory_stripe_at(
		memory, (memory_stripe(memory, &key).index + 1) % memory->layout.stripe_count);

	spend(memory, 1);
	memset(memory_area(memory), 'x', MEMORY_AREA_SIZE);
	memcpy(before, memory->header, sizeof before);
	assert_int_equal(pthread_mutex_lock(&view.stripe->lock), 0);
	for (unsigned i = 0; i < 3; i++) {
		struct memory *other = memory_open_size(path.text, SIZE);

		assert_int_equal(left_in(other), 6);
		memory_close(other);
	}
	assert_memory_equal(memory->header, before, sizeof before);
	assert_int_equal(pthread_mutex_unlock(&view.stripe->lock), 0);
	memory_close(memory);
}

/* As a process that was stopped while it made the file. */
static pid_t
start_holding_the_file(void)
{
	const pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };
		const int fd = open(path.text, O_RDWR | O_CLOEXEC);

		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (fcntl(fd, F_OFD_SETLK, &lock) != 0)
			_exit(1);
		(void)raise(SIGSTOP);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
	return pid;
}

static void
end_holder(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void
a_file_that_stays_locked_is_not_waited_for_forever(void **state)
{
	(void)state;
	make_file(SIZE);
	const pid_t pid = start_holding_the_file();

	assert_refused(path.text, "another process has kept it locked for 5 s");
	end_holder(pid);
	struct memory *memory = memory_open_size(path.text, SIZE);

	assert_int_equal(left_in(memory), 7);
	memory_close(memory);
}

/* It would be waited for in vain. */
static void
a_file_of_another_user_is_refused_whoever_holds_it(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	make_file(SIZE);
	const pid_t pid = start_holding_the_file();

	assert_int_equal(chown(path.text, 65534, 65534), 0);
	assert_refused(path.text, "it belongs to user 65534");
	end_holder(pid);
}

#define file_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		file_test(a_new_file_is_whole_and_private),
		file_test(an_empty_file_is_filled),
		file_test(what_was_spent_is_spent_after_a_restart),
		file_test(a_file_keeps_its_size),
		file_test(every_size_works),
		file_test(the_area_is_shared),
		file_test(a_file_of_another_version_is_replaced_and_its_processes_keep_theirs),
		file_test(a_file_of_another_layout_is_replaced),
		file_test(a_file_that_was_cut_or_only_begun_is_replaced),
		file_test(a_file_that_never_was_ours_is_refused_and_left_alone),
		file_test(what_is_no_regular_file_is_refused),
		file_test(a_file_that_others_may_write_is_refused),
		file_test(a_file_of_another_user_is_refused),
		file_test(a_full_disk_is_told_at_the_start),
		file_test(whoever_is_alone_finds_the_buckets_and_no_locks),
		file_test(whoever_is_not_alone_changes_nothing),
		file_test(a_file_that_stays_locked_is_not_waited_for_forever),
		file_test(a_file_of_another_user_is_refused_whoever_holds_it),
	};
	struct err err;

	if (hash_start(&err) != 0 || counter_thread_start(&err) != 0)
		return 1;
	return cmocka_run_group_tests_name("memory/file", tests, NULL, NULL);
}
