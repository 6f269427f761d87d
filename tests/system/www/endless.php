<?php
// Writes until nobody listens any more, and leaves a note of it.
ignore_user_abort(true);
header("Content-Type: application/octet-stream");
$note = $_SERVER["DOCUMENT_ROOT"] . "/../notes/" . basename($_GET["note"]);
$block = str_repeat("x", 65536);
for ($until = microtime(true) + 20; microtime(true) < $until;) {
	echo $block;
	flush();
	if (connection_aborted()) {
		file_put_contents($note, "aborted");
		exit;
	}
}
file_put_contents($note, "went on to the end");
