#!/usr/bin/python3 -B
"""SIGTERM: weir takes nothing new, what is under way ends whole within `drain`, and what does not
is cut so that the web server sees it."""

import os
import signal
import threading
import time

import weirtest
from weirtest import Case, LighttpdSpawn, Load, Nginx, PhpFpm, Weir, fcgi, wait_until

ROUTES = "[route default]\nmatch = *\n"
DRAIN_S = 2


class InBackground(threading.Thread):
    """A call whose result is wanted later."""

    def __init__(self, call):
        super().__init__()
        self._call = call
        self.result = None
        self.start()

    def run(self):
        self.result = self._call()

    def get(self):
        self.join()
        return self.result


class DrainTests(Case):
    needs = ("nginx", "lighttpd")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.php = cls.start_for_class(PhpFpm(cls.place, children=24))

    def setUp(self):
        self.weir = self.start(Weir(self.place, self.php, ROUTES, weir=f"drain = {DRAIN_S}s",
                                    name="weir-" + self._testMethodName))

    def sleep(self, milliseconds, **how):
        params = fcgi.usual_params("/sleep.php", self.place.documents, SLEEP_MS=str(milliseconds))
        return InBackground(lambda: fcgi.ask(self.weir.socket, params, **how))

    def wait_in_flight(self, count):
        wait_until(lambda: self.weir.metrics().get("weir_requests_in_flight") == count,
                   f"{count} requests are under way")

    def assert_ended(self, cut, least=0, most=DRAIN_S + 1):
        """It has ended, with 0, so many requests cut, so many seconds after now."""
        began = time.monotonic()
        self.assertEqual(self.weir.wait(10), 0)
        spent = time.monotonic() - began
        self.say(f"ended after {spent:.2f} s")
        self.assertEqual(len(self.weir.log_lines("Stopped.", f"requests_cut={cut}")), 1)
        self.assertGreaterEqual(spent, least)
        self.assertLess(spent, most)

    # ---- what ends in time ----

    def test_requests_under_way_end_whole(self):
        slow = [self.sleep(1000, keep=number % 2 == 1) for number in range(8)]
        self.wait_in_flight(8)
        self.weir.signal(signal.SIGTERM)
        for request in slow:
            reply = request.get()
            self.assertEqual((reply.status, reply.body, reply.app_status),
                             (200, b"first half\nsecond half\n", 0))
        self.assert_ended(0)

    def test_requests_through_nginx_end_whole(self):
        front = self.start(Nginx(self.place, self.weir.socket))
        slow = [InBackground(lambda: front.ask("/sleep.php?ms=1000")) for _ in range(4)]
        self.wait_in_flight(4)
        self.weir.signal(signal.SIGTERM)
        for request in slow:
            answer = request.get()
            self.assertEqual((answer.status, answer.text, answer.is_whole),
                             (200, "first half\nsecond half\n", True))
        self.assert_ended(0)

    def test_under_load(self):
        """Whatever was begun is answered whole; the rest finds nobody."""
        for keep in (False, True):
            with self.subTest(keep=keep):
                load = self.run_load(Load(self.weir.socket, rate=300, seconds=20, marks=True,
                                          keep=keep, path="/sleep.php",
                                          params={"SLEEP_MS": "20"},
                                          script=self.place.documents + "/sleep.php"))
                load.go_on(1)
                load.mark("stopping")
                self.weir.signal(signal.SIGTERM)
                self.assert_ended(0)
                before, stopping = load.end()
                self.say(str(before))
                self.say(str(stopping))
                # A connection that weir has not yet taken from the backlog ends as one to nobody.
                for phase in (before, stopping):
                    self.assertLessEqual(set(phase.status), {200})
                    self.assertEqual((phase.failed.get("cut"), phase.failed.get("timeout")),
                                     (None, None))
                self.assertEqual(before.failed.get("connect"), None)
                self.place.forget_log(self.weir.name)
                self.weir.start()

    def test_download_ends_whole(self):
        params = fcgi.usual_params("/download.php", self.place.documents, QUERY_STRING="mib=20")
        with fcgi.Connection(self.weir.socket) as connection:
            connection.send(fcgi.request(params))
            self.wait_in_flight(1)
            self.weir.signal(signal.SIGTERM)
            reply = connection.reply()
        self.assertTrue(reply.is_whole)
        self.assertEqual(len(reply.body), 20 * 1024 * 1024)
        self.assert_ended(0)

    def test_upload_ends_whole(self):
        body = os.urandom(1024 * 1024)
        params = fcgi.usual_params("/hash.php", self.place.documents, REQUEST_METHOD="POST",
                                   CONTENT_LENGTH=str(len(body)), CONTENT_TYPE="text/plain")
        request = fcgi.request(params, body=body)
        with fcgi.Connection(self.weir.socket) as connection:
            connection.send(request[:len(request) // 2])
            self.wait_in_flight(1)
            self.weir.signal(signal.SIGTERM)
            wait_until(lambda: self.weir.log_lines("Stopping"), "it is stopping")
            connection.send(request[len(request) // 2:])
            reply = connection.reply()
        self.assertTrue(reply.is_whole)
        self.assertIn(b'"length":1048576', reply.body)
        self.assert_ended(0)

    # ---- what does not ----

    def test_longer_than_drain_is_cut_visibly_and_counted(self):
        slow = self.sleep(DRAIN_S * 1000 + 3000)
        quick = self.sleep(500)
        self.wait_in_flight(2)
        self.weir.signal(signal.SIGTERM)
        self.assert_ended(1, least=DRAIN_S - 0.5)
        self.assertTrue(quick.get().is_whole)
        reply = slow.get()
        self.assertFalse(reply.is_whole)
        self.assertNotIn(b"second half", reply.stdout)

    def test_cut_is_seen_through_nginx(self):
        front = self.start(Nginx(self.place, self.weir.socket))
        slow = InBackground(lambda: front.ask(f"/sleep.php?ms={DRAIN_S * 1000 + 3000}"))
        self.wait_in_flight(1)
        self.weir.signal(signal.SIGTERM)
        self.assert_ended(1)
        answer = slow.get()
        self.assertEqual((answer.status, answer.is_whole), (200, False), answer)

    def test_new_connections_are_refused_at_once(self):
        """Nobody will ever serve them: a web server that is left waiting for the end of the drain
        could have said so at once, or have asked another."""
        slow = self.sleep(1500)
        self.wait_in_flight(1)
        self.weir.signal(signal.SIGTERM)

        def is_refused():
            try:
                fcgi.Connection(self.weir.socket).close()
            except (ConnectionRefusedError, FileNotFoundError):
                return True
            return False

        wait_until(is_refused, "connections are refused", 0.7)
        self.assertTrue(slow.get().is_whole)
        self.assert_ended(0)

    def test_half_a_head_may_become_a_request(self):
        request = fcgi.request(fcgi.usual_params("/index.php", self.place.documents))
        with fcgi.Connection(self.weir.socket) as connection:
            connection.send(request[:20])
            wait_until(lambda: self.weir.metrics().get("weir_connections") == 1, "it is connected")
            self.weir.signal(signal.SIGTERM)
            wait_until(lambda: self.weir.log_lines("Stopping"), "it is stopping")
            connection.send(request[20:])
            self.assertEqual(connection.reply().status, 200)
        self.assert_ended(0, most=DRAIN_S / 2)

    def test_half_a_head_is_not_waited_for(self):
        request = fcgi.request(fcgi.usual_params("/index.php", self.place.documents))
        with fcgi.Connection(self.weir.socket) as new, fcgi.Connection(self.weir.socket) as kept:
            kept.ask(fcgi.usual_params("/index.php", self.place.documents), keep=True)
            new.send(request[:40])
            kept.send(request[:10])
            wait_until(lambda: self.weir.metrics().get("weir_connections") == 2, "it has come")
            self.weir.signal(signal.SIGTERM)
            self.assert_ended(0, least=0.7, most=DRAIN_S - 0.3)

    # ---- the process ----

    def test_idle_ends_at_once(self):
        """Kept connections without a request are no reason to wait."""
        with fcgi.Connection(self.weir.socket) as kept:
            reply = kept.ask(fcgi.usual_params("/index.php", self.place.documents), keep=True)
            self.assertEqual(reply.status, 200)
            self.weir.signal(signal.SIGTERM)
            self.assert_ended(0, most=DRAIN_S / 2)
            self.assertFalse(os.path.exists(self.weir.socket))
            self.assertFalse(os.path.exists(self.weir.metrics_socket))

    def test_signals(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
            with self.subTest(signal=number.name):
                slow = self.sleep(700)
                self.wait_in_flight(1)
                # mod_fcgid says it twice, and a terminal to everyone.
                self.weir.signal(number)
                self.weir.signal(signal.SIGTERM)
                self.assertTrue(slow.get().is_whole)
                self.assertEqual(self.weir.wait(5), 0)
                self.assertEqual(len(self.weir.log_lines("Stopping", f"signal={number.value}")), 1)
                self.place.forget_log(self.weir.name)
                self.weir.start()

    def test_health_says_that_it_stops(self):
        slow = self.sleep(1500)
        self.wait_in_flight(1)
        self.weir.signal(signal.SIGTERM)
        wait_until(lambda: self.weir.health().status == 503, "/healthz tells", 2)
        self.assertTrue(slow.get().is_whole)
        self.assert_ended(0)

    def test_spawned_processes_end_with_lighttpd(self):
        weir = Weir(self.place, self.php, ROUTES, spawned=True, name="spawned")
        front = self.start(LighttpdSpawn(self.place, weir))
        self.assertEqual(front.ask("/index.php").status, 200)
        # Who is told to stop before it serves has nothing to drain, and says nothing.
        wait_until(lambda: self.place.read_log(front.name).count("Serving.") == 4, "all serve")
        # Front.stop waits until none is left.
        self.assertEqual(len(front.weirs()), 4)
        front.stop()
        self.assertEqual(self.place.read_log(front.name).count("Stopped. requests_cut=0"), 4)


if __name__ == "__main__":
    weirtest.main()
