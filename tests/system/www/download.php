<?php
// As many MiB as asked for. Each begins with its number, so that none can be lost or swapped unseen.
$count = (int)$_GET["mib"];
$rest = str_repeat("0123456789abcdef", 65536 - 1);
header("Content-Type: application/octet-stream");
header("Content-Length: " . $count * 1048576);
for ($i = 0; $i < $count; $i++)
	echo sprintf("%016d", $i), $rest;
