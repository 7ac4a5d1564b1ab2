"""Ruby."""

from __future__ import annotations

import posixpath
import re
import shlex
from typing import TYPE_CHECKING

from astra_async.languages.language import (
    BUILD,
    INSTALLED,
    PROTECTED,
    RUNNER,
    Images,
    Language,
    ProjectTool,
    Reads,
    TestFiles,
    Tools,
)
from astra_async.languages.needs import Part, Toolchain, script
from astra_async.languages.project_files import below, folder_named, split
from astra_async.languages.ruby.mutate import read_tests

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from astra_async.languages.needs import Commands
    from astra_async.languages.project_files import Pristine


_WORD = re.compile(r"[\w./-]+")
_TOOL_FEATURES = re.compile(
    r"(?:minitest|rspec|test|capybara|rubygems|bundler|rexml|rspec_junit_formatter)(?:/|\Z)"
)
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
    """Resolution of `require` in one project; `_roots` are the folders on its load path."""

    def __init__(self, project: Pristine) -> None:
        self._project = project
        self._roots = frozenset(_roots(project))
        self._is_rails = any(
            re.search(r"\brails\b|\brailties\b", project.texts.get(name, ""))
            for name in ("Gemfile", "config/application.rb")
        )

    def refusal(self, path: str, _: str, held: Collection[str] | None) -> str | None:
        """See `Lookup.refusal`; the result does not depend on the text."""
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
        """Check the folders that Rails adds to the load path and to its autoloader."""
        for root in _rails_roots(path):
            feature = below(place, root) or ""
            if _is_plugin(feature) or (_TOOL_FEATURES.match(feature) and _is_held(feature, held)):
                return INSTALLED
            for other in self._project.protected:
                late = feature not in _LOADED_BEFORE_RAILS or split(other)[0].startswith("app/")
                found_at = other.removesuffix(f"/{feature}.rb")
                if late and found_at != other and found_at in {*self._roots, *_rails_roots(other)}:
                    return PROTECTED
        return None


def _rails_roots(path: str) -> list[str]:
    """Return the load path folders above a file of a Rails application: app/*, concerns, vendor, lib."""
    parts = path.split("/")
    roots = ["/".join(parts[:2])] if parts[0] == "app" and len(parts) > 2 else []  # noqa: PLR2004 - app/X/file
    roots += ["/".join(parts[:3])] if roots and parts[2] == "concerns" else []
    return roots + ([parts[0]] if parts[0] in {"vendor", "lib"} else [])


def _is_plugin(feature: str) -> bool:
    """Return True for files that minitest and RubyGems load automatically from anywhere on the path."""
    return feature == "rubygems_plugin" or re.fullmatch(r"minitest/[^/]+_plugin", feature) is not None


def _is_held(feature: str, held: Collection[str] | None) -> bool:
    """Return True if `require` of this feature finds a file of Ruby's library or of a gem."""
    if held is None:
        return feature in _USUAL or feature.partition("/")[0] in _USUAL_FOLDERS
    return feature in held


def _roots(project: Pristine) -> Iterator[str]:
    """Yield the folders on the load path when Ruby or the test runner starts."""
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


# Bundler uses this copy of the Gemfile. The copy requires no other Ruby version than Debian's, and a Gemfile
# changed by an answer cannot break a run without network.
GEMFILE = "/projects/bundle/Gemfile"
_GEM = re.compile(rb"(?m)^\s*gem\s*\(?\s*[\"']([\w.-]+)[\"']")
_RUBY = re.compile(rb"(?m)^\s*ruby[\s(]+(.{1,60})$")
TOOLCHAIN = Toolchain(
    label="ruby",
    packages=frozenset(
        {
            *("ruby", "ruby-dev", "ruby-bundler", "rake", "build-essential", "git", "pkg-config", "tzdata"),
            *("zlib1g-dev", "libyaml-dev", "libsqlite3-dev", "sqlite3", "libxml2-dev", "libxslt1-dev"),
        }
    ),
)
_PLAIN = Part(
    language="ruby",
    label="ruby",
    toolchain=Toolchain(
        label="ruby-plain",
        packages=frozenset(
            {
                *("ruby", "rake", "tzdata", "ruby-rspec", "ruby-rspec-junit-formatter", "ruby-minitest"),
                *("ruby-minitest-reporters", "ruby-test-unit"),
            }
        ),
    ),
    notes=("plain Ruby: Debian's Ruby 3.1 with its rspec and minitest",),
)


