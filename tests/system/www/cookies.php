<?php
header("Set-Cookie: first=1; Path=/");
header("Set-Cookie: second=2; Path=/", false);
echo "cookies\n";
