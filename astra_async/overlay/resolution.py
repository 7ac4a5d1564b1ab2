"""What a new file would be loaded in place of, by each language's own rules of looking up.

An answer may add whatever it likes as long as no import, require, autoload or class lookup that finds a
protected file or an installed module today would find the new file instead.

- Python: in one folder a package (`x/__init__.py`) comes before an extension module, that before `x.py`,
  that before a plain folder `x/`; and the folders of the path one after the other, those of the project
  before the interpreter's own. A plain folder never wins over a module.
- Node.js and what follows it (jest, vite, webpack, TypeScript): `./x` is the file of that very name, then
  `x` with one of the suffixes in an order that each tool has for itself, then the folder `x/`. A bare name
  is a package, unless a configuration makes folders of the project come first. jest puts `__mocks__/x` in
  place of the package `x`; vitest where a test asks for it.
- Ruby: `require` takes the first folder of the load path that has the feature, unless it is loaded already;
  Rails puts the folders below app/ into it when it starts, and loads constants from them in their order.
- Java: a class path has one class of a name, and a type of the same package comes before whatever an import
  with `*` and `java.lang` offer, but not before a type that is imported by its name.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from astra_async.overlay.installed import Installed, is_core
from astra_async.overlay.java_names import SUFFIXES as JAVA
from astra_async.overlay.java_names import JavaNames, java_names
from astra_async.overlay.paths import above, split
from astra_async.overlay.roots import Roots, roots_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from astra_async.overlay.tools import Tools

INSTALLED, PROTECTED = "shadows_module", "shadows_protected"
_JS = frozenset({"js", "mjs", "cjs", "jsx", "ts", "tsx", "mts", "cts"})
_AFTER_JSON = frozenset(
    {"mjs", "cjs", "jsx", "vue", "node", "svelte"}
)  # some tool looks for .json before these
_PLATFORMS = frozenset({"web", "native", "ios", "android"})
_HEAD = 20_000  # characters of a Java source, after whose comments its package stands
_COMPILED = re.compile(
    r"\.(?:class|jar|war|ear|pyc|pyo|pyd|so|dylib|dll|node|whl|egg|gem|phar|beam|nupkg)(?:\.\d+)*$|(?:^|/)__pycache__/"
)
_PYTHON_METADATA = re.compile(r"(?:^|/)[^/]+\.(?:egg-info|dist-info|egg|pth|egg-link)(?:/|$)")
_JVM_METADATA = re.compile(
    r"(?:^|/)meta-inf/(?:spring|maven/|.*\.sf$)|(?:^|/)mockito-extensions/", re.IGNORECASE
)
_JVM_SERVICE = re.compile(r"(?:^|/)META-INF/services/([^/]+)$", re.IGNORECASE)
_RUBY_TOOLS = re.compile(
    r"(?:minitest|rspec|test|capybara|rubygems|bundler|rexml|rspec_junit_formatter)(?:/|\Z)"
)
_ASSERTING = re.compile(r"Assert|Assum|Matcher|Mock|Test")  # no problem asks for a type of such a name
_LOADED_BEFORE_RAILS = frozenset({"spec_helper", "rails_helper", "test_helper"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookups:
    """The lookups of one project: its pristine files, those that are protected, and its roots."""

    texts: Mapping[str, str]
    folders: frozenset[str]
    protected: frozenset[str]
    roots: Roots
    uses_mocks: bool
    statement: frozenset[str]  # its words: types that are asked for
    java_packages: frozenset[str]
    java_sources: Mapping[str, JavaNames]  # of the protected ones
    installed: Installed = field(default_factory=Installed)
    suffixes: Mapping[tuple[str, str], frozenset[str]] = field(default_factory=dict)
    protected_folders: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls, texts: Mapping[str, str], protected: frozenset[str], tools: Tools, *, statement: str
    ) -> Lookups:
        """Those of a project with these files, of which some are protected."""
        suffixes: dict[tuple[str, str], set[str]] = {}
        for path in protected:
            folder, stem, suffix = split(path)
            suffixes.setdefault((folder, stem), set()).add(suffix)
        return cls(
            texts=texts,
            folders=frozenset(folder for path in texts for folder in above(path)),
            protected=protected,
            roots=roots_of(texts, tools),
            uses_mocks="jest" in tools or "vitest" in tools,
            statement=frozenset(re.findall(r"\w+", statement)),
            java_packages=frozenset(
                java_names(text[:_HEAD]).package for path, text in texts.items() if split(path)[2] in JAVA
            ),
            java_sources={path: java_names(texts[path]) for path in protected if split(path)[2] in JAVA},
            suffixes={place: frozenset(found) for place, found in suffixes.items()},
            protected_folders=frozenset(folder for path in protected for folder in above(path)),
        )

    def wins(self, path: str, text: str) -> str | None:
        """What a new file would be loaded in place of: INSTALLED, PROTECTED, another rule's name, or None."""
        if _COMPILED.search(path.lower()):
            return "compiled"
        if _PYTHON_METADATA.search(path.lower()) or _JVM_METADATA.search(path):
            return "plugin_registration"
        suffix = split(path)[2]
        return (
            self._service(path)
            or (self._python(path) if suffix in {"py", "pyi"} else None)
            or self._node(path)
            or (self._ruby(path) if suffix == "rb" else None)
            or (self.java(path, text) if suffix in JAVA else None)
        )

    # --- Python ---------------------------------------------------------------------------------------

    def _python(self, path: str) -> str | None:
        folder, stem, suffix = split(path)
        if suffix == "pyi":
            return None
        is_package = stem == "__init__"
        module = folder if is_package else posixpath.join(folder, stem)
        if is_package:
            # A package comes before the module of its name, and changes from where tests import.
            holds_tests = any(
                posixpath.dirname(each) == folder for each in self.protected if each.endswith(".py")
            )
            if f"{module}.py" in self.protected or holds_tests:
                return PROTECTED
        elif module in self.protected_folders and f"{module}/__init__.py" not in self.texts:
            return PROTECTED
        return self._python_root(path, module)

    def _python_root(self, path: str, module: str) -> str | None:
        for root in self.roots.python:
            rest = _below(path, root)
            if rest is None:
                continue
            first = rest.partition("/")[0].removesuffix(".py")
            top = posixpath.join(root, first)
            is_own = f"{top}.py" in self.texts or f"{top}/__init__.py" in self.texts
            if is_own or (top in self.folders and module != top):
                continue
            if self.installed.has_python(first):
                return INSTALLED
            others = [posixpath.join(other, first) for other in self.roots.python if other != root]
            # A module or package comes before plain folders of its name, wherever in the path those lie.
            found = {name for each in others for name in (f"{each}.py", f"{each}/__init__.py")}
            if module == top and (found & self.protected or self.protected_folders.intersection(others)):
                return PROTECTED
        return None

    # --- Node.js --------------------------------------------------------------------------------------

    def _node(self, path: str) -> str | None:
        folder, stem, suffix = split(path)
        name = f"{stem}.{suffix}" if suffix else stem
        if name.lower() == "package.json":
            return "build_configuration" if not folder or folder in self.protected_folders else None
        return self._node_beside(folder, stem, suffix) or self._node_bare(path) or self._mock(path)

    def _node_beside(self, folder: str, stem: str, suffix: str) -> str | None:
        """`./x` of a protected file, found in a new file of the same folder."""
        if suffix == "json":
            rivals = self.suffixes.get((folder, stem), frozenset()) & _AFTER_JSON
        elif suffix in _JS or not suffix:
            rivals = self.suffixes.get((folder, stem), frozenset()) & (_JS | _AFTER_JSON | {"json"})
            base, _, platform = stem.rpartition(".")
            if platform in _PLATFORMS:
                rivals |= self.suffixes.get((folder, base), frozenset()) & (_JS | {"json"})
            inner = posixpath.join(folder, stem)
            if any(each in self.protected for each in (f"{inner}/package.json", *_indexes(inner))):
                return PROTECTED
        else:
            return None
        return PROTECTED if rivals else None

    def _node_bare(self, path: str) -> str | None:
        """A bare name that a configuration makes the project's folders answer."""
        stem, _, suffix = path.rpartition(".") if "." in path.rpartition("/")[2] else (path, "", "")
        if suffix and suffix not in _JS | {"json", "node"}:
            return None
        for root in self.roots.node:
            rest = _below(stem, root)
            if rest is None:
                continue
            if self._is_package(rest.removesuffix("/index")):
                return INSTALLED
            others = (posixpath.join(other, rest) for other in self.roots.node if other != root)
            if any(split(f"{each}.js")[:2] in self.suffixes for each in others):
                return PROTECTED
        return None

    def _is_package(self, name: str) -> bool:
        """Whether a bare name is a package, or a part of one that a protected file asks for."""
        if is_core(name) or not self.installed.has_node(name):
            return False
        is_part = name.count("/") > name.startswith("@")
        return not is_part or any(
            f"{name}{end}" in self.texts[each] for each in self.protected for end in "'\"`"
        )

    def _mock(self, path: str) -> str | None:
        before, marker, name = f"/{path}".partition("/__mocks__/")
        if not marker or not self.uses_mocks:
            return None
        name = name.rpartition(".")[0].removesuffix("/index")
        if self.installed.has_node(name) and not is_core(name):
            return INSTALLED
        folder, stem, _ = split(f"{before[1:]}/{name}.js".lstrip("/"))
        beside = is_core(name) or any(split(each)[:2] == (folder, stem) for each in self.texts)
        asked = any("mock(" in self.texts[each] or "automock" in self.texts[each] for each in self.protected)
        return PROTECTED if beside and asked else None

    # --- Ruby -----------------------------------------------------------------------------------------

    def _ruby(self, path: str) -> str | None:
        folder, stem, _ = split(path)
        feature_of = {root: _below(posixpath.join(folder, stem), root) for root in self.roots.ruby}
        for feature in filter(None, feature_of.values()):
            if self.installed.has_ruby(feature) or _is_ruby_plugin(feature):
                return INSTALLED
            if any(f"{other}/{feature}.rb" in self.protected for other in self.roots.ruby):
                return PROTECTED
        return self._rails(path) if self.roots.rails else None

    def _rails(self, path: str) -> str | None:
        """Folders of the load path from Rails' start on, and roots of its autoloader."""
        folder, stem, _ = split(path)
        for root in _rails_roots(path):
            feature = _below(posixpath.join(folder, stem), root) or ""
            if _is_ruby_plugin(feature) or (_RUBY_TOOLS.match(feature) and self.installed.has_ruby(feature)):
                return INSTALLED
            for other in self.protected:
                late = feature not in _LOADED_BEFORE_RAILS or split(other)[0].startswith("app/")
                if late and other.endswith(f"/{feature}.rb") and self._is_found(other, feature):
                    return PROTECTED
        return None

    def _is_found(self, path: str, feature: str) -> bool:
        root = path.removesuffix(f"/{feature}.rb")
        return root in self.roots.ruby or root in _rails_roots(path)

    # --- Java -----------------------------------------------------------------------------------------

    def _service(self, path: str) -> str | None:
        """Services that a library asks for are plugins; those of the project's own interfaces are not."""
        found = _JVM_SERVICE.search(path)
        if found is None:
            return None
        package = found[1].rpartition(".")[0]
        is_foreign = package not in self.java_packages and self.installed.has_java_package(package)
        return "plugin_registration" if is_foreign else None

    def java(self, path: str, text: str) -> str | None:
        """What the types of a new or changed source would take the place of, wherever the file lies."""
        declared = java_names(text)
        pristine = java_names(self.texts.get(path, ""))
        if declared.package not in self.java_packages and self.installed.has_java_package(declared.package):
            return INSTALLED
        new = declared.types - (pristine.types if pristine.package == declared.package else frozenset())
        others = (source for each, source in self.java_sources.items() if each != path)
        return next(filter(None, (self._java_taken(new, declared.package, each) for each in others)), None)

    def _java_taken(self, new: frozenset[str], package: str, test: JavaNames) -> str | None:
        """What a protected source of the same package means by a name, and would no longer."""
        if package != test.package:
            return None
        if new & test.types:
            return PROTECTED
        for name in new & (test.names - test.imported - test.types):
            offered = [
                each for each in (*test.wholly, "java.lang") if self.installed.has_java_type(each, name)
            ]
            is_wanted = name in self.statement and not _ASSERTING.search(name)
            if name.islower() or (offered and not is_wanted):
                return INSTALLED
        return None


def _rails_roots(path: str) -> list[str]:
    """Folders of the load path above a file of a Rails application: app/*, their concerns, vendor, lib."""
    parts = path.split("/")
    roots = ["/".join(parts[:2])] if parts[0] == "app" and len(parts) > 2 else []  # noqa: PLR2004 - app/X/file
    roots += ["/".join(parts[:3])] if roots and parts[2] == "concerns" else []
    return roots + ([parts[0]] if parts[0] in {"vendor", "lib"} else [])


def _is_ruby_plugin(feature: str) -> bool:
    """Files that minitest and RubyGems look for on the whole load path, and load unasked."""
    return feature == "rubygems_plugin" or re.fullmatch(r"minitest/[^/]+_plugin", feature) is not None


def _indexes(folder: str) -> Iterable[str]:
    return (f"{folder}/index.{suffix}" for suffix in (*_JS, "json", "node"))


def _below(path: str, root: str) -> str | None:
    """The rest of a path below a folder; None where it lies elsewhere."""
    if not root:
        return path
    return path.removeprefix(f"{root}/") if path.startswith(f"{root}/") else None
