#!/bin/bash
tests=() failed=0 number=0
for name in one two three; do
  number=$((number + 1))
  if [ "$(cat "/app/$name" 2>/dev/null)" = "$number" ]; then status=passed; else status=failed failed=1; fi
  tests+=("{\"name\": \"$name\", \"status\": \"$status\", \"duration\": 1}")
done
(IFS=,; echo "{\"results\": {\"tool\": {\"name\": \"sh\"}, \"tests\": [${tests[*]}]}}") >/logs/verifier/ctrf.json
echo $((1 - failed)) >/logs/verifier/reward.txt
