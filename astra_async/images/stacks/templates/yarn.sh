cd "$FOLDER" || exit
if [ -d /opt/node/include/node ]; then export npm_config_nodedir=/opt/node; else export npm_config_nodedir=/usr; fi
export YARN_CACHE_FOLDER=/tmp/astra-install/yarn

if grep -q '^__metadata:' "$LOCK"; then
  # The lock of yarn 2 or later: the project carries that yarn or names it; real modules instead of its archive.
  npm install --global corepack >/dev/null && corepack enable || exit 1
  export COREPACK_ENABLE_DOWNLOAD_PROMPT=0 YARN_NODE_LINKER=node-modules YARN_ENABLE_TELEMETRY=0
  attempt yarn install --immutable || attempt yarn install || exit 1
else
  npm install --global yarn@1.22.22 >/dev/null || exit 1
  attempt yarn install --frozen-lockfile --ignore-engines --non-interactive ||
    attempt yarn install --ignore-engines --non-interactive || exit 1
fi
