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
