# Shared by all installations: attempts that are shown, and what to do between them.
log=$(mktemp)
attempt() {
  echo "+ $*"
  "$@" 2>&1 | tee "$log"
  return "${PIPESTATUS[0]}"
}
said() { grep -qE "$1" "$log"; }
note() { echo "astra: $*"; }
packages() {
  apt-get update -qq && apt-get install -y -qq --no-install-recommends "$@" >/dev/null
  local status=$?
  rm -rf /var/lib/apt/lists/* /var/cache/apt/archives/*.deb
  return $status
}
unreachable='ENOTFOUND|EAI_AGAIN|ETIMEDOUT|ECONNREFUSED|E404|ETARGET|EINTEGRITY|ENOSPC'
# An image is made when the test runner starts in it: pins of other times install, and then break.
starts() {
  "$@" >"$log" 2>&1 && return 0
  cat "$log"
  echo "error: $* does not start here: the versions that the project pins do not fit together on this system;" \
    "name an image that has them in the column image (or --image)"
  return 1
}
runners_start() {
  local name program
  for name in ${RUNNERS-}; do
    program=node_modules/.bin/${name/#@angular\/cli/ng}
    [ ! -e "$program" ] || NG_CLI_ANALYTICS=false starts "$program" --version </dev/null || return 1
  done
}
