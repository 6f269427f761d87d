/*
 * Made before the threads and freed after them. What a limit needs is made when a configuration
 * that has it is put to use, under the lock, and stays: a reload finds it again by its name.
 */
#include "commons.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct named {
	struct named *next;
	struct identities *identities;
	char name[];
};

struct gate_commons {
	pthread_mutex_t lock;
	struct memory *caps;
	struct named *limits;
	uint8_t hash_key[HASH_KEY_SIZE];
};

struct gate_commons *
gate_commons_new(struct err *err)
{
	struct gate_commons *commons = calloc(1, sizeof *commons);

	if (commons == NULL) {
		(void)err_set(err, "no memory for the gates");
		return NULL;
	}
	(void)pthread_mutex_init(&commons->lock, NULL);
	hash_random(commons->hash_key, sizeof commons->hash_key);
	return commons;
}

void
gate_commons_free(struct gate_commons *commons)
{
	if (commons == NULL)
		return;
	while (commons->limits != NULL) {
		struct named *named = commons->limits;

		commons->limits = named->next;
		identities_free(named->identities);
		free(named);
	}
	memory_close(commons->caps);
	(void)pthread_mutex_destroy(&commons->lock);
	free(commons);
}

struct store *
commons_caps(struct gate_commons *commons, struct err *err)
{
	(void)pthread_mutex_lock(&commons->lock);
	if (commons->caps == NULL)
		commons->caps = memory_open_private(CAPS_SIZE, err);
	struct memory *caps = commons->caps;

	(void)pthread_mutex_unlock(&commons->lock);
	return caps == NULL ? NULL : memory_store(caps);
}

/* With the lock held. */
static struct named *
add_limit(struct gate_commons *commons, const char *limit, counter_cell gauge)
{
	const size_t size = strlen(limit) + 1;
	struct named *named = malloc(sizeof *named + size);

	if (named == NULL)
		return NULL;
	named->identities = identities_new(gauge);
	if (named->identities == NULL) {
		free(named);
		return NULL;
	}
	memcpy(named->name, limit, size);
	named->next = commons->limits;
	commons->limits = named;
	return named;
}

struct identities *
commons_identities(struct gate_commons *commons, const char *limit, counter_cell gauge)
{
	(void)pthread_mutex_lock(&commons->lock);
	struct named *named = commons->limits;

	while (named != NULL && strcmp(named->name, limit) != 0)
		named = named->next;
	if (named == NULL)
		named = add_limit(commons, limit, gauge);
	(void)pthread_mutex_unlock(&commons->lock);
	return named == NULL ? NULL : named->identities;
}

struct hash_wide
commons_hash(const struct gate_commons *commons, struct slice key)
{
	return hash_wide(commons->hash_key, key);
}
