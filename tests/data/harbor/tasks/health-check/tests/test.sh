#!/bin/bash
if cmp /app/ready /app/copy; then echo 1; else echo 0; fi >/logs/verifier/reward.txt
