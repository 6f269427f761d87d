/* Prometheus' text format, version 0.0.4: a HELP and a TYPE line for each family, then its samples.
 */
#include "report_private.h"

#include "weir/counter.h"

static const char *const kind_names[] = { "counter", "gauge", "histogram" };

struct page {
	struct buf *out;
	const char *family; /* of the last sample */
	int result;
};

static void
put_histogram(struct page *page, const struct counter_sample *sample)
{
	const char *comma = sample->labels[0] == '\0' ? "" : ",";
	int64_t below = 0;

	for (unsigned i = 0; i <= HISTOGRAM_BUCKETS; i++) {
		below += sample->buckets[i];
		if (i < HISTOGRAM_BUCKETS)
			page->result |= buf_printf(page->out, "%s_bucket{%s%sle=\"%g\"} %lld\n",
				sample->name, sample->labels, comma,
				(double)histogram_bounds_us[i] / 1e6, (long long)below);
		else
			page->result |= buf_printf(page->out, "%s_bucket{%s%sle=\"+Inf\"} %lld\n",
				sample->name, sample->labels, comma, (long long)below);
	}
	const char *open = sample->labels[0] == '\0' ? "" : "{",
		   *close = sample->labels[0] == '\0' ? "" : "}";

	page->result |= buf_printf(page->out, "%s_sum%s%s%s %.6f\n%s_count%s%s%s %lld\n",
		sample->name, open, sample->labels, close, (double)sample->sum_us / 1e6,
		sample->name, open, sample->labels, close, (long long)sample->value);
}

static void
put_sample(void *context, const struct counter_sample *sample)
{
	struct page *page = context;

	if (page->family != sample->name)
		page->result |= buf_printf(page->out, "# HELP %s %s\n# TYPE %s %s\n", sample->name,
			sample->help, sample->name, kind_names[sample->kind]);
	page->family = sample->name;
	if (sample->kind == KIND_HISTOGRAM)
		put_histogram(page, sample);
	else if (sample->labels[0] == '\0')
		page->result |=
			buf_printf(page->out, "%s %lld\n", sample->name, (long long)sample->value);
	else
		page->result |= buf_printf(page->out, "%s{%s} %lld\n", sample->name, sample->labels,
			(long long)sample->value);
}

int
report_metrics(struct report *report, struct buf *out)
{
	struct page page = { .out = out };

	counter_each(put_sample, &page);
	for (unsigned i = 0; i < report->gauge_count; i++) {
		const struct report_gauge *gauge = &report->gauges[i];

		page.result |= buf_printf(out, "# HELP %s %s\n# TYPE %s gauge\n%s %lld\n",
			gauge->name, gauge->help, gauge->name, gauge->name,
			(long long)gauge->read(gauge->context));
	}
	return page.result == 0 ? 0 : -1;
}
