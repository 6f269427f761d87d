#!/usr/bin/python3 -B
"""Backends that are full or stuck, those whose connections are kept, and those of two servers."""

import contextlib
import os
import socket
import time

import weirtest
from weirtest import Case, Load, PhpFpm, Uwsgi, Weir, attempts, fcgi, uwsgi, wait_until
from weirtest.client import connect
from weirtest.process import free_port

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


SEVERAL = """\
[backend app]
type = {type}
server = {one}
server = {two}

[route default]
match = *
"""

SET_ASIDE_S = 1


class ServerTests:
    """Two real servers of a backend: they share the requests, and each is enough."""

    type = None

    def make_server(self, name, port):
        raise NotImplementedError

    def ask(self, weir, sleep_ms=0, count=1):
        """So many requests at a time: how many each server has answered."""
        params = fcgi.usual_params("/sleep.php", self.place.documents, SLEEP_MS=str(sleep_ms))
        with contextlib.ExitStack() as stack:
            peers = [stack.enter_context(fcgi.Connection(weir.socket)) for _ in range(count)]
            for peer in peers:
                peer.send(fcgi.request(params))
            replies = [peer.reply() for peer in peers]
        self.assertEqual({(reply.status, reply.is_whole) for reply in replies}, {(200, True)})
        seen = [reply.stdout.split(b"X-Server: ")[1].split(b"\r\n")[0].decode()
                for reply in replies]
        return {name: seen.count(name) for name in seen}

    @staticmethod
    def refuses(server):
        try:
            connect(server.socket).close()
        except ConnectionRefusedError:
            return True
        return False

    def check(self, port_one, port_two):
        one, two = (self.start(self.make_server(f"{name}-{self._testMethodName[5:]}", port))
                    for name, port in (("one", port_one), ("two", port_two)))
        weir = self.start(Weir(self.place, None, SEVERAL.format(
            type=self.type, one=one.address, two=two.address),
            name="weir-" + self._testMethodName[5:]))
        self.assertEqual(self.ask(weir, 300, 6), {one.name: 3, two.name: 3})
        one.kill()
        # A child may outlive its master for a moment, and what it has taken ends with it.
        wait_until(lambda: self.refuses(one), "nobody is there any more")
        died = time.monotonic()
        for _ in range(5):
            self.assertEqual(self.ask(weir), {two.name: 1})
        self.assertEqual(self.ask(weir, 100, 6), {two.name: 6})
        self.assert_logged(weir, 1, "cannot be connected to", "server=" + one.address)
        one.start()
        # Not before its time has passed, though it could be.
        wait_until(lambda: self.ask(weir) == {one.name: 1}, "it is asked again")
        self.assertGreaterEqual(time.monotonic() - died, SET_ASIDE_S)
        self.assertEqual(self.ask(weir, 300, 6), {one.name: 3, two.name: 3})
        self.assert_logged(weir, 1, "can be connected to again", "server=" + one.address)
        self.assertEqual(weir.metrics().total("weir_backend_failures_total"), 0)

    def test_unix_sockets_share_and_stand_in(self):
        self.check(None, None)

    def test_tcp_ports_share_and_stand_in(self):
        self.check(free_port(), free_port())

    def test_a_unix_socket_and_a_port_share_and_stand_in(self):
        self.check(None, free_port())


class SeveralPhpFpm(ServerTests, Case):
    type = "fastcgi"

    def make_server(self, name, port):
        prepend = self.place.write(name + ".php", f'<?php header("X-Server: {name}");')
        return PhpFpm(self.place, name, prepend=prepend, port=port)


class SeveralUwsgi(ServerTests, Case):
    type = "scgi"
    needs = (uwsgi.PROGRAM,)

    def make_server(self, name, port):
        return Uwsgi(self.place, name, port)


if __name__ == "__main__":
    weirtest.main(alone=True)
