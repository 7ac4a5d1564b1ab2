# The names of all packages that a project finds: those of folders above it, and of NODE_PATH.
if command -v node >/dev/null; then
  roots=$(find / -maxdepth 4 '(' -path /proc -o -path /usr -o -path /opt/node ')' -prune -o \
    -type d -name node_modules -print -prune 2>/dev/null)
  for root in $roots ${NODE_PATH//:/ }; do
    (cd "$root" 2>/dev/null && ls -d -- * @*/* 2>/dev/null)
  done | sort -u >astra-installed/javascript
fi
