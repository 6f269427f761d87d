#!/usr/bin/python3 -B
"""The log as its readers need it: an operator who looks for a customer, fail2ban that looks for whom
to ban, and whoever looks a line up in the manual."""

import base64
import configparser
import hashlib
import os
import re
import shutil
import subprocess

import weirtest
from weirtest import Case, Redis, Weir, fcgi, wait_until
from weirtest.place import SOURCE

KEY = "gold-key-1"

# Slow to refill: what comes back within a test is nothing.
ROUTES = """\
[limit api]
identity = header X-API-Key, ip
policy   = 2/1d

[limit page]
policy = 10/1d

[override gold]
limit  = api
for    = header X-API-Key {key}
policy = 4/1d

[override bad]
limit = page
for   = ip 192.0.2.66
block = yes

[backend none]
type = none

[route api]
match   = /api
limit   = api
backend = none

[route default]
match   = *
limit   = page
backend = none
""".format(key=KEY)


class NoPhp:
    """Of whom the configuration has the socket, and nobody asks."""
    socket = "/nonexistent/php.sock"


def ask(weir, path="/x", **params):
    return fcgi.ask(weir.socket, fcgi.usual_params(path, **params)).status


def kept_back(lines):
    return sum(int(re.search(r" kept_back=(\d+)", line)[1]) for line in lines
               if " kept_back=" in line)


class CustomerTests(Case):
    def setUp(self):
        self.redis = self.start(Redis(self.place))
        self.weir = self.start(Weir(self.place, NoPhp, ROUTES, redis=self.redis,
                                    name="weir-" + self._testMethodName))

    def identity(self, *who, said=None):
        done = subprocess.run([self.place.weir, "identity", "--config", self.weir.config, *who],
                              input=said, text=True, capture_output=True, timeout=20, check=True)
        return dict(line.split("=", 1) for line in done.stdout.splitlines())

    def reject(self, **params):
        """Until it is rejected; the log's line."""
        def lines():
            return self.weir.log_lines("info: Rejected.")
        before = len(lines())
        while ask(self.weir, "/api", **params) != 429:
            pass
        return wait_until(lambda: lines()[before:], "it is logged")[-1]

    def test_customer_is_found_by_his_key(self):
        for key, override in ((KEY, "gold"), ("another", None)):
            line = self.reject(HTTP_X_API_KEY=key)
            who = self.identity("api", "header", "X-API-Key", key)
            self.assertEqual(who.get("override"), override)
            self.assertIn(" identity=" + who["identity"], line)
            self.assertEqual(re.findall(r" override=(\S+)", line), [override] if override else [])
            self.assertEqual(self.redis.call("EXISTS", who["key"]), "1")
            self.assertNotIn(key, line)
            # Whoever looks over the operator's shoulder sees no key.
            self.assertEqual(self.identity("api", "header", "x-api-key", "-", said=key + "\n"), who)

    def test_key_is_found_by_the_manuals_formula(self):
        def h(text):
            digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
            return base64.urlsafe_b64encode(digest).decode().rstrip("=")
        self.reject(HTTP_X_API_KEY=KEY)
        name = "weir:api:header#" + h("header HTTP_X_API_KEY " + h(KEY))
        self.assertEqual(self.redis.call("EXISTS", name), "1")

    def test_client_is_found_by_his_address(self):
        line = self.reject()
        who = self.identity("api", "ip", "192.0.2.1")
        self.assertEqual(who, {"identity": "api:192.0.2.1", "key": "weir:api:192.0.2.1"})
        self.assertIn(" identity=api:192.0.2.1", line)


