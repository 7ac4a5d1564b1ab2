#!/bin/bash
before=$(cat /run/clock/now)
sleep 2.5
after=$(cat /run/clock/now)
if [ "$after" -gt "$before" ]; then echo 1; else echo 0; fi >/logs/verifier/reward.txt
