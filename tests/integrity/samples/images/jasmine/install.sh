#!/bin/bash
# Runs as root in /projects, with the network on.
set -euo pipefail

npm install --no-save --ignore-scripts --no-audit --no-fund --cache /tmp/npm-cache \
    --prefix /tmp/jasmine jasmine@5.1.0 jasmine-reporters@2.5.2
cp -rn /tmp/jasmine/node_modules/. node_modules/
rm -rf /tmp/npm-cache /tmp/jasmine /root/.npm Dockerfile install.sh
