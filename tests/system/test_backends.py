#!/usr/bin/python3 -B
"""Backends that are full or stuck, and those whose connections are kept."""

import contextlib
import os
import socket

import weirtest
from weirtest import Case, Load, PhpFpm, Weir, attempts, fcgi, wait_until

PLACES = 20

STUCK = """\
[limit once]
identity = all
policy = 1/1d

[backend]
max_in_flight = {places}
server = unix:{one}

[backend one]

[backend two]
server = unix:{two}

[route limited]
match = /limited
limit = once
backend = two

[route one]
match = /one
backend = one

[route two]
match = *
backend = two
"""


class Stuck(Case):
    """Applications that take connections and never answer."""

    def start_weir(self, **options):
        self.one, self.two = self.listening("one"), self.listening("two")
        return self.start(Weir(self.place, None, STUCK.format(
            places=PLACES, one=self.one, two=self.two), name="weir-" + self._testMethodName[5:20],
            **options))

    def listening(self, name):
        path = self.place.socket(f"{name}-{self._testMethodName[5:20]}")
        peer = socket.socket(socket.AF_UNIX)
        self.addCleanup(peer.close)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        peer.bind(path)
        os.chmod(path, 0o666)
        peer.listen(PLACES + 1)
        return path

    def renew(self):
        self.doCleanups()

    def fill(self, weir, path, count):
        """So many requests that are not answered while the test lasts."""
        stack = contextlib.ExitStack()
        self.addCleanup(stack.close)
        for _ in range(count):
            peer = stack.enter_context(fcgi.Connection(weir.socket))
            peer.send(fcgi.request(fcgi.usual_params(path)))

    def wait_in_flight(self, weir, count):
        wait_until(lambda: weir.metrics().get("weir_requests_in_flight") == count,
                   f"{count} requests are in flight")

    def assert_busy(self, weir, path):
        reply = fcgi.ask(weir.socket, fcgi.usual_params(path))
        self.assertEqual(reply.status, 503)
        self.assertIn(b"Retry-After: 1\r\n", reply.stdout)

    @attempts(3)
    def test_rejections_come_as_fast_as_before(self):
        weir = self.start_weir()
        self.fill(weir, "/limited", 1)
        self.wait_in_flight(weir, 1)
        load = self.run_load(Load(weir.socket, marks=True, path="/limited", seconds=60, rate=300))
        load.go_on(0.5)
        load.mark("idle")
        load.go_on(1.5)
        load.mark("filling")
        self.fill(weir, "/two", PLACES - 1)
        self.fill(weir, "/one", PLACES)
        self.wait_in_flight(weir, 2 * PLACES)
        load.mark("stuck")
        load.go_on(1.5)
        for path in ("/one", "/two"):
            self.assert_busy(weir, path)
        phases = load.end()
        for phase in phases[1:]:
            self.say(str(phase))
            self.assertEqual((set(phase.status), phase.failed), ({429}, {}))
        _, idle, _, stuck = phases[:4]
        self.assert_fast(stuck.p99, 3 * idle.p99 + 2000, "p99 while every backend is stuck")
        # Nobody has been let go meanwhile.
        self.wait_in_flight(weir, 2 * PLACES)

    def test_a_full_backend_leaves_the_others_their_places(self):
        weir = self.start_weir()
        self.fill(weir, "/one", PLACES)
        self.wait_in_flight(weir, PLACES)
        self.assert_busy(weir, "/one")
        self.fill(weir, "/two", 1)
        self.wait_in_flight(weir, PLACES + 1)
        metrics = weir.metrics()
        self.assertEqual(metrics.get("weir_backend_in_flight", backend="one"), PLACES)
        self.assertEqual(metrics.get("weir_backend_failures_total", backend="one", reason="busy"),
                         1)

    def test_what_is_beyond_max_in_flight_of_all_is_busy_and_places_come_back(self):
        weir = self.start_weir(weir="max_in_flight = 5")
        with contextlib.ExitStack() as stack:
            for number in range(5):
                peer = stack.enter_context(fcgi.Connection(weir.socket))
                peer.send(fcgi.request(fcgi.usual_params(("/one", "/two")[number % 2])))
            self.wait_in_flight(weir, 5)
            for path in ("/one", "/two"):
                self.assert_busy(weir, path)
        self.wait_in_flight(weir, 0)
        self.fill(weir, "/one", 1)
        self.wait_in_flight(weir, 1)


KEPT = """\
[backend]
keep_idle = {keep_idle}

[route default]
match = *
"""

KEPT_S = 3      # for so long a kept connection waits for the next request


class Kept(Case):
    """php-fpm serves a kept connection with a child of its own."""

    def test_requests_do_not_wait_for_children_that_kept_connections_hold(self):
        php = self.start(PhpFpm(self.place, name="php-kept", children=2))
        weir = self.start(Weir(self.place, php, KEPT.format(keep_idle=2), name="weir-kept"))
        load = self.run_load(Load(weir.socket, clients=8, requests=50, path="/index.php",
                                  keep=True, script=self.place.documents + "/index.php"))
        phase = load.finish()[-1]
        self.say(str(phase))
        self.assertEqual((set(phase.status), phase.failed), ({200}, {}))
        self.assertLess(phase.max, KEPT_S * 1000000)


if __name__ == "__main__":
    weirtest.main(alone=True)
