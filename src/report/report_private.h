/* The report's parts. Private to the room. */
#ifndef WEIR_REPORT_PRIVATE_H
#define WEIR_REPORT_PRIVATE_H

#include "weir/report.h"

#include <pthread.h>

enum { GAUGES_MAX = 8 };

struct report_gauge {
	const char *name, *help;
	report_gauge_fn *read;
	void *context;
};

struct report {
	struct log_sink *sink; /* NULL: the log */
	_Atomic int format; /* enum log_format */
	pthread_mutex_t lock; /* of the throttles */
	struct log_throttle throttle, refusals, failures;
	struct report_gauge gauges[GAUGES_MAX];
	unsigned gauge_count;
};

#endif
