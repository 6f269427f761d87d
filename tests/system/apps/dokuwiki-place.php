<?php
// Runs before DokuWiki, by auto_prepend_file: its configuration, and with that its pages, may be
// elsewhere than the package has put them.
define('DOKU_CONF', '/etc/dokuwiki/');
