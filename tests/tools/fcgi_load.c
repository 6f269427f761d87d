/*
 * fcgi_load: load for FastCGI servers and for web servers, and how long the answers took. For
 * tests, so it prints one line of JSON, and says nothing of what is good or bad.
 *
 *     fcgi_load --rate 500 --for 5 unix:/run/weir/weir.sock        an open loop
 *     fcgi_load --http --clients 20 --requests 20 tcp:127.0.0.1:80  a closed loop
 *
 * Counted are answers by status, and failures: no connection, a connection that ended before the
 * answer began ("closed") or ended ("cut"), no answer in time.
 */
#include "load_run.h"

#include <getopt.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/un.h>
#include <time.h>

static const char usage[] =
	"fcgi_load [OPTION...] unix:PATH | tcp:HOST:PORT\n"
	"  --http             HTTP/1.1 with kept connections; else FastCGI\n"
	"  --keep             FastCGI with FCGI_KEEP_CONN\n"
	"  --rate N --for S   an open loop: N requests a second for S seconds\n"
	"  --connections N    of an open loop, at the most (1024)\n"
	"  --clients N --requests M   a closed loop: N connections, M requests on each\n"
	"  --ramp N           of a closed loop: N clients begin a second\n"
	"  --stay             with --marks: connections are kept until the \"end\"\n"
	"  --path P --host H  of the request (/ and localhost)\n"
	"  --script FILE      SCRIPT_FILENAME\n"
	"  --set NAME=VALUE   a further parameter, or field of an HTTP request\n"
	"  --vary N           N different paths (P/0, P/1 ...) and client addresses in turn\n"
	"  --timeout S        of a request (10)\n"
	"  --marks            a line on standard input begins a new phase; \"end\" ends the load\n"
	"  --each FILE        a line there for each request: when, how long, status\n";

int64_t
now_us(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void __attribute__((noreturn)) die(const char *what, const char *detail)
{
	(void)fprintf(stderr, "fcgi_load: %s%s\n%s", what, detail, usage);
	exit(2);
}

static void
set_unix(struct plan *plan, const char *path)
{
	struct sockaddr_un *name = (struct sockaddr_un *)&plan->address;

	if (strlen(path) >= sizeof name->sun_path)
		die("too long: ", path);
	name->sun_family = AF_UNIX;
	memcpy(name->sun_path, path, strlen(path) + 1);
	plan->address_len = sizeof *name;
}

static void
set_tcp(struct plan *plan, const char *text)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	const char *colon = strrchr(text, ':');
	struct addrinfo *list;
	char host[256];

	if (colon == NULL || (size_t)(colon - text) >= sizeof host)
		die("no tcp:HOST:PORT: ", text);
	memcpy(host, text, (size_t)(colon - text));
	host[colon - text] = '\0';
	if (getaddrinfo(host, colon + 1, &hints, &list) != 0)
		die("unknown: ", text);
	memcpy(&plan->address, list->ai_addr, list->ai_addrlen);
	plan->address_len = list->ai_addrlen;
	freeaddrinfo(list);
}

static void
set_address(struct plan *plan, const char *text)
{
	if (strncmp(text, "unix:", 5) == 0)
		set_unix(plan, text + 5);
	else if (strncmp(text, "tcp:", 4) == 0)
		set_tcp(plan, text + 4);
	else
		die("neither unix: nor tcp: ", text);
}

static double
number(const char *text)
{
	char *end;
	const double n = strtod(text, &end);

	if (end == text || *end != '\0' || n < 0)
		die("no number: ", text);
	return n;
}

static void
add_name(struct plan *plan, char *text)
{
	char *equals = strchr(text, '=');

	if (equals == NULL || plan->name_count == NAMES_MAX)
		die("not NAME=VALUE, or too many: ", text);
	*equals = '\0';
	plan->names[plan->name_count++] = (struct name_value){ text, equals + 1 };
}

static void
set_each(struct plan *plan, const char *path)
{
	plan->each = fopen(path, "w");
	if (plan->each == NULL)
		die("cannot be written: ", path);
}

static const struct option options[] = {
	{ "http", no_argument, NULL, 'h' },
	{ "keep", no_argument, NULL, 'k' },
	{ "rate", required_argument, NULL, 'r' },
	{ "for", required_argument, NULL, 'f' },
	{ "connections", required_argument, NULL, 'C' },
	{ "clients", required_argument, NULL, 'c' },
	{ "requests", required_argument, NULL, 'n' },
	{ "ramp", required_argument, NULL, 'R' },
	{ "stay", no_argument, NULL, 'y' },
	{ "path", required_argument, NULL, 'p' },
	{ "host", required_argument, NULL, 'H' },
	{ "script", required_argument, NULL, 's' },
	{ "set", required_argument, NULL, 'S' },
	{ "vary", required_argument, NULL, 'v' },
	{ "timeout", required_argument, NULL, 't' },
	{ "marks", no_argument, NULL, 'm' },
	{ "each", required_argument, NULL, 'e' },
	{ NULL, 0, NULL, 0 },
};

static void
set_option(struct plan *plan, int option)
{
	switch (option) {
	case 'h':
		plan->is_http = true;
		break;
	case 'k':
		plan->keep = true;
		break;
	case 'm':
		plan->has_marks = true;
		break;
	case 'r':
		plan->rate = number(optarg);
		break;
	case 'f':
		plan->seconds = number(optarg);
		break;
	case 'C':
		plan->connections_max = (uint64_t)number(optarg);
		break;
	case 'c':
		plan->clients = (uint64_t)number(optarg);
		break;
	case 'n':
		plan->requests = (uint64_t)number(optarg);
		break;
	case 'R':
		plan->ramp = number(optarg);
		break;
	case 'y':
		plan->stays = true;
		break;
	case 'v':
		plan->vary = (uint64_t)number(optarg);
		break;
	case 't':
		plan->timeout = number(optarg);
		break;
	case 'p':
		plan->path = optarg;
		break;
	case 'H':
		plan->host = optarg;
		break;
	case 's':
		plan->script = optarg;
		break;
	case 'e':
		set_each(plan, optarg);
		break;
	case 'S':
		add_name(plan, optarg);
		break;
	default:
		die("", "");
	}
}

static void
raise_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

int
main(int argc, char **argv)
{
	struct plan plan = {
		.path = "/", .host = "localhost", .connections_max = 1024, .timeout = 10
	};
	static char probe[REQUEST_SIZE];
	struct run run;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
		set_option(&plan, option);
	if (optind + 1 != argc)
		die("one address is wanted", "");
	set_address(&plan, argv[optind]);
	if ((plan.rate > 0) == (plan.clients > 0) ||
		(plan.rate > 0 ? plan.seconds : (double)plan.requests) <= 0)
		die("either --rate and --for, or --clients and --requests", "");
	if (request_write(&plan, 0, probe) == 0)
		die("the request is too large", "");
	raise_descriptors();
	run_plan(&run, &plan);
	phases_print(run.first_phase, now_us(), stdout);
	phases_free(run.first_phase);
	connections_close(&run);
	if (plan.each != NULL && fclose(plan.each) != 0)
		die("could not be written", "");
	return 0;
}