def find_ruby(files: Mapping[str, bytes], folder: str, commands: Commands) -> Part | None:
    """Return the part of a folder with a Gemfile, or of plain sources at the root."""
    prefix = f"{folder}/" if folder else ""
    gemfile = files.get(f"{prefix}Gemfile")
    if gemfile is None:
        plain = not folder and "ruby" in commands.languages and any(path.endswith(".rb") for path in files)
        return _PLAIN if plain else None
    names = ("Gemfile", "Gemfile.lock", ".ruby-version")
    kept = {prefix + name: files[prefix + name] for name in names if prefix + name in files}
    kept |= {
        path: content
        for path, content in files.items()
        if path.startswith(prefix) and path.endswith((".gemspec", "lib/version.rb"))
    }
    gems = sorted({name.decode() for name in _GEM.findall(gemfile)})
    asked = _RUBY.search(gemfile)
    note = f" (the Gemfile requests {asked[1].decode(errors='replace').strip()})" if asked else ""
    return Part(
        language="ruby",
        label="rails" if "rails" in gems else "ruby",
        toolchain=TOOLCHAIN,
        files=kept,
        install=script("ruby/bundle.sh", FOLDER=folder or ".", GEMS=" ".join(gems)),
        environment={"BUNDLE_GEMFILE": GEMFILE, "BUNDLE_APP_CONFIG": "/projects/bundle/.bundle"},
        notes=(f"{prefix}Gemfile: Debian's Ruby 3.1{note}",),
    )


_TOOLS = Tools(
    programs=(
        ProjectTool("rspec", r"\brspec\b", runs_tests=True),
        ProjectTool("minitest", r"\bminitest\b|\brails\s+test\b|\bruby\b[^\n]{0,200}\btest", runs_tests=True),
        ProjectTool("rake", r"\brake\b|\brails\b", scripts=("rakefile", "Rakefile")),
        ProjectTool("bundler", r"\bbundle\b|\bgem ['\"]"),
    ),
    reads=(
        Reads(RUNNER, "rake rspec minitest", "place", r"rakefile(?:\.rb)?|guardfile"),
        Reads(RUNNER, "rake", "path", r"(?:.*/)?rakelib/[^/]+\.rake"),
        Reads(RUNNER, "", "path", r".*config/environments/test\.rb"),
        Reads(BUILD, "bundler rake rspec minitest", "place", (
            r"gemfile(?:\.lock)?|gems\.(?:rb|locked)|.*\.gemspec"
        )),
    ),
    manifests=r"gemfile",
    inert=r"rubocop.*\.ya?ml",
    variables=r"RUBYOPT|RAILS_ENV|RACK_ENV|TESTOPTS|(?:BUNDLE|GEM|RSPEC|MINITEST)_\w{0,80}|RUBY(?:_\w{0,80}|PATH|OPT|LIB|HOME)",
    dependency_folders=frozenset({".bundle", ".gem"}),
)  # fmt: skip

RUBY = Language(
    name="ruby",
    suffixes=frozenset({"rb"}),
    images=Images(
        find=find_ruby,
        calls=re.compile(r"(?<![\w.-])(?:ruby|bundle|rake|rspec|rails|gem|rvm|rbenv)(?![\w-])"),
        signs=("Gemfile",),
        installs=lambda words: shlex.join(words) if words[:2] == ["gem", "install"] and words[2:] else "",
        managers=("gem", "bundle", "bundler", "rvm", "rbenv"),
        holds="ruby/installed.sh",
    ),
    tools=_TOOLS,
    tests=TestFiles(
        paths=re.compile(r"(?:^|/)(?:[^/]*_(?:test|spec)|test_[^/]*|(?:spec|rails|test)_helper)\.rb$"),
        content=(
            re.compile(
                r"\bRSpec\.describe\b|\bMinitest::|\bActiveSupport::TestCase\b|\bIntegrationTest\b|\bTest::Unit\b"
                r"|^\s{0,40}describe\b[^\n]{1,300}\bdo\b",
                re.MULTILINE,
            ),
        ),
    ),
    lookup=RequireLookup,
    compiled=r"\.gem$",
    unbuilt=r"LoadError|syntax error, unexpected",
    mutate=read_tests,
)
