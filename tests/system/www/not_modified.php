<?php
header('ETag: "one"');
if (($_SERVER["HTTP_IF_NONE_MATCH"] ?? "") === '"one"') {
	http_response_code(304);
	exit;
}
echo "modified\n";
