<?php
echo "admitted\n";
