<?php
// An application that tells limits of its own.
header("X-RateLimit-Limit: 999");
header("X-RateLimit-Remaining: 998");
header("RateLimit: \"own\";r=998;t=60");
echo "own\n";
