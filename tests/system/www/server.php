<?php
header("Content-Type: application/json");
echo json_encode($_SERVER, JSON_INVALID_UTF8_SUBSTITUTE), "\n";
