#!/usr/bin/python3 -B
"""SIGHUP: the configuration is read anew while requests go on. None is lost, what changed holds
from the next request on, and a file with an error changes nothing."""

import signal
import threading

import weirtest
from weirtest import Case, Load, Nginx, PhpFpm, Redis, Weir, fcgi, wait_until

ROUTES = """\
[limit some]
policy = {count}/1d

[route some]
match = /limited.php
limit = some

[route default]
match = *
"""


class ReloadTests:
    with_redis = False
    needs = ("nginx",)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.php = cls.start_for_class(PhpFpm(cls.place))

    def setUp(self):
        redis = self.start(Redis(self.place)) if self.with_redis else None
        self.weir = self.start(Weir(self.place, self.php, ROUTES.format(count=3), redis=redis,
                                    name="weir-" + self._testMethodName))

    def reloads(self, result):
        return self.weir.metrics().get("weir_reloads_total", result=result)

    def reload(self, result="done"):
        """Returns when it has been done, or refused."""
        before = self.reloads(result)
        self.weir.reload()
        wait_until(lambda: self.reloads(result) == before + 1, f"a reload is {result}")

    def ask(self, path):
        params = fcgi.usual_params(path, SCRIPT_FILENAME=self.place.documents + "/limited.php")
        return fcgi.ask(self.weir.socket, params).status

    def test_no_request_is_lost(self):
        front = self.start(Nginx(self.place, self.weir.socket))
        script = self.place.documents + "/index.php"
        loads = [self.run_load(Load(address, rate=200, seconds=60, marks=True, path="/index.php",
                                    **options))
                 for address, options in ((self.weir.socket, {"script": script}),
                                          (self.weir.socket, {"script": script, "keep": True}),
                                          (front.port, {}))]
        for number in range(20):
            self.weir.configure(ROUTES.format(count=1000 + number))
            self.reload()
            loads[0].go_on(0.1)
        for load in loads:
            phase, = load.end()
            self.say(str(phase))
            self.assertEqual((set(phase.status), phase.failed), ({200}, {}))
            self.assertEqual(phase.status[200], phase.started)
        self.assertEqual(self.reloads("refused"), 0)
        self.assert_logged(self.weir, 20, "The configuration was read anew.")

    def test_requests_under_way_end_whole(self):
        replies = []

        def slow():
            replies.append(fcgi.ask(self.weir.socket, fcgi.usual_params(
                "/sleep.php", self.place.documents, SLEEP_MS="1000")))

        threads = [threading.Thread(target=slow) for _ in range(4)]
        for thread in threads:
            thread.start()
        wait_until(lambda: self.weir.metrics().get("weir_requests_in_flight") == 4,
                   "four requests are under way")
        self.reload()
        self.reload()
        for thread in threads:
            thread.join()
        self.assertEqual([(reply.status, reply.body) for reply in replies],
                         4 * [(200, b"first half\nsecond half\n")])

    def test_changed_limit_holds_and_keeps_its_counts(self):
        self.assertEqual([self.ask("/limited.php") for _ in range(5)], [200, 200, 200, 429, 429])
        self.weir.configure(ROUTES.format(count=3))
        self.reload()
        self.assertEqual(self.ask("/limited.php"), 429)
        # The debt is carried over: what was spent of three is spent of ten.
        self.weir.configure(ROUTES.format(count=10))
        self.reload()
        seen = [self.ask("/limited.php") for _ in range(12)]
        self.say(f"after 3 of 3, of 10: {seen.count(200)}")
        self.assertLessEqual(seen.count(200), 7)
        self.assertEqual(seen, sorted(seen))

    def test_new_limit_and_route(self):
        self.assertEqual([self.ask("/other") for _ in range(3)], [200, 200, 200])
        self.weir.configure("[limit one]\npolicy = 1/1d\n[route other]\nmatch = /other\n"
                            "limit = one\n" + ROUTES.format(count=3))
        self.reload()
        self.assertEqual([self.ask("/other") for _ in range(3)], [200, 429, 429])
        self.assertEqual(self.weir.metrics().get("weir_requests_total", route="other",
                                                 outcome="rejected"), 2)

    def test_bad_file_changes_nothing(self):
        self.assertEqual([self.ask("/limited.php") for _ in range(4)], [200, 200, 200, 429])
        self.weir.configure("[limit some]\npolicy = many/1d\n[route some]\nmatch = /limited.php\n"
                            "limits = some\n[route default]\nmatch = *\n")
        self.reload("refused")
        self.assertEqual(self.reloads("done"), 0)
        self.assertEqual(self.ask("/limited.php"), 429)
        self.assertEqual(self.ask("/index.php"), 200)
        with open(self.weir.config, encoding="utf-8") as file:
            lines = file.read().splitlines()
        for text, key in (("policy = many/1d", "policy"), ("limits = some", "limits")):
            place = lines.index(text) + 1
            self.assert_logged(self.weir, 1, f"file={self.weir.config}", f"line={place} ", key)
        self.assert_logged(self.weir, 1, "the old one stays in use")
        # And it can be put right.
        self.weir.configure(ROUTES.format(count=1000))
        self.reload()
        self.assertEqual(self.ask("/limited.php"), 200)

    def test_file_that_is_gone(self):
        with open(self.weir.config, encoding="utf-8") as file:
            text = file.read()
        self.place.remove(self.weir.config)
        self.reload("refused")
        self.assertEqual(self.ask("/index.php"), 200)
        self.place.write(self.weir.name + ".ini", text)
        self.reload()

    def test_key_that_needs_a_restart_is_named(self):
        self.weir.configure(ROUTES.format(count=3), weir="threads = 2")
        self.reload()
        self.assert_logged(self.weir, 1, "only with a restart", "threads")
        self.assertEqual(self.ask("/index.php"), 200)

    def test_list_that_was_cut_keeps_who_is_blocked(self):
        def ask(user):
            params = fcgi.usual_params("/limited.php", self.place.documents, REMOTE_USER=user,
                                       AUTH_TYPE="Basic")
            return fcgi.ask(self.weir.socket, params).status

        blocked = self.place.write("blocked", "mallory\neve\n")
        self.weir.configure(f"[override out]\nlimit = some\nfor = user @{blocked}\nblock = yes\n"
                            + ROUTES.format(count=100))
        self.reload()
        cuts = ("", "\n", "mall", "mallory\nev")
        for cut in cuts:
            self.place.write("blocked", cut)
            self.reload("refused")
            self.assertEqual([ask("mallory"), ask("eve"), ask("bob")], [403, 403, 200])
        self.assert_logged(self.weir, len(cuts), "error:", f"file={blocked} ")
        self.place.write("blocked", "eve\n")
        self.reload()
        self.assertEqual([ask("mallory"), ask("eve")], [200, 403])
        self.assert_logged(self.weir, 1, f'changed="{blocked}: 2 -> 1 items"')
        self.place.write("blocked", "# nobody\n")
        self.reload()
        self.assertEqual(ask("eve"), 200)

    def test_many_at_once(self):
        """Signals that come together are one; none is lost for good."""
        for _ in range(50):
            self.weir.signal(signal.SIGHUP)
        self.weir.configure("[limit one]\npolicy = 1/1d\n[route other]\nmatch = /other\n"
                            "limit = one\n" + ROUTES.format(count=3))
        self.weir.reload()
        wait_until(lambda: [self.ask("/other") for _ in range(2)][-1] == 429, "the last one counts")


class OnMemory(ReloadTests, Case):
    pass


class OnRedis(ReloadTests, Case):
    with_redis = True


if __name__ == "__main__":
    weirtest.main()
