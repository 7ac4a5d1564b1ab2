#!/bin/bash
[ "$(cat /app/early)" = early ]
echo $((1 - $?)) >/logs/verifier/reward.txt
