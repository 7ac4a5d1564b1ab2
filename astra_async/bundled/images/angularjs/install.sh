#!/bin/bash
# Runs as root in /projects, where the files of this set lie, with the network on.
set -euo pipefail

npm ci --ignore-scripts --no-audit --no-fund --cache /tmp/npm-cache
rm -rf /tmp/npm-cache /root/.npm node_modules/.package-lock.json

# Only the modules stay: Node.js finds them from /projects/challenge, whose own files arrive later.
rm -f Dockerfile install.sh package.json package-lock.json
