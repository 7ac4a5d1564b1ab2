#!/bin/bash
cmp /app/ready /app/copy
echo $((1 - $?)) >/logs/verifier/reward.txt
