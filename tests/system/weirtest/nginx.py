"""nginx with etc/nginx-weir*.conf."""

import re
import shutil

from weirtest.front import Front, Snippet
from weirtest.place import worker_user

# What Debian's nginx.conf says around a site, with all files in the test's directory.
CONFIG = """\
{user}
daemon off;
pid {run}/{name}.pid;
error_log {log} info;
worker_processes 1;
worker_rlimit_nofile 8192;
events {{ worker_connections 4096; }}
http {{
	access_log off;
	keepalive_requests 1000000;
	client_body_temp_path {tmp}/{name}-body;
	fastcgi_temp_path {tmp}/{name}-fastcgi;
	proxy_temp_path {tmp}/{name}-proxy;
	uwsgi_temp_path {tmp}/{name}-uwsgi;
	scgi_temp_path {tmp}/{name}-scgi;
	include {site};
}}
"""


class _Nginx(Front):
    def _configure(self, snippet):
        place, user = self.place, worker_user()
        snippet.put("listen 80;", f"listen 127.0.0.1:{self.port};")
        snippet.put("/var/www/html", place.documents)
        return place.write(self.name + ".conf", CONFIG.format(
            user="" if user is None else f"user {user};", run=place.sub("run"), name=self.name,
            log=place.log(self.name), tmp=place.sub("tmp"),
            site=place.write(self.name + "-site.conf", snippet.text)))

    def command(self):
        return ["nginx", "-e", self.place.log(self.name), "-c", self.config]


class Nginx(_Nginx):
    def __init__(self, place, socket, name="nginx", keep=True, store_uploads=True, git=False):
        """`git`: with what stands in the file as a comment for a program below a path."""
        super().__init__(place, name)
        snippet = Snippet("nginx-weir.conf")
        if git:
            block = re.search(r"\t#location /git/ \{\n(\t#.*\n)+", snippet.text).group()
            snippet.put(block, block.replace("\t#", "\t"))
        snippet.put("unix:/run/weir/weir.sock", "unix:" + socket)
        if not keep:
            snippet.put("keepalive 32;", "")
            snippet.put("fastcgi_keep_conn on;", "fastcgi_keep_conn off;")
        if not store_uploads:
            snippet.put("client_max_body_size 64m;", "client_max_body_size 0;")
            snippet.put("#fastcgi_request_buffering off;", "fastcgi_request_buffering off;")
        shutil.copyfile("/etc/nginx/fastcgi_params", place.sub("conf", "fastcgi_params"))
        self.config = self._configure(snippet)


class NginxAuthRequest(_Nginx):
    """Asks, and serves by itself."""

    def __init__(self, place, socket, name="nginx"):
        super().__init__(place, name)
        self.config = self._configure(
            Snippet("nginx-weir-auth-request.conf").put("/run/weir/weir.sock", socket))
