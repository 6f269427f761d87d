<?php
header("X-App: yes");
echo "hello ", $_SERVER["REQUEST_METHOD"], "\n";
