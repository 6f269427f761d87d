<?php
// A first half, a pause, a second half.
header("Content-Type: text/plain");
echo "first half\n";
ob_flush();
flush();
usleep(1000 * (int)($_GET["ms"] ?? $_SERVER["SLEEP_MS"] ?? 0));
echo "second half\n";
