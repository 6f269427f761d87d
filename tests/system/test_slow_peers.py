#!/usr/bin/python3 -B
"""Peers that are slow, stand still or never finish: they cost themselves time, and nobody else."""

import contextlib
import os
import time

import weirtest
from weirtest import Case, Load, PhpFpm, Weir, attempts, fcgi, wait_until

ROUTES = """\
[limit wide]
policy = 1000000/1s

[route default]
match = *
limit = wide
"""

HALF_HEADS = 1000
MIB = 1024 * 1024


class SlowPeers(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.php = cls.start_for_class(PhpFpm(cls.place))

    def start_weir(self, weir="head_timeout = 60s"):
        return self.start(Weir(self.place, self.php, ROUTES, weir=weir,
                               name="weir-" + self._testMethodName))

    def renew(self):
        self.doCleanups()

    def load(self, weir, **options):
        return self.run_load(Load(weir.socket, marks=True, path="/index.php", seconds=60, rate=300,
                                  script=self.place.documents + "/index.php", **options))

    def connections(self, weir, count):
        """That many connections, closed with the test."""
        stack = contextlib.ExitStack()
        self.addCleanup(stack.close)
        return [stack.enter_context(fcgi.Connection(weir.socket)) for _ in range(count)]

    def memory_kib(self, weir):
        with open(f"/proc/{weir.pid}/status", encoding="ascii") as file:
            return int(next(line for line in file if line.startswith("VmRSS:")).split()[1])

    @attempts(3)
    def test_half_heads_delay_nobody(self):
        weir = self.start_weir()
        load = self.load(weir)
        load.go_on(1)
        load.mark("without")
        load.go_on(3)
        load.mark("connecting")
        head = fcgi.begin() + fcgi.record(fcgi.PARAMS, fcgi.pairs(fcgi.usual_params()))
        for peer in self.connections(weir, HALF_HEADS):
            peer.send(head[:len(head) // 2])
        wait_until(lambda: weir.metrics().get("weir_connections") >= HALF_HEADS,
                   "all of them are there")
        load.mark("with")
        load.go_on(3)
        _, without, connecting, having = load.end()
        for phase in (without, connecting, having):
            self.say(str(phase))
            self.assertEqual((set(phase.status), phase.failed), ({200}, {}))
        self.assertGreaterEqual(weir.metrics().get("weir_connections"), HALF_HEADS)
        self.assert_fast(having.p50, 2 * without.p50 + 1000, "the median with half heads")
        self.assert_fast(having.p99, 3 * without.p99 + 10000, "p99 with half heads")

    def test_half_heads_are_given_up(self):
        weir = self.start_weir("head_timeout = 300ms")
        peers = self.connections(weir, 50)
        for number, peer in enumerate(peers):
            # Nothing at all, a part of a record, a request without the end of its head.
            peer.send((b"", b"\1", fcgi.begin())[number % 3])
        for peer in peers:
            self.assertEqual(peer.reply().stdout, b"")
        metrics = weir.metrics()
        self.assertEqual(metrics.get("weir_head_timeouts_total"), 50)
        self.assertEqual(metrics.get("weir_connections"), 0)

    def test_kept_connections_may_be_idle(self):
        weir = self.start_weir("head_timeout = 200ms")
        peer, other = self.connections(weir, 2)
        params = fcgi.usual_params("/index.php", self.place.documents)
        self.assertEqual(peer.ask(params, keep=True).status, 200)
        other.send(fcgi.begin())
        self.assertEqual(other.reply().stdout, b"")     # twice as long has passed for the first
        self.assertEqual(peer.ask(params, keep=True).status, 200)

    def test_body_that_stops_is_answered(self):
        weir = self.start_weir("body_timeout = 300ms")
        peer, = self.connections(weir, 1)
        params = fcgi.usual_params("/hash.php", self.place.documents, REQUEST_METHOD="POST",
                                   CONTENT_LENGTH="100000", CONTENT_TYPE="text/plain")
        request = fcgi.request(params, body=bytes(100000))
        peer.send(request[:50000])
        reply = peer.reply()
        self.assertEqual((reply.status, reply.is_whole), (408, True))
        self.assertEqual(weir.metrics().get("weir_body_timeouts_total"), 1)
        wait_until(lambda: weir.metrics().get("weir_backend_in_flight", backend="php") == 0,
                   "php-fpm is let go")

    def test_slow_readers_take_no_memory(self):
        """What a client does not read, the application waits with."""
        weir = self.start_weir()
        before = self.memory_kib(weir)
        params = fcgi.usual_params("/download.php", self.place.documents, QUERY_STRING="mib=50")
        peers = self.connections(weir, 6)
        for peer in peers:
            peer.send(fcgi.request(params))
        load = self.load(weir)
        load.go_on(2)
        phase, = load.end()
        self.say(str(phase))
        self.assertEqual((set(phase.status), phase.failed), ({200}, {}))
        self.assertEqual(weir.metrics().get("weir_requests_in_flight"), 6)
        grown = self.memory_kib(weir) - before
        self.assert_small(grown, 32 * 1024, "grown by 6 downloads of 50 MiB that nobody reads")
        for peer in peers[:2]:
            reply = peer.reply()
            self.assertEqual((len(reply.body), reply.is_whole), (50 * MIB, True))

    def test_slow_writers_take_no_memory(self):
        """Uploads that the application does not read are not stored."""
        weir = self.start_weir()
        before = self.memory_kib(weir)
        params = fcgi.usual_params("/sleep.php", self.place.documents, REQUEST_METHOD="POST",
                                   CONTENT_LENGTH=str(40 * MIB), CONTENT_TYPE="text/plain",
                                   SLEEP_MS="1500")
        head = fcgi.request(params)[:-8]
        peers = self.connections(weir, 4)
        block = memoryview(fcgi.record(fcgi.STDIN, bytes(65528)) * 20)
        for peer in peers:
            peer.send(head)
            peer.peer.setblocking(False)
        # As much as anyone takes within a second.
        taken, until = 0, time.monotonic() + 1
        offsets = [0] * len(peers)
        while time.monotonic() < until:
            for number, peer in enumerate(peers):
                try:
                    sent = peer.peer.send(block[offsets[number]:])
                except BlockingIOError:
                    continue
                offsets[number] = (offsets[number] + sent) % len(block)
                taken += sent
        grown = self.memory_kib(weir) - before
        self.assert_small(grown, 32 * 1024, f"grown by {taken / MIB:.1f} MiB that were taken")

    def test_body_byte_by_byte(self):
        weir = self.start_weir()
        peer, = self.connections(weir, 1)
        params = fcgi.usual_params("/hash.php", self.place.documents, REQUEST_METHOD="POST",
                                   CONTENT_LENGTH="200", CONTENT_TYPE="text/plain")
        for at in fcgi.request(params, body=os.urandom(200)):
            peer.send(bytes([at]))
        self.assertIn(b'"length":200', peer.reply().body)

    def test_peers_that_never_close(self):
        """A web server that keeps its end open after a request without KEEP_CONN holds a
        descriptor, and nothing else."""
        weir = self.start_weir()
        peers = self.connections(weir, 200)
        params = fcgi.usual_params("/index.php", self.place.documents)
        for peer in peers:
            self.assertEqual(peer.ask(params).status, 200)
        load = self.load(weir)
        load.go_on(1)
        phase, = load.end()
        self.say(str(phase))
        self.assertEqual((set(phase.status), phase.failed), ({200}, {}))
        wait_until(lambda: weir.metrics().get("weir_connections") == 0, "they are closed", 10)


if __name__ == "__main__":
    weirtest.main(alone=True)
