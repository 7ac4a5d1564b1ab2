#!/bin/bash
[ "$(cat /app/out/state)" = ready ] && [ ! -e /app/rest ] && [ ! -e /app/out/scratch.tmp ]
echo $((1 - $?)) >/logs/verifier/reward.txt
