# $REQUIREMENTS are files, $EXTRA further packages that the tests call.
constraints=/tmp/astra-install/constraints.txt
mkdir -p /tmp/astra-install
printf '%s\n' 'setuptools<66' 'cython<3' >"$constraints"
# Without a wheel for this Python these would be compiled for minutes, mostly in vain: a newer one is taken.
export PIP_ONLY_BINARY=numpy,pandas,scipy,matplotlib,scikit-learn,pillow,lxml,grpcio,tensorflow,torch,opencv-python,pyarrow,cryptography,cffi,psycopg2-binary,pydantic-core

pip_install() {
  local files=()
  for file in $REQUIREMENTS; do files+=(-r "$file"); done
  # shellcheck disable=SC2086 - the extra packages are words
  attempt pip install "${files[@]}" $EXTRA
}
one_by_one() {
  local line file
  for file in $REQUIREMENTS; do
    sed -e 's/\r$//' -e 's/[[:space:]]#.*$//' -e '/^[[:space:]]*\(#\|-\|$\)/d' "$file" | while IFS= read -r line; do
      pip install "$line" >"$log" 2>&1 && continue
      local name=${line%%[<>=!~;[:space:]]*}
      if PIP_CONSTRAINT= pip install "$name" >"$log" 2>&1; then
        note "$line cannot be installed on $(python --version 2>&1): took the newest $name instead"
      else
        cat "$log"
        return 1
      fi
    done || return 1
  done
}
pip_install || {
  if said 'No matching distribution|Could not find a version|ResolutionImpossible|conflicting dependencies'; then
    one_by_one || exit 1
  else
    packages build-essential python3-dev libpq-dev default-libmysqlclient-dev pkg-config || exit 1
    export PIP_CONSTRAINT=$constraints  # sdists of their time fail with the setuptools of today
    pip_install || one_by_one || exit 1
  fi
  unset PIP_CONSTRAINT
}
for module in $RUNNERS; do
  # What was pinned for an older Python installs on this one, and may not start.
  case $module in
    xmlrunner) starts python -c 'import xmlrunner' ;;
    *) starts python -m "$module" --version ;;
  esac || {
    echo "error: this is $(python --version 2>&1), the only one here; pins of their time want an older one (3.9 or before)"
    exit 1
  }
done
