"""What a new file would be required, or loaded by its constant, in place of.

`require` takes the first folder of the load path that has the feature, unless it is loaded already; Rails
puts the folders below app/ into it when it starts, and loads constants from them in their order.
"""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

from astra_async.languages.language import INSTALLED, PROTECTED
from astra_async.languages.pristine import below, folder_named
from astra_async.languages.project_files import split

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from astra_async.languages.pristine import Pristine

_WORD = re.compile(r"[\w./-]+")
_TOOLS = re.compile(r"(?:minitest|rspec|test|capybara|rubygems|bundler|rexml|rspec_junit_formatter)(?:/|\Z)")
_LOADED_BEFORE_RAILS = frozenset({"spec_helper", "rails_helper", "test_helper"})
_USUAL = frozenset({
    "minitest", "rspec", "rspec_junit_formatter", "test-unit", "json", "set", "time", "date", "optparse",
    "erb", "pp", "stringio", "tempfile", "tmpdir", "fileutils", "ostruct", "securerandom", "delegate",
    "singleton", "forwardable", "bundler", "rubygems", "rake", "rails", "logger", "yaml", "psych", "uri",
    "socket", "open3", "benchmark", "tsort", "monitor", "timeout", "weakref", "shellwords", "English", "rack",
    "capybara", "active_support", "active_record", "digest", "pathname", "csv", "bigdecimal", "strscan",
    "observer", "find", "zlib", "openssl", "i18n", "tzinfo", "nokogiri", "loofah", "sqlite3", "bootsnap",
})  # fmt: skip
_USUAL_FOLDERS = frozenset({
    "minitest", "rspec", "test", "rubygems", "bundler", "rexml", "rack", "net", "rake", "active_support",
})  # fmt: skip


class RequireLookup:
    """The lookups of one project; `roots` are the folders of its load path."""

    def __init__(self, project: Pristine) -> None:
        self._project = project
        self._roots = frozenset(_roots(project))
        self._is_rails = any(
            re.search(r"\brails\b|\brailties\b", project.texts.get(name, ""))
            for name in ("Gemfile", "config/application.rb")
        )

    def refusal(self, path: str, _: str, held: Collection[str] | None) -> str | None:
        """As `Lookup.refusal`; what is found does not depend on texts."""
        folder, stem, suffix = split(path)
        if suffix != "rb" or path in self._project.texts:
            return None
        place = posixpath.join(folder, stem)
        for feature in filter(None, [below(place, root) for root in self._roots]):
            if _is_held(feature, held) or _is_plugin(feature):
                return INSTALLED
            if any(f"{other}/{feature}.rb" in self._project.protected for other in self._roots):
                return PROTECTED
        return self._rails(path, place, held) if self._is_rails else None

    def _rails(self, path: str, place: str, held: Collection[str] | None) -> str | None:
        """Folders of the load path from Rails' start on, and roots of its autoloader."""
        for root in _rails_roots(path):
            feature = below(place, root) or ""
            if _is_plugin(feature) or (_TOOLS.match(feature) and _is_held(feature, held)):
                return INSTALLED
            for other in self._project.protected:
                late = feature not in _LOADED_BEFORE_RAILS or split(other)[0].startswith("app/")
                found_at = other.removesuffix(f"/{feature}.rb")
                if late and found_at != other and found_at in {*self._roots, *_rails_roots(other)}:
                    return PROTECTED
        return None


def _rails_roots(path: str) -> list[str]:
    """Folders of the load path above a file of a Rails application: app/*, their concerns, vendor, lib."""
    parts = path.split("/")
    roots = ["/".join(parts[:2])] if parts[0] == "app" and len(parts) > 2 else []  # noqa: PLR2004 - app/X/file
    roots += ["/".join(parts[:3])] if roots and parts[2] == "concerns" else []
    return roots + ([parts[0]] if parts[0] in {"vendor", "lib"} else [])


def _is_plugin(feature: str) -> bool:
    """Files that minitest and RubyGems look for on the whole load path, and load unasked."""
    return feature == "rubygems_plugin" or re.fullmatch(r"minitest/[^/]+_plugin", feature) is not None


def _is_held(feature: str, held: Collection[str] | None) -> bool:
    """Whether `require` of this feature finds a file of Ruby's library or of a gem."""
    if held is None:
        return feature in _USUAL or feature.partition("/")[0] in _USUAL_FOLDERS
    return feature in held


def _roots(project: Pristine) -> Iterator[str]:
    """Folders on Ruby's load path from its start or that of the test runner on."""
    tools = project.tools
    yield from ("spec", "test")
    if "rspec" in tools or "rake" in tools:
        yield "lib"
    for found in re.findall(r"(?<![\w-])-I\s*[\"']?([\w./:,-]+)", tools.commands):
        yield from map(folder_named, re.split("[:,]", found))
    for path, text in project.texts.items():
        if path.endswith((".rb", "Rakefile", ".rspec")):
            for line in text.splitlines():
                if re.search(r"LOAD_PATH|\$:|-I|\.libs\b", line):
                    named = {folder_named(word.lstrip("./")) for word in _WORD.findall(line)}
                    yield from named & {*project.folders, ""}
