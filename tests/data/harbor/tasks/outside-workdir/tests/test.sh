#!/bin/bash
grep -qx maintenance /etc/motd && [ -e /var/lib/maintenance/since ]
echo $((1 - $?)) >/logs/verifier/reward.txt