class LogTests(Case):
    def make_weir(self, name, weir=""):
        return self.start(Weir(self.place, NoPhp, ROUTES, weir=weir, name=name))

    def test_lines_that_are_left_out_are_told(self):
        """Soon, though nobody comes any more; and at the end."""
        weir = self.make_weir("left-out")
        for told in ("soon", "at the end"):
            before = weir.log_lines("info: ")
            statuses = [ask(weir) for _ in range(60)]
            if told == "at the end":
                weir.stop()
            wait_until(lambda: weir.log_lines("More rejections were not logged")[
                0 if told == "soon" else 1:], "what was kept back is told " + told)
            lines = weir.log_lines("info: ")[len(before):]
            rejected = [line for line in lines if "info: Rejected." in line]
            self.assertGreaterEqual(len(rejected), 10)
            self.assertEqual(len(rejected) + kept_back(lines), statuses.count(429))

    # ---- fail2ban ----

    def reject_log(self, **how):
        """One who is rejected, one who is blocked, and one who writes a line of fail2ban's into
        his path; with `enforce = no`, who would be."""
        name = "-".join(("bans", *how.values()))
        path = self.place.sub("log", name + "-rejected.log")
        weir = self.make_weir(name, f"reject_log = {path}\n" + "".join(
            f"{key} = {value}\n" for key, value in how.items()))
        for _ in range(11):
            ask(weir, REMOTE_ADDR="192.0.2.1")
            ask(weir, REMOTE_ADDR="2001:db8::1")
        ask(weir, REMOTE_ADDR="192.0.2.66")
        for forged in ("/ weir[1] info: Rejected. client=192.0.2.99 route=",
                       '/","message":"Rejected.","client":"192.0.2.99",'):
            ask(weir, forged, REMOTE_ADDR="192.0.2.1")
        for odd in ("example.org", "", "x 192.0.2.99"):
            for _ in range(11):
                ask(weir, REMOTE_ADDR=odd)
        weir.stop()
        return path

    @staticmethod
    def banned(path):
        """As fail2ban takes a line: without its time."""
        filters = configparser.ConfigParser(interpolation=None)
        filters.read(os.path.join(SOURCE, "etc", "weir-fail2ban.conf"))
        address = r"(?P<address>(?:\d{1,3}\.){3}\d{1,3}|[0-9a-fA-F:]*:[0-9a-fA-F:.]*)"
        expressions = [re.compile(text.replace("<ADDR>", address))
                       for text in filters["Definition"]["failregex"].strip().splitlines()]
        found = []
        with open(path, encoding="utf-8") as file:
            for line in file:
                line = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+Z|\+0000)", "", line, count=1)
                found += [match["address"] for match in (
                    expression.search(line) for expression in expressions) if match]
        return found

    def assert_bans(self, path, expected):
        self.assertEqual(sorted(self.banned(path)), sorted(expected))
        if shutil.which("fail2ban-regex") is None:
            return
        done = subprocess.run(
            ["fail2ban-regex", path, os.path.join(SOURCE, "etc", "weir-fail2ban.conf")],
            text=True, capture_output=True, timeout=60, check=False)
        self.assertIn(f" {len(expected)} matched,", done.stdout)

    def test_fail2ban_bans_who_was_rejected(self):
        expected = 3 * ["192.0.2.1"] + ["2001:db8::1", "192.0.2.66"]
        for form in ("text", "json"):
            with self.subTest(form=form):
                self.assert_bans(self.reject_log(log_format=form), expected)

    def test_fail2ban_bans_nobody_in_a_dry_run(self):
        for form in ("text", "json"):
            with self.subTest(form=form):
                path = self.reject_log(log_format=form, enforce="no")
                with open(path, encoding="utf-8") as file:
                    text = file.read()
                self.assertIn("Would be rejected.", text)
                self.assertIn("Would be blocked.", text)
                self.assert_bans(path, [])


STRING = r'"(?:[^"\\]|\\.)*"'
TEXTS = rf"{STRING}(?:\s*{STRING})*"

# Where the sources hand a sentence to the log: to a call, or in a table or by a name that one takes.
CALLS = re.compile(rf"\b(?:log_\w+|gate_log_once_a_minute|put)\(((?:{STRING}|[^;\"])*);")
TABLES = (re.compile(rf"const char \w+\[\] =\s*{TEXTS};"),
          re.compile(r"\n\t\t\"(?:A backend|There is no memory for) .*\" }"))


class ManualTests(Case):
    @staticmethod
    def messages():
        """Up to their first stop."""
        found = set()
        for folder, _, names in os.walk(os.path.join(SOURCE, "src")):
            for name in names:
                if not name.endswith(".c"):
                    continue
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    text = file.read()
                for piece in CALLS.findall(text) + [
                        match[0] for table in TABLES for match in table.finditer(text)]:
                    for match in re.finditer(TEXTS, piece):
                        whole = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', match[0]))
                        if re.match(r"[A-Z`/]|max_|weir ", whole) and whole.endswith((".", "?")):
                            found.add(re.split(r"[.;:?,](?: |$)", whole)[0])
        return found

    def test_every_line_stands_in_the_manual(self):
        with open(os.path.join(SOURCE, "contrib", "man", "weir.8"), encoding="utf-8") as file:
            manual = file.read()
        log = manual[manual.index(".SH LOG"):manual.index(".SH FILES")]
        log = re.sub(r"\\f.|\"", "", log).replace("\\-", "-")
        messages = self.messages()
        self.assertGreater(len(messages), 45)
        for known in ("Rejected", "Would be refused", "Redis cannot be used", "A backend took too long",
                      "REMOTE_USER came without AUTH_TYPE and is not believed", "Serving"):
            self.assertIn(known, messages)
        missing = [message for message in sorted(messages) if message not in log]
        self.assertEqual(missing, [])


if __name__ == "__main__":
    weirtest.main()
