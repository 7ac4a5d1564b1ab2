#!/bin/bash
[ "$(stat -c %U "/home/worker/$REPORT_NAME")" = "$OWNER" ] && [ "$(id -u)" = 0 ]
echo $((1 - $?)) >/logs/verifier/reward.txt
