<?php
error_log("a line for the error log");
echo "logged\n";
