/*
 * What is counted. Every latency is kept, so a percentile is one that occurred and no estimate. A
 * request belongs to the phase in which it was started.
 */
#include "load.h"

#include <stdlib.h>
#include <string.h>

struct phase *
phase_new(const char *name, int64_t now)
{
	struct phase *phase = calloc(1, sizeof *phase);

	if (phase == NULL)
		abort();
	(void)snprintf(phase->name, sizeof phase->name, "%s", name);
	phase->began_us = now;
	return phase;
}

void
phase_answered(struct phase *phase, int status, int64_t latency_us)
{
	if (phase->latency_count == phase->latency_room) {
		phase->latency_room = phase->latency_room == 0 ? 4096 : 2 * phase->latency_room;
		phase->latencies =
			realloc(phase->latencies, phase->latency_room * sizeof phase->latencies[0]);
		if (phase->latencies == NULL)
			abort();
	}
	phase->status[status]++;
	phase->latencies[phase->latency_count++] =
		latency_us > UINT32_MAX ? UINT32_MAX : (uint32_t)latency_us;
}

static int
compare(const void *a, const void *b)
{
	const uint32_t *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

/* The smallest latency that `part` of all do not exceed. */
static uint32_t
percentile(const struct phase *phase, double part)
{
	const double exact = part * (double)phase->latency_count;
	size_t rank = (size_t)exact;

	if (phase->latency_count == 0)
		return 0;
	if ((double)rank < exact)
		rank++;
	return phase->latencies[rank == 0 ? 0 : rank - 1];
}

static void
phase_print(struct phase *phase, double seconds, FILE *out)
{
	const char *separator = "";

	if (phase->latency_count > 0)
		qsort(phase->latencies, phase->latency_count, sizeof phase->latencies[0], compare);
	(void)fprintf(out, "{\"name\":\"%s\",\"seconds\":%.3f,\"started\":%llu,\"status\":{",
		phase->name, seconds, (unsigned long long)phase->started);
	for (unsigned i = 0; i < sizeof phase->status / sizeof phase->status[0]; i++) {
		if (phase->status[i] == 0)
			continue;
		(void)fprintf(
			out, "%s\"%u\":%llu", separator, i, (unsigned long long)phase->status[i]);
		separator = ",";
	}
	(void)fprintf(out,
		"},\"failed\":{\"connect\":%llu,\"closed\":%llu,\"cut\":%llu,\"timeout\":%llu},"
		"\"p50\":%u,"
		"\"p99\":%u,\"p999\":%u,\"max\":%u}",
		(unsigned long long)phase->failed[FAILED_CONNECT],
		(unsigned long long)phase->failed[FAILED_CLOSED],
		(unsigned long long)phase->failed[FAILED_CUT],
		(unsigned long long)phase->failed[FAILED_TIMEOUT], percentile(phase, 0.5),
		percentile(phase, 0.99), percentile(phase, 0.999), percentile(phase, 1));
}

void
phases_print(struct phase *first, int64_t end_us, FILE *out)
{
	(void)fputs("{\"phases\":[", out);
	for (struct phase *phase = first; phase != NULL; phase = phase->next) {
		const int64_t until = phase->next != NULL ? phase->next->began_us : end_us;

		if (phase != first)
			(void)fputc(',', out);
		phase_print(phase, (double)(until - phase->began_us) / 1e6, out);
	}
	(void)fputs("]}\n", out);
}

void
phases_free(struct phase *first)
{
	while (first != NULL) {
		struct phase *phase = first;

		first = phase->next;
		free(phase->latencies);
		free(phase);
	}
}
