#!/bin/bash
setsid bash -c 'while :; do printf "%(%s)T" -1 >/run/clock/now; sleep 0.1; done' >/dev/null 2>&1 </dev/null &
sleep 0.5
