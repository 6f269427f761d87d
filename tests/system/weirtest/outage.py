"""What is seen of an outage of Redis from outside: each request, and what weir has counted. A weir
has a path for each store_down."""

from weirtest.load import Load

PATHS = ("admit", "reject", "local")        # of the same limit, route and store_down

LATENCY = "weir_store_latency_seconds_count"
FAILURES = "weir_store_failures_total"


def percentile(requests, part):
    """The smallest time that `part` of all do not exceed, in seconds."""
    took = sorted(request.ended - request.began for request in requests)
    return took[min(len(took) - 1, int(part * len(took)))]


class Run:
    """A load on each path of a weir, and on one of the other, for one fault."""

    def __init__(self, case, weir, control, rate):
        """`rate`: of all paths together."""
        self.weir = weir
        self._case, self._rate = case, rate / len(PATHS)
        self._loads = {path: self._load(weir, path, path) for path in PATHS}
        self._loads["control"] = self._load(control, "admit", "control")
        self.requests = {}

    def _load(self, weir, path, name):
        return self._case.run_load(Load(
            weir.socket, rate=self._rate, seconds=600, marks=True, timeout=5, path="/" + path,
            each=weir.place.sub("tmp", "each-" + name)))

    def go_on(self, seconds):
        self._loads["control"].go_on(seconds)

    def end(self):
        for load in self._loads.values():
            load.end()
        self.requests = {name: load.requests() for name, load in self._loads.items()}

    def all(self):
        """Of the weir whose Redis fails."""
        return [request for path in PATHS for request in self.requests[path]]

    def status_between(self, path, begin, end):
        """Of requests that lie wholly within."""
        return {request.status for request in self.requests[path]
                if request.began >= begin and request.ended <= end}


class Decided:
    """How many checks were decided, and where, by weir's own count."""

    def __init__(self, weir):
        metrics = weir.metrics()
        self.by_redis = metrics.get(LATENCY, store="redis")
        self.by_memory = metrics.get(LATENCY, store="memory")
        self.failed = metrics.total(FAILURES)
        self.undecided = metrics.get("weir_requests_total", route="admit", outcome="undecided")
        self.refused = metrics.get("weir_requests_total", route="reject", outcome="store_down")
