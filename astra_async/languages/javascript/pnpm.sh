cd "$FOLDER" || exit
if [ -d /opt/node/include/node ]; then export npm_config_nodedir=/opt/node; else export npm_config_nodedir=/usr; fi

# Each pnpm reads the lock files of its own time.
[ -n "$VERSION" ] && version=$VERSION || case $(sed -n "s/^lockfileVersion: *['\"]*\([0-9]*\).*/\1/p" pnpm-lock.yaml | head -n 1) in
  5) version=7 ;;
  6) version=8 ;;
  *) version=9 ;;
esac
npm install --global "pnpm@$version" >/dev/null || { echo "error: pnpm $version cannot be installed"; exit 1; }
pnpm config set store-dir /tmp/astra-install/pnpm
# Copies, since links into a store that is removed afterwards would be left hanging.
attempt pnpm install --frozen-lockfile --package-import-method copy --config.confirmModulesPurge=false ||
  attempt pnpm install --no-frozen-lockfile --package-import-method copy || exit 1
runners_start || exit 1
