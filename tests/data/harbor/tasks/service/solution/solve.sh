#!/bin/bash
setsid bash -c '
  cd /run/clock
  while :; do printf "%(%s)T" -1 >new && mv new now; sleep 0.1; done
' >/dev/null 2>&1 </dev/null &
sleep 0.5
