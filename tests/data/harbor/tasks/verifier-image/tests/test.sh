#!/bin/bash
if cmp -s /app/out/snapshot /expected && [ ! -e /app/state ]; then echo 1; else echo 0; fi >/logs/verifier/reward.txt
