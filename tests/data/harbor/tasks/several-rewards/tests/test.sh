#!/bin/bash
text=$(cat /app/greeting.txt 2>/dev/null)
case $text in [A-Z]*) capital=1 ;; *) capital=0 ;; esac
case $text in *.) stop=1 ;; *) stop=0 ;; esac
echo "{\"reward\": $((capital * stop)), \"capital\": $capital, \"full_stop\": $stop}" >/logs/verifier/reward.json
echo 0.5 >/logs/verifier/reward.txt
