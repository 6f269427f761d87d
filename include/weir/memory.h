/*
 * The store in memory: a file mapped by all weir processes of a host, or memory of this process
 * alone. The same decisions as the script in Redis makes. Holds no names: a bucket's key is kept as
 * a 128-bit keyed hash.
 */
#ifndef WEIR_MEMORY_H
#define WEIR_MEMORY_H

#include "weir/counter.h"
#include "weir/err.h"
#include "weir/store.h"

struct memory;

enum { MEMORY_SIZE_MIN = 1024 * 1024, MEMORY_AREA_SIZE = 65536 };

/*
 * Opens the file or makes it, `size` bytes large. It must be a regular file of our own user that no
 * other may write. A file of another version of weir is replaced, and nothing else; one of another
 * size is used as it is, and *size says how large that is. All processes that name the file share
 * it. Whoever is alone on it frees what its last users held. Somebody else who makes the file is
 * waited for, some seconds at the most.
 */
struct memory *memory_open(const char *path, uint64_t *size, struct err *err) WEIR_MUST_CHECK;

/* Whether memory_open would take what is there. Nothing is made or changed, and a file that is not
 * there is none that would be refused. */
int memory_check(const char *path, struct err *err) WEIR_MUST_CHECK;

/* Memory of this process and its threads alone. */
struct memory *memory_open_private(uint64_t size, struct err *err) WEIR_MUST_CHECK;

void memory_close(struct memory *memory);

/* From now on its store counts (COUNT_STORE_LATENCY, COUNT_STORE_FAILURES). Before it is asked. */
void memory_count(struct memory *memory);

/*
 * Answers before store_decide returns, as a rule within microseconds: it waits for the lock of a
 * bucket for 50 ms at the most, and not beyond the check's deadline by more than 5 ms. Its clock is
 * clock_wall_us. Threads may share it. Lives as long as the memory.
 *
 * A lease is given back, or prolonged, before the call returns. For that too it waits 50 ms at the
 * most; a process that stands still inside the bucket for longer leaves a place that was to be
 * given back taken until its lease ends (COUNT_LEASES_LEFT). Nothing is kept for later.
 */
struct store *memory_store(struct memory *memory);

/*
 * How many bytes of all that it has for buckets are taken by those that still say something.
 * Counted where there is little, and estimated from a part where there is much; a part that another
 * process holds for too long is left out. Takes some milliseconds: for who asks now and then.
 */
uint64_t memory_used(struct memory *memory);
uint64_t memory_room(const struct memory *memory);

/*
 * What has become of the file since it was opened. Nothing of it can be prevented, since whoever
 * may write the file may do that. A file that was removed or replaced is still used by those who
 * have it, and not by those who come. One that was cut ends the process by SIGBUS when it needs
 * what is missing. One that was written over in place does no harm but to the counts.
 */
enum memory_file {
	MEMORY_FILE_SAME, /* or there is none */
	MEMORY_FILE_GONE,
	MEMORY_FILE_REPLACED,
	MEMORY_FILE_CUT,
	MEMORY_FILES
};

enum memory_file memory_look(const struct memory *memory);

/* Its name, or NULL; as long as the memory lives. */
const char *memory_path(const struct memory *memory);

/* Where it lies, for who handles SIGBUS. */
struct slice memory_bytes(const struct memory *memory);

/* MEMORY_AREA_SIZE bytes, shared like the rest, zero when nobody else uses the file as it is
 * opened: for the breaker. */
void *memory_area(struct memory *memory);

/* As many for this process and its threads alone. */
void *memory_process_area(struct memory *memory);

#endif
