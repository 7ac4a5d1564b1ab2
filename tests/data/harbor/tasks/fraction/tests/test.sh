#!/bin/bash
right=0
for number in 1 2 3 4; do
  [ "$(sed -n "${number}p" squares.txt)" = $((number * number)) ] && right=$((right + 1))
done 2>/dev/null
awk "BEGIN { print $right / 4 }" >/logs/verifier/reward.txt
