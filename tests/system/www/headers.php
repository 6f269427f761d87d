<?php
// Three large fields out, and the length of the one that came in.
foreach (["A", "B", "C"] as $name)
	header("X-Large-$name: " . str_repeat($name, 3500));
echo strlen($_SERVER["HTTP_X_LARGE"] ?? ""), "\n";
