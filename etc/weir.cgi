#!/bin/sh
# weir as a CGI program, for hosts without FastCGI: the web server starts it for each request.
#
# It is slow beside a weir that stays (some milliseconds for each request), and counts the same: in
# the memory of the host that all weirs with this file share, or in Redis. What it logs goes to the
# web server's error log. `listen` and `metrics` of the .ini file are ignored.
#
#     install -m 755 weir.cgi /usr/local/lib/weir.cgi
#
# lighttpd: see lighttpd-weir-cgi.conf. Apache, for all below /app/ (mod_cgi or mod_cgid):
#
#     ScriptAlias "/app/" "/usr/local/lib/weir.cgi/"
#
# Nothing of a client's reaches the command line; leave "$@" out.

exec /usr/bin/weir serve --config /etc/weir/cgi.ini
