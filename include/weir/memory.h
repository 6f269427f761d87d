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

enum { MEMORY_SIZE_MIN = 1024 * 1024, MEMORY_AREA_SIZE = 1024 };

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
 */
struct store *memory_store(struct memory *memory);

/* MEMORY_AREA_SIZE bytes, shared like the rest, zero when nobody else uses the file as it is
 * opened: for the breaker. */
void *memory_area(struct memory *memory);

/* As many for this process and its threads alone. */
void *memory_process_area(struct memory *memory);

#endif
