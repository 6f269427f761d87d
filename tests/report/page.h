/*
 * A strict parser of Prometheus' text format 0.0.4: every line is a HELP, a TYPE or a sample, each
 * family stands together, and nothing is there twice. What is not so fails the test.
 */
#ifndef WEIR_TESTS_REPORT_PAGE_H
#define WEIR_TESTS_REPORT_PAGE_H

#include "../unit.h"

enum { SAMPLES_MAX = 2000, FAMILIES_MAX = 200 };

struct sample {
	char name[100], labels[500]; /* labels as written */
	double value, le; /* le: NAN if there is none */
};

struct parsed_family {
	char name[100], type[20];
	bool has_help, has_type;
	unsigned samples;
};

struct parsed {
	struct sample samples[SAMPLES_MAX];
	struct parsed_family families[FAMILIES_MAX];
	unsigned sample_count, family_count;
};

/* For free(). */
struct parsed *page_parse(const char *page);

/* NULL if it is not there. `labels` as written, with the braces; "" if there are none. */
const struct sample *page_find(const struct parsed *parsed, const char *name, const char *labels);

/* Fails the test if it is not there. */
double page_value(const struct parsed *parsed, const char *name, const char *labels);

#endif
