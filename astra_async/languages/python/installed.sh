# The top-level modules that can be imported, but for those that are loaded before the path holds the project's
# folders: they cannot be replaced from there.
for python in python3 python; do
  command -v $python >/dev/null && $python - >astra-installed/python <<'PYTHON' && break
import sys
loaded = {name.partition(".")[0] for name in sys.modules}
import os, pkgutil
here = {"", os.getcwd()}
names = {each.name for each in pkgutil.iter_modules([each for each in sys.path if each not in here])}
names |= set(sys.builtin_module_names)
print("\n".join(sorted(names - (loaded - {"sitecustomize", "usercustomize"}))))
PYTHON
done
