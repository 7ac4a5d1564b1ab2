cd "$FOLDER" || exit
if [ -d /opt/node/include/node ]; then export npm_config_nodedir=/opt/node; else export npm_config_nodedir=/usr; fi
export YARN_CACHE_FOLDER=/tmp/astra-install/yarn

# Yarn 2 and later come from npm too, under another name: what `corepack` would fetch from elsewhere.
berry() {
  npm install --global "@yarnpkg/cli-dist@$1" >/dev/null || { echo "error: yarn $1 cannot be installed"; exit 1; }
  # The project's copy of yarn is none of its dependency files, and its plugins are for who develops it.
  [ ! -f .yarnrc.yml ] || sed -i -e '/^yarnPath:/d' -e '/^plugins:/,/^[^[:space:]-]/{/^plugins:/d;/^[[:space:]-]/d}' .yarnrc.yml
  # Real modules instead of an archive, and below node_modules nothing that links elsewhere.
  export YARN_NODE_LINKER=node-modules YARN_NM_MODE=classic YARN_ENABLE_TELEMETRY=0 YARN_ENABLE_GLOBAL_CACHE=0
  export YARN_ENABLE_SCRIPTS=1
  if [ -n "${SSL_CERT_FILE-}" ]; then
    case $1 in [23]*) export YARN_CA_FILE_PATH=$SSL_CERT_FILE ;; *) export YARN_HTTPS_CA_FILE_PATH=$SSL_CERT_FILE ;; esac
  fi
  registry=$(npm config get registry)
  case $registry in http*) export YARN_NPM_REGISTRY_SERVER=${registry%/} ;; esac
  case $registry in http:*) export YARN_UNSAFE_HTTP_WHITELIST='*' ;; esac
  # During tests it would ask for a lock file and a state of its own: npm runs the scripts (see skip-installs).
  touch /opt/offline/yarn-berry
  attempt yarn install --immutable || YARN_ENABLE_IMMUTABLE_INSTALLS=0 attempt yarn install || exit 1
}
case $VERSION in
  [2-9]*) berry "$VERSION" ;;
  *)
    if [ -n "$LOCK" ] && metadata=$(sed -n '/^__metadata:/,/^$/s/^ *version: *\([0-9]*\).*/\1/p' "$LOCK") && [ -n "$metadata" ]; then
      # Each yarn writes a lock of its own version.
      case $metadata in 4) berry 2.4.3 ;; 5 | 6) berry 3.8.7 ;; *) berry 4 ;; esac
    else
      npm install --global "yarn@${VERSION:-1.22.22}" >/dev/null || exit 1
      attempt yarn install --frozen-lockfile --ignore-engines --non-interactive ||
        attempt yarn install --ignore-engines --non-interactive || exit 1
    fi
    ;;
esac
rm -rf .yarn/cache .yarn/install-state.gz .yarn/unplugged
runners_start || exit 1
