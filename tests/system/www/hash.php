<?php
// What of the body arrived here.
$in = fopen("php://input", "rb");
$hash = hash_init("sha256");
$length = hash_update_stream($hash, $in);
header("Content-Type: application/json");
echo json_encode(["length" => $length, "sha256" => hash_final($hash)]), "\n";
