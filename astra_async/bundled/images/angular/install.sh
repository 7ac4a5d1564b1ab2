#!/bin/bash
# Runs as root in /projects, where the files of this set lie, with the network on.
set -euo pipefail

npm ci --ignore-scripts --no-audit --no-fund --cache /tmp/npm-cache
rm -rf /tmp/npm-cache /root/.npm node_modules/.package-lock.json
rm -rf node_modules/esbuild-wasm # only a fallback for machines without the native one, which is here

# Jest's cache of transformed modules, where the projects' jest.config.js looks for it: made by the user of
# the runs, in the folder of the runs, with the configuration of the projects, all of which are in its keys.
mkdir challenge
cp -r warm/. challenge/
chown -R 1000:1000 challenge
cd challenge
setpriv --reuid=1000 --regid=1000 --clear-groups \
    env HOME=/tmp CI=true ../node_modules/.bin/jest --reporters=default
find . -mindepth 1 -maxdepth 1 ! -name node_modules -exec rm -rf {} +
rm -rf node_modules/.cache/jest/{haste-map,perf-cache}-*
cd ..

# Only the modules and the cache stay: Node.js finds them from /projects/challenge, whose own files arrive later.
rm -rf Dockerfile install.sh package.json package-lock.json warm
