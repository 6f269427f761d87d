#!/usr/bin/python3 -B
"""So many requests at a time: their places are given back in whatever way they end."""

import threading
import time

import weirtest
from weirtest import Case, Lighttpd, Nginx, PhpFpm, Redis, Weir, fcgi, wait_until
from weirtest.client import connect

PLACES = 4
SLOW_MS = 1500

CONCURRENT = f"""\
[limit slow]
policy = concurrent {PLACES} lease {{lease}}

[route slow]
match = /sleep.php
limit = slow

[route default]
match = *
"""

DOWNLOADS = """\
[limit downloads]
policy = concurrent 1

[route downloads]
script = /download.php
limit = downloads

[route default]
match = *
"""


class ConcurrentTests:
    with_redis = False
    needs = ("nginx",)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.php = cls.start_for_class(PhpFpm(cls.place, children=6 * PLACES))

    def setUp(self):
        redis = self.start(Redis(self.place)) if self.with_redis else None
        self.redis = redis
        self.weir = self.start(Weir(self.place, self.php, CONCURRENT.format(lease="10m"),
                                    redis=redis, name="weir-" + self._testMethodName))

    def leases(self):
        return self.weir.metrics().get("weir_leases")

    def ask_at_once(self, ask, count):
        """The statuses of so many requests that are under way together."""
        statuses = []
        threads = [threading.Thread(target=lambda: statuses.append(ask())) for _ in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sorted(statuses)

    def params(self, ms):
        return fcgi.usual_params("/sleep.php", self.place.documents, SLEEP_MS=str(ms))

    def occupy(self, ms=8000):
        """Takes all places; returns the connections."""
        connections = []
        for _ in range(PLACES):
            connection = fcgi.Connection(self.weir.socket)
            self.addCleanup(connection.close)
            connection.send(fcgi.request(self.params(ms)))
            connections.append(connection)
        wait_until(lambda: self.leases() == PLACES, "all places are taken")
        return connections

    def ask(self, ms=0):
        return fcgi.ask(self.weir.socket, self.params(ms)).status

    def test_so_many_pass_and_the_rest_is_rejected(self):
        front = self.start(Nginx(self.place, self.weir.socket))
        for _ in range(2):
            seen = self.ask_at_once(lambda: front.ask(f"/sleep.php?ms={SLOW_MS}").status,
                                    3 * PLACES)
            self.assertEqual(seen, PLACES * [200] + 2 * PLACES * [429])
            wait_until(lambda: self.leases() == 0, "all places are given back")

    def test_whoever_goes_away_gives_his_place_back(self):
        connections = self.occupy()
        self.assertEqual(self.ask(), 429)
        for connection in connections:
            connection.close()
        wait_until(lambda: self.leases() == 0, "all places are given back", 2)
        self.assertEqual(self.ask_at_once(lambda: self.ask(SLOW_MS), 2 * PLACES),
                         PLACES * [200] + PLACES * [429])

    def test_whoever_leaves_nginx_gives_his_place_back(self):
        front = self.start(Nginx(self.place, self.weir.socket))
        peers = [connect(front.port) for _ in range(PLACES)]
        for peer in peers:
            self.addCleanup(peer.close)
            peer.sendall(b"GET /sleep.php?ms=8000 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        wait_until(lambda: self.leases() == PLACES, "all places are taken")
        self.assertEqual(front.ask("/sleep.php").status, 429)
        for peer in peers:
            peer.close()
        wait_until(lambda: front.ask("/sleep.php").status == 200, "a place is given back", 3)

    def test_leases_of_a_killed_weir_end_with_their_time(self):
        self.weir.configure(CONCURRENT.format(lease="3s"))
        self.weir.stop()
        self.weir.start()
        self.occupy()
        begun = time.monotonic()
        self.weir.kill()
        self.weir.start()
        self.assertEqual(self.ask(), 429)
        wait_until(lambda: self.ask() == 200, "the leases end", 6)
        spent = time.monotonic() - begun
        self.say(f"free again after {spent:.1f} s of 3")
        # They were prolonged for the last time when a third of a lease was over, or never.
        self.assertGreater(spent, 1.9)


class Downloads(Case):
    """What is counted is how long the application works. It is as long as the client takes only if
    the web server lets the application wait for the client."""

    needs = ("lighttpd",)
    MIB = 24

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        php = cls.start_for_class(PhpFpm(cls.place, children=4))
        cls.weir = cls.start_for_class(Weir(cls.place, php, DOWNLOADS))

    def begin(self, front):
        """A client that asks and reads nothing but the beginning."""
        peer = connect(front.port)
        self.addCleanup(peer.close)
        peer.sendall(f"GET /download.php?mib={self.MIB} HTTP/1.1\r\n"
                     "Host: localhost\r\n\r\n".encode())
        self.assertTrue(peer.recv(1024).startswith(b"HTTP/1.1 200 "))

    def leases(self):
        return self.weir.metrics().get("weir_leases")

    def test_stored_answers_free_the_place(self):
        front = self.start(Lighttpd(self.place, self.weir.socket, "stores", streams=1))
        self.begin(front)
        wait_until(lambda: self.leases() == 0, "the application has written all")
        self.assertEqual(front.ask("/download.php?mib=1").status, 200)

    def test_streamed_answers_keep_it(self):
        front = self.start(Lighttpd(self.place, self.weir.socket, "streams", streams=2))
        self.begin(front)
        wait_until(lambda: self.leases() == 1, "the place is taken")
        for _ in range(3):
            time.sleep(0.1)
            self.assertEqual(front.ask("/download.php?mib=1").status, 429)
        self.assertEqual(self.leases(), 1)


class OnMemory(ConcurrentTests, Case):
    pass


class OnRedis(ConcurrentTests, Case):
    with_redis = True
    RECOVERY_S = 2

    def stand_still(self):
        """Until weir asks it no more."""
        self.redis.pause()
        wait_until(lambda: self.ask() and self.weir.metrics().get("weir_breaker_open") == 1,
                   "the breaker opens")

    def wait_free(self):
        began = time.monotonic()
        wait_until(lambda: self.redis.call("KEYS", "weir:slow:*") == [], "all places are free",
                   self.RECOVERY_S)
        self.say(f"free {time.monotonic() - began:.2f} s after Redis was back")
        self.assertEqual(self.weir.metrics().get("weir_leases_left_total"), 0)

    def test_places_of_whoever_leaves_in_an_outage_are_free_after_it(self):
        connections = self.occupy()
        self.stand_still()
        for connection in connections:
            connection.close()
        wait_until(lambda: self.leases() == 0, "all have ended")
        time.sleep(0.5)
        self.redis.go_on()
        self.wait_free()
        self.assertEqual(self.ask_at_once(lambda: self.ask(SLOW_MS), 2 * PLACES),
                         PLACES * [200] + PLACES * [429])

    def test_weir_that_stops_in_an_outage_gives_back_when_it_is_over(self):
        connections = self.occupy()
        self.stand_still()
        for connection in connections:
            connection.close()
        wait_until(lambda: self.leases() == 0, "all have ended")
        stopping = threading.Thread(target=self.weir.stop)
        stopping.start()
        time.sleep(0.3)
        self.redis.go_on()
        stopping.join()
        self.assertEqual(self.redis.call("KEYS", "weir:slow:*"), [])
        self.assertEqual(self.weir.log_lines("could not be given back"), [])


if __name__ == "__main__":
    weirtest.main()
