"""The temporary directory of a test class: programs, configurations, sockets, logs, documents."""

import os
import pwd
import shutil
import stat
import tempfile

SOURCE = os.environ.get("TOP_SRCDIR") or os.path.abspath(
    os.path.join(os.path.dirname(__file__), "..", "..", ".."))
# By hand, the tests are run from the build directory.
BUILD = os.environ.get("TOP_BUILDDIR") or os.getcwd()
WEIR = os.environ.get("WEIR") or os.path.join(BUILD, "weir")

LOG_TAIL = 60
SANITIZER_WORDS = (b"ERROR: AddressSanitizer", b"runtime error:", b"ERROR: LeakSanitizer",
                   b"WARNING: ThreadSanitizer")


def is_sanitized():
    """Whether weir was built with a sanitizer: it is then several times slower."""
    with open(WEIR, "rb") as program:
        return b"__asan_" in (bytes_ := program.read()) or b"__tsan_" in bytes_


def worker_user():
    """Root's servers work as www-data, as on a real host; those of others as who runs the test."""
    return "www-data" if os.geteuid() == 0 else None


def _everyone_can_enter(path):
    while path != "/":
        if not os.stat(path).st_mode & stat.S_IXOTH:
            return False
        path = os.path.dirname(path)
    return True


def _base():
    base = os.path.realpath(tempfile.gettempdir())
    # A socket's path has 107 bytes.
    return base if len(base) < 40 and _everyone_can_enter(base) else "/tmp"


class Place:
    def __init__(self):
        self.path = tempfile.mkdtemp(prefix="weir-sys-", dir=_base())
        os.chmod(self.path, 0o755)
        for name in ("bin", "conf", "log", "notes", "run", "tmp"):
            os.mkdir(self.sub(name))
            os.chmod(self.sub(name), 0o755)
        if worker_user() is not None:
            user = pwd.getpwnam(worker_user())
            for name in ("log", "notes", "run", "tmp"):
                os.chown(self.sub(name), user.pw_uid, user.pw_gid)
        # The source and build directories may be closed to www-data.
        self.documents = shutil.copytree(os.path.join(SOURCE, "tests", "system", "www"),
                                         self.sub("www"), copy_function=self._copy)
        os.chmod(self.documents, 0o755)
        self.weir = self._copy(WEIR, self.sub("bin", "weir"))
        os.chmod(self.weir, 0o755)

    @staticmethod
    def _copy(source, target):
        shutil.copyfile(source, target)
        os.chmod(target, 0o644)
        return target

    def sub(self, *names):
        return os.path.join(self.path, *names)

    def link_documents(self, name):
        """Makes the documents known below /NAME/ too, until the test ends."""
        os.symlink(".", os.path.join(self.documents, name))

    def unlink_documents(self, name):
        os.unlink(os.path.join(self.documents, name))

    def socket(self, name):
        return self.sub("run", name + ".sock")

    def log(self, name):
        return self.sub("log", name + ".log")

    def write(self, name, text):
        """A configuration file; returns its path. It appears at once or not at all."""
        path = self.sub("conf", name)
        with open(path + ".new", "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path + ".new", 0o644)
        os.rename(path + ".new", path)
        return path

    def read_log(self, name):
        try:
            with open(self.log(name), "r", encoding="utf-8", errors="replace") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def forget_log(self, name):
        os.unlink(self.log(name))

    @staticmethod
    def remove(path):
        os.unlink(path)

    def logs(self):
        return sorted(os.listdir(self.sub("log")))

    def print_logs(self, out):
        for name in self.logs():
            with open(self.sub("log", name), "r", encoding="utf-8", errors="replace") as file:
                lines = file.read().splitlines()
            if lines:
                print(f"---- {name}, the last of {len(lines)} lines ----", file=out)
            for line in lines[-LOG_TAIL:]:
                print("    " + line[:400], file=out)

    def complaints(self):
        """What sanitizers have written to any log: "NAME: LINE"."""
        found = []
        for name in self.logs():
            with open(self.sub("log", name), "rb") as file:
                found += [f"{name}: {line.decode(errors='replace')}"
                          for line in file.read().splitlines()
                          if any(word in line for word in SANITIZER_WORDS)]
        return found

    def close(self):
        shutil.rmtree(self.path)
