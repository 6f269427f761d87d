#!/usr/bin/python3 -B
"""What operators see: /healthz and /metrics. Every request is counted under its route and outcome,
and nothing that a client chooses ever becomes a label."""

import weirtest
from weirtest import Case, Load, PhpFpm, Redis, Weir, ask, fcgi, wait_until

ROUTES = """\
[limit three]
policy = 3/1d

[limit wide]
policy = 1000000/1s

[limit keyed]
identity = header X-API-Key
on_missing = reject
policy = 1000000/1s

[limit tried]
policy = 4/1d
policy = 3/1d name loose shadow
policy = 1/1d name strict shadow

[backend absent]
server = unix:/nonexistent/app.sock

[route three]
match = /three
limit = three, wide
backend = php

[route absent]
match = /absent
backend = absent

[route tried]
match = /tried
limit = tried
backend = php

[route keyed]
match = /keyed
limit = keyed
backend = php

[route down]
match = /down
limit = wide
store_down = reject
backend = php

[route default]
match = *
limit = wide
store_down = admit
backend = php
"""


class MetricsTests(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.php = cls.start_for_class(PhpFpm(cls.place))

    def setUp(self):
        self.redis = self.start(Redis(self.place))
        self.weir = self.start(Weir(self.place, self.php, ROUTES, redis=self.redis,
                                    name="weir-" + self._testMethodName))

    def ask(self, path, script="/index.php", **params):
        return fcgi.ask(self.weir.socket, fcgi.usual_params(
            path, SCRIPT_FILENAME=self.place.documents + script, **params))

    def requests(self, route, outcome):
        return self.weir.metrics().get("weir_requests_total", route=route, outcome=outcome)

    def test_health(self):
        answer = self.weir.health()
        self.assertEqual((answer.status, answer.text), (200, "ok\n"))
        self.assertEqual(ask(self.weir.metrics_socket, "/no/such").status, 404)
        self.redis.pause()
        self.addCleanup(self.redis.go_on)
        for _ in range(3):
            self.ask("/index.php")
        answer = wait_until(lambda: "degraded" in (now := self.weir.health()).text and now,
                            "/healthz tells that Redis is away")
        # It serves: who restarts it for that makes things worse.
        self.assertEqual(answer.status, 200)

    def test_requests_by_route_and_outcome(self):
        self.assertEqual([self.ask("/three").status for _ in range(5)], [200, 200, 200, 429, 429])
        self.assertEqual(self.ask("/absent").status, 502)
        self.assertEqual(self.ask("/keyed").status, 403)
        self.assertEqual(self.ask("/keyed", HTTP_X_API_KEY="k").status, 200)
        self.assertEqual(self.ask("/x%00y").status, 400)
        self.assertEqual(self.ask("/other").status, 200)
        self.assertEqual(
            [self.requests(*which) for which in (
                ("three", "admitted"), ("three", "rejected"), ("absent", "backend_failed"),
                ("keyed", "unidentified"), ("keyed", "admitted"), ("", "bad_request"),
                ("default", "admitted"))],
            [3, 2, 1, 1, 1, 1, 1])
        metrics = self.weir.metrics()
        self.assertEqual(metrics.total("weir_requests_total"), 10)
        self.assertEqual(metrics.get("weir_requests_in_flight"), 0)
        self.assertEqual(metrics.get("weir_backend_failures_total", backend="absent",
                                     reason="refused"), 1)

    def test_decisions_by_limit(self):
        for _ in range(5):
            self.ask("/three")
        metrics = self.weir.metrics()
        self.assertEqual(
            [metrics.get("weir_decisions_total", limit=limit, result=result)
             for limit, result in (("three", "admitted"), ("three", "rejected"),
                                   ("wide", "admitted"), ("wide", "rejected"))], [3, 2, 3, 0])

    def test_two_policies_that_are_tried_are_told_apart(self):
        self.assertEqual([self.ask("/tried").status for _ in range(6)], 4 * [200] + 2 * [429])
        metrics = self.weir.metrics()
        self.assertEqual(
            [[metrics.get("weir_policy_rejections_total", limit="tried", policy=policy,
                          result=result) for policy in ("1d", "loose", "strict")]
             for result in ("rejected", "would_reject")], [[2, 0, 0], [0, 3, 5]])

    def test_dry_run_tells_what_enforcement_would(self):
        """Each result of the limits, and each outcome, under its own name."""
        paths = ["/three"] * 5 + ["/keyed"] * 2 + ["/keyed?"]
        seen = []
        for enforce in ("yes", "no"):
            weir = self.start(Weir(self.place, self.php, ROUTES, weir=f"enforce = {enforce}",
                                   name="enforce-" + enforce))
            for path in paths:
                fcgi.ask(weir.socket, fcgi.usual_params(
                    path, SCRIPT_FILENAME=self.place.documents + "/index.php",
                    **({"HTTP_X_API_KEY": "k"} if path.endswith("?") else {})))
            metrics = weir.metrics()
            outcomes = ("rejected", "unidentified", "admitted") if enforce == "yes" else (
                "would_reject", "would_refuse", "admitted")
            results = ("rejected", "refused", "admitted") if enforce == "yes" else (
                "would_reject", "would_refuse", "admitted")
            seen.append(
                [metrics.get("weir_requests_total", route=route, outcome=outcome)
                 for route in ("three", "keyed") for outcome in outcomes] +
                [metrics.get("weir_decisions_total", limit=limit, result=result)
                 for limit in ("three", "wide", "keyed") for result in results])
        self.assertEqual(seen[0], seen[1])
        self.assertEqual(seen[0], [2, 0, 3, 0, 2, 1, 2, 0, 3, 0, 0, 3, 0, 2, 1])

    def test_memory_tells_how_full_it_is(self):
        size = self.weir.metrics().get("weir_memory_size_bytes")
        self.assertLess(900_000, size)
        self.assertLess(size, 1_048_576)
        weir = self.start(Weir(self.place, self.php, ROUTES, name="in-memory"))
        for client in range(20):
            fcgi.ask(weir.socket, fcgi.usual_params("/three", REMOTE_ADDR=f"192.0.2.{client}",
                     SCRIPT_FILENAME=self.place.documents + "/index.php"))
        # Those of `wide` say nothing a second later.
        self.assertIn(weir.metrics().get("weir_memory_used_bytes") / 128, range(20, 41))

    def test_proxy_that_names_nobody(self):
        weir = self.start(Weir(self.place, self.php, ROUTES, redis=self.redis, name="proxied",
                               weir="trusted_proxies = 10.0.0.0/24"))
        for more in ({}, {"HTTP_X_FORWARDED_FOR": "unknown"},
                     {"HTTP_X_FORWARDED_FOR": "192.0.2.1"}):
            fcgi.ask(weir.socket, fcgi.usual_params("/x%00y", REMOTE_ADDR="10.0.0.1", **more))
            fcgi.ask(weir.socket, fcgi.usual_params(
                "/index.php", REMOTE_ADDR="10.0.0.1",
                SCRIPT_FILENAME=self.place.documents + "/index.php", **more))
        self.assertEqual(weir.metrics().get("weir_forwarded_missing_total"), 2)
        self.assertEqual(len(weir.log_lines("A trusted proxy named no client", "proxy=10.0.0.1")),
                         1)

    def test_store_latency_is_a_histogram(self):
        name = "weir_store_latency_seconds"
        for _ in range(20):
            self.ask("/index.php")
        metrics = self.weir.metrics()
        self.assertEqual(metrics.types[name], "histogram")
        self.assertEqual(metrics.get(name + "_count", store="redis"), 20)
        self.assertGreater(metrics.get(name + "_sum", store="redis"), 0)
        buckets = sorted((float(dict(labels)["le"]), labels) for known, labels in metrics.series()
                         if known == name + "_bucket" and dict(labels)["store"] == "redis")
        counts = [metrics.get(name + "_bucket", **dict(labels)) for _, labels in buckets]
        self.assertEqual(counts, sorted(counts))
        self.assertEqual((buckets[-1][0], counts[-1]), (float("inf"), 20))

    def test_breaker_and_what_it_does(self):
        self.ask("/index.php")
        self.assertEqual(self.weir.metrics().get("weir_breaker_open"), 0)
        self.redis.kill()
        wait_until(lambda: self.weir.metrics().get("weir_breaker_open") == 1, "the breaker opens")
        self.assertEqual([self.ask("/down").status, self.ask("/other").status], [503, 200])
        self.assertEqual([self.requests("down", "store_down"),
                          self.requests("default", "undecided")], [1, 1])
        metrics = self.weir.metrics()
        self.assertEqual(metrics.get("weir_breaker_opened_total"), 1)
        self.assertEqual(metrics.get("weir_store_failures_total", store="redis",
                                     reason="breaker"), 2)
        wait_until(lambda: self.weir.metrics().get("weir_breaker_probes_failed_total") > 0,
                   "a probe fails")
        self.assertEqual(self.weir.metrics().get("weir_breaker_closed_total"), 0)

    def test_every_family_has_a_type(self):
        metrics = self.weir.metrics()
        for name, _ in metrics.series():
            family = name
            for suffix in ("_bucket", "_sum", "_count"):
                if name.endswith(suffix) and metrics.types.get(name[:-len(suffix)]) == "histogram":
                    family = name[:-len(suffix)]
            self.assertIn(family, metrics.types)
            self.assertTrue(name.startswith("weir_"), name)

    def test_client_that_goes_away(self):
        with fcgi.Connection(self.weir.socket) as connection:
            connection.send(fcgi.request(fcgi.usual_params(
                "/sleep.php", self.place.documents, SLEEP_MS="3000")))
            wait_until(lambda: self.weir.metrics().get("weir_requests_in_flight") == 1,
                       "it is under way")
        wait_until(lambda: self.requests("default", "client_gone") == 1, "it is seen to be gone", 2)
        metrics = self.weir.metrics()
        self.assertEqual([metrics.get(name) for name in (
            "weir_requests_in_flight", "weir_connections", "weir_client_gone_total")], [0, 0, 1])
        self.assertEqual(metrics.get("weir_backend_in_flight", backend="php"), 0)

    def test_clients_add_no_series(self):
        """10,000 different paths from as many addresses, known and unknown routes, good and bad."""
        self.test_requests_by_route_and_outcome()
        before = self.weir.metrics().series()
        for path, options in (("/other", {"params": {"HTTP_X_API_KEY": "k"}}),
                              ("/three", {}), ("/absent", {}), ("/bad%", {})):
            phase, = self.run_load(Load(
                self.weir.socket, clients=16, requests=625, vary=10000, path=path, keep=True,
                script=self.place.documents + "/index.php", **options)).finish()
            self.say(f"{path}: {phase}")
            self.assertEqual((sum(phase.status.values()), phase.failed), (10000, {}))
        self.assertEqual(self.weir.metrics().series() - before, set())


if __name__ == "__main__":
    weirtest.main()
