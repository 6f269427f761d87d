#!/usr/bin/python3 -B
"""A path has many spellings, and web servers name the same script in different ways. Whatever they
say, weir starts the program that is meant, and no spelling escapes its limit."""

import os

import weirtest
from weirtest import ApacheProxy, Case, Lighttpd, Nginx, Weir

ROUTES = """\
[backend programs]
type = cgi
root = {documents}

[limit one]
policy = 1/1d

[route script]
script = /by_script.php
limit = one

[route path]
match = /by_path.php
limit = one

[route default]
match = *
"""

PROGRAM = """\
#!/bin/sh
printf 'Content-Type: text/plain\\r\\n\\r\\n'
printf '%s' "${SCRIPT_FILENAME#$DOCUMENT_ROOT}|$SCRIPT_NAME|$PATH_INFO|$QUERY_STRING"
"""

# What is asked for, and what the program is told.
SPELLINGS = (
    ("/p.php", "/p.php|/p.php||"),
    ("/p.php?a=%20/x", "/p.php|/p.php||a=%20/x"),
    ("//p.php", "/p.php|/p.php||"),
    ("/x/../p.php", "/p.php|/p.php||"),
    ("/./p.php", "/p.php|/p.php||"),
    ("/%70.php", "/p.php|/p.php||"),
    ("/p%2ephp", "/p.php|/p.php||"),
    ("/p.php/a%20b/c", "/p.php|/p.php|/a b/c|"),
    ("/p.php/%2561", "/p.php|/p.php|/%61|"),
    ("/a%20b.php", "/a b.php|/a b.php||"),
    ("/%2570.php", "/%70.php|/%70.php||"),
)


class PathTests:
    needs = ()

    def make_front(self):
        raise NotImplementedError

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for name in ("p", "a b", "%70", "by_script", "by_path"):
            path = os.path.join(cls.place.documents, name + ".php")
            with open(path, "w", encoding="ascii") as file:
                file.write(PROGRAM)
            os.chmod(path, 0o755)
        cls.weir = cls.start_for_class(Weir(
            cls.place, None, ROUTES.format(documents=cls.place.documents)))

    def test_program_is_the_one_that_is_meant(self):
        front = self.start(self.make_front())
        for path, told in SPELLINGS:
            with self.subTest(path=path):
                answer = front.ask(path)
                self.assertEqual((answer.status, answer.text), (200, told))

    def test_no_spelling_escapes(self):
        front = self.start(self.make_front())
        for name in ("by_script", "by_path"):
            self.assertIn(front.ask(f"/{name}.php").status, (200, 429))
            for path, _ in SPELLINGS[:8]:
                path = path.replace("/p.php", f"/{name}.php").replace(
                    "/%70.php", f"/%{ord(name[0]):x}{name[1:]}.php").replace(
                    "/p%2ephp", f"/{name}%2ephp")
                self.assertEqual((path, front.ask(path).status), (path, 429))


class BehindNginx(PathTests, Case):
    needs = ("nginx",)

    def make_front(self):
        return Nginx(self.place, self.weir.socket, self._testMethodName)


class BehindLighttpd(PathTests, Case):
    needs = ("lighttpd",)

    def make_front(self):
        return Lighttpd(self.place, self.weir.socket, self._testMethodName)


class BehindApache(PathTests, Case):
    needs = ("apache2",)

    def make_front(self):
        return ApacheProxy(self.place, self.weir.socket, self._testMethodName)


if __name__ == "__main__":
    weirtest.main()
