"""php-fpm with a fixed number of children."""

import glob

from weirtest import fcgi
from weirtest.process import Server
from weirtest.place import worker_user

CONFIG = """\
[global]
error_log = {log}
daemonize = no

[www]
{user}
listen = {listen}
listen.mode = 0666
listen.backlog = 1024
pm = static
pm.max_children = {children}
ping.path = /ping
php_admin_value[memory_limit] = 256M
php_admin_value[post_max_size] = 64M
php_admin_value[upload_tmp_dir] = {tmp}
php_admin_value[sys_temp_dir] = {tmp}
php_admin_value[output_buffering] = 4096
php_admin_flag[log_errors] = on
"""


def program():
    """Debian's has its version in its name."""
    return (sorted(glob.glob("/usr/sbin/php-fpm*")) + ["php-fpm"])[0]


class PhpFpm(Server):
    def __init__(self, place, name="php", children=8, prepend=None, port=None):
        """`prepend`: a script that runs before each. `port`: of TCP on this host, in the place of a
        unix socket."""
        super().__init__(place, name)
        self.socket = place.socket(name) if port is None else port
        self.address = f"unix:{self.socket}" if port is None else f"tcp:127.0.0.1:{port}"
        self.documents = place.documents
        user = worker_user()
        self.config = place.write(name + ".conf", CONFIG.format(
            log=place.log(name), listen=self.address.partition(":")[2], children=children,
            tmp=place.sub("tmp"),
            user="" if user is None else f"user = {user}\ngroup = {user}")
            + ("" if prepend is None else f"php_admin_value[auto_prepend_file] = {prepend}\n"))

    def command(self):
        return [program(), "--nodaemonize", "--fpm-config", self.config]

    def is_ready(self):
        params = fcgi.usual_params("/ping", SCRIPT_FILENAME="/ping")
        return fcgi.ask(self.socket, params).body == b"pong"
