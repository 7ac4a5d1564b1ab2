# Another Node.js than Debian's, from npm's own packages; $NODE and $NPM are versions.
case $(uname -m) in
  x86_64) platform=linux-x64 ;;
  aarch64 | arm64) platform=linux-arm64 ;;
  *) echo "npm has no Node.js for $(uname -m)" >&2 && exit 1 ;;
esac
mkdir -p /tmp/astra-install/node /opt/node/lib/node_modules
cd /tmp/astra-install/node || exit
npm install --no-save --ignore-scripts --no-package-lock "node-$platform@$NODE" "npm@$NPM" || exit 1
mv "node_modules/node-$platform/bin" "node_modules/node-$platform/include" /opt/node/ || exit 1
mv node_modules/npm /opt/node/lib/node_modules/ || exit 1
ln -s ../lib/node_modules/npm/bin/npm-cli.js /opt/node/bin/npm
ln -s ../lib/node_modules/npm/bin/npx-cli.js /opt/node/bin/npx
# 50 MB of headers for machines that this is not.
find /opt/node/include/node/openssl/archs -mindepth 1 -maxdepth 1 ! -name 'linux-x86_64' ! -name 'linux-aarch64' \
  -exec rm -rf {} + 2>/dev/null
/opt/node/bin/node --version && PATH=/opt/node/bin:$PATH npm --version || exit 1
