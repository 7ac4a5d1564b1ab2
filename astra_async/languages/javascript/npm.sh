cd "$FOLDER" || exit
# Native modules find the headers of this very Node.js without a download.
if [ -d /opt/node/include/node ]; then export npm_config_nodedir=/opt/node; else export npm_config_nodedir=/usr; fi

npm_install() {
  if [ -n "$LOCK" ]; then
    attempt npm ci && return 0
    said "$unreachable" && return 1
    said 'ERESOLVE|peer' && attempt npm ci --legacy-peer-deps && return 0
  fi
  attempt npm install && return 0
  said "$unreachable" && return 1
  attempt npm install --legacy-peer-deps
}
npm_install || {
  said 'gyp ERR|make: not found|not find any Python' || exit 1
  note 'a native module needs a compiler'
  packages build-essential python3 python-is-python3 && npm_install || exit 1
}
runners_start || exit 1
