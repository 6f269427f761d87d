<?php
// In conf/ as local.protected.php.
$conf['savedir'] = '/var/lib/dokuwiki/data';
$conf['title'] = 'Weir tests';
$conf['useacl'] = 0;
$conf['basedir'] = '/dokuwiki/';
